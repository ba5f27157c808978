//! How often the comparison of two means is decided, wrongly and rightly, with Hall's
//! transformation as it is used (`stats::log_means::hall`) and with its cubic alone, which is flat
//! where the evidence is strong and against the skewness. The claim is that the left mean is at most
//! the right one. Prints, for each kind of sample, distribution of the errors and number of runs,
//! the percentage of samples that decide the claim although both means are equal (either answer is
//! then an error: by itself at most 5, as the first of ten claims at most 0.5), and the percentage
//! that support it, as the first of ten claims, where the left mean is a half or a fifth of the
//! right one. In each cell the first number is that of the cubic alone.
//!
//! `cargo run --release --locked -p exactfed-tools --bin claim_power [trials]`, the table of docs/notes/simulations.md.

use exactfed::rng::Stream;
use exactfed::stats::log_means::{LogMeans, hall};
use exactfed::stats::verdict::LEVEL;

/// A name, and a draw with mean 1.
type Distribution = (&'static str, fn(&mut Stream) -> f64);

fn square(rng: &mut Stream) -> f64 {
    let x = rng.gaussian();
    x * x
}

const DISTRIBUTIONS: [Distribution; 6] = [
    ("normal, spread 10 %", |rng| 1.0 + 0.1 * rng.gaussian()),
    ("χ²₈", |rng| (0..8).map(|_| square(rng)).sum::<f64>() / 8.0),
    ("χ²₁", square),
    ("lognormal, σ = 0.5", |rng| libm::exp(0.5 * rng.gaussian() - 0.125)),
    ("lognormal, σ = 1", |rng| libm::exp(rng.gaussian() - 0.5)),
    ("Pareto, index 3", |rng| libm::exp(-libm::log(1.0 - rng.uniform()) / 3.0) * 2.0 / 3.0),
];

const RUNS: [usize; 3] = [5, 10, 20];

/// Level of the first of ten claims that are tested together.
const FIRST_OF_TEN: f64 = LEVEL / 10.0;

/// A transformation of Student's statistic.
type Transformation = fn(f64, f64) -> f64;

/// Hall's cubic for every statistic.
fn cubic(t: f64, a: f64) -> f64 {
    t.min(t + a * t * t / 3.0 + a * a * t * t * t / 27.0 + a / 6.0)
}

const TRANSFORMATIONS: [Transformation; 2] = [cubic, hall];

/// Two samples with means 1, paired by the runs' common noise or independent.
fn samples(
    rng: &mut Stream,
    draw: fn(&mut Stream) -> f64,
    n: usize,
    paired: bool,
) -> [Vec<f64>; 2] {
    let common: Vec<f64> = (0..n).map(|_| draw(rng)).collect();
    let mut one = || -> Vec<f64> {
        let run = |c: &f64| if paired { c * draw(rng).abs().sqrt() } else { draw(rng) };
        common.iter().map(run).collect()
    };
    [one(), one()]
}

/// Of how many samples the claim is decided at each level where the means are equal, and supported
/// where they are not: two levels, two ratios, for each transformation.
fn counts(rng: &mut Stream, row: (bool, Distribution, usize), trials: usize) -> [[usize; 4]; 2] {
    let (paired, (_, draw), n) = row;
    let mut counts = [[0; 4]; 2];
    for _ in 0..trials {
        let [left, right] = samples(rng, draw, n, paired);
        let scaled = |ratio: f64| -> Option<LogMeans> {
            let left: Vec<f64> = left.iter().map(|x| ratio * x).collect();
            LogMeans::new(&[(1.0, &left), (-1.0, &right)])
        };
        let [Some(equal), Some(half), Some(fifth)] = [1.0, 0.5, 0.2].map(scaled) else { continue };
        for (counts, with) in counts.iter_mut().zip(TRANSFORMATIONS) {
            let support = |known: &LogMeans| 2.0 * known.p_value(0.0, false, with);
            let decided = support(&equal).min(2.0 * equal.p_value(0.0, true, with));
            counts[0] += usize::from(decided <= LEVEL);
            counts[1] += usize::from(decided <= FIRST_OF_TEN);
            counts[2] += usize::from(support(&half) <= FIRST_OF_TEN);
            counts[3] += usize::from(support(&fifth) <= FIRST_OF_TEN);
        }
    }
    counts
}

fn main() {
    let trials = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(20_000);
    let mut rng = Stream::shared_instance(23);
    println!(
        "| runs | distribution | n | equal, by itself | equal, first of ten | a half | a fifth |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for paired in [false, true] {
        for distribution in DISTRIBUTIONS {
            for n in RUNS {
                let [old, new] = counts(&mut rng, (paired, distribution, n), trials);
                let percent = |count: usize| 100.0 * count as f64 / trials as f64;
                let cells = [0, 1, 2, 3].map(|k| {
                    let digits = if k == 1 { 2 } else { 1 };
                    format!("{:.digits$} → {:.digits$}", percent(old[k]), percent(new[k]))
                });
                let kind = if paired { "common noise" } else { "independent" };
                println!("| {kind} | {} | {n} | {} |", distribution.0, cells.join(" | "));
            }
        }
    }
}
