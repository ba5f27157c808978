//! `export`: one file of everything, driven as a user drives it. That its numbers are
//! the cells' bit for bit is tested in `store`.

use crate::support::markup::blocks;
use crate::support::{Bench, DIVERGING, TINY, edited};
use polars::prelude::{DataFrame, DataType, ParquetReader, SerReader};
use std::collections::{BTreeMap, BTreeSet, HashMap};

fn filled() -> Bench {
    Bench::of_smoke(&["logistic", "diverging"])
}

#[test]
fn all_cells_in_one_file_with_their_digests() {
    let bench = filled();
    bench.run(&["export", "--out", "all.csv"]).expect(0).warns("of 30 cells of 2 experiments");
    let text = bench.read("all.csv");
    let rows = bench.rows("all.csv");
    let mut digests: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row["cell"], row["digest"])).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests, bench.digests("results"));
    assert!(text.starts_with("experiment,cell,problem,algorithm,label,clients,step_size"));
    assert!(rows.iter().all(|row| row["last_run"] == "true"));
    let diverged = rows.iter().filter(|row| row["outcome"] == "diverged").count();
    assert!(diverged > 0 && diverged < rows.len());
    // The last errors of summary.csv come from these rows.
    assert!(rows.iter().all(|row| row["sq_error"].parse::<f64>().is_ok()));

    let output = bench.run(&["export", "--out", "all.parquet"]).expect(0);
    output.warns(&format!("{} rows", rows.len()));
    let bytes = bench.read_bytes("all.parquet");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    bench.run(&["export", "--out", "all.parquet", "--quiet"]).expect(0);
    assert_eq!(bench.read_bytes("all.parquet"), bytes, "the same bytes again");
}

#[test]
fn one_experiment_and_cells_of_earlier_settings() {
    let bench = filled();
    let manifest = DIVERGING;
    bench.compute(&[manifest, "--set", "seed=8"]);
    let only = ["export", "--experiment", "smoke/diverging", "--out", "one.csv"];
    bench.run(&only).expect(0).warns("4 cells of 1 experiment");
    for row in bench.rows("one.csv") {
        assert_eq!(row["last_run"] == "true", row["seed"] == "8", "those of the last run");
    }
}

/// A column may hold one value for all its rows.
#[test]
fn the_texts_of_one_cell_have_no_quotes() {
    let bench = Bench::ran(TINY);
    bench.run(&["export", "--out", "all.csv"]).expect(0).warns("of 1 cell of");
    for row in bench.rows("all.csv") {
        assert_eq!(format!("{} {}", row["cell"], row["digest"]), bench.digests("results")[0]);
        assert_eq!(row["label"], "FedAvg");
    }
}

/// What is damaged is left out and reported; the rest is there.
#[test]
fn a_damaged_cell_is_left_out_and_reported() {
    let bench = filled();
    let line = bench.digests("results").remove(0);
    let cell = line.split(' ').next().unwrap();
    let file = bench.pack_of("results/smoke/logistic", cell);
    bench.damage(&file);
    let output = bench.run(&["export", "--out", "all.csv"]).expect(4);
    assert!(output.err.contains(&file) && output.err.contains("hash"), "{}", output.err);
    assert!(output.err.contains("1 damaged cell left out"), "{}", output.err);
    let text = bench.read("all.csv");
    assert!(!text.contains(cell) && output.err.contains("of 29 cells"), "{}", output.err);
}

#[test]
fn what_cannot_be_exported_costs_exit_two_and_writes_nothing() {
    let bench = filled();
    bench.write("empty/exactfed.toml", bench.read("results/exactfed.toml"));
    let before = bench.files();
    for (arguments, message) in [
        (vec!["--out", "all.json"], "must end in .parquet or .csv"),
        (vec!["--out", "absent/all.csv"], "absent"),
        (vec!["absent", "--out", "all.csv"], "there are no results here"),
        (vec!["empty", "--out", "all.csv"], "no cell has results yet"),
        (
            vec!["--experiment", "smoke/logistik", "--out", "all.csv"],
            "did you mean `smoke/logistic`?",
        ),
        (vec![], "--out"),
    ] {
        let all: Vec<&str> = std::iter::once("export").chain(arguments).collect();
        let output = bench.run(&all).expect(2);
        assert!(
            output.err.starts_with("error: ") && output.err.contains(message),
            "{}",
            output.err
        );
        assert_eq!(bench.files(), before, "{all:?} left something");
    }
}

/// Two axes of the problem that no other column tells.
const AXES: &str = "title = \"Axes\"
seed = 1
replicates = 3
start.offset = 1.0
budget.rounds = 8
record.points = 4
[problem.logistic]
dimension = 2
records = 20
clients = 2
data = { noisy = { spread = [1.0, 2.0] } }
l2 = [0.5, 1]
[[algorithm.fedavg]]
step-size = 0.05
local-steps = [1, 2]
[[algorithm.scaffold]]
step-size = 0.05
local-steps = 2
";

/// The rows of an export, and the columns of settings by their names.
fn exported(bench: &Bench) -> (DataFrame, BTreeMap<String, String>) {
    bench.run(&["export", "--out", "rows.parquet", "--quiet"]).expect(0);
    let file = std::fs::File::open(bench.path("rows.parquet")).unwrap();
    let mut reader = ParquetReader::new(file);
    let metadata = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
    let axes = metadata.iter().find(|pair| pair.key == "exactfed.axes").unwrap();
    let axes = serde_json::from_str(axes.value.as_deref().unwrap()).unwrap();
    (reader.finish().unwrap(), axes)
}

/// Groups rows by these columns: of how many cells and rows each group is.
fn groups(rows: &DataFrame, key: &[&str]) -> Vec<(usize, usize)> {
    let value = |name: &str, row: usize| rows.column(name).unwrap().get(row).unwrap().to_string();
    let mut groups: BTreeMap<Vec<String>, (BTreeSet<String>, usize)> = BTreeMap::new();
    for row in 0..rows.height() {
        let group = key.iter().map(|name| value(name, row)).collect();
        let (cells, count) = groups.entry(group).or_default();
        cells.insert(value("cell", row));
        *count += 1;
    }
    groups.into_values().map(|(cells, count)| (cells.len(), count)).collect()
}

/// The keys of the two snippets in docs/FORMAT.md, as they stand there.
fn documented_keys() -> [Vec<String>; 2] {
    let text = include_str!("../../docs/FORMAT.md");
    let block = |language: &str| -> &str {
        let block = blocks(text).into_iter().find(|block| block.language == language).unwrap().text;
        assert!(block.contains("rows.parquet"), "{block}");
        block
    };
    let names = |list: &str| -> Vec<String> {
        list.split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect()
    };
    let python = block("python").split_once("key = [").unwrap().1.split_once(']').unwrap().0;
    let sql = block("sql").split_once("SELECT ").unwrap().1.split_once("avg(").unwrap().0;
    [names(python), names(sql.trim().trim_end_matches(','))]
}

#[test]
fn a_group_by_over_settings_or_over_documented_keys_mixes_no_cells() {
    let bench = Bench::ran(AXES);
    let (rows, axes) = exported(&bench);
    let names: Vec<&str> = axes.keys().map(String::as_str).collect();
    assert_eq!(names, ["algorithm_local_steps", "l2", "spread"]);
    assert_eq!(axes["spread"], "problem.data.noisy.spread");
    assert_eq!(rows.column("l2").unwrap().dtype(), &DataType::Float64);
    assert_eq!(rows.column("algorithm_local_steps").unwrap().dtype(), &DataType::Int64);
    // Without the cell or its settings in the key: cells of two problems in one group.
    let before = ["label", "step_size", "local_steps", "communications"];
    assert!(groups(&rows, &before).iter().all(|(cells, rows)| (*cells, *rows) == (4, 12)));
    let never_mixed = |bench: &Bench| {
        let (rows, axes) = exported(bench);
        let mut settings = vec!["experiment", "problem", "algorithm", "seed", "last_run", "round"];
        settings.extend(axes.keys().map(String::as_str));
        let keys = documented_keys();
        let keys = keys.iter().map(|key| key.iter().map(String::as_str).collect());
        for key in std::iter::once(settings).chain(keys) {
            for group in groups(&rows, &key) {
                assert_eq!(group, (1, 3), "cells and rows of a group by {key:?}");
            }
        }
        (rows, axes)
    };
    never_mixed(&bench);
    // Another start, another number of clients, which is a column already, and no noise.
    let others = ["start.offset=2.0", "problem.logistic.clients=4", "oracle=exact"];
    for set in others {
        bench.compute(&["m.toml", "--set", set]);
        never_mixed(&bench);
    }
    let (rows, axes) = never_mixed(&bench);
    for (name, kind) in [
        ("offset", DataType::Float64),
        ("problem_clients", DataType::Int64),
        ("oracle", DataType::String),
    ] {
        assert!(axes.contains_key(name), "{name}: {axes:?}");
        assert_eq!(rows.column(name).unwrap().dtype(), &kind);
    }
    let last = rows.column("last_run").unwrap().bool().unwrap().sum().unwrap();
    assert_eq!(last as usize * 4, rows.height(), "one run of four");
    bench.run(&["export", "--out", "rows.csv", "--quiet"]).expect(0);
    let offsets: BTreeSet<String> =
        bench.rows("rows.csv").iter().map(|row| row["offset"].clone()).collect();
    assert_eq!(offsets, BTreeSet::from(["1.0".to_owned(), "2.0".to_owned()]));
}

/// A setting that an algorithm does not have is null; a default that the manifest names as
/// a value of an axis is there.
#[test]
fn settings_are_null_where_a_cell_has_none_and_defaults_of_axes_are_reported() {
    let entry = "[[algorithm.scaffold]]\n";
    let text = edited(
        AXES,
        &[
            ("[1.0, 2.0]", "1.0"),
            ("[0.5, 1]", "0.5"),
            ("[1, 2]", "2"),
            (entry, &format!("{entry}server-step = [0.5, 1.0]\n")),
        ],
    );
    let bench = Bench::ran(&text);
    let (rows, axes) = exported(&bench);
    assert!(axes.contains_key("server_step"), "{axes:?}");
    let value = |name: &str, row: usize| rows.column(name).unwrap().get(row).unwrap().to_string();
    let found: BTreeSet<(String, String)> = (0..rows.height())
        .map(|row| (value("algorithm", row), value("server_step", row)))
        .collect();
    let pair = |a: &str, b: &str| (format!("\"{a}\""), b.to_owned());
    let expected = [pair("fedavg", "null"), pair("scaffold", "0.5"), pair("scaffold", "1.0")];
    assert_eq!(found, BTreeSet::from(expected));
}

/// A spreadsheet computes a field that begins as a formula does: no text of a manifest is
/// one in any table that the program writes, and numbers stay numbers.
#[test]
fn no_field_of_a_table_is_a_formula() {
    let text = std::fs::read_to_string(crate::support::smoke("diverging.toml")).unwrap();
    let label = "=HYPERLINK(\\\"http://x\\\",\\\"y\\\")";
    let text = text.replace("label = \"", "label = \"@");
    let text = text.replacen("step-size", &format!("label = \"{label}\"\nstep-size"), 1);
    let bench = Bench::ran(&text);
    bench.report();
    bench.run(&["export", "--out", "reports/all.csv", "--quiet"]).expect(0);
    let mut found = 0;
    for file in crate::support::files_with(&bench.path("reports"), "csv") {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(&file).unwrap();
        for row in reader.records() {
            for field in row.unwrap().iter() {
                found += usize::from(field.starts_with("'=HYPERLINK("));
                let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
                assert!(!formula || field.parse::<f64>().is_ok(), "{}: {field}", file.display());
            }
        }
    }
    assert!(found > 3, "{found} fields");
    bench.run(&["diff", "reports", "results"]).expect(0).prints("bit-identical, 0 changed");
}

/// A batch of records, which all cells share here, and one of oracle calls, which two algorithms have.
#[test]
fn a_key_of_the_problem_and_of_an_algorithm_has_two_names() {
    let bench = Bench::of_smoke(&["all-least-squares-dataset"]);
    bench.run(&["export", "--out", "all.csv"]).expect(0);
    bench.report();
    let count = |rows: &[HashMap<String, String>], column: &str, label: &str, value: &str| {
        let own = rows.iter().filter(|row| row["label"] == label);
        let (own, other): (Vec<_>, Vec<_>) = own.partition(|row| row[column] == value);
        assert!(!own.is_empty() && other.is_empty(), "{column} of {label}: {other:?}");
    };
    let exported = bench.rows("all.csv");
    let summary = bench.rows("reports/smoke/all-least-squares-dataset/summary.csv");
    for (rows, column) in [(&exported, "algorithm_batch"), (&summary, "algorithm.batch")] {
        assert!(!rows[0].contains_key("batch"), "{:?}", rows[0].keys());
        count(rows, column, "mini-batch SGD", "4");
        count(rows, column, "FedAvg", "");
    }
}
