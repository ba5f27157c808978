//! The records of a file without named columns: sparse rows, or arrays.

use super::clients::RecordClients;
use super::features::FeatureRows;
use super::{FileRecords, Remedy, TableNotes};
use exactfed_core::problem::arrays::{Array, Column};
use exactfed_core::words::count;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The records with these features, labels and clients; `arrays` has the one that names the clients, if there is one.
/// Missing values are filled in with means or, if a label or a client is missing, all records that lack a value are left
/// out, as the manifest to start from does it. If that would leave no record, all are there with their missing values.
pub fn records_of_arrays<'a>(
    features: FeatureRows<'a>,
    labels: &[f64],
    clients: RecordClients,
    arrays: &BTreeMap<String, Array>,
) -> FileRecords<'a> {
    let whole = FileRecords {
        names: Vec::new(),
        features,
        labels: Cow::Owned(Column::Numbers(labels.to_vec())),
        label: String::new(),
        clients,
        table: TableNotes::default(),
    };
    let group = match &whole.clients {
        RecordClients::Column { name, .. } => arrays.get(name).map(|array| array.data.as_slice()),
        RecordClients::Parts(_) => None,
    };
    let n = labels.len();
    let lacks_label = labels.iter().any(|label| label.is_nan());
    let lacks_client = group.is_some_and(|group| group.iter().any(|value| value.is_nan()));
    let lacks_features = whole.features.lacking().iter().any(|lacking| *lacking > 0);
    // Another number of labels than of features is an error, which is found later.
    if whole.features.size().0 != n || !(lacks_label || lacks_client || lacks_features) {
        return whole;
    }
    let mut missing = missing_phrases(&whole.features, labels, group);
    if !lacks_label && !lacks_client {
        let remedy = Some(Remedy::Mean);
        let table = TableNotes { missing, remedy, ..TableNotes::default() };
        return FileRecords { features: whole.features.with_means(), table, ..whole };
    }
    let lacking = whole.features.lacking_rows();
    let mut rows: Vec<usize> = Vec::new();
    for row in 0..n {
        let has_client = group.is_none_or(|group| !group[row].is_nan());
        if has_client && !lacking[row] && !labels[row].is_nan() {
            rows.push(row);
        }
    }
    if rows.is_empty() {
        let remedy = Some(Remedy::Nothing);
        let table = TableNotes { missing, remedy, ..TableNotes::default() };
        return FileRecords { table, ..whole };
    }
    let all = count(n, "record");
    missing.push(format!("of {all}, `missing = \"drop\"` leaves {}", rows.len()));
    let clients = match (whole.clients, group) {
        (RecordClients::Column { name, .. }, Some(group)) => {
            RecordClients::of_column(&name, &Column::Numbers(group.to_vec()).take(&rows))
        }
        (clients, _) => clients,
    };
    FileRecords {
        features: whole.features.take(&rows),
        labels: Cow::Owned(whole.labels.take(&rows)),
        names: whole.names,
        label: whole.label,
        clients,
        table: TableNotes { missing, remedy: Some(Remedy::Drop), ..TableNotes::default() },
    }
}

/// Where values are missing: a phrase for each feature, for the labels and for the array `group` of the clients.
fn missing_phrases(
    features: &FeatureRows<'_>,
    labels: &[f64],
    group: Option<&[f64]>,
) -> Vec<String> {
    let mut phrases = Vec::new();
    for (j, lacking) in
        features.lacking().into_iter().enumerate().filter(|(_, lacking)| *lacking > 0)
    {
        phrases.push(format!("{lacking} in feature {j}"));
    }
    for (values, name) in [(Some(labels), "the labels"), (group, "the clients")] {
        let lacking = values.unwrap_or_default().iter().filter(|value| value.is_nan()).count();
        if lacking > 0 {
            phrases.push(format!("{lacking} in {name}"));
        }
    }
    phrases
}
