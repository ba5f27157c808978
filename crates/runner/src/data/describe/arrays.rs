//! The records of a file without named columns: sparse rows, or arrays.

use super::clients::RecordClients;
use super::features::{FeatureRows, FoundValues};
use super::{FileRecords, RecordsError, Remedy, TableNotes, is_classes, value_counts};
use crate::data::npz::train_test::TEST;
use exactfed_core::problem::arrays::{Array, Column, DataFile};
use exactfed_core::words::count;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The records with these features, labels and clients; `arrays` has the one that names the clients, if there is one, and
/// `places` says where the records are in the file.
/// Missing values are filled in with means or, if a label or a client is missing, all records that lack a value are left
/// out, as the manifest to start from does it. If that would leave no record, all are there with their missing values.
///
/// # Errors
/// If the array of the clients holds neither numbers nor texts.
pub fn records_of_arrays<'a>(
    features: FeatureRows<'a>,
    labels: Column,
    clients: RecordClients,
    arrays: &BTreeMap<String, Array>,
    places: RecordPlaces<'_>,
) -> Result<FileRecords<'a>, RecordsError> {
    let group = column_of_clients(&clients, arrays)?;
    let n = labels.len();
    let whole = FileRecords {
        names: Vec::new(),
        features,
        labels: Cow::Owned(labels),
        label: String::new(),
        clients,
        rows: (0..n).collect(),
        file_records: n,
        test_records: 0,
        table: TableNotes::default(),
    };
    let lacking_label = whole.labels.missing();
    let lacking_client = group.as_ref().map_or_else(|| vec![false; n], Column::missing);
    let lacks_label = lacking_label.contains(&true);
    let lacks_client = lacking_client.contains(&true);
    let lacks_features = whole.features.find(f64::is_nan).iter().any(Option::is_some);
    // Another number of labels than of features is an error, which is found later.
    if whole.features.size().0 != n || !(lacks_label || lacks_client || lacks_features) {
        return Ok(whole);
    }
    let mut missing = missing_phrases(&whole.features, &lacking_label, &lacking_client, places);
    if !lacks_label && !lacks_client {
        let remedy = Some(Remedy::Mean);
        let table = TableNotes { missing, remedy, ..TableNotes::default() };
        return Ok(FileRecords { features: whole.features.with_means(), table, ..whole });
    }
    let lacking = whole.features.lacking_rows();
    let rows: Vec<usize> = (0..n)
        .filter(|row| !lacking[*row] && !lacking_label[*row] && !lacking_client[*row])
        .collect();
    if rows.is_empty() {
        let remedy = Some(Remedy::Nothing);
        let table = TableNotes { missing, remedy, ..TableNotes::default() };
        return Ok(FileRecords { table, ..whole });
    }
    let all = count(n, "record");
    missing.push(format!("of {all}, `missing = \"drop\"` leaves {}", rows.len()));
    let clients = match (whole.clients, group) {
        (RecordClients::Column { name, .. }, Some(group)) => {
            RecordClients::of_column(&name, &group.take(&rows))
        }
        (clients, _) => clients,
    };
    Ok(FileRecords {
        features: whole.features.take(&rows),
        labels: Cow::Owned(whole.labels.take(&rows)),
        names: whole.names,
        label: whole.label,
        clients,
        rows,
        file_records: n,
        test_records: 0,
        table: TableNotes { missing, remedy: Some(Remedy::Drop), ..TableNotes::default() },
    })
}

/// The array that names the clients, if one does.
///
/// # Errors
/// If it holds neither numbers nor texts.
fn column_of_clients(
    clients: &RecordClients,
    arrays: &BTreeMap<String, Array>,
) -> Result<Option<Column>, RecordsError> {
    let RecordClients::Column { name, .. } = clients else { return Ok(None) };
    let column = arrays.get(name).map(Array::column);
    column.transpose().map_err(|error| RecordsError::array(name, error))
}

/// Where the records of a file without named columns are in it.
#[derive(Clone, Copy)]
pub struct RecordPlaces<'a> {
    pub file: &'a DataFile,
    /// The array that marks some records of the file as the test set, which are none of these records; `None` if these
    /// are all.
    pub test: Option<&'a TestArray>,
}

impl RecordPlaces<'_> {
    /// Where in the file the record with this number is, counted from 0 among these records, of which there are `n`.
    fn place(self, record: usize, n: usize) -> String {
        match self.test {
            Some(test) => self.file.place(test.others[record], test.records),
            None => self.file.place(record, n),
        }
    }
}

/// The array [`TEST`] of an archive of records, which marks some of them as the test set.
pub struct TestArray {
    /// The rows of the records that are not marked.
    pub others: Vec<usize>,
    /// The number of all records.
    records: usize,
}

impl TestArray {
    /// The array of this name, if there is one for records that make a test set: each is marked with 1 or 0, some with
    /// either, no feature and no label of a marked one is missing, and no class is in the test set alone.
    pub fn of(arrays: &BTreeMap<String, Array>) -> Option<Self> {
        let x = arrays.get("x").filter(|x| x.shape.len() == 2)?;
        let numbers = x.numbers().ok()?;
        let labels = arrays.get("y")?.column().ok()?;
        let marks = arrays.get(TEST)?.numbers().ok()?;
        let [records, d] = x.shape[..] else { return None };
        let are_marks = marks.iter().all(|mark| *mark == 0.0 || *mark == 1.0);
        if !are_marks || marks.len() != records || labels.len() != records {
            return None;
        }
        let (marked, others): (Vec<usize>, Vec<usize>) =
            (0..records).partition(|row| marks[*row] == 1.0);
        let is_known =
            |row: &usize| numbers[row * d..(row + 1) * d].iter().all(|value| !value.is_nan());
        let lacks_label = labels.missing();
        let is_whole = |row: &usize| is_known(row) && !lacks_label[*row];
        let classes = value_counts(&labels);
        let known = value_counts(&labels.take(&others));
        // Numbers that are fitted need not occur among the other records.
        let has_new_class = is_classes(&labels, &classes) && known.len() < classes.len();
        let is_test_set = !marked.is_empty() && marked.iter().all(is_whole) && !has_new_class;
        (is_test_set && !others.is_empty()).then_some(Self { others, records })
    }

    /// The other records as those of a file that has a test set too; `records` must be of the rows of [`Self::others`].
    pub fn before<'a>(&self, records: FileRecords<'a>) -> FileRecords<'a> {
        let rows = records.rows.iter().map(|row| self.others[*row]).collect();
        let test_records = self.records - self.others.len();
        FileRecords { rows, file_records: self.records, test_records, ..records }
    }
}

/// The arrays without [`TEST`], and of those with an entry for each record the entries of these rows.
pub fn take_records(arrays: &BTreeMap<String, Array>, rows: &[usize]) -> BTreeMap<String, Array> {
    let records = arrays.get(TEST).map(|marks| marks.values.len());
    let mut taken = BTreeMap::new();
    for (name, array) in arrays.iter().filter(|(name, _)| *name != TEST) {
        let mut shape = array.shape.clone();
        if shape.first().copied() != records {
            taken.insert(name.clone(), array.clone());
            continue;
        }
        let entries: usize = shape[1..].iter().product();
        let places: Vec<usize> =
            rows.iter().flat_map(|row| row * entries..(row + 1) * entries).collect();
        shape[0] = rows.len();
        taken.insert(name.clone(), Array { shape, values: array.values.take(&places) });
    }
    taken
}

/// Where values are missing: a phrase for each feature, for the labels and for the array of the clients, of which
/// `lacking_label` and `lacking_client` say which records lack one. Each says where the first is.
fn missing_phrases(
    features: &FeatureRows<'_>,
    lacking_label: &[bool],
    lacking_client: &[bool],
    places: RecordPlaces<'_>,
) -> Vec<String> {
    let n = lacking_label.len();
    let mut phrases = Vec::new();
    for (j, found) in features.find(f64::is_nan).into_iter().enumerate() {
        if let Some(FoundValues { count, row, .. }) = found {
            let place = places.place(row, n);
            phrases.push(format!("{count} in feature {j} from 0, first in {place}"));
        }
    }
    for (lacking, name) in [(lacking_label, "the labels"), (lacking_client, "the clients")] {
        let number = lacking.iter().filter(|is_missing| **is_missing).count();
        if let Some(first) = lacking.iter().position(|is_missing| *is_missing) {
            let place = places.place(first, n);
            phrases.push(format!("{number} in {name}, first in {place}"));
        }
    }
    phrases
}
