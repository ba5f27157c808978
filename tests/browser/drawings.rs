//! The two drawings of a figure, by plotters and by the page's script, agree: the same panels,
//! series, styles and, relative to the plot area of each panel, the same points.

use crate::{Page, list, number, page};
use serde_json::{Value, json};
use std::path::Path;

/// A plot area: left, top, width, height.
fn area(panel: &Value) -> [f64; 4] {
    let all: Vec<f64> = list(&panel["area"]).iter().map(number).collect();
    all.try_into().expect("a panel says where its plot area is")
}

/// The points of a line, in pixels of a plot area of this size.
fn points(line: &Value, from: [f64; 4], wide: f64, high: f64) -> Vec<(f64, f64)> {
    let place = |p: &Value| {
        let (x, y) = (number(&p[0]) - from[0], number(&p[1]) - from[1]);
        (x / from[2] * wide, y / from[3] * high)
    };
    list(line).iter().map(place).collect()
}

#[track_caller]
fn same_series(a: &Value, b: &Value, from: [f64; 4], to: [f64; 4]) {
    let label = &a["label"];
    for key in ["label", "role", "color", "dash", "bands"] {
        assert_eq!(a[key], b[key], "{key} of {label}");
    }
    // The curves, and the outlines of their bands.
    for shapes in ["lines", "edges"] {
        let (one, other) = (list(&a[shapes]), list(&b[shapes]));
        assert_eq!(one.len(), other.len(), "{shapes} of {label}");
        for (p, q) in one.iter().zip(other) {
            let (p, q) = (points(p, from, to[2], to[3]), points(q, to, to[2], to[3]));
            assert_eq!(p.len(), q.len(), "{shapes} of {label}");
            for (p, q) in p.iter().zip(&q) {
                let apart = (p.0 - q.0).abs().max((p.1 - q.1).abs());
                assert!(apart <= 1.0, "{shapes} of {label}: {p:?} and {q:?}");
            }
        }
    }
}

/// Compares the two drawings of a figure of the open page.
#[track_caller]
pub fn same_figure(page: &Page, folder: &str, id: &str) {
    same_as(page, &page.bench.read(&format!("reports/{folder}/figures/{id}.svg")), id);
}

/// Compares a figure of the open page with the text of its static drawing.
#[track_caller]
pub fn same_as(page: &Page, drawing: &str, id: &str) {
    let (one, other) = (page.ask("drawing(arguments[0])", json!([drawing])), page.picture(id));
    let (a, b) = (list(&one["panels"]), list(&other["panels"]));
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        // A title of several lines has no space where a line ends.
        let title =
            |panel: &Value| panel["title"].as_str().unwrap().replace(char::is_whitespace, "");
        assert_eq!(title(a), title(b), "{id}");
        let (from, to) = (area(a), area(b));
        let (a, b) = (list(&a["series"]), list(&b["series"]));
        assert_eq!(a.len(), b.len(), "{id}");
        a.iter().zip(b).for_each(|(a, b)| same_series(a, b, from, to));
    }
}

/// Compares all figures of the open page with their static drawings; how many were compared.
#[track_caller]
pub fn check(page: &Page, file: &Path) -> usize {
    let ids = "JSON.parse(document.getElementById('data').textContent).figures.map(f => f.id)";
    let ids = page.ask(ids, json!([]));
    for id in list(&ids) {
        let id = id.as_str().unwrap();
        let drawing = std::fs::read_to_string(file.with_file_name(format!("figures/{id}.svg")));
        same_as(page, &drawing.unwrap(), id);
    }
    list(&ids).len()
}

/// In a wide and in a narrow window the script draws what the static drawing shows.
#[test]
fn both_drawings_agree() {
    let page = page();
    for wide in [1400, 390] {
        page.browser.size(wide, 900);
        settle(&page);
        for id in ["curves", "one", "points"] {
            same_figure(&page, "browser/page", id);
        }
    }
}

/// A view that leaves the curves alone leaves every pixel of them, and the reset brings
/// the first view back.
#[test]
fn a_view_without_bands_has_the_curves_where_they_were() {
    let page = page();
    let one = page.picture("curves");
    page.choose("curves", "band", "none");
    let other = page.picture("curves");
    for (a, b) in list(&one["panels"]).iter().zip(list(&other["panels"])) {
        for (a, b) in list(&a["series"]).iter().zip(list(&b["series"])) {
            assert_eq!((&b["bands"], &a["lines"]), (&json!(0), &b["lines"]));
        }
    }
    assert_ne!(one, other);
    page.browser.click("#curves .reset");
    assert_eq!(page.picture("curves"), one);
}

/// Panels fill the width that there is, and drawing again does not make them grow.
#[test]
fn panels_fill_the_width() {
    let page = page();
    let sizes = |page: &Page| {
        page.ask(
            "[...document.querySelectorAll('.plot .chart[data-by]')].filter(c => c.querySelector('.plane')).map(c => { const boxes = [...c.querySelectorAll('.plane svg')].map(s => s.getBoundingClientRect()); return [c.clientWidth, Math.max(...boxes.map(b => b.right)) - c.getBoundingClientRect().left, ...boxes.map(b => b.height)]; })",
            json!([]),
        )
    };
    for wide in [1400, 390, 800] {
        page.browser.size(wide, 900);
        settle(&page);
        let first = sizes(&page);
        for one in list(&first) {
            crate::near(number(&one[0]), number(&one[1]), 1.0);
        }
        page.ask(
            "(s => { s.value = 'none'; s.dispatchEvent(new Event('change')); document.querySelector('#curves .reset').click(); })(document.querySelector('#curves select[name=band]'))",
            json!([]),
        );
        settle(&page);
        assert_eq!(sizes(&page), first);
    }
}

/// The texts of axes that touch another or leave their panel, the titles that are cut, the narrow
/// panels with a label that is cut, and how many panels name their x axis.
const TEXTS: &str = "
const cells = [...document.querySelectorAll('.plot .cell')], out = { touching: [], cut: [], named: 0, panels: cells.length };
const box = node => node.getBoundingClientRect();
for (const cell of cells) {
  const texts = [...cell.querySelectorAll('.axes text')], plane = box(cell.querySelector('.plane')), title = cell.querySelector('.title');
  texts.forEach((a, i) => {
    const [p, all] = [box(a), texts.slice(0, i).map(box)];
    if (all.some(q => p.left < q.right && q.left < p.right && p.top < q.bottom - 3 && q.top < p.bottom - 3) || p.left < plane.left - 1 || p.right > plane.right + 1) out.touching.push(a.textContent);
  });
  out.named += texts.some(t => !/^[−\\d]/.test(t.textContent)) ? 1 : 0;
  if (!title.hidden && title.scrollHeight > title.clientHeight + 2) out.cut.push(title.textContent);
  if (plane.width < 200) out.cut.push(...[...cell.querySelectorAll('.labels text')].map(t => t.textContent).filter(t => t.includes('…')));
}
return out;";

/// Nothing is cut and nothing touches, in wide and in narrow windows; the lowest panels name
/// their x axis.
#[test]
fn texts_of_panels_are_whole_and_apart() {
    let page = page();
    for panels in ["clients", "local-steps", ""] {
        page.choose("curves", "panels", panels);
        for wide in [1400, 800, 390] {
            page.browser.size(wide, 900);
            settle(&page);
            let found = page.browser.run(TEXTS, json!([]));
            for what in ["touching", "cut"] {
                assert!(list(&found[what]).is_empty(), "{panels} {wide}: {found}");
            }
            assert!(number(&found["named"]) >= 3.0, "a panel of each figure: {found}");
        }
        page.browser.size(1400, 900);
        settle(&page);
    }
}

/// Choices are as short as the titles of panels.
#[test]
fn controls_have_the_symbols_of_the_panels() {
    let page = page();
    let options = page.ask(
        "['panels', 'band'].map(name => [...document.querySelectorAll(`#curves select[name=${name}] option`)].map(o => o.textContent))",
        json!([]),
    );
    assert_eq!(options[0], json!(["by N", "one panel", "by H"]));
    assert_eq!(options[1], json!(["no band", "± sd", "95 % interval", "10–90 %", "every run"]));
}

/// How long drawing all figures of the page took, for the reader of the log: five times.
#[test]
fn the_time_of_drawing_is_measured() {
    let page = page();
    let mut all: Vec<f64> = (0..5)
        .map(|_| {
            page.open("");
            number(
                &page.ask("performance.getEntriesByName('exactfed-draw')[0].duration", json!([])),
            )
        })
        .collect();
    all.sort_by(f64::total_cmp);
    assert!(all[0] > 0.0);
    println!("drawn in {:.1} ms (median of 5)", all[2]);
}

/// Waits until the observer of sizes has drawn.
pub fn settle(page: &Page) {
    let frames = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)));";
    page.browser.wait(frames, json!([]));
}
