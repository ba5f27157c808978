//! Values of records that are missing: which texts mark them, and what `missing` makes of them.

use super::{Data, manifest, records};

/// A column of categories gives the errors of a file with an indicator of each category but the first. Values that
/// are missing give the errors of a file that holds means in their places, or that lacks their records.
#[test]
fn categories_and_missing_values() {
    let colours = "age,colour,label\n1,red,0\n2,blue,1\n3,green,1\n4,blue,0\n";
    let holes = "age,x,label\n1,2,0\n,4,1\n3,NA,1\n5,6,0\n7,8,1\n";
    for (settings, table, like) in [
        (
            ", categorical = [\"colour\"]",
            colours,
            "age,green,red,label\n1,0,1,0\n2,0,0,1\n3,1,0,1\n4,0,0,0\n",
        ),
        (", missing = \"mean\"", holes, "age,x,label\n1,2,0\n4,4,1\n3,5,1\n5,6,0\n7,8,1\n"),
        (", missing = \"drop\"", holes, "age,x,label\n1,2,0\n5,6,0\n7,8,1\n"),
    ] {
        assert_eq!(
            errors_of_two_clients(settings, table),
            errors_of_two_clients("", like),
            "{settings}"
        );
    }
}

/// The final errors on the records of this table among two clients; `more` is nothing, or begins with a comma.
fn errors_of_two_clients(more: &str, table: &str) -> String {
    let settings = format!("clients = 2, split = \"iid\"{more}");
    Data::of_records(&settings, "r.csv", table.as_bytes()).final_errors()
}

/// Marks of missing values, as pandas, R, databases and spreadsheets write them.
const MARKS: [&str; 12] =
    ["", "NA", "N/A", "nan", "NaN", "null", "None", "?", "-", ".", "#N/A", "NaT"];

/// Twelve records of a feature (column 0), a label (1) and a client (2), of which the fifth, in line 6, has this mark
/// in this column.
fn with_mark(column: usize, mark: &str) -> String {
    let mut table = String::from("age,label,site\n");
    for i in 0..12 {
        let age = format!("{}.5", i * 5 % 7);
        let mut row = [age.as_str(), ["yes", "no"][i % 3 % 2], ["a", "b"][i % 2]];
        if i == 4 {
            row[column] = mark;
        }
        table += &format!("{}\n", row.join(","));
    }
    table
}

/// The table of `with_mark` without the record that has the mark.
fn without_mark(column: usize) -> String {
    let table = with_mark(column, "NA");
    table
        .lines()
        .enumerate()
        .filter(|(i, _)| *i != 5)
        .map(|(_, line)| format!("{line}\n"))
        .collect()
}

/// Features, labels and clients have one list of marks. A mark is refused, with its place and the key that helps; with
/// `missing = "drop"` its record is left out, and the results are those of a file without the record.
#[test]
fn a_mark_of_a_missing_value_is_no_value_in_any_column() {
    let settings = "split = { column = \"site\" }, features = [\"age\"]";
    let dropping = records(&format!("{settings}, missing = \"drop\""));
    for (column, what) in [
        (0, "line 6, column `age`: the value is missing"),
        (1, "line 6, column `label`: the label is missing"),
        (2, "line 6, column `site`: the name of the client is missing"),
    ] {
        let data = Data::new(&records(settings), "r.csv", without_mark(column).as_bytes());
        let without = data.final_errors();
        // In the column of the label a mark could be taken for a class: it is tested with all marks. The other columns
        // have the same list.
        let marks = if column == 1 { &MARKS[..] } else { &MARKS[..2] };
        for mark in marks {
            data.bench.write("r.csv", with_mark(column, mark));
            let output = data.bench.run(&["check", "mine.toml"]).expect(2);
            output.warns(what).warns("write `missing = \"");
        }
        data.bench.write("mine.toml", manifest(&dropping));
        for mark in ["", "-"] {
            data.bench.write("r.csv", with_mark(column, mark));
            assert_eq!(data.final_errors(), without, "{column} {mark:?}");
        }
    }
    let means = records(&format!("{settings}, missing = \"mean\""));
    for (column, name) in [(1, "label"), (2, "site")] {
        let data = Data::new(&means, "r.csv", with_mark(column, "NA").as_bytes());
        data.refused("`missing = \"mean\"` fills in features alone").warns(&format!("`{name}`"));
    }
    // Numbers with a mark are numbers: of ten classes, 10 comes last.
    let numbers = "age,label\n1,9\n2,10\n3,9\n2.5,10\n4,10\n";
    let dropping = records("clients = 1, split = \"iid\", missing = \"drop\"");
    let marked = format!("{numbers}9,NA\n");
    let [with, without] = [&*marked, numbers]
        .map(|table| Data::new(&dropping, "r.csv", table.as_bytes()).final_errors());
    assert_eq!(with, without);
    // A sign is no mark, and neither is a text that only resembles one.
    for (one, other) in [("+", "-"), ("Na", "K"), ("none", "some")] {
        let table = format!("age,label\n1,{one}\n2,{other}\n3,{one}\n4.5,{other}\n");
        Data::new(&records("clients = 1"), "r.csv", table.as_bytes()).accepted();
    }
}

/// A missing value in the column that marks the test set is refused, or its record is left out.
#[test]
fn a_mark_of_the_test_set_may_be_missing() {
    let settings = "clients = 1, features = [\"age\"], test = { column = \"held\" }";
    let table = "age,held,label\n1,0,0\n2,NA,1\n3,0,1\n4,1,0\n5.5,1,1\n";
    let data = Data::new(&records(settings), "r.csv", table.as_bytes());
    data.refused("line 3, column `held`: the mark of the test set is missing");
    let dropping = records(&format!("{settings}, missing = \"drop\""));
    Data::new(&dropping, "r.csv", table.as_bytes()).accepted();
}
