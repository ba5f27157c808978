//! numpy's `.npz`: a zip archive of `.npy` arrays, checksums verified. Arrays `data`, `indices`,
//! `indptr` and `shape` are the compressed sparse rows of `scipy.sparse.save_npz`.

use super::MOST_BYTES;
use driftbench_core::kernel::SparseRows;
use driftbench_core::problem::MOST_SPARSE_FEATURES;
use driftbench_core::problem::arrays::{Array, Contents, sanitised};
use driftbench_core::words::count;
use npyz::{DType, NpyFile, Order, TypeChar};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};

/// The most bytes of an array's header: a hundred or so where it is of numbers.
const MOST_HEADER: usize = 4096;
/// The most brackets in an array's header, which is read by recursion.
const MOST_BRACKETS: usize = 8;
/// How many times its size an archive may unpack to, beyond what is small.
const MOST_TIMES: u64 = 100;
/// What is small.
const SMALL: u64 = 256 << 20;

/// The arrays by name, numbers widened to f64.
pub fn read(bytes: Vec<u8>) -> Result<Contents, String> {
    let most = (bytes.len() as u64).saturating_mul(MOST_TIMES);
    within(bytes, most.clamp(SMALL, MOST_BYTES))
}

/// The arrays of an archive that may unpack to so many bytes.
fn within(bytes: Vec<u8>, most: u64) -> Result<Contents, String> {
    let size = bytes.len();
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))
        .map_err(|e| format!("it is not a zip archive: {e}"))?;
    let mut left = most;
    let mut arrays = BTreeMap::new();
    let mut format = None;
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(|e| e.to_string())?;
        let name = entry.name().map_err(|e| e.to_string())?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let said = |message: String| format!("`{}`: {message}", sanitised(&name));
        // Read to its end: that is where the checksum is compared.
        let mut bytes = Vec::new();
        let taken = entry.by_ref().take(left + 1).read_to_end(&mut bytes);
        let taken = taken.map_err(|e| said(e.to_string()))? as u64;
        if taken > left {
            return Err(said(format!(
                "the {size} bytes of the archive unpack to more than {most}; uncompressed (numpy.savez) at most {MOST_BYTES} are allowed"
            )));
        }
        left -= taken;
        if let ("format", Ok(text)) = (name.as_str(), text(&bytes)) {
            format = Some(text);
            continue;
        }
        // Whether scipy had a sparse array or a sparse matrix.
        if name == "_is_array" {
            continue;
        }
        let array = array(&bytes).map_err(said)?;
        if arrays.contains_key(&name) {
            return Err(format!("two arrays are called `{}`", sanitised(&name)));
        }
        arrays.insert(name, array);
    }
    match (arrays.contains_key("indptr"), format.as_deref()) {
        (true, None | Some("csr")) => sparse(arrays),
        (false, None) => Ok(Contents::Arrays(arrays)),
        (_, format) => Err(format!(
            "`format` is \"{}\": of the formats of scipy.sparse only csr is read; convert with .tocsr()",
            sanitised(format.unwrap_or_default())
        )),
    }
}

/// The compressed sparse rows that `scipy.sparse.save_npz` writes, and the other arrays.
fn sparse(mut arrays: BTreeMap<String, Array>) -> Result<Contents, String> {
    let mut take = |name: &str| match arrays.remove(name) {
        Some(array) if array.shape.len() == 1 => Ok(array.data),
        Some(array) => Err(format!("`{name}` has the shape {:?}; expected 1 axis", array.shape)),
        None => Err(format!("there is `indptr` of a sparse matrix, but no array `{name}`")),
    };
    let [values, indices, ends, shape] =
        [take("data")?, take("indices")?, take("indptr")?, take("shape")?];
    let [rows, d] = shape[..] else {
        return Err(format!("`shape` has {}; expected 2", count(shape.len(), "number")));
    };
    if !(0.0..=MOST_SPARSE_FEATURES as f64).contains(&d) {
        return Err(format!(
            "`shape` announces {d} features; at most {MOST_SPARSE_FEATURES} are allowed"
        ));
    }
    if ends.len() as f64 != rows + 1.0 {
        let offsets = count(ends.len(), "offset");
        return Err(format!("`indptr` has {offsets}; expected {} for {rows} rows", rows + 1.0));
    }
    let whole = |name: &str, all: &[f64]| match all.iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
        Some(x) => Err(format!("`{name}` has {x}; expected whole numbers, 0 or more")),
        None => Ok(()),
    };
    whole("indices", &indices)?;
    whole("indptr", &ends)?;
    let offsets = ends.into_iter().map(|x| x as usize).collect();
    // An index that is cut off here is above the most features.
    let columns = indices.into_iter().map(|x| x as u32).collect();
    let advice = "scipy's sum_duplicates() sorts the indices of each row and adds equal ones up";
    let features = SparseRows::new(d as usize, offsets, columns, values)
        .map_err(|e| if e.ends_with("does not rise") { format!("{e}; {advice}") } else { e })?;
    Ok(Contents::SparseArrays { features, others: arrays })
}

/// A text of ASCII letters, of numpy's types S and U: the name of a sparse format.
fn text(bytes: &[u8]) -> Result<String, String> {
    let begin = header(bytes)?;
    let file = NpyFile::new(bytes).map_err(|e| sanitised(&e.to_string()))?;
    match file.dtype() {
        DType::Plain(plain)
            if matches!(plain.type_char(), TypeChar::ByteStr | TypeChar::UnicodeStr) =>
        {
            // The letters of U have four bytes.
            let letters = bytes[begin..].iter().filter(|byte| **byte != 0);
            Ok(letters.map(|byte| char::from(*byte)).collect())
        }
        other => Err(format!("its type is {}; expected a text", sanitised(&other.descr()))),
    }
}

/// The length of the part before the numbers, if that is what an array of
/// numbers has.
fn header(bytes: &[u8]) -> Result<usize, String> {
    let length = match (bytes.get(6), bytes.get(8..12)) {
        (Some(1), Some(n)) => 10 + usize::from(u16::from_le_bytes([n[0], n[1]])),
        (_, Some(n)) => 12 + u32::from_le_bytes([n[0], n[1], n[2], n[3]]) as usize,
        _ => return Err("it is too short for an array".into()),
    };
    if length > MOST_HEADER {
        return Err(format!(
            "its header announces {length} bytes; an array of numbers has at most {MOST_HEADER}"
        ));
    }
    let text = bytes.get(..length).ok_or("it ends within its header")?;
    if text.iter().filter(|b| b"([{".contains(b)).count() > MOST_BRACKETS {
        return Err("its header is not that of an array of numbers".into());
    }
    Ok(length)
}

fn array(bytes: &[u8]) -> Result<Array, String> {
    let begin = header(bytes)?;
    let file = NpyFile::new(bytes).map_err(|e| sanitised(&e.to_string()))?;
    let shape: Vec<usize> = file.shape().iter().map(|&n| n as usize).collect();
    let order = file.order();
    let (kind, dtype) = match file.dtype() {
        DType::Plain(plain) => ((plain.type_char(), plain.size_field()), plain.to_string()),
        other => return Err(unknown(&other.descr())),
    };
    // Headers may lie: what they announce must be there before room is made.
    let count = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size as u64));
    let whole = count.and_then(|n| n.checked_mul(kind.1)).and_then(|n| n.checked_add(begin as u64));
    if whole.is_none_or(|n| n > bytes.len() as u64) {
        return Err(format!("its header announces the shape {shape:?}, more than it holds"));
    }
    if whole != Some(bytes.len() as u64) {
        return Err(format!("it holds more than the shape {shape:?} that its header announces"));
    }
    if count.is_none_or(|n| n > MOST_BYTES / 8) {
        return Err(format!(
            "its shape {shape:?} takes 8 bytes a number; at most {MOST_BYTES} bytes are allowed"
        ));
    }
    let data = numbers(file, &bytes[begin..], kind, &dtype)?;
    if data.iter().any(|x| x.abs() > 2f64.powi(53) && kind.0 != TypeChar::Float) {
        return Err("it holds whole numbers beyond 2^53, which f64 cannot tell apart".into());
    }
    let data = if order == Order::Fortran { row_by_row(&shape, &data) } else { data };
    Ok(Array { shape, data })
}

/// The numbers of an array in its own order, from its file or from the `bytes` behind its header.
fn numbers(
    file: NpyFile<&[u8]>,
    bytes: &[u8],
    kind: (TypeChar, u64),
    dtype: &str,
) -> Result<Vec<f64>, String> {
    macro_rules! numbers {
        ($type:ty) => {
            file.into_vec::<$type>()
                .map_err(|e| e.to_string())?
                .into_iter()
                .map(|x| x as f64)
                .collect()
        };
    }
    Ok(match kind {
        (TypeChar::Float, 8) => file.into_vec::<f64>().map_err(|e| e.to_string())?,
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
            let flags = file.into_vec::<bool>().map_err(|e| e.to_string())?;
            flags.into_iter().map(|flag| f64::from(u8::from(flag))).collect()
        }
        (TypeChar::Float, 2) => {
            let pairs = bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
            match dtype.starts_with('>') {
                true => pairs.map(|pair| half(u16::from_be_bytes(pair))).collect(),
                false => pairs.map(|pair| half(u16::from_le_bytes(pair))).collect(),
            }
        }
        _ => return Err(unknown(dtype)),
    })
}

/// A number of half precision from its bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

fn unknown(dtype: &str) -> String {
    let dtype = sanitised(dtype);
    format!("its type is {dtype}; expected floats, whole numbers or truth values")
}

/// From the first index fastest to the last index fastest.
fn row_by_row(shape: &[usize], data: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; data.len()];
    for (from, value) in data.iter().enumerate() {
        let (mut rest, mut to, mut stride) = (from, 0, data.len());
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
mod tests {
    use super::*;
    use std::io::Write;

    /// An `.npy` file of this header and these bytes.
    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let padded = format!("{header:<117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((padded.len() as u16).to_le_bytes());
        bytes.extend(padded.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn npz(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in files {
            writer.start_file(*name, stored).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn doubles(header: &str, values: &[f64]) -> Vec<u8> {
        npy(header, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    }

    const ROWS: &str = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    const COLUMNS: &str = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }";

    #[test]
    fn arrays_come_row_by_row_in_any_order_and_type() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let scalar = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }";
        let whole = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
        let bytes = npz(&[
            ("rows.npy", doubles(ROWS, &x)),
            ("columns.npy", doubles(COLUMNS, &x)),
            ("gamma.npy", npy(scalar, &0.5_f32.to_le_bytes())),
            ("n.npy", npy(whole, &[7, 0, 0, 0, 255, 255, 255, 255])),
        ]);
        let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!() };
        assert_eq!(arrays["rows"], Array { shape: vec![2, 3], data: x.into() });
        assert_eq!(arrays["columns"].data, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert_eq!(arrays["gamma"], Array { shape: vec![], data: vec![0.5] });
        assert_eq!(arrays["n"].data, [7.0, -1.0]);
    }

    /// The arrays of `scipy.sparse.save_npz`, those of these names replaced.
    fn scipy(replaced: &[(&str, Vec<u8>)]) -> Result<Contents, String> {
        let whole = |shape: &str, values: &[i32]| {
            let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}");
            npy(&header, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
        };
        let values = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }";
        let truth = "{'descr': '|b1', 'fortran_order': False, 'shape': (), }";
        let mut files = vec![
            ("indices.npy", whole("(3,)", &[0, 4, 2])),
            ("indptr.npy", whole("(3,)", &[0, 2, 3])),
            ("format.npy", format_name("|S3", b"csr")),
            ("shape.npy", whole("(2,)", &[2, 5])),
            ("data.npy", doubles(values, &[0.5, -1.0, 3.0])),
            ("_is_array.npy", npy(truth, &[1])),
            ("y.npy", whole("(2,)", &[1, -1])),
        ];
        for (name, bytes) in replaced {
            files.retain(|(known, _)| known != name);
            if !bytes.is_empty() {
                files.push((name, bytes.clone()));
            }
        }
        read(npz(&files))
    }

    fn format_name(dtype: &str, bytes: &[u8]) -> Vec<u8> {
        npy(&format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (), }}"), bytes)
    }

    fn integers(values: &[i64]) -> Vec<u8> {
        let n = values.len();
        let header = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({n},), }}");
        npy(&header, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn scipys_sparse_rows_stay_sparse() {
        // As bytes, as numpy writes a str, or left out.
        let unicode = format_name("<U3", b"c\0\0\0s\0\0\0r\0\0\0");
        for format in [format_name("|S3", b"csr"), unicode, Vec::new()] {
            let Ok(Contents::SparseArrays { features, others }) = scipy(&[("format.npy", format)])
            else {
                panic!()
            };
            let dense = [0.5, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 3.0, 0.0, 0.0];
            assert_eq!((features.to_dense(), features.values().len()), (dense.to_vec(), 3));
            assert_eq!(others.keys().collect::<Vec<_>>(), ["y"]);
        }
    }

    #[test]
    fn sparse_rows_that_are_wrong_are_refused() {
        let columns = format_name("|S3", b"csc");
        let half = doubles("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", &[0.5; 3]);
        for (name, bytes, message) in [
            ("format.npy", columns, "`format` is \"csc\": of the formats of scipy.sparse only csr"),
            ("indptr.npy", Vec::new(), "`format` is \"csr\""),
            ("indices.npy", Vec::new(), "no array `indices`"),
            ("shape.npy", Vec::new(), "no array `shape`"),
            ("shape.npy", integers(&[2, 5, 1]), "`shape` has 3 numbers; expected 2"),
            ("shape.npy", integers(&[3, 5]), "`indptr` has 3 offsets; expected 4 for 3 rows"),
            ("shape.npy", integers(&[2, 1 << 40]), "announces 1099511627776 features"),
            ("shape.npy", integers(&[2, 4]), "row 0: index 4 is not below 4"),
            ("indices.npy", integers(&[4, 0, 2]), "row 0: index 0 does not rise; scipy's"),
            ("indices.npy", integers(&[0, 1 << 40, 2]), "row 0: index 4294967295 is not below 5"),
            ("indices.npy", integers(&[0, -1, 2]), "`indices` has -1; expected whole numbers"),
            ("indices.npy", half, "`indices` has 0.5; expected whole numbers"),
            ("indices.npy", integers(&[0, 4]), "there are 3 values, but 2 indices"),
            ("indptr.npy", integers(&[0, 5, 3]), "row 1 ends before it begins"),
            ("indptr.npy", integers(&[0, 2, 4]), "must begin at 0 and end at 3"),
        ] {
            let said = scipy(&[(name, bytes)]).unwrap_err();
            assert!(said.contains(message), "{said}");
        }
    }

    #[test]
    fn small_types_are_widened() {
        let header =
            |kind: &str| format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (3,), }}");
        for (kind, data, wanted) in [
            // As numpy writes float16: 1, −2, 65504; the largest subnormal, ∞ and −0.1.
            ("<f2", vec![0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b], [1.0, -2.0, 65504.0]),
            (">f2", vec![0x3c, 0x00, 0xc0, 0x00, 0x7b, 0xff], [1.0, -2.0, 65504.0]),
            (
                "<f2",
                vec![0xff, 0x03, 0x00, 0x7c, 0x66, 0xae],
                [1023.0 / 16_777_216.0, f64::INFINITY, -0.099_975_585_937_5],
            ),
            ("<i2", vec![1, 0, 255, 255, 0, 128], [1.0, -1.0, -32768.0]),
            ("<u2", vec![1, 0, 255, 255, 0, 128], [1.0, 65535.0, 32768.0]),
            ("|i1", vec![1, 255, 128], [1.0, -1.0, -128.0]),
            ("|u1", vec![1, 255, 128], [1.0, 255.0, 128.0]),
            ("|b1", vec![1, 0, 1], [1.0, 0.0, 1.0]),
        ] {
            let bytes = npz(&[("x.npy", npy(&header(kind), &data))]);
            let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!("{kind}") };
            assert_eq!(arrays["x"].data, wanted, "{kind}");
        }
    }

    #[test]
    fn a_flipped_bit_is_found() {
        let mut bytes = npz(&[("x.npy", doubles(ROWS, &[1.0; 6]))]);
        let at = bytes.windows(8).position(|w| w == 1.0_f64.to_le_bytes()).unwrap();
        bytes[at + 3] ^= 4;
        let said = read(bytes).unwrap_err();
        assert!(said.contains("`x`") && said.to_lowercase().contains("checksum"), "{said}");
    }

    #[test]
    fn what_is_no_array_of_numbers_is_refused() {
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99999999), }";
        let complex = "{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }";
        for (bytes, message) in [
            (b"no zip".to_vec(), "it is not a zip archive"),
            (npz(&[("x.npy", doubles(huge, &[1.0]))]), "more than it holds"),
            (
                npz(&[("x.npy", npy(complex, &[0; 16]))]),
                "expected floats, whole numbers or truth values",
            ),
            (npz(&[("x.npy", b"nonsense".to_vec())]), "`x`"),
            (npz(&[("x.npy", doubles(ROWS, &[1.0; 5]))]), "more than it holds"),
            (npz(&[("x.npy", doubles(ROWS, &[1.0; 7]))]), "it holds more than the shape [2, 3]"),
            (npz(&[("x.npy", b"\x93NUMPY\x02\x00".to_vec())]), "too short"),
            (npz(&[("x.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec())]), "4294967307"),
            (npz(&[("x.npy", doubles(ROWS, &[1.0; 6])), ("x", doubles(ROWS, &[1.0; 6]))]), "two"),
        ] {
            let said = read(bytes).unwrap_err();
            assert!(said.contains(message), "{said}");
        }
    }

    /// A header is read by recursion: brackets within brackets would use up the stack.
    #[test]
    fn a_header_of_brackets_is_refused() {
        for depth in [9, 2_000, 30_000] {
            let said = read(npz(&[("x.npy", npy(&"(".repeat(depth), &[]))])).unwrap_err();
            assert!(said.contains("header"), "{said}");
        }
    }

    /// A few kilobytes that unpack to megabytes.
    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let packed = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        for name in ["x.npy", "y.npy"] {
            writer.start_file(name, packed).unwrap();
            let shape = "{'descr': '<f8', 'fortran_order': False, 'shape': (131072,), }";
            writer.write_all(&npy(shape, &vec![0; 1 << 20])).unwrap();
        }
        let bytes = writer.finish().unwrap().into_inner();
        assert!(bytes.len() < 1 << 16, "{}", bytes.len());
        assert!(within(bytes.clone(), 3 << 20).is_ok());
        let said = within(bytes, (1 << 20) + 200).unwrap_err();
        assert!(said.starts_with("`y`: the ") && said.contains("more than 1048776"), "{said}");
    }
}
