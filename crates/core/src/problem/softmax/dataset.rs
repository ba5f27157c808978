//! Softmax regression on a user's records.

use super::Softmax;
use crate::problem::arrays::{DataFile, Files};
use crate::problem::dataset::{ClientRecords, Dataset};
use crate::problem::{Fault, Faults, Given, RecordMetrics};
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
    /// λ, the weight of the penalty λ/2 ‖θ‖², above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub l2: f64,
    /// B, the number of records drawn with replacement in each oracle call; 1 or more.
    #[serde(default = "crate::problem::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
}

impl crate::problem::Settings for Settings {
    type Instance = Softmax;

    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        faults.positive("l2", self.l2);
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
        RecordMetrics { loss: true, accuracy: true, test: self.dataset.test.is_some() }
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    fn linear(&self) -> bool {
        false
    }

    fn build(&self, seed: u64, files: &dyn Files) -> Result<Softmax, Fault> {
        let ClientRecords { records, test, held, shares } = self.dataset.load(files, seed)?;
        let (classes, labels) = records.classes()?;
        let held = held.iter().map(|shard| {
            let rows = shard.iter().flat_map(|&i| records.row(i)).copied().collect();
            (rows, shard.iter().map(|&i| labels[i]).collect())
        });
        let held: Vec<_> = held.collect();
        let sizes = [records.dimension(), classes, self.batch];
        let problem =
            Softmax::new(sizes, self.l2, &held, Given { shares, optimum: files.known_optimum() })?;
        let Some(test) = test else { return Ok(problem) };
        let labels: Vec<u8> = records.classes_of(&test)?.into_iter().map(|k| k as u8).collect();
        let rows = (0..labels.len()).flat_map(|i| test.row(i)).copied().collect();
        Ok(problem.with_test((rows, labels)))
    }
}
