//! Names and looks: at first view and after the script has drawn, every entry of a legend
//! looks as the curve that it names, and the two drawings show the same curves.

use crate::driver::Browser;
use crate::{PROBE, list};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

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

/// Whether two marks are one: the corners at the same places, but for whole pixels.
fn same_mark(a: &Value, b: &Value) -> bool {
    let (a, b) = (list(a), list(b));
    let near = |p: &Value, q: &Value| {
        [0, 1].iter().all(|i| (p[i].as_f64().unwrap() - q[i].as_f64().unwrap()).abs() < 0.2)
    };
    a.len() == b.len() && a.iter().zip(b).all(|(p, q)| near(p, q))
}

fn same_look(a: &Value, b: &Value) -> bool {
    a["ink"] == b["ink"] && a["dash"] == b["dash"] && same_mark(&a["mark"], &b["mark"])
}

/// Compares each legend with its curves; how many names were compared.
fn compare(page: &str, figures: &Value) -> usize {
    let mut compared = 0;
    for figure in list(figures) {
        let at = format!("{page}#{} by {}", figure["id"], figure["by"]);
        let (keys, lines) = (list(&figure["keys"]), list(&figure["lines"]));
        for key in keys {
            let label = &key["label"];
            let named: Vec<&Value> = lines.iter().filter(|line| line["label"] == *label).collect();
            let of_theory = list(&key["mark"]).is_empty();
            assert!(of_theory || !named.is_empty(), "{at}: {label} is not drawn");
            for line in named {
                assert!(same_look(key, line), "{at}: {label} is {key}, drawn {line}");
                compared += 1;
            }
        }
        for (i, a) in lines.iter().enumerate() {
            let named = keys.iter().any(|key| key["label"] == a["label"]);
            let kinds =
                keys.iter().filter(|k| list(&k["mark"]).is_empty() && k["dash"] == a["dash"]);
            assert!(named || a["role"] == "theory" && kinds.count() == 1, "{at}: {}", a["label"]);
            for b in lines[..i].iter().filter(|b| b["label"] != a["label"]) {
                let alike = a["role"] == b["role"] && same_look(a, b);
                assert!(!alike, "{at}: {} and {} look alike", a["label"], b["label"]);
            }
        }
    }
    compared
}

fn reports() -> crate::Bench {
    let bench = crate::reports();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    for (name, sets) in PUBLISHED {
        let file = format!("experiments/{name}.toml");
        let text = std::fs::read_to_string(root.join(format!("{name}.toml"))).unwrap();
        bench.write(&file, &text);
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let all: Vec<&str> = ["run", &file, "--quiet"].into_iter().chain(sets).collect();
        bench.run(&all).expect(0);
    }
    bench.bring_folder("data");
    for name in SMOKE {
        let file = bench.bring(&format!("{name}.toml"));
        bench.run(&["run", &file, "--quiet"]).expect(0);
    }
    // Cut short, claims may be refuted.
    let said = bench.run(&["report", "--quiet"]);
    assert!(said.code <= 1, "{}", said.err);
    bench
}

#[test]
fn every_legend_names_its_curves() {
    let Some(browser) = Browser::start() else { return };
    let bench = reports();
    let files = bench.files_below("reports");
    let pages: Vec<&PathBuf> = files.iter().filter(|f| f.ends_with("report.html")).collect();
    assert_eq!(pages.len(), 1 + PUBLISHED.len() + SMOKE.len());
    let mut compared = 0;
    for file in pages {
        let page = file.display().to_string();
        browser.size(1600, 900);
        browser.open(file, "");
        let first = browser.run(LOOKS, json!([]));
        compared += compare(&page, &first);
        // Without bands the script draws the same view.
        browser.run(
            "for (const s of document.querySelectorAll('select[name=band]')) { s.value = s.value === 'none' ? 'std' : 'none'; s.dispatchEvent(new Event('change')); }",
            json!([]),
        );
        let again = browser.run(LOOKS, json!([]));
        compare(&page, &again);
        for (a, b) in list(&first).iter().zip(list(&again)) {
            assert_eq!(b["by"], "script");
            let names = |of: &Value| -> Vec<Value> {
                list(&of["lines"]).iter().map(|line| line["label"].clone()).collect()
            };
            assert_eq!(names(a), names(b), "{page}#{}", a["id"]);
        }
        // And with other panels.
        browser.run(
            "for (const s of document.querySelectorAll('select[name=panels]')) { s.value = ''; s.dispatchEvent(new Event('change')); }",
            json!([]),
        );
        compare(&page, &browser.run(LOOKS, json!([])));
        same_numbers(&browser, &page, file.parent().unwrap());
    }
    assert!(compared > 100, "{compared}");
}

/// What the script draws under a name are the numbers that the analysis wrote under it.
fn same_numbers(browser: &Browser, page: &str, folder: &Path) {
    browser.open(&folder.join("report.html"), "");
    let drawn = browser.run(
        &format!("{PROBE}\nreturn JSON.parse(document.getElementById('data').textContent).figures.map(f => f.id)"),
        json!([]),
    );
    for id in list(&drawn).iter().map(|id| id.as_str().unwrap()) {
        let text = std::fs::read_to_string(folder.join(format!("figures/{id}.csv"))).unwrap();
        let wanted = points(&text);
        let saved = browser.wait(
            "const done = arguments[1]; const kept = [];
             URL.createObjectURL = blob => { kept.push(blob); return 'blob:kept'; };
             HTMLAnchorElement.prototype.click = function () {};
             document.querySelector(`#${CSS.escape(arguments[0])} .files .csv`).click();
             kept[0].text().then(done);",
            json!([id]),
        );
        let found = points(saved.as_str().unwrap());
        let names = |all: &[Point]| all.iter().map(|p| p.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found), names(&wanted), "{page}#{id}");
        for ((name, x, y), (_, wanted_x, wanted_y)) in found.iter().zip(&wanted) {
            for (found, wanted) in [(x, wanted_x), (y, wanted_y)] {
                let off = (found - wanted).abs();
                assert!(off <= 1e-5 * wanted.abs(), "{page}#{id} {name}: {found}, not {wanted}");
            }
        }
    }
}

/// Panel, curve and role of a point, and its place.
type Point = (String, f64, f64);

/// The points of a CSV of a figure; those that stand at no number are left out.
fn points(text: &str) -> Vec<Point> {
    let rows = text.lines().skip(1).map(crate::fields);
    let point = |row: Vec<String>| {
        let number = |text: &str| text.parse::<f64>().ok().filter(|v| v.is_finite());
        let (x, y) = (number(&row[3])?, number(&row[4])?);
        // Single precision ends here.
        let there = y == 0.0 || (1e-37..1e37).contains(&y.abs());
        there.then(|| (row[..3].join(" | "), x, y))
    };
    rows.filter_map(point).collect()
}
