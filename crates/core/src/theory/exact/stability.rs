//! Whether a program's moments come to rest, and how fast they get there.
//!
//! Second moments are a tuple of covariance matrices, of which a cycle makes others by a linear map that
//! preserves positive semidefinite ones. They converge from every start if and only if the spectral
//! radius of this map is below 1, which [`SymmetricBlocks::contracts`] proves. Means converge if the
//! radius of their own map is below 1 ([`contracts`]), which is implied: if M is the map of the mean,
//! M S Mᵀ ⪯ T(S), so that ρ(M)² ≤ ρ(T).
//!
//! Both are radii of what is free in the state. What is kept for ever is 1 more eigenvalue unless it is a
//! constant of the rounds, that is, unless its value is the same whatever the start, and neither noise
//! nor a constant is added to it.

use super::local::InfiniteMoments;
use super::setup::ProgramState;
use super::stationary::{Cycle, column, mean_map, means_after};
use super::values::SpectralRadii;
use crate::linalg::{Matrix, SymmetricBlocks, contracts, fixed_point, growth, radius};
use std::cell::OnceCell;

/// The largest order of a map of second moments whose matrix is squared.
const SQUARED: usize = 160;
/// A number that is smaller than this, relative to what it is made of, is 0.
const ROUNDING: f64 = 1e-9;
/// The largest number below 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

const INFINITE_MEANS: &str =
    "means are infinite after the random number of local steps between communications";
const INFINITE_SQUARES: &str =
    "second moments are infinite after the random number of local steps between communications";
const UNSTABLE: &str = "its moments do not come to rest";
const OF_START: &str = "where it comes to rest depends on its start";
const NOISE_ADDS_UP: &str = "noise adds up in what it keeps";
const CONSTANT_ADDS_UP: &str = "a constant adds up in what it keeps";

/// The map of second moments over a cycle, without constants.
pub(super) struct SquareMap<'c, 'a> {
    cycle: &'c Cycle<'a>,
    zeros: Vec<f64>,
    whole: OnceCell<Matrix>,
    /// The covariances of the free coordinates of the state, and of the deviations of each type.
    pub blocks: SymmetricBlocks,
}

impl SquareMap<'_, '_> {
    /// The numbers of second moments after the cycle.
    pub fn apply(&self, numbers: &[f64]) -> Vec<f64> {
        self.columns(&column(numbers)).into_entries()
    }

    /// The same for each column.
    fn columns(&self, numbers: &Matrix) -> Matrix {
        if numbers.rows() == 0 {
            return numbers.clone();
        }
        self.cycle.numbers(&self.cycle.after(&self.cycle.state(numbers, &self.zeros)))
    }

    /// The matrix of the map, which is computed once.
    pub fn whole(&self) -> Matrix {
        self.whole.get_or_init(|| self.columns(&Matrix::identity(self.blocks.length()))).clone()
    }

    fn contracts(&self) -> bool {
        self.blocks.contracts(|x| self.apply(x), || self.whole())
    }

    /// The spectral radius; `None` if the growth of second moments does not settle.
    fn radius(&self) -> Option<f64> {
        if self.blocks.length() <= SQUARED {
            // Rates that are close to each other take many rounds to part.
            return Some(radius(self.whole()));
        }
        let trace = |x: &[f64]| {
            let state = self.cycle.state(&column(x), &self.zeros);
            state.covariance.trace() + state.own.iter().map(Matrix::trace).sum::<f64>()
        };
        growth(self.blocks.identity(), |x| self.apply(x), trace)
    }
}

impl<'a> Cycle<'a> {
    /// The map of second moments.
    ///
    /// # Errors
    /// If they are infinite after a round.
    pub(super) fn square_map(&self) -> Result<SquareMap<'_, 'a>, String> {
        if self.infinite.is_some() {
            return Err(INFINITE_SQUARES.into());
        }
        let zeros = vec![0.0; self.begin.mean.len()];
        Ok(SquareMap { cycle: self, zeros, whole: OnceCell::new(), blocks: self.free_blocks() })
    }

    /// The covariances of the free coordinates of the state, and of the deviations of each type.
    fn free_blocks(&self) -> SymmetricBlocks {
        let lifts = std::iter::once(&self.lift).chain(&self.own_lifts);
        SymmetricBlocks::new(lifts.map(|lift| lift.free.len()))
    }

    /// Whether means converge, to a limit that does not depend on the start.
    ///
    /// # Errors
    /// Why they do not.
    pub fn check_means(&self) -> Result<(), String> {
        if self.infinite == Some(InfiniteMoments::All) {
            Err(INFINITE_MEANS.into())
        } else if !contracts(&self.free_mean_map()) {
            Err(UNSTABLE.into())
        } else if self.depends_on_start() {
            Err(OF_START.into())
        } else if self.constant_is_kept() {
            Err(format!("{UNSTABLE}: {CONSTANT_ADDS_UP}"))
        } else {
            Ok(())
        }
    }

    /// Whether second moments converge.
    ///
    /// # Errors
    /// Why they do not.
    pub(super) fn check_squares(&self, map: &SquareMap<'_, '_>) -> Result<(), String> {
        if !map.contracts() {
            Err(UNSTABLE.into())
        } else if self.noise_is_kept() {
            Err(format!("{UNSTABLE}: {NOISE_ADDS_UP}"))
        } else {
            Ok(())
        }
    }

    /// What adds up in what the linear map of the means keeps, in words; `None` if nothing does, or nothing reads it.
    pub(super) fn what_adds_up(&self) -> Option<&'static str> {
        if self.noise_is_kept() {
            Some(NOISE_ADDS_UP)
        } else if self.constant_is_kept() {
            Some(CONSTANT_ADDS_UP)
        } else {
            None
        }
    }

    /// The spectral radii of a round, the geometric mean over the cycle; `None` if the growth of
    /// second moments does not settle. A radius is below 1 if and only if that is proven.
    pub fn radii(&self) -> Option<SpectralRadii> {
        if self.infinite == Some(InfiniteMoments::All) {
            return Some(SpectralRadii { mean: f64::INFINITY, square: f64::INFINITY });
        }
        let map = self.free_mean_map();
        let has_no_limit = self.depends_on_start() || self.constant_is_kept();
        let mean_is_below = !has_no_limit && contracts(&map);
        let mean = self.of_one_round(radius(map), mean_is_below);
        let Ok(map) = self.square_map() else {
            return Some(SpectralRadii { mean, square: f64::INFINITY });
        };
        let square_is_below = !has_no_limit && !self.noise_is_kept() && map.contracts();
        let square = self.of_one_round(map.radius()?, square_is_below);
        Some(SpectralRadii { mean, square })
    }

    /// The radius of one round from that of the cycle, on the side of 1 on which it is proven to be.
    fn of_one_round(&self, radius: f64, is_below: bool) -> f64 {
        let one = libm::pow(radius, 1.0 / self.rounds.len() as f64);
        if is_below { one.min(BELOW_ONE) } else { one.max(1.0) }
    }

    /// The map of the free coordinates of the mean.
    fn free_mean_map(&self) -> Matrix {
        let whole = mean_map(&self.rounds, self.begin.mean.len() - 1);
        let free = &self.lift.free;
        Matrix::from_fn(free.len(), free.len(), |i, j| {
            (0..whole.cols()).fold(0.0, |sum, k| sum + whole[(free[i], k)] * self.lift.map[(k, j)])
        })
    }

    /// The largest gain of a round.
    fn gain(&self) -> f64 {
        let rounds = self.lead.iter().chain(&self.rounds);
        rounds.map(|round| round.gain).fold(1.0, f64::max)
    }

    /// Whether anything that enters estimates or noise depends on θ_0 for ever, by way of what is kept.
    fn depends_on_start(&self) -> bool {
        let kept = &self.lift.kept;
        if kept.rows.is_empty() {
            return false;
        }
        let begin = self.exact.initial(self.exact.setup.facts.optimum(), 0.0).mean;
        let gain = self.gain();
        (1..begin.len()).any(|i| {
            let mut mean = begin.clone();
            mean.fill(0.0);
            mean[i] = 1.0;
            let mean = means_after(&self.lead, mean);
            // The mean that is kept if θ_0 changes by 1 in this coordinate.
            let mut all = vec![0.0; mean.len()];
            for (row, at) in kept.each() {
                let parts = || row.iter().zip(&mean[1..]).map(|(x, y)| x * y);
                let size: f64 = parts().map(f64::abs).sum();
                let sum: f64 = parts().sum();
                // Of numbers of the size of θ_0, multiplied by coefficients that may cancel.
                let rounding = ROUNDING * gain * row.iter().map(|x| x.abs()).sum::<f64>();
                let is_rounding = sum.abs() <= ROUNDING * size || sum.abs() <= rounding;
                all[at + 1] = if is_rounding { 0.0 } else { sum };
            }
            all.iter().any(|x| *x != 0.0) && self.reads_at_rest(&all)
        })
    }

    /// Whether the rounds add a constant to what the linear map keeps, as a counter does, and estimates or
    /// noise read it.
    fn constant_is_kept(&self) -> bool {
        let kept = &self.lift.kept;
        if kept.rows.is_empty() {
            return false;
        }
        let begin = &self.begin.mean;
        let after = means_after(&self.rounds, begin.clone());
        let gain = self.gain();
        let mut drift = vec![0.0; begin.len()];
        for (row, place) in kept.each() {
            let mut sum = 0.0;
            let mut size = 0.0;
            for (i, x) in row.iter().enumerate() {
                sum += x * (after[i + 1] - begin[i + 1]);
                size += x.abs() * (after[i + 1].abs() + begin[i + 1].abs());
            }
            if sum.abs() > ROUNDING * gain * size {
                drift[place + 1] = sum;
            }
        }
        drift.iter().any(|x| *x != 0.0) && self.reads_at_rest(&drift)
    }

    /// Whether estimates or noise depend on these values of the kept coordinates, where the free ones
    /// have come to rest.
    fn reads_at_rest(&self, kept: &[f64]) -> bool {
        let free = &self.lift.free;
        let after = |mean: &[f64]| {
            let after = means_after(&self.rounds, mean.to_vec());
            free.iter().map(|i| after[i + 1]).collect::<Vec<f64>>()
        };
        let map = |x: &[f64]| after(&self.lift.homogeneous(x));
        let whole = || Matrix::of_map(free.len(), map);
        let Some(found) = fixed_point(&after(kept), map, whole) else { return true };
        let mut mean = self.lift.homogeneous(&found);
        mean.iter_mut().zip(kept).for_each(|(x, kept)| *x += kept);
        let largest = |all: &[f64]| all.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        self.rounds.iter().any(|round| {
            let known = round.known_mean(&mean);
            mean = round.next_mean(&known);
            largest(&round.read(&known)) > ROUNDING * largest(&known)
        })
    }

    /// Whether noise reaches what is kept: where it adds up, nothing comes to rest.
    pub(super) fn noise_is_kept(&self) -> bool {
        let mut lifts = std::iter::once(&self.lift).chain(&self.own_lifts);
        if self.infinite.is_some() || lifts.all(|lift| lift.kept.rows.is_empty()) {
            return false;
        }
        // The noise of a state that is known, and that which a state of any covariance causes. Each is
        // judged by its own size.
        let numbers = self.free_blocks();
        let zeros = vec![0.0; self.begin.mean.len()];
        let gain = self.gain();
        let of = |numbers: &[f64], mean: &[f64]| {
            let mut after = if numbers.is_empty() {
                ProgramState { mean: mean.to_vec(), ..self.empty(1) }
            } else {
                self.state(&column(numbers), mean)
            };
            let mut deviation = 0.0_f64;
            for round in &self.rounds {
                let (next, found) = self.exact.after(round, &after);
                deviation = deviation.max(libm::sqrt(found.covariance.trace().max(0.0)));
                after = next;
            }
            let size = gain * deviation;
            let mut own = self.own_lifts.iter().zip(&after.own);
            self.lift.has_variance_along_kept(&after.covariance, 1, size)
                || own.any(|(lift, own)| lift.has_variance_along_kept(own, 0, size))
        };
        of(&vec![0.0; numbers.length()], &self.begin.mean) || of(&numbers.identity(), &zeros)
    }
}
