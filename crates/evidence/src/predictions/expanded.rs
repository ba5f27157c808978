//! Predictions in powers of the step size: biases, the first order of covariances and the central limit theorem
//! of averaged estimates.

use super::refused::Computation;
use super::theory::{Theory, single_scenario};
use super::uniform::UniformTerms;
use exactfed_core::algorithm::{Average, Component};
use exactfed_core::federated::{Clock, Schedule, Terms};
use exactfed_core::kernel::axpy;
use exactfed_core::moments::{self, ExactMoments};
use exactfed_core::problem::Facts;
use exactfed_core::theory::bounds::richardson_romberg;
use exactfed_core::theory::expansion::{self, Expansion, RoundSteps};
use exactfed_runner::manifest::{Prediction, Quantity};
use exactfed_runner::runner::predict::{self, AveragedOver};
use exactfed_runner::runner::{Prepared, Scenario};
use std::rc::Rc;
use std::sync::Arc;

impl Theory<'_> {
    /// tr(A⁻¹CA⁻ᵀ)/(NHn) at each recorded round, the expectation of the squared error of the mean of estimates by the
    /// central limit theorem, with n the estimates that are averaged by then; infinite before the first. `None` for a
    /// quantity that is no error of such a mean.
    pub(super) fn clt(&self, prepared: &Prepared<'_>, quantity: Quantity) -> Option<Vec<f64>> {
        let identity = &prepared.cell.identity;
        // The rounds before the first one that is averaged.
        let burn_in = match (quantity, identity.algorithm.average()) {
            (Quantity::SqErrorAverage, Average::None) => 0,
            (Quantity::SqError, Average::BurnIn(share)) => (share * identity.rounds as f64) as u64,
            _ => return None,
        };
        let components = identity.algorithm.components();
        let [Component { terms, .. }] = components.as_slice() else { return None };
        // Step sizes may fall.
        let uniform = UniformTerms::new(&Terms { decay: None, ..terms.clone() })?;
        let expansion = self.expansion(prepared, single_scenario(prepared)?)?;
        // An estimate is taken after each round, which is a fixed number of local steps by the clock of steps.
        let steps_of_round = match terms.schedule {
            Schedule::Bernoulli { clock: Clock::Steps, .. } => terms.most_steps() as f64,
            Schedule::Every | Schedule::Bernoulli { .. } => uniform.local_steps.mean(),
        };
        let one = expansion.clt_trace().ok()? / steps_of_round;
        Some(
            prepared
                .recorded
                .iter()
                .map(|t: &u64| one / t.saturating_sub(burn_in) as f64)
                .collect(),
        )
    }

    /// A prediction of E θ − θ* at stationarity, d numbers: the weighted sum over the runs of which an estimate is
    /// made. `over` says of which rounds the mean is, where rounds have a period. `None` where the prediction does not
    /// hold.
    pub(super) fn bias(
        &self,
        prepared: &Prepared<'_>,
        scenario: &Scenario,
        by: Prediction,
        over: AveragedOver,
    ) -> Option<Vec<f64>> {
        let facts: &dyn Facts = &*scenario.instance;
        let mut sum = vec![0.0; facts.dim()];
        if matches!(by, Prediction::ExactBias | Prediction::ExactMoments | Prediction::Stationary) {
            let weights = predict::phase_weights(prepared.cell, scenario, over);
            let limits = predict::limits(prepared.cell, scenario)?;
            limits.into_iter().zip(weights).for_each(|(limit, w)| axpy(w, limit, &mut sum));
            axpy(-1.0, facts.optimum(), &mut sum);
            return Some(sum);
        }
        if matches!(by, Prediction::RrIdentity | Prediction::RrIdentityPrinted) {
            // It has no more products than an expansion.
            self.refused.permit(prepared, Computation::Expansion, || Expansion::effort(facts))?;
            return proposition_2(prepared, facts, by);
        }
        let expansion = self.expansion(prepared, scenario)?;
        let components = prepared.cell.identity.algorithm.components();
        for (place, component) in components.iter().enumerate() {
            let uniform = UniformTerms::new(&component.terms)?;
            let UniformTerms { step_size: step, local_steps: steps, .. } = uniform;
            let corrected = uniform.is_corrected();
            let one = match by {
                Prediction::FirstOrder => expansion.bias(step, steps, corrected)?,
                // RR, first version, Table 1: both signs the other way round.
                Prediction::FirstOrderPrinted => {
                    expansion.bias(step, steps, corrected)?.iter().map(|x| -x).collect()
                }
                Prediction::SecondOrder => {
                    let mut bias = expansion.bias(step, steps, corrected)?;
                    axpy(1.0, &expansion.next(step, steps, corrected)?, &mut bias);
                    bias
                }
                Prediction::Closure => self.closure(prepared, scenario, place, component)?,
                _ => return None,
            };
            axpy(component.weight, &one, &mut sum);
        }
        Some(sum)
    }

    /// The closure's prediction of the bias of one run of a cell's estimate, which has this place among its components:
    /// the curvature of the mean fields on the exact moments of the field linearised at θ*. That field is the twin of
    /// the instance, or its own field if it is linear. `None` under random communication, without a twin, or where the
    /// moments are not known or too costly.
    fn closure(
        &self,
        prepared: &Prepared<'_>,
        scenario: &Scenario,
        place: usize,
        component: &Component,
    ) -> Option<Vec<f64>> {
        let uniform = UniformTerms::new(&component.terms)?;
        let RoundSteps::Fixed(steps) = uniform.local_steps else { return None };
        let step = uniform.step_size;
        let facts: &dyn Facts = &*scenario.instance;
        let twin: &dyn Facts = match &scenario.twin {
            Some((twin, _)) => &**twin,
            None if facts.linear() => facts,
            None => return None,
        };
        let components = predict::stationary_components(&prepared.cell.identity, facts)?;
        let alone = [Component { weight: 1.0, ..components[place].clone() }];
        let exact = ExactMoments::new(twin, &alone).ok()?;
        self.refused.permit(prepared, Computation::Closure, || {
            moments::stationary_effort(twin, &alone) + expansion::closure_effort(facts, steps)
        })?;
        let (moments, blocks) = exact.stationary().ok()?;
        expansion::closure(facts, &moments, &blocks, step, steps, uniform.is_corrected())
    }

    /// The terms of expansions in the step size on an instance, which cells with this instance share; `None` if draws
    /// are not independent, if the terms are not known, or if they would take too long, which is noted as refused for
    /// this cell.
    pub(super) fn expansion(
        &self,
        prepared: &Prepared<'_>,
        scenario: &Scenario,
    ) -> Option<Rc<Expansion>> {
        let key: *const () = Arc::as_ptr(&scenario.instance).cast();
        let facts: &dyn Facts = &*scenario.instance;
        if let Some(known) = self.expansions.borrow().get(&key) {
            return known.clone();
        }
        // C is the covariance of one draw: along a trajectory draws are correlated, too.
        if !facts.independent() || !facts.knows_facts_at_optimum() {
            return None;
        }
        self.refused.permit(prepared, Computation::Expansion, || Expansion::effort(facts))?;
        let found = Expansion::new(facts).ok().map(Rc::new);
        self.expansions.borrow_mut().insert(key, found.clone());
        found
    }

    /// γ(H − 1)Nλ of a cell's first run, with λ the largest diagonal entry of A: the first order of the bias holds
    /// where it is small. `None` if the expansion does not apply.
    pub fn reach(&self, id: &str) -> Option<f64> {
        let prepared = self.cells.get(id)?;
        let components = prepared.cell.identity.algorithm.components();
        let uniform = UniformTerms::new(&components[0].terms)?;
        let expansion = self.expansion(prepared, single_scenario(prepared)?)?;
        Some(expansion.reach(uniform.step_size, uniform.local_steps.mean()))
    }
}

/// The expression of FedAvg's bias in RR's Proposition 2, d numbers: with all its factors for
/// [`Prediction::RrIdentity`], and else as it is printed. `None` for other algorithms.
fn proposition_2(prepared: &Prepared<'_>, facts: &dyn Facts, by: Prediction) -> Option<Vec<f64>> {
    let components = prepared.cell.identity.algorithm.components();
    let [Component { terms, .. }] = components.as_slice() else { return None };
    let uniform = UniformTerms::new(terms)?;
    if uniform.is_corrected() || terms.schedule != Schedule::Every {
        return None;
    }
    let printed = by != Prediction::RrIdentity;
    richardson_romberg::identity(facts, uniform.step_size, terms.local_steps[0], printed)
}
