//! LIBSVM's sparse text: `label index:value …`, indices from 1 and rising.

use super::MOST_BYTES;
use driftbench_core::problem::MOST_DIMENSIONS;
use driftbench_core::problem::arrays::{Array, Contents, sanitised};

/// Labels and features, what is not written being 0.
pub fn read(bytes: &[u8]) -> Result<Contents, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let mut labels = Vec::new();
    let mut rows: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut d = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        let mut words = line.split_ascii_whitespace();
        let label = words.next().unwrap_or_default();
        labels.push(
            label.parse().map_err(|_| {
                wrong(&format!("the label \"{}\" is not a number", sanitised(label)))
            })?,
        );
        let mut row: Vec<(usize, f64)> = Vec::new();
        for word in words {
            let pair = word.split_once(':').and_then(|(i, x)| {
                Some((i.parse::<usize>().ok().filter(|i| *i > 0)?, x.parse::<f64>().ok()?))
            });
            let Some((index, value)) = pair else {
                let word = sanitised(word);
                return Err(wrong(&format!("\"{word}\" is not index:value with an index from 1")));
            };
            if index > MOST_DIMENSIONS {
                return Err(wrong(&format!(
                    "index {index} is above {MOST_DIMENSIONS}, the most features that are allowed"
                )));
            }
            if row.last().is_some_and(|(last, _)| *last >= index) {
                return Err(wrong(&format!("index {index} does not rise")));
            }
            row.push((index, value));
            d = d.max(index);
        }
        rows.push(row);
    }
    let bytes = rows.len() as u128 * d as u128 * 8;
    if bytes > u128::from(MOST_BYTES) {
        return Err(format!(
            "{} records of {d} features would take {bytes} bytes; at most {MOST_BYTES} are allowed",
            rows.len()
        ));
    }
    let mut data = vec![0.0; rows.len() * d];
    for (i, row) in rows.iter().enumerate() {
        row.iter().for_each(|&(index, value)| data[i * d + index - 1] = value);
    }
    Ok(Contents::Records { labels, features: Array { shape: vec![rows.len(), d], data } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_rows_are_filled_with_zeros() {
        let text = "+1 1:0.5 3:2 # a comment\n\n-1 2:-1e2\n";
        let Ok(Contents::Records { labels, features }) = read(text.as_bytes()) else { panic!() };
        assert_eq!(labels, [1.0, -1.0]);
        assert_eq!(features.shape, [2, 3]);
        assert_eq!(features.data, [0.5, 0.0, 2.0, 0.0, -100.0, 0.0]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("1 1:2\nx 1:2\n", "line 2: the label \"x\""),
            ("1 0:2\n", "line 1: \"0:2\" is not index:value"),
            ("1 1\n", "line 1: \"1\" is not index:value"),
            ("1 2:1 2:3\n", "line 1: index 2 does not rise"),
            ("1 1:2\n1 4000000000:1\n", "line 2: index 4000000000 is above 5000"),
            ("1 99999999999999999999:1\n", "is not index:value"),
        ] {
            let said = read(text.as_bytes()).unwrap_err();
            assert!(said.contains(message), "{said}");
        }
    }
}
