//! What tuning found: the candidates' losses over each tuned setting, what was selected, what fresh
//! runs of it give, and how much smaller that is than with one value for all algorithms.

use super::figure::{Body, Figure, Series};
use super::line::Line;
use super::line_figure::LineFigure;
use super::runs::TraceNeeds;
use super::theory::{MomentsCache, Theory};
use super::{CellResult, Experiment, panels, read_cells};
use crate::stats::{Ratio, Summary};
use crate::store::Store;
use driftbench_core::flattened::Flattened;
use driftbench_runner::files::Error;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::figure::{
    Band, FigureKeys, FigureTables, Scale, Scaling, ScalingKeys,
};
use driftbench_runner::plan::{Cell, Edge, Plan, Tuning, TuningGroup, short};
use std::collections::{HashMap, HashSet};

/// What tuning found.
#[derive(Default)]
pub struct TuningResult {
    /// The quantity by which candidates were compared.
    pub metric: Quantity,
    /// The keys of the tuned settings.
    pub settings: Vec<String>,
    /// The names of the other settings that vary.
    pub axes: Vec<String>,
    /// A row for each algorithm at each point of the grid.
    pub rows: Vec<TunedRow>,
}

/// What tuning found for an algorithm at a point of the grid.
pub struct TunedRow {
    /// The algorithm's label.
    pub label: String,
    /// The values of the other settings that vary; empty where it has none.
    pub values: Vec<String>,
    /// The selected value of each tuned setting; none if no candidate can be selected.
    pub selected: Option<Vec<Option<f64>>>,
    /// Where the selected one stands at the border of what was tried, in words.
    pub edges: Vec<String>,
    /// The mean of the runs by which it was selected.
    pub tuning_value: f64,
    /// Fresh runs of what was selected; `None` if they were not run or diverged.
    pub fresh: Option<Summary>,
    /// The values that are best for all algorithms together, and how many times larger the fresh
    /// mean is with them.
    pub shared: Option<(Vec<Option<f64>>, Ratio)>,
    /// The number of candidates, and of those of which a run diverged.
    pub candidates: (usize, usize),
    /// The fresh runs.
    pub replicates: u64,
}

/// The candidates of a plan with their results, and fresh runs of what is best for all.
pub struct TuningCells<'a> {
    candidates: Vec<CellResult<'a>>,
    shared: Vec<CellResult<'a>>,
}

impl<'a> TuningCells<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// If results are damaged.
    pub fn read(plan: &'a Plan, store: &Store) -> Result<Self, Error> {
        let groups = || plan.tuning.iter().flat_map(|tuning| &tuning.groups);
        let candidates: Vec<&'a Cell> =
            groups().flat_map(|g| &g.candidates).map(|c| &c.cell).collect();
        let shared: Vec<&'a Cell> = groups().filter_map(|group| group.shared.as_ref()).collect();
        let read = |cells: &[&'a Cell]| {
            read_cells(plan, cells, store, &|_| TraceNeeds::default()).map(|(cells, _)| cells)
        };
        Ok(Self { candidates: read(&candidates)?, shared: read(&shared)? })
    }
}

impl TuningResult {
    /// What tuning found, from the fresh runs `cells` of what was selected.
    pub fn new(plan: &Plan, cells: &[CellResult<'_>], read: &TuningCells<'_>) -> Option<Self> {
        let (tuning, tune) = (plan.tuning.as_ref()?, plan.manifest.tune.as_ref()?);
        let all = read.candidates.iter().flat_map(|c| &*c.cell.varied).map(|path| short(path));
        let keys: Vec<&str> = tuning.settings.iter().map(|s| s.key.as_str()).collect();
        let axes: Vec<&str> =
            panels::unique(all).into_iter().filter(|n| !keys.contains(n)).collect();
        let of = |all: &[CellResult<'_>], id: &str| {
            let found = all.iter().find(|c| c.cell.id == id)?;
            found.runs.finals(tune.metric)
        };
        let row = |group: &TuningGroup| {
            let first = &group.candidates.first()?.cell;
            let value = |name: &&str| first.settings.get(name).map(ToString::to_string);
            let fresh = group.evaluation.as_ref().and_then(|cell| of(cells, &cell.id));
            let ratio = |cell: &Cell| {
                let fresh = fresh.as_ref()?;
                let known = of(&read.shared, &cell.id).or_else(|| of(cells, &cell.id))?;
                let ratio = match cell.identity.instances {
                    1 => Ratio::of_means(&known, fresh),
                    _ => Ratio::over_instances(&known, fresh),
                };
                Some((values_of(tuning, cell), ratio))
            };
            let diverged = group.candidates.iter().filter(|c| c.loss == Some(f64::INFINITY));
            let finals = group.winner().and_then(|w| of(&read.candidates, &w.cell.id));
            let evaluated = group.evaluation.as_ref().map(|cell| cell.identity.runs());
            Some(TunedRow {
                label: group.label.clone(),
                values: axes.iter().map(|name| value(name).unwrap_or_default()).collect(),
                selected: group.winner().map(|winner| winner.values.clone()),
                edges: group.edges.iter().map(|edge| edge_in_words(*edge, &keys)).collect(),
                tuning_value: finals.map_or(f64::NAN, |sample| crate::stats::mean(&sample)),
                fresh: fresh.as_ref().map(|sample| Summary::new(sample)),
                shared: group.shared.as_ref().and_then(ratio),
                candidates: (group.candidates.len(), diverged.count()),
                replicates: evaluated.unwrap_or(0),
            })
        };
        Some(Self {
            metric: tune.metric,
            settings: keys.iter().map(|key| (*key).to_owned()).collect(),
            axes: axes.iter().map(|name| (*name).to_owned()).collect(),
            rows: tuning.groups.iter().filter_map(row).collect(),
        })
    }
}

/// The values of the tuned settings of a cell.
fn values_of(tuning: &Tuning, cell: &Cell) -> Vec<Option<f64>> {
    let of = |key: &String| match cell.settings.get(key) {
        Some(driftbench_runner::plan::Setting::Number(value)) => Some(*value),
        _ => None,
    };
    tuning.settings.iter().map(|setting| of(&setting.key)).collect()
}

fn edge_in_words(edge: Edge, keys: &[&str]) -> String {
    let key = keys[edge.setting()];
    match edge {
        Edge::Smallest(_) => format!("smallest {key}"),
        Edge::Largest(_) => format!("largest {key}"),
        Edge::Divergence(_) => format!("next larger {key} diverges"),
    }
}

/// Panels, at most, of the figures of candidates.
const MOST_PANELS: usize = 12;

/// The losses of the candidates over each tuned setting, a figure each; over one of several settings
/// each point is the best of the others.
pub fn figures(plan: &Plan, read: &TuningCells<'_>, taken: &[String]) -> Vec<Figure> {
    let (Some(tuning), Some(tune)) = (&plan.tuning, &plan.manifest.tune) else {
        return Vec::new();
    };
    let theory = Theory::new(plan, &[], &HashSet::new(), MomentsCache::Off);
    let mut figures = Vec::new();
    for (number, setting) in tuning.settings.iter().enumerate() {
        let kept = best_over_others(tuning, number);
        let cells: Vec<&CellResult<'_>> =
            read.candidates.iter().filter(|c| kept.contains(c.cell.id.as_str())).collect();
        let keys: Vec<&str> = tuning.settings.iter().map(|s| s.key.as_str()).collect();
        let all = cells.iter().flat_map(|c| &*c.cell.varied).map(|path| short(path));
        let axes = panels::unique(all).into_iter().filter(|n| !keys.contains(n));
        let mut axes: Vec<String> = axes.map(str::to_owned).collect();
        while !axes.is_empty() && panels::panels(&axes, &cells).len() > MOST_PANELS {
            axes.pop();
        }
        let common = FigureKeys {
            title: Some(format!("{} of each candidate", tune.metric.formula())),
            panels: axes,
            ..FigureKeys::default()
        };
        let keys = ScalingKeys {
            y: tune.metric,
            x: setting.key.clone(),
            band: Band::Ci95,
            reference_slope: None,
            theory: Vec::new(),
            scale_x: Scale::Log,
        };
        let scaling: Scaling = Flattened { common, own: keys };
        let table = FigureTables { scaling: vec![scaling], ..FigureTables::default() };
        for line in LineFigure::all(&table) {
            let mut figure = line.draw(&cells, &theory);
            mark_selected(&mut figure, tuning, &cells);
            figure.caption.push_str(&caption(tuning, number));
            figure.id = free_id(&setting.key, taken);
            figures.push(figure);
        }
    }
    figures
}

fn free_id(key: &str, taken: &[String]) -> String {
    let mut id = format!("tuning-{key}");
    while taken.contains(&id) {
        id.push_str("-candidates");
    }
    id
}

fn caption(tuning: &Tuning, number: usize) -> String {
    let others = match tuning.settings.len() {
        1 => String::new(),
        _ => " Each point has the best values of the other tuned settings.".to_owned(),
    };
    let values = &tuning.settings[number];
    let ratio = values.ratio.map_or(String::new(), |ratio| format!(", {ratio:.2} times apart"));
    format!(
        "{others} A ring marks what is selected, from the same {} candidates{ratio} for all algorithms; where the best stood at the end of the range, further ones were added.",
        values.values.len()
    )
}

/// The ids of the candidates that are the best with their value of a setting, over the values of
/// the other settings.
fn best_over_others(tuning: &Tuning, number: usize) -> HashSet<&str> {
    let mut best: HashMap<(usize, u64), (f64, &str)> = HashMap::new();
    for (i, group) in tuning.groups.iter().enumerate() {
        for candidate in &group.candidates {
            let (Some(value), Some(loss)) = (candidate.values[number], candidate.loss) else {
                continue;
            };
            let kept = best.entry((i, value.to_bits())).or_insert((loss, &candidate.cell.id));
            if loss < kept.0 {
                *kept = (loss, &candidate.cell.id);
            }
        }
    }
    best.into_values().map(|(_, id)| id).collect()
}

/// Adds a ring around the point of each selected candidate.
fn mark_selected(figure: &mut Figure, tuning: &Tuning, cells: &[&CellResult<'_>]) {
    // The page's script knows no rings.
    let Some(views) = figure.exploration.take().map(|exploration| exploration.views) else {
        return;
    };
    let Body::Plot(plot) = &mut figure.body else { return };
    let winners: HashSet<&str> =
        tuning.groups.iter().filter_map(|g| Some(g.winner()?.cell.id.as_str())).collect();
    let view = &views[0];
    for ((_, places), panel) in view.groups.iter().zip(&mut plot.panels) {
        let mut rings = Vec::new();
        for place in places.iter().filter(|place| winners.contains(cells[**place].cell.id.as_str()))
        {
            let id = &cells[*place].cell.id;
            let curve = &view.curves[view.curve_of_cell[*place]];
            let measured = panel.series.iter().find_map(|series| {
                let point = series.cells.iter().position(|cell| cell == id)?;
                series.points.get(point).copied()
            });
            if let Some(point) = measured {
                let line = Line::Selected(curve.clone());
                rings.push(Series { cells: vec![id.clone()], ..Series::new(line, vec![point]) });
            }
        }
        panel.series.extend(rings);
    }
}

impl Experiment<'_> {
    /// What is tuned, in words; empty where nothing is.
    pub fn tuned_in_words(&self) -> String {
        self.tuning.as_ref().map_or(String::new(), |tuning| tuning.settings.join(" and "))
    }
}
