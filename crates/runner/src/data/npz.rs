//! numpy's `.npz`: a zip archive of `.npy` arrays, checksums verified. Arrays `data`, `indices`,
//! `indptr` and `shape` are the compressed sparse rows of `scipy.sparse.save_npz`; two or more
//! arrays that all have one axis of the same length are the columns of a table.

pub mod train_test;

use super::{ContentError, MOST_BYTES};
use exactfed_core::kernel::{SparseRows, SparseRowsError};
use exactfed_core::problem::MOST_SPARSE_FEATURES;
use exactfed_core::problem::arrays::{Array, Column, Contents, check_features, sanitised};
use exactfed_core::words::count;
use npyz::{DType, Endianness, NpyFile, Order, TypeChar};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::io::{Cursor, Read};
use train_test::with_usual_names;

/// The most bytes of an array's header: a hundred or so where it is of numbers.
const MOST_HEADER: usize = 4096;
/// The most brackets in an array's header, which is read by recursion.
const MOST_BRACKETS: usize = 8;
/// How many times the size of an archive it may unpack to, if that is more than [`SMALL`].
const MOST_TIMES: u64 = 100;
/// The number of bytes to which every archive may unpack, however small it is, so that repetitive data are read.
const SMALL: u64 = 256 << 20;

/// An array of an archive.
struct NamedArray {
    name: String,
    array: Array,
}

/// What the arrays of an archive hold: sparse rows, the columns of a table, or arrays by their names. Numbers are
/// widened to f64. Arrays of other values, such as dates, are an error only where a setting uses them.
pub fn read(bytes: Vec<u8>) -> Result<Contents, ContentError> {
    let most = (bytes.len() as u64).saturating_mul(MOST_TIMES);
    read_at_most(bytes, most.clamp(SMALL, MOST_BYTES))
}

/// What the arrays of an archive hold, which may unpack to at most `most` bytes.
fn read_at_most(bytes: Vec<u8>, most: u64) -> Result<Contents, ContentError> {
    let size = bytes.len();
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))
        .map_err(|e| invalid(format!("it is not a zip archive: {e}")))?;
    let mut left = most;
    let mut arrays: Vec<NamedArray> = Vec::new();
    let mut names = HashSet::new();
    let mut format = None;
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(invalid)?;
        let name = entry.name().map_err(invalid)?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let said = |error: ContentError| ContentError::Array {
            name: sanitised(&name),
            error: Box::new(error),
        };
        // The entry is read to its end, where its checksum is compared.
        let mut bytes = Vec::new();
        let taken =
            entry.by_ref().take(left + 1).read_to_end(&mut bytes).map_err(|e| said(invalid(e)))?
                as u64;
        if taken > left {
            return Err(said(invalid(format!(
                "the {size} bytes of the archive unpack to more than {most}; uncompressed (numpy.savez) at most {MOST_BYTES} are allowed"
            ))));
        }
        left -= taken;
        let (file, numbers) = open_array(&bytes).map_err(said)?;
        let text = text_array(&file, numbers).map_err(said)?;
        // The format of scipy's sparse matrices is one text.
        if name == "format"
            && let Some(Array { shape, values: Column::Text(all) }) = &text
            && shape.is_empty()
        {
            format = all.first().cloned();
            continue;
        }
        // Whether scipy had a sparse array or a sparse matrix.
        if name == "_is_array" {
            continue;
        }
        if !names.insert(name.clone()) {
            return Err(ContentError::Invalid(format!(
                "two arrays are called `{}`",
                sanitised(&name)
            )));
        }
        let array = match (text, unread_kind(&file)) {
            (Some(text), _) => text,
            (None, Some(kind)) => unread_array(&file, kind),
            (None, None) => number_array(file, numbers).map_err(said)?,
        };
        arrays.push(NamedArray { name, array });
    }
    contents_of_arrays(arrays, format.as_deref())
}

/// What the arrays of an archive are together: sparse rows in the `format` that scipy names, columns of a table, or
/// single arrays.
///
/// # Errors
/// If the format is another than `csr`, a format is named and there are no sparse rows, or the parts of records for
/// training and for tests do not fit each other.
fn contents_of_arrays(
    arrays: Vec<NamedArray>,
    format: Option<&str>,
) -> Result<Contents, ContentError> {
    let is_sparse =
        arrays.iter().any(|NamedArray { name, array }| name == "indptr" && array.numbers().is_ok());
    // Arrays of one axis and one length are the columns of a table.
    let are_columns = arrays.len() > 1
        && arrays.iter().all(|NamedArray { array, .. }| {
            array.shape.len() == 1 && array.shape == arrays[0].array.shape
        });
    match (is_sparse, format) {
        (true, None | Some("csr")) => sparse_rows(by_names(arrays)),
        (false, None) if are_columns => Ok(Contents::Table(
            arrays.into_iter().map(|NamedArray { name, array }| (name, array.values)).collect(),
        )),
        (false, None) => with_usual_names(by_names(arrays)).map(Contents::Arrays),
        (_, format) => Err(ContentError::Invalid(format!(
            "`format` is \"{}\": of the formats of scipy.sparse only csr is read; convert with .tocsr()",
            sanitised(format.unwrap_or_default())
        ))),
    }
}

/// The compressed sparse rows that `scipy.sparse.save_npz` writes, and the other arrays, such as the labels.
fn sparse_rows(mut arrays: BTreeMap<String, Array>) -> Result<Contents, ContentError> {
    let values = take_array(&mut arrays, "data")?;
    let indices = take_array(&mut arrays, "indices")?;
    let ends = take_array(&mut arrays, "indptr")?;
    let shape = take_array(&mut arrays, "shape")?;
    let [rows, d] = shape[..] else {
        return Err(ContentError::Invalid(format!(
            "`shape` has {}; expected 2",
            count(shape.len(), "number")
        )));
    };
    if !(0.0..=MOST_SPARSE_FEATURES as f64).contains(&d) {
        return Err(ContentError::Invalid(format!(
            "`shape` announces {d} features; at most {MOST_SPARSE_FEATURES} are allowed"
        )));
    }
    check_features(d as usize, values.len()).map_err(ContentError::Shape)?;
    if ends.len() as f64 != rows + 1.0 {
        let offsets = count(ends.len(), "offset");
        return Err(ContentError::Invalid(format!(
            "`indptr` has {offsets}; expected {} for {rows} rows",
            rows + 1.0
        )));
    }
    check_whole("indices", &indices)?;
    check_whole("indptr", &ends)?;
    let offsets = ends.into_iter().map(|x| x as usize).collect();
    // An index that is cut off here is above the most features.
    let columns = indices.into_iter().map(|x| x as u32).collect();
    let features =
        SparseRows::new(d as usize, offsets, columns, values).map_err(|error| match error {
            SparseRowsError::NotRising { .. } => ContentError::UnsortedScipyRows(error),
            other => ContentError::Rows(other),
        })?;
    Ok(Contents::SparseArrays { features, others: arrays })
}

/// Removes an array that a sparse matrix needs, which must have one axis, and returns its numbers.
fn take_array(arrays: &mut BTreeMap<String, Array>, name: &str) -> Result<Vec<f64>, ContentError> {
    match arrays.remove(name) {
        Some(array) if array.shape.len() == 1 => {
            let numbers = array.numbers().map_err(|e| invalid(format!("`{name}`: {e}")))?;
            Ok(numbers.to_vec())
        }
        Some(array) => Err(ContentError::Invalid(format!(
            "`{name}` has the shape {:?}; expected 1 axis",
            array.shape
        ))),
        None => Err(ContentError::Invalid(format!(
            "there is `indptr` of a sparse matrix, but no array `{name}`"
        ))),
    }
}

/// An error if a number of the array of this name is not whole or is below 0, as indices cannot be.
fn check_whole(name: &str, all: &[f64]) -> Result<(), ContentError> {
    match all.iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
        Some(x) => Err(ContentError::Invalid(format!(
            "`{name}` has {x}; expected whole numbers, 0 or more"
        ))),
        None => Ok(()),
    }
}

/// All of these arrays by their names.
fn by_names(arrays: Vec<NamedArray>) -> BTreeMap<String, Array> {
    arrays.into_iter().map(|NamedArray { name, array }| (name, array)).collect()
}

/// What the values of an array of Python objects are called.
const OBJECTS: &str = "Python objects (dtype object)";

/// What the values of an array are called that are not read; `None` if they are numbers or texts.
fn unread_kind(file: &NpyFile<&[u8]>) -> Option<&'static str> {
    let DType::Plain(plain) = file.dtype() else { return None };
    match plain.type_char() {
        TypeChar::DateTime => Some("datetime64"),
        TypeChar::TimeDelta => Some("timedelta64"),
        TypeChar::Object | TypeChar::RawData => Some(OBJECTS),
        _ => None,
    }
}

/// An array whose values are not read.
fn unread_array(file: &NpyFile<&[u8]>, kind: &str) -> Array {
    let shape: Vec<usize> = file.shape().iter().map(|&n| n as usize).collect();
    let rows = shape.first().copied().unwrap_or(0);
    Array { shape, values: Column::Unread { kind: kind.to_owned(), rows } }
}

/// An array of numpy's types S and U, from the `bytes` behind its header; `None` if it is
/// of another type. An empty text is an error, since numpy has no other mark of a text that is missing.
fn text_array(file: &NpyFile<&[u8]>, bytes: &[u8]) -> Result<Option<Array>, ContentError> {
    let DType::Plain(plain) = file.dtype() else { return Ok(None) };
    let wide = plain.type_char() == TypeChar::UnicodeStr;
    if !wide && plain.type_char() != TypeChar::ByteStr {
        return Ok(None);
    }
    let shape: Vec<usize> = file.shape().iter().map(|&n| n as usize).collect();
    let size = plain.num_bytes().unwrap_or(0);
    let whole = shape.iter().try_fold(size, |n, &axis| n.checked_mul(axis));
    if size == 0 || whole != Some(bytes.len()) {
        return Err(ContentError::Invalid(format!(
            "its header announces texts of {size} bytes in the shape {shape:?}, which it does not hold"
        )));
    }
    let is_big = plain.endianness() == Endianness::Big;
    let mut all = Vec::new();
    for (row, text) in bytes.chunks_exact(size).enumerate() {
        let decoded =
            if wide { utf32(text, is_big) } else { String::from_utf8(text.to_vec()).ok() };
        let Some(decoded) = decoded else {
            return Err(ContentError::Invalid(format!("row {row} is not Unicode text")));
        };
        // An empty text is a missing value.
        all.push(decoded.trim_end_matches('\0').to_owned());
    }
    Ok(Some(Array { shape, values: Column::Text(all) }))
}

/// A text from four bytes for each character, as numpy's type U has it, in big-endian order if `is_big`; `None` if it
/// is no Unicode.
fn utf32(text: &[u8], is_big: bool) -> Option<String> {
    let numbers = text.chunks_exact(4).map(|four| {
        let four = [four[0], four[1], four[2], four[3]];
        if is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    });
    numbers.map(char::from_u32).collect()
}

/// Reads the header of an array's file. Returns the file, and its bytes behind the header. A header is refused that is
/// too long or too deep for one of an array of numbers or texts, since its reader would need much memory for it.
fn open_array(bytes: &[u8]) -> Result<(NpyFile<&[u8]>, &[u8]), ContentError> {
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(invalid(
            "it is no array of NumPy: of a workbook or another zip archive, save the table itself as CSV",
        ));
    }
    // Byte 6 is the version of the format. In version 1 the length of the header has two bytes, and later four.
    let length = match (bytes.get(6), bytes.get(8..12)) {
        (Some(1), Some(n)) => 10 + usize::from(u16::from_le_bytes([n[0], n[1]])),
        (_, Some(n)) => 12 + u32::from_le_bytes([n[0], n[1], n[2], n[3]]) as usize,
        _ => return Err(ContentError::Invalid("it is too short for an array".into())),
    };
    if length > MOST_HEADER {
        return Err(ContentError::Invalid(format!(
            "its header announces {length} bytes; an array of numbers has at most {MOST_HEADER}"
        )));
    }
    let text = bytes.get(..length).ok_or_else(|| invalid("it ends within its header"))?;
    if text.iter().filter(|b| b"([{".contains(b)).count() > MOST_BRACKETS {
        return Err(ContentError::Invalid("its header is not that of an array of numbers".into()));
    }
    let file = NpyFile::new(bytes).map_err(|e| invalid(sanitised(&e.to_string())))?;
    Ok((file, &bytes[length..]))
}

/// An array of numbers, its last index running fastest, from the `bytes` behind its header.
///
/// # Errors
/// If the array is not of numbers or truth values, is not as large as its header announces, or has whole numbers beyond
/// 2^53.
fn number_array(file: NpyFile<&[u8]>, bytes: &[u8]) -> Result<Array, ContentError> {
    let shape: Vec<usize> = file.shape().iter().map(|&n| n as usize).collect();
    let order = file.order();
    let (type_char, size, dtype) = match file.dtype() {
        DType::Plain(plain) => (plain.type_char(), plain.size_field(), plain.to_string()),
        other => return Err(unknown(&other.descr())),
    };
    // Headers may lie: what they announce must be there before room is made.
    let count = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size as u64));
    let whole = count.and_then(|n| n.checked_mul(size));
    if whole.is_none_or(|n| n > bytes.len() as u64) {
        return Err(ContentError::Invalid(format!(
            "its header announces the shape {shape:?}, more than it holds"
        )));
    }
    if whole != Some(bytes.len() as u64) {
        return Err(ContentError::Invalid(format!(
            "it holds more than the shape {shape:?} that its header announces"
        )));
    }
    if count.is_none_or(|n| n > MOST_BYTES / 8) {
        return Err(ContentError::Invalid(format!(
            "its shape {shape:?} takes 8 bytes a number; at most {MOST_BYTES} bytes are allowed"
        )));
    }
    let data = numbers(file, bytes, type_char, size, &dtype)?;
    if data.iter().any(|x| x.abs() > 2f64.powi(53) && type_char != TypeChar::Float) {
        return Err(ContentError::Invalid(
            "it holds whole numbers beyond 2^53, which f64 cannot tell apart".into(),
        ));
    }
    let data = if order == Order::Fortran { row_by_row(&shape, &data) } else { data };
    Ok(Array::of_numbers(shape, data))
}

/// The numbers of an array in the order of its file. `type_char` and `size` are the type of a number and its bytes,
/// which `dtype` is in numpy's words, with the order of the bytes. Half precision, which the reader of the file does
/// not know, is read from the `bytes` behind the header.
fn numbers(
    file: NpyFile<&[u8]>,
    bytes: &[u8],
    type_char: TypeChar,
    size: u64,
    dtype: &str,
) -> Result<Vec<f64>, ContentError> {
    macro_rules! numbers {
        ($type:ty) => {
            file.into_vec::<$type>().map_err(invalid)?.into_iter().map(|x| x as f64).collect()
        };
    }
    Ok(match (type_char, size) {
        (TypeChar::Float, 8) => file.into_vec::<f64>().map_err(invalid)?,
        (TypeChar::Float, 4) => numbers!(f32),
        (TypeChar::Int, 8) => numbers!(i64),
        (TypeChar::Int, 4) => numbers!(i32),
        (TypeChar::Uint, 8) => numbers!(u64),
        (TypeChar::Uint, 4) => numbers!(u32),
        (TypeChar::Int, 2) => numbers!(i16),
        (TypeChar::Int, 1) => numbers!(i8),
        (TypeChar::Uint, 2) => numbers!(u16),
        (TypeChar::Uint, 1) => numbers!(u8),
        (TypeChar::Bool, 1) => {
            let flags = file.into_vec::<bool>().map_err(invalid)?;
            flags.into_iter().map(|flag| f64::from(u8::from(flag))).collect()
        }
        (TypeChar::Float, 2) => {
            let pairs = bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
            if dtype.starts_with('>') {
                pairs.map(|pair| half(u16::from_be_bytes(pair))).collect()
            } else {
                pairs.map(|pair| half(u16::from_le_bytes(pair))).collect()
            }
        }
        _ => return Err(unknown(dtype)),
    })
}

/// A number of half precision (IEEE binary16: sign, 5 bits of exponent, 10 of fraction) from its bits.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 1023);
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// The error that an array is of a type which is not read.
fn unknown(dtype: &str) -> ContentError {
    let dtype = sanitised(dtype);
    invalid(format!("its type is {dtype}; expected floats, whole numbers or truth values"))
}

/// The error that the file is not one of its format.
fn invalid(message: impl Display) -> ContentError {
    ContentError::Invalid(message.to_string())
}

/// The numbers of an array of this shape with its last index running fastest, from those with its first index running
/// fastest.
fn row_by_row(shape: &[usize], data: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; data.len()];
    for (from, value) in data.iter().enumerate() {
        let mut rest = from;
        let mut to = 0;
        let mut stride = data.len();
        for &size in shape {
            stride /= size;
            to += rest % size * stride;
            rest /= size;
        }
        out[to] = *value;
    }
    out
}

#[cfg(test)]
#[path = "npz_tests.rs"]
mod tests;
