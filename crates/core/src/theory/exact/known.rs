//! A cache of local steps. A search shares it between settings of one step size: the powers of one local step serve
//! all numbers of local steps, and all numbers of clients.
//!
//! A local step is what [`super::local`] says: C_k maps E (e, 1)(e', 1)ᵀ to the covariance of the noise of a client's
//! oracle at two errors e and e' with the same draw, THEORY (1.2), and is the same for all step sizes.

use super::coin::GeometricSteps;
use super::error::MomentsError;
use super::local::{Drive, Steps, constant_noise, oracle_noise};
use super::pass::{calls_of_pass, has_passes, pass_of};
use crate::linalg::Matrix;
use crate::problem::Facts;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most local steps that are kept: where step sizes fall, each round has its own.
const MOST_KEPT: usize = 4096;

/// What is followed of the noise of local steps.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FollowedNoise {
    /// Its covariance as a linear function of second moments, THEORY (2.6).
    #[default]
    OfState,
    /// Its covariance, which is the same at every θ.
    Constant,
    /// Nothing: means alone are followed.
    Nothing,
}

/// A cache of the local steps that were computed so far, for one problem: distributions of clients name its entries,
/// and nothing names the problem. Clones share what they find. The default is an empty cache with noise that keeps no
/// powers.
#[derive(Clone, Default)]
pub struct KnownSteps {
    /// Whether powers of a local step are kept, so that other numbers of the same steps are products of them.
    shared: bool,
    /// What is followed of their noise.
    noise: FollowedNoise,
    /// Fixed numbers of local steps, by the local step and its number in each run.
    made: Kept<(StepKey, [u64; 2]), Steps>,
    /// Local steps up to a coin, by the local step and the bits of the coin's probability.
    coins: Kept<(StepKey, u64), GeometricSteps>,
    /// 1, 2, 4, … steps of each kind of local step.
    powers: Kept<StepKey, Mutex<Vec<Arc<Steps>>>>,
    /// The matrix of C_k, THEORY (1.2), by distribution.
    oracles: Kept<usize, Matrix>,
}

/// What identifies a local step of two runs, or of one run that is given twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StepKey {
    /// The distribution of the client's oracle.
    distribution: usize,
    runs: [RunKey; 2],
    /// Whether the two runs are one.
    same: bool,
}

/// The bits of what a local step depends on in one run, whatever the number of steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RunKey {
    step: u64,
    batch: u64,
    proximal: u64,
    /// Whether the client has a drift of its own ([`Drive::pulled`]).
    pulled: bool,
}

/// Values by keys, which threads share.
type Kept<K, V> = Arc<Mutex<HashMap<K, Arc<V>>>>;

/// A local step of a client in two runs on the same draws, or in one run, given twice.
#[derive(Clone, Copy)]
pub(super) struct OneStep<'a> {
    /// The problem.
    pub facts: &'a dyn Facts,
    /// The client.
    pub client: usize,
    /// What drives the client in each run. The numbers of steps in it do not matter for a single step.
    pub drives: [Drive; 2],
    /// Whether the two runs are one.
    pub same: bool,
}

impl OneStep<'_> {
    /// What identifies this local step in the cache, whatever the number of steps.
    fn key(&self) -> StepKey {
        let runs = self.drives.map(|drive| {
            let [step, _, batch, proximal] = drive.update.bits();
            RunKey { step, batch, proximal, pulled: drive.pulled }
        });
        StepKey { distribution: self.facts.distribution(self.client), runs, same: self.same }
    }
}

/// Locks a mutex. A thread that panicked while it held the lock left nothing half-written, since values are
/// inserted whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of a key, which `make` computes and the cache keeps if it has none; a cache of [`MOST_KEPT`] values is
/// emptied before. Threads that ask at once may all compute the value, to the same bits.
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
    /// An empty cache for means alone: its local steps have no noise.
    pub fn of_means() -> Self {
        Self { noise: FollowedNoise::Nothing, ..Self::default() }
    }

    /// An empty cache for a problem whose oracles' noise is the same at every θ: the covariance of local steps is then
    /// a matrix of the order d. With other oracles its local steps are errors.
    pub fn of_constant_noise() -> Self {
        Self { noise: FollowedNoise::Constant, ..Self::default() }
    }

    /// An empty cache that keeps the powers of local steps, for the settings of one step size in a search. The noise of
    /// oracles, which is the same for all step sizes, is shared with this cache.
    pub fn afresh(&self) -> Self {
        let oracles = self.oracles.clone();
        Self { shared: true, noise: self.noise, oracles, ..Self::default() }
    }

    /// One local step, THEORY (2.2), (2.3), or one pass over the client's records where it draws them in passes,
    /// THEORY (2.12).
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    fn one_step(
        &self,
        OneStep { facts, client, drives, same }: OneStep<'_>,
    ) -> Result<Steps, MomentsError> {
        if has_passes(facts) {
            return pass_of(facts, client, drives, same, self.noise == FollowedNoise::Nothing);
        }
        let noise_of = match self.noise {
            FollowedNoise::Nothing => return Ok(Steps::new(facts, client, None, drives, same)),
            FollowedNoise::Constant => constant_noise,
            FollowedNoise::OfState => oracle_noise,
        };
        let oracle = kept(&self.oracles, facts.distribution(client), || {
            noise_of(facts, client).ok_or(MomentsError::OpenField)
        })?;
        Ok(Steps::new(facts, client, Some(&oracle), drives, same))
    }

    /// The local steps of both runs, as many as `one.drives` states for each, and at least 1. If one run takes more
    /// steps, the draws of its extra steps are its own: THEORY (2.7). Where clients draw records in passes, the steps
    /// are whole passes ([`check_passes`](super::pass::check_passes)).
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    pub(super) fn steps(&self, one: OneStep<'_>) -> Result<Arc<Steps>, MomentsError> {
        let calls = calls_of_pass(one.facts, one.client);
        let [a, b] = one.drives.map(|drive| drive.update.steps / calls);
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

    /// `count` steps of both runs, THEORY (2.5), (2.6): the product of the kept powers 2^i of the local step, if powers
    /// are shared, and otherwise by repeated doubling. One step if `count` is 0.
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

    /// 1, 2, 4, …, 2^`level` steps, of which the powers that are not kept yet are computed.
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

    /// The local steps up to a coin of this probability, THEORY (2.8), (2.9), where `one` has one run twice.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
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
