//! The optima θ* of instances in many unknowns, which are searched for, kept beside the results
//! so that each is searched for once.
//!
//! *Invariant*: as for [`super::columns`], nothing depends on what is kept. A file is named by the
//! content of the instance; one that is damaged is not read, and an optimum is used only if its
//! gradient has the norm that was written with it.

use super::Store;
use super::columns::{CheckedCache, decode, encode};
use exactfed_core::problem::{MOST_REFINED, Minimiser};
use exactfed_evidence::results::Columns;
use exactfed_runner::data::MOST_KEPT;
use exactfed_runner::files::{MOST_READ, create_below, read_plain, write_atomically};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Prepared, Scenario};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The folder of the optima. No experiment's name begins with a dot.
const OPTIMA: &str = ".optima";
/// It rises when what is written changes.
const VERSION: u32 = 1;
/// The only column: θ*, and the bound on its error.
const COLUMN: &str = "optimum";

fn columns(theta: &[f64], error: f64) -> Columns {
    let column = theta.iter().copied().chain([error]).collect();
    Columns::from([(COLUMN.to_owned(), column)])
}

fn file(root: &Path, key: &str) -> PathBuf {
    root.join(OPTIMA).join(key)
}

fn read(root: &Path, key: &str) -> Option<Minimiser> {
    let mut theta =
        decode(&read_plain(&file(root, key), MOST_READ).ok()?, VERSION, key)?.remove(COLUMN)?;
    let error = theta.pop()?;
    Some(Minimiser { theta, error })
}

impl Store {
    /// The optima that are kept beside the results of a plan, if it has results.
    pub fn known_optima(plan: &Plan) -> impl Fn(&str) -> Option<Minimiser> + use<'_> {
        let root = plan.source.copies.as_deref().and_then(Path::parent);
        move |key| read(root?, key)
    }

    /// The optimum that is kept under a key, if there is one.
    pub(super) fn optimum(&self, key: &str) -> Option<Minimiser> {
        read(&self.root, key)
    }

    /// Compares the optimum that is kept of an instance with that of the instance, which was built
    /// without it; if one is kept and may be read.
    pub fn check_optimum(&self, scenario: &Scenario) -> Option<CheckedCache> {
        let error = scenario.instance.optimum_error()?;
        let kept = read(&self.root, &scenario.key)?;
        let (kept, now) =
            (columns(&kept.theta, kept.error), columns(scenario.instance.optimum(), error));
        Some(CheckedCache::new(file(&self.root, &scenario.key), &kept, Some(&now), 0.0))
    }

    /// Keeps the optima of these cells' instances that took a search, as far as they can be
    /// written.
    pub fn keep_optima(&self, cells: &[Prepared<'_>]) {
        let mut seen = HashSet::new();
        let scenarios = cells.iter().flat_map(|cell| &cell.scenarios);
        for scenario in scenarios.filter(|scenario| seen.insert(&*scenario.key)) {
            let theta = scenario.instance.optimum();
            let Some(error) = scenario.instance.optimum_error() else { continue };
            let size = 8 * theta.len() as u64;
            if theta.len() <= MOST_REFINED
                || size > MOST_KEPT
                || read(&self.root, &scenario.key).is_some()
            {
                continue;
            }
            let bytes = encode(&columns(theta, error), VERSION, &scenario.key);
            if create_below(&self.root, &self.root.join(OPTIMA)).is_ok() {
                // Nothing depends on it: the folder may be read-only.
                let _ = write_atomically(&file(&self.root, &scenario.key), &bytes);
            }
        }
    }
}
