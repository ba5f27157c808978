//! A program with a problem of one's own: estimating a median by the clients' smoothed stochastic
//! subgradients. It has all commands of exactfed, and manifests may name the problem:
//!
//! ```sh
//! cargo run --release --locked --example own_problem -- run examples/own_problem.toml
//! cargo run --release --locked --example own_problem -- report
//! ```
//!
//! A problem consists of facts (optimum, mean fields, Jacobians, noise) and an
//! oracle. The compiler requires each of them; the test at the end checks that they agree.

use exactfed::definition::{Definition, DefinitionError, KeyType, KeyValues};
use exactfed::linalg::Matrix;
use exactfed::problem::arrays::Files;
use exactfed::problem::{Draws, Facts, Fault, Faults, Problem};
use exactfed::registry::{ProblemKind, Registry};
use exactfed::rng::Stream;
use std::process::ExitCode;

/// Client c draws records x around a centre of its own; the field is tanh(θ − x).
struct Median {
    records: Vec<Vec<f64>>,
    optimum: Vec<f64>,
    local: Vec<Vec<f64>>,
}

fn field(records: &[f64], theta: f64) -> f64 {
    records.iter().map(|x| libm::tanh(theta - x)).sum::<f64>() / records.len() as f64
}

/// The root of an increasing function, by bisection.
fn root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-1e3, 1e3);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl Median {
    fn new(clients: usize, spread: f64, seed: u64) -> Self {
        let draw = |c: usize| {
            let mut rng = Stream::client_instance(seed, c);
            (0..50).map(|_| spread * c as f64 + rng.gaussian()).collect::<Vec<f64>>()
        };
        let records: Vec<Vec<f64>> = (0..clients).map(draw).collect();
        let local = records.iter().map(|r| vec![root(|theta| field(r, theta))]).collect();
        let mean = |theta| records.iter().map(|r| field(r, theta)).sum::<f64>();
        let optimum = vec![root(mean)];
        Self { records, optimum, local }
    }
}

impl Facts for Median {
    fn clients(&self) -> usize {
        self.records.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        Some(&self.local[client])
    }
    fn mean_field(&self, client: usize, theta: &[f64], out: &mut [f64]) {
        out[0] = field(&self.records[client], theta[0]);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        let slope = |x: &f64| 1.0 - libm::tanh(self.optimum[0] - x).powi(2);
        let records = &self.records[client];
        let mean = records.iter().map(slope).sum::<f64>() / records.len() as f64;
        Matrix::from_fn(1, 1, |_, _| mean)
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        let records = &self.records[client];
        let mean = field(records, self.optimum[0]);
        let square = |x: &f64| (libm::tanh(self.optimum[0] - x) - mean).powi(2);
        let variance = records.iter().map(square).sum::<f64>() / records.len() as f64;
        Matrix::from_fn(1, 1, |_, _| variance)
    }
    fn linear(&self) -> bool {
        false
    }
}

impl Problem for Median {
    type State = ();

    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], out: &mut [f64]) {
        let records = &self.records[client];
        out[0] = libm::tanh(theta[0] - records[draws.rng.index(records.len())]);
    }
}

/// `[problem.median]`.
struct Medians;

impl ProblemKind for Medians {
    type Instance = Median;

    fn linear(&self, _: &KeyValues) -> bool {
        false
    }
    fn size(&self, keys: &KeyValues) -> (usize, usize) {
        (keys.whole("clients").unwrap_or_default() as usize, 1)
    }
    fn check(&self, keys: &KeyValues) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.clients(self.size(keys).0);
        faults.0
    }
    fn build(&self, keys: &KeyValues, seed: u64, _: &dyn Files) -> Result<Median, Fault> {
        let spread = keys.number("spread").unwrap_or_default();
        Ok(Median::new(self.size(keys).0, spread, seed))
    }
}

fn registry() -> Result<Registry, DefinitionError> {
    let mut registry = Registry::default();
    let definition = Definition::new("median", "Smoothed medians", "1")
        .required_key("clients", KeyType::Whole)
        .key("spread", 1.0);
    registry.add_problem(definition, Medians)?;
    Ok(registry)
}

fn main() -> ExitCode {
    exactfed::main_with(registry().expect("the definition is sound"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed::manifest::Source;
    use exactfed::plan::Plan;
    use exactfed::problem::arrays::NoFiles;
    use exactfed::runner::prepare;

    #[test]
    fn its_facts_agree_with_its_oracle() {
        exactfed::problem::check::agree(&Median::new(5, 1.0, 1), 200_000);
    }

    fn plan(text: &str) -> Result<Plan, String> {
        let registry = registry().unwrap();
        let source = Source { name: "t".into(), text: text.into(), registry, ..Source::default() };
        exactfed::evidence::plan("t".into(), source).map_err(|e| e.to_string())
    }

    #[test]
    fn a_manifest_names_it_as_any_other() {
        let exact = "seed = 1\noracle = \"exact\"";
        let text = include_str!("own_problem.toml").replace("seed = 1", exact);
        let plan = plan(&text).unwrap();
        let cells: Vec<_> = plan.cells.iter().collect();
        let prepared = prepare(&NoFiles, &cells).expect("the manifest is sound");
        let last = |label: &str| {
            let of = prepared.iter().find(|p| p.cell.label == label).unwrap();
            *of.simulate(0).sq_error.last().unwrap()
        };
        // The centres of the clients differ, which biases FedAvg.
        assert!(last("FedAvg") > 1e-8, "{}", last("FedAvg"));
        assert!(last("Scaffold") < 1e-20, "{}", last("Scaffold"));
    }

    #[test]
    fn its_keys_are_checked() {
        let text = include_str!("own_problem.toml");
        let said = |old: &str, new: &str| plan(&text.replace(old, new)).err().unwrap();
        assert!(said("clients = 5", "clients = 0").contains("must be 1 or more"));
        assert!(said("clients = 5", "clints = 5").contains("did you mean `clients`?"));
        assert!(said("spread = 2.0", "spread = nan").contains("must be a finite number"));
        let unknown = said("problem.median", "problem.medium");
        assert!(unknown.contains("did you mean `median`?"), "{unknown}");
    }
}
