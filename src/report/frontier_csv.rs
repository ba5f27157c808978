//! `frontier.csv`: all points of frontiers.
//!
//! *Invariant*: numbers have the digits that give the same bits when they are read.

use crate::evidence::frontier::ComputedFrontier;
use crate::evidence::frontier::columns::COLUMNS;

/// The text of `frontier.csv`: a line of names, then one line for each point of each frontier, with the best settings
/// for an algorithm, a number of clients, a target, and a price or a budget.
pub fn csv(frontiers: &[ComputedFrontier<'_>]) -> String {
    let mut out = COLUMNS.map(|(name, _)| name).join(",") + "\n";
    for frontier in frontiers {
        for point in &frontier.best {
            out += &(COLUMNS.map(|(_, read)| read(frontier, point).to_string()).join(",") + "\n");
        }
    }
    out
}
