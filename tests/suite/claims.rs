//! Claims that the program once decided wrongly, driven as a user drives it.

use crate::support::markup::blocks;
use crate::support::{Bench, array, edited, root};

/// A quadratic, to which each test adds its algorithms and claims.
const BASE: &str = r#"title = "t"
seed = 1
replicates = 10
problem.quadratic = { dimension = 3, clients = 4, spectrum = { from = 0.5, to = 1.5 }, gradient-heterogeneity = 1.0, noise = 1.0 }
start.offset = 1.0
budget.rounds = 20
"#;

/// Unequal curvatures and an exact oracle: what a run computes is no draw of it.
const EXACT: (&str, &str) =
    ("noise = 1.0 }", "hessian-heterogeneity = 0.3, noise = 1.0 }\noracle = \"exact\"");

/// Two algorithms at two step sizes.
const PLAIN: &str = "
[[algorithm.fedavg]]
step-size = [0.05, 0.1]
local-steps = 2
[[algorithm.scaffold]]
step-size = [0.05, 0.1]
local-steps = 2
";

/// What became of a manifest's claims.
struct Judged {
    verdicts: Vec<(String, String)>,
    /// Estimates in the same order.
    estimates: Vec<f64>,
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

    /// The estimate of a claim.
    #[track_caller]
    fn estimate(&self, id: &str) -> f64 {
        self.estimates[self.verdicts.iter().position(|(own, _)| own == id).unwrap()]
    }

    /// The estimates of a claim, cell by cell or round by round, as the page shows them.
    #[track_caller]
    fn parts(&self, id: &str) -> Vec<String> {
        let head = format!("<summary>Each cell of {id}</summary>");
        let table = self.page.split(&head).nth(1).unwrap_or_else(|| panic!("{}", self.page));
        let rows = table.split("</details>").next().unwrap().lines().filter(|l| l.starts_with('|'));
        let second = |row: &str| row.split('|').nth(2).unwrap().trim().to_owned();
        rows.skip(2).map(second).collect()
    }

    /// The claims of the page.
    fn claims(&self) -> &str {
        self.page.split("## Claims").nth(1).unwrap().split("\n## ").next().unwrap()
    }
}

fn judged(text: &str) -> Judged {
    let bench = Bench::ran(text);
    let output = bench.run(&["report"]);
    assert!([0, 1].contains(&output.code), "{}", output.err);
    let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
    let text = |claim: &toml::Value, key: &str| claim[key].as_str().unwrap().to_owned();
    let claims = record.get("claim").and_then(|claims| claims.as_array());
    let verdicts =
        claims.into_iter().flatten().map(|c| (text(c, "id"), text(c, "verdict"))).collect();
    let estimate = |claim: &toml::Value| claim["estimate"].as_float().unwrap();
    let estimates = claims.into_iter().flatten().map(estimate).collect();
    let page = bench.read("reports/m/report.md");
    Judged { verdicts, estimates, page, err: output.err, code: output.code }
}

/// The base with changes, algorithms and claims.
fn judged_with(changes: &[(&str, &str)], rest: &str) -> Judged {
    judged(&(edited(BASE, changes) + rest))
}

/// Entries of one kind of algorithm, each by the keys that it adds to those that all share.
fn algorithms(kind: &str, shared: &str, own: &[&str]) -> String {
    let entries = own.iter().map(|own| format!("{{ {shared}{own} }}"));
    format!("algorithm.{kind} = {}\n", array(entries))
}

/// A claim by its keys.
fn claim(kind: &str, id: &str, keys: &str) -> String {
    format!("[[claim.{kind}]]\nid = \"{id}\"\nstatement = \"s\"\n{keys}\n")
}

/// That the left side is so many times the right one, at most (`less`) or at least.
fn factor(kind: &str, id: &str, [left, right]: [&str; 2], factor: f64) -> String {
    let sides = format!("left = {{ label = \"{left}\" }}\nright = {{ label = \"{right}\" }}");
    claim(kind, id, &format!("{sides}\nfactor = {factor:?}"))
}

/// The second cell of B diverges: its mean is infinite, in both directions of a comparison.
#[test]
fn a_diverged_cell_is_not_left_out() {
    let each = "step-size = [0.001, 0.5], local-steps = 1, ";
    let entries = ["label = \"A\"", "label = \"B\", server-step = 100.0"];
    let reaching = "of = { label = \"B\" }\nreaching = { target = 1e-3 }\nwithin = 200";
    let rest = algorithms("fedavg", each, &entries)
        + &factor("at-least", "at-least", ["A", "B"], 0.5)
        + &factor("less", "less", ["B", "A"], 2.0)
        + &claim("reaches", "reaches", reaching);
    let changes = [("noise = 1.0", "noise = 0.01"), ("rounds = 20", "rounds = 200")];
    let judged = judged_with(&changes, &rest);
    judged.expect("at-least", "refuted").expect("less", "refuted").expect("reaches", "refuted");
    assert_eq!(judged.code, 1);
}

/// FedLin comes down to exactly 0 but for rounding, FedAvg to its bias.
#[test]
fn zero_is_a_mean() {
    let entries = ["step-size = 0.1", "step-size = 0.09, label = \"again\""];
    let rest = algorithms("fedavg", "local-steps = 5, ", &entries[..1])
        + &algorithms("fedlin", "local-steps = 5, ", &entries)
        + &factor("less", "above-zero", ["FedAvg", "FedLin"], 1.5)
        + &factor("at-least", "below", ["FedAvg", "FedLin"], 2.0)
        + &factor("less", "both-zero", ["FedLin", "again"], 0.5);
    let single = ("replicates = 10", "replicates = 1");
    let judged = judged_with(&[EXACT, single, ("rounds = 20", "rounds = 2000")], &rest);
    judged.expect("above-zero", "refuted").expect("below", "supported");
    judged.expect("both-zero", "supported");
}

/// At γ = 0.1 both algorithms come down to 0, which is compared with no limit; at γ = 1e-4 neither does. The claim has
/// one limit, and no upper one.
#[test]
fn a_part_of_two_zeros_has_no_limit_of_its_own() {
    let entries = ["local-steps = 5, label = \"A\"", "local-steps = 4, label = \"B\""];
    let rest = algorithms("fedlin", "step-size = [0.1, 1e-4], ", &entries)
        + &factor("at-least", "of-each", ["A", "B"], 0.1);
    let single = ("replicates = 10", "replicates = 1");
    let judged = judged_with(&[EXACT, single, ("rounds = 20", "rounds = 2000")], &rest);
    judged.expect("of-each", "supported");
    assert_eq!(judged.parts("of-each").len(), 2, "{}", judged.page);
    assert!(!judged.claims().contains("at most"), "{}", judged.claims());
}

/// FedProx without a proximal term is FedAvg to the bit: neither is less than the other.
#[test]
fn equal_sides_are_not_less() {
    let rest = algorithms("fedavg", "step-size = 0.1, local-steps = 5", &[""])
        + &algorithms("fedprox", "step-size = 0.1, local-steps = 5, proximal = 0.0", &[""])
        + &factor("less", "less", ["FedAvg", "FedProx"], 1.0)
        + &factor("less", "other-way", ["FedProx", "FedAvg"], 1.0)
        + &factor("less", "half", ["FedAvg", "FedProx"], 0.5)
        + &factor("less", "nearly", ["FedAvg", "FedProx"], 1.01)
        + &factor("at-least", "at-least", ["FedAvg", "FedProx"], 1.0)
        + &claim("less", "number", "left = { label = \"FedAvg\" }\nvalue = 10.0");
    let single = ("replicates = 10", "replicates = 1");
    for (changes, end) in [
        (&[][..], "more runs may decide it"),
        (&[EXACT, single][..], "no number of runs decides it"),
    ] {
        let judged = judged_with(changes, &rest);
        judged.expect("less", "inconclusive").expect("other-way", "inconclusive");
        judged.expect("half", "refuted").expect("nearly", "supported");
        judged.expect("at-least", "supported").expect("number", "supported");
        let claims = judged.claims();
        for text in [end, "neither is less than the other", "what is supported includes equality"] {
            assert!(claims.contains(text), "{text}: {claims}");
        }
        assert!(claims.contains("of FedAvg &lt; that of FedProx"), "{claims}");
    }
}

/// Over three instances of two runs each, a sample has three values, which are no runs.
#[test]
fn a_sample_over_instances_is_counted_in_instances() {
    let rest = algorithms("fedavg", "step-size = 0.1, local-steps = 5", &[""])
        + &algorithms("fedprox", "step-size = 0.1, local-steps = 5, proximal = 0.0", &[""])
        + &factor("less", "less", ["FedAvg", "FedProx"], 1.0);
    let text = edited(BASE, &[("replicates = 10", "replicates = 2\ninstances = 3")]) + &rest;
    let bench = Bench::ran(&text);
    let output = bench.run(&["report"]);
    assert!([0, 1].contains(&output.code), "{}", output.err);
    let page = bench.read("reports/m/report.md");
    for words in [
        "| tested | instances |",
        "more instances may decide it",
        "the two sides are equal in every instance of some part",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let claims = bench.read("reports/claims.md");
    assert!(claims.contains("| 3 instances |"), "{claims}");
}

/// An instance of its own for each replicate is random though the oracle is exact.
#[test]
fn instances_are_random() {
    let rest = algorithms("fedavg", "step-size = 0.1, local-steps = 5", &[""])
        + &claim("less", "below", "left = {}\nvalue = 1e-3")
        + &claim("at-least", "above", "left = {}\nvalue = 1e-3");
    let own = ("replicates = 10", "replicates = 2\ninstance = \"per-replicate\"");
    let judged = judged_with(&[EXACT, own, ("rounds = 20", "rounds = 50")], &rest);
    judged.expect("below", "inconclusive").expect("above", "inconclusive");
}

/// A cohort is drawn though the oracle is exact; the other side is fixed. One run
/// decides nothing.
#[test]
fn one_run_of_a_random_side_decides_nothing() {
    let entries = ["label = \"all\"", "label = \"some\", cohort = 2"];
    let rest = algorithms("fedavg", "step-size = 0.1, local-steps = 5, ", &entries)
        + &factor("less", "left", ["all", "some"], 10.0)
        + &factor("at-least", "right", ["some", "all"], 0.1);
    let single = ("replicates = 10", "replicates = 1");
    let judged = judged_with(&[EXACT, single, ("rounds = 20", "rounds = 50")], &rest);
    judged.expect("left", "inconclusive").expect("right", "inconclusive");
}

/// Runs that start at the limit and have no noise stay there but for rounding.
#[test]
fn rounding_refutes_nothing() {
    let rest = algorithms("fedavg", "step-size = 0.1, local-steps = 1", &[""])
        + &algorithms("scaffold", "step-size = 0.1, local-steps = 1", &[""])
        + &factor("less", "below", ["FedAvg", "Scaffold"], 1.0)
        + &factor("at-least", "above", ["FedAvg", "Scaffold"], 1.0);
    for seed in 1..=6 {
        let judged = judged_with(
            &[
                ("seed = 1", &format!("seed = {seed}")),
                ("replicates = 10", "replicates = 3"),
                ("noise = 1.0", "noise = 0.0"),
                ("offset = 1.0", "limit = true"),
                ("rounds = 20", "rounds = 50"),
            ],
            &rest.replace("factor = 1.0\n", ""),
        );
        judged.expect("below", "supported").expect("above", "supported");
    }
}

#[test]
fn claims_that_say_nothing_are_errors() {
    let slope = "of = { label = \"FedAvg\" }\nover = \"step-size\"\nvalue = nan\nmargin = 0.1";
    let one = "{ label = \"FedAvg\" }";
    let mut cases = vec![("slope", slope.to_owned(), "`value` must be a finite number")];
    for value in ["nan", "inf", "0.0", "-1.0"] {
        let keys = format!("left = {{}}\nvalue = {value}");
        cases.push(("less", keys, "`value` must be a finite number above 0"));
    }
    for left in [one, "{}"] {
        let keys = format!("left = {left}\nright = {one}");
        cases.push(("at-least", keys, "compared with itself"));
    }
    for (kind, keys, message) in cases {
        let bench = Bench::new();
        bench.write("m.toml", format!("{BASE}{PLAIN}{}", claim(kind, "a", &keys)));
        bench.run(&["check", "m.toml"]).expect(2).warns(message).warns("m.toml:");
    }
}

/// B has no cell at 0.01 and A none at 0.2: the claim is not supported by 0.05 alone.
#[test]
fn cells_without_a_counterpart_are_untested() {
    let entries = [
        "label = \"A\", step-size = [0.05, 0.01]",
        "label = \"B\", step-size = [0.05, 0.2], server-step = 0.9",
    ];
    let rest = algorithms("fedavg", "local-steps = 2, ", &entries)
        + &factor("less", "less", ["A", "B"], 1000.0);
    let judged = judged_with(&[], &rest);
    judged.expect("less", "inconclusive");
    let untested = judged.page.matches("no cell of the other side has its settings").count();
    assert_eq!(untested, 2, "{}", judged.page);
}

/// A claim that cannot be tested, and one that is supported against expectation, fail a report
/// unless the manifest says so.
#[test]
fn unexpected_ends_fail_a_report() {
    let judged = |kind: &str, keys: &str| {
        judged_with(
            &[("replicates = 10", "replicates = 5")],
            &(PLAIN.to_owned() + &claim(kind, "a", keys)),
        )
    };
    let keys = "of = { label = \"FedAvg\" }\nprediction = \"contraction\"\nmargin = 0.1";
    let plain = judged("matches", keys);
    assert_eq!(plain.expect("a", "not tested").code, 1);
    assert!(plain.err.contains("the claim \"a\" is not tested ("), "{}", plain.err);
    let so = "expected = \"not-tested\"\nreason = \"it is of another quantity\"";
    let expected = judged("matches", &format!("{keys}\n{so}"));
    assert_eq!(expected.expect("a", "not tested").code, 0, "{}", expected.err);
    assert!(expected.page.contains("not tested, as expected"), "{}", expected.page);
    let so = "expected = \"refuted\"\nrefutes = \"reading\"\nreason = \"a wrong guess\"";
    let surprise = judged("less", &format!("left = {{}}\nvalue = 1e9\n{so}"));
    assert_eq!(surprise.expect("a", "supported").code, 1);
    assert!(surprise.err.contains("was expected to be refuted"), "{}", surprise.err);
}

/// A squared error is positive, and so are both ends of its interval.
#[test]
fn intervals_of_squares_are_positive() {
    let few = [("seed = 1", "seed = 3"), ("replicates = 10", "replicates = 2")];
    let judged = judged_with(&[few[0], few[1], ("noise = 1.0", "noise = 5.0")], PLAIN);
    let intervals = judged.page.matches("[-").count() + judged.page.matches("\\[-").count();
    assert_eq!(intervals, 0, "{}", judged.page);
    assert!(judged.page.contains("95 % interval"), "{}", judged.page);
}

/// README's experiment, as a reader would write it: its claim ends as the text says.
#[test]
fn the_claim_of_the_readme_is_supported() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = blocks(&readme);
    let judged = judged(blocks.iter().find(|block| block.text.starts_with("title")).unwrap().text);
    assert_eq!(judged.expect("scaffold-below", "supported").code, 0, "{}", judged.err);
}

/// Two algorithms at two step sizes: where neither side names an algorithm, each is
/// compared with itself, and a slope is of one algorithm.
#[test]
fn algorithms_are_not_mixed() {
    let pairs = "left = { step-size = 0.1 }\nright = { step-size = 0.05 }\nfactor = 2.0";
    let slopes = "of = {}\nover = \"step-size\"\nvalue = 0.0\nmargin = 2.0";
    let claims = claim("less", "pairs", pairs) + &claim("slope", "slopes", slopes);
    let judged = judged_with(&[], &(PLAIN.to_owned() + &claims));
    assert_eq!(judged.page.matches("must hold for each of 2;").count(), 2, "{}", judged.page);
}

/// A mean that is compared with a number is shown as a mean, what is tested as it was written,
/// and claims of several kinds in the order of the manifest.
#[test]
fn claims_are_shown_as_they_were_written() {
    let left = "left = { label = \"FedAvg\", step-size = 0.1 }";
    let rest = claim("at-least", "second-kind-first", &format!("{left}\nvalue = 1e-20"))
        + &claim("less", "first-kind", &format!("{left}\nvalue = 50.0"));
    let judged = judged_with(&[("noise = 1.0", "noise = 0.1")], &(PLAIN.to_owned() + &rest));
    let order: Vec<&str> = judged.verdicts.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(order, ["second-kind-first", "first-kind"]);
    let claims = judged.claims();
    assert!(claims.contains("≥ 1e-20"), "{claims}");
    let row = judged.page.lines().find(|l| l.starts_with("| FedAvg | 0.1 |")).unwrap();
    let mean = row.split('|').nth(3).unwrap().trim();
    let shown = claims.matches(&format!("| {mean} ")).count();
    assert_eq!(shown, 2, "the mean is {mean}: {claims}");
}

/// Of a claim on ten rounds the estimate is that nearest to the limit: not that of the largest p-value,
/// which is a round with a wide interval far below the bound, and is named as the least certain.
#[test]
fn the_estimate_is_the_nearest_to_the_limit() {
    let file = root().join("experiments/rr/contraction.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let judged = judged(&edited(&text, &[("replicates = 4000", "replicates = 1000")]));
    let first = |text: &String| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    for (id, place) in [("squares", "the nearest to"), ("distances", "the farthest beyond")] {
        let parts: Vec<f64> = judged.parts(id).iter().map(first).collect();
        let largest = parts.iter().fold(0.0, |a: f64, b| a.max(*b));
        assert_eq!(parts.len(), 10);
        assert!((judged.estimate(id) / largest - 1.0).abs() < 0.01, "{id}: {parts:?}");
        assert!(judged.claims().contains(&format!("{place} the limit")), "{}", judged.claims());
    }
    let least_certain = judged.claims().split("least certain is FedAvg, round ").nth(1).unwrap();
    assert!(!least_certain.starts_with("1:"), "{least_certain}");
}

/// Every kind of claim that is tested on a published bound has the table of bounds.
#[test]
fn a_claim_on_a_bound_of_any_kind_shows_the_bounds() {
    let fedavg = algorithms("fedavg", "step-size = 0.01, local-steps = 2", &[""]);
    let by = "prediction = \"scafflsa-a5\"";
    for (kind, keys) in [
        ("less", format!("left = {{}}\n{by}")),
        ("at-least", format!("left = {{}}\n{by}\nfactor = 1e-6")),
        ("matches", format!("of = {{}}\n{by}\nmargin = 0.5")),
        ("reaches", format!("of = {{}}\nreaching = {{ target = 1.0 }}\n{by}")),
    ] {
        let page = judged_with(&[], &(fedavg.clone() + &claim(kind, "bounded", &keys))).page;
        assert!(page.contains("## Published bounds"), "{kind}: {page}");
    }
    // That of a single claim, which tables otherwise do not have.
    let keys = "of = {}\nmargin = 0.5\nprediction = \"book-lemma51\"";
    let one_round = [("rounds = 20", "rounds = 1"), ("offset = 1.0", "offset = 0.0")];
    let page = judged_with(&one_round, &(fedavg.clone() + &claim("matches", "lemma", keys))).page;
    let bounds = page.split("## Published bounds").nth(1).unwrap_or_else(|| panic!("{page}"));
    assert!(bounds.contains("| BOOK, Lemma 5.1"), "{bounds}");
    let page = judged_with(&[], &(fedavg + &claim("less", "plain", "left = {}\nvalue = 9.0"))).page;
    assert!(!page.contains("## Published bounds"), "{page}");
}

/// Without noise a verdict is no matter of probability: there is neither a p-value nor an interval.
#[test]
fn exact_numbers_have_no_p_value() {
    let rest = PLAIN.to_owned() + &claim("less", "below", "left = {}\nvalue = 50.0");
    let exact = judged_with(&[EXACT, ("replicates = 10", "replicates = 1")], &rest);
    let claims = exact.expect("below", "supported").claims();
    assert!(claims.contains("1 claim, on exact numbers"), "{claims}");
    assert!(claims.contains("| 1 | – |"), "a p-value: {claims}");
    assert!(!claims.contains("95 %") && !claims.contains("0.0001"), "{claims}");
    let noisy = judged_with(&[], &rest);
    let claims = noisy.expect("below", "supported").claims();
    assert!(claims.contains("95 % interval") && !claims.contains("| 10 | – |"), "{claims}");
}

/// A number of communications is a whole number, in tables and in texts.
#[test]
fn what_is_counted_is_a_whole_number() {
    let reaching = "of = { label = \"FedAvg\" }\nreaching = { target = 1.5 }\nwithin = 20";
    let finding =
        r#"{{ estimate("soon") }}, {{ mean(cell("FedAvg", step_size=0.1), of="communications") }}"#;
    let seed = format!("seed = 1\nfinding = '''{finding}'''");
    let changes = [("seed = 1", &*seed), ("noise = 1.0", "noise = 0.1")];
    let rest = PLAIN.to_owned() + &claim("reaches", "soon", reaching);
    let judged = judged_with(&changes, &rest);
    let parts = judged.expect("soon", "supported").parts("soon");
    assert_eq!(parts.len(), 2);
    parts.iter().for_each(|part| assert!(!part.contains('.'), "{part}"));
    let largest = judged.estimate("soon");
    assert!(largest.fract() == 0.0 && (2.0..20.0).contains(&largest), "{largest}");
    let heading = judged.page.lines().find(|line| line.starts_with("# ")).unwrap();
    assert!(heading.starts_with(&format!("# {largest}")), "{heading}");
    assert!(heading.ends_with(", 20") && !heading.contains('.'), "{heading}");
}

/// One-dimensional logistic regression on which the bias, which comes from noise and curvature and is not
/// divided by N, is far larger than the deviation.
const BIASED: &str = include_str!("../manifests/biased.toml");

/// Where no limit is known, a variance is computed around the mean if runs store it, and has the name of
/// what it is if they do not.
#[test]
fn a_variance_without_a_limit_is_around_the_mean_or_is_called_a_squared_error() {
    let around_mean = judged(BIASED);
    let around_optimum = judged(&edited(BIASED, &[("\"bias\", ", "")]));
    let [variance, error] = ["variance", "error"].map(|id| around_mean.estimate(id));
    assert!(0.0 < variance && variance < 0.2 * error, "{variance} beside {error}");
    let [square, error] = ["variance", "error"].map(|id| around_optimum.estimate(id));
    assert!((0.8 * error..1.25 * error).contains(&square), "{square} beside {error}");
    let (covariance, error) = ("tr Cov θ", "E‖θ − θ\\*‖²");
    for (judged, own, other) in
        [(&around_mean, covariance, error), (&around_optimum, error, covariance)]
    {
        assert!(judged.claims().contains(&format!("{own} of every cell")), "{}", judged.claims());
        assert!(judged.page.contains(&format!("{own}, from averages")), "{}", judged.page);
        assert!(judged.page.contains(&format!("- {own}: ")), "{}", judged.page);
        assert!(!judged.page.contains(other), "{}", judged.page);
    }
}
