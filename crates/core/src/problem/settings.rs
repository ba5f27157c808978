//! Settings that describe a problem, and what they say of an instance before it is built.

use super::arrays::{DataFile, Files};
use super::cost::{self, ProblemCost};
use super::dataset::{ClientWeights, Dataset};
use super::fault::Fault;
use super::form::{OracleForm, Visitor};
use super::oracle::Problem;
use super::penalty::Penalty;
use super::size::InstanceSize;

/// What settings say of the records whose mean loss is minimised.
pub struct OnRecords<'a> {
    /// The file that holds them; `None` if they are generated.
    pub dataset: Option<&'a Dataset>,
    /// Whether their labels are classes and not numbers. Then the field is not affine.
    pub classes: bool,
    /// B, the number of records that an oracle call draws.
    pub batch: usize,
}

/// Which metrics of records a problem has, by which a manifest is checked that records them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordMetrics {
    /// Whether there are records, each with a loss.
    pub loss: bool,
    /// Whether the labels of the records are classes, which can be predicted.
    pub accuracy: bool,
    /// Whether some of the records are a test set.
    pub test: bool,
    /// Whether each record of the test set belongs to a client.
    pub test_of_clients: bool,
}

/// Settings that describe a problem.
pub trait Settings {
    /// The type of the instances.
    type Instance: Problem + 'static
    where
        Self: Sized;
    /// Everything that is wrong with the settings themselves, before files are read; empty if nothing is.
    /// [`Self::build`] relies on it: it may panic on settings with faults.
    fn check(&self) -> Vec<Fault>;
    /// What the settings say of records, if a loss of records is minimised.
    fn on_records(&self) -> Option<OnRecords<'_>> {
        None
    }
    /// Whether the instance depends on the seed; one that is read from a file does not.
    fn uses_seed(&self) -> bool {
        self.on_records().and_then(|of| of.dataset).is_none_or(Dataset::uses_seed)
    }
    /// Whether the settings give the weights of clients as numbers, so that a page does not call them those of their
    /// records.
    fn has_given_weights(&self) -> bool {
        let dataset = self.on_records().and_then(|of| of.dataset);
        dataset.is_some_and(|dataset| matches!(dataset.weights, ClientWeights::Given(_)))
    }
    /// Whether every F_c is affine in θ.
    fn linear(&self) -> bool {
        self.on_records().is_none_or(|of| !of.classes)
    }
    /// Whether θ* is known, or is found if it is asked for. If it is not, whatever needs θ* is refused, as where a manifest
    /// leaves θ* out.
    fn has_optimum(&self) -> bool {
        true
    }
    /// Whether clients hold records, whose number says how many oracle calls an epoch is.
    fn has_epochs(&self) -> bool {
        self.on_records().is_some()
    }
    /// Which metrics of records the instance has: none if it is not on records.
    fn record_metrics(&self) -> RecordMetrics {
        let Some(records) = self.on_records() else { return RecordMetrics::default() };
        let with_test = records.dataset.filter(|dataset| dataset.test.is_some());
        RecordMetrics {
            loss: true,
            accuracy: records.classes,
            test: with_test.is_some(),
            test_of_clients: with_test.is_some_and(Dataset::has_test_of_clients),
        }
    }
    /// B, the number of evaluations of the field whose mean one oracle call with noise returns.
    fn batch(&self) -> u64 {
        self.on_records().map_or(1, |of| of.batch as u64)
    }
    /// The size of the instance, by which its memory and operations are estimated before it is built; `None`
    /// if it depends on a file.
    fn extent(&self) -> Option<InstanceSize> {
        None
    }
    /// The number of clients, from the settings or, where these leave it to a file, from the file; `None` if
    /// neither says it.
    fn clients(&self, files: &dyn Files) -> Option<usize> {
        match self.on_records().and_then(|of| of.dataset) {
            Some(dataset) => dataset.clients_in(files),
            None => self.extent().map(|extent| extent.clients),
        }
    }
    /// Counts the operations of the parts of the problem: of an oracle call (of the exact oracle if `exact`, else of
    /// its own), of the mean field and, if there are records, of a record. The runner counts the operations of a cell
    /// from it, by which shards are balanced and progress is measured. By default an oracle call multiplies with a d
    /// × d matrix.
    fn cost(&self, _exact: bool) -> ProblemCost {
        ProblemCost::without_records(self.extent().as_ref(), cost::matrix_call)
    }
    /// The files that the settings name, each with its key. They are mutable, so that whoever reads their
    /// bytes can enter their hashes, of which the ids of cells are made.
    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        Vec::new()
    }
    /// λ of the penalty of the losses, which may be written as a multiple of their smoothness; `None` if the problem
    /// has no such key.
    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        None
    }
    /// Builds the instance from these settings, the seed and the contents of the files.
    ///
    /// # Errors
    /// A [`Fault`] if the instance has no unique solution, or a file does not hold what it should.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Self::Instance, Fault>
    where
        Self: Sized;
    /// Builds the instance and calls the visitor with this form of it. Where the contents of a
    /// file decide how an instance is stored, its type may be another than `Instance`.
    ///
    /// # Errors
    /// A [`Fault`] if the instance has no unique solution, or a file does not hold what it should.
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault>
    where
        Self: Sized,
    {
        form.visit(self.build(seed, files)?, visitor)
    }
}
