//! Spectral radii of the exact recursions of moments.

use exactfed_core::moments;
use exactfed_core::problem::Facts;
use exactfed_core::theory::exact::SpectralRadii;
use exactfed_runner::runner::predict::{self, NoMoments};
use exactfed_runner::runner::{Prepared, Scenario};

/// Rounds that finding a radius takes, about; and the products that it may cost.
const ROUNDS: u64 = 1024;
const MOST_PRODUCTS: f64 = 4e9;

/// The radii of a cell's recursions, the largest of its instances.
///
/// # Errors
/// Why they are not known: moments do not close, cost too much, or do not settle.
pub fn radii(prepared: &Prepared<'_>) -> Result<SpectralRadii, NoMoments> {
    let unsettled = || NoMoments::Unknown("the growth of second moments does not settle".into());
    let of_instance = |scenario: &Scenario| -> Result<SpectralRadii, NoMoments> {
        let facts: &dyn Facts = &*scenario.instance;
        if let Some(cycle) = predict::cycle(prepared.cell, scenario) {
            return cycle?.radii().ok_or_else(unsettled);
        }
        let components = predict::stationary_components(&prepared.cell.identity);
        let components = components.ok_or(NoMoments::Open)?;
        let cost = moments::effort(facts, &components, ROUNDS, 0);
        if cost.products > MOST_PRODUCTS || !cost.fits() {
            return Err(NoMoments::Costly(cost));
        }
        let exact = predict::independent_moments(facts, &components);
        exact.map_err(|_| NoMoments::Open)?.radii().ok_or_else(unsettled)
    };
    let largest = |a: SpectralRadii, b: SpectralRadii| SpectralRadii {
        mean: a.mean.max(b.mean),
        square: a.square.max(b.square),
    };
    let all: Result<Vec<SpectralRadii>, NoMoments> =
        prepared.scenarios.iter().map(|scenario| of_instance(scenario)).collect();
    all?.into_iter().reduce(largest).ok_or(NoMoments::Open)
}
