//! What stands around the figures of a page: the first screen, claims that open, the ranking,
//! and texts to copy.

use crate::driver::{Browser, ENTER};
use crate::support::{Bench, QUADRATIC, edited};
use crate::{Page, list, number, page};
use serde_json::{Value, json};

impl Page {
    /// Whether the text of a claim is shown.
    fn shows_claim(&self, id: &str) -> bool {
        let shown = self.ask(
            "document.getElementById(`claim-${arguments[0]}`).checkVisibility({ contentVisibilityAuto: true })",
            json!([id]),
        );
        shown.as_bool().unwrap()
    }
}

#[test]
fn claims_open_by_link_and_by_key() {
    let page = page();
    assert!(!page.shows_claim("small") && !page.shows_claim("fedavg-below"));
    page.open("#claim-small");
    assert!(page.shows_claim("small") && !page.shows_claim("fedavg-below"));
    page.browser.run("location.hash = 'claim-fedavg-below'", json!([]));
    let top = "document.getElementById('claim-fedavg-below').getBoundingClientRect().top";
    assert!(page.shows_claim("fedavg-below"));
    assert!((0.0..900.0).contains(&number(&page.ask(top, json!([])))), "it is on the screen");
    page.open("");
    page.browser.run(
        "document.getElementById('claim-small').parentElement.querySelector('summary').focus()",
        json!([]),
    );
    page.browser.press(&[ENTER]);
    assert!(page.shows_claim("small"));
}

#[test]
fn a_link_to_a_claim_opens_it_without_scripts() {
    let page = page();
    page.browser.command("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    page.open("#claim-small");
    let root = page.browser.command("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
    let count = |query: &str| {
        let asks = json!({"nodeId": root, "selector": query});
        list(&page.browser.command("DOM.querySelectorAll", asks)["nodeIds"]).len()
    };
    assert_eq!((count("details[open] > #claim-small"), count("details[open]")), (1, 1));
}

/// A drawing of an interval has its estimate inside the region where the claim is supported, and
/// outside where it is refuted.
#[test]
fn intervals_are_drawn_beside_what_is_claimed() {
    let page = page();
    let drawn = page.ask(
        "[...document.querySelectorAll('.claim-text')].map(claim => {
           const box = query => claim.querySelector(query).getBoundingClientRect();
           const dot = box('.interval circle'), holds = box('.interval .holds'), at = (dot.left + dot.right) / 2;
           return [claim.querySelector('.verdict').textContent, holds.left <= at && at <= holds.right, holds.width];
         })",
        json!([]),
    );
    let inside = |of: &Value| (of[0].as_str().unwrap().to_owned(), of[1].as_bool().unwrap());
    let expected = [("inconclusive", true), ("inconclusive", false), ("supported", true)];
    let found: Vec<(String, bool)> = list(&drawn).iter().map(inside).collect();
    assert_eq!(found, expected.map(|(verdict, is_inside)| (verdict.to_owned(), is_inside)));
    assert!(list(&drawn).iter().all(|claim| number(&claim[2]) > 20.0), "{drawn}");
}

/// Without noise, Scaffold ends below FedAvg at every grid point.
const EXACT: [(&str, &str); 4] = [
    ("seed = 1", "seed = 3\noracle = \"exact\""),
    ("clients = 2", "clients = [2, 4]"),
    ("noise = 0.1", "gradient-heterogeneity = 1.0, hessian-heterogeneity = 0.2, noise = 0.1"),
    (
        "rounds = 20",
        "rounds = 200\n[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = [2, 10]\n\
         [[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = [2, 10]",
    ),
];

/// The matrix has a cell for each setting; at 390 px its rows are blocks that say which.
#[test]
fn the_ranking_is_a_matrix_with_a_column_for_each_number_of_local_steps() {
    let browser = Browser::start();
    let bench = Bench::ran(&edited(QUADRATIC, &EXACT));
    bench.report();
    let page = Page { browser, bench };
    page.browser.open(&page.path("m/report.html"), "");
    let texts = |query: &str| -> Vec<String> {
        let all = page.ask(
            "[...document.querySelectorAll(arguments[0])].map(n => n.innerText.trim())",
            json!([query]),
        );
        list(&all).iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(".matrix thead th"), ["H = 2", "H = 10"]);
    assert_eq!(texts(".matrix tbody th"), ["N = 2", "N = 4"]);
    assert_eq!(texts(".matrix tbody td").len(), 4);
    let titles = page.ask(
        "document.querySelectorAll('.matrix td[title*=\"Scaffold ends lowest\"]').length",
        json!([]),
    );
    assert_eq!(titles, 4);
    page.browser.size(390, 844);
    let before = page.ask(
        "[...document.querySelectorAll('.matrix tbody td')].map(n => getComputedStyle(n, '::before').content)",
        json!([]),
    );
    assert!(list(&before).iter().all(|text| text.as_str().unwrap().contains("H = ")), "{before}");
}

#[test]
fn commands_are_copied() {
    let page = page();
    page.browser.run(
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: t => { window.copied = t; return Promise.resolve(); } } })",
        json!([]),
    );
    page.browser.click("#again + .again .copy");
    let expected = "exactfed run experiments/browser/page.toml\nexactfed report";
    assert_eq!(page.text("window.copied"), expected);
}
