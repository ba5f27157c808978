//! Files as packages and other programs write them: tables whose names do not say so, packed files, tables of R whose
//! header has no place for the names of rows, and columns that `init` must not take for what they are not.

use super::Data;
use super::written::{as_it_is, compressed, records, table};
use crate::support::Bench;

/// A table under another name is read if its separator is stated, which `data` does; the records are those of a
/// `.csv` file.
#[test]
fn a_table_of_any_name_is_read_by_its_separator() {
    let expected = Data::of_records("clients = 2", "r.csv", table(",", as_it_is).as_bytes());
    let expected = expected.final_errors();
    for (name, separator, key) in [
        ("r.dat", ",", "separator = \",\""),
        ("r.data", "  ", "separator = \" \""),
        ("r.tab", "\t", "separator = \"\\t\""),
        ("r.txt", ";", "separator = \";\""),
        ("r", "|", "separator = \"|\""),
    ] {
        let text = table(separator, as_it_is);
        let data = Data::of_records(&format!("clients = 2, {key}"), name, text.as_bytes());
        assert_eq!(data.final_errors(), expected, "{name}");
        let printed = data.bench.run(&["data", name]).expect(0).out;
        for line in ["# 40 records of 2 features", key] {
            assert!(printed.lines().any(|have| have == line), "{name}: {line}\n{printed}");
        }
        // A run does not guess.
        Data::of_records("clients = 2", name, text.as_bytes())
            .refused(&format!("it seems to be written in another way: state `{key}`"));
    }
    let data = Data::of_records(
        "clients = 2, separator = \"\\t\"",
        "r.tab.gz",
        &compressed(&table("\t", as_it_is)),
    );
    assert_eq!(data.final_errors(), expected);
    // LIBSVM is no table, whatever its blanks are, and needs no name.
    let records = b"1 1:2 2:1\n0 1:3 2:5\n1 1:4 2:2\n0 1:1 2:1\n";
    let expected = Data::of_records("clients = 2", "r.svm", records).final_errors();
    for name in ["r.txt", "heart_scale", "a9a.t"] {
        let data = Data::of_records("clients = 2", name, records);
        assert_eq!(data.final_errors(), expected, "{name}");
        data.bench.run(&["data", name]).expect(0);
    }
}

#[test]
fn a_file_that_is_not_read_says_what_to_do() {
    for (name, bytes, message) in [
        (
            "r.csv.bz2",
            &b"BZh91AY&SY"[..],
            "it is packed with bzip2: unpack it, or pack it with gzip",
        ),
        ("r.csv.xz", b"\xfd7zXZ\0\0", "it is packed with xz: unpack it"),
        ("r.csv.zip", b"PK\x03\x04\x14", "it is packed with zip: unpack it"),
        ("r.dat", b"id  name\n1  Ohio St\n2  Iowa\n", "equally many values: save it as CSV"),
        ("r.txt", b"id  name\n1  Ohio St\n2  Iowa\n", "equally many values: save it as CSV"),
        ("r.xls", b"\xd0\xcf\x11\xe0", "the name must end in .npz, .csv"),
    ] {
        Data::of_records("clients = 2", name, bytes).refused(message);
        let bench = Bench::new();
        bench.write(name, bytes);
        bench.run(&["init", name]).expect(2).warns(message);
    }
}

/// Orange writes two lines behind the header in which it describes the columns.
#[test]
fn descriptions_of_columns_are_no_records() {
    let text = table("\t", as_it_is);
    let (header, lines) = text.split_once('\n').unwrap();
    let described = format!("{header}\ncontinuous\tc\td\n\t\tclass\n{lines}");
    let expected = Data::of_records("clients = 2", "r.tsv", text.as_bytes()).final_errors();
    let data = Data::of_records("clients = 2", "r.tsv", described.as_bytes());
    assert_eq!(data.final_errors(), expected);
}

/// Of columns with the same name the second has a number behind it, as in pandas and R.
#[test]
fn columns_of_one_name_are_told_apart() {
    let text = table(",", as_it_is);
    let expected = Data::of_records("clients = 2", "r.csv", text.as_bytes()).final_errors();
    let renamed = text.replacen("age,part,label", "age,age,label", 1);
    let settings = "clients = 2, features = [\"age\", \"age.1\"]";
    let data = Data::of_records(settings, "r.csv", renamed.as_bytes());
    assert_eq!(data.final_errors(), expected);
}

/// R writes a table with names of rows, which have none in the header.
#[test]
fn names_of_rows_of_a_table_of_r_are_no_feature() {
    let text = table(",", as_it_is);
    let expected = Data::of_records("clients = 2", "r.csv", text.as_bytes()).final_errors();
    let (header, lines) = text.split_once('\n').unwrap();
    let named: Vec<String> =
        lines.lines().enumerate().map(|(i, line)| format!("\"row {i}\",{line}")).collect();
    let named = format!("{header}\n{}\n", named.join("\n"));
    let data = Data::of_records("clients = 2", "r.csv", named.as_bytes());
    assert_eq!(data.final_errors(), expected);
    let said = data.bench.run(&["data", "r.csv"]).expect(0).out;
    let line =
        "# columns that number or name the rows, which are left out: column 1, which has no name";
    assert!(said.lines().any(|have| have == line), "{said}");
}

/// A mark of records is no client, an identifier no feature, and a count of few records no class.
#[test]
fn columns_are_not_taken_for_what_they_are_not() {
    let bench = Bench::new();
    let mut text = "hospital,age,patient_id,ward,points\n".to_owned();
    for (i, [age, _, _]) in records().iter().enumerate() {
        let ward = ["no", "yes"][i % 2];
        text += &format!("{},{age},{},{ward},{}\n", i / 3 % 2, 700 + i / 2, i % 12);
    }
    bench.write("r.csv", text);
    let printed = bench.run(&["data", "r.csv"]).expect(0).out;
    for line in [
        "# labels (column `points`): numbers from 0 to 11",
        "# columns of identifiers, as their names say, which are left out: `patient_id`; to use one, add it to `features`",
        "[problem.least-squares-dataset]",
        "features = [\"hospital\", \"age\", \"ward\"]",
        "categorical = [\"ward\"]",
        "split = \"iid\"",
    ] {
        assert!(printed.lines().any(|have| have == line), "{line}\n{printed}");
    }
    bench.write("start.toml", printed);
    bench.compute(&["start.toml"]);
}

#[test]
fn labels_that_are_numbers_but_for_few_texts_name_these() {
    let bench = Bench::new();
    let mut text = "age,mass\n".to_owned();
    for (i, [age, part, _]) in records().iter().enumerate() {
        let mass = if i > 37 { format!("[{i}]") } else { part.clone() };
        text += &format!("{age},{mass}\n");
    }
    bench.write("r.csv", &text);
    bench.run(&["init", "r.csv"]).expect(2).warns(
        "the labels hold numbers but for 2 texts in 2 rows, first \"[38]\" in line 40: replace these by numbers or, if they mark missing values, by `NA`",
    );
    bench.write("r.csv", text.replace("[38]", "NA").replace("[39]", "NA"));
    let said = bench.run(&["init", "r.csv"]).expect(0).out;
    assert!(said.contains("labels (column `mass`): numbers from"), "{said}");
}
