//! The families of algorithms. An algorithm has the colour of its family in every figure and on
//! every page, whatever its label.

use exactfed_runner::plan::Cell;

/// Families, each with a colour of its own.
pub const FAMILIES: usize = 8;

/// The family of algorithms that belong to no other.
const OTHERS: usize = FAMILIES - 1;

/// The families of algorithms that are defined outside of the program, in the order of the
/// manifest: that of others, then those that such a manifest seldom has itself.
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
    match kind {
        "fedavg" | "fedlsa" => 0,
        "richardson-romberg" => 1,
        "scaffold" | "scafflsa" | "scaffold-rr" => 2,
        "fedlin" => 3,
        "scaffnew" => 4,
        "fedprox" => 5,
        "sgd" | "minibatch-sgd" | "centralised-lsa" => 6,
        _ => OTHERS,
    }
}

/// The names of the families for a key to their colours, in the order of their colours.
pub const FAMILY_NAMES: [&str; FAMILIES] = [
    "FedAvg, FedLSA",
    "Richardson-Romberg",
    "Scaffold, SCAFFLSA",
    "FedLin",
    "Scaffnew",
    "FedProx",
    "SGD, mini-batch SGD, centralised LSA",
    "others",
];

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
