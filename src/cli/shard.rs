//! Which cells a command is for: those that a list names, and of these a share (a shard).
//!
//! *Invariant*: a split is a function of the cells, their number and nothing else. It is
//! the same on every machine and in whatever order the cells come; shares do not overlap,
//! together they are all cells, and no two differ by more than the largest cell's cost.

use super::outcome::Failure;
use exactfed_runner::files::read_stream_text;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::cost::operations;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::path::Path;

/// A plan and some of its cells.
pub type Cells<'a> = (&'a Plan, Vec<&'a Cell>);

/// The cells that a command is for, plan by plan, in the order of the plans: the cells that the file `only`
/// lists, or all; and of these, over all plans together, the share I of N, from 1, where `shard` is (I, N). Each plan
/// is in the result, also without cells.
///
/// # Errors
/// If the list cannot be read, or names cells that these plans do not have.
pub fn chosen<'a>(
    plans: &'a [Plan],
    only: Option<&Path>,
    shard: Option<(u64, u64)>,
) -> Result<Vec<Cells<'a>>, Failure> {
    let only = only.map(|file| listed(file, plans)).transpose()?;
    let mut all: Vec<Cells<'_>> = Vec::new();
    for plan in plans {
        let mut cells: Vec<&Cell> = plan.cells.iter().collect();
        if let Some(lines) = &only {
            cells.retain(|cell| {
                let with_experiment = format!("{}/{}", plan.experiment, cell.id);
                lines.contains(cell.id.as_str()) || lines.contains(&with_experiment)
            });
        }
        all.push((plan, cells));
    }
    let Some((i, n)) = shard else { return Ok(all) };
    let mut shares = split(&all, n).into_iter();
    for (_, cells) in &mut all {
        cells.retain(|_| shares.next() == Some(i - 1));
    }
    Ok(all)
}

/// Splits these cells, of one plan after another, into n shares of about the same number of operations, where n is at
/// least 1, and returns the share of each cell, from 0 to n − 1, in the order of the cells. The cells that take most
/// operations are dealt out first, each to the share that has least so far, the first of equals; cells with the same
/// operations by id. So the split does not depend on the order of the cells.
pub fn split(cells: &[Cells<'_>], n: u64) -> Vec<u64> {
    let mut order = Vec::new();
    for (plan, cells) in cells {
        for cell in cells {
            let cost = Reverse(operations(&cell.identity));
            order.push((cost, cell.id.as_str(), plan.experiment.as_str(), order.len()));
        }
    }
    let mut shares = vec![0; order.len()];
    order.sort_unstable();
    // More shares than cells stay empty.
    let mut load: BinaryHeap<Reverse<(u64, u64)>> =
        (0..n.min(order.len() as u64)).map(|share| Reverse((0, share))).collect();
    for (Reverse(cost), _, _, place) in order {
        let Some(mut least) = load.peek_mut() else { break };
        shares[place] = least.0.1;
        least.0.0 = least.0.0.saturating_add(cost);
    }
    shares
}

/// The most unknown cells that a message names.
const NAMED: usize = 5;

/// The lines of a list of cells, each an id or `experiment/id`; the file `-` is standard input.
///
/// # Errors
/// If it cannot be read, or names cells that these plans do not have.
fn listed(file: &Path, plans: &[Plan]) -> Result<HashSet<String>, Failure> {
    let experiments: BTreeMap<&str, HashSet<&str>> = plans
        .iter()
        .map(|p| (p.experiment.as_str(), p.cells.iter().map(|c| c.id.as_str()).collect()))
        .collect();
    let is_known = |line: &str| match line.rsplit_once('/') {
        Some((experiment, id)) => experiments.get(experiment).is_some_and(|ids| ids.contains(id)),
        None => experiments.values().any(|ids| ids.contains(line)),
    };
    let lines = lines(file)?;
    let unknown = lines.iter().filter(|(_, line)| !is_known(line));
    let mut unknown: Vec<String> = unknown.map(|(n, line)| format!("line {n}: {line}")).collect();
    if unknown.is_empty() {
        return Ok(lines.into_iter().map(|(_, line)| line).collect());
    }
    let count = unknown.len();
    if count > NAMED {
        unknown.truncate(NAMED);
        unknown.push(format!("and {} more", count - NAMED));
    }
    Err(Failure::input(format!(
        "error: {}: these are no cells of {} (a line is a cell's id, or experiment/id; `exactfed plan` prints them)\n  {}",
        file.display(),
        experiments.keys().copied().collect::<Vec<_>>().join(", "),
        unknown.join("\n  ")
    )))
}

/// The most bytes of a list: more than three million cells.
const MOST_LIST: u64 = 64 << 20;

/// The lines of a list that name cells, without empty lines and comments, each with its number in the file, from 1. The
/// file `-` is standard input.
///
/// # Errors
/// If it cannot be read, or has more than [`MOST_LIST`] bytes.
pub fn lines(file: &Path) -> Result<Vec<(usize, String)>, Failure> {
    let text = read_stream_text(file, MOST_LIST).map_err(|e| {
        Failure::input(format!("error: {} cannot be read: {}", file.display(), e.message))
    })?;
    Ok(parse_lines(&text))
}

/// The lines of a text that names cells, trimmed and with their numbers from 1, without empty lines and comments (`#`).
pub fn parse_lines(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim().to_owned()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect()
}

/// A text is no part of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a share is I/N with I from 1 to N, such as 2/8")]
pub struct ShardError;

/// Parses the value of `--shard`, `I/N` with I from 1 to N, as (I, N).
pub fn parse(text: &str) -> Result<(u64, u64), ShardError> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err(ShardError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_runner::manifest::Source;
    use exactfed_runner::runner::cost::CELL;

    const MANIFESTS: [(&str, &str); 3] = [
        ("garnet", include_str!("../../experiments/smoke/garnet.toml")),
        ("logistic", include_str!("../../experiments/smoke/logistic.toml")),
        ("diverging", include_str!("../../experiments/smoke/diverging.toml")),
    ];

    fn plan(manifest: (&str, &str), overrides: &[&str]) -> Plan {
        let overrides = overrides.iter().map(|o| (*o).to_owned()).collect();
        let name = manifest.0.to_owned();
        let text = manifest.1.to_owned();
        let source = Source { name: name.clone(), text, overrides, ..Source::default() };
        crate::evidence::plan(name, source).unwrap_or_else(|e| panic!("{e}"))
    }

    fn plans() -> Vec<Plan> {
        MANIFESTS.into_iter().map(|manifest| plan(manifest, &[])).collect()
    }

    /// The sorted ids of the cells of each of n shares.
    fn ids(plans: &[Plan], n: u64) -> Vec<Vec<String>> {
        let share = |i| {
            let cells =
                chosen(plans, None, Some((i, n))).unwrap_or_else(|e| panic!("{}", e.message));
            let cells = cells.iter().flat_map(|(_, cells)| cells);
            let mut ids: Vec<String> = cells.map(|c| c.id.to_string()).collect();
            ids.sort();
            ids
        };
        (1..=n).map(share).collect()
    }

    #[test]
    fn shares_are_a_balanced_partition_for_every_number_of_them() {
        let plans = plans();
        let costs: BTreeMap<&str, u64> = plans
            .iter()
            .flat_map(|p| &p.cells)
            .map(|c| (c.id.as_str(), operations(&c.identity)))
            .collect();
        let largest = *costs.values().max().unwrap();
        for n in [1, 2, 3, 5, 8, 13, 64, 66, 100] {
            let shares = ids(&plans, n);
            let mut all: Vec<&String> = shares.iter().flatten().collect();
            all.sort();
            assert_eq!(all, costs.keys().collect::<Vec<_>>(), "every cell once, of {n}");
            let load = shares.iter().map(|s| s.iter().map(|id| costs[id.as_str()]).sum::<u64>());
            let load: Vec<u64> = load.collect();
            let least = load.iter().min().unwrap();
            let most = load.iter().max().unwrap();
            assert!(*most <= least + largest, "{n}: {load:?}");
        }
    }

    #[test]
    fn the_order_of_cells_and_plans_does_not_matter() {
        let (plans, mut other) = (plans(), plans());
        other.reverse();
        for plan in &mut other {
            plan.cells.reverse();
            let middle = plan.cells.len() / 3;
            plan.cells.rotate_left(middle);
        }
        for n in [2, 3, 8] {
            assert_eq!(ids(&plans, n), ids(&other, n));
        }
    }

    #[test]
    fn costs_follow_steps_rounds_and_batches() {
        let with = |overrides: &[&str]| {
            let cells = plan(MANIFESTS[1], overrides).cells;
            cells.iter().map(|c| operations(&c.identity)).max().unwrap() - CELL
        };
        let once = with(&["replicates=1", "oracle=stochastic"]);
        assert_eq!(with(&["replicates=4", "oracle=stochastic"]), 4 * once);
        let batched = with(&["replicates=1", "oracle=stochastic", "problem.logistic.batch=8"]);
        assert!(batched > 5 * once && batched < 8 * once, "{batched} and {once}");
        let mut cell = plan(MANIFESTS[1], &[]).cells.remove(0);
        cell.identity.rounds = u64::MAX;
        assert_eq!(operations(&cell.identity), u64::MAX, "more than there is, not less");
    }

    #[test]
    fn a_share_is_one_of_some() {
        assert_eq!(parse("2/8"), Ok((2, 8)));
        for wrong in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
