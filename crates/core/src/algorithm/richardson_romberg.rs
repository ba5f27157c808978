//! Federated Richardson-Romberg (RR §6): runs whose biases differ in a known way, and the
//! weighted sum of their estimates that cancels the leading terms. Over the step size (γ, 2γ, …,
//! Kγ), over local steps (H and 2H) or over both, around any algorithm of the engine.

use super::info::{Family, RoundFormula};
use super::{AlgorithmKind, Component, Participation, has_cohort};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{Clock, Cost, Run, Schedule, Terms, Variates};
use crate::problem::{Fault, Faults};
use crate::sources::StatedAlgorithm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Richardson-Romberg extrapolation (RR §6): a weighted sum of the estimates of two or more runs,
/// in which the leading terms of the bias cancel. It costs what all runs cost, communications
/// included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RichardsonRomberg {
    /// H, the number of local steps in a round (mini-batch SGD: the batch); over local steps, and
    /// over both, coarser runs take 2H. Not together with `over = { scaffnew = … }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: Option<u64>,
    /// What differs between the runs, and the weights of their estimates.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "step-size"))]
    pub extrapolate: Extrapolate,
    /// K, the number of runs over the step size: γ, 2γ, …, Kγ, with the weights
    /// (−1)^(k−1) (K choose k), in which the orders 1 to K − 1 of the bias in γ cancel. Only with
    /// `extrapolate = "step-size"`.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    #[schemars(range(min = 2, max = 4), extend("default" = 2), example = 3)]
    pub points: u64,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
    /// How the clients of a round are selected and weighed.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"), example = &"rescaled")]
    pub participation: ParticipationScheme,
    /// The algorithm that is extrapolated.
    #[serde(default, skip_serializing)]
    #[schemars(extend("default" = "fedavg"))]
    pub over: Base,
    /// Whether the runs have the same noise.
    #[serde(default, skip_serializing)]
    #[schemars(extend("default" = "common"))]
    pub coupling: Coupling,
}

/// The keys that the canonical text of Richardson-Romberg has after `average`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pairing {
    over: Base,
    coupling: Coupling,
}

/// What differs between the runs, and the weights of their estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extrapolate {
    /// γ and 2γ: 2 θ^(γ) − θ^(2γ) (RR, section 6). With `points = 3` γ, 2γ and 3γ:
    /// 3 θ^(γ) − 3 θ^(2γ) + θ^(3γ).
    #[default]
    StepSize,
    /// H and 2H: ((2H−1) θ^(H) − (H−1) θ^(2H))/H, the weights that sum to one
    /// and cancel the heterogeneity bias (RR, Remark 1, corrected).
    LocalSteps,
    /// H and 2H: ((2H−1)/(H−1)) θ^(H) − θ^(2H), as RR, Remark 1 prints it; the
    /// weights do not sum to one. H must be 2 or more.
    LocalStepsPrinted,
    /// (γ, H), (2γ, H), (γ, 2H) and (2γ, 2H), each of the first kind within the second:
    /// (2H−1)/H (2 θ^(γ,H) − θ^(2γ,H)) − (H−1)/H (2 θ^(γ,2H) − θ^(2γ,2H)). The terms γ, γ(H−1) and
    /// γ²(H−1) of the bias cancel. H must be 2 or more.
    Both,
}

/// The algorithm that is extrapolated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// FedAvg, as in RR, section 6.
    #[default]
    Fedavg,
    /// Scaffold.
    Scaffold,
    /// FedLin.
    Fedlin,
    /// Mini-batch SGD.
    MinibatchSgd,
    /// FedProx.
    #[serde(rename_all = "kebab-case")]
    Fedprox {
        /// μ, 0 or more.
        #[schemars(range(min = 0.0), example = 1.0)]
        proximal: f64,
    },
    /// Scaffold under random communication; its rounds end at communications.
    #[serde(rename_all = "kebab-case")]
    Scaffnew {
        /// p, from 1e-9 to 1.
        #[schemars(range(min = 1e-9, max = 1.0), example = 0.1)]
        communication_probability: f64,
    },
}

/// Whether the runs have the same noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// All use the same draws, so that their fluctuations cancel in part.
    #[default]
    Common,
    /// Each has draws of its own: to first order 2² + 2 times the variance of FedAvg for two runs
    /// over the step size, 30 times for three.
    Independent,
}

impl RichardsonRomberg {
    /// A run of the algorithm that is extrapolated, at one step size γ and number H of local steps, whose estimate
    /// enters the extrapolation with this weight. For mini-batch SGD `local_steps` is the batch, and under a coin it is
    /// ignored. All runs have the same noise, copy 0; independent runs get copies of their own later.
    fn base(&self, weight: f64, step_size: f64, local_steps: u64) -> Component {
        let fedavg = Terms::fedavg(step_size, local_steps);
        let terms = match self.over {
            Base::Fedavg => fedavg,
            Base::Scaffold => Terms::scaffold(step_size, local_steps),
            Base::Fedlin => Terms { variates: Variates::Fresh, ..fedavg },
            Base::MinibatchSgd => {
                Terms { batches: vec![local_steps], ..Terms::fedavg(step_size, 1) }
            }
            Base::Fedprox { proximal } => Terms { proximal, ..fedavg },
            // A coin decides on the number of local steps.
            Base::Scaffnew { communication_probability: probability } => {
                let schedule = Schedule::Bernoulli { probability, clock: Clock::Communications };
                Terms { schedule, ..Terms::scaffold(step_size, 1) }
            }
        };
        Component {
            weight,
            terms: Terms {
                cohort: self.cohort.map(Participation::number),
                participation: self.participation.clone(),
                ..terms
            },
            copy: 0,
        }
    }
}

/// The most runs over the step size: with independent draws the variance is 140 times FedAvg's for
/// four of them, and the steps of the coarsest are four times as large.
const MOST_POINTS: u64 = 4;

/// k and the weight (−1)^(k−1) (K choose k) of the run with the step size kγ, for k = 1..K: the values at 0 of the
/// Lagrange polynomials for the points γ, 2γ, …, Kγ, so that the sum extrapolates the estimate to a step size of 0.
fn weights_over_step_sizes(points: u64) -> impl Iterator<Item = (u64, f64)> {
    let mut weight = -1.0;
    (1..=points).map(move |k| {
        weight *= -((points + 1 - k) as f64) / k as f64;
        (k, weight)
    })
}

impl AlgorithmKind for RichardsonRomberg {
    const FAMILY: Family = Family::RichardsonRomberg;

    has_cohort!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        Some(RoundFormula {
            words: "several runs, combined so that the leading orders of the bias cancel; it costs what all of them cost, communications included",
            tex: &[
                r"2\,\theta^{(\gamma)} - \theta^{(2\gamma)}",
                r"\text{or, over three step sizes,} \quad 3\,\theta^{(\gamma)} - 3\,\theta^{(2\gamma)} + \theta^{(3\gamma)}",
                r"\text{or, over local steps,} \quad \frac{(2H - 1)\,\theta^{(\gamma, H)} - (H - 1)\,\theta^{(\gamma, 2H)}}{H}",
                r"\text{or, over both, the first of these within the third}",
            ],
        })
    }

    /// The runs that are extrapolated, the finest first and one with the most local steps last: where runs have common
    /// draws and use unequal numbers of them in a round, all go on behind the draws of the last. Too many points, which
    /// [`Self::faults`] refuses, count as the most that it accepts.
    fn components(&self, step: f64) -> Vec<Component> {
        // Where H is not written, a coin ends the local steps.
        let h = self.local_steps.unwrap_or(1);
        let twice = h.saturating_mul(2);
        let steps = h as f64;
        // The weights of the runs with H and 2H local steps, which sum to 1.
        let fine = (2.0 * steps - 1.0) / steps;
        let coarse = (1.0 - steps) / steps;
        let mut runs = match self.extrapolate {
            Extrapolate::StepSize => weights_over_step_sizes(self.points.min(MOST_POINTS))
                .map(|(k, weight)| self.base(weight, k as f64 * step, h))
                .collect(),
            Extrapolate::LocalSteps => {
                vec![self.base(fine, step, h), self.base(coarse, step, twice)]
            }
            Extrapolate::LocalStepsPrinted => vec![
                self.base((2.0 * steps - 1.0) / (steps - 1.0), step, h),
                self.base(-1.0, step, twice),
            ],
            Extrapolate::Both => vec![
                self.base(2.0 * fine, step, h),
                self.base(-fine, 2.0 * step, h),
                self.base(2.0 * coarse, step, twice),
                self.base(-coarse, 2.0 * step, twice),
            ],
        };
        if self.coupling == Coupling::Independent {
            // Runs of different copies share no draws.
            (0..).zip(&mut runs).for_each(|(copy, run)| run.copy = copy);
        }
        runs
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.local_steps = Some(local_steps);
    }

    /// The extrapolation that the sources state, by what it combines; `Other` for all that they do not mention. The
    /// coupling of the draws is not looked at.
    fn stated(&self) -> StatedAlgorithm {
        match (self.extrapolate, self.over, self.points) {
            (Extrapolate::StepSize, Base::Fedavg, 2) => StatedAlgorithm::RichardsonRomberg,
            (Extrapolate::StepSize, Base::Scaffold, 2) => StatedAlgorithm::ExtrapolatedScaffold,
            (Extrapolate::LocalSteps | Extrapolate::LocalStepsPrinted, Base::Fedavg, _) => {
                StatedAlgorithm::OverLocalSteps
            }
            _ => StatedAlgorithm::Other,
        }
    }

    fn after_average(&self) -> Option<Pairing> {
        Some(Pairing { over: self.over, coupling: self.coupling })
    }

    /// What is wrong with the combination of keys. Step sizes, p and μ are checked with the terms of the runs, once
    /// this finds nothing.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let has_coin = matches!(self.over, Base::Scaffnew { .. });
        faults.require(self.local_steps.is_some() || has_coin, "local-steps", || {
            "is required: the number of local steps in a round".into()
        });
        faults.require(!(has_coin && self.local_steps.is_some()), "local-steps", || {
            "cannot stand beside `over = { scaffnew = … }`: the number of local steps is random"
                .into()
        });
        let over_steps = self.extrapolate != Extrapolate::StepSize;
        let has_steps = !has_coin && self.over != Base::MinibatchSgd;
        faults.require(has_steps || !over_steps, "extrapolate", || {
            "needs an algorithm that has local steps".into()
        });
        let why_not_one = match self.extrapolate {
            Extrapolate::StepSize | Extrapolate::LocalSteps => None,
            Extrapolate::LocalStepsPrinted => Some("the printed weights divide by H − 1"),
            Extrapolate::Both => Some("at H = 1 the runs with 2H have no weight"),
        };
        faults.require(why_not_one.is_none() || self.local_steps != Some(1), "local-steps", || {
            format!("must be 2 or more: {}", why_not_one.unwrap_or_default())
        });
        faults.require((2..=MOST_POINTS).contains(&self.points), "points", || {
            format!("must be from 2 to {MOST_POINTS}, not {}", self.points)
        });
        faults.require(is_two(&self.points) || !over_steps, "points", || {
            "needs `extrapolate = \"step-size\"`".into()
        });
        faults.0
    }
}

/// The default number of runs over the step size.
fn two() -> u64 {
    2
}

fn is_two(points: &u64) -> bool {
    *points == two()
}

/// A weighted sum of the estimates of several runs that go round by round.
pub struct Combined<'p> {
    /// Each run with its weight.
    runs: Vec<(f64, Box<dyn Run + 'p>)>,
    /// Whether the runs share their draws though the last run uses more of them in a round. Then all runs continue
    /// after each round with the draws that follow those of the last one, so that the draws of a round stay common.
    follow: bool,
    /// Σ weight · estimate, d numbers.
    estimate: Vec<f64>,
}

impl<'p> Combined<'p> {
    /// The weighted sum of runs before their first round; `follow` says whether all use the draws of the last one.
    ///
    /// # Panics
    /// If there is no run.
    pub fn new(runs: Vec<(f64, Box<dyn Run + 'p>)>, follow: bool) -> Self {
        let mut new = Self { estimate: runs[0].1.estimate().to_vec(), runs, follow };
        new.combine();
        new
    }

    /// Updates the estimate, Σ weight · estimate of the runs in their order, after the runs have changed theirs.
    fn combine(&mut self) {
        let Some(((weight, first), rest)) = self.runs.split_first() else { return };
        for (out, x) in self.estimate.iter_mut().zip(first.estimate()) {
            *out = weight * x;
        }
        for (weight, run) in rest {
            for (out, x) in self.estimate.iter_mut().zip(run.estimate()) {
                *out += weight * x;
            }
        }
    }
}

impl Run for Combined<'_> {
    fn round(&mut self) {
        self.runs.iter_mut().for_each(|(_, run)| run.round());
        if self.follow
            && let Some(((_, last), rest)) = self.runs.split_last_mut()
        {
            rest.iter_mut().for_each(|(_, run)| run.set_noise(last.noise()));
        }
        self.combine();
    }
    fn without_ends(&mut self) {
        self.runs.iter_mut().for_each(|(_, run)| run.without_ends());
    }
    fn estimate(&self) -> &[f64] {
        &self.estimate
    }
    fn cost(&self) -> Cost {
        self.runs.iter().map(|(_, run)| run.cost()).sum()
    }
}
