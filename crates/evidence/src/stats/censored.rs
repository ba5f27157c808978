//! The median of a sample of which some values are only known to be larger than all that were seen.

/// The median of a sample with its 95 % interval. Values that are not known count as larger than any other: a run that
/// does not reach a target within its budget has a cost above all that it has paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CensoredMedian {
    /// The median; infinite if half of the values or more are not known, and NaN of an empty sample.
    pub median: f64,
    /// The 95 % interval by order statistics, which assumes nothing of the distribution; an end is infinite where the
    /// value is not known. NaN for fewer than six values, which have no such interval.
    pub interval: (f64, f64),
}

impl CensoredMedian {
    /// The median of these values, `None` for one that is not known.
    pub fn new(values: &[Option<f64>]) -> Self {
        let mut sorted: Vec<f64> =
            values.iter().map(|value| value.unwrap_or(f64::INFINITY)).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        if n == 0 {
            return Self { median: f64::NAN, interval: (f64::NAN, f64::NAN) };
        }
        // The mean of two infinite values is infinite, as that of a finite and an infinite one.
        let median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
        let interval = match outer_rank(n) {
            0 => (f64::NAN, f64::NAN),
            rank => (sorted[rank - 1], sorted[n - rank]),
        };
        Self { median, interval }
    }
}

/// The largest k such that the interval from the k-th smallest to the k-th largest of n values contains the median of
/// the distribution with a probability of at least 95 %; 0 if there is none. At most 2.5 % is the probability that fewer
/// than k of n values are below the median, which is P(B < k) of a binomial variable with n trials of probability ½.
fn outer_rank(n: usize) -> usize {
    // C(n, j)/2^n by its logarithm, since 2^-n is 0 as a double for large n.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut rank = 0;
    for j in 0..n.div_ceil(2) {
        below += libm::exp(log_term);
        if below > 0.025 {
            break;
        }
        rank = j + 1;
        log_term += libm::log((n - j) as f64) - libm::log((j + 1) as f64);
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks of tables of the sign test: of 6 values the extremes, of 10 the second ones, of 20 the sixth ones.
    #[test]
    fn ranks_are_those_of_the_sign_test() {
        for (n, rank) in [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (100, 40)] {
            assert_eq!(outer_rank(n), rank, "{n}");
        }
        // P(B < k) would be 0/0 without logarithms.
        let large = outer_rank(10_000);
        assert!((4890..=4905).contains(&large), "{large}");
    }

    #[test]
    fn values_that_are_not_known_are_larger_than_all_others() {
        let known = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let ten = [3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0];
        let mut censored = known(&ten);
        censored.extend([None; 3]);
        let found = CensoredMedian::new(&censored);
        assert_eq!(found, CensoredMedian { median: 5.5, interval: (2.0, f64::INFINITY) });
        let half = [Some(1.0), None];
        assert_eq!(CensoredMedian::new(&half).median, f64::INFINITY);
        let all = CensoredMedian::new(&known(&[2.0, 1.0, 4.0]));
        assert!(all.median == 2.0 && all.interval.0.is_nan());
        assert!(CensoredMedian::new(&[]).median.is_nan());
    }
}
