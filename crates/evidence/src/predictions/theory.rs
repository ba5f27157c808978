//! Predictions for the cells of an experiment, each computed when it is first asked for.

use super::expected::{ExpectedColumns, MomentsCache, quantity_of_moments};
use super::refused::{Computation, Refused};
use exactfed_core::algorithm::{Average, Component};
use exactfed_core::federated::{Schedule, Terms, Variates};
use exactfed_core::kernel::{axpy, dot, squared_distance};
use exactfed_core::linalg::Matrix;
use exactfed_core::moments::{self, ExactMoments};
use exactfed_core::problem::Facts;
use exactfed_core::theory::bounds::richardson_romberg;
use exactfed_core::theory::bounds::{self, Bound, Bounded, Constants};
use exactfed_core::theory::effort::{Effort, MOST_BYTES};
use exactfed_core::theory::exact::{CovarianceBlocks, Moments};
use exactfed_core::theory::expansion::{self, Expansion};
use exactfed_core::theory::heterogeneity::Measures;
use exactfed_core::theory::markov::{self, TrajectoryMoments};
use exactfed_runner::manifest::{Prediction, Quantity, TimeAverage};
use exactfed_runner::runner::predict::{self, AveragedOver};
use exactfed_runner::runner::{Prepared, Scenario};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Moments of each phase of the rounds, and blocks, at stationarity.
type AtRest = Rc<(Vec<Moments>, CovarianceBlocks)>;

/// Predictions for the cells of an experiment.
pub struct Theory<'a> {
    pub(super) cells: HashMap<&'a str, &'a Prepared<'a>>,
    expected: HashMap<&'a str, ExpectedColumns>,
    stationary: RefCell<HashMap<String, Option<AtRest>>>,
    /// How many numbers these hold.
    at_rest: std::cell::Cell<usize>,
    pub(super) refused: Refused,
    expansions: RefCell<HashMap<*const (), Option<Rc<Expansion>>>>,
    pub(super) constants: RefCell<HashMap<*const (), Option<Rc<Constants>>>>,
}

/// ‖lim E θ_t − θ*‖² of a cell, its mean over replicates where each has an instance; where rounds
/// have a period, the limit is the mean over it.
pub fn exact_bias(prepared: &Prepared<'_>) -> Option<f64> {
    let squares = prepared.scenarios.iter().map(|scenario| {
        let limit = predict::limit(prepared.cell, scenario)?;
        Some(squared_distance(limit, scenario.instance.optimum()))
    });
    Some(crate::stats::mean(&squares.collect::<Option<Vec<f64>>>()?))
}

/// ‖lim E θ_t − θ*‖² at each recorded round, for the phase of the period in which the round is.
fn exact_biases(prepared: &Prepared<'_>) -> Option<Vec<f64>> {
    let squares = prepared
        .scenarios
        .iter()
        .map(|scenario| {
            let limits = predict::limits(prepared.cell, scenario)?;
            let optimum = scenario.instance.optimum();
            let phases: Vec<f64> = limits.iter().map(|x| squared_distance(x, optimum)).collect();
            Some(predict::at_phases(prepared.cell, scenario, &phases, &prepared.recorded))
        })
        .collect::<Option<Vec<Vec<f64>>>>()?;
    Some(
        (0..prepared.recorded.len())
            .map(|row| crate::stats::mean(&squares.iter().map(|all| all[row]).collect::<Vec<_>>()))
            .collect(),
    )
}

impl<'a> Theory<'a> {
    /// Theory for these cells, with the exact moments of some of them.
    pub fn new(
        prepared: &'a [Prepared<'a>],
        moments: &HashSet<&str>,
        cache: MomentsCache<'_>,
    ) -> Self {
        let expected: HashMap<&str, ExpectedColumns> = prepared
            .par_iter()
            .filter(|p| moments.contains(p.cell.id.as_str()))
            .map(|p| (p.cell.id.as_str(), cache.columns(p)))
            .collect();
        Self {
            refused: Refused::new(
                Computation::Moments,
                expected.iter().filter_map(|(id, columns)| match columns {
                    Err(predict::NoMoments::Costly(cost)) => Some(((*id).to_owned(), *cost)),
                    _ => None,
                }),
            ),
            at_rest: Default::default(),
            cells: prepared.iter().map(|p| (p.cell.id.as_str(), p)).collect(),
            expected,
            stationary: RefCell::default(),
            expansions: RefCell::default(),
            constants: RefCell::default(),
        }
    }

    /// The cost of a prediction for a cell, if that is why there is none; known once the
    /// prediction was asked for.
    pub fn too_costly(&self, id: &str, by: Prediction) -> Option<Effort> {
        self.refused.cost(id, by)
    }

    /// Why there are no exact moments of a cell at any size, if there are none.
    pub fn no_moments(&self, id: &str) -> Option<String> {
        let why = match self.expected.get(id) {
            Some(found) => found.as_ref().err().cloned(),
            None => predict::check_exact_moments(self.cells.get(id)?).err(),
        };
        let why = why.filter(|why| !matches!(why, predict::NoMoments::Costly(_)))?.to_string();
        // Lines after the first quote the code of an algorithm.
        Some(why.lines().next()?.to_owned())
    }

    /// The computations that were refused, one sentence each.
    pub fn not_computed(&self) -> Vec<String> {
        self.refused.sentences()
    }

    /// A cell as it is run.
    pub fn prepared(&self, id: &str) -> Option<&'a Prepared<'a>> {
        self.cells.get(id).copied()
    }

    /// A prediction of a quantity at each recorded round of a cell.
    pub fn curve(&self, id: &str, quantity: Quantity, by: Prediction) -> Option<Vec<f64>> {
        let prepared = self.cells.get(id)?;
        let rows = prepared.recorded.len();
        if matches!(by, Prediction::Contraction | Prediction::ContractionPrinted) {
            return self.contraction(prepared, by).filter(|_| quantity == Quantity::SqCoupling);
        }
        if by.is_bound() {
            let bounds = prepared.recorded.iter().map(|&t| {
                let bound = self.bound(id, by, t)?;
                let fits = fits(&bound, quantity);
                bound.value.ok().filter(|_| fits)
            });
            return bounds.collect();
        }
        if let Some(average) = quantity.average() {
            let vector = self.vector(id, average, by, AveragedOver::Rounds)?;
            let value = match quantity {
                Quantity::Variance => trace(&vector, prepared.scenarios[0].instance.dim()),
                _ => libm::sqrt(dot(&vector, &vector)),
            };
            return Some(vec![value; rows]);
        }
        match by {
            Prediction::Clt => self.clt(prepared, quantity),
            Prediction::ExactMoments if quantity == Quantity::SqCoupling => {
                predict::check_exact_moments(prepared).ok()?;
                predict::coupled_moments(prepared.cell, single_scenario(prepared)?)
            }
            Prediction::ExactMoments => {
                self.expected.get(id)?.as_ref().ok()?.get(quantity.name()).cloned()
            }
            Prediction::Stationary => {
                let found = self.stationary(id)?;
                let cell = prepared.cell;
                let scenario = single_scenario(prepared)?;
                let phases = found
                    .0
                    .iter()
                    .map(|m| quantity_of_moments(m, quantity, (cell, scenario)))
                    .collect::<Option<Vec<f64>>>()?;
                Some(predict::at_phases(cell, scenario, &phases, &prepared.recorded))
            }
            Prediction::ExactBias => {
                exact_biases(prepared).filter(|_| quantity == Quantity::SqError)
            }
            _ => match quantity {
                Quantity::SqErrorLimit => self.curve(id, Quantity::Variance, by),
                Quantity::SqError => {
                    let vector = self.vector(id, TimeAverage::Bias, by, AveragedOver::Rounds)?;
                    Some(vec![dot(&vector, &vector); rows])
                }
                _ => None,
            },
        }
    }

    /// (1 − γμ)^{Ht}‖θ_0 − θ*‖² at each recorded round (RR Propositions 1 and 3, of
    /// squares), or the power that SLIDES prints, which is that of the distance itself.
    fn contraction(&self, prepared: &Prepared<'_>, by: Prediction) -> Option<Vec<f64>> {
        let scenario = single_scenario(prepared)?;
        let facts: &dyn Facts = &*scenario.instance;
        if facts.unequal_shares().is_some() {
            return None;
        }
        let components = prepared.cell.identity.algorithm.components();
        let (step, steps, _) = uniform_terms(&components[0].terms)?;
        self.refused.permit(prepared, Computation::Measures, || Measures::effort(facts))?;
        let mu = Measures::new(facts)?.least_mu();
        let start = squared_distance(&scenario.start, facts.optimum());
        let power = if by == Prediction::ContractionPrinted { 2.0 } else { 1.0 };
        Some(
            prepared
                .recorded
                .iter()
                .map(|t: &u64| {
                    let shrunk = bounds::contraction(mu, step, steps as u64, *t);
                    start * libm::pow(shrunk, power)
                })
                .collect(),
        )
    }

    /// tr(A⁻¹CA⁻ᵀ)/(NHn) at each recorded round, n the iterates that are averaged by then.
    fn clt(&self, prepared: &Prepared<'_>, quantity: Quantity) -> Option<Vec<f64>> {
        let identity = &prepared.cell.identity;
        let burn_in = match (quantity, identity.algorithm.average()) {
            (Quantity::SqErrorAverage, Average::None) => 0,
            (Quantity::SqError, Average::BurnIn(share)) => (share * identity.rounds as f64) as u64,
            _ => return None,
        };
        let components = identity.algorithm.components();
        let [Component { terms, .. }] = components.as_slice() else { return None };
        let (_, steps, _) = uniform_terms(&Terms { decay: None, ..terms.clone() })?;
        let expansion = self.expansion(prepared, single_scenario(prepared)?)?;
        let one = expansion.clt_trace().ok()? / steps;
        Some(
            prepared
                .recorded
                .iter()
                .map(|t: &u64| one / t.saturating_sub(burn_in) as f64)
                .collect(),
        )
    }

    /// A quantity of the moments at stationarity, its mean over the phases of the rounds.
    pub fn at_rest(&self, id: &str, quantity: Quantity) -> Option<f64> {
        let prepared = self.cells.get(id)?;
        let scenario = single_scenario(prepared)?;
        let found = self.stationary(id)?;
        let weights = predict::phase_weights(prepared.cell, scenario, AveragedOver::Cycle);
        quantity_of_moments(
            &Moments::mixture(&found.0, &weights),
            quantity,
            (prepared.cell, scenario),
        )
    }

    /// A prediction of a vector of a cell at stationarity.
    pub fn vector(
        &self,
        id: &str,
        what: TimeAverage,
        by: Prediction,
        over: AveragedOver,
    ) -> Option<Vec<f64>> {
        let prepared = self.cells.get(id)?;
        let scenario = single_scenario(prepared)?;
        if what == TimeAverage::Bias {
            return self.bias(prepared, scenario, by, over);
        }
        let blocks = match by {
            Prediction::ExactMoments | Prediction::Stationary => {
                let found = self.stationary(id)?;
                let weights = predict::phase_weights(prepared.cell, scenario, over);
                let covariance = Moments::mixture(&found.0, &weights).covariance;
                CovarianceBlocks { theta: covariance, ..found.1.clone() }
            }
            Prediction::FirstOrder | Prediction::FirstOrderPrinted => {
                let terms = self.expansion(prepared, scenario)?;
                let components = prepared.cell.identity.algorithm.components();
                let [Component { terms: run, .. }] = components.as_slice() else { return None };
                let (step, steps, corrected) = uniform_terms(run)?;
                let printed = by == Prediction::FirstOrderPrinted;
                let facts: &dyn Facts = &*scenario.instance;
                self.refused.permit(prepared, Computation::Expansion, || {
                    Expansion::blocks_effort(facts, corrected)
                })?;
                terms.blocks(facts, step, steps, corrected, printed)?
            }
            _ => return None,
        };
        Some(match what {
            TimeAverage::Bias | TimeAverage::Covariance => blocks.theta.entries().to_vec(),
            TimeAverage::CrossCovariance => entries_of_all(&blocks.theta_variate),
            TimeAverage::VariateCovariance => entries_of_all(&blocks.variate),
            TimeAverage::VariatePairCovariance => entries_of_all(&blocks.variate_pair),
        })
    }

    fn bias(
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
            let (step, steps, corrected) = uniform_terms(&component.terms)?;
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

    fn closure(
        &self,
        prepared: &Prepared<'_>,
        scenario: &Scenario,
        place: usize,
        component: &Component,
    ) -> Option<Vec<f64>> {
        let (step, steps, corrected) = uniform_terms(&component.terms)?;
        if component.terms.schedule != Schedule::Every {
            return None;
        }
        let facts: &dyn Facts = &*scenario.instance;
        let twin: &dyn Facts = match &scenario.twin {
            Some((twin, _)) => &**twin,
            None if facts.linear() => facts,
            None => return None,
        };
        let components = predict::stationary_components(&prepared.cell.identity)?;
        let alone = [Component { weight: 1.0, ..components[place].clone() }];
        let exact = ExactMoments::new(twin, &alone).ok()?;
        self.refused.permit(prepared, Computation::Closure, || {
            moments::stationary_effort(twin, &alone)
                + expansion::closure_effort(facts, steps as u64)
        })?;
        let (moments, blocks) = exact.stationary().ok()?;
        expansion::closure(facts, &moments, &blocks, step, steps as u64, corrected)
    }

    fn stationary(&self, id: &str) -> Option<AtRest> {
        if let Some(known) = self.stationary.borrow().get(id) {
            return known.clone();
        }
        let found = self.find_stationary(id);
        let mut known = self.stationary.borrow_mut();
        // They are matrices: beyond the limit all are dropped, and computed again if needed.
        let numbers = found.as_ref().map_or(0, |found| {
            let covariances = found.0.iter().map(|m| m.covariance.entries().len());
            found.1.numbers() + covariances.sum::<usize>()
        });
        if 8.0 * (self.at_rest.get() + numbers) as f64 > MOST_BYTES {
            known.clear();
            self.at_rest.set(0);
        }
        self.at_rest.set(self.at_rest.get() + numbers);
        known.insert(id.to_owned(), found.clone());
        found
    }

    /// The exact moments at rest, which no earlier call has found.
    fn find_stationary(&self, id: &str) -> Option<AtRest> {
        let prepared = self.cells.get(id)?;
        let scenario = single_scenario(prepared)?;
        let facts: &dyn Facts = &*scenario.instance;
        if let Some(cycle) = predict::cycle(prepared.cell, scenario) {
            let cycle = match cycle {
                Err(predict::NoMoments::Costly(cost)) => {
                    self.refused.permit(prepared, Computation::Stationary, || cost)?;
                    return None;
                }
                cycle => cycle.ok()?,
            };
            return Some(Rc::new(predict::at_rest(prepared.cell, &cycle).ok()?));
        }
        let components = predict::stationary_components(&prepared.cell.identity)?;
        let along = predict::runs_with_trajectory_moments(&components, facts);
        let (moments, blocks) = if let Some(runs) = along {
            self.refused.permit(prepared, Computation::Stationary, || {
                markov::stationary_effort(facts, &runs)
            })?;
            TrajectoryMoments::new(facts, &runs)?.stationary()?
        } else {
            let exact = ExactMoments::new(facts, &components).ok()?;
            self.refused.permit(prepared, Computation::Stationary, || {
                moments::stationary_effort(facts, &components)
            })?;
            exact.stationary().ok()?
        };
        Some(Rc::new((vec![moments], blocks)))
    }

    fn expansion(&self, prepared: &Prepared<'_>, scenario: &Scenario) -> Option<Rc<Expansion>> {
        let key: *const () = Arc::as_ptr(&scenario.instance).cast();
        let facts: &dyn Facts = &*scenario.instance;
        if let Some(known) = self.expansions.borrow().get(&key) {
            return known.clone();
        }
        // C is the covariance of one draw: along a trajectory draws are correlated, too.
        if !facts.independent() {
            return None;
        }
        self.refused.permit(prepared, Computation::Expansion, || Expansion::effort(facts))?;
        let found = Expansion::new(facts).ok().map(Rc::new);
        self.expansions.borrow_mut().insert(key, found.clone());
        found
    }

    /// γ(H − 1)Nλ of a cell's first run: the first order holds where it is small.
    pub fn reach(&self, id: &str) -> Option<f64> {
        let prepared = self.cells.get(id)?;
        let components = prepared.cell.identity.algorithm.components();
        let (step, steps, _) = uniform_terms(&components[0].terms)?;
        Some(self.expansion(prepared, single_scenario(prepared)?)?.reach(step, steps))
    }
}

/// The instance of a cell, if its replicates share one.
pub(super) fn single_scenario<'p>(prepared: &'p Prepared<'_>) -> Option<&'p Scenario> {
    match &prepared.scenarios[..] {
        [scenario] => Some(scenario),
        _ => None,
    }
}

/// γ, H and whether there are control variates, of a run to which the expansions apply: all
/// clients take part with the same number of local steps.
fn uniform_terms(terms: &Terms) -> Option<(f64, f64, bool)> {
    let corrected = match terms.variates {
        Variates::None => false,
        Variates::Kept(_) => true,
        Variates::Fresh | Variates::Unknown(_) => return None,
    };
    let steps = match terms.schedule {
        Schedule::Every => terms.local_steps[0] as f64,
        Schedule::Bernoulli { probability, .. } => 1.0 / probability,
    };
    let even = terms.local_steps.len() == 1 && terms.batches == [1] && terms.cohort.is_none();
    let step = if terms.normalised { terms.step_size / steps } else { terms.step_size };
    let constant = terms.decay.is_none();
    (even && constant && terms.proximal == 0.0 && terms.server_step == 1.0)
        .then_some((step, steps, corrected))
}

/// The expression of FedAvg's bias in RR's Proposition 2.
fn proposition_2(prepared: &Prepared<'_>, facts: &dyn Facts, by: Prediction) -> Option<Vec<f64>> {
    let components = prepared.cell.identity.algorithm.components();
    let [Component { terms, .. }] = components.as_slice() else { return None };
    let (step, _, corrected) = uniform_terms(terms)?;
    if corrected || terms.schedule != Schedule::Every {
        return None;
    }
    let printed = by != Prediction::RrIdentity;
    richardson_romberg::identity(facts, step, terms.local_steps[0], printed)
}

fn trace(matrix: &[f64], d: usize) -> f64 {
    (0..d).fold(0.0, |sum, i| sum + matrix[i * d + i])
}

fn entries_of_all(list: &[Matrix]) -> Vec<f64> {
    list.iter().flat_map(|matrix| matrix.entries().iter().copied()).collect()
}

/// The quantity that a bound bounds.
pub fn quantity_of(bound: &Bound) -> Quantity {
    match bound.info.quantity {
        Bounded::SqError => Quantity::SqError,
        Bounded::Lyapunov => Quantity::Lyapunov,
        Bounded::Bias => Quantity::Bias,
        Bounded::LimitSqError => Quantity::SqErrorLimit,
    }
}

/// Whether a bound bounds a quantity, perhaps as a part of its own.
pub fn fits(bound: &Bound, quantity: Quantity) -> bool {
    let own = quantity_of(bound);
    own == quantity || own == Quantity::Lyapunov && quantity == Quantity::SqError
}
