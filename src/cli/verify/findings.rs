//! What is verified, and what is found.

use exactfed_core::words::count;
use exactfed_runner::plan::Cell;
use std::fmt::{Display, Write};

/// What of an experiment is computed again.
#[derive(Default)]
pub struct Chosen<'a> {
    /// The cells that are run again.
    pub cells: Vec<&'a Cell>,
    /// The ids of the frontiers whose caches are computed again.
    pub frontiers: Vec<&'a str>,
}

impl Chosen<'_> {
    /// Whether nothing of the experiment is computed again.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.frontiers.is_empty()
    }
}

/// The findings so far: lines for the user, and numbers of cells and caches.
#[derive(Default)]
pub struct Findings {
    /// A line for each cell and cache that is not as it was, or cannot be compared, and a summary.
    pub text: String,
    /// The number of cells that are bit-identical.
    pub equal: usize,
    /// The number of cells with other numbers.
    pub other: usize,
    /// The number of cells, experiments and files that cannot be compared.
    pub wrong: usize,
    /// The number of cells that are left out, since their code is not at hand.
    pub left_out: usize,
    /// The number of caches that were computed again.
    pub caches: usize,
    /// The number of these caches with other numbers.
    pub stale: usize,
}

impl Findings {
    /// The number of cells and caches with other numbers than were stored.
    pub fn different(&self) -> usize {
        self.other + self.stale
    }

    /// The number of cells and experiments that are not compared.
    pub fn incomparable(&self) -> usize {
        self.wrong + self.left_out
    }

    /// Adds a line.
    pub fn add(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Adds a line on something that cannot be compared.
    pub fn add_wrong(&mut self, line: impl Display) {
        self.wrong += 1;
        self.add(line);
    }

    /// Adds the lines that count what was found, which are the last: `chosen` is the number of chosen cells, among them
    /// those that were left out, and `planned` that of all cells of the plans, with results or without.
    pub fn summarise(&mut self, chosen: usize, planned: usize) {
        let Self { equal, other, wrong, left_out, caches, stale, .. } = *self;
        let rest = if left_out > 0 { format!(", {left_out} left out") } else { String::new() };
        self.add(format_args!(
            "{} of {planned} cells run again: {equal} bit-identical, {other} different, {wrong} not comparable{rest}",
            chosen - left_out
        ));
        if caches > 0 {
            let all = count(caches, "cache");
            self.add(format_args!("{all} of theory computed again: {stale} different"));
        }
    }
}
