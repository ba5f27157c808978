//! SCAFFLSA: Theorems A.5 (4.1 in the main text), B.2 (5.1), B.4 and B.5 (5.3), and (26).
//!
//! A2 holds with a = [`super::constants::MatrixMoments::rate`] at the given step size; the source uses A3's a.
//! Appendix B prints σ̄_ε, but its proofs bound the noise at θ*, σ̄_ω.
//!
//! Under H1 a coin of probability p decides after each local step whether clients communicate; under H2 they
//! communicate after H local steps. η is the step size of a local step, H the number of local steps of a round, and Ā_c
//! the mean of the matrices A_c(Z) of client c, whose noise is Σ_Ã = E (A − Ā)ᵀ(A − Ā); E_c is the mean over clients.
//! Without noise a round takes the error e to Γ̄ e + ρ̄ ([`RoundMap`]). ζ₁ is the root mean square of ‖F̄_c(θ*)‖, and
//! ψ_0 = ‖θ_0 − θ*‖² + η²H²ζ₁², or with 1/p in place of H under a coin of probability p, the Lyapunov function before
//! the first round.
//!
//! What a statement asks of η, H and the clients' optima is listed in `sources`: where a function calls
//! `Check::linear`, this finds it by the name of the statement and requires it, and the function requires the rest.

use super::{BoundValue, Bounded, Check, LinearField, PublishedRun, RunBound, decay};
use crate::kernel::{axpy, dot};
use crate::sources::StatedAlgorithm::{FedAvg, Scaffold};
use crate::theory::linear::RoundMap;

/// In which form a bound is computed that the source prints wrongly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BoundForm {
    /// As it is printed.
    Printed,
    /// As the proof gives it once it is corrected.
    Corrected,
}

/// The keys of this source's bounds, each with the function that computes it.
pub(super) const BOUNDS: &[RunBound] = &[
    ("scafflsa-a5", |run| theorem_a5(run, Bounded::SqError, BoundForm::Corrected)),
    ("scafflsa-a5-limit", |run| theorem_a5(run, Bounded::LimitSqError, BoundForm::Corrected)),
    ("scafflsa-a5-printed", |run| theorem_a5(run, Bounded::LimitSqError, BoundForm::Printed)),
    ("scafflsa-b2", |run| theorem_b2(run.if_plain(run.algorithm)?)),
    ("scafflsa-b5", |run| run.if_plain(Scaffold).map(theorem_b5)),
    ("scafflsa-26-printed", |run| run.if_equal_paths().map(|run| drift(run, BoundForm::Printed))),
    ("scafflsa-26", |run| run.if_equal_paths().map(|run| drift(run, BoundForm::Corrected))),
    ("scafflsa-b4-printed", |run| theorem_b4(run, BoundForm::Printed)),
    ("scafflsa-b4", |run| theorem_b4(run, BoundForm::Corrected)),
];

/// Theorem A.5, Theorem 4.1 with its constants, as a bound of E‖θ_t − θ*‖². The source bounds the distance from θ* +
/// θ̃_t; the length of θ̃_t = Σ_{s<t} Γ̄ˢ ρ̄, which is known exactly, is added before squaring. The third term is
/// printed as 2(E_c‖Σ_Ã‖)^½ ‖ρ̄‖/(a(HN)^½); (96) drops a factor t − s, without which the bound fails (`lemma-a2` of the
/// errata), and with which the term is η(H E_c‖Σ_Ã‖/N)^½ ‖ρ̄‖ q/((1 − ηa)(1 − q)^{3/2}), q = (1 − ηa)^H. As a bound of
/// E‖θ_t − lim E θ_t‖², if this is the `quantity`, the length of Γ̄ᵗ(I − Γ̄)⁻¹ρ̄, which is the difference of the limit
/// and θ* + θ̃_t, is added in place of the length of θ̃_t; `quantity` must be one of the two. The printed form has
/// the third term as printed. `None` unless the run is of plain FedAvg.
fn theorem_a5(run: &PublishedRun<'_>, quantity: Bounded, form: BoundForm) -> Option<BoundValue> {
    let run = run.if_plain(FedAvg)?;
    let constants = run.constants;
    let (check, moments) = Check::linear(run, "SCAFFLSA Theorem 4.1, corrected", LinearField::Any);
    Some(check.then(|| {
        let m = moments?;
        let eta = run.gamma();
        let h = run.h();
        let n = constants.count();
        let a = m.rate(constants.curvature(), eta);
        let map = RoundMap::new(run.facts, eta, run.most_steps)?;
        let q = decay(eta * a, h);
        let noise = libm::sqrt(eta * m.sigma_epsilon / (a * n * (1.0 - libm::exp(-2.0))));
        let spread = libm::sqrt(2.0 * eta * m.v_heter / (n * a));
        let rho = libm::sqrt(dot(&map.rho, &map.rho));
        let apart = 1.0 - q;
        let fluctuation = if form == BoundForm::Printed {
            2.0 * libm::sqrt(m.multiplicative / (h * n)) * rho / a
        } else {
            eta * libm::sqrt(h * m.multiplicative / n) * rho * q
                / ((1.0 - eta * a) * apart * libm::sqrt(apart))
        };
        let start = run.decay(eta * a) * libm::sqrt(run.start_sq_error);
        let MeanPath { travelled, remaining } = MeanPath::new(&map, run.rounds)?;
        let between = if quantity == Bounded::SqError { travelled } else { remaining };
        let total = noise + spread + fluctuation + start + between;
        Some(total * total)
    }))
}

/// How far the mean of FedAvg has moved after t rounds from θ*, on its way to its limit.
struct MeanPath {
    /// The distance from θ*, ‖Σ_{s<t} Γ̄ˢ ρ̄‖ = ‖(I − Γ̄ᵗ)(I − Γ̄)⁻¹ρ̄‖.
    travelled: f64,
    /// The distance from the limit, ‖Γ̄ᵗ(I − Γ̄)⁻¹ρ̄‖.
    remaining: f64,
}

impl MeanPath {
    /// The path after t = `rounds` rounds; `None` if there is no limit, or a number is not finite.
    fn new(map: &RoundMap, rounds: u64) -> Option<Self> {
        let mut travelled = map.bias().ok()?;
        let remaining = map.gamma.power(rounds).apply(&travelled);
        axpy(-1.0, &remaining, &mut travelled);
        let found = Self {
            travelled: libm::sqrt(dot(&travelled, &travelled)),
            remaining: libm::sqrt(dot(&remaining, &remaining)),
        };
        found.travelled.is_finite().then_some(found)
    }
}

/// Theorem B.2 (5.1), H1: E ψ_K ≤ (1 − ζ)^K ψ_0 + 2η²σ̄_ω/ζ with ζ = min(ηa, p²)
/// after K local steps under the coin. The inequality (14) of A3 is printed reversed, and
/// Appendix B has σ̄_ε. `None` for a run without a coin.
pub fn theorem_b2(run: &PublishedRun<'_>) -> Option<BoundValue> {
    let probability = run.probability?;
    let constants = run.constants;
    let (mut check, _) = Check::linear(run, "SCAFFLSA Theorem 5.1", LinearField::Any);
    let eta = run.gamma();
    check.holds("0 < p ≤ 1", probability > 0.0 && probability <= 1.0);
    Some(check.then(|| {
        let zeta = (eta * constants.curvature()).min(probability * probability);
        let ratio = eta * constants.zeta1() / probability;
        let start = run.start_sq_error + ratio * ratio;
        let floor = 2.0 * eta * eta * constants.sigma_omega() / zeta;
        Some(run.decay(zeta) * start + floor)
    }))
}

/// Theorem B.5 (5.3), H2: E ψ_t ≤ (1 − ηaH/4)^t ψ_0 + 16ησ̄_ω/a. Appendix B
/// prints σ̄_ε. The main text's H ≤ a/(32ηC_A²) omits ‖Σ_Ã‖; the appendix's condition is
/// checked. ηH ≤ 1 is checked although the proof does not use it.
pub fn theorem_b5(run: &PublishedRun<'_>) -> BoundValue {
    let (mut check, moments) = Check::linear(run, "SCAFFLSA Theorem 5.3", LinearField::Any);
    let eta = run.gamma();
    let h = run.h();
    let constants = run.constants;
    let a = moments.map(|m| {
        let a = m.rate(constants.curvature(), eta);
        check.at_most("ηaH ≤ 1", eta * a * h, 1.0);
        check.at_most("η ≤ a/(16H max(‖Ā_c‖² + ‖Σ_Ã‖))", eta, a / (16.0 * h * m.worst));
        a
    });
    check.at_most("ηH ≤ 1", eta * h, 1.0);
    check.at_most("η max‖Ā_c‖ ≤ 1", eta * constants.norm(), 1.0);
    check.then(|| {
        let a = a?;
        let ratio = eta * h * constants.zeta1();
        let start = run.start_sq_error + ratio * ratio;
        let shrunk = decay(0.25 * eta * a * h, run.rounds as f64);
        Some(shrunk * start + 16.0 * eta * constants.sigma_omega() / a)
    })
}

/// (26), Lemma C.3: a bound of ‖ρ̄_H‖, the distance from θ* at which a run without noise that starts at θ* is after its
/// first round. It is squared here, as a bound of ‖θ_1 − θ*‖², and is 0 before that round. Printed is (η²H²/N) Σ
/// exp(ηH‖Ā_c‖)‖θ_c* − θ*‖, which lacks ‖Ā_c‖² and fails where ‖Ā_c‖ > √2; the proof gives half of it with that factor.
pub fn drift(run: &PublishedRun<'_>, form: BoundForm) -> BoundValue {
    let mut check = Check::new(run);
    let constants = run.constants;
    let moments = check.moments();
    check.everyone();
    check.exact(moments);
    check.one_round("θ*");
    let length = run.gamma() * run.h();
    check.then(|| {
        let mut sum = 0.0;
        for client in &constants.clients {
            let norm = client.norm;
            let factor = match form {
                BoundForm::Printed => 1.0,
                BoundForm::Corrected => 0.5 * norm * norm,
            };
            sum += factor * libm::exp(length * norm) * client.distance;
        }
        let bound = length * length * sum / constants.count();
        Some(run.rounds as f64 * bound * bound)
    })
}

/// Theorem B.4: E ψ_K after K local steps under the coin, an equality for A_c(Z) = aI and
/// independent additive noise. Printed is (1 − ζ)^K ψ_0 + 2η²σ̄_ω/ζ, ζ = min(2ηa, p²), which is not ψ_0 at
/// K = 0. The equality holds if p² = 2ηa − η²a², and is then
/// (1 − p²)^K ψ_0 + (1 − (1 − p²)^K) η²σ̄_ω/p². `None` for a run without a coin.
pub fn theorem_b4(run: &PublishedRun<'_>, form: BoundForm) -> Option<BoundValue> {
    let is_printed = form == BoundForm::Printed;
    let probability = run.probability?;
    let constants = run.constants;
    let mut check = Check::new(run);
    let moments = check.moments();
    check.everyone();
    let eta = run.gamma();
    let a = constants.curvature();
    let alike = constants.norm() - a <= 1e-12 * a;
    check.holds("Ā_c = aI for every client", alike);
    check.holds("A(Z) has no noise", moments.is_some_and(|m| m.multiplicative == 0.0));
    let square = probability * probability;
    let exact = 2.0 * eta * a - eta * eta * a * a;
    let zeta = if is_printed { square.min(2.0 * eta * a) } else { square };
    if !is_printed {
        check.holds("p² = 2ηa − η²a²", (square - exact).abs() <= 1e-9 * exact);
    }
    Some(check.then(|| {
        let ratio = eta * constants.zeta1() / probability;
        let start = run.start_sq_error + ratio * ratio;
        let shrunk = run.decay(zeta);
        let floor = eta * eta * constants.sigma_omega() / zeta;
        Some(shrunk * start + if is_printed { 2.0 * floor } else { (1.0 - shrunk) * floor })
    }))
}
