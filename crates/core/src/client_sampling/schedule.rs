//! Schedules: which clients may take part in which round of a period.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Groups of clients that take part in turn, one group in each round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CyclicGroups {
    /// The number of groups: client after client is put into them, so that their sizes differ by at
    /// most 1. By default each client is a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 5)]
    pub groups: Option<usize>,
    /// The clients of each group, numbered from 1, in place of `groups`; each client is in one group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_GROUPS)]
    pub members: Vec<String>,
    /// The order of the groups in a cycle.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "given"))]
    pub order: CycleOrder,
    /// The weights of those who take part.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"))]
    pub client_weights: ParticipantWeights,
}

/// Which clients are available in which rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Availability {
    /// The clients that are available in round 1, 2, …, numbered from 1; the list is repeated. In a
    /// round with an empty text nobody is, and θ stays.
    #[schemars(example = EXAMPLE_SCHEDULE)]
    pub schedule: Vec<String>,
    /// The weights of those who take part.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"))]
    pub client_weights: ParticipantWeights,
}

/// An example of the clients of each group for the documentation.
const EXAMPLE_GROUPS: [&str; 2] = ["1-3, 7", "4-6"];
/// An example of the clients that are available for the documentation.
const EXAMPLE_SCHEDULE: [&str; 3] = ["1-3", "2-4", ""];

/// The order of the groups in a cycle of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CycleOrder {
    /// As they are listed, the same in every cycle.
    #[default]
    Given,
    /// In a random order, drawn anew for each cycle.
    Shuffled,
}

/// The weights of the clients that take part by a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParticipantWeights {
    /// Their shares, divided by the sum of these.
    #[default]
    Normalised,
    /// Their shares, each divided by the part of the rounds in which the client takes part: over a
    /// period each client has its share as the mean weight.
    Rescaled,
}

impl CyclicGroups {
    /// An example for the documentation.
    pub(super) fn example() -> Self {
        Self { groups: Some(5), ..Self::default() }
    }

    /// The number of groups.
    pub(super) fn count(&self, clients: usize) -> usize {
        if self.members.is_empty() { self.groups.unwrap_or(clients) } else { self.members.len() }
    }

    /// The clients of each group, from 0 on and in increasing order. Texts that are no lists of clients count as empty.
    pub(super) fn sets(&self, clients: usize) -> Vec<Vec<usize>> {
        if !self.members.is_empty() {
            return sets_of(&self.members);
        }
        let groups = self.count(clients);
        let begin = |group: usize| (group as u128 * clients as u128 / groups as u128) as usize;
        (0..groups).map(|group| (begin(group)..begin(group + 1)).collect()).collect()
    }

    /// The number of clients that take part in a round, if it is the same for all groups; L = `size` are drawn of each
    /// group if it is given.
    pub(super) fn participants(&self, size: Option<usize>, clients: usize) -> Option<usize> {
        if !self.members.is_empty() {
            return common_size(&sets_of(&self.members), size);
        }
        let groups = self.count(clients);
        let smallest = clients.checked_div(groups)?;
        match size {
            Some(size) if size <= smallest => Some(size),
            _ => (smallest * groups == clients).then_some(smallest),
        }
    }

    /// The mean number of clients that take part in a round, where L = `size` are drawn of each group if it is given.
    pub(super) fn mean_participants(&self, size: Option<usize>, clients: usize) -> f64 {
        if !self.members.is_empty() {
            return mean_size(&sets_of(&self.members), size);
        }
        let groups = self.count(clients).max(1);
        let smaller = clients / groups;
        let most = size.unwrap_or(usize::MAX);
        // So many groups have one client more than the others.
        let larger = (clients % groups) as f64;
        let of_smaller = (groups as f64 - larger) * smaller.min(most) as f64;
        let of_larger = larger * smaller.saturating_add(1).min(most) as f64;
        (of_smaller + of_larger) / groups as f64
    }
}

impl Availability {
    /// The clients that are available in each round of the period, from 0 on and in increasing order. Texts that are no
    /// lists of clients count as empty.
    pub(super) fn sets(&self) -> Vec<Vec<usize>> {
        sets_of(&self.schedule)
    }

    /// The number of clients that take part in a round, if it is the same in all rounds; L = `size` of those that are
    /// available are drawn if it is given.
    pub(super) fn participants(&self, size: Option<usize>) -> Option<usize> {
        common_size(&self.sets(), size)
    }

    /// The mean number of clients that take part in a round, where L = `size` are drawn of those that are available if
    /// it is given.
    pub(super) fn mean_participants(&self, size: Option<usize>) -> f64 {
        mean_size(&self.sets(), size)
    }

    /// The schedule of a single round in which these clients, from 0 on, are available.
    pub fn of_one_round(clients: &[usize], client_weights: ParticipantWeights) -> Self {
        let numbers: Vec<String> = clients.iter().map(|client| (client + 1).to_string()).collect();
        Self { schedule: vec![numbers.join(", ")], client_weights }
    }
}

/// The sets of clients that texts list.
fn sets_of(texts: &[String]) -> Vec<Vec<usize>> {
    texts.iter().map(|text| listed_clients(text).unwrap_or_default()).collect()
}

/// The number of clients of each of these sets, of which at most `size` count, if it is the same for all.
fn common_size(sets: &[Vec<usize>], size: Option<usize>) -> Option<usize> {
    let most = size.unwrap_or(usize::MAX);
    let mut sizes = sets.iter().map(|set| set.len().min(most));
    let first = sizes.next()?;
    sizes.all(|size| size == first).then_some(first)
}

/// The mean number of clients of these sets, of each of which at most `size` count.
fn mean_size(sets: &[Vec<usize>], size: Option<usize>) -> f64 {
    let most = size.unwrap_or(usize::MAX);
    let sum: usize = sets.iter().map(|set| set.len().min(most)).sum();
    sum as f64 / sets.len().max(1) as f64
}

/// The largest number of a client in a list, so that a range makes no list that exceeds memory.
const LARGEST_NUMBER: usize = 1_000_000;

/// The clients that a text such as `1-3, 7` lists, numbered from 1 there and from 0 on in the result, in increasing
/// order; an empty text lists none.
///
/// # Errors
/// What is wrong with the text, in words that go on after it.
pub(super) fn listed_clients(text: &str) -> Result<Vec<usize>, String> {
    let mut clients = Vec::new();
    for part in text.split(',').map(str::trim) {
        if part.is_empty() && text.trim().is_empty() {
            break;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let [Ok(first), Ok(last)] = [first, last].map(|number| number.trim().parse::<usize>())
        else {
            return Err("is no list of clients, such as \"1-3, 7\"".into());
        };
        if first == 0 || last > LARGEST_NUMBER {
            return Err(format!("has a number that is not from 1 to {LARGEST_NUMBER}"));
        }
        if first > last {
            return Err(format!("has the range {first}-{last}, which has no client"));
        }
        clients.extend(first - 1..last);
    }
    clients.sort_unstable();
    let repeated = clients.windows(2).find(|pair| pair[0] == pair[1]);
    match repeated {
        Some(pair) => Err(format!("names client {} twice", pair[0] + 1)),
        None => Ok(clients),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_list_clients() {
        assert_eq!(listed_clients("7, 1-3").unwrap(), [0, 1, 2, 6]);
        assert_eq!(listed_clients(" ").unwrap(), [0_usize; 0]);
        for (wrong, why) in [
            ("1, x", "is no list of clients, such as \"1-3, 7\""),
            ("1,,2", "is no list of clients, such as \"1-3, 7\""),
            ("-2", "is no list of clients, such as \"1-3, 7\""),
            ("0-2", "has a number that is not from 1 to 1000000"),
            ("1-999999999999", "has a number that is not from 1 to 1000000"),
            ("5-3", "has the range 5-3, which has no client"),
            ("1-3, 2", "names client 2 twice"),
        ] {
            assert_eq!(listed_clients(wrong).unwrap_err(), why, "{wrong}");
        }
        let one = Availability::of_one_round(&[0, 4], ParticipantWeights::Normalised);
        assert_eq!(one.sets(), [[0, 4]]);
    }
}
