//! Which cells a command is for: those that a list names, and of these a share.
//!
//! *Invariant*: a split is a function of the cells, their number and nothing else. It is
//! the same on every machine and in whatever order the cells come; shares do not overlap,
//! together they are all cells, and no two differ by more than the largest cell's cost.

use super::Failure;
use driftbench_runner::files::plain;
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::runner::cost::expected_nanoseconds;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::io::Read;
use std::path::Path;

/// The cells that a command is for, plan by plan: those of the list `only`, or all; and of
/// these, over all plans together, share I of N.
///
/// # Errors
/// If the list cannot be read, or names cells that are not there.
pub fn chosen<'a>(
    plans: &'a [Plan],
    only: Option<&Path>,
    shard: Option<(u64, u64)>,
) -> Result<Vec<Vec<&'a Cell>>, Failure> {
    let only = only.map(|file| Listed::read(file, plans)).transpose()?;
    let wanted = |plan: &Plan, cell: &Cell| {
        only.as_ref().is_none_or(|listed| listed.has(&plan.experiment, &cell.id))
    };
    let mut cells: Vec<Vec<&Cell>> = plans
        .iter()
        .map(|plan| plan.cells.iter().filter(|cell| wanted(plan, cell)).collect())
        .collect();
    let Some((i, n)) = shard else { return Ok(cells) };
    let mut shares = split(plans, &cells, n).into_iter();
    for cells in &mut cells {
        cells.retain(|_| shares.next() == Some(i - 1));
    }
    Ok(cells)
}

/// The share of each of these cells, from 0, in their order: the costliest first, each to
/// the share that has least so far, the first of equals. Cells of one cost go by id.
pub fn split(plans: &[Plan], cells: &[Vec<&Cell>], n: u64) -> Vec<u64> {
    let mut order = Vec::new();
    for (plan, cells) in plans.iter().zip(cells) {
        for cell in cells {
            let place = order.len();
            order.push((
                Reverse(expected_nanoseconds(&cell.identity)),
                cell.id.as_str(),
                plan.experiment.as_str(),
                place,
            ));
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

/// Cells that a list names: an id a line, or `experiment/id`.
pub struct Listed {
    ids: HashSet<String>,
    exact: BTreeMap<String, HashSet<String>>,
}

/// Unknown cells that a message names.
const NAMED: usize = 5;

impl Listed {
    /// Reads a list, `-` being standard input.
    ///
    /// # Errors
    /// If it cannot be read, or names cells that these plans do not have.
    pub fn read(file: &Path, plans: &[Plan]) -> Result<Self, Failure> {
        let experiments: BTreeMap<&str, HashSet<&str>> = plans
            .iter()
            .map(|p| (p.experiment.as_str(), p.cells.iter().map(|c| c.id.as_str()).collect()))
            .collect();
        let mut listed = Self { ids: HashSet::new(), exact: BTreeMap::new() };
        let mut unknown = Vec::new();
        for (number, line) in lines(file)? {
            let known = match line.rsplit_once('/') {
                Some((experiment, id)) => {
                    let ids = listed.exact.entry(experiment.to_owned()).or_default();
                    ids.insert(id.to_owned());
                    experiments.get(experiment).is_some_and(|ids| ids.contains(id))
                }
                None => {
                    listed.ids.insert(line.clone());
                    experiments.values().any(|ids| ids.contains(line.as_str()))
                }
            };
            if !known {
                unknown.push(format!("line {number}: {line}"));
            }
        }
        if unknown.is_empty() {
            return Ok(listed);
        }
        let count = unknown.len();
        if count > NAMED {
            unknown.truncate(NAMED);
            unknown.push(format!("and {} more", count - NAMED));
        }
        Err(Failure::input(format!(
            "error: {}: these are no cells of {} (a line is a cell's id, or experiment/id; `driftbench plan` prints them)\n  {}",
            file.display(),
            experiments.keys().copied().collect::<Vec<_>>().join(", "),
            unknown.join("\n  ")
        )))
    }

    fn has(&self, experiment: &str, id: &str) -> bool {
        self.ids.contains(id) || self.exact.get(experiment).is_some_and(|ids| ids.contains(id))
    }
}

/// The lines of a list that name cells, by their numbers; `-` is standard input.
///
/// # Errors
/// If it cannot be read.
pub fn lines(file: &Path) -> Result<Vec<(usize, String)>, Failure> {
    let text = match file.as_os_str() == "-" {
        true => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => std::fs::read_to_string(file),
    };
    let unread = |e| format!("error: {} cannot be read: {}", file.display(), plain(&e));
    let text = text.map_err(|e| Failure::input(unread(e)))?;
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim().to_owned()));
    Ok(lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect())
}

/// Share I of N, as `I/N`.
pub fn parse(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("a share is I/N with I from 1 to N, such as 2/8".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoredExperiment};
    use driftbench_runner::manifest::Source;
    use driftbench_runner::runner::cost::CELL;

    const MANIFESTS: [(&str, &str); 3] = [
        ("garnet", include_str!("../../experiments/smoke/garnet.toml")),
        ("logistic", include_str!("../../experiments/smoke/logistic.toml")),
        ("diverging", include_str!("../../experiments/smoke/diverging.toml")),
    ];

    fn plans() -> Vec<Plan> {
        let plan = |(name, text): (&str, &str)| {
            let source = Source { name: name.into(), text: text.into(), ..Source::default() };
            Plan::new(name.into(), source).unwrap_or_else(|e| panic!("{e}"))
        };
        MANIFESTS.into_iter().map(plan).collect()
    }

    fn ids(plans: &[Plan], n: u64) -> Vec<Vec<String>> {
        let share = |i| {
            let cells =
                chosen(plans, None, Some((i, n))).unwrap_or_else(|e| panic!("{}", e.message));
            let mut ids: Vec<String> = cells.iter().flatten().map(|c| c.id.clone()).collect();
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
            .map(|c| (c.id.as_str(), expected_nanoseconds(&c.identity)))
            .collect();
        let largest = *costs.values().max().unwrap();
        for n in [1, 2, 3, 5, 8, 13, 64, 66, 100] {
            let shares = ids(&plans, n);
            let mut all: Vec<&String> = shares.iter().flatten().collect();
            all.sort();
            assert_eq!(all, costs.keys().collect::<Vec<_>>(), "every cell once, of {n}");
            let load = shares.iter().map(|s| s.iter().map(|id| costs[id.as_str()]).sum::<u64>());
            let load: Vec<u64> = load.collect();
            let (least, most) = (load.iter().min().unwrap(), load.iter().max().unwrap());
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
            let (name, text) = MANIFESTS[1];
            let overrides = overrides.iter().map(|o| (*o).to_owned()).collect();
            let source =
                Source { name: name.into(), text: text.into(), overrides, ..Source::default() };
            let plan = Plan::new(name.into(), source).unwrap_or_else(|e| panic!("{e}"));
            plan.cells.iter().map(|c| expected_nanoseconds(&c.identity)).max().unwrap() - CELL
        };
        let once = with(&["replicates=1", "oracle=stochastic"]);
        assert_eq!(with(&["replicates=4", "oracle=stochastic"]), 4 * once);
        let batched = with(&["replicates=1", "oracle=stochastic", "problem.logistic.batch=8"]);
        assert!(batched > 5 * once && batched < 8 * once, "{batched} and {once}");
        let (name, text) = MANIFESTS[1];
        let source = Source { name: name.into(), text: text.into(), ..Source::default() };
        let plan = Plan::new(name.into(), source).unwrap_or_else(|e| panic!("{e}"));
        let mut cell = plan.cells[0].clone();
        cell.identity.rounds = u64::MAX;
        assert_eq!(expected_nanoseconds(&cell.identity), u64::MAX, "more than there is, not less");
    }

    /// What docs/SCALE.md says of expected costs, by the times of the cells in `results`.
    #[test]
    #[ignore = "prints a table of `results`, which make reproduce writes"]
    fn share_table() {
        let store = Store::open_existing(Path::new("results")).unwrap_or_else(|e| panic!("{e}"));
        let plan = |e: &StoredExperiment| {
            Plan::new(e.name.clone(), e.source()).unwrap_or_else(|e| panic!("{e}"))
        };
        let experiments = store.experiments().unwrap_or_else(|e| panic!("{e}"));
        let plans: Vec<Plan> = experiments.iter().map(plan).collect();
        let cells: Vec<Vec<&Cell>> = plans.iter().map(|p| p.cells.iter().collect()).collect();
        let of = |plan: &Plan, cell: &Cell| match store.summary(&plan.experiment, &cell.id) {
            Ok(Some(summary)) => (
                cell.id.clone(),
                summary.seconds,
                expected_nanoseconds(&cell.identity) as f64 * 1e-9,
            ),
            _ => panic!("{}: {} has no results", plan.experiment, cell.id),
        };
        let all: Vec<(String, f64, f64)> =
            plans.iter().flat_map(|p| p.cells.iter().map(move |c| of(p, c))).collect();
        let measured: f64 = all.iter().map(|(_, seconds, _)| seconds).sum();
        let expected: f64 = all.iter().map(|(.., cost)| cost).sum();
        println!("{} cells: {expected:.0} s expected, {measured:.0} s measured", all.len());
        let long: Vec<f64> =
            all.iter().filter(|(_, s, _)| *s > 0.01).map(|(_, s, cost)| cost / s).collect();
        for factor in [2.0, 3.0] {
            let within = long.iter().filter(|r| (1.0 / factor..=factor).contains(*r)).count();
            let share = 100.0 * within as f64 / long.len() as f64;
            println!("of {} over 10 ms, {share:.0} % within a factor of {factor}", long.len());
        }
        let mut by_id: Vec<usize> = (0..all.len()).collect();
        by_id.sort_by_key(|&i| &all[i].0);
        for n in [2, 4, 8, 16] {
            let slowest = |share: &dyn Fn(usize) -> usize| {
                let mut load = vec![0.0; n];
                (0..all.len()).for_each(|i| load[share(i)] += all[i].1);
                load.into_iter().fold(0.0, f64::max) / (measured / n as f64)
            };
            let split = split(&plans, &cells, n as u64);
            let by_cost = slowest(&|i| split[i] as usize);
            let mut place = vec![0; all.len()];
            by_id.iter().enumerate().for_each(|(rank, &i)| place[i] = rank % n);
            println!("{n} shares: {by_cost:.2} by cost, {:.2} by id", slowest(&|i| place[i]));
        }
        let longest = all.iter().map(|(_, s, _)| *s).fold(0.0, f64::max);
        println!("the longest cell is {:.2} of a share at 16", longest / (measured / 16.0));
    }

    #[test]
    fn a_share_is_one_of_some() {
        assert_eq!(parse("2/8"), Ok((2, 8)));
        for wrong in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
