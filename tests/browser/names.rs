//! Names and looks: at first view and after the script has drawn, every entry of a legend
//! looks as the curve that it names, and the two drawings show the same curves.

use crate::driver::Browser;
use crate::support::looks::{Drawing, compare};
use crate::support::root;
use crate::{Page, list};
use serde_json::json;
use std::path::Path;

/// Published experiments with many curves, cut short by settings.
const PUBLISHED: [(&str, &[&str]); 5] = [
    ("scafflsa/complexity", &["replicates=2", "budget.rounds=60"]),
    ("scafflsa/schedules", &["replicates=2"]),
    ("scaffold/variance", &["replicates=2", "budget.local-steps=200"]),
    ("rr/deterministic", &[]),
    ("rr/local-steps", &["replicates=2"]),
];
const SMOKE: [&str; 4] = ["all-atoms", "all-quadratic", "garnet", "diverging"];

/// Of each figure: its legend, and what is drawn of each curve.
const LOOKS: &str = "
const look = (node, by) => {
  const line = node.querySelector('line, polyline'), filled = node.querySelector('polygon:not([opacity=\"0.16\"])') ?? node.querySelector('circle');
  const dashes = node.getAttribute('stroke-dasharray') ?? line?.getAttribute('stroke-dasharray') ?? '';
  const corners = filled?.points ? [...filled.points] : [], sum = (list, f) => list.reduce((s, p) => s + f(p), 0);
  const [x, y] = [sum(corners, p => p.x) / corners.length, sum(corners, p => p.y) / corners.length];
  const reach = Math.max(...corners.map(p => Math.hypot(p.x - x, p.y - y)));
  return { ink: line ? getComputedStyle(line).stroke : filled && getComputedStyle(filled).fill,
    dash: dashes.split(' ').filter(Boolean).map(v => v * by), mark: corners.map(p => [(p.x - x) / reach, (p.y - y) / reach]) };
};
return [...document.querySelectorAll('.plot')].filter(plot => plot.querySelector('.chart[data-by]')).map(plot => ({
  id: plot.id, by: plot.querySelector('.chart').dataset.by,
  keys: [...plot.querySelectorAll('.legend button')].map(b => ({ label: b.dataset.label, pressed: b.getAttribute('aria-pressed'), ...look(b, 1) })),
  lines: [...plot.querySelectorAll('.series')].filter(s => s.children.length).map(s => ({ label: s.dataset.label, role: s.classList[1],
    ...look(s, s.closest('.panel > g').getAttribute('transform').includes('scale') ? 0.25 : 1) })),
}));";

/// The drawings of a page.
fn drawings(page: &Page, file: &Path) -> Vec<Drawing> {
    let mut all: Vec<Drawing> = serde_json::from_value(page.browser.run(LOOKS, json!([]))).unwrap();
    all.iter_mut().for_each(|drawing| drawing.id = format!("{}#{}", file.display(), drawing.id));
    all
}

/// Chooses for every control of this name, by an expression over the control `s`.
fn choose_all(page: &Page, name: &str, value: &str) {
    let each = format!("s.value = {value}; s.dispatchEvent(new Event('change'));");
    let script =
        format!("for (const s of document.querySelectorAll('select[name={name}]')) {{ {each} }}");
    page.browser.run(&script, json!([]));
}

fn reports() -> crate::Bench {
    let bench = crate::reports();
    for (name, sets) in PUBLISHED {
        let file = format!("experiments/{name}.toml");
        bench.write(&file, std::fs::read(root().join(&file)).unwrap());
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        bench.compute(&[&[file.as_str()], &sets[..]].concat());
    }
    for name in SMOKE {
        bench.compute(&[&bench.bring(name)]);
    }
    // Cut short, claims may be refuted.
    let output = bench.run(&["report", "--quiet"]);
    assert!(output.code <= 1, "{}", output.err);
    bench
}

#[test]
fn every_legend_names_its_curves() {
    let Some(browser) = Browser::start() else { return };
    let page = Page { browser, bench: reports() };
    let mut files = page.bench.files_below("reports");
    files.retain(|file| file.ends_with("report.html"));
    assert_eq!(files.len(), 1 + PUBLISHED.len() + SMOKE.len());
    let mut compared = 0;
    for file in files {
        page.browser.size(1600, 900);
        page.browser.open(&file, "");
        let first = drawings(&page, &file);
        compared += first.iter().map(compare).sum::<usize>();
        // Without bands the script draws the same view.
        choose_all(&page, "band", "s.value === 'none' ? 'std' : 'none'");
        let again = drawings(&page, &file);
        for (a, b) in first.iter().zip(&again) {
            compare(b);
            assert_eq!(b.by, "script");
            let [a, b] = [a, b].map(|of| of.lines.iter().map(|line| &line.label));
            assert!(a.eq(b), "{}", file.display());
        }
        // And with other panels.
        choose_all(&page, "panels", "''");
        for drawing in drawings(&page, &file) {
            compare(&drawing);
        }
        same_numbers(&page, &file);
    }
    assert!(compared > 100, "{compared}");
}

/// What the script draws under a name are the numbers that the analysis wrote under it.
fn same_numbers(page: &Page, file: &Path) {
    page.browser.open(file, "");
    let ids = "JSON.parse(document.getElementById('data').textContent).figures.map(f => f.id)";
    for id in list(&page.ask(ids, json!([]))).iter().map(|id| id.as_str().unwrap()) {
        let csv = file.with_file_name(format!("figures/{id}.csv"));
        let wanted = points(&std::fs::read_to_string(csv).unwrap());
        let found = points(&page.saved(id, "csv").1);
        let names = |all: &[Point]| all.iter().map(|p| p.0.clone()).collect::<Vec<_>>();
        let at = format!("{}#{id}", file.display());
        assert_eq!(names(&found), names(&wanted), "{at}");
        for ((name, x, y), (_, wanted_x, wanted_y)) in found.iter().zip(&wanted) {
            for (found, wanted) in [(x, wanted_x), (y, wanted_y)] {
                let off = (found - wanted).abs();
                assert!(off <= 1e-5 * wanted.abs(), "{at} {name}: {found}, not {wanted}");
            }
        }
    }
}

/// Panel, curve and role of a point, and its place.
type Point = (String, f64, f64);

/// The points of a CSV of a figure; those that stand at no number are left out.
fn points(text: &str) -> Vec<Point> {
    let point = |row: Vec<String>| {
        let number = |text: &str| text.parse::<f64>().ok().filter(|v| v.is_finite());
        let (x, y) = (number(&row[3])?, number(&row[4])?);
        // Single precision ends here.
        let there = y == 0.0 || (1e-37..1e37).contains(&y.abs());
        there.then(|| (row[..3].join(" | "), x, y))
    };
    crate::rows(text).into_iter().skip(1).filter_map(point).collect()
}
