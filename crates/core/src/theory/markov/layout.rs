//! Where the parts of the joint state and of a client's state are, and the maps between them.

use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::theory::moments::{AlgorithmModel, Correction, RunModel};

/// The positions of the parts of z = (1, e, e', …, c_1, …, c_N, c'_1, …), one e per run, and one c
/// per client and corrected run; and of a client's y = (1, e, e', …, w, …), w the part of
/// its drift that is constant within the round.
pub(super) struct Layout {
    pub(super) d: usize,
    pub(super) runs: usize,
    clients: usize,
    /// The number of each run among those with control variates.
    corrected: Vec<Option<usize>>,
}

impl Layout {
    pub(super) fn new(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> Self {
        let mut count = 0;
        let number = |run: &RunModel<'_>| {
            (run.correction != Correction::None).then(|| {
                count += 1;
                count - 1
            })
        };
        let corrected = model.runs.iter().map(number).collect();
        Self { d: facts.dim(), runs: model.runs.len(), clients: facts.clients(), corrected }
    }

    pub(super) fn variates(&self) -> usize {
        self.corrected.iter().flatten().count()
    }
    /// Length of z.
    pub(super) fn state_length(&self) -> usize {
        1 + self.d * (self.runs + self.variates() * self.clients)
    }
    /// Length of y.
    pub(super) fn client_length(&self) -> usize {
        1 + self.d * (self.runs + self.variates())
    }
    /// Where e of a run is, in z and in y.
    pub(super) fn error(&self, run: usize) -> usize {
        1 + run * self.d
    }
    /// Where c of a corrected run and a client is in z.
    fn variate(&self, number: usize, client: usize) -> usize {
        1 + self.d * (self.runs + number * self.clients + client)
    }
    /// Where w of a corrected run is in y.
    fn drift(&self, number: usize) -> usize {
        1 + self.d * (self.runs + number)
    }

    /// y of a client from z.
    pub(super) fn begin(&self, client: usize) -> Matrix {
        let mut out = Matrix::zeros(self.client_length(), self.state_length());
        (0..1 + self.runs * self.d).for_each(|i| out[(i, i)] = 1.0);
        for number in 0..self.variates() {
            for i in 0..self.d {
                let row = self.drift(number) + i;
                for other in 0..self.clients {
                    out[(row, self.variate(number, other) + i)] = 1.0 / self.clients as f64;
                }
                out[(row, self.variate(number, client) + i)] -= 1.0;
            }
        }
        out
    }

    /// What z takes from z itself at the end of a round.
    pub(super) fn keep(&self, model: &AlgorithmModel<'_>) -> Matrix {
        let mut out = Matrix::zeros(self.state_length(), self.state_length());
        out[(0, 0)] = 1.0;
        for (r, run) in model.runs.iter().enumerate() {
            let error = self.error(r);
            (error..error + self.d).for_each(|i| out[(i, i)] = 1.0 - run.server_step);
            let Some(number) = self.corrected[r] else { continue };
            for client in 0..self.clients {
                let update = (run.update)(client);
                let length = update.step * update.steps as f64;
                for i in 0..self.d {
                    let row = self.variate(number, client) + i;
                    out[(row, row)] = 1.0;
                    for other in 0..self.clients {
                        let column = self.variate(number, other) + i;
                        out[(row, column)] -= 1.0 / self.clients as f64;
                    }
                    out[(row, error + i)] = 1.0 / length;
                }
            }
        }
        out
    }

    /// What z takes from a client's y at the end of a round.
    pub(super) fn take(&self, model: &AlgorithmModel<'_>, client: usize) -> Matrix {
        let mut out = Matrix::zeros(self.state_length(), self.client_length());
        for (r, run) in model.runs.iter().enumerate() {
            let update = (run.update)(client);
            for i in 0..self.d {
                let error = self.error(r) + i;
                out[(error, error)] = run.server_step / self.clients as f64;
                if let Some(number) = self.corrected[r] {
                    let length = update.step * update.steps as f64;
                    out[(self.variate(number, client) + i, error)] = -1.0 / length;
                }
            }
        }
        out
    }

    /// y after an oracle call from y before it: e ← e − γ (A e + F_c(θ*; Z) + w).
    pub(super) fn step(&self, steps: &[f64], matrix: &Matrix, offset: &[f64]) -> Matrix {
        let mut out = Matrix::identity(self.client_length());
        for (r, step) in steps.iter().enumerate() {
            let error = self.error(r);
            for i in 0..self.d {
                (0..self.d).for_each(|j| out[(error + i, error + j)] -= step * matrix[(i, j)]);
                out[(error + i, 0)] -= step * offset[i];
                if let Some(number) = self.corrected[r] {
                    out[(error + i, self.drift(number) + i)] -= step;
                }
            }
        }
        out
    }
}
