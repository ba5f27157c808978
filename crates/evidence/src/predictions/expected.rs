//! The exact moments of cells at their recorded rounds, as columns of numbers, and their cache.

use crate::results::{Cacheable, Cached, Columns, Results};
use exactfed_core::theory::exact::Moments;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::{Prepared, Scenario, predict};

/// The expectation of each quantity that exact moments give, by name: a column with a number for each recorded round.
/// Or why there are no moments.
pub(super) type ExpectedColumns = Result<Columns, predict::NoMoments>;

/// The most cells of an experiment whose exact moments are cached, in a file for each cell: the moments of a small
/// cell are computed about as fast as a file is read, and more files are a burden.
const MOST_CACHED: usize = 1000;

/// Where exact moments are cached.
#[derive(Clone, Copy)]
pub enum MomentsCache<'a> {
    /// Moments are neither read from a cache nor kept in one.
    Off,
    /// Moments are read from the cache in these results, and what is computed is not written.
    Read(&'a dyn Results),
    /// Moments are read from the cache in these results, and what is computed is written to it.
    ReadAndWrite(&'a dyn Results),
}

impl<'a> MomentsCache<'a> {
    /// The cache for the pages of an experiment.
    pub fn for_plan(plan: &Plan, results: &'a dyn Results) -> Self {
        if plan.cells.len() > MOST_CACHED { Self::Off } else { Self::ReadAndWrite(results) }
    }

    /// The exact moments of a cell, from the cache or computed, and then written to the cache unless that is only read.
    /// That there are none is not cached.
    pub(super) fn columns(self, prepared: &Prepared<'_>) -> ExpectedColumns {
        let what = Cached::Moments(prepared.cell.id.to_string());
        let cached = match self {
            Self::Off => None,
            Self::Read(results) | Self::ReadAndWrite(results) => results.cached(&what),
        };
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let columns = mean_columns(prepared)?;
        if let Self::ReadAndWrite(results) = self {
            results.cache(&what, &columns);
        }
        Ok(columns)
    }
}

/// The exact moments of a cell as an entry of the cache with the computation that it must agree with.
pub fn cacheable_moments<'a>(prepared: &'a Prepared<'_>) -> Cacheable<'a> {
    Cacheable {
        what: Cached::Moments(prepared.cell.id.to_string()),
        compute: Box::new(|| mean_columns(prepared).ok()),
    }
}

/// The exact moments of a cell on one instance as columns: the quantities that have a finite value at every recorded
/// round.
fn moment_columns(cell: &Cell, scenario: &Scenario) -> ExpectedColumns {
    let moments = predict::exact_moments(cell, scenario)?;
    Ok(Quantity::ALL
        .iter()
        .filter_map(|q| {
            let values = moments.iter().map(|m| quantity_of_moments(m, *q, (cell, scenario)));
            Some((q.name().to_owned(), values.collect::<Option<Vec<f64>>>()?))
        })
        .collect())
}

/// The exact moments of a cell as columns, their mean over the instances if there are several. A quantity that is not
/// known on one of the instances has no column.
fn mean_columns(prepared: &Prepared<'_>) -> ExpectedColumns {
    predict::check_exact_moments(prepared)?;
    let Some((last, others)) = prepared.scenarios.split_last() else {
        return Err(predict::NoMoments::Open);
    };
    // One instance at a time, since its moments are one matrix per round.
    let mut mean = moment_columns(prepared.cell, last)?;
    for scenario in others {
        let more = moment_columns(prepared.cell, scenario)?;
        mean.retain(|name, _| more.contains_key(name));
        for (name, sums) in &mut mean {
            sums.iter_mut().zip(&more[name]).for_each(|(sum, x)| *sum += x);
        }
    }
    mean.values_mut().flatten().for_each(|sum| *sum /= prepared.scenarios.len() as f64);
    Ok(mean)
}

/// The expectation of a quantity by these moments of a cell on an instance; `None` if moments do not give it or it is
/// not finite.
pub fn quantity_of_moments(
    moments: &Moments,
    quantity: Quantity,
    on: (&Cell, &Scenario),
) -> Option<f64> {
    quantity_of_any_moments(moments, quantity, on).filter(|value| value.is_finite())
}

/// The expectation of a quantity by these moments of a cell on an instance, which may be infinite; `None` if moments do
/// not give it, which of a problem with several θ* determine the squared distance to the set of these alone.
pub fn quantity_of_any_moments(
    moments: &Moments,
    quantity: Quantity,
    (cell, scenario): (&Cell, &Scenario),
) -> Option<f64> {
    let expected = quantity.info().expected?;
    if let Some(set) = scenario.instance.optimum_set() {
        return (quantity == Quantity::SqError && moments.sq_error.is_finite())
            .then(|| set.expected_sq_distance(&moments.mean, &moments.covariance));
    }
    let optimum = scenario.instance.optimum();
    // Whether there is a limit takes time to find out.
    let needs_limit = quantity == Quantity::SqErrorLimit;
    let limit = needs_limit.then(|| predict::limit(cell, scenario)).flatten();
    expected(moments, optimum, limit).filter(|value| !value.is_nan())
}
