//! Claims: what the results say of the statements in a manifest.
//!
//! *Invariant*: a claim that names several cells holds only if it holds for each
//! of them; what theory cannot say, or a run that diverged, is said and never
//! counted as support.

mod costs;
mod pairs;
mod ratios;
mod sample;
mod text;

use super::CellResult;
use super::theory::Theory;
use crate::stats::verdict::{Doubt, Evidence, Verdict, needed, verdicts};
use driftbench_runner::manifest::claim::{Common, Expected, Selection};
use driftbench_runner::plan::Plan;
use ratios::{Against, Parts};

/// A claim and what became of it.
#[derive(Clone, Debug)]
pub struct JudgedClaim {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// Where it is claimed.
    pub source: String,
    /// Id of the figure that shows it.
    pub figure: Option<String>,
    /// What was tested, as a formula.
    pub formula: String,
    /// The verdict; `None` where nothing could be tested.
    pub verdict: Option<Verdict>,
    /// The estimate and its 95 % interval, as readers read it.
    pub estimate: f64,
    /// Ends of the interval.
    pub interval: (f64, f64),
    /// p-value adjusted for all claims of the manifest (Holm).
    pub p: f64,
    /// Replicates.
    pub n: usize,
    /// Cells or pairs of cells that it was tested on: their names, estimates and
    /// intervals, and whether each alone would be supported (at the level 5 %,
    /// not adjusted).
    pub parts: Vec<ClaimPart>,
    /// Which of them the estimate is of: the one with the least support.
    pub part: String,
    /// Claims that were tested together.
    pub together: usize,
    /// Replicates that would decide it.
    pub needed: Option<u64>,
    /// What the runs cannot say of the law of the errors.
    pub doubt: Doubt,
    /// The verdict that the manifest expects, and why.
    pub expected: (Expected, Option<String>),
    /// The disagreement that it bears on, and its side.
    pub dispute: Option<(String, String)>,
    /// Cells of which the claim says nothing, and why: a bound whose conditions they
    /// do not meet.
    pub outside: Vec<String>,
    /// What could not be tested, and why: while there is any, the claim is not supported.
    pub untested: Vec<String>,
}

impl JudgedClaim {
    /// How the claim ended otherwise than the manifest expects, if it did; an inconclusive
    /// claim contradicts no expectation.
    pub fn contradiction(&self) -> Option<&'static str> {
        match (self.verdict, self.expected.0) {
            (Some(Verdict::Refuted), Expected::Supported | Expected::NotTested) => Some("refuted"),
            (Some(Verdict::Supported), Expected::Refuted) => {
                Some("supported, and was expected to be refuted")
            }
            (None, Expected::Supported | Expected::Refuted) => Some("not tested"),
            _ => None,
        }
    }
}

/// A cell or a pair of cells that a claim was tested on.
#[derive(Clone, Debug)]
pub struct ClaimPart {
    /// What tells it apart.
    pub name: String,
    /// The estimate, as readers read it.
    pub estimate: f64,
    /// Ends of its 95 % interval.
    pub interval: (f64, f64),
    /// What the part says by itself.
    pub verdict: Verdict,
}

/// How an estimate is shown.
#[derive(Clone, Copy)]
enum EstimateScale {
    /// As it is.
    Plain,
    /// The exponential of itself, times this: a ratio, or a mean in units of the value that it
    /// is compared with.
    Times(f64),
}

impl EstimateScale {
    /// How the logarithm of a mean relative to this is shown.
    fn of(against: &Against<'_>) -> Self {
        match against {
            Against::Value(value) => Self::Times(*value),
            Against::Cells(_) | Against::Prediction(_) => Self::Times(1.0),
        }
    }
}

/// What a claim was tested on.
struct Tested {
    parts: Parts,
    formula: String,
    shown: EstimateScale,
}

/// The claims of a manifest, judged together.
pub fn judge(plan: &Plan, cells: &[CellResult<'_>], theory: &Theory<'_>) -> Vec<JudgedClaim> {
    let judge = Judge { plan, cells, theory };
    let table = &plan.manifest.claim;
    let mut tested: Vec<Tested> = Vec::new();
    let both = |left, right: &'_ Option<Selection>| -> Vec<Selection> {
        std::iter::once(Selection::clone(left)).chain(right.clone()).collect()
    };
    for c in &table.less {
        tested.push(judge.whole(&both(&c.left, &c.right), judge.less(c)));
    }
    for c in &table.at_least {
        tested.push(judge.whole(&both(&c.left, &c.right), judge.at_least(c)));
    }
    for c in &table.slope {
        tested.push(judge.whole(&both(&c.of, &None), judge.slope(c)));
    }
    for c in &table.matches {
        tested.push(judge.whole(&both(&c.of, &c.right), judge.matches(c)));
    }
    for c in &table.reaches {
        tested.push(judge.whole(&both(&c.of, &None), judge.reaches(c)));
    }
    let all: Vec<Option<Evidence>> = tested
        .iter()
        .map(|t| {
            let each: Vec<Evidence> = t.parts.tested.iter().map(|(_, e)| *e).collect();
            Evidence::all(&each, !t.parts.untested.is_empty())
        })
        .collect();
    let told: Vec<Evidence> = all.iter().flatten().copied().collect();
    let mut found = verdicts(&told).into_iter();
    let together = told.len();
    let mut claims = Vec::with_capacity(tested.len());
    for (((_, common), tested), evidence) in table.all().into_iter().zip(tested).zip(all) {
        let verdict = evidence.and_then(|_| found.next());
        claims.push(Some(claim(common, tested, evidence, verdict, together)));
    }
    plan.claims.iter().filter_map(|place| claims[*place].take()).collect()
}

fn claim(
    common: &Common,
    tested: Tested,
    evidence: Option<Evidence>,
    verdict: Option<(Verdict, f64)>,
    together: usize,
) -> JudgedClaim {
    let shown = |x: f64| match tested.shown {
        EstimateScale::Plain => x,
        EstimateScale::Times(unit) => unit * libm::exp(x),
    };
    let nan = f64::NAN;
    let (low, high) = evidence.map_or((nan, nan), |e| e.interval);
    let weakest = evidence.and_then(|e| {
        tested.parts.tested.iter().find(|(_, p)| p.estimate.to_bits() == e.estimate.to_bits())
    });
    JudgedClaim {
        id: common.id.clone(),
        statement: common.statement.clone(),
        source: common.source.clone().unwrap_or_default(),
        figure: common.figure.clone(),
        formula: tested.formula,
        verdict: verdict.map(|(v, _)| v),
        estimate: shown(evidence.map_or(nan, |e| e.estimate)),
        interval: (shown(low), shown(high)),
        p: verdict.map_or(nan, |(_, p)| p),
        n: evidence.map_or(0, |e| e.n),
        part: weakest.map(|(name, _)| name.clone()).unwrap_or_default(),
        parts: tested
            .parts
            .tested
            .iter()
            .map(|(name, e)| ClaimPart {
                name: name.clone(),
                estimate: shown(e.estimate),
                interval: (shown(e.interval.0), shown(e.interval.1)),
                verdict: e.alone(),
            })
            .collect(),
        together,
        needed: match (verdict, evidence) {
            (Some((Verdict::Inconclusive, _)), Some(e)) => needed(&e, together),
            _ => None,
        },
        doubt: evidence.map_or(Doubt::None, |e| e.doubt),
        expected: (common.expected, common.reason.clone()),
        dispute: common.dispute.clone().zip(common.side.clone()),
        outside: tested.parts.outside,
        untested: tested.parts.untested,
    }
}

struct Judge<'a> {
    plan: &'a Plan,
    cells: &'a [CellResult<'a>],
    theory: &'a Theory<'a>,
}

#[cfg(test)]
mod tests;
