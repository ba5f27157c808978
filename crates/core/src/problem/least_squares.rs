//! Ridge regression on a user's records: f_c(θ) = ½ E (xᵀθ − y)² + λ/2 ‖θ‖²
//! over client c's records. The oracle draws a batch with replacement.

use super::affine::Affine;
use super::arrays::{DataFile, Files};
use super::cost::{ProblemCost, RecordCost, RecordCounts, estimate_features};
use super::dataset::{ClientRecords, Dataset, Records};
use super::fault::{Fault, Faults};
use super::form::{OracleForm, Visitor};
use super::penalty::Penalty;
use super::records::{RecordLoss, RecordProblem, RecordSets as _, Sampling};
use super::settings::OnRecords;
use crate::kernel::records::{Link, RecordTables};
use crate::kernel::{axpy, difference};
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
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more; or a multiple of the smoothness of the losses without
    /// it. With 0 the minimiser need not be unique: where the records of all clients together do not have full
    /// rank, errors are distances to the set of minimisers.
    #[serde(default)]
    #[schemars(extend("minimum" = 0.0), example = 0.1)]
    pub l2: Penalty,
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

    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        Some(&mut self.l2)
    }

    /// Reports what is wrong with the values of these keys, before the file is read.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        self.l2.check(&mut faults);
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

    /// Reads the records, partitions them among clients, and solves the linear system of the mean of the clients for θ*.
    ///
    /// # Errors
    /// A fault of the file or of the partition, or of `l2` where the system has no solution in double precision.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<LeastSquares, Fault> {
        let loaded = self.dataset.load_with_numbers(files, seed)?;
        let loss = self.loss(&loaded)?;
        let d = loaded.records.dimension();
        // `part` is the records of the clients, with a set for each, and then the test set, which is one set.
        loaded.build_problem(loss, None, files, |part, sets| {
            let labels = part.label_numbers()?;
            let mut rows = Vec::with_capacity(sets.len());
            let mut targets = Vec::with_capacity(sets.len());
            for set in sets {
                rows.push(part.rows(set));
                targets.push(set.iter().map(|&i| labels[i]).collect());
            }
            Ok(RecordTables::new(d, self.l2.value(), Link::Linear { targets }, &rows))
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

impl Settings {
    /// The loss with the mean fields of the sets of records that these clients hold.
    fn loss(&self, loaded: &ClientRecords) -> Result<RidgeLoss, Fault> {
        let ClientRecords { records, held, .. } = loaded;
        let shares = loaded.set_shares();
        let labels = records.label_numbers()?;
        let d = records.dimension();
        // With a penalty the matrix of a client is regular and known in any case: results have the bits of its products.
        let mut fields = Vec::with_capacity(held.len());
        for own in held {
            let l2 = self.l2.value();
            let has_matrix = l2 > 0.0 || own.len() >= d;
            fields.push(has_matrix.then(|| mean_field(records, &labels, own, l2)));
        }
        let all: usize = held.iter().map(Vec::len).sum();
        let matrices: Vec<&Affine> = fields.iter().flatten().collect();
        let mean = if matrices.len() == held.len() {
            Some(Affine::weighted_mean(matrices.into_iter(), shares))
        } else if all >= d {
            let mut mean = Affine::new(Matrix::zeros(d, d), vec![0.0; d]);
            for (c, own) in held.iter().enumerate() {
                let share = shares.map_or(1.0 / held.len() as f64, |shares| shares[c]);
                add_records(records, &labels, own, share, &mut mean);
            }
            Some(mean)
        } else {
            None
        };
        Ok(RidgeLoss { l2: self.l2.value(), batch: self.batch, fields, mean })
    }
}

/// The mean field (E xxᵀ + λI)θ − E y x over records of these numbers, where λ is `l2`.
fn mean_field(records: &Records, labels: &[f64], own: &[usize], l2: f64) -> Affine {
    let d = records.dimension();
    let mut field = Affine::new(Matrix::identity(d).scaled(l2), vec![0.0; d]);
    add_records(records, labels, own, 1.0, &mut field);
    field
}

/// Adds `share` times (E xxᵀ)θ − E y x, over records of these numbers, to an affine field.
fn add_records(records: &Records, labels: &[f64], own: &[usize], share: f64, field: &mut Affine) {
    let weight = share / own.len() as f64;
    for &i in own {
        field.matrix.add_outer(weight, records.row(i), records.row(i));
        axpy(weight * labels[i], records.row(i), &mut field.offset);
    }
}

/// An instance on dense records.
pub type LeastSquares = RecordProblem<RidgeLoss, RecordTables>;

/// The loss ½ (xᵀθ − y)², and the mean fields, which are affine.
pub struct RidgeLoss {
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    l2: f64,
    /// B, the number of records of an oracle call.
    batch: usize,
    /// The mean field (E xxᵀ + λI)θ − E y x of each set of records that clients hold, by its matrix; `None` of a set of
    /// fewer records than features, if there is no penalty: its records are the shorter way to the field.
    fields: Vec<Option<Affine>>,
    /// The mean of the clients' fields by its matrix; `None` if all clients together have fewer records than features and
    /// there is no penalty.
    mean: Option<Affine>,
}

/// The number that is kept of a record at a point θ is its residual xᵀθ − y; the weight ∂²ℓ/∂u² is 1.
impl RecordLoss<RecordTables> for RidgeLoss {
    const LARGEST_WEIGHT: f64 = 1.0;
    const SELF_CONCORDANCE: f64 = 0.0;
    const AFFINE: bool = true;

    fn l2(&self) -> f64 {
        self.l2
    }
    fn batch(&self) -> usize {
        self.batch
    }
    fn affine(&self, set: usize) -> Option<&Affine> {
        self.fields[set].as_ref()
    }
    fn mean_affine(&self) -> Option<&Affine> {
        self.mean.as_ref()
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
    /// ½ (u − u*)² of each record of a set, with u and u* its products with θ and θ*.
    fn divergences(
        &self,
        records: &RecordTables,
        set: usize,
        _at: &[f64],
        [theta, star]: [&[f64]; 2],
    ) -> Vec<f64> {
        let apart = records.products(set, &difference(theta, star));
        apart.iter().map(|change| 0.5 * change * change).collect()
    }
}
