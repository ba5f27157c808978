//! The legend: a click hides a curve, a double click shows only it; by keyboard too.

use crate::driver::{ENTER, SHIFT, SPACE, TAB};
use crate::{Page, list, page, shown};
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
    let Some(page) = page() else { return };
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
    let Some(page) = page() else { return };
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
    let Some(page) = page() else { return };
    page.ask("document.querySelector('#curves select').focus()", json!([]));
    let mut reached = Vec::new();
    for _ in 0..22 {
        reached.push(page.text(
            "(e => e.name || e.dataset.label || e.getAttribute('aria-roledescription') || e.className || e.getAttribute('href') || e.tagName)(document.activeElement)",
        ));
        page.browser.press(&[TAB]);
    }
    let controls = ["x", "scale-x", "scale-y", "band", "panels", "theory", "reset"];
    let curves = [
        "FedAvg <b>\"plain\"</b>, H = 2",
        "FedAvg <b>\"plain\"</b>, H = 10",
        "Scaffold, H = 2",
        "Scaffold, H = 10",
        "Too large",
        "infinite replicates (exact)",
    ];
    let claims = ["chart", "#claim-scaffold-below", "#claim-fedavg-below"];
    let wanted = [&controls[..], &curves, &claims, &["svg", "csv", "link", "copy", "x"]].concat();
    assert_eq!(reached[..wanted.len()], wanted);
}
