//! `[[claim.phase-less]]`: an algorithm that costs least in a region of a map.

use super::frontiers::{
    AT_AN_EDGE, NOT_REACHED, check_algorithm, exact, is_rival, rivals, wrong_costs,
};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{ClaimOf, one};
use super::kind::{Claim, WrongResult};
use crate::frontier::phase::{ComputedPhase, ComputedSquare, TIE};
use crate::stats::verdict::widened;
use exactfed_core::words::{readable, thousands};
use exactfed_runner::manifest::claim::ClaimKeys;
use exactfed_runner::manifest::frontier::Frontier;
use exactfed_runner::manifest::phase::{PhaseAxis, PhaseNumber};
use exactfed_runner::manifest::searched::{AlgorithmName, SearchedAlgorithm};
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// The cost of an algorithm is at most `factor` times that of another, or of every other, on each square of a region of
/// a map, for every instance of the map. The costs are exact, so that the verdict needs no interval. Where the best
/// step size or number of local steps is at the end of its range, or ε is not reached, a wider range might decide
/// otherwise: such a square never supports the claim.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseLessKeys {
    /// Id of the map.
    #[schemars(example = &"noise")]
    pub phase: String,
    /// The algorithm.
    pub algorithm: AlgorithmName,
    /// The algorithm that it is compared with; by default every other algorithm of the map.
    pub than: Option<AlgorithmName>,
    /// The smallest and the largest value on the x axis; all by default.
    #[schemars(example = serde_json::json!([0.1, 10.0]))]
    pub x: Option<[f64; 2]>,
    /// The same on the y axis.
    #[schemars(example = serde_json::json!([0.1, 10.0]))]
    pub y: Option<[f64; 2]>,
    /// The factor, above 0; by default 1.05, within which there is no practical difference.
    #[serde(default = "tie")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 1.2)]
    pub factor: f64,
    /// The share of the squares of the region on which it must hold, above 0 and at most 1.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0), example = 0.9)]
    pub share: f64,
}

fn tie() -> f64 {
    TIE
}

impl KindKeys<ClaimKeys> for PhaseLessKeys {
    /// Notes what is wrong with the keys: the factor, the share, the region, and algorithms that the map does not have.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        let manifest = table.manifest;
        table.above("factor", claim.factor, 0.0);
        table.above("share", claim.share, 0.0);
        table.require(claim.share <= 1.0, "share", "`share` must be at most 1");
        for (key, range) in [("x", claim.x), ("y", claim.y)] {
            let holds = range.is_none_or(|[low, high]| low <= high);
            table.require(holds, key, format!("`{key}` must be two numbers, the smaller first"));
        }
        let message = "an algorithm would be compared with itself";
        table.require(Some(&claim.algorithm) != claim.than.as_ref(), "than", message);
        let Some(phase) = manifest.phase.iter().find(|phase| phase.id == claim.phase) else {
            let known: Vec<&str> = manifest.phase.iter().map(|phase| phase.id.as_str()).collect();
            let message = format!("no map is called \"{}\"", claim.phase);
            return table.note("phase", message, |d| d.naming(&claim.phase, &known));
        };
        if let Some(frontier) = Frontier::named(phase.frontier.as_deref(), &manifest.frontier) {
            check_algorithm(table, "algorithm", frontier, &claim.algorithm);
            if let Some(than) = &claim.than {
                check_algorithm(table, "than", frontier, than);
            }
        }
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<PhaseLessKeys> {
    /// Tests the claim on each instance of the map, as one part: by the square that decides there ([`Self::deciding`]).
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let mut phases = judge.frontiers.iter().flat_map(|frontier| &frontier.phases);
        let phase = phases
            .find(|one| one.phase.id == self.phase)
            .expect("every map of a manifest is computed");
        // Rounding alone refutes nothing.
        let region = widened((f64::NEG_INFINITY, libm::log(self.factor)));
        for &seed in &phase.seeds {
            // Every instance has the same squares.
            let Some((place, comparison)) = self.deciding(phase, seed) else {
                parts.untested.push("the map has no squares there".into());
                break;
            };
            match comparison {
                SquareComparison::Ratio(ratio) => {
                    parts.tested.push((place, exact(libm::log(ratio), region)));
                }
                SquareComparison::Unknown(reason) => {
                    parts.untested.push(format!("{place}: {reason}"))
                }
            }
        }
        Tested { parts, formula: self.formula(phase), scale: EstimateScale::Logarithm }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        wrong_costs(&self.algorithm, self.than.as_ref())
    }
}

/// How the costs of the algorithms of a claim compare on a square of the map.
enum SquareComparison {
    /// The cost of the claim's algorithm as a multiple of the least cost of its rivals.
    Ratio(f64),
    /// A wider range of settings might decide otherwise, for this reason.
    Unknown(String),
}

impl SquareComparison {
    /// A square where this algorithm is the reason why nothing is decided.
    fn unknown(algorithm: &SearchedAlgorithm, reason: &str) -> Self {
        Self::Unknown(format!("{}: {reason}", algorithm.label))
    }
}

/// The least cost of an algorithm on a square, at the price of the square; `None` where it does not reach the target.
fn least_cost(square: &ComputedSquare<'_>, algorithm: &SearchedAlgorithm) -> Option<f64> {
    square.ranked.all.iter().find(|one| one.0 == algorithm).map(|one| one.2)
}

/// Whether a number is in a range that a claim names, up to rounding; without a range it is.
fn is_within(value: f64, range: Option<[f64; 2]>) -> bool {
    range.is_none_or(|[low, high]| value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9))
}

/// The range of an axis to which a claim is limited, as the end of a formula; empty without a range.
fn range_text(axis: PhaseAxis, range: Option<[f64; 2]>) -> String {
    let Some([low, high]) = range else { return String::new() };
    format!(" for {} from {} to {}", axis.over.symbol(), readable(low, 3), readable(high, 3))
}

/// The value of a number of the problem on a square, as `ζ₁ = 0.1`.
fn place_text(square: &ComputedSquare<'_>, number: PhaseNumber) -> String {
    format!("{} = {}", number.symbol(), readable(square.numbers.get(number), 3))
}

impl PhaseLessKeys {
    /// Whether a square is in the region of the map that the claim is about.
    fn is_meant(&self, phase: &ComputedPhase<'_>, square: &ComputedSquare<'_>) -> bool {
        is_within(square.numbers.get(phase.phase.x.over), self.x)
            && is_within(square.numbers.get(phase.phase.y.over), self.y)
    }

    /// Compares the costs on a square. A least cost that is found at the end of a range of settings might be smaller
    /// with a wider range, and a target that is missed might be reached. Where that is so of a rival, the square does
    /// not support the claim, but refutes it if the ratio is too large already; where it is so of the claim's own
    /// algorithm, nothing is decided.
    fn compare(&self, phase: &ComputedPhase<'_>, square: &ComputedSquare<'_>) -> SquareComparison {
        let algorithm = phase.algorithm(&self.algorithm);
        let Some(own) = least_cost(square, algorithm) else {
            return SquareComparison::unknown(algorithm, NOT_REACHED);
        };
        if square.at_edge.contains(&algorithm) {
            return SquareComparison::unknown(algorithm, AT_AN_EDGE);
        }
        let mut least = f64::INFINITY;
        let mut unknown = None;
        for rival in phase.algorithms {
            if !is_rival(&self.algorithm, self.than.as_ref(), &rival.name) {
                continue;
            }
            let cost = least_cost(square, rival);
            if cost.is_none() {
                unknown = Some(SquareComparison::unknown(rival, NOT_REACHED));
            } else if square.at_edge.contains(&rival) {
                unknown = Some(SquareComparison::unknown(rival, AT_AN_EDGE));
            }
            least = least.min(cost.unwrap_or(f64::INFINITY));
        }
        if least.is_infinite() && unknown.is_none() {
            return SquareComparison::unknown(algorithm, "the frontier has no other algorithm");
        }
        let ratio = own / least;
        if ratio > self.factor * (1.0 + 1e-9) {
            return SquareComparison::Ratio(ratio);
        }
        unknown.unwrap_or(SquareComparison::Ratio(ratio))
    }

    /// The square that decides the claim on the instance of this seed, with its place as text. Squares are ordered by
    /// their ratios of costs: first squares that support the claim, then squares of unknown ratio, then squares that
    /// refute it. The last square of the share for which the claim must hold decides, so that an unknown one decides
    /// only if the others do not. `None` if the region has no square.
    fn deciding(&self, phase: &ComputedPhase<'_>, seed: u64) -> Option<(String, SquareComparison)> {
        let squares = phase
            .squares
            .iter()
            .filter(|square| square.seed == seed && self.is_meant(phase, square));
        let mut found: Vec<(f64, SquareComparison, &ComputedSquare<'_>)> = Vec::new();
        for square in squares {
            let comparison = self.compare(phase, square);
            let order = match comparison {
                SquareComparison::Ratio(ratio) => ratio,
                SquareComparison::Unknown(_) => self.factor * (1.0 + 1e-9),
            };
            found.push((order, comparison, square));
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all = found.len();
        let count = libm::ceil(self.share * all as f64) as usize;
        let (_, comparison, square) = found.into_iter().nth(count.checked_sub(1)?)?;
        let [x, y] = [phase.phase.x.over, phase.phase.y.over];
        let of_all = match self.share {
            1.0 => format!("the worst of {}", thousands(count)),
            _ => format!("the worst of the best {} of {}", thousands(count), thousands(all)),
        };
        let instance = if phase.seeds.len() > 1 { format!("seed {seed}, ") } else { String::new() };
        let place = format!("{}, {}", place_text(square, x), place_text(square, y));
        Some((format!("{instance}{of_all} squares, {place}"), comparison))
    }

    /// What is tested, as a formula.
    fn formula(&self, phase: &ComputedPhase<'_>) -> String {
        format!(
            "cost of {} ≤ {} × that of {}{}{}",
            phase.algorithm(&self.algorithm).label,
            self.factor,
            rivals(phase.frontier, self.than.as_ref()),
            range_text(phase.phase.x, self.x),
            range_text(phase.phase.y, self.y)
        )
    }
}
