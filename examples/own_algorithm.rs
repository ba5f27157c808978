//! A user's own algorithm: FedAvg with server momentum (FedAvgM, Hsu et al. 2019), as a
//! wrapper around the engine's rounds.
//! `cargo run --release --locked --example own_algorithm`.
//!
//! An algorithm that is only a choice of terms (step sizes, local steps, cohort, control
//! variates) implements `components` alone. One that does more between rounds overrides
//! `start` and wraps a run, as here.

use driftbench::algorithm::{AlgorithmKind, Component};
use driftbench::federated::{Conditions, Cost, Federated, Run, Terms};
use driftbench::problem::arrays::NoFiles;
use driftbench::problem::spectrum::Spectrum;
use driftbench::problem::{Facts, Problem, Settings as _, quadratic};

struct Momentum {
    local_steps: u64,
    /// β in [0, 1).
    momentum: f64,
}

impl AlgorithmKind for Momentum {
    /// Its costs and its limit are those of FedAvg.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(Terms::fedavg(step_size, self.local_steps))]
    }

    fn start<'p, P: Problem>(
        &self,
        step_size: f64,
        problem: &'p P,
        from: &Conditions,
    ) -> Box<dyn Run + 'p> {
        let terms = self.components(step_size).remove(0).terms;
        let run = Federated::new(problem, terms, from);
        let (theta, velocity) = (from.start.to_vec(), vec![0.0; from.start.len()]);
        Box::new(WithMomentum { run, theta, velocity, momentum: self.momentum })
    }
}

/// v ← βv + (mean of the clients − θ_t), θ_{t+1} = θ_t + v.
struct WithMomentum<R> {
    run: R,
    theta: Vec<f64>,
    velocity: Vec<f64>,
    momentum: f64,
}

impl<P: Problem> Run for WithMomentum<Federated<'_, P>> {
    fn round(&mut self) {
        self.run.round();
        for i in 0..self.theta.len() {
            let moved = self.run.estimate()[i] - self.theta[i];
            self.velocity[i] = self.momentum * self.velocity[i] + moved;
            self.theta[i] += self.velocity[i];
        }
        self.run.move_to(&self.theta);
    }
    fn estimate(&self) -> &[f64] {
        &self.theta
    }
    fn cost(&self) -> Cost {
        self.run.cost()
    }
}

fn error(problem: &quadratic::Quadratic, momentum: f64, rounds: u64) -> f64 {
    let start = vec![0.0; problem.dim()];
    let from = Conditions { seed: 1, replicate: 0, start: &start, rounds, copy: 0 };
    let mut run = Momentum { local_steps: 5, momentum }.start(0.01, problem, &from);
    (0..rounds).for_each(|_| run.round());
    driftbench::kernel::squared_distance(run.estimate(), problem.optimum())
}

fn problem() -> quadratic::Quadratic {
    quadratic::Settings {
        dimension: 5,
        clients: 10,
        spectrum: Spectrum { from: 0.1, to: 1.0 },
        gradient_heterogeneity: 0.0,
        hessian_heterogeneity: 0.0,
        noise: 0.0,
        multiplicative_noise: 0.0,
        multiplicative_form: quadratic::MultiplicativeForm::Gaussian,
    }
    .build(1, &NoFiles)
    .expect("the spectrum is regular")
}

fn main() {
    let problem = problem();
    for momentum in [0.0, 0.5, 0.9] {
        println!(
            "β = {momentum}: ‖θ − θ*‖² = {:.3e} after 100 rounds",
            error(&problem, momentum, 100)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_momentum_it_is_fedavg_and_with_it_is_faster() {
        let problem = problem();
        let start = vec![0.0; 5];
        let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 100, copy: 0 };
        let mut plain = Federated::new(&problem, Terms::fedavg(0.01, 5), &from);
        (0..100).for_each(|_| plain.round());
        let off = driftbench::kernel::squared_distance(plain.estimate(), problem.optimum());
        assert!((error(&problem, 0.0, 100) / off - 1.0).abs() < 1e-9);
        assert!(error(&problem, 0.9, 100) < 0.1 * off);
    }
}
