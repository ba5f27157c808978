//! How the server selects the clients that take part in a round, and how it weighs them.
//!
//! Of N clients with the shares π_k, some take part in a round. The server moves from θ to
//!
//! ```text
//! θ + Σ_k w_k (θ_k − θ)
//! ```
//!
//! where θ_k is the end of client k, and the weights w_k depend on who takes part. A scheme is *unbiased* if E w_k = π_k
//! for every client and round: then a round with one local step goes along the gradient of the objective on average. In
//! a round in which nobody takes part all weights are 0, so that θ stays.

mod check;
mod coins;
mod fixed_size;
mod schedule;

pub use check::{SchemeFault, proportional_fault};
pub use coins::ClientProbabilities;
pub use fixed_size::FixedSizeDesign;
pub use schedule::{Availability, CycleOrder, CyclicGroups, ParticipantWeights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// How the clients that take part in a round are selected and weighed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParticipationScheme {
    /// L distinct clients, all with the same probability; their shares are divided by their sum
    /// (McMahan et al. 2017). Biased if shares are unequal. Without `cohort` all clients take part.
    #[default]
    Normalised,
    /// L distinct clients, all with the same probability; client k weighs N/L times its share (Li et
    /// al. 2020, scheme II, for θ_k − θ in place of θ_k). Unbiased. It needs `cohort`.
    Rescaled,
    /// L draws, each of client k with its share as the probability; each draw weighs 1/L, and a
    /// client that is drawn m times weighs m/L and works once (Li et al. 2020, scheme I). Unbiased.
    /// It needs `cohort`.
    WithReplacement,
    /// L distinct clients, client k with the probability L π_k, which must be at most 1; each weighs
    /// 1/L. Of all such draws it is the one of maximum entropy (Hájek 1964). Unbiased. It needs
    /// `cohort`.
    Proportional,
    /// L distinct clients with probabilities P_k in proportion to these numbers, one above 0 for each
    /// client; client k weighs its share divided by P_k = L q_k/Σ q, which must be at most 1. Of all
    /// such draws it is the one of maximum entropy. Unbiased. It needs `cohort`.
    Weighted(#[schemars(example = EXAMPLE_NUMBERS)] Vec<f64>),
    /// Each client by a coin of its own, without `cohort`: one probability p for all clients, or a list
    /// with p_k above 0 for each. Client k weighs its share divided by p_k. If nobody comes, θ stays.
    /// Unbiased.
    Bernoulli(#[schemars(example = 0.3)] ClientProbabilities),
    /// As `bernoulli`, but the shares of those who come are divided by their sum. Biased if shares or
    /// probabilities are unequal.
    BernoulliNormalised(#[schemars(example = 0.3)] ClientProbabilities),
    /// Groups of clients in turn, one in each round; of the group all take part, or with `cohort` L of
    /// them, drawn with the same probability. Biased in each round, since the others do not take part.
    Cyclic(#[schemars(example = CyclicGroups::example())] CyclicGroups),
    /// The clients that are available in a round, by a list that is repeated; of them all take part, or
    /// with `cohort` L of them, drawn with the same probability. Biased in each round.
    Available(Availability),
}

/// An example of numbers of clients for the documentation.
const EXAMPLE_NUMBERS: [f64; 3] = [0.2, 0.5, 0.3];

/// Whether a scheme goes together with the key `cohort`, which says how many clients are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CohortUse {
    /// It draws a given number of clients.
    Needed,
    /// It may draw a given number of clients.
    Possible,
    /// It does not decide how many clients take part.
    Impossible,
}

/// The clients that may take part in a round, and how many of them are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundCandidates {
    /// The clients that may take part, in increasing order.
    pub clients: Vec<usize>,
    /// How many of them are drawn, all with the same probability; all of them if it is their number.
    pub size: usize,
}

impl ParticipationScheme {
    /// Whether rounds on a problem with this number of clients differ from rounds in which all take part once, with
    /// their shares as weights: a part of the clients takes part, drawn or in turn, or some may be drawn twice. `size`
    /// is L, how many are drawn, if the manifest says it.
    pub fn draws_clients(&self, size: Option<usize>, clients: usize) -> bool {
        match self {
            Self::Normalised | Self::Rescaled | Self::Proportional | Self::Weighted(_) => {
                size.is_some_and(|size| size < clients)
            }
            Self::WithReplacement => size.is_some(),
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                !probabilities.are_one()
            }
            Self::Cyclic(_) | Self::Available(_) => true,
        }
    }

    /// Whether rounds may leave clients out, whatever their number is.
    pub fn may_leave_out_clients(&self, size: Option<usize>) -> bool {
        size.is_some() || self.cohort_use() == CohortUse::Impossible || self.is_scheduled()
    }

    /// Whether it is random which clients take part.
    pub fn is_random(&self, size: Option<usize>) -> bool {
        size.is_some() || self.cohort_use() == CohortUse::Impossible || self.is_shuffled()
    }

    /// Whether clients take part in turn in an order that is drawn for each cycle.
    pub fn is_shuffled(&self) -> bool {
        matches!(self, Self::Cyclic(groups) if groups.order == CycleOrder::Shuffled)
    }

    /// Whether different clients may take part in rounds of a period, as in cyclic participation.
    pub fn is_scheduled(&self) -> bool {
        matches!(self, Self::Cyclic(_) | Self::Available(_))
    }

    /// Whether the scheme goes together with a number of clients to be drawn.
    pub fn cohort_use(&self) -> CohortUse {
        match self {
            Self::Normalised | Self::Cyclic(_) | Self::Available(_) => CohortUse::Possible,
            Self::Bernoulli(_) | Self::BernoulliNormalised(_) => CohortUse::Impossible,
            _ => CohortUse::Needed,
        }
    }

    /// The scheme with the same draws and weights on a problem whose shares are equal: there `Rescaled` and
    /// `Proportional` are `Normalised`. Engine and theory ask for it, so that the bits are the same too.
    pub fn for_shares(&self, are_unequal: bool) -> Self {
        match self {
            Self::Rescaled | Self::Proportional if !are_unequal => Self::Normalised,
            other => other.clone(),
        }
    }

    /// Whether E w_k = π_k in every round for every client, also where shares are unequal.
    pub fn is_unbiased(&self) -> bool {
        match self {
            Self::Normalised
            | Self::BernoulliNormalised(_)
            | Self::Cyclic(_)
            | Self::Available(_) => false,
            Self::Rescaled
            | Self::WithReplacement
            | Self::Proportional
            | Self::Weighted(_)
            | Self::Bernoulli(_) => true,
        }
    }

    /// Whether the mean weights of clients in some round are not in proportion to their shares, so that the mean of a step
    /// is no multiple of the gradient of the objective. L = `size` clients are drawn if it is given; `shares` are those
    /// of the clients, or `None` if they are equal.
    pub fn is_biased(&self, size: Option<usize>, clients: usize, shares: Option<&[f64]>) -> bool {
        match self {
            Self::Normalised => size.is_some_and(|size| size < clients) && shares.is_some(),
            Self::BernoulliNormalised(probabilities) => {
                !probabilities.are_one() && (shares.is_some() || !probabilities.are_equal())
            }
            Self::Cyclic(_) | Self::Available(_) => {
                let rounds = self.rounds_of_period(size, clients);
                let leaves_out = rounds
                    .iter()
                    .any(|round| !round.clients.is_empty() && round.clients.len() < clients);
                leaves_out || self.divides_by_random_sum(size, shares)
            }
            _ => false,
        }
    }

    /// Whether distinct clients are drawn of all clients, all with the same probability if their shares are equal: what
    /// published bounds on partial participation take for granted.
    pub fn is_uniform(&self) -> bool {
        matches!(self, Self::Normalised | Self::Rescaled | Self::Proportional)
    }

    /// Whether the weights of those who take part sum to 1 in every round.
    pub fn weights_sum_to_one(&self) -> bool {
        matches!(self, Self::Normalised | Self::WithReplacement | Self::Proportional)
    }

    /// Whether weights are shares divided by their sum over those who take part, where this sum is random: then no
    /// linear map says on average what a round does. `size` is L, and `shares` are those of the N clients, or `None` if
    /// they are equal. With equal shares the sum is a multiple of the number of those who take part, whose distribution
    /// is known.
    pub fn divides_by_random_sum(&self, size: Option<usize>, shares: Option<&[f64]>) -> bool {
        let Some(shares) = shares else { return false };
        match self {
            Self::Normalised | Self::BernoulliNormalised(_) => {
                self.draws_clients(size, shares.len())
            }
            Self::Cyclic(_) | Self::Available(_) if self.is_normalised() => {
                self.rounds_of_period(size, shares.len()).iter().any(|round| {
                    let first = round.clients.first().map(|client| shares[*client]);
                    let are_equal = round.clients.iter().all(|k| Some(shares[*k]) == first);
                    round.size < round.clients.len() && !are_equal
                })
            }
            _ => false,
        }
    }

    /// Whether the weights of those who take part are their shares, divided by the sum of these.
    pub fn is_normalised(&self) -> bool {
        match self {
            Self::Normalised | Self::BernoulliNormalised(_) => true,
            Self::Cyclic(CyclicGroups { client_weights, .. })
            | Self::Available(Availability { client_weights, .. }) => {
                *client_weights == ParticipantWeights::Normalised
            }
            _ => false,
        }
    }

    /// Whether it is the schedule of a single round.
    pub fn is_of_one_round(&self) -> bool {
        matches!(self, Self::Available(availability) if availability.schedule.len() == 1)
    }

    /// The scheme of round number `round` of a schedule, from 0 on, alone, and how many clients are drawn in it: those
    /// of [`Self::rounds_of_period`]. Without a schedule it is the same in all rounds.
    pub fn of_round(
        &self,
        round: usize,
        size: Option<usize>,
        clients: usize,
    ) -> (Self, Option<usize>) {
        let (Self::Cyclic(CyclicGroups { client_weights, .. })
        | Self::Available(Availability { client_weights, .. })) = self
        else {
            return (self.clone(), size);
        };
        let mut rounds = self.rounds_of_period(size, clients);
        let place = round % rounds.len();
        let RoundCandidates { clients: set, size } = rounds.swap_remove(place);
        let drawn = (size < set.len()).then_some(size);
        (Self::Available(Availability::of_one_round(&set, *client_weights)), drawn)
    }

    /// The number of rounds after which the schedule of a scheme repeats, in given order; 1 without a schedule.
    pub fn period(&self, clients: usize) -> usize {
        match self {
            Self::Cyclic(groups) => groups.count(clients),
            Self::Available(availability) => availability.schedule.len().max(1),
            _ => 1,
        }
    }

    /// Who may take part in each round of the period, in given order, among this number of clients, and how many of
    /// them are drawn; all in each round of a scheme without a schedule. Settings that [`Self::check`] and
    /// [`Self::check_for`] refuse have no meaning here.
    pub fn rounds_of_period(&self, size: Option<usize>, clients: usize) -> Vec<RoundCandidates> {
        let sets = match self {
            Self::Cyclic(groups) => groups.sets(clients),
            Self::Available(availability) => availability.sets(),
            _ => vec![(0..clients).collect()],
        };
        let mut rounds = Vec::with_capacity(sets.len());
        for set in sets {
            let most = size.unwrap_or(set.len());
            rounds.push(RoundCandidates { size: most.min(set.len()), clients: set });
        }
        rounds
    }

    /// The part of the rounds in which each client takes part in the long run, N numbers. `None` for schemes whose
    /// draws depend on shares, and without a scheme other than the default.
    pub fn frequencies(&self, size: Option<usize>, clients: usize) -> Option<Vec<f64>> {
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                Some((0..clients).map(|client| probabilities.of_client(client)).collect())
            }
            Self::Weighted(numbers) => Some(inclusion_of(numbers, size.unwrap_or(clients))),
            Self::Cyclic(_) | Self::Available(_) => {
                let rounds = self.rounds_of_period(size, clients);
                let mut all = vec![0.0; clients];
                for round in &rounds {
                    let chance = round.size as f64 / round.clients.len() as f64;
                    for client in &round.clients {
                        // A client that does not exist is refused elsewhere.
                        all.get_mut(*client).into_iter().for_each(|sum| *sum += chance);
                    }
                }
                all.iter_mut().for_each(|sum| *sum /= rounds.len() as f64);
                Some(all)
            }
            _ => None,
        }
    }

    /// w_k of each client when it takes part, N numbers, for schemes by which this is its share divided by the
    /// probability, or in the long run by the part of the rounds, of taking part; `None` for all others. `shares` are
    /// those of the N clients, or `None` if they are equal.
    pub fn inverse_weights(
        &self,
        size: Option<usize>,
        clients: usize,
        shares: Option<&[f64]>,
    ) -> Option<Vec<f64>> {
        let has_inverse = matches!(self, Self::Bernoulli(_) | Self::Weighted(_))
            || self.is_scheduled() && !self.is_normalised();
        let frequencies = self.frequencies(size, clients).filter(|_| has_inverse)?;
        let mut weights = Vec::with_capacity(clients);
        for (client, frequency) in frequencies.iter().enumerate() {
            let share = shares.map_or(1.0 / clients as f64, |shares| shares[client]);
            weights.push(share / frequency);
        }
        Some(weights)
    }

    /// The number by which the scheme of a single round distinguishes a client, from 0 on, from others with the same
    /// share: its probability, or whether it may take part. `None` if there is none.
    pub fn number_of_client(&self, client: usize) -> Option<f64> {
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                Some(probabilities.of_client(client))
            }
            Self::Weighted(numbers) => Some(numbers[client]),
            Self::Available(availability) => {
                let is_there = availability.sets().iter().any(|set| set.contains(&client));
                Some(f64::from(u8::from(is_there)))
            }
            _ => None,
        }
    }

    /// The mean number of clients that take part in a round, among this number of clients, which may be
    /// [`usize::MAX`] where it is not known. If clients are drawn with replacement, it is an upper bound, since clients
    /// that are drawn twice work once.
    pub fn mean_participants(&self, size: Option<usize>, clients: usize) -> f64 {
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                probabilities.sum(clients)
            }
            Self::Cyclic(groups) => groups.mean_participants(size, clients),
            Self::Available(availability) => availability.mean_participants(size),
            _ => size.unwrap_or(clients) as f64,
        }
    }

    /// The number of clients that take part in a round, if it is the same in all rounds.
    pub fn participants(&self, size: Option<usize>, clients: usize) -> Option<usize> {
        match self {
            Self::WithReplacement => match size {
                Some(2..) => None,
                one => Some(one.unwrap_or(clients)),
            },
            Self::Bernoulli(_) | Self::BernoulliNormalised(_) => {
                (!self.draws_clients(size, clients)).then_some(clients)
            }
            Self::Cyclic(groups) => groups.participants(size, clients),
            Self::Available(availability) => availability.participants(size),
            _ => Some(size.map_or(clients, |size| size.min(clients))),
        }
    }

    /// The part of the rounds in which somebody takes part, among this number of clients, which may be [`usize::MAX`]
    /// where it is not known.
    pub fn part_of_rounds_with_somebody(&self, clients: usize) -> f64 {
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                1.0 - probabilities.chance_of_nobody(clients)
            }
            Self::Available(availability) => {
                let sets = availability.sets();
                let some = sets.iter().filter(|set| !set.is_empty()).count();
                some as f64 / sets.len().max(1) as f64
            }
            _ => 1.0,
        }
    }

    /// The word for the scheme in manifests.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Normalised => "normalised",
            Self::Rescaled => "rescaled",
            Self::WithReplacement => "with-replacement",
            Self::Proportional => "proportional",
            Self::Weighted(_) => "weighted",
            Self::Bernoulli(_) => "bernoulli",
            Self::BernoulliNormalised(_) => "bernoulli-normalised",
            Self::Cyclic(_) => "cyclic",
            Self::Available(_) => "available",
        }
    }
}

impl Display for ParticipationScheme {
    /// The word for the scheme and its numbers or clients, for readers of programs.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Bernoulli(probabilities) | Self::BernoulliNormalised(probabilities) => {
                match probabilities {
                    ClientProbabilities::Fraction(p) => write!(f, " {p}"),
                    ClientProbabilities::Given(all) => write!(f, " <{} clients>", all.len()),
                }
            }
            Self::Weighted(numbers) => write!(f, " <{} clients>", numbers.len()),
            Self::Available(Availability { schedule, client_weights }) => {
                if *client_weights != ParticipantWeights::Normalised {
                    f.write_str(", rescaled")?;
                }
                let listed = schedule.iter().map(|clients| format!("\"{clients}\""));
                write!(f, " {}", listed.collect::<Vec<_>>().join(", "))
            }
            _ => Ok(()),
        }
    }
}

/// L q_k for each client, the probabilities of taking part where L = `size` distinct clients are drawn in proportion to
/// these numbers; q_k are the numbers divided by their sum.
pub fn inclusion_of(numbers: &[f64], size: usize) -> Vec<f64> {
    shares_of(numbers).iter().map(|share| size as f64 * share).collect()
}

/// The numbers divided by their sum.
pub fn shares_of(numbers: &[f64]) -> Vec<f64> {
    let sum: f64 = numbers.iter().sum();
    numbers.iter().map(|number| number / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::StrDeserializer;

    /// A scheme as a manifest writes it in TOML.
    fn scheme(text: &str) -> ParticipationScheme {
        let table: toml::Table = toml::from_str(&format!("scheme = {text}")).unwrap();
        table["scheme"].clone().try_into().unwrap()
    }

    #[test]
    fn words_are_those_of_manifests() {
        use ParticipationScheme::{Normalised, Proportional, Rescaled, WithReplacement};
        for scheme in [Normalised, Rescaled, WithReplacement, Proportional] {
            let word = StrDeserializer::<serde::de::value::Error>::new(scheme.word());
            assert_eq!(ParticipationScheme::deserialize(word), Ok(scheme));
        }
        assert!(WithReplacement.draws_clients(Some(3), 3) && !Rescaled.draws_clients(Some(3), 3));
        assert!(!WithReplacement.draws_clients(None, 3));
        for text in [
            "{ weighted = [1.0, 2.0] }",
            "{ bernoulli = 0.25 }",
            "{ bernoulli = [0.25, 1.0] }",
            "{ bernoulli-normalised = 0.25 }",
            "{ cyclic = { groups = 2, order = \"shuffled\" } }",
            "{ available = { schedule = [\"1-2\", \"\"], client-weights = \"rescaled\" } }",
        ] {
            let read = scheme(text);
            let written = toml::Value::try_from(&read).unwrap();
            assert_eq!(written.as_table().unwrap().keys().next().unwrap(), read.word());
            let again: ParticipationScheme = written.clone().try_into().unwrap();
            assert_eq!(again, read);
            assert_eq!(written.to_string(), text, "the canonical text is what manifests write");
        }
        assert_eq!(scheme("{ bernoulli = { fraction = 0.25 } }"), scheme("{ bernoulli = 0.25 }"));
    }

    #[test]
    fn rounds_take_their_clients_from_groups_and_lists() {
        let thirds = scheme("{ cyclic = { groups = 3 } }");
        let rounds = thirds.rounds_of_period(Some(2), 7);
        let sets: Vec<_> = rounds.iter().map(|round| (round.clients.clone(), round.size)).collect();
        assert_eq!(sets, [(vec![0, 1], 2), (vec![2, 3], 2), (vec![4, 5, 6], 2)]);
        assert_eq!(thirds.participants(None, 7), None);
        assert_eq!(thirds.participants(Some(2), 7), Some(2));
        assert_eq!(thirds.mean_participants(None, 7), 7.0 / 3.0);
        assert_eq!(thirds.mean_participants(Some(2), 7), 2.0);
        let singles = scheme("{ cyclic = {} }");
        assert_eq!((singles.period(4), singles.mean_participants(None, 4)), (4, 1.0));
        let listed = scheme("{ available = { schedule = [\"1-3\", \"\", \"2, 4\"] } }");
        assert_eq!(listed.frequencies(Some(1), 4).unwrap(), {
            let third: f64 = 1.0 / 3.0;
            [third / 3.0, (third + 0.5) / 3.0, third / 3.0, 0.5 / 3.0]
        });
        assert_eq!(listed.part_of_rounds_with_somebody(4), 2.0 / 3.0);
        assert_eq!(listed.mean_participants(None, 4), 5.0 / 3.0);
        assert!(!listed.is_random(None) && listed.is_random(Some(1)));
        assert!(scheme("{ cyclic = { order = \"shuffled\" } }").is_random(None));
    }

    /// The mean of the weights is the share where the scheme says so.
    #[test]
    fn weights_are_shares_divided_by_frequencies() {
        let shares = [0.5, 0.3, 0.2];
        for (text, size) in [
            ("{ bernoulli = [0.5, 0.25, 1.0] }", None),
            ("{ weighted = [1.0, 2.0, 3.0] }", Some(2)),
            ("{ cyclic = { client-weights = \"rescaled\" } }", None),
        ] {
            let scheme = scheme(text);
            let weights = scheme.inverse_weights(size, 3, Some(&shares)).unwrap();
            let frequencies = scheme.frequencies(size, 3).unwrap();
            for k in 0..3 {
                assert!((weights[k] * frequencies[k] - shares[k]).abs() < 1e-15, "{text}");
            }
        }
        assert_eq!(scheme("{ cyclic = {} }").inverse_weights(None, 3, Some(&shares)), None);
    }
}
