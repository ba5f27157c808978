//! Archives of arrays as NumPy writes them.

use std::io::{Cursor, Write};

/// Name, type, order (whether the first index runs fastest), shape and bytes of an array.
pub type Stored<'a> = (&'a str, &'a str, bool, &'a [usize], Vec<u8>);

pub fn npz(arrays: &[Stored<'_>]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, descr, fortran, shape, bytes) in arrays {
        let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let order = if *fortran { "True" } else { "False" };
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({sizes}), }}");
        let header = format!("{header:<117}\n");
        writer.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(b"\x93NUMPY\x01\x00").unwrap();
        writer.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        writer.write_all(header.as_bytes()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Name, shape and numbers of an array.
pub type Named<'a> = (&'a str, &'a [usize], Vec<f64>);

/// An archive of these arrays of doubles.
pub fn doubles(arrays: &[Named<'_>]) -> Vec<u8> {
    of_numbers(arrays, "<f8", |x| x.to_le_bytes().to_vec())
}

/// An archive of these arrays in single precision.
pub fn singles(arrays: &[Named<'_>]) -> Vec<u8> {
    of_numbers(arrays, "<f4", |x| (x as f32).to_le_bytes().to_vec())
}

fn of_numbers(arrays: &[Named<'_>], descr: &str, bytes: impl Fn(f64) -> Vec<u8>) -> Vec<u8> {
    let entries = arrays.iter().map(|(name, shape, numbers)| {
        let bytes = numbers.iter().flat_map(|x| bytes(*x)).collect();
        (*name, descr, false, *shape, bytes)
    });
    npz(&entries.collect::<Vec<_>>())
}
