//! `[[figure.winners]]`: which algorithm has the smallest final mean, over two
//! settings, by what factor the second is behind, and how sure that is.

use super::figure::{Body, Figure, Key, Legend, Map, MapCell, Style};
use super::stability::blank;
use super::{Result, select};
use crate::manifest::Quantity;
use crate::manifest::figure::Winners;
use crate::plan::{Setting, SettingKey, short};
use crate::stats::{Ratio, holm, mean};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Which algorithm is best where several stand beside one another.
pub struct Standing {
    /// The values of the settings that tell the places apart.
    pub place: Vec<String>,
    /// The algorithm with the smallest mean of ‖θ_T − θ*‖².
    pub winner: String,
    /// That mean.
    pub error: f64,
    /// The next, and how many times larger its mean is over paired runs.
    pub second: Option<(String, Ratio)>,
    /// Replicates of the winner.
    pub n: usize,
    /// Those with runs that diverged: they cannot win.
    pub diverged: Vec<String>,
    /// How sure it is.
    pub sure: Sure,
}

/// How sure it is who wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// The next is worse (Holm over all rows, family-wise level 5 %).
    Yes,
    /// The runs do not tell.
    No,
    /// Their errors are equal but for rounding.
    Same,
    /// All ended above where they began.
    Nobody,
}

/// Who wins at every place of a grid: the names of the settings that all algorithms
/// share, and a row for each combination of their values.
pub fn standings(cells: &[Result<'_>]) -> (Vec<String>, Vec<Standing>) {
    let cells: Vec<&Result<'_>> = cells.iter().collect();
    let mut labels: Vec<&str> = cells.iter().map(|c| c.cell.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut axes: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in cells.iter().flat_map(|c| &c.cell.varied).map(|path| short(path)) {
        let has = |label: &&str| {
            let mut own = cells.iter().filter(|c| c.cell.label == **label);
            own.any(|c| c.cell.settings.get(name).is_some())
        };
        if seen.insert(name) && labels.iter().all(has) {
            axes.push(name.to_owned());
        }
    }
    if labels.len() < 2 {
        return (axes, Vec::new());
    }
    let known: Vec<&str> = axes.iter().map(String::as_str).collect();
    let groups = select::panels(&axes, &cells);
    let mut rows: Vec<Standing> =
        groups.iter().filter_map(|group| standing(group, &known)).collect();
    let open = |row: &&mut Standing| row.sure == Sure::No;
    let p: Vec<f64> = rows.iter_mut().filter(open).map(|row| p_of(row)).collect();
    for (row, p) in rows.iter_mut().filter(open).zip(holm(&p)) {
        let apart = row.second.as_ref().is_some_and(|(_, ratio)| ratio.low > 1.0);
        if p <= 0.05 && apart {
            row.sure = Sure::Yes;
        }
    }
    (axes, rows)
}

fn p_of(row: &Standing) -> f64 {
    let p = row.second.as_ref().map_or(f64::NAN, |(_, ratio)| ratio.p);
    if p.is_nan() { 1.0 } else { p }
}

fn standing(group: &select::Group<'_>, known: &[&str]) -> Option<Standing> {
    let name = |c: &Result<'_>| {
        let details = select::details(c, known);
        if details.is_empty() {
            c.cell.label.clone()
        } else {
            format!("{}, {details}", c.cell.label)
        }
    };
    let finals = |c: &&&Result<'_>| Some((name(c), c.finals(Quantity::SqError)?));
    let mut all: Vec<(String, Vec<f64>)> = group.cells.iter().filter_map(|c| finals(&c)).collect();
    all.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let diverged = group.cells.iter().filter(|c| c.diverged() > 0).map(|c| name(c)).collect();
    let (winner, best) = all.first()?;
    let second: Option<(String, Ratio)> =
        all.get(1).map(|(name, sample)| (name.clone(), Ratio::of_means(sample, best)));
    let alone = group.cells.len() < 2;
    let start = group.cells.iter().map(|c| c.runs.start()).fold(0.0, f64::max);
    let sure = match &second {
        // A run that starts at θ* can only go up.
        _ if mean(best).is_nan() || start > 0.0 && mean(best) > start => Sure::Nobody,
        None => Sure::Yes,
        Some((_, ratio)) if ratio.estimate <= 1.0 + 1e-9 || ratio.estimate.is_nan() => Sure::Same,
        Some((_, ratio)) if ratio.high - ratio.low <= 1e-9 * ratio.estimate => Sure::Yes,
        Some(_) => Sure::No,
    };
    (!alone).then(|| Standing {
        place: group.values.clone(),
        winner: winner.clone(),
        error: mean(best),
        second,
        n: best.len(),
        diverged,
        sure,
    })
}

pub fn draw(figure: &Winners, cells: &[&Result<'_>]) -> Figure {
    let mut labels: Vec<String> = Vec::new();
    for cell in cells {
        if !labels.contains(&cell.cell.label) {
            labels.push(cell.cell.label.clone());
        }
    }
    let groups = select::panels(&figure.panels, cells);
    let sides = (select::distinct(cells, &figure.x), select::distinct(cells, &figure.y));
    let maps: Vec<Map> = groups.iter().map(|group| map(figure, &sides, group, &labels)).collect();
    let legend = labels
        .iter()
        .enumerate()
        .map(|(color, label)| Legend {
            label: label.clone(),
            style: Style { color, dash: 0 },
            key: Key::Patch,
        })
        .collect();
    let symbol = |name: &str| {
        let text = select::pretty(name, &Setting::Text(String::new()));
        text.trim_end_matches([' ', '=']).to_owned()
    };
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let mut caption = format!(
        "The algorithm with the smallest mean of {} at the last round (n = {n} runs), and how many times larger the second's is, with a 95 % interval over paired runs (common noise; no correction for the number of squares). Pale: the interval includes 1.",
        figure.metric.formula()
    );
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    if diverged > 0 {
        caption.push_str(&format!(
            " {diverged} of {} cells have runs that diverged and take no part.",
            cells.len()
        ));
    }
    caption.push_str(&blank(&maps));
    if cells.is_empty() {
        caption = "There is nothing to draw: no cell has results yet.".into();
    }
    Figure {
        id: String::new(),
        title: figure.title.clone().unwrap_or_else(|| "Which algorithm wins".into()),
        caption,
        columns: figure.columns.unwrap_or(maps.len().clamp(1, 2)),
        asks: None,
        body: Body::Maps { maps, legend, x: symbol(&figure.x), y: symbol(&figure.y) },
    }
}

/// The values along both sides of a figure's maps.
type Sides<'a> = (Vec<&'a Setting>, Vec<&'a Setting>);

fn map(
    figure: &Winners,
    (xs, ys): &Sides<'_>,
    group: &select::Group<'_>,
    labels: &[String],
) -> Map {
    let (at_x, at_y) = (select::placed(xs), select::placed(ys));
    let mut squares: BTreeMap<(usize, usize), Vec<&Result<'_>>> = BTreeMap::new();
    for cell in &group.cells {
        let along = |name: &str, places: &HashMap<SettingKey<'_>, usize>| {
            match cell.cell.settings.get(name) {
                // It stands in every square along the side.
                None => 0..places.len(),
                Some(value) => places.get(&value.key()).map_or(0..0, |place| *place..*place + 1),
            }
        };
        for x in along(&figure.x, &at_x) {
            for y in along(&figure.y, &at_y) {
                squares.entry((x, y)).or_default().push(cell);
            }
        }
    }
    let square = |((x, y), cells): ((usize, usize), Vec<&Result<'_>>)| {
        let (color, winner, detail, sure) = best(figure, &cells, labels);
        MapCell { x, y, color, winner, detail, sure, stability: None }
    };
    let cells = squares.into_iter().map(square).collect();
    let names = |values: &[&Setting]| values.iter().map(|v| v.to_string()).collect();
    Map { title: group.title.clone(), x: names(xs), y: names(ys), cells }
}

/// Who is best of the cells of a square, by what factor, and whether that is sure.
fn best(
    figure: &Winners,
    cells: &[&Result<'_>],
    labels: &[String],
) -> (usize, String, String, bool) {
    let found = cells.iter().filter_map(|c| Some((&*c.cell.label, c.finals(figure.metric)?)));
    let mut finals: Vec<(&str, Vec<f64>)> = found.collect();
    finals.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let Some((winner, best)) = finals.first() else {
        // Nothing that was run here has a mean.
        return (usize::MAX, "none".into(), "all diverged".into(), false);
    };
    let color = labels.iter().position(|l| l == winner).unwrap_or(0);
    let (detail, sure) = match finals.get(1) {
        Some((_, second)) => {
            let ratio = Ratio::of_means(second, best);
            // Single runs have no interval.
            let text = match ratio.low.is_nan() || ratio.high.is_nan() {
                true => format!("×{:.2}", ratio.estimate),
                false => format!("×{:.2} [{:.2}, {:.2}]", ratio.estimate, ratio.low, ratio.high),
            };
            (text, ratio.low > 1.0)
        }
        None => ("alone".into(), false),
    };
    (color, (*winner).to_owned(), detail, sure)
}
