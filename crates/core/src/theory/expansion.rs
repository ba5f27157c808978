//! Expansions in the step size: the bias of FedAvg and Scaffold to first order
//! (RR Thm 1 to 4, with the signs of SLIDES), the next terms, covariances, and
//! a closure beyond first order for nonlinear fields.
//!
//! F̄_c is the mean field of client c, H_c its Jacobian at θ*, C_c the covariance of one draw of the field at θ*, and
//! π_c the client's share in all means. ∇³f[M] stands for the third derivatives of the mean loss, or second derivatives
//! of the mean field, applied to a matrix M.

use super::effort::{self, Effort};
use super::exact::{CovarianceBlocks, Moments};
use super::linear::power_and_sum;
use crate::kernel::axpy;
use crate::linalg::{Matrix, Singular, solve, solve_lyapunov, solve_rows};
use crate::problem::{Facts, by_distribution};

/// The terms of the expansions of an instance, all at θ*, from which [`Expansion::bias`] and the other functions
/// predict biases and covariances for each step size γ and [`RoundSteps`]. The predictions are for runs with independent
/// draws in which all clients take part, each with plain local steps of the constant size γ on one draw, and the server
/// takes their mean. Callers check this.
pub struct Expansion {
    clients: usize,
    equal_shares: bool,
    /// A = Σ π_c H_c, d × d.
    pub mean: Matrix,
    /// C = N Σ π_c² C_c, the mean of C_c for equal shares, d × d.
    pub noise: Matrix,
    /// **A**C, d × d, the solution X of A X + X Aᵀ = C: the covariance of θ is (γ/N) **A**C to first order.
    pub spread: Matrix,
    /// b_h = A⁻¹ Σ π_c (H_c − A) F̄_c(θ*), d numbers (RR Thm 1).
    pub heterogeneity: Vec<f64>,
    /// A⁻¹ ∇³f(θ*)[**A**C], d numbers; `None` if third derivatives are not known.
    pub stochasticity: Option<Vec<f64>>,
    /// A⁻¹ ∇³f(θ*)[C], d numbers, for the clients' own variance within a round ([`Expansion::next`]); `None`
    /// if third derivatives are not known.
    pub within: Option<Vec<f64>>,
}

/// How many local steps a round has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoundSteps {
    /// H, the same number in every round.
    Fixed(u64),
    /// A random number: after each local step one coin for all clients ends the round with this probability p.
    Coin(f64),
}

impl RoundSteps {
    /// The mean number of local steps of a round: H or, under a coin, 1/p.
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(steps) => steps as f64,
            Self::Coin(p) => 1.0 / p,
        }
    }

    /// The mean, over all local steps of all rounds, of the number h of local steps of the round before it: (H − 1)/2.
    /// Under a coin it is (1 − p)/p, since step number h is taken with probability (1 − p)^h.
    fn mean_before(self) -> f64 {
        match self {
            Self::Fixed(steps) => (steps as f64 - 1.0) / 2.0,
            Self::Coin(p) => (1.0 - p) / p,
        }
    }

    /// The number m in Cov(ξ_c, ξ_c) = ((1 − 2/N) C_c + C/N)/m, to leading order. It is H, since a variate is the mean of
    /// H draws. Under a coin, ξ_c ← (1 − pK) ξ_c − p Σ (ε_c − ε̄) over the K draws of a round, with E (1 − pK)² = 1 − p:
    /// the covariance is V = (1 − p) V + p ((1 − 2/N) C_c + C/N), so that m is 1 for every p.
    fn draws_of_variate(self) -> f64 {
        match self {
            Self::Fixed(steps) => steps as f64,
            Self::Coin(_) => 1.0,
        }
    }

    /// The variance of a client around the start of its round, as a multiple of γ² (1 − 1/N) C and as a mean over all
    /// local steps: the mean of h and, if the client is `corrected` by a control variate, also that of h²/m with m =
    /// [`draws_of_variate`](Self::draws_of_variate). The mean of h² is (H − 1)(2H − 1)/6 or, under a coin,
    /// (1 − p)(2 − p)/p².
    pub(crate) fn variance_within(self, corrected: bool) -> f64 {
        let variates = match self {
            _ if !corrected => 0.0,
            Self::Fixed(steps) => {
                let h = steps as f64;
                (h - 1.0) * (2.0 * h - 1.0) / (6.0 * h)
            }
            Self::Coin(p) => (1.0 - p) * (2.0 - p) / (p * p),
        };
        self.mean_before() + variates
    }
}

/// How control variates that clients keep between rounds learn (Karimireddy et al. 2020, options I and II).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariateSource {
    /// From H further draws at θ_t, which move no client (option I).
    FurtherDraws,
    /// From the ends of the clients' local steps (option II, and under a coin).
    Ends,
}

/// N⁻¹ Σ w_c M_c over all clients, d × d, with w_c = `weight(c)` and M_c = `matrix(c)`, which depends on the
/// distribution of client c alone.
fn mean_of(
    facts: &dyn Facts,
    weight: impl Fn(usize) -> f64,
    matrix: impl Fn(usize) -> Matrix,
) -> Matrix {
    let d = facts.dim();
    let mut sum = Matrix::zeros(d, d);
    if let Some((values, clients)) = by_distribution(facts, |c| Some(matrix(c))) {
        for (client, &group) in clients.iter().enumerate() {
            sum.add(weight(client) / clients.len() as f64, &values[group]);
        }
    }
    sum
}

/// ∇³f(θ*)[M] = Σ π_c ∇²F̄_c(θ*)[M], d numbers, with M = `m`: zeros where fields are affine, and `None` if the
/// third derivatives of a client are not known.
fn curvature(facts: &dyn Facts, m: &Matrix) -> Option<Vec<f64>> {
    let (values, clients) = by_distribution(facts, |c| facts.curvature(c, m))?;
    let mut sum = vec![0.0; facts.dim()];
    for (client, &group) in clients.iter().enumerate() {
        axpy(facts.share(client), &values[group], &mut sum);
    }
    Some(sum)
}

/// A⁻¹ ∇³f(θ*)[M] with A = `mean`, d numbers; `Ok(None)` if third derivatives are not known.
fn bias_of_curvature(
    facts: &dyn Facts,
    mean: &Matrix,
    m: &Matrix,
) -> Result<Option<Vec<f64>>, Singular> {
    curvature(facts, m).map(|x| solve(mean, &x)).transpose()
}

impl Expansion {
    /// The effort of [`Expansion::new`]: an inverse by d solves, refined doubling, and sums
    /// over the clients' draws.
    pub fn effort(facts: &dyn Facts) -> Effort {
        let n = facts.clients() as f64;
        let d = facts.dim() as f64;
        let draws = (n + 2.0 * effort::distributions(facts)) * facts.draws() as f64 * d * d;
        let products = d * d * d * d / 3.0 + 300.0 * d * d * d + draws;
        Effort::new(products, (2.0 * effort::distributions(facts) + 60.0) * d * d)
    }

    /// The effort of [`Expansion::blocks`] of clients with control variates if `corrected`.
    pub fn blocks_effort(facts: &dyn Facts, corrected: bool) -> Effort {
        let n = if corrected { facts.clients() as f64 } else { 1.0 };
        let d = facts.dim() as f64;
        let draws = 4.0 * facts.draws() as f64;
        Effort::new(n * d * d * (d + draws), 6.0 * n * d * d)
    }

    /// The terms of the expansions of a problem.
    ///
    /// # Errors
    /// [`Singular`] if not all eigenvalues of A have positive real parts, as where θ* is not unique.
    pub fn new(facts: &dyn Facts) -> Result<Self, Singular> {
        if facts.optimum_set().is_some() {
            return Err(Singular);
        }
        let n = facts.clients();
        let d = facts.dim();
        let mean = mean_of(facts, |c| facts.weight(c), |c| facts.jacobian(c));
        let noise =
            mean_of(facts, |c| facts.weight(c) * facts.weight(c), |c| facts.noise_covariance(c));
        let spread = solve_lyapunov(&mean, &noise)?;
        // Σ π_c (H_c − A) F̄_c(θ*).
        let mut pull = vec![0.0; d];
        for client in 0..n {
            let apart = facts.jacobian(client).plus(-1.0, &mean);
            axpy(facts.share(client), &apart.apply(&facts.field_at_optimum(client)), &mut pull);
        }
        let stochasticity = bias_of_curvature(facts, &mean, &spread)?;
        let within = bias_of_curvature(facts, &mean, &noise)?;
        let heterogeneity = solve(&mean, &pull)?;
        let equal_shares = facts.unequal_shares().is_none();
        Ok(Self {
            clients: n,
            equal_shares,
            heterogeneity,
            stochasticity,
            within,
            mean,
            noise,
            spread,
        })
    }

    /// The bias θ̄ − θ* of θ̄ = lim E θ_t to first order in γ = `step`, d numbers:
    /// (γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[**A**C] (RR Thm 4 as corrected), without the first term if clients are
    /// `corrected` by control variates. Under a coin, (H − 1)/2 is (1 − p)/p. `None` if third derivatives are not known.
    pub fn bias(&self, step: f64, local_steps: RoundSteps, corrected: bool) -> Option<Vec<f64>> {
        let mut bias = vec![0.0; self.heterogeneity.len()];
        if !corrected {
            axpy(step * local_steps.mean_before(), &self.heterogeneity, &mut bias);
        }
        let scale = -0.5 * step / self.clients as f64;
        axpy(scale, self.stochasticity.as_ref()?, &mut bias);
        Some(bias)
    }

    /// tr(A⁻¹CA⁻ᵀ)/N. Divided by H n it is the mean square error of the mean of n iterates, with rounds of H
    /// local steps, to first order in 1/n and for step sizes that fall to 0: the central limit theorem of Polyak
    /// and Juditsky (1992). A round moves by γ_t H A (θ − θ*) with noise of covariance γ_t² H C/N, so that the
    /// mean of errors has the covariance A⁻¹CA⁻ᵀ H/(H² N n), in which H cancels once.
    ///
    /// # Errors
    /// [`Singular`] if A has no inverse.
    pub fn clt_trace(&self) -> Result<f64, Singular> {
        let half = solve_rows(&self.mean, &self.noise)?;
        Ok(solve_rows(&self.mean, &half)?.trace() / self.clients as f64)
    }

    /// The term of order γ² that is added to [`Expansion::bias`] for the prediction of second order, d numbers: the
    /// part of that order that is not divided by N, from the clients' own variance within a round. It is
    /// −½ A⁻¹∇³f[γ² w (1 − 1/N) C] with w = (H − 1)/2, and with (H − 1)(2H − 1)/(6H) added to w if clients are
    /// `corrected` by control variates, whose noise moves the client too. Under a coin w is (1 − p)/p, and
    /// 2(1 − p)/p² with control variates. `None` for unequal shares, and without third derivatives.
    pub fn next(&self, step: f64, local_steps: RoundSteps, corrected: bool) -> Option<Vec<f64>> {
        if !self.equal_shares {
            return None;
        }
        let weight = local_steps.variance_within(corrected);
        let scale = -0.5 * step * step * weight * (1.0 - 1.0 / self.clients as f64);
        Some(self.within.as_ref()?.iter().map(|x| scale * x).collect())
    }

    /// γ(H − 1)Nλ with λ the largest diagonal entry of A, or 0 if none is positive. Pages print it next to predictions
    /// of first order, which are accurate if it is far below 1.
    pub fn reach(&self, step: f64, local_steps: f64) -> f64 {
        let d = self.mean.rows();
        let largest = (0..d).fold(0.0_f64, |most, i| most.max(self.mean[(i, i)]));
        step * (local_steps - 1.0) * self.clients as f64 * largest
    }

    /// The stationary covariances to first order in γ = `step` (SLIDES, "Expansion of Covariance"): Cov θ =
    /// (γ/N) **A**C. If clients have control variates ξ_c, also
    /// Cov(θ, ξ_c) = ∓(γ/N) **A**C (H_c − A) + (γ/N)(C_c − C),
    /// Cov(ξ_c, ξ_c) = ((1 − 2/N) C_c + C/N)/H and
    /// Cov(ξ_c, ξ_c') = (C − C_c − C_c')/(NH) of each client c and the client c' after it. The sign is minus; with
    /// `printed` it is the plus that SLIDES prints. Under a coin the last two are not divided by H: the variates average
    /// no more than the noise of one step, and Cov(θ, ξ_c) is the same, since θ and ξ_c learn from the same draws. The
    /// last term of Cov(θ, ξ_c) is 0 with variates from further draws, which θ does not see. `None` with control
    /// variates if shares are unequal. `facts` must be the instance of the expansion. To this order covariances are
    /// second moments around θ*, whose difference is the square of the bias.
    pub fn blocks(
        &self,
        facts: &dyn Facts,
        step: f64,
        local_steps: RoundSteps,
        variates: Option<VariateSource>,
        printed: bool,
    ) -> Option<CovarianceBlocks> {
        if variates.is_some() && !self.equal_shares {
            return None;
        }
        let n = self.clients;
        let draws = local_steps.draws_of_variate();
        let share = 1.0 / n as f64;
        let theta = self.spread.scaled(step * share);
        let sign = if printed { 1.0 } else { -1.0 };
        let mut blocks = CovarianceBlocks {
            theta,
            theta_variate: Vec::new(),
            variate: Vec::new(),
            variate_pair: Vec::new(),
        };
        let corrected_clients = if variates.is_some() { n } else { 0 };
        for c in 0..corrected_clients {
            let noise = facts.noise_covariance(c);
            let apart = facts.jacobian(c).plus(-1.0, &self.mean).transpose();
            let mut cross = self.spread.times(&apart).scaled(sign * step * share);
            if variates == Some(VariateSource::Ends) {
                cross.add(step * share, &noise.plus(-1.0, &self.noise));
            }
            blocks.theta_variate.push(cross);
            let own = noise.scaled((1.0 - 2.0 * share) / draws).plus(share / draws, &self.noise);
            blocks.variate.push(own);
            let of_both = noise.plus(1.0, &facts.noise_covariance((c + 1) % n));
            blocks.variate_pair.push(self.noise.plus(-1.0, &of_both).scaled(share / draws));
        }
        Some(blocks)
    }
}

/// A prediction of the bias θ̄ − θ* on a nonlinear field beyond first order, d numbers: a second-order closure of
/// the mean around the field linearised at θ*, whose exact moments at stationarity are `linear` and `blocks`: the
/// moments of the same run, one of those that [`Expansion`] describes with a fixed H. `blocks` must have the blocks of
/// control variates if clients are `corrected`. The curvature along the local steps acts on the mean m of the
/// linearised field:
///
/// FedAvg: m − (I − Γ̄)⁻¹ (γ/2) Σ_c π_c Σ_h P_{H−1−h} ∇²F̄_c[S_{c,h}], P = I − γH_c, with
/// S_{c,h} the second moment of θ − θ* after h local steps. Scaffold, if clients are `corrected`: the variates
/// absorb each client's own part, so that m − A⁻¹ Σ_c π_c (Σ_h P^h)⁻¹ Σ_h P_{H−1−h} ½∇²F̄_c[S_{c,h}]
/// remains. `None` if the problem knows no second derivatives of its field or no noise map, or if a system has no
/// solution.
pub fn closure(
    facts: &dyn Facts,
    linear: &Moments,
    blocks: &CovarianceBlocks,
    step: f64,
    local_steps: u64,
    corrected: bool,
) -> Option<Vec<f64>> {
    let d = facts.dim();
    let identity = Matrix::identity(d);
    let mean = mean_of(facts, |c| facts.weight(c), |c| facts.jacobian(c));
    // Σ_c π_c of the sums of curvature, and Γ̄ = Σ π_c P^H.
    let mut push = vec![0.0; d];
    let mut gamma = Matrix::zeros(d, d);
    let path = LocalPath { facts, linear, blocks, step, local_steps, corrected };
    let (values, clients) = by_distribution(facts, |client| {
        let one = identity.plus(-step, &facts.jacobian(client));
        let mut sum = path.sum_of_curvature(client, &one)?;
        if corrected {
            sum = solve(&power_and_sum(&one, local_steps).1, &sum).ok()?;
        }
        Some((sum, one.power(local_steps)))
    })?;
    for (client, group) in clients.into_iter().enumerate() {
        let (sum, all) = &values[group];
        let share = facts.share(client);
        axpy(share, sum, &mut push);
        gamma.add(share, all);
    }
    let mut bias = linear.mean.clone();
    if corrected {
        axpy(-1.0, &solve(&mean, &push).ok()?, &mut bias);
    } else {
        let system = identity.plus(-1.0, &gamma);
        axpy(-step, &solve(&system, &push).ok()?, &mut bias);
    }
    Some(bias)
}

/// The effort of [`closure`], without the effort of the moments and covariances that it is given.
pub fn closure_effort(facts: &dyn Facts, local_steps: u64) -> Effort {
    let h = local_steps as f64;
    let d = facts.dim() as f64;
    let groups = effort::distributions(facts);
    let draws = 2.0 * facts.draws() as f64 * d * d;
    let step = 3.0 * d * d * d + effort::noise_map(facts) + draws;
    let powers = 18.0 * d * d * d * libm::log2(h + 1.0);
    Effort::new(groups * (h * step + powers + draws), (h + groups + 10.0) * d * d)
}

/// The local steps of a round that starts at the stationary moments of the linearised field.
struct LocalPath<'a> {
    facts: &'a dyn Facts,
    /// The stationary moments of θ − θ*.
    linear: &'a Moments,
    /// The stationary covariances of θ and of the control variates.
    blocks: &'a CovarianceBlocks,
    /// The step size γ.
    step: f64,
    /// The number H of local steps.
    local_steps: u64,
    /// Whether clients have control variates.
    corrected: bool,
}

impl LocalPath<'_> {
    /// Σ_h P_{H−1−h} ½∇²F̄_c[S_{c,h}] along the local steps of a client, d numbers, with P = `one` =
    /// I − γH_c and S_{c,h} the second moment of θ − θ* after h local steps on one draw each. `None` if the problem
    /// knows no second derivatives of its field or no noise map, or blocks of control variates are missing.
    fn sum_of_curvature(&self, client: usize, one: &Matrix) -> Option<Vec<f64>> {
        let facts = self.facts;
        let step = self.step;
        let d = facts.dim();
        // The state is (e, 1) with e = θ − θ*, and w, the constant part of the drift: F̄_c(θ*), or with control
        // variates ξ_c − ξ_c*.
        let field = facts.field_at_optimum(client);
        let mut s = self.blocks.theta.clone();
        let mut mean = self.linear.mean.clone();
        // E e wᵀ and E w wᵀ.
        let (mut cross, square) = if self.corrected {
            let cross = self.blocks.theta_variate.get(client)?.clone();
            (cross, self.blocks.variate.get(client)?.clone())
        } else {
            (Matrix::outer(&mean, &field), Matrix::outer(&field, &field))
        };
        let mut sum = vec![0.0; d];
        for _ in 0..self.local_steps {
            // By Horner's rule: each later step multiplies all earlier terms with P.
            sum = one.apply(&sum);
            axpy(0.5, &facts.curvature(client, &s)?, &mut sum);
            let second = Matrix::from_fn(d + 1, d + 1, |i, j| match (i < d, j < d) {
                (true, true) => s[(i, j)],
                (true, false) => mean[i],
                (false, true) => mean[j],
                _ => 1.0,
            });
            let noise = facts.noise_map(client, &second)?;
            let moved = one.times(&cross);
            let mut next = one.times(&s).times(&one.transpose());
            next.add(-step, &moved);
            next.add(-step, &moved.transpose());
            next.add(step * step, &square);
            next.add(step * step, &noise);
            s = next;
            cross = moved.plus(-step, &square);
            mean = one.apply(&mean);
            if !self.corrected {
                axpy(-step, &field, &mut mean);
            }
        }
        Some(sum)
    }
}
