//! Analyses an experiment: makes of its results all that its page shows, as values.

use crate::bound_rows;
use crate::cells::read::{one_version, read_cells};
use crate::cells::runs::{Grouping, Runs, TraceNeeds};
use crate::cells::{CellResult, Missing};
use crate::claims::{Judge, JudgedClaim};
use crate::figures::kind::DrawnFrom;
use crate::figures::{Figures, profile};
use crate::frontier::{self, ComputedFrontier};
use crate::looks::{LooksOfPlan, TakenLooks};
use crate::needs::{self, Needs, TheoryNeeds};
use crate::predictions::{self, MomentsCache, Theory, first_order, instances, problems};
use crate::ranking::{self, Rankings};
use crate::results::Results;
use crate::scene::figure::Figure;
use crate::standings::Standings;
use crate::tuning::{self, TuningCells, TuningResult};
use crate::unplanned::{self, UnplannedCells};
use exactfed_core::words::enumerated;
use exactfed_runner::files::Error;
use exactfed_runner::plan::{Cell, Plan};
use std::collections::{BTreeMap, HashSet};

/// An experiment that was analysed: its results, and all that its page shows of them.
pub struct Experiment<'a> {
    /// The manifest and its cells.
    pub plan: &'a Plan,
    /// The cells that have results, in the order of the plan.
    pub cells: Vec<CellResult<'a>>,
    /// The cells without results, in the order of the plan, and then candidates without results.
    pub missing: Vec<Missing<'a>>,
    /// The figures that the manifest asks for.
    pub figures: Vec<Figure>,
    /// The heterogeneity of the problems.
    pub problems: problems::Instances,
    /// The claims of the manifest with their verdicts.
    pub claims: Vec<JudgedClaim<'a>>,
    /// The looks at which these claims were judged, if replicates were added in planned looks.
    pub looks: Option<TakenLooks>,
    /// The values of published bounds for the cells.
    pub bounds: Vec<bound_rows::BoundRow<'a>>,
    /// Where the first order of measured biases holds.
    pub first_order: Vec<first_order::FirstOrderRow<'a>>,
    /// Predictions that are not computed at this size, one sentence each.
    pub not_computed: Vec<String>,
    /// What the results contain of other cells, which the page leaves out.
    pub unplanned: UnplannedCells,
    /// The ranking of the algorithms at each grid point.
    pub standings: Standings,
    /// What was selected, where settings are tuned.
    pub tuning: Option<TuningResult>,
    /// The frontiers of the manifest.
    pub frontiers: Vec<ComputedFrontier<'a>>,
}

impl Experiment<'_> {
    /// The settings that are tuned, in words; empty if none is.
    pub fn tuned_in_words(&self) -> String {
        self.tuning.as_ref().map_or(String::new(), |tuning| {
            let names = tuning
                .settings
                .iter()
                .map(|s| s.key.replace('-', " ").replace("proximal", "proximal weight"));
            enumerated(&names.collect::<Vec<_>>())
        })
    }
}

/// Reads the results of an experiment and analyses them.
///
/// # Errors
/// If results are damaged, or were computed by several versions of the program.
pub fn analyse<'a>(plan: &'a Plan, results: &dyn Results) -> Result<Experiment<'a>, Error> {
    analyse_with(plan, results, frontier::frontiers(plan, results, &|_| ())?)
}

/// Analyses an experiment as [`analyse`] does, with the frontiers of the plan, which [`frontier::frontiers`] found
/// already: a caller that shows the progress of that search begins with it.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_with<'a>(
    plan: &'a Plan,
    results: &dyn Results,
    frontiers: Vec<ComputedFrontier<'a>>,
) -> Result<Experiment<'a>, Error> {
    let needs = Needs::of_plan(plan);
    let unplanned = unplanned::find(plan, results)?;
    let (mut cells, mut missing) =
        read_cells(plan, plan.cells.iter(), results, &|cell| needs.traces(cell))?;
    one_version(plan, &cells)?;
    // Which cells each figure draws.
    let shown = Figures::new(plan, &cells);
    follow_chosen(plan, results, &needs, &shown, &mut cells)?;
    results.release(&plan.experiment);
    let TheoryNeeds { every_cell, any, moments } = needs.theory(&shown, &cells);
    let needed = plan.cells.iter().filter(|cell| every_cell || any.contains(&*cell.id));
    let prepared = instances::build(plan, results, &needed.collect::<Vec<&Cell>>())?;
    let cache = MomentsCache::for_plan(plan, results);
    let theory = Theory::new(&prepared, &moments, cache);
    if needs::draws_exact_bias(plan) {
        instances::add_biases(plan, results, &prepared, &mut cells)?;
    }
    let (axes, rows) = ranking::grid_points(&cells.iter().collect::<Vec<_>>());
    let by = plan.manifest.ranked_by();
    let at = plan.manifest.ranked_at();
    let margin = plan.manifest.compare.margin;
    let places = rows.iter().map(|row| (row.cells.clone(), by, at));
    let rankings = Rankings::new(places.chain(shown.compared(&cells)));
    let standings = Standings::new(axes, &rows, by, at, margin, &rankings);
    drop(rows);
    let from = DrawnFrom { theory: &theory, rankings: &rankings, frontiers: &frontiers };
    let mut figures = shown.draw(plan, &cells, &from);
    drop(rankings);
    let (candidates, untried) = TuningCells::read(plan, results)?;
    one_version(plan, &candidates.candidates)?;
    add_missing(&mut missing, untried);
    tuning::add_figures(plan, &candidates, &mut figures);
    figures.extend(profile::figure(&cells, by, at));
    let tuning = TuningResult::new(plan, &cells, &candidates);
    let problems = problems::instances(plan, &prepared, results)?;
    let looks = LooksOfPlan::new(plan, results)?;
    let judge = Judge { plan, cells: &cells, theory: &theory, frontiers: &frontiers };
    let claims = judge.look(plan, looks.level());
    let bounds = bound_rows::rows(plan, &cells, &theory);
    let first_order = first_order::rows(&cells, &theory);
    let not_computed = not_computed(&theory, &problems);
    drop(theory);
    drop(prepared);
    let (claims, looks) = looks.judge(plan, results, claims)?;
    Ok(Experiment {
        plan,
        cells,
        missing,
        figures,
        problems,
        claims,
        looks,
        bounds,
        first_order,
        not_computed,
        unplanned,
        standings,
        tuning,
        frontiers,
    })
}

/// A sentence for each prediction, measure or drift that is not computed because it would take too long, and then one
/// that says how long a computation may take; empty if all are computed.
fn not_computed(theory: &Theory<'_>, problems: &problems::Instances) -> Vec<String> {
    let mut sentences = theory.not_computed();
    sentences.extend(problems.not_computed());
    if !sentences.is_empty() {
        sentences.push(predictions::bounds_of_cost());
    }
    sentences
}

/// Adds cells without results of tuning to the `missing` ones: candidates, without which it is not decided what is
/// selected, and fresh runs of the values that are best for all algorithms, which may be among the missing ones
/// already.
fn add_missing<'a>(missing: &mut Vec<Missing<'a>>, further: Vec<Missing<'a>>) {
    let known: HashSet<&str> = missing.iter().map(|missing| &*missing.cell.id).collect();
    let further: Vec<Missing<'_>> =
        further.into_iter().filter(|further| !known.contains(&*further.cell.id)).collect();
    missing.extend(further);
}

/// Reads the cells again that were chosen for figures that draw some of many cells, now with the columns of their
/// traces that these figures need: the first reading leaves these out, so that the traces of all cells need not be in
/// memory. `shown` has the chosen cells as indices among `cells`, whose runs are replaced.
fn follow_chosen(
    plan: &Plan,
    results: &dyn Results,
    needs: &Needs<'_>,
    shown: &Figures<'_>,
    cells: &mut [CellResult<'_>],
) -> Result<(), Error> {
    let mut wanted: BTreeMap<usize, TraceNeeds> = BTreeMap::new();
    for (figure, places) in shown.iter().filter(|(figure, _)| !needs::draws_all(*figure, plan)) {
        for place in places {
            figure.add_needs(
                wanted.entry(*place).or_insert_with(|| needs.traces(cells[*place].cell)),
            );
        }
    }
    let places: Vec<usize> = wanted.keys().copied().collect();
    let prices = plan.manifest.prices.unwrap_or_default();
    let ids: Vec<&str> = places.iter().map(|place| cells[*place].cell.id.as_str()).collect();
    for i in results.reading_order(&plan.experiment, &ids) {
        let needed = &wanted[&places[i]];
        let cell = &mut cells[places[i]];
        if let Some(stored) = results.read(&plan.experiment, &cell.cell.id)? {
            let grouping = Grouping::new(cell.cell);
            cell.runs = Runs::new(stored.traces, grouping, needed, &prices);
        }
    }
    Ok(())
}
