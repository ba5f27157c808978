//! The headline of an experiment whose algorithms are compared at a single setting.

use super::Headline;
use super::words::{
    at_cost, is_close, listed, lowest, margin_text, paired, without_ratio, zero_of,
};
use crate::evidence::{Rival, Separation, Standing, Standings};
use crate::report::number_text::ratio_text;
use exactfed_core::words::readable;

/// The headline of a grid point at which algorithms are ranked, and the smallest mean is not zero. It names the
/// algorithm with the smallest error and those that are not separated from it, or are so near that it does not matter,
/// and says how many times as large the error of the next one is. The line has the ratio of each algorithm to the
/// smallest.
pub fn with_ratios(row: &Standing, standings: &Standings) -> Headline {
    let rivals = row.rivals();
    let margin = standings.margin;
    let is_near = |rival: &Rival| rival.separation != Separation::Larger || is_close(rival, margin);
    let (near, far): (Vec<_>, Vec<_>) = rivals.iter().partition(|(_, rival)| is_near(rival));
    let alike = near.iter().all(|(_, rival)| is_close(rival, margin));
    let first: Vec<&str> =
        std::iter::once(&*row.leaders[0]).chain(near.iter().map(|(name, _)| *name)).collect();
    let all = 1 + rivals.len();
    let error = standings.by.loss_name();
    let lowest = lowest(standings.by);
    let at = at_cost(standings);
    // The best algorithm of those that are clearly behind, and how far it is behind.
    let next = far.first().map(|(name, rival)| {
        let digits = if rival.ratio.estimate < 1.1 { 3 } else { 2 };
        (name, format!("{error} is {} times", readable(rival.ratio.estimate, digits)))
    });
    let text = match (first.as_slice(), next) {
        ([one], None) => format!("{one} has the smallest {error}{at}: {}", row.no_others()),
        ([one], Some((next, error))) if all == 2 => format!("{next}’s {error} {one}’s{at}"),
        ([one], Some((next, error))) => {
            format!("{one} is {lowest} of {all} algorithms{at}: {next}’s {error} as large")
        }
        (several, next) => {
            let behind =
                next.map_or(String::new(), |(next, error)| format!("; {next}’s {error} as large"));
            let names = listed(several, all);
            match (alike, behind.is_empty()) {
                (true, _) => format!("{names} show no practical difference{at}{behind}"),
                (false, true) => format!("{names} are not separated{at}"),
                (false, false) => format!("{names} are {lowest}{at} and not separated{behind}"),
            }
        }
    };
    let margin_note = if alike && first.len() > 1 {
        format!("Differences below {} are of no practical importance. ", margin_text(standings))
    } else {
        String::new()
    };
    let line = ratios_to_best(row, &rivals, &error);
    Headline { text, line: margin_note + &line }
}

/// The ratios of the rivals' mean losses to the smallest, with their intervals, as a sentence; empty if there are no
/// rivals. `loss_name` is the word for the loss, such as "error".
fn ratios_to_best(row: &Standing, rivals: &[(&str, &Rival)], loss_name: &str) -> String {
    if rivals.is_empty() {
        return String::new();
    }
    let ratios: Vec<String> =
        rivals.iter().map(|(name, rival)| format!("{name} {}", ratio_text(&rival.ratio))).collect();
    format!(
        "Ratios of {}s of the {loss_name} to {}’s: {}; {}.",
        row.mean(),
        row.leaders[0],
        ratios.join(", "),
        paired(row)
    )
}

/// The headline of a grid point at which algorithms are ranked, and the smallest mean loss is zero to rounding. It
/// names the algorithms whose error is zero, and the line states the level below which it counts as zero: no other
/// error is a number of times as large, so that there are no ratios.
pub fn with_zero_error(row: &Standing, standings: &Standings) -> Headline {
    let zeros = row.zeros();
    let names = row.rivals().into_iter().map(|(name, _)| name);
    let others: Vec<&str> = names.filter(|name| !zeros.contains(name)).collect();
    let all = zeros.len() + others.len();
    let rest = match others.as_slice() {
        [] if all == 1 => format!(": {}", row.no_others()),
        [] => String::new(),
        others => format!("; that of {} is not", listed(others, all)),
    };
    let zero = zero_of(&zeros, all, standings.by);
    Headline {
        text: format!("{zero}{}{rest}", at_cost(standings)),
        line: format!("{}; {}.", without_ratio(standings), paired(row)),
    }
}
