//! The operations of a cell, counted from its settings and the sizes of its data files.
//!
//! *Invariant*: nothing is timed, and all numbers are whole, so that every machine counts the same:
//! how cells are split into shards depends on it. Seconds are measured, by [`super::timing`].
//!
//! An operation is one instruction on the numbers of a register, as [`ProblemCost`] counts them.
//! What is no arithmetic counts as a round number of operations, which need not be exact: it matters
//! in cells that take little time. docs/notes/scale.md says how well the counts balance shards.

use super::prepare::{wants_coupled_run, wants_twin};
use crate::manifest::Oracle;
use crate::plan::Identity;
use crate::quantity::{MeasuredOn, Metric, TimeAverage};
use exactfed_core::algorithm::Component;
use exactfed_core::federated::{Learning, Variates};
use exactfed_core::problem::{ProblemCost, RecordCost, RecordsCost, RecordsOf, vector_operations};

/// The operations of a cell in addition to its runs: to prepare it, and to encode and write its results.
pub const CELL: u64 = 1_000_000;
/// The operations of a round in addition to its clients.
const ROUND: u64 = 200;
/// The operations of a client in a round in addition to its vectors and its gradients.
const CLIENT: u64 = 20;
/// The operations of a recorded round in addition to its metrics.
const ROW: u64 = 500;
/// How many times the operations of a gradient count where no kernel keeps vectors in registers: with mini-batches,
/// proximal terms, and control variates that are measured.
const WITHOUT_KERNEL: u64 = 2;

/// The operations of the parts of each run of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunCost {
    /// The operations of a round.
    pub round: u64,
    /// The operations of what is measured at a recorded round.
    pub row: u64,
}

impl RunCost {
    /// Counts the operations of a round and of a recorded round in the runs of a cell.
    pub fn new(identity: &Identity) -> Self {
        let problem = identity.problem.cost(identity.oracle == Oracle::Exact);
        Self {
            round: operations_of_round(identity, &problem),
            row: operations_of_row(identity, &problem),
        }
    }

    /// The operations of a number of rounds, of which a number of `rows` are recorded; `u64::MAX` if there are more
    /// than that.
    pub fn of_rounds(self, rounds: u64, rows: u64) -> u64 {
        self.round.saturating_mul(rounds).saturating_add(self.row.saturating_mul(rows))
    }
}

/// The operations of a cell: of all its runs and of what it takes in addition; `u64::MAX` if there are more than that.
/// The recorded rounds are not listed, which takes long for many: an upper bound on their number counts, which is too
/// large where logarithmic spacing puts several points on one round.
pub fn operations(identity: &Identity) -> u64 {
    let rows = identity.record.points(identity.rounds);
    let run = RunCost::new(identity).of_rounds(identity.rounds, rows);
    run.saturating_mul(identity.runs()).saturating_add(CELL)
}

/// The operations of a round of a run, with the rounds of the runs that go on next to it (on the linearised twin, and
/// from θ*) and what is averaged over rounds.
fn operations_of_round(identity: &Identity, problem: &ProblemCost) -> u64 {
    let d = problem.dimension;
    let components = identity.algorithm.components();
    let component_rounds =
        components.iter().map(|component| operations_of_component(component, problem));
    let own = component_rounds.fold(0, u64::saturating_add);
    let record = &identity.record;
    let runs = 1 + u64::from(wants_coupled_run(identity)) + u64::from(wants_twin(identity));
    let matrices = record.averages.iter().map(|average| match average {
        TimeAverage::Bias => 0,
        TimeAverage::Covariance => 1,
        TimeAverage::CrossCovariance
        | TimeAverage::VariateCovariance
        | TimeAverage::VariatePairCovariance => problem.clients,
    });
    let matrices = matrices.fold(0, u64::saturating_add);
    let averages = matrices.saturating_mul(d.saturating_mul(vector_operations(d)));
    let mean = if record.metrics.contains(&Metric::SqErrorAverage) { d } else { 0 };
    own.saturating_mul(runs).saturating_add(averages).saturating_add(mean)
}

/// The operations of a round of one of the runs that the estimate combines, for the clients that take part in it.
fn operations_of_component(component: &Component, problem: &ProblemCost) -> u64 {
    let terms = &component.terms;
    let clients = usize::try_from(problem.clients).unwrap_or(usize::MAX);
    let batches = terms.batches.iter().fold(0u64, |sum, batch| sum.saturating_add(*batch));
    let steps = terms.steps_of_all(clients);
    // Clients have the batches of the list in turn: their mean is taken.
    let calls = steps.saturating_mul(batches) / terms.batches.len().max(1) as u64;
    let has_kernel = terms.proximal == 0.0 && terms.batches.iter().all(|batch| *batch == 1);
    let own = if has_kernel { 1 } else { WITHOUT_KERNEL };
    // To measure a control variate, a client evaluates as many gradients again as its local steps do.
    let of_variates = match terms.variates {
        Variates::Fresh | Variates::Kept(Learning::OptionOne) => WITHOUT_KERNEL,
        Variates::None | Variates::Kept(Learning::OptionTwo) | Variates::Unknown(_) => 0,
    };
    // A client copies θ, and its estimate is added to the mean.
    let each_client = CLIENT.saturating_add(vector_operations(problem.dimension) * 2);
    let participants = terms.participation.mean_participants(terms.cohort, clients) as u64;
    let calls = calls.saturating_mul(own + of_variates).saturating_mul(problem.call);
    calls.saturating_add(participants.saturating_mul(each_client)).saturating_add(ROUND)
}

/// The operations of what is measured at a recorded round.
fn operations_of_row(identity: &Identity, problem: &ProblemCost) -> u64 {
    let metrics =
        identity.record.metrics.iter().map(|metric| operations_of_metric(*metric, problem));
    metrics.fold(ROW.saturating_add(problem.dimension), u64::saturating_add)
}

/// The operations of measuring a metric at a recorded round.
fn operations_of_metric(metric: Metric, problem: &ProblemCost) -> u64 {
    let d = problem.dimension;
    let pass = |of: RecordsOf, each: fn(&RecordCost) -> u64| {
        problem.records.as_ref().map_or(0, |records| pass_over_records(records, of, each))
    };
    match metric.measured().0 {
        MeasuredOn::Limit
        | MeasuredOn::Estimate
        | MeasuredOn::VirtualOptimum
        | MeasuredOn::Reference
        | MeasuredOn::Own => d,
        MeasuredOn::Clients | MeasuredOn::Variates => problem.clients.saturating_mul(d),
        MeasuredOn::Features => d.saturating_mul(d),
        MeasuredOn::Field => problem.field,
        // Without records an objective counts as much as a mean field.
        MeasuredOn::Objective if problem.records.is_none() => problem.field,
        MeasuredOn::Objective => pass(RecordsOf::Clients, |one| one.suboptimality),
        MeasuredOn::Loss(of) | MeasuredOn::ClientLosses(of) => pass(of, |one| one.loss),
        MeasuredOn::Classes(of) | MeasuredOn::ClientClasses(of) | MeasuredOn::Recalls(of) => {
            pass(of, |one| one.class)
        }
        // Sorting scores takes about as long as the exponentials of a loss.
        MeasuredOn::Order(of) => pass(of, |one| one.loss),
    }
}

/// The operations of a pass over all records of the clients or of the test set, given those for one record.
fn pass_over_records(records: &RecordsCost, of: RecordsOf, each: fn(&RecordCost) -> u64) -> u64 {
    let number = match of {
        RecordsOf::Clients => records.held,
        RecordsOf::Test => records.test,
    };
    number.saturating_mul(each(&records.one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Source;
    use crate::plan::Plan;
    use exactfed_core::problem::arrays::FileSize;
    use std::sync::Arc;

    /// The operations of the one cell of a manifest on a file with these bytes.
    fn cost(metrics: &str, records: usize) -> u64 {
        let text = format!(
            "title = \"t\"\nseed = 1\nreplicates = 3\nstart.zero = true\nbudget.rounds = 40\n\
             [problem.logistic-dataset]\nl2 = 0.1\n[problem.logistic-dataset.dataset]\n\
             file = \"records.csv\"\nclients = 4\ntest = 0.25\n\
             [record]\nevery = 2\nmetrics = [{metrics}]\n\
             [[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n"
        );
        let mut file = "a,b,c,label\n".to_owned();
        for i in 0..records {
            file += &format!("{},{},1.5,{}\n", i, i * i, i % 2);
        }
        let in_memory = [("records.csv".to_owned(), Arc::from(file.into_bytes()))].into();
        let source = Source { name: "t.toml".into(), text, in_memory, ..Source::default() };
        let plan = Plan::of_source(source);
        let size = plan.source.sizes["records.csv"];
        let lines = records as u64 + 1;
        assert_eq!(size, FileSize { lines, ends_last_line: true, numbers: 4 * lines });
        // What is known of the file already is not counted again, and not forgotten.
        let again = Plan::of_source(plan.source.clone());
        let [first, again] = [&plan, &again].map(|p| operations(&p.cells[0].identity));
        assert_eq!(first, again);
        first
    }

    /// Counts are whole numbers that follow from the settings, and so are those of every machine.
    #[test]
    fn operations_are_counted() {
        // Four clients take two steps on a record of three features each: a scalar product and a
        // gradient in one register each, an exponential, and a draw.
        let call = 10 + 2 + 20 + 10;
        let round = 4 * (2 * call + 20 + 2) + 200;
        let row = 500 + 3;
        assert_eq!(cost("", 4000), 3 * (40 * round + 22 * row) + CELL);
    }

    /// Losses and accuracies cost a pass over their records at each recorded round of each run.
    #[test]
    fn measuring_costs_passes_over_the_records() {
        let plain = cost("", 4000);
        let passes = |metric: &str| (cost(metric, 4000) - plain) as f64 / (3.0 * 22.0 * 4001.0);
        let train = passes("\"train-loss\"");
        let test = passes("\"test-loss\"");
        assert!((0.74..0.76).contains(&(train / (10.0 + 1.0 + 40.0))), "{train}");
        assert!((0.24..0.26).contains(&(test / (10.0 + 1.0 + 40.0))), "{test}");
        assert!(passes("\"test-accuracy\"") < passes("\"accuracy\""));
        assert!(passes("\"suboptimality\", \"sq-gradient\"") > passes("\"sq-gradient\""));
        // And so the cost grows with the file.
        let [small, large] = [400, 40_000].map(|n| cost("\"train-loss\"", n) - cost("", n));
        assert!((99.0..101.0).contains(&(large as f64 / small as f64)), "{small} {large}");
    }
}
