//! Softmax regression on a user's records.

use super::loss::{ClassRecords, Softmax, SoftmaxLoss};
use crate::kernel::softmax::ClassTables;
use crate::problem::arrays::{DataFile, Files};
use crate::problem::cost::{CLASSES, ProblemCost, RecordCost, RecordCounts, estimate_features};
use crate::problem::dataset::{ClassWeights, Dataset, FeatureForms};
use crate::problem::fault::{Fault, Faults};
use crate::problem::form::{OracleForm, Visitor};
use crate::problem::penalty::Penalty;
use crate::problem::records::Sampling;
use crate::problem::settings::OnRecords;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Softmax regression on the records of a file: θ has K·d numbers, the d features' weights of one
/// class after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// The records, and how they are partitioned among clients. Labels must be of 2 to 100
    /// classes, which are numbered in the order of their labels.
    #[schemars(example = Dataset::example())]
    pub dataset: Dataset,
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more; or a multiple of the smoothness of the losses without
    /// it. With 0, θ\* exists only if the classes of the records cannot be separated without an error; otherwise
    /// write `optimum = false` in `[record]`. It is not unique, since a common change of the weights of all
    /// classes changes nothing: errors are distances to the set of minimisers.
    #[schemars(extend("minimum" = 0.0), example = 0.1)]
    pub l2: Penalty,
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
    type Instance = Softmax;

    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        Some(&mut self.l2)
    }

    /// Reports what is wrong with the values of these keys, before the file is read.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        self.l2.check(&mut faults);
        faults.at_least_one("batch", self.batch as u64);
        self.class_weights.check(&mut faults);
        faults.0
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: Some(&self.dataset), classes: true, batch: self.batch })
    }

    /// Estimates the operations of an oracle call, of the mean field and of a record from the size of the file,
    /// before it is read; an oracle call is one of the exact oracle if `exact`. Only the contents of the file say how
    /// many classes there are, whose number is assumed.
    fn cost(&self, exact: bool) -> ProblemCost {
        let one = RecordCost::softmax(CLASSES, estimate_features(&self.dataset));
        RecordCounts::of_file(&self.dataset, self.batch, CLASSES).cost(exact, one)
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    /// Reads the records, partitions them among clients, and searches for θ* unless `files` says otherwise. Classes are
    /// numbered among the records of clients, and a label that only the test set has is a fault.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Softmax, Fault> {
        let loaded = self.dataset.load(files, seed, FeatureForms::Dense)?;
        let records = &loaded.records;
        let classes = loaded.records.count_classes()?;
        let loss = SoftmaxLoss { classes, l2: self.l2.value(), batch: self.batch };
        let class_weights = self.class_weights.of_classes(records)?;
        loaded.build_problem(loss, class_weights.as_deref(), files, |part, sets| {
            let labels = records.classes_of(part)?;
            let mut stored: Vec<ClassRecords> = Vec::with_capacity(sets.len());
            for own in sets {
                let own_labels = own.iter().map(|i| labels[*i] as u8).collect();
                stored.push((part.rows(own), own_labels));
            }
            Ok(ClassTables::new(records.dimension(), classes, self.l2.value(), &stored))
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
