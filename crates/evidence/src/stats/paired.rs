//! A shift between paired samples: how large it is, its interval and p-values, and how small a
//! shift could have been detected.
//!
//! Intervals are those of a symmetric studentised bootstrap, since at five to ten pairs the 95 %
//! intervals of the percentile and the accelerated bootstrap cover 80 to 90 % (docs/notes/diff.md,
//! `tools/src/bin/diff_size.rs`). The bootstrap resolves no p-value below 1/1000, and many comparisons
//! together need smaller ones: p-values are Student's.
//!
//! *Invariant*: no verdict rests on the p-value alone or on the interval alone.

use super::basics::{mean, standard_deviation, student_95, student_quantile, student_tail};
use super::log_means::ROUNDING;
use super::verdict::Evidence;

/// Resamples; one more of them than this is a whole multiple of a hundred.
const RESAMPLES: usize = 1999;
/// Pairs below which resamples give no 95 % interval: with three, one resample in nine has no
/// spread.
const FEW: usize = 5;

/// The mean of the differences between the two values of each pair, with its interval and p-values: how far a result
/// has changed between two sides on the same replicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The number of pairs.
    pub n: usize,
    /// The mean of the differences.
    pub mean: f64,
    /// Standard deviation of the differences.
    pub sd: f64,
    /// Ends of the 95 % interval of the mean.
    pub interval: (f64, f64),
    /// The two-sided p-value of the hypothesis that there is no shift.
    pub differs: f64,
    /// The p-value of the hypothesis that the shift is as large as the margin or larger, in either direction.
    pub equivalent: f64,
}

impl Shift {
    /// The mean of these differences, one per pair, against a margin above 0 in the same unit: both are natural
    /// logarithms of ratios where errors are compared. `draw(n)` returns a uniform integer below n, for the resamples
    /// of the bootstrap. `None` for less than two differences: one has no spread.
    pub fn new(differences: &[f64], margin: f64, draw: impl FnMut(usize) -> usize) -> Option<Self> {
        let n = differences.len();
        if n < 2 {
            return None;
        }
        let mean = mean(differences);
        let largest = differences.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        // Differences that are rounding count as equal.
        let sd = match standard_deviation(differences) {
            sd if sd <= ROUNDING * (1.0 + largest) => 0.0,
            sd => sd,
        };
        let error = sd / (n as f64).sqrt();
        let half = match error {
            0.0 => 0.0,
            _ if n < FEW => student_95(n) * error,
            _ => bootstrap_reach(differences, mean, sd, draw) * error,
        };
        Some(Self {
            n,
            mean,
            sd,
            interval: (mean - half, mean + half),
            differs: (2.0 * student_tail((mean / error).abs(), n)).min(1.0),
            equivalent: Evidence::student(mean, error, n, (-margin, margin)).support,
        })
    }

    /// Whether the interval lies within a margin.
    pub fn within(&self, margin: f64) -> bool {
        -margin < self.interval.0 && self.interval.1 < margin
    }

    /// The size of a shift that would be detected four times out of five with these pairs, if it is tested `together`
    /// with this number of comparisons at the family-wise `level`: by Student's t at the strictest step of Holm's
    /// method.
    pub fn detectable(&self, together: usize, level: f64) -> f64 {
        let strict = level / (2.0 * together.max(1) as f64);
        let critical = student_quantile(1.0 - strict, self.n).unwrap_or(f64::NAN);
        let for_power = student_quantile(0.8, self.n).unwrap_or(f64::NAN);
        (critical + for_power) * self.sd / (self.n as f64).sqrt()
    }
}

/// Half of the width of the 95 % interval in standard errors: the 95 % quantile of |t| over resamples of the
/// differences, whose mean is `centre` and whose standard deviation is `sd`. It is infinite if more than 5 % of the
/// resamples have no spread and another mean than the sample.
fn bootstrap_reach(
    sample: &[f64],
    centre: f64,
    sd: f64,
    mut draw: impl FnMut(usize) -> usize,
) -> f64 {
    let mut all: Vec<f64> =
        (0..RESAMPLES).map(|_| resampled_statistic(sample, centre, sd, &mut draw)).collect();
    all.sort_by(f64::total_cmp);
    all[(RESAMPLES + 1) * 95 / 100 - 1]
}

/// |t| of the hypothesis that the mean is `centre`, for one resample: as many draws with replacement as the sample has
/// values. A resample without spread has the statistic 0 at the centre and is infinite elsewhere; `sd` is that of the
/// sample, relative to which a spread is rounding.
fn resampled_statistic(
    sample: &[f64],
    centre: f64,
    sd: f64,
    draw: &mut impl FnMut(usize) -> usize,
) -> f64 {
    let n = sample.len();
    let mut sum = 0.0;
    let mut squares = 0.0;
    for _ in 0..n {
        let x = sample[draw(n)] - centre;
        sum += x;
        squares += x * x;
    }
    let shift = sum / n as f64;
    let variance = (squares - sum * shift) / (n - 1) as f64;
    // The values are equal up to the rounding of the squares.
    if variance <= ROUNDING * sd * sd {
        return if shift.abs() <= ROUNDING * sd { 0.0 } else { f64::INFINITY };
    }
    (shift / (variance / n as f64).sqrt()).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::share;
    use exactfed_core::rng::Stream;

    fn shift(sample: &[f64], margin: f64, rng: &mut Stream) -> Shift {
        Shift::new(sample, margin, |n| rng.index(n)).unwrap()
    }

    #[test]
    fn by_hand() {
        let mut rng = Stream::shared_instance(1);
        let s = shift(&[1.0, 3.0], 5.0, &mut rng);
        // Student's t with one degree of freedom is Cauchy's distribution, whose quantiles are
        // those of tan.
        let half = libm::tan(0.475 * std::f64::consts::PI);
        assert_eq!((s.n, s.mean, s.sd), (2, 2.0, 2f64.sqrt()));
        assert!((s.interval.1 - 2.0 - half).abs() < 1e-6, "{s:?}");
        assert!((s.differs - 2.0 * (0.5 - libm::atan(2.0) / std::f64::consts::PI)).abs() < 1e-9);
        assert!((s.equivalent - (0.5 - libm::atan(3.0) / std::f64::consts::PI)).abs() < 1e-9);
        assert_eq!(Shift::new(&[1.0], 1.0, |_| 0), None);
        let same = shift(&[0.5; 6], 1.0, &mut rng);
        assert_eq!((same.interval, same.differs, same.equivalent), ((0.5, 0.5), 0.0, 0.0));
        let none = shift(&[0.0; 6], 1.0, &mut rng);
        assert_eq!((none.differs, none.equivalent), (1.0, 0.0));
    }

    /// A change of one run in ten that is rounding is equivalent; a larger one has no finite
    /// interval.
    #[test]
    fn rounding_is_no_spread() {
        let mut rng = Stream::shared_instance(1);
        let mut differences = [0.0; 10];
        differences[0] = 1e-15;
        let s = shift(&differences, 0.05, &mut rng);
        assert!(s.within(0.05) && s.equivalent == 0.0, "{s:?}");
        differences[0] = 0.2;
        let s = shift(&differences, 0.05, &mut rng);
        assert!(s.interval == (f64::NEG_INFINITY, f64::INFINITY) && s.differs > 0.1, "{s:?}");
    }

    #[test]
    fn detectable_shifts_are_detected_four_times_out_of_five() {
        let mut rng = Stream::shared_instance(3);
        let n = 10;
        let mut draw = |mean: f64| -> Vec<f64> { (0..n).map(|_| mean + rng.gaussian()).collect() };
        let known = Shift { sd: 1.0, ..Shift::new(&draw(0.0), 1.0, |_| 0).unwrap() };
        let size = known.detectable(7, 0.05);
        let mut other = Stream::shared_instance(4);
        let share = share(4000, || shift(&draw(size), 1.0, &mut other).differs <= 0.05 / 7.0);
        assert!((share - 0.8).abs() < 0.03, "{share}");
    }
}
