//! Evidence for a claim that a number lies in a region, and verdicts over several
//! claims at once.

use super::{holm, mean, standard_deviation, student_95};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// What a sample says of the claim that a parameter lies in a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error; 0 where nothing is random.
    pub error: f64,
    /// Ends of the 95 % interval.
    pub interval: (f64, f64),
    /// p-value of the hypothesis that the parameter lies outside.
    pub support: f64,
    /// p-value of the hypothesis that it lies inside.
    pub refute: f64,
    /// How far the estimate is from the region's nearest end.
    pub distance: f64,
    /// Sample size.
    pub n: usize,
}

/// A closed interval, either end perhaps infinite.
pub type Region = (f64, f64);

fn inside(x: f64, (low, high): Region) -> bool {
    low <= x && x <= high
}

/// P(T > t) under Student's law with n − 1 degrees of freedom; 1 where there is
/// no such law.
fn upper(t: f64, n: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, n as f64 - 1.0) {
        Ok(_) if t == f64::INFINITY => 0.0,
        Ok(law) if !t.is_nan() => law.cdf(-t),
        _ => 1.0,
    }
}

impl Evidence {
    /// Of a number that is not random.
    pub fn exact(estimate: f64, region: Region) -> Self {
        let holds = inside(estimate, region);
        let p = |x: bool| if x { 0.0 } else { 1.0 };
        let distance = (estimate - region.0).abs().min((estimate - region.1).abs());
        Self {
            estimate,
            error: 0.0,
            interval: (estimate, estimate),
            support: p(holds),
            refute: p(!holds),
            distance,
            n: 1,
        }
    }

    /// Of an estimate with a standard error from n replicates, by Student's t:
    /// inside by two one-sided tests, outside by one of two.
    pub fn student(estimate: f64, error: f64, n: usize, region: Region) -> Self {
        if error == 0.0 {
            return Self { n, ..Self::exact(estimate, region) };
        }
        let (low, high) = region;
        let t = |x: f64| x / error;
        let support = upper(t(estimate - low), n).max(upper(t(high - estimate), n));
        let sides = f64::from(u8::from(low.is_finite())) + f64::from(u8::from(high.is_finite()));
        let beyond = upper(t(low - estimate), n).min(upper(t(estimate - high), n));
        let half = student_95(n) * error;
        Self {
            estimate,
            error,
            interval: (estimate - half, estimate + half),
            support,
            refute: (sides * beyond).min(1.0),
            distance: (estimate - low).abs().min((estimate - high).abs()),
            n,
        }
    }

    /// Of the mean of a sample.
    pub fn of_mean(sample: &[f64], region: Region) -> Self {
        let error = standard_deviation(sample) / (sample.len() as f64).sqrt();
        let error = if sample.len() < 2 { f64::NAN } else { error };
        Self::student(mean(sample), error, sample.len(), region)
    }

    /// Of ‖E x − target‖/‖target‖ ≤ margin, from n vectors x: Scheffé's region
    /// around the mean (F with D and n − D degrees of freedom, the largest variance
    /// in all directions), so that it holds whatever the direction of the difference.
    pub fn of_distance(sample: &[Vec<f64>], target: &[f64], margin: f64) -> Self {
        let (n, d) = (sample.len(), target.len());
        let size = target.iter().fold(0.0, |sum, x| sum + x * x).sqrt();
        let mut apart: Vec<f64> = target.iter().map(|x| -x).collect();
        for x in sample {
            apart.iter_mut().zip(x).for_each(|(sum, x)| *sum += x / n as f64);
        }
        let estimate = apart.iter().fold(0.0, |sum, x| sum + x * x).sqrt() / size;
        if sample.windows(2).all(|pair| pair[0] == pair[1]) {
            return Self { n, ..Self::exact(estimate, (0.0, margin)) };
        }
        let error = (largest_variance(sample, &apart, target) / n as f64).sqrt() / size;
        let law = (n > d).then(|| FisherSnedecor::new(d as f64, (n - d) as f64).ok()).flatten();
        let scale = if n > d { (n - d) as f64 / (d as f64 * (n - 1) as f64) } else { f64::NAN };
        let tail = |x: f64| match &law {
            Some(law) if x > 0.0 && x.is_finite() => law.sf(scale * (x / error) * (x / error)),
            _ => 1.0,
        };
        let radius =
            law.as_ref().map_or(f64::NAN, |law| (law.inverse_cdf(0.95) / scale).sqrt() * error);
        Self {
            estimate,
            error,
            interval: ((estimate - radius).max(0.0), estimate + radius),
            support: tail(margin - estimate),
            refute: tail(estimate - margin),
            distance: (estimate - margin).abs(),
            n,
        }
    }

    /// Of a claim that holds where all of these hold: it is supported as surely
    /// as the least of them, and refuted by any of them (Bonferroni). The estimate
    /// shown is that of the part with the least support.
    pub fn all(parts: &[Self]) -> Option<Self> {
        let weakest = parts.iter().max_by(|a, b| {
            (a.support, b.refute)
                .partial_cmp(&(b.support, a.refute))
                .unwrap_or(std::cmp::Ordering::Equal)
        })?;
        let least = parts.iter().map(|e| e.refute).fold(1.0, f64::min);
        let refute = (least * parts.len() as f64).min(1.0);
        let support = parts.iter().map(|e| e.support).fold(0.0, f64::max);
        Some(Self { support, refute, ..*weakest })
    }

    /// The verdict on this evidence by itself.
    pub fn alone(&self) -> Verdict {
        match self.p() <= LEVEL {
            true if self.support <= self.refute => Verdict::Supported,
            true => Verdict::Refuted,
            false => Verdict::Inconclusive,
        }
    }

    /// p-value of the claim's question, which has two answers.
    pub fn p(&self) -> f64 {
        (2.0 * self.support.min(self.refute)).min(1.0)
    }
}

/// The largest variance of a sample in any direction.
fn largest_variance(sample: &[Vec<f64>], apart: &[f64], target: &[f64]) -> f64 {
    let d = target.len();
    let centred: Vec<Vec<f64>> =
        sample.iter().map(|x| (0..d).map(|i| x[i] - apart[i] - target[i]).collect()).collect();
    // Power iteration from the direction of the largest variance of an entry.
    let variance = |i: usize| centred.iter().map(|x| x[i] * x[i]).sum::<f64>();
    let widest = (0..d).max_by(|&i, &j| variance(i).total_cmp(&variance(j)));
    let mut direction: Vec<f64> =
        (0..d).map(|i| if Some(i) == widest { 1.0 } else { 0.1 }).collect();
    let mut largest = 0.0;
    for _ in 0..ITERATIONS {
        let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|x| *x /= norm);
        let mut next = vec![0.0; d];
        for x in &centred {
            let along: f64 = x.iter().zip(&direction).map(|(x, u)| x * u).sum();
            next.iter_mut().zip(x).for_each(|(sum, x)| *sum += along * x);
        }
        largest = next.iter().zip(&direction).map(|(x, u)| x * u).sum();
        direction = next;
    }
    largest / (sample.len() as f64 - 1.0)
}

/// Steps of a power iteration.
const ITERATIONS: usize = 100;

/// What is known of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It holds.
    Supported,
    /// It does not hold.
    Refuted,
    /// The runs do not tell.
    Inconclusive,
}

impl Verdict {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Family-wise level of the verdicts of an experiment.
pub const LEVEL: f64 = 0.05;

/// Verdicts over claims that are tested together, with Holm's adjusted p-values.
pub fn verdicts(evidence: &[Evidence]) -> Vec<(Verdict, f64)> {
    let p: Vec<f64> = evidence.iter().map(Evidence::p).collect();
    let told = |(evidence, p): (&Evidence, f64)| {
        let verdict = match p <= LEVEL {
            true if evidence.support <= evidence.refute => Verdict::Supported,
            true => Verdict::Refuted,
            false => Verdict::Inconclusive,
        };
        (verdict, p)
    };
    evidence.iter().zip(holm(&p)).map(told).collect()
}

/// Replicates that would decide an inconclusive claim four times out of five if
/// the parameter were what is estimated, among `together` claims; `None` if the
/// estimate lies on the region's end or nothing is known of its error.
pub fn needed(evidence: &Evidence, together: usize) -> Option<u64> {
    if !(evidence.error > 0.0 && evidence.distance > 0.0 && evidence.distance.is_finite()) {
        return None;
    }
    let law = StudentsT::new(0.0, 1.0, evidence.n as f64 - 1.0).ok()?;
    let reach = law.inverse_cdf(1.0 - LEVEL / (2.0 * together.max(1) as f64)) + 0.8416;
    let ratio = reach * evidence.error / evidence.distance;
    let n = (evidence.n as f64 * ratio * ratio).ceil();
    (n < 1e12).then_some((n as u64).max(evidence.n as u64 + 1))
}

/// log(mean a / mean b) over samples paired by index, with its standard error
/// from the linearised logarithm.
pub fn log_ratio(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let terms: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / mean_a - b / mean_b).collect();
    (libm::log(mean_a / mean_b), standard_error(&terms))
}

/// log(mean a / b) of a sample and a number.
pub fn log_ratio_to(a: &[f64], b: f64) -> (f64, f64) {
    let mean_a = mean(a);
    let terms: Vec<f64> = a.iter().map(|a| a / mean_a).collect();
    (libm::log(mean_a / b), standard_error(&terms))
}

/// The slope of log(mean y) over log x, by least squares, with its standard
/// error: samples are paired by index over the points, since streams are common.
pub fn log_slope(points: &[(f64, Vec<f64>)]) -> (f64, f64) {
    let k = points.len() as f64;
    let x: Vec<f64> = points.iter().map(|(x, _)| libm::log(*x)).collect();
    let centre = mean(&x);
    let spread: f64 = x.iter().map(|x| (x - centre) * (x - centre)).sum();
    let weights: Vec<f64> = x.iter().map(|x| (x - centre) / spread).collect();
    let means: Vec<f64> = points.iter().map(|(_, y)| mean(y)).collect();
    let slope = weights.iter().zip(&means).map(|(w, m)| w * libm::log(*m)).sum();
    let n = points.iter().map(|(_, y)| y.len()).min().unwrap_or(0);
    let term = |r: usize| {
        let parts = points.iter().zip(&weights).zip(&means);
        parts.map(|(((_, y), w), m)| w * y[r] / m).sum::<f64>()
    };
    let terms: Vec<f64> = (0..n).map(term).collect();
    if k < 2.0 { (f64::NAN, f64::NAN) } else { (slope, standard_error(&terms)) }
}

/// The standard error of a mean; 0 if runs do not differ but for rounding, and
/// for a single run without noise.
fn standard_error(terms: &[f64]) -> f64 {
    if terms.len() < 2 {
        return f64::NAN;
    }
    let error = standard_deviation(terms) / (terms.len() as f64).sqrt();
    let size = terms.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if error <= 1e-12 * size { 0.0 } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn share(trials: u32, mut hit: impl FnMut() -> bool) -> f64 {
        f64::from((0..trials).map(|_| u32::from(hit())).sum::<u32>()) / f64::from(trials)
    }

    fn sample(rng: &mut Stream, n: usize, mean: f64) -> Vec<f64> {
        (0..n).map(|_| mean + rng.gaussian()).collect()
    }

    /// At the region's end either answer comes at most as often as the level
    /// says, inside and outside the right one nearly always.
    #[test]
    fn one_sided_claims_have_their_size_and_power() {
        let mut rng = Stream::shared_instance(1);
        let region = (f64::NEG_INFINITY, 0.0);
        let mut rate = |mean: f64, right: bool| {
            share(4000, || {
                let e = Evidence::of_mean(&sample(&mut rng, 12, mean), region);
                if right { e.support <= 0.05 } else { e.refute <= 0.05 }
            })
        };
        assert!((rate(0.0, true) - 0.05).abs() < 0.014);
        assert!((rate(0.0, false) - 0.05).abs() < 0.014);
        assert!(rate(-1.2, true) > 0.95 && rate(1.2, false) > 0.95);
        assert!(rate(-1.2, false) < 0.005 && rate(1.2, true) < 0.005);
    }

    #[test]
    fn equivalence_has_its_size_and_power() {
        let mut rng = Stream::shared_instance(2);
        let region = (-0.5, 0.5);
        let mut rate = |mean: f64, n: usize, right: bool| {
            share(3000, || {
                let e = Evidence::of_mean(&sample(&mut rng, n, mean), region);
                if right { e.support <= 0.05 } else { e.refute <= 0.05 }
            })
        };
        assert!((rate(0.5, 100, true) - 0.05).abs() < 0.016);
        assert!(rate(0.5, 100, false) <= 0.065, "the two-sided price is paid");
        assert!(rate(0.0, 100, true) > 0.99 && rate(1.0, 100, false) > 0.99);
        assert!(rate(0.0, 5, true) < 0.05, "five runs cannot show equivalence here");
    }

    #[test]
    fn vector_distances_are_covered_and_keep_their_size() {
        let mut rng = Stream::shared_instance(3);
        let target = [3.0, 0.0, 4.0];
        // The truth is 20 % away, in a direction that no one told.
        let truth = [3.0, 1.0, 4.0];
        let mut draw = |n: usize| -> Vec<Vec<f64>> {
            (0..n).map(|_| truth.iter().map(|t| t + 1.5 * rng.gaussian()).collect()).collect()
        };
        let (mut covered, mut wrong) = (0, 0);
        for _ in 0..1500 {
            let e = Evidence::of_distance(&draw(40), &target, 0.2);
            covered += u32::from(e.interval.0 <= 0.2 && 0.2 <= e.interval.1);
            wrong += u32::from(e.support <= 0.05) + u32::from(e.refute <= 0.05);
        }
        assert!(covered >= 1425, "{covered} of 1500");
        assert!(wrong <= 90, "{wrong} of 3000");
        let far = Evidence::of_distance(&draw(400), &target, 0.05);
        let near = Evidence::of_distance(&draw(400), &target, 0.6);
        assert!(far.refute < 1e-3 && near.support < 1e-6, "{far:?} {near:?}");
    }

    #[test]
    fn slopes_of_common_noise_are_covered() {
        let mut rng = Stream::shared_instance(4);
        let hits = share(2000, || {
            let common: Vec<f64> = (0..15).map(|_| rng.gaussian()).collect();
            let points: Vec<(f64, Vec<f64>)> = [0.1, 0.2, 0.4, 0.8]
                .iter()
                .map(|x: &f64| {
                    let y = |c: &f64| x * x * libm::exp(0.2 * (c + 0.5 * rng.gaussian()));
                    (*x, common.iter().map(y).collect())
                })
                .collect();
            let (slope, error) = log_slope(&points);
            let e = Evidence::student(slope, error, 15, (1.9, 2.1));
            e.interval.0 <= 2.0 && 2.0 <= e.interval.1
        });
        assert!((hits - 0.95).abs() < 0.02, "{hits}");
    }

    /// Ratios of means of skewed samples: the intervals that claims rest on.
    #[test]
    fn ratios_of_skewed_samples_are_covered() {
        let mut rng = Stream::shared_instance(5);
        let hits = share(2000, || {
            let chi = |rng: &mut Stream| (0..4).map(|_| rng.gaussian().powi(2)).sum::<f64>();
            let a: Vec<f64> = (0..30).map(|_| chi(&mut rng)).collect();
            let b: Vec<f64> = (0..30).map(|_| 2.0 * chi(&mut rng)).collect();
            let (log, error) = log_ratio(&a, &b);
            let e = Evidence::student(log, error, 30, (f64::NEG_INFINITY, 0.0));
            e.interval.0 <= libm::log(0.5) && libm::log(0.5) <= e.interval.1
        });
        assert!((hits - 0.95).abs() < 0.02, "{hits}");
    }

    #[test]
    fn families_make_few_mistakes() {
        let mut rng = Stream::shared_instance(6);
        let mistakes = share(1000, || {
            let family: Vec<Evidence> = (0..10)
                .map(|_| Evidence::of_mean(&sample(&mut rng, 10, 0.0), (f64::NEG_INFINITY, 0.0)))
                .collect();
            verdicts(&family).iter().any(|(v, _)| *v != Verdict::Inconclusive)
        });
        assert!(mistakes < 0.05 + 0.021, "{mistakes}");
    }

    /// Four out of five are decided with as many replicates as were asked for.
    #[test]
    fn the_replicates_that_are_asked_for_decide() {
        let mut rng = Stream::shared_instance(7);
        let region = (f64::NEG_INFINITY, 0.0);
        let first = Evidence::student(-0.3, 1.0 / 20f64.sqrt(), 20, region);
        assert_eq!(verdicts(&[first])[0].0, Verdict::Inconclusive);
        let n = needed(&first, 1).unwrap() as usize;
        let decided = share(1000, || {
            let e = Evidence::of_mean(&sample(&mut rng, n, -0.3), region);
            verdicts(&[e])[0].0 == Verdict::Supported
        });
        assert!((0.76..0.88).contains(&decided), "{decided} with {n}");
    }

    #[test]
    fn what_is_not_random_is_decided() {
        let yes = Evidence::student(1.0, 0.0, 5, (0.5, 1.5));
        let no = Evidence::exact(2.0, (0.5, 1.5));
        assert_eq!(verdicts(&[yes, no]), [(Verdict::Supported, 0.0), (Verdict::Refuted, 0.0)]);
        let one = Evidence::of_mean(&[1.0], (0.5, 1.5));
        assert_eq!(verdicts(&[one])[0].0, Verdict::Inconclusive);
        assert_eq!(Evidence::all(&[yes, no]).unwrap().refute, 0.0);
        assert_eq!(Evidence::all(&[yes, no]).unwrap().estimate, 2.0);
    }
}
