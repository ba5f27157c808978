//! Ridge regression on a user's records: f_c(θ) = ½ E (xᵀθ − y)² + λ/2 ‖θ‖²
//! over client c's records. The oracle draws a batch with replacement.

use super::affine::{Affine, batch_covariance, batch_noise, batch_trace, half_square};
use super::arrays::{DataFile, Files};
use super::dataset::{ClientRecords, Dataset, Records};
use super::{
    DrawSmoothness, Facts, Fault, Faults, Problem, RecordMetrics, RecordSizes, RecordsOf, generic,
};
use crate::kernel::records::{Link, RecordTables};
use crate::kernel::{Cohort, CohortSteps, InstructionSet, axpy, dot};
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
    #[serde(default = "super::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
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

    fn batch(&self) -> u64 {
        self.batch as u64
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
        let (mut clients, mut sets, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (c, shard) in held.iter().enumerate() {
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
        let mean = Affine::weighted_mean(clients.iter(), shares.as_deref());
        let mean = mean.map_err(|_| singular("the".into()))?;
        let of_test = |test: Records| {
            let targets = test.numbers()?;
            let rows = (0..targets.len()).flat_map(|i| test.row(i)).copied().collect();
            let link = Link::Linear { targets: vec![targets] };
            Ok(RecordTables::new(d, self.l2, link, &[rows]))
        };
        let test = test.map(of_test).transpose()?;
        let tables = RecordTables::new(d, self.l2, Link::Linear { targets }, &sets);
        Ok(LeastSquares { batch: self.batch, l2: self.l2, tables, clients, shares, test, mean })
    }
}

/// An instance.
pub struct LeastSquares {
    batch: usize,
    /// λ.
    l2: f64,
    tables: RecordTables,
    /// E xxᵀ + λI and E y x of each client.
    clients: Vec<Affine>,
    shares: Option<Vec<f64>>,
    /// The records of the test set, if there is one.
    test: Option<RecordTables>,
    mean: Affine,
}

/// The mean of half the squares of these errors.
fn mean_loss(errors: &[f64]) -> f64 {
    errors.iter().fold(0.0, |sum, error| sum + 0.5 * error * error) / errors.len() as f64
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
        &self.clients[client].optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.clients[client].evaluate(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].matrix.clone()
    }
    fn symmetric(&self) -> bool {
        true
    }
    fn jacobian_product(&self, weights: &[(usize, f64)], _: bool, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (client, weight) in weights {
            self.clients[*client].matrix.add_product(*weight, false, x, out);
        }
    }
    fn product_effort(&self) -> f64 {
        (self.clients.len() * self.dim() * self.dim()) as f64
    }
    fn noise_trace(&self, client: usize) -> f64 {
        let errors = self.tables.errors(client, self.optimum());
        batch_trace(self.batch, self.tables.rows(client), &errors)
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
        self.held_records().map_or(1, |held| held.largest)
    }
    fn linear(&self) -> bool {
        true
    }
    fn draw_smoothness(&self) -> DrawSmoothness {
        let rows = (0..self.clients.len()).flat_map(|c| self.tables.rows(c).iter());
        let longest = rows.map(|x| dot(x, x)).fold(0.0, f64::max);
        DrawSmoothness::AtMost(self.l2 + longest)
    }
    fn batch(&self) -> u64 {
        self.batch as u64
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        let client = |sum, c: usize| sum + self.share(c) * mean_loss(&self.tables.errors(c, theta));
        match of {
            RecordsOf::Clients => Some((0..self.clients.len()).fold(0.0, client)),
            RecordsOf::Test => Some(mean_loss(&self.test.as_ref()?.errors(0, theta))),
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
        self.tables.field(client, theta, self.batch, |records| rng.index(records), field);
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        let rest = match self.batch {
            1 => self.tables.advance_on(InstructionSet::best(), cohort, None),
            _ => Some(cohort),
        };
        if let Some(cohort) = rest {
            generic::advance(self, cohort);
        }
    }

    fn held_records(&self) -> Option<RecordSizes> {
        let counts = (0..self.clients.len()).map(|client| self.tables.records(client));
        Some(RecordSizes::of(self.dim(), counts))
    }

    fn advance_together(&self, runs: Vec<CohortSteps<'_, ()>>) {
        generic::advance_records_together(self, (&self.tables, self.batch), runs);
    }
}
