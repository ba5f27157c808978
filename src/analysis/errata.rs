//! The errors in the sources, with the numbers of their counterexamples.

use driftbench_core::theory::errata::{self, Counterexample, Erratum, Gravity};
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
    /// What is printed.
    pub printed: &'static str,
    /// What holds.
    pub holds: &'static str,
    /// What follows from it.
    pub consequence: &'static str,
    /// Claims that show it, as `experiment#claim`.
    pub claims: &'static [&'static str],
    /// Numbers of an instance: what they are of, as printed, and exact.
    pub numbers: Vec<(&'static str, f64, f64)>,
}

/// All errors in the registered sources: those on which results depend first.
pub fn errata() -> Vec<ShownErratum> {
    let mut all: Vec<&Erratum> = errata::errata().collect();
    all.sort_by_key(|erratum| erratum.gravity);
    all.into_iter().map(shown).collect()
}

fn shown(erratum: &Erratum) -> ShownErratum {
    let Erratum { source, place, gravity, printed, holds, consequence, claims, .. } = *erratum;
    let numbers = (erratum.counterexample)();
    let gravity = match gravity {
        Gravity::Result => "a stated result",
        Gravity::Step => "a step of a proof",
        Gravity::Slip => "a slip of notation",
    };
    let number = |Counterexample { what, printed, holds }| (what, printed, holds);
    let numbers = numbers.into_iter().map(number).collect();
    ShownErratum { source, place, gravity, printed, holds, consequence, claims, numbers }
}
