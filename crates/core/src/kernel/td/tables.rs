//! What the steps of TD(0) read: features, and the transitions of each client.

use crate::kernel::alias::Alias;
use crate::kernel::fold::fold_sum;
use crate::kernel::padding::padded;
use crate::kernel::rows::Table;

/// A transition: a pair (s, s') of states, each below 2¹⁶, in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atom(pub u32);

impl Atom {
    /// The transition from `state` to `next`, both below 2¹⁶, which is not checked here.
    pub fn new(state: usize, next: usize) -> Self {
        Self((state as u32) << 16 | next as u32)
    }
    /// The state s before the transition.
    #[inline(always)]
    pub fn state(self) -> usize {
        (self.0 >> 16) as usize
    }
    /// The state s' after the transition.
    #[inline(always)]
    pub fn next(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// The distribution from which a client's transitions are drawn, and its rewards.
#[derive(Clone, Debug)]
pub struct Transitions {
    /// The distribution of the pairs (s, s').
    pub pairs: Alias<Atom>,
    /// The reward r(s) of each state, S numbers.
    pub rewards: Vec<f64>,
}

/// What the local steps of TD(0) read: features that all clients share, and each client's
/// distribution of transitions as an alias table, with its rewards.
#[derive(Clone, Debug)]
pub struct TransitionTables {
    pub(super) d: usize,
    /// The distance between rows of φ: d, padded to whole registers.
    pub(super) stride: usize,
    /// γ, the discount of rewards.
    pub(super) discount: f64,
    /// φ, S rows.
    pub(super) phi: Table,
    /// The different distributions of the clients.
    pub(super) distributions: Vec<Transitions>,
    /// For each client the index of its distribution in `distributions`.
    pub(super) distribution_of: Vec<u32>,
    /// The number of pairs (s, s') of all distributions together: a measure of the memory that a round reads.
    pub(super) pairs: usize,
}

/// The most states that a [`TransitionTables`] can hold.
pub const MAX_STATES: usize = 1 << 16;

impl TransitionTables {
    /// Tables of the features `phi` (S rows of d numbers) under the discount γ, without a client yet.
    ///
    /// # Panics
    /// If `d` is 0, `phi` is not S rows of `d`, or S exceeds [`MAX_STATES`].
    pub fn new(d: usize, phi: &[f64], discount: f64) -> Self {
        assert!(d > 0 && phi.len().is_multiple_of(d) && phi.len() / d <= MAX_STATES);
        Self {
            d,
            stride: padded(d),
            discount,
            phi: Table::new(d, &[phi]),
            distributions: Vec::new(),
            distribution_of: Vec::new(),
            pairs: 0,
        }
    }

    /// S, the number of states.
    fn states(&self) -> usize {
        self.phi.rows().len()
    }

    /// The transitions of a client, by its number.
    #[inline(always)]
    pub(super) fn distribution(&self, client: usize) -> &Transitions {
        &self.distributions[self.distribution_of[client] as usize]
    }

    /// The transitions of a client, without a check of its number, for members of a cohort that was checked.
    ///
    /// # Safety
    /// There is a client of this number.
    #[inline(always)]
    pub(super) unsafe fn member(&self, client: usize) -> &Transitions {
        // SAFETY: there is such a client; `distribution_of` holds indices of `distributions`.
        unsafe {
            self.distributions.get_unchecked(*self.distribution_of.get_unchecked(client) as usize)
        }
    }

    /// Adds a client that has the transitions and rewards of an earlier client, and shares their memory.
    ///
    /// # Panics
    /// If there is no client of this number.
    pub fn repeat(&mut self, client: usize) {
        self.distribution_of.push(self.distribution_of[client]);
    }

    /// Adds a client. `pairs` are its transitions as s, s' and a weight, to which the transition's probability is
    /// proportional; `rewards` are r(s), S numbers.
    ///
    /// # Panics
    /// If a state is out of range, there is no pair, a weight is negative or NaN, all weights are 0, or rewards are not
    /// S numbers.
    pub fn push(&mut self, pairs: &[(usize, usize, f64)], rewards: Vec<f64>) {
        let states = self.states();
        assert!(!pairs.is_empty() && rewards.len() == states);
        assert!(pairs.iter().all(|&(s, t, _)| s < states && t < states));
        let atoms: Vec<(Atom, f64)> = pairs.iter().map(|&(s, t, p)| (Atom::new(s, t), p)).collect();
        self.distribution_of.push(self.distributions.len() as u32);
        self.pairs += pairs.len();
        self.distributions.push(Transitions { pairs: Alias::new(&atoms), rewards });
    }

    /// The definition of an oracle call: writes the field at θ on the transition that a draw of 64 bits gives the
    /// client, for independent draws. Along a trajectory the caller knows the transition, and calls [`Self::field`].
    #[inline]
    pub fn oracle(&self, client: usize, draw: u64, theta: &[f64], field: &mut [f64]) {
        let atom = self.distribution(client).pairs.pick(draw);
        self.field(client, atom.state(), atom.next(), theta, field);
    }

    /// Writes the field of a client at θ on the transition from `s` to `next`, (φ(s) − γφ(s'))ᵀθ φ(s) − r(s) φ(s), to
    /// `field`, d numbers.
    #[inline(always)]
    pub fn field(&self, client: usize, s: usize, next: usize, theta: &[f64], field: &mut [f64]) {
        let d = theta.len();
        let phi = &self.phi.rows().row(s)[..d];
        let next = &self.phi.rows().row(next)[..d];
        let along = fold_sum(d, |i| (phi[i] - self.discount * next[i]) * theta[i]);
        let delta = along - self.distribution(client).rewards[s];
        for (field, phi) in field.iter_mut().zip(phi) {
            *field = delta * phi;
        }
    }
}
