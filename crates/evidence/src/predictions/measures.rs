//! How heterogeneous an instance is, cached with the results where that takes long.

use crate::results::{Cacheable, Cached, Columns, Results};
use exactfed_core::theory::heterogeneity::{MeasureErrors, Measures};
use exactfed_runner::files::sha256;
use exactfed_runner::runner::Prepared;

/// The number of multiplications from which measures are cached: a tenth of a second.
const LONG: f64 = 1e8;
/// The name of the only column that the cache has for an instance.
const COLUMN: &str = "measures";

/// The entry of the cache for the measures of a cell's first instance, by a hash of what determines them.
fn key(prepared: &Prepared<'_>) -> Cached {
    let instance = &prepared.scenarios[0].key;
    let oracle = prepared.cell.identity.oracle;
    Cached::Measures(sha256(format!("{oracle:?} {instance}").as_bytes()))
}

/// The measures of a cell's first instance, from the cache in these results if they take long, where they are kept for
/// the next time; `None` if they are too much work, or an eigenvalue cannot be found.
pub fn measures(prepared: &Prepared<'_>, results: &dyn Results) -> Option<Measures> {
    let instance = &*prepared.scenarios[0].instance;
    if Measures::effort(instance).products < LONG {
        return Measures::new(instance);
    }
    let key = key(prepared);
    results.cached(&key).as_ref().and_then(from_columns).or_else(|| {
        let found = Measures::new(instance)?;
        results.cache(&key, &to_columns(&found));
        Some(found)
    })
}

/// The measures of a cell's first instance as an entry of the cache with the computation that it must agree with.
pub fn cacheable_measures<'a>(prepared: &'a Prepared<'_>) -> Cacheable<'a> {
    Cacheable {
        what: key(prepared),
        compute: Box::new(|| {
            Measures::new(&*prepared.scenarios[0].instance).as_ref().map(to_columns)
        }),
    }
}

/// The measures as one column of numbers for the cache, with NaN for a gap or errors that there are not.
fn to_columns(measures: &Measures) -> Columns {
    let Measures { zeta1, zeta2, mu, smoothness, noise, virtual_gap, errors } = *measures;
    let gap = virtual_gap.unwrap_or(f64::NAN);
    let errors = errors.map_or([f64::NAN; 3], |e| [e.zeta2, e.mu, e.smoothness]);
    let numbers = [&[zeta1, zeta2, mu, smoothness, noise, gap], errors.as_slice()].concat();
    Columns::from([(COLUMN.to_owned(), numbers)])
}

/// The measures that [`to_columns`] made these columns of; `None` if they are no such columns.
fn from_columns(columns: &Columns) -> Option<Measures> {
    let numbers: [f64; 9] = columns.get(COLUMN)?.as_slice().try_into().ok()?;
    let [zeta1, zeta2, mu, smoothness, noise, gap, errors @ ..] = numbers;
    let virtual_gap = (!gap.is_nan()).then_some(gap);
    let errors = MeasureErrors { zeta2: errors[0], mu: errors[1], smoothness: errors[2] };
    let errors = (!errors.zeta2.is_nan()).then_some(errors);
    Some(Measures { zeta1, zeta2, mu, smoothness, noise, virtual_gap, errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_come_back_as_they_were() {
        let exact = Measures {
            zeta1: 0.1 + 0.2,
            zeta2: 1.0 / 3.0,
            mu: 1e-300,
            smoothness: 4.0,
            noise: 0.0,
            virtual_gap: Some(0.7),
            errors: None,
        };
        let errors = MeasureErrors { zeta2: 1e-9, mu: 2e-9, smoothness: 3e-9 };
        let iterated = Measures { virtual_gap: None, errors: Some(errors), ..exact };
        for measures in [exact, iterated] {
            assert_eq!(from_columns(&to_columns(&measures)), Some(measures));
        }
        assert_eq!(from_columns(&Columns::from([(COLUMN.to_owned(), vec![1.0; 8])])), None);
    }
}
