//! Logistic regression on a user's records.

use super::sparse::SparseLogistic;
use super::{Logistic, Loss};
use crate::kernel::{SparseLoss, SparseRows};
use crate::problem::arrays::{DataFile, Files};
use crate::problem::dataset::{Dataset, Records};
use crate::problem::{Fault, Faults, Form, Visitor};
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
    /// λ, the weight of the penalty λ/2 ‖θ‖², above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub l2: f64,
    /// m, subtracted from the margin of each record; the usual loss has 0.
    #[serde(default)]
    #[schemars(example = 0.0)]
    pub margin: f64,
    /// B, the number of records drawn with replacement in each oracle call; 1 or more.
    #[serde(default = "super::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
}

impl crate::problem::Settings for Settings {
    type Instance = Logistic;

    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.dataset.check());
        faults.positive("l2", self.l2);
        let margin = self.margin;
        faults.require(margin.is_finite(), "margin", || format!("must be finite, not {margin}"));
        faults.at_least_one("batch", self.batch as u64);
        faults.0
    }

    fn uses_seed(&self) -> bool {
        self.dataset.uses_seed()
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("dataset.file", &mut self.dataset.file)]
    }

    fn linear(&self) -> bool {
        false
    }

    /// With dense features.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Logistic, Fault> {
        self.dense(&self.dataset.open(files)?, seed)
    }

    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: Form,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        let records = self.dataset.open_stored(files)?;
        match records.sparse() {
            Some(rows) => form.visit(self.sparse(&records, rows, seed)?, visitor),
            None => form.visit(self.dense(&records, seed)?, visitor),
        }
    }
}

impl Settings {
    fn dense(&self, records: &Records, seed: u64) -> Result<Logistic, Fault> {
        let signs = records.two_classes()?;
        let shards = self.dataset.partition(records, seed)?;
        let held = shards.iter().map(|shard| {
            let rows = shard.iter().map(|&i| records.row(i).iter().map(move |x| (i, x)));
            rows.flatten().map(|(i, x)| signs[i] * x).collect()
        });
        let loss = Loss { l2: self.l2, margin: self.margin, batch: self.batch };
        Logistic::new(records.dimension(), shards.len(), loss, held.collect())
    }

    fn sparse(
        &self,
        records: &Records,
        rows: &SparseRows,
        seed: u64,
    ) -> Result<SparseLogistic, Fault> {
        let signs = records.two_classes()?;
        let shards = self.dataset.partition(records, seed)?;
        self.dataset.check_vectors(shards.len(), rows.dim())?;
        let held = shards.iter().map(|shard| rows.selected(shard.iter().map(|&i| (i, signs[i]))));
        let loss = SparseLoss { l2: self.l2, margin: self.margin, batch: self.batch };
        SparseLogistic::new(loss, held.collect())
    }
}
