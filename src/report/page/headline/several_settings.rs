//! The headline of an experiment whose algorithms are compared at several settings.

use super::Headline;
use super::without_lead;
use super::words::{lowest, paired, without_ratio};
use crate::evidence::{Separation, Standing, Standings, unique, when_text};
use crate::report::number_text::{ratio_text, zero, zero_below};
use exactfed_core::words::{count, readable};
use std::sync::Arc;

/// The headline of several rows, each the ranking at one setting. It names the algorithm that leads by the margin or
/// more in the most settings, and the setting in which it leads by the most. Where no algorithm leads in any setting,
/// it says how the comparisons ended.
pub fn headline(rows: &[Standing], standings: &Standings) -> Headline {
    let all = rows.len();
    let led: Vec<&Standing> =
        rows.iter().filter(|row| lead(row) >= 1.0 + standings.margin).collect();
    let settings_of = |leader: &Arc<str>| led.iter().filter(|r| r.leaders[0] == *leader).count();
    let largest = led.iter().max_by(|a, b| {
        let settings = settings_of(&a.leaders[0]).cmp(&settings_of(&b.leaders[0]));
        settings.then(lead(a).total_cmp(&lead(b)))
    });
    let compared = format!("Compared {}.", when_text(standings.at));
    let Some((row, (next, rival))) = largest.and_then(|row| Some((row, row.next()?))) else {
        let comparisons = count(standings.compared, "comparison");
        let has_zeros = rows.iter().any(|row| row.zeros().len() > 1);
        let zeros =
            if has_zeros { format!(" {}.", without_ratio(standings)) } else { String::new() };
        return Headline {
            text: without_lead::headline(rows, standings),
            line: format!("{compared} {comparisons}.{zeros}"),
        };
    };
    let leader = &row.leaders[0];
    let alone = settings_of(leader);
    let error = standings.by.loss_name();
    let most = if alone > 1 { "up to " } else { "" };
    let other_leaders = unique(led.iter().map(|row| &row.leaders[0]).filter(|one| *one != leader));
    let others: Vec<String> =
        other_leaders.iter().map(|other| format!("{other} in {}", settings_of(other))).collect();
    let distance = if row.is_zero {
        format!("in one of which its {error} is {} and {next}’s is not", zero(standings.by))
    } else {
        let times = readable(rival.ratio.estimate, 2);
        format!("where {next}’s {error} is {most}{times} times as large")
    };
    let lowest = lowest(standings.by);
    let rest = match others.as_slice() {
        [] => String::new(),
        others => format!(" Alone lowest are also {}.", others.join(", ")),
    };
    let pairs = paired(row);
    let found = if row.is_zero {
        format!("it is {} over {pairs}", zero_below(standings.by))
    } else {
        let ratio = ratio_text(&rival.ratio);
        format!("the ratio of {}s is {ratio} over {pairs}", row.mean())
    };
    Headline {
        text: format!("{leader} alone is {lowest} in {alone} of {all} settings, {distance}"),
        line: format!("{compared} At {} {found}.{rest}", row.settings.join(", ")),
    }
}

/// How many times as large as the smallest mean loss the next one is, if the runs separate them: infinite if only the
/// smallest is zero to rounding. Else 0, which is below every margin.
fn lead(row: &Standing) -> f64 {
    let larger = row.next().filter(|(_, rival)| rival.separation == Separation::Larger);
    larger.map_or(0.0, |(_, rival)| rival.ratio.estimate)
}
