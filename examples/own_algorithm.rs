//! A program with an algorithm of one's own: FedAvg with server momentum (FedAvgM, Hsu et al.
//! 2019). It has all commands of exactfed, and manifests may name the algorithm:
//!
//! ```sh
//! cargo run --release --locked --example own_algorithm -- run examples/own_algorithm.toml
//! cargo run --release --locked --example own_algorithm -- report
//! ```

use exactfed::algorithm::custom::{CustomRounds, CustomRun};
use exactfed::definition::{Definition, DefinitionError};
use exactfed::federated::{LocalWork, RoundClients};
use exactfed::registry::Registry;
use std::process::ExitCode;

/// v ← βv + (mean of the clients − θ_t), θ_{t+1} = θ_t + v.
struct Momentum {
    step_size: f64,
    local_steps: u64,
    /// β in [0, 1).
    momentum: f64,
    velocity: Vec<f64>,
    /// The clients' parameters at the end of a round, N rows of d.
    ends: Vec<f64>,
}

impl Momentum {
    fn begin(settings: &CustomRun<'_>, clients: &RoundClients<'_>) -> Box<dyn CustomRounds> {
        let (n, d) = (clients.count(), clients.dim());
        Box::new(Self {
            step_size: settings.step_size,
            local_steps: settings.local_steps,
            momentum: settings.values.number("momentum").unwrap_or_default(),
            velocity: vec![0.0; d],
            ends: vec![0.0; n * d],
        })
    }
}

impl CustomRounds for Momentum {
    fn round(&mut self, clients: &mut RoundClients<'_>, theta: &mut [f64]) {
        let work = LocalWork {
            step_sizes: &[self.step_size],
            steps: &[self.local_steps],
            batch: 1,
            corrections: None,
            proximal: None,
        };
        clients.local_steps(Some(theta), &work, &mut self.ends);
        let mut mean = vec![0.0; theta.len()];
        clients.mean(&self.ends, &mut mean);
        for i in 0..theta.len() {
            self.velocity[i] = self.momentum * self.velocity[i] + (mean[i] - theta[i]);
            theta[i] += self.velocity[i];
        }
    }
}

fn registry() -> Result<Registry, DefinitionError> {
    let mut registry = Registry::default();
    let definition = Definition::new("fedavgm", "FedAvgM", "1").key("momentum", 0.9);
    registry.add_algorithm(definition, Momentum::begin)?;
    Ok(registry)
}

fn main() -> ExitCode {
    exactfed::main_with(registry().expect("the definition is sound"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed::manifest::Source;

    use exactfed::problem::arrays::NoFiles;
    use exactfed::runner::prepare;
    use exactfed::trace::Trace;

    /// The traces of the example's manifest, by label and momentum.
    fn traces(registry: Registry) -> Vec<(String, f64, Trace)> {
        let text = include_str!("own_algorithm.toml").to_owned();
        let source = Source { name: "t".into(), text, registry, ..Source::default() };
        let plan = exactfed::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let cells: Vec<_> = plan.cells.iter().collect();
        let prepared = prepare(&NoFiles, &cells).expect("the manifest is sound");
        let of = |p: &exactfed::runner::Prepared<'_>| {
            let momentum = p.cell.settings.get("momentum").map(|m| m.to_string());
            let momentum = momentum.and_then(|m| m.parse().ok()).unwrap_or(f64::NAN);
            (p.cell.label.clone(), momentum, p.simulate(0))
        };
        prepared.iter().map(of).collect()
    }

    #[test]
    fn without_momentum_it_is_fedavg_and_with_it_is_faster() {
        let traces = traces(registry().unwrap());
        let of = |label: &str, momentum: f64| {
            let found =
                traces.iter().find(|t| t.0 == label && !(t.1 != momentum && momentum >= 0.0));
            &found.unwrap_or_else(|| panic!("{label} {momentum}")).2
        };
        let (fedavg, plain, fast) = (of("FedAvg", -1.0), of("FedAvgM", 0.0), of("FedAvgM", 0.9));
        let last = |trace: &Trace| *trace.sq_error.last().unwrap();
        assert!((last(plain) / last(fedavg) - 1.0).abs() < 1e-9);
        assert_eq!(plain.cost, fedavg.cost, "it pays what FedAvg pays");
        assert!(last(fast) < 0.1 * last(fedavg), "{} {}", last(fast), last(fedavg));
    }
}
