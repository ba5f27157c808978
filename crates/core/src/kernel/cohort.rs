//! The clients of a round, and everything that their local steps read and write.

mod entries;
mod lanes;

use crate::rng::Stream;
use entries::Entries;
pub use entries::LocalSteps;
use lanes::Who;
pub(in crate::kernel) use lanes::{EqualSteps, Lanes};

/// The proximal term μ(θ − θ_t) of a local step.
#[derive(Clone, Copy, Debug)]
pub struct Proximal<'a> {
    /// μ; 0 if there is no such term.
    pub weight: f64,
    /// θ_t, d numbers.
    pub anchor: &'a [f64],
}

impl Proximal<'_> {
    /// What stands for no proximal term: it has no anchor either.
    pub const NONE: Self = Self { weight: 0.0, anchor: &[] };

    /// Adds the term to a field at θ, field ← field + μ(θ − θ_t); both have d numbers. Without an anchor
    /// ([`Self::NONE`]) nothing is added.
    #[inline]
    pub fn add_to(&self, theta: &[f64], field: &mut [f64]) {
        for ((field, theta), anchor) in field.iter_mut().zip(theta).zip(self.anchor) {
            *field += self.weight * (theta - anchor);
        }
    }
}

/// The clients that take part in a round.
///
/// *Invariant*: indices increase.
#[derive(Clone, Debug)]
pub struct Members(Vec<usize>);

impl Members {
    /// The members of a round in which all `n` clients take part.
    pub fn all(n: usize) -> Self {
        Self((0..n).collect())
    }

    /// The members of a round in which these clients take part, given in any order; a client that is named twice counts
    /// once.
    pub fn new(mut who: Vec<usize>) -> Self {
        who.sort_unstable();
        who.dedup();
        Self(who)
    }

    /// The largest index of a member plus 1, so that all members are below it; 0 if there are none.
    pub fn end(&self) -> usize {
        self.0.last().map_or(0, |last| last + 1)
    }

    /// The indices of the members, in increasing order.
    pub fn indices(&self) -> &[usize] {
        &self.0
    }
}

/// The clients of a round, with the states of their noise and the form of their local steps.
pub struct Cohort<'a, S> {
    all: Entries<'a>,
    /// The states of the clients' noise, one for each entry of `all`.
    states: &'a mut [S],
    /// The number of steps of every client, in place of the numbers in the plans, if it is given.
    steps: Option<u64>,
    /// The proximal term of extended steps, which have such a term or average several oracle calls; its weight is 0 if
    /// they average calls alone. `None` if steps are plain: θ ← θ − γ_k (F_k(θ; Z) + ξ_k).
    pub extended: Option<Proximal<'a>>,
    /// Whether a client's row of θ is to have only the entries that its records touch, one after the other at its
    /// beginning ([`SparseRecords::advance`](crate::kernel::SparseRecords::advance)).
    pub on_supports: bool,
}

/// What the local steps of N clients read and write, whether or not they are members of a cohort.
pub struct CohortData<'a, S> {
    /// θ_t, d numbers, if all members begin there: then their rows of `theta` only receive their
    /// ends.
    pub start: Option<&'a [f64]>,
    /// θ_c, N rows of d numbers.
    pub theta: &'a mut [f64],
    /// ξ_c, N rows of d numbers, or one row for all clients.
    pub corrections: &'a [f64],
    /// The streams of the clients, N.
    pub streams: &'a mut [Stream],
    /// The states of the clients' noise, N.
    pub states: &'a mut [S],
    /// The local steps of the clients, N.
    pub plans: &'a [LocalSteps],
    /// The number of steps of every client, in place of the numbers in `plans`, if it is given.
    pub steps: Option<u64>,
}

/// What the oracle calls of a client draw from.
pub struct Draws<'a, S> {
    /// The client's stream.
    pub rng: &'a mut Stream,
    /// The state of its noise.
    pub state: &'a mut S,
}

/// One client's local steps of a round: `steps` times θ ← θ − step (F(θ; Z) + ξ).
pub struct Local<'a, S> {
    /// Index of the client.
    pub client: usize,
    /// θ_c, d numbers: the round's start on entry, its end on return.
    pub theta: &'a mut [f64],
    /// ξ_c, d numbers; always added, 0 without a correction.
    pub correction: &'a [f64],
    /// What the client's oracle calls draw from.
    pub draws: Draws<'a, S>,
    /// γ_c, the step size.
    pub step: f64,
    /// E_c, the number of local steps.
    pub steps: u64,
    /// B_c, the oracle calls whose mean is the field of a step.
    pub batch: u64,
}

impl<'a, S> Cohort<'a, S> {
    /// The members of a round, and their part of the data of N clients. Steps are plain, θ ← θ − γ_k (F_k(θ; Z) + ξ_k),
    /// and on whole rows of θ, unless `extended` or `on_supports` is set afterwards.
    ///
    /// # Panics
    /// If lengths do not agree, a member has no entry, or N or d is 0.
    pub fn new(members: &'a Members, data: CohortData<'a, S>) -> Self {
        let CohortData { start, theta, corrections, streams, states, plans, steps } = data;
        let n = streams.len();
        assert!(n > 0 && members.end() <= n && states.len() == n && plans.len() == n);
        let d = theta.len() / n;
        assert!(d > 0 && theta.len() == n * d && start.is_none_or(|start| start.len() == d));
        assert!(corrections.len() == n * d || corrections.len() == d);
        let all = Entries {
            d,
            members: members.indices(),
            first: 0,
            theta,
            start,
            corrections,
            stride: if corrections.len() == n * d { d } else { 0 },
            streams,
            plans,
        };
        Self { all, states, steps, extended: None, on_supports: false }
    }

    /// d, the numbers of a client's θ.
    pub fn dim(&self) -> usize {
        self.all.d
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.all.members.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.all.members.is_empty()
    }

    /// The largest index of a member plus 1, so that all members are below it; 0 if there are none.
    pub fn end(&self) -> usize {
        self.all.members.last().map_or(0, |last| last + 1)
    }

    /// The number of local steps of all members together. The engine decides by it whether two threads are to share
    /// the cohort.
    pub fn client_steps(&self) -> u64 {
        match self.steps {
            Some(steps) => steps * self.len() as u64,
            None => self.all.members.iter().map(|&client| self.steps_of(client)).sum(),
        }
    }

    /// Two cohorts, of the first `count` members and of the others, which two threads may run at the same time: each
    /// has its own members' rows of θ, streams and states, and the same form of the steps.
    ///
    /// # Panics
    /// If there are fewer members.
    pub fn split(self, count: usize) -> (Self, Self) {
        let Entries { d, members, first, theta, corrections, stride, streams, plans, .. } =
            self.all;
        let (low, high) = members.split_at(count);
        // The place of the second cohort's first member among the entries.
        let boundary = high.first().map_or(streams.len(), |c| c - first);
        let (theta, theta_high) = theta.split_at_mut(boundary * d);
        let (corrections, corrections_high) = match stride {
            0 => (corrections, corrections),
            d => corrections.split_at(boundary * d),
        };
        let (streams, streams_high) = streams.split_at_mut(boundary);
        let (states, states_high) = self.states.split_at_mut(boundary);
        let (plans, plans_high) = plans.split_at(boundary);
        let high = Entries {
            members: high,
            first: first + boundary,
            theta: theta_high,
            corrections: corrections_high,
            streams: streams_high,
            plans: plans_high,
            ..self.all
        };
        let low = Entries { members: low, theta, corrections, streams, plans, ..self.all };
        (Self { all: low, states, ..self }, Self { all: high, states: states_high, ..self })
    }

    /// The indices of the clients that are members, in increasing order.
    pub fn members(&self) -> &[usize] {
        self.all.members
    }

    /// The number of oracle calls that the local steps of all members make together.
    pub fn calls(&self) -> u64 {
        let calls = |client: &usize| self.steps_of(*client) * self.plan_of(*client).batch;
        self.all.members.iter().map(calls).sum()
    }

    /// Gives each member another stream, and returns the streams that they had, in the order of the members, for
    /// [`Self::restore_streams`]. `draw` makes the other one from the index of the client, from what its oracle calls would
    /// draw from, and from the number of these calls.
    pub fn replace_streams(
        &mut self,
        mut draw: impl FnMut(usize, Draws<'_, S>, u64) -> Stream,
    ) -> Vec<Stream> {
        let mut replaced = Vec::with_capacity(self.len());
        for &client in self.all.members {
            let entry = client - self.all.first;
            let calls = self.steps_of(client) * self.plan_of(client).batch;
            let rng = &mut self.all.streams[entry];
            let other = draw(client, Draws { rng, state: &mut self.states[entry] }, calls);
            replaced.push(std::mem::replace(rng, other));
        }
        replaced
    }

    /// Gives the members back the streams that [`Self::replace_streams`] has returned.
    pub fn restore_streams(&mut self, replaced: Vec<Stream>) {
        for (&client, stream) in self.all.members.iter().zip(replaced) {
            self.all.streams[client - self.all.first] = stream;
        }
    }

    /// The number of entries, which includes clients that are no members.
    pub fn entries(&self) -> usize {
        self.states.len()
    }

    /// These steps with other states of the clients' noise, of which each entry has one.
    ///
    /// # Panics
    /// If there are fewer or more states than entries.
    pub fn with_states<'b, T>(&'b mut self, states: &'b mut [T]) -> Cohort<'b, T> {
        assert_eq!(states.len(), self.entries());
        let all = self.all.with_members(self.all.members);
        Cohort {
            all,
            states,
            steps: self.steps,
            extended: self.extended,
            on_supports: self.on_supports,
        }
    }

    /// The members in order, each with its own row of θ, stream and state. The iterator copies θ_t to a member's row
    /// first, if all members begin there.
    pub fn locals(self) -> Locals<'a, S> {
        Locals { cohort: self, entry: 0 }
    }

    /// Calls `run`, which runs the local steps of one client, with each member in order, whose row of θ has the point
    /// at which its steps begin.
    pub fn each(self, run: impl FnMut(Local<'_, S>)) {
        self.locals().for_each(run);
    }

    /// Calls `run` with each sequence of neighbouring members that have equal numbers of steps, so that they can be
    /// stepped in lockstep. For kernels of plain steps: `run` gets neither batches nor the proximal term, nor the
    /// states of the clients' noise.
    #[inline(always)]
    pub(in crate::kernel) fn each_equal_run(&mut self, mut run: impl FnMut(&mut EqualSteps<'_>)) {
        let plans = self.all.plans;
        let first = self.all.first;
        let members = self.all.members;
        if let Some(steps) = self.steps {
            if !members.is_empty() {
                let who = Who::Members(self.all.with_members(members));
                run(&mut EqualSteps { who, steps });
            }
            return;
        }
        for alike in members.chunk_by(|&a, &b| plans[a - first].steps == plans[b - first].steps) {
            let steps = plans[alike[0] - first].steps;
            let who = Who::Members(self.all.with_members(alike));
            run(&mut EqualSteps { who, steps });
        }
    }

    /// Calls `run` once for each member of these cohorts, which are the same clients in several runs: with the data
    /// that the member has in all of the runs, so that they can be stepped in lockstep. For kernels of plain steps, as
    /// `each_equal_run`.
    ///
    /// # Panics
    /// If the cohorts differ in their members or in their numbers of steps.
    pub(in crate::kernel) fn each_client(
        cohorts: &mut [Self],
        mut run: impl FnMut(&mut EqualSteps<'_>),
    ) {
        let Some(members) = cohorts.first().map(|first| first.all.members) else { return };
        assert!(cohorts.iter().all(|cohort| cohort.all.members == members));
        for client in members.chunks_exact(1) {
            let steps = cohorts[0].steps_of(client[0]);
            assert!(cohorts.iter().all(|cohort| cohort.steps_of(client[0]) == steps));
            let who = Who::Client(
                cohorts.iter_mut().map(|cohort| cohort.all.with_members(client)).collect(),
            );
            run(&mut EqualSteps { who, steps });
        }
    }

    /// The number of steps of a member.
    fn steps_of(&self, client: usize) -> u64 {
        self.steps.unwrap_or_else(|| self.plan_of(client).steps)
    }

    /// The local steps of a member as its entry has them.
    fn plan_of(&self, client: usize) -> &LocalSteps {
        &self.all.plans[client - self.all.first]
    }
}

/// The members of a cohort, in order; each gets its row of θ, its stream and its state.
pub struct Locals<'a, S> {
    /// The members that are still to come. θ, streams and states begin with entry number `entry`; the other lists are
    /// whole.
    cohort: Cohort<'a, S>,
    entry: usize,
}

/// Takes a list out of `rest`, and returns it without its first `count` items.
fn skip_items<'a, T>(rest: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    &mut std::mem::take(rest)[count..]
}

impl<'a, S> Locals<'a, S> {
    /// The next member, and θ_t if its steps begin there instead of at its own row, to which θ_t is not copied: for
    /// kernels that copy θ elsewhere anyway. They then write where the steps end to the member's row, whose numbers
    /// mean nothing before. `None` after the last member.
    #[inline(always)]
    pub fn next_apart(&mut self) -> Option<(Local<'a, S>, Option<&'a [f64]>)> {
        let Cohort { all, states, steps: equal, .. } = &mut self.cohort;
        let (&client, members) = all.members.split_first()?;
        all.members = members;
        let entry = client - all.first;
        let skip = entry - self.entry;
        self.entry = entry + 1;
        let (theta, rest) = skip_items(&mut all.theta, skip * all.d).split_at_mut(all.d);
        all.theta = rest;
        let (rng, rest) = skip_items(&mut all.streams, skip).split_first_mut()?;
        all.streams = rest;
        let (state, rest) = skip_items(states, skip).split_first_mut()?;
        *states = rest;
        let LocalSteps { step, steps, batch } = all.plans[entry];
        let correction = &all.corrections[entry * all.stride..][..all.d];
        let steps = equal.unwrap_or(steps);
        let draws = Draws { rng, state };
        Some((Local { client, theta, correction, draws, step, steps, batch }, all.start))
    }
}

impl<'a, S> Iterator for Locals<'a, S> {
    type Item = Local<'a, S>;

    /// The next member, whose row of θ has the point at which its steps begin.
    #[inline]
    fn next(&mut self) -> Option<Local<'a, S>> {
        let (local, start) = self.next_apart()?;
        if let Some(start) = start {
            local.theta.copy_from_slice(start);
        }
        Some(local)
    }
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    #[test]
    fn parts_of_a_cohort_keep_the_data_of_every_member() {
        let n = 7;
        let d = 2;
        for who in [vec![0, 1, 2, 3, 4, 5, 6], vec![6, 1, 4], vec![3], vec![]] {
            for shared in [false, true] {
                let members = Members::new(who.clone());
                let mut theta: Vec<f64> = (0..n * d).map(|i| i as f64).collect();
                let corrections = theta[..if shared { d } else { n * d }].to_vec();
                let mut streams: Vec<_> =
                    (0..n as u64).map(|c| Stream::new(1, Purpose::Client, 0, 0, c)).collect();
                let mut states: Vec<usize> = (0..n).collect();
                let plans: Vec<_> = (0..n)
                    .map(|c| LocalSteps { step: c as f64, steps: c as u64, batch: 1 })
                    .collect();
                let data = CohortData {
                    start: None,
                    theta: &mut theta,
                    corrections: &corrections,
                    streams: &mut streams,
                    states: &mut states,
                    plans: &plans,
                    steps: None,
                };
                let whole = Cohort::new(&members, data);
                assert_eq!(whole.client_steps(), who.iter().sum::<usize>() as u64);
                let mut seen = Vec::new();
                let mut see = |local: Local<'_, usize>| {
                    let c = local.client;
                    let own = if shared { 0 } else { c };
                    assert_eq!(local.theta, [(c * d) as f64, (c * d + 1) as f64]);
                    assert_eq!(local.correction, [(own * d) as f64, (own * d + 1) as f64]);
                    assert_eq!(
                        (*local.draws.state, local.steps, local.step),
                        (c, c as u64, c as f64)
                    );
                    assert_eq!(
                        local.draws.rng.bits(),
                        Stream::new(1, Purpose::Client, 0, 0, c as u64).bits()
                    );
                    seen.push(c);
                };
                let half = whole.len() / 2;
                let (low, high) = whole.split(half);
                let half_of_high = high.len() / 2;
                let (first, second) = high.split(half_of_high);
                low.each(&mut see);
                first.each(&mut see);
                second.each(&mut see);
                assert_eq!(seen, members.indices());
            }
        }
    }
}
