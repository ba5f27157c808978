//! What selecting the best of several candidates does to its mean and to intervals, and how often
//! intervals over instances hold. Prints four tables: how much too small the mean of the selected
//! candidate is among the runs by which it was selected, and how much worse it is than the best;
//! how often 95 % intervals of its mean, and of the ratio of two tuned algorithms, contain the
//! truth, from the same runs and from fresh ones; how often an interval of a ratio over
//! instances does, by Student's t over instances and over all runs pooled; and how often two algorithms
//! of one law, each tuned with its own draws, are found to differ, with and without the error of the
//! selection.
//!
//! `cargo run --release --locked -p exactfed-tools --bin tuning_size [runs]`, the tables of docs/notes/simulations.md.
//! The truth of a candidate is its mean over so many runs, by default 400.

use exactfed::rng::Stream;
use exactfed::stats::log_means::LogMeans;
use exactfed::stats::selection::{selection_changes, selection_error};
use exactfed::stats::{Ratio, Summary, mean};
use exactfed_runner::manifest::Source;
use exactfed_runner::runner::{Silent, prepare, run};
use std::convert::Infallible;
use std::sync::Mutex;

/// The number of instances of the problem.
const INSTANCES: u64 = 12;
/// The number of candidates: step sizes, each 1.44 times the one before.
const CANDIDATES: usize = 17;
/// The number of fresh runs of what was selected.
const FRESH: usize = 20;

/// The manifest of FedAvg and Scaffold with all candidates on an instance of logistic regression, whose ten clients
/// have heterogeneous data.
fn manifest(seed: u64, runs: usize) -> String {
    let step = |i: usize| 0.004 * libm::pow(1.44, i as f64);
    let steps: Vec<String> = (0..CANDIDATES).map(|i| format!("{:e}", step(i))).collect();
    let steps = steps.join(", ");
    format!(
        "title = \"t\"\nseed = {seed}\nreplicates = {runs}\n\n[problem.logistic]\ndimension = 5\n\
         records = 50\nclients = 10\ndata = {{ heterogeneous = {{ spread = 1.0, perturbation = 1.0 }} }}\n\
         l2 = 0.1\nmargin = 0.0\nbatch = 1\n\n[start]\nzero = true\n\n[budget]\nlocal-steps = 1000\n\n\
         [record]\npoints = 1\n\n[[algorithm.fedavg]]\nstep-size = [{steps}]\nlocal-steps = 20\n\n\
         [[algorithm.scaffold]]\nstep-size = [{steps}]\nlocal-steps = 20\n"
    )
}

/// The final errors of an algorithm on an instance: for each candidate the errors of its runs.
type Errors = Vec<Vec<f64>>;

/// Runs both algorithms on the instance of a seed and returns the errors of each; a run that diverged has an infinite
/// error.
fn run_instance(seed: u64, runs: usize) -> [Errors; 2] {
    let source = Source { name: "t".into(), text: manifest(seed, runs), ..Source::default() };
    let plan = exactfed::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap_or_else(|bad| panic!("{bad:?}"));
    let found: Mutex<Vec<Vec<f64>>> = Mutex::new(vec![Vec::new(); cells.len()]);
    let failed = run(&prepared, 2, &Silent, |done| {
        let place = cells.iter().position(|cell| cell.id == done.cell.id).unwrap_or_default();
        let errors = done.traces.iter().map(|t| t.final_error().unwrap_or(f64::INFINITY));
        found.lock().unwrap_or_else(|e| e.into_inner())[place] = errors.collect();
        Ok::<(), Infallible>(())
    });
    assert!(failed.is_ok_and(|failed| failed.is_empty()));
    let mut all = found.into_inner().unwrap_or_else(|e| e.into_inner());
    let second = all.split_off(CANDIDATES);
    [all, second]
}

/// So many of a candidate's runs from the one at a place on, beginning again after the last.
fn some_runs(runs: &[f64], from: usize, count: usize) -> Vec<f64> {
    (0..count).map(|i| runs[(from + i) % runs.len()]).collect()
}

/// The candidate that was selected in a trial.
struct Selection {
    /// The place of the candidate.
    candidate: usize,
    /// The errors of its runs by which it was selected.
    seen: Vec<f64>,
    /// The errors of other runs of it.
    fresh: Vec<f64>,
}

/// Selects the candidate with the least mean error over so many replicates, which differ between trials. If the noise
/// is `common`, all candidates have runs of the same numbers and so the same noise.
fn select(errors: &Errors, trial: usize, replicates: usize, common: bool) -> Selection {
    let all = errors[0].len();
    let begin = |candidate: usize| {
        // Other candidates have other noise if draws are not common.
        let shift = if common { 0 } else { candidate * 2 * (replicates + FRESH) };
        trial * replicates + shift
    };
    let means = (0..errors.len()).map(|c| (c, mean(&some_runs(&errors[c], begin(c), replicates))));
    let best = means.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(c, _)| c);
    Selection {
        candidate: best,
        seen: some_runs(&errors[best], begin(best), replicates),
        fresh: some_runs(&errors[best], begin(best) + all / 2, FRESH),
    }
}

/// Sums over the trials of all instances, which are divided by the number of trials.
#[derive(Default)]
struct Found {
    /// The number of trials.
    trials: f64,
    /// By what share the mean of the runs by which a candidate was selected is above its true mean.
    optimism: f64,
    /// By what share the true mean of the selected candidate is above that of the best.
    regret: f64,
    /// How often an interval holds: of the mean from the same runs and from fresh ones, and of the ratio of both
    /// algorithms from the same runs and from fresh ones.
    covered: [f64; 4],
}

/// Tunes both algorithms by so many replicates, with common noise or not, in as many trials as there are runs for, and
/// sums up what comes of it.
fn tuned(instances: &[[Errors; 2]], replicates: usize, common: bool) -> Found {
    let mut found = Found::default();
    for [first, second] in instances {
        let truth = |errors: &Errors| errors.iter().map(|runs| mean(runs)).collect::<Vec<f64>>();
        let true_first = truth(first);
        let true_second = truth(second);
        let least = true_first.iter().copied().fold(f64::INFINITY, f64::min);
        for trial in 0..first[0].len() / replicates / 2 {
            let a = select(first, trial, replicates, common);
            let b = select(second, trial, replicates, common);
            let of_a = true_first[a.candidate];
            let of_b = true_second[b.candidate];
            found.trials += 1.0;
            found.optimism += mean(&a.seen) / of_a - 1.0;
            found.regret += of_a / least - 1.0;
            let holds =
                |(low, high): (f64, f64), truth: f64| f64::from(low <= truth && truth <= high);
            let ratio = |a: &[f64], b: &[f64]| {
                let ratio = Ratio::paired(a, b, false);
                (ratio.low, ratio.high)
            };
            let each = [
                holds(Summary::new(&a.seen).interval, of_a),
                holds(Summary::new(&a.fresh).interval, of_a),
                holds(ratio(&a.seen, &b.seen), of_a / of_b),
                holds(ratio(&a.fresh, &b.fresh), of_a / of_b),
            ];
            found.covered.iter_mut().zip(each).for_each(|(sum, one)| *sum += one);
        }
    }
    found
}

/// How often the interval of a ratio over instances holds, in per cent of the trials: by Student's t over the means of
/// the instances, and over all runs as if they were independent. `between` is the standard deviation between the
/// logarithms of the instances' means; the standard deviation of runs on an instance is 1.
fn over_instances(rng: &mut Stream, instances: usize, between: f64, trials: usize) -> [f64; 2] {
    const RUNS: usize = 5;
    let mut covered = [0.0; 2];
    for _ in 0..trials {
        let mut of_instances = Vec::new();
        let mut pooled = Vec::new();
        for _ in 0..instances {
            let centre = between * rng.gaussian();
            let runs: Vec<f64> = (0..RUNS).map(|_| libm::exp(centre + rng.gaussian())).collect();
            // Geometric means, so that the truth is 1 whatever the spread.
            let logs: Vec<f64> = runs.iter().map(|x| libm::log(*x)).collect();
            of_instances.push(libm::exp(mean(&logs)));
            pooled.extend(runs);
        }
        for (place, sample) in [of_instances, pooled].iter().enumerate() {
            let one = vec![1.0; sample.len()];
            let known = LogMeans::over_instances(&[(1.0, sample), (-1.0, &one)]);
            let (low, high) = known.map_or((0.0, 0.0), |known| known.interval());
            covered[place] += f64::from(low <= 0.0 && 0.0 <= high);
        }
    }
    covered.map(|count| 100.0 * count / trials as f64)
}

/// How two algorithms of one law are tuned and compared: they do not differ, and every difference that is found is
/// wrong.
struct TunedPair {
    /// The number of instances by which a candidate is selected, and of fresh ones of the comparison.
    instances: usize,
    /// The number of runs on each instance.
    runs: usize,
    /// The ratio of neighbouring step sizes.
    ratio: f64,
    /// The standard deviations of the logarithms of an instance's hardness, of its noise, and of a run.
    spread: [f64; 3],
    /// The share of a run's noise that all candidates of an algorithm have in common; the draws of
    /// exactfed's candidates are common.
    common: f64,
}

/// An instance of a simulated problem: the expected error with step size γ is e^(−100 h γ) + s γ.
struct Simulated {
    /// h, which says how fast errors fall.
    hardness: f64,
    /// s, the noise.
    noise: f64,
}

impl TunedPair {
    /// Draws the instances by which a candidate is selected, or those of the comparison.
    fn draw_instances(&self, rng: &mut Stream) -> Vec<Simulated> {
        let mut draw = || Simulated {
            hardness: libm::exp(self.spread[0] * rng.gaussian()),
            noise: libm::exp(self.spread[1] * rng.gaussian()),
        };
        (0..self.instances).map(|_| draw()).collect()
    }

    /// Runs an algorithm and returns, for each candidate, its mean error on each instance.
    fn run(&self, rng: &mut Stream, instances: &[Simulated]) -> Vec<Vec<f64>> {
        const CANDIDATES: i32 = 11;
        let mut errors = vec![Vec::new(); CANDIDATES as usize];
        for instance in instances {
            let shared: Vec<f64> = (0..self.runs).map(|_| rng.gaussian()).collect();
            for (place, errors) in errors.iter_mut().enumerate() {
                // The best step size is near the middle.
                let step = 0.04 * libm::pow(self.ratio, f64::from(place as i32 - CANDIDATES / 2));
                let bias = libm::exp(-100.0 * instance.hardness * step);
                let expected = bias + instance.noise * step;
                let run = |shared: &f64| {
                    let own = libm::sqrt(1.0 - self.common * self.common) * rng.gaussian();
                    expected * libm::exp(self.spread[2] * (self.common * shared + own))
                };
                errors.push(mean(&shared.iter().map(run).collect::<Vec<f64>>()));
            }
        }
        errors
    }

    /// In per cent: how often the algorithms are found to differ, without and with the error of the selection; and by
    /// how much the latter widens the interval in the median of the trials.
    fn found_to_differ(&self, rng: &mut Stream, trials: usize) -> [f64; 3] {
        let mut alone = 0.0;
        let mut with_selection = 0.0;
        let mut wider = Vec::new();
        for _ in 0..trials {
            let tuning = self.draw_instances(rng);
            let fresh = self.draw_instances(rng);
            let mut samples = Vec::new();
            let mut changes = Vec::new();
            for _ in 0..2 {
                let errors = self.run(rng, &tuning);
                let means = errors.iter().map(|errors| mean(errors)).enumerate();
                let selected = means.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
                let candidates: Vec<&[f64]> = errors.iter().map(Vec::as_slice).collect();
                changes.push(selection_changes(&candidates, selected, true, false));
                samples.push(self.run(rng, &fresh).swap_remove(selected));
            }
            let points = [(1.0, &samples[0][..]), (-1.0, &samples[1][..])];
            let Some(known) = LogMeans::over_instances(&points) else { continue };
            let error = selection_error(&[(1.0, &changes[0]), (-1.0, &changes[1])]);
            let widths = [0.0, error].map(|error| {
                let (low, high) = known.clone().with_selection_error(error).interval();
                (!(low..=high).contains(&0.0), high - low)
            });
            alone += f64::from(widths[0].0) / trials as f64;
            with_selection += f64::from(widths[1].0) / trials as f64;
            wider.push(widths[1].1 / widths[0].1 - 1.0);
        }
        wider.sort_by(f64::total_cmp);
        [alone, with_selection, wider[wider.len() / 2]].map(|share| 100.0 * share)
    }
}

/// Prints the table of algorithms of one law that are tuned on few instances.
fn print_equal_algorithms(trials: usize) {
    println!(
        "\n| instances | runs | ratio of step sizes | sd of hardness, noise, run | common noise | found to differ: fresh runs alone | with the selection | wider by |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut rng = Stream::shared_instance(37);
    let spreads = [[0.3, 0.5, 0.6], [0.8, 1.5, 1.0], [0.0, 0.2, 0.3]];
    for (place, spread) in spreads.into_iter().enumerate() {
        for instances in [2, 3, 5, 10] {
            for common in [1.0, 0.7, 0.0] {
                let runs = if place == 1 { 10 } else { 2 };
                let ratio = [1.5, 1.25, 2.0][place];
                let pair = TunedPair { instances, runs, ratio, spread, common };
                let [alone, with, wider] = pair.found_to_differ(&mut rng, trials);
                let [hardness, noise, run] = spread;
                println!(
                    "| {instances} | {runs} | {ratio} | {hardness}, {noise}, {run} | {common} | {alone:.1} % | {with:.1} % | {wider:.0} % |"
                );
            }
        }
    }
}

fn main() {
    let runs = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(400);
    let instances: Vec<[Errors; 2]> =
        (1..=INSTANCES).map(|seed| run_instance(seed, runs)).collect();
    let mut tables = [String::new(), String::new()];
    for (noise, common) in [("common", true), ("independent", false)] {
        for replicates in [5, 10] {
            let Found { trials, optimism, regret, covered } = tuned(&instances, replicates, common);
            let percent = |sum: f64| 100.0 * sum / trials;
            tables[0].push_str(&format!(
                "| {noise} | {replicates} | {:+.1} % | {:.1} % |\n",
                percent(optimism),
                percent(regret)
            ));
            let all = covered.map(|sum| format!("{:.1}", percent(sum))).join(" | ");
            tables[1].push_str(&format!("| {noise} | {replicates} | {all} |\n"));
        }
    }
    println!(
        "| noise | runs of a candidate | mean of the selected, over its truth | its truth, over the best |"
    );
    println!("| --- | --- | --- | --- |\n{}", tables[0]);
    println!(
        "| noise | runs of a candidate | mean, same runs | mean, fresh | ratio, same runs | ratio, fresh |"
    );
    println!("| --- | --- | --- | --- | --- | --- |\n{}", tables[1]);
    println!(
        "| sd between instances, over that of runs | instances | t over instances | t over all runs |"
    );
    println!("| --- | --- | --- | --- |");
    let mut rng = Stream::shared_instance(23);
    for between in [0.0, 0.5, 1.0] {
        for instances in [3, 5, 10, 20] {
            let [own, pooled] = over_instances(&mut rng, instances, between, 10 * runs);
            println!("| {between} | {instances} | {own:.1} | {pooled:.1} |");
        }
    }
    print_equal_algorithms(10 * runs);
}
