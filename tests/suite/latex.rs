//! `report --format latex`: what it writes, and that it compiles.

use crate::support::process::Program;
use crate::support::{Bench, DIVERGING};

fn reported(change: impl Fn(&str) -> String) -> Bench {
    let bench = Bench::with_smoke(&["diverging"]);
    bench.write(DIVERGING, change(&bench.read(DIVERGING)));
    bench.compute(&[DIVERGING]);
    bench.run(&["report", "--quiet", "--format", "latex"]).expect(0);
    bench
}

#[test]
fn latex_of_a_page_with_divergence() {
    let bench = reported(str::to_owned);
    let read = |file: &str| bench.read(&format!("reports/smoke/diverging/{file}"));
    insta::assert_snapshot!("diverging_tables", read("tables.tex"));
    insta::assert_snapshot!("diverging_all", read("all.tex"));
    insta::assert_snapshot!("diverging_figure", read("figures/convergence.tex"));
}

/// Only what was asked for is written.
#[test]
fn formats_are_written_as_asked() {
    let bench = reported(str::to_owned);
    let page = |file: &str| bench.path(&format!("reports/smoke/diverging/{file}")).exists();
    assert!(page("all.tex") && !page("report.md") && !page("report.html"));
    assert!(!bench.path("reports/index.html").exists());
    let text = bench.run(&["report", "--format", "md,html"]).expect(0);
    assert!(page("report.md") && page("report.html"), "{}", text.err);
    bench.run(&["report", "--format", "docx"]).expect(2).warns("latex");
}

/// A manifest's text cannot become a command, and compiles, where there is a compiler.
#[test]
fn all_of_it_compiles() {
    let text = r#"title = '\input{x} 5% & #1 {a_b} ~ ^ $x$ <θ̄> ‖²‖ ☃"#;
    let hostile = |manifest: &str| manifest.replacen("title = \"", &format!("{text}'\n#"), 1);
    let stability =
        "\n[[figure.stability]]\n\n[[figure.winners]]\nx = \"step-size\"\ny = \"clients\"\n";
    let bench = reported(|m| format!("{}{stability}", hostile(m)));
    let folder = bench.path("reports/smoke/diverging");
    let all = bench.read("reports/smoke/diverging/all.tex");
    assert!(!all.contains(r"\input{x}") && all.contains(r"\textbackslash{}input\{x\}"), "{all}");
    assert!(all.is_ascii(), "{all}");
    for figure in ["convergence", "stability", "winners"] {
        assert!(folder.join(format!("figures/{figure}.tex")).exists());
    }
    let arguments = ["-interaction=nonstopmode", "-halt-on-error", "all.tex"];
    match Program::new("pdflatex").args(arguments).folder(&folder).try_start() {
        Ok(running) => {
            let output = running.finish();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && folder.join("all.pdf").exists(), "{text}");
        }
        Err(_) => println!("there is no pdflatex here: compiling is skipped"),
    }
}
