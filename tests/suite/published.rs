//! Published experiments of other groups: claims on numbers in a file, and the page that lists such experiments.

use crate::support::{Bench, edited};

/// One client whose loss is ‖θ‖²/2 in one dimension: from 1, a local step of 0.1 in each round leaves a squared error of
/// 0.81^t after t rounds.
const POWERS: &str = r#"title = "Powers"
seed = 1
replicates = 1
oracle = "exact"
problem.quadratic = { dimension = 1, clients = 1, spectrum = { from = 1.0, to = 1.0 }, noise = 0.0 }
start.offset = 1.0
budget.rounds = 4
record.every = 1

[published]
authors = "Doe and Roe 1999"
paper = "Powers, Journal of *Powers*"
what = "Three squared errors, table 2"
code = "example.org/powers, commit 1234567"
slip = "The table calls 0.81 its square root."

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 1

[[claim.published]]
id = "table"
statement = "The table comes out again"
file = "table.csv"
decimals = 3
"#;

/// The manifest without what says that it runs a published experiment again.
fn without_published() -> String {
    let begin = POWERS.find("[published]").unwrap();
    let algorithm = POWERS.find("[[algorithm").unwrap();
    let claim = POWERS.find("[[claim").unwrap();
    format!("{}{}", &POWERS[..begin], &POWERS[algorithm..claim])
}

/// A folder in which the manifest was run with these published numbers.
fn ran_with(numbers: &str) -> Bench {
    let bench = Bench::new();
    bench.write("table.csv", numbers);
    bench.write("m.toml", POWERS);
    bench.compute(&["m.toml"]);
    bench
}

const TABLE: &str = "label,round,value\nFedAvg,1,0.81\nFedAvg,2,0.656\nFedAvg,4,0.43\n";

/// The pages say what was published and by how much the farthest number differs, also without the manifest and its
/// file: results have copies of both.
#[test]
fn pages_compare_published_numbers() {
    let bench = ran_with(TABLE);
    for file in ["table.csv", "m.toml"] {
        std::fs::remove_file(bench.path(file)).unwrap();
    }
    bench.report();
    let page = bench.read("reports/m/report.md");
    // 0.81⁴ = 0.43046721 is by 0.109 % above 0.43.
    assert!(page.contains("| **supported** | The table comes out again | 1.09e-3 |"), "{page}");
    assert!(
        page.contains("equals 3 published numbers of table.csv, up to half a unit of decimal 3")
    );
    let own =
        "## The published experiment\n\n- Paper: Doe and Roe 1999: Powers, Journal of \\*Powers\\*";
    assert!(page.contains(own), "{page}");
    let list = bench.read("reports/published.md");
    let row = "| [Doe and Roe 1999](m/report.md): Powers, Journal of \\*Powers\\* | Three squared errors, table 2 (example.org/powers, commit 1234567) | The table comes out again | 1.09e-3 | **supported** |";
    assert!(list.contains(row), "{list}");
    assert!(
        list.contains("- [Doe and Roe 1999](m/report.md): The table calls 0.81 its square root."),
        "{list}"
    );
    let index = bench.read("reports/README.md");
    let link =
        "[Published experiments of other groups, run again](published.md): Doe and Roe 1999.";
    assert!(index.contains(link), "{index}");
    let html = bench.read("reports/published.html");
    assert!(html.contains("href=\"published.html\" aria-current=\"page\""), "{html}");
    assert!(html.contains("Journal of *Powers*") && html.contains("m/report.html#claim-table"));
}

/// The index names experiments that `reproduce` does not run, since they need a data set or Python: each author once, and
/// without those that it names already. Their algorithms may be unknown.
#[test]
fn the_index_names_published_experiments_elsewhere() {
    let bench = Bench::new();
    bench.write("experiments/table.csv", TABLE);
    bench.write("experiments/m.toml", POWERS);
    let elsewhere = |authors: &str| {
        POWERS.replace("Doe and Roe 1999", authors).replace("algorithm.fedavg", "algorithm.own")
    };
    bench.write("examples/others/a.toml", elsewhere("Poe 2001"));
    bench.write("examples/others/b.toml", elsewhere("Doe and Roe 1999"));
    bench.write("examples/others/c.toml", elsewhere("Poe 2001"));
    bench.write("examples/others/d.toml", without_published());
    bench.run(&["reproduce", "--quiet"]).expect(0);
    let index = bench.read("reports/README.md");
    let named = "(published.md): Doe and Roe 1999; [with a data set or Python](../examples/others/reports/published.md): Poe 2001.";
    assert!(index.contains(named), "{index}");
    let html = bench.read("reports/index.html");
    let begin = html.find("with a data set or Python, in examples").unwrap();
    assert!(html[begin..].contains("others: Poe 2001."), "{html}");
    bench.write("examples/others/b.toml", "title =");
    bench.run(&["reproduce"]).expect(2).warns("examples/others/b.toml");
}

#[test]
fn a_number_that_differs_refutes_the_claim() {
    let bench = ran_with(&TABLE.replace("0.43", "0.431"));
    let output = bench.run(&["report"]).expect(1);
    output.warns("the claim \"table\" is refuted");
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("| **refuted** | The table comes out again | -1.24e-3 |"), "{page}");
}

/// Neither the table nor the claim changes what is run, and without the table there is no page.
#[test]
fn published_numbers_change_no_cell() {
    let bench = ran_with(TABLE);
    bench.report();
    let other = Bench::ran(&without_published());
    other.report();
    assert_eq!(bench.ids("results/m"), other.ids("results/m"));
    assert!(!other.path("reports/published.md").exists());
    assert!(!other.read("reports/README.md").contains("other groups"));
}

#[test]
fn bad_files_are_reported_before_the_first_cell() {
    let bench = Bench::new();
    bench.write("m.toml", POWERS);
    bench.run(&["check", "m.toml"]).expect(2).warns("table.csv");
    for (numbers, message) in [
        ("label,value\nFedAvgg,0.81\n", "line 2 selects no cell: no cell has label = FedAvgg"),
        ("label,round,value\nFedAvg,5,0.81\n", "line 2 is of round 5, which is not recorded"),
        ("label,round,values\nFedAvg,1,0.81\n", "there is no column `value`"),
    ] {
        bench.write("table.csv", numbers);
        bench.run(&["plan", "m.toml"]).expect(2).warns(message).warns("m.toml:");
    }
    let decimals = edited(POWERS, &[("decimals = 3\n", "")]);
    bench.write("table.csv", TABLE);
    bench.write("m.toml", decimals);
    bench.run(&["check", "m.toml"]).expect(2).warns("write `margin`, `decimals` or both");
}
