//! Pages in a real browser: every control is used, and what it does is read off what
//! is drawn. `make browser` runs them, `make test` does not: they need Chromium, chromedriver,
//! axe-core in the file that AXE names, and the pages that `make reproduce` has written.

mod access;
mod appearance;
mod controls;
mod drawings;
mod driver;
mod files;
mod frontier;
mod gallery;
mod legend;
#[path = "../support/live_run.rs"]
mod live_run;
mod names;
mod numbers;
mod offline;
mod published;
mod ratios;
mod reading;
mod run_live;
mod sections;
mod site;
#[allow(dead_code)] // its command line
#[path = "../../tools/src/bin/site.rs"]
mod site_builder;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use driver::Browser;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use support::Bench;

const PROBE: &str = include_str!("probe.js");

/// The test page in a browser.
struct Page {
    browser: Browser,
    bench: Bench,
}

/// A bench with the reports of the manifest that has everything, which are made once.
fn reports() -> Bench {
    static MADE: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
        let bench = Bench::new();
        bench.write("experiments/browser/page.toml", include_str!("page.toml"));
        bench.compute(&["experiments/browser/page.toml"]);
        bench.report();
        bench.contents("")
    });
    let bench = Bench::new();
    MADE.iter().for_each(|(name, bytes)| bench.write(name, bytes));
    bench
}

/// The page, open.
fn page() -> Page {
    let browser = Browser::start();
    let page = Page { browser, bench: reports() };
    page.open("");
    page
}

impl Page {
    fn path(&self, name: &str) -> PathBuf {
        self.bench.path("reports").join(name)
    }

    #[track_caller]
    fn open(&self, fragment: &str) {
        self.browser.open(&self.path("browser/page/report.html"), fragment);
    }

    /// The value of an expression over `arguments`, with the probe at hand.
    #[track_caller]
    fn ask(&self, expression: &str, arguments: Value) -> Value {
        self.browser.run(&format!("{PROBE}\nreturn {expression}"), arguments)
    }

    #[track_caller]
    fn text(&self, expression: &str) -> String {
        let value = self.ask(expression, json!([]));
        value.as_str().unwrap_or_else(|| panic!("{expression}: {value}")).to_owned()
    }

    /// What a figure shows.
    #[track_caller]
    fn picture(&self, id: &str) -> Value {
        self.ask("picture(arguments[0])", json!([id]))
    }

    /// Chooses an option of a figure's control.
    #[track_caller]
    fn choose(&self, id: &str, name: &str, value: &str) {
        self.browser.click(&format!("#{id} select[name={name}] option[value=\"{value}\"]"));
    }

    /// The rows of the table that a figure's CSV button saves.
    #[track_caller]
    fn csv(&self, id: &str) -> Vec<Vec<String>> {
        rows(&self.saved(id, "csv").1)
    }

    /// Name and text of the file that a button of a figure saves.
    #[track_caller]
    fn saved(&self, id: &str, button: &str) -> (String, String) {
        self.browser.run(
            "window.kept = []; window.named = [];
             URL.createObjectURL = blob => { kept.push(blob); return 'blob:kept'; };
             HTMLAnchorElement.prototype.click = function () { named.push(this.download); };",
            json!([]),
        );
        self.browser.click(&format!("#{id} .files .{button}"));
        let saved = self.browser.wait(
            "const done = arguments[0]; kept[0].text().then(text => done([named[0], text]));",
            json!([]),
        );
        let part = |i: usize| saved[i].as_str().unwrap().to_owned();
        (part(0), part(1))
    }
}

/// The rows of a CSV file.
fn rows(text: &str) -> Vec<Vec<String>> {
    let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let fields = |row: csv::StringRecord| row.iter().map(str::to_owned).collect();
    reader.into_records().map(|row| fields(row.unwrap())).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The series of a panel of a picture.
fn series(picture: &Value, panel: usize) -> &[Value] {
    list(&picture["panels"][panel]["series"])
}

/// The titles of a picture's panels.
fn titles(picture: &Value) -> Vec<&str> {
    list(&picture["panels"]).iter().map(|p| p["title"].as_str().unwrap()).collect()
}

/// The labels of what is shown in a panel.
fn shown(picture: &Value, panel: usize) -> Vec<&str> {
    series(picture, panel).iter().map(|s| s["label"].as_str().unwrap()).collect()
}

/// The last point of the first line of a series.
fn end(series: &Value) -> (f64, f64) {
    let point = list(&series["lines"][0]).last().expect("a line has points");
    (number(&point[0]), number(&point[1]))
}

#[track_caller]
fn near(a: f64, b: f64, by: f64) {
    assert!((a - b).abs() <= by, "{a} is not within {by} of {b}");
}
