//! Clients that are stepped in lockstep: members of a cohort, or one client in several runs.

use super::entries::Entries;
use crate::kernel::simd::prefetch_all;
use crate::rng::{AHEAD, Stream};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::Range;

/// The clients that [`EqualSteps`] steps.
///
/// *Invariant*: no two of them have a row of θ or a stream in common.
pub(super) enum Who<'a> {
    /// The members of a cohort.
    Members(Entries<'a>),
    /// One client in several runs: it is the only member of the entries of each run.
    Client(Vec<Entries<'a>>),
}

/// Clients with equal numbers of steps, which can be stepped in lockstep: some clients of one run, or one client in
/// several runs. Both are called its members.
pub(in crate::kernel) struct EqualSteps<'a> {
    pub(super) who: Who<'a>,
    /// The number of steps of each member.
    pub steps: u64,
}

/// The data of `len` members (at most K) that are stepped in lockstep.
///
/// *Invariant*: θ and ξ point to d numbers; all pointers are valid for as long as the
/// [`EqualSteps`] they come from is borrowed, and no two members share θ or a stream.
pub(in crate::kernel) struct Lanes<'a, const K: usize> {
    /// The number of members; entries beyond it mean nothing.
    pub len: usize,
    /// The index of each member's client.
    pub client: [usize; K],
    /// Where each member's θ is written at the end.
    pub theta: [*mut f64; K],
    /// Where each member's θ is read at the start: the same place, or θ_t of all members.
    pub start: [*const f64; K],
    /// ξ of each member, d numbers.
    pub correction: [*const f64; K],
    /// The step size of each member.
    pub step: [f64; K],
    streams: [*mut Stream; K],
    borrowed: PhantomData<&'a mut Stream>,
}

impl<const K: usize> Lanes<'_, K> {
    /// For each member a pointer to its next draws, each 64 uniform bits, and how many draws are ready behind every
    /// pointer: at most `most`, and at least 1 unless `most` is 0. Pointers beyond the number of members are null. A
    /// kernel reads the draws in place, and calls [`Self::skip`] for those that it has read.
    #[inline(always)]
    pub fn ready(&mut self, most: u64) -> ([*const u64; K], usize) {
        let mut now = usize::try_from(most).unwrap_or(usize::MAX);
        let mut draws = [std::ptr::null(); K];
        for (draws, stream) in draws.iter_mut().zip(&self.streams[..self.len]) {
            // SAFETY: the invariant.
            let ready = unsafe { (**stream).ready() };
            now = now.min(ready.len());
            *draws = ready.as_ptr();
        }
        (draws, now)
    }

    /// The next draw of member number `k`, 64 uniform bits, which is then used.
    ///
    /// # Panics
    /// If there are fewer members.
    #[inline(always)]
    pub fn bits(&mut self, k: usize) -> u64 {
        assert!(k < self.len);
        // SAFETY: the invariant.
        unsafe { (*self.streams[k]).bits() }
    }

    /// Marks the next `count` draws of every stream as used: those behind the pointers of [`Self::ready`] that a kernel
    /// has read.
    ///
    /// # Panics
    /// If fewer draws are ready in a stream.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        for stream in &self.streams[..self.len] {
            // SAFETY: the invariant.
            unsafe { (**stream).skip(count) };
        }
    }

    /// Lanes without a member, to which members are added.
    const fn none() -> Self {
        Self {
            len: 0,
            client: [0; K],
            theta: [std::ptr::null_mut(); K],
            start: [std::ptr::null(); K],
            correction: [std::ptr::null(); K],
            step: [0.0; K],
            streams: [std::ptr::null_mut(); K],
            borrowed: PhantomData,
        }
    }

    /// Adds members number `members.start` to `members.end` of these entries, in order.
    ///
    /// # Safety
    /// Members differ, and each has its entry in every list; all lanes together have at most K members.
    #[inline(always)]
    unsafe fn add(&mut self, all: &mut Entries<'_>, members: Range<usize>) {
        let theta = all.theta.as_mut_ptr();
        let streams = all.streams.as_mut_ptr();
        for &client in &all.members[members] {
            let k = self.len;
            let entry = client - all.first;
            self.len += 1;
            self.client[k] = client;
            // SAFETY: the invariant: members differ, and each has its entry.
            unsafe {
                self.theta[k] = theta.add(entry * all.d);
                self.start[k] = all.start.map_or(self.theta[k].cast_const(), <[f64]>::as_ptr);
                self.correction[k] = all.corrections.as_ptr().add(entry * all.stride);
                self.step[k] = all.plans.get_unchecked(entry).step;
                self.streams[k] = streams.add(entry);
            }
        }
    }
}

impl EqualSteps<'_> {
    /// How many members there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.who {
            Who::Members(all) => all.members.len(),
            Who::Client(runs) => runs.len(),
        }
    }

    /// The stream of member number `k`, if there is one.
    #[inline(always)]
    fn stream(&self, k: usize) -> Option<&Stream> {
        let (all, k) = match &self.who {
            Who::Members(all) => (all, k),
            Who::Client(runs) => (runs.get(k)?, 0),
        };
        all.members.get(k).map(|client| &all.streams[client - all.first])
    }

    /// Prefetches what [`EqualSteps::prefetch_draws`] reads of member number `k`, if there
    /// is one: the place of its stream's next draw. To be called some members earlier than that.
    #[inline(always)]
    pub fn prefetch_position(&self, k: usize) {
        if let Some(stream) = self.stream(k) {
            prefetch_all(stream.position(), 1);
        }
    }

    /// Prefetches the next draws of member number `k`, if there is one: those that are made already, and no more than
    /// one for each of its steps.
    #[inline(always)]
    pub fn prefetch_draws(&self, k: usize) {
        let Some(stream) = self.stream(k) else { return };
        match stream.unused() {
            // All its draws are used, so that the next ones are made in place, which touches the whole stream.
            [] => prefetch_all(stream, size_of::<Stream>()),
            draws => {
                // 7 more, so that the cache line of the last one is included.
                let steps = self.steps.min(AHEAD as u64) as usize + 7;
                prefetch_all(draws.as_ptr(), 8 * draws.len().min(steps));
            }
        }
    }

    /// The data of K members, from number `from` on.
    ///
    /// # Panics
    /// If there are fewer members.
    #[inline(always)]
    pub fn lanes<const K: usize>(&mut self, from: usize) -> Lanes<'_, K> {
        self.lanes_up_to(from, K)
    }

    /// The data of `len` members, from number `from` on.
    ///
    /// # Panics
    /// If there are fewer members, or `len` exceeds K.
    #[inline(always)]
    pub fn lanes_up_to<const K: usize>(&mut self, from: usize, len: usize) -> Lanes<'_, K> {
        assert!(len <= K);
        let mut lanes = Lanes::none();
        // SAFETY: the invariants; there are at most K.
        unsafe {
            match &mut self.who {
                Who::Members(all) => lanes.add(all, from..from + len),
                Who::Client(runs) => {
                    runs[from..][..len].iter_mut().for_each(|all| lanes.add(all, 0..1));
                }
            }
        }
        lanes
    }
}
