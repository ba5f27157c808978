//! How often a claim gets a wrong verdict in the hardest case: both sides of a comparison are
//! equal. Prints, for every kind of claim, distribution of the errors and number of runs, the
//! percentage of samples whose interval lies above the truth ("at most" is wrongly refuted) and
//! below it ("at least" is wrongly refuted, "at most" wrongly supported). Each may be up to 5. A
//! star marks where every wrong verdict comes with a warning that runs are too few.
//!
//! `cargo run --release --locked -p exactfed-tools --bin claim_size [trials]`, the tables of
//! docs/notes/simulations.md; claims on costs have theirs in the test `claims_on_costs_have_their_size`.

use exactfed::rng::Stream;
use exactfed::stats::verdict::{Doubt, Evidence, slope_weights};
use exactfed::stats::{log_means::LogMeans, verdict};

/// A distribution of squared errors: its name, and a draw with mean 1.
type Distribution = (&'static str, fn(&mut Stream) -> f64);

/// A draw of χ²₁.
fn square(rng: &mut Stream) -> f64 {
    let x = rng.gaussian();
    x * x
}

/// A draw of the lognormal distribution with mean 1 whose logarithm has the standard deviation `sigma`.
fn lognormal(rng: &mut Stream, sigma: f64) -> f64 {
    libm::exp(sigma * rng.gaussian() - 0.5 * sigma * sigma)
}

/// A draw of Pareto's distribution with mean 1: P(X > x) falls as x^−index.
fn pareto(rng: &mut Stream, index: f64) -> f64 {
    libm::exp(-libm::log(1.0 - rng.uniform()) / index) * (index - 1.0) / index
}

/// The squared error e² after sixty steps e ← (1 − γ(1 + τ z)) e + γ w from 0 at γ = 0.3, with standard normal z and w,
/// divided by its exact mean: an error under multiplicative noise, whose tail is heavy for large τ.
fn multiplicative(rng: &mut Stream, tau: f64) -> f64 {
    let step = 0.3;
    let mut error = 0.0;
    let mut square = 0.0;
    for _ in 0..60 {
        error = (1.0 - step * (1.0 + tau * rng.gaussian())) * error + step * rng.gaussian();
        square = ((1.0 - step) * (1.0 - step) + step * step * tau * tau) * square + step * step;
    }
    error * error / square
}

const DISTRIBUTIONS: [Distribution; 13] = [
    ("Gaussian, spread 10 %", |rng| 1.0 + 0.1 * rng.gaussian()),
    ("χ²₈", |rng| (0..8).map(|_| square(rng)).sum::<f64>() / 8.0),
    ("χ²₂", |rng| 0.5 * (square(rng) + square(rng))),
    ("χ²₁", square),
    ("χ² weighted 1, 0.1, 0.01", |rng| {
        (square(rng) + 0.1 * square(rng) + 0.01 * square(rng)) / 1.11
    }),
    ("lognormal, σ = 0.5", |rng| lognormal(rng, 0.5)),
    ("lognormal, σ = 1", |rng| lognormal(rng, 1.0)),
    ("lognormal, σ = 1.5", |rng| lognormal(rng, 1.5)),
    ("multiplicative noise, τ = 1", |rng| multiplicative(rng, 1.0)),
    ("multiplicative noise, τ = 1.5", |rng| multiplicative(rng, 1.5)),
    ("multiplicative noise, τ = 2", |rng| multiplicative(rng, 2.0)),
    ("Pareto, index 3", |rng| pareto(rng, 3.0)),
    ("Pareto, index 2.2", |rng| pareto(rng, 2.2)),
];

/// The numbers of runs of each sample.
const RUNS: [usize; 6] = [2, 3, 5, 10, 30, 100];

/// A kind of claim, on a weighted sum of the logarithms of the means of several samples.
struct Kind {
    name: &'static str,
    /// The weight of each sample.
    weights: Vec<f64>,
    /// Whether runs of the same number have noise in common in all samples.
    paired: bool,
}

/// A sample of n runs for each weight of a kind of claim; the means of all are equal, so that the weighted sum of their
/// logarithms is 0, the boundary of what is claimed.
fn sample(rng: &mut Stream, distribution: Distribution, kind: &Kind, n: usize) -> Vec<Vec<f64>> {
    let shared: Vec<f64> = (0..n).map(|_| distribution.1(rng)).collect();
    let mut one = |paired: bool| -> Vec<f64> {
        let own = |c: &f64| {
            if paired { c * distribution.1(rng).abs().sqrt() } else { distribution.1(rng) }
        };
        shared.iter().map(own).collect()
    };
    kind.weights.iter().map(|_| one(kind.paired)).collect()
}

/// The entry of a table: the percentage of samples whose interval lies above the truth and below it, with a star if
/// every wrong verdict came with a warning.
fn wrong_verdicts(
    rng: &mut Stream,
    distribution: Distribution,
    kind: &Kind,
    n: usize,
    trials: usize,
) -> String {
    // What "at most" and "at least" claim of the sum of logarithms, which is 0.
    let at_most = (f64::NEG_INFINITY, 0.0);
    let at_least = (0.0, f64::INFINITY);
    let mut above = 0;
    let mut below = 0;
    let mut warned = true;
    for _ in 0..trials {
        let all = sample(rng, distribution, kind, n);
        let points: Vec<(f64, &[f64])> =
            kind.weights.iter().copied().zip(all.iter().map(|x| &x[..])).collect();
        let Some(known) = LogMeans::new(&points) else { continue };
        for (region, count) in [(at_most, &mut above), (at_least, &mut below)] {
            let evidence = Evidence::from_log_means(&known, region);
            if evidence.alone() == verdict::Verdict::Refuted {
                *count += 1;
                warned &= evidence.doubt != Doubt::None;
            }
        }
    }
    let percent = |count: usize| 100.0 * count as f64 / trials as f64;
    let star = if warned && above + below > 0 { "\\*" } else { "" };
    format!("{:.1} + {:.1}{star}", percent(above), percent(below))
}

/// The entry of the table of vectors: the percentages of samples that wrongly refute and that wrongly support the claim
/// that the mean of a vector of `size` skewed entries is within a margin of its prediction, where it is at the margin:
/// one entry is a fifth above its prediction.
fn vectors(
    rng: &mut Stream,
    distribution: Distribution,
    size: usize,
    n: usize,
    trials: usize,
) -> String {
    let mut target = vec![1.0; size];
    target[0] = 1.0 / 1.2;
    let apart = (1.0 - target[0]) / target.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut supported = 0;
    let mut refuted = 0;
    for _ in 0..trials {
        let all: Vec<Vec<f64>> =
            (0..n).map(|_| (0..size).map(|_| distribution.1(rng)).collect()).collect();
        let evidence = Evidence::from_vectors(&all, &target, apart);
        supported += usize::from(evidence.alone() == verdict::Verdict::Supported);
        refuted += usize::from(evidence.alone() == verdict::Verdict::Refuted);
    }
    let percent = |count: usize| 100.0 * count as f64 / trials as f64;
    format!("{:.1} + {:.1}", percent(refuted), percent(supported))
}

fn main() {
    let trials = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(2000);
    let mut rng = Stream::shared_instance(17);
    let kinds = [
        Kind { name: "a mean against a number", weights: vec![1.0], paired: false },
        Kind { name: "a ratio, independent runs", weights: vec![1.0, -1.0], paired: false },
        Kind { name: "a ratio, common noise", weights: vec![1.0, -1.0], paired: true },
        Kind {
            name: "a slope through four cells, common noise",
            weights: slope_weights(&[1.0, 2.0, 4.0, 8.0]),
            paired: true,
        },
    ];
    let heads = RUNS.map(|n| format!("n = {n}")).join(" | ");
    let rule = RUNS.map(|_| "---").join(" | ");
    for kind in &kinds {
        println!("\n**{}**\n\n| distribution | {heads} |\n| --- | {rule} |", kind.name);
        for distribution in DISTRIBUTIONS {
            let cells = RUNS.map(|n| wrong_verdicts(&mut rng, distribution, kind, n, trials));
            let cells = cells.join(" | ");
            println!("| {} | {cells} |", distribution.0);
        }
    }
    for size in [1, 3] {
        println!("\n**a vector of size {size}**\n\n| distribution | {heads} |\n| --- | {rule} |");
        for distribution in DISTRIBUTIONS {
            let cells = RUNS.map(|n| vectors(&mut rng, distribution, size, n, trials)).join(" | ");
            println!("| {} | {cells} |", distribution.0);
        }
    }
}
