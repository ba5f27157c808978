//! `[[figure.winners]]`: which algorithm has the best final mean, over two settings, by
//! which factor it is ahead of the next, and which are not separated from it.

use crate::cells::CellResult;
use crate::cells::cost_sample::NoSample;
use crate::cells::costs::{STATED, is_short, paid_costs, when_text};
use crate::cells::panels::{Group, Sides, distinct, panels, placed, places_of, unique};
use crate::cells::runs::TraceNeeds;
use crate::cells::setting_text::symbol;
use crate::figures::kind::{DrawnCells, DrawnFigure, DrawnFrom, FigureOf};
use crate::figures::map_axes::check_map;
use crate::figures::sample::{ShownCells, maps};
use crate::ranking::{ComparedPoint, PointRanking, Separation, ranked_losses};
use crate::scene::family::family_of;
use crate::scene::figure::{Body, Figure, NO_RESULTS};
use crate::scene::line::{Color, LegendEntry, shade};
use crate::scene::map::{Lead, Map, Maps, Ranking, Square, SquareValue, blank_squares};
use exactfed_core::words::count;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::manifest::{ComparedAt, Quantity};
use exactfed_runner::plan::{Checker, KindKeys, shows};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A map over two settings: which algorithm has the smallest mean of a metric at the last
/// round or at a cost, or the largest if the metric is an accuracy; by what factor of the error, or
/// of the error rate; and whether the difference is significant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WinnersKeys {
    /// The quantity that ranks the algorithms, if it is recorded.
    #[serde(default)]
    pub metric: Quantity,
    /// The setting on the x axis.
    #[schemars(example = &"step-size")]
    pub x: String,
    /// The setting on the y axis.
    #[schemars(example = &"local-steps")]
    pub y: String,
    /// The cost or the target at which the algorithms are compared, as in `[compare]`; by default the
    /// last round.
    #[schemars(example = ComparedAt::EXAMPLE)]
    pub at: Option<ComparedAt>,
}

impl KindKeys<FigureKeys> for WinnersKeys {
    const DEFAULT_QUANTITY_KEY: Option<&'static str> = Some("metric");

    /// Notes what is wrong with the table: the metric must be recorded, the axes must be two settings that tell the
    /// cells of an algorithm apart, and the runs of all its cells must reach the cost `at`.
    fn check(figure: &FigureOf<Self>, table: &mut Checker<'_>) {
        let metric = figure.metric;
        table.quantity("metric", metric);
        check_map(table, &figure.common.panels, [&figure.x, &figure.y]);
        if let Some(at) = figure.at {
            table.compared_at("at", at, metric, |cell| shows(&figure.common, cell));
        }
    }
}

impl<'a> DrawnFigure<'a> for &'a FigureOf<WinnersKeys> {
    fn cells(&self) -> DrawnCells<'a> {
        DrawnCells::new(&self.common)
    }

    fn shown_cells(&self, all: &[CellResult<'_>]) -> ShownCells {
        maps(&self.common, &self.x, &self.y, all)
    }

    fn add_needs(&self, needs: &mut TraceNeeds) {
        needs.add_at(self.at, STATED.into_iter().chain([self.metric]));
    }

    /// The cells of each square are compared with one another, by the metric at the cost of the table.
    fn compared<'c>(&self, cells: &[&'c CellResult<'c>]) -> Vec<ComparedPoint<'c>> {
        let places = compared_cells(self, cells).into_iter();
        places.map(|cells| (cells, self.metric, self.at)).collect()
    }

    /// Draws a map for each panel of the table, in which a square shows the ranking of the cells at its place, with a
    /// legend of the algorithms whose colours the squares have.
    fn draw<'c>(&self, cells: &[&'c CellResult<'c>], from: &DrawnFrom<'_, 'c>) -> Figure {
        let rankings = from.rankings;
        let labels = label_colors(cells);
        let sides = (distinct(cells, &self.x), distinct(cells, &self.y));
        let mut maps: Vec<Map> = Vec::new();
        for group in panels(&self.common.panels, cells) {
            let mut squares = Vec::new();
            for ((x, y), cells) in grid_points(self, &sides, &group) {
                // [`Self::compared`] names the cells of every square, so that each has an outcome.
                let outcome = rankings.outcome(&cells, self.metric, self.at);
                let outcome = outcome.unwrap_or(&PointRanking::WithoutValues);
                let value = SquareValue::Ranking(ranking(self, outcome, &cells, &labels));
                squares.push(Square { x, y, value });
            }
            maps.push(Map::new(group.title, &sides, squares));
        }
        let mut legend: Vec<LegendEntry> = labels
            .iter()
            .filter(|(_, color)| rankings_of(&maps).any(|r| r.color == *color))
            .map(|(name, color)| LegendEntry::patch(name, *color))
            .collect();
        if rankings_of(&maps).any(|r| {
            r.color == Color::Neutral
                && ![
                    Lead::AllDiverged,
                    Lead::EndedBeforeCost,
                    Lead::WithoutValues,
                    Lead::TargetNotReached,
                ]
                .contains(&r.lead)
        }) {
            legend.push(LegendEntry::patch("not separated, or none", Color::Neutral));
        }
        let caption = caption(self, cells, &maps, rankings.compared);
        let body = Body::Maps(Maps { maps, legend, x: symbol(&self.x), y: symbol(&self.y) });
        Figure::new(&self.common, "Which algorithm ranks first".into(), caption, 2, body)
    }
}

/// The labels of some cells, each once, with its colour: the colour of the algorithm's family, or a shade of it where
/// several labels are of one family.
fn label_colors(cells: &[&CellResult<'_>]) -> Vec<(String, Color)> {
    let all = unique(cells.iter().map(|c| (c.cell.label.clone(), family_of(c.cell))));
    all.iter()
        .map(|(label, family)| {
            let kin: Vec<&String> =
                all.iter().filter(|(_, f)| f == family).map(|(l, _)| l).collect();
            let rank = kin.iter().position(|l| *l == label).unwrap_or(0);
            (label.clone(), Color::tone(*family, shade(rank, kin.len())))
        })
        .collect()
}

/// The rankings that the squares of all maps show, one after the other.
fn rankings_of(maps: &[Map]) -> impl Iterator<Item = &Ranking> {
    maps.iter().flat_map(|map| &map.squares).filter_map(|square| match &square.value {
        SquareValue::Ranking(ranking) => Some(ranking),
        SquareValue::Stability(_) => None,
    })
}

/// The caption of the maps: what they show, of which sample, and by which correction; what the compared algorithms
/// have paid; and how many cells diverged, how many have no values, and how many squares are blank. `comparisons` is
/// the number of comparisons of the whole page, its table included, for which significance is corrected.
fn caption(
    spec: &FigureOf<WinnersKeys>,
    cells: &[&CellResult<'_>],
    maps: &[Map],
    comparisons: usize,
) -> String {
    if cells.is_empty() {
        return NO_RESULTS.into();
    }
    let metric = spec.metric;
    let when = when_text(spec.at);
    let next_one = match metric.info().shortfall {
        Some(_) => format!("the next one's {}", metric.compared()),
        None => "the next one's".to_owned(),
    };
    let mut caption = format!(
        "The algorithm with the {} mean of {} {when} (n = {}), and how many times larger {next_one} is, with a 95 % interval over paired runs (common noise). Grey: the named algorithms are not separated from the best. Each algorithm is compared with the best of its square. Holm's correction is for the {} of this page, in its table and its maps, at a family-wise level of 5 %; intervals are not corrected.",
        metric.best_mean(),
        metric.formula(),
        crate::cells::sample_in_words(cells),
        count(comparisons, "comparison")
    );
    let points = compared_cells(spec, cells);
    // One cell alone is compared with nothing.
    let with_rivals: Vec<&[&CellResult<'_>]> =
        points.iter().map(|point| &point[..]).filter(|point| point.len() > 1).collect();
    let paid = paid_costs(&with_rivals, spec.at);
    caption.push_str(&if paid.is_empty() { paid } else { format!(" {paid}") });
    let diverged = cells
        .iter()
        .filter(|c| c.runs.sample(spec.metric, spec.at) == Err(NoSample::Diverged))
        .count();
    if diverged > 0 {
        caption.push_str(&format!(
            " {diverged} of {} cells have runs that diverged and are not ranked.",
            cells.len()
        ));
    }
    let is_unrecorded = |cell: &&&CellResult<'_>| {
        ranked_losses(cell, spec.metric, spec.at) == Err(NoSample::Unrecorded)
    };
    let without_values = cells.iter().filter(is_unrecorded).count();
    if without_values > 0 {
        caption.push_str(&format!(
            " {without_values} of {} cells have no values of {} and are not ranked.",
            cells.len(),
            metric.formula()
        ));
    }
    if rankings_of(maps).any(|ranking| ranking.lead == Lead::AboveStart) {
        caption.push_str(
            " Above the start: even the smallest mean is larger than the error at the start.",
        );
    }
    caption.push_str(&blank_squares(maps));
    caption
}

/// The groups of cells that are compared with one another: one for each square of each map of the figure, also for a
/// square with a single cell, so that every square has an outcome among the rankings.
fn compared_cells<'a>(
    spec: &FigureOf<WinnersKeys>,
    cells: &[&'a CellResult<'a>],
) -> Vec<Vec<&'a CellResult<'a>>> {
    let sides = (distinct(cells, &spec.x), distinct(cells, &spec.y));
    let groups = panels(&spec.common.panels, cells);
    groups.iter().flat_map(|group| grid_points(spec, &sides, group).into_values()).collect()
}

/// The cells of a map at each of its places, which are given by the indices of the values on the x axis and on the y
/// axis. A cell that lacks the setting of an axis stands at every value of that axis.
fn grid_points<'a>(
    spec: &FigureOf<WinnersKeys>,
    (xs, ys): &Sides<'_>,
    group: &Group<'a>,
) -> BTreeMap<(usize, usize), Vec<&'a CellResult<'a>>> {
    let at_x = placed(xs);
    let at_y = placed(ys);
    let mut points: BTreeMap<(usize, usize), Vec<&CellResult<'_>>> = BTreeMap::new();
    for cell in &group.cells {
        for x in places_of(cell, &spec.x, &at_x) {
            for y in places_of(cell, &spec.y, &at_y) {
                points.entry((x, y)).or_default().push(cell);
            }
        }
    }
    points
}

/// Whether one of these cells is not ranked for this reason.
fn has_unranked(spec: &FigureOf<WinnersKeys>, cells: &[&CellResult<'_>], why: NoSample) -> bool {
    cells.iter().any(|cell| ranked_losses(cell, spec.metric, spec.at) == Err(why))
}

/// What a square shows: which algorithms rank first, and how far ahead the first is. `outcome` is the ranking of the
/// square's `cells`, which it names by their indices; `labels` has the colour of each algorithm. The square is grey
/// unless one algorithm alone ranks first.
fn ranking(
    spec: &FigureOf<WinnersKeys>,
    outcome: &PointRanking,
    cells: &[&CellResult<'_>],
    labels: &[(String, Color)],
) -> Ranking {
    let leaders: Vec<String> =
        outcome.leaders().into_iter().map(|place| cells[place].cell.label.clone()).collect();
    let has = |why| has_unranked(spec, cells, why);
    let lead = match outcome {
        PointRanking::Diverged => Lead::AllDiverged,
        PointRanking::Ended => Lead::EndedBeforeCost,
        PointRanking::WithoutValues if has(NoSample::Unreached) => Lead::TargetNotReached,
        PointRanking::WithoutValues => Lead::WithoutValues,
        PointRanking::AboveStart { .. } => Lead::AboveStart,
        PointRanking::Ranked { rivals, .. } => match rivals.first() {
            Some(rival) if rival.separation == Separation::BothZero => Lead::BothZero,
            Some(rival) => Lead::Ratio(rival.ratio),
            None if cells.iter().any(|cell| is_short(cell, spec.at)) => Lead::Alone,
            None if has(NoSample::Unrecorded) => Lead::OthersWithoutValues,
            None if has(NoSample::Unreached) => Lead::OthersMissTarget,
            None if cells.len() > 1 => Lead::OthersDiverged,
            None => Lead::Alone,
        },
    };
    let color = match leaders.as_slice() {
        [winner] => labels.iter().find(|(label, _)| label == winner).map(|(_, color)| *color),
        _ => None,
    };
    Ranking { leaders, color: color.unwrap_or(Color::Neutral), lead }
}
