//! Local steps that were computed once and are kept. A search shares them: the powers of one local step serve
//! all numbers of local steps, and all numbers of clients.

use super::coin::GeometricSteps;
use super::error::MomentsError;
use super::local::{Drive, Steps, oracle_noise};
use crate::linalg::Matrix;
use crate::problem::Facts;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most local steps that are kept: where step sizes fall, each round has its own.
const MOST_KEPT: usize = 4096;

/// Local steps that were computed so far, by what identifies them.
#[derive(Clone, Default)]
pub struct KnownSteps {
    /// Whether powers of a local step are kept for other numbers of steps.
    shared: bool,
    /// Whether means alone are followed, which need no noise.
    of_means: bool,
    /// Fixed numbers of local steps, one number for each run.
    made: Kept<(StepKey, [u64; 2]), Steps>,
    /// Local steps up to a coin, by its probability.
    coins: Kept<(StepKey, u64), GeometricSteps>,
    /// 1, 2, 4, … steps of each kind of local step.
    powers: Kept<StepKey, Mutex<Vec<Arc<Steps>>>>,
    /// The matrix of C_k, THEORY (1.2), by distribution.
    oracles: Kept<usize, Matrix>,
}

/// What identifies a local step: the distribution of the oracle; step size, batch and μ of each run, and whether
/// it has a drift; and whether the two runs are one.
type StepKey = (usize, [([u64; 3], bool); 2], bool);

/// Values by keys, which threads share.
type Kept<K, V> = Arc<Mutex<HashMap<K, Arc<V>>>>;

/// A local step of a client in two runs on the same draws, or in one run, given twice.
#[derive(Clone, Copy)]
pub(super) struct OneStep<'a> {
    pub facts: &'a dyn Facts,
    pub client: usize,
    pub drives: [Drive; 2],
    pub same: bool,
}

impl OneStep<'_> {
    /// What identifies this local step, whatever the number of steps.
    fn key(&self) -> StepKey {
        let runs = self.drives.map(|drive| {
            let [step, _, batch, proximal] = drive.update.bits();
            ([step, batch, proximal], drive.pulled)
        });
        (self.facts.distribution(self.client), runs, self.same)
    }
}

/// Locks a mutex. A thread that panicked while it held the lock left nothing half-written, since values are
/// inserted whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of a key, which `make` computes if none is kept. Threads that ask at once may all compute the value,
/// to the same bits.
fn kept<K: Eq + Hash, V>(
    all: &Kept<K, V>,
    key: K,
    make: impl FnOnce() -> Result<V, MomentsError>,
) -> Result<Arc<V>, MomentsError> {
    if let Some(known) = lock(all).get(&key) {
        return Ok(known.clone());
    }
    // The lock is not held while the value is computed, which may take long.
    let made = Arc::new(make()?);
    let mut known = lock(all);
    if known.len() >= MOST_KEPT {
        known.clear();
    }
    Ok(known.entry(key).or_insert(made).clone())
}

impl KnownSteps {
    /// Nothing known yet; local steps will have no noise, since means alone are followed.
    pub fn of_means() -> Self {
        Self { of_means: true, ..Self::default() }
    }

    /// Nothing known yet but the noise of oracles; powers of local steps will be shared.
    pub fn afresh(&self) -> Self {
        let oracles = self.oracles.clone();
        Self { shared: true, of_means: self.of_means, oracles, ..Self::default() }
    }

    /// One local step, THEORY (2.2), (2.3).
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    fn one_step(
        &self,
        OneStep { facts, client, drives, same }: OneStep<'_>,
    ) -> Result<Steps, MomentsError> {
        if self.of_means {
            return Ok(Steps::new(facts, client, None, drives, same));
        }
        let oracle = kept(&self.oracles, facts.distribution(client), || {
            oracle_noise(facts, client).ok_or(MomentsError::OpenField)
        })?;
        Ok(Steps::new(facts, client, Some(&oracle), drives, same))
    }

    /// The local steps of both runs, whose numbers `one.drives` states. If one run takes more steps, the
    /// draws of its extra steps are its own: THEORY (2.7).
    pub(super) fn steps(&self, one: OneStep<'_>) -> Result<Arc<Steps>, MomentsError> {
        let [a, b] = one.drives.map(|drive| drive.update.steps);
        kept(&self.made, (one.key(), [a, b]), || {
            let both = self.times(one, a.min(b))?;
            if a == b {
                return Ok(both);
            }
            let rest = self.times(one, a.max(b) - a.min(b))?;
            let longer_run = if a < b { 1 } else { 0 };
            Ok(both.alone(longer_run, &rest))
        })
    }

    /// `count` steps of both runs, by THEORY (2.5), (2.6) from powers of two, of which shared ones are kept.
    fn times(&self, one: OneStep<'_>, count: u64) -> Result<Steps, MomentsError> {
        if !self.shared {
            return Ok(self.one_step(one)?.times(count));
        }
        let powers = self.powers(one, count.checked_ilog2().unwrap_or(0))?;
        let mut all: Option<Steps> = None;
        for (bit, power) in powers.iter().enumerate() {
            if count >> bit & 1 == 1 {
                all = Some(match all {
                    None => power.as_ref().clone(),
                    Some(steps) => steps.then(power),
                });
            }
        }
        Ok(all.unwrap_or_else(|| powers[0].as_ref().clone()))
    }

    /// 1, 2, 4, … up to 2^`level` steps.
    fn powers(&self, one: OneStep<'_>, level: u32) -> Result<Vec<Arc<Steps>>, MomentsError> {
        let powers =
            kept(&self.powers, one.key(), || Ok(Mutex::new(vec![Arc::new(self.one_step(one)?)])))?;
        // Nobody waits for others: two threads may compute the same, to the same bits.
        let mut all = lock(&powers).clone();
        while all.len() <= level as usize {
            let last = all[all.len() - 1].clone();
            all.push(Arc::new(last.then(&last)));
        }
        let mut known = lock(&powers);
        if known.len() < all.len() {
            known.clone_from(&all);
        }
        all.truncate(level as usize + 1);
        Ok(all)
    }

    /// The local steps up to a coin of this probability, THEORY (2.8), (2.9); `one` has the same run twice.
    pub(super) fn until_coin(
        &self,
        one: OneStep<'_>,
        probability: f64,
    ) -> Result<Arc<GeometricSteps>, MomentsError> {
        let shared = if self.shared { self.clone() } else { self.afresh() };
        kept(&self.coins, (one.key(), probability.to_bits()), || {
            let powers = shared.powers(one, GeometricSteps::doublings(probability))?;
            Ok(GeometricSteps::new(&powers, probability))
        })
    }
}
