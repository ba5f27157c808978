//! The families of algorithms. An algorithm has the colour of its family in every figure and on
//! every page, whatever its label.

use exactfed_core::algorithm::{Family, Spec};
use exactfed_runner::manifest::searched::variant;
use exactfed_runner::plan::Cell;

/// The number of families, each with a colour of its own.
pub const FAMILIES: usize = Family::ALL.len();

/// The family of algorithms that belong to no other.
const OTHERS: usize = Family::Others as usize;

/// The families whose colours custom algorithms have, by their places in the manifest: first the family of others, then
/// families of built-in algorithms that are rarely in the same manifest.
const OF_CUSTOM: [usize; 6] = [OTHERS, 4, 3, 5, 6, 1];

/// The family of a cell's algorithm, as an index among all families; of a custom algorithm by its place in the
/// manifest.
pub fn family_of(cell: &Cell) -> usize {
    match cell.custom_place {
        Some(place) => OF_CUSTOM[place % OF_CUSTOM.len()],
        None => family(cell.identity.algorithm.kind()),
    }
}

/// The family of a built-in algorithm, as an index among all families, by its kind in manifests or its name in a
/// frontier. Any other name, such as that of a custom algorithm on a frontier, is of the family of others; the custom
/// algorithm of a cell has the family that [`family_of`] gives it.
pub fn family(kind: &str) -> usize {
    let variant = variant(kind).map(|variant| variant.family);
    variant
        .or_else(|| Spec::ALL.iter().find(|info| info.kind == kind).map(|info| info.family))
        .unwrap_or(Family::Others) as usize
}

/// The names of all built-in algorithms, each with the index of its family.
pub fn named_families() -> impl Iterator<Item = (&'static str, usize)> {
    Spec::ALL.iter().map(|info| (info.name, info.family as usize))
}

/// What a key to the colours writes beside the colour of a family: the names of its algorithms, or `others`.
pub fn family_name(family: usize) -> String {
    // SGD with one step in a round is an algorithm of frontiers and maps alone.
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
