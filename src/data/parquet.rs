//! Parquet tables, by polars.

use crate::problem::arrays::{Column, Contents};
use polars::prelude::*;
use std::io::Cursor;

/// The columns: numbers of any kind as f64, text and truth values as text.
pub fn read(bytes: Vec<u8>) -> Result<Contents, String> {
    let frame = decoded(bytes)?;
    let mut columns = Vec::with_capacity(frame.width());
    for column in frame.columns() {
        let name = column.name().to_string();
        if let Some(row) = column.is_null().iter().position(|null| null == Some(true)) {
            return Err(format!("row {row} of column `{name}` is empty; nothing is filled in"));
        }
        let read = match column.dtype() {
            DataType::String => {
                let values = column.str().map_err(|e| e.to_string())?;
                Column::Text(values.iter().flatten().map(str::to_owned).collect())
            }
            DataType::Boolean => {
                let values = column.bool().map_err(|e| e.to_string())?;
                Column::Numbers(values.iter().flatten().map(|b| f64::from(u8::from(b))).collect())
            }
            kind if kind.is_primitive_numeric() => {
                let wide = column.cast(&DataType::Float64).map_err(|e| e.to_string())?;
                let values = wide.f64().map_err(|e| e.to_string())?;
                Column::Numbers(values.iter().flatten().collect())
            }
            other => {
                return Err(format!(
                    "column `{name}` is of type {other}; expected numbers or text"
                ));
            }
        };
        columns.push((name, read));
    }
    Ok(Contents::Table(columns))
}

/// The most numbers that a table may hold: what is written once can be meant a
/// million times.
const MOST_NUMBERS: usize = super::MOST_BYTES as usize / 8;

/// What polars makes of the bytes. It trusts what a file says of itself, so that a
/// damaged one can end in a panic, which is an error here.
fn decoded(bytes: Vec<u8>) -> Result<DataFrame, String> {
    let decode = || {
        let mut reader = ParquetReader::new(Cursor::new(bytes));
        let about = reader.get_metadata()?;
        let (rows, columns) = (about.num_rows, about.schema().fields().len());
        if rows.saturating_mul(columns) > MOST_NUMBERS {
            polars_bail!(ComputeError: "it announces {rows} rows of {columns} columns; at most {MOST_NUMBERS} values are allowed");
        }
        reader.read_parallel(ParallelStrategy::None).finish()
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)) {
        Ok(frame) => frame.map_err(|e| e.to_string()),
        Err(_) => Err("it is damaged: what it says of itself does not hold".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_widened_and_empty_cells_refused() {
        let bytes = |columns: Vec<polars::prelude::Column>| {
            let mut bytes = Vec::new();
            let mut frame = DataFrame::new(2, columns).unwrap();
            ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
            bytes
        };
        let table = read(bytes(vec![
            polars::prelude::Column::new("n".into(), [3_i32, -4]),
            polars::prelude::Column::new("s".into(), ["a", "b"]),
            polars::prelude::Column::new("b".into(), [true, false]),
        ]));
        let Ok(Contents::Table(columns)) = table else { panic!("{table:?}") };
        assert_eq!(columns[0].1, Column::Numbers(vec![3.0, -4.0]));
        assert_eq!(columns[1].1, Column::Text(vec!["a".into(), "b".into()]));
        assert_eq!(columns[2].1, Column::Numbers(vec![1.0, 0.0]));
        let holes = polars::prelude::Column::new("x".into(), [Some(1.0), None]);
        assert!(read(bytes(vec![holes])).unwrap_err().contains("row 1 of column `x` is empty"));
        assert!(read(b"PAR1".to_vec()).is_err());
    }

    /// A small file, cut off at every byte. Bytes that were changed are not tried: polars
    /// makes room for what a page announces, and what no memory holds ends the process.
    #[test]
    fn a_table_that_was_cut_is_refused() {
        let mut whole = Vec::new();
        let columns = vec![
            polars::prelude::Column::new("n".into(), [3_i32, -4, 5]),
            polars::prelude::Column::new("s".into(), ["a", "b", "a"]),
        ];
        let mut frame = DataFrame::new(3, columns).unwrap();
        ParquetWriter::new(&mut whole).finish(&mut frame).unwrap();
        for at in 0..whole.len() {
            assert!(read(whole[..at].to_vec()).is_err(), "cut at {at}");
        }
    }
}
