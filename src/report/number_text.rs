//! Numbers and intervals as texts on pages.

use crate::evidence::cells::rounding_floor;
use crate::evidence::claims::{Estimate, EstimateScale};
use crate::stats::Ratio;
use exactfed_core::words::{plain, power_of_ten, whole};
use exactfed_runner::manifest::Quantity;

/// A number with three digits, in characters of a keyboard: `1.23e-4`, which HTML shows as a power of ten; `–` for NaN.
pub fn short(value: f64) -> String {
    plain(value, 3)
}

/// The level below which means are rounding and count as 0, a power of ten: `10⁻²⁸`.
pub fn level_text(level: f64) -> String {
    power_of_ten(libm::round(libm::log10(level)) as i32)
}

/// How a mean loss is called that counts as 0. An error rate or a cost can be 0 exactly, since it is counted; other
/// errors are 0 to rounding.
pub fn zero(by: Quantity) -> &'static str {
    if is_counted(by) { "zero" } else { "zero to rounding" }
}

/// Whether what is compared of a quantity is counted: an error rate or a cost.
fn is_counted(by: Quantity) -> bool {
    by.more_is_better() || by.is_cost()
}

/// How mean losses are called that count as 0, with the level below which they do: "zero to rounding (below 10⁻²⁸)".
/// What is counted is 0 exactly and has no level.
pub fn zero_below(by: Quantity) -> String {
    if is_counted(by) {
        return zero(by).to_owned();
    }
    format!("{} (below {})", zero(by), level_text(rounding_floor(by)))
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
/// run. The estimate is of a number that is never negative, such as an error or a ratio.
pub fn bracket(
    text: impl Fn(f64) -> String,
    estimate: f64,
    (low, high): (f64, f64),
) -> Option<String> {
    let is_far = estimate > 0.0 && low >= 0.0 && high > estimate * MOST_APART;
    bracket_of_any_sign(text, estimate, (low, if is_far { f64::INFINITY } else { high }))
}

/// The interval in brackets of an estimate that may be of a number with any sign, such as a slope; `None` where a limit
/// is NaN. Its upper limit is shown as it is however small the estimate: a slope of 0 may be estimated by a rounding
/// error.
fn bracket_of_any_sign(
    text: impl Fn(f64) -> String,
    estimate: f64,
    (low, high): (f64, f64),
) -> Option<String> {
    if low.is_nan() || high.is_nan() {
        return None;
    }
    let is_far_below = estimate > 0.0 && low >= 0.0 && low < estimate / MOST_APART;
    let shown_low = if is_far_below { 0.0 } else { low };
    Some(format!("[{}, {}]", text(shown_low), text(high)))
}

/// An estimate of a number that is never negative with its interval: `1.23 [1.20, 1.26]`, with as many of three to six
/// digits as tell them apart. The estimate alone where none do, or where it has no interval (limits of NaN), as of one
/// run.
pub fn interval(estimate: f64, interval: (f64, f64)) -> String {
    for digits in 3..=6 {
        let text = interval_by(|x| plain(x, digits), estimate, interval);
        if text.ends_with(']') {
            return text;
        }
    }
    short(estimate)
}

/// An estimate of a number that is never negative with its interval, whose numbers `text` writes. The estimate alone if
/// it has no interval, or if the limits have the same text as the estimate.
fn interval_by(text: impl Fn(f64) -> String, estimate: f64, interval: (f64, f64)) -> String {
    let limits = bracket(&text, estimate, interval);
    with_limits(text(estimate), limits)
}

/// An estimate of a claim with its interval, whose numbers `text` writes; `scale` says what the numbers are. The
/// estimate alone in the cases of [`interval_by`].
pub fn estimate_text(text: NumberText, estimate: Estimate, scale: EstimateScale) -> String {
    let Estimate { value, interval } = estimate;
    let limits = match scale {
        EstimateScale::Plain | EstimateScale::RelativeDifference => {
            bracket_of_any_sign(text, value, interval)
        }
        EstimateScale::Counted | EstimateScale::Logarithm | EstimateScale::MeanOver { .. } => {
            bracket(text, value, interval)
        }
    };
    with_limits(text(value), limits)
}

/// The texts of an estimate and of the bracket with its limits, one after the other; the estimate alone without limits,
/// and where both limits have its text.
fn with_limits(value: String, limits: Option<String>) -> String {
    match limits {
        Some(limits) if limits != format!("[{value}, {value}]") => format!("{value} {limits}"),
        _ => value,
    }
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

    /// The slope of a cost that does not depend on the setting is 0 up to rounding.
    #[test]
    fn the_upper_limit_of_a_slope_is_finite_however_small_the_slope() {
        let estimate = Estimate { value: 6.66e-16, interval: (6.66e-16, 0.0018) };
        let slope = estimate_text(short, estimate, EstimateScale::Plain);
        assert_eq!(slope, "6.66e-16 [6.66e-16, 1.80e-3]");
        let ratio = estimate_text(short, estimate, EstimateScale::Logarithm);
        assert_eq!(ratio, "6.66e-16 [6.66e-16, ∞]");
        let far_below = Estimate { value: 0.5, interval: (1e-9, 0.7) };
        let distance = estimate_text(short, far_below, EstimateScale::Plain);
        assert_eq!(distance, interval_by(short, 0.5, (0.0, 0.7)));
    }
}
