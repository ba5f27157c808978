//! The numbers that a figure's CSV button saves are those of the CSV file of the figure.

use crate::{Page, list, rows};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Of each figure of a page its id and the text that its CSV button saves.
const SAVED: &str = "
const done = arguments[0], kept = [];
URL.createObjectURL = blob => { kept.push(blob); return 'blob:kept'; };
HTMLAnchorElement.prototype.click = () => {};
const { figures } = JSON.parse(document.getElementById('data').textContent);
for (const { id } of figures) document.querySelector(`#${CSS.escape(id)} .files .csv`).click();
Promise.all(kept.map(blob => blob.text())).then(texts => done(figures.map(({ id }, i) => [id, texts[i]])));";

/// The measured points of each curve, by panel and name: y, the ends of its band, and n.
fn points(table: &str) -> BTreeMap<[String; 2], Vec<[f64; 4]>> {
    let mut curves: BTreeMap<[String; 2], Vec<[f64; 4]>> = BTreeMap::new();
    for row in rows(table).into_iter().filter(|row| row[2] == "measured") {
        let point = [4, 5, 6, 7].map(|i| row[i].parse().unwrap_or(f64::NAN));
        curves.entry([row[0].clone(), row[1].clone()]).or_default().push(point);
    }
    curves
}

/// Whether two numbers are one, but for single precision; no number is no number.
fn is_same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * b.abs()
}

/// Compares all figures of the open page with their files; how many points were compared.
pub fn check(page: &Page, file: &Path) -> usize {
    let saved = page.browser.wait(SAVED, json!([]));
    let mut compared = 0;
    for figure in list(&saved) {
        let [id, saved] = [0, 1].map(|i| figure[i].as_str().unwrap());
        let of_file =
            std::fs::read_to_string(file.with_file_name(format!("figures/{id}.csv"))).unwrap();
        let (found, wanted) = (points(saved), points(&of_file));
        let at = format!("{}#{id}", file.display());
        assert!(found.keys().eq(wanted.keys()), "{at}: {:?}, {:?}", found.keys(), wanted.keys());
        for (curve, wanted) in &wanted {
            let found = &found[curve];
            assert_eq!(found.len(), wanted.len(), "{at}, {curve:?}");
            for (a, b) in found.iter().zip(wanted) {
                let is_same = a.iter().zip(b).all(|(a, b)| is_same(*a, *b));
                assert!(is_same, "{at}, {curve:?}: {a:?}, not {b:?}");
                compared += 1;
            }
        }
    }
    compared
}
