//! Evidence for a claim that a number lies in a region, and verdicts over several
//! claims at once.

use super::basics::{holm, holm_order, mean, student_95, student_quantile, student_tail};
use super::distance::{Distance, norm};
use super::log_means::{LogMeans, VERY_FEW};
use serde::{Deserialize, Serialize};

/// The evidence of a sample for the claim that a parameter lies in a region, or of an exact number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The estimate of the parameter.
    pub estimate: f64,
    /// The standard error of the estimate; 0 where nothing is random, and NaN where it is not known.
    pub error: f64,
    /// The ends of the 95 % interval of the parameter.
    pub interval: (f64, f64),
    /// The p-value of the hypothesis that the parameter lies outside of the region: the claim is supported if it is
    /// small.
    pub support: f64,
    /// The p-value of the hypothesis that the parameter lies inside: the claim is refuted if it is small.
    pub refute: f64,
    /// The region; NaN where nothing is tested against one.
    pub region: Region,
    /// The sample size, which is the number of replicates.
    pub n: usize,
    /// How many numbers the parameter has: more than 1 for a vector, whose distance is compared in all directions.
    pub dimensions: usize,
    /// What the sample does not show of its distribution.
    pub doubt: Doubt,
}

/// Why a verdict may be less certain than its p-value says: what a sample does not show of the distribution that it
/// comes from. Of several doubts the last one here is the gravest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// Nothing is known against the sample.
    #[default]
    None,
    /// The sample is too small to show how heavy the tails are: limits assume tails no heavier than a
    /// lognormal distribution's.
    Few,
    /// The vectors of the sample are very few, or skewed for their number: the radius of their region is three times as
    /// large.
    Skewed,
    /// The tail of the sample is heavier than a lognormal distribution's, so that the limit is twice as far; or some
    /// values are 0 and others are not.
    Heavy,
    /// Two sides that a claim orders are equal in every run: neither is less than the other.
    Equal,
}

/// A closed interval, either end perhaps infinite.
pub type Region = (f64, f64);

/// Numbers whose logarithms differ by at most this are equal up to rounding.
pub const EQUAL: f64 = 1e-9;

/// A region of logarithms, widened so that numbers that equal an end up to rounding are inside.
pub fn widened((low, high): Region) -> Region {
    (low - EQUAL, high + EQUAL)
}

impl Evidence {
    /// Evidence from a number that is not random: it is inside the region or not, with p-values of 0 and 1.
    pub fn exact(estimate: f64, (low, high): Region) -> Self {
        let is_inside = low <= estimate && estimate <= high;
        Self { region: (low, high), ..Self::certain(estimate, is_inside) }
    }

    /// Evidence for a claim that is known to hold, or not to hold, without a comparison with a region.
    pub fn certain(estimate: f64, holds: bool) -> Self {
        Self {
            estimate,
            error: 0.0,
            interval: (estimate, estimate),
            support: f64::from(u8::from(!holds)),
            refute: f64::from(u8::from(holds)),
            region: (f64::NAN, f64::NAN),
            n: 1,
            dimensions: 1,
            doubt: Doubt::None,
        }
    }

    /// Evidence from an estimate with a standard error from n replicates, by Student's t. An error of 0 makes the
    /// estimate exact; one that is NaN, as of a single replicate, decides nothing.
    pub fn student(estimate: f64, error: f64, n: usize, region: Region) -> Self {
        if error == 0.0 {
            return Self { n, ..Self::exact(estimate, region) };
        }
        let half = student_95(n) * error;
        let interval = (estimate - half, estimate + half);
        let from_ends = Self::from_ends(
            estimate,
            region,
            |x| student_tail((estimate - x) / error, n),
            |x| student_tail((x - estimate) / error, n),
        );
        Self { estimate, error, interval, n, ..from_ends }
    }

    /// Evidence that Σ w_j log E x_j lies in a region of natural logarithms, from an estimate of this sum. Where the
    /// estimate has no error, the region is widened by rounding ([`widened`]).
    pub fn from_log_means(known: &LogMeans, region: Region) -> Self {
        if known.constant() {
            return Self { n: known.n, ..Self::exact(known.estimate, widened(region)) };
        }
        let estimate = known.estimate;
        let interval = known.interval();
        Self {
            // The interval is not symmetric: with this error Student's interval would be as wide.
            error: 0.5 * (interval.1 - interval.0) / student_95(known.n),
            interval,
            n: known.n,
            doubt: match known.heavy {
                (false, false) if known.unlimited => Doubt::Heavy,
                (false, false) if known.few => Doubt::Few,
                (false, false) => Doubt::None,
                _ => Doubt::Heavy,
            },
            ..Self::from_ends(estimate, region, |x| known.above(x), |x| known.below(x))
        }
    }

    /// Evidence from an estimate and two functions of a number x: the p-value of the hypothesis that the parameter is
    /// at most x (`above`), and that it is at least x (`below`). The parameter is inside the region if both one-sided
    /// tests at the ends say so; it is outside if one of them says so, at half of the level if there are two ends. The
    /// caller adds the error, the interval and the sample size.
    fn from_ends(
        estimate: f64,
        region: Region,
        above: impl Fn(f64) -> f64,
        below: impl Fn(f64) -> f64,
    ) -> Self {
        let (low, high) = region;
        let sides = f64::from(u8::from(low.is_finite())) + f64::from(u8::from(high.is_finite()));
        let outside = p_at_end(low, 1.0, &below).min(p_at_end(high, 1.0, &above));
        Self {
            support: p_at_end(low, 0.0, &above).max(p_at_end(high, 0.0, &below)),
            refute: (sides * outside).min(1.0),
            region,
            ..Self::undecided(estimate, 0)
        }
    }

    /// Evidence from a sample that decides nothing, as a single run of what is random: both p-values are 1, and neither
    /// error nor interval is known.
    pub fn undecided(estimate: f64, n: usize) -> Self {
        let error = f64::NAN;
        let interval = (f64::NAN, f64::NAN);
        let support = 1.0;
        let refute = 1.0;
        Self { error, interval, support, refute, n, ..Self::certain(estimate, false) }
    }

    /// Evidence for ‖E x − target‖/‖target‖ ≤ margin from n vectors x of D numbers, for a target that is not 0:
    /// Scheffé's region around the mean (F with D and n − D degrees of freedom, the largest variance in all
    /// directions), so that the limits hold whatever the direction of the difference is. For few vectors, or vectors
    /// that are skewed along that direction, the radius is three times as large. Without more vectors than numbers
    /// nothing is decided, unless all vectors are equal.
    pub fn from_vectors(sample: &[Vec<f64>], target: &[f64], margin: f64) -> Self {
        let n = sample.len();
        let size = norm(target);
        let found = Distance::new(sample, target);
        let estimate = found.estimate / size;
        if n < 2 {
            return Self::undecided(estimate, n);
        }
        if found.error == 0.0 {
            return Self { n, ..Self::exact(estimate, (f64::NEG_INFINITY, margin)) };
        }
        let radius = found.radius() / size;
        Self {
            estimate,
            error: found.error / size,
            interval: ((estimate - radius).max(0.0), estimate + radius),
            support: found.tail(size * (margin - estimate)),
            refute: found.tail(size * (estimate - margin)),
            region: (f64::NEG_INFINITY, margin),
            n,
            dimensions: target.len(),
            doubt: doubt_of(&found),
        }
    }

    /// Evidence that log(‖E x‖/unit) lies in a region, from n vectors x whose mean may be 0, by Scheffé's region around
    /// the mean, so that it holds whatever the direction of E x is. Its standard error is NaN, so that the number of
    /// replicates that would decide the claim is not known ([`needed`]).
    pub fn from_norm(sample: &[Vec<f64>], unit: &Unit, region: Region) -> Self {
        let n = sample.len();
        let found = Distance::new(sample, &vec![0.0; sample.first().map_or(0, Vec::len)]);
        let (low, high) = unit.ends;
        let estimate = log_of_norm(found.estimate, unit.estimate);
        let radius = found.radius();
        if n < 2 {
            return Self::undecided(estimate, n);
        }
        let from_ends = Self::from_ends(
            estimate,
            region,
            |end| unit.p_value(&found, found.estimate - high * libm::exp(end)),
            |end| unit.p_value(&found, low * libm::exp(end) - found.estimate),
        );
        Self {
            interval: (
                log_of_norm(found.estimate - radius, high),
                log_of_norm(found.estimate + radius, low),
            ),
            n,
            doubt: doubt_of(&found),
            ..from_ends
        }
    }

    /// Whether this evidence on the logarithm of a ratio is from two sides that are equal in every run up to rounding,
    /// or both 0.
    pub fn is_of_equals(&self) -> bool {
        self.error == 0.0 && (self.estimate.is_nan() || self.estimate.abs() <= EQUAL)
    }

    /// Evidence for a claim that holds if all its parts hold, `None` without parts: it has the support of the part with
    /// the least support, and any part refutes it (Bonferroni). The estimate is that of the part with the least
    /// support, of several such parts that nearest to the end of its region or farthest outside. If further parts could
    /// not be tested (`untested`), the claim has no support.
    pub fn all(parts: &[Self], untested: bool) -> Option<Self> {
        let weakest = parts.iter().max_by(|a, b| {
            (a.support, b.refute, b.distance())
                .partial_cmp(&(b.support, a.refute, a.distance()))
                .unwrap_or(std::cmp::Ordering::Equal)
        })?;
        let least = parts.iter().map(|e| e.refute).fold(1.0, f64::min);
        let refute = (least * parts.len() as f64).min(1.0);
        let of_untested = if untested { 1.0 } else { 0.0 };
        let support = parts.iter().map(|e| e.support).fold(of_untested, f64::max);
        let doubt = parts.iter().map(|e| e.doubt).max().unwrap_or_default();
        Some(Self { support, refute, doubt, ..*weakest })
    }

    /// How far the estimate is from the region's nearest end; below 0 outside of the region, and NaN without a region.
    fn distance(&self) -> f64 {
        let (low, high) = self.region;
        (self.estimate - low).min(high - self.estimate)
    }

    /// The verdict on this evidence by itself, at the level of 5 %.
    pub fn alone(&self) -> Verdict {
        self.verdict(self.p(), LEVEL)
    }

    /// The verdict at this level on evidence whose p-value, adjusted for the claims that are tested together, is p.
    fn verdict(&self, p: f64, level: f64) -> Verdict {
        if p > level || p.is_nan() {
            Verdict::Inconclusive
        } else if self.support <= self.refute {
            Verdict::Supported
        } else {
            Verdict::Refuted
        }
    }

    /// The p-value of the question whether the claim holds: twice the smaller p-value, since either answer may be
    /// wrong.
    pub fn p(&self) -> f64 {
        (2.0 * self.support.min(self.refute)).min(1.0)
    }
}

/// The p-value of a hypothesis about an end of a region; `at_infinity` if the region is open on that side.
fn p_at_end(end: f64, at_infinity: f64, p_value: impl Fn(f64) -> f64) -> f64 {
    if end.is_finite() { p_value(end) } else { at_infinity }
}

/// The logarithm of a norm, or of a limit of one, in this unit. A limit below 0 counts as 0.
fn log_of_norm(norm: f64, unit: f64) -> f64 {
    libm::log(norm.max(0.0) / unit)
}

/// What the vectors from which a distance is estimated do not show of their distribution.
fn doubt_of(found: &Distance) -> Doubt {
    if found.skewed {
        Doubt::Skewed
    } else if found.n < VERY_FEW {
        Doubt::Few
    } else {
        Doubt::None
    }
}

/// A number above 0 with which a norm is compared, and how well it is known.
pub struct Unit {
    /// The estimate of the number.
    pub estimate: f64,
    /// The ends of an interval above 0 that contains the number.
    pub ends: (f64, f64),
    /// The probability that the interval does not contain it; 0 for an exact number.
    pub outside: f64,
}

impl Unit {
    /// The p-value of the hypothesis that there is no such `difference` between a norm and a multiple of this unit,
    /// where the difference is from the end of the unit's interval that is nearer to the norm. The probability that the
    /// number is beyond that end is added.
    fn p_value(&self, found: &Distance, difference: f64) -> f64 {
        (found.tail(difference) + self.outside).min(1.0)
    }
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The claim holds.
    Supported,
    /// The claim does not hold.
    Refuted,
    /// The runs do not suffice to decide it.
    Inconclusive,
    /// Nothing could be tested.
    #[serde(rename = "not tested")]
    NotTested,
}

impl Verdict {
    /// All verdicts, with their names on pages and in records.
    pub const ALL: [(Self, &str); 4] = [
        (Self::Supported, "supported"),
        (Self::Refuted, "refuted"),
        (Self::Inconclusive, "inconclusive"),
        (Self::NotTested, "not tested"),
    ];

    /// The name of the verdict on pages and in records.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The standard normal quantile of a power of 80 %.
pub const POWER_QUANTILE: f64 = 0.8416;

/// Family-wise level of the verdicts of an experiment.
pub const LEVEL: f64 = 0.05;

/// How one of several claims that were tested together ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// How the claim ended.
    pub verdict: Verdict,
    /// The p-value, adjusted by Holm's procedure.
    pub p: f64,
    /// The level with which Holm's procedure compared the p-value before its adjustment: an interval of confidence
    /// 1 − level agrees with the verdict.
    pub level: f64,
}

/// The verdicts on claims that are tested together at this family-wise level, in the order of their evidence.
pub fn verdicts(evidence: &[Evidence], level: f64) -> Vec<Judgement> {
    let p: Vec<f64> = evidence.iter().map(Evidence::p).collect();
    let adjusted = evidence.iter().zip(holm(&p));
    let judged = adjusted.map(|(e, p)| Judgement { verdict: e.verdict(p, level), p, level });
    let mut judged: Vec<Judgement> = judged.collect();
    holm_order(&p).for_each(|(i, tests)| judged[i].level /= tests as f64);
    judged
}

/// The number of replicates of each cell, those that exist included, that would decide an inconclusive claim four times
/// out of five if the parameter were what is estimated, where `together` claims are tested at once. It is more than
/// there are, and an estimate, since the error is taken to fall as 1/√n. `None` if the estimate lies on the region's
/// end, nothing is known of its error, or they would be more than 10¹².
pub fn needed(evidence: &Evidence, together: usize) -> Option<u64> {
    let distance = evidence.distance().abs();
    if !(evidence.error > 0.0 && distance > 0.0 && distance.is_finite()) {
        return None;
    }
    let strict = LEVEL / (2.0 * together.max(1) as f64);
    let reach = student_quantile(1.0 - strict, evidence.n)? + POWER_QUANTILE;
    let ratio = reach * evidence.error / distance;
    let n = (evidence.n as f64 * ratio * ratio).ceil();
    (n < 1e12).then_some((n as u64).max(evidence.n as u64 + 1))
}

/// The weights w_j with which Σ_j w_j y_j is the slope of y over log x by least squares, for points at these x_j > 0,
/// at least two of which differ.
pub fn slope_weights(x: &[f64]) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|x| libm::log(*x)).collect();
    let centre = mean(&x);
    let spread: f64 = x.iter().map(|x| (x - centre) * (x - centre)).sum();
    x.iter().map(|x| (x - centre) / spread).collect()
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
