//! What the queue must keep.

use super::*;
use crate::manifest::Metric;
use crate::manifest::Source;
use crate::plan::Plan;
use crate::sample::{DIVERGING, GARNET, LMS, LOGISTIC};
use exactfed_core::algorithm::Spec;
use exactfed_core::algorithm::custom::{CustomRun, StartCustom};
use exactfed_core::definition::Definition;
use exactfed_core::federated::{Conditions, Cost, RoundClients, Run};
use exactfed_core::kernel::squared_distance;
use exactfed_core::problem::arrays::NoFiles;
use exactfed_core::registry::Registry;

/// The plan of the sample manifest on logistic regression with this number of replicates.
fn plan(replicates: u64) -> Plan {
    Plan::of_text(LOGISTIC, &[&format!("replicates={replicates}")])
}

#[test]
fn replicates_come_in_their_order_from_any_number_of_threads() {
    let plan = plan(5);
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let collect = |threads| {
        let kept = Mutex::new(Vec::new());
        let failed = run(&prepared, threads, &Silent, |done| {
            lock(&kept).push((done.cell.id.to_string(), done.traces));
            Ok::<_, ()>(())
        });
        assert!(failed.unwrap().is_empty());
        let mut kept = kept.into_inner().unwrap();
        kept.sort_by(|a, b| a.0.cmp(&b.0));
        kept
    };
    let one = collect(1);
    assert_eq!(one.len(), plan.cells.len());
    assert!(one.iter().all(|(_, traces)| traces.len() == 5));
    assert_eq!(collect(3), one);
}

/// The plan of FedAvg and FedNova on ridge regression of three clients with 5, 10 and 15 records, three in a gradient,
/// with these keys of local work and of the problem.
fn plan_in_epochs(work: &str, sampling: &str) -> Plan {
    let text = format!(
        "title = \"t\"\nseed = 3\nreplicates = 2\n[start]\nzero = true\n[budget]\nrounds = 4\n\
         [record]\nevery = 1\n[problem.least-squares-dataset]\nl2 = 0.1\nbatch = 3\n{sampling}\n\
         [problem.least-squares-dataset.dataset]\nfile = \"r.csv\"\nsplit = {{ column = \"client\" }}\n\
         [[algorithm.fedavg]]\nstep-size = 0.1\n{work}\n[[algorithm.fednova]]\nstep-size = 0.1\n{work}\n"
    );
    let mut file = "client,a,b,label\n".to_owned();
    for i in 0..30 {
        let client = [0, 1, 1, 2, 2, 2][i % 6];
        file += &format!("{client},{},{},{}\n", i % 7, (i * i) % 5, (3 * i) % 11);
    }
    let in_memory = [("r.csv".to_owned(), Arc::from(file.into_bytes()))].into();
    Plan::of_source(Source { name: "t.toml".into(), text, in_memory, ..Source::default() })
}

/// The traces of all runs of a plan, and the exact moments of its cells after the last round, if they are known.
fn runs_and_moments(plan: &Plan) -> (Vec<Vec<f64>>, Vec<Option<f64>>) {
    let folder = plan.folder();
    let prepared = prepare(&folder, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let mut errors = Vec::new();
    let mut moments = Vec::new();
    for of_cell in &prepared {
        errors.extend((0..2).map(|run| of_cell.simulate(run).sq_error));
        let exact = predict::exact_moments(of_cell.cell, &of_cell.scenarios[0]).ok();
        moments.push(exact.map(|all| all[all.len() - 1].covariance.trace()));
    }
    (errors, moments)
}

/// ⌈5/3⌉, ⌈10/3⌉ and 5 local steps are one epoch.
#[test]
fn epochs_are_the_local_steps_that_records_give() {
    let epochs = runs_and_moments(&plan_in_epochs("local-epochs = 1", ""));
    let steps = runs_and_moments(&plan_in_epochs("steps-per-client = [2, 4, 5]", ""));
    assert_eq!(epochs, steps);
    assert!(epochs.1.iter().all(|trace| trace.is_some_and(|trace| trace > 0.0)), "{epochs:?}");
}

/// Without replacement runs differ, and exact theory says nothing of them.
#[test]
fn reshuffled_records_have_no_exact_moments() {
    let plain = runs_and_moments(&plan_in_epochs("local-epochs = 1", ""));
    let reshuffled =
        runs_and_moments(&plan_in_epochs("local-epochs = 1", "sampling = \"reshuffled\""));
    assert_eq!(reshuffled.1, [None, None]);
    assert!(plain.0.iter().zip(&reshuffled.0).all(|(a, b)| a != b));
}

/// Counts the work that runs report.
#[derive(Default)]
struct Counted {
    done: RunWorkCount,
    skipped: RunWorkCount,
}

impl Observer for Counted {
    fn worked(&self, work: RunWork) {
        self.done.add(work);
    }

    fn skipped(&self, work: RunWork) {
        self.skipped.add(work);
    }
}

/// Progress counts steps and measurements by what they are expected to cost: together they are all
/// the work, also of runs that diverge, and the expected time of the cells but for their set-up.
#[test]
fn progress_counts_what_is_measured() {
    for plan in [plan(3), Plan::of_text(DIVERGING, &[])] {
        let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        let all: RunWork = prepared.iter().map(Prepared::work).sum();
        let seen = Counted::default();
        run(&prepared, 2, &seen, |_| Ok::<_, ()>(())).unwrap();
        assert_eq!(seen.done.get() + seen.skipped.get(), all);
        let cells = plan.cells.iter().map(|cell| cost::operations(&cell.identity));
        let expected: u64 = cells.map(|operations| operations - cost::CELL).sum();
        let ratio = all.operations as f64 / expected as f64;
        assert!((0.9..=1.0).contains(&ratio), "{ratio}");
    }
    // Of a run whose metrics cost more than its steps, the steps are less than half of the work.
    let overrides = ["replicates=1", "record.metrics=[\"suboptimality\", \"sq-gradient\"]"];
    let plan = Plan::of_text(LOGISTIC, &overrides);
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let work = |rounds, rows| prepared[0].work_rate().work(rounds, rows);
    let rounds = plan.cells[0].identity.rounds;
    let rows = prepared[0].recorded.len() as u64;
    let [steps, all] = [0, rows].map(|rows| work(rounds, rows).operations);
    assert!(steps < all / 2, "{steps} of {all}");
}

/// Runs all cells of a plan, of which some fail: progress reaches its end.
fn assert_all_is_reported(prepared: &[Prepared<'_>], failures: usize) {
    let all: RunWork = prepared.iter().map(Prepared::work).sum();
    let seen = Counted::default();
    let failed = run(prepared, 2, &seen, |_| Ok::<_, ()>(())).unwrap();
    assert_eq!(failed.len(), failures);
    assert_eq!(seen.done.get() + seen.skipped.get(), all);
}

#[test]
fn work_that_a_panic_leaves_is_skipped() {
    let plan = plan(3);
    let mut prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    // The engine refuses a start of another dimension.
    Arc::get_mut(&mut prepared[3].scenarios[0]).unwrap().start.clear();
    assert_all_is_reported(&prepared, 1);
}

/// An algorithm whose runs stay where they are, and fail after this number of rounds.
struct FailsAfter(u64);

/// A run of [`FailsAfter`].
struct FailingRun {
    theta: Vec<f64>,
    rounds: u64,
    most: u64,
}

impl StartCustom for FailsAfter {
    fn start<'p>(
        &self,
        _settings: &CustomRun<'_>,
        _clients: RoundClients<'p>,
        from: &Conditions<'_>,
    ) -> Box<dyn Run + 'p> {
        Box::new(FailingRun { theta: from.start.to_vec(), rounds: 0, most: self.0 })
    }
}

impl Run for FailingRun {
    fn round(&mut self) {
        self.rounds += 1;
    }

    fn estimate(&self) -> &[f64] {
        &self.theta
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn failure(&self) -> Option<&str> {
        (self.rounds >= self.most).then_some("it fails")
    }
}

/// Before the first round, between two recorded rounds, and at one.
#[test]
fn work_that_a_failed_run_leaves_is_skipped() {
    for rounds in [0, 2, 3] {
        let mut registry = Registry::default();
        let definition = Definition::new("failing", "Failing", "1");
        registry.add_algorithm(definition, FailsAfter(rounds)).unwrap();
        let text = format!("{LOGISTIC}\n[[algorithm.failing]]\nstep-size = 0.1\nlocal-steps = 2\n");
        let source = Source { name: "t.toml".into(), text, registry, ..Source::default() };
        let plan = Plan::of_source(source);
        let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        let of_failing = plan.cells.iter().filter(|cell| cell.label == "Failing").count();
        assert!(of_failing > 0);
        assert_all_is_reported(&prepared, of_failing);
    }
}

#[test]
fn the_first_error_of_keep_ends_the_run() {
    let plan = plan(1);
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let kept = AtomicUsize::new(0);
    let result = run(&prepared, 1, &Silent, |_| {
        if kept.fetch_add(1, Ordering::Relaxed) == 2 { Err("full") } else { Ok(()) }
    });
    assert_eq!(result.unwrap_err(), "full");
    assert_eq!(kept.into_inner(), 3);
}

#[test]
fn a_panic_fails_its_cell_and_no_other() {
    let plan = plan(2);
    let mut prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    // The engine refuses a start of another dimension.
    Arc::get_mut(&mut prepared[3].scenarios[0]).unwrap().start.clear();
    let kept = AtomicUsize::new(0);
    let failed = run(&prepared, 2, &Silent, |_| {
        kept.fetch_add(1, Ordering::Relaxed);
        Ok::<_, ()>(())
    })
    .unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].cell.id, prepared[3].cell.id);
    assert!(failed[0].reason.contains("assertion"), "{}", failed[0].reason);
    assert_eq!(kept.into_inner(), plan.cells.len() - 1);
}

/// Lets one task begin, and interrupts the run from then on.
#[derive(Default)]
struct InterruptedInTask {
    /// How often it was asked whether to stop.
    asked: AtomicUsize,
}

impl Observer for InterruptedInTask {
    fn interrupted(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) > 0
    }
}

/// An interruption may end a round of code outside of the engine, which then fails: that is no failure of the cell.
#[test]
fn a_run_that_fails_during_an_interruption_leaves_its_cell_incomplete() {
    let plan = plan(1);
    let mut prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    // The engine refuses a start of another dimension.
    Arc::get_mut(&mut prepared[3].scenarios[0]).unwrap().start.clear();
    let keep = |_: Done<'_>| -> Result<(), ()> { unreachable!("no cell is complete") };
    let failed = run(&prepared[3..=3], 1, &InterruptedInTask::default(), keep).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(run(&prepared[3..=3], 1, &Silent, keep).unwrap().len(), 1);
}

#[test]
fn the_limit_of_a_corrected_run_is_the_optimum() {
    let plan = Plan::of_text(GARNET, &[]);
    for cell in &prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap() {
        let scenario = cell.scenario(0);
        let limit = scenario.fixed_point(cell.cell).unwrap();
        let apart = squared_distance(limit, scenario.instance.optimum());
        let heterogeneous = cell.cell.settings.get("local-steps").unwrap().to_string() != "1";
        match &*cell.cell.identity.algorithm {
            Spec::Scafflsa(_) => assert_eq!(apart, 0.0),
            _ if heterogeneous => assert!(apart > 0.0),
            _ => assert_eq!(apart, 0.0, "one local step has no bias"),
        }
    }
}

/// Falling steps remove the bias of several local steps. They do not remove that of participants whose shares are divided
/// by their sum, which is no fixed linear map; with equal shares there is none.
#[test]
fn the_limit_of_falling_steps_is_the_optimum_unless_weights_are_ratios_of_shares() {
    let text = r#"title = "t"
seed = 1
replicates = 1
oracle = "exact"
start.zero = true
budget.rounds = 2
record.metrics = ["sq-error-limit"]
[problem.synthetic]
clients = 4
dimension = 2
classes = 2
records = { equal = 10 }
l2 = 0.1
weights = WEIGHTS
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 3
cohort = 2
decay = { power = 1.0, offset = 10.0 }
participation = ["normalised", "rescaled"]
"#;
    let limits = |weights: &str| -> Vec<Option<f64>> {
        let plan = Plan::of_text(&text.replace("WEIGHTS", weights), &[]);
        let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        let limit = |cell: &Prepared<'_>| {
            let scenario = cell.scenario(0);
            let limit = scenario.fixed_point(cell.cell)?;
            Some(squared_distance(limit, scenario.instance.optimum()))
        };
        prepared.iter().map(limit).collect()
    };
    assert_eq!(limits("[1.0, 1.0, 1.0, 1.0]"), [Some(0.0), Some(0.0)]);
    assert_eq!(limits("[0.4, 0.3, 0.2, 0.1]"), [None, Some(0.0)]);
}

/// Another seed of the noise changes the noise of each run and no instance. A manifest whose `seed` is this seed has
/// the same noise.
#[test]
fn the_noise_has_a_seed_of_its_own() {
    let traces = |overrides: &str| {
        let plan = Plan::of_text(LOGISTIC, &overrides.split(' ').collect::<Vec<_>>());
        let prepared = prepare(&NoFiles, &[&plan.cells[0]]).unwrap();
        let scenarios = prepared[0].scenarios.iter();
        let optima: Vec<_> = scenarios.map(|s| s.instance.optimum().to_vec()).collect();
        let runs = 0..plan.cells[0].identity.runs();
        let names: Vec<_> = runs.map(|run| stream_names(&plan.cells[0].identity, run)).collect();
        (plan.cells[0].id, optima, names, prepared[0].simulate(0))
    };
    for instances in ["instance=fixed", "instance=per-replicate", "instances=3"] {
        let given = |seeds: &str| traces(&format!("{seeds} replicates=2 {instances}"));
        let [plain, other, noise] = ["seed=1", "seed=2", "seed=1 noise-seed=2"].map(given);
        assert_eq!(noise.1, plain.1, "instances are those of the seed");
        assert_ne!(other.1, plain.1);
        assert_eq!(noise.2, other.2, "noise is that of its seed");
        assert!(noise.0 != plain.0 && noise.3 != plain.3 && noise.3 != other.3);
        assert_eq!(given("seed=1 noise-seed=1"), plain, "the default can be written");
    }
}

/// Without θ* runs have the same costs, estimates and losses, also on problems that know it at once.
#[test]
fn leaving_the_optimum_out_changes_no_run() {
    for (text, metric) in [(LOGISTIC, Metric::TrainLoss), (LMS, Metric::SqGradient)] {
        let metrics = format!("record.metrics=[\"{}\"]", metric.name());
        let traces = |more: &[&str]| -> Vec<Trace> {
            let sets = [&["start={ zero = true }", &*metrics, "record.averages=[]"], more].concat();
            let plan = Plan::of_text(text, &sets);
            let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
            let runs = prepared.iter().flat_map(|cell| [cell.simulate(0), cell.simulate(1)]);
            runs.collect()
        };
        let with = traces(&[]);
        let without = traces(&["record.optimum=false"]);
        assert_eq!(with.len(), without.len());
        for (with, without) in with.into_iter().zip(without) {
            assert!(with.sq_error.len() == with.rows() && with.rows() > 1);
            assert_eq!(with.measured(metric.quantity()).len(), with.rows());
            let bare = Trace { sq_error: Vec::new(), sq_error_limit: Vec::new(), ..with };
            assert_eq!(bare, without);
        }
    }
}
