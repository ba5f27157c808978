//! What a cell is expected to cost, computed from its settings and the sizes of its data files.
//!
//! Nothing is timed, and all numbers are whole, so that every machine expects the same: how cells
//! are split into shards depends on it. The constants are fitted to measured times;
//! docs/notes/scale.md compares expected and measured costs.

use super::prepare::wants_twin;
use crate::manifest::Oracle;
use crate::plan::{Cell, Identity};
use crate::quantity::{MeasuredOn, Metric, TimeAverage};
use exactfed_core::algorithm::Component;
use exactfed_core::federated::{Learning, Variates};
use exactfed_core::problem::{ProblemCost, RecordCost, RecordsCost, RecordsOf};

/// What a cell costs in addition to its rounds, in nanoseconds: it is prepared and written.
pub const CELL: u64 = 500_000;
/// What a round costs in addition to its clients, in nanoseconds.
const ROUND: u64 = 260;
/// What a client costs in a round in addition to its oracle calls, in nanoseconds.
const CLIENT: u64 = 23;
/// What a matrix of averages costs in a round in addition to its d² entries, in nanoseconds.
const MATRIX: u64 = 28;
/// What a recorded round costs in addition to its metrics, in nanoseconds.
const ROW: u64 = 500;
/// Mini-batches and proximal terms take a loop that no kernel speeds up: it takes this many times
/// as long for each oracle call.
const WITHOUT_KERNEL: u64 = 3;
/// Control variates that are measured take this many times as long for each oracle call.
const MEASURED_VARIATES: u64 = 4;
/// The cost of a linearised twin, in tenths of that of the run.
const TWIN: u64 = 14;

/// What one run of a cell is expected to cost, in nanoseconds of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCost {
    /// A round.
    pub round: u64,
    /// What is measured at a recorded round.
    pub row: u64,
}

impl RunCost {
    /// That of a run of this cell.
    pub fn new(identity: &Identity) -> Self {
        let problem = identity.problem.cost(identity.oracle == Oracle::Exact);
        Self { round: round(identity, &problem), row: row(identity, &problem) }
    }

    /// So many rounds, of which so many are recorded; `u64::MAX` if they cost more.
    pub fn of_rounds(self, rounds: u64, rows: u64) -> u64 {
        self.round.saturating_mul(rounds).saturating_add(self.row.saturating_mul(rows))
    }
}

/// The expected cost of a cell in nanoseconds of one thread; `u64::MAX` if it is larger.
pub fn expected_nanoseconds(identity: &Identity) -> u64 {
    let rows = identity.record.points(identity.rounds);
    let run = RunCost::new(identity).of_rounds(identity.rounds, rows);
    run.saturating_mul(identity.runs()).saturating_add(CELL)
}

/// The expected time of these cells on so many threads, in seconds.
pub fn expected_seconds<'a>(cells: impl Iterator<Item = &'a Cell>, threads: usize) -> f64 {
    let costs = cells.map(|cell| expected_nanoseconds(&cell.identity));
    costs.fold(0, u64::saturating_add) as f64 * 1e-9 / threads as f64
}

/// What a round of a run costs, with all that is run beside it and averaged.
fn round(identity: &Identity, problem: &ProblemCost) -> u64 {
    let (clients, d) = (problem.clients, problem.dimension);
    let components = identity.algorithm.components();
    let runs = components.iter().map(|component| component_round(component, problem));
    let runs = runs.fold(0, u64::saturating_add);
    let record = &identity.record;
    let coupled = u64::from(record.metrics.contains(&Metric::SqCoupling));
    let twin = if wants_twin(identity) { TWIN } else { 0 };
    let matrices = record.averages.iter().map(|average| match average {
        TimeAverage::Bias => 0,
        TimeAverage::Covariance => 1,
        _ => clients,
    });
    let entries = d.saturating_mul(d);
    let matrices = matrices.fold(0, u64::saturating_add);
    let averages = matrices.saturating_mul(entries.saturating_add(MATRIX));
    let mean = if record.metrics.contains(&Metric::SqErrorAverage) { d } else { 0 };
    let round = (runs / 10).saturating_mul(10 * (1 + coupled) + twin);
    round.saturating_add(averages).saturating_add(mean)
}

/// What a round of a run of the engine costs.
fn component_round(component: &Component, problem: &ProblemCost) -> u64 {
    let terms = &component.terms;
    let clients = usize::try_from(problem.clients).unwrap_or(usize::MAX);
    let batches = terms.batches.iter().fold(0u64, |sum, batch| sum.saturating_add(*batch));
    let steps = terms.steps_of_all(clients);
    let calls = steps.saturating_mul(batches) / terms.batches.len().max(1) as u64;
    let without_kernel = terms.proximal > 0.0 || terms.batches.iter().any(|batch| *batch > 1);
    let factor = if without_kernel { WITHOUT_KERNEL } else { 1 };
    let more = match terms.variates {
        Variates::Fresh | Variates::Kept(Learning::OptionOne) => MEASURED_VARIATES,
        Variates::None | Variates::Kept(Learning::OptionTwo) | Variates::Unknown(_) => 0,
    };
    let cohort = terms.cohort.unwrap_or(clients) as u64;
    let calls = calls.saturating_mul(factor + more).saturating_mul(problem.call);
    calls.saturating_add(cohort.saturating_mul(CLIENT)).saturating_add(ROUND)
}

/// What is measured at a recorded round.
fn row(identity: &Identity, problem: &ProblemCost) -> u64 {
    let metrics = identity.record.metrics.iter().map(|metric| measured(*metric, problem));
    metrics.fold(ROW.saturating_add(problem.dimension), u64::saturating_add)
}

/// What a metric costs at a recorded round.
fn measured(metric: Metric, problem: &ProblemCost) -> u64 {
    let d = problem.dimension;
    let pass = |of: RecordsOf, each: fn(&RecordCost) -> u64| {
        let cost = |records: &RecordsCost| match of {
            RecordsOf::Clients => records.held.saturating_mul(each(&records.one)),
            RecordsOf::Test => records.test.saturating_mul(each(&records.one)),
        };
        problem.records.as_ref().map_or(0, cost)
    };
    match metric.measured().0 {
        MeasuredOn::Limit | MeasuredOn::Estimate | MeasuredOn::VirtualOptimum => d,
        MeasuredOn::Clients | MeasuredOn::Variates => problem.clients.saturating_mul(d),
        MeasuredOn::Features => d.saturating_mul(d),
        MeasuredOn::Field => problem.field,
        MeasuredOn::Objective if problem.records.is_none() => problem.field,
        MeasuredOn::Objective => pass(RecordsOf::Clients, |one| one.suboptimality),
        MeasuredOn::Loss(of) => pass(of, |one| one.loss),
        MeasuredOn::Classes(of) => pass(of, |one| one.class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Source;
    use crate::plan::Plan;
    use exactfed_core::problem::arrays::FileSize;
    use std::sync::Arc;

    /// The expected cost of the one cell of a manifest on a file with these bytes.
    fn cost(metrics: &str, records: usize) -> u64 {
        let text = format!(
            "title = \"t\"\nseed = 1\nreplicates = 3\nstart.zero = true\nbudget.rounds = 40\n\
             [problem.logistic-dataset]\nl2 = 0.1\n[problem.logistic-dataset.dataset]\n\
             file = \"records.csv\"\nclients = 4\ntest = 0.25\n\
             [record]\nevery = 2\nmetrics = [{metrics}]\n\
             [[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n"
        );
        let line = |i: usize| format!("{},{},1.5,{}\n", i, i * i, i % 2);
        let file: String = (0..records).map(line).collect();
        let file = "a,b,c,label\n".to_owned() + &file;
        let in_memory = [("records.csv".to_owned(), Arc::from(file.into_bytes()))].into();
        let source = Source { name: "t.toml".into(), text, in_memory, ..Source::default() };
        let plan = Plan::of_source(source);
        let size = plan.source.sizes["records.csv"];
        let lines = records as u64 + 1;
        assert_eq!(size, FileSize { lines, numbers: 4 * lines });
        // What is known of the file already is not counted again, and not forgotten.
        let again = Plan::of_source(plan.source.clone());
        let [first, again] = [&plan, &again].map(|p| expected_nanoseconds(&p.cells[0].identity));
        assert_eq!(first, again);
        first
    }

    /// Losses and accuracies cost a pass over their records at each recorded round of each run.
    #[test]
    fn measuring_costs_passes_over_the_records() {
        let plain = cost("", 4000);
        let passes = |metric: &str| (cost(metric, 4000) - plain) as f64 / (3.0 * 22.0 * 4001.0);
        let (train, test) = (passes("\"train-loss\""), passes("\"test-loss\""));
        assert!((0.74..0.76).contains(&(train / (60.0 + 3.0))), "{train}");
        assert!((0.24..0.26).contains(&(test / (60.0 + 3.0))), "{test}");
        assert!(passes("\"test-accuracy\"") < passes("\"accuracy\""));
        assert!(passes("\"suboptimality\", \"sq-gradient\"") > passes("\"sq-gradient\""));
        // And so the cost grows with the file.
        let [small, large] = [400, 40_000].map(|n| cost("\"train-loss\"", n) - cost("", n));
        assert!((99.0..101.0).contains(&(large as f64 / small as f64)), "{small} {large}");
    }
}
