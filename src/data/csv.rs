//! CSV with a header.

use crate::problem::arrays::{Column, Contents};

/// The columns, numbers where every row of a column is one.
pub fn read(bytes: &[u8]) -> Result<Contents, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let heads = reader.headers().map_err(|e| e.to_string())?.clone();
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = heads.iter().find(|name| !seen.insert(*name)) {
        return Err(format!("two columns are called \"{twice}\""));
    }
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); heads.len()];
    for (row, record) in reader.records().enumerate() {
        let record = record.map_err(|e| e.to_string())?;
        for (j, value) in record.iter().enumerate() {
            if value.is_empty() {
                let name = &heads[j];
                return Err(format!("row {row} of column `{name}` is empty; nothing is filled in"));
            }
            columns[j].push(value.to_owned());
        }
    }
    let column = |values: Vec<String>| {
        let numbers: Option<Vec<f64>> = values.iter().map(|v| v.parse().ok()).collect();
        numbers.map_or(Column::Text(values), Column::Numbers)
    };
    let names = heads.iter().map(str::to_owned);
    Ok(Contents::Table(names.zip(columns.into_iter().map(column)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_numbers_or_text() {
        let text = "a, b ,c\n1,x,-2.5e3\n2,\"y, z\",4\n";
        let Ok(Contents::Table(columns)) = read(text.as_bytes()) else { panic!() };
        assert_eq!(columns[0], ("a".into(), Column::Numbers(vec![1.0, 2.0])));
        assert_eq!(columns[1], ("b".into(), Column::Text(vec!["x".into(), "y, z".into()])));
        assert_eq!(columns[2], ("c".into(), Column::Numbers(vec![-2500.0, 4.0])));
    }

    #[test]
    fn what_is_not_a_table_is_refused() {
        for (text, message) in [
            ("a,b\n1,2\n3\n", "found record with 1 fields"),
            ("a,a\n1,2\n", "two columns are called \"a\""),
            ("a,b\n1,\n", "row 0 of column `b` is empty"),
            ("a\n\u{fffd}\n", ""),
        ] {
            match read(text.as_bytes()) {
                Err(said) => assert!(said.contains(message), "{said}"),
                Ok(_) => assert!(message.is_empty(), "{text}"),
            }
        }
        assert!(read(b"a\n\xff\xfe\n").is_err(), "not UTF-8");
    }
}
