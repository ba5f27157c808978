//! The work that no TD(0) step can do without, for benches: its time is a lower limit of the time of a step.

use super::tables::{TransitionTables, Transitions};
use crate::kernel::padding::WIDEST_SHORT;
use crate::kernel::simd::{InstructionSet, Simd, fold_registers, in_lanes};
use crate::rng::Stream;

impl TransitionTables {
    /// Does `steps` times for each client that has a stream and a row of `theta` the least that a step of TD(0) must
    /// do: draw, gather two rows, update θ (rows of 8 numbers), without rewards, the discount and ξ, and without the
    /// bits of the definition. Four clients are in lockstep, on the fastest instruction set of at most four lanes;
    /// clients that fill no group of four are left out.
    ///
    /// # Panics
    /// If d is not 8, there are not as many streams as rows, or there are more of them than clients.
    #[doc(hidden)]
    pub fn limit(&self, streams: &mut [Stream], theta: &mut [[f64; 8]], step: f64, steps: u64) {
        assert!(
            self.d == 8
                && streams.len() == theta.len()
                && theta.len() <= self.distribution_of.len()
        );
        let tables = self;
        let path = InstructionSet::best().at_most(WIDEST_SHORT);
        // SAFETY: checked above.
        in_lanes!(path, I, (
            tables: &TransitionTables,
            streams: &mut [Stream],
            theta: &mut [[f64; 8]],
            step: f64,
            steps: u64
        ) => tables.least::<I, { 8 / I::LANES }>(streams, theta, step, steps));
    }

    /// The steps of [`TransitionTables::limit`], with a row of θ in R registers of `I`.
    ///
    /// # Safety
    /// `I` is present, clients and lengths are in range, and d = 8 = R·LANES.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn least<I: Simd, const R: usize>(
        &self,
        streams: &mut [Stream],
        theta: &mut [[f64; 8]],
        step: f64,
        steps: u64,
    ) {
        const K: usize = 4;
        let streams = streams.as_chunks_mut::<K>().0;
        let rows = theta.as_chunks_mut::<K>().0;
        for (g, (streams, rows)) in streams.iter_mut().zip(rows).enumerate() {
            // SAFETY: rows have 8 numbers; only draws that are ready are read.
            unsafe {
                let distributions: [&Transitions; K] =
                    std::array::from_fn(|k| self.distribution(g * K + k));
                let mut theta = [[I::splat(0.0); R]; K];
                for k in 0..K {
                    theta[k] = I::load_all(rows[k].as_ptr());
                }
                let step = I::splat(step);
                let mut left = steps as usize;
                while left > 0 {
                    let mut now = left;
                    for k in 0..K {
                        now = now.min(streams[k].ready().len());
                    }
                    let draws: [*const u64; K] =
                        std::array::from_fn(|k| streams[k].ready().as_ptr());
                    for i in 0..now {
                        for k in 0..K {
                            let atom = distributions[k].pairs.pick(*draws[k].add(i));
                            let feature = I::load_all::<R>(self.phi.as_ptr().add(atom.state() * 8));
                            let next = I::load_all::<R>(self.phi.as_ptr().add(atom.next() * 8));
                            let mut product = feature;
                            for r in 0..R {
                                product[r] = I::mul(I::sub(feature[r], next[r]), theta[k][r]);
                            }
                            let delta = I::mul(step, I::splat(fold_registers::<I, R>(product)));
                            for r in 0..R {
                                theta[k][r] = I::sub(theta[k][r], I::mul(delta, feature[r]));
                            }
                        }
                    }
                    streams.iter_mut().for_each(|stream| stream.skip(now));
                    left -= now;
                }
                for k in 0..K {
                    for r in 0..R {
                        I::store(rows[k].as_mut_ptr().add(r * I::LANES), theta[k][r]);
                    }
                }
            }
        }
    }
}
