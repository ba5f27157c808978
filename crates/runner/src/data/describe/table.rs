//! The records of a table: which column is what, and which values are missing.

use super::clients::{ClientWish, RecordClients, may_be_clients, names_clients, names_identifiers};
use super::features::FeatureRows;
use super::{
    FileRecords, RecordsError, Remedy, TableNotes, Wishes, first_names, known_rows, label_place,
    value_counts,
};
use exactfed_core::problem::arrays::{Column, DataFile, FileFormat, no_column, sanitised};
use exactfed_core::problem::column::{Exceptions, row_indices};
use exactfed_core::words::{count, shell_word};
use std::borrow::Cow;

/// The fewest records for each value on average, if a column is taken to be the clients by its name.
const FEWEST_OF_CLIENT: usize = 5;

/// A column by its name.
struct NamedColumn<'a> {
    name: &'a str,
    column: Cow<'a, Column>,
}

/// What the columns of a table beside the labels are taken to be.
#[derive(Default)]
struct Division<'a> {
    /// The column that says which client holds a record.
    clients: Option<NamedColumn<'a>>,
    /// The names of columns that are left out because their names say that they are clients, and each value has too few
    /// records.
    clients_of_few_records: Vec<&'a str>,
    features: Vec<NamedColumn<'a>>,
    /// Columns that are left out because they number or name the rows, as messages name them.
    indices: Vec<String>,
    /// Columns of whole numbers that are left out because their names say that they are identifiers.
    identifiers: Vec<String>,
    /// Columns that are left out because no row has a value.
    empty: Vec<String>,
    /// The features that are pairs of words, such as yes and no, of which the second in sorted order is 1.
    pairs: Vec<String>,
    /// Columns that are left out because they hold texts.
    texts: Vec<String>,
    /// Columns that are left out because their values are not read, each with their type.
    unread: Vec<String>,
    /// Columns that are left out because they hold numbers but for a few texts, each with these texts.
    exceptions: Vec<String>,
}

/// The records of a table, whose labels and clients are in the columns that the user names. Without a name, labels are
/// in the column with a usual name of labels, or else in the last one. Missing values are filled in, or their records
/// left out, as the manifest to start from does it. If that would leave no record, all are there with their missing
/// values, for a description without a manifest.
///
/// # Errors
/// If there is no column of these names, no column at all, no record or no feature.
pub fn records<'a>(
    file: &DataFile,
    columns: &'a [(String, Column)],
    wishes: &Wishes<'_>,
) -> Result<FileRecords<'a>, RecordsError> {
    let place = match wishes.label {
        Some(label) => place_of(columns, label, "--label")?,
        None => label_place(columns).ok_or(RecordsError::NoColumns)?,
    };
    let clients = wanted_clients(columns, place, wishes.clients)?;
    let labels =
        NamedColumn { name: &columns[place].0, column: columns[place].1.with_marks_read() };
    if labels.column.is_empty() {
        return Err(no_records(file));
    }
    let divided = Division::new(file, columns, place, clients);
    if divided.features.is_empty() {
        return Err(divided.no_features(labels.name));
    }
    let mut table = TableNotes {
        missing: divided.missing(file, &labels),
        remedy: divided.remedy(&labels.column),
        lines: divided.lines(),
        lists_features: divided.lists_features(),
        categorical: divided.pairs.clone(),
    };
    let all: Vec<usize> = (0..labels.column.len()).collect();
    let rows = match table.remedy {
        Some(Remedy::Drop) => divided.whole_rows(&labels.column),
        _ => all.clone(),
    };
    let rows = if rows.is_empty() && !all.is_empty() {
        table.remedy = Some(Remedy::Nothing);
        all
    } else {
        if table.remedy == Some(Remedy::Drop) {
            let kept = rows.len();
            let all = count(all.len(), "record");
            table.missing.push(format!("of {all}, `missing = \"drop\"` leaves {kept}"));
        }
        rows
    };
    let fills = table.remedy == Some(Remedy::Mean);
    let chosen: Vec<Vec<f64>> =
        divided.features.iter().map(|feature| numbers_in(&feature.column, &rows, fills)).collect();
    let numbers = (0..rows.len()).flat_map(|i| chosen.iter().map(move |column| column[i]));
    let clients = match (&divided.clients, wishes.clients) {
        (Some(clients), _) => RecordClients::of_column(clients.name, &clients.column.take(&rows)),
        (None, Some(ClientWish::Number(parts))) => RecordClients::Parts(Some(parts)),
        (None, _) => RecordClients::Parts(None),
    };
    let size = (rows.len(), divided.features.len());
    let kept_labels = labels.column.take(&rows);
    Ok(FileRecords {
        features: FeatureRows::Dense { size, numbers: Cow::Owned(numbers.collect()) },
        names: divided.features.iter().map(|feature| feature.name.to_owned()).collect(),
        labels: Cow::Owned(kept_labels),
        rows,
        file_records: labels.column.len(),
        test_records: 0,
        label: labels.name.to_owned(),
        clients,
        table,
    })
}

/// The error that a table has columns and no records.
fn no_records(file: &DataFile) -> RecordsError {
    match file.format() {
        Some(FileFormat::Csv) => RecordsError::NothingAfterHeader,
        _ => RecordsError::NoRecords,
    }
}

/// What the clients of a table are to be, whose labels are in column number `labels`.
///
/// # Errors
/// If the user names a column that is not there, or that of the labels.
fn wanted_clients(
    columns: &[(String, Column)],
    labels: usize,
    wish: Option<ClientWish<'_>>,
) -> Result<WantedClients, RecordsError> {
    Ok(match wish {
        Some(ClientWish::Column(name)) => {
            let clients = place_of(columns, name, "--clients")?;
            if clients == labels {
                return Err(RecordsError::ClientsAreLabels);
            }
            WantedClients::Column(clients)
        }
        Some(ClientWish::Number(_)) => WantedClients::Parts,
        None => WantedClients::ByName,
    })
}

/// The pairs of words, in lower case and sorted order, that answer whether something is so.
const PAIRS: [[&str; 2]; 4] = [["no", "yes"], ["false", "true"], ["n", "y"], ["f", "t"]];

/// The column of 0 and 1 that stands for a column of texts as the indicator of its second category, if its categories
/// are a pair of words such as yes and no; NaN where a value is missing. `None` for all other texts.
fn numbers_of_pair(column: &Column) -> Option<Column> {
    let counts = value_counts(column);
    let [(first, _), (second, _)] = &counts[..] else { return None };
    let mut words = [first.to_lowercase(), second.to_lowercase()];
    words.sort();
    if !PAIRS.iter().any(|pair| *pair == words) {
        return None;
    }
    let missing = column.missing();
    let number_in = |row: usize| {
        if missing[row] { f64::NAN } else { f64::from(u8::from(column.text(row) == *second)) }
    };
    Some(Column::Numbers((0..column.len()).map(number_in).collect()))
}

/// The place of the column of this name, which an option names.
fn place_of(
    columns: &[(String, Column)],
    wanted: &str,
    option: &'static str,
) -> Result<usize, RecordsError> {
    let place = columns
        .iter()
        .position(|(name, _)| name == wanted)
        .ok_or_else(|| RecordsError::UnknownColumn(no_column(wanted, "", columns)))?;
    match &columns[place] {
        (name, Column::Unread { kind, .. }) => {
            Err(RecordsError::UnreadColumn { option, name: sanitised(name), kind: kind.clone() })
        }
        _ => Ok(place),
    }
}

/// Which column says which client holds a record.
#[derive(Clone, Copy, PartialEq)]
enum WantedClients {
    /// The column at this place.
    Column(usize),
    /// The first one whose name says so, if there is one.
    ByName,
    /// None.
    Parts,
}

/// The numbers of a column in some rows. If `fills`, the mean of those that are known takes the place of NaN. The
/// column must be of numbers, as those of features are.
fn numbers_in(column: &Column, rows: &[usize], fills: bool) -> Vec<f64> {
    let all = column.numbers().unwrap_or_default();
    let mut chosen: Vec<f64> = rows.iter().map(|row| all[*row]).collect();
    if fills {
        let known = chosen.iter().filter(|x| !x.is_nan());
        let (sum, n) = known.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
        chosen.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = sum / n);
    }
    chosen
}

impl<'a> Division<'a> {
    /// Divides the columns other than that of the labels, which is at the place `labels`. Each column is the first of
    /// these that it fits: values that are not read; an index of the rows; a column without values; the one that says
    /// which client holds a record, which is the one that is wanted or else the first whose name says so and that has
    /// half of its values or more, at least two different ones that are no answers of yes or no, and
    /// [`FEWEST_OF_CLIENT`] records or more for each of these on average; clients of fewer records; identifiers; a
    /// feature, if it is of numbers or of two words; a column of texts, which is left out.
    fn new(
        file: &DataFile,
        columns: &'a [(String, Column)],
        labels: usize,
        clients: WantedClients,
    ) -> Self {
        let mut divided = Self::default();
        let n = columns[labels].1.len();
        let is_wanted = |place: usize| clients == WantedClients::Column(place);
        let wanted_name =
            columns.iter().enumerate().find(|(i, _)| is_wanted(*i)).map(|(_, c)| &c.0);
        let indices = row_indices(columns, |name| {
            name != columns[labels].0 && wanted_name.is_none_or(|wanted| wanted != name)
        });
        for (i, (name, column)) in columns.iter().enumerate().filter(|(i, _)| *i != labels) {
            let shown = format!("`{}`", sanitised(name));
            if let Column::Unread { kind, .. } = column {
                divided.unread.push(format!("{shown} ({kind})"));
                continue;
            }
            if indices.contains(&i) {
                let nameless = name.is_empty();
                divided.indices.push(if nameless {
                    format!("column {}, which has no name", i + 1)
                } else {
                    shown
                });
                continue;
            }
            let column = column.with_marks_read();
            if is_wanted(i) {
                divided.clients = Some(NamedColumn { name, column });
                continue;
            }
            let known = known_rows(&[&*column]).len();
            if known == 0 && n > 0 {
                divided.empty.push(shown);
                continue;
            }
            let values = if may_be_clients(name) { value_counts(&column).len() } else { 0 };
            // A column of which most values are missing names no clients.
            let is_candidate = clients == WantedClients::ByName
                && divided.clients.is_none()
                && (2..=n / FEWEST_OF_CLIENT).contains(&values)
                && 2 * known >= n;
            if is_candidate && !is_answer(&column) {
                divided.clients = Some(NamedColumn { name, column });
                continue;
            }
            if values > n / FEWEST_OF_CLIENT && holds_clients(name, &column) {
                divided.clients_of_few_records.push(name);
                continue;
            }
            if names_identifiers(name) && holds_whole_numbers(&column) {
                divided.identifiers.push(shown);
                continue;
            }
            divided.add_feature(file, NamedColumn { name, column });
        }
        divided
    }

    /// Adds a column as a feature, if it is of numbers or of two words, and as one of texts otherwise.
    fn add_feature(&mut self, file: &DataFile, named: NamedColumn<'a>) {
        let Column::Text(texts) = &*named.column else {
            self.features.push(named);
            return;
        };
        if let Some(numbers) = numbers_of_pair(&named.column) {
            self.pairs.push(named.name.to_owned());
            self.features.push(NamedColumn { column: Cow::Owned(numbers), ..named });
            return;
        }
        let shown = format!("`{}`", sanitised(named.name));
        match Exceptions::among_numbers(texts) {
            Some(few) => {
                let held = few.describe(texts, |row| file.place(row, texts.len()));
                self.exceptions.push(format!("{shown} holds {held}"));
            }
            None => self.texts.push(shown),
        }
    }

    /// Where values are missing in the columns that are used: for each such column a phrase with how many, and where
    /// the first is.
    fn missing(&self, file: &DataFile, labels: &NamedColumn<'_>) -> Vec<String> {
        let used = self.features.iter().chain(&self.clients).chain(std::iter::once(labels));
        let mut phrases = Vec::new();
        for NamedColumn { name, column } in used {
            let missing = column.missing();
            let Some(first) = missing.iter().position(|is_missing| *is_missing) else { continue };
            let number = missing.iter().filter(|is_missing| **is_missing).count();
            let first = file.place(first, column.len());
            phrases.push(format!("{number} in `{}`, first in {first}", sanitised(name)));
        }
        phrases
    }

    /// What the manifest to start from does with values that are missing; `None` if none is missing. A label or a
    /// client cannot be filled in: if one is missing, all records that lack any value are left out.
    fn remedy(&self, labels: &Column) -> Option<Remedy> {
        let lacks_client =
            self.clients.as_ref().is_some_and(|clients| lacks_values(&clients.column));
        if lacks_values(labels) || lacks_client {
            return Some(Remedy::Drop);
        }
        let lacks_feature = self.features.iter().any(|feature| lacks_values(&feature.column));
        lacks_feature.then_some(Remedy::Mean)
    }

    /// The rows with a value in every column that is used, which `missing = "drop"` leaves.
    fn whole_rows(&self, labels: &Column) -> Vec<usize> {
        let used = self.features.iter().chain(&self.clients).map(|named| &*named.column);
        known_rows(&std::iter::once(labels).chain(used).collect::<Vec<_>>())
    }

    /// The features of ten records or more whose values are different whole numbers, so that they may number the
    /// records, as messages name them.
    fn numbers_of_records(&self) -> Vec<String> {
        let may_number = self.features.iter().filter(|feature| feature.column.may_number_records());
        may_number.map(|feature| format!("`{}`", sanitised(feature.name))).collect()
    }

    /// Whether the manifest lists the features, because columns are left out or a user may want to leave some out.
    fn lists_features(&self) -> bool {
        let shown = [
            &self.indices,
            &self.identifiers,
            &self.empty,
            &self.pairs,
            &self.texts,
            &self.unread,
            &self.exceptions,
        ];
        shown.into_iter().any(|names| !names.is_empty())
            || !self.clients_of_few_records.is_empty()
            || !self.numbers_of_records().is_empty()
    }

    /// The error that no column is a feature, which says why each of the others is left out and which of them a manifest
    /// may list. `labels` is the name of the column of the labels.
    fn no_features(&self, labels: &str) -> RecordsError {
        let labels = format!("`{}`", sanitised(labels));
        let used = match &self.clients {
            Some(clients) => {
                let clients = sanitised(clients.name);
                format!("those of the labels, {labels}, and of the clients, `{clients}`,")
            }
            None => format!("that of the labels, {labels},"),
        };
        let by_hand = "write the manifest by hand, with";
        let mut left_out = self.lines();
        if !self.texts.is_empty() {
            let texts = first_names(&self.texts);
            left_out.push(format!("{by_hand} {texts} in `features` and `categorical`"));
        } else if !self.identifiers.is_empty() {
            left_out.push(format!("{by_hand} {} in `features`", first_names(&self.identifiers)));
        }
        let colon = if left_out.is_empty() { "" } else { ": " };
        RecordsError::NoFeatures { used, left_out: format!("{colon}{}", left_out.join("; ")) }
    }

    /// Lines that say which columns are left out and why, and which ones a user may have to leave out.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut say = |names: &[String], before: &str, after: &str| {
            if !names.is_empty() {
                lines.push(format!("{before}{}{after}", first_names(names)));
            }
        };
        say(&self.indices, "columns that number or name the rows, which are left out: ", "");
        let few: Vec<String> = self
            .clients_of_few_records
            .iter()
            .map(|name| format!("`{}`", sanitised(name)))
            .collect();
        let before = format!(
            "columns of clients, as their names say, which are left out since a value has fewer than {FEWEST_OF_CLIENT} records on average: "
        );
        let after = match self.clients_of_few_records[..] {
            [name] => {
                let name = shell_word(&sanitised(name));
                format!("; `--clients {name}` takes it nevertheless")
            }
            _ => "; `--clients COLUMN` takes one nevertheless".to_owned(),
        };
        say(&few, &before, &after);
        let identifiers = "columns of identifiers, as their names say, which are left out: ";
        say(&self.identifiers, identifiers, "; to use one, add it to `features`");
        say(&self.empty, "columns without any value, which are left out: ", "");
        let categories = "; to use one, add it to `features` and `categorical`";
        say(&self.texts, "columns of text, which are left out: ", categories);
        say(&self.unread, "columns of other types, which are left out: ", "");
        say(&self.exceptions, "columns that are left out: ", "; replace these texts to use one");
        let remove = "; if they number the records, remove them from `features`";
        let numbers = self.numbers_of_records();
        say(&numbers, "columns of which all values are different whole numbers: ", remove);
        lines
    }
}

/// Whether a column holds clients, as its name says: texts or whole numbers that are no answers of yes or no. A column of
/// such a name may also hold an answer or a measurement.
pub fn holds_clients(name: &str, column: &Column) -> bool {
    if !names_clients(name) {
        return false;
    }
    let column = column.with_marks_read();
    let may_identify = matches!(*column, Column::Text(_)) || holds_whole_numbers(&column);
    may_identify && !is_answer(&column)
}

/// Whether a column answers whether something is so: its values are 0 and 1, or a pair of words such as yes and no.
/// Such a column marks records, also where its name has the word of a client: "hospital" may say who was in one.
fn is_answer(column: &Column) -> bool {
    let counts = value_counts(column);
    let values: Vec<&str> = counts.iter().map(|(value, _)| value.as_str()).collect();
    values == ["0", "1"] || numbers_of_pair(column).is_some()
}

/// Whether all values of a column that are known are whole numbers.
fn holds_whole_numbers(column: &Column) -> bool {
    column.numbers().is_some_and(|values| values.iter().all(|x| x.is_nan() || x.fract() == 0.0))
}

fn lacks_values(column: &Column) -> bool {
    column.missing().contains(&true)
}
