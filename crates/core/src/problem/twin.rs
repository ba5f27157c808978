//! Any problem with its oracle linearised at θ* for each draw: a linear problem whose
//! moments close, driven by the same draws. The difference between a run and its twin is
//! the effect of the field's curvature, without the noise that both share.

use super::affine::Affine;
use super::facts::{Facts, forward_facts};
use super::groups::group_clients;
use super::oracle::{Problem, advance_by_oracle};
use crate::kernel::{Cohort, Draws, axpy};
use crate::linalg::Matrix;
use crate::rng::Stream;

/// The problem `P` with F_c(θ; Z) replaced by F_c(θ*; Z) + ∇F_c(θ*; Z)(θ − θ*).
pub struct Twin<P> {
    problem: P,
    /// The mean field H_c θ − b_c, one per distribution.
    fields: Vec<Affine>,
    /// The index of each client's field.
    field_of: Vec<usize>,
}

impl<P: Problem> Twin<P> {
    /// The twin of a problem, whose mean fields are H_c (θ − θ*) + F̄_c(θ*). It makes a d × d matrix for each
    /// distribution. The problem must know its θ*; of an unknown one all fields would be NaN.
    pub fn new(problem: P) -> Self {
        let (first, field_of) = group_clients(problem.clients(), |c| problem.distribution(c));
        let mut fields = Vec::with_capacity(first.len());
        for client in first {
            let matrix = problem.jacobian(client);
            let mut offset = matrix.apply(problem.optimum());
            axpy(-1.0, &problem.field_at_optimum(client), &mut offset);
            fields.push(Affine::new(matrix, offset));
        }
        Self { problem, fields, field_of }
    }
}

impl<P: Problem> Facts for Twin<P> {
    forward_facts!(self.problem, {
        fn noise_covariance(&self, client: usize) -> Matrix;
        fn noise_trace(&self, client: usize) -> f64;
        fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix>;
        fn independent(&self) -> bool;
        fn batch(&self) -> u64;
        fn calls_of_epoch(&self, client: usize) -> Option<f64>;
        fn record_count(&self, client: usize) -> Option<usize>;
    });

    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        self.fields[self.field_of[client]].root()
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.fields[self.field_of[client]].evaluate(theta, field);
    }
    fn linear(&self) -> bool {
        true
    }
}

impl<P: Problem> Problem for Twin<P> {
    type State = P::State;

    fn begin(&self, client: usize, rng: &mut Stream) -> P::State {
        self.problem.begin(client, rng)
    }

    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<P::State>, theta: &[f64], out: &mut [f64]) {
        self.problem.linearised(client, draws, theta, out);
    }

    /// Draws as the problem itself does, since its field is linearised for each draw.
    fn draw(&self, client: usize, draws: &mut Draws<P::State>, records: &mut Vec<usize>) {
        self.problem.draw(client, draws, records);
    }

    /// Takes plain steps by the problem's fused kernel for its linearised field, if it has one, or else by the oracle
    /// of the twin. Extended steps, which have a proximal term or average several oracle calls, are always taken by the
    /// oracle: [`Problem::advance_linearised`] is for plain steps only.
    fn advance(&self, cohort: Cohort<'_, P::State>) {
        let rest = match cohort.extended {
            None => self.problem.advance_linearised(cohort),
            Some(_) => Some(cohort),
        };
        if let Some(cohort) = rest {
            advance_by_oracle(self, cohort);
        }
    }
}
