//! The first lines of a page: how many cells changed, the largest changes, and how many cells
//! are as they were.

use crate::compare::{Change, ChangeVerdict, Comparison};
use crate::report::colored_text::ColoredText;
use crate::report::number_text::short;
use exactfed_core::words::{readable, thousands};

/// The headline of a comparison: how many cells changed, the largest change with the worst verdict, and after it the
/// first change with another verdict that is for the worse or the better. Names of algorithms are parts of their own.
pub fn headline(comparison: &Comparison) -> Vec<ColoredText> {
    if comparison.is_empty() {
        return vec![plain("Nothing to compare")];
    }
    let Some(worst) = comparison.largest_first().next() else {
        return vec![plain("No cell changed")];
    };
    let changed = comparison.changed.len();
    let mut parts = vec![plain(&format!("{} changed", count_of_cells(comparison, changed)))];
    match worst.verdict {
        ChangeVerdict::Underpowered => parts.push(plain(", none of them significantly")),
        ChangeVerdict::Equivalent => {
            let margin = percent(comparison.margin);
            parts.push(plain(&format!(", none of them by more than {margin}")));
        }
        ChangeVerdict::SameErrors => parts.push(plain(", but none of the final errors did")),
        _ => {
            parts.push(plain(": "));
            parts.extend(statement(worst));
            let mut others = comparison.changed.iter().filter(|c| c.verdict != worst.verdict);
            let has_ratio =
                |c: &&Change| matches!(c.verdict, ChangeVerdict::Worse | ChangeVerdict::Better);
            if let Some(next) = others.find(has_ratio) {
                parts.push(plain(", "));
                parts.extend(statement(next));
            }
        }
    }
    parts
}

/// How many cells have the same bits on both sides, as a clause.
pub fn unchanged(comparison: &Comparison) -> String {
    let verb = if comparison.identical == 1 { "is" } else { "are" };
    format!("{} {verb} bit-identical", count_of_cells(comparison, comparison.identical))
}

/// A number of cells out of all that both sides have: "3 of 120 cells".
fn count_of_cells(comparison: &Comparison, cells: usize) -> String {
    let all = comparison.identical + comparison.changed.len();
    let noun = if all == 1 { "cell" } else { "cells" };
    format!("{} of {} {noun}", thousands(cells), thousands(all))
}

/// What changed at a cell between the sides, as a clause in three parts, of which the second is the name of the cell:
/// "the error of", "FedAvg, H = 10", "rose 1.2-fold". For changes whose verdict says that results changed: those for
/// the worse or the better, of whose ratio it speaks, have one.
fn statement(change: &Change) -> [ColoredText; 3] {
    let log_ratio = change.ratio().map_or(0.0, libm::log);
    let factor = readable(libm::exp(log_ratio.abs()), 3);
    let (before, after) = match change.verdict {
        ChangeVerdict::Failed => ("", " has no sound results".into()),
        ChangeVerdict::NewlyDiverged => ("", " diverges in runs that did not".into()),
        ChangeVerdict::NoLongerDiverged => ("", " no longer diverges".into()),
        ChangeVerdict::Recovered => ("", " has sound results again".into()),
        _ if log_ratio > 0.0 => ("the error of ", format!(" rose {factor}-fold")),
        _ => ("the error of ", format!(" fell {factor}-fold")),
    };
    let label = ColoredText { text: clean(&change.name), family: Some(change.family) };
    [plain(before), label, plain(&after)]
}

/// A part of the headline that names no algorithm.
fn plain(text: &str) -> ColoredText {
    ColoredText { text: text.into(), family: None }
}

/// A text that comes from a manifest, in one line and without control characters, which could change a terminal.
pub fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A share of 1 in percent, without zeros at the end: 0.05 is "5 %".
pub fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share).trim_end_matches('0').trim_end_matches('.'))
}
