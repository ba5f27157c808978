//! Federated Richardson-Romberg (RR §6): two runs whose biases differ in a
//! known way, and the weighted sum of their estimates that cancels the leading
//! term. Over the step size (γ and 2γ) or over local steps (H and 2H), around
//! any algorithm of the engine.

use super::{
    Average, Component, Settings as _, fedavg, fedlin, fedprox, minibatch_sgd, scaffnew, scaffold,
};
use crate::federated::{Clock, Cost, Run};
use crate::problem::{Fault, Faults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.richardson-romberg]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"FedAvg-RR")]
    pub label: Option<String>,
    /// γ of the finer run, above 0; over the step size the coarser takes 2γ.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub step_size: f64,
    /// H, local steps a round (mini-batch SGD: the batch); over local steps the
    /// coarser run takes 2H. Not beside `over = { scaffnew = … }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: Option<u64>,
    /// What differs between the two runs, and the weights.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = "step-size"))]
    pub extrapolate: Extrapolate,
    /// L, clients drawn without replacement in each round; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 5)]
    pub cohort: Option<usize>,
    /// Polyak-Ruppert averaging of the extrapolated estimates.
    #[serde(default)]
    pub average: Average,
    /// The algorithm that is extrapolated.
    #[serde(default)]
    pub over: Base,
    /// Whether the two runs meet the same noise.
    #[serde(default)]
    pub coupling: Coupling,
}

/// What differs between the two runs, and the weights of their estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extrapolate {
    /// γ and 2γ: 2 θ^(γ) − θ^(2γ) (RR §6).
    #[default]
    StepSize,
    /// H and 2H: ((2H−1) θ^(H) − (H−1) θ^(2H))/H, the weights that sum to one
    /// and cancel the heterogeneity bias (RR Remark 1, corrected).
    LocalSteps,
    /// H and 2H: ((2H−1)/(H−1)) θ^(H) − θ^(2H), as RR Remark 1 prints it; the
    /// weights do not sum to one. H is 2 or more.
    LocalStepsPrinted,
}

/// The algorithm that is extrapolated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// FedAvg, as in RR §6.
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

/// Whether the two runs meet the same noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// The same draws in both: their fluctuations cancel in part.
    #[default]
    Common,
    /// Draws of their own: to first order (2² + 2) times FedAvg's variance.
    Independent,
}

impl Settings {
    /// The extrapolated algorithm at one step size and number of local steps.
    fn base(&self, weight: f64, step_size: f64, local_steps: u64) -> Component {
        let (label, average, cohort) = (None, Average::None, self.cohort);
        let mut components = match self.over {
            Base::Fedavg => {
                fedavg::Settings { cohort, ..fedavg::Settings::new(step_size, local_steps) }
                    .components()
            }
            Base::Scaffold => {
                scaffold::Settings { cohort, ..scaffold::Settings::new(step_size, local_steps) }
                    .components()
            }
            Base::Fedlin => fedlin::Settings {
                label,
                step_size,
                local_steps: Some(local_steps),
                steps_per_client: Vec::new(),
                normalised: false,
                average,
            }
            .components(),
            Base::MinibatchSgd => {
                let batch = local_steps;
                minibatch_sgd::Settings { label, step_size, batch, cohort, average }.components()
            }
            Base::Fedprox { proximal } => {
                fedprox::Settings { label, step_size, local_steps, proximal, cohort, average }
                    .components()
            }
            Base::Scaffnew { communication_probability } => {
                let clock = Clock::Communications;
                scaffnew::Settings { label, step_size, communication_probability, clock, average }
                    .components()
            }
        };
        let component = components.remove(0);
        let terms = crate::federated::Terms { cohort, ..component.terms };
        Component { weight, terms, ..component }
    }
}

impl super::Settings for Settings {
    fn average(&self) -> Average {
        self.average
    }
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
    fn components(&self) -> Vec<Component> {
        let (step, h) = (self.step_size, self.local_steps.unwrap_or(1));
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
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let coin = matches!(self.over, Base::Scaffnew { .. });
        faults.require(self.local_steps.is_some() || coin, "local-steps", || {
            "is needed: how many local steps has a round?".into()
        });
        faults.require(!(coin && self.local_steps.is_some()), "local-steps", || {
            "cannot stand beside `over = { scaffnew = … }`: the coin says how many steps".into()
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
        let costs = self.runs.iter().map(|(_, run)| run.cost());
        costs.reduce(Cost::beside).unwrap_or_default()
    }
}
