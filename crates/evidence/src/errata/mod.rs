//! Errors in the sources: what is printed, what holds, and an instance that shows the difference.
//! The prose is in one TOML file per source in this folder, and the numbers are computed here.
//!
//! *Invariant*: a counterexample is computed exactly, from its definition alone, and its test
//! shows that what is printed fails on it and that the correction holds.

mod book;
mod pencil;
mod rr;
mod scafflsa;
mod slides;
mod stationary;

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ErratumClass {
    /// A statement of the source is false as it stands.
    #[serde(rename = "a stated result fails")]
    Result,
    /// A step does not follow; what it serves was not found to be false.
    #[serde(rename = "a proof has a gap")]
    Proof,
    /// A remark, an assumption or a summary says more than is proved, or than is true. So does a remainder that holds at
    /// fixed values of a parameter that it does not name, and that is not uniform in this parameter, and a result that
    /// lacks an assumption which is made wherever the result is used.
    #[serde(rename = "a sentence overstates")]
    Sentence,
    /// A symbol is wrong, and the context corrects it.
    #[serde(rename = "notation")]
    Notation,
}

/// The errors of a source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceErrata {
    /// The key of the publication.
    #[serde(skip)]
    pub source: &'static str,
    /// Which text of it was compared.
    pub compared: String,
    /// The errors, by where they stand.
    pub errata: Vec<Erratum>,
}

/// An error in a source.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "kebab-case"), deny_unknown_fields)]
pub struct Erratum {
    /// Where it stands, with the version where versions differ.
    pub place: String,
    /// Whether a result, a proof, a sentence or the notation is wrong.
    pub class: ErratumClass,
    /// Whether it hangs on one symbol of a text that a machine read from a PDF, so that the fault may
    /// be one of the reading.
    #[serde(default)]
    pub check_print: bool,
    /// What is printed, in quotation marks where the words or the formula are quoted.
    pub printed: String,
    /// What holds in place of the printed statement.
    pub holds: String,
    /// What follows for a reader or an author.
    pub consequence: String,
    /// What a careful author would change, in one sentence.
    pub change: String,
    /// What is known of it in the published version; `None` where nothing is.
    pub published: Option<String>,
    /// Exact numbers of instances; empty where runs or the text show it.
    #[serde(default)]
    pub counterexamples: Vec<Counterexample>,
    /// Claims that show it, as `experiment#claim`.
    #[serde(default)]
    pub claims: Vec<String>,
}

/// A number of an instance that contradicts what is printed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counterexample {
    /// The id by which its numbers are found.
    pub id: String,
    /// The instance and the number.
    pub what: String,
}

/// The two numbers of a counterexample, which should be equal, or of which the printed one should be an upper bound,
/// if the printed statement held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contradiction {
    /// The number by the printed expression.
    pub printed: f64,
    /// The exact number, or the number by the corrected expression.
    pub holds: f64,
}

/// The id of a counterexample with the function that computes its numbers.
type ContradictionById = (&'static str, fn() -> Contradiction);

impl Counterexample {
    /// Computes the numbers of the counterexample, which the page on the sources shows next to its words; `None` if no
    /// function has its id, which a test rules out for those of [`errata`].
    pub fn numbers(&self) -> Option<Contradiction> {
        let all = [rr::NUMBERS, scafflsa::NUMBERS, slides::NUMBERS, book::NUMBERS];
        let known = all.into_iter().flatten().find(|(id, _)| *id == self.id);
        known.map(|(_, compute)| compute())
    }
}

/// All errors of all sources, source by source, as the TOML files of this folder have them. They are read once.
pub fn errata() -> &'static [SourceErrata] {
    static ERRATA: LazyLock<[SourceErrata; 4]> = LazyLock::new(|| {
        let files = [
            ("RR", include_str!("rr.toml")),
            ("SCAFFLSA", include_str!("scafflsa.toml")),
            ("SLIDES", include_str!("slides.toml")),
            ("BOOK", include_str!("book.toml")),
        ];
        files.map(|(source, text)| {
            let read: SourceErrata =
                toml::from_str(text).unwrap_or_else(|error| panic!("errata of {source}: {error}"));
            SourceErrata { source, ..read }
        })
    });
    &*ERRATA
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::sources::sources;
    use std::collections::HashSet;

    #[test]
    fn every_source_has_errata_with_places_of_their_own() {
        let keys: Vec<&str> = errata().iter().map(|source| source.source).collect();
        assert!(keys.into_iter().eq(sources().iter().map(|source| source.key.as_str())));
        for SourceErrata { errata, .. } in errata() {
            let mut places = HashSet::new();
            for erratum in errata {
                assert!(places.insert(&erratum.place), "{} twice", erratum.place);
                let Erratum { printed, holds, consequence, change, published, .. } = erratum;
                for text in [printed, holds, consequence, change].into_iter().chain(published) {
                    assert!(text.ends_with(['.', ')', '”']), "{text}");
                    assert_eq!(text.matches('“').count(), text.matches('”').count(), "{text}");
                }
            }
        }
    }

    /// The numbers of a counterexample.
    pub fn numbers(id: &str) -> Contradiction {
        let example = Counterexample { id: id.into(), what: String::new() };
        example.numbers().unwrap_or_else(|| panic!("no counterexample {id}"))
    }

    /// What is said of the printed number and the exact number of a counterexample.
    type Said = fn(f64, f64) -> bool;

    /// Asserts what is said of the numbers of counterexamples.
    pub fn assert_each(said: &[(&str, Said)]) {
        for (id, is_so) in said {
            let found = numbers(id);
            assert!(is_so(found.printed, found.holds), "{id}: {found:?}");
        }
    }

    /// Asserts that exact numbers are above printed ones by more than a factor, and at most as
    /// corrected bounds allow.
    pub fn assert_exceeded(by: &[(&str, f64, f64)]) {
        for (id, factor, bound) in by {
            let Contradiction { printed, holds } = numbers(id);
            assert!(holds > factor * printed && holds <= *bound, "{id}: {printed} {holds} {bound}");
        }
    }

    /// Each number contradicts what is printed, and each function is used once.
    #[test]
    fn counterexamples_differ_from_what_is_printed() {
        let all = errata().iter().flat_map(|source| &source.errata);
        let mut ids = HashSet::new();
        for example in all.flat_map(|erratum| &erratum.counterexamples) {
            let Counterexample { id, what } = example;
            let Contradiction { printed, holds } = numbers(id);
            let apart = (printed - holds).abs();
            assert!(apart > 1e-3 * holds.abs().max(printed.abs()), "{what}: {printed} {holds}");
            assert!(ids.insert(id), "{id} twice");
        }
        let functions = [rr::NUMBERS, scafflsa::NUMBERS, slides::NUMBERS, book::NUMBERS];
        assert_eq!(functions.concat().len(), ids.len());
    }
}
