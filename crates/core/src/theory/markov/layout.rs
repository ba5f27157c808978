//! Where the parts of the joint state and of a client's state are, and the maps between them.

use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::LocalRuns;

/// The positions of the parts of z = (1, e, e', …, c_1, …, c_N, c'_1, …), one e per run, and one c
/// per client and run with control variates; and of a client's y = (1, e, e', …, w, …), w the part of
/// its drift that is constant within the round.
pub(super) struct Layout {
    pub(super) d: usize,
    pub(super) runs: usize,
    clients: usize,
    /// Whether the runs have control variates.
    corrected: bool,
}

impl Layout {
    pub(super) fn new(facts: &dyn Facts, runs: &LocalRuns) -> Self {
        let corrected = runs.is_corrected;
        Self { d: facts.dim(), runs: runs.runs.len(), clients: facts.clients(), corrected }
    }

    pub(super) fn variates(&self) -> usize {
        if self.corrected { self.runs } else { 0 }
    }
    /// The length D of z, the joint state.
    pub(super) fn state_length(&self) -> usize {
        1 + self.d * (self.runs + self.variates() * self.clients)
    }
    /// The length n of y, a client's state.
    pub(super) fn client_length(&self) -> usize {
        1 + self.d * (self.runs + self.variates())
    }
    /// Where e of a run is, in z and in y.
    pub(super) fn error(&self, run: usize) -> usize {
        1 + run * self.d
    }
    /// Where c of a run and a client is in z.
    fn variate(&self, run: usize, client: usize) -> usize {
        1 + self.d * (self.runs + run * self.clients + client)
    }
    /// Where w of a run is in y.
    fn drift(&self, run: usize) -> usize {
        1 + self.d * (self.runs + run)
    }

    /// y of a client from z.
    pub(super) fn begin(&self, client: usize) -> Matrix {
        let mut out = Matrix::zeros(self.client_length(), self.state_length());
        (0..1 + self.runs * self.d).for_each(|i| out[(i, i)] = 1.0);
        for run in 0..self.variates() {
            for i in 0..self.d {
                let row = self.drift(run) + i;
                for other in 0..self.clients {
                    out[(row, self.variate(run, other) + i)] = 1.0 / self.clients as f64;
                }
                out[(row, self.variate(run, client) + i)] -= 1.0;
            }
        }
        out
    }

    /// What z takes from z itself at the end of a round.
    pub(super) fn keep(&self, runs: &LocalRuns) -> Matrix {
        let mut out = Matrix::zeros(self.state_length(), self.state_length());
        out[(0, 0)] = 1.0;
        for (r, run) in runs.runs.iter().enumerate() {
            let error = self.error(r);
            (error..error + self.d).for_each(|i| out[(i, i)] = 1.0 - run.server_step);
            if !self.corrected {
                continue;
            }
            for client in 0..self.clients {
                let update = run.updates.of_client(client);
                let length = update.step * update.steps as f64;
                for i in 0..self.d {
                    let row = self.variate(r, client) + i;
                    out[(row, row)] = 1.0;
                    for other in 0..self.clients {
                        let column = self.variate(r, other) + i;
                        out[(row, column)] -= 1.0 / self.clients as f64;
                    }
                    out[(row, error + i)] = 1.0 / length;
                }
            }
        }
        out
    }

    /// What z takes from a client's y at the end of a round.
    pub(super) fn take(&self, runs: &LocalRuns, client: usize) -> Matrix {
        let mut out = Matrix::zeros(self.state_length(), self.client_length());
        for (r, run) in runs.runs.iter().enumerate() {
            let update = run.updates.of_client(client);
            for i in 0..self.d {
                let error = self.error(r) + i;
                out[(error, error)] = run.server_step / self.clients as f64;
                if self.corrected {
                    let length = update.step * update.steps as f64;
                    out[(self.variate(r, client) + i, error)] = -1.0 / length;
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
                if self.corrected {
                    out[(error + i, self.drift(r) + i)] -= step;
                }
            }
        }
        out
    }
}
