//! Who wins where several algorithms stand beside one another: one computation for the table
//! of a page and for its maps.
//!
//! *Invariant*: the algorithms of a place are compared once. Every comparison of a page, in
//! the table or in a map, belongs to one family for Holm's correction, so that no two parts of
//! a page disagree on a place.
//!
//! *Invariant*: all algorithms that are not separated from the best are named.

use super::{CellResult, panels, setting_text};
use crate::stats::{ROUNDING_FLOOR, Ratio, holm, mean};
use driftbench_core::words::joined;
use driftbench_runner::manifest::{Quantity, Start};
use driftbench_runner::plan::short;
use std::collections::{BTreeSet, HashMap};

/// Family-wise level of all comparisons of a page.
const LEVEL: f64 = 0.05;

/// Means that differ by no more than this, relative to the smaller, differ by rounding.
const ROUNDING: f64 = 1e-9;

/// What a comparison with the best of a place says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// Its mean is larger, after Holm's correction.
    Larger,
    /// The runs do not tell.
    Unclear,
    /// The means are equal but for rounding.
    Equal,
}

/// An algorithm beside the best of its place.
#[derive(Clone, Debug)]
pub struct Rival {
    /// Place of its cell among those compared.
    pub cell: usize,
    /// How many times larger its mean is, over paired runs.
    pub ratio: Ratio,
    /// What that says.
    pub separation: Separation,
}

/// How the algorithms of a place stand.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// No algorithm has a mean: runs of each diverged.
    Diverged,
    /// The smallest mean error is above the error at the start.
    AboveStart {
        /// That mean.
        error: f64,
    },
    /// One has the smallest mean.
    Ranked {
        /// Place of its cell among those compared.
        best: usize,
        /// Its mean.
        error: f64,
        /// Its runs.
        n: usize,
        /// The others that have a mean, from the smallest to the largest.
        rivals: Vec<Rival>,
    },
}

impl Outcome {
    /// The best and those that are not separated from it, as places among those compared.
    pub fn leaders(&self) -> Vec<usize> {
        match self {
            Self::Ranked { best, rivals, .. } => {
                let close = rivals.iter().filter(|rival| rival.separation != Separation::Larger);
                std::iter::once(*best).chain(close.map(|rival| rival.cell)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The cells that are compared at a place, in their order, and by what.
type Place<'a> = (Vec<&'a str>, Quantity);

/// The outcomes of all places that a page speaks of.
#[derive(Default)]
pub struct Rankings<'a> {
    outcomes: HashMap<Place<'a>, Outcome>,
    /// Comparisons that the correction is for.
    pub compared: usize,
}

impl<'a> Rankings<'a> {
    /// Compares the algorithms of each of these places with the best there.
    pub fn new(places: impl Iterator<Item = (Vec<&'a CellResult<'a>>, Quantity)>) -> Self {
        let mut outcomes = HashMap::new();
        let mut order: Vec<Place<'a>> = Vec::new();
        for (cells, quantity) in places {
            let place = key(&cells, quantity);
            if !outcomes.contains_key(&place) {
                outcomes.insert(place.clone(), ranked(&cells, quantity));
                order.push(place);
            }
        }
        let mut open: Vec<(&Place<'a>, usize, f64)> = Vec::new();
        for place in &order {
            let Outcome::Ranked { rivals, .. } = &outcomes[place] else { continue };
            let unclear = rivals.iter().enumerate();
            let unclear = unclear.filter(|(_, rival)| rival.separation == Separation::Unclear);
            open.extend(unclear.map(|(i, rival)| (place, i, rival.ratio.p)));
        }
        let p: Vec<f64> = open.iter().map(|(_, _, p)| if p.is_nan() { 1.0 } else { *p }).collect();
        let compared = open.len();
        for ((place, i, _), p) in open.into_iter().zip(holm(&p)) {
            if let Some(Outcome::Ranked { rivals, .. }) = outcomes.get_mut(place)
                && p <= LEVEL
                && rivals[i].ratio.low > 1.0
            {
                rivals[i].separation = Separation::Larger;
            }
        }
        Self { outcomes, compared }
    }

    /// How these cells stand, which were among the places.
    pub fn outcome(&self, cells: &[&'a CellResult<'a>], quantity: Quantity) -> Option<&Outcome> {
        self.outcomes.get(&key(cells, quantity))
    }
}

fn key<'a>(cells: &[&'a CellResult<'a>], quantity: Quantity) -> Place<'a> {
    (cells.iter().map(|c| c.cell.id.as_str()).collect(), quantity)
}

/// The cells of a place by their means; what runs do not tell at once is left unclear.
fn ranked(cells: &[&CellResult<'_>], quantity: Quantity) -> Outcome {
    let finals = cells.iter().enumerate().filter_map(|(i, c)| Some((i, c.finals(quantity)?)));
    let mut all: Vec<(usize, Vec<f64>)> = finals.filter(|(_, v)| !mean(v).is_nan()).collect();
    all.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let Some(((best, sample), others)) = all.split_first() else { return Outcome::Diverged };
    let error = mean(sample);
    let start = cells.iter().map(|c| c.runs.start()).fold(0.0, f64::max);
    // A run that starts where it is going can only go up: at θ*, or at the limit of its mean.
    let is_away =
        start > 0.0 && cells.iter().all(|c| !matches!(*c.cell.identity.start, Start::Limit(_)));
    if quantity == Quantity::SqError && is_away && error > start {
        return Outcome::AboveStart { error };
    }
    let rival = |(cell, other): &(usize, Vec<f64>)| {
        let ratio = Ratio::of_means(other, sample);
        let known = cells[*cell].is_deterministic() && cells[*best].is_deterministic();
        Rival { cell: *cell, ratio, separation: at_once(other, sample, known) }
    };
    let rivals = others.iter().map(rival).collect();
    Outcome::Ranked { best: *best, error, n: sample.len(), rivals }
}

/// What a comparison says without a test: where means are equal, no run differs from
/// another, or nothing is random and one run is all that is to be `known`.
fn at_once(other: &[f64], best: &[f64], known: bool) -> Separation {
    let constant = |sample: &[f64]| sample.len() > 1 && sample.iter().all(|v| *v == sample[0]);
    let larger = mean(other);
    if larger <= mean(best) * (1.0 + ROUNDING) || larger < ROUNDING_FLOOR {
        Separation::Equal
    } else if known || constant(other) && constant(best) {
        Separation::Larger
    } else {
        Separation::Unclear
    }
}

/// A place of the table: the values of the settings that all algorithms share.
pub struct GridPoint<'a> {
    place: Vec<String>,
    /// The cells that are compared.
    pub cells: Vec<&'a CellResult<'a>>,
    names: Vec<String>,
}

/// Who wins at every place where several algorithms stand beside one another.
pub struct Standings {
    /// Names of the settings that all algorithms share.
    pub axes: Vec<String>,
    /// A row for each combination of their values.
    pub rows: Vec<Standing>,
    /// Comparisons on the whole page, maps included, that Holm's correction is for.
    pub compared: usize,
}

/// How the algorithms of a place stand.
pub struct Standing {
    /// The values of the settings that tell the places apart.
    pub place: Vec<String>,
    /// The algorithm with the smallest mean of ‖θ_T − θ*‖², and all that are not separated
    /// from it; nobody where none has a mean or all ended above the start.
    pub leaders: Vec<String>,
    /// The smallest mean; NaN where there is none.
    pub error: f64,
    /// The next, and how many times larger its mean is.
    pub next: Option<(String, Rival)>,
    /// Replicates of the best.
    pub n: usize,
    /// Those with runs that diverged: they cannot win.
    pub diverged: Vec<String>,
}

impl Standings {
    /// How these places stand.
    pub fn new<'a>(axes: Vec<String>, rows: &[GridPoint<'a>], contests: &Rankings<'a>) -> Self {
        let standing = |row: &GridPoint<'a>| {
            let outcome = contests.outcome(&row.cells, Quantity::SqError)?;
            Some(row.standing(outcome))
        };
        let rows = rows.iter().filter_map(standing).collect();
        Self { axes, rows, compared: contests.compared }
    }
}

impl GridPoint<'_> {
    fn standing(&self, outcome: &Outcome) -> Standing {
        let name = |place: usize| self.names[place].clone();
        let (error, n, next) = match outcome {
            Outcome::Diverged => (f64::NAN, self.cells[0].replicates(), None),
            Outcome::AboveStart { error } => (*error, self.cells[0].replicates(), None),
            Outcome::Ranked { error, n, rivals, .. } => (*error, *n, rivals.first()),
        };
        let names = self.cells.iter().zip(&self.names).filter(|(c, _)| c.diverged() > 0);
        Standing {
            place: self.place.clone(),
            leaders: outcome.leaders().into_iter().map(name).collect(),
            error,
            next: next.map(|rival| (name(rival.cell), rival.clone())),
            n,
            diverged: names.map(|(_, name)| name.clone()).collect(),
        }
    }
}

/// The settings that all algorithms share, and the places that their values make where
/// several algorithms stand.
pub fn rows<'a>(cells: &'a [CellResult<'a>]) -> (Vec<String>, Vec<GridPoint<'a>>) {
    let cells: Vec<&'a CellResult<'a>> = cells.iter().collect();
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
    let name =
        |c: &CellResult<'_>| joined(&[&c.cell.label, &setting_text::details(c.cell, &known)]);
    let row = |group: panels::Group<'a>| {
        let names = group.cells.iter().map(|c| name(c)).collect();
        GridPoint { place: group.values, cells: group.cells, names }
    };
    let groups = panels::panels(&axes, &cells).into_iter().filter(|group| group.cells.len() > 1);
    let rows = groups.map(row).collect();
    (axes, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_test() {
        let random = |other: &[f64], best: &[f64]| at_once(other, best, false);
        assert_eq!(random(&[2.0, 2.0], &[2.0, 2.0]), Separation::Equal);
        assert_eq!(random(&[0.0, 0.0], &[0.0, 0.0]), Separation::Equal);
        assert_eq!(random(&[2.0, 2.0], &[1.0, 1.0]), Separation::Larger);
        assert_eq!(random(&[2.0, 2.0], &[0.0, 0.0]), Separation::Larger);
        assert_eq!(random(&[2.0, 2.5], &[1.0, 1.0]), Separation::Unclear);
        // One run says nothing of the runs' spread, unless there is none.
        assert_eq!(random(&[2.0], &[1.0]), Separation::Unclear);
        assert_eq!(at_once(&[2.0], &[1.0], true), Separation::Larger);
        // Rounding is not larger than rounding.
        assert_eq!(at_once(&[2e-30], &[1e-32], true), Separation::Equal);
    }
}
