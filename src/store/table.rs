//! Data files that are Parquet tables, read by polars.

use exactfed_core::problem::arrays::{Column, Contents};
use exactfed_runner::data::MOST_BYTES;
use exactfed_runner::panics;
use polars::prelude::*;
use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use std::io::Cursor;

/// The columns: numbers of any kind as f64, text and truth values as text.
pub fn read(bytes: Vec<u8>) -> Result<Contents, String> {
    let most = (bytes.len() as u64).saturating_mul(MOST_TIMES);
    within(&bytes, most.clamp(SMALL, MOST_BYTES))
}

/// The columns of a table that may unpack to so many bytes. A mistake inside a page can make
/// polars panic, which is an error here.
fn within(bytes: &[u8], most: u64) -> Result<Contents, String> {
    let read = || columns(&decoded(bytes, most).map_err(|e| e.to_string())?);
    panics::caught(read)
        .unwrap_or_else(|_| Err("it is damaged: its parts contradict each other".into()))
}

fn columns(frame: &DataFrame) -> Result<Contents, String> {
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
            kind if kind.is_primitive_numeric() || *kind == DataType::Boolean => {
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

/// How many times its size a table that is not small may unpack to: a flag takes a bit, or
/// less, in a file, and 8 bytes as a number.
const MOST_TIMES: u64 = 1000;
/// Bytes that any table may unpack to.
const SMALL: u64 = 256 << 20;
/// The most bytes of the texts in a page's header: of its statistics.
const MOST_HEADER: usize = 1 << 20;
/// Bytes that a number takes once it is read.
const NUMBER: u64 = 8;

/// The table that polars reads from the bytes. It allocates as much as a file announces, and an
/// allocation that fails would end the process: all announced sizes are added up first.
fn decoded(bytes: &[u8], most: u64) -> PolarsResult<DataFrame> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let about = reader.get_metadata()?.clone();
    let mut announced = Announced { bytes, most, left: most };
    let columns = about.schema().fields().len() as u64;
    announced.add((about.num_rows as u64).saturating_mul(columns), NUMBER)?;
    for column in about.row_groups.iter().flat_map(|group| group.parquet_columns()) {
        announced.column(column.byte_range().start, column.num_values())?;
    }
    reader.read_parallel(ParallelStrategy::None).finish()
}

/// The sizes that a file announces, compared with the limit.
struct Announced<'a> {
    bytes: &'a [u8],
    most: u64,
    left: u64,
}

impl Announced<'_> {
    fn add(&mut self, count: u64, each: u64) -> PolarsResult<()> {
        let left = count.checked_mul(each).and_then(|bytes| self.left.checked_sub(bytes));
        self.left = left.ok_or_else(|| {
            let most = MOST_BYTES;
            polars_err!(ComputeError: "it announces more than the {} bytes that a file of its size may unpack to; uncompressed at most {most} are allowed", self.most)
        })?;
        Ok(())
    }

    /// The pages of a column, one behind another from `start` on, until all its values
    /// are there.
    fn column(&mut self, start: u64, values: i64) -> PolarsResult<()> {
        let damaged = |what| polars_err!(ComputeError: "it is damaged: {what}");
        let size = |size: i32| u64::try_from(size).map_err(|_| damaged("a size below zero"));
        let mut bytes = Cursor::new(self.bytes);
        bytes.set_position(start);
        let mut seen = 0;
        while seen < values {
            let mut reader = TCompactInputProtocol::new(&mut bytes, MOST_HEADER);
            let page = PageHeader::read_from_in_protocol(&mut reader);
            let page = page.map_err(|_| damaged("a page without a header"))?;
            let v1 = page.data_page_header.map(|data| data.num_values);
            let data = v1.or(page.data_page_header_v2.map(|data| data.num_values));
            let entries = page.dictionary_page_header.map(|entries| entries.num_values);
            self.add(size(page.uncompressed_page_size)?, 1)?;
            for count in [data, entries].into_iter().flatten() {
                self.add(size(count)?, NUMBER)?;
            }
            seen += i64::from(data.unwrap_or(0));
            let end = bytes.position().saturating_add(size(page.compressed_page_size)?);
            if end > self.bytes.len() as u64 {
                return Err(damaged("a page that does not end"));
            }
            bytes.set_position(end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::Column as Data;

    /// The bytes of a table.
    fn bytes(columns: Vec<Data>, compression: ParquetCompression) -> Vec<u8> {
        let mut bytes = Vec::new();
        let writer = ParquetWriter::new(&mut bytes).with_compression(compression);
        let height = columns.first().map_or(0, |column| column.len());
        writer.finish(&mut DataFrame::new(height, columns).unwrap()).unwrap();
        bytes
    }

    /// A table of every kind of column.
    fn small(compression: ParquetCompression) -> Vec<u8> {
        let columns = vec![
            Data::new("n".into(), [3_i32, -4, 5]),
            Data::new("s".into(), ["a", "b", "a"]),
            Data::new("b".into(), [true, false, true]),
            Data::new("x".into(), [0.5, 0.25, 0.5]),
        ];
        bytes(columns, compression)
    }

    #[test]
    fn columns_are_widened_and_empty_cells_refused() {
        let table = read(small(ParquetCompression::default()));
        let Ok(Contents::Table(columns)) = table else { panic!("{table:?}") };
        assert_eq!(columns[0].1, Column::Numbers(vec![3.0, -4.0, 5.0]));
        assert_eq!(columns[1].1, Column::Text(vec!["a".into(), "b".into(), "a".into()]));
        assert_eq!(columns[2].1, Column::Numbers(vec![1.0, 0.0, 1.0]));
        let holes =
            bytes(vec![Data::new("x".into(), [Some(1.0), None])], ParquetCompression::default());
        assert!(read(holes).unwrap_err().contains("row 1 of column `x` is empty"));
        assert!(read(b"PAR1".to_vec()).is_err());
    }

    #[test]
    fn a_table_that_was_cut_is_refused() {
        let whole = small(ParquetCompression::default());
        assert!(read(whole.clone()).is_ok());
        for length in 0..whole.len() {
            assert!(read(whole[..length].to_vec()).is_err(), "{length} bytes");
        }
    }

    /// The changed bytes may be a table or an error; none may ask for more memory than exists,
    /// which would end the process.
    #[test]
    fn a_table_with_another_byte_is_read_or_refused() {
        for compression in [
            ParquetCompression::Uncompressed,
            ParquetCompression::Snappy,
            ParquetCompression::Gzip(None),
            ParquetCompression::Brotli(None),
            ParquetCompression::Zstd(None),
            ParquetCompression::Lz4Raw,
        ] {
            let whole = small(compression);
            assert!(read(whole.clone()).is_ok(), "{compression:?}");
            for place in 0..whole.len() {
                for other in [0xff, whole[place] ^ 1] {
                    let mut bytes = whole.clone();
                    bytes[place] = other;
                    let _ = read(bytes);
                }
            }
        }
    }

    #[test]
    fn a_table_that_announces_more_than_it_may_is_refused() {
        let zeros = Data::new("n".into(), vec![0.0; 10_000]);
        let whole = bytes(vec![zeros], ParquetCompression::default());
        assert!(whole.len() < 1000);
        assert!(within(&whole, 300_000).is_ok());
        assert!(within(&whole, 79_999).unwrap_err().contains("more than the 79999 bytes"));
    }
}
