//! Spectral radii of the exact recursions of moments.

use exactfed_core::moments;
use exactfed_core::problem::Facts;
use exactfed_core::theory::exact::{MomentsError, SpectralRadii};
use exactfed_runner::runner::predict::{self, NoMoments};
use exactfed_runner::runner::{Prepared, Scenario};

/// About how many rounds of moments it takes to find a radius.
const ROUNDS: u64 = 1024;
/// The most multiplications that finding a radius may take.
const MOST_PRODUCTS: f64 = 4e9;

/// The spectral radii of the maps of a cell's rounds on means and on second moments, each the largest of its instances,
/// over one round: moments converge if the radius is below 1. Where the rounds of a custom algorithm have a period, it
/// is the geometric mean over the period.
///
/// # Errors
/// Why they are not known: moments do not close, cost too much, or their growth does not settle.
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

/// The spectral radii of a cell on one instance, with the errors of [`radii`].
fn radii_of_instance(
    prepared: &Prepared<'_>,
    scenario: &Scenario,
) -> Result<SpectralRadii, NoMoments> {
    let facts: &dyn Facts = &*scenario.instance;
    // A custom algorithm, and one with a schedule of clients, has a cycle of rounds; any other built-in one has none.
    if let Some(cycle) = predict::cycle(prepared.cell, scenario) {
        return cycle?.radii().ok_or_else(unsettled);
    }
    let components =
        predict::stationary_components(&prepared.cell.identity, facts).ok_or(NoMoments::Open)?;
    let cost = moments::effort(facts, &components, ROUNDS, 0);
    if cost.products > MOST_PRODUCTS || !cost.fits() {
        return Err(NoMoments::Costly(cost));
    }
    let exact = predict::independent_moments(facts, &components).map_err(|_| NoMoments::Open)?;
    exact.radii().ok_or_else(unsettled)
}

/// The error that the growth of moments, by which a radius is found, does not settle.
fn unsettled() -> NoMoments {
    NoMoments::Unknown(MomentsError::UnsettledGrowth)
}
