//! Ridge regression on a user's records: f_c(θ) = ½ E (xᵀθ − y)² + λ/2 ‖θ‖²
//! over client c's records. The oracle draws a batch with replacement.

use super::affine::Affine;
use super::arrays::{DataFile, Files};
use super::cost::{ProblemCost, RecordCost, RecordCounts, estimate_features};
use super::dataset::{ClientRecords, Dataset};
use super::fault::{Fault, Faults};
use super::form::{OracleForm, Visitor};
use super::records::{RecordLoss, RecordProblem, Sampling};
use super::settings::OnRecords;
use crate::kernel::axpy;
use crate::kernel::records::{Link, RecordTables};
use crate::linalg::{DD_EPSILON, Dd, Matrix};
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
    /// B, the number of records drawn for each gradient; 1 or more.
    #[serde(default = "crate::problem::defaults::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
    /// How the records of a gradient are drawn.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = Sampling::Reshuffled, extend("default" = "with-replacement"))]
    pub sampling: Sampling,
}

impl super::settings::Settings for Settings {
    type Instance = LeastSquares;

    /// Reports what is wrong with the values of these keys, before the file is read.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        faults.non_negative("l2", self.l2);
        faults.at_least_one("batch", self.batch as u64);
        faults.0
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: Some(&self.dataset), classes: false, batch: self.batch })
    }

    /// Estimates the operations of an oracle call, of the mean field and of a record from the size of the file,
    /// before it is read; an oracle call is one of the exact oracle if `exact`.
    fn cost(&self, exact: bool) -> ProblemCost {
        let one = RecordCost::least_squares(estimate_features(&self.dataset));
        RecordCounts::of_file(&self.dataset, self.batch, 1).cost(exact, one)
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    /// Reads the records, partitions them among clients, and solves the linear systems of the clients and
    /// of their mean for θ_c* and θ*.
    ///
    /// # Errors
    /// A fault of the file or of the partition, or of `l2` where a system is singular: without a penalty each client's
    /// records must have full rank.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<LeastSquares, Fault> {
        let loaded = self.dataset.load_with_numbers(files, seed)?;
        let ClientRecords { records, held, shares, .. } = &loaded;
        let labels = records.label_numbers()?;
        let d = records.dimension();
        let mut fields = Vec::with_capacity(held.len());
        for (c, own) in held.iter().enumerate() {
            let mut matrix = Matrix::identity(d).scaled(self.l2);
            let mut offset = vec![0.0; d];
            let weight = 1.0 / own.len() as f64;
            for &i in own {
                matrix.add_outer(weight, records.row(i), records.row(i));
                axpy(weight * labels[i], records.row(i), &mut offset);
            }
            let field = Affine::new(matrix, offset);
            fields.push(field.map_err(|_| singular_system(&format!("client {c}'s")))?);
        }
        let mean = Affine::weighted_mean(fields.iter(), shares.as_deref())
            .map_err(|_| singular_system("the"))?;
        let loss = RidgeLoss { l2: self.l2, batch: self.batch, fields, mean };
        // `part` is the records of the clients, with a set for each, and then the test set, which is one set.
        loaded.build_problem(loss, None, files, |part, sets| {
            let labels = part.label_numbers()?;
            let mut rows = Vec::with_capacity(sets.len());
            let mut targets = Vec::with_capacity(sets.len());
            for set in sets {
                rows.push(part.rows(set));
                targets.push(set.iter().map(|&i| labels[i]).collect());
            }
            Ok(RecordTables::new(d, self.l2, Link::Linear { targets }, &rows))
        })
    }

    /// Builds the instance and calls the visitor with it, in this form of its oracle, which draws records as `sampling`
    /// says.
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        self.sampling.visit(self.build(seed, files)?, form, visitor)
    }
}

/// The fault that records do not determine a minimiser without a penalty. `whose` says whose records they
/// are: "client 3's", or "the" for those of all clients.
fn singular_system(whose: &str) -> Fault {
    let message =
        format!("{whose} records do not have full rank: a positive λ makes the system regular");
    Fault::new("l2", message)
}

/// An instance on dense records.
pub type LeastSquares = RecordProblem<RidgeLoss, RecordTables>;

/// The loss ½ (xᵀθ − y)², and the mean fields, which are affine.
pub struct RidgeLoss {
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    l2: f64,
    /// B, the number of records of an oracle call.
    batch: usize,
    /// The mean field (E xxᵀ + λI)θ − E y x of each client.
    fields: Vec<Affine>,
    /// The mean of the clients' fields.
    mean: Affine,
}

/// The number that is kept of a record at a point θ is its residual xᵀθ − y; the weight ∂²ℓ/∂u² is 1.
impl RecordLoss<RecordTables> for RidgeLoss {
    const LARGEST_WEIGHT: f64 = 1.0;
    const SELF_CONCORDANCE: f64 = 0.0;

    fn l2(&self) -> f64 {
        self.l2
    }
    fn batch(&self) -> usize {
        self.batch
    }
    fn affine(&self) -> Option<(&[Affine], &Affine)> {
        Some((&self.fields, &self.mean))
    }
    fn record_numbers(&self, records: &RecordTables, set: usize, theta: &[f64]) -> Vec<f64> {
        records.errors(set, theta)
    }
    fn residuals(&self, _: &RecordTables, _set: usize, at: &[f64]) -> Vec<f64> {
        at.to_vec()
    }
    /// Replaces the product u = xᵀθ of a record in double-double by its residual u − y, and returns a bound
    /// on the error of the residual, if the error of u is at most `error`.
    fn extended_numbers(
        &self,
        records: &RecordTables,
        set: usize,
        record: usize,
        u: &mut [Dd],
        error: f64,
    ) -> f64 {
        // At u = 0 the residual is −y, exactly.
        let target = -records.error(set, record, 0.0);
        let rounding = DD_EPSILON * (u[0].hi.abs() + target.abs());
        u[0] = u[0].plus(-target);
        error + 2.0 * rounding
    }
    fn weight(&self, _at: &[f64], _i: usize, _k: usize, _l: usize) -> f64 {
        1.0
    }
    fn losses(&self, records: &RecordTables, set: usize, theta: &[f64]) -> Vec<f64> {
        records.errors(set, theta).iter().map(|error| 0.5 * error * error).collect()
    }
}
