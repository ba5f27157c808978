//! `[[figure.stability]]`: how many runs diverged, over two settings, beside the
//! spectral radii of the exact recursions of moments.
//!
//! *Invariant*: what ran and what theory says are told apart; where they differ the
//! square is marked and neither is changed.

use super::figure::{Body, Figure, GREY, Key, Legend, Map, MapCell, Stability, Style};
use super::theory::Theory;
use super::{Result, select};
use driftbench_core::problem::Facts;
use driftbench_core::theory::moments::{self, Exact};
use driftbench_runner::manifest::figure::Stability as Asked;
use driftbench_runner::plan::{Setting, SettingKey};
use driftbench_runner::runner::{Prepared, predict};
use rayon::prelude::*;
use std::collections::HashMap;

/// Spectral radii of a cell: of the mean, where it is known, and of second moments.
type Radii = (Option<f64>, f64);

/// Rounds that finding a radius takes, about; and the products that it may cost.
const ROUNDS: u64 = 1024;
const MOST_PRODUCTS: f64 = 4e9;

pub fn draw(figure: &Asked, cells: &[&Result<'_>], theory: &Theory<'_>) -> Figure {
    let known: Vec<&Prepared<'_>> =
        cells.iter().filter_map(|c| theory.prepared(&c.cell.id)).collect();
    let radii: HashMap<&str, Radii> =
        known.par_iter().filter_map(|p| Some((p.cell.id.as_str(), radii(p)?))).collect();
    let mut labels: Vec<&str> = Vec::new();
    for cell in cells {
        if !labels.contains(&cell.cell.label.as_str()) {
            labels.push(&cell.cell.label);
        }
    }
    let sides = (select::distinct(cells, &figure.x), select::distinct(cells, &figure.y));
    let mut maps = Vec::new();
    for label in &labels {
        let mine: Vec<&Result<'_>> =
            cells.iter().copied().filter(|c| c.cell.label == *label).collect();
        for group in select::panels(&figure.common.panels, &mine) {
            let title = [*label, group.title.as_str()];
            let title: Vec<&str> = title.into_iter().filter(|t| !t.is_empty()).collect();
            maps.push(map(figure, &sides, &group, title.join(", "), &radii));
        }
    }
    let patch = |label: &str, color| Legend {
        label: label.into(),
        style: Style::plain(color),
        key: Key::Patch,
    };
    let mut legend = vec![patch("no run diverged", 0), patch("runs diverged", 1)];
    if !radii.is_empty() {
        let style = Style::plain(GREY);
        legend.push(Legend { label: "ρ = 1".into(), style, key: Key::Line });
    }
    Figure {
        id: String::new(),
        title: figure.common.title.clone().unwrap_or_else(|| "Where runs diverge".into()),
        caption: caption(cells, &maps, radii.len()),
        asks: None,
        columns: figure.common.columns.unwrap_or(maps.len().clamp(1, 2)),
        body: Body::Maps { maps, legend, x: symbol(&figure.x), y: symbol(&figure.y) },
    }
}

/// A setting's symbol.
fn symbol(name: &str) -> String {
    let text = select::pretty(name, &Setting::Text(String::new()));
    text.trim_end_matches([' ', '=']).to_owned()
}

fn map(
    figure: &Asked,
    (xs, ys): &(Vec<&Setting>, Vec<&Setting>),
    group: &select::Group<'_>,
    title: String,
    radii: &HashMap<&str, Radii>,
) -> Map {
    let (at_x, at_y) = (select::placed(xs), select::placed(ys));
    let mut cells = Vec::new();
    for cell in &group.cells {
        let place = |places: &HashMap<SettingKey<'_>, usize>, name: &str| {
            places.get(&cell.cell.settings.get(name)?.key()).copied()
        };
        let (Some(x), Some(y)) = (place(&at_x, &figure.x), place(&at_y, &figure.y)) else {
            continue;
        };
        let (runs, diverged) = (cell.replicates(), cell.diverged());
        let found = radii.get(cell.cell.id.as_str());
        let stability =
            Stability { runs, diverged, mean: found.and_then(|f| f.0), square: found.map(|f| f.1) };
        let differs = if stability.differs() { " ≠" } else { "" };
        let detail: Vec<String> = match found {
            Some((Some(mean), square)) => {
                vec![format!("ρ {}", told(*square)), format!("mean {}", told(*mean))]
            }
            Some((None, square)) => vec![format!("ρ {}", told(*square))],
            None => Vec::new(),
        };
        let winner = format!("{diverged} of {runs}{differs}");
        cells.push(MapCell {
            x,
            y,
            color: usize::from(diverged > 0),
            detail: detail.join("; "),
            lines: std::iter::once(winner.clone()).chain(detail).collect(),
            winner,
            sure: !stability.differs(),
            stability: Some(stability),
        });
    }
    let names = |values: &[&Setting]| values.iter().map(|v| v.to_string()).collect();
    Map { title, x: names(xs), y: names(ys), cells }
}

/// The radii of a cell's recursions, the largest of its instances; `None` where moments
/// do not close, cost too much, or do not settle.
fn radii(prepared: &Prepared<'_>) -> Option<Radii> {
    let of = |ground: &driftbench_runner::runner::Ground| -> Option<Radii> {
        let facts: &dyn Facts = &*ground.instance;
        let scheme = predict::stationary_scheme(&prepared.cell.identity, facts.clients())?;
        let cost = moments::cost(facts, &scheme, ROUNDS, 0);
        if cost.products > MOST_PRODUCTS || !cost.fits() {
            return None;
        }
        let found = Exact::new(facts, &scheme)?.stability()?;
        Some((found.mean, found.square))
    };
    let largest = |(a, b): Radii, (c, d): Radii| (a.zip(c).map(|(a, c)| a.max(c)), b.max(d));
    let all: Option<Vec<Radii>> = prepared.grounds.iter().map(|ground| of(ground)).collect();
    all?.into_iter().reduce(largest)
}

/// Three digits; close to 1 as many as it takes to see the side.
fn told(radius: f64) -> String {
    match radius {
        r if r >= 1000.0 => format!("{r:.0e}"),
        r if (r - 1.0).abs() < 5e-4 => format!("{r:.6}"),
        r if r >= 10.0 => format!("{r:.0}"),
        r => format!("{r:.3}"),
    }
}

fn caption(cells: &[&Result<'_>], maps: &[Map], known: usize) -> String {
    if cells.is_empty() {
        return "There is nothing to draw: no cell has results yet.".into();
    }
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let mut caption = format!(
        "How many of n = {n} runs diverged, that is, left the range of numbers, within their rounds: the darker, the more."
    );
    if known == 0 {
        caption.push_str(
            " Theory says nothing here: the field is not linear, or its moments are not followed.",
        );
    } else {
        caption.push_str(" ρ: the spectral radius of one round's exact linear map of the second moments, below it that of the mean's; the heavy line is where ρ passes 1.");
        if known < cells.len() {
            let without = cells.len() - known;
            caption.push_str(&format!(" Of {without} of {} cells it is not known.", cells.len()));
        }
    }
    let squares = || maps.iter().flat_map(|m| &m.cells);
    let marked: Vec<&Stability> =
        squares().filter_map(|c| c.stability.as_ref()).filter(|s| s.differs()).collect();
    let calm = marked.iter().filter(|s| s.diverged == 0).count();
    let wild = marked.len() - calm;
    if calm > 0 {
        caption.push_str(&format!(
            " In {calm} of the squares (≠) ρ is not below 1 and no run diverged: runs are finite, and growth may need more rounds to leave the range of numbers; or second moments grow by ever rarer runs while almost every run converges."
        ));
    }
    if wild > 0 {
        caption.push_str(&format!(
            " In {wild} of the squares (≠) ρ is below 1 and runs diverged, which exact moments do not explain."
        ));
    }
    caption.push_str(&blank(maps));
    caption
}

/// What a caption says of squares without a cell.
pub fn blank(maps: &[Map]) -> String {
    let count: usize =
        maps.iter().map(|m| (m.x.len() * m.y.len()).saturating_sub(m.cells.len())).sum();
    match count {
        0 => String::new(),
        count => format!(" Blank squares ({count}): no cell, or none with results yet."),
    }
}
