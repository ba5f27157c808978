//! The file that exported rows are written to: Parquet in groups of rows, or CSV.

use super::parquet::append;
use exactfed_core::words::inert;
use polars::prelude::*;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Rows from which on a group is written.
const GROUP: usize = 1 << 16;

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Apache Parquet, zstd.
    Parquet,
    /// Comma-separated values, RFC 4180.
    Csv,
}

/// The file that rows are written to.
pub enum Sink<'a> {
    /// The writer of groups of rows, and the rows that wait for the next group.
    Parquet(Box<BatchedParquet<'a>>, Option<DataFrame>),
    Csv(Box<csv::Writer<BufWriter<&'a mut File>>>),
}

type BatchedParquet<'a> = polars::io::parquet::write::BatchedWriter<BufWriter<&'a mut File>>;

impl<'a> Sink<'a> {
    /// A file of these columns.
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

    /// Writes these rows after the others, or keeps them until there are more.
    pub fn add(&mut self, frame: DataFrame) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Parquet(writer, waiting) => {
                append(waiting, frame)?;
                let mut all = waiting.take().unwrap_or_default();
                all.rechunk_mut();
                let whole = all.height() / GROUP * GROUP;
                for from in (0..whole).step_by(GROUP) {
                    writer.write_batch(&all.slice(from as i64, GROUP))?;
                }
                *waiting = Some(all.slice(whole as i64, all.height() - whole));
                Ok(())
            }
            Self::Csv(writer) => write_lines(&frame, writer),
        }
    }

    /// Writes what was kept, and the end of the file.
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

/// Writes rows as lines of CSV: numbers with all their digits, nulls empty, lists as
/// numbers with spaces between.
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
                // Of a column with one value, as those of a single cell.
                AnyValue::StringOwned(text) => inert(&text).into_owned(),
                AnyValue::List(values) => {
                    let all = values.f64()?.into_no_null_iter().map(|x| format!("{x:?}"));
                    all.collect::<Vec<_>>().join(" ")
                }
                other => other.to_string(),
            };
            writer.write_field(text)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(())
}
