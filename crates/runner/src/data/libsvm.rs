//! LIBSVM's sparse text: `label index:value …`, indices from 1 and rising.

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
    let mut indices = Vec::new();
    let mut values = Vec::new();
    // The largest index, and its line.
    let mut d = 0;
    let mut line_of_d = 0;
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
        let mut last = 0;
        for word in words {
            let (index, value) = pair(word).map_err(wrong)?;
            if index <= last {
                return Err(wrong(format!("index {index} does not rise")));
            }
            indices.push(index - 1);
            values.push(value);
            last = index;
        }
        offsets.push(values.len());
        if last as usize > d {
            d = last as usize;
            line_of_d = line_number;
        }
    }
    // A large index in a short file would make vectors far larger than the file.
    check_features(d, values.len())
        .map_err(|e| ContentError::Line { line: line_of_d, message: format!("index {d}: {e}") })?;
    Ok(Contents::Records { labels, features: SparseRows::new(d, offsets, indices, values)? })
}

/// The index of a feature, counted from 1, and its value, from `index:value`.
///
/// # Errors
/// What is wrong with the word.
fn pair(word: &str) -> Result<(u32, f64), String> {
    let pair = word.split_once(':').and_then(|(i, x)| {
        Some((i.parse::<usize>().ok().filter(|i| *i > 0)?, x.parse::<f64>().ok()?))
    });
    let Some((index, value)) = pair else {
        return Err(format!("\"{}\" is not index:value with an index from 1", sanitised(word)));
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

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("1 1:2\nx 1:2\n", "line 2: the label \"x\""),
            ("1 1:2\n9007199254740993 1:2\n", "line 2: the label 9007199254740993 is a whole"),
            ("-9007199254740993.0 1:2\n", "line 1: the label -9007199254740993.0 is a whole"),
            ("1 0:2\n", "line 1: \"0:2\" is not index:value"),
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
