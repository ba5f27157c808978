//! The padded rows of clients in lockstep, and how a step computes with them: in registers or strip by strip.

use crate::kernel::cohort::Lanes;
use crate::kernel::fold::WIDTH;
use crate::kernel::simd::{Simd, fold_registers, prefetch, prefetch_all};
use crate::kernel::strips::{self, over_strips};

/// The most clients in lockstep.
pub(super) const MOST: usize = 12;

/// Numbers of a cache line.
const LINE: usize = 8;

/// Logistic regression whose field is linearised at θ* for each record by itself, so that the error of a record is
/// e = −(s + s (1 − s) xᵀ(θ* − θ)).
pub struct Tangent<'a> {
    /// θ*, d numbers.
    pub star: &'a [f64],
    /// Returns s = σ(m − xᵀθ*) of each record of a set, given the number of the set.
    pub weights: &'a dyn Fn(usize) -> &'a [f64],
}

/// Copies a row of `d` numbers; a short one by instructions of its own instead of a call of a function.
///
/// # Safety
/// There are `d` numbers at both places, which do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_row(from: *const f64, to: *mut f64, d: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match d {
            2 => from.copy_to_nonoverlapping(to, 2),
            3 => from.copy_to_nonoverlapping(to, 3),
            4 => from.copy_to_nonoverlapping(to, 4),
            _ => from.copy_to_nonoverlapping(to, d),
        }
    }
}

/// The padded rows of the clients in lockstep.
pub(super) struct StepRows {
    /// θ, one row for each client.
    pub(super) theta: *mut f64,
    /// ξ, one row for each client.
    pub(super) xi: *mut f64,
    /// θ*, one row for all clients; it means nothing without a tangent.
    star: *const f64,
    /// θ* − θ, one row for each client; it means nothing without a tangent.
    pub(super) apart: *mut f64,
}

impl StepRows {
    /// Copies θ and ξ of these clients, and with a tangent θ*, to `room`. The rows of θ* − θ are not written yet:
    /// [`Self::update_apart`] does.
    ///
    /// # Safety
    /// `room` has 3·len + 1 rows of `stride` numbers, where len is the number of clients in `lanes`; in those of ξ and
    /// θ* the padding is zero. The clients' θ and ξ have d numbers.
    #[inline(always)]
    pub(super) unsafe fn new(
        room: &mut [f64],
        d: usize,
        stride: usize,
        lanes: &Lanes<'_, MOST>,
        tangent: Option<&Tangent<'_>>,
    ) -> Self {
        let (star, rows) = room.split_at_mut(stride);
        let third = rows.len() / 3;
        let (theta, rows) = rows.split_at_mut(third);
        let (xi, apart) = rows.split_at_mut(third);
        if let Some(tangent) = tangent {
            star[..d].copy_from_slice(tangent.star);
        }
        let theta = theta.as_mut_ptr();
        let xi = xi.as_mut_ptr();
        for k in 0..lanes.len {
            // SAFETY: θ and ξ hold d numbers, and a row has room for them.
            unsafe {
                copy_row(lanes.start[k], theta.add(k * stride), d);
                copy_row(lanes.correction[k], xi.add(k * stride), d);
                // If the previous group diverged, it may have left a NaN in the padding.
                theta.add(k * stride + d).write_bytes(0, stride - d);
            }
        }
        Self { theta, xi, star: star.as_ptr(), apart: apart.as_mut_ptr() }
    }

    /// Writes θ* − θ of the first `len` clients, whose θ has changed in a step. Without a tangent `len` is 0.
    ///
    /// # Safety
    /// `I` is present; there are rows of `stride` numbers for `len` clients.
    #[inline(always)]
    pub(super) unsafe fn update_apart<I: Simd>(&self, len: usize, stride: usize) {
        for k in 0..len {
            for at in (0..stride).step_by(I::LANES) {
                // SAFETY: passed on to the caller.
                unsafe {
                    let theta = I::load(self.theta.add(k * stride + at));
                    let apart = I::sub(I::load(self.star.add(at)), theta);
                    I::store(self.apart.add(k * stride + at), apart);
                }
            }
        }
    }
}

/// How a step computes with padded rows: [`InRegisters`] or [`InStrips`].
pub(super) trait RowForm {
    /// Prefetches those parts of the next step's record that [`RowForm::update`] does not prefetch.
    fn prefetch_row(next: *const f64, stride: usize);

    /// xᵀy of two rows.
    ///
    /// # Safety
    /// `I` is present; the rows have `stride` numbers and this form.
    unsafe fn dot<I: Simd>(x: *const f64, y: *const f64, stride: usize) -> f64;

    /// θ ← θ − step ((λθ + e x) + ξ).
    ///
    /// # Safety
    /// As for `dot`.
    unsafe fn update<I: Simd>(update: RowUpdate<I::V>, stride: usize);
}

/// What a step does to the padded row of a client's θ.
pub(super) struct RowUpdate<V> {
    /// The row of θ, which is changed.
    pub(super) theta: *mut f64,
    /// The row of ξ.
    pub(super) xi: *const f64,
    /// x, the record of this step.
    pub(super) record: *const f64,
    /// The record of the next step, which is read from memory meanwhile.
    pub(super) next: *const f64,
    /// λ in every lane.
    pub(super) l2: V,
    /// The step size in every lane.
    pub(super) step: V,
    /// e, the error of the record, in every lane.
    pub(super) error: V,
}

/// Short rows, which R registers hold.
pub(super) struct InRegisters<const R: usize>;

impl<const R: usize> RowForm for InRegisters<R> {
    #[inline(always)]
    fn prefetch_row(next: *const f64, stride: usize) {
        prefetch_all(next, 8 * stride);
    }

    #[inline(always)]
    unsafe fn dot<I: Simd>(x: *const f64, y: *const f64, _stride: usize) -> f64 {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut v = I::load_all::<R>(x);
            let y = I::load_all::<R>(y);
            for r in 0..R {
                v[r] = I::mul(v[r], y[r]);
            }
            fold_registers::<I, R>(v)
        }
    }

    #[inline(always)]
    unsafe fn update<I: Simd>(update: RowUpdate<I::V>, _stride: usize) {
        let RowUpdate { theta, xi, record, l2, step, error, .. } = update;
        // SAFETY: passed on to the caller.
        unsafe {
            let mut values = I::load_all::<R>(theta);
            let row = I::load_all::<R>(record);
            let xi = I::load_all::<R>(xi);
            for (r, values) in values.iter_mut().enumerate() {
                let field = I::add(I::mul(l2, *values), I::mul(error, row[r]));
                *values = I::sub(*values, I::mul(step, I::add(field, xi[r])));
            }
            for (r, values) in values.into_iter().enumerate() {
                I::store(theta.add(r * I::LANES), values);
            }
        }
    }
}

/// Long rows, which are passed over in strips of W registers.
pub(super) struct InStrips<const W: usize>;

impl<const W: usize> RowForm for InStrips<W> {
    /// The update prefetches the next row strip by strip, so that memory is read while it
    /// computes.
    #[inline(always)]
    fn prefetch_row(_next: *const f64, _stride: usize) {}

    #[inline(always)]
    unsafe fn dot<I: Simd>(x: *const f64, y: *const f64, stride: usize) -> f64 {
        // SAFETY: passed on to the caller.
        unsafe { strips::dot::<I, W>(x, y, stride) }
    }

    #[inline(always)]
    unsafe fn update<I: Simd>(update: RowUpdate<I::V>, stride: usize) {
        let RowUpdate { theta, xi, record, next, l2, step, error } = update;
        // SAFETY: passed on to the caller.
        unsafe {
            over_strips!(I, W, stride, |at, _r| {
                if at % LINE == 0 {
                    prefetch(next.wrapping_add(at));
                }
                let values = I::load(theta.add(at));
                let field = I::add(I::mul(l2, values), I::mul(error, I::load(record.add(at))));
                let change = I::mul(step, I::add(field, I::load(xi.add(at))));
                I::store(theta.add(at), I::sub(values, change));
            });
        }
    }
}
