//! Quantiles of Student's t, of the χ² distribution and of the normal distribution, in a table over levels
//! that limits and p-values are interpolated from.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How far limits are from their estimates, in standard errors, at one level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantile {
    /// The one-sided level: the probability that a limit is on the wrong side of the parameter.
    pub(super) level: f64,
    /// The upper quantile of Student's t with n − 1 degrees of freedom: the reach of a limit of a mean.
    pub(super) t: f64,
    /// The reach of the upper limit of the variance of a Gaussian sample of n, by the χ² distribution; at least `t`.
    pub(super) variance: f64,
    /// The upper quantile of the standard normal distribution.
    pub(super) normal: f64,
}

impl Quantile {
    /// The quantiles at a level, with n − 1 degrees of freedom. Without the distributions, as for a single replicate,
    /// the quantiles of Student's t and of the variance are infinite.
    fn new(
        level: f64,
        freedom: f64,
        student: Option<&StudentsT>,
        squares: Option<&ChiSquared>,
    ) -> Self {
        let t = match student {
            Some(student) => root(|t| student.cdf(-t), level),
            None => f64::INFINITY,
        };
        // The lower quantile of χ², by its inverse, in which the distribution function decreases.
        let square = match squares {
            Some(squares) => 1.0 / root(|x| squares.cdf(1.0 / x), level),
            None => 0.0,
        };
        // The variance is at most freedom/square times its estimate, whose relative standard error is √(2/freedom).
        let variance = (freedom / square - 1.0) * (freedom / 2.0).sqrt();
        let normal = Normal::standard().inverse_cdf(1.0 - level);
        // Near the median the variance's limit is below its estimate.
        Self { level, t, variance: variance.max(t), normal }
    }
}

/// A table of quantiles over levels, from 0.5 down, for one number of replicates: p-values are found by interpolation,
/// since each quantile takes a bisection.
#[derive(Debug)]
pub(super) struct Quantiles(Vec<Quantile>);

/// How many steps of equal ratio the table has between the levels 0.5 and 0.025.
const KNOTS: usize = 8;
/// The level above which all levels of the table are.
const LEAST: f64 = 1e-12;

impl Quantiles {
    /// The table for n replicates, which this thread makes once and keeps.
    pub(super) fn cached(n: usize) -> Rc<Self> {
        thread_local! {
            static KNOWN: RefCell<HashMap<usize, Rc<Quantiles>>> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            if known.len() > 256 {
                known.clear();
            }
            known.entry(n).or_insert_with(|| Rc::new(Self::new(n))).clone()
        })
    }

    /// Computes the table for n replicates, at levels of equal ratio down to [`LEAST`].
    fn new(n: usize) -> Self {
        let freedom = n as f64 - 1.0;
        let step = libm::log(0.025 / 0.5) / KNOTS as f64;
        let levels = (0..).map(|k| 0.5 * libm::exp(step * f64::from(k)));
        let student = StudentsT::new(0.0, 1.0, freedom).ok();
        let squares = ChiSquared::new(freedom).ok();
        Self(
            levels
                .take_while(|level| *level > LEAST)
                .map(|level| Quantile::new(level, freedom, student.as_ref(), squares.as_ref()))
                .collect(),
        )
    }

    /// The quantiles at a one-sided level above 0, interpolated between two levels of the table by the logarithm of the
    /// level. Beyond the ends of the table they are the quantiles at its end. For a single replicate those of Student's t
    /// and of the variance are infinite.
    pub(super) fn interpolate(&self, level: f64) -> Quantile {
        let step = libm::log(0.025 / 0.5) / KNOTS as f64;
        let place = (libm::log(level / 0.5) / step).clamp(0.0, (self.0.len() - 1) as f64);
        let low = place as usize;
        let share = place - libm::floor(place);
        let a = self.0[low];
        let b = self.0[(low + 1).min(self.0.len() - 1)];
        Quantile {
            level,
            t: between(a.t, b.t, share),
            variance: between(a.variance, b.variance, share),
            normal: between(a.normal, b.normal, share),
        }
    }

    /// The level at which a limit lies at this distance from its estimate: the p-value of a hypothesis that is so far
    /// away. `reach` gives the distance of the limit at the quantiles of a level, and grows as the level falls. 1 if
    /// the distance is less than the reach at the level 0.5, and the last level of the table if it is beyond its reach.
    pub(super) fn level(&self, distance: f64, reach: impl Fn(&Quantile) -> f64) -> f64 {
        if distance <= 0.0 {
            return 1.0;
        }
        let first = self.0.partition_point(|q| reach(q) <= distance);
        match (first.checked_sub(1).map(|i| &self.0[i]), self.0.get(first)) {
            (None, _) => 1.0,
            (Some(last), None) => last.level,
            (Some(a), Some(b)) => {
                let near = reach(a);
                let far = reach(b);
                let share = ((distance - near) / (far - near)).clamp(0.0, 1.0);
                a.level * libm::exp(share * libm::log(b.level / a.level))
            }
        }
    }
}

/// The number at this share, from 0 to 1, of the way from `a` to `b`. Two infinite numbers, whose difference is NaN, have
/// themselves between them.
fn between(a: f64, b: f64, share: f64) -> f64 {
    if a == b { a } else { a + share * (b - a) }
}

/// The number between e⁻⁶⁰ and e⁶⁰ at which a decreasing function takes a level, by bisection of the number's
/// logarithm.
fn root(f: impl Fn(f64) -> f64, level: f64) -> f64 {
    let mut low = -60.0;
    let mut high = 60.0;
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if f(libm::exp(middle)) > level { low = middle } else { high = middle }
    }
    libm::exp(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_replicate_has_infinite_quantiles_at_every_level() {
        let table = Quantiles::new(1);
        for level in [0.9, 0.5, 0.1, 0.025, 0.01, 1e-20] {
            let Quantile { t, variance, normal, .. } = table.interpolate(level);
            assert_eq!((t, variance), (f64::INFINITY, f64::INFINITY), "{level}");
            assert!(normal.is_finite(), "{level}");
        }
    }
}
