//! Whether a program's moments come to rest, and how fast they get there.
//!
//! Second moments are a tuple of covariance matrices, which a cycle maps by the T of THEORY (5.2) to another
//! tuple. T preserves positive semidefinite matrices. Second moments converge from every start if and only if
//! ρ(T) < 1, which [`SymmetricBlocks::contracts`] proves by THEORY (5.5). Means converge if ρ(M) < 1
//! ([`contracts`]), which is implied by THEORY (5.3): M Σ Mᵀ ⪯ T(Σ), so that ρ(M)² ≤ ρ(T).
//!
//! Both are radii over the free coordinates of the state, from which its other coordinates follow. A combination that
//! is kept for ever is one more eigenvalue of 1 unless it is a constant of the rounds, that is, unless its value is the
//! same whatever the start, and neither noise nor a constant is added to it, THEORY (5.4).
//!
//! ```text
//! THEORY (5.1)   m ← M m + c  over a cycle, for the means m of the coordinates
//! THEORY (5.2)   (Σ, D_1, D_2, …) ← T(Σ, D_1, D_2, …) + R(m)  for their covariance and the covariances of deviations
//! THEORY (5.4)   a combination ℓ is kept if ℓ M = ℓ, and a constant only if ℓ c = 0
//! THEORY (5.5)   ρ(T) < 1 if and only if there is X ⪰ 0 with X − T(X) ≻ 0
//! ```

use super::coin::InfiniteMoments;
use super::error::{KeptSum, MomentsError};
use super::setup::ProgramState;
use super::stationary::{Cycle, column, mean_map, means_after};
use super::values::SpectralRadii;
use crate::linalg::{Matrix, SymmetricBlocks, contracts, fixed_point, growth, radius};
use std::cell::OnceCell;

/// The largest order of a map T of second moments whose spectral radius is computed by squaring its matrix.
const SQUARED: usize = 160;
/// A number that is smaller than this, relative to what it is made of, is 0.
const ROUNDING: f64 = 1e-9;
/// The largest number below 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// T of THEORY (5.2): the map of second moments over a cycle, without what noise at the mean adds.
pub(super) struct SquareMap<'c, 'a> {
    cycle: &'c Cycle<'a>,
    /// A mean of 0, also of the number 1, so that the mean adds no noise.
    zeros: Vec<f64>,
    /// The matrix of T; empty until it is asked for.
    whole: OnceCell<Matrix>,
    /// The covariances of the free coordinates of the state, and of the deviations of each type.
    pub blocks: SymmetricBlocks,
}

impl SquareMap<'_, '_> {
    /// T of the second moments of free coordinates, which are given and returned as one vector of the entries of
    /// [`Self::blocks`]: of each symmetric matrix the entries on and above the diagonal, row by row.
    pub fn apply(&self, numbers: &[f64]) -> Vec<f64> {
        self.columns(&column(numbers)).into_entries()
    }

    /// T of each column of `numbers`, each of which is a vector as [`Self::apply`] takes.
    fn columns(&self, numbers: &Matrix) -> Matrix {
        if numbers.rows() == 0 {
            return numbers.clone();
        }
        self.cycle.numbers(&self.cycle.after(&self.cycle.state(numbers, &self.zeros)))
    }

    /// The matrix of T, which is computed once.
    pub fn whole(&self) -> Matrix {
        self.whole.get_or_init(|| self.columns(&Matrix::identity(self.blocks.length()))).clone()
    }

    /// Whether ρ(T) < 1 is proven, THEORY (5.5).
    fn contracts(&self) -> bool {
        self.blocks.contracts(|x| self.apply(x), || self.whole())
    }

    /// An estimate of ρ(T), for display; `None` if the growth of second moments does not settle.
    fn radius(&self) -> Option<f64> {
        if self.blocks.length() <= SQUARED {
            // Rates that are close to each other take many rounds to part.
            return Some(radius(self.whole()));
        }
        growth(self.blocks.identity(), |x| self.apply(x), |x| self.trace(x))
    }

    /// The sum of the traces of the covariances of all coordinates, from the covariances of the free ones.
    fn trace(&self, numbers: &[f64]) -> f64 {
        let state = self.cycle.state(&column(numbers), &self.zeros);
        state.covariance.trace() + state.own.iter().map(Matrix::trace).sum::<f64>()
    }
}

impl<'a> Cycle<'a> {
    /// T of THEORY (5.2), restricted to free coordinates: what all rounds of the cycle together make of second
    /// moments.
    ///
    /// # Errors
    /// If second moments are infinite after a round, whose number of local steps is random.
    pub(super) fn square_map(&self) -> Result<SquareMap<'_, 'a>, MomentsError> {
        if self.infinite.is_some() {
            return Err(MomentsError::InfiniteSquares);
        }
        let zeros = vec![0.0; self.begin.mean.len()];
        Ok(SquareMap { cycle: self, zeros, whole: OnceCell::new(), blocks: self.free_blocks() })
    }

    /// The symmetric matrices on which T acts: the covariances of the free coordinates of the state, and of the
    /// deviations of each type.
    fn free_blocks(&self) -> SymmetricBlocks {
        let lifts = std::iter::once(&self.lift).chain(&self.own_lifts);
        SymmetricBlocks::new(lifts.map(|lift| lift.free.len()))
    }

    /// Whether means converge, to a limit that does not depend on the start: ρ(M) < 1 of THEORY (5.1) on the free
    /// coordinates, and all kept combinations that are read are constants, THEORY (5.4).
    ///
    /// # Errors
    /// Why they do not, or [`MomentsError::Unstable`] if it is not proven that they do.
    pub fn check_means(&self) -> Result<(), MomentsError> {
        if self.infinite == Some(InfiniteMoments::All) {
            Err(MomentsError::InfiniteMeans)
        } else if !contracts(&self.free_mean_map()) {
            Err(MomentsError::Unstable)
        } else if self.depends_on_start() {
            Err(MomentsError::DependsOnStart)
        } else if self.constant_is_kept() {
            Err(MomentsError::UnstableSum(KeptSum::Constant))
        } else {
            Ok(())
        }
    }

    /// Whether second moments converge: ρ(T) < 1, THEORY (5.5), and no noise is added to what is kept. `map` is the
    /// [`Self::square_map`] of this cycle. Means must converge, which [`Self::check_means`] finds out.
    ///
    /// # Errors
    /// Why they do not, or [`MomentsError::Unstable`] if it is not proven that they do.
    pub(super) fn check_squares(&self, map: &SquareMap<'_, '_>) -> Result<(), MomentsError> {
        if !map.contracts() {
            Err(MomentsError::Unstable)
        } else if self.noise_is_kept() {
            Err(MomentsError::UnstableSum(KeptSum::Noise))
        } else {
            Ok(())
        }
    }

    /// What a cycle adds to the combinations that its linear map of means keeps, so that they are no constants: noise,
    /// or a constant, if something reads the combination. `None` if neither is added.
    pub(super) fn what_adds_up(&self) -> Option<KeptSum> {
        if self.noise_is_kept() {
            Some(KeptSum::Noise)
        } else if self.constant_is_kept() {
            Some(KeptSum::Constant)
        } else {
            None
        }
    }

    /// The spectral radii ρ(M) and ρ(T) over one round, THEORY (5.1), (5.2): geometric means over the cycle.
    /// `None` if the growth of second moments does not settle. A radius below 1 is reported if and only if
    /// that is proven.
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

    /// The spectral radius of one round for display: for a cycle of n rounds the n-th root of the cycle's `radius`. It
    /// is below 1 if and only if `is_below`, which says whether that is proven. Where `radius`, with its rounding
    /// errors, says otherwise, the result is 1, or the largest number below 1.
    fn of_one_round(&self, radius: f64, is_below: bool) -> f64 {
        let one = libm::pow(radius, 1.0 / self.rounds.len() as f64);
        if is_below { one.min(BELOW_ONE) } else { one.max(1.0) }
    }

    /// M of THEORY (5.1), restricted to the free coordinates: how their means change over a cycle, if what is kept is
    /// 0.
    fn free_mean_map(&self) -> Matrix {
        let whole = mean_map(&self.rounds, self.begin.mean.len() - 1);
        let free = &self.lift.free;
        Matrix::from_fn(free.len(), free.len(), |i, j| {
            (0..whole.cols()).fold(0.0, |sum, k| sum + whole[(free[i], k)] * self.lift.map[(k, j)])
        })
    }

    /// The largest [gain](super::stages::PreparedRound::gain) of a round, and at least 1: the factor by which rounding
    /// errors in the state may be larger.
    fn gain(&self) -> f64 {
        let rounds = self.lead.iter().chain(&self.rounds);
        rounds.map(|round| round.gain).fold(1.0, f64::max)
    }

    /// Whether estimates or noises depend on θ_0 for ever, because a kept combination that they read depends
    /// on it, THEORY (5.4).
    fn depends_on_start(&self) -> bool {
        let kept = &self.lift.kept;
        if kept.rows.is_empty() {
            return false;
        }
        let begin = self.exact.initial(self.exact.setup.facts.optimum(), 0.0).mean;
        let gain = self.gain();
        (1..begin.len()).any(|i| {
            let mut unit = vec![0.0; begin.len()];
            unit[i] = 1.0;
            let mean = means_after(&self.lead, unit);
            // By how much the kept combinations change if θ_0 changes by 1 in this coordinate, each at its pivot.
            let mut all = vec![0.0; mean.len()];
            for (row, at) in kept.each() {
                let parts = row.iter().zip(&mean[1..]).map(|(x, y)| x * y);
                let size: f64 = parts.clone().map(f64::abs).sum();
                let sum: f64 = parts.sum();
                // The rounding error of numbers of size 1, by which θ_0 changes, times coefficients that may cancel.
                let rounding = ROUNDING * gain * row.iter().map(|x| x.abs()).sum::<f64>();
                let is_rounding = sum.abs() <= ROUNDING * size || sum.abs() <= rounding;
                all[at + 1] = if is_rounding { 0.0 } else { sum };
            }
            all.iter().any(|x| *x != 0.0) && self.reads_at_rest(&all)
        })
    }

    /// Whether ℓ c ≠ 0 in THEORY (5.4) for a kept combination ℓ, as for a counter, and estimates or noises
    /// read it.
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

    /// Whether estimates or noises depend on the kept combinations once the free coordinates have come to rest, THEORY
    /// (5.4). `kept` has the values of the combinations at their pivots, and 0 elsewhere and for the number 1; the free
    /// coordinates are at the fixed point to which these values lead.
    fn reads_at_rest(&self, kept: &[f64]) -> bool {
        let constant = self.free_after(kept.to_vec());
        let free_map = |x: &[f64]| self.free_after(self.lift.homogeneous(x));
        let found = fixed_point(&constant, free_map, || Matrix::of_map(constant.len(), free_map));
        // Without a fixed point nothing excludes that they do.
        let Some(found) = found else { return true };
        let mut mean = self.lift.homogeneous(&found);
        mean.iter_mut().zip(kept).for_each(|(x, kept)| *x += kept);
        self.rounds.iter().any(|round| {
            let known = round.known_mean(&mean);
            mean = round.next_mean(&known);
            largest_size(&round.read(&known)) > ROUNDING * largest_size(&known)
        })
    }

    /// Whether a cycle adds noise to a combination that it keeps, THEORY (5.4), where the noise adds up for ever; false
    /// if second moments are infinite anyway.
    pub(super) fn noise_is_kept(&self) -> bool {
        let mut lifts = std::iter::once(&self.lift).chain(&self.own_lifts);
        if self.infinite.is_some() || lifts.all(|lift| lift.kept.rows.is_empty()) {
            return false;
        }
        // The noise that a cycle adds to a state without variance, and the noise that the variance of a state causes.
        // Each is compared with rounding errors of its own size.
        let numbers = self.free_blocks();
        let zeros = vec![0.0; self.begin.mean.len()];
        let gain = self.gain();
        self.keeps_noise_from(&vec![0.0; numbers.length()], &self.begin.mean, gain)
            || self.keeps_noise_from(&numbers.identity(), &zeros, gain)
    }

    /// Whether a cycle adds noise to a kept combination, from a state with this mean and these covariances of free
    /// coordinates. `gain` multiplies the rounding errors that count as 0.
    fn keeps_noise_from(&self, numbers: &[f64], mean: &[f64], gain: f64) -> bool {
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
    }
}

/// The largest absolute value of these numbers; 0 if there are none.
fn largest_size(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0_f64, |most, x| most.max(x.abs()))
}
