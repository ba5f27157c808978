//! What is wrong with the settings of a scheme of participation.

use super::schedule::listed_clients;
use super::{CohortUse, CyclicGroups, ParticipationScheme, fixed_size, shares_of};
use crate::words::count;

/// Something that is wrong with the settings of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeFault {
    /// The key of the algorithm's table, dotted if it is in a table below.
    pub key: &'static str,
    /// What is wrong and what is allowed, in words that go on after the key.
    pub message: String,
}

/// Collects the faults of a scheme, so that all of them are reported at once.
#[derive(Default)]
pub(super) struct SchemeFaults(Vec<SchemeFault>);

impl SchemeFaults {
    /// Adds a fault.
    pub(super) fn add(&mut self, key: &'static str, message: impl Into<String>) {
        self.0.push(SchemeFault { key, message: message.into() });
    }

    /// Adds a fault with this message, which is formed only then, unless the condition `holds`.
    pub(super) fn require(
        &mut self,
        holds: bool,
        key: &'static str,
        message: impl FnOnce() -> String,
    ) {
        if !holds {
            self.add(key, message());
        }
    }
}

/// The key of the numbers of [`ParticipationScheme::Weighted`].
const WEIGHTED: &str = "participation.weighted";
/// The key of the number of groups.
const GROUPS: &str = "participation.cyclic.groups";
/// The key of the clients of each group.
const MEMBERS: &str = "participation.cyclic.members";
/// The key of the clients that are available.
const SCHEDULE: &str = "participation.available.schedule";
/// The most rounds of a period.
const LONGEST_PERIOD: usize = 100_000;

impl ParticipationScheme {
    /// The key of the probabilities of a scheme that has some.
    fn key_of_probabilities(&self) -> &'static str {
        match self {
            Self::Bernoulli(_) => "participation.bernoulli",
            _ => "participation.bernoulli-normalised",
        }
    }

    /// What is wrong with the scheme whatever the problem is, under the keys of the manifest. `size` is L, how many
    /// clients are drawn.
    pub fn check(&self, size: Option<usize>) -> Vec<SchemeFault> {
        let mut all = SchemeFaults::default();
        let faults = &mut all;
        let lacks_cohort = self.cohort_use() == CohortUse::Needed && size.is_none();
        faults.require(!lacks_cohort, "participation", || {
            "has a meaning with `cohort` only: without it all clients take part".into()
        });
        let has_cohort = self.cohort_use() == CohortUse::Impossible && size.is_some();
        faults.require(!has_cohort, "cohort", || {
            let word = self.word();
            format!(
                "cannot be combined with `participation = {{ {word} = … }}`: each client decides by a coin of its own whether it takes part, so that their number is random; delete one of them"
            )
        });
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                probabilities.check(self.key_of_probabilities(), faults);
            }
            Self::Weighted(numbers) => {
                let wrong = numbers.iter().find(|x| !(x.is_finite() && **x > 0.0));
                if let Some(wrong) = wrong {
                    let message = format!("must have finite numbers above 0, not {wrong}");
                    faults.add(WEIGHTED, message);
                }
            }
            Self::Cyclic(groups) => groups.check(faults),
            Self::Available(availability) => {
                let schedule = &availability.schedule;
                check_lists(SCHEDULE, schedule, faults);
                let is_empty = schedule.iter().all(|text| text.trim().is_empty());
                faults.require(!is_empty, SCHEDULE, || "has no client in any round".into());
            }
            Self::Normalised | Self::Rescaled | Self::WithReplacement | Self::Proportional => {}
        }
        all.0
    }

    /// Whether a round of its own may have the scheme: there clients may be available in no other round, and nobody in
    /// this one.
    pub fn is_sound_in_round(&self, size: Option<usize>, clients: usize) -> bool {
        if let Self::Available(availability) = self {
            return availability.schedule.iter().all(|text| {
                listed_clients(text).is_ok_and(|listed| {
                    let are_known = listed.last().is_none_or(|last| *last < clients);
                    are_known && size.is_none_or(|size| size < listed.len())
                })
            });
        }
        self.check(size).is_empty() && self.check_for(size, clients).is_empty()
    }

    /// What is wrong with the scheme on a problem with this number of clients, if [`Self::check`] finds nothing.
    pub fn check_for(&self, size: Option<usize>, clients: usize) -> Vec<SchemeFault> {
        let mut all = SchemeFaults::default();
        let faults = &mut all;
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                probabilities.check_for(self.key_of_probabilities(), clients, faults);
            }
            Self::Weighted(numbers) => check_numbers(numbers, size, clients, faults),
            Self::Cyclic(groups) => {
                let number = groups.count(clients);
                faults.require(number <= clients, GROUPS, || {
                    format!("must be at most the number of clients, {clients}, not {number}")
                });
                if !groups.members.is_empty() {
                    check_members(MEMBERS, "in no group", &groups.members, clients, faults);
                }
            }
            Self::Available(availability) => {
                let schedule = &availability.schedule;
                check_members(SCHEDULE, "available in no round", schedule, clients, faults);
            }
            Self::Normalised | Self::Rescaled | Self::WithReplacement | Self::Proportional => {}
        }
        if self.is_scheduled() && faults.0.is_empty() {
            let rounds = self.rounds_of_period(None, clients);
            let most = rounds.iter().map(|round| round.size).max().unwrap_or(0);
            faults.require(size.is_none_or(|size| size <= most), "cohort", || {
                let size = size.unwrap_or_default();
                format!(
                    "must be at most {most}, the most clients that may take part in a round, not {size}"
                )
            });
        }
        all.0
    }
}

impl CyclicGroups {
    /// Adds what is wrong with the groups whatever the problem is.
    fn check(&self, faults: &mut SchemeFaults) {
        let has_both = self.groups.is_some() && !self.members.is_empty();
        faults.require(!has_both, MEMBERS, || {
            "and `groups` exclude each other: write one of them".into()
        });
        let groups = self.groups.unwrap_or(1);
        faults.require((1..=LONGEST_PERIOD).contains(&groups), GROUPS, || {
            format!("must be from 1 to {LONGEST_PERIOD}, not {groups}")
        });
        check_lists(MEMBERS, &self.members, faults);
        let is_empty = self.members.iter().any(|text| text.trim().is_empty());
        faults.require(!is_empty, MEMBERS, || "has a group without clients".into());
        let mut all: Vec<usize> = Vec::new();
        for text in &self.members {
            all.extend(listed_clients(text).unwrap_or_default());
        }
        all.sort_unstable();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("has client {} in two groups", pair[0] + 1);
            faults.add(MEMBERS, message);
        }
    }
}

/// Adds the first text that is no list of clients, and that there are too many texts.
fn check_lists(key: &'static str, texts: &[String], faults: &mut SchemeFaults) {
    faults.require(texts.len() <= LONGEST_PERIOD, key, || {
        format!("has {} rounds; at most {LONGEST_PERIOD} are repeated", texts.len())
    });
    if let Some((text, why)) =
        texts.iter().find_map(|text| Some((text, listed_clients(text).err()?)))
    {
        faults.add(key, format!(": {text:?} {why}"));
    }
}

/// Adds that a list names a client that does not exist, or that a client is `nowhere`, in words.
fn check_members(
    key: &'static str,
    nowhere: &str,
    texts: &[String],
    clients: usize,
    faults: &mut SchemeFaults,
) {
    let mut is_listed = vec![false; clients];
    for client in texts.iter().flat_map(|text| listed_clients(text).unwrap_or_default()) {
        match is_listed.get_mut(client) {
            Some(is_listed) => *is_listed = true,
            None => {
                let message =
                    format!("names client {}; there are {}", client + 1, count(clients, "client"));
                return faults.add(key, message);
            }
        }
    }
    if let Some(missing) = is_listed.iter().position(|is_listed| !is_listed) {
        let message = format!("must name every client: client {} is {nowhere}", missing + 1);
        faults.add(key, message);
    }
}

/// Adds that there is not one number for each client, or that a client would be drawn with a probability above 1.
fn check_numbers(numbers: &[f64], size: Option<usize>, clients: usize, faults: &mut SchemeFaults) {
    faults.require(numbers.len() == clients, WEIGHTED, || {
        let given = count(numbers.len(), "number");
        format!("has {given}, and there are {}; each client needs one", count(clients, "client"))
    });
    let Some(size) = size.filter(|_| faults.0.is_empty()) else { return };
    let shares = shares_of(numbers);
    if let Some(largest) = impossible_client(&shares, size) {
        let number = largest + 1;
        let chance = size as f64 * shares[largest];
        let most = (1.0 / shares[largest]) as usize;
        faults.add(WEIGHTED, format!(
                "draws {size} distinct clients in proportion to these numbers, client {number} with the probability {chance:.4}, which is above 1: use `cohort` up to {most}, or a smaller number for this client"
            ),
        );
    }
}

/// The client with the largest of these shares, if L = `size` distinct clients cannot be drawn with the probabilities L
/// times their shares, since that of this client is above 1.
fn impossible_client(shares: &[f64], size: usize) -> Option<usize> {
    let mut largest = 0;
    for (client, share) in shares.iter().enumerate() {
        if *share > shares[largest] {
            largest = client;
        }
    }
    (!fixed_size::is_possible(shares[largest], size)).then_some(largest)
}

/// What is wrong with drawing L = `size` distinct clients with the probabilities L π_k, where π_k are these shares: a
/// share above 1/L asks for a probability above 1. `None` if nothing is.
pub fn proportional_fault(shares: &[f64], size: usize) -> Option<String> {
    let largest = impossible_client(shares, size)?;
    let number = largest + 1;
    let share = shares[largest];
    let most = (1.0 / share) as usize;
    Some(format!(
        "\"proportional\" draws {size} distinct clients, each with {size} times its share as the probability, which is above 1 for client {number}, whose share is {share:.4}: use `cohort` up to {most}, \"rescaled\" or \"with-replacement\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_sampling::{Availability, ClientProbabilities, ParticipantWeights};

    #[test]
    fn a_share_above_one_of_l_is_refused() {
        let shares = [0.25, 0.5, 0.25];
        assert_eq!(proportional_fault(&shares, 1), None);
        assert_eq!(proportional_fault(&shares, 2), None, "the second client always takes part");
        let message = "\"proportional\" draws 3 distinct clients, each with 3 times its share as the probability, which is above 1 for client 2, whose share is 0.5000: use `cohort` up to 2, \"rescaled\" or \"with-replacement\"";
        assert_eq!(proportional_fault(&shares, 3).as_deref(), Some(message));
    }

    /// The first fault of a scheme on three clients, after its key.
    fn fault(scheme: &ParticipationScheme, size: Option<usize>) -> String {
        let mut faults = scheme.check(size);
        if faults.is_empty() {
            faults = scheme.check_for(size, 3);
        }
        match faults.first() {
            Some(SchemeFault { key, message }) => format!("{key} {message}"),
            None => "nothing".into(),
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        use ParticipationScheme::{Available, Bernoulli, Cyclic, Rescaled, Weighted};
        let groups = |members: &[&str]| {
            let members = members.iter().map(|text| (*text).to_owned()).collect();
            Cyclic(CyclicGroups { members, ..CyclicGroups::default() })
        };
        let available = |texts: &[&str]| {
            let schedule = texts.iter().map(|text| (*text).to_owned()).collect();
            Available(Availability { schedule, client_weights: ParticipantWeights::Normalised })
        };
        let number = |groups| Cyclic(CyclicGroups { groups, ..CyclicGroups::default() });
        let given = |all: &[f64]| Bernoulli(ClientProbabilities::Given(all.to_vec()));
        for (scheme, size, wanted) in [
            (Rescaled, None, "participation has a meaning with `cohort` only"),
            (given(&[0.5; 3]), Some(2), "cohort cannot be combined with `participation = { bern"),
            (
                given(&[0.5, 0.0, 1.0]),
                None,
                "participation.bernoulli must be above 0 and at most 1",
            ),
            (given(&[0.5, 1.0]), None, "participation.bernoulli has 2 numbers, and there are 3 cl"),
            (Weighted(vec![1.0; 3]), None, "participation has a meaning with `cohort` only"),
            (Weighted(vec![1.0, -1.0, 1.0]), Some(1), "participation.weighted must have finite n"),
            (Weighted(vec![4.0, 1.0, 1.0]), Some(2), "participation.weighted draws 2 distinct cl"),
            (number(Some(0)), None, "participation.cyclic.groups must be from 1 to 100000, not 0"),
            (number(Some(4)), None, "participation.cyclic.groups must be at most the number of c"),
            (number(Some(3)), Some(2), "cohort must be at most 1, the most clients"),
            (groups(&["1", "2"]), None, "participation.cyclic.members must name every client: cl"),
            (groups(&["1-3", "2"]), None, "participation.cyclic.members has client 2 in two gro"),
            (groups(&["1-3", ""]), None, "participation.cyclic.members has a group without clie"),
            (groups(&["1-4"]), None, "participation.cyclic.members names client 4; there are 3 c"),
            (available(&["", " "]), None, "participation.available.schedule has no client in any"),
            (available(&["1", "3"]), None, "participation.available.schedule must name every cli"),
            (available(&["1-3", "a"]), None, "participation.available.schedule : \"a\" is no lis"),
            (available(&["1-3", "", "2"]), Some(2), "nothing"),
            (groups(&["1, 3", "2"]), None, "nothing"),
        ] {
            let found = fault(&scheme, size);
            assert!(found.starts_with(wanted), "{scheme:?}: {found}");
        }
    }
}
