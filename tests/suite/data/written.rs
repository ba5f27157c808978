//! CSV files that are written in other ways than with commas and points: keys say how, `data` and `init` find the keys,
//! and the records are the same.

use super::Data;
use crate::support::Bench;
use exactfed::words::enumerated;
use std::io::Write;

/// Forty records of two features, of thousands and of a fraction, and a label, each by its texts.
pub(super) fn records() -> Vec<[String; 3]> {
    let mut all = Vec::new();
    for i in 0..40_u32 {
        let age = 1000 + i * 17 % 23 * 131;
        let part = i * 7 % 11;
        all.push([age.to_string(), format!("{}.{part}5", part % 3), (i * i % 7 % 2).to_string()]);
    }
    all
}

/// The records as lines with this separator after a header line; `written` is how a value is written.
pub(super) fn table(separator: &str, written: impl Fn(&str) -> String) -> String {
    let mut text = format!("age{separator}part{separator}label\n");
    for record in records() {
        let values: Vec<String> = record.iter().map(|value| written(value)).collect();
        text += &values.join(separator);
        text += "\n";
    }
    text
}

pub(super) fn as_it_is(value: &str) -> String {
    value.to_owned()
}

/// The number with a decimal comma, and with a sign between its thousands.
fn with_signs(value: &str, thousands: &str) -> String {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let comma = if fraction.is_empty() { "" } else { "," };
    match whole.len().checked_sub(3).filter(|at| *at > 0) {
        Some(at) => format!("{}{thousands}{}{comma}{fraction}", &whole[..at], &whole[at..]),
        None => format!("{whole}{comma}{fraction}"),
    }
}

pub(super) fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A file of the records.
struct Written {
    name: &'static str,
    bytes: Vec<u8>,
    /// The keys that `data` finds, as the manifest has them.
    keys: &'static [&'static str],
}

/// The records in every way of writing.
fn ways() -> Vec<Written> {
    let way = |name, text: String, keys| Written { name, bytes: text.into_bytes(), keys };
    let quoted = |value: &str| format!("\"{}\"", value.replace('.', ","));
    let grouped = |value: &str| {
        let plain = with_signs(value, ",");
        let is_whole = !value.contains('.');
        if is_whole { format!("\"{plain}\"") } else { value.to_owned() }
    };
    vec![
        way("r.csv", table(";", as_it_is), &["separator = \";\""]),
        way("r.csv", table("\t", as_it_is), &["separator = \"\\t\""]),
        way("r.tsv", table("\t", as_it_is), &[]),
        way("r.csv", table("|", as_it_is), &["separator = \"|\""]),
        way("r.csv", table("   ", as_it_is), &["separator = \" \""]),
        way(
            "r.csv",
            format!("# a note, and another\n{}", table(",", as_it_is)),
            &["comment = \"#\""],
        ),
        way(
            "r.csv",
            table(";", |value| with_signs(value, "")),
            &["separator = \";\"", "decimal = \",\""],
        ),
        way(
            "r.csv",
            table(";", |value| with_signs(value, ".")),
            &["separator = \";\"", "decimal = \",\"", "thousands = \".\""],
        ),
        way("r.csv", table(",", quoted), &["decimal = \",\""]),
        way("r.csv", table(",", grouped), &["thousands = \",\""]),
        // Excel's first line, which names the separator.
        way("r.csv", format!("sep=;\r\n{}", table(";", as_it_is)), &["separator = \";\""]),
        way("r.csv", format!("sep=,\n{}", table(",", as_it_is)), &[]),
        way("r.txt", format!("sep=^\n{}", table("^", as_it_is)), &["separator = \"^\""]),
        Written { name: "r.csv.gz", bytes: compressed(&table(",", as_it_is)), keys: &[] },
        Written {
            name: "R.TSV.GZ",
            bytes: compressed(&table(";", as_it_is)),
            keys: &["separator = \";\""],
        },
    ]
}

#[test]
fn keys_say_how_a_file_is_written_and_data_finds_them() {
    let text = table(",", as_it_is);
    let expected = Data::of_records("clients = 2", "r.csv", text.as_bytes()).final_errors();
    for Written { name, bytes, keys } in ways() {
        let settings = [&["clients = 2"], keys].concat().join(", ");
        let data = Data::of_records(&settings, name, &bytes);
        assert_eq!(data.final_errors(), expected, "{settings}");
        let printed = data.bench.run(&["data", name]).expect(0).out;
        let all = ["separator", "decimal", "thousands", "comment", "header"];
        let found: Vec<&str> = printed
            .lines()
            .filter(|line| all.iter().any(|key| line.starts_with(&format!("{key} = "))))
            .collect();
        assert_eq!(found, keys, "{printed}");
        let stated: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        if !stated.is_empty() {
            let line = format!("# written with {}", enumerated(&stated));
            assert!(printed.lines().any(|have| have == line), "{line}\n{printed}");
        }
        data.bench.write("found.toml", &printed);
        data.bench.run(&["check", "found.toml"]).expect(0);
    }
}

#[test]
fn a_file_without_a_header_is_read_when_asked() {
    let with = table(",", as_it_is);
    let without = with.split_once('\n').unwrap().1;
    let expected = Data::of_records("clients = 2", "r.csv", with.as_bytes()).final_errors();
    let settings = "clients = 2, header = false, label = \"c3\"";
    let data = Data::of_records(settings, "r.csv", without.as_bytes());
    assert_eq!(data.final_errors(), expected);
    Data::of_records("clients = 2", "r.csv", without.as_bytes())
        .refused("line 1 holds numbers and no names; add a header line, or write `header = false`");
    // There is no manifest yet that could have the key.
    for command in [&["data", "r.csv"][..], &["init", "r.csv"]] {
        let output = data.bench.run(command).expect(2);
        assert_eq!(
            output.err,
            "error: r.csv: line 1 holds numbers and no names; add a header line, or state `--no-header`\n"
        );
    }
    let printed = data.bench.run(&["data", "r.csv", "--no-header"]).expect(0).out;
    for line in ["# 40 records of 2 features", "header = false", "label = \"c3\""] {
        assert!(printed.lines().any(|have| have == line), "{line}\n{printed}");
    }
}

/// Messages about a file whose first line names the separator name the line as an editor counts it, or else the row.
#[test]
fn lines_are_counted_with_the_one_that_names_the_separator() {
    let text = format!("sep=;\n{}", table(";", as_it_is));
    let settings = "clients = 2, separator = \";\"";
    Data::of_records("clients = 2", "r.csv", text.as_bytes())
        .refused("it seems to be written in another way: state `separator = \";\"`");
    let short = format!("{text}7\n");
    Data::of_records(settings, "r.csv", short.as_bytes())
        .refused("r.csv: line 43: it has 1 value, but there are 3 columns");
    let infinite = format!("{text}7;inf;1\n");
    Data::of_records(settings, "r.csv", infinite.as_bytes())
        .refused("r.csv: row 40, column `part`: inf is not a finite number");
    let alone = Data::of_records(settings, "r.csv", b"sep=;\nage;label\n");
    for file in ["r.csv", "header.csv"] {
        alone.bench.write("header.csv", "age,label\n");
        let said = alone.bench.run(&["data", file]).expect(2).err;
        assert_eq!(said, format!("error: {file}: there is no record after the header\n"));
    }
}

/// The refusal states what to write into the manifest.
#[test]
fn a_file_that_is_written_in_another_way_names_the_keys() {
    let semicolons = table(";", |value| with_signs(value, ""));
    Data::of_records("clients = 2", "r.csv", semicolons.as_bytes()).refused(
        "r.csv: it seems to be written in another way: state `separator = \";\"` and `decimal = \",\"`",
    );
    let notes = format!("# a, b\n{}", table(",", as_it_is));
    Data::of_records("clients = 2", "r.csv", notes.as_bytes())
        .refused("state `separator = \",\"` and `comment = \"#\"`");
    // Numbers in a column that have the other sign are not read as other numbers.
    let mixed =
        table(";", |value| if value == "2.55" { value.into() } else { with_signs(value, "") });
    Data::of_records("clients = 2, separator = \";\", decimal = \",\"", "r.csv", mixed.as_bytes())
        .refused("column `part` is not a feature");
    Data::of_records("clients = 2", "r.csv.gz", b"age,label\n1,2\n")
        .refused("it is not a gzip file");
}

#[test]
fn keys_of_csv_files_are_checked() {
    let text = table(",", as_it_is);
    for (keys, message) in [
        ("separator = \"a\"", "must be a sign such as"),
        ("decimal = \";\"", "must be \".\" or \",\", not ';'"),
        (
            "thousands = \".\"",
            "must be one of , . ' _ or a blank, and not the decimal sign, not '.'",
        ),
        ("comment = \"-\"", "must be a sign such as \"#\" that begins no value"),
    ] {
        let settings = format!("clients = 2, {keys}");
        Data::of_records(&settings, "r.csv", text.as_bytes()).refused(message);
    }
    let settings = "clients = 2, separator = \";\"";
    Data::of_records(settings, "r.svm", b"1 1:2\n0 1:3\n")
        .refused("is for CSV files alone (.csv, .tsv, and texts of other names with `separator`); leave it out");
}

/// The clients are a column whose name says so, the column that the user names, or as many parts as he asks for; a
/// column of texts is none by itself.
#[test]
fn clients_are_what_their_name_or_the_user_says() {
    let bench = Bench::new();
    let mut text = "sex,inst,smoker,age,label\n".to_owned();
    for (i, [age, _, label]) in records().iter().enumerate() {
        let sex = ["m", "w"][i % 2];
        let smoker = ["no", "Yes"][i / 2 % 2];
        text += &format!("{sex},{},{smoker},{age},{label}\n", i % 3);
    }
    bench.write("r.csv", text);
    for (arguments, lines) in [
        (&[][..], &["split = { column = \"inst\" }", "features = [\"smoker\", \"age\"]"][..]),
        (
            &["--clients", "sex"],
            &["split = { column = \"sex\" }", "features = [\"inst\", \"smoker\", \"age\"]"],
        ),
        (&["--clients", "5"], &["clients = 5", "split = \"iid\""]),
    ] {
        let printed = bench.run(&[&["data", "r.csv"], arguments].concat()).expect(0).out;
        for line in lines.iter().chain(&["categorical = [\"smoker\"]"]) {
            assert!(printed.lines().any(|have| have == *line), "{line}\n{printed}");
        }
        bench.write("start.toml", printed);
        bench.compute(&["start.toml"]);
    }
    for (wish, message) in [
        ("town", "there is no column `town`"),
        ("label", "--clients names the column of the labels"),
        ("0", "--clients 0: there is at least one client"),
    ] {
        bench.run(&["data", "r.csv", "--clients", wish]).expect(2).warns(message);
    }
}

/// A column whose name says that it holds clients is neither a feature, if its values have too few records for clients,
/// nor by default the label. Its name says no such thing if it is about something that clients have.
#[test]
fn columns_of_clients_are_neither_features_nor_labels() {
    let bench = Bench::new();
    let mut text = "firm,bank balance,age,label,site\n".to_owned();
    for (i, [age, _, _]) in records().iter().enumerate() {
        text += &format!("{},{},{age},{},s{}\n", i / 2, i * 7 % 40, i % 2, i / 3);
    }
    bench.write("r.csv", &text);
    let why = "# columns of clients, as their names say, which are left out since a value has fewer than 5 records on average: ";
    for (arguments, lines) in [
        (
            &[][..],
            &[
                &format!("{why}`firm`, `site`; `--clients COLUMN` takes one nevertheless"),
                "features = [\"bank balance\", \"age\"]",
                "split = \"iid\"",
            ][..],
        ),
        (
            &["--clients", "firm"],
            &[
                &format!("{why}`site`; `--clients site` takes it nevertheless"),
                "features = [\"bank balance\", \"age\"]",
                "split = { column = \"firm\" }",
            ],
        ),
    ] {
        let printed = bench.run(&[&["data", "r.csv"], arguments].concat()).expect(0).out;
        for line in lines {
            assert!(printed.lines().any(|have| have == *line), "{line}\n{printed}");
        }
        bench.write("start.toml", printed);
        bench.run(&["check", "start.toml"]).expect(0);
    }
    // Of the columns that remain the last is the label: a text, or what a client has or answers.
    for (header, label) in [
        ("firm,b,age,kind,site", "kind"),
        ("b,firm,age,kind,store_sales", "store_sales"),
        ("b,firm,age,went to hospital,site", "went to hospital"),
    ] {
        bench.write("r.csv", text.replacen("firm,bank balance,age,label,site", header, 1));
        let printed = bench.run(&["data", "r.csv", "--clients", "4"]);
        let all = printed.out + &printed.err;
        assert!(all.contains(&format!("labels (column `{label}`)")), "{header}\n{all}");
    }
    bench.write("r.csv", "age,site\n1,a\n2,b\n");
    let refused = bench.run(&["data", "r.csv"]).expect(2);
    refused
        .warns("r.csv: no column but that of the labels, `age`, is a feature: columns of clients,");
}

/// A client of few records could be in the test set as a whole: it is drawn within the clients.
#[test]
fn the_test_set_leaves_records_to_a_client_of_few() {
    let bench = Bench::new();
    let mut text = "site,age,label\n".to_owned();
    for (i, [age, _, label]) in records().iter().enumerate() {
        let site = if i % 20 == 3 { "small" } else { ["a", "b"][i % 2] };
        text += &format!("{site},{age},{label}\n");
    }
    bench.write("r.csv", text);
    let printed = bench.run(&["data", "r.csv", "--tune"]).expect(0).out;
    for line in ["split = { column = \"site\" }", "test = 0.2", "test-within = \"clients\""] {
        assert!(printed.lines().any(|have| have == line), "{line}\n{printed}");
    }
    bench.write("start.toml", printed);
    for seed in 1..=20 {
        let seed = format!("seed={seed}");
        bench.run(&["check", "start.toml", "--set", &seed]).expect(0);
    }
    bench.compute(&["start.toml", "--yes"]);
    bench.report();
}
