//! Means, quantiles, Student's t and Holm's correction.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// P(T > t), where T has Student's distribution with n − 1 degrees of freedom, as the p-value for a sample of n; 1,
/// which is no evidence, for n < 2 or if t is NaN.
pub fn student_tail(t: f64, n: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, n as f64 - 1.0) {
        Ok(_) if t == f64::INFINITY => 0.0,
        Ok(student) if !t.is_nan() => student.cdf(-t),
        _ => 1.0,
    }
}

/// The p-quantile of Student's t for a sample of n, with n − 1 degrees of freedom, for p between 0 and 1; `None` for
/// n < 2.
pub fn student_quantile(p: f64, n: usize) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, n as f64 - 1.0).ok()?.inverse_cdf(p))
}

/// The p-values of a family of tests, adjusted by Holm's procedure, in the order of the tests: a hypothesis is rejected
/// at the family-wise level α if its adjusted p-value is at most α.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 0.0_f64;
    for (i, tests) in holm_order(p) {
        least = least.max((p[i] * tests as f64).min(1.0));
        adjusted[i] = least;
    }
    adjusted
}

/// The indices of the tests of a family from the smallest p-value to the largest, each with the number of tests by
/// which Holm's procedure divides the level for it: the number of those that are not rejected before.
pub fn holm_order(p: &[f64]) -> impl Iterator<Item = (usize, usize)> + use<> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let all = order.len();
    order.into_iter().enumerate().map(move |(rank, i)| (i, all - rank))
}

/// The two-sided 95 % quantile of Student's t for a sample of n; NaN for n < 2.
pub fn student_95(n: usize) -> f64 {
    thread_local! {
        // The sample size and the quantile of the last call: a quantile is found by bisection, and the cells of a grid
        // have one n.
        static LAST: std::cell::Cell<(usize, f64)> = const { std::cell::Cell::new((0, f64::NAN)) };
    }
    let (known, value) = LAST.get();
    if known == n {
        return value;
    }
    let value = student_quantile(0.975, n).unwrap_or(f64::NAN);
    LAST.set((n, value));
    value
}

/// The sample mean; NaN for an empty sample.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// The geometric mean of a sample; NaN where a number is not above 0 and finite.
pub fn geometric_mean(sample: &[f64]) -> f64 {
    if !sample.iter().all(|x| *x > 0.0 && x.is_finite()) {
        return f64::NAN;
    }
    let logarithms: Vec<f64> = sample.iter().map(|x| libm::log(*x)).collect();
    libm::exp(mean(&logarithms))
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

/// The p-quantile of a sample by linear interpolation between order statistics; NaN for an empty sample.
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

    #[test]
    fn small_samples() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-15);
        assert!(geometric_mean(&[1.0, 0.0]).is_nan());
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
}
