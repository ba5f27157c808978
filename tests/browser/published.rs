//! Every page of `experiments/`, cut short to two replicates, in a browser: the first figure is on
//! the first screen, names and looks agree, and axe-core finds nothing.

use crate::access::{axe, violations};
use crate::driver::Browser;
use crate::support::{Bench, files_below, root};
use crate::{Page, drawings, names, number};
use serde_json::json;
use std::fs;
use std::path::Path;

/// How much of the first figure is on the first screen at least, in pixels.
const SHOWN: f64 = 120.0;

/// The pages of all experiments.
fn reports() -> Bench {
    let bench = Bench::new();
    let name = |file: &Path| file.strip_prefix(root()).unwrap().display().to_string();
    let files = files_below(&root().join("experiments"));
    files.iter().for_each(|file| bench.write(&name(file), fs::read(file).unwrap()));
    for manifest in files.iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let manifest = name(manifest);
        let mut arguments = vec![manifest.as_str(), "--replicates", "2"];
        if bench.read(&manifest).contains("\ninstances = ") {
            arguments.extend(["--set", "instances=2"]);
        }
        bench.compute(&arguments);
    }
    // Cut short, claims may be refuted.
    let output = bench.run(&["report", "--quiet"]);
    assert!(output.code <= 1, "{}", output.err);
    bench
}

/// Gives a page of few replicates the headline of the committed report.
fn show_committed_headline(page: &Page, name: &str) {
    let text = fs::read_to_string(root().join(format!("reports/{name}/report.md"))).unwrap();
    let (_, text) = text.split_once("\n# ").expect("a headline");
    let mut blocks = text.split("\n\n").filter(|block| !block.starts_with("> "));
    let (headline, line) = (blocks.next().unwrap(), blocks.next().unwrap_or_default());
    // A page without a line of its own goes on with a heading.
    let line = if line.starts_with('#') { "" } else { line };
    page.browser.run(
        "document.querySelector('h1').textContent = arguments[0];
         const line = document.querySelector('.finding-line') ?? document.querySelector('h1');
         if (arguments[1]) line.textContent = arguments[1];",
        json!([headline, line]),
    );
}

/// The first figure begins on the first screen of a desktop and of a phone.
fn check_first_screen(page: &Page, file: &Path, name: &str) {
    for (wide, high) in [(1400, 900), (390, 844)] {
        page.browser.size(wide, high);
        page.browser.open(file, "");
        show_committed_headline(page, name);
        drawings::settle(page);
        let top =
            page.ask("document.querySelector('.chart').getBoundingClientRect().top", json!([]));
        assert!(number(&top) + SHOWN < f64::from(high), "{name}, {wide} x {high}: {top}");
    }
}

#[test]
fn every_page_passes() {
    let Some(browser) = Browser::start() else { return };
    let axe = axe();
    let page = Page { browser, bench: reports() };
    let mut files = page.bench.files_below("reports");
    files.retain(|file| file.ends_with("report.html"));
    let reports = page.bench.path("reports");
    let (mut compared, mut labelled) = (0, 0);
    for file in &files {
        let name = file.parent().unwrap().strip_prefix(&reports).unwrap().display().to_string();
        if !name.starts_with("smoke/") {
            check_first_screen(&page, file, &name);
        }
        let (entries, labels) = names::check(&page, file);
        compared += entries;
        labelled += labels;
        for scheme in ["light", "dark"] {
            let Some(axe) = &axe else { continue };
            page.browser.media("screen", scheme);
            page.browser.size(1400, 900);
            page.browser.open(file, "");
            let found = violations(&page.browser, axe);
            assert!(found.is_empty(), "{name}, {scheme}: {found:#?}");
        }
    }
    assert!(files.len() > 40, "{} pages", files.len());
    assert!(compared > 400 && labelled > 400, "{compared} entries, {labelled} labels");
}
