//! The two drawings of a figure, by plotters and by the page's script, agree: the
//! same series, looks, ticks and coordinates.

use crate::{Page, list, near, number, page};
use serde_json::{Value, json};

/// The plotting area: left, top, right, bottom.
type Area = [f64; 4];

fn area(layout: &Value, wide: f64, high: f64) -> Area {
    let m: Vec<f64> = list(&layout["margins"]).iter().map(number).collect();
    [m[0], m[1], wide - m[2], high - m[3]]
}

/// Where a point of one area is in another.
fn moved((x, y): (f64, f64), from: Area, to: Area) -> (f64, f64) {
    let along =
        |v: f64, i: usize| to[i] + (v - from[i]) * (to[i + 2] - to[i]) / (from[i + 2] - from[i]);
    (along(x, 0), along(y, 1))
}

fn point(value: &Value) -> (f64, f64) {
    (number(&value[0]), number(&value[1]))
}

#[track_caller]
fn same_points(a: &Value, b: &Value, from: Area, to: Area, what: &str) {
    let (a, b) = (list(a), list(b));
    assert_eq!(a.len(), b.len(), "{what}");
    for (p, q) in a.iter().zip(b) {
        let (p, q) = (moved(point(p), from, to), point(q));
        let apart = (p.0 - q.0).abs().max((p.1 - q.1).abs());
        assert!(apart <= 1.0, "{what}: {p:?} and {q:?}");
    }
}

#[track_caller]
fn same_series(a: &Value, b: &Value, from: Area, to: Area) {
    for key in ["label", "role", "color", "dash", "shown", "ink"] {
        assert_eq!(a[key], b[key], "{key} of {}", a["label"]);
    }
    for key in ["lines", "bands"] {
        let (one, other) = (list(&a[key]), list(&b[key]));
        assert_eq!(one.len(), other.len(), "{key} of {}", a["label"]);
        for (p, q) in one.iter().zip(other) {
            same_points(p, q, from, to, &format!("{key} of {}", a["label"]));
        }
    }
    // A mark has its own size, whatever the panel's: only that many, near the curve.
    assert_eq!(list(&a["marks"]).len(), list(&b["marks"]).len(), "marks of {}", a["label"]);
}

/// Ticks: the same words at the same places.
#[track_caller]
fn same_ticks(a: &Value, b: &Value, from: Area, to: Area) {
    let ticks = |panel: &Value, area: Area| -> Vec<(String, bool, f64)> {
        let texts = list(&panel["texts"]).iter().filter(|t| t["upright"] == true);
        let all = texts.filter_map(|t| {
            let (x, y) = (number(&t["x"]), number(&t["y"]));
            let left = x < area[0] && y <= area[3] + 5.0;
            let below = !left && y < area[3] + 20.0;
            let words = t["words"].as_str().unwrap().to_owned();
            (left || below).then_some((words, left, if left { y } else { x }))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
        all
    };
    let (one, other) = (ticks(a, from), ticks(b, to));
    assert!(one.len() >= 4, "{one:?}");
    let names = |t: &[(String, bool, f64)]| t.iter().map(|t| t.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for ((words, left, p), (_, _, q)) in one.iter().zip(&other) {
        let (x, y) = moved((*p, *p), from, to);
        // The script's texts stand on a base line 4 below the middle.
        near(if *left { y + 4.0 } else { x }, *q, 1.5);
        assert!(!words.is_empty());
    }
}

/// In a window too narrow for plotters' drawing the script draws the same view.
#[test]
fn both_drawings_agree() {
    let Some(page) = page() else { return };
    let layouts = page.ask(
        "Object.fromEntries(JSON.parse(document.getElementById('data').textContent).figures.map(f => [f.id, f.layout]))",
        json!([]),
    );
    let figures = ["curves", "one", "points"];
    let first: Vec<Value> = figures.iter().map(|id| page.picture(id)).collect();
    page.browser.size(390, 900);
    settle(&page);
    for (id, one) in figures.into_iter().zip(first) {
        let (layout, other) = (&layouts[id], page.picture(id));
        assert_eq!((&one["by"], &other["by"]), (&json!("plotters"), &json!("script")), "{id}");
        let (a, b) = (list(&one["panels"]), list(&other["panels"]));
        assert_eq!(a.len(), b.len());
        let from = area(layout, number(&layout["size"][0]), number(&layout["size"][1]));
        let rows = b.len() as f64;
        let high = (number(&other["box"][3]) - 6.0) / rows - number(&layout["title"]);
        let to = area(layout, number(&other["box"][2]) - 10.0, high);
        for (a, b) in a.iter().zip(b) {
            assert_eq!(a["title"], b["title"]);
            same_ticks(a, b, from, to);
            let (a, b) = (list(&a["series"]), list(&b["series"]));
            assert_eq!(a.len(), b.len(), "{id}");
            a.iter().zip(b).for_each(|(a, b)| same_series(a, b, from, to));
        }
    }
}

/// At the same size a view that leaves the curves alone leaves every pixel of them.
#[test]
fn a_view_without_bands_has_the_curves_where_they_were() {
    let Some(page) = page() else { return };
    let one = page.picture("curves");
    page.choose("curves", "band", "none");
    let other = page.picture("curves");
    assert_eq!(other["by"], "script");
    let whole = [0.0, 0.0, 1.0, 1.0];
    for (a, b) in list(&one["panels"]).iter().zip(list(&other["panels"])) {
        for (a, b) in list(&a["series"]).iter().zip(list(&b["series"])) {
            assert!(list(&b["bands"]).is_empty());
            for (key, limit) in [("lines", 0), ("marks", 0)] {
                assert_eq!(list(&a[key]).len(), list(&b[key]).len());
                assert!(list(&a[key]).len() >= limit);
            }
            for (p, q) in list(&a["lines"]).iter().zip(list(&b["lines"])) {
                same_points(p, q, whole, whole, "lines");
            }
            same_points(&a["marks"], &b["marks"], whole, whole, "marks");
        }
    }
    page.browser.click("#curves .reset");
    let again = page.picture("curves");
    assert_eq!(again, one, "as it was");
}

/// Waits until the observer of sizes has drawn.
pub fn settle(page: &Page) {
    let frames = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)));";
    page.browser.wait(frames, json!([]));
}
