//! What tuning found: the candidates' means of the metric of tuning over each tuned setting, what was selected, what
//! fresh runs of it give, and how much smaller their loss is than with one value for all algorithms.

use crate::cells::cost_sample::NoSample;
use crate::cells::costs::when_text;
use crate::cells::mean_limits::summary;
use crate::cells::read::read_cells;
use crate::cells::runs::TraceNeeds;
use crate::cells::{CellResult, Missing, panels, rounding_floor, setting_text};
use crate::figures::curves::views;
use crate::figures::line_figure::through;
use crate::figures::measured::{point, x_value};
use crate::ranking;
use crate::results::Results;
use crate::scene::figure::{
    Band, Body, CurveValue, Figure, LabelledPoint, NO_RESULTS, Panel, Plot, Scale, Series,
};
use crate::scene::line::{LegendEntry, Line};
use crate::stats::{Ratio, Summary, mean};
use exactfed_core::words::count;
use exactfed_runner::files::Error;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::tune::{Tune, TunedSetting};
use exactfed_runner::plan::{Candidate, Plan, Setting, Tuning, TuningEdge, TuningGroup, short};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What tuning found: the selected settings at each point of the grid, and how good they are.
#[derive(Default)]
pub struct TuningResult {
    /// The quantity by which candidates were compared.
    pub metric: Quantity,
    /// The settings that were tuned, with their candidates.
    pub settings: Vec<TunedSetting>,
    /// The names of the varied settings that were not tuned: their values are the points of the grid.
    pub axes: Vec<String>,
    /// A row for each algorithm at each point of the grid.
    pub rows: Vec<TunedRow>,
    /// After which of their runs candidates were stopped, in words; `None` if none was.
    pub stopped_after: Option<String>,
}

/// What tuning found for an algorithm at a point of the grid.
pub struct TunedRow {
    /// The label of the algorithm.
    pub label: String,
    /// The value of each of [`TuningResult::axes`]; `None` where the algorithm has no such setting.
    pub values: Vec<Option<Setting>>,
    /// The selected value of each tuned setting, `None` for one that the algorithm lacks; no values at all if no
    /// candidate can be selected.
    pub selected: Option<Vec<Option<f64>>>,
    /// At which edges of what was tried the selected candidate is, and why the search ended there, in words.
    pub edges: Vec<String>,
    /// The mean of the metric in the runs by which the candidate was selected; NaN if none was.
    pub tuning_value: f64,
    /// The metric in fresh runs of the selected candidate; `None` if they were not run or one diverged.
    pub fresh: Option<Summary>,
    /// The values of the tuned settings that are best for all algorithms together, and the mean loss
    /// ([`Quantity::loss`]) of fresh runs with them as a multiple of that with the selected values; `None` if either
    /// was not run or diverged.
    pub shared: Option<(Vec<Option<f64>>, Ratio)>,
    /// How many candidates there are, and how their runs ended.
    pub candidates: CandidateCounts,
    /// Each candidate, in the order of their values.
    pub candidate_rows: Vec<CandidateRow>,
    /// The number of fresh runs of what was selected; 0 if there are none.
    pub replicates: u64,
}

/// A candidate, and what its runs gave.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateRow {
    /// The values of the tuned settings; `None` for one that the algorithm lacks.
    pub values: Vec<Option<f64>>,
    /// The number of its runs, on all instances together.
    pub runs: u64,
    /// The mean loss of these runs, infinite if one diverged; `None` if they were not run.
    pub loss: Option<f64>,
    /// Whether the candidate was stopped after these runs, since it was worse than another.
    pub is_stopped: bool,
    /// Whether the candidate was selected.
    pub is_selected: bool,
}

impl CandidateRow {
    /// The rows of the candidates of an algorithm at a point of the grid.
    fn of_group(group: &TuningGroup) -> Vec<Self> {
        group
            .candidates
            .iter()
            .enumerate()
            .map(|(place, candidate)| Self {
                values: candidate.values.clone(),
                runs: candidate.last_cell().identity.runs(),
                loss: candidate.last_loss(),
                is_stopped: candidate.is_stopped(),
                is_selected: group.selected == Some(place),
            })
            .collect()
    }
}

/// How many candidates an algorithm has at a point of the grid, and how their runs ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CandidateCounts {
    /// The number of candidates.
    pub all: usize,
    /// The number of candidates of which a run diverged.
    pub diverged: usize,
    /// The number of candidates that were stopped after their first runs, since they were worse than another; none of
    /// them diverged.
    pub stopped: usize,
}

/// Whether a run of a candidate diverged.
fn has_diverged(candidate: &Candidate) -> bool {
    candidate.loss == Some(f64::INFINITY)
}

impl CandidateCounts {
    /// Counts the candidates of an algorithm at a point of the grid.
    fn new(group: &TuningGroup) -> Self {
        let diverged = group.candidates.iter().filter(|c| has_diverged(c)).count();
        let stopped =
            group.candidates.iter().filter(|c| c.is_stopped() && !has_diverged(c)).count();
        Self { all: group.candidates.len(), diverged, stopped }
    }
}

/// The results of a plan's tuning, apart from the fresh runs of what was selected.
pub struct TuningCells<'a> {
    /// The candidates with results, by which settings were selected.
    pub candidates: Vec<CellResult<'a>>,
    /// The fresh runs with the values that are best for all algorithms together.
    shared: Vec<CellResult<'a>>,
}

impl<'a> TuningCells<'a> {
    /// Reads the results of tuning, and returns with them the cells that have none: candidates first, then the fresh
    /// runs with shared values. Of a candidate the cell with the most runs is read that it is known to have: one that
    /// was stopped has its first runs alone. Without `[tune]` there is nothing to read.
    ///
    /// # Errors
    /// If results are damaged.
    pub fn read(plan: &'a Plan, results: &dyn Results) -> Result<(Self, Vec<Missing<'a>>), Error> {
        let groups: Vec<&TuningGroup> =
            plan.tuning.iter().flat_map(|tuning| &tuning.groups).collect();
        let candidates = groups.iter().flat_map(|g| &g.candidates).map(Candidate::last_cell);
        let shared = groups.iter().filter_map(|group| group.shared.as_ref());
        let mut needs = TraceNeeds::default();
        if let Some(tune) = &plan.manifest.tune {
            needs.add_at(tune.at, [tune.metric]);
        }
        let (candidates, mut missing) = read_cells(plan, candidates, results, &|_| needs.clone())?;
        let (shared, of_shared) = read_cells(plan, shared, results, &|_| needs.clone())?;
        missing.extend(of_shared);
        Ok((Self { candidates, shared }, missing))
    }
}

impl TuningResult {
    /// What tuning found, from the results `read` of the candidates and the fresh runs `cells` of what was selected,
    /// which are the cells of the plan; `None` if the manifest tunes nothing. There is a row for each algorithm at each
    /// point of the grid, also without results, and the axes are those of all rows.
    pub fn new(plan: &Plan, cells: &[CellResult<'_>], read: &TuningCells<'_>) -> Option<Self> {
        let tuning = plan.tuning.as_ref()?;
        let tune = plan.manifest.tune.as_ref()?;
        let candidates = tuning.groups.iter().flat_map(|group| &group.candidates);
        let all = panels::varied(candidates.map(Candidate::last_cell)).into_iter().map(short);
        let keys: Vec<&str> = tuning.settings.iter().map(|s| s.key.as_str()).collect();
        let axes: Vec<&str> =
            panels::unique(all).into_iter().filter(|n| !keys.contains(n)).collect();
        Some(Self {
            metric: tune.metric,
            settings: tuning.settings.clone(),
            axes: axes.iter().map(|name| (*name).to_owned()).collect(),
            rows: tuning
                .groups
                .iter()
                .filter_map(|group| TunedRow::new(group, tuning, tune, &axes, cells, read))
                .collect(),
            stopped_after: stopped_after(tuning),
        })
    }
}

/// The sample of the metric of tuning in the runs of the cell with this id, at the cost at which candidates are
/// compared; `None` if the cell is not among these results, or a run diverged or ended before.
fn sample_of(all: &[CellResult<'_>], id: &str, tune: &Tune) -> Option<Vec<f64>> {
    let found = all.iter().find(|cell| cell.cell.id == *id)?;
    found.runs.sample(tune.metric, tune.at).ok()
}

/// The losses of the values of a sample of the metric of tuning.
fn losses_of(sample: &[f64], tune: &Tune) -> Vec<f64> {
    sample.iter().map(|value| tune.metric.loss(*value)).collect()
}

impl TunedRow {
    /// The row of an algorithm at a point of the grid, from the fresh runs `cells` and the other results of tuning;
    /// `axes` are the names of the varied settings that were not tuned. `None` if the algorithm has no candidates.
    fn new(
        group: &TuningGroup,
        tuning: &Tuning,
        tune: &Tune,
        axes: &[&str],
        cells: &[CellResult<'_>],
        read: &TuningCells<'_>,
    ) -> Option<Self> {
        let first = &group.candidates.first()?.cell;
        let keys: Vec<&str> = tuning.settings.iter().map(|s| s.key.as_str()).collect();
        let fresh = group.evaluation.as_ref().and_then(|cell| sample_of(cells, &cell.id, tune));
        let not_compared = why_not_compared(group, tune, read).map(str::to_owned);
        let at_edge = !group.edges.is_empty();
        // The first refused candidate is the nearest: those beyond it are refused for the same reason.
        let refused = group.refused.first().filter(|_| at_edge);
        let finals =
            group.winner().and_then(|winner| sample_of(&read.candidates, &winner.cell.id, tune));
        let shared = group.shared.as_ref().zip(fresh.as_ref());
        Some(Self {
            label: group.label.clone(),
            values: axes.iter().map(|name| first.settings.get(name).cloned()).collect(),
            selected: group.winner().map(|winner| winner.values.clone()),
            edges: group
                .edges
                .iter()
                .map(|edge| edge_in_words(*edge, &keys))
                .chain(refused.map(|reason| format!("left out: {reason}")))
                .chain(not_compared)
                .collect(),
            tuning_value: finals.map_or(f64::NAN, |sample| mean(&sample)),
            fresh: fresh.as_ref().map(|sample| summary(tune.metric, sample)),
            shared: shared.and_then(|(cell, fresh)| {
                // Where the shared values are the selected ones, both are the same cell.
                let known = sample_of(&read.shared, &cell.id, tune)
                    .or_else(|| sample_of(cells, &cell.id, tune))?;
                let over_instances = cell.identity.instances != 1;
                let known = losses_of(&known, tune);
                let fresh = losses_of(fresh, tune);
                let ratio = ratio_to_selected(&known, &fresh, over_instances, tune.metric);
                let settings = tuning.settings.iter();
                let values = settings.map(|setting| cell.settings.get(&setting.key)?.number());
                Some((values.collect(), ratio))
            }),
            candidates: CandidateCounts::new(group),
            candidate_rows: CandidateRow::of_group(group),
            replicates: group.evaluation.as_ref().map_or(0, |cell| cell.identity.runs()),
        })
    }
}

/// The ratio of the mean loss with the values that are best for all algorithms together to that with the selected
/// values, of paired runs. A mean that is zero to rounding counts as 0, as in the ranking.
fn ratio_to_selected(
    shared: &[f64],
    selected: &[f64],
    over_instances: bool,
    metric: Quantity,
) -> Ratio {
    let floor = rounding_floor(metric);
    if mean(selected) < floor {
        return Ratio::to_zero(mean(shared) < floor);
    }
    Ratio::paired(shared, selected, over_instances)
}

/// Why candidates of a group are not compared though no run of them diverged, in words; `None` if all are compared.
fn why_not_compared(
    group: &TuningGroup,
    tune: &Tune,
    read: &TuningCells<'_>,
) -> Option<&'static str> {
    let first = group.candidates.iter().find(|c| c.loss.is_some_and(f64::is_nan))?;
    let cell = read.candidates.iter().find(|cell| cell.cell.id == first.last_cell().id);
    let is_unrecorded = cell
        .is_some_and(|cell| cell.runs.sample(tune.metric, tune.at) == Err(NoSample::Unrecorded));
    Some(if is_unrecorded { "runs do not have the metric" } else { "runs end before the cost" })
}

/// At which edge of what was tried a candidate is, in words; `keys` are the tuned settings.
fn edge_in_words(edge: TuningEdge, keys: &[&str]) -> String {
    let key = keys[edge.setting()];
    match edge {
        TuningEdge::Smallest(_) => format!("smallest {key}"),
        TuningEdge::Largest(_) => format!("largest {key}"),
        TuningEdge::Divergence(_) => format!("next larger {key} diverges"),
    }
}

/// Adds the figures of the candidates to those of a page: after the first figure, or before it while it is empty. As
/// long as there are no fresh runs, the captions of figures that will show them count the candidates with results.
pub fn add_figures(plan: &Plan, read: &TuningCells<'_>, figures: &mut Vec<Figure>) {
    let Some(tuning) = &plan.tuning else { return };
    let taken: Vec<String> = figures.iter().map(|figure| figure.id.clone()).collect();
    let known = read.candidates.len();
    let all = count_candidates(tuning);
    for figure in figures.iter_mut().filter(|figure| figure.caption == NO_RESULTS) {
        figure.caption = format!(
            "The figure is empty: it shows fresh runs of the selected candidates, none of which has results yet. {known} of {} have results.",
            count(all, "candidate")
        );
    }
    let place = usize::from(figures.first().is_some_and(Figure::has_content));
    figures.splice(place..place, self::figures(plan, read, &taken));
}

/// The number of candidates of all algorithms at all points of the grid, with those that were added so far at edges.
fn count_candidates(tuning: &Tuning) -> usize {
    tuning.groups.iter().map(|group| group.candidates.len()).sum()
}

/// After which of their runs candidates were stopped, in words, as "the first 3 of 10 runs"; `None` if none was
/// stopped. All candidates have the same numbers of first runs and of all runs, which those of one candidate say.
fn stopped_after(tuning: &Tuning) -> Option<String> {
    let mut candidates = tuning.groups.iter().flat_map(|group| &group.candidates);
    let stopped = candidates.find(|candidate| candidate.is_stopped())?;
    let first = &stopped.last_cell().identity;
    let all = &stopped.cell.identity;
    Some(match all.instances {
        1 => format!("the first {} of {}", first.replicates, count(all.replicates as usize, "run")),
        instances => format!(
            "runs on the first {} of {}",
            first.instances,
            count(instances as usize, "instance")
        ),
    })
}

/// The most panels of a figure of candidates.
const MOST_PANELS: usize = 12;

/// A figure for each tuned setting, with the candidates' means of the metric of tuning over it; if there are several
/// tuned settings, a point is that of the best values of the others. Panels are apart in the axes of the grid; if
/// these make more than [`MOST_PANELS`], the last axes distinguish curves within a panel instead. `taken` are the ids
/// of other figures of the page.
fn figures(plan: &Plan, read: &TuningCells<'_>, taken: &[String]) -> Vec<Figure> {
    let (Some(tuning), Some(tune)) = (&plan.tuning, &plan.manifest.tune) else {
        return Vec::new();
    };
    let groups = tuning.groups.iter();
    let winners: HashSet<&str> = groups.filter_map(|g| Some(&*g.winner()?.cell.id)).collect();
    let mut figures = Vec::new();
    for (number, setting) in tuning.settings.iter().enumerate() {
        let kept = best_over_others(tuning, number);
        let cells: Vec<&CellResult<'_>> =
            read.candidates.iter().filter(|c| kept.contains(c.cell.id.as_str())).collect();
        let keys: Vec<&str> = tuning.settings.iter().map(|s| s.key.as_str()).collect();
        let (mut axes, _) = ranking::grid_points(&cells);
        axes.retain(|name| !keys.contains(&name.as_str()));
        while !axes.is_empty() && panels::panels(&axes, &cells).len() > MOST_PANELS {
            axes.pop();
        }
        let mut figure = figure_over_setting(&axes, setting, &keys, tune, &cells, &winners);
        figure.caption = match (read.candidates.len(), count_candidates(tuning)) {
            (0, _) => "The figure is empty: no candidate has results yet.".to_owned(),
            (known, all) if known < all => format!(
                "{known} of {all} candidates have results. {}{}",
                figure.caption,
                caption(tuning, number)
            ),
            _ => figure.caption + &caption(tuning, number),
        };
        figure.id = format!("tuning-{}", setting.key);
        while taken.contains(&figure.id) {
            figure.id.push_str("-candidates");
        }
        figures.push(figure);
    }
    figures
}

/// The end of the caption of the figure over the tuned setting of this number: how candidates were chosen and stopped.
fn caption(tuning: &Tuning, number: usize) -> String {
    let others = match tuning.settings.len() {
        1 => String::new(),
        _ => " Each point has the best values of the other tuned settings.".to_owned(),
    };
    let values = &tuning.settings[number];
    let ratio = values.ratio.map_or(String::new(), |ratio| format!(", {ratio:.2} times apart"));
    let more = match values.ratio {
        Some(_) => {
            "; further ones were added where the best was at the edge, and the table of tuned settings has the numbers"
        }
        None => "",
    };
    let stopped: usize =
        tuning.groups.iter().map(|group| CandidateCounts::new(group).stopped).sum();
    let race = match stopped_after(tuning).filter(|_| stopped > 0) {
        Some(first) => format!(
            " The points of {} that {} stopped are means of {first}.",
            count(stopped, "candidate"),
            if stopped == 1 { "was" } else { "were" }
        ),
        None => String::new(),
    };
    let with_it = if tuning
        .groups
        .iter()
        .all(|group| group.candidates.iter().any(|c| c.values[number].is_some()))
    {
        ""
    } else {
        " that has this setting"
    };
    format!(
        "{others} A ring marks the selected candidate of each algorithm, and the label of a curve says the value there. Every algorithm{with_it} began with the same {} values{ratio}{more}.{race}",
        values.values.len()
    )
}

/// The ids of those candidates that are the best of all with their value of the tuned setting of this number, whatever
/// their values of the other settings are, for each algorithm and point of the grid. The id is that of the cell with
/// the most runs that the candidate is known to have ([`Candidate::last_cell`]). A candidate that was stopped is worse
/// than any that was not; one without runs is not compared.
fn best_over_others(tuning: &Tuning, number: usize) -> HashSet<&str> {
    /// The best candidate so far with a value in a group.
    struct BestCandidate<'t> {
        is_stopped: bool,
        loss: f64,
        id: &'t str,
    }
    let mut best: HashMap<(usize, u64), BestCandidate<'_>> = HashMap::new();
    for (i, group) in tuning.groups.iter().enumerate() {
        for candidate in &group.candidates {
            let (Some(value), Some(loss)) = (candidate.values[number], candidate.last_loss())
            else {
                continue;
            };
            let is_stopped = candidate.is_stopped();
            let id = &*candidate.last_cell().id;
            let known =
                best.entry((i, value.to_bits())).or_insert(BestCandidate { is_stopped, loss, id });
            if (is_stopped, loss) < (known.is_stopped, known.loss) {
                *known = BestCandidate { is_stopped, loss, id };
            }
        }
    }
    best.into_values().map(|best| best.id).collect()
}

/// The figure of the metric of tuning over a tuned setting, with a point for each of the cells of these candidates: the
/// mean of the metric itself, which rises where its loss falls if more of it is better. There is a panel for each
/// combination of values of `axes`, and a ring around the candidates whose ids are among `winners`. `keys` are all
/// tuned settings. The id of the figure is empty: the caller names it.
fn figure_over_setting(
    axes: &[String],
    setting: &TunedSetting,
    keys: &[&str],
    tune: &Tune,
    cells: &[&CellResult<'_>],
    winners: &HashSet<&str>,
) -> Figure {
    // A curve is of the best values of the other tuned settings, which its name does not say.
    let mut known = vec![setting.key.as_str()];
    known.extend(keys.iter().filter(|key| **key != setting.key));
    let view = views(axes, &known, cells).remove(0);
    let mut panels = Vec::with_capacity(view.groups.len());
    for (title, places) in &view.groups {
        let mut of_curve: BTreeMap<usize, Vec<&CellResult<'_>>> = BTreeMap::new();
        for place in places {
            of_curve.entry(view.curve_of_cell[*place]).or_default().push(cells[*place]);
        }
        let mut series = Vec::new();
        let mut rings = Vec::new();
        for (curve, cells) in of_curve {
            let curve = &view.curves[curve];
            let means = through(Line::Measured(curve.clone()), &cells, |cell| {
                let sample = cell.runs.sample(tune.metric, tune.at).ok()?;
                Some(point(x_value(cell, &setting.key)?, &sample, tune.metric, Band::Ci95))
            });
            let points = means.cells.iter().zip(&means.points);
            let ringed = points.filter(|(id, _)| winners.contains(id.as_str()));
            rings.extend(ringed.map(|(id, point)| Series {
                cells: vec![id.clone()],
                ..Series::new(Line::Selected(curve.clone()), vec![*point])
            }));
            let diverged = cells.iter().map(|cell| cell.runs.diverged).sum();
            series.push(Series { diverged, ..means });
        }
        series.extend(rings);
        panels.push(Panel { title: title.clone(), series });
    }
    let legend = view.curves.iter().cloned().map(|c| LegendEntry::Line(Line::Measured(c)));
    let scale_y = Scale::for_quantity(tune.metric);
    let has_logarithms = setting.values.iter().all(|value| *value > 0.0);
    let plot = Plot {
        panels,
        legend: legend.collect(),
        x: setting_text::symbol(&setting.key),
        y: tune.metric.formula().to_owned(),
        scale_x: if has_logarithms { Scale::Log } else { Scale::Linear },
        scale_y,
        // Without ratios: the runs that selected a candidate rank no algorithms, fresh runs do.
        labels: CurveValue { at: LabelledPoint::Selected, is_ranked: false, zero_below: 0.0 },
    };
    let caption = format!(
        "Mean of {} {} over n = {}, with its 95 % interval.",
        tune.metric.formula(),
        when_text(tune.at),
        crate::cells::sample_in_words(cells)
    );
    let title = format!("{} of each candidate, over {}", plot.y, plot.x);
    Figure::plain(String::new(), title, caption, 4, Body::Plot(plot))
}

#[cfg(test)]
#[path = "tuning_tests.rs"]
mod tests;
