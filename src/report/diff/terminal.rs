//! The summary for a terminal: aligned, short, without colours.

use super::{ChangeTable, ChangeText, ClaimChangeText, DiffText};
use crate::compare::ChangeVerdict;
use exactfed_core::words::count;
use std::fmt::Write;

/// Rows of each list.
const MOST_LINES: usize = 20;

/// The summary for a terminal.
pub fn summary(diff: &DiffText) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!("before  {}", diff.before));
    line(format!("after   {}", diff.after));
    for (what, all) in [
        ("not comparable", &diff.incomparable),
        ("removed", &diff.removed.lines),
        ("added", &diff.added.lines),
    ] {
        all.iter().take(MOST_LINES).for_each(|one| line(format!("{what:<14}  {one}")));
        if all.len() > MOST_LINES {
            line(format!("{what:<14}  and {}", count(all.len() - MOST_LINES, "more experiment")));
        }
    }
    let summary = &diff.summary;
    if summary.empty {
        line("Nothing to compare: no cell is on both sides.".into());
        return out;
    }
    line(format!("{}.", summary.headline));
    if summary.tested > 0 {
        line(format!(
            "Final ‖θ − θ*‖², after over before, geometric mean of paired runs with its 95 % interval; {} tested together (Holm, 5 %), margin {}.",
            count(summary.tested, "cell"),
            summary.margin
        ));
    }
    add_rows(&diff.changed, "", &mut line);
    add_rows(&diff.settings, "With other settings:", &mut line);
    for claim in diff.claims.iter().take(MOST_LINES) {
        let ClaimChangeText { experiment, id, before, after, .. } = claim;
        let [before, after] = [before, after].map(|side| match side.estimate.as_str() {
            "" => side.verdict.to_owned(),
            estimate => format!("{} ({estimate})", side.verdict),
        });
        line(format!("claim  {experiment}: {id}: {before} → {after}"));
    }
    if diff.claims.len() > MOST_LINES {
        line(format!("and {}", count(diff.claims.len() - MOST_LINES, "more claim")));
    }
    if !diff.without_claims.is_empty() {
        line(format!(
            "claims of {} are not compared: one side does not have them",
            count(diff.without_claims.len(), "experiment")
        ));
    }
    if !summary.fails.is_empty() {
        line(format!("Fails: {}.", summary.fails));
    }
    out
}

fn add_rows(table: &ChangeTable, head: &str, line: &mut impl FnMut(String)) {
    let rows = &table.rows[..table.rows.len().min(MOST_LINES)];
    if !rows.is_empty() && !head.is_empty() {
        line(head.into());
    }
    let width = |text: fn(&ChangeText) -> &str| rows.iter().map(|r| text(r).chars().count()).max();
    let verdict_width = width(|row| row.verdict.name()).unwrap_or(0);
    let ratio_width = width(|row| &row.ratio).unwrap_or(0);
    for row in rows {
        let mut remarks = vec![row.other.clone(), row.note.clone()];
        if let (ChangeVerdict::Underpowered, Some(detectable)) = (row.verdict, &row.detectable) {
            remarks.push(format!("detectable ratio {detectable}"));
        }
        remarks.retain(|remark| !remark.is_empty());
        let remarks = match remarks.is_empty() {
            true => String::new(),
            false => format!(" ({})", remarks.join("; ")),
        };
        line(format!(
            "  {:<verdict_width$}  {:<ratio_width$}  {} {}: {}{remarks}",
            row.verdict.name(),
            row.ratio,
            row.cell,
            row.experiment,
            row.name
        ));
    }
    if table.count > rows.len() {
        line(format!("  and {} more: see --format html", table.count - rows.len()));
    }
}
