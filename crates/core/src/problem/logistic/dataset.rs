//! Logistic regression on a user's records.

use super::sparse::SparseLogistic;
use super::{Logistic, Loss};
use crate::kernel::SparseRows;
use crate::problem::arrays::{DataFile, Files};
use crate::problem::dataset::{ClientRecords, Dataset, Records};
use crate::problem::{Fault, Faults, Form, Given, Minimiser, RecordMetrics, Visitor};
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
    #[serde(default = "crate::problem::one")]
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

    /// With dense features.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Logistic, Fault> {
        self.dense(self.dataset.load(files, seed)?, files.known_optimum())
    }

    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: Form,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        let (loaded, optimum) = (self.dataset.load_stored(files, seed)?, files.known_optimum());
        match loaded.records.sparse() {
            Some(rows) => form.visit(self.sparse(&loaded, rows, optimum)?, visitor),
            None => form.visit(self.dense(loaded, optimum)?, visitor),
        }
    }
}

/// The factor of each record of a test set, −1 or +1 as its label.
fn signs_of(test: &Records, records: &Records) -> Result<Vec<f64>, Fault> {
    let classes = records.classes_of(test)?.into_iter();
    Ok(classes.map(|class| if class == 0 { -1.0 } else { 1.0 }).collect())
}

impl Settings {
    fn loss(&self) -> Loss {
        Loss { l2: self.l2, margin: self.margin, batch: self.batch }
    }

    fn dense(&self, loaded: ClientRecords, optimum: Option<&Minimiser>) -> Result<Logistic, Fault> {
        let ClientRecords { records, test, held, shares } = loaded;
        let signs = records.two_classes()?;
        let held = held.iter().map(|shard| {
            let rows = shard.iter().map(|&i| records.row(i).iter().map(move |x| (i, x)));
            rows.flatten().map(|(i, x)| signs[i] * x).collect()
        });
        let given = Given { shares, optimum };
        let problem = Logistic::with(records.dimension(), self.loss(), held.collect(), given)?;
        let Some(test) = test else { return Ok(problem) };
        let mut rows = Vec::new();
        for (i, sign) in signs_of(&test, &records)?.into_iter().enumerate() {
            rows.extend(test.row(i).iter().map(|x| sign * x));
        }
        Ok(problem.with_test(rows))
    }

    fn sparse(
        &self,
        loaded: &ClientRecords,
        rows: &SparseRows,
        optimum: Option<&Minimiser>,
    ) -> Result<SparseLogistic, Fault> {
        let ClientRecords { records, test, held, shares } = loaded;
        let signs = records.two_classes()?;
        self.dataset.check_vectors(held.len(), rows.dim())?;
        let held = held.iter().map(|shard| rows.selected(shard.iter().map(|&i| (i, signs[i]))));
        let given = Given { shares: shares.clone(), optimum };
        let problem = SparseLogistic::with(self.loss(), held.collect(), given)?;
        let of_test = test.as_ref().and_then(|test| Some((test, test.sparse()?)));
        let Some((test, rows)) = of_test else { return Ok(problem) };
        let signs = signs_of(test, records)?;
        Ok(problem.with_test(rows.selected(signs.into_iter().enumerate())))
    }
}
