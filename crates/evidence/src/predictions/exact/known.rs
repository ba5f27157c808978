//! What the values of a cell are made of, each part computed once.

use crate::predictions::radii::radii;
use crate::predictions::{MomentsCache, Theory};
use exactfed_core::federated::Schedule;
use exactfed_core::problem::Facts;
use exactfed_core::theory::deterministic::{drift, drift_effort};
use exactfed_core::theory::exact::{Moments, SpectralRadii};
use exactfed_core::theory::heterogeneity::Measures;
use exactfed_runner::runner::{Prepared, Scenario, predict};
use std::cell::OnceCell;
use std::collections::HashSet;

/// The most numbers of all clients together that are listed.
const MOST_NUMBERS: usize = 10_000_000;

/// A cell on one instance, with what its values are made of.
pub struct KnownCell<'a> {
    /// The cell with its instances.
    pub prepared: &'a Prepared<'a>,
    /// Its start and its limit.
    pub scenario: &'a Scenario,
    /// What is known of its instance.
    pub facts: &'a dyn Facts,
    /// The predictions for this cell.
    pub theory: Theory<'a>,
    /// The exact moments at the recorded rounds.
    pub moments: Result<Vec<Moments>, predict::NoMoments>,
    measures: OnceCell<Option<Measures>>,
    radii: OnceCell<Result<SpectralRadii, predict::NoMoments>>,
}

impl<'a> KnownCell<'a> {
    /// What is known of one cell, which has one instance.
    pub fn new(alone: &'a [Prepared<'a>; 1]) -> Self {
        let [prepared] = alone;
        let scenario: &Scenario = &prepared.scenarios[0];
        let moments = predict::check_exact_moments(prepared)
            .and_then(|()| predict::exact_moments(prepared.cell, scenario));
        Self {
            prepared,
            scenario,
            facts: &*scenario.instance,
            theory: Theory::new(alone, &HashSet::new(), MomentsCache::Off),
            moments,
            measures: OnceCell::new(),
            radii: OnceCell::new(),
        }
    }

    /// The id of the cell.
    pub fn id(&self) -> &str {
        &self.prepared.cell.id
    }

    /// A measure of how clients differ.
    pub fn measure(&self, one: fn(&Measures) -> f64) -> Option<Vec<f64>> {
        Some(vec![one(self
            .measures
            .get_or_init(|| {
                Measures::effort(self.facts).fits().then(|| Measures::new(self.facts))?
            })
            .as_ref()?)])
    }

    /// A spectral radius of a round.
    pub fn radius(&self, one: fn(&SpectralRadii) -> f64) -> Option<Vec<f64>> {
        Some(vec![one(self.radii().as_ref().ok()?)])
    }

    /// The spectral radii, or why they are not known.
    pub fn radii(&self) -> &Result<SpectralRadii, predict::NoMoments> {
        self.radii.get_or_init(|| radii(self.prepared))
    }

    /// The first run's drift from θ*.
    pub fn drift(&self) -> Option<Vec<f64>> {
        let terms = self.prepared.cell.identity.algorithm.components().swap_remove(0).terms;
        let step = terms.step(0);
        let steps = terms.most_steps();
        let even = terms.schedule == Schedule::Every && terms.local_steps.len() == 1;
        let fits = even && drift_effort(self.facts, steps).fits();
        fits.then(|| vec![drift(self.facts, step, steps)])
    }

    /// d numbers of each client, one client after another.
    pub fn of_clients(&self, numbers: impl Fn(usize) -> Vec<f64>) -> Option<Vec<f64>> {
        let n = self.facts.clients();
        let d = self.facts.dim();
        (n.saturating_mul(d) <= MOST_NUMBERS).then(|| (0..n).flat_map(numbers).collect())
    }

    /// Numbers of the moments at each recorded round, one round after another.
    pub fn of_moments(&self, numbers: impl Fn(&Moments) -> Vec<f64>) -> Option<Vec<f64>> {
        Some(self.moments.as_ref().ok()?.iter().flat_map(numbers).collect())
    }
}
