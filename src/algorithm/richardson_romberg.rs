//! Federated Richardson-Romberg over the step size (RR §6): two runs, γ and
//! 2γ, and the estimate 2 θ^(γ) − θ^(2γ), which loses the bias of order γ.

use super::{Average, Component, fedavg, scaffold};
use crate::federated::{Conditions, Cost, Run};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// `[[algorithm.richardson-romberg]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures.
    #[serde(default, skip_serializing)]
    pub label: Option<String>,
    /// γ of the finer run, above 0; the coarser one takes 2γ.
    pub step_size: f64,
    /// H, local steps a round, of both runs.
    pub local_steps: u64,
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

/// The algorithm that is extrapolated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// FedAvg, as in RR §6.
    #[default]
    Fedavg,
    /// Scaffold.
    Scaffold,
}

/// Whether the two runs meet the same noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// The same draws in both: their fluctuations cancel in part.
    #[default]
    Common,
    /// Draws of their own: to first order (2² + 2) times FedAvg's variance.
    Independent,
}

impl Settings {
    fn base<'p, P: Problem>(
        &self,
        problem: &'p P,
        step_size: f64,
        from: &Conditions,
    ) -> Box<dyn Run + 'p> {
        use super::Settings as _;
        let (label, local_steps, average) = (None, self.local_steps, Average::None);
        match self.over {
            Base::Fedavg => {
                fedavg::Settings { label, step_size, local_steps, average }.start(problem, from)
            }
            Base::Scaffold => {
                scaffold::Settings { label, step_size, local_steps, average }.start(problem, from)
            }
        }
    }
}

impl super::Settings for Settings {
    fn scale(&self) -> (f64, u64) {
        (self.step_size, self.local_steps)
    }
    fn average(&self) -> Average {
        self.average
    }
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
    fn components(&self) -> Vec<Component> {
        let (corrected, local_steps) = (self.over == Base::Scaffold, self.local_steps);
        let of = |weight, step_size| Component { weight, corrected, step_size, local_steps };
        vec![of(2.0, self.step_size), of(-1.0, 2.0 * self.step_size)]
    }
    fn start<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p> {
        let copy = match self.coupling {
            Coupling::Common => from.copy,
            Coupling::Independent => from.copy + 1,
        };
        let fine = self.base(problem, self.step_size, from);
        let coarse = self.base(problem, 2.0 * self.step_size, &Conditions { copy, ..*from });
        Box::new(RichardsonRomberg::new([(2.0, fine), (-1.0, coarse)]))
    }
}

/// A weighted sum of two runs; weights sum to one.
pub struct RichardsonRomberg<'p> {
    runs: [(f64, Box<dyn Run + 'p>); 2],
    estimate: Vec<f64>,
}

impl<'p> RichardsonRomberg<'p> {
    /// The sum of the two runs' estimates with these weights.
    pub fn new(runs: [(f64, Box<dyn Run + 'p>); 2]) -> Self {
        let mut new = Self { estimate: vec![0.0; runs[0].1.estimate().len()], runs };
        new.combine();
        new
    }

    fn combine(&mut self) {
        let [(a, first), (b, second)] = &self.runs;
        let both = first.estimate().iter().zip(second.estimate());
        for (out, (x, y)) in self.estimate.iter_mut().zip(both) {
            *out = a * x + b * y;
        }
    }
}

impl Run for RichardsonRomberg<'_> {
    fn round(&mut self) {
        self.runs.iter_mut().for_each(|(_, run)| run.round());
        self.combine();
    }
    fn estimate(&self) -> &[f64] {
        &self.estimate
    }
    fn cost(&self) -> Cost {
        self.runs[0].1.cost().beside(self.runs[1].1.cost())
    }
}
