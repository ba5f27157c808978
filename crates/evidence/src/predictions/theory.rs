//! Predictions for the cells of an experiment, each computed when it is first asked for.

use super::expected::{ExpectedColumns, MomentsCache, quantity_of_moments};
use super::refused::{Computation, Refused};
use super::uniform::UniformTerms;
use exactfed_core::algorithm::Component;
use exactfed_core::federated::{Learning, Variates};
use exactfed_core::kernel::{dot, squared_distance};
use exactfed_core::linalg::Matrix;
use exactfed_core::moments::{self, ExactMoments};
use exactfed_core::problem::Facts;
use exactfed_core::theory::bounds::{self, Bound, Bounded, Constants};
use exactfed_core::theory::effort::{Effort, MOST_BYTES};
use exactfed_core::theory::exact::{CovarianceBlocks, Moments};
use exactfed_core::theory::expansion::Expansion;
use exactfed_core::theory::markov::{self, TrajectoryMoments};
use exactfed_runner::manifest::{Prediction, Quantity, TimeAverage};
use exactfed_runner::runner::predict::{self, AveragedOver};
use exactfed_runner::runner::{Prepared, Scenario};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The exact moments at stationarity: those of each phase of the rounds, of which most algorithms have one, and the
/// covariances with control variates.
type AtRest = Rc<(Vec<Moments>, CovarianceBlocks)>;

/// Predictions for the cells of an experiment. What they are made of is kept once it is computed.
pub struct Theory<'a> {
    /// The cells for which there are predictions, by id.
    pub(super) cells: HashMap<&'a str, &'a Prepared<'a>>,
    /// The exact moments at the recorded rounds, by cell; only of those cells for which they were asked.
    expected: HashMap<&'a str, ExpectedColumns>,
    /// The exact moments at stationarity that are known, by cell; `None` for a cell that has none.
    stationary: RefCell<HashMap<String, Option<AtRest>>>,
    /// How many numbers `stationary` holds, so that its memory is limited.
    stationary_size: std::cell::Cell<usize>,
    /// The computations that were not done because they would take too long.
    pub(super) refused: Refused,
    /// The terms of expansions, by the address of the instance.
    pub(super) expansions: RefCell<HashMap<*const (), Option<Rc<Expansion>>>>,
    /// The constants of published bounds, by the address of the instance.
    pub(super) constants: RefCell<HashMap<*const (), Option<Rc<Constants>>>>,
}

/// ‖lim E θ_t − θ*‖² of a cell, its mean over the instances if it has several; where rounds have a period, the limit is
/// the mean over it. `None` if an instance has no known limit.
pub fn exact_bias(prepared: &Prepared<'_>) -> Option<f64> {
    let squares = prepared.scenarios.iter().map(|scenario| {
        let limit = predict::limit(prepared.cell, scenario)?;
        Some(squared_distance(limit, scenario.instance.optimum()))
    });
    Some(crate::stats::mean(&squares.collect::<Option<Vec<f64>>>()?))
}

/// ‖lim E θ_t − θ*‖² of a cell at each recorded round, its mean over the instances if there are several. If the rounds
/// of a custom algorithm have a period, the limit is the one for the phase of the round, and else all numbers are
/// equal. `None` if an instance has no known limit.
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
    /// Theory for these cells. Exact moments at the recorded rounds are read from the cache or computed now, for the
    /// cells whose ids are in `moments` alone; all else is computed when it is asked for.
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
            stationary_size: Default::default(),
            cells: prepared.iter().map(|p| (p.cell.id.as_str(), p)).collect(),
            expected,
            stationary: RefCell::default(),
            expansions: RefCell::default(),
            constants: RefCell::default(),
        }
    }

    /// The cost of a prediction for a cell, if it is too high, which is why there is none; known once the prediction
    /// was asked for.
    pub fn too_costly(&self, id: &str, by: Prediction) -> Option<Effort> {
        self.refused.cost(id, by)
    }

    /// Why a cell has no exact moments, in one line, if the reason is another than their cost; `None` if it has some,
    /// if they are only too costly ([`too_costly`](Self::too_costly)), or if there is no theory for the cell.
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

    /// A cell with its instances, as it is run; `None` if there is no theory for it.
    pub fn prepared(&self, id: &str) -> Option<&'a Prepared<'a>> {
        self.cells.get(id).copied()
    }

    /// A prediction of the mean of a quantity at each recorded round of a cell, a number for each; the same number at
    /// all of them if the prediction is for stationarity. `None` if there is no such prediction of the quantity for the
    /// cell; if the conditions of a bound fail at some of the rounds; and, of a cell with several instances, for all
    /// predictions but exact moments and exact biases, which are means over the instances. Exact moments are known only
    /// of the cells for which [`new`](Self::new) was asked for them.
    pub fn curve(&self, id: &str, quantity: Quantity, by: Prediction) -> Option<Vec<f64>> {
        let prepared = self.cells.get(id)?;
        if prepared.cell.identity.until.is_some() {
            // Predictions are for all rounds, and runs end when their noise decides.
            return None;
        }
        let rows = prepared.recorded.len();
        if matches!(by, Prediction::Contraction | Prediction::ContractionPrinted) {
            return self.contraction(prepared, by).filter(|_| is_of_two_runs(quantity));
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
            Prediction::ExactMoments if is_of_two_runs(quantity) => {
                exact_distance_of_two_runs(prepared, quantity)
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
            // Expansions and closures predict vectors, from whose squares these quantities follow.
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

    /// (1 − γμ)^{Ht}‖θ_0 − θ*‖² at each recorded round: RR's bound on the squared distance of two runs on the same
    /// draws (Propositions 1 and 3). For Scaffold it bounds the distance with control variates too, THEORY (7.2), since
    /// both runs begin with the same ones. SLIDES prints the square of the factor ([`Prediction::ContractionPrinted`]).
    /// `None` unless the cell has one instance, and is a single run of FedAvg or Scaffold that meets the conditions of
    /// the bound ([`bounds::contraction`]).
    fn contraction(&self, prepared: &Prepared<'_>, by: Prediction) -> Option<Vec<f64>> {
        let scenario = single_scenario(prepared)?;
        let components = prepared.cell.identity.algorithm.components();
        // The proof for Scaffold is of control variates that follow from the local steps.
        if components[0].terms.variates == Variates::Kept(Learning::OptionOne) {
            return None;
        }
        let start = squared_distance(&scenario.start, scenario.instance.optimum());
        let power = if by == Prediction::ContractionPrinted { 2.0 } else { 1.0 };
        let mut values = Vec::with_capacity(prepared.recorded.len());
        for t in prepared.recorded.iter() {
            let shrunk = self.find_bounds(&prepared.cell.id, *t, bounds::contraction)??;
            values.push(start * libm::pow(shrunk, power));
        }
        Some(values)
    }

    /// The mean of a quantity at stationarity by the exact moments, over the phases of the rounds if they have a
    /// period; `None` if the cell has no such moments or several instances.
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

    /// A prediction of an average over rounds of a cell at stationarity: a vector of d numbers, or matrices row by row,
    /// one for each client if control variates are in it. `over` says of which rounds the average is, where rounds have
    /// a period. Exact moments predict all averages, the first order all of a single run, and other predictions the
    /// bias alone. `None` if there is no such prediction for the cell, or it has several instances.
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
                let UniformTerms { step_size, local_steps, variates } = UniformTerms::new(run)?;
                let printed = by == Prediction::FirstOrderPrinted;
                let facts: &dyn Facts = &*scenario.instance;
                self.refused.permit(prepared, Computation::Expansion, || {
                    Expansion::blocks_effort(facts, variates.is_some())
                })?;
                terms.blocks(facts, step_size, local_steps, variates, printed)?
            }
            _ => return None,
        };
        Some(match what {
            // The bias was returned above.
            TimeAverage::Bias | TimeAverage::Covariance => blocks.theta.entries().to_vec(),
            TimeAverage::CrossCovariance => entries_of_all(&blocks.theta_variate),
            TimeAverage::VariateCovariance => entries_of_all(&blocks.variate),
            TimeAverage::VariatePairCovariance => entries_of_all(&blocks.variate_pair),
        })
    }

    /// The exact moments of a cell at rest, which are found once; `None` if there are none, or they cost too much.
    fn stationary(&self, id: &str) -> Option<AtRest> {
        if let Some(known) = self.stationary.borrow().get(id) {
            return known.clone();
        }
        let found = self.find_stationary(id);
        let mut known = self.stationary.borrow_mut();
        // Beyond the limit on memory all known moments are dropped, and computed again if they are needed.
        let numbers = found.as_ref().map_or(0, |found| {
            let covariances = found.0.iter().map(|m| m.covariance.entries().len());
            found.1.numbers() + covariances.sum::<usize>()
        });
        if 8.0 * (self.stationary_size.get() + numbers) as f64 > MOST_BYTES {
            known.clear();
            self.stationary_size.set(0);
        }
        self.stationary_size.set(self.stationary_size.get() + numbers);
        known.insert(id.to_owned(), found.clone());
        found
    }

    /// Computes the exact moments of a cell at rest, from the traced rounds of a custom algorithm, along trajectories
    /// of Markov chains, or from independent draws.
    fn find_stationary(&self, id: &str) -> Option<AtRest> {
        let prepared = self.cells.get(id)?;
        let scenario = single_scenario(prepared)?;
        let facts: &dyn Facts = &*scenario.instance;
        if let Some(cycle) = predict::cycle(prepared.cell, scenario) {
            let cycle = match cycle {
                // A cost that does not fit is noted as refused here.
                Err(predict::NoMoments::Costly(cost)) => {
                    self.refused.permit(prepared, Computation::Stationary, || cost)?;
                    return None;
                }
                cycle => cycle.ok()?,
            };
            return Some(Rc::new(predict::at_rest(prepared.cell, &cycle).ok()?));
        }
        let components = predict::stationary_components(&prepared.cell.identity, facts)?;
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
}

/// Whether a quantity is a distance of two runs on the same draws.
fn is_of_two_runs(quantity: Quantity) -> bool {
    matches!(quantity, Quantity::SqCoupling | Quantity::SqCouplingVariates)
}

/// The exact mean square distance of two runs on the same draws at each recorded round, with control variates if the
/// quantity has them; `None` where it is not known, or the cell has several instances.
fn exact_distance_of_two_runs(prepared: &Prepared<'_>, quantity: Quantity) -> Option<Vec<f64>> {
    predict::check_exact_moments(prepared).ok()?;
    let scenario = single_scenario(prepared)?;
    match quantity {
        Quantity::SqCouplingVariates => {
            predict::coupled_moments_with_variates(prepared.cell, scenario)
        }
        _ => predict::coupled_moments(prepared.cell, scenario),
    }
}

/// The instance of a cell; `None` if it has several, since predictions are for one.
pub(super) fn single_scenario<'p>(prepared: &'p Prepared<'_>) -> Option<&'p Scenario> {
    match &prepared.scenarios[..] {
        [scenario] => Some(scenario),
        _ => None,
    }
}

/// The trace of a d × d matrix that is stored row by row.
fn trace(matrix: &[f64], d: usize) -> f64 {
    (0..d).fold(0.0, |sum, i| sum + matrix[i * d + i])
}

/// The entries of all matrices of a list, one matrix after another.
fn entries_of_all(list: &[Matrix]) -> Vec<f64> {
    list.iter().flat_map(|matrix| matrix.entries().iter().copied()).collect()
}

/// The quantity of a cell's runs that a published bound is of.
pub fn quantity_of(bound: &Bound) -> Quantity {
    match bound.info.quantity {
        Bounded::SqError => Quantity::SqError,
        Bounded::Lyapunov => Quantity::Lyapunov,
        Bounded::Bias => Quantity::Bias,
        Bounded::LimitSqError => Quantity::SqErrorLimit,
    }
}

/// Whether a bound bounds a quantity: its own, or ‖θ − θ*‖², which is never larger than the Lyapunov function.
pub fn fits(bound: &Bound, quantity: Quantity) -> bool {
    let own = quantity_of(bound);
    own == quantity || own == Quantity::Lyapunov && quantity == Quantity::SqError
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated;
    use exactfed_runner::runner::prepare;

    /// Two quadratics with μ = 1 in which a draw multiplies the gradient by 0 or 2, so that L = 2.
    const PROBLEM: &str = r#"
title = "t"
seed = 5
replicates = 1
[problem.quadratic]
dimension = 2
clients = 2
spectrum = { from = 1.0, to = 1.0 }
noise = 0.0
multiplicative-noise = 1.0
multiplicative-form = "two-point"
[start]
offset = 1.0
[budget]
rounds = 3
[record]
every = 1
"#;

    /// The contraction of the only cell with these lines of settings; `None` if it is not known.
    fn contraction(algorithm: &str) -> Option<Vec<f64>> {
        let plan = simulated::plan(format!("{PROBLEM}{algorithm}"));
        let prepared = prepare(&plan.folder(), &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(prepared.len(), 1);
        let theory = Theory::new(&prepared, &HashSet::new(), MomentsCache::Off);
        theory.curve(&plan.cells[0].id, Quantity::SqCoupling, Prediction::Contraction)
    }

    /// Whether a contraction begins with the squared distance 2 of the start, and is multiplied by this factor in each
    /// round.
    fn falls_by(factor: f64, found: Option<Vec<f64>>) -> bool {
        let found = found.expect("the conditions hold");
        let expected = (0..4).map(|t| 2.0 * libm::pow(factor, f64::from(t)));
        found.len() == 4 && found.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-12)
    }

    #[test]
    fn a_contraction_is_known_where_its_conditions_hold() {
        let settings = |kind: &str, step: f64, more: &str| {
            contraction(&format!("[[algorithm.{kind}]]\nstep-size = {step:?}\n{more}\n"))
        };
        assert!(falls_by(0.75, settings("fedavg", 0.25, "local-steps = 1")));
        assert!(falls_by(0.64, settings("scaffold", 0.2, "local-steps = 2")));
        // γL is 1.2, and then γHL.
        assert_eq!(settings("fedavg", 0.6, "local-steps = 1"), None);
        assert_eq!(settings("scaffold", 0.3, "local-steps = 2"), None);
        for (kind, more) in [
            ("scaffold", "local-steps = 2\nvariates = \"option-one\""),
            ("scaffnew", "communication-probability = 0.5"),
            ("richardson-romberg", "local-steps = 1\nover = \"fedavg\""),
            ("fedavg", "local-steps = 1\naverage = { burn-in = 0.5 }"),
            ("fedavg", "local-steps = 1\nserver-step = 0.9"),
        ] {
            assert_eq!(settings(kind, 0.1, more), None, "{kind}, {more}");
        }
    }
}
