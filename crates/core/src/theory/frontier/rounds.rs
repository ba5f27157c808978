//! The rounds of a frontier's algorithms as programs, on a problem whose clients are of types.

use super::{FrontierAlgorithm, MethodRun, OwnRounds, StartError};
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::program::{Program, Traced};
use crate::theory::linear::LocalUpdate;
use crate::theory::moments::{AlgorithmModel, Correction, RunModel, constant};
use crate::theory::program::{KnownSteps, Squares};

/// A problem with its clients in types, and a start.
pub struct TypedProblem<'a> {
    /// The problem.
    pub facts: &'a dyn Facts,
    /// The types.
    pub types: Vec<ClientType>,
    /// The start.
    pub start: StartError,
}

/// Clients with the same distribution.
pub struct ClientType {
    /// The first of them.
    pub first: usize,
    /// Their proportion π of all.
    pub proportion: f64,
    jacobian: Matrix,
    field: Vec<f64>,
    /// The covariance of the oracle's noise at two points as a map of E (e, 1)(e', 1)ᵀ,
    /// d² × (d+1)².
    noise: Matrix,
}

impl ClientType {
    /// The type of this client; `None` if second moments do not close.
    pub fn new(facts: &dyn Facts, first: usize, proportion: f64) -> Option<Self> {
        let d = facts.dim();
        let mut noise = Matrix::zeros(d * d, (d + 1) * (d + 1));
        for j in 0..=d {
            for k in 0..=d {
                let mut unit = Matrix::zeros(d + 1, d + 1);
                unit[(j, k)] = 1.0;
                let out = facts.noise_map(first, &unit)?;
                for i in 0..d * d {
                    noise[(i, j * (d + 1) + k)] = out[(i / d, i % d)];
                }
            }
        }
        let (jacobian, field) = (facts.jacobian(first), facts.field_at_optimum(first));
        Some(Self { first, proportion, jacobian, field, noise })
    }
}

/// So many clients with the problem's proportions of types; the first are one of each type.
pub struct Crowd<'a> {
    problem: &'a TypedProblem<'a>,
    clients: usize,
}

impl Crowd<'_> {
    /// How many there are of each type.
    fn counts(&self) -> Vec<u64> {
        let count = |t: &ClientType| libm::round(t.proportion * self.clients as f64) as u64;
        self.problem.types.iter().map(count).collect()
    }
}

impl Facts for Crowd<'_> {
    fn clients(&self) -> usize {
        self.clients
    }
    fn optimum(&self) -> &[f64] {
        self.problem.facts.optimum()
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        self.problem.facts.local_optimum(self.problem.types[client].first)
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.problem.facts.mean_field(self.problem.types[client].first, theta, field);
    }
    fn field_at_optimum(&self, client: usize) -> Vec<f64> {
        self.problem.types[client].field.clone()
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.problem.types[client].jacobian.clone()
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.problem.facts.noise_covariance(self.problem.types[client].first)
    }
    fn linear(&self) -> bool {
        true
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let (d, noise) = (self.dim(), &self.problem.types[client].noise);
        Some(Matrix::from_entries(d, d, noise.apply(s.entries())))
    }
    fn distribution(&self, client: usize) -> usize {
        client
    }
}

impl FrontierAlgorithm {
    /// The weights of the estimates of its runs; run number r has the step size (r + 1) γ.
    pub(super) fn weights(self) -> &'static [f64] {
        match self {
            Self::RichardsonRomberg | Self::RichardsonRombergIndependent | Self::ScaffoldRr => {
                &[2.0, -1.0]
            }
            _ => &[1.0],
        }
    }

    pub(super) fn is_corrected(self) -> bool {
        matches!(self, Self::Scaffold | Self::ScaffoldRr | Self::Scaffnew)
    }
}

/// A built-in algorithm in the type of its exact moments.
pub fn model(run: &MethodRun) -> AlgorithmModel<'static> {
    let MethodRun { method, local_steps, step_size, .. } = *run;
    let correction = if method.is_corrected() { Correction::Kept } else { Correction::None };
    let (steps, batch) = match method {
        FrontierAlgorithm::Sgd | FrontierAlgorithm::Scaffnew => (1, 1),
        FrontierAlgorithm::MinibatchSgd => (1, local_steps),
        _ => (local_steps, 1),
    };
    let server_step = run.server_step();
    let runs = method.weights().iter().enumerate().map(|(r, &weight)| {
        let step = (r + 1) as f64 * step_size;
        let update = LocalUpdate { step, steps, batch, proximal: 0.0 };
        RunModel { weight, update: Box::new(move |_| update), server_step, correction }
    });
    let coin = (method == FrontierAlgorithm::Scaffnew).then(|| 1.0 / local_steps as f64);
    AlgorithmModel {
        runs: runs.collect(),
        cohort: usize::MAX,
        common: method.shares_draws(),
        coin,
        burn_in: None,
        decay: None,
    }
}

impl TypedProblem<'_> {
    /// The rounds of a method with N clients of the problem's proportions.
    pub fn program(&self, run: &MethodRun, own: Option<&dyn OwnRounds>) -> Traced {
        match (run.method, own) {
            (FrontierAlgorithm::Own(_), Some(own)) => own.program(run),
            (FrontierAlgorithm::Own(_), None) => Err("its code is not at hand".into()),
            _ => {
                let one_each = Crowd { problem: self, clients: self.types.len() };
                let program = constant(&one_each, &model(run));
                Ok(Program { clients: run.clients as usize, ..program })
            }
        }
    }

    /// What `then` makes of the second moments of a method's rounds; `None` if there are none.
    pub fn squares<T>(
        &self,
        run: &MethodRun,
        program: &Program,
        known: &KnownSteps,
        then: impl FnOnce(&Squares<'_>) -> T,
    ) -> Option<T> {
        if matches!(run.method, FrontierAlgorithm::Own(_)) {
            return Squares::new(program, self.facts, &self.start).ok().map(|found| then(&found));
        }
        let crowd = Crowd { problem: self, clients: run.clients as usize };
        let found = Squares::of_types(program, &crowd, &crowd.counts(), &self.start, known);
        found.ok().map(|found| then(&found))
    }
}
