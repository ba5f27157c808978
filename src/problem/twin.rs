//! Any problem, its oracle linearised at θ* draw by draw: a linear problem whose
//! moments close, driven by the same draws. What a run differs from its twin by
//! is what the field's curvature does, without the noise that both share.

use super::affine::Affine;
use super::{Facts, Problem, generic};
use crate::kernel::{Cohort, axpy};
use crate::linalg::Matrix;
use crate::rng::Stream;
use std::any::Any;

/// What a twin asks of its problem, whose type is forgotten so that the engine
/// is compiled for twins once.
trait Linearised: Facts {
    fn begin(&self, client: usize, rng: &mut Stream) -> Box<dyn Any + Send>;
    /// [`Problem::linearised`]; the state is what [`Linearised::begin`] gave.
    fn field(
        &self,
        client: usize,
        state: &mut (dyn Any + Send),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    );
}

impl<P: Problem> Linearised for P {
    fn begin(&self, client: usize, rng: &mut Stream) -> Box<dyn Any + Send> {
        Box::new(Problem::begin(self, client, rng))
    }

    fn field(
        &self,
        client: usize,
        state: &mut (dyn Any + Send),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        let state = state.downcast_mut().expect("a problem gets its own states back");
        self.linearised(client, state, theta, rng, field);
    }
}

/// A problem with F_c(θ; Z) replaced by F_c(θ*; Z) + ∇F_c(θ*; Z)(θ − θ*).
pub struct Twin {
    problem: Box<dyn Linearised>,
    /// H_c θ − b_c with its root, one a law.
    fields: Vec<Affine>,
    /// Which of them is a client's.
    of: Vec<usize>,
}

impl Twin {
    /// The twin of a problem.
    pub fn new(problem: impl Problem + 'static) -> Self {
        let (n, d) = (problem.clients(), problem.dim());
        let (mut laws, mut fields, mut of) = (Vec::new(), Vec::new(), Vec::with_capacity(n));
        for client in 0..n {
            let law = problem.law(client);
            let known = laws.iter().position(|l| *l == law);
            of.push(known.unwrap_or(laws.len()));
            if known.is_none() {
                laws.push(law);
                let matrix = problem.jacobian(client);
                let mut offset = matrix.apply(problem.optimum());
                let mut field = vec![0.0; d];
                problem.mean_field(client, problem.optimum(), &mut field);
                axpy(-1.0, &field, &mut offset);
                let optimum = problem.optimum().to_vec();
                let root = Affine::new(matrix.clone(), offset.clone());
                fields.push(root.unwrap_or(Affine { matrix, offset, optimum }));
            }
        }
        Self { problem: Box::new(problem), fields, of }
    }
}

impl Facts for Twin {
    fn dim(&self) -> usize {
        self.problem.dim()
    }
    fn clients(&self) -> usize {
        self.problem.clients()
    }
    fn optimum(&self) -> &[f64] {
        self.problem.optimum()
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.fields[self.of[client]].optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.fields[self.of[client]].at(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.problem.jacobian(client)
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.problem.noise_covariance(client)
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        self.problem.noise_map(client, s)
    }
    fn law(&self, client: usize) -> usize {
        self.problem.law(client)
    }
    fn linear(&self) -> bool {
        true
    }
    fn independent(&self) -> bool {
        self.problem.independent()
    }
    fn batch(&self) -> u64 {
        self.problem.batch()
    }
}

impl Problem for Twin {
    type State = Box<dyn Any + Send>;

    fn begin(&self, client: usize, rng: &mut Stream) -> Self::State {
        self.problem.begin(client, rng)
    }

    fn oracle(
        &self,
        client: usize,
        state: &mut Self::State,
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.problem.field(client, state.as_mut(), theta, rng, field);
    }

    fn advance(&self, cohort: Cohort<'_, Self::State>) {
        generic::slices(self, cohort);
    }
}
