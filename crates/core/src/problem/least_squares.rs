//! Ridge regression on a user's records: f_c(θ) = ½ E (xᵀθ − y)² + λ/2 ‖θ‖²
//! over client c's records. The oracle draws a batch with replacement.

use super::affine::{Affine, batch_covariance, batch_noise, half_square};
use super::arrays::{DataFile, Files};
use super::dataset::Dataset;
use super::{Facts, Fault, Faults, Problem, generic};
use crate::kernel::records::{Link, RecordTables};
use crate::kernel::{Cohort, InstructionSet, axpy};
use crate::linalg::Matrix;
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ridge regression on the records of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// The records, and how they are partitioned among clients.
    #[schemars(example = Dataset::example())]
    pub dataset: Dataset,
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more; 0 needs records of full rank at every client.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 0.1)]
    pub l2: f64,
    /// B, the number of records drawn with replacement in each oracle call; 1 or more.
    #[serde(default = "one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
}

fn one() -> usize {
    1
}

impl super::Settings for Settings {
    type Instance = LeastSquares;

    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        faults.non_negative("l2", self.l2);
        faults.at_least_one("batch", self.batch as u64);
        faults.0
    }

    fn uses_seed(&self) -> bool {
        self.dataset.uses_seed()
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    fn build(&self, seed: u64, files: &dyn Files) -> Result<LeastSquares, Fault> {
        let records = self.dataset.open(files)?;
        let labels = records.numbers()?;
        let shards = self.dataset.partition(&records, seed)?;
        let d = records.dimension();
        let singular = |who: String| {
            Fault::new(
                "l2",
                format!(
                    "{who} records do not have full rank: a positive λ makes the system regular"
                ),
            )
        };
        let (mut clients, mut sets, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (c, shard) in shards.iter().enumerate() {
            let mut rows = Vec::with_capacity(shard.len() * d);
            let mut own = Vec::with_capacity(shard.len());
            let mut matrix = Matrix::identity(d).scaled(self.l2);
            let mut offset = vec![0.0; d];
            for &i in shard {
                let weight = 1.0 / shard.len() as f64;
                matrix.add_outer(weight, records.row(i), records.row(i));
                axpy(weight * labels[i], records.row(i), &mut offset);
                rows.extend_from_slice(records.row(i));
                own.push(labels[i]);
            }
            let mean = Affine::new(matrix, offset);
            clients.push(mean.map_err(|_| singular(format!("client {c}'s")))?);
            sets.push(rows);
            targets.push(own);
        }
        let mean = Affine::mean(clients.iter()).map_err(|_| singular("the".into()))?;
        let tables = RecordTables::new(d, self.l2, Link::Linear { targets }, &sets);
        Ok(LeastSquares { batch: self.batch, tables, clients, mean })
    }
}

/// An instance.
pub struct LeastSquares {
    batch: usize,
    tables: RecordTables,
    /// E xxᵀ + λI and E y x of each client.
    clients: Vec<Affine>,
    mean: Affine,
}

impl Facts for LeastSquares {
    fn clients(&self) -> usize {
        self.clients.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.mean.optimum
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.clients[client].optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.clients[client].evaluate(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].matrix.clone()
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        let errors = self.tables.errors(client, self.optimum());
        batch_covariance(self.batch, self.tables.rows(client), &errors)
    }
    /// λ adds no noise.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let errors = self.tables.errors(client, self.optimum());
        let records = self.tables.rows(client).iter().zip(errors).map(|(x, error)| {
            let mut w = x.to_vec();
            w.push(error);
            (x, w)
        });
        Some(batch_noise(self.batch, s, records))
    }
    fn draws(&self) -> usize {
        (0..self.clients.len()).map(|c| self.tables.records(c)).max().unwrap_or(1)
    }
    fn linear(&self) -> bool {
        true
    }
    fn batch(&self) -> u64 {
        self.batch as u64
    }
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        Some(half_square(&self.mean.matrix, theta, self.optimum()))
    }
}

impl Problem for LeastSquares {
    type State = ();

    #[inline(always)]
    fn oracle(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.tables.field(client, theta, self.batch, |records| rng.index(records), field);
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        let rest = match self.batch {
            1 => self.tables.advance_on(InstructionSet::best(), cohort),
            _ => Some(cohort),
        };
        if let Some(cohort) = rest {
            generic::advance(self, cohort);
        }
    }
}
