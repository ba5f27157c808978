//! `[[figure.winners]]`: which algorithm has the smallest final mean, over two settings, by
//! what factor the next is behind, and which are not separated from it.

use super::figure::{Body, Figure, GREY, Key, Legend, Map, MapCell, Style};
use super::ranking::{Outcome, Rankings};
use super::stability::blank;
use super::{CellResult, panels, setting_text};
use driftbench_core::words::count;
use driftbench_runner::manifest::figure::Winners;
use driftbench_runner::plan::{Setting, SettingKey};
use std::collections::{BTreeMap, HashMap};

pub fn draw<'a>(figure: &Winners, cells: &[&'a CellResult<'a>], contests: &Rankings<'a>) -> Figure {
    let mut labels: Vec<String> = Vec::new();
    for cell in cells {
        if !labels.contains(&cell.cell.label) {
            labels.push(cell.cell.label.clone());
        }
    }
    let sides = sides(figure, cells);
    let groups = panels::panels(&figure.panels, cells);
    let mut some_above_start = false;
    let maps = groups.iter().map(|group| {
        let squares = squares(figure, &sides, group).into_iter().map(|((x, y), cells)| {
            let outcome = contests.outcome(&cells, figure.metric).unwrap_or(&Outcome::Diverged);
            some_above_start |= matches!(outcome, Outcome::AboveStart { .. });
            square((x, y), outcome, &cells, &labels)
        });
        let names = |values: &[&Setting]| values.iter().map(|v| v.to_string()).collect();
        let (x, y) = (names(&sides.0), names(&sides.1));
        Map { title: group.title.clone(), x, y, cells: squares.collect() }
    });
    let maps: Vec<Map> = maps.collect();
    let patch = |color: usize, label: &str| Legend {
        label: label.to_owned(),
        style: Style::plain(color),
        key: Key::Patch,
    };
    let mut legend: Vec<Legend> =
        labels.iter().enumerate().map(|(color, label)| patch(color, label)).collect();
    let mut squares = maps.iter().flat_map(|map| &map.cells);
    if squares.any(|square| square.color == GREY && square.lines.len() > 1) {
        legend.push(patch(GREY, "not separated, or none"));
    }
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let mut caption = format!(
        "The algorithm with the smallest mean of {} at the last round (n = {}), and how many times larger the next one's is, with a 95 % interval over paired runs (common noise). Grey: the algorithms that are named are not separated from the best. Each is compared with the best of its square; Holm's correction is for the {} of this page, in its table and its maps, at a family-wise level of 5 %; intervals are not corrected.",
        figure.metric.formula(),
        count(n, "run"),
        count(contests.compared, "comparison")
    );
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    if diverged > 0 {
        caption.push_str(&format!(
            " {diverged} of {} cells have runs that diverged and take no part.",
            cells.len()
        ));
    }
    if some_above_start {
        caption.push_str(
            " Above the start: even the smallest mean is larger than where the runs began.",
        );
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
        body: Body::Maps {
            maps,
            legend,
            x: setting_text::symbol(&figure.x),
            y: setting_text::symbol(&figure.y),
        },
    }
}

/// The cells that stand in each square of a figure's maps.
pub fn places<'a>(figure: &Winners, cells: &[&'a CellResult<'a>]) -> Vec<Vec<&'a CellResult<'a>>> {
    let sides = sides(figure, cells);
    let groups = panels::panels(&figure.panels, cells);
    groups.iter().flat_map(|group| squares(figure, &sides, group).into_values()).collect()
}

/// The values along both sides of a figure's maps.
type Sides<'a> = (Vec<&'a Setting>, Vec<&'a Setting>);

fn sides<'a>(figure: &Winners, cells: &[&'a CellResult<'a>]) -> Sides<'a> {
    (panels::distinct(cells, &figure.x), panels::distinct(cells, &figure.y))
}

fn squares<'a>(
    figure: &Winners,
    (xs, ys): &Sides<'_>,
    group: &panels::Group<'a>,
) -> BTreeMap<(usize, usize), Vec<&'a CellResult<'a>>> {
    let (at_x, at_y) = (panels::placed(xs), panels::placed(ys));
    let mut squares: BTreeMap<(usize, usize), Vec<&CellResult<'_>>> = BTreeMap::new();
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
    squares
}

/// Names that a square has room for.
const MOST_NAMES: usize = 3;

/// A square: who is best there, by what factor, or who is not separated from the best.
fn square(
    (x, y): (usize, usize),
    outcome: &Outcome,
    cells: &[&CellResult<'_>],
    labels: &[String],
) -> MapCell {
    let leaders = outcome.leaders().into_iter().map(|place| cells[place].cell.label.as_str());
    let leaders: Vec<&str> = leaders.collect();
    let detail: Vec<String> = match outcome {
        Outcome::Diverged => vec!["all diverged".into()],
        Outcome::AboveStart { .. } => vec!["above".into(), "the start".into()],
        Outcome::Ranked { rivals, .. } => match rivals.first().map(|rival| rival.ratio) {
            // Single runs have no interval.
            Some(ratio) if ratio.low.is_nan() || ratio.high.is_nan() => {
                vec![format!("×{:.2}", ratio.estimate)]
            }
            Some(ratio) => vec![
                format!("×{:.2}", ratio.estimate),
                format!("[{:.2}, {:.2}]", ratio.low, ratio.high),
            ],
            None if cells.len() > 1 => vec!["all others".into(), "diverged".into()],
            None => vec!["alone".into()],
        },
    };
    let (winner, detail_text) = (leaders.join(" or "), detail.join(" "));
    let mut lines: Vec<String> = leaders.iter().map(|name| (*name).to_owned()).collect();
    if lines.len() > MOST_NAMES {
        let more = lines.len() - (MOST_NAMES - 1);
        lines.truncate(MOST_NAMES - 1);
        lines.push(format!("and {more} more"));
    }
    if lines.len() < 2 {
        lines.extend(detail);
    }
    let alone = leaders.len() == 1;
    let color = labels.iter().position(|label| alone && *label == winner).unwrap_or(GREY);
    MapCell {
        x,
        y,
        color,
        winner: if leaders.is_empty() { "none".into() } else { winner },
        detail: detail_text,
        lines,
        sure: alone && cells.len() > 1,
        stability: None,
    }
}
