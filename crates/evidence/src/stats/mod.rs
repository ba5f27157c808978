//! Pure statistics: numbers in, estimates with their uncertainty out.

pub mod distance;
pub mod log_means;
pub mod looks;
pub mod paired;
pub mod resolution;
pub mod verdict;

use log_means::LogMeans;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Squared errors below this are rounding and count as 0: θ of size 1 is known to 1e-16.
pub const ROUNDING_FLOOR: f64 = 1e-28;

/// Mean, standard deviation and confidence interval of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Sample size.
    pub n: usize,
    /// Sample mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1); NaN for n < 2.
    pub sd: f64,
    /// Ends of the 95 % interval of the mean: by `log_means` where every value is positive, so
    /// that both are positive; by Student's t otherwise; NaN for n < 2.
    pub interval: (f64, f64),
}

impl Summary {
    /// The summary of a sample.
    pub fn new(sample: &[f64]) -> Self {
        let (mean, sd) = (mean(sample), standard_deviation(sample));
        let half = student_95(sample.len()) * sd / (sample.len() as f64).sqrt();
        let known = match sample.iter().all(|x| *x > 0.0) {
            true => LogMeans::new(&[(1.0, sample)]),
            false => None,
        };
        let interval = match known.map(|known| known.interval()) {
            Some((low, high)) => (libm::exp(low), libm::exp(high)),
            None => (mean - half, mean + half),
        };
        Self { n: sample.len(), mean, sd, interval }
    }
}

/// The ratio of two means over paired samples, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// mean(a) / mean(b).
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p-value of a ratio of 1.
    pub p: f64,
}

impl Ratio {
    /// mean(a)/mean(b) of positive samples paired by index, with the limits and p-values
    /// of `log_means`; NaN limits and a p-value of 1 where these are not known: for a single
    /// pair, or a mean that is not above 0.
    pub fn of_means(a: &[f64], b: &[f64]) -> Self {
        Self::new(mean(a) / mean(b), LogMeans::new(&[(1.0, a), (-1.0, b)]))
    }

    /// The geometric mean of a/b over instances of a problem, paired by index.
    pub fn over_instances(a: &[f64], b: &[f64]) -> Self {
        let known = LogMeans::over_instances(&[(1.0, a), (-1.0, b)]);
        let estimate = known.as_ref().map(|known| libm::exp(known.estimate));
        Self::new(estimate.unwrap_or_else(|| mean(a) / mean(b)), known)
    }

    fn new(estimate: f64, known: Option<LogMeans>) -> Self {
        let Some(known) = known else {
            return Self { estimate, low: f64::NAN, high: f64::NAN, p: 1.0 };
        };
        let (low, high) = known.interval();
        let p = (2.0 * known.above(0.0).min(known.below(0.0))).min(1.0);
        Self { estimate, low: libm::exp(low), high: libm::exp(high), p }
    }
}

/// P(T > t) under Student's t of a sample of n; 1 where there is no such distribution.
fn student_tail(t: f64, n: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, n as f64 - 1.0) {
        Ok(_) if t == f64::INFINITY => 0.0,
        Ok(student) if !t.is_nan() => student.cdf(-t),
        _ => 1.0,
    }
}

/// Holm's adjustment of p-values: adjusted ≤ α rejects at family-wise level α.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 0.0_f64;
    for (i, tests) in holm_order(p) {
        least = least.max((p[i] * tests as f64).min(1.0));
        adjusted[i] = least;
    }
    adjusted
}

/// The tests of a family from the smallest p-value to the largest, each with the number of tests by which
/// Holm's procedure divides the level when it is that one's turn.
pub fn holm_order(p: &[f64]) -> impl Iterator<Item = (usize, usize)> + use<> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let all = order.len();
    order.into_iter().enumerate().map(move |(rank, i)| (i, all - rank))
}

/// The two-sided 95 % quantile of Student's t for a sample of n; NaN for n < 2.
pub fn student_95(n: usize) -> f64 {
    thread_local! {
        // It is found by bisection, and the cells of a grid have one n.
        static LAST: std::cell::Cell<(usize, f64)> = const { std::cell::Cell::new((0, f64::NAN)) };
    }
    let (known, value) = LAST.get();
    if known == n {
        return value;
    }
    let value = match StudentsT::new(0.0, 1.0, n as f64 - 1.0) {
        Ok(student) if n > 1 => student.inverse_cdf(0.975),
        _ => f64::NAN,
    };
    LAST.set((n, value));
    value
}

/// The sample mean; NaN for an empty sample.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// The sample standard deviation (divisor n − 1); NaN for n < 2.
pub fn standard_deviation(sample: &[f64]) -> f64 {
    if sample.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(sample);
    let squares: f64 = sample.iter().map(|x| (x - centre) * (x - centre)).sum();
    (squares / (sample.len() - 1) as f64).sqrt()
}

/// The p-quantile by linear interpolation between order statistics.
pub fn quantile(sample: &[f64], p: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = p * last as f64;
    let low = (place as usize).min(last);
    let high = (low + 1).min(last);
    sorted[low] + (place - low as f64) * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::rng::Stream;

    #[test]
    fn small_samples() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert_eq!(standard_deviation(&[1.0, 3.0]), 2f64.sqrt());
        assert!(standard_deviation(&[1.0]).is_nan());
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), 2.5);
        assert_eq!(quantile(&[1.0, 2.0], 1.0), 2.0);
    }

    #[test]
    fn holm_of_few_p_values() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn the_interval_covers_95_percent() {
        let trials = 4000;
        let mut rng = Stream::shared_instance(4);
        let covered = (0..trials)
            .filter(|_| {
                let sample: Vec<f64> = (0..6).map(|_| 2.0 + 3.0 * rng.gaussian()).collect();
                let (low, high) = Summary::new(&sample).interval;
                (low..=high).contains(&2.0)
            })
            .count();
        let expected = 0.95 * f64::from(trials);
        let error = (0.95 * 0.05 * f64::from(trials)).sqrt();
        assert!((covered as f64 - expected).abs() < 4.0 * error, "{covered} of {trials}");
    }

    #[test]
    fn the_ratio_of_means_is_covered() {
        let trials = 4000;
        let mut rng = Stream::shared_instance(5);
        let covered = (0..trials)
            .filter(|_| {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for _ in 0..20 {
                    let common = rng.gaussian();
                    a.push(libm::exp(0.3 * (common + 0.5 * rng.gaussian())));
                    b.push(2.0 * libm::exp(0.3 * (common + 0.5 * rng.gaussian())));
                }
                let ratio = Ratio::of_means(&a, &b);
                (ratio.low..=ratio.high).contains(&0.5)
            })
            .count();
        let share = covered as f64 / f64::from(trials);
        assert!((share - 0.95).abs() < 0.015, "{share}");
    }
}
