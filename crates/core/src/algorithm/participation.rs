//! How many clients take part in a round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of clients, or a fraction of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Participation {
    /// So many clients.
    Clients(usize),
    /// This fraction of all clients, which becomes a number of them once theirs is known.
    Fraction(f64),
}

impl Participation {
    /// The number of clients that take part. A fraction stands for 1 here, since its number is not known before
    /// [`among`](Self::among) has replaced it.
    pub fn number(self) -> usize {
        match self {
            Self::Clients(number) => number,
            Self::Fraction(_) => 1,
        }
    }

    /// The participation on a problem with this number of clients: a fraction above 0 and below 1 becomes the number of
    /// clients nearest to it, the larger one of two that are equally near, and at least 1. A number, or a fraction that
    /// [`fault`](Self::fault) refuses, stays as it is.
    pub fn among(self, clients: usize) -> Self {
        match self {
            Self::Fraction(part) if part > 0.0 && part < 1.0 => {
                Self::Clients((libm::floor(part * clients as f64 + 0.5) as usize).max(1))
            }
            other => other,
        }
    }

    /// What is wrong with a fraction that [`among`](Self::among) has not made a number of: the number of clients is not
    /// known before the runs, or it is not between 0 and 1. `None` for a number.
    pub fn fault(self) -> Option<String> {
        let Self::Fraction(part) = self else { return None };
        Some(if part > 0.0 && part < 1.0 {
            format!(
                "= {part}: write a number of clients, since how many there are is not known before the runs"
            )
        } else {
            format!(
                "must be a number of clients, such as 5, or a fraction of them above 0 and below 1, such as 0.3, not {part:?}; without it all take part"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Participation::{Clients, Fraction};

    #[test]
    fn a_fraction_is_the_nearest_number_of_clients() {
        for (part, clients, number) in
            [(0.3, 10, 3), (0.25, 10, 3), (0.24, 10, 2), (0.01, 10, 1), (0.99, 10, 10), (0.5, 1, 1)]
        {
            assert_eq!(Fraction(part).among(clients), Clients(number), "{part} of {clients}");
        }
        for wrong in [Fraction(1.0), Fraction(0.0), Fraction(-0.5), Fraction(2.0)] {
            assert!(wrong.among(10).fault().is_some_and(|text| text.contains("such as 0.3")));
        }
        assert_eq!((Clients(3).among(2), Clients(3).fault()), (Clients(3), None));
    }
}
