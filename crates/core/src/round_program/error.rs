//! Why there is no program of an algorithm's rounds, or why a program that was read is none.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why the rounds of an algorithm are not known as a program, or a program is not sound.
///
/// Stored results have the message alone, so that every error that is read from them is [`Self::Refused`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(into = "String", from = "String")]
pub enum ProgramError {
    /// The algorithm does not say what its rounds do.
    #[error("its rounds are not traced")]
    NotTraced,
    /// The algorithm is known from results, which hold no code that could be traced.
    #[error(
        "the code of the algorithm `{kind}` is not at hand, or has changed since; results run no code, so do this where the same code is registered, or name its file with --run-code"
    )]
    NoCode {
        /// The kind of the algorithm in manifests.
        kind: String,
    },
    /// The reason that whoever traces rounds states: code of a user, or results of an earlier run.
    #[error("{0}")]
    Refused(String),
    /// Programs cannot say how the runs of the algorithm share their draws.
    #[error("second moments do not close")]
    Open,
    /// The server divides its moves by square roots of their second moments (FedAdam and its relatives).
    #[error(
        "the server adapts its step to the squares of its changes, so that its rounds are not linear"
    )]
    AdaptiveServer,
    /// A schedule of clients repeats after too many rounds.
    #[error("its clients take part by a schedule of {rounds} rounds, too many to follow")]
    LongPeriod {
        /// The number of rounds after which the schedule repeats.
        rounds: usize,
    },
    /// Stragglers take numbers of local steps that are drawn anew in each round.
    #[error(
        "stragglers take numbers of local steps that are drawn anew in each round, and programs have fixed numbers"
    )]
    RandomWork,
    /// The mean of a cohort enters the local steps of the cohort, whose ends are averaged over it again.
    #[error(
        "corrections are means over the clients that are drawn, whose ends are averaged over the same draw"
    )]
    CohortTwice,
    /// Local steps of a round differ in their sizes, and there are too many of them for a program.
    #[error("step sizes fall from step to step in rounds of more than {most} local steps")]
    ManyFallingSteps {
        /// The most steps that a program has.
        most: u64,
    },
    /// Single local steps are asked of an algorithm whose local steps no coin ends.
    #[error("no coin ends the local steps")]
    NoCoin,
    /// The order of rounds names a round that does not exist, or there are no clients or dimensions.
    #[error("it names a round that it does not have")]
    UnknownRound,
    /// More rounds repeat than there are.
    #[error("its cycle is longer than its rounds")]
    LongCycle,
    /// The state before the first round is not that of the server alone.
    #[error("it begins with more than θ_0")]
    Beginning,
    /// Two rounds that follow each other do not fit together.
    #[error("a round leaves another state than the next one has")]
    OtherState,
    /// The number of clients that are drawn is 0, or the number of all clients or more where none is drawn twice, or a
    /// scheme of participation is stated where none are drawn.
    #[error("a cohort is empty, or everybody")]
    CohortSize,
    /// Groups of clients take part in turn in an order that is drawn anew in each cycle.
    #[error(
        "the order of the groups is drawn anew in each cycle, and moments do not follow which of them were there"
    )]
    ShuffledCycle,
    /// There are too many masks, a probability is not in [0, 1], or a subset has no whole number of entries.
    #[error("a mask has no probability")]
    MaskProbability,
    /// A list of an operation has another length than it must have, or its mask or cohort is missing.
    #[error("operation {place} of a round is not complete")]
    IncompleteOperation {
        /// The place of the operation among the operations of its round, from 0 on.
        place: usize,
    },
    /// An expression names an atom that does not exist, or numbers of another length.
    #[error("an expression reads what is not there")]
    UnknownAtom,
    /// Noises of two kinds of draws depend on each other in a way that moments do not follow.
    #[error("{earlier} and {later} are combined in a way whose noise is not followed")]
    CombinedDraws {
        /// The kind of draws that is applied first.
        earlier: String,
        /// The kind of draws that is applied to the result.
        later: String,
    },
}

impl From<ProgramError> for String {
    fn from(error: ProgramError) -> Self {
        error.to_string()
    }
}

impl From<String> for ProgramError {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}
