//! The summary for a terminal: aligned, short, without colours.

use super::{ChangeText, ClaimChangeText, DiffText};
use crate::analysis::compare::ChangeVerdict;
use driftbench_core::words::count;
use std::fmt::Write;

/// Rows of each list.
const MOST_LINES: usize = 20;

/// The summary for a terminal.
pub fn text(view: &DiffText) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!("before  {}", view.before));
    line(format!("after   {}", view.after));
    for (what, all) in
        [("not comparable", &view.incomparable), ("removed", &view.removed), ("added", &view.added)]
    {
        all.iter().take(MOST_LINES).for_each(|one| line(format!("{what:<14}  {one}")));
        if all.len() > MOST_LINES {
            line(format!("{what:<14}  and {}", count(all.len() - MOST_LINES, "more experiment")));
        }
    }
    if view.empty {
        line("Nothing to compare: no cell is on both sides.".into());
        return out;
    }
    line(format!("{}.", view.headline));
    if view.tested > 0 {
        line(format!(
            "Final ‖θ − θ*‖², after over before, geometric mean of paired runs with its 95 % interval; {} tested together (Holm, 5 %), margin {}.",
            count(view.tested, "cell"),
            view.margin
        ));
    }
    rows((&view.changed, view.rows.0), "", &mut line);
    rows((&view.settings, view.rows.1), "With other settings:", &mut line);
    for claim in view.claims.iter().take(MOST_LINES) {
        let ClaimChangeText { experiment, id, before, after, .. } = claim;
        line(format!("claim  {experiment}: {id}: {before} → {after}"));
    }
    if view.claims.len() > MOST_LINES {
        line(format!("and {}", count(view.claims.len() - MOST_LINES, "more claim")));
    }
    if !view.untold.is_empty() {
        line(format!(
            "claims of {} are not compared: one side does not tell them",
            count(view.untold.len(), "experiment")
        ));
    }
    if !view.fails.is_empty() {
        line(format!("Fails: {}.", view.fails));
    }
    out
}

fn rows((rows, all): (&[ChangeText], usize), head: &str, line: &mut impl FnMut(String)) {
    if !rows.is_empty() && !head.is_empty() {
        line(head.into());
    }
    let shown = &rows[..rows.len().min(MOST_LINES)];
    let wide = |of: fn(&ChangeText) -> &str| {
        shown.iter().map(|r| of(r).chars().count()).max().unwrap_or(0)
    };
    let (verdict, ratio) = (wide(|r| r.verdict), wide(|r| &r.ratio));
    for row in shown {
        let mut more: Vec<String> = Vec::new();
        if !row.other.is_empty() {
            more.push(row.other.clone());
        }
        if !row.note.is_empty() {
            more.push(row.note.clone());
        }
        if row.verdict == ChangeVerdict::Underpowered.name() && row.detectable != "–" {
            more.push(format!("{} could have been seen", row.detectable));
        }
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
        line(format!(
            "  {:<verdict$}  {:<ratio$}  {} {}: {}{more}",
            row.verdict, row.ratio, row.cell, row.experiment, row.name
        ));
    }
    if all > shown.len() {
        line(format!("  and {} more: see --format html", all - shown.len()));
    }
}
