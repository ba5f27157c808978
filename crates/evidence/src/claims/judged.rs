//! A claim with its verdict, and what the verdict rests on.

use super::conditions::StatementConditions;
use super::judge::{EstimateScale, Parts, Tested};
use crate::cells::sample_unit::SampleUnit;
use crate::stats::resolution::resolution;
use crate::stats::verdict::{Doubt, Evidence, Judgement, Region, Verdict, needed};
use exactfed_runner::manifest::claim::{ClaimKeys, Expected};

/// A claim with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedClaim<'a> {
    /// What the manifest states.
    pub common: &'a ClaimKeys,
    /// What was tested, as a formula.
    pub formula: String,
    /// The verdict among all claims of the manifest; its numbers are NaN if nothing was tested.
    pub judgement: Judgement,
    /// The size of the sample that would decide an inconclusive claim; `None` if it is not inconclusive, or the size
    /// cannot be estimated.
    pub needed: Option<u64>,
    /// Of a claim that is supported: numbers beyond these would have been refuted in any of its
    /// parts, with power 80 % at least; an end that the claim leaves open is infinite.
    pub resolution: Option<Region>,
    /// Why the interval may be too narrow, or the verdict not what the statement says: what the runs do
    /// not show.
    pub doubt: Doubt,
    /// What the estimates of the claim are.
    pub scale: EstimateScale,
    /// The size of the sample on which the evidence rests; 0 for a claim on frontiers or maps.
    pub n: usize,
    /// What the values of the sample are of, which `n` and `needed` count: runs, or several instances of the problem.
    pub unit: SampleUnit,
    /// The cells or pairs of cells that it was tested on.
    pub parts: Vec<ClaimPart>,
    /// The index of the part whose estimate is nearest to the end of its region, or farthest outside,
    /// and of the part with the least support, which decides; `None` if nothing was tested.
    extremes: Option<(usize, usize)>,
    /// Cells on which the claim states nothing, and why: they do not meet the conditions of a bound, for instance.
    pub outside: Vec<String>,
    /// What could not be tested, and why: while there is any, the claim is not supported.
    pub untested: Vec<String>,
    /// How many of `untested` more replicates may make testable.
    unresolved: usize,
    /// Whether the claim compares its cells with a published bound.
    pub is_on_bound: bool,
    /// The statements that it is about, and whether its cells meet their conditions; empty if it is about cells none of
    /// which has results yet.
    pub conditions: Vec<StatementConditions>,
}

/// An estimate as it is shown to readers.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The estimate; NaN if nothing was tested.
    pub value: f64,
    /// Ends of its 95 % interval.
    pub interval: (f64, f64),
}

impl Estimate {
    /// The estimate of a claim that was not tested: no numbers.
    pub const NONE: Self = Self { value: f64::NAN, interval: (f64::NAN, f64::NAN) };
}

/// A cell or a pair of cells that a claim was tested on.
#[derive(Clone, Debug)]
pub struct ClaimPart {
    /// The settings that distinguish it.
    pub name: String,
    /// The estimate for this part, with its 95 % interval.
    pub estimate: Estimate,
    /// Whether it has no sampling error.
    pub is_exact: bool,
    /// The region of the estimate in which the claim holds for this part.
    pub region: Region,
    /// The verdict on the part by itself (at the level 5 %, not adjusted).
    pub verdict: Verdict,
}

impl ClaimPart {
    /// The part of this name, with the numbers of its evidence as they are shown to readers on this scale.
    fn new(name: &str, evidence: &Evidence, scale: EstimateScale) -> Self {
        let value = scale.shown(evidence.estimate);
        let interval = scale.shown_interval(evidence.interval);
        Self {
            name: name.to_owned(),
            estimate: Estimate { value, interval },
            is_exact: evidence.error == 0.0,
            region: scale.shown_region(evidence.region),
            verdict: evidence.alone(),
        }
    }

    /// Whether both sides of a comparison are zero to rounding, so that they have no ratio.
    pub fn is_of_zeros(&self) -> bool {
        self.is_exact && self.estimate.value.is_nan()
    }
}

impl JudgedClaim<'_> {
    /// The part that is shown to readers: the part whose estimate is nearest to the end of its region, or farthest
    /// outside. `None` if nothing was tested.
    pub fn nearest(&self) -> Option<&ClaimPart> {
        self.extremes.map(|(nearest, _)| &self.parts[nearest])
    }

    /// The part with the least support, which decides the verdict; `None` if nothing was tested.
    pub fn weakest(&self) -> Option<&ClaimPart> {
        self.extremes.map(|(_, weakest)| &self.parts[weakest])
    }

    /// The estimate of the part that is shown.
    pub fn estimate(&self) -> Estimate {
        self.nearest().map_or(Estimate::NONE, |part| part.estimate)
    }

    /// The region in which the claim holds for the part that is shown; NaN if nothing was tested.
    pub fn region(&self) -> Region {
        self.nearest().map_or((f64::NAN, f64::NAN), |part| part.region)
    }

    /// Whether nothing that was tested has a sampling error, so that there is no p-value.
    pub fn is_exact(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| part.is_exact)
    }

    /// The p-value adjusted for all claims of the manifest (Holm), if it has one.
    pub fn p(&self) -> Option<f64> {
        Some(self.judgement.p).filter(|p| !p.is_nan() && !self.is_exact())
    }

    /// The largest ratio of what was measured to a published upper bound, if a claim is supported because the bound is
    /// far above: a page then says that the bound binds nowhere. `None` for ratios above 5 % and for other claims.
    pub fn slack(&self) -> Option<f64> {
        const BINDING: f64 = 0.05;
        let (low, high) = self.region();
        let is_below = self.is_on_bound && self.judgement.verdict == Verdict::Supported;
        // The regions of claims on an upper bound have no lower end, or the end 0.
        let ratio = self.estimate().value / high;
        (is_below && low <= 0.0 && ratio < BINDING).then_some(ratio)
    }

    /// The verdict that the manifest expects.
    pub fn expected(&self) -> Verdict {
        match self.common.expected {
            Expected::Supported => Verdict::Supported,
            Expected::Refuted => Verdict::Refuted,
            Expected::NotTested => Verdict::NotTested,
        }
    }

    /// Whether it is supported or refuted.
    pub fn is_decided(&self) -> bool {
        matches!(self.judgement.verdict, Verdict::Supported | Verdict::Refuted)
    }

    /// Whether `run --until-decided` adds replicates for the claim: it is undecided, its sides are not equal in runs
    /// without anything random, and more replicates may make all that is untested testable. A part that stays untested
    /// keeps the claim from being supported; that another part might still refute it is not considered.
    pub fn is_open(&self) -> bool {
        // Runs without anything random stay equal.
        let are_always_equal = self.doubt == Doubt::Equal && self.is_exact();
        let may_be_decided = match self.judgement.verdict {
            Verdict::Supported | Verdict::Refuted => false,
            Verdict::Inconclusive => true,
            // A claim that is about nothing stays untested.
            Verdict::NotTested => self.unresolved > 0,
        };
        may_be_decided && !are_always_equal && self.unresolved == self.untested.len()
    }

    /// How the claim ended otherwise than the manifest expects, as words after "the claim is" in a message; `None` if it
    /// ended as expected. An inconclusive claim contradicts no expectation.
    pub fn contradiction(&self) -> Option<&'static str> {
        match (self.judgement.verdict, self.common.expected) {
            (Verdict::Refuted, Expected::Supported | Expected::NotTested) => Some("refuted"),
            (Verdict::Supported, Expected::Refuted) => {
                Some("supported, and was expected to be refuted")
            }
            (Verdict::NotTested, Expected::Supported | Expected::Refuted) => Some("not tested"),
            _ => None,
        }
    }
}

/// A claim with its verdict, from what its test found, the conditions on its cells, and the evidence for it with the
/// judgement on this evidence; without evidence nothing could be tested. It was judged `together` with this number of
/// claims, itself among them, at this family-wise level.
pub fn judged<'a>(
    common: &'a ClaimKeys,
    tested: Tested,
    conditions: Vec<StatementConditions>,
    evidence: Option<(Evidence, Judgement)>,
    together: usize,
    level: f64,
) -> JudgedClaim<'a> {
    let Tested { parts, formula, scale } = tested;
    let nothing = Judgement { verdict: Verdict::NotTested, p: f64::NAN, level: f64::NAN };
    let judgement = evidence.map_or(nothing, |(_, found)| found);
    let is_supported = judgement.verdict == Verdict::Supported;
    let resolution = is_supported.then(|| widest_resolution(&parts, together, level)).flatten();
    JudgedClaim {
        common,
        formula,
        judgement,
        needed: evidence
            .filter(|_| judgement.verdict == Verdict::Inconclusive)
            .and_then(|(e, _)| needed(&e, together)),
        resolution: resolution.map(|(low, high)| (scale.shown_end(low), scale.shown_end(high))),
        doubt: evidence.map_or(Doubt::None, |(e, _)| e.doubt),
        scale,
        n: evidence.map_or(0, |(e, _)| e.n),
        // `Judge::look` sets it where the cells have several instances.
        unit: SampleUnit::Run,
        extremes: evidence.and_then(|(e, _)| extremes(&parts.tested, &e, scale)),
        parts: parts.tested.iter().map(|(name, e)| ClaimPart::new(name, e, scale)).collect(),
        outside: parts.outside,
        untested: parts.untested,
        unresolved: parts.unresolved,
        // `Judge::look` says so of the claims that are.
        is_on_bound: false,
        conditions,
    }
}

/// The indices of the part whose estimate is nearest to the end of its region, or farthest outside, and of the part
/// with the least support (the largest p-value for it), whose estimate the evidence `all` for the whole claim has. They
/// are the same where no end of a region is known.
fn extremes(
    parts: &[(String, Evidence)],
    all: &Evidence,
    scale: EstimateScale,
) -> Option<(usize, usize)> {
    let weakest = parts.iter().position(|(_, e)| e.estimate.to_bits() == all.estimate.to_bits())?;
    let rooms =
        parts.iter().enumerate().filter_map(|(i, (_, evidence))| Some((i, scale.room(evidence)?)));
    // Of several parts that are as near, the one with the least support if it is among them: `false` is before `true`.
    let nearest = rooms.min_by(|(i, room), (j, other_room)| {
        room.total_cmp(other_room).then((*i != weakest).cmp(&(*j != weakest)))
    });
    Some((nearest.map_or(weakest, |(i, _)| i), weakest))
}

/// The resolution of a claim: the numbers beyond which each of its parts would have been refuted. `None` if the
/// resolution of a part is not known, or no part is compared with a region.
fn widest_resolution(parts: &Parts, together: usize, level: f64) -> Option<Region> {
    let tested: Vec<&Evidence> = parts.tested.iter().map(|(_, evidence)| evidence).collect();
    let each = tested
        .iter()
        .filter(|evidence| !evidence.region.0.is_nan())
        .map(|evidence| resolution(evidence, tested.len(), together, level));
    each.reduce(|a: Option<Region>, b: Option<Region>| {
        let (low_a, high_a) = a?;
        let (low_b, high_b) = b?;
        Some((low_a.min(low_b), high_a.max(high_b)))
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::sample::NoEvidence;
    use crate::stats::verdict::{LEVEL, verdicts};

    const KEYS: &str = "id = \"t\"\nstatement = \"t\"";

    /// Whether a claim with these parts is open: parts with these p-values are tested, and the others are not.
    fn is_open(found: &[Result<Evidence, NoEvidence>]) -> bool {
        let keys: ClaimKeys = toml::from_str(KEYS).unwrap();
        let mut parts = Parts::default();
        for one in found {
            parts.add_means("part".into(), *one, "it has no ratio");
        }
        let evidence = parts.evidence().map(|all| (all, verdicts(&[all], LEVEL)[0]));
        let tested = Tested { parts, formula: String::new(), scale: EstimateScale::Plain };
        judged(&keys, tested, Vec::new(), evidence, 1, LEVEL).is_open()
    }

    /// Replicates are added for what they may make testable, as two norms that may both be 0, and for nothing else.
    #[test]
    fn a_claim_is_open_while_replicates_may_resolve_it() {
        let undecided = Ok(Evidence::undecided(0.0, 5));
        let supported = Ok(Evidence::exact(0.0, (-1.0, 1.0)));
        let refuted = Ok(Evidence::exact(2.0, (-1.0, 1.0)));
        let unresolved = Err(NoEvidence::Unresolved);
        let undefined = Err(NoEvidence::Undefined);
        for (parts, expected) in [
            (vec![], false),
            (vec![unresolved], true),
            (vec![undefined], false),
            (vec![unresolved, undefined], false),
            (vec![undecided], true),
            (vec![undecided, unresolved], true),
            (vec![undecided, undefined], false),
            (vec![supported], false),
            (vec![supported, unresolved], true),
            (vec![refuted, unresolved], false),
        ] {
            assert_eq!(is_open(&parts), expected, "{parts:?}");
        }
    }
}
