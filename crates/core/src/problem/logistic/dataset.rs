//! Logistic regression on a user's records.

use super::loss::{Logistic, Loss, class_of_label, dense_tables};
use super::sparse::SparseLogistic;
use crate::kernel::SparseRecords;
use crate::problem::arrays::{DataFile, Files};
use crate::problem::cost::{ProblemCost, RecordCost, RecordCounts, estimate_features};
use crate::problem::dataset::{ClassWeights, ClientRecords, Dataset, FeatureForms};
use crate::problem::fault::{Fault, Faults};
use crate::problem::form::{OracleForm, Visitor};
use crate::problem::penalty::Penalty;
use crate::problem::records::Sampling;
use crate::problem::settings::OnRecords;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Logistic regression on the records of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// The records, and how they are partitioned among clients. Labels must be of two
    /// classes; the greater is +1.
    #[schemars(example = Dataset::example())]
    pub dataset: Dataset,
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more; or a multiple of the smoothness of the losses without
    /// it. With 0, θ\* exists only if the classes of the records cannot be separated without an error; otherwise
    /// write `optimum = false` in `[record]`. Where records do not have full rank it is not unique, and errors
    /// are distances to the set of minimisers.
    #[schemars(extend("minimum" = 0.0), example = 0.1)]
    pub l2: Penalty,
    /// m, subtracted from the margin of each record; the usual loss has 0.
    #[serde(default)]
    #[schemars(example = 0.0)]
    pub margin: f64,
    /// How much the loss of a record counts in the objective, by its class: client c minimises the mean
    /// of w(class) times the loss over its records. θ\*, distances to it, `suboptimality` and the train
    /// losses are those of this objective. Test losses and all accuracies are not weighted, as those of
    /// scikit-learn are not.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = ClassWeights::Balanced, extend("default" = "equal"))]
    pub class_weights: ClassWeights,
    /// B, the number of records drawn for each gradient; 1 or more.
    #[serde(default = "crate::problem::defaults::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
    /// How the records of a gradient are drawn.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = Sampling::Reshuffled, extend("default" = "with-replacement"))]
    pub sampling: Sampling,
}

impl crate::problem::settings::Settings for Settings {
    type Instance = Logistic;

    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        Some(&mut self.l2)
    }

    /// Reports what is wrong with the values of these keys, before the file is read.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        self.l2.check(&mut faults);
        let margin = self.margin;
        faults.require(margin.is_finite(), "margin", || format!("must be finite, not {margin}"));
        faults.at_least_one("batch", self.batch as u64);
        self.class_weights.check(&mut faults);
        faults.0
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: Some(&self.dataset), classes: true, batch: self.batch })
    }

    /// Estimates the operations of an oracle call, of the mean field and of a record from the size of the file,
    /// before it is read; an oracle call is one of the exact oracle if `exact`. Whether features are sparse is
    /// guessed.
    fn cost(&self, exact: bool) -> ProblemCost {
        let features = estimate_features(&self.dataset);
        let one = if self.dataset.is_sparse() {
            RecordCost::sparse_logistic(features)
        } else {
            RecordCost::logistic(features)
        };
        RecordCounts::of_file(&self.dataset, self.batch, 1).cost(exact, one)
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    /// Builds the instance with dense features, even where the file's are sparse.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Logistic, Fault> {
        self.build_dense(&self.dataset.load(files, seed, FeatureForms::Dense)?, files)
    }

    /// Builds the instance with dense or sparse features, as the settings and the file decide, in this form
    /// of its oracle, and calls the visitor with it.
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        let loaded = self.dataset.load(files, seed, FeatureForms::DenseOrSparse)?;
        match loaded.records.sparse() {
            Some(rows) => {
                let problem = self.build_sparse(&loaded, rows.dim(), files)?;
                self.sampling.visit(problem, form, visitor)
            }
            None => self.sampling.visit(self.build_dense(&loaded, files)?, form, visitor),
        }
    }
}

impl Settings {
    /// The loss with the parameters that these keys give.
    fn loss(&self) -> Loss {
        Loss { l2: self.l2.value(), margin: self.margin, batch: self.batch }
    }

    /// The instance on records that were loaded with dense features. The two classes are those of the clients'
    /// records; a label that only the test set has is a fault.
    fn build_dense(&self, loaded: &ClientRecords, files: &dyn Files) -> Result<Logistic, Fault> {
        let loss = self.loss();
        let records = &loaded.records;
        records.check_two_classes()?;
        let class_weights = self.class_weights.of_classes(records)?;
        loaded.build_problem(loss, class_weights.as_deref(), files, |part, sets| {
            let signs = records.signs_of(part)?;
            // The rows y x of each set, one after the other.
            let mut signed_rows = Vec::with_capacity(sets.len());
            for own in sets {
                let mut rows = Vec::with_capacity(own.len() * records.dimension());
                for i in own {
                    rows.extend(part.row(*i).iter().map(|x| signs[*i] * x));
                }
                signed_rows.push(rows);
            }
            let tables = dense_tables(records.dimension(), &loss, &signed_rows);
            Ok(tables.with_labels(labels_of_sets(&signs, sets)))
        })
    }

    /// The instance on records that were loaded with `d` sparse features, if the vectors of d numbers of all clients
    /// fit in memory during a run. The two classes are those of the clients' records; a label that only the test set
    /// has is a fault.
    pub(in crate::problem) fn build_sparse(
        &self,
        loaded: &ClientRecords,
        d: usize,
        files: &dyn Files,
    ) -> Result<SparseLogistic, Fault> {
        let loss = self.loss();
        let records = &loaded.records;
        records.check_two_classes()?;
        self.dataset.check_vectors(loaded.clients, d)?;
        let class_weights = self.class_weights.of_classes(records)?;
        loaded.build_problem(loss, class_weights.as_deref(), files, |part, sets| {
            let signs = records.signs_of(part)?;
            // The rows y x of each set.
            let mut signed_rows = Vec::with_capacity(sets.len());
            if let Some(rows) = part.sparse() {
                for own in sets {
                    signed_rows.push(rows.selected(own.iter().map(|&i| (i, signs[i]))));
                }
            }
            Ok(SparseRecords::new(loss, signed_rows).with_labels(labels_of_sets(&signs, sets)))
        })
    }
}

/// The class, 0 or 1, of each record of each set. `signs` has the label of each record, 1 or −1, and a set lists the
/// records that it has.
fn labels_of_sets(signs: &[f64], sets: &[Vec<usize>]) -> Vec<Vec<u8>> {
    sets.iter().map(|own| own.iter().map(|i| class_of_label(signs[*i])).collect()).collect()
}
