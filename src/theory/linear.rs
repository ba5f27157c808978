//! Exact means on linear fields (SCAFFLSA (24), Thm 4.1).

use crate::kernel::axpy;
use crate::linalg::{Matrix, Singular, solve};
use crate::problem::Facts;

/// The mean round map of FedLSA with step size γ and H local steps:
/// E θ_{t+1} − θ* = Γ̄ (E θ_t − θ*) + ρ̄, with Γ_c = (I − γĀ_c)^H,
/// Γ̄ = N⁻¹ Σ Γ_c and ρ̄ = N⁻¹ Σ (I − Γ_c)(θ_c* − θ*).
#[derive(Clone, Debug)]
pub struct RoundMap {
    /// Γ̄, d × d.
    pub gamma: Matrix,
    /// ρ̄, d numbers.
    pub rho: Vec<f64>,
}

impl RoundMap {
    /// The map of a linear problem; `None` if its field is not linear.
    pub fn new(facts: &dyn Facts, step_size: f64, local_steps: u64) -> Option<Self> {
        if !facts.linear() {
            return None;
        }
        let (n, d) = (facts.clients() as f64, facts.dim());
        let (mut gamma, mut rho) = (Matrix::zeros(d, d), vec![0.0; d]);
        for client in 0..facts.clients() {
            let one = Matrix::identity(d).plus(-step_size, &facts.jacobian(client));
            let all = one.power(local_steps);
            let local = facts.local_optimum(client).iter().zip(facts.optimum());
            let apart: Vec<f64> = local.map(|(local, global)| local - global).collect();
            let shrunk = all.apply(&apart);
            axpy(1.0 / n, &apart, &mut rho);
            axpy(-1.0 / n, &shrunk, &mut rho);
            gamma = gamma.plus(1.0 / n, &all);
        }
        if local_steps == 1 {
            // ρ̄ = −γ F̄(θ*) = 0; what the sum leaves is rounding.
            rho.fill(0.0);
        }
        Some(Self { gamma, rho })
    }

    /// FedLSA's exact bias lim E θ_t − θ* = (I − Γ̄)⁻¹ ρ̄, d numbers.
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

    /// E θ_{t+1} − θ* from E θ_t − θ*.
    pub fn step(&self, error: &[f64]) -> Vec<f64> {
        let mut next = self.gamma.apply(error);
        axpy(1.0, &self.rho, &mut next);
        next
    }
}

/// lim E θ_t for FedLSA (θ* plus its exact bias), d numbers; `None` where the
/// field is not linear or there is no limit to compute.
pub fn limit(facts: &dyn Facts, step_size: f64, local_steps: u64) -> Option<Vec<f64>> {
    let mut limit = RoundMap::new(facts, step_size, local_steps)?.bias().ok()?;
    axpy(1.0, facts.optimum(), &mut limit);
    Some(limit)
}
