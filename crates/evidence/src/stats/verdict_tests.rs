//! Verdicts on samples whose parameter is known: how often they are wrong, and how often they decide.

use super::*;
use crate::stats::distance::is_resolved;
use crate::stats::{share, standard_deviation};
use exactfed_core::rng::Stream;

fn sample(rng: &mut Stream, n: usize, mean: f64) -> Vec<f64> {
    (0..n).map(|_| mean + rng.gaussian()).collect()
}

/// The evidence of a sample that its mean lies in a region, by Student's test.
fn of_mean(sample: &[f64], region: Region) -> Evidence {
    let n = sample.len();
    let error = if n < 2 { f64::NAN } else { standard_deviation(sample) / (n as f64).sqrt() };
    Evidence::student(mean(sample), error, n, region)
}

/// How often samples of n with this mean support that it lies in a region, or refute it.
fn rates(rng: &mut Stream, n: usize, mean: f64, region: Region) -> (f64, f64) {
    let mut rate = |p: fn(&Evidence) -> f64| {
        share(4000, || p(&of_mean(&sample(rng, n, mean), region)) <= 0.05)
    };
    (rate(|e| e.support), rate(|e| e.refute))
}

/// At the region's end either answer comes at most as often as the level
/// says, inside and outside the right one nearly always.
#[test]
fn one_sided_claims_have_their_size_and_power() {
    let mut rng = Stream::shared_instance(1);
    let mut rates = |mean: f64| rates(&mut rng, 12, mean, (f64::NEG_INFINITY, 0.0));
    let end = rates(0.0);
    let inside = rates(-1.2);
    let outside = rates(1.2);
    assert!((end.0 - 0.05).abs() < 0.014 && (end.1 - 0.05).abs() < 0.014, "{end:?}");
    assert!(inside.0 > 0.95 && inside.1 < 0.005, "{inside:?}");
    assert!(outside.1 > 0.95 && outside.0 < 0.005, "{outside:?}");
}

#[test]
fn equivalence_has_its_size_and_power() {
    let mut rng = Stream::shared_instance(2);
    let mut rates = |mean: f64, n: usize| rates(&mut rng, n, mean, (-0.5, 0.5));
    let end = rates(0.5, 100);
    assert!((end.0 - 0.05).abs() < 0.016, "{end:?}");
    assert!(end.1 <= 0.065, "the two-sided price is paid: {end:?}");
    assert!(rates(0.0, 100).0 > 0.99 && rates(1.0, 100).1 > 0.99);
    assert!(rates(0.0, 5).0 < 0.05, "five runs cannot show equivalence here");
}

#[test]
fn vector_distances_are_covered_and_keep_their_size() {
    let mut rng = Stream::shared_instance(3);
    let target = [3.0, 0.0, 4.0];
    // The truth is 20 % away, in a direction that the test does not know.
    let truth = [3.0, 1.0, 4.0];
    let mut draw = |n: usize| -> Vec<Vec<f64>> {
        (0..n).map(|_| truth.iter().map(|t| t + 1.5 * rng.gaussian()).collect()).collect()
    };
    let mut covered = 0;
    let mut wrong = 0;
    for _ in 0..1500 {
        let e = Evidence::from_vectors(&draw(40), &target, 0.2);
        covered += u32::from(e.interval.0 <= 0.2 && 0.2 <= e.interval.1);
        wrong += u32::from(e.support <= 0.05) + u32::from(e.refute <= 0.05);
    }
    assert!(covered >= 1425, "{covered} of 1500");
    assert!(wrong <= 90, "{wrong} of 3000");
    let far = Evidence::from_vectors(&draw(400), &target, 0.05);
    let near = Evidence::from_vectors(&draw(400), &target, 0.6);
    assert!(far.refute < 1e-3 && near.support < 1e-6, "{far:?} {near:?}");
}

/// Of vectors whose mean is 0 or of the size of their errors, a claim on the norm is wrong in at
/// most a twentieth of the cases, and one that is far from the boundary is decided.
#[test]
fn norms_of_unresolved_means_are_covered() {
    let mut rng = Stream::shared_instance(9);
    let mut wrong = 0;
    let mut resolved = 0;
    let n = 20;
    for case in 0..1500 {
        let size = [0.0, 0.1, 0.5][case % 3];
        let sample: Vec<Vec<f64>> = (0..n)
            .map(|_| (0..3).map(|i| f64::from(i == 0) * size + rng.gaussian()).collect())
            .collect();
        // ‖E x‖ is at the boundary of the claim, where either verdict is wrong, or is 0, below it.
        let bound = if size == 0.0 { 0.02 } else { size };
        let found = Evidence::from_norm(&sample, &unit(bound), (f64::NEG_INFINITY, 0.0));
        wrong += u32::from(found.refute <= 0.05) + u32::from(size > 0.0 && found.support <= 0.05);
        assert!(!(size == 0.0 && is_resolved(&sample) && found.refute > 0.05), "{found:?}");
        resolved += u32::from(size == 0.0 && is_resolved(&sample));
        let far = Evidence::from_norm(&sample, &unit(20.0), (f64::NEG_INFINITY, 0.0));
        assert!(far.support < 1e-3 && far.interval.0 < far.estimate, "{far:?}");
    }
    assert!(wrong <= 90, "{wrong} of 2500");
    assert!(resolved <= 6, "{resolved} of 500 means of 0 count as resolved");
    let same = vec![vec![1.0, 0.0]; 5];
    let certain = Evidence::from_norm(&same, &unit(2.0), (f64::NEG_INFINITY, 0.0));
    assert_eq!((certain.support, certain.refute), (0.0, 1.0));
}

/// A number that is known exactly.
fn unit(estimate: f64) -> Unit {
    Unit { estimate, ends: (estimate, estimate), outside: 0.0 }
}

#[test]
fn families_make_few_mistakes() {
    let mut rng = Stream::shared_instance(6);
    let mistakes = share(1000, || {
        let family: Vec<Evidence> = (0..10)
            .map(|_| of_mean(&sample(&mut rng, 10, 0.0), (f64::NEG_INFINITY, 0.0)))
            .collect();
        verdicts(&family, LEVEL).iter().any(|j| j.verdict != Verdict::Inconclusive)
    });
    assert!(mistakes < 0.05 + 0.021, "{mistakes}");
}

/// Four out of five are decided with as many replicates as were asked for.
#[test]
fn the_replicates_that_are_asked_for_decide() {
    let mut rng = Stream::shared_instance(7);
    let region = (f64::NEG_INFINITY, 0.0);
    let first = Evidence::student(-0.3, 1.0 / 20f64.sqrt(), 20, region);
    assert_eq!(verdicts(&[first], LEVEL)[0].verdict, Verdict::Inconclusive);
    let n = needed(&first, 1).unwrap() as usize;
    let decided = share(1000, || {
        let e = of_mean(&sample(&mut rng, n, -0.3), region);
        verdicts(&[e], LEVEL)[0].verdict == Verdict::Supported
    });
    assert!((0.76..0.88).contains(&decided), "{decided} with {n}");
}

#[test]
fn exact_numbers_are_decided() {
    let yes = Evidence::student(1.0, 0.0, 5, (0.5, 1.5));
    let no = Evidence::exact(2.0, (0.5, 1.5));
    assert_eq!(
        verdicts(&[yes, no], LEVEL),
        [(Verdict::Supported, 0.5 * LEVEL), (Verdict::Refuted, LEVEL)]
            .map(|(verdict, level)| Judgement { verdict, p: 0.0, level })
    );
    let one = of_mean(&[1.0], (0.5, 1.5));
    assert_eq!(verdicts(&[one], LEVEL)[0].verdict, Verdict::Inconclusive);
    assert_eq!(Evidence::all(&[yes, no], false).unwrap().refute, 0.0);
    assert_eq!(Evidence::all(&[yes, no], false).unwrap().estimate, 2.0);
    let further = Evidence::exact(3.0, (0.5, 1.5));
    assert_eq!(Evidence::all(&[no, further, no], false).unwrap().estimate, 3.0);
    assert_eq!(Evidence::all(&[yes], true).unwrap().support, 1.0, "a part is untested");
    assert_eq!(Evidence::all(&[yes, no], true).unwrap().refute, 0.0);
    assert!(Verdict::ALL.iter().enumerate().all(|(i, (verdict, _))| *verdict as usize == i));
}
