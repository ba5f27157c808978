//! Errors in the sources: what is printed, what holds, and an instance that shows the difference.
//!
//! *Invariant*: a counterexample is computed exactly, from its definition alone, and its test
//! shows that what is printed fails on it and that the correction holds.

mod book;
mod richardson_romberg;
mod scafflsa;
mod slides;

/// How much depends on an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gravity {
    /// A stated result is wrong, or weaker than its proof allows.
    Result,
    /// A step of a proof is wrong, and the results stand.
    Step,
    /// An assumption, a definition or a remark is wrong, and the results stand or fall with how it
    /// is read.
    Remark,
    /// A slip of notation, which the context corrects.
    Slip,
}

/// The text of each source that was compared, by the key of the publication.
pub const COMPARED: [(&str, &str); 4] = [
    (
        "RR",
        "First version: “Refined Analysis of Federated Averaging's Bias and Federated Richardson-Romberg Extrapolation”, hal-04878343v1 of 10 January 2025, in a machine reading of its PDF. Second version: “Refined Analysis of Constant Step Size Federated Averaging and Federated Richardson-Romberg Extrapolation”, the text of arXiv 2412.01389 with its formulas in LaTeX. The versions number their statements differently; both numbers are given where it matters.",
    ),
    (
        "SCAFFLSA",
        "“SCAFFLSA: Quantifying and Eliminating Heterogeneity Bias in Federated Linear Stochastic Approximation and Temporal Difference Learning”, the first version of arXiv 2402.04114 of February 2024, with its formulas in LaTeX. It was published later as “SCAFFLSA: Taming Heterogeneity in Federated Linear Stochastic Approximation and TD Learning”, with which it was not compared.",
    ),
    (
        "SLIDES",
        "“Convergence and Linear Speed-Up in Stochastic Federated Learning”, the slides of a talk at ICCOPT of 23 July 2025, in a machine reading of their PDF.",
    ),
    (
        "BOOK",
        "Chapter 5, “Federated Learning”, of a draft of 2023, in a machine reading of its PDF.",
    ),
];

/// An error in a source.
#[derive(Clone, Copy, Debug)]
pub struct Erratum {
    /// The key of the publication.
    pub source: &'static str,
    /// Where it stands, with the version where versions differ.
    pub place: &'static str,
    /// How much depends on it.
    pub gravity: Gravity,
    /// Whether it hangs on one symbol of a text that a machine read from a PDF, so that the fault may
    /// be one of the reading.
    pub check_print: bool,
    /// What is printed, in quotation marks where the words or the formula are quoted.
    pub printed: &'static str,
    /// What holds.
    pub holds: &'static str,
    /// What follows for a reader or an author.
    pub consequence: &'static str,
    /// Exact numbers of an instance; empty where runs or the text show it.
    pub counterexample: fn() -> Vec<Counterexample>,
    /// Claims that show it, as `experiment#claim`.
    pub claims: &'static [&'static str],
}

/// A number of an instance, as printed and as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counterexample {
    /// The instance and the number.
    pub what: &'static str,
    /// By the printed expression.
    pub printed: f64,
    /// The exact number, or that of the corrected expression.
    pub holds: f64,
}

/// For errors that the text or runs show.
fn none() -> Vec<Counterexample> {
    Vec::new()
}

/// All errors, source by source.
pub fn errata() -> impl Iterator<Item = &'static Erratum> {
    let rr = richardson_romberg::ERRATA.iter();
    rr.chain(scafflsa::ERRATA).chain(slides::ERRATA).chain(book::ERRATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::SOURCES;
    use std::collections::HashSet;

    #[test]
    fn errata_have_a_source_and_a_place_of_their_own() {
        let mut places = HashSet::new();
        for erratum in errata() {
            assert!(SOURCES.iter().any(|source| source.key == erratum.source), "{erratum:?}");
            assert!(places.insert((erratum.source, erratum.place)), "{} twice", erratum.place);
            for text in [erratum.printed, erratum.holds, erratum.consequence] {
                assert!(text.ends_with(['.', ')', '”']), "{text}");
                assert_eq!(text.matches('“').count(), text.matches('”').count(), "{text}");
            }
        }
    }

    #[test]
    fn every_source_says_which_text_was_compared() {
        let keys = COMPARED.map(|(key, _)| key);
        assert_eq!(keys, SOURCES.map(|source| source.key));
    }

    /// Each number contradicts what is printed.
    #[test]
    fn counterexamples_differ_from_what_is_printed() {
        for erratum in errata() {
            for Counterexample { what, printed, holds } in (erratum.counterexample)() {
                let apart = (printed - holds).abs();
                assert!(apart > 1e-3 * holds.abs().max(printed.abs()), "{what}: {printed} {holds}");
            }
        }
    }
}
