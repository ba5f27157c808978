//! How well the operations of cells match their measured times, and how evenly they split the cells
//! into shards. Prints the numbers of docs/notes/scale.md from the results of `make reproduce`.
//!
//! `cargo run --release --locked -p exactfed-tools --bin shard_balance -- results`

use exactfed::cli::shard::{Cells, split};
use exactfed::files::Error;
use exactfed::plan::Plan;
use exactfed::runner::cost::operations;
use exactfed::store::Store;
use std::path::Path;

/// A cell that was run.
struct TimedCell<'a> {
    id: &'a str,
    /// The seconds that its runs took on one thread.
    seconds: f64,
    /// Its operations, as they are counted from its settings.
    operations: f64,
}

/// The time of the slowest of `n` shards, divided by the mean time of a shard; `shard` returns the shard, from 0, of
/// the cell at a place.
fn imbalance(cells: &[TimedCell<'_>], n: usize, shard: impl Fn(usize) -> usize) -> f64 {
    let mut load = vec![0.0; n];
    cells.iter().enumerate().for_each(|(i, cell)| load[shard(i)] += cell.seconds);
    let mean = load.iter().sum::<f64>() / n as f64;
    load.into_iter().fold(0.0, f64::max) / mean
}

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "results".to_owned());
    let store = Store::open_existing(Path::new(&folder))?;
    let experiments = store.experiments()?.into_iter();
    let plans: Vec<Plan> = experiments
        .map(|e| {
            exactfed::evidence::plan(e.name.clone(), e.source()).unwrap_or_else(|e| panic!("{e}"))
        })
        .collect();
    let mut cells: Vec<TimedCell<'_>> = Vec::new();
    for (plan, cell) in plans.iter().flat_map(|plan| plan.cells.iter().map(move |c| (plan, c))) {
        let stored = store.summary(&plan.experiment, &cell.id)?;
        let seconds = stored.expect("`exactfed run` has run every cell").seconds;
        let operations = operations(&cell.identity) as f64;
        cells.push(TimedCell { id: &cell.id, seconds, operations });
    }
    let measured: f64 = cells.iter().map(|cell| cell.seconds).sum();
    let operations: f64 = cells.iter().map(|cell| cell.operations).sum();
    let all = cells.len();
    let experiments = plans.len();
    println!(
        "{all} cells of {experiments} experiments: {operations:.2e} operations in {measured:.0} s"
    );
    // A shorter cell is timed badly, and does not matter for the balance.
    let long = cells.iter().filter(|cell| cell.seconds > 0.01);
    let mut rates: Vec<f64> = long.map(|cell| cell.operations / cell.seconds).collect();
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    for factor in [2.0, 3.0] {
        let range = median / factor..=median * factor;
        let within = rates.iter().filter(|rate| range.contains(*rate)).count();
        let percent = 100.0 * within as f64 / rates.len() as f64;
        println!(
            "of {} over 10 ms, {percent:.0} % within a factor of {factor} of {median:.2e} operations/s",
            rates.len()
        );
    }
    // For comparison: a split that knows no costs deals the cells out in the order of their ids.
    let mut by_id: Vec<usize> = (0..all).collect();
    by_id.sort_by_key(|&i| cells[i].id);
    let mut rank = vec![0; all];
    by_id.iter().enumerate().for_each(|(place, &i)| rank[i] = place);
    let chosen: Vec<Cells<'_>> =
        plans.iter().map(|plan| (plan, plan.cells.iter().collect())).collect();
    println!("\n| shards | split by cost | split by id, in turn |\n| --- | --- | --- |");
    for n in [2, 4, 8, 16] {
        let shards = split(&chosen, n as u64);
        let by_cost = imbalance(&cells, n, |i| shards[i] as usize);
        println!("| {n} | {by_cost:.2} | {:.2} |", imbalance(&cells, n, |i| rank[i] % n));
    }
    let longest = cells.iter().map(|cell| cell.seconds).fold(0.0, f64::max);
    println!("\nthe longest cell is {:.2} of a shard at 16", longest / (measured / 16.0));
    Ok(())
}
