//! Why there are no exact moments.

use crate::round_program::ProgramError;
use thiserror::Error;

/// Why the exact moments of an algorithm on a problem are not known, or do not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MomentsError {
    /// The rounds of the algorithm are no program, so that nothing could be followed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Second moments close on linear fields only.
    #[error("the field of the problem is not linear")]
    CurvedField,
    /// Second moments close for independent draws only.
    #[error("the draws of a client depend on each other")]
    DependentDraws,
    /// Moments of passes over records are followed for orders of few records alone, since all subsets are.
    #[error(
        "clients pass over up to {records} records in a random order, and the moments of a pass are computed for at most {most}"
    )]
    LongPass {
        /// The largest number of records of a client.
        records: usize,
        /// The largest number that is allowed.
        most: usize,
    },
    /// Clients pass over records, and a round does not consist of whole passes.
    #[error(
        "clients pass over their records, and moments are known only of rounds of local steps that are whole passes, of one gradient each"
    )]
    PartOfPass,
    /// The problem does not state the noise of its field.
    #[error("second moments of the problem's field do not close")]
    OpenField,
    /// The program was made for another problem.
    #[error("the program is that of another number of clients or dimensions")]
    OtherSize,
    /// Clients are to be drawn in proportion to shares of which one is too large.
    #[error("a client would be drawn with a probability above 1")]
    ImpossibleDraw,
    /// The program draws some of the clients, which have unequal shares, and divides their shares by their sum.
    #[error("a cohort of clients of unequal shares has no fixed mean")]
    UnequalCohort,
    /// The algorithm averages over some of the clients, which have unequal shares.
    #[error("the mean of a part of the clients of unequal shares is no fixed map")]
    UnequalPart,
    /// Clients weigh by their local steps and by their shares.
    #[error("the progress of clients of unequal shares is not followed")]
    UnequalProgress,
    /// The program does not say what this round does: it has fewer rounds, and none repeat.
    #[error("nothing is known of round {round}")]
    UnknownRound {
        /// The number of the round, from 1.
        round: u64,
    },
    /// An operation that makes no local steps was taken for one that does.
    #[error("no local steps")]
    NoLocalSteps,
    /// A round draws its clients once, and uses them twice.
    #[error("what comes of the cohort's draw enters what its members send again")]
    RepeatedCohort,
    /// A round applies a mask to what the same mask left.
    #[error("what a random mask removes is masked by it again")]
    RepeatedMask,
    /// Single local steps are asked of an algorithm of several runs.
    #[error("rounds of a fixed number of steps are those of one run")]
    SeveralRuns,
    /// Copies are compared whose rounds end after different numbers of local steps.
    #[error("rounds of random length are not the same of two copies")]
    RandomLength,
    /// No rounds repeat, so that there is no stationary distribution.
    #[error("its rounds do not repeat, as frontiers and stationary errors need")]
    NotRepeating,
    /// The cycle of rounds has no phases.
    #[error("rounds have no period")]
    NoPeriod,
    /// The state of the cycle has too many coordinates for its linear systems.
    #[error("its state has {size} coordinates, and at most {most} are solved for")]
    TooLarge {
        /// The coordinates of the state.
        size: usize,
        /// The most coordinates that are allowed.
        most: usize,
    },
    /// Local steps until a coin falls have infinite means.
    #[error("means are infinite after the random number of local steps between communications")]
    InfiniteMeans,
    /// Local steps until a coin falls have infinite second moments.
    #[error(
        "second moments are infinite after the random number of local steps between communications"
    )]
    InfiniteSquares,
    /// Moments grow, or are not proven to converge.
    #[error("its moments do not come to rest")]
    Unstable,
    /// Moments grow since something is added in each cycle to what it keeps.
    #[error("its moments do not come to rest: {0}")]
    UnstableSum(KeptSum),
    /// A combination of coordinates that is kept for ever grows.
    #[error(transparent)]
    Sum(#[from] KeptSum),
    /// The power iteration for ρ(T) of THEORY (5.2) does not converge.
    #[error("the growth of second moments does not settle")]
    UnsettledGrowth,
    /// Means converge, and their limits differ between starts.
    #[error("where it comes to rest depends on its start")]
    DependsOnStart,
    /// A combination that is kept for ever differs between starts.
    #[error("what it keeps for ever depends on its start")]
    KeptStart,
}

/// What is added in each cycle to a combination of coordinates that the cycle keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeptSum {
    /// Noise, so that the variance grows.
    #[error("noise adds up in what it keeps")]
    Noise,
    /// A constant, so that the mean grows.
    #[error("a constant adds up in what it keeps")]
    Constant,
}
