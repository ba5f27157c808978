//! The families of algorithms. An algorithm has the colour of its family in every figure and on
//! every page, whatever its label.

use exactfed_core::algorithm::{Family, Spec};
use exactfed_runner::manifest::searched::variant;
use exactfed_runner::plan::Cell;

/// Families, each with a colour of its own.
pub const FAMILIES: usize = Family::ALL.len();

/// The family of algorithms that belong to no other.
const OTHERS: usize = Family::Others as usize;

/// The families of algorithms that are defined outside of the program, in the order of the
/// manifest: that of others, then those of algorithms that are rarely in the same manifest.
const OF_CUSTOM: [usize; 6] = [OTHERS, 4, 3, 5, 6, 1];

/// The family of a cell's algorithm.
pub fn family_of(cell: &Cell) -> usize {
    match cell.custom_place {
        Some(place) => OF_CUSTOM[place % OF_CUSTOM.len()],
        None => family(cell.identity.algorithm.kind()),
    }
}

/// The family of an algorithm, by its kind in manifests or its name in a frontier.
pub fn family(kind: &str) -> usize {
    let variant = variant(kind).map(|variant| variant.family);
    variant
        .or_else(|| Spec::ALL.iter().find(|info| info.kind == kind).map(|info| info.family))
        .unwrap_or(Family::Others) as usize
}

/// The names of all algorithms, with their families.
pub fn named_families() -> impl Iterator<Item = (&'static str, usize)> {
    Spec::ALL.iter().map(|info| (info.name, info.family as usize))
}

/// The name of a family for a key to the colours: those of its algorithms.
pub fn family_name(family: usize) -> String {
    let of_frontiers = (family == Family::Sgd as usize).then_some("SGD");
    let own = Spec::ALL.iter().filter(|info| info.family as usize == family);
    let names: Vec<&str> = of_frontiers.into_iter().chain(own.map(|info| info.name)).collect();
    if names.is_empty() { "others".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_an_algorithm_have_one_colour() {
        for (one, other) in [
            ("fedavg", "fedlsa"),
            ("scaffold", "scafflsa"),
            ("minibatch-sgd", "centralised-lsa"),
            ("sgd", "minibatch-sgd"),
        ] {
            assert_eq!(family(one), family(other));
            assert_ne!(family(one), OTHERS);
        }
        assert_eq!(family("of-my-own"), OTHERS);
    }
}
