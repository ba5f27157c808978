//! Where the parts of the joint state and of a client's state are, and the maps between them. γ is the step size of a
//! run, h its number of local steps, γ_g its server step, and e_k the error at the end of client k's local steps.

use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::LocalRuns;

/// The order of the numbers of the joint state z = (1, e, e', …, c_1, …, c_N, c'_1, …), with one error e = θ − θ* for
/// each run, and one control variate c for each run and client if runs have them; and of a client's state
/// y = (1, e, e', …, w, …), with one w for each run, the part of its drift that is constant within the round.
pub(super) struct Layout {
    /// The dimension d.
    pub(super) d: usize,
    /// The number of runs.
    pub(super) runs: usize,
    /// The number of clients, N.
    clients: usize,
    /// Whether the runs have control variates.
    corrected: bool,
}

impl Layout {
    /// The layout of these runs on a problem.
    pub(super) fn new(facts: &dyn Facts, runs: &LocalRuns) -> Self {
        let corrected = runs.is_corrected;
        Self { d: facts.dim(), runs: runs.runs.len(), clients: facts.clients(), corrected }
    }

    /// The number of runs that have control variates: all or none.
    fn runs_with_variates(&self) -> usize {
        if self.corrected { self.runs } else { 0 }
    }
    /// The length D of z, the joint state.
    pub(super) fn state_length(&self) -> usize {
        1 + self.d * (self.runs + self.runs_with_variates() * self.clients)
    }
    /// The length n of y, a client's state.
    pub(super) fn client_length(&self) -> usize {
        1 + self.d * (self.runs + self.runs_with_variates())
    }
    /// The place of the first number of e of a run, in z and in y.
    pub(super) fn error(&self, run: usize) -> usize {
        1 + run * self.d
    }
    /// The place in z of the first number of c of a run and a client.
    fn variate(&self, run: usize, client: usize) -> usize {
        1 + self.d * (self.runs + run * self.clients + client)
    }
    /// The place in y of the first number of w of a run.
    fn drift(&self, run: usize) -> usize {
        1 + self.d * (self.runs + run)
    }

    /// The map from z to the y in which a client begins its local steps, n × D: e of each run, and
    /// w = N⁻¹ Σ_j c_j − c_k of client k.
    pub(super) fn begin(&self, client: usize) -> Matrix {
        let mut out = Matrix::zeros(self.client_length(), self.state_length());
        (0..1 + self.runs * self.d).for_each(|i| out[(i, i)] = 1.0);
        for run in 0..self.runs_with_variates() {
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

    /// The map K from z before a round to the part of z after it that does not depend on the clients' local steps,
    /// D × D: (1 − γ_g) e, and c_k − N⁻¹ Σ_j c_j + e/(γh), of which local steps subtract e_k/(γh) ([`Self::take`]).
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

    /// The map from the y in which a client ends its local steps to what it adds to z after the round, D × n:
    /// γ_g e_k/N to the error of each run, and −e_k/(γh) to its own control variate.
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

    /// The map of a client's y over a local step, n × n: e ← e − γ (A e + F_c(θ*; Z) + w) in each run, where `steps`
    /// are the γ of the runs, `matrix` is A = A(Z), and `offset` is F_c(θ*; Z) of the draw Z, which all runs share. w
    /// is 0 without control variates.
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
