//! Ridge regression on a user's records: f_c(θ) = ½ E (xᵀθ − y)² + λ/2 ‖θ‖²
//! over client c's records. The oracle draws a batch with replacement.

use super::affine::{Affine, batch_covariance, batch_noise, half_square};
use super::arrays::{DataFile, Files};
use super::dataset::{ClientRecords, Dataset};
use super::{Facts, Fault, Faults, Problem, RecordMetrics, RecordsOf};
use crate::kernel::{axpy, dot};
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

    fn record_metrics(&self) -> RecordMetrics {
        RecordMetrics { loss: true, accuracy: false, test: self.dataset.test.is_some() }
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    fn build(&self, seed: u64, files: &dyn Files) -> Result<LeastSquares, Fault> {
        let ClientRecords { records, test, held, shares } = self.dataset.load(files, seed)?;
        let labels = records.numbers()?;
        let d = records.dimension();
        let singular = |who: String| {
            Fault::new(
                "l2",
                format!(
                    "{who} records do not have full rank: a positive λ makes the system regular"
                ),
            )
        };
        let mut clients = Vec::with_capacity(held.len());
        for (c, shard) in held.iter().enumerate() {
            let mut rows = Vec::with_capacity(shard.len() * (d + 1));
            let mut matrix = Matrix::identity(d).scaled(self.l2);
            let mut offset = vec![0.0; d];
            for &i in shard {
                let weight = 1.0 / shard.len() as f64;
                matrix.add_outer(weight, records.row(i), records.row(i));
                axpy(weight * labels[i], records.row(i), &mut offset);
                rows.extend_from_slice(records.row(i));
                rows.push(labels[i]);
            }
            let mean =
                Affine::new(matrix, offset).map_err(|_| singular(format!("client {c}'s")))?;
            clients.push(RecordClient { rows, mean });
        }
        let means = clients.iter().map(|c: &RecordClient| &c.mean);
        let mean =
            Affine::weighted_mean(means, shares.as_deref()).map_err(|_| singular("the".into()))?;
        let mut test_rows = Vec::new();
        if let Some(test) = test {
            for (i, label) in test.numbers()?.into_iter().enumerate() {
                test_rows.extend_from_slice(test.row(i));
                test_rows.push(label);
            }
        }
        Ok(LeastSquares { l2: self.l2, batch: self.batch, clients, shares, test_rows, mean })
    }
}

/// The records and exact facts of one client.
struct RecordClient {
    /// Rows (x, y) of d + 1 numbers.
    rows: Vec<f64>,
    /// E xxᵀ + λI and E y x.
    mean: Affine,
}

/// An instance.
pub struct LeastSquares {
    l2: f64,
    batch: usize,
    clients: Vec<RecordClient>,
    shares: Option<Vec<f64>>,
    /// The records of the test set, rows (x, y) of d + 1 numbers.
    test_rows: Vec<f64>,
    mean: Affine,
}

impl LeastSquares {
    /// The records (x, y) of a client.
    fn records(&self, client: usize) -> impl ExactSizeIterator<Item = (&[f64], f64)> {
        self.pairs(&self.clients[client].rows)
    }

    /// The records (x, y) in these rows.
    fn pairs<'a>(&self, rows: &'a [f64]) -> impl ExactSizeIterator<Item = (&'a [f64], f64)> {
        let d = self.dim();
        rows.chunks_exact(d + 1).map(move |row| (&row[..d], row[d]))
    }

    /// The mean of ½ (xᵀθ − y)² over these rows.
    fn mean_loss(&self, rows: &[f64], theta: &[f64]) -> f64 {
        let records = self.pairs(rows);
        let n = records.len() as f64;
        let error = |(x, y): (&[f64], f64)| dot(theta, x) - y;
        records.map(error).fold(0.0, |sum, error| sum + 0.5 * error * error) / n
    }
}

impl Facts for LeastSquares {
    fn clients(&self) -> usize {
        self.clients.len()
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.shares.as_deref()
    }
    fn optimum(&self) -> &[f64] {
        &self.mean.optimum
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.clients[client].mean.optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.clients[client].mean.evaluate(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].mean.matrix.clone()
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        let records = self.records(client).map(|(x, y)| (x, dot(self.optimum(), x) - y));
        batch_covariance(self.dim(), self.batch, records)
    }
    /// λ adds no noise.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let records = self.records(client).map(|(x, y)| {
            let mut w = x.to_vec();
            w.push(dot(self.optimum(), x) - y);
            (x, w)
        });
        Some(batch_noise(self.batch, s, records))
    }
    fn draws(&self) -> usize {
        (0..self.clients.len()).map(|c| self.records(c).len()).max().unwrap_or(1)
    }
    fn linear(&self) -> bool {
        true
    }
    fn batch(&self) -> u64 {
        self.batch as u64
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        let client =
            |sum, c: usize| sum + self.share(c) * self.mean_loss(&self.clients[c].rows, theta);
        match of {
            RecordsOf::Clients => Some((0..self.clients.len()).fold(0.0, client)),
            RecordsOf::Test if self.test_rows.is_empty() => None,
            RecordsOf::Test => Some(self.mean_loss(&self.test_rows, theta)),
        }
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
        let d = theta.len();
        let rows = &self.clients[client].rows;
        let records = rows.len() / (d + 1);
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.l2 * theta;
        }
        for _ in 0..self.batch {
            let row = &rows[rng.index(records) * (d + 1)..][..d + 1];
            let error = dot(theta, &row[..d]) - row[d];
            axpy(error / self.batch as f64, &row[..d], field);
        }
    }
}
