//! The errors in the sources, with the numbers of their counterexamples.

use exactfed_core::theory::errata::{self, COMPARED, Counterexample, Erratum, Gravity};
use serde::Serialize;

/// An error in a source as pages show it.
#[derive(Clone, Debug, Serialize)]
pub struct ShownErratum {
    /// The key of the publication.
    pub source: &'static str,
    /// Where it stands.
    pub place: &'static str,
    /// What depends on it, in a few words.
    pub gravity: &'static str,
    /// Whether it is a slip of notation, which changes nothing else.
    pub slip: bool,
    /// Whether it has to be compared with the printed page.
    pub check_print: bool,
    /// What is printed.
    pub printed: &'static str,
    /// What holds.
    pub holds: &'static str,
    /// What follows from it.
    pub consequence: &'static str,
    /// Claims that show it, as `experiment#claim`.
    pub claims: &'static [&'static str],
    /// Numbers of an instance: what they are of, as printed, and as it holds.
    pub numbers: Vec<(&'static str, f64, f64)>,
}

/// All errors in the registered sources: those on which results depend first.
pub fn errata() -> Vec<ShownErratum> {
    let mut all: Vec<&Erratum> = errata::errata().collect();
    all.sort_by_key(|erratum| erratum.gravity);
    all.into_iter().map(shown).collect()
}

/// Which text of the source was compared.
pub fn compared(source: &str) -> &'static str {
    COMPARED.iter().find(|(key, _)| *key == source).map_or("", |(_, text)| text)
}

fn shown(erratum: &Erratum) -> ShownErratum {
    let Erratum { source, place, check_print, printed, holds, consequence, claims, .. } = *erratum;
    let numbers = (erratum.counterexample)();
    let slip = erratum.gravity == Gravity::Slip;
    let gravity = match erratum.gravity {
        Gravity::Result => "a stated result",
        Gravity::Step => "a step of a proof",
        Gravity::Remark => "an assumption, a definition or a remark",
        Gravity::Slip => "a slip of notation",
    };
    let number = |Counterexample { what, printed, holds }| (what, printed, holds);
    let numbers = numbers.into_iter().map(number).collect();
    ShownErratum {
        source,
        place,
        gravity,
        slip,
        check_print,
        printed,
        holds,
        consequence,
        claims,
        numbers,
    }
}
