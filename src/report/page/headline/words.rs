//! Parts of the sentences of headlines.

use crate::evidence::{Rival, Separation, Standing, Standings, when_text};
use crate::report::number_text::{zero, zero_below};
use exactfed_core::words::{count, enumerated, readable};
use exactfed_runner::manifest::Quantity;

/// How the algorithm with the best mean is called: "lowest", or, if more of the metric is better, "lowest in" the loss
/// that ratios compare, such as the error rate of an accuracy.
pub fn lowest(by: Quantity) -> String {
    if by.more_is_better() { format!("lowest in {}", by.loss_name()) } else { "lowest".to_owned() }
}

/// The clause that errors which count as 0 are not compared, with the level below which they do.
pub fn without_ratio(standings: &Standings) -> String {
    format!("What is {} has no ratio to another", zero_below(standings.by))
}

/// What is said of mean losses that count as 0: "the error of both A and B is zero to rounding".
pub fn zero_of(names: &[&str], all: usize, by: Quantity) -> String {
    let both = if names.len() == 2 { "both " } else { "" };
    format!("the {} of {both}{} is {}", by.loss_name(), listed(names, all), zero(by))
}

/// Whether the runs decide that an algorithm's mean is less than 1 + `margin` times the best one, so that the
/// difference is of no practical importance: the 95 % interval of the ratio ends below that, or the means are equal but
/// for rounding. Means that are both zero to rounding have no ratio, and are not close. Where nothing is random, the
/// interval is the ratio itself. A ratio without an interval, as of single runs of something random, is not close,
/// however near 1.
pub fn is_close(rival: &Rival, margin: f64) -> bool {
    rival.ratio.high < 1.0 + margin || rival.separation == Separation::Equal
}

/// How many runs or instances are compared in pairs: "5 paired runs".
pub fn paired(row: &Standing) -> String {
    count(row.n, &format!("paired {}", row.unit))
}

/// The margin of practical importance in percent.
pub fn margin_text(standings: &Standings) -> String {
    format!("{} %", readable(100.0 * standings.margin, 2))
}

/// At which cost algorithms are compared, with a space before it; empty if they are compared at the last round, which
/// goes without saying.
pub fn at_cost(standings: &Standings) -> String {
    standings.at.map_or(String::new(), |at| format!(" {}", when_text(Some(at))))
}

/// Some of `all` algorithms in a sentence: up to three by their names, more by their number.
pub fn listed(names: &[&str], all: usize) -> String {
    match names {
        few if few.len() <= 3 => enumerated(few),
        _ if names.len() == all => format!("all {all} algorithms"),
        _ => format!("{} of {all} algorithms", names.len()),
    }
}
