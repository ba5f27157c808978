//! Federated Richardson-Romberg (RR §6): two runs whose biases differ in a
//! known way, and the weighted sum of their estimates that cancels the leading
//! term. Over the step size (γ and 2γ) or over local steps (H and 2H), around
//! any algorithm of the engine.

use super::{AlgorithmKind, Component};
use crate::federated::{Clock, Cost, Run, Schedule, Terms, Variates};
use crate::problem::{Fault, Faults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Richardson-Romberg extrapolation (RR §6): a weighted sum of the estimates of two runs, in
/// which the leading term of the bias cancels. It costs what both runs cost, communications
/// included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RichardsonRomberg {
    /// H, the number of local steps in a round (mini-batch SGD: the batch); over local steps the
    /// coarser run takes 2H. Not beside `over = { scaffnew = … }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: Option<u64>,
    /// What differs between the two runs, and the weights of their estimates.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = "step-size"))]
    pub extrapolate: Extrapolate,
    /// L, the number of clients drawn without replacement in each round; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 5)]
    pub cohort: Option<usize>,
    /// The algorithm that is extrapolated.
    #[serde(default, skip_serializing)]
    #[schemars(extend("default" = "fedavg"))]
    pub over: Base,
    /// Whether the two runs have the same noise.
    #[serde(default, skip_serializing)]
    #[schemars(extend("default" = "common"))]
    pub coupling: Coupling,
}

/// The keys that the canonical text has after `average`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pairing {
    over: Base,
    coupling: Coupling,
}

/// What differs between the two runs, and the weights of their estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extrapolate {
    /// γ and 2γ: 2 θ^(γ) − θ^(2γ) (RR, section 6).
    #[default]
    StepSize,
    /// H and 2H: ((2H−1) θ^(H) − (H−1) θ^(2H))/H, the weights that sum to one
    /// and cancel the heterogeneity bias (RR, Remark 1, corrected).
    LocalSteps,
    /// H and 2H: ((2H−1)/(H−1)) θ^(H) − θ^(2H), as RR, Remark 1 prints it; the
    /// weights do not sum to one. H must be 2 or more.
    LocalStepsPrinted,
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

/// Whether the two runs have the same noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// Both use the same draws, so that their fluctuations cancel in part.
    #[default]
    Common,
    /// Each has draws of its own: to first order 2² + 2 times the variance of FedAvg.
    Independent,
}

impl RichardsonRomberg {
    /// The extrapolated algorithm at one step size and number of local steps.
    fn base(&self, weight: f64, step_size: f64, local_steps: u64) -> Component {
        let (fedavg, scaffold) = (Terms::fedavg, Terms::scaffold);
        let terms = match self.over {
            Base::Fedavg => fedavg(step_size, local_steps),
            Base::Scaffold => scaffold(step_size, local_steps),
            Base::Fedlin => Terms { variates: Variates::Fresh, ..fedavg(step_size, local_steps) },
            Base::MinibatchSgd => Terms { batches: vec![local_steps], ..fedavg(step_size, 1) },
            Base::Fedprox { proximal } => Terms { proximal, ..fedavg(step_size, local_steps) },
            Base::Scaffnew { communication_probability: probability } => {
                let schedule = Schedule::Bernoulli { probability, clock: Clock::Communications };
                Terms { schedule, ..scaffold(step_size, 1) }
            }
        };
        Component { weight, terms: Terms { cohort: self.cohort, ..terms }, copy: 0 }
    }
}

impl AlgorithmKind for RichardsonRomberg {
    fn components(&self, step: f64) -> Vec<Component> {
        let h = self.local_steps.unwrap_or(1);
        let steps = h as f64;
        let mut runs = match self.extrapolate {
            Extrapolate::StepSize => [self.base(2.0, step, h), self.base(-1.0, 2.0 * step, h)],
            Extrapolate::LocalSteps => [
                self.base((2.0 * steps - 1.0) / steps, step, h),
                self.base((1.0 - steps) / steps, step, h.saturating_mul(2)),
            ],
            Extrapolate::LocalStepsPrinted => [
                self.base((2.0 * steps - 1.0) / (steps - 1.0), step, h),
                self.base(-1.0, step, h.saturating_mul(2)),
            ],
        };
        runs[1].copy = u8::from(self.coupling == Coupling::Independent);
        runs.into()
    }

    fn after_average(&self) -> Option<Pairing> {
        Some(Pairing { over: self.over, coupling: self.coupling })
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let coin = matches!(self.over, Base::Scaffnew { .. });
        faults.require(self.local_steps.is_some() || coin, "local-steps", || {
            "is required: the number of local steps in a round".into()
        });
        faults.require(!(coin && self.local_steps.is_some()), "local-steps", || {
            "cannot stand beside `over = { scaffnew = … }`: the number of local steps is random"
                .into()
        });
        let over_steps = self.extrapolate != Extrapolate::StepSize;
        let has_steps = !coin && self.over != Base::MinibatchSgd;
        faults.require(has_steps || !over_steps, "extrapolate", || {
            "needs an algorithm that has local steps".into()
        });
        let printed = self.extrapolate == Extrapolate::LocalStepsPrinted;
        faults.require(!printed || self.local_steps != Some(1), "local-steps", || {
            "must be 2 or more: the printed weights divide by H − 1".into()
        });
        faults.0
    }
}

/// A weighted sum of the estimates of several runs that go round by round.
pub struct Combined<'p> {
    runs: Vec<(f64, Box<dyn Run + 'p>)>,
    /// Whether the runs share their noise though the last takes more of it in
    /// a round: then all go on from where that one is.
    follow: bool,
    estimate: Vec<f64>,
}

impl<'p> Combined<'p> {
    /// The sum of the runs' estimates with these weights.
    pub fn new(runs: Vec<(f64, Box<dyn Run + 'p>)>, follow: bool) -> Self {
        let mut new = Self { estimate: runs[0].1.estimate().to_vec(), runs, follow };
        new.combine();
        new
    }

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
        if let (true, Some(((_, last), rest))) = (self.follow, self.runs.split_last_mut()) {
            rest.iter_mut().for_each(|(_, run)| run.set_noise(last.noise()));
        }
        self.combine();
    }
    fn estimate(&self) -> &[f64] {
        &self.estimate
    }
    fn cost(&self) -> Cost {
        self.runs.iter().map(|(_, run)| run.cost()).sum()
    }
}
