//! What the clients are that hold the records of a described file.

use super::{RecordsError, shapes, value_counts};
use exactfed_core::problem::arrays::{Array, Column};
use std::collections::BTreeMap;

/// The words of names by which columns, and arrays, are taken to say which client holds each record. A plural counts
/// as the word, and a number or "id" after it is left out.
const CLIENTS: [&str; 25] = [
    "client",
    "user",
    "site",
    "hospital",
    "clinic",
    "ward",
    "institution",
    "inst",
    "centre",
    "center",
    "device",
    "sensor",
    "station",
    "school",
    "university",
    "company",
    "firm",
    "bank",
    "branch",
    "store",
    "shop",
    "farm",
    "country",
    "region",
    "district",
];

/// What the clients are, as a user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientWish<'a> {
    /// One client for each value of this column.
    Column(&'a str),
    /// As many parts of the shuffled records.
    Number(usize),
}

/// What the clients are that hold the records of a file.
pub enum RecordClients {
    /// The values of a column or an array.
    Column {
        /// Its name.
        name: String,
        /// How many different values it has.
        values: usize,
    },
    /// Parts of the shuffled records: as many as the user wants or, for `None`, as the number of records suggests.
    Parts(Option<usize>),
}

/// Whether a word of the name of a column or an array says that it tells which client holds each record.
pub fn may_be_clients(name: &str) -> bool {
    name.to_lowercase().split(is_between_words).any(is_word_for_clients)
}

/// The last words of names of columns that say only that the column identifies what the word before them says.
const IDENTIFYING_WORDS: [&str; 9] =
    ["id", "ids", "code", "name", "number", "no", "nr", "num", "index"];

/// Whether the name of a column says that its values are clients, and not something about clients: its last word is one
/// of clients, apart from words such as "id", as in "site", "home hospital" and "store_id". It is not so in
/// "store_sales", of which a word [may be one of clients](may_be_clients) too.
pub fn names_clients(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut words: Vec<&str> = lower.split(is_between_words).collect();
    while words.len() > 1
        && words.last().is_some_and(|last| {
            IDENTIFYING_WORDS.contains(last) || last.bytes().all(|byte| byte.is_ascii_digit())
        })
    {
        words.pop();
    }
    words.last().is_some_and(|last| is_word_for_clients(last))
}

fn is_between_words(c: char) -> bool {
    !c.is_alphanumeric()
}

/// Whether a word in lower case is one of [`CLIENTS`].
fn is_word_for_clients(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let word = word.strip_suffix("id").unwrap_or(word);
    CLIENTS.iter().any(|one| word == *one || is_plural(word, one))
}

/// The words by which a column of whole numbers is taken to hold identifiers of records or of their groups.
const IDENTIFIERS: [&str; 6] = ["id", "ids", "identifier", "uid", "uuid", "guid"];

/// Whether a word of the name of a column says that it holds identifiers, as in "id", "patient_id" and "PatientID".
pub fn names_identifiers(name: &str) -> bool {
    let mut words = vec![String::new()];
    let mut follows_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || follows_lower && c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        follows_lower = c.is_lowercase();
    }
    words.iter().any(|word| IDENTIFIERS.contains(&word.as_str()))
}

/// Whether a word is the plural of another one, as in sites and countries.
fn is_plural(word: &str, one: &str) -> bool {
    let stem_of_y = word.strip_suffix("ies");
    word.strip_suffix('s') == Some(one)
        || stem_of_y.is_some_and(|stem| one.strip_suffix('y') == Some(stem))
}

impl RecordClients {
    /// The clients that are the values of this column.
    pub fn of_column(name: &str, column: &Column) -> Self {
        Self::Column { name: name.to_owned(), values: value_counts(column).len() }
    }
}

/// What the clients of `rows` records are whose labels and further values are in these arrays: as the user wishes or,
/// without a wish, the values of the first array, in the order of names, whose name says so.
///
/// # Errors
/// If no array of one value for each record has the name that the user wishes, or it holds neither numbers nor texts.
pub fn clients_of_arrays(
    arrays: &BTreeMap<String, Array>,
    rows: usize,
    wanted: Option<ClientWish<'_>>,
) -> Result<RecordClients, RecordsError> {
    let fits = |array: &Array| array.shape == [rows];
    let found = match wanted {
        Some(ClientWish::Number(parts)) => return Ok(RecordClients::Parts(Some(parts))),
        Some(ClientWish::Column(_)) if arrays.is_empty() => {
            return Err(RecordsError::NoNamedColumns("--clients"));
        }
        Some(ClientWish::Column(name)) => match arrays.get_key_value(name) {
            Some((name, array)) if fits(array) => Some((name, array)),
            _ => return Err(RecordsError::NoClientArray { arrays: shapes(arrays) }),
        },
        None => arrays.iter().find(|(name, array)| {
            fits(array) && array.values.is_read() && *name != "y" && may_be_clients(name)
        }),
    };
    Ok(match found {
        Some((name, array)) => {
            let clients = array.column().map_err(|error| RecordsError::array(name, error))?;
            RecordClients::of_column(name, &clients)
        }
        None => RecordClients::Parts(None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_that_a_column_holds_clients() {
        for name in ["firm", "Sites", "home hospital", "store_id", "UserID", "shop no. 2", "ward_1"]
        {
            assert!(names_clients(name) && may_be_clients(name), "{name}");
        }
        for name in ["store_sales", "user.score", "bank balance", "id", "name", "", "2", "centred"]
        {
            assert!(!names_clients(name), "{name}");
        }
    }

    #[test]
    fn names_say_that_a_column_holds_identifiers() {
        for name in ["id", "ID", "patient_id", "PatientID", "obs.id", "Sample Id", "uuid"] {
            assert!(names_identifiers(name), "{name}");
        }
        for name in ["PID", "idle", "width", "acid", "identity", "", "humid"] {
            assert!(!names_identifiers(name), "{name}");
        }
    }
}
