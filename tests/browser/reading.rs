//! Values of a curve, read by pointer, touch and keyboard.

use crate::driver::{DOWN, ESCAPE, LEFT, RIGHT, UP};
use crate::{Page, end, near, number, page, series};
use serde_json::json;

/// Where a place of the first panel is in the window.
const PLACE: &str = "
const svg = document.querySelector('#curves .chart svg'), view = svg.viewBox.baseVal;
svg.scrollIntoView({ block: 'center' });
const box = svg.getBoundingClientRect(), by = box.width / view.width;
const panel = svg.querySelector('.panel').transform.baseVal[0].matrix;
const inner = svg.querySelector('.panel > g').transform.baseVal[0].matrix;
return [box.left + (panel.e + inner.e + arguments[0] - view.x) * by,
        box.top + (panel.f + inner.f + arguments[1] - view.y) * by];";

impl Page {
    /// What the figure says of a point; `None` while it says nothing.
    fn tip(&self) -> Option<String> {
        let text = self.ask(
            "(t => t.hidden ? null : t.textContent)(document.querySelector('#curves .tip'))",
            json!([]),
        );
        text.as_str().map(str::to_owned)
    }

    fn window(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let at = self.browser.run(PLACE, json!([x, y]));
        (number(&at[0]), number(&at[1]))
    }

    /// The mean, its interval and n, as the CSV has them at the last round of the
    /// first curve.
    fn last(&self) -> (f64, f64, f64) {
        let rows = self.csv("curves");
        let first = rows[1][1].clone();
        let row = rows.iter().rfind(|r| r[0] == "N = 2" && r[1] == first).unwrap();
        (row[4].parse().unwrap(), row[5].parse().unwrap(), row[6].parse().unwrap())
    }
}

/// Whether a text holds a number, to its three digits.
fn says(text: &str, wanted: f64) -> bool {
    let parts = text.split(|c: char| !(c.is_ascii_digit() || ".e-".contains(c)));
    let mut numbers = parts.filter_map(|part| part.parse::<f64>().ok());
    numbers.any(|v| (v - wanted).abs() <= 6e-3 * wanted.abs())
}

#[test]
fn the_pointer_reads_value_band_and_n() {
    let Some(page) = page() else { return };
    assert_eq!(page.tip(), None);
    let (mean, low, high) = page.last();
    let place = end(&series(&page.picture("curves"), 0)[0]);
    let (x, y) = page.window(place);
    page.browser.hover(x, y);
    let output = page.tip().expect("a point is read");
    assert!(says(&output, mean) && says(&output, low) && says(&output, high), "{output}: {mean}");
    for part in ["FedAvg <b>\"plain\"</b>, H = 2 (N = 2)", "95 % interval", "n = 3", "at 200 comm"]
    {
        assert!(output.contains(part), "{output}");
    }
    let dot = page.ask(
        "(d => [+d.getAttribute('cx'), d.getAttribute('visibility')])(document.querySelector('#curves .dot'))",
        json!([]),
    );
    near(number(&dot[0]), place.0, 1.0);
    assert_eq!(dot[1], "visible");
    page.browser.hover(2.0, 2.0);
    assert_eq!(page.tip(), None);
    page.browser.size(390, 900);
    crate::drawings::settle(&page);
    let place = end(&series(&page.picture("curves"), 0)[0]);
    let (x, y) = page.window(place);
    page.browser.touch(x, y);
    assert!(page.tip().is_some_and(|output| output.contains("n = 3")), "a touch reads too");
    let out = page.ask(
        "(b => [b.left, innerWidth - b.right])(document.querySelector('#curves .tip').getBoundingClientRect())",
        json!([]),
    );
    assert!(number(&out[0]) >= 0.0 && number(&out[1]) >= 0.0, "the tip is in the window: {out}");
}

#[test]
fn arrows_read_points_and_curves() {
    let Some(page) = page() else { return };
    assert_eq!(page.text("document.querySelector('#curves .tip').getAttribute('role')"), "status");
    page.ask("document.querySelector('#curves .chart svg').focus()", json!([]));
    let press = |key: &str| {
        page.browser.press(&[key]);
        page.tip().expect("a point is read")
    };
    let first = press(RIGHT);
    assert!(first.contains("at 0 communications") && first.contains("H = 2"), "{first}");
    let second = press(RIGHT);
    assert!(second != first && !second.contains("at 0 comm"), "{second}");
    assert_eq!(press(LEFT), first);
    assert_eq!(press(LEFT), first, "it stops at the end");
    let other = press(DOWN);
    assert!(other.split(':').next() != first.split(':').next(), "{other}");
    assert_eq!(press(UP), first);
    page.browser.press(&[ESCAPE]);
    assert_eq!(page.tip(), None);
    // What is hidden is not read.
    page.browser.double_click("#curves .legend button[data-label=\"Scaffold, H = 10\"]");
    page.ask("document.querySelector('#curves .chart svg').focus()", json!([]));
    assert!(press(RIGHT).starts_with("Scaffold, H = 10"));
}
