//! The names of metrics that are defined outside of this program. The table of quantities has some places for them,
//! which get their names while the process runs: a place keeps its name until the process ends.

use super::info::{MeasuredOn, QuantityInfo, QuantityKind};
use std::sync::{PoisonError, RwLock};

/// The most names of such metrics that a process can know.
pub const MOST_OWN: usize = 8;

/// The names of places that no metric has taken.
const FREE: [&str; MOST_OWN] =
    ["own-0", "own-1", "own-2", "own-3", "own-4", "own-5", "own-6", "own-7"];

/// The names of a metric.
#[derive(Clone, Copy)]
struct OwnNames {
    /// The name in a manifest.
    name: &'static str,
    /// The column in Parquet.
    column: &'static str,
    /// How pages write it.
    symbol: &'static str,
}

/// The names of the places that are taken, from the first on.
static TAKEN: RwLock<Vec<OwnNames>> = RwLock::new(Vec::new());

/// Gives the metric of this name a place, or finds the one that it has; pages write it as `shown`. Returns whether
/// there is such a place: not if [`MOST_OWN`] metrics of other names have taken all.
pub fn assign(name: &str, shown: &str) -> bool {
    let mut taken = TAKEN.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(own) = taken.iter_mut().find(|own| own.name == name) {
        if own.symbol != shown {
            own.symbol = lasting(shown);
        }
        return true;
    }
    if taken.len() == MOST_OWN {
        return false;
    }
    let column = lasting(&name.replace('-', "_"));
    taken.push(OwnNames { name: lasting(name), column, symbol: lasting(shown) });
    true
}

/// A text that lives until the process ends, as names of quantities do. There are few of them.
fn lasting(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// Whether a metric has taken a place.
pub(super) fn is_taken(place: usize) -> bool {
    TAKEN.read().unwrap_or_else(PoisonError::into_inner).len() > place
}

/// The row of a place in the table of quantities. Rounding leaves of its values what it leaves of a norm, since nothing
/// says that they are squares.
pub(super) fn info(place: usize) -> QuantityInfo {
    let taken = TAKEN.read().unwrap_or_else(PoisonError::into_inner);
    let free = OwnNames { name: FREE[place], column: FREE[place], symbol: FREE[place] };
    let OwnNames { name, column, symbol } = taken.get(place).copied().unwrap_or(free);
    // The meter of a run calls the code of the metric.
    let kind = QuantityKind::Measured(MeasuredOn::Own, |_| None);
    QuantityInfo::new(name, column, symbol, kind).norm()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Metric, Quantity};

    /// Other tests of this process may take places too, with other names.
    #[test]
    fn a_name_has_one_place_and_is_a_quantity() {
        assert_eq!(Quantity::named("test-of-places"), None);
        assert!(assign("test-of-places", "places") && assign("test-of-places", "the places"));
        let quantity = Quantity::named("test-of-places").unwrap();
        assert_eq!((quantity.column(), quantity.formula()), ("test_of_places", "the places"));
        assert_eq!(serde_json::to_value(quantity).unwrap(), "test-of-places");
        let read: Metric = serde_json::from_value("test-of-places".into()).unwrap();
        assert_eq!(read.quantity(), quantity);
        assert!(Quantity::known().any(|one| one == quantity));
        assert!(serde_json::from_value::<Metric>("no-such-metric".into()).is_err());
    }
}
