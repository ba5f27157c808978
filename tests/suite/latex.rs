//! `report --format latex`: what it writes, and that it compiles.

use crate::support::process::Program;
use crate::support::{Bench, DIVERGING};

const FOLDER: &str = "reports/smoke/diverging";

fn reported(change: impl Fn(&str) -> String) -> Bench {
    let bench = Bench::with_smoke(&["diverging"]);
    bench.write(DIVERGING, change(&bench.read(DIVERGING)));
    bench.compute(&[DIVERGING]);
    bench.run(&["report", "--quiet", "--format", "latex"]).expect(0);
    bench
}

/// Only what was asked for is written, and what an earlier version wrote is removed.
#[test]
fn tables_of_a_page_with_divergence() {
    let bench = reported(str::to_owned);
    insta::assert_snapshot!("diverging_tables", bench.read(&format!("{FOLDER}/tables.tex")));
    let page = |file: &str| bench.path(&format!("{FOLDER}/{file}")).exists();
    assert!(!page("report.md") && !page("report.html"));
    assert!(!bench.path("reports/index.html").exists());

    let obsolete = ["all.tex", "figures/convergence.tex"];
    let list = bench.read("reports/.exactfed-reports");
    let lines = obsolete.map(|file| format!("smoke/diverging/{file}\n"));
    bench.write("reports/.exactfed-reports", list + &lines.concat());
    obsolete.iter().for_each(|file| bench.write(&format!("{FOLDER}/{file}"), "of pgfplots"));
    bench.write(&format!("{FOLDER}/figures/mine.tex"), "mine");
    let text = bench.run(&["report", "--format", "md,html"]).expect(0);
    assert!(page("report.md") && page("report.html"), "{}", text.err);
    assert!(obsolete.iter().all(|file| !page(file)) && page("figures/mine.tex"));
    bench.run(&["report", "--format", "docx"]).expect(2).warns("latex");
}

/// A manifest's text cannot become a command, and compiles, where there is a compiler.
#[test]
fn tables_compile() {
    let text = r#"title = '\input{x} 5% & #1 {a_b} ~ ^ $x$ <θ̄> ‖²‖ ☃"#;
    let bench = reported(|manifest| manifest.replacen("title = \"", &format!("{text}'\n#"), 1));
    let tables = bench.read(&format!("{FOLDER}/tables.tex"));
    assert!(!tables.contains(r"\input{x}"), "{tables}");
    assert!(tables.contains(r"\textbackslash{}input\{x\}") && tables.is_ascii(), "{tables}");
    let document = "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage[utf8]{inputenc}\n\
                    \\usepackage{amsmath,amssymb,booktabs,graphicx}\n\\begin{document}\n\\input{tables}\n\\end{document}\n";
    bench.write(&format!("{FOLDER}/paper.tex"), document);
    let arguments = ["-interaction=nonstopmode", "-halt-on-error", "paper.tex"];
    match Program::new("pdflatex").args(arguments).folder(bench.path(FOLDER)).try_start() {
        Ok(running) => {
            let output = running.finish();
            let text = String::from_utf8_lossy(&output.stdout);
            let is_written = bench.path(&format!("{FOLDER}/paper.pdf")).exists();
            assert!(output.status.success() && is_written, "{text}");
        }
        Err(_) => println!("there is no pdflatex here: compiling is skipped"),
    }
}
