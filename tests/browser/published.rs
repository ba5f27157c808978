//! Every page that `make reproduce` has written, in a browser: the first figure, or the first claim
//! that is drawn, is on the first screen, texts of drawings are whole and apart, names, looks, curves
//! and bands agree with those of the static drawings, numbers with those of the CSV files, and axe-core
//! finds nothing.

use crate::access::{axe, violations};
use crate::driver::Browser;
use crate::support::{Bench, files_below, root};
use crate::{Page, drawings, list, names, number, numbers, ratios};
use serde_json::json;
use std::path::{Path, PathBuf};

/// How much below the begin of the first drawing is on the first screen at least, in pixels.
const SHOWN: f64 = 120.0;

/// The folder of the reports: EXACTFED_REPORTS, else `reports/` here.
fn reports() -> PathBuf {
    std::env::var_os("EXACTFED_REPORTS").map_or_else(|| root().join("reports"), PathBuf::from)
}

/// What is wrong with the texts of all drawings of a page, and how many texts there are.
const TEXTS: &str = include_str!("texts.js");

/// On a desktop and on a phone the first figure, or the first claim that is drawn, begins on the first
/// screen, and every text of every drawing is whole and apart from the others. The number of texts.
fn check_screens(page: &Page, file: &Path, name: &str) -> f64 {
    let mut texts = 0.0;
    for (wide, high) in [(1400, 900), (390, 844)] {
        page.browser.size(wide, high);
        page.browser.open(file, "");
        drawings::settle(page);
        let found = page.browser.run(TEXTS, json!([]));
        assert!(list(&found["faults"]).is_empty(), "{name}, {wide} x {high}: {found:#}");
        texts += number(&found["drawn"]);
        if !name.starts_with("smoke/") {
            let first =
                "document.querySelector('.chart, svg.interval').getBoundingClientRect().top";
            let top = page.ask(first, json!([]));
            assert!(number(&top) + SHOWN < f64::from(high), "{name}, {wide} x {high}: {top}");
        }
    }
    texts
}

/// Every page is one of `PARTS`, which are looked at side by side.
const PARTS: usize = 4;

fn pages_pass(part: usize) {
    let (axe, reports) = (axe(), reports());
    let mut files = files_below(&reports);
    files.retain(|file| file.ends_with("report.html"));
    assert!(files.len() > 40, "{}: {} pages; `make reproduce`", reports.display(), files.len());
    let page = Page { browser: Browser::start(), bench: Bench::new() };
    let (mut compared, mut labelled, mut of_ratios) = (0, 0, 0);
    let (mut figures, mut points, mut texts) = (0, 0, 0.0);
    for file in files.iter().skip(part).step_by(PARTS) {
        let name = file.parent().unwrap().strip_prefix(&reports).unwrap().display().to_string();
        texts += check_screens(&page, file, &name);
        let (entries, labels) = names::check(&page, file);
        compared += entries;
        labelled += labels;
        page.browser.size(1400, 900);
        page.browser.open(file, "");
        drawings::settle(&page);
        of_ratios += ratios::check(&page, file);
        figures += drawings::check(&page, file);
        points += numbers::check(&page, file);
        for scheme in ["light", "dark"] {
            page.browser.media("screen", scheme);
            page.browser.size(1400, 900);
            page.browser.open(file, "");
            let found = violations(&page.browser, &axe);
            assert!(found.is_empty(), "{name}, {scheme}: {found:#?}");
        }
    }
    assert!(compared > 100 && labelled > 100, "{compared} entries, {labelled} labels");
    assert!(texts > 1000.0, "{texts} texts of drawings");
    assert!(of_ratios > 10, "{of_ratios} ratios");
    assert!(figures > 10 && points > 1000, "{figures} figures, {points} points");
}

#[test]
fn pages_of_the_first_part_pass() {
    pages_pass(0);
}
#[test]
fn pages_of_the_second_part_pass() {
    pages_pass(1);
}
#[test]
fn pages_of_the_third_part_pass() {
    pages_pass(2);
}
#[test]
fn pages_of_the_last_part_pass() {
    pages_pass(PARTS - 1);
}
