//! Records from a data file, and how they are partitioned among clients.
//!
//! Clients have equal weights by default, however many records they hold: F̄ is the mean of the
//! clients' means, as in the theory. Weighted by their records, it is the mean over the records.
//!
//! `settings` has the keys; `read`, `columns`, `storage` and `checks` make [`Records`] of a file's contents;
//! `standardise` scales features; `partition` splits records among clients, by the `ranks` of their labels.

mod checks;
mod columns;
mod partition;
mod ranks;
mod read;
mod records;
mod settings;
mod standardise;
mod storage;

use super::arrays::{Files, sanitised};
use super::fault::Fault;
use super::records::{InstanceInputs, RecordLoss, RecordProblem, RecordSets};
use ranks::{distinct_texts, number_of_classes, ranks};
pub use read::FeatureForms;
pub use records::Records;
pub use settings::{ClientWeights, Dataset, MissingValues, Split, Storage, TestRecords};

/// The records of a file as the clients of a problem hold them.
pub struct ClientRecords {
    /// The records that clients hold, those of all clients together.
    pub records: Records,
    /// The records of the test set, if there is one.
    pub test: Option<Records>,
    /// For each client the indices of its records in `records`.
    pub held: Vec<Vec<usize>>,
    /// π_c, the share of each client; `None` if all are equal.
    pub shares: Option<Vec<f64>>,
}

impl ClientRecords {
    /// The problem of this loss on the records that clients hold, with its θ* (unless `files` leaves the search for it
    /// out) and, if there is one, the test set. `store` makes the problem's storage of records, given which of them are
    /// in each set, by index; it is called for the records of clients, one set each, and for the test set, a single
    /// set.
    ///
    /// # Errors
    /// An error of `store`, or a [`Fault`] of `l2` if no optimum is found.
    pub(super) fn build_problem<L: RecordLoss<S>, S: RecordSets>(
        &self,
        loss: L,
        files: &dyn Files,
        store: impl Fn(&Records, &[Vec<usize>]) -> Result<S, Fault>,
    ) -> Result<RecordProblem<L, S>, Fault> {
        let shares = self.shares.clone();
        let held = store(&self.records, &self.held)?;
        let optimum = files.optimum_search();
        let given = InstanceInputs { shares, optimum, ..InstanceInputs::default() };
        let problem = RecordProblem::new(loss, held, given)?;
        let Some(test) = &self.test else { return Ok(problem) };
        Ok(problem.with_test(store(test, &[(0..test.count()).collect()])?))
    }
}

impl Dataset {
    /// The number of clients, from the settings or, where a column names the clients, from the file: the same for
    /// every seed, so that a fraction of the clients is one number in a cell. It is 1 if the file cannot be read,
    /// which is reported when the problem is built; `None` if the settings lack it.
    pub fn clients_in(&self, files: &dyn Files) -> Option<usize> {
        let Split::Column(_) = self.split else { return self.clients };
        let groups = self.records_with_every_client(files).ok().and_then(|all| all.groups);
        Some(groups.map_or(1, |groups| number_of_classes(&ranks(&groups))))
    }

    /// Records of the file, among which each client has some: all records where the test set is drawn, which must
    /// leave every client some records whatever the seed is ([`Self::check_test_clients`]); the records of the
    /// clients where a column marks the test set, which may leave clients out.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should.
    fn records_with_every_client(&self, files: &dyn Files) -> Result<Records, Fault> {
        let all = self.read_file(files, FeatureForms::DenseOrSparse)?;
        match &self.test {
            Some(TestRecords::Column(_)) => {
                // A column holds out the same records with every seed.
                let (own, _) = self.hold_out(all, 0)?;
                Ok(own)
            }
            Some(TestRecords::Fraction(_)) | None => Ok(all),
        }
    }

    /// Reads the records of the file with features in one of the forms that the problem takes, holds out the test set,
    /// and partitions the other records among clients.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, a client without records,
    /// labels that are not classes where they must be, or sparse features in the settings where
    /// they must be dense.
    pub fn load(
        &self,
        files: &dyn Files,
        seed: u64,
        takes: FeatureForms,
    ) -> Result<ClientRecords, Fault> {
        let (records, test) = self.read_records(files, seed, takes)?;
        self.check_test_clients(&records, test.as_ref())?;
        let held = self.partition(&records, seed)?;
        let counts: Vec<usize> = held.iter().map(Vec::len).collect();
        let shares = self.weights.shares(&counts);
        Ok(ClientRecords { records, test, held, shares })
    }

    /// Checks that a test set that is drawn does not take all records of a client that a column names. A column
    /// that marks the test set may leave clients out on purpose. `records` are those that clients hold, and `test` is
    /// the test set; nothing is checked without one.
    ///
    /// # Errors
    /// The first client, in the order of names, all of whose records are in the test set.
    fn check_test_clients(&self, records: &Records, test: Option<&Records>) -> Result<(), Fault> {
        let (Some(TestRecords::Fraction(_)), Some(test)) = (&self.test, test) else {
            return Ok(());
        };
        let (Some(own), Some(other)) = (&records.groups, &test.groups) else { return Ok(()) };
        let Some(lost) = distinct_texts(other).difference(&distinct_texts(own)).next().cloned()
        else {
            return Ok(());
        };
        let message = format!(
            "all records of the client \"{}\" are drawn for the test set; another seed, a smaller fraction or `test = {{ column = … }}` leaves it some",
            sanitised(&lost)
        );
        Err(Fault::new("dataset.test", message))
    }
}

#[cfg(test)]
mod tests;
