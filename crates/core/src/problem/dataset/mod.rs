//! Records from a data file, and how they are partitioned among clients.
//!
//! Clients have equal weights by default, however many records they hold: F̄ is the mean of the
//! clients' means, as in the theory. Weighted by their records, it is the mean over the records.
//!
//! `settings` has the keys, and `class_weights` those of the loss that depend on classes; `read`, `columns`, `storage`
//! and `checks` make [`Records`] of a file's contents; `test_set` draws the records that no client holds; `standardise`
//! scales features; `partition` splits records among clients, by the `ranks` of their labels.

mod checks;
mod class_weights;
mod columns;
mod partition;
mod ranks;
mod read;
mod records;
mod settings;
mod standardise;
mod storage;
mod test_set;

use super::arrays::{Files, sanitised};
use super::fault::Fault;
use super::records::{InstanceInputs, RecordLoss, RecordProblem, RecordSets};
pub use class_weights::ClassWeights;
use ranks::{distinct_texts, number_of_classes, ranks, ranks_among};
pub use read::FeatureForms;
pub use records::Records;
use records::records_of_each;
pub use settings::{
    ClientWeights, Dataset, MissingValues, Split, Storage, TestGroups, TestRecords,
};
use test_set::{LabelKind, TestDraw};

/// What a message says to do where a test set that is drawn takes all records that clients need.
const LEAVES_CLIENTS_SOME: &str = "`test-within = \"clients\"` leaves them some, as may another seed, a smaller fraction or `test = { column = … }`";

/// The records of a file as the clients of a problem hold them.
pub struct ClientRecords {
    /// The records that clients hold, those of all clients together.
    pub records: Records,
    /// The records of the test set, if there is one.
    pub test: Option<Records>,
    /// For each record of the test set the number of the client to which it would belong, where a column names the
    /// clients or the test set is drawn within them. It is `None` for a record whose client holds no records, because a
    /// column marks them all; `None` for all if clients have no records of the test set.
    pub test_clients: Option<Vec<Option<usize>>>,
    /// N, the number of clients.
    pub clients: usize,
    /// The sets of records that clients hold, as indices in `records`: one for each client, or a single one if all
    /// clients hold the same records ([`Split::All`]). It is then stored once.
    pub held: Vec<Vec<usize>>,
    /// π_c, the share of each client; `None` if all are equal.
    pub shares: Option<Vec<f64>>,
}

impl ClientRecords {
    /// The weight of each set of records in the mean over clients; `None` if all weights are equal.
    pub(super) fn set_shares(&self) -> Option<&[f64]> {
        self.shares.as_deref().filter(|shares| shares.len() == self.held.len())
    }

    /// The problem of this loss on the records that clients hold, with its θ* (unless `files` leaves the search for it
    /// out) and, if there is one, the test set. The losses of clients' records are multiplied by the weights of their
    /// classes, if there are `class_weights`; then the storage must know classes. `store` makes the problem's storage
    /// of records, given which of them are in each set, by index; it is called for the records of clients, one set
    /// each, and for the test set, a single set.
    ///
    /// # Errors
    /// An error of `store`, or a [`Fault`] of `l2` if no optimum is found.
    pub(super) fn build_problem<L: RecordLoss<S>, S: RecordSets>(
        &self,
        loss: L,
        class_weights: Option<&[f64]>,
        files: &dyn Files,
        store: impl Fn(&Records, &[Vec<usize>]) -> Result<S, Fault>,
    ) -> Result<RecordProblem<L, S>, Fault> {
        let shares = self.shares.clone();
        let stored = store(&self.records, &self.held)?;
        let held = match class_weights {
            Some(class_weights) => with_class_weights(stored, class_weights),
            None => stored,
        };
        let optimum = files.optimum_search();
        let given = InstanceInputs { clients: Some(self.clients), shares, optimum };
        let problem = RecordProblem::new(loss, held, given)?;
        let Some(test) = &self.test else { return Ok(problem) };
        let problem = problem.with_test(store(test, &[(0..test.count()).collect()])?);
        let by_column = test.of_clients();
        let drawn_from = self.test_clients.as_ref();
        let drawn_from = drawn_from.map(|clients| records_of_each(clients.iter().copied()));
        match by_column.or(drawn_from) {
            Some(sets) => Ok(problem.with_test_of_clients(store(test, &sets)?)),
            None => Ok(problem),
        }
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
                let labels = LabelKind::Numbers;
                let draw = TestDraw { records: &all, labels, parts: None, seed: 0 };
                let held_out = self.test_records(&draw)?;
                let (own, _) = self.hold_out(all, held_out.as_deref())?;
                Ok(own)
            }
            Some(TestRecords::Fraction(_)) | None => Ok(all),
        }
    }

    /// Reads the records of the file with features in one of the forms that the problem takes, holds out the test set,
    /// and partitions the other records among clients. Labels are the names of classes.
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
        let all = self.read_file(files, takes)?;
        self.divide(all, LabelKind::Classes, seed)
    }

    /// As [`load`](Self::load), for a problem whose labels are numbers to fit and whose features are dense.
    ///
    /// # Errors
    /// As of [`load`](Self::load); a test set that is drawn within classes.
    pub fn load_with_numbers(&self, files: &dyn Files, seed: u64) -> Result<ClientRecords, Fault> {
        if self.test_within == Some(TestGroups::Classes) {
            let message = "needs classes, but the labels are numbers to fit: write \"clients\" or leave it out";
            return Err(Fault::new("dataset.test-within", message));
        }
        let all = self.read_file(files, FeatureForms::Dense)?;
        self.divide(all, LabelKind::Numbers, seed)
    }

    /// Holds out the test set of these records, which are all of the file, and partitions the others among clients.
    /// Where the test set is drawn within clients, all are partitioned first, and each client then loses some.
    fn divide(&self, all: Records, labels: LabelKind, seed: u64) -> Result<ClientRecords, Fault> {
        let parts = match self.test_within {
            Some(TestGroups::Clients) => Some(self.partition(&all, seed)?),
            Some(TestGroups::Classes) | None => None,
        };
        let draw = TestDraw { records: &all, labels, parts: parts.as_deref(), seed };
        let held_out = self.test_records(&draw)?;
        let (records, test) = self.prepare_features(all, held_out.as_deref())?;
        self.check_test_clients(&records, test.as_ref())?;
        if labels == LabelKind::Classes {
            self.check_test_labels(&records, test.as_ref())?;
        }
        let (held, test_clients) = match (&parts, &held_out) {
            (Some(parts), Some(held_out)) => {
                let divided = divide_parts(parts, held_out);
                (divided.held, Some(divided.test_clients))
            }
            _ => (self.partition(&records, seed)?, clients_of_test(&records, test.as_ref())),
        };
        let clients = match self.split {
            Split::All => self.clients.unwrap_or(1),
            _ => held.len(),
        };
        let counts: Vec<usize> = held.iter().map(Vec::len).cycle().take(clients).collect();
        let shares = self.weights.shares("dataset.weights", &counts)?;
        Ok(ClientRecords { records, test, test_clients, clients, held, shares })
    }

    /// Checks that a test set that is drawn leaves clients a record of each class that it has. `records` are those that
    /// clients hold, and `test` is the test set; nothing is checked without one.
    ///
    /// # Errors
    /// The first class, in the order of the test set, all of whose records are there.
    fn check_test_labels(&self, records: &Records, test: Option<&Records>) -> Result<(), Fault> {
        let (Some(TestRecords::Fraction(_)), Some(test)) = (&self.test, test) else {
            return Ok(());
        };
        let Err(Fault { key, message }) = records.classes_of(test) else { return Ok(()) };
        Err(Fault::new(key, format!("{message}; {LEAVES_CLIENTS_SOME}")))
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
            "all records of the client \"{}\" are drawn for the test set; {LEAVES_CLIENTS_SOME}",
            sanitised(&lost)
        );
        Err(Fault::new("dataset.test", message))
    }
}

#[cfg(test)]
impl Dataset {
    /// The records that clients hold and those of the test set, for tests of how a file is read. Labels are the names of
    /// classes, and no record is partitioned before the draw.
    fn read_records(
        &self,
        files: &dyn Files,
        seed: u64,
        takes: FeatureForms,
    ) -> Result<(Records, Option<Records>), Fault> {
        let records = self.read_file(files, takes)?;
        let labels = LabelKind::Classes;
        let draw = TestDraw { records: &records, labels, parts: None, seed };
        let held_out = self.test_records(&draw)?;
        self.prepare_features(records, held_out.as_deref())
    }
}

/// These sets of records, with the weight of its class as the loss weight of each record. The storage must know classes.
fn with_class_weights<S: RecordSets>(records: S, class_weights: &[f64]) -> S {
    let mut loss_weights = Vec::with_capacity(records.sets());
    for set in 0..records.sets() {
        let labels = records.labels(set).expect("the storage knows classes");
        loss_weights.push(labels.iter().map(|class| class_weights[usize::from(*class)]).collect());
    }
    records.with_loss_weights(loss_weights)
}

/// The records of clients, some of which are held out.
struct DividedParts {
    /// For each client the indices of its other records among all records that are not held out.
    held: Vec<Vec<usize>>,
    /// The client of each record that is held out, in the order of the file.
    test_clients: Vec<Option<usize>>,
}

/// Takes the records that are held out from the `parts` of the clients, which have indices among all records.
fn divide_parts(parts: &[Vec<usize>], held_out: &[bool]) -> DividedParts {
    // The index of each record among those that are held out, or among the others.
    let mut indices = Vec::with_capacity(held_out.len());
    let mut tested = 0;
    for (i, is_held_out) in held_out.iter().enumerate() {
        indices.push(if *is_held_out { tested } else { i - tested });
        tested += usize::from(*is_held_out);
    }
    let mut held = vec![Vec::new(); parts.len()];
    let mut test_clients = vec![None; tested];
    for (client, part) in parts.iter().enumerate() {
        for &i in part {
            if held_out[i] {
                test_clients[indices[i]] = Some(client);
            } else {
                held[client].push(indices[i]);
            }
        }
    }
    DividedParts { held, test_clients }
}

/// The client of each record of the test set, where a column names the clients: `records` are those that clients hold.
fn clients_of_test(records: &Records, test: Option<&Records>) -> Option<Vec<Option<usize>>> {
    Some(ranks_among(records.groups.as_ref()?, test?.groups.as_ref()?))
}

#[cfg(test)]
mod split_all_tests;
#[cfg(test)]
mod tests;
