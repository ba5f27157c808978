//! The averages over the rounds of a cell's runs, and the point around which their second moments
//! are.
//!
//! A run stores E (θ − m)(θ − m)ᵀ with m the limit lim E θ where theory knows it, and θ* elsewhere. Around the limit
//! this is the covariance; around θ* it contains the square of the bias as well. Where the runs store the bias too,
//! the covariance is E (θ − θ*)(θ − θ*)ᵀ − b bᵀ with b = E θ − θ*.
//!
//! The square of a mean of n estimates of b is too large by a part of their variance, so that b bᵀ is estimated by the
//! products of the estimates of *different* runs on the same instance, (1/(n(n − 1))) Σ_{r≠s} b_r b_sᵀ, which are
//! independent: nothing is added to the covariance or taken from it, however noisy each estimate is. A run has the part
//! M_r − (b_r − b̄) b̄ᵀ − b̄ (b_r − b̄)ᵀ of this, to first order, minus these products: intervals contain the noise of
//! the bias, and where M_r has the same noise it cancels. A single run on an instance has no others: the square of its
//! own estimate takes their place, and the covariance is too small by the variance of that estimate.
//!
//! *Invariant*: second moments around θ* are nowhere called a covariance ([`Centres`], `crate::cells::symbols`).

use exactfed_runner::manifest::TimeAverage;
use exactfed_runner::trace::Trace;
use std::collections::BTreeSet;

/// The averages over the rounds of a run, or their mean over the runs on an instance: a vector each, or a matrix row by
/// row.
pub type Averages = Vec<(TimeAverage, Vec<f64>)>;

/// The point around which second moments are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Centre {
    /// The mean, exact or measured: the moments are covariances.
    #[default]
    Mean,
    /// θ*, and ξ_c* for control variates, since no limit is known.
    Optimum,
}

/// The points around which the second moments of a cell's runs are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Centres {
    /// The centre of second moments of estimates alone.
    pub estimates: Centre,
    /// The centre of second moments with control variates, whose mean no run stores.
    pub variates: Centre,
}

impl Centres {
    /// The point around which this average is taken.
    pub fn centre(self, average: TimeAverage) -> Centre {
        match average {
            TimeAverage::Bias | TimeAverage::Covariance => self.estimates,
            _ => self.variates,
        }
    }
}

/// The averages that every figure and claim may use; others are kept only where they are needed.
const ALWAYS: [TimeAverage; 2] = [TimeAverage::Bias, TimeAverage::Covariance];

/// The averages of each of a cell's runs, as far as they are `needed` or are the bias or the covariance, and the points
/// around which their second moments are. Second moments of estimates that are stored around θ* are moved to the mean
/// of the runs on the instance, if the runs store their bias too; `on_instance` successive runs are on one instance.
pub fn averages(
    traces: &[Trace],
    needed: &BTreeSet<TimeAverage>,
    on_instance: usize,
) -> (Vec<Averages>, Centres) {
    let mut all = Vec::with_capacity(traces.len());
    for trace in traces {
        let of_run = trace
            .averages
            .iter()
            .filter(|(average, _)| ALWAYS.contains(average) || needed.contains(average));
        all.push(of_run.cloned().collect::<Averages>());
    }
    // The distance from the limit is recorded wherever the limit is known, and there alone.
    if traces.iter().all(|trace| !trace.sq_error_limit.is_empty()) {
        return (all, Centres::default());
    }
    let variates = Centre::Optimum;
    // Without the bias of every run that has averages, the covariance does not follow from E (θ − θ*)(θ − θ*)ᵀ.
    if !all.iter().filter(|of_run| !of_run.is_empty()).all(has_bias_and_covariance) {
        return (all, Centres { estimates: Centre::Optimum, variates });
    }
    for runs in all.chunks_mut(on_instance.max(1)) {
        move_centre_to_mean(runs);
    }
    (all, Centres { estimates: Centre::Mean, variates })
}

/// Whether a run has stored both averages that are needed to move second moments to the mean.
fn has_bias_and_covariance(of_run: &Averages) -> bool {
    ALWAYS.iter().all(|average| vector(of_run, *average).is_some())
}

/// Replaces the second moments around θ* of the estimates in these runs, which are all runs on one instance, by second
/// moments around the mean of the runs. Runs without averages have diverged and are left out; all others must have
/// stored their bias ([`has_bias_and_covariance`]).
fn move_centre_to_mean(runs: &mut [Averages]) {
    let mut with_averages: Vec<&mut Averages> =
        runs.iter_mut().filter(|of_run| !of_run.is_empty()).collect();
    let biases: Vec<Vec<f64>> = with_averages
        .iter()
        .filter_map(|of_run| vector(of_run, TimeAverage::Bias).map(<[f64]>::to_vec))
        .collect();
    let Some(d) = biases.first().map(Vec::len) else { return };
    let n = biases.len() as f64;
    let mean: Vec<f64> = (0..d).map(|i| biases.iter().map(|b| b[i]).sum::<f64>() / n).collect();
    let products = mean_products_of_pairs(&biases, &mean);
    for (of_run, b) in with_averages.iter_mut().zip(&biases) {
        let moments = of_run.iter_mut().find(|(average, _)| *average == TimeAverage::Covariance);
        for (place, x) in moments.into_iter().flat_map(|(_, x)| x.iter_mut().enumerate()) {
            let i = place / d;
            let j = place % d;
            *x -= products[place] + (b[i] - mean[i]) * mean[j] + mean[i] * (b[j] - mean[j]);
        }
    }
}

/// The mean of b_r b_sᵀ over pairs of different runs r ≠ s, as d · d entries row by row, from the biases b_r and their
/// `mean`. One run has no such pair: the product of its own bias takes the place of the mean.
fn mean_products_of_pairs(biases: &[Vec<f64>], mean: &[f64]) -> Vec<f64> {
    let d = mean.len();
    let n = biases.len() as f64;
    let mut products = Vec::with_capacity(d * d);
    for i in 0..d {
        for j in 0..d {
            products.push(match biases {
                [one] => one[i] * one[j],
                all => {
                    let of_equal_runs = all.iter().map(|b| b[i] * b[j]).sum::<f64>();
                    (n * n * mean[i] * mean[j] - of_equal_runs) / (n * (n - 1.0))
                }
            });
        }
    }
    products
}

/// One of the averages of a run, as its entries; `None` if it is not there.
pub fn vector(all: &Averages, what: TimeAverage) -> Option<&[f64]> {
    all.iter().find(|(a, _)| *a == what).map(|(_, vector)| &vector[..])
}

/// The mean over the runs on one instance of each average that all of them have. A run that diverged has none, so that
/// nothing is left of the instance then. A single run keeps its numbers to the bit.
pub fn mean_averages(runs: &[Averages]) -> Averages {
    let Some((first, others)) = runs.split_first() else { return Averages::new() };
    let mut sums = first.clone();
    for other in others {
        sums.retain_mut(|(name, sum)| match vector(other, *name) {
            Some(values) => {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                true
            }
            None => false,
        });
    }
    if runs.len() > 1 {
        let n = runs.len() as f64;
        sums.iter_mut().flat_map(|(_, sum)| sum).for_each(|sum| *sum /= n);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{mean, standard_deviation};
    use exactfed_core::rng::{Purpose, Stream};

    const D: usize = 2;

    /// A run that stores these averages, and a distance from its limit if that is known.
    fn run(bias: Option<[f64; D]>, square: [f64; D * D], limit: bool) -> Trace {
        let bias = bias.map(|b| (TimeAverage::Bias, b.to_vec()));
        let square = (TimeAverage::Covariance, square.to_vec());
        Trace {
            averages: bias.into_iter().chain([square]).collect(),
            sq_error_limit: if limit { vec![0.0] } else { Vec::new() },
            ..Trace::default()
        }
    }

    /// The second moment that is kept of each run, and the points around which second moments are.
    fn covariances(runs: &[Trace], on_instance: usize) -> (Vec<Vec<f64>>, Centres) {
        let (all, centres) = averages(runs, &BTreeSet::new(), on_instance);
        let moments = all.iter().map(|all| vector(all, TimeAverage::Covariance).unwrap().to_vec());
        (moments.collect(), centres)
    }

    const SQUARE: [f64; 4] = [5.0, 1.0, 1.0, 6.0];

    #[test]
    fn what_is_around_the_limit_or_has_no_bias_stays() {
        let optimum = Centres { estimates: Centre::Optimum, variates: Centre::Optimum };
        for (bias, limit, expected) in [
            (Some([1.0, 2.0]), true, Centres::default()),
            (None, true, Centres::default()),
            (None, false, optimum),
        ] {
            let runs = [run(bias, SQUARE, limit), run(bias, SQUARE, limit)];
            let (found, centres) = covariances(&runs, usize::MAX);
            assert_eq!((found, centres), (vec![SQUARE.to_vec(); 2], expected));
            assert_eq!(centres.centre(TimeAverage::CrossCovariance), expected.variates);
        }
    }

    /// The mean over runs is the mean of the squares minus the mean of the products of different runs. Products of runs
    /// on different instances are not among them, and a single run takes its own square.
    #[test]
    fn the_squared_bias_is_that_of_different_runs_on_an_instance() {
        let biases = [[1.0, 2.0], [3.0, -1.0], [2.0, 4.0]];
        let runs = biases.map(|bias| run(Some(bias), SQUARE, false));
        let (found, centres) = covariances(&runs, usize::MAX);
        assert_eq!(centres, Centres { estimates: Centre::Mean, variates: Centre::Optimum });
        for (at, square) in SQUARE.into_iter().enumerate() {
            let i = at / D;
            let j = at % D;
            let pairs = [(0, 1), (0, 2), (1, 2)];
            let product = |(r, s): (usize, usize)| {
                0.5 * (biases[r][i] * biases[s][j] + biases[s][i] * biases[r][j])
            };
            let expected = square - pairs.map(product).iter().sum::<f64>() / 3.0;
            assert!((mean_entry(&found, at) - expected).abs() < 1e-14, "{found:?}");
        }
        let (by_instance, _) = covariances(&runs[..2], 1);
        assert_eq!(by_instance, [[4.0, -1.0, -1.0, 2.0], [-4.0, 4.0, 4.0, 5.0]]);
        // The squares of the means are above the products, so that this would be too small.
        assert!(mean_entry(&covariances(&runs, 1).0, 0) < mean_entry(&found, 0));
    }

    /// The mean over runs of the entry at this place.
    fn mean_entry(found: &[Vec<f64>], at: usize) -> f64 {
        mean(&found.iter().map(|x| x[at]).collect::<Vec<f64>>())
    }

    fn variance(sample: &[f64]) -> f64 {
        standard_deviation(sample) * standard_deviation(sample)
    }

    /// For runs of ten independent rounds around a bias three times as large as their deviation, the mean over runs is
    /// the variance, and the spread of the runs gives the error of this mean.
    #[test]
    fn the_variance_is_estimated_without_bias() {
        const ROUNDS: usize = 10;
        let samples = 4000;
        let n = 6;
        let bias = [3.0, 0.0];
        let mut means = Vec::new();
        let mut errors = 0.0;
        for sample in 0..samples {
            let one = |replicate: usize| {
                let mut stream = Stream::new(7, Purpose::Client, 0, sample, replicate as u64);
                let mut mean = [0.0; D];
                let mut square = [0.0; D * D];
                for _ in 0..ROUNDS {
                    let x = bias.map(|bias| bias + stream.gaussian());
                    for at in 0..D * D {
                        square[at] += x[at / D] * x[at % D] / ROUNDS as f64;
                    }
                    (0..D).for_each(|i| mean[i] += x[i] / ROUNDS as f64);
                }
                run(Some(mean), square, false)
            };
            let runs: Vec<Trace> = (0..n).map(one).collect();
            let traces: Vec<f64> =
                covariances(&runs, usize::MAX).0.iter().map(|x| x[0] + x[D + 1]).collect();
            means.push(mean(&traces));
            errors += variance(&traces) / n as f64 / samples as f64;
        }
        let mean = mean(&means);
        let variance = variance(&means);
        // tr Cov = 2; the square of a run's own mean would leave 2 − 2/10, and all of it 2 + 9.
        assert!((mean - 2.0).abs() < 4.0 * (variance / samples as f64).sqrt(), "{mean}");
        // The runs' own spread tells the error of their mean.
        assert!((0.9..1.1).contains(&(errors / variance)), "{errors} of {variance}");
    }
}
