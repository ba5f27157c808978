//! How often the statistics of `exactfed diff` err: the coverage of the interval of a shift
//! between paired samples, and the false alarms of diffs in which nothing changed. Prints both
//! tables of docs/notes/diff.md.
//!
//! `cargo run --release --locked -p exactfed-tools --bin diff_size`

use exactfed::compare::{
    ChangeVerdict, Options, SCHEMA, Side, SideCell, SideExperiment, SideRuns, compare,
};
use exactfed::plan::CellId;
use exactfed::rng::Stream;
use exactfed::stats::paired::Shift;
use exactfed::trace::TraceDigest;

/// A function that draws from a distribution.
type Draw = fn(&mut Stream) -> f64;

/// A draw of Student's t with three degrees of freedom.
fn student(rng: &mut Stream) -> f64 {
    let squares: f64 = (0..3).map(|_| rng.gaussian()).map(|x| x * x).sum();
    rng.gaussian() / (squares / 3.0).sqrt()
}

/// The logarithm of a draw of the exponential distribution.
fn log_exponential(rng: &mut Stream) -> f64 {
    libm::log(-libm::log(1.0 - rng.uniform()))
}

/// Distributions of differences, each with mean 0.
const DIFFERENCES: [(&str, Draw); 4] = [
    ("Gaussian", |rng| rng.gaussian()),
    ("Student's with 3 degrees of freedom", student),
    ("difference of two log exponentials", |rng| log_exponential(rng) - log_exponential(rng)),
    ("exponential, centred", |rng| -libm::log(1.0 - rng.uniform()) - 1.0),
];

/// Distributions of log errors before and after a change that changes nothing.
const LOG_ERRORS: [Draw; 3] = [|rng| rng.gaussian(), student, log_exponential];

/// The share of 95 % intervals of the shift of n differences, over so many trials, that contain the true shift 0, and
/// their mean width, where a width counts at most as 100.
fn coverage(draw: Draw, n: usize, trials: u32) -> (f64, f64) {
    let mut rng = Stream::shared_instance(11);
    let mut resampling = Stream::shared_instance(12);
    let mut covered = 0;
    let mut width = 0.0;
    for _ in 0..trials {
        let sample: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
        let Some(shift) = Shift::new(&sample, 1.0, |n| resampling.index(n)) else { continue };
        let (low, high) = shift.interval;
        covered += u32::from(low <= 0.0 && 0.0 <= high);
        width += (high - low).min(100.0) / f64::from(trials);
    }
    (f64::from(covered) / f64::from(trials), width)
}

/// A side of a diff with one experiment, which has a cell for each list of final errors; all its cells have the
/// digest of this text, so that sides with other texts are compared.
fn side(cells: Vec<Vec<Option<f64>>>, digest: &str) -> Side {
    let cell = |(i, finals): (usize, Vec<Option<f64>>)| {
        let runs = SideRuns::done(TraceDigest::of(digest), finals);
        (CellId::of(&i.to_string()), SideCell { label: "a".into(), runs, ..SideCell::default() })
    };
    let cells = cells.into_iter().enumerate().map(cell).collect();
    let experiment = SideExperiment { schema: SCHEMA, cells, ..SideExperiment::default() };
    Side { experiments: [("e".to_owned(), experiment)].into(), ..Side::default() }
}

/// How many of so many diffs find a change for the better or the worse in any of their pairs of cells, although both
/// cells of each pair are draws of the same distribution, with n runs each.
fn false_alarms(diffs: usize, pairs: usize, n: usize) -> usize {
    let mut rng = Stream::shared_instance(2024);
    let mut finals = |draw: Draw| -> Vec<Option<f64>> {
        (0..n).map(|_| Some(libm::exp(draw(&mut rng)))).collect()
    };
    let mut raises_alarm = |diff: usize| {
        let mut old = Vec::new();
        let mut new = Vec::new();
        for pair in 0..pairs {
            let draw = LOG_ERRORS[(diff + pair) % LOG_ERRORS.len()];
            old.push(finals(draw));
            new.push(finals(draw));
        }
        let found = compare(&side(old, "a"), &side(new, "b"), &Options::default());
        assert_eq!(found.tested, pairs);
        let is_alarm = |v| matches!(v, ChangeVerdict::Worse | ChangeVerdict::Better);
        found.changed.iter().any(|change| is_alarm(change.verdict))
    };
    (0..diffs).filter(|diff| raises_alarm(*diff)).count()
}

fn main() {
    println!("Coverage of 95 % intervals, and their mean width:");
    for (name, draw) in DIFFERENCES {
        for n in [4, 5, 7, 10, 20] {
            let (share, width) = coverage(draw, n, 4000);
            println!("{name}, n = {n}: {:.1} %, width {width:.2}", 100.0 * share);
        }
    }
    println!("\nFalse alarms:");
    for n in [3, 5, 10, 20] {
        for (diffs, pairs) in [(2000, 1), (400, 10), (100, 200)] {
            let found = false_alarms(diffs, pairs, n);
            println!("n = {n}, {pairs} pairs per diff: {found} of {diffs} diffs");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three standard errors of 95 % below it.
    #[test]
    fn intervals_cover_what_they_say() {
        let trials = 600;
        let least = 0.95 - 3.0 * (0.95 * 0.05 / f64::from(trials)).sqrt();
        for (name, draw) in &DIFFERENCES[..3] {
            for n in [4, 5, 10] {
                let (share, _) = coverage(*draw, n, trials);
                assert!(share >= least, "{name}, n = {n}: {share}");
            }
        }
    }

    /// Differences of unchanged pairs are symmetric; those of changed ones may be skewed.
    #[test]
    fn skewed_differences_are_nearly_covered() {
        let (share, _) = coverage(DIFFERENCES[3].1, 10, 600);
        assert!((0.90..0.98).contains(&share), "{share}");
    }

    /// The largest count that a rate of 5 % exceeds less than once in a thousand, by
    /// the binomial distribution.
    fn bound(trials: usize) -> usize {
        let mut mass = libm::pow(0.95, trials as f64);
        let mut below = 0.0;
        let rate = 0.05;
        for k in 0..=trials {
            below += mass;
            if below >= 0.999 {
                return k;
            }
            mass *= (trials - k) as f64 / (k + 1) as f64 * rate / (1.0 - rate);
        }
        trials
    }

    #[test]
    fn unchanged_pairs_raise_alarms_at_most_at_the_nominal_rate() {
        assert_eq!(bound(200), 21);
        for n in [5, 10] {
            // One pair, ten pairs, and 200 pairs that are tested together.
            for (diffs, pairs) in [(200, 1), (100, 10), (12, 200)] {
                let found = false_alarms(diffs, pairs, n);
                let most = bound(diffs);
                assert!(found <= most, "n = {n}: {found} of {diffs} with {pairs} pairs");
            }
        }
    }
}
