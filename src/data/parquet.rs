//! Parquet tables, by polars.

use crate::problem::arrays::{Column, Contents};
use polars::prelude::*;
use std::io::Cursor;

/// The columns: numbers of any kind as f64, text and truth values as text.
pub fn read(bytes: Vec<u8>) -> Result<Contents, String> {
    let frame = ParquetReader::new(Cursor::new(bytes)).finish().map_err(|e| e.to_string())?;
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
}
