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

/// A distribution of squared errors.
#[derive(Clone, Copy)]
struct Distribution {
    name: &'static str,
    /// Draws a number with mean 1.
    draw: fn(&mut Stream) -> f64,
}

/// A draw of χ²₁.
fn square(rng: &mut Stream) -> f64 {
    let x = rng.gaussian();
    x * x
}

const DISTRIBUTIONS: [Distribution; 6] = [
    Distribution { name: "normal, spread 10 %", draw: |rng| 1.0 + 0.1 * rng.gaussian() },
    Distribution { name: "χ²₈", draw: |rng| (0..8).map(|_| square(rng)).sum::<f64>() / 8.0 },
    Distribution { name: "χ²₁", draw: square },
    Distribution {
        name: "lognormal, σ = 0.5",
        draw: |rng| libm::exp(0.5 * rng.gaussian() - 0.125),
    },
    Distribution { name: "lognormal, σ = 1", draw: |rng| libm::exp(rng.gaussian() - 0.5) },
    Distribution {
        name: "Pareto, index 3",
        draw: |rng| libm::exp(-libm::log(1.0 - rng.uniform()) / 3.0) * 2.0 / 3.0,
    },
];

/// The numbers of runs of each side.
const RUNS: [usize; 3] = [5, 10, 20];

/// The level at which the first of ten claims is tested that are tested together, by Holm's correction.
const FIRST_OF_TEN: f64 = LEVEL / 10.0;

/// A transformation of Student's statistic t > 0 that corrects it for skewness: a function of t and of a, the skewness
/// of the sample over √n.
type Transformation = fn(f64, f64) -> f64;

/// Hall's cubic for every t, also where it is flat; `hall` departs from it there.
fn cubic(t: f64, a: f64) -> f64 {
    t.min(t + a * t * t / 3.0 + a * a * t * t * t / 27.0 + a / 6.0)
}

const TRANSFORMATIONS: [Transformation; 2] = [cubic, hall];

/// Two samples of n runs with means that are equal: `paired` by the common noise of runs of the same number, or
/// independent with means 1.
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

/// In how many of so many pairs of samples, of n runs each, the claim that the left mean is at most the right one is
/// decided where the means are equal (by itself, as the first of ten), and supported as the first of ten where the left
/// mean is a half and a fifth of the right one: these four counts for each of the [`TRANSFORMATIONS`].
fn counts(
    rng: &mut Stream,
    paired: bool,
    draw: fn(&mut Stream) -> f64,
    n: usize,
    trials: usize,
) -> [[usize; 4]; 2] {
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
                let [old, new] = counts(&mut rng, paired, distribution.draw, n, trials);
                let percent = |count: usize| 100.0 * count as f64 / trials as f64;
                let cells = [0, 1, 2, 3].map(|k| {
                    let digits = if k == 1 { 2 } else { 1 };
                    format!("{:.digits$} → {:.digits$}", percent(old[k]), percent(new[k]))
                });
                let kind = if paired { "common noise" } else { "independent" };
                println!("| {kind} | {} | {n} | {} |", distribution.name, cells.join(" | "));
            }
        }
    }
}
