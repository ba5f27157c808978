//! The list of published bounds, whose texts are in `published.toml`.

#[cfg(test)]
use super::dummy;
use super::{
    Bound, Bounded, PublishedRun, RunBound, ValueOfRun, book, richardson_romberg, scafflsa,
    scaffold,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::LazyLock;
use thiserror::Error;

/// What is known of a published bound, whatever the run: one table of `published.toml`.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PublishedBound {
    /// The name of the bound in manifests, under which its source lists the function that computes it.
    pub key: String,
    /// Whether the bound is for tables alone, so that no manifest may name it.
    #[serde(default)]
    is_only_in_tables: bool,
    /// The source, and the number of the statement in it.
    pub name: String,
    /// What the bound is, for the reference of manifests.
    pub description: String,
    /// The name in `sources` of the statement whose bound it is.
    pub statement: String,
    /// How pages write the bound in a sentence.
    pub words: String,
    /// The formula by which it is computed.
    pub formula: String,
    /// The quantity that the bound is an upper bound of.
    pub quantity: Bounded,
    /// Whether the value is a proved bound. If not, it is made of the source's leading
    /// terms with universal constants set to 1 and without higher orders, and measurements
    /// may exceed it.
    pub proved: bool,
    /// The number of its own dash pattern, which tells it from other bounds in figures that draw several; `None` if it
    /// has none ([`BoundId::dash`]).
    pub dash: Option<usize>,
    /// Whether tables list the bound for every run that its statement is about, or only where a claim is tested on
    /// it.
    pub is_listed: bool,
}

/// A published bound, and the function that computes it.
struct PublishedRow {
    info: PublishedBound,
    value: ValueOfRun,
}

/// The functions that compute bounds, by key, source by source.
const VALUES: &[&[RunBound]] = &[
    scafflsa::BOUNDS,
    richardson_romberg::BOUNDS,
    book::BOUNDS,
    scaffold::BOUNDS,
    #[cfg(test)]
    dummy::BOUNDS,
];

/// TOML texts, with one table of [`PublishedBound`] for each bound.
const TEXTS: &[&str] = &[
    include_str!("published.toml"),
    #[cfg(test)]
    dummy::TEXTS,
];

/// All published bounds in the order of tables.
static PUBLISHED: LazyLock<Vec<PublishedRow>> =
    LazyLock::new(|| read_rows(&TEXTS.concat(), &VALUES.concat()));

/// The bounds of a TOML text in its order, each with the function that has its key in `values`.
///
/// # Panics
/// If the text is no list of bounds, or a bound has no function: both come with the program.
fn read_rows(texts: &str, values: &[RunBound]) -> Vec<PublishedRow> {
    #[derive(Deserialize)]
    struct BoundFile {
        bounds: Vec<PublishedBound>,
    }
    let BoundFile { bounds } =
        toml::from_str(texts).unwrap_or_else(|error| panic!("published bounds: {error}"));
    let mut rows = Vec::with_capacity(bounds.len());
    for info in bounds {
        let of_key = values.iter().find(|(key, _)| *key == info.key);
        let (_, value) = *of_key.unwrap_or_else(|| panic!("no bound {}", info.key));
        rows.push(PublishedRow { info, value });
    }
    rows
}

impl PublishedRun<'_> {
    /// The bounds of the statements about runs of this kind that tables list for every run
    /// ([`PublishedBound::is_listed`]), in the order of `published.toml`, with those whose conditions the run does not
    /// meet.
    pub fn listed_bounds(&self) -> Vec<Bound> {
        let listed = all_bounds().filter(|id| id.info().is_listed);
        listed.filter_map(|id| id.for_run(self)).collect()
    }

    /// The bounds of all other statements about runs of this kind, which tables list only for runs on which a claim is
    /// tested on them. In the order of `published.toml`, with those whose conditions the run does not meet.
    pub fn unlisted_bounds(&self) -> Vec<Bound> {
        let unlisted = all_bounds().filter(|id| !id.info().is_listed);
        unlisted.filter_map(|id| id.for_run(self)).collect()
    }
}

/// All published bounds: those that manifests may name, and those that are for tables alone.
fn all_bounds() -> impl Iterator<Item = BoundId> {
    (0..PUBLISHED.len() as u8).map(BoundId)
}

/// A published bound: its place in the list of all of them. It is read and written as its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub struct BoundId(u8);

impl BoundId {
    /// All bounds that manifests may name.
    pub fn all() -> impl Iterator<Item = Self> {
        all_bounds().filter(|id| !id.info().is_only_in_tables)
    }

    /// What is known of the bound, whatever the run.
    pub fn info(self) -> &'static PublishedBound {
        &PUBLISHED[usize::from(self.0)].info
    }

    /// Its name in manifests.
    pub fn key(self) -> &'static str {
        &self.info().key
    }

    /// The number of the dash pattern, among the thin ones of figures, with which a figure draws it that names it.
    /// Bounds without a pattern of their own have number 11 or 12, in turn, which some other predictions have too.
    pub fn dash(self) -> usize {
        self.info().dash.unwrap_or(11 + usize::from(self.0 % 2))
    }

    /// The bound for a run; `None` if its statement is not about runs of this kind.
    pub fn for_run(self, run: &PublishedRun<'_>) -> Option<Bound> {
        let PublishedRow { info, value } = &PUBLISHED[usize::from(self.0)];
        Some(Bound { info, value: value(run)? })
    }
}

impl fmt::Debug for BoundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl From<BoundId> for &'static str {
    fn from(id: BoundId) -> Self {
        id.key()
    }
}

/// The error of a manifest that names a bound by a key which none has that manifests may name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no published bound is called {0}")]
pub struct UnknownBound(pub String);

impl TryFrom<String> for BoundId {
    type Error = UnknownBound;
    fn try_from(name: String) -> Result<Self, UnknownBound> {
        Self::all().find(|id| id.key() == name).ok_or(UnknownBound(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::quadratic;
    use crate::sample;
    use crate::sources::{
        StatedAlgorithm::{FedAvg, RandomScaffold, RichardsonRomberg, Scaffold},
        statement,
    };
    use crate::theory::bounds::{Constants, Unmet};
    use std::collections::HashSet;

    /// No two bounds have the same key or dash pattern, and the statement of each is in the sources.
    #[test]
    fn names_and_dashes_are_of_one_bound_each_and_statements_are_known() {
        let names: HashSet<&str> = all_bounds().map(BoundId::key).collect();
        assert_eq!([names.len(), VALUES.concat().len()], [all_bounds().count(); 2]);
        let dashes: Vec<usize> = all_bounds().filter_map(|id| id.info().dash).collect();
        assert_eq!(dashes.iter().collect::<HashSet<_>>().len(), dashes.len());
        for id in all_bounds() {
            assert!(statement(&id.info().statement).is_some(), "{}", id.info().statement);
        }
        assert!(BoundId::try_from("rr-theorem9".to_owned()).is_err());
    }

    /// The table of a bound names a statement, and so does its function, by a text of its own. Where γ is beyond
    /// each inequality of the statement of the table, the bound has to fail by these inequalities.
    #[test]
    fn bounds_fail_where_an_inequality_of_their_statement_fails() {
        let base = quadratic::Settings { noise: 0.1, ..sample::isotropic(3, 2, 2.0) };
        let facts = sample::build(&base, 1);
        let constants = Constants::new(&facts).unwrap();
        let mu = constants.curvature();
        let l = constants.moments().unwrap().cocoercivity;
        let coin = RandomScaffold;
        let algorithms = [FedAvg, Scaffold, RichardsonRomberg, coin];
        let mut compared = 0;
        // The equality of Theorem B.4 needs no bound of η.
        for id in all_bounds().filter(|id| id.info().statement != "SCAFFLSA Theorem B.4") {
            let run = |of| PublishedRun {
                probability: (of == coin).then_some(0.25),
                ..PublishedRun::even(&facts, &constants, of, 10.0, 4, 3)
            };
            let found = algorithms.iter().find_map(|algorithm| id.for_run(&run(*algorithm)));
            let name = &id.info().statement;
            let unmet = found.expect("a bound of some algorithm").value.err().unwrap_or_default();
            for condition in &statement(name).unwrap().conditions {
                let sides = condition.sides((10.0, 4.0), || Ok(mu), || Ok::<_, ()>(l)).unwrap();
                let Some((have, need)) = sides else { continue };
                let is_it = |found: &Unmet| {
                    (found.have - have).abs() < 1e-9 * have
                        && (found.need - need).abs() < 1e-9 * need
                };
                assert!(unmet.iter().any(is_it), "{name}: {condition:?}, {unmet:?}");
                compared += 1;
            }
        }
        assert!(compared > 12, "{compared} inequalities");
    }
}
