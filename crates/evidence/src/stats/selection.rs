//! What selecting a candidate by few runs adds to the error of a comparison.
//!
//! Fresh runs of a selected candidate are an ordinary sample of that candidate. But the candidate is
//! random: another selection by as many runs would have taken another one, and all fresh runs share the
//! difference between the two. An interval from fresh runs alone is too narrow for a statement about the
//! tuned algorithm: two algorithms of one law, tuned with other draws on three to ten instances and
//! compared on as many fresh ones, are found to differ in up to 10 % of simulations at the level of 5 %
//! (docs/notes/simulations.md). Where both select the same candidate, they are found to differ in 5 %.

use super::basics::mean;
use exactfed_core::rng::Stream;

/// The number of resamples that are drawn if there are more than that.
const RESAMPLES: usize = 256;

/// How much other selections by as many runs would change the mean of what is selected: for each resample of Efron's
/// bootstrap, the logarithm of the mean of the candidate that the resample selects minus that of the `selected`
/// candidate. Differences are multiplied by √(n/(n − 1)), since means of resamples vary by (n − 1)/n of the variance of
/// a mean. All resamples of few runs are enumerated, and others drawn.
///
/// `candidates` has a sample for each candidate, with a value for each run or each instance, and `selected` is an index
/// among them; candidates with another number of values, such as those that were stopped, are never selected.
/// `over_instances` measures the change by geometric means, as the comparison of fresh runs does; the selection itself
/// is by the mean in any case. `largest` selects the largest mean and not the smallest.
///
/// Empty for a single run, which does not show how its selection varies, and where a mean has no logarithm.
pub fn selection_changes(
    candidates: &[&[f64]],
    selected: usize,
    over_instances: bool,
    largest: bool,
) -> Vec<f64> {
    let n = candidates[selected].len();
    if n < 2 {
        return Vec::new();
    }
    let comparable: Vec<&[f64]> = candidates.iter().copied().filter(|x| x.len() == n).collect();
    let of_selected = log_mean(candidates[selected], over_instances);
    let scale = libm::sqrt(n as f64 / (n as f64 - 1.0));
    let differences: Vec<f64> =
        comparable.iter().map(|x| scale * (log_mean(x, over_instances) - of_selected)).collect();
    let sign = if largest { -1.0 } else { 1.0 };
    let mut changes = Vec::new();
    for_each_resample(n, |counts| {
        let losses = comparable
            .iter()
            .map(|x| sign * x.iter().zip(counts).map(|(x, c)| x * c).sum::<f64>())
            .enumerate();
        let best = losses.min_by(|a, b| a.1.total_cmp(&b.1));
        changes.push(best.map_or(0.0, |(place, _)| differences[place]));
    });
    if changes.iter().all(|change| change.is_finite()) { changes } else { Vec::new() }
}

/// The standard error that selections add to Σ w_j log E x_j, where `parts` has the weight w_j and the changes of the
/// selection of x_j ([`selection_changes`]), which are empty if nothing was selected. Algorithms are tuned on common
/// instances and noise, so their selections change together, and resample i is the same for all of them. Selections
/// with different numbers of resamples are taken as independent.
pub fn selection_error(parts: &[(f64, &[f64])]) -> f64 {
    let known: Vec<&(f64, &[f64])> = parts.iter().filter(|(_, x)| !x.is_empty()).collect();
    let Some((_, first)) = known.first() else { return 0.0 };
    let count = first.len();
    if known.iter().any(|(_, changes)| changes.len() != count) {
        let squares = known.iter().map(|(weight, changes)| {
            let error = weight * root_mean_square(changes.iter().copied());
            error * error
        });
        return libm::sqrt(squares.sum());
    }
    root_mean_square(
        (0..count).map(|resample: usize| {
            known.iter().map(|(w, changes)| w * changes[resample]).sum::<f64>()
        }),
    )
}

fn root_mean_square(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    libm::sqrt(values.map(|x| x * x).sum::<f64>() / count)
}

/// The logarithm of the mean of a sample, or of its geometric mean if it is `over_instances` and all values are above
/// 0.
fn log_mean(values: &[f64], over_instances: bool) -> f64 {
    if over_instances && values.iter().all(|x| *x > 0.0) {
        let logs: Vec<f64> = values.iter().map(|x| libm::log(*x)).collect();
        return mean(&logs);
    }
    libm::log(mean(values))
}

/// Calls `visit` for resamples of n values, with how often each value is in the resample: for each of the nⁿ resamples
/// if there are at most [`RESAMPLES`], and otherwise for [`RESAMPLES`] that are drawn from a fixed stream.
fn for_each_resample(n: usize, mut visit: impl FnMut(&[f64])) {
    let all = u32::try_from(n).ok().and_then(|power| n.checked_pow(power));
    let mut counts = vec![0.0; n];
    if let Some(all) = all.filter(|all| *all <= RESAMPLES) {
        for number in 0..all {
            counts.fill(0.0);
            let mut rest = number;
            for _ in 0..n {
                counts[rest % n] += 1.0;
                rest /= n;
            }
            visit(&counts);
        }
        return;
    }
    let mut rng = Stream::shared_instance(29);
    for _ in 0..RESAMPLES {
        counts.fill(0.0);
        (0..n).for_each(|_| counts[rng.index(n)] += 1.0);
        visit(&counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::log_means::LogMeans;
    use crate::stats::share;

    #[test]
    fn all_resamples_of_few_are_enumerated() {
        for (n, expected) in [(2, 4), (3, 27), (4, 256), (5, RESAMPLES)] {
            let mut seen = 0;
            let mut sums = vec![0.0; n];
            for_each_resample(n, |counts| {
                seen += 1;
                assert_eq!(counts.iter().sum::<f64>(), n as f64);
                sums.iter_mut().zip(counts).for_each(|(sum, c)| *sum += c);
            });
            assert_eq!(seen, expected);
            let usual = seen as f64;
            assert!(sums.iter().all(|sum| (sum / usual - 1.0).abs() < 0.2), "{sums:?}");
        }
    }

    /// The standard error that one selection adds to the logarithm of the mean of what it selects.
    fn error_of_one(
        candidates: &[&[f64]],
        selected: usize,
        over_instances: bool,
        largest: bool,
    ) -> f64 {
        let changes = selection_changes(candidates, selected, over_instances, largest);
        selection_error(&[(1.0, &changes)])
    }

    #[test]
    fn selections_that_change_together_cancel() {
        let first = [1.0, 4.0];
        let second = [4.0, 2.0];
        let changes = selection_changes(&[&first, &second], 0, true, false);
        let one = selection_error(&[(1.0, &changes)]);
        assert!(one > 0.0);
        assert_eq!(selection_error(&[(1.0, &changes), (-1.0, &changes)]), 0.0);
        assert_eq!(selection_error(&[(1.0, &changes), (-1.0, &[])]), one);
        // Of other numbers of runs nothing is known together.
        let apart = selection_error(&[(1.0, &changes), (-1.0, &[one; 3])]);
        assert!((apart / one - libm::sqrt(2.0)).abs() < 1e-12, "{apart} {one}");
    }

    #[test]
    fn a_selection_that_no_resample_changes_adds_nothing() {
        let best = [1.0, 2.0, 3.0];
        let worse = [1.5, 3.0, 4.0];
        assert_eq!(error_of_one(&[&best, &worse], 0, true, false), 0.0);
        assert_eq!(error_of_one(&[&best, &worse], 1, true, true), 0.0);
        assert_eq!(error_of_one(&[&[1.0], &[2.0]], 0, true, false), 0.0);
    }

    #[test]
    fn a_selection_that_depends_on_the_runs_adds_how_much_the_candidates_differ() {
        // Resamples are (1, 1), (1, 2), (2, 1) and (2, 2): the last selects the second candidate.
        let first = [1.0, 4.0];
        let second = [4.0, 2.0];
        let apart = 0.5 * libm::log(2.0);
        let found = error_of_one(&[&first, &second], 0, true, false);
        // One of four, times 2/(2 − 1).
        assert!((found - apart / libm::sqrt(2.0)).abs() < 1e-15, "{found}");
        let of_means = error_of_one(&[&first, &second], 0, false, false);
        assert!((of_means - libm::log(3.0 / 2.5) / libm::sqrt(2.0)).abs() < 1e-15, "{of_means}");
    }

    /// Candidates of the simulation.
    const CANDIDATES: usize = 9;
    /// Instances of a selection, and of a comparison.
    const INSTANCES: usize = 10;

    /// A problem on which the error with step size γ is a bias that falls with γ, plus noise that grows
    /// with it.
    struct DrawnProblem {
        hardness: f64,
        noise: f64,
    }

    impl DrawnProblem {
        fn draw(rng: &mut Stream) -> Self {
            let hardness = libm::exp(0.8 * rng.gaussian());
            Self { hardness, noise: libm::exp(1.5 * rng.gaussian()) }
        }

        /// The error of a run with the step size of this place.
        fn run(&self, rng: &mut Stream, place: usize) -> f64 {
            let step = 0.01 * libm::pow(1.6, place as f64);
            let expected = libm::exp(-100.0 * self.hardness * step) + self.noise * step;
            expected * libm::exp(0.5 * rng.gaussian())
        }
    }

    /// The candidate that runs on these instances select, and the changes of that selection.
    fn tuned(rng: &mut Stream, instances: &[DrawnProblem]) -> (usize, Vec<f64>) {
        let mut all: Vec<Vec<f64>> = Vec::new();
        for place in 0..CANDIDATES {
            all.push(instances.iter().map(|one| one.run(rng, place)).collect());
        }
        let means = all.iter().map(|runs| mean(runs)).enumerate();
        let (selected, _) = means.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let candidates: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
        (selected, selection_changes(&candidates, selected, true, false))
    }

    #[test]
    fn equal_algorithms_that_are_tuned_on_few_instances_keep_the_level() {
        let mut rng = Stream::shared_instance(31);
        let mut differ = |with_selection: bool| {
            share(2000, || {
                // Instances are common to both algorithms, and draws are not.
                let mut instances = || -> Vec<DrawnProblem> {
                    (0..INSTANCES).map(|_| DrawnProblem::draw(&mut rng)).collect()
                };
                let tuning = instances();
                let fresh = instances();
                let (a, changes_of_a) = tuned(&mut rng, &tuning);
                let (b, changes_of_b) = tuned(&mut rng, &tuning);
                let of_a: Vec<f64> = fresh.iter().map(|one| one.run(&mut rng, a)).collect();
                let of_b: Vec<f64> = fresh.iter().map(|one| one.run(&mut rng, b)).collect();
                let known = LogMeans::over_instances(&[(1.0, &of_a), (-1.0, &of_b)]).unwrap();
                let of_selection = selection_error(&[(1.0, &changes_of_a), (-1.0, &changes_of_b)]);
                let error = if with_selection { of_selection } else { 0.0 };
                let (low, high) = known.with_selection_error(error).interval();
                !(low..=high).contains(&0.0)
            })
        };
        let without = differ(false);
        let with = differ(true);
        assert!(without > 0.08, "the simulation shows what is mended: {without}");
        // Two standard errors of 2000 trials above the level.
        assert!(with < 0.06, "{with}");
    }
}
