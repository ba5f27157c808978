//! What the steps of a round's clients read and write, with an entry for each client.

use crate::rng::Stream;

/// The local steps of one client in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSteps {
    /// γ_k, the step size.
    pub step: f64,
    /// E_k (H if it is the same for all clients).
    pub steps: u64,
    /// B_k, oracle calls averaged in a step.
    pub batch: u64,
}

/// The data of the clients of a round. Rows and lists have an entry for every client
/// from `first` on, whether or not it is a member.
///
/// *Invariant*: members increase, and each has its entry in every list.
pub struct Entries<'a> {
    pub d: usize,
    pub members: &'a [usize],
    /// The client of the first entry.
    pub first: usize,
    pub theta: &'a mut [f64],
    /// θ_t, if all clients begin there instead of at their own rows.
    pub start: Option<&'a [f64]>,
    pub corrections: &'a [f64],
    /// The distance from one client's ξ to the next: d, or 0 if all share one.
    pub stride: usize,
    pub streams: &'a mut [Stream],
    pub plans: &'a [LocalSteps],
}

impl Entries<'_> {
    /// The same entries, of only these members.
    #[inline(always)]
    pub fn with_members<'b>(&'b mut self, members: &'b [usize]) -> Entries<'b> {
        Entries { members, theta: self.theta, streams: self.streams, ..*self }
    }
}
