//! One reading position for all panels and curves of a figure, by pointer, touch and keyboard.

use crate::driver::{DOWN, END, ENTER, ESCAPE, HOME, LEFT, RIGHT, TAB, UP};
use crate::{Page, end, list, near, number, page, series};
use serde_json::{Value, json};

/// Where a place of the first panel's drawing is in the window.
const PLACE: &str = "
const svg = document.querySelector('#curves .plane svg'), view = svg.viewBox.baseVal;
svg.scrollIntoView({ block: 'center' });
const box = svg.getBoundingClientRect(), by = box.width / view.width;
return [box.left + arguments[0] * by, box.top + arguments[1] * by];";

/// What has the focus, as a screen reader has it.
const SLIDER: &str = "(e => ({ role: e.getAttribute('role'), name: e.getAttribute('aria-label'), text: e.getAttribute('aria-valuetext'), now: Number(e.getAttribute('aria-valuenow')), max: Number(e.getAttribute('aria-valuemax')) }))(document.activeElement)";

impl Page {
    /// The rows of the tip, its head first; `None` while there is none.
    fn tip(&self) -> Option<Vec<String>> {
        let rows = self.ask(
            "(t => t.hidden ? null : [t.querySelector('b').parentNode.firstChild.textContent + ' ' + t.querySelector('span').textContent, ...[...t.querySelectorAll('tr')].map(r => [...r.cells].map(c => c.textContent).join(' | '))])(document.querySelector('#curves .tip'))",
            json!([]),
        );
        let rows = rows.as_array()?.iter();
        Some(rows.map(|row| row.as_str().unwrap().to_owned()).collect())
    }

    fn window(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let at = self.browser.run(PLACE, json!([x, y]));
        (number(&at[0]), number(&at[1]))
    }

    /// The means, with their ends and n, as the CSV has them at the last round of N = 2.
    fn last(&self) -> Vec<(String, f64, f64, f64)> {
        let value = |r: &[String], i: usize| r[i].parse::<f64>().unwrap();
        let rows = self.csv("curves");
        let rows = rows.iter().filter(|r| r[0] == "N = 2" && r[2] == "measured" && r[3] == "200");
        rows.map(|r| (r[1].clone(), value(r, 4), value(r, 5), value(r, 6))).collect()
    }

    /// The vertical lines of all panels, as fractions of their plot areas.
    fn cursors(&self) -> Vec<f64> {
        let all = self.ask(
            "[...document.querySelectorAll('#curves .plane')].map(p => { const line = p.querySelector('.cursor line'), [left, , wide] = p.querySelector('.panel').dataset.area.split(' ').map(Number); return line ? (line.getAttribute('x1') - left) / wide : -1; })",
            json!([]),
        );
        list(&all).iter().map(number).collect()
    }

    fn slider(&self) -> Value {
        self.ask(SLIDER, json!([]))
    }
}

/// The number that a text of a tip writes: `1.26·10⁻³`.
fn parsed(text: &str) -> f64 {
    let raised = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|d| d == c).map(|d| d.to_string());
    let plain: String = text
        .chars()
        .map(|c| raised(c).unwrap_or(if "⁻−".contains(c) { "-".into() } else { c.into() }))
        .collect();
    let plain = plain.replace("·10", "e").replace(' ', "");
    plain.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn the_pointer_reads_all_curves_of_all_panels() {
    let page = page();
    assert_eq!(page.tip(), None);
    let last = page.last();
    let place = end(&series(&page.picture("curves"), 0)[0]);
    // Between two points, far from every curve: the position is snapped to the data.
    let (x, y) = page.window((place.0 - 2.0, place.1 - 60.0));
    page.browser.hover(x, y);
    let rows = page.tip().expect("a position is read");
    for part in ["communications 200", "N = 2", "95 % interval", "n = 3"] {
        assert!(rows[0].contains(part), "{rows:?}");
    }
    // Every measured curve with its mean and its interval.
    assert!(last.len() >= 2);
    for (name, mean, low, high) in &last {
        let row = rows.iter().find(|row| row.starts_with(&format!("{name} |"))).unwrap();
        let cells: Vec<&str> = row.split(" | ").collect();
        near(parsed(cells[1]) / mean, 1.0, 6e-3);
        let ends = cells[2].trim_matches(['[', ']']).split(", ").map(parsed);
        for (found, wanted) in ends.zip([low, high]) {
            near(found / wanted, 1.0, 6e-3);
        }
    }
    let values: Vec<f64> =
        rows[1..].iter().map(|row| parsed(row.split(" | ").nth(1).unwrap())).collect();
    assert!(values.iter().rev().is_sorted(), "from the largest to the smallest: {rows:?}");
    assert_eq!(rows.iter().filter(|row| row.ends_with("lowest")).count(), 1);
    let cursors = page.cursors();
    assert!(cursors.len() == 2 && cursors.iter().all(|c| (c - 1.0).abs() < 0.01), "{cursors:?}");
    page.browser.hover(2.0, 2.0);
    assert_eq!((page.tip(), page.cursors()), (None, vec![-1.0, -1.0]));
}

#[test]
fn a_touch_reads_below_the_panel() {
    let page = page();
    page.browser.size(390, 900);
    crate::drawings::settle(&page);
    let place = end(&series(&page.picture("curves"), 0)[0]);
    let (x, y) = page.window(place);
    page.browser.touch(x, y);
    assert!(page.tip().is_some_and(|rows| rows[0].contains("n = 3")));
    let out = page.ask(
        "(b => [b.left, innerWidth - b.right, b.top - document.querySelector('#curves .plane').getBoundingClientRect().bottom])(document.querySelector('#curves .tip').getBoundingClientRect())",
        json!([]),
    );
    assert!(list(&out).iter().all(|v| number(v) >= 0.0), "in the window, below the panel: {out}");
}

#[test]
fn keys_move_the_position_and_change_the_panel() {
    let page = page();
    // One tab stop: from the last control to the panel, and on to the list of curves.
    page.ask("document.querySelector('#curves .embed').focus()", json!([]));
    page.browser.press(&[TAB]);
    let slider = page.slider();
    assert_eq!(slider["role"], "slider");
    assert_eq!(slider["name"], "Curves & <i>\"panels\"</i>, N = 2");
    assert!(slider["text"].as_str().unwrap().contains("communications 200"), "{slider}");
    page.browser.press(&[TAB]);
    assert!(!page.ask("document.activeElement.dataset.label ?? null", json!([])).is_null());
    page.ask("document.querySelector('#curves .plane[tabindex=\"0\"]').focus()", json!([]));
    let press = |key: &str| {
        page.browser.press(&[key]);
        let slider = page.slider();
        (slider["now"].as_f64().unwrap(), slider["text"].as_str().unwrap().to_owned())
    };
    let first = press(RIGHT);
    assert!(first.0 == 0.0 && first.1.starts_with("communications 0: "), "{first:?}");
    assert!(first.1.contains("Scaffold, H = 10 ") && first.1.contains("exact"), "{first:?}");
    let second = press(RIGHT);
    assert!(second.0 == 1.0 && second.1 != first.1, "{second:?}");
    assert_eq!(press(LEFT), first);
    assert_eq!(press(LEFT), first, "it stops at the end");
    let last = press(END);
    assert!(last.0 == number(&page.slider()["max"]) && last.1.starts_with("communications 200: "));
    assert_eq!(page.cursors().len(), 2);
    let other = press(DOWN);
    assert_eq!(page.slider()["name"], "Curves & <i>\"panels\"</i>, N = 4");
    assert!(other.1.starts_with("communications 200: ") && other.1 != last.1, "{other:?}");
    assert!(page.tip().is_some_and(|rows| rows[0].contains("N = 4")));
    assert_eq!(press(DOWN), other, "there is no further panel");
    assert_eq!(press(UP), last);
    assert_eq!(press(HOME), first);
    page.browser.press(&[ESCAPE]);
    assert_eq!(page.tip(), None);
    // Enter enlarges the panel, which keeps the focus.
    page.browser.press(&[ENTER]);
    assert_eq!(page.picture("curves")["large"], 0);
    assert_eq!(page.slider()["role"], "slider");
    page.browser.press(&[ENTER]);
    assert_eq!(page.picture("curves")["large"], -1);
}

#[test]
fn what_is_hidden_is_not_read() {
    let page = page();
    page.browser.double_click("#curves .legend button[data-label=\"Scaffold, H = 10\"]");
    page.ask("document.querySelector('#curves .plane[tabindex=\"0\"]').focus()", json!([]));
    page.browser.press(&[RIGHT]);
    let rows = page.tip().unwrap();
    assert!(rows[1..].iter().all(|row| row.contains("Scaffold, H = 10")), "{rows:?}");
}
