//! What texts of a manifest may name of its results: cells, claims, and points of frontiers.

use super::frontier_facts::FrontierFacts;
use crate::evidence::claims::{ClaimPart, Estimate, EstimateScale, JudgedClaim};
use crate::evidence::{CellResult, Experiment, SelectedBy, draws_exact_bias};
use crate::stats::verdict::Verdict;
use exactfed_core::words::{number, readable};
use exactfed_runner::manifest::{Manifest, Metric, Oracle, Quantity};
use exactfed_runner::plan::{Cell, Plan, unrecorded};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a text may name: the cells, the claims and the points of frontiers.
#[derive(Default)]
pub struct TextFacts {
    pub cells: Vec<CellFacts>,
    /// The claims by their ids.
    pub claims: BTreeMap<String, ClaimFacts>,
    pub frontiers: Vec<FrontierFacts>,
}

impl TextFacts {
    /// The facts of an experiment that has results, with which a text is filled.
    pub fn of_results(experiment: &Experiment<'_>) -> Self {
        let claims = experiment.claims.iter();
        Self {
            cells: experiment.cells.iter().map(CellFacts::from_result).collect(),
            claims: claims
                .map(|claim| (claim.common.id.clone(), ClaimFacts::judged(claim)))
                .collect(),
            frontiers: experiment.frontiers.iter().flat_map(FrontierFacts::computed).collect(),
        }
    }

    /// The facts of a plan before its cells are run, with which its texts are checked: they have the names that results
    /// will have, and no numbers.
    pub fn of_plan(plan: &Plan) -> Self {
        let manifest = &plan.manifest;
        let unrecorded = Unrecorded::new(manifest);
        let draws_bias = draws_exact_bias(plan);
        let claims = plan.claim_tables.iter().map(|claim| claim.common().id.clone());
        let is_priced = manifest.prices.is_some();
        Self {
            cells: plan
                .cells
                .iter()
                .map(|cell| CellFacts::planned(cell, &unrecorded, draws_bias))
                .collect(),
            claims: claims.map(|id| (id, ClaimFacts::of_parts(&[]))).collect(),
            frontiers: manifest
                .frontier
                .iter()
                .flat_map(|frontier| FrontierFacts::planned(frontier, is_priced))
                .collect(),
        }
    }
}

/// The quantities that cells of a plan cannot have, each with the reason.
struct Unrecorded {
    /// The quantities that cells cannot have whose limit theory may know.
    with_limit: Arc<BTreeMap<Quantity, String>>,
    /// The quantities that other cells cannot have: the distance to the limit in addition.
    without_limit: Arc<BTreeMap<Quantity, String>>,
}

impl Unrecorded {
    /// The quantities that cells of this manifest do not record, and for cells without a limit also the distance to it.
    fn new(manifest: &Manifest) -> Self {
        let mut reasons = BTreeMap::new();
        for quantity in Quantity::ALL {
            if let Some(reason) = unrecorded(manifest, *quantity) {
                reasons.insert(*quantity, reason);
            }
        }
        let mut without_limit = reasons.clone();
        without_limit.insert(Quantity::SqErrorLimit, NO_LIMIT.into());
        Self { with_limit: Arc::new(reasons), without_limit: Arc::new(without_limit) }
    }
}

/// What a text may name of a cell.
pub struct CellFacts {
    pub cell: Cell,
    /// The recorded quantities at the last round; empty where runs diverged.
    pub finals: BTreeMap<Quantity, Vec<f64>>,
    /// The squared norm of the exact bias; `None` where it is not known.
    pub exact_bias: Option<f64>,
    /// The runs by which tuning selected the cell, as in [`CellResult`].
    pub selected_by: Option<SelectedBy>,
    /// How many replicates diverged.
    pub diverged: usize,
    /// How many replicates there are; 0 for a planned cell.
    pub replicates: usize,
    /// For a planned cell the quantities that it cannot have, and why; empty for a cell with results.
    pub lacks: Arc<BTreeMap<Quantity, String>>,
    /// For a planned cell why it cannot have an exact bias; `None` if it may have one, and for a cell with results.
    pub lacks_bias: Option<&'static str>,
}

impl CellFacts {
    /// A cell that was not run yet; `draws_bias` says whether some figure of the plan shows the exact bias, which is
    /// not computed otherwise.
    fn planned(cell: &Cell, unrecorded: &Unrecorded, draws_bias: bool) -> Self {
        let may_have_limit = may_have_limit(cell);
        let lacks = if may_have_limit { &unrecorded.with_limit } else { &unrecorded.without_limit };
        Self {
            cell: cell.clone(),
            finals: BTreeMap::new(),
            exact_bias: None,
            selected_by: None,
            diverged: 0,
            replicates: 0,
            lacks: lacks.clone(),
            lacks_bias: if !draws_bias {
                Some("no figure asks for the exact bias")
            } else if !may_have_limit {
                Some(NO_LIMIT)
            } else {
                None
            },
        }
    }

    /// A cell with its results: the last values of its runs, and what theory knows of its bias.
    fn from_result(cell: &CellResult<'_>) -> Self {
        Self {
            cell: cell.cell.clone(),
            finals: Quantity::ALL
                .iter()
                .filter_map(|&quantity| Some((quantity, cell.runs.finals(quantity)?)))
                .collect(),
            exact_bias: cell.exact_bias,
            selected_by: cell.selected_by.clone(),
            diverged: cell.runs.diverged,
            replicates: cell.runs.count,
            lacks: Arc::default(),
            lacks_bias: None,
        }
    }
}

/// A function that writes a number with this many digits.
pub type DigitsText = fn(f64, usize) -> String;

/// The function that writes numbers that are counted, if `is_counted`, or others.
pub fn number_text(is_counted: bool) -> DigitsText {
    if is_counted { number } else { readable }
}

/// A part that a claim was tested on: a cell, a pair of cells or a round.
pub struct PartFacts {
    pub name: String,
    pub estimate: Estimate,
}

impl PartFacts {
    /// The facts on a part; without a part they have neither a name nor an estimate, as before a claim is tested.
    fn new(part: Option<&ClaimPart>) -> Self {
        match part {
            Some(part) => Self { name: part.name.clone(), estimate: part.estimate },
            None => Self { name: String::new(), estimate: Estimate::NONE },
        }
    }
}

/// What a text may name of a claim.
pub struct ClaimFacts {
    pub verdict: Verdict,
    /// The function that writes its estimates.
    pub text: DigitsText,
    /// The part whose estimate pages show: the nearest to the end of the claim's region, or the farthest outside.
    pub nearest: PartFacts,
    /// The part with the least support, which decides the verdict.
    pub weakest: PartFacts,
    /// The smallest estimate of a part; NaN without parts.
    pub smallest: f64,
    /// The largest estimate of a part; NaN without parts.
    pub largest: f64,
    /// The number of parts for which the claim holds by itself.
    pub supported: usize,
    /// The number of all parts.
    pub parts: usize,
}

impl ClaimFacts {
    /// A claim on these parts that was not tested; before its cells are run there are no parts.
    pub fn of_parts(parts: &[ClaimPart]) -> Self {
        let values = || parts.iter().map(|part| part.estimate.value);
        let supported = parts.iter().filter(|part| part.verdict == Verdict::Supported);
        Self {
            verdict: Verdict::NotTested,
            text: readable,
            nearest: PartFacts::new(None),
            weakest: PartFacts::new(None),
            smallest: values().fold(f64::NAN, f64::min),
            largest: values().fold(f64::NAN, f64::max),
            supported: supported.count(),
            parts: parts.len(),
        }
    }

    /// A claim with its verdict, its estimates and its parts.
    fn judged(claim: &JudgedClaim<'_>) -> Self {
        Self {
            verdict: claim.judgement.verdict,
            text: number_text(claim.scale == EstimateScale::Counted),
            nearest: PartFacts::new(claim.nearest()),
            weakest: PartFacts::new(claim.weakest()),
            ..Self::of_parts(&claim.parts)
        }
    }
}

/// Why a cell cannot have what theory computes from the limit.
const NO_LIMIT: &str = "the limit is not known: the field is not linear";

/// Whether theory may know a cell's limit, as far as its plan shows. On a linear field it may know the limit; whether
/// it does is seen when the instance is built. On another field it may if the manifest records the distance to the
/// limit and gradients are exact.
fn may_have_limit(cell: &Cell) -> bool {
    let identity = &cell.identity;
    let is_recorded = identity.record.metrics.contains(&Metric::SqErrorLimit);
    identity.problem.linear() || (is_recorded && identity.oracle == Oracle::Exact)
}
