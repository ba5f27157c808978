//! Archives of arrays as NumPy writes them.

use std::io::{Cursor, Write};

/// An array of an archive: its name, its type as NumPy writes it (`<f8`), whether it is in Fortran's order (the first
/// index runs fastest), its shape and its bytes.
pub type Stored<'a> = (&'a str, &'a str, bool, &'a [usize], Vec<u8>);

/// The bytes of an archive `.npz` of these arrays. Nothing checks that the bytes of an array are as many as its type
/// and its shape say, so that tests can make archives that a reader must refuse.
pub fn npz(arrays: &[Stored<'_>]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, descr, fortran, shape, bytes) in arrays {
        let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let order = if *fortran { "True" } else { "False" };
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({sizes}), }}");
        // With the ten bytes before it a short header has 128 bytes: NumPy aligns the data to 64.
        let header = format!("{header:<117}\n");
        writer.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(b"\x93NUMPY\x01\x00").unwrap();
        writer.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        writer.write_all(header.as_bytes()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// An array of numbers: its name, its shape and the numbers in C order.
pub type Named<'a> = (&'a str, &'a [usize], Vec<f64>);

/// The bytes of an archive `.npz` of these arrays in double precision.
pub fn doubles(arrays: &[Named<'_>]) -> Vec<u8> {
    of_numbers(arrays, "<f8", |x| x.to_le_bytes().to_vec())
}

/// The bytes of an archive `.npz` of these arrays in single precision, to which the numbers are rounded.
pub fn singles(arrays: &[Named<'_>]) -> Vec<u8> {
    of_numbers(arrays, "<f4", |x| (x as f32).to_le_bytes().to_vec())
}

/// The bytes of an archive of these arrays, whose numbers have the type `descr`, as NumPy writes it, and are turned
/// into the bytes of this type by `bytes`.
fn of_numbers(arrays: &[Named<'_>], descr: &str, bytes: impl Fn(f64) -> Vec<u8>) -> Vec<u8> {
    let entries = arrays.iter().map(|(name, shape, numbers)| {
        let bytes = numbers.iter().flat_map(|x| bytes(*x)).collect();
        (*name, descr, false, *shape, bytes)
    });
    npz(&entries.collect::<Vec<_>>())
}
