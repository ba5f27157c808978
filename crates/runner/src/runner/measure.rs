//! What is measured of a run at a recorded round.

use super::average::{Sums, corrections_at_optimum};
use super::prepare::Scenario;
use crate::manifest::Record;
use crate::quantity::{MeasuredOn, Metric, Reading};
use exactfed_core::federated::Run;
use exactfed_core::kernel::axpy;
use exactfed_core::problem::Facts;

/// The metrics that a cell records, and what they must remember between rounds.
pub struct Meter<'a> {
    scenario: &'a Scenario,
    /// The metrics that it measures.
    pub metrics: Vec<Metric>,
    /// Σ_{s≤t} θ_s, if the mean is listed for.
    sum: Vec<f64>,
    /// ξ_c* = −F̄_c(θ*), N rows of d, if ψ is listed for or control variates are averaged.
    corrections: Vec<f64>,
    /// What is averaged over the rounds.
    pub averages: Sums<'a>,
}

impl<'a> Meter<'a> {
    /// A meter for these metrics, in their own order whatever the record's;
    /// what `run` on this scenario does not have is left out.
    pub fn new(scenario: &'a Scenario, record: &Record, rounds: u64, run: &dyn Run) -> Self {
        let facts: &dyn Facts = &*scenario.instance;
        let all = Metric::ALL.iter().copied().filter(|metric| record.metrics.contains(metric));
        let metrics: Vec<Metric> = all.filter(|metric| has(*metric, facts, run)).collect();
        let averages = Sums::new(scenario, record, rounds, run);
        let mut corrections = Vec::new();
        if metrics.contains(&Metric::Lyapunov) || averages.of_variates() {
            corrections = corrections_at_optimum(facts);
        }
        Self { scenario, metrics, sum: vec![0.0; facts.dim()], corrections, averages }
    }

    /// Sees a round of the run and of its twin, recorded or not.
    pub fn observe(&mut self, run: &dyn Run, twin: Option<&dyn Run>) {
        self.averages.observe(run, twin, &self.corrections);
        if self.metrics.contains(&Metric::SqErrorAverage) {
            axpy(1.0, run.estimate(), &mut self.sum);
        }
    }

    /// The value of each metric now; `coupled` is the estimate of the run on the
    /// same draws, if there is one.
    pub fn read(&self, run: &dyn Run, coupled: Option<&[f64]>) -> Vec<f64> {
        let reading = Reading {
            facts: &*self.scenario.instance,
            run,
            coupled,
            sum: (&self.sum, self.averages.seen),
            corrections: &self.corrections,
        };
        let value = |metric: &Metric| metric.measured().1(&reading).unwrap_or(f64::NAN);
        self.metrics.iter().map(value).collect()
    }
}

/// Whether the run on this problem has the metric.
fn has(metric: Metric, facts: &dyn Facts, run: &dyn Run) -> bool {
    match metric.measured().0 {
        // It has a column of its own.
        MeasuredOn::Limit => false,
        MeasuredOn::Estimate | MeasuredOn::Field => true,
        MeasuredOn::Clients => run.clients().is_some(),
        MeasuredOn::Variates => run.clients().is_some_and(|c| !c.corrections.is_empty()),
        MeasuredOn::VirtualOptimum => facts.virtual_optimum().is_some(),
        MeasuredOn::Features => facts.feature_norm(&vec![0.0; facts.dim()]).is_some(),
        MeasuredOn::Objective => facts.suboptimality(facts.optimum()).is_some(),
        MeasuredOn::Loss(of) => facts.loss(facts.optimum(), of).is_some(),
        MeasuredOn::Classes(of) => facts.accuracy(facts.optimum(), of).is_some(),
    }
}
