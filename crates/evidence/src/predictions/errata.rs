//! The errors in the sources, with the numbers of their counterexamples.

use exactfed_core::theory::errata::{self, Counterexample, Erratum, Gravity, Numbers};
use serde::Serialize;

/// An error in a source as pages show it.
#[derive(Clone, Debug, Serialize)]
pub struct ShownErratum {
    /// The key of the publication.
    pub source: &'static str,
    /// The error.
    #[serde(flatten)]
    pub erratum: &'static Erratum,
    /// Whether it is a slip of notation, which changes nothing else.
    pub slip: bool,
    /// Numbers of an instance: what they are of, as printed, and as it holds.
    pub numbers: Vec<(&'static str, f64, f64)>,
}

/// All errors in the registered sources: those on which results depend first.
pub fn errata() -> Vec<ShownErratum> {
    let of_source = |all: &'static errata::SourceErrata| {
        all.errata.iter().map(|erratum| shown(all.source, erratum))
    };
    let mut all: Vec<ShownErratum> = errata::errata().iter().flat_map(of_source).collect();
    all.sort_by_key(|shown| shown.erratum.gravity);
    all
}

/// Which text of the source was compared.
pub fn compared(source: &str) -> &'static str {
    errata::errata().iter().find(|all| all.source == source).map_or("", |all| &all.compared)
}

fn shown(source: &'static str, erratum: &'static Erratum) -> ShownErratum {
    let number = |example: &'static Counterexample| {
        let Numbers { printed, holds } = example.numbers()?;
        Some((example.what.as_str(), printed, holds))
    };
    let numbers = erratum.counterexamples.iter().filter_map(number).collect();
    ShownErratum { source, erratum, slip: erratum.gravity == Gravity::Slip, numbers }
}
