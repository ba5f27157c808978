//! The messages about a bad manifest: one snapshot for each kind of mistake.

use crate::support::{Bench, edited};

const GOOD: &str = include_str!("../manifests/valid.toml");

/// The message about a manifest in which `from` became `to`.
fn message(from: &str, to: &str) -> String {
    messages(&edited(GOOD, &[(from, to)]), &[])
}

fn messages(text: &str, arguments: &[&str]) -> String {
    let bench = Bench::new();
    bench.write("bad.toml", text);
    let output = bench.run(&[&["run", "bad.toml"], arguments].concat()).expect(2);
    assert_eq!(output.out, "");
    assert_eq!(bench.files(), ["bad.toml"], "something was written");
    output.err
}

#[test]
fn the_good_manifest_is_good() {
    Bench::ran(GOOD);
}

/// A key of which only the last word is written.
#[test]
fn a_key_that_lacks_its_first_word() {
    for word in ["epochs", "epoch"] {
        let text = without_optimum("", "").replace("local-steps = 2", &format!("{word} = 2"));
        let said = messages(&text, &[]);
        assert!(said.contains(&format!("unknown key `{word}`")), "{said}");
        assert!(said.contains("did you mean `local-epochs`?"), "{said}");
    }
}

/// A manifest on records that leaves θ* out, with these tables in addition.
fn without_optimum(record: &str, more: &str) -> String {
    format!(
        "title = \"t\"\nseed = 1\nreplicates = 2\n\
         [problem.logistic]\ndimension = 2\nrecords = 10\nclients = 3\nl2 = 0.1\n\
         data = {{ noisy = {{ spread = 2.0 }} }}\n[start]\nzero = true\n[budget]\nrounds = 5\n\
         [record]\noptimum = false\n{record}\n\
         [[algorithm.fedavg]]\nlabel = \"A\"\nstep-size = 0.1\nlocal-steps = 2\n{more}"
    )
}

/// Whatever needs θ* is named before the first cell runs.
#[test]
fn what_needs_an_optimum_that_is_left_out() {
    let measured = "metrics = [\"train-loss\", \"suboptimality\", \"sq-error-limit\", \"lyapunov\"]
averages = [\"bias\", \"covariance\"]";
    let evidence = "
[[figure.convergence]]
y = \"sq-error\"
theory = [\"closure\"]
[[figure.scaling]]
x = \"sq-error-average\"
y = \"bias\"
[[figure.winners]]
x = \"step-size\"
y = \"local-steps\"
metric = \"lyapunov\"
[[claim.less]]
id = \"a\"
statement = \"s\"
left = { label = \"A\" }
value = 1.0
[[claim.matches]]
id = \"b\"
statement = \"s\"
of = { label = \"A\" }
average = \"bias\"
prediction = \"closure\"
margin = 0.1
[[claim.reaches]]
id = \"c\"
statement = \"s\"
of = { label = \"A\" }
metric = \"train-loss\"
reaching = { target = 0.1 }
prediction = \"scafflsa-a5\"
";
    let losses = "metrics = [\"train-loss\"]";
    let analysis = without_optimum(losses, "");
    let analysis = analysis.replace("seed = 1", "analysis = '{{ mean(cell(\"A\")) }}'\nseed = 1");
    let tuned = edited(
        &without_optimum(
            losses,
            "[tune]\nover = \"step-size\"\nvalues = [0.1, 0.2]\nmetric = \"sq-error\"\n",
        ),
        &[("step-size = 0.1\n", "")],
    );
    let offset = without_optimum(losses, "").replace("zero = true", "offset = 1.0");
    let limit = without_optimum(losses, "").replace("zero = true", "limit = true");
    let frontier = edited(FRONTIER, &[("[[frontier]]", "[record]\noptimum = false\n[[frontier]]")]);
    let texts = [
        without_optimum(measured, ""),
        without_optimum("", "[[figure.convergence]]\n"),
        without_optimum(losses, evidence),
        offset,
        limit,
        analysis,
        tuned,
        frontier,
    ];
    let messages: Vec<String> = texts.iter().map(|text| messages(text, &[])).collect();
    insta::assert_snapshot!("without_optimum", messages.join("\n"));
}

macro_rules! snapshots {
    ($($name:ident: $from:literal => $to:literal;)*) => {
        $(#[test] fn $name() { insta::assert_snapshot!(stringify!($name), message($from, $to)); })*
    };
}

snapshots! {
    amendments: "[[figure.convergence]]\n" => "[[amendment]]
setting = \" \"
claim = \"goes-on\"
[[amendment]]
setting = \"replicates\"
from = 2.0
to = 2
[[amendment]]
setting = \"seed\"
to = nan
[[amendment]]
setting = \"seed\"
from = \"\"

[[figure.convergence]]
";
    amendments_of_other_types: "[[figure.convergence]]\n" => "[[amendment]]
setting = \"seed\"
from = [1, 2]
[[amendment]]
setting = \"seed\"
too = 1

[[figure.convergence]]
";
    reference_slope_not_finite: "[[figure.convergence]]\n" =>
        "[[figure.scaling]]\nx = \"local-steps\"\nreference-slope = nan\n[[figure.convergence]]\n";
    empty_list: "local-steps = [1, 2]\n\n" => "steps-per-client = []\n\n";
    two_kinds_of_work: "local-steps = [1, 2]\n\n" => "local-steps = 2\nsteps-per-client = [1, 2]\n\n";
    cohort_too_large: "step-size = 0.1" => "step-size = 0.1\ncohort = 4";
    participation_out_of_range: "step-size = 0.1" => "step-size = 0.1\ncohort = [2, 0.5, 1.0, 2.5, -1, \"all\"]";
    participation_of_everybody: "step-size = 0.1" => "step-size = 0.1\ncohort = [0.5, 1.0]";
    shipped_algorithm: "[[algorithm.fedlsa]]" => "[[algorithm.fedavgm]]";
    coin_beside_local_steps: "[[algorithm.fedlsa]]" => "[[algorithm.scafflsa]]\ncommunication-probability = 0.1";
    coin_out_of_range: "[[figure.convergence]]" => "[[algorithm.scaffnew]]\nstep-size = 0.1\ncommunication-probability = 1.5\n\n[[figure.convergence]]";
    clock_without_coin: "[[algorithm.fedlsa]]" => "[[algorithm.scafflsa]]\nclock = \"steps\"";
    unrecorded_quantity: "[[figure.convergence]]" => "[[figure.convergence]]\ny = \"lyapunov\"";
    seconds_without_prices: "[[figure.convergence]]" => "[[figure.convergence]]\nx = \"seconds\"";
    blank_label: "[[algorithm.fedlsa]]\n" => "[[algorithm.fedlsa]]\nlabel = \" \"\n";
    label_without_width: "[[algorithm.fedlsa]]\n" => "[[algorithm.fedlsa]]\nlabel = \"\\u200B\"\n";
    unknown_label: "[[figure.convergence]]" => "[[figure.convergence]]\nlabels = [\"FedLSB\"]";
    one_setting_on_both_axes: "[[figure.convergence]]" => "[[figure.winners]]\nx = \"step-size\"\ny = \"step-size\"\n\n[[figure.convergence]]";
    spacing_beside_every: "[budget]" => "[record]\nevery = 2\nspacing = \"log\"\n\n[budget]";
    bad_price: "[budget]" => "[prices]\nlatency = -1.0\nbandwidth = 0.0\n\n[budget]";
    too_large_a_dimension: "[problem.garnet]\nstates = 10\nactions = 2\nbranching = 3\nfeatures = 4\ndiscount = 0.9\nclients = 3\nheterogeneity = { independent = {} }" => "[problem.quadratic]\ndimension = 9_000_000_000\nclients = 3\nspectrum = { from = 1.0, to = 0.5 }\nnoise = 1.0";
    heterogeneity_beyond_the_spectrum: "[problem.garnet]\nstates = 10\nactions = 2\nbranching = 3\nfeatures = 4\ndiscount = 0.9\nclients = 3\nheterogeneity = { independent = {} }" => "[problem.quadratic]\ndimension = 2\nclients = 4\nspectrum = { from = 0.5, to = 1.0 }\nhessian-heterogeneity = 0.6\nnoise = 1.0";
    unknown_key: "branching = 3" => "branchign = 3";
    unknown_top_level_key: "seed = 1" => "sead = 1";
    unknown_problem: "[problem.garnet]" => "[problem.granet]";
    unknown_algorithm: "[[algorithm.fedlsa]]" => "[[algorithm.fedlas]]";
    unknown_name: "{ independent = {} }" => "\"indepndent\"";
    settings_missing: "{ independent = {} }" => "\"perturbed\"";
    missing_key: "discount = 0.9\n" => "";
    wrong_type: "states = 10" => "states = \"ten\"";
    wrong_type_in_an_axis: "local-steps = [1, 2]" => "local-steps = [1, 2.5, -3]";
    empty_axis: "local-steps = [1, 2]" => "local-steps = []";
    not_an_axis: "title = \"a title\"" => "title = [\"a\", \"b\"]";
    repeated_value: "local-steps = [1, 2]" => "local-steps = [1, 1]";
    negative_step_size: "step-size = 0.1" => "step-size = -0.1";
    step_size_not_a_number: "step-size = 0.1" => "step-size = nan";
    no_local_steps: "local-steps = [1, 2]" => "local-steps = [1, 0]";
    branching_above_states: "branching = 3" => "branching = [3, 11]";
    discount_of_one: "discount = 0.9" => "discount = 1.0";
    burn_in_of_one: "step-size = 0.1" => "step-size = 0.1\naverage = { burn-in = 1.0 }";
    too_many_replicates: "replicates = 2" => "replicates = 20_000_000";
    no_replicates: "replicates = 2" => "replicates = 0";
    two_budgets: "rounds = 5" => "rounds = 5\nlocal-steps = 10";
    no_budget: "rounds = 5" => "min-rounds = 5";
    budget_below_the_gradients_of_a_round: "rounds = 5" => "gradients = 1";
    at_two_costs: "[budget]" => "[compare]\nat = { communications = 2, gradients = 3 }\n\n[budget]";
    at_no_cost: "[budget]" => "[compare]\nat = { sq-error = 0.1 }\n\n[budget]";
    at_a_negative_cost: "[budget]" => "[compare]\nat = { communications = -1 }\n\n[budget]";
    at_seconds_without_prices: "[budget]" => "[compare]\nat = { seconds = 1.5 }\n\n[budget]";
    at_a_cost_beyond_the_budget: "[budget]" => "[compare]\nat = { gradients = 9 }\n\n[[figure.winners]]\nx = \"step-size\"\ny = \"local-steps\"\nat = { bytes = 1e6 }\n\n[[claim.less]]\nid = \"a\"\nstatement = \"s\"\nleft = {}\nvalue = 1.0\nat = { communications = 6 }\n\n[budget]";
    at_a_cost_of_an_average: "[budget]" => "[record]\naverages = [\"bias\"]\n\n[[claim.less]]\nid = \"a\"\nstatement = \"s\"\nmetric = \"bias\"\nleft = {}\nvalue = 1.0\nat = { communications = 2 }\n\n[budget]";
    two_starts: "offset = 1.0" => "offset = 1.0\nzero = true";
    start_of_another_dimension: "offset = 1.0" => "point = [1.0, 2.0]";
    start_not_finite: "offset = 1.0" => "offset = inf";
    seed_too_large: "seed = 1" => "seed = 99999999999999999999";
    table_for_array: "[[algorithm.fedlsa]]" => "[algorithm.fedlsa]";
    unknown_panel: "panels = [\"local-steps\"]" => "panels = [\"local-step\"]";
    large_panel_of_no_panels: "panels = [\"local-steps\"]" => "panels = [\"local-steps\"]\nlarge = { step-size = 0.1 }";
    large_panel_without_cells: "panels = [\"local-steps\"]" => "panels = [\"local-steps\"]\nlarge = { local-steps = 77 }";
    figure_of_unknown_settings: "panels = [\"local-steps\"]" => "panels = [\"local-steps\"]\nonly = { local-step = 1 }";
    figure_id_is_a_path: "panels = [\"local-steps\"]" => "id = \"../x\"";
    syntax: "states = 10" => "states = = 10";
    zip_of_unequal_lengths: "replicates = 2" => "replicates = 2\nzip = [[\"local-steps\", \"step-size\"]]";
    zips_that_share_an_axis: "replicates = 2" => "replicates = 2\nzip = [[\"local-steps\"], [\"local-steps\", \"step-size\"]]";
    symbol_for_a_setting: "panels = [\"local-steps\"]" => "panels = [\"H\"]";
    missing_comma: "local-steps = [1, 2]" => "local-steps = [1 2]";
    singular_mean_system: "branching = 3" => "branching = 1";
}

#[test]
fn many_mistakes_at_once() {
    let text = GOOD
        .replace("seed = 1", "seed = \"one\"\nspeed = 2")
        .replace("states = 10", "states = -10")
        .replace("discount = 0.9", "discount = true")
        .replace("{ independent = {} }", "{ perturbed = { kernel = \"a\", reword = 1 } }")
        .replace("offset = 1.0", "ofset = 1.0")
        .replace("rounds = 5", "rounds = 5.5")
        .replace("step-size = 0.1", "step-size = { a = 1 }")
        .replace("panels = [\"local-steps\"]", "panels = \"local-steps\"\nband = \"sdt\"");
    insta::assert_snapshot!("many_mistakes_at_once", messages(&text, &[]));
}

#[test]
fn mistakes_from_the_command_line() {
    let output = messages(
        GOOD,
        &["--set", "problem.garnet.branching=40", "--set", "seed=x", "--set", "nonsense"],
    );
    insta::assert_snapshot!("set_is_not_key_value", output);
    let output = messages(
        GOOD,
        &["--set", "problem.garnet.branching=40", "--set", "algorithm.fedlsa.step-size=0"],
    );
    insta::assert_snapshot!("set_out_of_range", output);
    let two = format!("{GOOD}\n[[algorithm.scafflsa]]\nstep-size = 0.1\nlocal-steps = 2\n");
    let output = messages(&two, &["--set", "algorithm.scafflsa.step-size=big"]);
    insta::assert_snapshot!("set_to_a_wrong_value", output);
}

/// Of a `[tune]` that is wrong or has another name the message says that, and not that algorithms
/// lack the settings that it would provide.
#[test]
fn a_tune_that_is_not_read() {
    let message = |tune: &str| {
        let tune = format!("{tune}\nover = \"step-size\"\nrange = [0.1, 1.0]\n\n[budget]");
        messages(&edited(GOOD, &[("step-size = 0.1\n", ""), ("[budget]", &tune)]), &[])
    };
    insta::assert_snapshot!("tune_of_another_name", message("[tuning]"));
    let by = |metric: &str| message(&format!("[tune]\nmetric = \"{metric}\""));
    insta::assert_snapshot!("tune_by_an_unknown_metric", by("sq_error"));
    insta::assert_snapshot!("tune_by_an_unrecorded_metric", by("suboptimality"));
}

/// The algorithms that the package ships are those whose module messages name.
#[test]
fn shipped_algorithms_are_known() {
    let files =
        std::fs::read_dir(crate::support::root().join("python/exactfed/algorithms")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let kinds = names.filter_map(|name| Some(name.strip_suffix(".py")?.replace('_', "-")));
    let mut kinds: Vec<String> = kinds.filter(|kind| !kind.starts_with('-')).collect();
    kinds.sort();
    assert_eq!(kinds, exactfed_runner::manifest::read::SHIPPED);
}

#[test]
fn a_chain_of_several_islands() {
    let text = GOOD
        .replace("actions = 2", "actions = 1")
        .replace("branching = 3", "branching = 1")
        .replace("features = 4", "features = 1")
        .replace("clients = 3", "clients = 20");
    insta::assert_snapshot!("no_unique_stationary_law", messages(&text, &[]));
}

#[test]
fn a_missing_file() {
    let output = Bench::new().run(&["run", "absent.toml"]).expect(2);
    insta::assert_snapshot!("a_missing_file", output.err);
}

#[test]
fn a_folder_is_no_manifest() {
    let output = Bench::new().run(&["check", "."]).expect(2);
    insta::assert_snapshot!("a_folder_is_no_manifest", output.err);
}

/// Names that are files of results or reports, and names that are one on some systems.
#[test]
fn names_that_collide() {
    let bench = Bench::new();
    let refused = [
        "README.md.toml",
        "experiment.toml.toml",
        "pack-0123456789abcdef.toml",
        "experiments/a/0123456789abcdef.toml",
        "experiments/a/figures.toml",
        "experiments/a/index.html.toml",
    ];
    for file in refused {
        bench.write(file, GOOD);
        let output = bench.run(&["run", file]).expect(2);
        output.warns("the name of an experiment comes from the path of its manifest");
    }
    assert!(!bench.path("results").exists());
    for file in ["Twice.toml", "experiments/twice.toml"] {
        bench.write(file, GOOD);
    }
    let output = bench.run(&["run", "Twice.toml", "experiments/twice.toml"]).expect(2);
    output.warns("differ only in upper and lower case");
    assert!(!bench.path("results").exists());
    bench.compute(&["Twice.toml"]);
    let output = bench.run(&["run", "experiments/twice.toml"]).expect(2);
    output.warns("\"Twice\", which has results in results,");
    bench.compute(&["Twice.toml"]);
}

#[test]
fn too_many_threads_are_not_started() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    for threads in ["0", "1025", "20000"] {
        let output = bench.run(&["run", "good.toml", "--threads", threads]).expect(2);
        let text = format!("error: --threads must be from 1 to 1024, not {threads}\n");
        assert_eq!(output.err, text);
    }
    assert!(!bench.path("results").exists());
}

#[test]
fn figures_that_would_mislead() {
    let winners = "[[figure.winners]]\nx = \"local-steps\"\ny = \"discount\"";
    let text = GOOD.replace("[[figure.convergence]]\npanels = [\"local-steps\"]", winners);
    let mixed = text.replace("clients = 3", "clients = [3, 4]");
    insta::assert_snapshot!("winners_of_mixed_cells", messages(&mixed, &[]));
    let twice = GOOD.replace("[\"local-steps\"]", "[\"local-steps\", \"local-steps\"]");
    insta::assert_snapshot!("repeated_panel", messages(&twice, &[]));
    let same = format!(
        "{GOOD}\n[[algorithm.scafflsa]]\nlabel = \"FedLSA\"\nstep-size = 0.1\nlocal-steps = 1\n"
    );
    insta::assert_snapshot!("one_label_for_two", messages(&same, &[]));
}

#[test]
fn numbers_and_texts() {
    insta::assert_snapshot!("exponent", message("rounds = 5", "rounds = 1e4"));
    insta::assert_snapshot!("budget_below_a_round", message("rounds = 5", "local-steps = 1"));
    let analysis = |text: &str| message("seed = 1", &format!("seed = 1\nanalysis = '{text}'"));
    insta::assert_snapshot!("analysis_names_no_cell", analysis("{{ mean(cell(\"Fed\")) }}"));
    insta::assert_snapshot!("analysis_is_no_template", analysis("{{ mean("));
    let finding = |text: &str| message("seed = 1", &format!("seed = 1\nfinding = '{text}'"));
    insta::assert_snapshot!("finding_names_no_claim", finding("{{ holds(\"none\") }}It falls"));
    insta::assert_snapshot!("finding_ranges_over_no_claim", finding("{{ largest(\"none\") }}"));
}

#[test]
fn an_override_of_the_wrong_path() {
    insta::assert_snapshot!("set_wrong_path", messages(GOOD, &["--set", "problem.clients=20"]));
    insta::assert_snapshot!("set_without_path", messages(GOOD, &["--set", "clients=20"]));
}

/// The message about the good manifest with this claim.
fn about_claim(claim: &str) -> String {
    messages(&format!("{GOOD}\n{claim}"), &[])
}

macro_rules! claim_snapshots {
    ($($name:ident: $claim:literal;)*) => {
        $(#[test] fn $name() { insta::assert_snapshot!(stringify!($name), about_claim($claim)); })*
    };
}

claim_snapshots! {
    claim_on_unknown_label: "[[claim.less]]
id = \"a\"
statement = \"s\"
left = { label = \"FedLSB\" }
value = 1.0
";
    claim_on_unknown_setting: "[[claim.slope]]
id = \"a\"
statement = \"s\"
of = { local-step = 1 }
over = \"step-size\"
value = 1.0
margin = 0.1
";
    claim_that_asks_two_things: "[[claim.less]]
id = \"Not plain\"
statement = \"s\"
left = {}
value = 1.0
prediction = \"exact-moments\"
expected = \"refuted\"
figure = \"fig\"
";
    claim_on_what_is_not_recorded: "[[claim.matches]]
id = \"a\"
statement = \"s\"
of = { local-steps = { a = 1 } }
average = \"bias\"
prediction = \"first-order\"
margin = -0.1
order = 1.0
";
    claim_without_its_keys: "[[claim.reaches]]
id = \"a\"
statement = \"s\"
of = {}
reaching = { target = 0.0, cost = \"seconds\" }
";
}

/// A frontier alone, without runs.
const FRONTIER: &str = r#"title = "t"
seed = 1
replicates = 1
problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }

[[frontier]]
id = "least"
clients = [2, 10]
targets = [0.5, 0.2]
step-size = { from = 1e-3, to = 1.0, points = 10 }
budgets = [4.0]
"#;

macro_rules! frontier_snapshots {
    ($($name:ident: $from:literal => $to:literal;)*) => {
        $(#[test] fn $name() {
            let text = edited(FRONTIER, &[($from, $to)]);
            insta::assert_snapshot!(stringify!($name), messages(&text, &[]));
        })*
    };
}

frontier_snapshots! {
    frontier_of_curved_problem: "problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }" =>
        "problem.logistic = { dimension = 2, clients = 2, records = 20, data = { noisy = { spread = 1.0 } }, l2 = 0.1 }";
    frontier_of_markovian_noise: "problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }" =>
        "problem.garnet = { states = 6, actions = 2, branching = 3, features = 2, discount = 0.9, clients = 2, heterogeneity = { independent = {} }, noise = { markov = { burn-in = 5 } } }";
    frontier_above_the_start: "targets = [0.5, 0.2]" => "targets = { from = 0.1, to = 1.5, points = 3 }";
    frontier_of_half_types: "clients = [2, 10]" => "clients = [2, 5]";
    frontier_without_prices: "budgets = [4.0]" => "price-ratios = []";
    frontier_budget_below_zero: "budgets = [4.0]" => "budgets = [-0.5]";
    frontier_of_one_step_size: "{ from = 1e-3, to = 1.0, points = 10 }" => "{ from = 1.0, to = 1.0, points = 1 }";
    frontier_with_unknown_key: "{ from = 1e-3, to = 1.0, points = 10 }" => "{ from = 1e-3, to = 1.0, ponts = 10 }";
    frontier_of_unknown_algorithm: "clients = [2, 10]" => "algorithms = [\"fedavgg\"]";
    frontier_start_of_no_runs: "budgets = [4.0]" => "start = \"runs\"";
    frontier_over_an_axis: "dimension = 2," => "dimension = [2, 3],";
    frontier_claims: "budgets = [4.0]" => "budgets = [4.0]
[[claim.frontier-slope]]
id = \"a\"
statement = \"s\"
frontier = \"lest\"
of = { algorithm = \"sgd\" }
value = -1.0
margin = 0.1
[[claim.frontier-less]]
id = \"b\"
statement = \"s\"
of = { algorithm = \"scaffold-rr\", clients = [3], budgets = [3] }
quantity = \"cost\"
than = \"scaffold-rr\"
";
    phase_with_everything_wrong: "budgets = [4.0]" => "budgets = [4.0]
[[phase]]
id = \"Noise\"
frontier = \"lest\"
x = { over = \"noise\", values = { from = 1.0, to = 2.0, points = 300 } }
y = { over = \"noise\", values = { from = 1.0, to = 1.0, points = 1 } }
at = { noise = 1.0, kondition = 2.0, target = -1.0 }
boundaries = [{ label = \"a\", power = 1.0, through = [0.0, 1.0] }]
";
    phase_beyond_its_problems: "budgets = [4.0]" => "budgets = [4.0]
[[phase]]
id = \"both\"
x = { over = \"target\", values = { from = 0.1, to = 0.01, points = 3 } }
y = { over = \"hessian-heterogeneity\", values = { from = 0.1, to = 2.0, points = 3 } }
[[phase]]
id = \"least\"
x = { over = \"target\", values = { from = 0.1, to = 1.0, points = 3 } }
y = { over = \"price\", values = { from = 1.0, to = 2.0, points = 3 } }
[[claim.phase-less]]
id = \"a\"
statement = \"s\"
phase = \"boths\"
algorithm = \"sgd\"
than = \"sgd\"
x = [2.0, 1.0]
";
    phase_of_unknown_number: "budgets = [4.0]" => "budgets = [4.0]
[[phase]]
id = \"both\"
x = { over = \"noize\", values = { from = 0.1, to = 0.01, points = 3 } }
y = { over = \"price\", values = { from = 1.0, to = 2.0, points = 3 } }
";
    nothing_to_run: "[[frontier]]" => "[[frontie]]";
}
