//! The file that exported rows are written to: Parquet in groups of rows, or CSV.

use exactfed_core::words::inert;
use polars::prelude::*;
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
        columns: &[(String, DataType)],
        metadata: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let file = BufWriter::new(file);
        match format {
            ExportFormat::Parquet => {
                let field =
                    |(name, kind): &(String, DataType)| Field::new((&**name).into(), kind.clone());
                let schema: Schema = columns.iter().map(field).collect();
                let metadata = KeyValueMetadata::from_static(metadata);
                ParquetWriter::new(file)
                    .with_compression(ParquetCompression::Zstd(None))
                    .set_parallel(false)
                    .with_key_value_metadata(Some(metadata))
                    .batched(&schema)
                    .map(|writer| Self::Parquet(Box::new(writer), None))
                    .map_err(|e| e.to_string())
            }
            ExportFormat::Csv => {
                let mut writer = csv::Writer::from_writer(file);
                let names = columns.iter().map(|(name, _)| name);
                writer.write_record(names).map_err(|e| e.to_string())?;
                Ok(Self::Csv(Box::new(writer)))
            }
        }
    }

    /// Writes these rows after the others, or keeps them until there are more.
    pub fn add(&mut self, frame: DataFrame) -> Result<(), String> {
        match self {
            Self::Parquet(writer, waiting) => {
                let mut all = match waiting.take() {
                    Some(mut before) => {
                        before.vstack_mut_owned(frame).map_err(|e| e.to_string())?;
                        before
                    }
                    None => frame,
                };
                all.rechunk_mut();
                let whole = all.height() / GROUP * GROUP;
                for from in (0..whole).step_by(GROUP) {
                    let group = all.slice(from as i64, GROUP);
                    writer.write_batch(&group).map_err(|e| e.to_string())?;
                }
                *waiting = Some(all.slice(whole as i64, all.height() - whole));
                Ok(())
            }
            Self::Csv(writer) => write_lines(&frame, writer),
        }
    }

    /// Writes what was kept, and the end of the file.
    pub fn finish(self) -> Result<(), String> {
        match self {
            Self::Parquet(mut writer, waiting) => {
                if let Some(last) = waiting.filter(|last| last.height() > 0) {
                    writer.write_batch(&last).map_err(|e| e.to_string())?;
                }
                writer.finish().map(drop).map_err(|e| e.to_string())
            }
            Self::Csv(mut writer) => writer.flush().map_err(|e| e.to_string()),
        }
    }
}

/// Writes rows as lines of CSV: numbers with all their digits, nulls empty, lists as
/// numbers with spaces between.
fn write_lines<W: Write>(frame: &DataFrame, writer: &mut csv::Writer<W>) -> Result<(), String> {
    for row in 0..frame.height() {
        for column in frame.columns() {
            let value = column.get(row).map_err(|e| e.to_string())?;
            let text = match value {
                AnyValue::Null => String::new(),
                AnyValue::Float64(x) => format!("{x:?}"),
                AnyValue::String(text) => inert(text).into_owned(),
                // Of a column with one value, as those of a single cell.
                AnyValue::StringOwned(text) => inert(&text).into_owned(),
                AnyValue::List(values) => {
                    let values = values.f64().map_err(|e| e.to_string())?;
                    let all: Vec<String> =
                        values.into_no_null_iter().map(|x| format!("{x:?}")).collect();
                    all.join(" ")
                }
                other => other.to_string(),
            };
            writer.write_field(text).map_err(|e| e.to_string())?;
        }
        writer.write_record(None::<&[u8]>).map_err(|e| e.to_string())?;
    }
    Ok(())
}
