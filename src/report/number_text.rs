//! Numbers and intervals as texts on pages.

use crate::stats::Ratio;
use exactfed_core::words::{plain, whole};

/// A number with three digits: `1.23e-4`.
pub fn short(value: f64) -> String {
    plain(value, 3)
}

/// A number in a CSV file, with nine digits: enough to show a change, few enough to be equal on all machines.
pub fn nine_digits(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:.8e}") }
}

/// A count as a whole number: `1 800`. A mean of counts that is no whole number has three digits.
pub fn counted(value: f64) -> String {
    whole(value).unwrap_or_else(|| short(value))
}

/// A function that writes numbers of a kind, such as counts.
pub type NumberText = fn(f64) -> String;

/// Limits of a positive estimate that differ from it by more than this factor are shown as 0 and ∞.
const MOST_APART: f64 = 1e6;

/// The interval of an estimate in brackets, whose limits `text` writes; `None` where there is none, as for a single
/// run.
pub fn bracket(
    text: impl Fn(f64) -> String,
    estimate: f64,
    interval: (f64, f64),
) -> Option<String> {
    let (low, high) = interval;
    if low.is_nan() || high.is_nan() {
        return None;
    }
    let is_positive = estimate > 0.0 && low >= 0.0;
    let is_far_below = is_positive && low < estimate / MOST_APART;
    let is_far_above = is_positive && high > estimate * MOST_APART;
    let shown_low = if is_far_below { 0.0 } else { low };
    let shown_high = if is_far_above { f64::INFINITY } else { high };
    Some(format!("[{}, {}]", text(shown_low), text(shown_high)))
}

/// An estimate with its interval: `1.23 [1.20, 1.26]`, with as many of three to six digits as tell
/// them apart. The estimate alone where none do, or where it has no interval, as of one run.
pub fn interval(estimate: f64, interval: (f64, f64)) -> String {
    for digits in 3..=6 {
        let text = interval_by(|x| plain(x, digits), estimate, interval);
        if text.ends_with(']') {
            return text;
        }
    }
    short(estimate)
}

/// An estimate with its interval, whose numbers `text` writes. The estimate alone if it has no interval, or if the
/// limits have the same text as the estimate.
pub fn interval_by(text: impl Fn(f64) -> String, estimate: f64, interval: (f64, f64)) -> String {
    let value = text(estimate);
    let limits = bracket(text, estimate, interval).filter(|l| *l != format!("[{value}, {value}]"));
    limits.map_or_else(|| value.clone(), |limits| format!("{value} {limits}"))
}

/// A ratio with its interval, as [`interval`] writes it.
pub fn ratio_text(ratio: &Ratio) -> String {
    interval(ratio.estimate, (ratio.low, ratio.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_has_no_decimals() {
        let counts = [0.0, 24.0, 1800.0, 24.5, 2e9, -1.0, f64::INFINITY].map(counted);
        assert_eq!(counts, ["0", "24", "1 800", "24.5", "2.00e9", "-1.00", "∞"]);
        assert_eq!(interval_by(counted, 24.0, (20.0, 1e3)), "24 [20, 1 000]");
        assert_eq!(interval_by(counted, 24.0, (24.0, 24.0)), "24");
        assert_eq!(interval(24.0, (20.0, 1e3)), "24.0 [20.0, 1.00e3]");
        assert_eq!(interval(1.0023, (1.0009, 1.0037)), "1.002 [1.001, 1.004]");
        assert_eq!(interval(1.0, (1.0 - 1e-9, 1.0)), "1.00");
        assert_eq!(interval(1.0, (f64::NAN, f64::NAN)), "1.00");
    }
}
