//! Estimates and limits of Σ_j w_j log E x_j from paired samples: of one mean (w = 1), of the
//! ratio of two (1, −1), of a slope through several.
//!
//! Squared errors are positive and skewed, and an interval that ignores this lies below the
//! truth too often, because a small sample rarely contains the largest values. A limit here is
//! therefore the widest of three, each valid where the others fail:
//!
//! - Student's t of the linearised logarithm;
//! - the same with Hall's (1992) transformation, which corrects for the sample's skewness, up to
//!   where its cubic is flat ([`hall`]);
//! - that of lognormal samples: Cox's estimate, the mean of logarithms plus half their variance.
//!   The errors of its two parts are combined as by Zou, Huo and Taleb (2009). The part of the
//!   variance has the limit of the χ² distribution as far as one sample's variance prevails, and
//!   Student's as far as the variances of paired samples cancel.
//!
//! The third is left out where it is not needed (the sample is mildly skewed for its size) and
//! where the sample contradicts it (the logarithms are skewed to the left, and the sample varies
//! no more than the squared norm of a Gaussian vector). Where a sample is not mildly skewed and
//! its logarithms are skewed to the right, the tail is heavier than a lognormal distribution's
//! and no interval for a mean is known to hold: limits on that side are twice as far.
//! docs/notes/simulations.md has the measured size of these tests (`tools/src/bin/claim_size.rs`).
//!
//! *Invariant*: a limit at a smaller level is never the nearer one, and a p-value is the
//! level at which the limit is the hypothesis.

use super::basics::{mean, standard_deviation, student_tail};
use super::quantiles::{Quantile, Quantiles};
use statrs::distribution::{ContinuousCDF, Normal};
use std::rc::Rc;

/// The spread of values, relative to their size, that counts as rounding.
pub const ROUNDING: f64 = 1e-12;
/// The number of runs below which a sample hardly shows its tail.
const FEW: usize = 50;
/// The number of runs below which a sample shows nothing of its tail.
pub const VERY_FEW: usize = 20;
/// A coefficient of variation that no squared norm of a Gaussian vector has: for these it is √2 at most.
const MOST_VARIED: f64 = 1.6;
/// The skewness over √n of a sample up to which Hall's transformation is enough.
const MILD: f64 = 0.25;
/// How many times as far a limit is where the tail is heavier than a lognormal distribution's.
const HEAVY: f64 = 2.0;
/// The standard deviation of logarithms from which the tail of a sample that is not very small matters.
const WIDE: f64 = 0.2;

/// An estimate of Σ_j w_j log E x_j, and what determines its limits.
#[derive(Clone, Debug)]
pub struct LogMeans {
    /// The number of replicates, which is the size of each sample.
    pub n: usize,
    /// Σ_j w_j log x̄_j.
    pub estimate: f64,
    /// Whether there is no limit: some values are 0 and others are not.
    pub unlimited: bool,
    /// Whether the logarithms are skewed to the right, so that limits are twice as far: the lower
    /// one, the upper one.
    pub heavy: (bool, bool),
    /// Whether the runs are too few to show a tail that matters.
    pub few: bool,
    /// The standard error of the estimate, to first order; 0 if the runs differ by rounding at most.
    error: f64,
    /// The skewness of the terms that the runs add to the estimate to first order.
    skewness: f64,
    /// The limits of lognormal samples; `None` where they are left out.
    lognormal: Option<Lognormal>,
    /// The standard error of what selecting by other runs adds to the parameter; 0 where nothing was
    /// selected.
    selection_error: f64,
    /// Quantiles for n replicates.
    quantiles: Rc<Quantiles>,
}

/// What determines the limits of lognormal samples: the third of the three limits.
#[derive(Clone, Copy, Debug)]
struct Lognormal {
    /// Mean of Σ w_j log x_j, plus half of Σ w_j s_j².
    centre: f64,
    /// Standard error of the mean of Σ w_j log x_j.
    error: f64,
    /// Standard error of ½ Σ w_j s_j².
    spread_error: f64,
    /// The share of the square of `spread_error` that behaves as the error of one sample's variance: 1 for one sample.
    alone: f64,
    /// Whether ½ Σ w_j s_j² is above 0, so that the long tail of its distribution is upwards.
    upwards: bool,
}

impl LogMeans {
    /// An estimate from n replicates, with this standard error and skewness. Its limits are Student's, or those of
    /// Hall's transformation where that takes them farther out; [`Self::add_lognormal`] may take them farther still.
    fn without_lognormal(n: usize, estimate: f64, error: f64, skewness: f64) -> Self {
        Self {
            n,
            estimate,
            unlimited: false,
            heavy: (false, false),
            few: false,
            error,
            skewness,
            lognormal: None,
            selection_error: 0.0,
            quantiles: Quantiles::cached(n),
        }
    }

    /// Estimates Σ_j w_j log E x_j from pairs of a weight w_j and a sample x_j, where values at one index are of one
    /// replicate; of samples of several sizes the first replicates count. Values are at least 0, or signed with a mean
    /// above 0 (then the third limit is left out). `None` for less than two replicates or a mean that is not above 0.
    pub fn new(points: &[(f64, &[f64])]) -> Option<Self> {
        let n = points.iter().map(|(_, x)| x.len()).min().filter(|n| *n > 1)?;
        let samples: Vec<(f64, &[f64])> = points.iter().map(|(w, x)| (*w, &x[..n])).collect();
        let means: Vec<f64> = samples.iter().map(|(_, x)| mean(x)).collect();
        if !means.iter().all(|m| *m > 0.0 && m.is_finite()) {
            return None;
        }
        let estimate = samples.iter().zip(&means).map(|((w, _), m)| w * libm::log(*m)).sum();
        // To first order, run r adds Σ w_j x_jr / E x_j to the logarithm of the ratio.
        let mut terms = Vec::with_capacity(n);
        for r in 0..n {
            terms.push(samples.iter().zip(&means).map(|((w, x), m)| w * x[r] / m).sum::<f64>());
        }
        // The largest term of each sample, relative to which a spread is rounding.
        let sizes = samples
            .iter()
            .zip(&means)
            .map(|((w, x), m)| x.iter().fold(0.0, |s, x| (w * x / m).abs().max(s)));
        let sd = standard_deviation(&terms);
        let mut found =
            Self::without_lognormal(n, estimate, sd / (n as f64).sqrt(), skewness(&terms));
        if sd <= ROUNDING * sizes.fold(0.0, f64::max) {
            found.error = 0.0;
            return Some(found);
        }
        let negative = samples.iter().any(|(_, x)| x.iter().any(|x| *x < 0.0));
        let zero = samples.iter().any(|(_, x)| x.contains(&0.0));
        if !negative && zero {
            // Some values are exactly 0 and others are not: nothing is known of the tail.
            found.unlimited = true;
        } else if !negative {
            found.add_lognormal(&samples);
        }
        Some(found)
    }

    /// Estimates Σ_j w_j E log x_j, in place of the Σ_j w_j log E x_j of [`LogMeans::new`], from samples with one value
    /// per instance of a problem. The values of two instances may differ by orders of magnitude, so what is estimated
    /// is the ratio on a typical instance. Limits are Student's t of the sums of logarithms. If a value is not a finite
    /// number above 0, the samples are passed to [`LogMeans::new`].
    pub fn over_instances(points: &[(f64, &[f64])]) -> Option<Self> {
        let n = points.iter().map(|(_, x)| x.len()).min().filter(|n| *n > 1)?;
        if !points.iter().all(|(_, x)| x.iter().all(|x| *x > 0.0 && x.is_finite())) {
            return Self::new(points);
        }
        let terms: Vec<f64> = (0..n)
            .map(|r: usize| points.iter().map(|(w, x)| w * libm::log(x[r])).sum::<f64>())
            .collect();
        let sd = standard_deviation(&terms);
        let size = terms.iter().fold(1.0_f64, |size, x| size.max(x.abs()));
        let error = if sd <= ROUNDING * size { 0.0 } else { sd / (n as f64).sqrt() };
        let skewness = 0.0; // Limits are not corrected for skewness.
        Some(Self::without_lognormal(n, mean(&terms), error, skewness))
    }

    /// Adds the limits of lognormal samples, unless the samples contradict them or do not need them, and finds whether
    /// the tails of the samples are heavier than lognormal ones, or too few runs show them. Values are above 0.
    fn add_lognormal(&mut self, samples: &[(f64, &[f64])]) {
        let n = self.n as f64;
        let logs: Vec<(f64, Vec<f64>)> =
            samples.iter().map(|(w, x)| (*w, x.iter().map(|x| libm::log(*x)).collect())).collect();
        let centred: Vec<Vec<f64>> = logs
            .iter()
            .map(|(_, l)| {
                let centre = mean(l);
                l.iter().map(|l| l - centre).collect()
            })
            .collect();
        // Σ w_j log x_jr for each run r.
        let sum: Vec<f64> = (0..self.n).map(|r| logs.iter().map(|(w, l)| w * l[r]).sum()).collect();
        // ½ Σ w_j s_j², and the variance of this number, where samples of common runs are correlated.
        let mut half = 0.0;
        let mut square = 0.0;
        for (i, (w, _)) in logs.iter().enumerate() {
            half += 0.5 * w * covariance(&centred[i], &centred[i], n);
            for (j, (v, _)) in logs.iter().enumerate() {
                let c = covariance(&centred[i], &centred[j], n);
                square += 0.5 * w * v * c * c / (n - 1.0);
            }
        }
        let square = square.max(f64::MIN_POSITIVE);
        let spread = standard_deviation(&sum);
        let k = logs.len() as f64;
        // One test per sample, all together at the level of two standard errors.
        let strict = Normal::standard().inverse_cdf(1.0 - 0.0228 / k);
        // Whether all samples contradict the lognormal distribution by lighter tails.
        let mut light = true;
        // Whether all samples are mildly skewed for their size, so that Hall's transformation is enough.
        let mut mild = self.n >= VERY_FEW;
        // Whether some sample varies more than any squared norm of a Gaussian vector.
        let mut varied = false;
        // Whether some sample has a heavier tail that takes the lower limit down, or the upper one up.
        let mut heavy = (false, false);
        for ((w, x), l) in samples.iter().zip(&centred) {
            let z = skewness_in_errors(l);
            let variation = standard_deviation(x) / mean(x);
            light &= z < -2.5 && variation <= MOST_VARIED;
            varied |= variation > MOST_VARIED;
            mild &= skewness(x) <= MILD * n.sqrt();
            let own = standard_deviation(l);
            // A tail that samples of common runs share cancels in their sum, whose spread then is small.
            if z > strict && spread * spread >= 0.25 * w * w * own * own {
                heavy = if *w > 0.0 { (heavy.0, true) } else { (true, heavy.1) };
            }
        }
        // Of several samples either limit may be too near.
        if logs.len() > 1 && (heavy.0 || heavy.1) {
            heavy = (true, true);
        }
        if self.n >= VERY_FEW && !mild {
            self.heavy = heavy;
        }
        self.few = self.n < VERY_FEW || self.n < FEW && spread > WIDE || self.n < 2 * FEW && varied;
        if !light && !mild {
            self.lognormal = Some(Lognormal {
                centre: mean(&sum) + half,
                error: spread / n.sqrt(),
                spread_error: square.sqrt(),
                alone: (2.0 * half * half / ((n - 1.0) * square)).min(1.0),
                upwards: half > 0.0,
            });
        }
    }

    /// The estimate and limits of Σ w_j log E x_j + offset: the offset has no error, as the logarithm of an exact
    /// number.
    pub fn shifted(self, offset: f64) -> Self {
        let lognormal = self.lognormal.map(|l| Lognormal { centre: l.centre + offset, ..l });
        Self { estimate: self.estimate + offset, lognormal, ..self }
    }

    /// The same estimate with wider limits, for means of candidates that other runs selected: what their selection adds
    /// to the parameter has this standard error ([`super::selection::selection_error`]). It is independent of the
    /// errors of these runs, so the reach of a limit is the root of the sum of both squares, as Zou, Huo and Taleb
    /// (2009) combine the limits of two parts. The selection is the same for all of these runs: n does not diminish its
    /// error, and the runs say nothing about it, so that its limits are those of a normal distribution.
    pub fn with_selection_error(self, selection_error: f64) -> Self {
        Self { selection_error, ..self }
    }

    /// Whether the estimate has no error: runs differ by rounding at most, and nothing was selected by other runs.
    pub fn constant(&self) -> bool {
        self.error == 0.0 && self.selection_error == 0.0
    }

    /// The p-value of the hypothesis that the parameter is at most x.
    pub fn above(&self, x: f64) -> f64 {
        self.p_value(x, true, hall)
    }

    /// The p-value of the hypothesis that the parameter is at least x.
    pub fn below(&self, x: f64) -> f64 {
        self.p_value(x, false, hall)
    }

    /// The p-value of the hypothesis that the parameter is at most x if `above`, and else that it is at least x. The
    /// statistic of Student's test is transformed for the skewness of the runs: `transformation` gets the statistic and
    /// the skewness over √n in the direction from x to the estimate. Claims use [`hall`], with which simulations
    /// compare other transformations.
    pub fn p_value(&self, x: f64, above: bool, transformation: fn(f64, f64) -> f64) -> f64 {
        let sign = if above { 1.0 } else { -1.0 };
        let distance = sign * (self.estimate - x);
        if self.constant() {
            return if distance > 0.0 { 0.0 } else { 1.0 };
        }
        if distance <= 0.0 || self.unlimited {
            return 1.0;
        }
        if self.selection_error > 0.0 {
            return self.quantiles.level(distance, |q| {
                let (low, high) = self.limits(q.level);
                if above { self.estimate - low } else { high - self.estimate }
            });
        }
        let farther = if above { self.heavy.0 } else { self.heavy.1 };
        let distance = if farther { distance / HEAVY } else { distance };
        let x = self.estimate - sign * distance;
        let t = distance / self.error;
        let t = transformation(t, sign * self.skewness / (self.n as f64).sqrt());
        let plain = if t > 0.0 { student_tail(t, self.n) } else { 1.0 };
        let lognormal = self.lognormal.map_or(0.0, |l| {
            let distance = sign * (l.centre - x);
            self.quantiles.level(distance, |q| l.reach(q, above))
        });
        plain.max(lognormal)
    }

    /// The lower and the upper limit of the parameter, each at this one-sided level: the estimate itself if it has no
    /// error, and infinite if some values are 0 and others are not.
    pub fn limits(&self, level: f64) -> (f64, f64) {
        if self.constant() {
            return (self.estimate, self.estimate);
        }
        let q = self.quantiles.interpolate(level);
        let a = self.skewness / (self.n as f64).sqrt();
        let mut low = self.estimate - hall_inverse(q.t, a) * self.error;
        let mut high = self.estimate + hall_inverse(q.t, -a) * self.error;
        if let Some(l) = self.lognormal {
            low = low.min(l.centre - l.reach(&q, true));
            high = high.max(l.centre + l.reach(&q, false));
        }
        if self.unlimited {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        // A tail that is heavier than a lognormal distribution's takes the limit farther out.
        if self.heavy.0 {
            low = self.estimate + HEAVY * (low - self.estimate);
        }
        if self.heavy.1 {
            high = self.estimate + HEAVY * (high - self.estimate);
        }
        if self.selection_error == 0.0 {
            return (low, high);
        }
        let of_selection = q.normal * self.selection_error;
        let low_reach = libm::hypot(self.estimate - low, of_selection);
        let high_reach = libm::hypot(high - self.estimate, of_selection);
        (self.estimate - low_reach, self.estimate + high_reach)
    }

    /// The 95 % interval of the parameter.
    pub fn interval(&self) -> (f64, f64) {
        self.limits(0.025)
    }
}

/// The covariance of two samples of n values whose means are 0.
fn covariance(a: &[f64], b: &[f64], n: f64) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (n - 1.0)
}

/// Hall's (1992) transformation of Student's statistic t > 0, where the sample's skewness over √n in
/// the direction of t is a. It is never above t: for a ≥ 0 it is t.
///
/// For a < 0 the cubic t + at²/3 + a²t³/27 + a/6 rises to −1/a + a/6 at t = −3/a, where it is flat,
/// and its correction has outgrown the terms of the expansion that it comes from. Beyond, t counts
/// in full and the correction stays what it is there; with the cubic alone, the p-value of a sample
/// with a = −0.9 could not fall below that of t = 1, whatever the evidence.
pub fn hall(t: f64, a: f64) -> f64 {
    let inside = if a < 0.0 { t.min(-3.0 / a) } else { t };
    let cubic =
        inside + a * inside * inside / 3.0 + a * a * inside * inside * inside / 27.0 + a / 6.0;
    t.min(cubic + (t - inside))
}

/// The inverse of [`hall`] in its first argument: the statistic t for which `hall(t, a)` is q > 0.
fn hall_inverse(q: f64, a: f64) -> f64 {
    if a > -1e-9 {
        return q;
    }
    let flat = -3.0 / a;
    let top = a / 6.0 - 1.0 / a;
    if q < top { 3.0 / a * (libm::cbrt(1.0 + a * (q - a / 6.0)) - 1.0) } else { flat + (q - top) }
}

impl Lognormal {
    /// How far the lower limit (`lower`) is below the centre, or else the upper one above it, at the level of these
    /// quantiles.
    fn reach(&self, q: &Quantile, lower: bool) -> f64 {
        // On the side of the long tail of its distribution, the part of the variance has the limit of χ².
        let tail = if self.upwards == lower { q.t } else { q.variance };
        // The square of how many standard errors that part reaches.
        let variance = self.alone * tail * tail + (1.0 - self.alone) * q.t * q.t;
        let mean = q.t * self.error;
        let spread = self.spread_error;
        (mean * mean + spread * spread * variance).sqrt()
    }
}

/// The skewness of a sample: the third central moment over the cube of the standard deviation (divisor n); 0 for
/// less than three values, or if all are equal.
pub fn skewness(sample: &[f64]) -> f64 {
    // The mean of equal values may differ from them by rounding, which is no spread.
    if sample.len() < 3 || sample.windows(2).all(|two| two[0] == two[1]) {
        return 0.0;
    }
    let n = sample.len() as f64;
    let centre = mean(sample);
    let mut squares = 0.0;
    let mut cubes = 0.0;
    for x in sample {
        let apart = x - centre;
        squares += apart * apart / n;
        cubes += apart * apart * apart / n;
    }
    if squares <= 0.0 { 0.0 } else { cubes / (squares * squares.sqrt()) }
}

/// The skewness of a sample over the standard error that it has for Gaussian samples of this size, as a test of
/// symmetry; 0 for less than three values.
fn skewness_in_errors(sample: &[f64]) -> f64 {
    let n = sample.len() as f64;
    if sample.len() < 3 {
        return 0.0;
    }
    let unbiased = skewness(sample) * (n * (n - 1.0)).sqrt() / (n - 2.0);
    unbiased / (6.0 * n * (n - 1.0) / ((n - 2.0) * (n + 1.0) * (n + 3.0))).sqrt()
}

#[cfg(test)]
#[path = "log_means_tests.rs"]
mod tests;
