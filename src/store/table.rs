//! Data files that are Parquet tables, whose columns polars decodes.
//!
//! *Invariant*: a number that is read is the one in the file, and one without a value is missing. A column of
//! another type is not read.

use exactfed_core::problem::arrays::{Column, Contents};
use exactfed_core::problem::column::{exact_text, is_long, number};
use exactfed_runner::data::{ContentError, MOST_BYTES};
use exactfed_runner::panics;
use polars::prelude::*;
use polars_arrow::array::{Array, BooleanArray, PrimitiveArray, Utf8ViewArray};
use polars_arrow::datatypes::Field as ArrowField;
use polars_arrow::types::NativeType;
use polars_parquet::read::{
    BasicDecompressor, FileMetadata, PageReader, column_iter_to_arrays, infer_schema, read_metadata,
};
use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use std::fmt::Display;
use std::io::Cursor;

/// Reads the columns of a Parquet file: numbers of any kind as f64 (whole ones beyond 2^53 with their digits), text as
/// text, and truth values as 1 and 0. Where a value is missing, a number is NaN and a text empty. Columns of other
/// types, such as dates and lists, are not read. Commands and Python pass this function to manifests as the reader of
/// data files, since the crate that reads manifests does not depend on polars.
///
/// # Errors
/// If the file is damaged or announces more bytes than it may unpack to (`MOST_TIMES` and `SMALL` below).
pub fn read(bytes: Vec<u8>) -> Result<Contents, ContentError> {
    let most = (bytes.len() as u64).saturating_mul(MOST_TIMES);
    read_within(&bytes, most.clamp(SMALL, MOST_BYTES))
}

/// Reads the columns of a table that may unpack to `most` bytes. A mistake inside a page can make
/// polars panic, which is an error here.
fn read_within(bytes: &[u8], most: u64) -> Result<Contents, ContentError> {
    panics::caught(|| read_columns(bytes, most))
        .unwrap_or_else(|_| Err(invalid("it is damaged: its parts contradict each other")))
}

/// Reads the columns of a table that may unpack to `most` bytes; a damaged one may make it panic.
fn read_columns(bytes: &[u8], most: u64) -> Result<Contents, ContentError> {
    let metadata = checked_metadata(bytes, most).map_err(invalid)?;
    let schema = infer_schema(&metadata).map_err(invalid)?;
    let mut columns = Vec::new();
    for field in schema.iter_values() {
        columns.push((field.name.to_string(), read_column(bytes, &metadata, field)?));
    }
    Ok(Contents::Table(columns))
}

/// Reads the column of `field` from all groups of rows of a file, unless its type is one that no data has.
fn read_column(
    bytes: &[u8],
    metadata: &FileMetadata,
    field: &ArrowField,
) -> Result<Column, ContentError> {
    let name = &field.name;
    let rows = metadata.num_rows;
    let text = ArrowDataType::Utf8View;
    let kind = match &field.dtype {
        ArrowDataType::Dictionary(_, entries, _) if **entries == text => &text,
        other => other,
    };
    let mut values = match kind {
        ArrowDataType::Utf8View => ColumnValues::Text(Vec::new()),
        ArrowDataType::Null => return Ok(Column::Numbers(vec![f64::NAN; rows])),
        kind if is_number(kind) => ColumnValues::Numbers(NumberValues::default()),
        other => return Ok(Column::Unread { kind: type_name(other), rows }),
    };
    let damaged = |what: &str| invalid(format!("it is damaged: in column `{name}`, {what}"));
    // Texts that the file stores as entries of a dictionary are decoded to plain texts.
    let is_nullable = true;
    let plain_field = ArrowField::new(name.clone(), kind.clone(), is_nullable);
    for group in &metadata.row_groups {
        let mut chunks = group.columns_under_root_iter(name).into_iter().flatten();
        let chunk = chunks.next().ok_or_else(|| damaged("a part is missing"))?;
        if usize::try_from(chunk.num_values()) != Ok(group.num_rows()) {
            return Err(damaged("a part announces another number of rows"));
        }
        let range = chunk.byte_range();
        let part = bytes.get(range.start as usize..range.end as usize);
        let part = part.ok_or_else(|| damaged("the end is missing"))?.to_vec();
        let pages = PageReader::new(Cursor::new(part.into()), chunk, Vec::new(), usize::MAX);
        let decompressed = vec![BasicDecompressor::new(pages, Vec::new())];
        let types = vec![&chunk.descriptor().descriptor.primitive_type];
        let (arrays, _) = column_iter_to_arrays(decompressed, types, plain_field.clone(), None)
            .map_err(|e| invalid(format!("column `{name}` cannot be read: {e}")))?;
        for array in &arrays {
            values.append(&**array)?;
        }
    }
    if values.len() != rows {
        let found = format!("there are {} of {rows} rows", values.len());
        return Err(damaged(&found));
    }
    Ok(values.into_column())
}

/// The error of a table whose content cannot be used, for this reason.
fn invalid(message: impl Display) -> ContentError {
    ContentError::Invalid(message.to_string())
}

/// Whether values of a type are read as numbers, as are truth values.
fn is_number(kind: &ArrowDataType) -> bool {
    use ArrowDataType::*;
    let whole = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    let others = [Boolean, Float16, Float32, Float64];
    whole.contains(kind) || others.contains(kind) || matches!(kind, Decimal(..))
}

/// The name of a type that cannot be data, without its parameters, for messages: `date32`, `list or map`.
fn type_name(kind: &ArrowDataType) -> String {
    use ArrowDataType::*;
    match kind {
        List(_) | LargeList(_) | FixedSizeList(..) => "list or map".into(),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => "binary".into(),
        other => {
            let text = format!("{other:?}");
            text.split(['(', '[', ' ']).next().unwrap_or_default().to_lowercase()
        }
    }
}

/// The values of a column that were read so far.
enum ColumnValues {
    Text(Vec<String>),
    Numbers(NumberValues),
}

/// The numbers of a column that were read so far.
#[derive(Default)]
struct NumberValues {
    /// In double precision, NaN where a value is missing; empty once there are `long` ones.
    exact: Vec<f64>,
    /// As [`Column::LongNumbers`] has them, if one is a whole number beyond 2^53.
    long: Option<Vec<String>>,
}

/// A number of a file.
enum FileNumber {
    /// In double precision, NaN if the value is missing.
    Exact(f64),
    /// A whole number beyond 2^53, by its digits.
    Long(String),
}

/// Why an array is refused that has another type than its column.
const OTHER_TYPE: &str = "it is damaged: the type of a column changes";

impl ColumnValues {
    fn len(&self) -> usize {
        match self {
            Self::Text(texts) => texts.len(),
            Self::Numbers(NumberValues { exact, long }) => {
                long.as_ref().map_or(exact.len(), Vec::len)
            }
        }
    }

    fn into_column(self) -> Column {
        match self {
            Self::Text(texts) => Column::Text(texts),
            Self::Numbers(NumberValues { long: Some(long), .. }) => Column::LongNumbers(long),
            Self::Numbers(NumberValues { exact, long: None }) => Column::Numbers(exact),
        }
    }

    /// Appends the values of `part`, a part of the column.
    fn append(&mut self, part: &dyn Array) -> Result<(), ContentError> {
        match self {
            Self::Text(texts) => {
                let part = part.as_any().downcast_ref::<Utf8ViewArray>();
                let part = part.ok_or_else(|| invalid(OTHER_TYPE))?;
                texts.extend(part.iter().map(|text| text.unwrap_or_default().to_owned()));
                Ok(())
            }
            Self::Numbers(numbers) => numbers.append(part),
        }
    }
}

impl NumberValues {
    /// Appends the values of `part`, a part of the column.
    fn append(&mut self, part: &dyn Array) -> Result<(), ContentError> {
        use ArrowDataType::*;
        match part.dtype() {
            Boolean => {
                let part = part.as_any().downcast_ref::<BooleanArray>();
                for flag in part.ok_or_else(|| invalid(OTHER_TYPE))? {
                    self.push(FileNumber::Exact(flag.map_or(f64::NAN, f64::from)));
                }
            }
            Int8 => self.extend(part, |x: i8| FileNumber::Exact(x.into())),
            Int16 => self.extend(part, |x: i16| FileNumber::Exact(x.into())),
            Int32 => self.extend(part, |x: i32| FileNumber::Exact(x.into())),
            Int64 => self.extend(part, |x: i64| FileNumber::of_whole(x.into())),
            UInt8 => self.extend(part, |x: u8| FileNumber::Exact(x.into())),
            UInt16 => self.extend(part, |x: u16| FileNumber::Exact(x.into())),
            UInt32 => self.extend(part, |x: u32| FileNumber::Exact(x.into())),
            UInt64 => self.extend(part, |x: u64| FileNumber::of_whole(x.into())),
            Float16 => self.extend(part, |x: pf16| FileNumber::Exact(x.0.to_f64())),
            Float32 => self.extend(part, |x: f32| FileNumber::Exact(x.into())),
            Float64 => self.extend(part, FileNumber::Exact),
            Decimal(_, scale) => self.extend(part, |x: i128| FileNumber::of_decimal(x, *scale)),
            _ => return Err(invalid(OTHER_TYPE)),
        }
        Ok(())
    }

    /// Appends the numbers of `part`, which are of type `T` and which `convert` reads; NaN where a value is missing.
    fn extend<T: NativeType>(&mut self, part: &dyn Array, convert: impl Fn(T) -> FileNumber) {
        // The caller chose `T` by the type of the array.
        let part = part.as_any().downcast_ref::<PrimitiveArray<T>>().expect("it has this type");
        for value in part {
            self.push(value.map_or(FileNumber::Exact(f64::NAN), |x| convert(*x)));
        }
    }

    fn push(&mut self, number: FileNumber) {
        match (&mut self.long, number) {
            (None, FileNumber::Exact(x)) => self.exact.push(x),
            (None, FileNumber::Long(digits)) => {
                let before = std::mem::take(&mut self.exact);
                let mut all: Vec<String> = before.iter().map(f64::to_string).collect();
                all.push(digits);
                self.long = Some(all);
            }
            (Some(all), FileNumber::Exact(x)) => all.push(x.to_string()),
            (Some(all), FileNumber::Long(digits)) => all.push(digits),
        }
    }
}

impl FileNumber {
    fn of_whole(x: i128) -> Self {
        if x.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS {
            Self::Exact(x as f64)
        } else {
            Self::Long(x.to_string())
        }
    }

    /// The decimal number `value` · 10^−`scale`, or the number of double precision that is nearest to it.
    fn of_decimal(value: i128, scale: usize) -> Self {
        let sign = if value < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let text = format!("{sign}{whole}.{fraction}");
        if is_long(&text) { Self::Long(exact_text(&text)) } else { Self::Exact(number(&text)) }
    }
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

/// The metadata of a file, which announce sizes within the limit of `most` bytes. Decoding allocates
/// as much as a file announces, and an allocation that fails would end the process: all announced
/// sizes are added up first.
fn checked_metadata(bytes: &[u8], most: u64) -> PolarsResult<FileMetadata> {
    let metadata = read_metadata(&mut Cursor::new(bytes))?;
    let mut announced = AnnouncedSizes { bytes, most, left: most };
    let columns = metadata.schema().fields().len() as u64;
    announced.add((metadata.num_rows as u64).saturating_mul(columns), NUMBER)?;
    let mut rows = Some(0_usize);
    for group in &metadata.row_groups {
        rows = rows.and_then(|rows| rows.checked_add(group.num_rows()));
    }
    if rows != Some(metadata.num_rows) {
        polars_bail!(ComputeError: "it is damaged: its parts announce another number of rows");
    }
    for group in &metadata.row_groups {
        for column in group.parquet_columns() {
            announced.add_column(column.byte_range().start, column.num_values())?;
        }
    }
    Ok(metadata)
}

/// The sizes that a file announces, compared with a limit.
struct AnnouncedSizes<'a> {
    /// The file.
    bytes: &'a [u8],
    /// The limit in bytes.
    most: u64,
    /// Bytes that further parts may announce.
    left: u64,
}

impl AnnouncedSizes<'_> {
    /// Adds `count` values of `each` bytes to what the file has announced so far.
    ///
    /// # Errors
    /// If the file then announces more than the limit.
    fn add(&mut self, count: u64, each: u64) -> PolarsResult<()> {
        let announced = count.checked_mul(each);
        let Some(left) = announced.and_then(|bytes| self.left.checked_sub(bytes)) else {
            let most = MOST_BYTES;
            polars_bail!(ComputeError: "it announces more than the {} bytes that a file of its size may unpack to; uncompressed at most {most} are allowed", self.most);
        };
        self.left = left;
        Ok(())
    }

    /// Adds the bytes that the pages of a column announce in their headers: unpacked, and decoded as numbers. The pages
    /// follow one another from byte `start` of the file on, until they hold `values` values.
    ///
    /// # Errors
    /// If the file then announces more than the limit, or a page is damaged.
    fn add_column(&mut self, start: u64, values: i64) -> PolarsResult<()> {
        let mut bytes = Cursor::new(self.bytes);
        bytes.set_position(start);
        let mut seen = 0;
        while seen < values {
            let mut reader = TCompactInputProtocol::new(&mut bytes, MOST_HEADER);
            let Ok(page) = PageHeader::read_from_in_protocol(&mut reader) else {
                return Err(damaged_file("a page without a header"));
            };
            // A page has one of these three headers.
            let data_v1 = page.data_page_header.map(|header| header.num_values);
            let data_v2 = page.data_page_header_v2.map(|header| header.num_values);
            let data = data_v1.or(data_v2);
            let entries = page.dictionary_page_header.map(|header| header.num_values);
            self.add(unsigned_size(page.uncompressed_page_size)?, 1)?;
            for count in [data, entries].into_iter().flatten() {
                self.add(unsigned_size(count)?, NUMBER)?;
            }
            seen += i64::from(data.unwrap_or(0));
            let compressed = unsigned_size(page.compressed_page_size)?;
            let end = bytes.position().saturating_add(compressed);
            if end > self.bytes.len() as u64 {
                return Err(damaged_file("a page that does not end"));
            }
            bytes.set_position(end);
        }
        Ok(())
    }
}

/// A size in a header of the file, which must not be negative.
fn unsigned_size(size: i32) -> PolarsResult<u64> {
    u64::try_from(size).map_err(|_| damaged_file("a size below zero"))
}

/// The error of a file that is damaged in this way.
fn damaged_file(what: &str) -> PolarsError {
    polars_err!(ComputeError: "it is damaged: {what}")
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
    fn columns_are_widened() {
        let table = read(small(ParquetCompression::default()));
        let Ok(Contents::Table(columns)) = table else { panic!("{table:?}") };
        assert_eq!(columns[0].1, Column::Numbers(vec![3.0, -4.0, 5.0]));
        assert_eq!(columns[1].1, Column::Text(vec!["a".into(), "b".into(), "a".into()]));
        assert_eq!(columns[2].1, Column::Numbers(vec![1.0, 0.0, 1.0]));
        assert!(read(b"PAR1".to_vec()).is_err());
    }

    /// The one column of a table of these values.
    fn column_of(values: Data) -> Column {
        let table = read(bytes(vec![values], ParquetCompression::default()));
        let Ok(Contents::Table(mut columns)) = table else { panic!("{table:?}") };
        columns.remove(0).1
    }

    #[test]
    fn values_that_are_null_are_missing() {
        let name = || "x".into();
        for (values, expected) in [
            (Data::new(name(), [Some(1.5), None]), "[1.5, NaN]"),
            (Data::new(name(), [Some(3_i64), None]), "[3.0, NaN]"),
            (Data::new(name(), [None, Some(true)]), "[NaN, 1.0]"),
            (Data::full_null(name(), 2, &DataType::Null), "[NaN, NaN]"),
        ] {
            let column = column_of(values);
            let Column::Numbers(numbers) = &column else { panic!("{column:?}") };
            assert_eq!(format!("{numbers:?}"), expected);
        }
        let texts = column_of(Data::new(name(), [Some("a"), None, Some("b")]));
        assert_eq!(texts.missing(), [false, true, false]);
    }

    #[test]
    fn whole_numbers_beyond_double_precision_keep_their_digits() {
        let most = 1_i64 << 53;
        let exact = column_of(Data::new("n".into(), [most, -most]));
        assert_eq!(exact, Column::Numbers(vec![most as f64, -most as f64]));
        for beyond in [most + 1, -most - 1, i64::MAX, i64::MIN] {
            let long = column_of(Data::new("n".into(), [Some(7), Some(beyond), None]));
            let texts = vec!["7".to_owned(), beyond.to_string(), "NaN".to_owned()];
            assert_eq!(long, Column::LongNumbers(texts));
        }
        let largest = column_of(Data::new("n".into(), [u64::MAX]));
        assert_eq!(largest, Column::LongNumbers(vec!["18446744073709551615".into()]));
    }

    #[test]
    fn decimal_numbers_are_numbers() {
        let number_of = |value, scale| match FileNumber::of_decimal(value, scale) {
            FileNumber::Exact(x) => x.to_string(),
            FileNumber::Long(digits) => digits,
        };
        assert_eq!(number_of(-12_345, 2), "-123.45");
        assert_eq!(number_of(5, 3), "0.005");
        assert_eq!(number_of(7, 0), "7");
        assert_eq!(number_of(0, 2), "0");
        assert_eq!(number_of(900_719_925_474_099_300, 2), "9007199254740993");
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
        assert!(read_within(&whole, 300_000).is_ok());
        assert!(
            read_within(&whole, 79_999)
                .unwrap_err()
                .to_string()
                .contains("more than the 79999 bytes")
        );
    }
}
