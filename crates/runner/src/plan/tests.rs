//! What a manifest means, and what its cells are called.

use super::{CellId, Plan, Setting, UNREAD};
use crate::manifest::{Metric, Record, Rejected, Source, Spacing};
use crate::quantity::Quantity;
use exactfed_core::custom_metric::{CustomMetricDefinition, MeasureCustom};
use exactfed_core::definition::{Definition, KeyType};
use exactfed_core::registry::Registry;
use std::sync::Arc;

const TEXT: &str = include_str!("tests.toml");

/// Plans of manifests that are sound, without claims and figures.
impl Plan {
    pub(crate) fn of_source(source: Source) -> Self {
        Self::new("t".into(), source, &UNREAD).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn of_text(text: &str, overrides: &[&str]) -> Self {
        let name = "t.toml".into();
        let overrides = overrides.iter().map(|set| (*set).into()).collect();
        Self::of_source(Source { name, text: text.into(), overrides, ..Source::default() })
    }
}

fn plan(text: &str) -> Plan {
    Plan::of_text(text, &[])
}

fn rejected(text: &str) -> Rejected {
    let source = Source { name: "t.toml".into(), text: text.into(), ..Source::default() };
    Plan::new("t".into(), source, &UNREAD).err().unwrap_or_else(|| panic!("{text}"))
}

fn ids(text: &str) -> Vec<CellId> {
    plan(text).cells.into_iter().map(|c| c.id).collect()
}

#[test]
fn the_grid_is_the_product_of_its_axes() {
    let plan = plan(TEXT);
    assert_eq!(plan.cells.len(), 2 * 2 * 2 * (2 * 2 + 1));
    assert_eq!(plan.cells[0].label, "SCAFFLSA", "in the order of the manifest");
    let varied = &plan.cells[0].varied;
    assert!(varied.contains(&"algorithm.scafflsa.step-size".to_owned()), "{varied:?}");
    assert_eq!(plan.cells[0].settings.get("clients"), Some(&Setting::Number(2.0)));
    let text = plan.cells[39].settings.get("heterogeneity").unwrap().to_string();
    assert_eq!(text, "two-kernels");
}

#[test]
fn zipped_axes_move_together() {
    let zipped =
        TEXT.replace("replicates = 2", "replicates = 2\nzip = [[\"step-size\", \"local-steps\"]]");
    assert_eq!(plan(&zipped).cells.len(), 2 * 2 * 2 * (2 + 1));
    let across = zipped.replace("\"step-size\", \"local-steps\"", "\"clients\", \"step-size\"");
    assert_eq!(plan(&across).cells.len(), 2 * 2 * (2 * 2 + 2));
}

#[test]
fn an_axis_inside_a_value_counts_only_there() {
    let nested = TEXT.replace(
        "[{ independent = {} }, \"two-kernels\"]",
        "[\"two-kernels\", { perturbed = { kernel = [0.1, 0.2, 0.3] } }]",
    );
    assert_eq!(plan(&nested).cells.len(), 2 * (1 + 3) * 2 * (2 * 2 + 1));
    let wrong = nested.replace("0.3]", "\"x\"]");
    assert!(rejected(&wrong).to_string().contains("\"x\""));
}

#[test]
fn rounds_come_from_the_budget() {
    let rounds: Vec<u64> = plan(TEXT).cells.iter().map(|c| c.identity.rounds).collect();
    assert_eq!(&rounds[..2], &[11, 4], "105 steps by 10, and at least 4 rounds of 100");
}

/// Two communications and four calls in a round of FedLin; two runs of Richardson-Romberg; a coin
/// counts by its mean.
#[test]
fn budgets_are_costs_of_the_algorithm() {
    let rounds = |budget: &str, algorithm: &str| {
        let end = TEXT.find("[[algorithm").unwrap();
        let text = TEXT[..end].replace("local-steps = 105\nmin-rounds = 4", budget) + algorithm;
        plan(&text).cells[0].identity.rounds
    };
    let fedavg = "[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 7\n";
    let batches =
        "[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 7\nbatch-per-client = [1, 3]\n";
    let fedlin = "[[algorithm.fedlin]]\nstep-size = 0.1\nlocal-steps = 2\n";
    let romberg = "[[algorithm.richardson-romberg]]\nstep-size = 0.1\nlocal-steps = 5\n\
        extrapolate = \"local-steps\"\n";
    let coin = "[[algorithm.scaffnew]]\nstep-size = 0.1\ncommunication-probability = 0.3\n";
    for (budget, algorithm, expected) in [
        ("communications = 1000", fedavg, 1000),
        ("gradients = 1000", fedavg, 142),
        ("gradients = 1000", batches, 47),
        ("gradients = 1000\nmin-rounds = 50", batches, 50),
        ("communications = 1000", fedlin, 500),
        ("gradients = 1000", fedlin, 250),
        ("communications = 1000", romberg, 500),
        ("gradients = 1000", romberg, 66),
        ("communications = 1000", coin, 1000),
        ("gradients = 1000", coin, 300),
    ] {
        assert_eq!(rounds(budget, algorithm), expected, "{budget}\n{algorithm}");
    }
}

#[test]
fn ids_ignore_what_does_not_change_the_numbers() {
    let base = ids(TEXT);
    let same = [
        TEXT.replace("title = \"t\"", "title = \"another\"\nanalysis = \"text\""),
        TEXT.replace("states = 10\nactions = 2", "actions   = 2 # two\nstates = 1_0"),
        TEXT.replace(
            "[[algorithm.fedlsa]]",
            "[[figure.convergence]]\n\n[[algorithm.fedlsa]]\nlabel = \"x\"",
        ),
        TEXT.replace("discount = 0.9", "discount = 9e-1\npolicy = \"uniform\""),
        TEXT.replace("[budget]", "[record]\npoints = 200\n\n[budget]"),
    ];
    for text in same {
        assert_eq!(ids(&text), base, "{text}");
    }
    let other = [
        TEXT.replace("seed = 3", "seed = 4"),
        TEXT.replace("replicates = 2", "replicates = 3"),
        TEXT.replace("discount = 0.9", "discount = 0.8"),
        TEXT.replace("[budget]", "[record]\nevery = 2\n\n[budget]"),
        TEXT.replace("seed = 3", "seed = 3\noracle = \"exact\""),
        TEXT.replace("discount = 0.9", "discount = 0.9\npolicy = \"one-action\""),
    ];
    for text in other {
        let changed = ids(&text);
        assert!(changed.iter().all(|id| !base.contains(id)), "{text}");
    }
}

/// If this fails, every result ever stored has lost its name.
#[test]
fn an_id_is_for_ever_and_of_one_cell() {
    let mut all = ids(TEXT);
    assert_eq!(all[0].as_str(), "0e30e1eb20ea9fc7");
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 40);
}

#[test]
fn recorded_rounds_begin_and_end_the_run_and_are_counted_before_they_are_listed() {
    let record = |points, every, spacing| Record { points, every, spacing, ..Record::default() };
    for rounds in [1, 2, 7, 100, 12345] {
        for record in [
            record(Some(10), None, Spacing::Linear),
            record(Some(10), None, Spacing::Log),
            record(Some(5000), None, Spacing::Log),
            record(None, Some(3), Spacing::Linear),
            record(None, None, Spacing::Linear),
        ] {
            let all = record.rounds(rounds);
            assert_eq!((all[0], *all.last().unwrap()), (0, rounds), "{record:?}");
            assert!(all.windows(2).all(|w| w[0] < w[1]), "{record:?} {all:?}");
            let listed = all.len() as u64;
            let counted = record.points(rounds);
            assert!(listed <= counted && counted <= rounds + 2, "{record:?} {rounds}");
        }
    }
    assert_eq!(record(Some(4), None, Spacing::Linear).rounds(100), [0, 25, 50, 75, 100]);
    assert_eq!(record(Some(2), None, Spacing::Log).rounds(100), [0, 1, 10, 100]);
    assert_eq!(record(None, Some(1), Spacing::Linear).points(u64::MAX), u64::MAX);
}

#[test]
fn a_list_of_lists_is_an_axis_of_lists() {
    let text = |steps: &str| {
        let one = "step-size = 0.1\nlocal-steps = 10";
        assert!(TEXT.contains(one));
        TEXT.replace(one, &format!("step-size = 0.1\nsteps-per-client = {steps}"))
    };
    let lists = |steps: &str| -> Vec<String> {
        let cells = plan(&text(steps)).cells;
        let mine = cells.iter().filter_map(|c| c.settings.get("steps-per-client"));
        mine.map(ToString::to_string).collect()
    };
    assert_eq!(lists("[1, 2]").len(), 8);
    let two = lists("[[1, 2], [5]]");
    assert_eq!(two.len(), 16);
    assert!(two.contains(&"1, 2".to_owned()) && two.contains(&"5".to_owned()), "{two:?}");
    for (steps, message) in [
        ("[]", "an empty list has no meaning"),
        ("[[1], 2]", "expected a list, as the others of this axis are"),
        ("[[[1]]]", "lists of lists"),
    ] {
        let said = rejected(&text(steps)).to_string();
        assert!(said.contains(message), "{steps}: {said}");
    }
}

/// Ids are hashed from texts of tables that cells share; an index has the whole.
#[test]
fn an_id_is_the_hash_of_the_canonical_text() {
    let nested = TEXT
        .replace(
            "seed = 3",
            "seed = 3\ninstance = \"per-replicate\"\noracle = [\"exact\", \"stochastic\"]",
        )
        .replace("offset = [0.5, 1.0]", "point = [[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 1.5]]")
        .replace("\"two-kernels\"]", "{ perturbed = { kernel = [0.1, 0.2] } }]")
        .replace("[budget]", "[record]\nevery = 2\nmetrics = [\"lyapunov\"]\n\n[budget]");
    let romberg = "\n[[algorithm.richardson-romberg]]\nstep-size = [0.1, 0.2]\nlocal-steps = 3\n\
        over = [\"fedavg\", { fedprox = { proximal = 1.0 } }]\naverage = { burn-in = 0.5 }\n";
    for text in [TEXT.to_owned(), nested, TEXT.to_owned() + romberg] {
        for cell in plan(&text).cells {
            let whole = cell.identity.canonical().to_string();
            assert_eq!(cell.id, CellId::of(&whole), "{whole}");
        }
    }
}

#[test]
fn cells_share_what_is_the_same_in_them() {
    let cells = plan(TEXT).cells;
    let first = &cells[0];
    let second = &cells[1];
    assert_ne!(first.settings.get("local-steps"), second.settings.get("local-steps"));
    assert!(Arc::ptr_eq(&first.identity.problem, &second.identity.problem));
    assert!(Arc::ptr_eq(&first.identity.record, &cells[39].identity.record));
    let last = cells.iter().rfind(|c| c.identity.problem == first.identity.problem).unwrap();
    assert_eq!(last.label, "FedLSA");
    assert!(Arc::ptr_eq(&first.identity.problem, &last.identity.problem), "across entries too");
}

#[test]
fn a_name_means_a_path_or_the_algorithms_end_of_one() {
    let settings = &plan(TEXT).cells[0].settings;
    assert_eq!(settings.path("local-steps"), Some("algorithm.scafflsa.local-steps"));
    assert_eq!(settings.path("budget.local-steps"), Some("budget.local-steps"));
    assert_eq!(settings.path("rounds"), Some("rounds"));
    assert_eq!(settings.path("garnet.clients"), Some("problem.garnet.clients"));
    assert_eq!(settings.path("steps"), None);
    assert_eq!(settings.at_path("clients"), None, "a full path");
    assert!(settings.iter().is_sorted_by_key(|(path, _)| path));
    let names: Vec<&str> = settings.names().collect();
    assert!(names.contains(&"step-size") && !names.contains(&"scafflsa"), "{names:?}");
}

#[test]
fn a_grid_beyond_a_million_is_refused_with_its_longest_axes() {
    let many = |count: usize| {
        let values: Vec<String> = (1..=count).map(|i| format!("{i}e-4")).collect();
        format!("[{}]", values.join(", "))
    };
    let text = TEXT
        .replace("step-size = [0.1, 0.2]", &format!("step-size = {}", many(1001)))
        .replace("offset = [0.5, 1.0]", &format!("offset = {}", many(1000)));
    let said = rejected(&text).to_string();
    assert!(
        said.contains("the grid has 8012000 cells or more; at most 1000000 are allowed"),
        "{said}"
    );
    assert!(said.contains("`algorithm.scafflsa.0.step-size` has 1001 values"), "{said}");
}

#[test]
fn of_thousands_of_mistakes_a_hundred_are_printed() {
    let wrong: Vec<String> = (1..=3000).map(|i| format!("-{i}")).collect();
    let text =
        TEXT.replace("step-size = [0.1, 0.2]", &format!("step-size = [{}]", wrong.join(", ")));
    let rejected = rejected(&text);
    assert_eq!(rejected.diagnostics.len(), 3000);
    let said = rejected.to_string();
    assert_eq!(said.matches("`step-size` must be").count(), 100, "{said}");
    assert!(said.ends_with("\nerror: and 2900 more, which are not printed\n"), "{said}");
}

#[test]
fn the_path_length_is_that_of_the_first_run() {
    let romberg = "\n[[algorithm.richardson-romberg]]\nstep-size = 0.1\nlocal-steps = 10\n\
        over = \"fedavg\"\nextrapolate = \"local-steps\"\n";
    for cell in plan(&(TEXT.to_owned() + romberg)).cells {
        let terms = cell.identity.algorithm.components().remove(0).terms;
        let length = terms.step_size * terms.most_steps() as f64;
        let found = cell.settings.get("path-length");
        assert_eq!(found, Some(&Setting::Number(length)), "{}", cell.label);
    }
}

/// The keys of a registered algorithm are checked as those of the built-in ones are.
#[test]
fn registered_kinds_are_read_by_their_definitions() {
    let definition = Definition::new("own", "Own", "1")
        .key("beta", 0.5)
        .key("flag", true)
        .required_key("copies", KeyType::Whole);
    let mut registry = Registry::default();
    registry.define(&[definition.into()]);
    let read = |keys: &str| {
        let text = format!("{TEXT}\n[[algorithm.own]]\nstep-size = 0.1\nlocal-steps = 2\n{keys}");
        let source = Source { name: "t.toml".into(), text, ..Source::default() };
        Plan::new("t".into(), Source { registry: registry.clone(), ..source }, &UNREAD)
    };
    let plan = read("beta = [1, 0.25]\ncopies = 3\n").unwrap_or_else(|e| panic!("{e}"));
    let last = plan.cells.last().unwrap();
    assert_eq!((last.label.as_str(), last.custom_place), ("Own", Some(0)));
    let text = last.identity.canonical().to_string();
    let keys = "[algorithm.own]\nstep-size = 0.1\nlocal-steps = 2\nbeta = 0.25\ncopies = 3\n\
        flag = true\nversion = \"1\"\n";
    assert!(text.contains(keys), "{text}");
    for (keys, said) in [
        ("", "algorithm.own.0 lacks the key `copies`"),
        ("copies = 1\nbeat = 1.0", "did you mean `beta`?"),
        ("copies = 1.5", "expected a whole number, 0 or more, not 1.5"),
        ("copies = 1\nbeta = nan", "`beta` must be a finite number, not NaN"),
    ] {
        let found = read(keys).err().unwrap_or_else(|| panic!("{keys}")).to_string();
        assert!(found.contains(said), "{keys}: {found}");
    }
}

/// Compressors are read in one form, so that cells with one compressor have one id, and may be an axis.
#[test]
fn keys_of_compressors_are_checked_and_have_one_form() {
    let definition =
        Definition::new("own", "Own", "1").compressor_key("compressor", "natural".parse().unwrap());
    let definition = definition.required_key("unbiased", KeyType::UnbiasedCompressor);
    let mut registry = Registry::default();
    registry.define(&[definition.into()]);
    let read_both = |value: &str, unbiased: &str| {
        let keys = format!(
            "step-size = 0.1\nlocal-steps = 2\ncompressor = {value}\nunbiased = {unbiased}\n"
        );
        let text = format!("{TEXT}\n[[algorithm.own]]\n{keys}");
        let source = Source { name: "t.toml".into(), text, ..Source::default() };
        Plan::new("t".into(), Source { registry: registry.clone(), ..source }, &UNREAD)
    };
    let read = |value: &str| read_both(value, "\"identity\"");
    let plan = read("[\"rand-k: 3\", \"qsgd : 4 : max\"]").unwrap_or_else(|e| panic!("{e}"));
    let of_cells = plan.cells.iter().filter_map(|cell| cell.settings.get("compressor"));
    // The two values of the axis, at each of the other grid points.
    let texts: Vec<Setting> = of_cells.cloned().collect();
    assert_eq!(texts[..2], [Setting::Text("rand-k:3".into()), Setting::Text("qsgd:4:max".into())]);
    for (value, said) in [
        ("\"rank-k:3\"", "\"rank-k\" is no compressor"),
        ("[\"natural\", \"top-k\"]", "top-k takes a whole number from 1 to"),
        ("3", "expected a string, not 3"),
    ] {
        let found = read(value).err().unwrap_or_else(|| panic!("{value}"));
        assert!(found.to_string().contains(said), "{value}: {found}");
    }
    let found = read("\"rank-k:3\"").err().unwrap().to_string();
    assert!(found.contains("rand-k:K[:indices]"), "the message says what is allowed: {found}");
    let found = read_both("\"natural\"", "\"top-k:3\"").err().unwrap().to_string();
    assert!(found.contains("top-k:3 is biased, and the compressor must be unbiased"), "{found}");
}

/// The code of a test's metric: the largest entry of θ.
struct LargestEntry;

impl MeasureCustom for LargestEntry {
    fn value(&self, theta: &[f64], _: Option<&[f64]>) -> Result<f64, String> {
        Ok(theta.iter().fold(0.0, |most: f64, x| most.max(x.abs())))
    }
}

/// A registered metric is listed like a built-in one, its source is part of the ids, and stored results know it without
/// its code.
#[test]
fn registered_metrics_are_read_by_their_definitions() {
    let known = |version: &str| {
        let definition = Definition::new("largest-entry-of-test", "max |θ|", version);
        CustomMetricDefinition { definition, reads_clients: false }
    };
    let read = |version: &str, metrics: &str| {
        let mut registry = Registry::default();
        registry.add_metric(known(version), LargestEntry, &[]).unwrap();
        let text = TEXT.to_owned() + &format!("\n[record]\nmetrics = [{metrics}]\n");
        let source = Source { name: "t.toml".into(), text, registry, ..Source::default() };
        Plan::new("t".into(), source, &UNREAD).unwrap_or_else(|e| panic!("{e}"))
    };
    let with = read("1", "\"largest-entry-of-test\"");
    let id = |plan: &Plan| plan.cells[0].id;
    assert_ne!(id(&with), id(&read("2", "\"largest-entry-of-test\"")));
    assert_eq!(id(&read("1", "")), id(&read("2", "")), "a metric that is not listed changes no id");
    let metric = with.manifest.record.metrics[0];
    assert_eq!(
        (metric.name(), metric.column()),
        ("largest-entry-of-test", "largest_entry_of_test")
    );
    let stored = Source { registry: Registry::default(), ..with.source.clone() };
    let again = Plan::new("t".into(), stored, &UNREAD).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(id(&again), id(&with));
    assert!(with.manifest.record.own[0].code.is_some());
    assert!(again.manifest.record.own[0].code.is_none());
}

/// Keys of whole numbers, of numbers, of a number of clients or a fraction, and of a number or a text.
#[test]
fn integers_beyond_64_bits_are_too_large_and_not_of_another_type() {
    let whole = "0 to 9223372036854775807";
    let number = "integers from -9223372036854775808 to 9223372036854775807, and numbers with point or exponent";
    let cohort = "0 to 9223372036854775807, or a fraction";
    let amended = "\n[[amendment]]\nsetting = \"seed\"\nto = ";
    for (text, size, allowed) in [
        (TEXT.replace("seed = 3", "seed = 9223372036854775808"), "large", whole),
        (TEXT.replace("seed = 3", "seed = -9223372036854775809"), "small", whole),
        (TEXT.replace("discount = 0.9", "discount = 18446744073709551616"), "large", number),
        (TEXT.replace("discount = 0.9", "discount = -18446744073709551616"), "small", number),
        (format!("{TEXT}cohort = 0xffffffffffffffffff\n"), "large", cohort),
        (format!("{TEXT}{amended}18446744073709551616\n"), "large", number),
    ] {
        let found = rejected(&text).diagnostics;
        let said = &found[0].message;
        assert!(said.ends_with(&format!(": this is too {size}")), "{said}");
        assert_eq!(found[0].allowed.as_deref(), Some(allowed), "{said}");
    }
    let said = rejected(&TEXT.replace("title = \"t\"", "title = 9223372036854775808")).to_string();
    assert!(said.contains("expected a string, not an integer"), "{said}");
    assert_eq!(plan(&TEXT.replace("seed = 3", "seed = 9223372036854775807")).cells.len(), 40);
}

/// The default is no part of an id, so that cells with θ* keep theirs.
#[test]
fn leaving_the_optimum_out_is_another_cell() {
    let ids = |set: &[&str]| -> Vec<CellId> {
        let metrics = ["record.metrics=[\"train-loss\"]"];
        let cells = Plan::of_text(crate::sample::LOGISTIC, &[&metrics, set].concat()).cells;
        cells.into_iter().map(|cell| cell.id).collect()
    };
    let plain = ids(&[]);
    assert_eq!(ids(&["record.optimum=true"]), plain);
    let without = ids(&["record.optimum=false"]);
    assert!(without.iter().all(|id| !plain.contains(id)));
}

/// By what runs are compared where θ* is left out.
#[test]
fn a_loss_takes_the_place_of_the_error() {
    use Metric::{Accuracy, CorrectionSum, SqGradient, TestLoss, TrainLoss};
    let by = |optimum, metrics: &[Metric]| {
        Record { optimum, metrics: metrics.to_vec(), ..Record::default() }.default_quantity()
    };
    assert_eq!(by(true, &[TestLoss]), Quantity::SqError);
    assert_eq!(by(false, &[]), Quantity::SqError, "nothing takes its place");
    assert_eq!(by(false, &[CorrectionSum]), Quantity::SqError);
    assert_eq!(by(false, &[Accuracy, TestLoss, TrainLoss]), Quantity::TestLoss);
    assert_eq!(by(false, &[CorrectionSum, Accuracy, SqGradient]), Quantity::Accuracy);
}

/// A frontier and a map of it without an axis of clients, on a quadratic with two clients.
fn frontier_with_map(targets: &str, algorithms: &str) -> String {
    format!(
        r#"
        title = "t"
        seed = 1
        replicates = 1
        [problem.quadratic]
        dimension = 2
        clients = 2
        spectrum = {{ from = 0.5, to = 1.0 }}
        noise = 0.1
        [[frontier]]
        id = "f"
        algorithms = [{algorithms}]
        targets = {targets}
        step-size = {{ from = 0.01, to = 1.0, points = 5 }}
        [[phase]]
        id = "m"
        x = {{ over = "noise", values = {{ from = 0.1, to = 1.0, points = 2 }} }}
        y = {{ over = "condition", values = {{ from = 2.0, to = 4.0, points = 2 }} }}
        "#
    )
}

/// Such a list would not fit in memory, and the program would end without a message.
#[test]
fn targets_of_a_map_are_counted_before_they_are_listed() {
    let sound = frontier_with_map("{ from = 0.1, to = 0.01, points = 3 }", "\"fedavg\"");
    let manifest = plan(&sound).manifest;
    let frontier = &manifest.frontier[0];
    assert_eq!(frontier.smallest_target(), frontier.all_targets().last().copied());
    for (targets, said) in [
        ("{ from = 0.1, to = 0.01, points = 2000000000000000000 }", "`points` of `targets` must"),
        // No problem of the map has a target of −1, which is noted once.
        ("{ from = 0.1, to = -1.0, points = 3 }", "`from` and `to` of `targets` must"),
    ] {
        let found = rejected(&frontier_with_map(targets, "\"fedavg\"")).diagnostics;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains(said), "{}", found[0].message);
    }
}

/// A million combinations of values, of each of which an algorithm would be made.
#[test]
fn combinations_of_tried_values_are_counted_before_they_are_made() {
    let list = |unit: f64| {
        let values: Vec<String> =
            (1..=1000).map(|i| format!("{:?}", f64::from(i) * unit)).collect();
        values.join(", ")
    };
    let algorithm = |[one, other]: [&str; 2]| {
        format!("{{ fedavg = {{ cohort = [{one}], server-step = [{other}] }} }}")
    };
    let targets = "{ from = 0.1, to = 0.01, points = 3 }";
    let many = [list(0.5), list(0.25)];
    let text = frontier_with_map(targets, &algorithm(many.each_ref().map(String::as_str)));
    let found = rejected(&text).diagnostics;
    assert_eq!(found.len(), 1, "{found:?}");
    let said = &found[0].message;
    assert!(said.contains("`fedavg` make 1000000 combinations; at most 10000"), "{said}");
    plan(&frontier_with_map(targets, &algorithm(["1, 2", "1.0, 2.0"])));
}

/// Such an algorithm would have no candidate that could be selected, and would get more and more of them. Scaffold has
/// control variates, FedAvg and averages of estimates have none.
#[test]
fn tuning_by_a_metric_that_an_algorithm_lacks_is_refused() {
    let text = |metric: &str, algorithms: &str| {
        format!(
            r#"
            title = "t"
            seed = 1
            replicates = 2
            [problem.quadratic]
            dimension = 2
            clients = 2
            spectrum = {{ from = 0.5, to = 1.0 }}
            noise = 0.1
            [start]
            offset = 1.0
            [budget]
            rounds = 20
            [record]
            metrics = ["{metric}"]
            [tune]
            over = "step-size"
            range = [0.1, 0.5]
            metric = "{metric}"
            {algorithms}
            "#
        )
    };
    let scaffold = "[[algorithm.scaffold]]\nlocal-steps = 2\n";
    let fedavg = "[[algorithm.fedavg]]\nlocal-steps = 2\n";
    let averaged =
        "[[algorithm.scaffold]]\nlocal-steps = 2\nlabel = \"A\"\naverage = { burn-in = 0.5 }\n";
    for (metric, algorithms, lacking) in [
        ("lyapunov", [scaffold, fedavg], Some("FedAvg")),
        ("lyapunov", [scaffold, averaged], Some("A")),
        ("sq-error-clients", [fedavg, averaged], Some("A")),
        ("sq-error-clients", [scaffold, fedavg], None),
        ("sq-gradient", [fedavg, averaged], None),
    ] {
        let text = text(metric, &algorithms.concat());
        let Some(label) = lacking else {
            plan(&text);
            continue;
        };
        let found = rejected(&text).diagnostics;
        assert_eq!(found.len(), 1, "{found:?}");
        let said = &found[0].message;
        let expected = format!("`metric` = \"{metric}\" is not measured of \"{label}\", so that");
        assert!(said.starts_with(&expected), "{said}");
    }
}
