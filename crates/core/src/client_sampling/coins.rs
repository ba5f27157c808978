//! The probabilities with which clients decide by coins of their own whether they take part.

use super::check::SchemeFaults;
use crate::words::count;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The probabilities with which clients take part in a round, each by a coin of its own.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(rename_all = "kebab-case", transform = or_plain_values)]
pub enum ClientProbabilities {
    /// p, the probability of every client, above 0 and at most 1; `bernoulli = 0.3` is short for it.
    Fraction(#[schemars(example = 0.3)] f64),
    /// p_k for each client, above 0 and at most 1; `bernoulli = [0.2, 0.5, 0.3]` is short for it.
    Given(#[schemars(example = super::EXAMPLE_NUMBERS)] Vec<f64>),
}

/// Adds to the schema that a number may stand for the choice `fraction` and a list of numbers for the choice `given`,
/// which the reader of manifests replaces by these choices.
fn or_plain_values(schema: &mut schemars::Schema) {
    if let Some(choices) = schema.get_mut("oneOf").and_then(|choices| choices.as_array_mut()) {
        choices.push(schemars::json_schema!({ "type": "number" }).to_value());
        let numbers = schemars::json_schema!({ "type": "array", "items": { "type": "number" } });
        choices.push(numbers.to_value());
    }
}

impl Serialize for ClientProbabilities {
    /// Writes the number or the list alone, without the name of the choice.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fraction(p) => p.serialize(to),
            Self::Given(all) => all.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for ClientProbabilities {
    /// Reads a number or a list, alone or with the name of the choice.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WrittenProbability {
            One(f64),
            Each(Vec<f64>),
            Fraction { fraction: f64 },
            Given { given: Vec<f64> },
        }
        Ok(match WrittenProbability::deserialize(from)? {
            WrittenProbability::One(p) | WrittenProbability::Fraction { fraction: p } => {
                Self::Fraction(p)
            }
            WrittenProbability::Each(all) | WrittenProbability::Given { given: all } => {
                Self::Given(all)
            }
        })
    }
}

impl ClientProbabilities {
    /// p_k of a client, from 0 on.
    pub fn of_client(&self, client: usize) -> f64 {
        match self {
            Self::Fraction(p) => *p,
            Self::Given(all) => all[client],
        }
    }

    /// Whether every client takes part in every round.
    pub(super) fn are_one(&self) -> bool {
        match self {
            Self::Fraction(p) => *p == 1.0,
            Self::Given(all) => all.iter().all(|p| *p == 1.0),
        }
    }

    /// Whether all clients have the same probability.
    pub fn are_equal(&self) -> bool {
        match self {
            Self::Fraction(_) => true,
            Self::Given(all) => all.iter().all(|p| *p == all[0]),
        }
    }

    /// The sum of the probabilities of all clients, the mean number of those that take part.
    pub(super) fn sum(&self, clients: usize) -> f64 {
        match self {
            Self::Fraction(p) => p * clients as f64,
            Self::Given(all) => all.iter().sum(),
        }
    }

    /// The probability that nobody takes part in a round.
    pub(super) fn chance_of_nobody(&self, clients: usize) -> f64 {
        match self {
            Self::Fraction(p) => libm::pow(1.0 - p, clients as f64),
            Self::Given(all) => all.iter().map(|p| 1.0 - p).product(),
        }
    }

    /// Adds what is wrong with the probabilities, whose key is `key`, whatever the problem is.
    pub(super) fn check(&self, key: &'static str, faults: &mut SchemeFaults) {
        let all = match self {
            Self::Fraction(p) => std::slice::from_ref(p),
            Self::Given(all) => all,
        };
        // NaN is refused too.
        if let Some(p) = all.iter().find(|p| !(**p > 0.0 && **p <= 1.0)) {
            let message = format!("must be above 0 and at most 1, not {p}");
            faults.add(key, message);
        }
    }

    /// Adds that there is not one probability for each client, if so.
    pub(super) fn check_for(&self, key: &'static str, clients: usize, faults: &mut SchemeFaults) {
        let Self::Given(all) = self else { return };
        faults.require(all.len() == clients, key, || {
            let given = count(all.len(), "number");
            format!(
                "has {given}, and there are {}; each client needs one",
                count(clients, "client")
            )
        });
    }
}
