//! How often claims get a wrong verdict if replicates are added until they are decided, in the
//! hardest case, where the truth is at the boundary of what is claimed; and how many replicates are
//! saved where it is not. Compares the planned looks of `run --until-decided` with a single look
//! at the most replicates, and with adding replicates by hand until a claim is decided at 5 %.
//!
//! `cargo run --release --locked -p exactfed-tools --bin sequential_size [trials]`, the tables of
//! docs/notes/simulations.md, section *Replicates until claims are decided*.

use exactfed::rng::Stream;
use exactfed::stats::log_means::LogMeans;
use exactfed::stats::looks::{Look, Looks};
use exactfed::stats::verdict::{Evidence, LEVEL, Verdict, verdicts};

/// A distribution of squared errors: its name, its relative standard deviation, and a draw with
/// mean 1.
type Distribution = (&'static str, f64, fn(&mut Stream) -> f64);

const DISTRIBUTIONS: [Distribution; 2] = [
    ("Gaussian, spread 10 %", 0.1, |rng| 1.0 + 0.1 * rng.gaussian()),
    ("lognormal, σ = 1", 1.310_832, |rng| libm::exp(rng.gaussian() - 0.5)),
];

/// Replicates of the first look.
const FIRST: u64 = 10;
/// How many times as many there are at most.
const GROWTHS: [u64; 3] = [4, 16, 64];

/// Ways to look at claims.
const WAYS: [&str; 4] = ["one look at R", "planned looks", "doubled by hand", "10 more by hand"];

/// The looks of such a way.
fn looks_of(way: &str, most: u64) -> Vec<Look> {
    let at_level = |replicates| Look { replicates, level: LEVEL };
    match way {
        "one look at R" => vec![at_level(most)],
        "planned looks" => Looks { first: FIRST, most }.all(),
        "doubled by hand" => {
            let all = Looks { first: FIRST, most }.all();
            all.into_iter().map(|look| at_level(look.replicates)).collect()
        }
        _ => (1..=most / FIRST).map(|i| at_level(i * FIRST)).collect(),
    }
}

/// Looks at a family of claims, each with a sample, that its mean is at most 1, until all are
/// decided; returns the verdicts and the replicates of the last look.
fn verdicts_of(samples: &[Vec<f64>], looks: &[Look]) -> (Vec<Verdict>, u64) {
    let mut found = vec![Verdict::Inconclusive; samples.len()];
    let mut replicates = 0;
    for look in looks {
        if !found.contains(&Verdict::Inconclusive) {
            break;
        }
        replicates = look.replicates;
        let evidence = |sample: &Vec<f64>| {
            let known = LogMeans::new(&[(1.0, &sample[..replicates as usize])]);
            known.map_or(Evidence::undecided(f64::NAN, 1), |known| {
                Evidence::from_log_means(&known, (f64::NEG_INFINITY, 0.0))
            })
        };
        let family: Vec<Evidence> = samples.iter().map(evidence).collect();
        for (old, new) in found.iter_mut().zip(verdicts(&family, look.level)) {
            if *old == Verdict::Inconclusive {
                *old = new.verdict;
            }
        }
    }
    (found, replicates)
}

/// Samples of claims whose true mean is this.
fn samples(
    rng: &mut Stream,
    (_, _, draw): Distribution,
    claims: usize,
    mean: f64,
    n: u64,
) -> Vec<Vec<f64>> {
    (0..claims).map(|_| (0..n).map(|_| mean * draw(rng)).collect()).collect()
}

/// The percentage of trials in which some claim is wrongly refuted, and wrongly supported, if the
/// truth is at the boundary.
fn size(
    rng: &mut Stream,
    distribution: Distribution,
    claims: usize,
    (way, most): (&str, u64),
    trials: usize,
) -> String {
    let looks = looks_of(way, most);
    let (mut refuted, mut supported) = (0, 0);
    for _ in 0..trials {
        let (found, _) = verdicts_of(&samples(rng, distribution, claims, 1.0, most), &looks);
        refuted += usize::from(found.contains(&Verdict::Refuted));
        supported += usize::from(found.contains(&Verdict::Supported));
    }
    let percent = |count: usize| 100.0 * count as f64 / trials as f64;
    format!("{:.1} + {:.1}", percent(refuted), percent(supported))
}

fn sizes(rng: &mut Stream, trials: usize) {
    let heads = GROWTHS.map(|growth| format!("R = {growth} r")).join(" | ");
    println!("| errors | claims | looks | {heads} |\n| --- | --- | --- | --- | --- | --- |");
    for distribution in DISTRIBUTIONS {
        for claims in [1, 10] {
            // Ten claims with many looks would take a minute and show the same.
            for way in &WAYS[..if claims == 1 { 4 } else { 3 }] {
                let cells = GROWTHS
                    .map(|growth| size(rng, distribution, claims, (way, growth * FIRST), trials));
                println!("| {} | {claims} | {way} | {} |", distribution.0, cells.join(" | "));
            }
        }
    }
}

/// How often one claim is rightly supported, and with how many replicates in the mean, if its true
/// mean is below the boundary by so many standard deviations.
fn powers(rng: &mut Stream, trials: usize) {
    let most = 16 * FIRST;
    println!("\n| errors | distance | one look at R = {most} | planned looks | mean replicates |");
    println!("| --- | --- | --- | --- | --- |");
    for distribution in DISTRIBUTIONS {
        for distance in [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0] {
            let mean = libm::exp(-distance * distribution.1);
            let (mut single, mut planned, mut replicates) = (0, 0, 0);
            for _ in 0..trials {
                let all = samples(rng, distribution, 1, mean, most);
                let (one, _) = verdicts_of(&all, &looks_of(WAYS[0], most));
                let (several, needed) = verdicts_of(&all, &looks_of(WAYS[1], most));
                single += usize::from(one[0] == Verdict::Supported);
                planned += usize::from(several[0] == Verdict::Supported);
                replicates += needed;
            }
            let percent = |count: usize| 100.0 * count as f64 / trials as f64;
            println!(
                "| {} | {distance} | {:.0} % | {:.0} % | {:.0} |",
                distribution.0,
                percent(single),
                percent(planned),
                replicates as f64 / trials as f64
            );
        }
    }
}

fn main() {
    let trials = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(4000);
    let mut rng = Stream::shared_instance(23);
    sizes(&mut rng, trials);
    powers(&mut rng, trials);
}
