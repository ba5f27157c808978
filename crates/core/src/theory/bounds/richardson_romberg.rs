//! RR: the bias of FedAvg, its neighbourhoods, and federated Richardson-Romberg. "000" is the second version of RR,
//! whose statements have other numbers.
//!
//! θ̄_det is the limit of FedAvg without noise (FedAvg-D), and θ̄_sto the limit of E θ_t with noise. μ and L are the
//! least strong convexity and the largest smoothness of clients, ζ₁ and ζ₂ the root mean squares over clients of
//! ‖∇f_c(θ*)‖ and of ‖H_c − A‖, τ² is the noise at θ*, for which its mean over clients is used, and H the number of
//! local steps of a round.
//!
//! A [`BoundValue`] is an error, with the conditions that fail, if the run does not meet the statement's conditions, or
//! if the bound cannot be computed. What a statement asks of γ, H and the clients' optima, such as ζ₁ = 0, is listed in
//! `sources`: `Check::linear` and `Check::stated` find it by the name of the statement and require it, and the
//! functions here require what else the bound needs.
//!
//! Step sizes of stochastic statements are checked against the L with
//! E‖F(θ; Z) − F(θ'; Z)‖² ≤ L⟨θ − θ', F̄(θ) − F̄(θ')⟩. A1(b) requires this for every draw, but
//! the proofs use no more.

use super::{BoundValue, Check, LinearField, PublishedRun, RunBound};
use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, solve};
use crate::problem::Facts;
use crate::sources::StatedAlgorithm::{FedAvg, RichardsonRomberg};
use crate::theory::linear::{RoundMap, power_and_sum};

/// The keys of this source's bounds, each with the function that computes it.
pub(super) const BOUNDS: &[RunBound] = &[
    ("rr-proposition2", |run| run.if_plain(FedAvg).map(proposition_2)),
    ("rr-corollary1", |run| run.if_plain(FedAvg).map(corollary_1)),
    ("rr-theorem2", |run| run.if_plain(FedAvg).map(theorem_2)),
    ("rr-proposition5-printed", |run| run.if_plain(FedAvg).map(proposition_5)),
    ("rr-lemma5", |run| run.if_plain(FedAvg).map(lemma_5)),
    ("rr-lemma7", |run| run.if_plain(FedAvg).map(lemma_7)),
    ("rr-proposition4", |run| run.if_plain(FedAvg).map(proposition_4)),
    ("rr-theorem5", theorem_5),
];

/// On which fields a statement on FedAvg-D needs runs without noise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoiseFree {
    /// On all fields.
    Always,
    /// On nonlinear fields: on a linear one the mean of FedAvg is FedAvg-D whatever the noise is, so that a statement
    /// on the bias holds with noise too.
    IfNonlinear,
}

/// The check of a statement `name` on FedAvg-D, which is FedAvg without noise, and μ and L of the mean fields at
/// every θ (NaN if they are not known; then the check fails).
fn deterministic<'a>(
    name: &str,
    run: &'a PublishedRun<'a>,
    noise_free: NoiseFree,
) -> (Check<'a>, f64, f64) {
    let mut check = Check::new(run);
    let constants = run.constants;
    let moments = if constants.linear {
        check.moments()
    } else {
        check.equal_shares();
        let known = constants.everywhere.is_some();
        check.holds("the field is linear, or its curvature bounded at every θ", known);
        None
    };
    check.gradient();
    check.everyone();
    if noise_free == NoiseFree::Always || !constants.linear {
        let additive = moments.is_none_or(|m| m.multiplicative == 0.0);
        check.holds("fields are exact", constants.sigma_omega() == 0.0 && additive);
    }
    let (mu, l) = constants.everywhere.unwrap_or((f64::NAN, f64::NAN));
    if constants.everywhere.is_some() {
        check.stated(name, mu, Some(l));
    }
    (check, mu, l)
}

/// γ(H − 1)Lζ₁/μ, Proposition 2's bound of the distance of FedAvg-D's limit from θ*.
fn bias_bound(run: &PublishedRun<'_>, mu: f64, l: f64) -> f64 {
    run.gamma() * (run.h() - 1.0) * l * run.constants.zeta1() / mu
}

/// Proposition 2: ‖θ̄_det − θ*‖ ≤ γ(H − 1)Lζ₁/μ, on linear fields FedAvg's bias
/// too. (14) bounds 1/(1 − (1 − γμ)^H) in the wrong direction; with ‖D_c − D̄‖ ≤ L − μ instead
/// of 2L the proof gives (L − μ)/(2(1 − 1/e)) instead of L, so the bound holds. The expression
/// before the bound is [`identity`].
pub fn proposition_2(run: &PublishedRun<'_>) -> BoundValue {
    let (check, mu, l) = deterministic("RR Proposition 2, bound", run, NoiseFree::IfNonlinear);
    check.then(|| Some(bias_bound(run, mu, l)))
}

/// The expression of θ̄_det − θ* in Proposition 2 on quadratics, where D̄_c = H_c, d numbers:
/// −(γ/N) Σ_c Σ_{h<H} (I − Γ̄)⁻¹ (I − γH_c)^{H−1−h} ∇f_c(θ*), Γ̄ of H factors. `printed`: without −γ,
/// the sum over h = 1..H, and the products (3) over ℓ = h+1..H−1, so that F* has only H − 1 factors.
/// `None` unless the field is linear, draws are independent and shares equal, or if I − F* is
/// singular, as it is for the printed one at H = 1. H must be at least 1. What the proposition asks of γ is not
/// checked: pages show the expression as a prediction of FedAvg's bias.
pub fn identity(facts: &dyn Facts, step: f64, local_steps: u64, printed: bool) -> Option<Vec<f64>> {
    if !facts.linear() || !facts.independent() || facts.unequal_shares().is_some() {
        return None;
    }
    let d = facts.dim();
    let share = 1.0 / facts.clients() as f64;
    let mut left = Matrix::identity(d);
    let mut sum = vec![0.0; d];
    for c in 0..facts.clients() {
        let one = Matrix::identity(d).plus(-step, &facts.jacobian(c));
        let factors = if printed { local_steps - 1 } else { local_steps };
        let (power, mut products) = power_and_sum(&one, factors);
        if printed {
            // h = H has the empty product, as h = H − 1 has; h = 1 has H − 2 factors.
            products = products.plus(1.0, &Matrix::identity(d));
        }
        left.add(-share, &power);
        axpy(share, &products.apply(&facts.field_at_optimum(c)), &mut sum);
    }
    let scale = if printed { 1.0 } else { -step };
    let found = solve(&left, &sum).ok()?;
    Some(found.into_iter().map(|x| scale * x).collect())
}

/// Corollary 1, without noise: 2(1 − γμ)^{Ht}‖θ_0 − θ̄‖² + 2γ²(H − 1)²L²ζ₁²/μ²,
/// with ‖θ_0 − θ̄‖ ≤ ‖θ_0 − θ*‖ + γ(H − 1)Lζ₁/μ.
pub fn corollary_1(run: &PublishedRun<'_>) -> BoundValue {
    let (check, mu, l) = deterministic("RR Corollary 1", run, NoiseFree::Always);
    check.then(|| {
        let bias = bias_bound(run, mu, l);
        let far = libm::sqrt(run.start_sq_error) + bias;
        let shrunk = run.decay(run.gamma() * mu);
        Some(2.0 * shrunk * far * far + 2.0 * bias * bias)
    })
}

/// Theorem 2: ‖θ̄_sto − θ*‖ ≤ γ(H − 1)ζ₁ζ₂/μ on quadratics.
pub fn theorem_2(run: &PublishedRun<'_>) -> BoundValue {
    let (check, _) = Check::linear(run, "RR Theorem 2, bound", LinearField::Gradient);
    check.then(|| {
        let scale = run.gamma() * (run.h() - 1.0) / run.constants.curvature();
        Some(scale * run.constants.zeta1() * run.constants.zeta2())
    })
}

/// Proposition 5 (Proposition 4 of 000): half the bound of Theorem 2, which does not hold,
/// since Σ(1 − γμ)^{Ht} is not 1/(γμH).
fn proposition_5(run: &PublishedRun<'_>) -> BoundValue {
    theorem_2(run).map(|whole| 0.5 * whole)
}

/// Lemma 5 (both versions, with Remark 2): if ζ₁ = 0, which its check requires,
/// (1 − 2γμ(1 − γL))^{Ht}‖θ_0 − θ*‖² + γτ²/(μ(1 − γL)), whatever the Hessians. It follows from
/// unrolling (20); (21) loses a factor 2 of the noise. τ² averaged over clients as in the proof.
fn lemma_5(run: &PublishedRun<'_>) -> BoundValue {
    let constants = run.constants;
    let (check, moments) = Check::linear(run, "RR Lemma 5", LinearField::Gradient);
    check.then(|| {
        let gamma = run.gamma();
        let mu = constants.curvature();
        let rest = 1.0 - gamma * moments?.cocoercivity;
        let noise = gamma * constants.sigma_omega() / (mu * rest);
        Some(run.decay(2.0 * gamma * mu * rest) * run.start_sq_error + noise)
    })
}

/// Lemma 7 of 000: (1 − γμ/2)^{Ht}‖θ_0 − θ*‖² + c ζ₁²/μ + 8γτ²/μ with
/// c = H(H − 1)(4γ³L² + 2γ²L²/μ). τ² is printed as a bound over clients; the
/// proof averages them, so σ̄_ω is used.
fn lemma_7(run: &PublishedRun<'_>) -> BoundValue {
    let constants = run.constants;
    let (check, moments) = Check::linear(run, "RR Lemma 7", LinearField::Gradient);
    check.then(|| {
        let gamma = run.gamma();
        let mu = constants.curvature();
        let h = run.h();
        let scale = gamma * moments?.cocoercivity * constants.zeta1();
        let pull = h * (h - 1.0) / mu * scale * scale * (4.0 * gamma + 2.0 / mu);
        let noise = 8.0 * gamma * constants.sigma_omega() / mu;
        Some(run.decay(0.5 * gamma * mu) * run.start_sq_error + pull + noise)
    })
}

/// The check of a statement `name` under A4 of 000, that the variance of the noise is bounded everywhere, and the L of
/// draws with which step sizes are compared; `None` if L is not known, and then the check fails.
fn additive<'a>(run: &'a PublishedRun<'a>, name: &str) -> (Check<'a>, Option<f64>) {
    let (mut check, moments) = Check::linear(run, name, LinearField::Gradient);
    let additive = moments.is_some_and(|m| m.multiplicative == 0.0);
    check.holds("the noise is additive, so that its variance is bounded everywhere", additive);
    (check, moments.map(|m| m.cocoercivity))
}

/// (1 − γμ)^{Ht}ψ_0 + 4γτ̃²/μ of [`proposition_4`] at the step size `gamma`, which need not be that of the run:
/// Richardson-Romberg has a second run at 2γ.
fn neighbourhood(run: &PublishedRun<'_>, gamma: f64, l: f64) -> f64 {
    let mu = run.constants.curvature();
    let h = run.h();
    let constants = run.constants;
    let drift = h * gamma * l * constants.zeta1() / mu;
    let tau2 = constants.sigma_omega();
    let start = 4.0 * run.start_sq_error + 24.0 * drift * drift + 32.0 * gamma * tau2 / mu;
    run.decay(gamma * mu) * start + 4.0 * gamma * tau2 / mu
}

/// Proposition 4 of 000: E‖θ_t − θ̄_sto‖² ≤ (1 − γμ)^{Ht}ψ_0 + 4γτ̃²/μ, ψ_0 =
/// 4‖θ_0 − θ*‖² + 24H²γ²L²ζ₁²/μ² + 32γτ²/μ. τ² and τ̃² are equal for additive
/// noise, and are averaged over clients as in the proof.
fn proposition_4(run: &PublishedRun<'_>) -> BoundValue {
    let (check, l) = additive(run, "RR Proposition 4");
    check.then(|| Some(neighbourhood(run, run.gamma(), l?)))
}

/// FedAvg's exact bias b(γ) with γ = `step` and the number of local steps of the run, d numbers; `None` if it is not
/// known.
fn exact_bias(run: &PublishedRun<'_>, step: f64) -> Option<Vec<f64>> {
    RoundMap::new(run.facts, step, run.most_steps)?.bias().ok()
}

/// Theorem 5 of 000, a bound of E‖ϑ_t − θ*‖² of the extrapolated estimate ϑ_t = 2θ_t(γ) − θ_t(2γ), by (60): 12 times
/// the bound of Proposition 4 at γ, 3 times the one at 2γ, and 3‖2b(γ) − b(2γ)‖² with FedAvg's exact bias b. The source
/// states only its order. (61) prints ψ_0 at γ for the run at 2γ; at 2γ it has 96H²γ² and 64γ. The conditions of the
/// statement are on γ, and not on 2γ. `None` if the run is no plain Richardson-Romberg.
fn theorem_5(run: &PublishedRun<'_>) -> Option<BoundValue> {
    let run = run.if_plain(RichardsonRomberg)?;
    let gamma = run.gamma();
    let (check, l) = additive(run, "RR Theorem 5, bias");
    Some(check.then(|| {
        let mut left: Vec<f64> = exact_bias(run, gamma)?.into_iter().map(|x| 2.0 * x).collect();
        axpy(-1.0, &exact_bias(run, 2.0 * gamma)?, &mut left);
        let near = 12.0 * neighbourhood(run, gamma, l?);
        let far = 3.0 * neighbourhood(run, 2.0 * gamma, l?);
        Some(near + far + 3.0 * dot(&left, &left))
    }))
}
