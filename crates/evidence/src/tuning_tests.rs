//! What the table of tuning says without results.

use super::*;
use crate::simulated;
use exactfed_runner::plan::{CandidateRuns, Cell};
use std::collections::BTreeSet;
use std::convert::Infallible;

/// Two algorithms at two numbers of local steps, whose step sizes are tuned; one has a varied setting of its own.
const TUNED: &str = r#"
title = "t"
seed = 5
replicates = 3
start.zero = true
problem.quadratic = { dimension = 2, clients = 4, spectrum = { from = 0.5, to = 1.0 }, noise = 0.3 }
budget.local-steps = 200
tune = { over = "step-size", range = [1e-2, 0.5] }
[[algorithm.fedavg]]
local-steps = [1, 10]
[[algorithm.fedprox]]
local-steps = [1, 10]
proximal = [0.1, 1.0]
"#;

/// Results without a run.
struct NoRuns;

impl CandidateRuns for NoRuns {
    type Error = Infallible;

    fn loss(&self, _: &Cell) -> Result<Option<f64>, Infallible> {
        Ok(None)
    }

    fn clients(&self, _: &Cell) -> Result<Option<usize>, Infallible> {
        Ok(None)
    }

    fn is_larger(&self, _: &[(f64, &Cell)]) -> bool {
        false
    }
}

#[test]
fn rows_without_results_have_the_values_of_their_axes() {
    let Ok(plan) = simulated::plan(TUNED.to_owned()).following(&NoRuns);
    let read = TuningCells { candidates: Vec::new(), shared: Vec::new() };
    let result = TuningResult::new(&plan, &[], &read).unwrap();
    let axes: BTreeSet<&str> = result.axes.iter().map(String::as_str).collect();
    assert_eq!(axes, BTreeSet::from(["local-steps", "proximal"]));
    let places: HashSet<String> =
        result.rows.iter().map(|row| format!("{} {:?}", row.label, row.values)).collect();
    assert_eq!((result.rows.len(), places.len()), (6, 6), "{places:?}");
}
