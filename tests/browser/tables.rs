//! Tables: sorted by any column, filtered by words.

use crate::{Page, list, page};
use serde_json::json;

const ERRORS: &str = "[aria-label=\"Table: Errors at the last round\"]";

impl Page {
    /// The texts of a column, of the rows that are shown.
    pub fn column(&self, table: &str, column: usize) -> Vec<String> {
        let all = self.ask(
            "[...document.querySelectorAll(`${arguments[0]} tbody tr`)].filter(r => !r.hidden).map(r => r.cells[arguments[1]].textContent.trim())",
            json!([table, column]),
        );
        list(&all).iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    }

    /// Opens the section of the table of errors.
    fn open_errors(&self) {
        self.browser.click("#errors > summary");
    }

    fn sort(&self, column: usize) -> String {
        let head = format!("{ERRORS} th:nth-child({})", column + 1);
        self.browser.click(&format!("{head} button"));
        let sorted = self.ask("document.querySelector(arguments[0]).ariaSort", json!([head]));
        sorted.as_str().unwrap_or("none").to_owned()
    }
}

/// A number as pages write it.
fn read(text: &str) -> Option<f64> {
    let digit = |c: char| match "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|raised| raised == c)
    {
        Some(digit) => char::from_digit(digit as u32, 10).unwrap(),
        None => '-',
    };
    match text.split_once("·10") {
        Some((digits, power)) => {
            format!("{digits}e{}", power.chars().map(digit).collect::<String>()).parse().ok()
        }
        None => text.parse().ok(),
    }
}

#[test]
fn columns_sort_up_down_and_back() {
    let page = page();
    page.open_errors();
    let heads = page.ask(
        "[...document.querySelectorAll(`${arguments[0]} th`)].map(h => h.textContent)",
        json!([ERRORS]),
    );
    let mean = list(&heads).iter().position(|h| h.as_str().unwrap().ends_with("mean")).unwrap();
    let before = page.column(ERRORS, mean);
    assert_eq!(before.len(), 10);
    let numbers = |texts: &[String]| -> Vec<f64> { texts.iter().filter_map(|t| read(t)).collect() };
    assert_eq!(page.sort(mean), "ascending");
    let up = page.column(ERRORS, mean);
    assert!(numbers(&up).is_sorted() && numbers(&up).len() == 8, "{up:?}");
    assert_eq!(up[8..], ["diverged", "diverged"]);
    assert_eq!(page.sort(mean), "descending");
    let down = page.column(ERRORS, mean);
    assert!(numbers(&down).iter().rev().is_sorted(), "{down:?}");
    assert_eq!(down[8..], ["diverged", "diverged"], "what is no number stays below");
    assert_eq!(page.sort(mean), "none");
    assert_eq!(page.column(ERRORS, mean), before);
    assert_eq!(page.sort(0), "ascending");
    let names = page.column(ERRORS, 0);
    assert!(names.is_sorted() && names[0].starts_with("FedAvg"), "{names:?}");
    page.sort(mean);
    let sorted = page
        .ask("document.querySelectorAll(`${arguments[0]} [aria-sort]`).length", json!([ERRORS]));
    assert_eq!(sorted, 1, "one column at a time");
}

#[test]
fn words_filter_rows() {
    let page = page();
    page.open_errors();
    let bar = "p.filter:has(+ [aria-label=\"Table: Errors at the last round\"])";
    page.browser.write(&format!("{bar} input"), "scaffold 10");
    assert_eq!(page.column(ERRORS, 0), ["Scaffold", "Scaffold"]);
    let text = format!("document.querySelector('{bar} [role=status]').textContent");
    assert_eq!(page.text(&text), "2 of 10");
    page.sort(0);
    assert_eq!(page.column(ERRORS, 0).len(), 2, "sorting keeps what is filtered");
}
