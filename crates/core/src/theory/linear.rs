//! Exact means on linear fields (SCAFFLSA (24), Thm 4.1), also for clients with different
//! local updates and with proximal terms.
//!
//! F̄_c is the mean field of client c, Ā_c or H_c its Jacobian at θ*, θ_c* its root, if it has only one, and π_c the
//! client's share. A local update is what a client does in a round: its step size, number of steps, batch and
//! proximal weight μ.

use crate::kernel::{axpy, difference};
use crate::linalg::{Matrix, Singular, solve};
use crate::problem::{Facts, group_clients};
use crate::round_program::LocalUpdate;
use crate::theory::effort::{self, Effort};

/// What a round of clients without control variates does to the mean error:
/// E θ_{t+1} − θ* = Γ̄ (E θ_t − θ*) + ρ̄, for FedLSA with Γ_c = (I − γĀ_c)^H,
/// Γ̄ = Σ π_c Γ_c and ρ̄ = Σ π_c (I − Γ_c)(θ_c* − θ*). A cohort drawn without
/// replacement does not change the map if shares are equal; a server step changes the map but not its
/// fixed point. Batches change no mean. Exact biases and limits are computed from it, and bounds are compared with it.
#[derive(Clone, Debug)]
pub struct RoundMap {
    /// Γ̄, d × d.
    pub gamma: Matrix,
    /// The constant ρ̄ of the map, d numbers.
    pub rho: Vec<f64>,
}

impl RoundMap {
    /// The map of FedLSA with step size γ and H local steps; `None` if means do not close:
    /// the field is not linear, or draws are not independent.
    pub fn new(facts: &dyn Facts, step_size: f64, local_steps: u64) -> Option<Self> {
        Self::with_updates(facts, |_| LocalUpdate::of_steps(step_size, local_steps))
    }

    /// The map in which client c takes the local steps `update(c)`; `None` if the field is not linear,
    /// or draws are not independent.
    pub fn with_updates(facts: &dyn Facts, update: impl Fn(usize) -> LocalUpdate) -> Option<Self> {
        (facts.linear() && facts.independent()).then(|| Self::linearised(facts, update))
    }

    /// The map in which client c takes the local steps `update(c)` on its field linearised at θ*: what noiseless rounds
    /// do close to θ*, and what means do everywhere if the field is linear.
    pub fn linearised(facts: &dyn Facts, update: impl Fn(usize) -> LocalUpdate) -> Self {
        let d = facts.dim();
        let mut gamma = Matrix::zeros(d, d);
        let mut rho = vec![0.0; d];
        let updates: Vec<LocalUpdate> = (0..facts.clients()).map(update).collect();
        // Clients of one distribution with equal local steps have the same map, which is computed once.
        let (first, kinds) =
            group_clients(facts.clients(), |c| (facts.distribution(c), updates[c].bits()));
        let maps: Vec<ClientMap> =
            first.into_iter().map(|c| ClientMap::new(facts, c, updates[c])).collect();
        for (client, kind) in kinds.into_iter().enumerate() {
            let map = &maps[kind];
            let share = facts.share(client);
            axpy(share, &map.added, &mut rho);
            axpy(-share, &map.subtracted, &mut rho);
            gamma.add(share, &map.gamma);
        }
        if updates.iter().all(|update| update.steps == 1 && *update == updates[0]) {
            // ρ̄ = −γ F̄(θ*) = 0; the computed sum is rounding error.
            rho.fill(0.0);
        }
        Self { gamma, rho }
    }

    /// The fixed point (I − Γ̄)⁻¹ ρ̄ of the map, d numbers. It is FedLSA's exact bias lim E θ_t − θ* if the field is
    /// linear and powers of Γ̄ vanish, which is not checked here.
    ///
    /// # Errors
    /// [`Singular`] if Γ̄ has the eigenvalue 1, or is not finite.
    pub fn bias(&self) -> Result<Vec<f64>, Singular> {
        let d = self.rho.len();
        if self.rho.iter().any(|x| !x.is_finite()) {
            return Err(Singular);
        }
        solve(&Matrix::identity(d).plus(-1.0, &self.gamma), &self.rho)
    }
}

/// How one client moves the error in a round: e ← Γ_c e + `added` − `subtracted`.
struct ClientMap {
    /// Γ_c, d × d.
    gamma: Matrix,
    /// The part of the constant that is added, d numbers.
    added: Vec<f64>,
    /// The part of the constant that is subtracted, d numbers. The two are kept apart, since they are summed
    /// over clients one after the other, and their difference would have other last bits.
    subtracted: Vec<f64>,
}

impl ClientMap {
    /// The map of a client's local steps `update` on its field linearised at θ*. Only plain steps on a
    /// linear field have the client's own optimum as their fixed point, and a client may have none.
    fn new(facts: &dyn Facts, client: usize, update: LocalUpdate) -> Self {
        let is_plain = facts.linear() && update.proximal == 0.0;
        // On other fields the client's optimum would have to be searched for.
        let local_optimum = if is_plain { facts.local_optimum(client) } else { None };
        match local_optimum {
            Some(local_optimum) => Self::around_local_optimum(facts, client, update, local_optimum),
            None => Self::around_optimum(facts, client, update),
        }
    }

    /// The map of plain steps on a linear field, which approach θ_c*: the constant is
    /// (θ_c* − θ*) − Γ_c(θ_c* − θ*).
    fn around_local_optimum(
        facts: &dyn Facts,
        client: usize,
        update: LocalUpdate,
        local_optimum: &[f64],
    ) -> Self {
        let d = facts.dim();
        let one = Matrix::identity(d).plus(-update.step, &facts.jacobian(client));
        let gamma = one.power(update.steps);
        let added = difference(local_optimum, facts.optimum());
        let subtracted = gamma.apply(&added);
        Self { gamma, added, subtracted }
    }

    /// The map if a step is e ← (I − γ(H_c + μ))e + γμ e_t − γ F̄_c(θ*), where e_t is the error at the start of
    /// the round, to which the proximal term pulls: with M the factor of e and S = Σ_{l<H} Mˡ,
    /// Γ_c = M^H + γμS, and the constant is −γS F̄_c(θ*).
    fn around_optimum(facts: &dyn Facts, client: usize, update: LocalUpdate) -> Self {
        let d = facts.dim();
        let step = update.step;
        let mu = update.proximal;
        let one = Matrix::identity(d).scaled(1.0 - step * mu).plus(-step, &facts.jacobian(client));
        let (power, sum) = power_and_sum(&one, update.steps);
        let pushed = sum.apply(&facts.field_at_optimum(client));
        Self {
            gamma: power.plus(step * mu, &sum),
            added: vec![0.0; d],
            subtracted: pushed.into_iter().map(|x| step * x).collect(),
        }
    }
}

/// M^H and Σ_{l<H} Mˡ with H = `count`, both d × d: H steps e ← M e + b lead from e to
/// M^H e + (Σ_{l<H} Mˡ) b. They take O(log H) products.
pub fn power_and_sum(m: &Matrix, count: u64) -> (Matrix, Matrix) {
    let d = m.rows();
    // The first d rows of [[M, I], [0, I]]^H are those of M^H, followed by those of Σ_{l<H} Mˡ.
    let blocks = Matrix::from_fn(2 * d, 2 * d, |i, j| match (i < d, j < d) {
        (true, true) => m[(i, j)],
        (false, true) => 0.0,
        _ => f64::from(u8::from(i % d == j % d)),
    })
    .power(count);
    let power = Matrix::from_fn(d, d, |i, j| blocks[(i, j)]);
    let sum = Matrix::from_fn(d, d, |i, j| blocks[(i, j + d)]);
    (power, sum)
}

/// The effort of [`limit`] where no client takes more than `most_steps` local steps in a round.
pub fn limit_effort(facts: &dyn Facts, most_steps: u64) -> Effort {
    let n = facts.clients() as f64;
    let d = facts.dim() as f64;
    let products = 2.0 * (64 - most_steps.leading_zeros()) as f64 + 2.0;
    let each = products * d * d * d + facts.draws() as f64 * d * d;
    Effort::new(n * d * d + effort::distributions(facts) * each, 8.0 * d * d)
}

/// The point θ* + b, d numbers, with FedLSA's exact bias b where client c takes the local steps `update(c)`. If
/// E θ_t is this point, so is E θ_{t+1}: it is lim E θ_t if means converge ([`crate::moments::means_converge`]),
/// which is not checked here. `None` if the field is not linear, if draws are not independent, or if rounds keep
/// no mean or more than one, as where θ* is not unique.
pub fn limit(facts: &dyn Facts, update: impl Fn(usize) -> LocalUpdate) -> Option<Vec<f64>> {
    // Rounding errors may make I − Γ̄ regular.
    if facts.optimum_set().is_some() {
        return None;
    }
    let mut limit = RoundMap::with_updates(facts, update)?.bias().ok()?;
    axpy(1.0, facts.optimum(), &mut limit);
    Some(limit)
}
