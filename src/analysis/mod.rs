//! From results to plain values, which charts draw and pages print.
//!
//! *Invariant*: nothing is smoothed, and a page reports what is left out. A curve is the mean over
//! all replicates and ends where the first of them diverged; a cell with diverged replicates has
//! no final mean.

mod averages;
pub mod bounds;
pub mod claims;
mod costs;
mod curves;
mod downsample;
pub mod errata;
pub mod exact;
pub mod family;
mod figure;
pub mod first_order;
pub mod frontier;
mod line;
pub mod line_figure;
mod looks;
mod map;
mod measures;
mod needs;
mod panels;
mod predictions;
pub mod problems;
mod profile;
mod ranking;
mod ranking_map;
mod runs;
mod setting_text;
mod stability;
mod symbols;
pub mod table;
pub mod theory;
pub mod tuned;
mod tuning;
mod unplanned;
#[cfg(test)]
pub mod wrong;

use crate::stats::{Summary, mean};
use crate::store::provenance::Provenance;
use crate::store::{Store, StoredCell};
pub use averages::Centre;
use claims::{JudgedClaim, JudgedClaims};
pub use costs::{vectors_sent, when_text};
pub use curves::curves;
use downsample::FigureCells;
use exactfed_core::algorithm::Component;
use exactfed_core::federated::{Schedule, Terms, Variates};
use exactfed_core::words::{count, thousands};
use exactfed_runner::files::{Error, error};
use exactfed_runner::manifest::figure::FigureKeys;
pub use exactfed_runner::manifest::figure::Scale;
use exactfed_runner::manifest::{AtCost, Oracle, Prices, Quantity};
use exactfed_runner::plan::{Cell, Identity, Plan};
use exactfed_runner::runner::{Prepared, prepare_knowing};
pub use figure::{
    Body, CurveValue, Exploration, Figure, LabelledPoint, Panel, Plot, Point, Series, View, XAxis,
};
pub use line::{
    COLORS, Color, Curve, CurveSetting, DASHES, Dash, LegendEntry, Line, MARKERS, Reference,
    SHADES, Style, THIN_DASHES, words_before,
};
use line_figure::LineFigure;
pub use line_figure::{band_name, x_value};
use looks::LooksOfPlan;
pub use looks::{has_cells, planned_looks};
pub use map::{Lead, Map, Maps, Ranking, Square, SquareValue, StabilityValue};
pub use measures::check_measures;
use needs::Needs;
pub use needs::{draws_exact_bias, wants_moments};
pub use panels::unique;
use ranking::{ComparedPoint, Rankings};
pub use ranking::{Rival, Separation, Standing, Standings};
use rayon::prelude::*;
pub use runs::{Grouping, NoSample, Runs, TraceNeeds};
pub use setting_text::{details, name, pretty};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
pub use symbols::centres;
use theory::{MomentsCache, Theory};
use tuning::TuningCells;
pub use tuning::{TunedRow, TuningResult};
pub use unplanned::UnplannedCells;

/// An experiment with its results.
pub struct Experiment<'a> {
    /// The manifest and its cells.
    pub plan: &'a Plan,
    /// The cells that have results, in the order of the plan.
    pub cells: Vec<CellResult<'a>>,
    /// The cells without results, in the same order.
    pub missing: Vec<Missing<'a>>,
    /// The figures that the manifest asks for.
    pub figures: Vec<Figure>,
    /// The heterogeneity of the problems.
    pub problems: problems::Instances,
    /// The claims of the manifest with their verdicts.
    pub claims: JudgedClaims<'a>,
    /// The values of published bounds for the cells.
    pub bounds: Vec<bounds::BoundRow<'a>>,
    /// Where the first order of measured biases holds.
    pub first_order: Vec<first_order::FirstOrderRow<'a>>,
    /// Predictions that are not computed at this size, one sentence each.
    pub not_computed: Vec<String>,
    /// Other results of the experiment.
    pub unplanned: UnplannedCells,
    /// The ranking of the algorithms at each grid point.
    pub standings: Standings,
    /// The settings that are best.
    pub best: BestSettings<'a>,
}

/// The settings that were chosen for the least error or cost.
pub struct BestSettings<'a> {
    /// What was selected, where settings are tuned.
    pub tuning: Option<TuningResult>,
    /// The frontiers of the manifest.
    pub frontiers: Vec<frontier::ComputedFrontier<'a>>,
}

/// A cell without results.
pub struct Missing<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Why its run failed; `None` if it was not run.
    pub failed: Option<String>,
}

/// A cell with its results.
pub struct CellResult<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its runs.
    pub runs: Runs,
    /// Digest of the traces.
    pub digest: String,
    /// Commit and version that computed it.
    pub provenance: Arc<Provenance>,
    /// Time that it took on one thread, in seconds.
    pub seconds: f64,
    /// ‖lim E θ_t − θ*‖², if the manifest needs it and theory can compute it;
    /// its mean over replicates where each has an instance of its own.
    pub exact_bias: Option<f64>,
    /// Prices of the simulated wall clock.
    pub prices: Prices,
}

impl CellResult<'_> {
    /// Whether nothing in the cell is random: neither oracle nor instance, coin nor cohort.
    pub fn is_deterministic(&self) -> bool {
        let identity = &self.cell.identity;
        let whole = |c: &Component| {
            let Terms { schedule, cohort, variates, .. } = &c.terms;
            // What is not known may draw.
            let known = !matches!(variates, Variates::Unknown(_));
            known && *schedule == Schedule::Every && cohort.is_none()
        };
        identity.oracle == Oracle::Exact
            && identity.instance.is_fixed()
            && identity.algorithm.components().iter().all(whole)
    }

    /// The mean of a quantity at the last round; infinite where runs diverged.
    pub fn final_mean(&self, quantity: Quantity) -> f64 {
        self.runs.finals(quantity).map_or(f64::INFINITY, |sample| mean(&sample))
    }

    /// A quantity at the last round; `None` if a replicate diverged or it is not recorded.
    pub fn summary(&self, quantity: Quantity) -> Option<Summary> {
        self.runs.finals(quantity).map(|sample| Summary::new(&sample))
    }

    /// A quantity at a cost, or at the last round, one number per replicate.
    ///
    /// # Errors
    /// Why it has no such values.
    pub fn sample(&self, quantity: Quantity, at: Option<AtCost>) -> Result<Vec<f64>, NoSample> {
        match at {
            Some(at) => match &self.runs.at(quantity, at)?.values {
                values if values.contains(&f64::INFINITY) => Err(NoSample::Diverged),
                values => Ok(values.clone()),
            },
            None if self.runs.diverged > 0 => Err(NoSample::Diverged),
            None => self.runs.finals(quantity).ok_or(NoSample::Unrecorded),
        }
    }

    /// A quantity along each of the traces in memory; empty where it is not recorded.
    pub fn columns(&self, quantity: Quantity) -> Vec<Cow<'_, [f64]>> {
        self.runs.columns(quantity, &self.prices)
    }

    /// A quantity over the replicates at each recorded round, up to the first divergence.
    pub fn samples(&self, quantity: Quantity) -> Vec<Vec<f64>> {
        let columns = self.columns(quantity);
        let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
        (0..rows).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
    }
}

/// Cells whose instances are in memory at a time, where every cell needs one number of theory.
const AT_ONCE: usize = 4096;

/// Reads the results of an experiment and analyses them.
///
/// # Errors
/// If results are damaged, or were computed by several versions of the program.
pub fn analyse<'a>(plan: &'a Plan, store: &Store) -> Result<Experiment<'a>, Error> {
    analyse_with(plan, store, frontier::frontiers(plan, store, &|_| ())?)
}

/// The same with the frontiers of the plan.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_with<'a>(
    plan: &'a Plan,
    store: &Store,
    frontiers: Vec<frontier::ComputedFrontier<'a>>,
) -> Result<Experiment<'a>, Error> {
    let needs = Needs::of_plan(plan);
    let (mut cells, mut missing) = results(plan, store, &needs)?;
    one_version(plan, &cells)?;
    let shown = FigureCells::new(&plan.manifest.figure, &cells);
    follow_chosen(plan, store, &needs, &shown, &mut cells)?;
    let prepared = needed_instances(plan, &needs, &shown, &cells)?;
    if needs::draws_exact_bias(plan) {
        biases(plan, &prepared, &mut cells)?;
    }
    let theory = Theory::new(
        plan,
        &prepared,
        &needs.moments(&shown, &cells),
        MomentsCache::for_plan(plan, store),
    );
    let (axes, rows) = ranking::grid_points(&cells.iter().collect::<Vec<_>>());
    let (by, at) = (plan.manifest.ranked_by(), plan.manifest.ranked_at());
    let places = rows.iter().map(|row| (row.cells.clone(), by, at));
    let rankings = Rankings::new(places.chain(squares(plan, &cells, &shown)));
    let standings = Standings::new(axes, &rows, (by, at), &rankings);
    let mut figures = figures(plan, &cells, &shown, &theory, &rankings, &frontiers);
    let mut candidates = TuningCells::read(plan, store)?;
    one_version(plan, &candidates.candidates)?;
    add_missing(&mut missing, std::mem::take(&mut candidates.missing));
    tuning::add_figures(plan, &candidates, &mut figures);
    figures.extend(profile::figure(&cells, by, at));
    let tuning = TuningResult::new(plan, &cells, &candidates);
    drop(rankings);
    drop(rows);
    let problems = problems::instances(plan, &prepared, store)?;
    let looks = LooksOfPlan::new(plan, store)?;
    let claims = claims::judge_look(plan, plan, &cells, &theory, &frontiers, looks.level());
    let bounds = bounds::rows(plan, &cells, &theory);
    let first_order = first_order::rows(&cells, &theory);
    let not_computed = not_computed(&theory, &problems);
    drop(theory);
    drop(prepared);
    let claims = looks.judge(plan, store, claims)?;
    Ok(Experiment {
        plan,
        cells,
        missing,
        figures,
        problems,
        claims,
        bounds,
        first_order,
        not_computed,
        unplanned: unplanned::find(plan, store)?,
        standings,
        best: BestSettings { tuning, frontiers },
    })
}

/// The instances of the cells of which theory is needed; of all cells where they are few.
///
/// # Errors
/// If one cannot be built.
fn needed_instances<'a>(
    plan: &'a Plan,
    needs: &Needs<'_>,
    shown: &FigureCells,
    cells: &[CellResult<'_>],
) -> Result<Vec<Prepared<'a>>, Error> {
    let wanted = needs.theory(shown, cells);
    let all = plan.cells.len() <= AT_ONCE || needs::every_cell_needs_theory(plan);
    let planned: Vec<&Cell> =
        plan.cells.iter().filter(|cell| all || wanted.contains(cell.id.as_str())).collect();
    instances(plan, &planned)
}

/// What is not computed at this size, one sentence each.
fn not_computed(theory: &Theory<'_>, problems: &problems::Instances) -> Vec<String> {
    let mut sentences = theory.not_computed();
    sentences.extend(problems.not_computed());
    if !sentences.is_empty() {
        sentences.push(theory::bounds_of_cost());
    }
    sentences
}

/// Refuses results of several versions: for the same manifest they may compute other numbers.
fn one_version(plan: &Plan, cells: &[CellResult<'_>]) -> Result<(), Error> {
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|c| *versions.entry(&c.provenance.version).or_default() += 1);
    if versions.len() < 2 {
        return Ok(());
    }
    let cells_by = |(version, count): (&str, usize)| match count {
        1 => format!("1 cell by {version}"),
        count => format!("{} cells by {version}", thousands(count)),
    };
    let each: Vec<String> = versions.into_iter().map(cells_by).collect();
    let source = &plan.source;
    let overrides = source.overrides.iter().map(|o| format!(" --set '{o}'")).collect::<String>();
    Err(error(
        Path::new(&plan.experiment),
        format!(
            "its cells were computed by several versions of exactfed ({}), which a report does not mix: compute all with one (exactfed run {}{overrides} --force, with the --out of these results)",
            each.join(", "),
            source.name
        ),
    ))
}

/// The cells of a plan that have results, with what is needed of their runs, and those that
/// have none.
///
/// # Errors
/// If results are damaged.
fn results<'a>(
    plan: &'a Plan,
    store: &Store,
    needs: &Needs<'_>,
) -> Result<(Vec<CellResult<'a>>, Vec<Missing<'a>>), Error> {
    let all: Vec<&'a Cell> = plan.cells.iter().collect();
    read_cells(plan, &all, store, &|cell| needs.traces(cell))
}

/// Adds cells without results: those of candidates, without which it is not decided what is
/// selected, and fresh runs of one candidate for all, which may be among the others already.
fn add_missing<'a>(missing: &mut Vec<Missing<'a>>, further: Vec<Missing<'a>>) {
    let known: HashSet<&str> = missing.iter().map(|missing| &*missing.cell.id).collect();
    let is_new = |further: &Missing<'_>| !known.contains(&*further.cell.id);
    let further: Vec<Missing<'_>> = further.into_iter().filter(is_new).collect();
    missing.extend(further);
}

/// Those of these cells that have results, with what is needed of their runs, and the others.
///
/// # Errors
/// If results are damaged.
fn read_cells<'a>(
    plan: &'a Plan,
    cells: &[&'a Cell],
    store: &Store,
    needs: &(dyn Fn(&Cell) -> TraceNeeds + Sync),
) -> Result<(Vec<CellResult<'a>>, Vec<Missing<'a>>), Error> {
    // Each task reads several cells in the order of the store, so that cells of one pack are read
    // together. What is not needed is dropped immediately.
    let ids: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
    let order = store.reading_order(&plan.experiment, &ids);
    let prices = plan.manifest.prices.unwrap_or_default();
    let read = |place: &usize| {
        let cell: &'a Cell = cells[*place];
        let stored = store.read(&plan.experiment, &cell.id);
        let result = stored.map(|stored| {
            stored.map(|StoredCell { record, traces }| CellResult {
                cell,
                runs: Runs::new(traces, Grouping::new(cell), &needs(cell), &prices),
                digest: record.digest,
                provenance: Arc::new(record.provenance),
                seconds: record.seconds,
                exact_bias: None,
                prices,
            })
        });
        (*place, result)
    };
    let all =
        order.par_chunks(cells_per_task(order.len())).flat_map_iter(|some| some.iter().map(read));
    let mut all: Vec<(usize, _)> = all.collect();
    all.sort_by_key(|(place, _)| *place);
    let mut known: Vec<Arc<Provenance>> = Vec::new();
    let planned = cells;
    let (mut cells, mut missing) = (Vec::new(), Vec::new());
    for (place, found) in all {
        match found? {
            None => {
                let cell = planned[place];
                let failed = store.failed(&plan.experiment, &cell.id)?;
                missing.push(Missing { cell, failed: failed.map(|failed| failed.reason) });
            }
            Some(mut cell) => {
                match known.iter().find(|p| **p == cell.provenance) {
                    Some(one) => cell.provenance = one.clone(),
                    None => known.push(cell.provenance.clone()),
                }
                cells.push(cell);
            }
        }
    }
    Ok((cells, missing))
}

/// What the samples of these cells are of: "10 runs", or "20 instances with 5 runs each".
fn sample_in_words(cells: &[&CellResult<'_>]) -> String {
    let Some(largest) = cells.iter().max_by_key(|cell| cell.runs.count) else {
        return count(0, "run");
    };
    let Identity { instances, replicates, .. } = &largest.cell.identity;
    match instances {
        1 => count(largest.runs.count, "run"),
        _ => format!("{instances} instances with {} each", count(*replicates as usize, "run")),
    }
}

/// The number of cells that a thread reads one after the other.
pub fn cells_per_task(cells: usize) -> usize {
    (cells / 64).clamp(1, 512)
}

/// The claims of a manifest with their verdicts, without figures.
///
/// # Errors
/// If results are damaged.
pub fn judged<'a>(plan: &'a Plan, store: &Store) -> Result<JudgedClaims<'a>, Error> {
    let looks = LooksOfPlan::new(plan, store)?;
    let last = judged_once(plan, plan, store, looks.level())?;
    looks.judge(plan, store, last)
}

/// The same at one look of this level, on the cells of a plan that differs from the one that
/// states the claims in the number of replicates alone.
///
/// # Errors
/// If results are damaged.
pub fn judged_once<'a>(
    stated: &'a Plan,
    plan: &Plan,
    store: &Store,
    level: f64,
) -> Result<Vec<JudgedClaim<'a>>, Error> {
    let (cells, _) = results(plan, store, &Needs::of_claims(plan))?;
    let by_claims = |cell: &&Cell| needs::claims_need_theory(plan, cell);
    let planned: Vec<&Cell> = plan.cells.iter().filter(by_claims).collect();
    let prepared = instances(plan, &planned)?;
    let moments = plan.cells.iter().filter(|cell| needs::claims_need_moments(plan, cell));
    let moments: HashSet<&str> = moments.map(|cell| cell.id.as_str()).collect();
    let theory = Theory::new(plan, &prepared, &moments, MomentsCache::Read(store));
    let frontiers = frontier::frontiers(plan, store, &|_| ())?;
    Ok(claims::judge_look(stated, plan, &cells, &theory, &frontiers, level))
}

/// Reads the cells again that were chosen for a figure of more curves than it can draw.
fn follow_chosen(
    plan: &Plan,
    store: &Store,
    needs: &Needs<'_>,
    shown: &FigureCells,
    cells: &mut [CellResult<'_>],
) -> Result<(), Error> {
    let mut wanted: BTreeMap<usize, TraceNeeds> = BTreeMap::new();
    let figures = plan.manifest.figure.convergence.iter();
    for figure in figures.filter(|figure| !needs.draws_all(figure)) {
        for place in &shown.of(&figure.common).cells {
            let first = || needs.traces(cells[*place].cell);
            needs::add_figure(figure, wanted.entry(*place).or_insert_with(first));
        }
    }
    let places: Vec<usize> = wanted.keys().copied().collect();
    let ids: Vec<&str> = places.iter().map(|place| cells[*place].cell.id.as_str()).collect();
    for i in store.reading_order(&plan.experiment, &ids) {
        let (needed, cell) = (&wanted[&places[i]], &mut cells[places[i]]);
        if let Some(stored) = store.read(&plan.experiment, &cell.cell.id)? {
            let grouping = Grouping::new(cell.cell);
            cell.runs = Runs::new(stored.traces, grouping, needed, &cell.prices);
        }
    }
    Ok(())
}

/// Computes the exact biases of all cells; the instances of those that are not prepared already
/// are built a limited number at a time.
fn biases(
    plan: &Plan,
    prepared: &[Prepared<'_>],
    cells: &mut [CellResult<'_>],
) -> Result<(), Error> {
    let bias = |p: &Prepared<'_>| (p.cell.id.clone(), theory::exact_bias(p));
    let mut known: HashMap<String, Option<f64>> = prepared.iter().map(bias).collect();
    let others = cells.iter().map(|c| c.cell).filter(|cell| !known.contains_key(&cell.id));
    for some in others.collect::<Vec<&Cell>>().chunks(AT_ONCE) {
        known.extend(instances(plan, some)?.iter().map(bias));
    }
    cells.iter_mut().for_each(|cell| cell.exact_bias = known.get(&cell.cell.id).copied().flatten());
    Ok(())
}

/// Reasons that a message lists for instances that cannot be built.
const MOST_REASONS: usize = 3;

/// The instances of some cells.
///
/// # Errors
/// If one cannot be built, for instance because a data file is missing.
fn instances<'a>(plan: &Plan, cells: &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Error> {
    prepare_knowing(&plan.folder(), &Store::known_optima(plan), cells).map_err(|bad| {
        let reasons: BTreeSet<String> = bad.into_iter().map(|bad| bad.message).collect();
        let first: Vec<String> = reasons.into_iter().take(MOST_REASONS).collect();
        error(Path::new(&plan.source.name), first.join("; "))
    })
}

/// The cells of each square of the ranking maps, by which quantity and at which cost they are
/// compared.
fn squares<'a>(
    plan: &'a Plan,
    cells: &'a [CellResult<'a>],
    shown: &'a FigureCells,
) -> impl Iterator<Item = ComparedPoint<'a>> {
    plan.manifest.figure.winners.iter().flat_map(|figure| {
        let chosen = shown.of(&figure.common).among(cells);
        let places = ranking_map::compared_cells(figure, &chosen);
        places.into_iter().map(|cells| (cells, figure.metric, figure.at))
    })
}

fn figures<'a>(
    plan: &Plan,
    cells: &'a [CellResult<'a>],
    shown: &FigureCells,
    theory: &Theory<'_>,
    rankings: &Rankings<'a>,
    frontiers: &[frontier::ComputedFrontier<'_>],
) -> Vec<Figure> {
    let table = &plan.manifest.figure;
    let noted = |common: &FigureKeys, draw: &dyn Fn(&[&'a CellResult<'a>]) -> Figure| {
        let chosen = shown.of(common);
        let figure = draw(&chosen.among(cells));
        Figure { caption: figure.caption.clone() + &chosen.note, ..figure }
    };
    let lines = LineFigure::all(table).map(|f| noted(f.common, &|c| f.draw(c, theory)));
    let winners = table.winners.iter();
    let winners = winners.map(|f| noted(&f.common, &|c| ranking_map::figure(f, c, rankings)));
    let stability = table.stability.iter();
    let stability = stability.map(|f| noted(&f.common, &|c| stability::figure(f, c, theory)));
    let of_frontiers = frontiers.iter().flat_map(frontier::figures);
    let all = lines.chain(winners).chain(stability).chain(of_frontiers);
    let mut all: HashMap<String, Figure> = all.map(|figure| (figure.id.clone(), figure)).collect();
    let drawn = |id: &String| all.remove(id).expect("every figure of a plan is drawn under its id");
    plan.figures.iter().map(drawn).collect()
}
