//! What is wrong with the settings of a manifest, apart from its figures and claims.

use super::budget::rounds_of_budget;
use super::checker::Checker;
use super::costs::{fault_of_target, needs_optimum};
use super::places::{diagnostic_of, diagnostic_under};
use super::settings::{SpecParts, short};
use crate::manifest::axis::Choice;
use crate::manifest::document::{Value, below};
use crate::manifest::kinds::AlgorithmEntry;
use crate::manifest::{
    Budget, Diagnostic, InstanceMode, Manifest, Node, Oracle, Place, Prices, Record,
    ReferencePoint, Source, Spacing, Start,
};
use crate::quantity::{MeasuredOn, Metric, Quantity};
use exactfed_core::algorithm::Participation;
use exactfed_core::problem::{Fault, RecordsOf};
use exactfed_core::rng::MAX_REPLICATES;
use exactfed_core::{algorithm, problem};
use std::collections::BTreeMap;

/// The most rounds that can be recorded of a run.
const MOST_POINTS: u64 = 10_000_000;

/// The most rounds of a run.
const MOST_ROUNDS: u64 = 1_000_000_000_000;

/// The most characters of a name: of a curve, a figure, a claim.
const MOST_NAME: usize = 100;

/// Calls `see` with a node and all nodes below it, each with its dotted path.
fn visit(node: &Node, path: &str, see: &mut dyn FnMut(&Node, &str)) {
    see(node, path);
    match &node.value {
        Value::Table(all) => all.iter().for_each(|e| visit(&e.node, &below(path, &e.key), see)),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, n)| visit(n, &below(path, &i.to_string()), see));
        }
        _ => {}
    }
}

/// Whether a character leaves no mark: white space, and characters of no width.
fn is_invisible(c: char) -> bool {
    let has_no_width = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}');
    has_no_width || c.is_whitespace() || c.is_control()
}

/// Notes a text of the manifest with control characters, which no page could show unchanged, and a name that is blank,
/// too long or has several lines. Names are the labels and ids that pages and files are called by.
fn check_text(node: &Node, path: &str, found: &mut Vec<Diagnostic>) {
    let Value::String(text) = &node.value else { return };
    let key = short(path);
    let mut wrong = Vec::new();
    if let Some(c) = text.chars().find(|c| c.is_control() && !"\n\r\t".contains(*c)) {
        wrong.push(format!("`{key}` holds the control character U+{:04X}", u32::from(c)));
    }
    // A data file's columns have names of their own.
    let is_name = ["label", "id"].contains(&key) && !path.starts_with("problem.");
    if is_name && text.contains(['\n', '\r', '\t']) {
        wrong.push(format!("`{key}` is a name: it must stand in one line"));
    }
    if is_name && text.chars().all(is_invisible) {
        wrong.push(format!("`{key}` is {text:?}: a name must have a character that is visible"));
    }
    let length = text.chars().count();
    if is_name && length > MOST_NAME {
        wrong.push(format!("`{key}` has {length} characters; at most {MOST_NAME} are allowed"));
    }
    for message in wrong {
        found.push(Diagnostic::new(Some(node.place.clone()), path, message));
    }
}

impl Checker<'_> {
    /// Notes what is wrong with `[record]` by itself. What depends on the problem or the length of runs is checked for
    /// each cell.
    fn record(&mut self, record: &Record) {
        let points = record.points;
        let every = record.every;
        let both = points.is_some() && every.is_some();
        self.require(!both, "record.every", "write `points` or `every`, not both");
        let log_spacing = record.spacing == Spacing::Log && every.is_some();
        let message = "`spacing` spaces `points` and has no effect with `every`";
        self.require(!log_spacing, "record.spacing", message);
        for (key, number) in [("points", points), ("every", every)] {
            let message = format!("`{key}` must be 1 or more, not 0");
            self.require(number != Some(0), &format!("record.{key}"), message);
        }
        let points = points.unwrap_or(1);
        let message = format!("`points` must be at most {MOST_POINTS}, not {points}");
        self.require(points <= MOST_POINTS, "record.points", message);
        self.distinct("record.metrics", record.metrics.iter().map(|metric| metric.name()));
        self.distinct("record.averages", record.averages.iter().map(|average| average.name()));
        if let Some(share) = record.burn_in {
            let message =
                format!("`burn-in` must be a fraction of the rounds in [0, 1), not {share}");
            self.require((0.0..1.0).contains(&share), "record.burn-in", message);
            let message = "`burn-in` has no effect without `averages`";
            self.require(!record.averages.is_empty(), "record.burn-in", message);
        }
        self.reference(record);
        if !record.optimum {
            self.without_optimum(record);
        }
    }

    /// Notes what is wrong with the reference point, as far as it is known before an instance is built, which tells d
    /// and the number of clients.
    fn reference(&mut self, record: &Record) {
        let name = Metric::SqErrorReference.name();
        let is_measured = record.metrics.contains(&Metric::SqErrorReference);
        let Some(reference) = &record.reference else {
            let message = format!(
                "`{name}` needs a point: write `reference = {{ point = […] }}` or `reference = {{ optimum-of-client = 0 }}` in [record]"
            );
            return self.require(!is_measured, "record.metrics", message);
        };
        let message = format!("`reference` has no effect without metrics = [\"{name}\"]");
        self.require(is_measured, "record.reference", message);
        if let ReferencePoint::Point(point) = reference {
            let message = "the numbers of `point` must be finite";
            let are_finite = point.iter().all(|x| x.is_finite());
            self.require(are_finite, "record.reference.point", message);
        }
    }

    /// Notes what needs θ* in a manifest that leaves it out: metrics and averages of `[record]`, frontiers and maps.
    /// Also notes that no metric is left by which runs could be compared.
    fn without_optimum(&mut self, record: &Record) {
        let metrics: Vec<Quantity> =
            record.metrics.iter().map(|metric| metric.quantity()).collect();
        for (i, metric) in metrics.iter().enumerate().filter(|(_, metric)| metric.needs_optimum()) {
            self.needs_optimum(&format!("record.metrics.{i}"), &format!("`{}`", metric.name()));
        }
        // All averages are around θ*, or around the limit, which is computed from it.
        for (i, average) in record.averages.iter().enumerate() {
            self.needs_optimum(&format!("record.averages.{i}"), &format!("`{}`", average.name()));
        }
        let manifest = self.manifest;
        for (key, count) in [("frontier", manifest.frontier.len()), ("phase", manifest.phase.len())]
        {
            if count > 0 {
                self.needs_optimum(&format!("{key}.0"), &format!("`{key}`"));
            }
        }
        let is_comparable = !record.default_quantity().needs_optimum();
        let usual =
            if manifest.problem().record_metrics().loss { "train-loss" } else { "sq-gradient" };
        let reason = if manifest.problem().has_optimum() {
            "`optimum = false` leaves nothing by which runs can be drawn or ranked".to_owned()
        } else {
            let kind = manifest.problem().kind();
            format!(
                "θ* of `{kind}` is not known, and nothing is recorded by which runs can be drawn or ranked"
            )
        };
        let message = format!("{reason}: write metrics = [\"{usual}\"] in [record]");
        let has_runs = !manifest.algorithm.is_empty();
        self.require(is_comparable || !has_runs, "record.optimum", message);
    }

    /// Notes what is wrong with the number of instances.
    fn instances(&mut self, manifest: &Manifest) {
        let Some(instances) = manifest.instances else { return };
        self.require(instances > 0, "instances", "`instances` must be 1 or more, not 0");
        let runs = instances.saturating_mul(manifest.replicates);
        let message =
            format!("`instances` × `replicates` must be at most {MAX_REPLICATES}, not {runs}");
        self.require(runs <= MAX_REPLICATES, "instances", message);
        let message = "`instances` and `instance = \"per-replicate\"` exclude each other: the latter has an instance for each replicate";
        self.require(manifest.instance.is_fixed(), "instances", message);
    }

    /// Notes prices that are not allowed.
    fn prices(&mut self, prices: Prices) {
        for (key, value) in [("latency", prices.latency), ("call", prices.call)] {
            let message = format!("`{key}` must be a finite number, 0 or more, not {value}");
            self.require(value.is_finite() && value >= 0.0, &format!("prices.{key}"), message);
        }
        if let Some(value) = prices.bandwidth {
            let message = format!("`bandwidth` must be a number above 0, not {value}");
            self.require(value > 0.0, "prices.bandwidth", message);
        }
    }
}

/// What is wrong with a manifest whichever grid point is looked at: with its texts, the number of runs, `[record]` and
/// `[prices]`, and tables that it lacks.
pub fn check_manifest(root: &Node, manifest: &Manifest) -> Vec<Diagnostic> {
    let mut checker = Checker::new(root, manifest, &[]);
    visit(root, "", &mut |node, path| check_text(node, path, &mut checker.found));
    let replicates = manifest.replicates;
    checker.require(replicates > 0, "replicates", "`replicates` must be 1 or more, not 0");
    let message =
        format!("`replicates` must be at most {MAX_REPLICATES} (a stream each), not {replicates}");
    checker.require(replicates <= MAX_REPLICATES, "replicates", message);
    checker.instances(manifest);
    let has_algorithms = !manifest.algorithm.is_empty();
    let message =
        "there is no algorithm: write at least one [[algorithm.<kind>]], or a [[frontier]]";
    checker.require(has_algorithms || !manifest.frontier.is_empty(), "algorithm", message);
    let runs_need = [("start", manifest.start.is_some()), ("budget", manifest.budget.is_some())];
    for (key, is_written) in runs_need.into_iter().filter(|_| has_algorithms) {
        checker.require(is_written, key, format!("the manifest lacks the key `{key}`"));
    }
    checker.record(&manifest.record);
    if let Some(prices) = manifest.prices {
        checker.prices(prices);
    }
    checker.found
}

/// The settings at a grid point, which [`check_cell`] checks.
pub struct CheckedPoint<'a> {
    pub problem: &'a SpecParts<problem::Spec>,
    pub algorithm: &'a SpecParts<algorithm::Spec>,
    pub start: &'a Start,
    pub budget: &'a Budget,
    pub oracle: Oracle,
    /// Path of the algorithm's entry.
    pub entry: &'a str,
    /// The values of the axes at this point.
    pub choice: &'a Choice,
}

/// What is wrong with the settings at one grid point, each by itself and together, where the text has it. The message
/// of a fault goes on after the name of its key ([`diagnostic_of`]).
pub fn check_cell(root: &Node, manifest: &Manifest, point: &CheckedPoint<'_>) -> Vec<Diagnostic> {
    let CheckedPoint { problem, algorithm, choice, .. } = point;
    let mut found = Vec::new();
    // The key by which there are several instances; `None` if there is one, which all runs share.
    let several = match manifest.instance {
        InstanceMode::PerReplicate => Some("instance"),
        InstanceMode::Fixed => manifest.instances.is_some_and(|n| n > 1).then_some("instances"),
    };
    if let Some(key) = several.filter(|_| !problem.spec.uses_seed()) {
        let mut message = format!(
            "`{key}`: no part of this problem is drawn, so that all would be the same: delete `{key}`"
        );
        if problem.spec.record_metrics().loss && !problem.spec.as_ref().clone().files().is_empty() {
            message += ", or draw a test set for each with `test = 0.2` in `dataset`";
        }
        found.push(diagnostic_under(root, key, choice, message));
    }
    let base_of_problem = format!("problem.{}", problem.spec.kind());
    let parts = [
        (base_of_problem.as_str(), problem.faults.to_vec()),
        (point.entry, algorithm.faults.to_vec()),
        (point.entry, fault_for_clients(point).into_iter().collect()),
        ("budget", check_budget(point).into_iter().collect()),
        ("budget", check_until(manifest, point).into_iter().collect()),
        ("record", too_many_points(&manifest.record, point).into_iter().collect()),
        ("record", metrics_without_records(&manifest.record, point)),
        ("record", unknown_optimum(&manifest.record, point).into_iter().collect()),
        ("start", check_start(&manifest.record, point).into_iter().collect()),
    ];
    for (base, faults) in parts {
        found.extend(faults.iter().map(|fault| diagnostic_of(root, base, choice, fault)));
    }
    found
}

/// What is wrong with an algorithm for the number of clients of its problem, which a `cohort` or a list of clients must
/// not exceed. Where the number of clients is known before the runs, a `cohort` between 0 and 1 has become a number
/// already ([`Participation::among`]); any that is still a fraction is a fault. Where only a file says how many clients
/// there are, numbers and lists are checked later, once the instance is built. `None` if nothing is wrong, and also if
/// the problem or the algorithm is wrong by itself.
fn fault_for_clients(point: &CheckedPoint<'_>) -> Option<Fault> {
    let problem = point.problem;
    let algorithm = point.algorithm;
    let sound = problem.faults.is_empty() && algorithm.faults.is_empty();
    if sound && algorithm.spec.local_epochs().is_some() && !problem.spec.has_epochs() {
        let kind = problem.spec.kind();
        let message = format!(
            "counts passes over the records of a client, and `{kind}` is not a problem of records: write `local-steps`"
        );
        return Some(Fault::new("local-epochs", message));
    }
    let cohort = algorithm.spec.cohort().filter(|_| sound);
    if let Some(message) = cohort.and_then(Participation::fault) {
        return Some(Fault::new("cohort", message));
    }
    let extent = problem.spec.extent().filter(|_| sound)?;
    algorithm.spec.check_for(extent.clients)
}

/// A fault for each loss or accuracy that `[record]` lists and the problem does not have. Any other metric that a run
/// does not have is no fault: the run's trace goes without it.
fn metrics_without_records(record: &Record, point: &CheckedPoint<'_>) -> Vec<Fault> {
    let kind = point.problem.spec.kind();
    let has = point.problem.spec.record_metrics();
    let mut faults = Vec::new();
    for metric in &record.metrics {
        let (needs_classes, records) = match metric.measured().0 {
            MeasuredOn::Loss(records) | MeasuredOn::ClientLosses(records) => (false, records),
            MeasuredOn::Classes(records)
            | MeasuredOn::ClientClasses(records)
            | MeasuredOn::Recalls(records)
            | MeasuredOn::Order(records) => (true, records),
            _ => continue,
        };
        let name = metric.name();
        let is_of_clients = records == RecordsOf::Clients;
        let is_custom = point.problem.spec.definition().is_some();
        let message = if is_custom && (!has.loss || needs_classes || !is_of_clients) {
            format!("has `{name}`, which `{kind}` does not state")
        } else if !has.loss {
            format!("has `{name}`, but `{kind}` is not a problem of records")
        } else if needs_classes && !has.accuracy {
            format!("has `{name}`, but `{kind}` has no classes: its labels are numbers")
        } else if records == RecordsOf::Test && !has.test {
            format!("has `{name}`, but there is no test set: write `test = 0.2` in `dataset`")
        } else if metric.is_per_client_of_test() && !has.test_of_clients {
            format!(
                "has `{name}`, but clients get records at random, and none of the test set: write `test-within = \"clients\"` in `dataset` or, if a column names clients, `split = {{ column = \"…\" }}`"
            )
        } else {
            continue;
        };
        faults.push(Fault::new("metrics", message));
    }
    faults
}

/// The fault that θ* is not known of the problem at this point, and the manifest does not leave it out, since it is known
/// at the first point of the grid.
fn unknown_optimum(record: &Record, point: &CheckedPoint<'_>) -> Option<Fault> {
    let message = "must be false: θ* is not known of all problems of the grid";
    let is_unknown = record.optimum && !point.problem.spec.has_optimum();
    is_unknown.then(|| Fault::new("optimum", message))
}

/// The fault that `every` would record too many rounds of a run, if so. `points` are checked for the whole manifest.
fn too_many_points(record: &Record, point: &CheckedPoint<'_>) -> Option<Fault> {
    let every = record.every.filter(|every| *every > 0)?;
    let points = point.rounds(point.budget) / every;
    (points > MOST_POINTS).then(|| {
        let most = format!("at most {MOST_POINTS} are recorded");
        Fault::new("every", format!("= {every} would record {points} rounds of a run; {most}"))
    })
}

impl CheckedPoint<'_> {
    /// The number of rounds T that a budget allows with the settings at this point.
    fn rounds(&self, budget: &Budget) -> u64 {
        rounds_of_budget(budget, &self.algorithm.spec, &self.problem.spec, self.oracle)
    }
}

/// What is wrong with the budget at a grid point: it must state one length of a run, or the most communications and
/// the most gradients together, that makes one round or more and not too many. `None` if nothing is wrong, and for a
/// budget of costs where the problem or the algorithm is wrong, whose costs are not known.
fn check_budget(point: &CheckedPoint<'_>) -> Option<Fault> {
    let budget = point.budget;
    let lengths = [
        ("local-steps", budget.local_steps),
        ("rounds", budget.rounds),
        ("communications", budget.communications),
        ("gradients", budget.gradients),
    ];
    let written: Vec<(&str, u64)> =
        lengths.into_iter().filter_map(|(key, length)| Some((key, length?))).collect();
    let (first_key, first_length) = match written.as_slice() {
        [one] | [one @ ("communications", _), ("gradients", _)] => *one,
        [] => {
            let message = "or one of `rounds`, `communications` and `gradients` is required: the length of a run";
            return Some(Fault::new("local-steps", message));
        }
        [(first, _), .., (second, _)] => {
            let message = format!("and `{first}` exclude each other: write one of them");
            return Some(Fault::new(*second, message));
        }
    };
    if let Some((key, _)) = written.iter().find(|(_, length)| *length == 0) {
        return Some(Fault::new(*key, "must be 1 or more, not 0"));
    }
    // Settings that are wrong have no costs.
    let wrong = !point.algorithm.faults.is_empty() || !point.problem.faults.is_empty();
    if wrong && ["communications", "gradients"].contains(&first_key) {
        return None;
    }
    let h = point.algorithm.spec.scale().1;
    let rounds = point.rounds(budget);
    // Of two limits, the one that allows no round is at fault.
    let (key, length) = match written.as_slice() {
        [_, other]
            if rounds == 0 && point.rounds(&Budget { gradients: None, ..budget.clone() }) > 0 =>
        {
            *other
        }
        _ => (first_key, first_length),
    };
    let beyond = "`min-rounds` allows it";
    let message = if key == "local-steps" && length < h && budget.min_rounds.is_none() {
        format!("must be at least the {h} local steps of one round, not {length}; {beyond}")
    } else if rounds == 0 {
        format!("= {length} is less than one round costs; {beyond}")
    } else if rounds > MOST_ROUNDS {
        format!("makes {rounds} rounds; at most {MOST_ROUNDS} are allowed")
    } else {
        return None;
    };
    Some(Fault::new(key, message))
}

/// What is wrong with the target at which runs end: its metric is not measured at the recorded rounds of these runs, no
/// value comes to it, or the manifest asks for averages over the rounds of the whole budget.
fn check_until(manifest: &Manifest, point: &CheckedPoint<'_>) -> Option<Fault> {
    let until = point.budget.until?;
    if let Some((key, message)) = fault_of_target(manifest, until) {
        return Some(Fault::new(format!("until.{key}"), message));
    }
    let algorithm = &point.algorithm.spec;
    if until.metric.metric().is_some_and(|metric| !metric.is_of(algorithm)) {
        let message = format!(": {} has no `{}`", algorithm.label(), until.metric.name());
        return Some(Fault::new("until.metric", message));
    }
    let is_averaged = !manifest.record.averages.is_empty();
    let message = "excludes `averages` in [record], which are over the rounds of the whole budget";
    is_averaged.then(|| Fault::new("until", message))
}

/// What is wrong with the start of runs by itself, or that it needs θ* where this is left out. Whether a point has d
/// numbers is checked once the instance is built, which tells d.
fn check_start(record: &Record, point: &CheckedPoint<'_>) -> Option<Fault> {
    let start = point.start;
    let around_optimum = match start {
        Start::Offset(_) => Some("offset"),
        Start::Limit(_) => Some("limit"),
        Start::Point(_) | Start::Zero(_) => None,
    };
    if let Some(key) = around_optimum.filter(|_| !record.optimum) {
        return Some(Fault::new(key, needs_optimum(&point.problem.spec)));
    }
    match start {
        Start::Offset(offset) => fault_if_infinite("offset", *offset),
        Start::Point(point) => point.iter().find_map(|x| fault_if_infinite("point", *x)),
        Start::Zero(true) | Start::Limit(true) => None,
        Start::Zero(false) => Some(Fault::new("zero", "must be true, or left out")),
        Start::Limit(false) => Some(Fault::new("limit", "must be true, or left out")),
    }
}

fn fault_if_infinite(key: &'static str, value: f64) -> Option<Fault> {
    (!value.is_finite()).then(|| Fault::new(key, format!("must be finite, not {value}")))
}

/// The diagnostics `found`, with hints added to those about overrides with an unknown key: the setting that may have
/// been meant is one that the manifest's text writes, whose path ends as the key of the override does.
pub fn with_hints_for_overrides(
    root: &Node,
    source: &Source,
    mut found: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    // The paths of all values that the text of the manifest, and no override, writes.
    let mut paths = Vec::new();
    visit(root, "", &mut |node, path| {
        let is_leaf = match &node.value {
            Value::Table(_) => false,
            Value::Array(items) => {
                !items.first().is_some_and(|i| matches!(i.value, Value::Table(_)))
            }
            _ => short(path).parse::<usize>().is_err(),
        };
        if is_leaf && matches!(node.place, Place::Text(..)) {
            paths.push(path.to_owned());
        }
    });
    for diagnostic in &mut found {
        let Diagnostic { place, hint, allowed, .. } = &*diagnostic;
        if let (Some(Place::Override(i)), None, Some(_)) = (place, hint, allowed) {
            let key = source.overrides[*i].split('=').next().unwrap_or_default().trim();
            let end = format!(".{}", short(key));
            let close = paths.iter().find(|path| path.ends_with(&end) && *path != key);
            diagnostic.hint = close.map(|path| format!("did you mean `{path}`?"));
        }
    }
    found
}

impl Checker<'_> {
    /// Notes entries of algorithms that have the label of an earlier entry, since figures and claims name algorithms
    /// by labels.
    pub fn equal_labels(&mut self) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for AlgorithmEntry { path, spec } in &self.manifest.algorithm {
            if let Some(other) = seen.insert(spec.label(), path) {
                let message = format!("`{other}` has the label \"{}\" too", spec.label());
                self.note(path, message, |d| d.hinting(Some("give one of them a `label`".into())));
            }
        }
    }
}
