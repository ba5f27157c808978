//! Evidence for a claim that a number lies in a region, and verdicts over several
//! claims at once.

use super::log_means::{LogMeans, VERY_FEW, skewness};
use super::{holm, mean, student_95};
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
    /// What the sample cannot say.
    pub doubt: Doubt,
}

/// What a sample cannot say of the law that it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// Nothing is known against it.
    #[default]
    None,
    /// It is too small to see how heavy the tails are: limits assume none heavier than a
    /// lognormal law's.
    Few,
    /// Its vectors are very few, or skewed for their number: the radius is three times as large.
    Skewed,
    /// Its tail is heavier than a lognormal law's: the limit is twice as far.
    Heavy,
}

/// A closed interval, either end perhaps infinite.
pub type Region = (f64, f64);

fn inside(x: f64, (low, high): Region) -> bool {
    low <= x && x <= high
}

/// A region of logarithms with its ends, which numbers that are equal but for rounding lie on
/// either side of.
pub fn widened((low, high): Region) -> Region {
    (low - 1e-9, high + 1e-9)
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
        let distance = (estimate - region.0).abs().min((estimate - region.1).abs());
        Self { distance, ..Self::certain(estimate, inside(estimate, region)) }
    }

    /// Of a claim that is known to hold, or not to.
    pub fn certain(estimate: f64, holds: bool) -> Self {
        let p = |x: bool| if x { 0.0 } else { 1.0 };
        Self {
            estimate,
            error: 0.0,
            interval: (estimate, estimate),
            support: p(holds),
            refute: p(!holds),
            distance: f64::NAN,
            n: 1,
            doubt: Doubt::None,
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
            doubt: Doubt::None,
        }
    }

    /// Of Σ w_j log E x_j.
    pub fn from_log_means(known: &LogMeans, region: Region) -> Self {
        if known.constant() {
            return Self { n: known.n, ..Self::exact(known.estimate, widened(region)) };
        }
        let interval = known.interval();
        let (low, high) = region;
        let above = |x: f64| if x == f64::NEG_INFINITY { 0.0 } else { known.above(x) };
        let below = |x: f64| if x == f64::INFINITY { 0.0 } else { known.below(x) };
        let sides = f64::from(u8::from(low.is_finite())) + f64::from(u8::from(high.is_finite()));
        let outside = |end: f64, p: f64| if end.is_finite() { p } else { 1.0 };
        let beyond = outside(low, below(low)).min(outside(high, above(high)));
        Self {
            estimate: known.estimate,
            // What half the interval would be the right multiple of.
            error: 0.5 * (interval.1 - interval.0) / student_95(known.n),
            interval,
            support: above(low).max(below(high)),
            refute: (sides * beyond).min(1.0),
            distance: (known.estimate - low).abs().min((known.estimate - high).abs()),
            n: known.n,
            doubt: match known.heavy {
                (false, false) if known.unlimited => Doubt::Heavy,
                (false, false) if known.few => Doubt::Few,
                (false, false) => Doubt::None,
                _ => Doubt::Heavy,
            },
        }
    }

    /// Of a sample that decides nothing: a single run of what is random.
    pub fn undecided(estimate: f64, n: usize) -> Self {
        let nan = f64::NAN;
        let interval = (nan, nan);
        let (support, refute, distance, doubt) = (1.0, 1.0, nan, Doubt::None);
        Self { estimate, error: nan, interval, support, refute, distance, n, doubt }
    }

    /// Of ‖x − target‖/‖target‖ ≤ margin, for a vector that is not random.
    pub fn from_exact_vector(x: &[f64], target: &[f64], margin: f64) -> Self {
        let apart: Vec<f64> = x.iter().zip(target).map(|(x, t)| x - t).collect();
        Self::exact(norm(&apart) / norm(target), (0.0, margin))
    }

    /// Of ‖E x − target‖/‖target‖ ≤ margin, from n vectors x: Scheffé's region
    /// around the mean (F with D and n − D degrees of freedom, the largest variance
    /// in all directions), so that it holds whatever the direction of the difference.
    /// For few vectors, or vectors that are skewed along that direction, the radius is three
    /// times as large.
    pub fn from_vectors(sample: &[Vec<f64>], target: &[f64], margin: f64) -> Self {
        let (n, d) = (sample.len(), target.len());
        let size = norm(target);
        let mut apart: Vec<f64> = target.iter().map(|x| -x).collect();
        for x in sample {
            apart.iter_mut().zip(x).for_each(|(sum, x)| *sum += x / n as f64);
        }
        let estimate = norm(&apart) / size;
        if n < 2 {
            return Self::undecided(estimate, n);
        }
        if sample.windows(2).all(|pair| pair[0] == pair[1]) {
            return Self { n, ..Self::exact(estimate, (0.0, margin)) };
        }
        let along: Vec<f64> =
            sample.iter().map(|x| x.iter().zip(&apart).map(|(x, u)| x * u).sum()).collect();
        let skewed = n < FEWEST_VECTORS || skewness(&along).abs() > MOST_SKEWED * (n as f64).sqrt();
        let reach = if skewed { WIDENED } else { 1.0 };
        let error = reach * (largest_variance(sample, &apart, target) / n as f64).sqrt() / size;
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
            doubt: match n < VERY_FEW {
                _ if skewed => Doubt::Skewed,
                true => Doubt::Few,
                false => Doubt::None,
            },
        }
    }

    /// Of a claim that holds where all of these hold: it is supported as surely
    /// as the least of them, and refuted by any of them (Bonferroni). The estimate
    /// shown is that of the part with the least support. Where further parts could not be
    /// tested the others cannot support it.
    pub fn all(parts: &[Self], untested: bool) -> Option<Self> {
        let weakest = parts.iter().max_by(|a, b| {
            (a.support, b.refute)
                .partial_cmp(&(b.support, a.refute))
                .unwrap_or(std::cmp::Ordering::Equal)
        })?;
        let least = parts.iter().map(|e| e.refute).fold(1.0, f64::min);
        let refute = (least * parts.len() as f64).min(1.0);
        let least_sure = if untested { 1.0 } else { 0.0 };
        let support = parts.iter().map(|e| e.support).fold(least_sure, f64::max);
        let doubt = parts.iter().map(|e| e.doubt).max().unwrap_or_default();
        Some(Self { support, refute, doubt, ..*weakest })
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

/// Skewness over √n of vectors beyond which Scheffé's region is too small.
const MOST_SKEWED: f64 = 0.18;
/// How many times as large the radius is then.
const WIDENED: f64 = 3.0;
/// Vectors below which their skewness cannot be judged.
const FEWEST_VECTORS: usize = 10;

fn norm(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |sum, x| sum + x * x).sqrt()
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

/// The weights w_j of the slope Σ_j w_j y_j by least squares over log x_j.
pub fn slope_weights(x: &[f64]) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|x| libm::log(*x)).collect();
    let centre = mean(&x);
    let spread: f64 = x.iter().map(|x| (x - centre) * (x - centre)).sum();
    x.iter().map(|x| (x - centre) / spread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::standard_deviation;
    use driftbench_core::rng::Stream;

    fn share(trials: u32, mut hit: impl FnMut() -> bool) -> f64 {
        f64::from((0..trials).map(|_| u32::from(hit())).sum::<u32>()) / f64::from(trials)
    }

    fn sample(rng: &mut Stream, n: usize, mean: f64) -> Vec<f64> {
        (0..n).map(|_| mean + rng.gaussian()).collect()
    }

    /// Student's test of a mean.
    fn of_mean(sample: &[f64], region: Region) -> Evidence {
        let n = sample.len();
        let error = if n < 2 { f64::NAN } else { standard_deviation(sample) / (n as f64).sqrt() };
        Evidence::student(mean(sample), error, n, region)
    }

    /// At the region's end either answer comes at most as often as the level
    /// says, inside and outside the right one nearly always.
    #[test]
    fn one_sided_claims_have_their_size_and_power() {
        let mut rng = Stream::shared_instance(1);
        let region = (f64::NEG_INFINITY, 0.0);
        let mut rate = |mean: f64, right: bool| {
            share(4000, || {
                let e = of_mean(&sample(&mut rng, 12, mean), region);
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
                let e = of_mean(&sample(&mut rng, n, mean), region);
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

    #[test]
    fn families_make_few_mistakes() {
        let mut rng = Stream::shared_instance(6);
        let mistakes = share(1000, || {
            let family: Vec<Evidence> = (0..10)
                .map(|_| of_mean(&sample(&mut rng, 10, 0.0), (f64::NEG_INFINITY, 0.0)))
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
            let e = of_mean(&sample(&mut rng, n, -0.3), region);
            verdicts(&[e])[0].0 == Verdict::Supported
        });
        assert!((0.76..0.88).contains(&decided), "{decided} with {n}");
    }

    #[test]
    fn what_is_not_random_is_decided() {
        let yes = Evidence::student(1.0, 0.0, 5, (0.5, 1.5));
        let no = Evidence::exact(2.0, (0.5, 1.5));
        assert_eq!(verdicts(&[yes, no]), [(Verdict::Supported, 0.0), (Verdict::Refuted, 0.0)]);
        let one = of_mean(&[1.0], (0.5, 1.5));
        assert_eq!(verdicts(&[one])[0].0, Verdict::Inconclusive);
        assert_eq!(Evidence::all(&[yes, no], false).unwrap().refute, 0.0);
        assert_eq!(Evidence::all(&[yes, no], false).unwrap().estimate, 2.0);
        assert_eq!(Evidence::all(&[yes], true).unwrap().support, 1.0, "a part is untested");
        assert_eq!(Evidence::all(&[yes, no], true).unwrap().refute, 0.0);
    }
}
