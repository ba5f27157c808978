//! Spectral radii of the exact recursions of moments.

use exactfed_core::moments;
use exactfed_core::problem::Facts;
use exactfed_core::theory::exact::{MomentsError, SpectralRadii};
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
    let mut largest: Option<SpectralRadii> = None;
    let all = prepared.scenarios.iter().map(|scenario| radii_of_instance(prepared, scenario));
    for radii in all.collect::<Result<Vec<SpectralRadii>, NoMoments>>()? {
        largest = Some(match largest {
            None => radii,
            Some(known) => SpectralRadii {
                mean: known.mean.max(radii.mean),
                square: known.square.max(radii.square),
            },
        });
    }
    largest.ok_or(NoMoments::Open)
}

fn radii_of_instance(
    prepared: &Prepared<'_>,
    scenario: &Scenario,
) -> Result<SpectralRadii, NoMoments> {
    let facts: &dyn Facts = &*scenario.instance;
    if let Some(cycle) = predict::cycle(prepared.cell, scenario) {
        return cycle?.radii().ok_or_else(unsettled);
    }
    let components =
        predict::stationary_components(&prepared.cell.identity).ok_or(NoMoments::Open)?;
    let cost = moments::effort(facts, &components, ROUNDS, 0);
    if cost.products > MOST_PRODUCTS || !cost.fits() {
        return Err(NoMoments::Costly(cost));
    }
    let exact = predict::independent_moments(facts, &components).map_err(|_| NoMoments::Open)?;
    exact.radii().ok_or_else(unsettled)
}

fn unsettled() -> NoMoments {
    NoMoments::Unknown(MomentsError::UnsettledGrowth)
}
