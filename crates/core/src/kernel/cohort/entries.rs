//! What the steps of a round's clients read and write, with an entry for each client.

use crate::rng::Stream;

/// The local steps of one client in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSteps {
    /// γ_k, the step size.
    pub step: f64,
    /// E_k, the number of steps (H if it is the same for all clients).
    pub steps: u64,
    /// B_k, the number of oracle calls that a step averages; 1 unless steps are extended
    /// ([`Cohort::extended`](super::Cohort::extended)), as whoever makes the cohort sees to.
    pub batch: u64,
}

/// The data of the clients of a round. Rows and lists have an entry for every client
/// from `first` on, whether or not it is a member.
///
/// *Invariant*: members increase, and each has its entry in every list.
pub struct Entries<'a> {
    /// The numbers of a client's θ.
    pub d: usize,
    /// The indices of the clients that take part.
    pub members: &'a [usize],
    /// The client of the first entry.
    pub first: usize,
    /// θ_k, one row of d numbers for each entry.
    pub theta: &'a mut [f64],
    /// θ_t, if all clients begin there instead of at their own rows.
    pub start: Option<&'a [f64]>,
    /// ξ_k, one row of d numbers for each entry, or one row for all.
    pub corrections: &'a [f64],
    /// The distance from one client's ξ to the next client's: d, or 0 if all share one row.
    pub stride: usize,
    pub streams: &'a mut [Stream],
    pub plans: &'a [LocalSteps],
}

impl Entries<'_> {
    /// These entries, borrowed with other members, which must be some of those that they have now.
    #[inline(always)]
    pub fn with_members<'b>(&'b mut self, members: &'b [usize]) -> Entries<'b> {
        Entries { members, theta: self.theta, streams: self.streams, ..*self }
    }
}
