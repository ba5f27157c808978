//! LIBSVM's sparse text: `label index:value …`, with rising indices, which are counted from 1, or from 0 in a file in
//! which the index 0 occurs, as scikit-learn writes by default.

use super::ContentError;
use exactfed_core::kernel::SparseRows;
use exactfed_core::problem::MOST_SPARSE_FEATURES;
use exactfed_core::problem::arrays::{Contents, check_features, sanitised};
use exactfed_core::problem::column::is_inexact;

/// The labels and the features of the records of a LIBSVM file; features that a line does not write are 0. There are as
/// many features as the largest index of the file says.
pub fn read(bytes: &[u8]) -> Result<Contents, ContentError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| ContentError::Invalid("it is not UTF-8 text".into()))?;
    let mut labels = Vec::new();
    let mut offsets = vec![0];
    // As they are written, until the file shows from where they are counted.
    let mut indices: Vec<u32> = Vec::new();
    let mut values = Vec::new();
    let mut line_of_largest = 0;
    let mut largest = None;
    for (place, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let line_number = place as u64 + 1;
        let wrong = |message: String| ContentError::Line { line: line_number, message };
        let mut words = line.split_ascii_whitespace();
        let label = words.next().unwrap_or_default();
        if is_inexact(label) {
            return Err(wrong(format!(
                "the label {} is a whole number beyond 2^53, which f64 cannot tell from others",
                sanitised(label)
            )));
        }
        let Ok(number) = label.parse::<f64>() else {
            return Err(wrong(format!("the label \"{}\" is not a number", sanitised(label))));
        };
        labels.push(number);
        let mut last = None;
        for word in words {
            let (index, value) = pair(word).map_err(wrong)?;
            if last.is_some_and(|last| index <= last) {
                return Err(wrong(format!("index {index} does not rise")));
            }
            indices.push(index);
            values.push(value);
            last = Some(index);
        }
        offsets.push(values.len());
        if last > largest {
            largest = last;
            line_of_largest = line_number;
        }
    }
    let is_from_zero = indices.contains(&0);
    if !is_from_zero {
        indices.iter_mut().for_each(|index| *index -= 1);
    }
    let d = largest.map_or(0, |index| index as usize + usize::from(is_from_zero));
    // A large index in a short file would make vectors far larger than the file.
    check_features(d, values.len()).map_err(|e| {
        let index = largest.unwrap_or(0);
        ContentError::Line { line: line_of_largest, message: format!("index {index}: {e}") }
    })?;
    Ok(Contents::Records { labels, features: SparseRows::new(d, offsets, indices, values)? })
}

/// Whether the first line of a text that is neither empty nor a comment is a record of LIBSVM: a number, and one pair
/// `index:value` or more.
pub fn begins_as_libsvm(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n');
    let records = lines.map(|line| line.split(|byte| *byte == b'#').next().unwrap_or_default());
    let first = records.map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    let Some(Ok(line)) = first.map(std::str::from_utf8) else { return false };
    let mut words = line.split_ascii_whitespace();
    let has_label = words.next().is_some_and(|label| label.parse::<f64>().is_ok());
    let mut pairs = words.peekable();
    has_label && pairs.peek().is_some() && pairs.all(|word| pair(word).is_ok())
}

/// The index of a feature, as it is written, and its value, from `index:value`.
///
/// # Errors
/// What is wrong with the word.
fn pair(word: &str) -> Result<(u32, f64), String> {
    let pair = word.split_once(':').and_then(|(index, value)| {
        Some((index.parse::<usize>().ok()?, value.parse::<f64>().ok()?))
    });
    let Some((index, value)) = pair else {
        return Err(format!("\"{}\" is not index:value with a whole index", sanitised(word)));
    };
    match u32::try_from(index) {
        Ok(narrow) if index <= MOST_SPARSE_FEATURES => Ok((narrow, value)),
        _ => Err(format!(
            "index {index} is above {MOST_SPARSE_FEATURES}, the most features that are allowed"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_rows_are_filled_with_zeros() {
        let text = "+1 1:0.5 3:2 # a comment\n\n-1 2:-1e2\n";
        let Ok(Contents::Records { labels, features }) = read(text.as_bytes()) else { panic!() };
        assert_eq!(labels, [1.0, -1.0]);
        assert_eq!((features.len(), features.dim(), features.values().len()), (2, 3, 3));
        assert_eq!(features.to_dense(), [0.5, 0.0, 2.0, 0.0, -100.0, 0.0]);
    }

    /// The same records as scikit-learn writes them, with the first index 0 and with 1; also where the first record
    /// does not show it.
    #[test]
    fn indices_are_from_zero_in_a_file_that_has_it() {
        let from_one = read(b"1 2:0.5 3:2\n0 1:4\n").unwrap();
        let from_zero = read(b"1 1:0.5 2:2\n0 0:4\n").unwrap();
        assert_eq!(from_zero, from_one);
        let Contents::Records { features, .. } = from_zero else { panic!() };
        assert_eq!(features.to_dense(), [0.0, 0.5, 2.0, 4.0, 0.0, 0.0]);
    }

    #[test]
    fn the_first_record_shows_the_format() {
        for text in ["+1 1:0.5 3:2\n", "# about\n\n-1 0:1 # a\nx\n", "2.5 7:1e-3"] {
            assert!(begins_as_libsvm(text.as_bytes()), "{text}");
        }
        for text in ["", "1\n", "1 2 3\n", "x 1:2\n", "1 1:2 3\n", "12:30 1:2\n", "\u{fffd} 1:2"] {
            assert!(!begins_as_libsvm(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("1 1:2\nx 1:2\n", "line 2: the label \"x\""),
            ("1 1:2\n9007199254740993 1:2\n", "line 2: the label 9007199254740993 is a whole"),
            ("-9007199254740993.0 1:2\n", "line 1: the label -9007199254740993.0 is a whole"),
            ("1 -1:2\n", "line 1: \"-1:2\" is not index:value"),
            ("1 0:2 0:3\n", "line 1: index 0 does not rise"),
            ("1 1\n", "line 1: \"1\" is not index:value"),
            ("1 2:1 2:3\n", "line 1: index 2 does not rise"),
            ("1 1:2\n1 4000000000:1\n", "line 2: index 4000000000 is above 100000000"),
            ("1 99999999999999999999:1\n", "is not index:value"),
            ("1 1:2\n1 1000001:1\n", "line 2: index 1000001: the rows hold 2 numbers, too few"),
        ] {
            let said = read(text.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(message), "{said}");
        }
        // Such a number is one of double precision.
        assert!(read(b"9007199254740994 1:2\n10000000000000000 1:3\n").is_ok());
    }
}
