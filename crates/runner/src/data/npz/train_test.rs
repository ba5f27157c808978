//! Archives of records in two parts, one for training and one for tests, as Keras and others write them.

use super::ContentError;
use exactfed_core::problem::arrays::{Array, Column};
use std::collections::BTreeMap;

/// The array that says which records are the test set.
pub const TEST: &str = "test";

/// The arrays under the names that records have in a dataset: `x_train` and `y_train`, in capitals or not, are called
/// `x` and `y`. If there are `x_test` and `y_test` too, their records follow, and [`TEST`] is 1 for these and 0 for the
/// others. Where features have further axes, as images have, these become one, the last index fastest. Other arrays
/// stay as they are, and so do all if one has the name of another afterwards.
///
/// # Errors
/// If the two parts have records of different shapes, or values of different types.
pub fn with_usual_names(
    mut arrays: BTreeMap<String, Array>,
) -> Result<BTreeMap<String, Array>, ContentError> {
    let is_taken = ["x", "y", TEST].iter().any(|name| arrays.contains_key(*name));
    if !is_taken && let Some(train) = RecordPart::remove_from(&mut arrays, "train") {
        let records = train.records();
        let all = match RecordPart::remove_from(&mut arrays, "test") {
            Some(test) => {
                let mut marks = vec![0.0; records];
                marks.resize(records + test.records(), 1.0);
                let shape = vec![marks.len()];
                arrays.insert(TEST.to_owned(), Array::of_numbers(shape, marks));
                train.followed_by(test)?
            }
            None => train,
        };
        arrays.insert("x".to_owned(), all.x);
        arrays.insert("y".to_owned(), all.y);
    }
    // An array `x` alone need not be of records.
    let has_labels = arrays.contains_key("y");
    if let Some(x) = arrays.get_mut("x").filter(|x| has_labels && x.shape.len() > 2) {
        x.shape = vec![x.shape[0], x.shape[1..].iter().product()];
    }
    // Keras writes the labels of some of its datasets as a column.
    if let Some(y) = arrays.get_mut("y").filter(|y| y.shape.len() == 2 && y.shape[1] == 1) {
        y.shape.truncate(1);
    }
    Ok(arrays)
}

/// The features and the labels of a part of the records.
struct RecordPart {
    x: Array,
    y: Array,
}

impl RecordPart {
    /// Removes the arrays `x_part` and `y_part`, in capitals or not, if both are there and have values that are read.
    fn remove_from(arrays: &mut BTreeMap<String, Array>, part: &str) -> Option<Self> {
        let x = name_of_part(arrays, "x", part)?;
        let y = name_of_part(arrays, "y", part)?;
        Some(Self { x: arrays.remove(&x)?, y: arrays.remove(&y)? })
    }

    /// The number of records.
    fn records(&self) -> usize {
        self.x.shape[0]
    }

    /// These records and then those of another part.
    fn followed_by(self, other: Self) -> Result<Self, ContentError> {
        let x = followed_by(self.x, other.x, "x")?;
        let y = followed_by(self.y, other.y, "y")?;
        Ok(Self { x, y })
    }
}

/// The name of the array `letter_part`, in capitals or not, if there is one whose values are read.
fn name_of_part(arrays: &BTreeMap<String, Array>, letter: &str, part: &str) -> Option<String> {
    let wanted = format!("{letter}_{part}");
    let mut found = arrays.iter().filter(|(name, array)| {
        name.eq_ignore_ascii_case(&wanted) && array.values.is_read() && !array.shape.is_empty()
    });
    found.next().map(|(name, _)| name.clone())
}

/// The records of one array and then those of another; `letter` is the one with which their names begin.
fn followed_by(mut one: Array, other: Array, letter: &str) -> Result<Array, ContentError> {
    if one.shape[1..] != other.shape[1..] {
        return Err(ContentError::Invalid(format!(
            "`{letter}_train` and `{letter}_test` have the shapes {:?} and {:?}; all axes but the first must agree",
            one.shape, other.shape
        )));
    }
    match (&mut one.values, other.values) {
        (Column::Numbers(all), Column::Numbers(more)) => all.extend(more),
        (Column::Text(all), Column::Text(more))
        | (Column::LongNumbers(all), Column::LongNumbers(more)) => all.extend(more),
        _ => {
            return Err(ContentError::Invalid(format!(
                "`{letter}_train` and `{letter}_test` have values of different types"
            )));
        }
    }
    one.shape[0] += other.shape[0];
    Ok(one)
}
