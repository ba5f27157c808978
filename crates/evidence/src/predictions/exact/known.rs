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

/// The most entries of all clients together that a value may list.
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
    /// The exact moments at the recorded rounds, or why there are none.
    pub moments: Result<Vec<Moments>, predict::NoMoments>,
    /// The measures of the instance, once they are asked for; `None` if they would take too long or are not found.
    measures: OnceCell<Option<Measures>>,
    /// The spectral radii, once they are asked for.
    radii: OnceCell<Result<SpectralRadii, predict::NoMoments>>,
}

impl<'a> KnownCell<'a> {
    /// What is known of one cell, which must have one instance; its moments are computed now, and measures, radii and
    /// predictions when they are asked for.
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

    /// One of the measures of how clients differ, as a value of one number; `None` if they are not known.
    pub fn measure(&self, one: fn(&Measures) -> f64) -> Option<Vec<f64>> {
        let measures = self.measures.get_or_init(|| {
            Measures::effort(self.facts).fits().then(|| Measures::new(self.facts))?
        });
        Some(vec![one(measures.as_ref()?)])
    }

    /// One of the spectral radii of a round, as a value of one number; `None` if they are not known.
    pub fn radius(&self, one: fn(&SpectralRadii) -> f64) -> Option<Vec<f64>> {
        Some(vec![one(self.radii().as_ref().ok()?)])
    }

    /// The spectral radii, or why they are not known.
    pub fn radii(&self) -> &Result<SpectralRadii, predict::NoMoments> {
        self.radii.get_or_init(|| radii(self.prepared))
    }

    /// The drift of local steps from θ*, of the first run of the estimate, as a value of one number; `None` if clients
    /// take unequal numbers of local steps or communicate at random, or it would take too long.
    pub fn drift(&self) -> Option<Vec<f64>> {
        let terms = self.prepared.cell.identity.algorithm.components().swap_remove(0).terms;
        let step = terms.step(0);
        let steps = terms.most_steps();
        let even = terms.schedule == Schedule::Every && terms.local_steps.len() == 1;
        let fits = even && drift_effort(self.facts, steps).fits();
        fits.then(|| vec![drift(self.facts, step, steps)])
    }

    /// The weights π_c of all N clients, in their order.
    pub fn shares(&self) -> Vec<f64> {
        (0..self.facts.clients()).map(|c| self.facts.share(c)).collect()
    }

    /// The d numbers that a function gives for each client, one client after another; `None` if it gives none for a
    /// client, or these are more than [`MOST_NUMBERS`] together.
    pub fn vectors_of_clients(
        &self,
        vector: impl Fn(usize) -> Option<Vec<f64>>,
    ) -> Option<Vec<f64>> {
        let n = self.facts.clients();
        let d = self.facts.dim();
        if n.saturating_mul(d) > MOST_NUMBERS {
            return None;
        }
        let vectors = (0..n).map(vector).collect::<Option<Vec<Vec<f64>>>>()?;
        Some(vectors.concat())
    }

    /// The numbers that a function gives for the exact moments at each recorded round, one round after another; `None`
    /// if there are no moments.
    pub fn of_moments(&self, numbers: impl Fn(&Moments) -> Vec<f64>) -> Option<Vec<f64>> {
        Some(self.moments.as_ref().ok()?.iter().flat_map(numbers).collect())
    }
}
