//! The pages about all experiments: each experiment once, smoke experiments apart.

use crate::support::{Bench, TINY, edited};

/// Experiments with and without a question, with and without claims, and one that tests.
fn bench() -> Bench {
    let bench = Bench::new();
    let claim = |more: &str| {
        format!(
            "[[claim.less]]\nid = \"c\"\nstatement = \"small\"\nleft = {{ label = \"FedAvg\" }}\n{more}\n"
        )
    };
    let asks = |question: &str| {
        let keys = format!("title = \"t\"\nquestion = \"{question}\"");
        edited(TINY, &[("title = \"t\"", &keys), ("replicates = 1", "replicates = 20")])
    };
    let refuted =
        "value = 1e-9\nexpected = \"refuted\"\nrefutes = \"reading\"\nreason = \"it is not\"";
    for (name, text) in [
        ("a/one", asks("Does it work?")),
        (
            "a/two",
            edited(TINY, &[("replicates = 1", "replicates = 20")])
                + &claim("value = 1e9\nsource = \"RR, Theorem 3\""),
        ),
        ("b/three", asks("Is it fast?")),
        ("b/four", asks("Does it work?") + &claim(refuted)),
        ("smoke/five", asks("Does it work?") + &claim("value = 1e9")),
    ] {
        let file = format!("experiments/{name}.toml");
        bench.write(&file, text);
        bench.compute(&[&file]);
    }
    bench
}

#[test]
fn every_experiment_is_on_one_page_once_below_its_question() {
    let bench = bench();
    bench.report();
    let index = bench.read("reports/README.md");
    let smoke = bench.read("reports/smoke.md");
    let begin = "# exactfed runs federated optimisation algorithms and compares them with exact theory\n\n4 experiments, 2 claims: 1 supported; expected to fail: 1 refuted. ";
    assert!(index.starts_with(begin), "{index}");
    assert!(smoke.starts_with("# 1 smoke experiment, 1 claim: 1 supported\n"), "{smoke}");
    let groups: Vec<&str> = index.split("\n## ").skip(1).collect();
    let expected = [
        ("Does it work?", &["a/one", "b/four"][..]),
        ("Is it fast?", &["b/three"]),
        ("Further experiments", &["a/two"]),
    ];
    assert_eq!(groups.len(), expected.len(), "{index}");
    for (group, (question, names)) in groups.iter().zip(expected) {
        assert!(group.starts_with(question), "{group}");
        let rows: Vec<&str> = group.lines().filter(|line| line.starts_with("| [")).collect();
        assert_eq!(rows.len(), names.len(), "{group}");
        for (row, name) in rows.iter().zip(names) {
            assert!(row.contains(&format!("]({name}/report.md)")), "{row}");
        }
    }
    let [index, smoke] =
        ["index", "smoke"].map(|p| bench.read(&format!("reports/{p}.html")).replace("&#x2f;", "/"));
    for name in ["a/one", "a/two", "b/three", "b/four"] {
        let heading = format!("<h3><a href=\"{name}/report.html\">");
        assert_eq!((index.matches(&heading).count(), smoke.matches(&heading).count()), (1, 0));
    }
    let heading = "<h3><a href=\"smoke/five/report.html\">";
    assert_eq!((index.matches(heading).count(), smoke.matches(heading).count()), (0, 1));
    assert_eq!(index.matches("class=\"thumb\"").count(), 4, "every card has its miniature");
    for page in ["claims.md", "claims.html"] {
        let text = bench.read(&format!("reports/{page}")).replace("&#x2f;", "/");
        assert!(
            text.contains("Mangold et al. 2025 (RR)") && !text.contains("smoke/five"),
            "{page}"
        );
    }
}

/// The page of smoke experiments comes and goes with them.
#[test]
fn smoke_experiments_alone_are_the_index() {
    let bench = bench();
    bench.report();
    assert!(bench.read("reports/index.html").contains("href=\"smoke.html\""));
    for folder in ["results/a", "results/b"] {
        std::fs::remove_dir_all(bench.path(folder)).unwrap();
    }
    bench.report();
    let index = bench.read("reports/README.md");
    assert!(index.contains("\n\n1 experiment, 1 claim: 1 supported.\n"), "{index}");
    assert!(index.contains("(smoke/five/report.md)") && !index.contains("smoke.md"), "{index}");
    assert!(!bench.path("reports/smoke.html").exists() && !bench.path("reports/smoke.md").exists());
    assert!(!bench.read("reports/index.html").contains("smoke.html"));
}

/// A page has links to what there is, and to nothing else.
#[test]
fn pages_link_to_the_pages_that_exist() {
    let links = |bench: &Bench, page: &str| {
        let text = bench.read(&format!("reports/{page}")).replace("&#x2f;", "/");
        let nav = text.split("<nav class=\"pages\"").nth(1).unwrap().split("</nav>").next();
        let links = nav.unwrap().split("href=\"").skip(2).map(|l| l.split('"').next().unwrap());
        links.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let claims = bench();
    claims.report();
    assert_eq!(links(&claims, "a/one/report.html"), "../../index.html ../../claims.html");
    assert_eq!(links(&claims, "index.html"), "index.html claims.html");
    let own = Bench::ran(TINY);
    own.report();
    assert_eq!(links(&own, "m/report.html"), "../index.html");
    for page in ["claims", "disagreements", "coverage", "errata", "which-algorithm"] {
        assert!(!own.path(&format!("reports/{page}.html")).exists(), "{page}");
    }
    assert!(!own.read("reports/index.html").contains("0 claims"));
}

/// Pages of an earlier report are overwritten where the list of them is gone, as in a clone of a
/// repository; others are not.
#[test]
fn pages_are_known_without_their_list() {
    let bench = bench();
    bench.report();
    let list = bench.path("reports/.exactfed-reports");
    for page in ["README.md", "claims.md", "smoke.md", "smoke.html"] {
        let text = bench.read(&format!("reports/{page}"));
        bench.write(&format!("reports/{page}"), format!("{text}\nan older line\n"));
    }
    std::fs::remove_file(&list).unwrap();
    bench.report();
    assert!(!bench.read("reports/smoke.md").contains("an older line"));
    std::fs::remove_file(&list).unwrap();
    bench.write("reports/smoke.md", "# mine\n");
    bench.run(&["report", "--quiet"]).expect(2).warns("smoke.md: was not written by");
    assert_eq!(bench.read("reports/smoke.md"), "# mine\n");
}
