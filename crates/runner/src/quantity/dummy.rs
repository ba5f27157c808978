//! A metric that only the tests of this crate have. Its row in `quantities!` and its function are all
//! that it needs: were there a second place, this test would not compile or would fail.

use super::{Metric, Quantity, Reading};
use crate::plan::{Plan, UNREAD};
use crate::runner::prepare;
use exactfed_core::problem::arrays::NoFiles;

/// ‖θ_t − θ*‖_∞.
pub fn largest_error(reading: &Reading<'_>) -> Option<f64> {
    let entries = reading.run.estimate().iter().zip(reading.facts.optimum());
    Some(entries.map(|(x, optimum)| (x - optimum).abs()).fold(0.0, f64::max))
}

/// A problem in one dimension, in which the largest error of an entry is the root of the squared error.
const MANIFEST: &str = r#"title = "t"
seed = 1
replicates = 2
start.offset = 1.0
budget.rounds = 5
record.metrics = ["dummy"]
problem.quadratic = { dimension = 1, clients = 2, spectrum = { from = 0.5, to = 1.5 }, noise = 0.1 }
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
"#;

#[test]
fn one_row_registers_a_metric() {
    let plan = Plan::of_text(MANIFEST, &[]);
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let trace = prepared[0].simulate(0);
    let roots: Vec<f64> = trace.sq_error.iter().map(|square| libm::sqrt(*square)).collect();
    let measured = trace.measured(Quantity::Dummy);
    assert_eq!(measured.len(), 6, "each round is recorded");
    for (measured, root) in measured.iter().zip(roots) {
        assert!((measured - root).abs() <= 1e-12 * root, "{measured} is not {root}");
    }
    assert!(prepared[0].work_rate().work(5, 6).operations > 0);
}

/// The schema has the metric and the quantity, from which the reference of manifests is written.
#[test]
fn a_registered_metric_is_in_the_schema() {
    assert!(Metric::ALL.contains(&Metric::Dummy) && Quantity::ALL.contains(&Quantity::Dummy));
    let schema = UNREAD.schema().to_string();
    assert!(schema.contains(r#""dummy""#), "{schema}");
}
