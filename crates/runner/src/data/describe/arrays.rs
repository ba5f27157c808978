//! The records of a file without named columns: sparse rows, or arrays.

use super::clients::RecordClients;
use super::features::{FeatureRows, FoundValues};
use super::{FileRecords, RecordsError, Remedy, TableNotes};
use exactfed_core::problem::arrays::{Array, Column};
use exactfed_core::words::count;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The records with these features, labels and clients; `arrays` has the one that names the clients, if there is one.
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
) -> Result<FileRecords<'a>, RecordsError> {
    let group = match &clients {
        RecordClients::Column { name, .. } => match arrays.get(name) {
            Some(array) => Some(array.column().map_err(|error| RecordsError::array(name, error))?),
            None => None,
        },
        RecordClients::Parts(_) => None,
    };
    let n = labels.len();
    let whole = FileRecords {
        names: Vec::new(),
        features,
        labels: Cow::Owned(labels),
        label: String::new(),
        clients,
        rows: (0..n).collect(),
        file_records: n,
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
    let mut missing = missing_phrases(&whole.features, &lacking_label, &lacking_client);
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
        table: TableNotes { missing, remedy: Some(Remedy::Drop), ..TableNotes::default() },
    })
}

/// Where values are missing: a phrase for each feature, for the labels and for the array of the clients, of which
/// `lacking_label` and `lacking_client` say which records lack one.
fn missing_phrases(
    features: &FeatureRows<'_>,
    lacking_label: &[bool],
    lacking_client: &[bool],
) -> Vec<String> {
    let mut phrases = Vec::new();
    for (j, found) in features.find(f64::is_nan).into_iter().enumerate() {
        if let Some(FoundValues { count, .. }) = found {
            phrases.push(format!("{count} in feature {j}"));
        }
    }
    for (lacking, name) in [(lacking_label, "the labels"), (lacking_client, "the clients")] {
        let number = lacking.iter().filter(|is_missing| **is_missing).count();
        if number > 0 {
            phrases.push(format!("{number} in {name}"));
        }
    }
    phrases
}
