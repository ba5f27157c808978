//! The legend: a click hides a curve, a double click shows only it; by keyboard too.

use crate::driver::{Browser, ENTER, SHIFT, SPACE, TAB};
use crate::support::Bench;
use crate::{Page, list, number, page, shown};
use serde_json::json;

const ENTRY: &str = "#curves .legend button[data-label=\"Scaffold, H = 10\"]";

impl Page {
    fn pressed(&self) -> Vec<bool> {
        let all = self.ask(
            "[...document.querySelectorAll('#curves .legend button')].map(b => b.getAttribute('aria-pressed') === 'true')",
            json!([]),
        );
        list(&all).iter().map(|v| v.as_bool().unwrap()).collect()
    }

    /// What the first panel shows of measured curves.
    fn measured(&self) -> Vec<String> {
        let picture = self.picture("curves");
        let all = shown(&picture, 0).into_iter().filter(|l| !l.contains("exact"));
        all.map(str::to_owned).collect()
    }
}

#[test]
fn a_click_hides_and_a_double_click_isolates() {
    let page = page();
    let all = page.measured();
    assert_eq!((all.len(), page.pressed()), (5, vec![true; 6]));
    page.browser.click(ENTRY);
    let picture = page.picture("curves");
    for panel in [0, 1] {
        let hidden = |l: &&str| l.contains("Scaffold, H = 10");
        assert!(!shown(&picture, panel).iter().any(hidden), "nor what theory says of it");
    }
    assert_eq!(page.pressed(), [true, true, true, false, true, true]);
    page.browser.click(ENTRY);
    assert_eq!((page.measured(), page.pressed()), (all.clone(), vec![true; 6]));
    page.browser.double_click(ENTRY);
    assert_eq!(page.measured(), ["Scaffold, H = 10"]);
    assert_eq!(page.pressed(), [false, false, false, true, false, true]);
    page.browser.double_click(ENTRY);
    assert_eq!((page.measured(), page.pressed()), (all, vec![true; 6]));
}

#[test]
fn a_key_hides_and_shift_isolates() {
    let page = page();
    let all = page.measured();
    page.ask("document.querySelector(arguments[0]).focus()", json!([ENTRY]));
    for key in [ENTER, SPACE] {
        page.browser.press(&[key]);
        assert_eq!(page.measured().len(), 4, "{key:?}");
        let focus = page.text("document.activeElement.dataset.label");
        assert_eq!(focus, "Scaffold, H = 10", "the focus stays");
        page.browser.press(&[key]);
        assert_eq!(page.measured(), all);
    }
    page.browser.press(&[SHIFT, ENTER]);
    assert_eq!(page.measured(), ["Scaffold, H = 10"]);
    page.browser.press(&[SHIFT, ENTER]);
    assert_eq!(page.measured(), all);
}

/// Tab goes through everything that acts, in the order in which it is seen.
#[test]
fn tab_reaches_every_control() {
    let page = page();
    page.ask("document.querySelector('#curves select').focus()", json!([]));
    let mut reached = Vec::new();
    for _ in 0..26 {
        reached.push(page.text(
            "(e => e.name || e.dataset.label || e.getAttribute('role') || e.className || e.getAttribute('href') || e.tagName)(document.activeElement)",
        ));
        page.browser.press(&[TAB]);
    }
    let controls = [
        "x", "scale-x", "scale-y", "band", "panels", "range", "theory", "svg", "csv", "table",
        "link", "embed",
    ];
    let curves = [
        "FedAvg <b>\"plain\"</b>, H = 2",
        "FedAvg <b>\"plain\"</b>, H = 10",
        "Scaffold, H = 2",
        "Scaffold, H = 10",
        "Too large",
        "infinite replicates (exact)",
    ];
    // Two claims and what folds; then the next figure.
    let rest = ["slider"].iter().chain(&curves).copied();
    let wanted: Vec<&str> = controls.into_iter().chain(rest).collect();
    assert_eq!(reached[..wanted.len()], wanted);
    assert!(reached[wanted.len()].starts_with("#claim-") && reached.last().unwrap() != "BODY");
    assert_eq!(reached[wanted.len() + 2], "SUMMARY");
}

/// Labels name curves of their panel, with final values and ratios to the lowest.
#[test]
fn labels_name_curves_and_compare_them() {
    let page = page();
    let picture = page.picture("curves");
    for panel in 0..2 {
        let names = shown(&picture, panel);
        let labels = list(&picture["panels"][panel]["labels"]);
        assert!(!labels.is_empty());
        for label in labels {
            assert!(names.contains(&label.as_str().unwrap()), "{label}");
        }
        let words: Vec<&str> =
            list(&picture["panels"][panel]["words"]).iter().map(|w| w.as_str().unwrap()).collect();
        assert_eq!(words.iter().filter(|w| w.ends_with("lowest")).count(), 1, "{words:?}");
        assert!(words.iter().any(|w| w.contains('×')), "{words:?}");
        assert!(words.iter().any(|w| w.contains("diverged")), "{words:?}");
    }
}

/// Of one client, whose control variate is that of the server.
const ALIKE: &str = r#"title = "Alike"
seed = 1
replicates = 2
problem.quadratic = { dimension = 2, clients = 1, spectrum = { from = 0.5, to = 1.0 }, noise = 0.1 }
start.offset = 1.0
budget.rounds = 20
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
[[algorithm.scaffold]]
step-size = 0.1
local-steps = 2
[[figure.convergence]]
id = "curves"
"#;

#[test]
fn one_label_says_that_curves_coincide_and_the_lower_is_wider() {
    let browser = Browser::start();
    let bench = Bench::new();
    bench.write("experiments/browser/page.toml", ALIKE);
    bench.compute(&["experiments/browser/page.toml"]);
    bench.report();
    let page = Page { browser, bench };
    page.open("");
    let picture = page.picture("curves");
    let words: Vec<&str> =
        list(&picture["panels"][0]["words"]).iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(words[0], "FedAvg and Scaffold");
    assert!(words.len() == 2 && words[1].contains("(both)"), "{words:?}");
    let widths: Vec<f64> =
        list(&picture["panels"][0]["series"]).iter().map(|s| number(&s["wide"])).collect();
    assert!(widths[0] > 2.0 * widths[1], "{widths:?}");
    // The upper one has gaps, in which the colour of the lower is seen.
    let gaps = "[...document.querySelectorAll('#curves .series polyline')].map(p => p.hasAttribute('stroke-dasharray'))";
    assert_eq!(page.ask(gaps, json!([])), json!([false, true]));
}
