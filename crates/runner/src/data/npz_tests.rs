//! Archives of every kind, sound and not.

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

/// An archive of these files, each with its name, which is not compressed.
fn npz(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in files {
        writer.start_file(*name, stored).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// An `.npy` file of this type and shape, its last index running fastest.
fn array_of(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy(&format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"), data)
}

fn doubles(shape: &str, values: &[f64]) -> Vec<u8> {
    array_of("<f8", shape, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
}

/// An `.npy` file of one axis with these integers of 64 bits.
fn integers(values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    array_of("<i8", &format!("({},)", values.len()), &bytes)
}

#[test]
fn arrays_come_row_by_row_in_any_order_and_type() {
    let x: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let columns = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }";
    let numbers = x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let bytes = npz(&[
        ("rows.npy", doubles("(2, 3)", &x)),
        ("columns.npy", npy(columns, &numbers)),
        ("gamma.npy", array_of("<f4", "()", &0.5_f32.to_le_bytes())),
        ("n.npy", array_of("<i4", "(2,)", &[7, 0, 0, 0, 255, 255, 255, 255])),
    ]);
    let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!() };
    assert_eq!(arrays["rows"], Array::of_numbers(vec![2, 3], x.into()));
    assert_eq!(arrays["columns"].numbers().unwrap(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    assert_eq!(arrays["gamma"], Array::of_numbers(vec![], vec![0.5]));
    assert_eq!(arrays["n"].numbers().unwrap(), [7.0, -1.0]);
}

/// Arrays of texts, dates and objects are read as such, whatever shape the others have, so that labels may be texts and
/// an array that no setting uses blocks nothing.
#[test]
fn arrays_of_other_values_than_numbers() {
    let bytes = npz(&[
        ("x.npy", doubles("(2, 1)", &[0.5, 1.5])),
        ("y.npy", array_of("|S3", "(2,)", b"redtan")),
        ("day.npy", array_of("<M8[D]", "(2,)", &[0; 16])),
        ("what.npy", array_of("|O", "(2,)", b"pickled")),
    ]);
    let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!() };
    let texts = Column::Text(vec!["red".to_owned(), "tan".to_owned()]);
    assert_eq!(arrays["y"].column().unwrap(), texts);
    for (name, message) in [
        ("y", "it holds texts, such as \"red\"; expected numbers"),
        ("day", "it holds datetime64: make it an array of numbers or of texts before saving it"),
        ("what", "it holds Python objects (dtype object): make it an array of numbers"),
    ] {
        let said = arrays[name].numbers().unwrap_err().to_string();
        assert!(said.starts_with(message), "{said}");
        if name != "y" {
            assert_eq!(arrays[name].column().unwrap_err().to_string(), said);
        }
    }
}

/// The arrays of `scipy.sparse.save_npz`, those of these names replaced.
fn scipy(replaced: &[(&str, Vec<u8>)]) -> Result<Contents, ContentError> {
    let whole = |shape: &str, values: &[i32]| {
        array_of("<i4", shape, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    };
    let mut files = vec![
        ("indices.npy", whole("(3,)", &[0, 4, 2])),
        ("indptr.npy", whole("(3,)", &[0, 2, 3])),
        ("format.npy", array_of("|S3", "()", b"csr")),
        ("shape.npy", whole("(2,)", &[2, 5])),
        ("data.npy", doubles("(3,)", &[0.5, -1.0, 3.0])),
        ("_is_array.npy", array_of("|b1", "()", &[1])),
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

#[test]
fn scipys_sparse_rows_stay_sparse() {
    // As bytes, as numpy writes a str, or left out.
    let unicode = array_of("<U3", "()", b"c\0\0\0s\0\0\0r\0\0\0");
    for format in [array_of("|S3", "()", b"csr"), unicode, Vec::new()] {
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
    let columns = array_of("|S3", "()", b"csc");
    let half = doubles("(3,)", &[0.5; 3]);
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
        let said = scipy(&[(name, bytes)]).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn small_types_are_widened() {
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
        let bytes = npz(&[("x.npy", array_of(kind, "(3,)", &data))]);
        let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!("{kind}") };
        assert_eq!(arrays["x"].numbers().unwrap(), wanted, "{kind}");
    }
}

/// Bytes of `<U` or `>U` texts of two letters.
fn unicode(texts: &[&str], bytes_of: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let pad = |text: &&str| text.chars().map(u32::from).chain([0; 2]).take(2).collect();
    texts.iter().flat_map(|t| -> Vec<u32> { pad(t) }).flat_map(bytes_of).collect()
}

#[test]
fn arrays_of_one_axis_are_columns_in_their_order() {
    let little = array_of("<U2", "(3,)", &unicode(&["é", "b", "bc"], u32::to_le_bytes));
    let big = array_of(">U2", "(3,)", &unicode(&["é", "b", "bc"], u32::to_be_bytes));
    let bytes = array_of("|S2", "(3,)", "é\0bbc".replace("\0b", "b\0").as_bytes());
    for texts in [little, big, bytes] {
        let read = read(npz(&[
            ("z.npy", doubles("(3,)", &[1.0, 2.0, 3.0])),
            ("label.npy", texts),
            ("a.npy", array_of("|b1", "(3,)", &[0, 1, 1])),
        ]));
        let Ok(Contents::Table(columns)) = read else { panic!("{read:?}") };
        let text = ["é", "b", "bc"].map(str::to_owned).to_vec();
        let wanted = [
            ("z".to_owned(), Column::Numbers(vec![1.0, 2.0, 3.0])),
            ("label".to_owned(), Column::Text(text)),
            ("a".to_owned(), Column::Numbers(vec![0.0, 1.0, 1.0])),
        ];
        assert_eq!(columns, wanted);
    }
}

#[test]
fn texts_that_are_wrong_are_refused() {
    for (bytes, message) in [
        (array_of("|S2", "(2,)", b"ab\xff\xff"), "`t`: row 1 is not Unicode text"),
        (array_of("<U1", "(1,)", &[0, 0, 0, 0x80]), "`t`: row 0 is not Unicode text"),
        (array_of("<U1", "(9999999999,)", &[b'a', 0, 0, 0]), "which it does not hold"),
        (array_of("<U0", "(9999999999,)", &[]), "which it does not hold"),
    ] {
        let said = read(npz(&[("t.npy", bytes)])).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn values_of_columns_may_be_missing_or_of_other_types() {
    let texts = array_of("|S2", "(2,)", b"ab\0\0");
    let days = array_of("<M8[D]", "(2,)", &[0; 16]);
    let archive = npz(&[("t.npy", texts), ("day.npy", days)]);
    let Ok(Contents::Table(columns)) = read(archive) else { panic!() };
    assert_eq!(columns[0].1.missing(), [false, true]);
    assert_eq!(columns[1].1, Column::Unread { kind: "datetime64".into(), rows: 2 });
}

#[test]
fn a_flipped_bit_is_found() {
    let mut bytes = npz(&[("x.npy", doubles("(2, 3)", &[1.0; 6]))]);
    let at = bytes.windows(8).position(|w| w == 1.0_f64.to_le_bytes()).unwrap();
    bytes[at + 3] ^= 4;
    let said = read(bytes).unwrap_err().to_string();
    assert!(said.contains("`x`") && said.to_lowercase().contains("checksum"), "{said}");
}

#[test]
fn what_is_no_array_of_numbers_is_refused() {
    // A header is read by recursion: brackets within brackets would use up the stack.
    let brackets = |depth| npz(&[("x.npy", npy(&"(".repeat(depth), &[]))]);
    for (bytes, message) in [
        (b"no zip".to_vec(), "it is not a zip archive"),
        (npz(&[("x.npy", doubles("(99999999, 99999999)", &[1.0]))]), "more than it holds"),
        (
            npz(&[("x.npy", array_of("<c16", "(1,)", &[0; 16]))]),
            "expected floats, whole numbers or truth values",
        ),
        (npz(&[("x.npy", b"nonsense".to_vec())]), "`x`: it is no array of NumPy"),
        (
            npz(&[("[Content_Types].xml", b"<?xml version=\"1.0\"?>".to_vec())]),
            "it is no array of NumPy: of a workbook or another zip archive, save the table itself as CSV",
        ),
        (brackets(9), "header"),
        (brackets(2_000), "header"),
        (brackets(30_000), "header"),
        (npz(&[("x.npy", doubles("(2, 3)", &[1.0; 5]))]), "more than it holds"),
        (npz(&[("x.npy", doubles("(2, 3)", &[1.0; 7]))]), "it holds more than the shape [2, 3]"),
        (npz(&[("x.npy", b"\x93NUMPY\x02\x00".to_vec())]), "too short"),
        (npz(&[("x.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec())]), "4294967307"),
        (
            npz(&[("x.npy", doubles("(2, 3)", &[1.0; 6])), ("x", doubles("(2, 3)", &[1.0; 6]))]),
            "two",
        ),
    ] {
        let said = read(bytes).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
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
        writer.write_all(&array_of("<f8", "(131072,)", &vec![0; 1 << 20])).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    assert!(bytes.len() < 1 << 16, "{}", bytes.len());
    assert!(read_at_most(bytes.clone(), 3 << 20).is_ok());
    let said = read_at_most(bytes, (1 << 20) + 200).unwrap_err().to_string();
    assert!(said.starts_with("`y`: the ") && said.contains("more than 1048776"), "{said}");
}

/// Images in two parts become records of one axis, of which the last are marked as the test set.
#[test]
fn parts_for_training_and_tests_are_the_records() {
    let bytes = npz(&[
        ("X_train.npy", doubles("(2, 1, 2)", &[1.0, 2.0, 3.0, 4.0])),
        ("y_train.npy", integers(&[7, 8])),
        ("X_test.npy", doubles("(1, 1, 2)", &[5.0, 6.0])),
        ("y_test.npy", integers(&[8])),
        ("site.npy", integers(&[1, 2, 1])),
    ]);
    let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!() };
    assert_eq!(arrays.keys().collect::<Vec<_>>(), ["site", "test", "x", "y"]);
    assert_eq!(arrays["x"], Array::of_numbers(vec![3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!(arrays["y"], Array::of_numbers(vec![3], vec![7.0, 8.0, 8.0]));
    assert_eq!(arrays["test"], Array::of_numbers(vec![3], vec![0.0, 0.0, 1.0]));
    let bytes = npz(&[
        ("x_train.npy", doubles("(2, 2)", &[1.0, 2.0, 3.0, 4.0])),
        ("y_train.npy", doubles("(2, 1)", &[7.0, 8.0])),
    ]);
    let Ok(Contents::Arrays(arrays)) = read(bytes) else { panic!() };
    assert_eq!(arrays.keys().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(arrays["y"].shape, [2]);
}

#[test]
fn parts_that_do_not_fit_each_other_are_refused() {
    let of = |x_test, y_test| {
        let bytes = npz(&[
            ("x_train.npy", doubles("(1, 2)", &[1.0, 2.0])),
            ("y_train.npy", integers(&[7])),
            ("x_test.npy", x_test),
            ("y_test.npy", y_test),
        ]);
        read(bytes).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(
        of(doubles("(1, 3)", &[1.0; 3]), integers(&[7])),
        "`x_train` and `x_test` have the shapes [1, 2] and [1, 3]; all axes but the first must agree"
    );
    assert_eq!(
        of(doubles("(1, 2)", &[1.0; 2]), array_of("|S3", "(1,)", b"red")),
        "`y_train` and `y_test` have values of different types"
    );
}
