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

/// A distribution of squared errors.
#[derive(Clone, Copy)]
struct Distribution {
    name: &'static str,
    /// The standard deviation over the mean.
    spread: f64,
    /// Draws a number with mean 1.
    draw: fn(&mut Stream) -> f64,
}

const DISTRIBUTIONS: [Distribution; 2] = [
    Distribution {
        name: "Gaussian, spread 10 %",
        spread: 0.1,
        draw: |rng| 1.0 + 0.1 * rng.gaussian(),
    },
    Distribution {
        name: "lognormal, σ = 1",
        spread: 1.310_832,
        draw: |rng| libm::exp(rng.gaussian() - 0.5),
    },
];

/// The replicates of the first look.
const FIRST: u64 = 10;
/// The most replicates R, as multiples of [`FIRST`].
const GROWTHS: [u64; 3] = [4, 16, 64];

/// The ways to look at claims that are compared; "by hand" is at a level that knows of no other look.
const WAYS: [&str; 4] = ["one look at R", "planned looks", "doubled by hand", "10 more by hand"];

/// The looks, up to `most` replicates, of one of the [`WAYS`].
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

/// Looks at a family of claims until all are decided. Each claim has a sample, and says that the mean is at most 1.
/// Returns the verdict of each claim and the replicates of the last look that was taken.
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

/// A sample of n replicates for each of so many claims, with this true mean.
fn samples(
    rng: &mut Stream,
    distribution: Distribution,
    claims: usize,
    mean: f64,
    n: u64,
) -> Vec<Vec<f64>> {
    let mut sample = || (0..n).map(|_| mean * (distribution.draw)(rng)).collect();
    (0..claims).map(|_| sample()).collect()
}

/// The percentages of trials in which some of the claims is wrongly refuted and in which some is wrongly supported, as
/// text, where all true means are 1, at the boundary of what is claimed; `looks` are up to `most` replicates.
fn size(
    rng: &mut Stream,
    distribution: Distribution,
    claims: usize,
    looks: &[Look],
    most: u64,
    trials: usize,
) -> String {
    let mut refuted = 0;
    let mut supported = 0;
    for _ in 0..trials {
        let (found, _) = verdicts_of(&samples(rng, distribution, claims, 1.0, most), looks);
        refuted += usize::from(found.contains(&Verdict::Refuted));
        supported += usize::from(found.contains(&Verdict::Supported));
    }
    let percent = |count: usize| 100.0 * count as f64 / trials as f64;
    format!("{:.1} + {:.1}", percent(refuted), percent(supported))
}

/// Prints the table of how often some claim of a family gets a wrong verdict, by the way of looking and the most
/// replicates.
fn sizes(rng: &mut Stream, trials: usize) {
    let heads = GROWTHS.map(|growth| format!("R = {growth} r")).join(" | ");
    println!("| errors | claims | looks | {heads} |\n| --- | --- | --- | --- | --- | --- |");
    for distribution in DISTRIBUTIONS {
        for claims in [1, 10] {
            // Ten claims with many looks would take a minute and show the same.
            for way in &WAYS[..if claims == 1 { 4 } else { 3 }] {
                let cells = GROWTHS.map(|growth| {
                    let most = growth * FIRST;
                    size(rng, distribution, claims, &looks_of(way, most), most, trials)
                });
                println!("| {} | {claims} | {way} | {} |", distribution.name, cells.join(" | "));
            }
        }
    }
}

/// Prints the table of how often one claim is rightly supported, and with how many replicates in the mean, if its true
/// mean is below the boundary by several numbers of standard deviations.
fn powers(rng: &mut Stream, trials: usize) {
    let most = 16 * FIRST;
    println!("\n| errors | distance | one look at R = {most} | planned looks | mean replicates |");
    println!("| --- | --- | --- | --- | --- |");
    for distribution in DISTRIBUTIONS {
        for distance in [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0] {
            let mean = libm::exp(-distance * distribution.spread);
            let mut single = 0;
            let mut planned = 0;
            let mut replicates = 0;
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
                distribution.name,
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
