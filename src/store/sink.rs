//! The file that exported rows are written to: Parquet in groups of rows, or CSV.

use super::parquet::append_rows;
use exactfed_core::words::inert;
use polars::prelude::*;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Rows in a group of a Parquet file, except in its last one.
const GROUP: usize = 1 << 16;

/// The format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Apache Parquet, zstd.
    Parquet,
    /// Comma-separated values, RFC 4180.
    Csv,
}

/// An exported file that is being written.
pub enum Sink<'a> {
    /// A Parquet file: its writer, and the rows, fewer than [`GROUP`], that wait for their group to be full.
    Parquet(Box<BatchedParquet<'a>>, Option<DataFrame>),
    /// A CSV file, whose lines are written at once.
    Csv(Box<csv::Writer<BufWriter<&'a mut File>>>),
}

/// The writer of a Parquet file that takes its rows in several parts.
type BatchedParquet<'a> = polars::io::parquet::write::BatchedWriter<BufWriter<&'a mut File>>;

impl<'a> Sink<'a> {
    /// Begins a file with these columns, which all rows that are added must have, in this order. CSV has no place for
    /// `metadata`, keys with values, which are left out.
    pub fn new(
        file: &'a mut File,
        format: ExportFormat,
        columns: &Schema,
        metadata: Vec<(String, String)>,
    ) -> Result<Self, Box<dyn Error>> {
        let file = BufWriter::new(file);
        match format {
            ExportFormat::Parquet => {
                let metadata = KeyValueMetadata::from_static(metadata);
                let writer = ParquetWriter::new(file)
                    .with_compression(ParquetCompression::Zstd(None))
                    .set_parallel(false)
                    .with_key_value_metadata(Some(metadata))
                    .batched(columns)?;
                Ok(Self::Parquet(Box::new(writer), None))
            }
            ExportFormat::Csv => {
                let mut writer = csv::Writer::from_writer(file);
                writer.write_record(columns.iter_names().map(PlSmallStr::as_str))?;
                Ok(Self::Csv(Box::new(writer)))
            }
        }
    }

    /// Adds rows after the earlier ones. Rows of a Parquet file are kept until their group is full.
    pub fn add(&mut self, frame: DataFrame) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Parquet(writer, waiting) => {
                append_rows(waiting, frame)?;
                let mut all = waiting.take().unwrap_or_default();
                all.rechunk_mut();
                let in_full_groups = all.height() / GROUP * GROUP;
                for from in (0..in_full_groups).step_by(GROUP) {
                    writer.write_batch(&all.slice(from as i64, GROUP))?;
                }
                *waiting = Some(all.slice(in_full_groups as i64, all.height() - in_full_groups));
                Ok(())
            }
            Self::Csv(writer) => write_lines(&frame, writer),
        }
    }

    /// Writes the rows of the last group, and the end of the file, without which no reader takes it for Parquet.
    pub fn finish(self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Parquet(mut writer, waiting) => {
                if let Some(last) = waiting.filter(|last| last.height() > 0) {
                    writer.write_batch(&last)?;
                }
                writer.finish()?;
            }
            Self::Csv(mut writer) => writer.flush()?,
        }
        Ok(())
    }
}

/// Writes rows as lines of CSV: numbers with all their digits, nulls as empty fields, lists as numbers with spaces
/// between, and texts so that no spreadsheet takes them for formulas: with a `'` before a text that would begin one.
fn write_lines<W: Write>(
    frame: &DataFrame,
    writer: &mut csv::Writer<W>,
) -> Result<(), Box<dyn Error>> {
    for row in 0..frame.height() {
        for column in frame.columns() {
            let text = match column.get(row)? {
                AnyValue::Null => String::new(),
                AnyValue::Float64(x) => format!("{x:?}"),
                AnyValue::String(text) => inert(text).into_owned(),
                // Polars gives an owned text where a column holds one value for all its rows.
                AnyValue::StringOwned(text) => inert(&text).into_owned(),
                AnyValue::List(values) => {
                    let numbers = values.f64()?.into_no_null_iter();
                    let texts: Vec<String> = numbers.map(|x| format!("{x:?}")).collect();
                    texts.join(" ")
                }
                other => other.to_string(),
            };
            writer.write_field(text)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(())
}
