//! Names and looks: in every view, each entry of a list of curves looks as the curve that it
//! names, each label has the colour of its curve, and no two curves look alike.

use crate::support::looks::{Drawing, compare};
use crate::{Page, list};
use serde_json::json;
use std::path::Path;

/// Of each figure: its list of curves, what is drawn of each curve, and the labels whose colour
/// is not that of their curve.
const LOOKS: &str = "
const look = node => {
  const line = node.querySelector('line, polyline:not(.run)'), filled = node.querySelector('polygon.mark') ?? node.querySelector('circle');
  const dashes = node.getAttribute('stroke-dasharray') ?? line?.getAttribute('stroke-dasharray') ?? '';
  const corners = filled?.points ? [...filled.points] : [], sum = (list, f) => list.reduce((s, p) => s + f(p), 0);
  const [x, y] = [sum(corners, p => p.x) / corners.length, sum(corners, p => p.y) / corners.length];
  const reach = Math.max(...corners.map(p => Math.hypot(p.x - x, p.y - y)));
  return { ink: line ? getComputedStyle(line).stroke : filled && getComputedStyle(filled).fill,
    dash: dashes.split(' ').filter(Boolean).map(Number), mark: corners.map(p => [(p.x - x) / reach, (p.y - y) / reach]) };
};
const probe = document.createElement('span');
document.body.append(probe);
probe.style.color = 'var(--i)';
const ink = color => { probe.dataset.color = color; return getComputedStyle(probe).color; };
const astray = panel => [...panel.querySelectorAll('.labels [data-label]')].filter(label => {
  const curve = [...panel.querySelectorAll('.series')].find(s => s.dataset.label === label.dataset.label);
  return !curve || curve.dataset.color !== 'none' && getComputedStyle(label).fill !== ink(curve.dataset.color);
}).map(label => label.dataset.label);
const all = [...document.querySelectorAll('.plot')].filter(plot => plot.querySelector('.plane')).map(plot => ({
  id: plot.id, by: plot.querySelector('.chart').dataset.by,
  keys: [...plot.querySelectorAll('.legend:not(.groups) button')].map(b => ({ label: b.dataset.label, ...look(b) })),
  lines: [...plot.querySelectorAll('.series')].filter(s => s.children.length).map(s => ({ label: s.dataset.label, role: s.classList[1], ...look(s) })),
  astray: [...plot.querySelectorAll('.panel')].flatMap(astray), labels: plot.querySelectorAll('.labels [data-label]').length,
}));
probe.remove();
return all;";

/// The figures of a page as its script has drawn them, whose labels have the right colours; and
/// how many labels they have.
fn drawings(page: &Page, file: &Path) -> (Vec<Drawing>, usize) {
    let found = page.browser.run(LOOKS, json!([]));
    let mut labels = 0;
    for figure in list(&found) {
        let astray = list(&figure["astray"]);
        assert!(astray.is_empty(), "{} {}: {astray:?}", file.display(), figure["id"]);
        labels += figure["labels"].as_u64().unwrap() as usize;
    }
    let mut all: Vec<Drawing> = serde_json::from_value(found).unwrap();
    all.iter_mut().for_each(|drawing| drawing.id = format!("{}#{}", file.display(), drawing.id));
    (all, labels)
}

/// Chooses for every control of this name, by an expression over the control `s`.
fn choose_all(page: &Page, name: &str, value: &str) {
    let each = format!("s.value = {value}; s.dispatchEvent(new Event('change'));");
    let script =
        format!("for (const s of document.querySelectorAll('select[name={name}]')) {{ {each} }}");
    page.browser.run(&script, json!([]));
}

/// Checks all figures of a page in both themes, with and without bands, with other panels; how
/// many entries and labels were compared.
pub fn check(page: &Page, file: &Path) -> (usize, usize) {
    let (mut compared, mut labelled) = (0, 0);
    for scheme in ["light", "dark"] {
        page.browser.media("screen", scheme);
        page.browser.size(1600, 900);
        page.browser.open(file, "");
        let (first, labels) = drawings(page, file);
        compared += first.iter().map(compare).sum::<usize>();
        labelled += labels;
        choose_all(page, "band", "s.value === 'none' ? 'std' : 'none'");
        let (again, _) = drawings(page, file);
        for (a, b) in first.iter().zip(&again) {
            compare(b);
            assert_eq!((a.by.as_str(), b.by.as_str()), ("script", "script"));
            let [a, b] = [a, b].map(|of| of.lines.iter().map(|line| &line.label));
            assert!(a.eq(b), "{}", file.display());
        }
        // And with other panels.
        choose_all(page, "panels", "''");
        drawings(page, file).0.iter().for_each(|drawing| {
            compare(drawing);
        });
    }
    same_numbers(page, file);
    (compared, labelled)
}

/// What the script draws under a name are the numbers that the analysis wrote under it: the means,
/// the ends of the band and the size of the sample.
fn same_numbers(page: &Page, file: &Path) {
    page.browser.open(file, "");
    let ids = "JSON.parse(document.getElementById('data').textContent).figures.map(f => f.id)";
    for id in list(&page.ask(ids, json!([]))).iter().map(|id| id.as_str().unwrap()) {
        let csv = file.with_file_name(format!("figures/{id}.csv"));
        let wanted = points(&std::fs::read_to_string(csv).unwrap());
        let found = points(&page.saved(id, "csv").1);
        let names = |all: &[CsvPoint]| all.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        let at = format!("{}#{id}", file.display());
        assert_eq!(names(&found), names(&wanted), "{at}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(agree(found, wanted), "{at}: {found:?}, not {wanted:?}");
        }
    }
}

/// A point of a CSV file of a figure.
#[derive(Debug)]
struct CsvPoint {
    /// Panel, curve and role.
    name: String,
    x: f64,
    y: f64,
    /// The ends of the band, if the point has one.
    ends: Option<[f64; 2]>,
    /// The size of the sample; 0 of what is not measured.
    n: u64,
}

/// Whether two points are equal but for the digits of single precision, in which pages have them.
fn agree(found: &CsvPoint, wanted: &CsvPoint) -> bool {
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-5 * b.abs();
    let same_band = match (found.ends, wanted.ends) {
        (Some(found), Some(wanted)) => near(found[0], wanted[0]) && near(found[1], wanted[1]),
        (None, None) => true,
        _ => false,
    };
    near(found.x, wanted.x) && near(found.y, wanted.y) && same_band && found.n == wanted.n
}

/// The points of a CSV of a figure; those that stand at no number are left out.
fn points(text: &str) -> Vec<CsvPoint> {
    let point = |row: Vec<String>| {
        let number = |text: &str| text.parse::<f64>().ok();
        let x = number(&row[3]).filter(|x| x.is_finite())?;
        let y = number(&row[4]).filter(|y| y.is_finite())?;
        // Single precision ends here.
        let there = y == 0.0 || (1e-37..1e37).contains(&y.abs());
        let ends = number(&row[5]).zip(number(&row[6])).map(|(low, high)| [low, high]);
        let n = row[7].parse().unwrap_or(0);
        there.then(|| CsvPoint { name: row[..3].join(" | "), x, y, ends, n })
    };
    crate::rows(text).into_iter().skip(1).filter_map(point).collect()
}
