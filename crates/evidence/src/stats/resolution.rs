//! What a sample would have refuted: how far outside the region of a claim a parameter has to be
//! for the sample to refute the claim four times out of five.

use super::basics::{student_95, student_quantile};
use super::distance::scheffe_radius;
use super::verdict::{Evidence, POWER_QUANTILE, Region};

/// The region of a claim, widened by what the sample leaves open: a parameter beyond it would have been refuted with
/// power 80 % at least. The claim has this number of `parts` and is tested `together` with this number of claims at the
/// family-wise `level`. An end that the claim leaves open stays infinite. `None` where nothing is known of the
/// sampling error.
pub fn resolution(
    evidence: &Evidence,
    parts: usize,
    together: usize,
    level: f64,
) -> Option<Region> {
    let (low, high) = evidence.region;
    if low.is_nan() || high.is_nan() {
        return None;
    }
    if evidence.error == 0.0 {
        return Some((low, high));
    }
    let sides = [low, high].into_iter().filter(|end| end.is_finite()).count().max(1);
    // The p-value of a verdict is twice the smaller of two, and Holm's correction multiplies the
    // least of a family by the number of its claims. That a claim is refuted is tested at each end of the
    // region of each part, whose p-values are multiplied by the number of ends and of parts.
    let level = level / (2 * together.max(1) * parts.max(1) * sides) as f64;
    let interval = evidence.interval;
    // A parameter above the region is refuted by the lower limit of its estimate.
    let above = if high.is_finite() {
        refutable_distance(evidence, evidence.estimate - interval.0, level)?
    } else {
        0.0
    };
    let below = if low.is_finite() {
        refutable_distance(evidence, interval.1 - evidence.estimate, level)?
    } else {
        0.0
    };
    Some((low - below, high + above))
}

/// How far outside the region of a claim a parameter has to be for the sample to refute the claim with power 80 % at
/// this level. `half` is the width of that half of the 95 % interval of the estimate by which it is refuted. `None`
/// where the sampling error is not known.
fn refutable_distance(evidence: &Evidence, half: f64, level: f64) -> Option<f64> {
    let n = evidence.n;
    let distance = match evidence.dimensions {
        0 | 1 => {
            let error = half / student_95(n);
            error * (student_quantile(1.0 - level, n)? + POWER_QUANTILE)
        }
        d => {
            let radius = scheffe_radius(d, n, level)?;
            evidence.error * (radius + POWER_QUANTILE)
        }
    };
    distance.is_finite().then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::log_means::LogMeans;
    use crate::stats::share;
    use crate::stats::verdict::{LEVEL, Verdict};
    use exactfed_core::rng::Stream;

    /// The share of trials in which a sample of n refutes that the logarithm of its mean is in a region, where its mean
    /// is multiplied by the upper end of the resolution of another such sample.
    fn power(n: usize, region: Region, sample: impl Fn(&mut Stream) -> f64) -> f64 {
        let mut rng = Stream::shared_instance(11);
        let mut draw =
            |scale: f64| -> Vec<f64> { (0..n).map(|_| scale * sample(&mut rng)).collect() };
        let evidence = |values: &[f64]| {
            Evidence::from_log_means(&LogMeans::new(&[(1.0, values)]).unwrap(), region)
        };
        share(600, || {
            let (_, high) = resolution(&evidence(&draw(1.0)), 1, 1, LEVEL).unwrap();
            evidence(&draw(libm::exp(high))).alone() == Verdict::Refuted
        })
    }

    #[test]
    fn what_is_at_the_resolution_is_refuted_four_times_out_of_five() {
        let narrow = power(40, (-0.1, 0.1), |rng| (1.0 + 0.1 * rng.gaussian()).abs());
        assert!((0.74..0.88).contains(&narrow), "{narrow}");
        let skewed =
            power(40, (f64::NEG_INFINITY, 0.2), |rng| libm::exp(0.3 * rng.gaussian() - 0.045));
        assert!((0.7..0.9).contains(&skewed), "{skewed}");
    }

    #[test]
    fn vectors_at_the_resolution_are_refuted() {
        let mut rng = Stream::shared_instance(12);
        // Its norm is 5, in which resolutions are measured.
        let target = [3.0, 0.0, 4.0];
        let mut draw = |away: f64| -> Vec<Vec<f64>> {
            (0..40)
                .map(|_| {
                    let truth = [3.0, away, 4.0];
                    truth.iter().map(|t| t + rng.gaussian()).collect()
                })
                .collect()
        };
        let share = share(600, || {
            let near = Evidence::from_vectors(&draw(0.0), &target, 0.1);
            let (_, high) = resolution(&near, 1, 1, LEVEL).unwrap();
            let far = Evidence::from_vectors(&draw(5.0 * high), &target, 0.1);
            far.alone() == Verdict::Refuted
        });
        assert!(share >= 0.76, "{share}");
    }

    #[test]
    fn exact_numbers_resolve_the_region_itself() {
        assert_eq!(resolution(&Evidence::exact(1.0, (0.5, 1.5)), 3, 9, LEVEL), Some((0.5, 1.5)));
        assert_eq!(resolution(&Evidence::undecided(1.0, 1), 1, 1, LEVEL), None);
        let one_sided = Evidence::student(0.0, 1.0, 30, (f64::NEG_INFINITY, 3.0));
        let (low, high) = resolution(&one_sided, 1, 1, LEVEL).unwrap();
        assert!(low == f64::NEG_INFINITY && (5.5..6.5).contains(&high), "{high}");
        let (_, further) = resolution(&one_sided, 10, 10, LEVEL).unwrap();
        assert!(further > high + 1.0);
    }
}
