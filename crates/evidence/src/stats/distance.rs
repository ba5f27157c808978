//! How far the mean of vectors is from a point: Scheffé's region, with the largest variance in all
//! directions.

use super::log_means::skewness;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// How far the mean of n vectors is from a point, and what determines the region of the expected vector.
pub struct Distance {
    /// The distance of the sample mean from the point.
    pub estimate: f64,
    /// The standard error of the mean in the direction of the largest variance, three times as large for few
    /// or skewed vectors; 0 if all vectors are equal.
    pub error: f64,
    /// The number of vectors.
    pub n: usize,
    /// The number of entries of a vector.
    dimensions: usize,
    /// Whether the vectors are too few, or too skewed in the direction of the difference, for the usual error.
    pub skewed: bool,
}

impl Distance {
    /// The distance of the mean of a sample of vectors from the point `target`, which has as many entries as each
    /// vector. The sample has a vector per replicate. The error of a single vector is 0, and of no vectors too:
    /// callers decide nothing by fewer than two.
    pub fn new(sample: &[Vec<f64>], target: &[f64]) -> Self {
        let n = sample.len();
        let dimensions = target.len();
        // The sample mean minus the target.
        let mut apart: Vec<f64> = target.iter().map(|x| -x).collect();
        for x in sample {
            apart.iter_mut().zip(x).for_each(|(sum, x)| *sum += x / n as f64);
        }
        let along: Vec<f64> =
            sample.iter().map(|x| x.iter().zip(&apart).map(|(x, u)| x * u).sum()).collect();
        let skewed = n < FEWEST_VECTORS || skewness(&along).abs() > MOST_SKEWED * (n as f64).sqrt();
        let reach = if skewed { WIDENED } else { 1.0 };
        let error = if sample.windows(2).all(|pair| pair[0] == pair[1]) {
            0.0
        } else {
            reach * (largest_variance(sample, &apart, target) / n as f64).sqrt()
        };
        Self { estimate: norm(&apart), error, n, dimensions, skewed }
    }

    /// The p-value of the hypothesis that the expected vector is at a distance of at least x from the sample mean, in
    /// any direction: x is how far the estimate is beyond what a claim allows. 1, which is no evidence, unless x is
    /// above 0 and n above the number of dimensions.
    pub fn tail(&self, x: f64) -> f64 {
        let n = self.n;
        let d = self.dimensions;
        if !(x > 0.0 && x.is_finite() && n > d) {
            return 1.0;
        }
        // Hotelling's statistic times this factor has Fisher's F distribution.
        let scale = (n - d) as f64 / (d as f64 * (n - 1) as f64);
        let in_errors = x / self.error;
        match scale * in_errors * in_errors {
            f if f.is_nan() => 1.0,
            f if f.is_infinite() => 0.0,
            f => FisherSnedecor::new(d as f64, (n - d) as f64).map_or(1.0, |fisher| fisher.sf(f)),
        }
    }

    /// The radius of the 95 % region around the sample mean; NaN unless there are more vectors than dimensions.
    pub fn radius(&self) -> f64 {
        scheffe_radius(self.dimensions, self.n, 0.05).map_or(f64::NAN, |radius| radius * self.error)
    }
}

/// Whether the norm of the mean of vectors is so far above 0, beyond the radius of Scheffé's
/// region, that it can be treated as a positive number along a fixed direction: claims on a bias otherwise take into
/// account that its direction is noise. `false` without vectors.
pub fn is_resolved(sample: &[Vec<f64>]) -> bool {
    let Some(first) = sample.first() else { return false };
    let found = Distance::new(sample, &vec![0.0; first.len()]);
    // Errors across the mean lengthen it by (d − 1) e²/(2‖m‖), here a quarter of the error e at most.
    let lengthened = 2.0 * (found.dimensions - 1) as f64 * found.error;
    // Without a region, of no more vectors than numbers, the first alone decides.
    found.error == 0.0 || found.estimate > lengthened.max(RESOLVED * found.radius())
}

/// How many times the radius the norm has to be: if the expected vector is 0, it is in three of a thousand samples.
const RESOLVED: f64 = 1.5;

/// The radius of Scheffé's region around the mean of n vectors of d numbers, which misses the expected vector with the
/// probability `level`, in units of the standard error; `None` unless n > d.
pub fn scheffe_radius(d: usize, n: usize, level: f64) -> Option<f64> {
    let fisher = (n > d).then(|| FisherSnedecor::new(d as f64, (n - d) as f64).ok()).flatten()?;
    let scale = (n - d) as f64 / (d as f64 * (n - 1) as f64);
    Some((fisher.inverse_cdf(1.0 - level) / scale).sqrt())
}

/// The skewness over √n of vectors in the direction of the difference beyond which Scheffé's region is too small.
const MOST_SKEWED: f64 = 0.18;
/// How many times as large the error is for vectors that are few or skewed.
const WIDENED: f64 = 3.0;
/// The number of vectors below which their skewness cannot be judged.
const FEWEST_VECTORS: usize = 10;

/// The length of a vector.
pub fn norm(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |sum, x| sum + x * x).sqrt()
}

/// The largest variance of the vectors of a sample in any direction: the largest eigenvalue of their covariance, by
/// power iteration. `apart` is the sample mean minus the target.
fn largest_variance(sample: &[Vec<f64>], apart: &[f64], target: &[f64]) -> f64 {
    let d = target.len();
    let centred: Vec<Vec<f64>> =
        sample.iter().map(|x| (0..d).map(|i| x[i] - apart[i] - target[i]).collect()).collect();
    // It starts near the entry of the largest variance; the other entries take part so that no direction is left out.
    let variances: Vec<f64> =
        (0..d).map(|i| centred.iter().map(|x| x[i] * x[i]).sum::<f64>()).collect();
    let widest = (0..d).max_by(|&i, &j| variances[i].total_cmp(&variances[j]));
    let mut direction: Vec<f64> =
        (0..d).map(|i| if Some(i) == widest { 1.0 } else { 0.1 }).collect();
    let mut largest = 0.0;
    for _ in 0..ITERATIONS {
        let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|x| *x /= norm);
        let mut next = vec![0.0; d];
        for x in &centred {
            let along: f64 = x.iter().zip(&direction).map(|(x, u)| x * u).sum();
            next.iter_mut().zip(x).for_each(|(sum, x)| *sum += along * x);
        }
        largest = next.iter().zip(&direction).map(|(x, u)| x * u).sum();
        direction = next;
    }
    largest / (sample.len() as f64 - 1.0)
}

/// The number of steps of the power iteration.
const ITERATIONS: usize = 100;
