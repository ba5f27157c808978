//! A sample in few numbers, and the ratio of two means.

use super::basics::{mean, standard_deviation, student_95};
use super::log_means::LogMeans;

/// Mean, standard deviation and confidence interval of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of values in the sample.
    pub n: usize,
    /// The arithmetic mean of the sample.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1); NaN for n < 2.
    pub sd: f64,
    /// Ends of the 95 % interval of the mean: by `log_means` where every value is positive, so
    /// that both are positive; by Student's t otherwise; NaN for n < 2.
    pub interval: (f64, f64),
}

impl Summary {
    /// The mean, the standard deviation and the interval of this sample.
    pub fn new(sample: &[f64]) -> Self {
        let mean = mean(sample);
        let sd = standard_deviation(sample);
        let half = student_95(sample.len()) * sd / (sample.len() as f64).sqrt();
        let by_logarithms =
            if sample.iter().all(|x| *x > 0.0) { LogMeans::new(&[(1.0, sample)]) } else { None };
        let interval = match by_logarithms.map(|means| means.interval()) {
            Some((low, high)) => (libm::exp(low), libm::exp(high)),
            None => (mean - half, mean + half),
        };
        Self { n: sample.len(), mean, sd, interval }
    }
}

/// The ratio of two means over paired samples, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The estimate: mean(a)/mean(b), or over instances of a problem the geometric mean of a/b.
    pub estimate: f64,
    /// The lower end of the 95 % interval; NaN where there is none.
    pub low: f64,
    /// The upper end of the 95 % interval; NaN where there is none.
    pub high: f64,
    /// The two-sided p-value of the hypothesis that the ratio is 1.
    pub p: f64,
}

impl Ratio {
    /// A ratio of exact numbers, such as the costs on frontiers and maps, which has no limits, and a p-value of 0.
    pub fn exact(estimate: f64) -> Self {
        Self { estimate, low: f64::NAN, high: f64::NAN, p: 0.0 }
    }

    /// mean(a)/mean(b) of samples in which nothing is random, so that one value says all: the interval is the ratio
    /// alone, and the p-value is 0, or 1 if the means are equal. It has no limits, and a p-value of 1, if a mean is not
    /// above 0.
    pub fn without_error(a: &[f64], b: &[f64]) -> Self {
        let [a, b] = [a, b].map(mean);
        let estimate = a / b;
        if !(a > 0.0 && b > 0.0) {
            return Self { estimate, low: f64::NAN, high: f64::NAN, p: 1.0 };
        }
        let p = if a == b { 1.0 } else { 0.0 };
        Self { estimate, low: estimate, high: estimate, p }
    }

    /// The ratio of a mean to one that is zero to rounding, which counts as 0: infinite, or NaN where both means are
    /// zero to rounding (`are_both`). It has no limits, and a p-value of 1.
    pub fn to_zero(are_both: bool) -> Self {
        let estimate = if are_both { f64::NAN } else { f64::INFINITY };
        Self { estimate, low: f64::NAN, high: f64::NAN, p: 1.0 }
    }

    /// mean(a)/mean(b) of positive samples paired by index, or where each value is of an instance of a
    /// problem (`over_instances`) the geometric mean of a/b, with the limits and p-values of
    /// `log_means`; NaN limits and a p-value of 1 where these are not known: for a single pair, or a mean
    /// that is not above 0.
    pub fn paired(a: &[f64], b: &[f64], over_instances: bool) -> Self {
        Self::of_selected(a, b, over_instances, 0.0)
    }

    /// The ratio of [`Ratio::paired`] for candidates that other runs selected, with the standard error that their
    /// selection adds to the logarithm of the ratio ([`super::selection::selection_error`]): limits are wider by it,
    /// and the p-value is larger. An error of 0 is for what was not selected.
    pub fn of_selected(a: &[f64], b: &[f64], over_instances: bool, selection_error: f64) -> Self {
        let points = [(1.0, a), (-1.0, b)];
        let plain = mean(a) / mean(b);
        if !over_instances {
            let known = LogMeans::new(&points);
            return Self::new(plain, known.map(|k| k.with_selection_error(selection_error)));
        }
        let known = LogMeans::over_instances(&points);
        let estimate = known.as_ref().map_or(plain, |known| libm::exp(known.estimate));
        Self::new(estimate, known.map(|k| k.with_selection_error(selection_error)))
    }

    /// A ratio with the interval and the p-value that follow from the logarithms of the means; without these, it has no
    /// limits and a p-value of 1.
    fn new(estimate: f64, known: Option<LogMeans>) -> Self {
        let Some(known) = known else {
            return Self { estimate, low: f64::NAN, high: f64::NAN, p: 1.0 };
        };
        let (low, high) = known.interval();
        let p = (2.0 * known.above(0.0).min(known.below(0.0))).min(1.0);
        Self { estimate, low: libm::exp(low), high: libm::exp(high), p }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::share;
    use exactfed_core::rng::Stream;

    #[test]
    fn the_interval_covers_95_percent() {
        let mut rng = Stream::shared_instance(4);
        let share = share(4000, || {
            let sample: Vec<f64> = (0..6).map(|_| 2.0 + 3.0 * rng.gaussian()).collect();
            let (low, high) = Summary::new(&sample).interval;
            (low..=high).contains(&2.0)
        });
        let error = (0.95_f64 * 0.05 / 4000.0).sqrt();
        assert!((share - 0.95).abs() < 4.0 * error, "{share}");
    }

    #[test]
    fn a_ratio_without_error_is_its_interval() {
        let ratio = Ratio::without_error(&[1.001], &[1.0]);
        assert_eq!(ratio, Ratio { estimate: 1.001, low: 1.001, high: 1.001, p: 0.0 });
        assert_eq!(Ratio::without_error(&[2.0, 2.0], &[2.0, 2.0]).p, 1.0);
        assert!(Ratio::without_error(&[1.0], &[0.0]).high.is_nan());
        assert!(Ratio::paired(&[1.001], &[1.0], false).high.is_nan());
    }

    #[test]
    fn the_ratio_of_means_is_covered() {
        let mut rng = Stream::shared_instance(5);
        let share = share(4000, || {
            let mut a = Vec::new();
            let mut b = Vec::new();
            for _ in 0..20 {
                let common = rng.gaussian();
                a.push(libm::exp(0.3 * (common + 0.5 * rng.gaussian())));
                b.push(2.0 * libm::exp(0.3 * (common + 0.5 * rng.gaussian())));
            }
            let ratio = Ratio::paired(&a, &b, false);
            (ratio.low..=ratio.high).contains(&0.5)
        });
        assert!((share - 0.95).abs() < 0.015, "{share}");
    }
}
