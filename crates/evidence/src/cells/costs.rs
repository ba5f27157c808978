//! At which cost algorithms are compared, in words, and what they have paid there.
//!
//! *Invariant*: nothing is said to be compared at equal cost unless the algorithms of every grid
//! point have paid the same communications and the same gradients of a client.

use crate::cells::cost_sample::NoSample;
use crate::cells::panels::unique;
use crate::cells::{CellResult, setting_text};
use crate::stats::mean;
use exactfed_core::federated::{Schedule, Variates};
use exactfed_core::words::{enumerated, number, thousands};
use exactfed_runner::manifest::{AtCost, ComparedAt, Quantity};
use exactfed_runner::plan::Cell;
use std::collections::{BTreeSet, HashMap};

/// The costs that a page states of algorithms that it compares.
pub const STATED: [Quantity; 2] = [Quantity::Communications, Quantity::Gradients];

/// The most groups of algorithms with one cost each that a sentence lists.
const MOST_GROUPS: usize = 6;

/// The most cells that a sentence names of those whose runs end before the cost is reached.
const MOST_NAMED: usize = 4;

/// A cost as text: `500 communications`.
pub fn cost_text(at: AtCost) -> String {
    amount(number(at.most, 3), at.unit)
}

/// An amount with the unit of a cost: `1 communication`, `500 gradients of a client`.
fn amount(amount: String, unit: Quantity) -> String {
    let formula = unit.formula();
    let (plural, rest) = formula.split_at(formula.find(' ').unwrap_or(formula.len()));
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    format!("{amount} {}{rest}", if amount == "1" { singular } else { plural })
}

/// A cost or a target as text: `500 communications`, or `the first recorded round at which test accuracy is at least
/// 0.9`.
pub fn place_text(at: ComparedAt) -> String {
    match at {
        ComparedAt::Target { until } => {
            format!("the first recorded round at which {}", until.words())
        }
        ComparedAt::Cost(at) => cost_text(at),
    }
}

/// When runs are compared: at the last round, at a cost, or at a target.
pub fn when_text(at: Option<ComparedAt>) -> String {
    at.map_or("at the last round".into(), |at| format!("at {}", place_text(at)))
}

/// What the runs of a cell have paid on average of each of the [`STATED`] costs where they are compared: at this cost,
/// or at the last round. `None` if they are not compared there.
fn paid(cell: &CellResult<'_>, at: Option<ComparedAt>) -> Option<[f64; 2]> {
    let [communications, gradients] = STATED.map(|unit| cell.runs.sample(unit, at).ok());
    Some([mean(&communications?), mean(&gradients?)])
}

/// The smallest and the largest amount that was paid of each of the [`STATED`] costs.
type Range = [(f64, f64); 2];

/// The smallest range of each cost that includes both of these ranges.
fn joint_range(one: Range, other: Range) -> Range {
    [0, 1].map(|i| (one[i].0.min(other[i].0), one[i].1.max(other[i].1)))
}

/// The amounts of both costs as text: a number where the ends of a range are equal, and otherwise both ends.
fn range_text(range: Range) -> String {
    let [communications, gradients] = range.map(|(low, high)| {
        if low == high {
            number(low, 3)
        } else {
            format!("{} to {}", number(low, 3), number(high, 3))
        }
    });
    let [communication, gradient] = STATED;
    format!("{} and {}", amount(communications, communication), amount(gradients, gradient))
}

/// What the algorithms that are compared at these grid points have paid, as sentences: one number or range for all if
/// they have paid the same at each grid point, and otherwise the number or range of each algorithm at the grid points
/// where they have not. Cells whose runs end before the cost is reached are named. Empty if nothing is compared.
pub fn paid_costs(points: &[&[&CellResult<'_>]], at: Option<ComparedAt>) -> String {
    let mut all = PaidByLabel::default();
    // The same at those grid points alone where costs differ.
    let mut unequal = PaidByLabel::default();
    let mut differing = 0;
    for point in points {
        let known: Vec<(&str, [f64; 2])> = point
            .iter()
            .filter_map(|cell| Some((cell.cell.label.as_str(), paid(cell, at)?)))
            .collect();
        known.iter().for_each(|(label, cost)| all.add(label, *cost));
        if known.iter().any(|(_, cost)| *cost != known[0].1) {
            differing += 1;
            known.iter().for_each(|(label, cost)| unequal.add(label, *cost));
        }
    }
    let each = if differing > 0 { unequal.each } else { all.each };
    let costs = costs_text(&each, differing, points.len(), at);
    let cells = points.iter().flat_map(|point| point.iter());
    let ended = unique(cells.filter(|c| is_short(c, at)).map(|c| setting_text::cell_name(c.cell)));
    let (listed, more) = ended.split_at(ended.len().min(MOST_NAMED));
    let not_listed =
        if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    match at {
        Some(at) if !ended.is_empty() => format!(
            "{costs}{}Not compared, because runs end before {}: {}{not_listed}.",
            if costs.is_empty() { "" } else { " " },
            place_text(at),
            listed.join("; ")
        ),
        _ => costs,
    }
}

/// What the algorithms have paid, as one range for the cells of a label, since there may be a million cells.
#[derive(Default)]
struct PaidByLabel<'a> {
    /// The labels in the order of their first cells, with what was paid.
    each: Vec<(&'a str, Range)>,
    /// The place of each label in this list.
    places: HashMap<&'a str, usize>,
}

impl<'a> PaidByLabel<'a> {
    /// Adds what the runs of a cell of this label have paid of each of the [`STATED`] costs.
    fn add(&mut self, label: &'a str, cost: [f64; 2]) {
        let cost = cost.map(|x| (x, x));
        let place = *self.places.entry(label).or_insert(self.each.len());
        match self.each.get_mut(place) {
            Some((_, range)) => *range = joint_range(*range, cost),
            None => self.each.push((label, cost)),
        }
    }
}

/// A sentence on what each algorithm has paid, by label, at the grid points where the costs differ, which are
/// `differing` of all `points`, or at all grid points if `differing` is 0. Algorithms are compared at this cost, or at
/// the last round. Empty if no algorithm is compared.
fn costs_text(
    each: &[(&str, Range)],
    differing: usize,
    points: usize,
    at: Option<ComparedAt>,
) -> String {
    let Some(all) = each.iter().map(|(_, range)| *range).reduce(joint_range) else {
        return String::new();
    };
    let when = at.map_or("After the last round".into(), |at| format!("At {}", place_text(at)));
    if differing == 0 {
        let whose = if each.len() == 1 { "its runs" } else { "the compared runs" };
        return format!("{when} {whose} have all cost {}.", range_text(all));
    }
    let places = match points {
        1 => String::new(),
        all if all == differing => " at every grid point".into(),
        all => format!(" at {} of {} grid points", thousands(differing), thousands(all)),
    };
    let mut groups: Vec<(Range, Vec<&str>)> = Vec::new();
    for (label, range) in each {
        match groups.iter_mut().find(|(known, _)| known == range) {
            Some((_, labels)) => labels.push(label),
            None => groups.push((*range, vec![label])),
        }
    }
    let costs = match groups.len() {
        ..=MOST_GROUPS => groups
            .iter()
            .map(|(range, labels)| format!("{} {}", enumerated(labels), range_text(*range)))
            .collect::<Vec<_>>()
            .join("; "),
        _ => format!("they are from the lowest to the highest {}", range_text(all)),
    };
    let what = match [0, 1].map(|cost| each.iter().all(|(_, range)| range[cost] == each[0].1[cost]))
    {
        [true, false] => "gradients differ",
        [false, true] => "communications differ",
        _ => "costs differ",
    };
    format!("{when} {what}{places}: {costs}.")
}

/// How many vectors the clients of these cells send in a round, as the end of a sentence, as far as their algorithms
/// have control variates and communicate in every round; empty if none does.
pub fn vectors_sent<'a>(cells: impl Iterator<Item = &'a Cell>) -> &'static str {
    let vectors: BTreeSet<u64> = cells
        .flat_map(|cell| {
            // Where only a data file says how many clients there are, a cohort counts as a part of them.
            let clients =
                cell.identity.problem.extent().map_or(usize::MAX, |extent| extent.clients);
            let terms = cell.identity.algorithm.components().into_iter().map(|run| run.terms);
            terms
                .filter(|terms| {
                    let has_variates =
                        matches!(terms.variates, Variates::Kept(_) | Variates::Fresh);
                    has_variates && terms.schedule == Schedule::Every
                })
                .map(move |terms| terms.vectors_per_client(clients))
        })
        .collect();
    match (vectors.contains(&2), vectors.contains(&4)) {
        (true, false) => {
            "; two vectors per client and round, θ down and up, from which clients compute their variates"
        }
        (false, true) => "; four vectors per client and round, θ and a variate down and up",
        (true, true) => {
            "; two vectors per client and round, θ down and up, where clients can compute their variates from them, else four, with a variate down and up"
        }
        (false, false) => "",
    }
}

/// Whether a run of a cell ends before it has paid this cost; never without a cost.
pub fn is_short(cell: &CellResult<'_>, at: Option<ComparedAt>) -> bool {
    matches!(cell.runs.sample(Quantity::Communications, at), Err(NoSample::Ended))
}
