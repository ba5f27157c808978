//! Claims that the program once decided wrongly, driven as a user drives it.

mod support;

use support::Bench;

/// A quadratic of three dimensions and four clients, with what each test adds.
fn manifest(head: &str, problem: &str, rest: &str) -> String {
    format!(
        "title = \"t\"\n{head}\n[problem.quadratic]\ndimension = 3\nclients = 4\n\
         spectrum = {{ from = 0.5, to = 1.5 }}\ngradient-heterogeneity = 1.0\n{problem}\n{rest}"
    )
}

/// What became of a manifest's claims.
struct Judged {
    verdicts: Vec<(String, String)>,
    page: String,
    err: String,
    code: i32,
}

impl Judged {
    #[track_caller]
    fn expect(&self, id: &str, verdict: &str) -> &Self {
        let found = self.verdicts.iter().find(|(own, _)| own == id);
        let found = found.map(|(_, verdict)| verdict.as_str());
        assert_eq!(found, Some(verdict), "{id}\n{}\n{}", self.err, self.page);
        self
    }
}

fn judged(text: &str) -> Judged {
    let bench = Bench::new();
    bench.write("m.toml", text);
    bench.run(&["run", "m.toml", "--quiet"]).expect(0);
    let said = bench.run(&["report"]);
    assert!([0, 1].contains(&said.code), "{}", said.err);
    let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
    let text = |claim: &toml::Value, key: &str| claim[key].as_str().unwrap().to_owned();
    let claims = record.get("claim").and_then(|claims| claims.as_array());
    let verdicts =
        claims.into_iter().flatten().map(|c| (text(c, "id"), text(c, "verdict"))).collect();
    Judged { verdicts, page: bench.read("reports/m/report.md"), err: said.err, code: said.code }
}

fn refused(text: &str) -> String {
    let bench = Bench::new();
    bench.write("m.toml", text);
    bench.run(&["check", "m.toml"]).expect(2).err
}

/// The second cell of B diverges: its mean is infinite, in both directions of a comparison.
#[test]
fn a_diverged_cell_is_not_left_out() {
    let rest = r#"
[start]
offset = 1.0

[budget]
rounds = 200

[[algorithm.fedavg]]
label = "A"
step-size = [0.001, 0.5]
local-steps = 1

[[algorithm.fedavg]]
label = "B"
step-size = [0.001, 0.5]
local-steps = 1
server-step = 100.0

[[claim.at-least]]
id = "at-least"
statement = "A is at least half of B"
left = { label = "A" }
right = { label = "B" }
factor = 0.5

[[claim.less]]
id = "less"
statement = "B is at most twice A"
left = { label = "B" }
right = { label = "A" }
factor = 2.0

[[claim.reaches]]
id = "reaches"
statement = "B comes down"
of = { label = "B" }
reaching = { target = 1e-3 }
within = 200
"#;
    let judged = judged(&manifest("seed = 1\nreplicates = 10", "noise = 0.01", rest));
    judged.expect("at-least", "refuted").expect("less", "refuted").expect("reaches", "refuted");
    assert_eq!(judged.code, 1);
}

/// FedLin comes down to exactly 0 but for rounding, FedAvg to its bias.
#[test]
fn zero_is_a_mean() {
    let rest = r#"
[start]
offset = 1.0

[budget]
rounds = 2000

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 5

[[algorithm.fedlin]]
step-size = 0.1
local-steps = 5

[[algorithm.fedlin]]
label = "again"
step-size = 0.09
local-steps = 5

[[claim.less]]
id = "above-zero"
statement = "FedAvg is at most one and a half times FedLin"
left = { label = "FedAvg" }
right = { label = "FedLin" }
factor = 1.5

[[claim.at-least]]
id = "below"
statement = "FedAvg is at least twice FedLin"
left = { label = "FedAvg" }
right = { label = "FedLin" }
factor = 2.0

[[claim.less]]
id = "both-zero"
statement = "0 is at most half of 0, but for rounding"
left = { label = "FedLin" }
right = { label = "again" }
factor = 0.5
"#;
    let head = "seed = 1\nreplicates = 1\noracle = \"exact\"";
    let judged = judged(&manifest(head, "hessian-heterogeneity = 0.3\nnoise = 1.0", rest));
    judged.expect("above-zero", "refuted").expect("below", "supported");
    judged.expect("both-zero", "supported");
}

/// An instance of its own for each replicate is random though the oracle is exact.
#[test]
fn instances_are_random() {
    let rest = r#"
[start]
offset = 1.0

[budget]
rounds = 50

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 5

[[claim.less]]
id = "below"
statement = "the error is at most 1e-3"
left = {}
value = 1e-3

[[claim.at-least]]
id = "above"
statement = "the error is at least 1e-3"
left = {}
value = 1e-3
"#;
    let head = "seed = 1\nreplicates = 2\noracle = \"exact\"\ninstance = \"per-replicate\"";
    let judged = judged(&manifest(head, "hessian-heterogeneity = 0.3\nnoise = 1.0", rest));
    judged.expect("below", "inconclusive").expect("above", "inconclusive");
}

/// A cohort is drawn though the oracle is exact; the other side is fixed. One run
/// decides nothing.
#[test]
fn one_run_of_a_random_side_decides_nothing() {
    let rest = r#"
[start]
offset = 1.0

[budget]
rounds = 50

[[algorithm.fedavg]]
label = "all"
step-size = 0.1
local-steps = 5

[[algorithm.fedavg]]
label = "some"
step-size = 0.1
local-steps = 5
cohort = 2

[[claim.less]]
id = "left"
statement = "all is at most ten times some"
left = { label = "all" }
right = { label = "some" }
factor = 10.0

[[claim.at-least]]
id = "right"
statement = "some is at least a tenth of all"
left = { label = "some" }
right = { label = "all" }
factor = 0.1
"#;
    let head = "seed = 1\nreplicates = 1\noracle = \"exact\"";
    let judged = judged(&manifest(head, "hessian-heterogeneity = 0.3\nnoise = 1.0", rest));
    judged.expect("left", "inconclusive").expect("right", "inconclusive");
}

/// Runs that start at the limit and have no noise stay there but for rounding.
#[test]
fn rounding_refutes_nothing() {
    let rest = r#"
[start]
limit = true

[budget]
rounds = 50

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 1

[[algorithm.scaffold]]
step-size = 0.1
local-steps = 1

[[claim.less]]
id = "below"
statement = "FedAvg is at most Scaffold"
left = { label = "FedAvg" }
right = { label = "Scaffold" }

[[claim.at-least]]
id = "above"
statement = "FedAvg is at least Scaffold"
left = { label = "FedAvg" }
right = { label = "Scaffold" }
"#;
    for seed in 1..=6 {
        let head = format!("seed = {seed}\nreplicates = 3");
        let judged = judged(&manifest(&head, "noise = 0.0", rest));
        judged.expect("below", "supported").expect("above", "supported");
    }
}

const PLAIN: &str = r#"
[start]
offset = 1.0

[budget]
rounds = 20

[[algorithm.fedavg]]
step-size = [0.05, 0.1]
local-steps = 2

[[algorithm.scaffold]]
step-size = [0.05, 0.1]
local-steps = 2
"#;

#[test]
fn values_that_say_nothing_are_errors() {
    for value in ["nan", "inf", "0.0", "-1.0"] {
        let claim = format!(
            "{PLAIN}\n[[claim.less]]\nid = \"a\"\nstatement = \"s\"\nleft = {{}}\nvalue = {value}\n"
        );
        let said = refused(&manifest("seed = 1\nreplicates = 2", "noise = 1.0", &claim));
        assert!(said.contains("`value` must be a finite number above 0"), "{value}: {said}");
        assert!(said.contains("m.toml:"), "{said}");
    }
    let claim = format!(
        "{PLAIN}\n[[claim.slope]]\nid = \"a\"\nstatement = \"s\"\nof = {{ label = \"FedAvg\" }}\n\
         over = \"step-size\"\nvalue = nan\nmargin = 0.1\n"
    );
    let said = refused(&manifest("seed = 1\nreplicates = 2", "noise = 1.0", &claim));
    assert!(said.contains("`value` must be a finite number"), "{said}");
}

#[test]
fn a_cell_compared_with_itself_is_an_error() {
    for (left, right) in
        [("{ label = \"FedAvg\" }", "{ label = \"FedAvg\" }"), ("{}", "{ label = \"FedAvg\" }")]
    {
        let claim = format!(
            "{PLAIN}\n[[claim.at-least]]\nid = \"a\"\nstatement = \"s\"\nleft = {left}\nright = {right}\n"
        );
        let said = refused(&manifest("seed = 1\nreplicates = 2", "noise = 1.0", &claim));
        assert!(said.contains("compared with itself"), "{said}");
    }
}

/// B has no cell at 0.01 and A none at 0.2: the claim is not supported by 0.05 alone.
#[test]
fn cells_without_a_counterpart_are_untested() {
    let rest = r#"
[start]
offset = 1.0

[budget]
rounds = 20

[[algorithm.fedavg]]
label = "A"
step-size = [0.05, 0.01]
local-steps = 2

[[algorithm.fedavg]]
label = "B"
step-size = [0.05, 0.2]
local-steps = 2
server-step = 0.9

[[claim.less]]
id = "less"
statement = "A is at most a thousand times B"
left = { label = "A" }
right = { label = "B" }
factor = 1000.0
"#;
    let judged = judged(&manifest("seed = 1\nreplicates = 10", "noise = 1.0", rest));
    judged.expect("less", "inconclusive");
    let untested = judged.page.matches("no cell of the other side has its settings").count();
    assert_eq!(untested, 2, "{}", judged.page);
}

/// A claim that cannot be tested, and one that is supported against expectation, fail a report
/// unless the manifest says so.
#[test]
fn unexpected_ends_fail_a_report() {
    let head = "seed = 1\nreplicates = 5";
    let claim = |rest: &str| {
        let text = format!(
            "{PLAIN}\n[[claim.matches]]\nid = \"a\"\nstatement = \"s\"\nof = {{ label = \"FedAvg\" }}\n\
             prediction = \"contraction\"\nmargin = 0.1\n{rest}"
        );
        judged(&manifest(head, "noise = 1.0", &text))
    };
    let plain = claim("");
    assert_eq!(plain.expect("a", "not tested").code, 1);
    assert!(plain.err.contains("the claim \"a\" is not tested ("), "{}", plain.err);
    let expected = claim("expected = \"not-tested\"\nreason = \"it is of another quantity\"");
    assert_eq!(expected.expect("a", "not tested").code, 0, "{}", expected.err);
    assert!(expected.page.contains("not tested, as expected"), "{}", expected.page);
    let text = format!(
        "{PLAIN}\n[[claim.less]]\nid = \"a\"\nstatement = \"s\"\nleft = {{}}\nvalue = 1e9\n\
         expected = \"refuted\"\nreason = \"a wrong guess\"\n"
    );
    let surprise = judged(&manifest(head, "noise = 1.0", &text));
    assert_eq!(surprise.expect("a", "supported").code, 1);
    assert!(surprise.err.contains("was expected to be refuted"), "{}", surprise.err);
}

/// A squared error is positive, and so are both ends of its interval.
#[test]
fn intervals_of_squares_are_positive() {
    let judged = judged(&manifest("seed = 3\nreplicates = 2", "noise = 5.0", PLAIN));
    let intervals = judged.page.matches("[-").count() + judged.page.matches("\\[-").count();
    assert_eq!(intervals, 0, "{}", judged.page);
    assert!(judged.page.contains("95 % interval"), "{}", judged.page);
}

/// README's experiment, as a reader would write it: its claim ends as the text says.
#[test]
fn the_claim_of_the_readme_is_supported() {
    let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let mut blocks = readme.split("```toml\n").skip(1).map(|b| b.split("```").next().unwrap());
    let manifest = blocks.find(|b| b.starts_with("title")).unwrap();
    let judged = judged(manifest);
    assert_eq!(judged.expect("scaffold-below", "supported").code, 0, "{}", judged.err);
}

/// Two algorithms at two step sizes: where neither side names an algorithm, each is
/// compared with itself, and a slope is of one algorithm.
#[test]
fn algorithms_are_not_mixed() {
    let claims = r#"
[[claim.less]]
id = "pairs"
statement = "Twice the step size at most doubles the error"
left = { step-size = 0.1 }
right = { step-size = 0.05 }
factor = 2.0

[[claim.slope]]
id = "slopes"
statement = "The error changes by less than a square"
of = {}
over = "step-size"
value = 0.0
margin = 2.0
"#;
    let rest = format!("{PLAIN}{claims}");
    let judged = judged(&manifest("seed = 1\nreplicates = 10", "noise = 1.0", &rest));
    assert_eq!(judged.page.matches("must hold for each of 2;").count(), 2, "{}", judged.page);
}

/// A mean that is compared with a number is shown as a mean, what is tested as it was written,
/// and claims of several kinds in the order of the manifest.
#[test]
fn claims_are_shown_as_they_were_written() {
    let rest = format!(
        "{PLAIN}\n[[claim.at-least]]\nid = \"second-kind-first\"\nstatement = \"It is not nothing\"\n\
         left = {{ label = \"FedAvg\", step-size = 0.1 }}\nvalue = 1e-20\n\
         [[claim.less]]\nid = \"first-kind\"\nstatement = \"It is at most 50\"\n\
         left = {{ label = \"FedAvg\", step-size = 0.1 }}\nvalue = 50.0\n"
    );
    let judged = judged(&manifest("seed = 1\nreplicates = 10", "noise = 0.1", &rest));
    let order: Vec<&str> = judged.verdicts.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(order, ["second-kind-first", "first-kind"]);
    let claims = judged.page.split("## Claims").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(claims.contains("≥ 1e-20"), "{claims}");
    let row = judged.page.lines().find(|l| l.starts_with("| FedAvg | 0.1 |")).unwrap();
    let mean = row.split('|').nth(3).unwrap().trim();
    let shown = claims.matches(&format!("| {mean} ")).count();
    assert_eq!(shown, 2, "the mean is {mean}: {claims}");
}
