//! `export`: one file of everything, driven as a user drives it. That its numbers are
//! the cells' bit for bit is tested in `store`.

mod support;

use polars::prelude::{DataFrame, DataType, ParquetReader, SerReader};
use std::collections::{BTreeMap, BTreeSet};
use support::Bench;

fn filled() -> Bench {
    let bench = Bench::new();
    for name in ["logistic.toml", "diverging.toml"] {
        let manifest = bench.bring(name);
        bench.run(&["run", &manifest, "--quiet"]).expect(0);
    }
    bench
}

/// The lines of a CSV file, by column.
fn column(text: &str, name: &str) -> Vec<String> {
    let mut reader = text.lines();
    let place = reader.next().unwrap().split(',').position(|n| n == name).unwrap();
    reader.map(|line| line.split(',').nth(place).unwrap().to_owned()).collect()
}

#[test]
fn all_cells_in_one_file_with_their_digests() {
    let bench = filled();
    let said = bench.run(&["export", "--out", "all.csv"]).expect(0);
    assert!(said.err.contains("of 30 cells of 2 experiments"), "{}", said.err);
    let text = bench.read("all.csv");
    let mut digests: Vec<String> = column(&text, "cell")
        .into_iter()
        .zip(column(&text, "digest"))
        .map(|(cell, digest)| format!("{cell} {digest}"))
        .collect();
    digests.sort();
    digests.dedup();
    let told = bench.run(&["digest"]).expect(0).out;
    assert_eq!(digests, told.lines().collect::<Vec<_>>());
    assert!(text.starts_with("experiment,cell,problem,algorithm,label,clients,step_size"));
    assert!(column(&text, "last_run").iter().all(|x| x == "true"));
    let diverged = column(&text, "outcome").iter().filter(|o| *o == "diverged").count();
    assert!(diverged > 0 && diverged < text.lines().count());
    // The last errors of summary.csv come from these rows.
    assert!(column(&text, "sq_error").iter().all(|x| x.parse::<f64>().is_ok()));

    let said = bench.run(&["export", "--out", "all.parquet"]).expect(0);
    assert!(said.err.contains(&format!("{} rows", text.lines().count() - 1)), "{}", said.err);
    let bytes = std::fs::read(bench.path("all.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    bench.run(&["export", "--out", "all.parquet", "--quiet"]).expect(0);
    assert_eq!(std::fs::read(bench.path("all.parquet")).unwrap(), bytes, "the same bytes again");
}

#[test]
fn one_experiment_and_cells_of_earlier_settings() {
    let bench = filled();
    let manifest = "experiments/smoke/diverging.toml";
    bench.run(&["run", manifest, "--set", "seed=8", "--quiet"]).expect(0);
    let only = ["export", "--experiment", "smoke/diverging", "--out", "one.csv"];
    let said = bench.run(&only).expect(0);
    assert!(said.err.contains("4 cells of 1 experiment"), "{}", said.err);
    let text = bench.read("one.csv");
    for (seed, last) in column(&text, "seed").iter().zip(column(&text, "last_run")) {
        assert_eq!(last == "true", seed == "8", "those of the last run");
    }
}

/// What is damaged is left out and told; the rest is there.
#[test]
fn a_damaged_cell_is_left_out_and_told() {
    let bench = filled();
    let digests = bench.run(&["digest"]).expect(0).out;
    let cell = digests.lines().next().unwrap().split(' ').next().unwrap();
    for name in ["logistic", "diverging"] {
        let file = bench.path(&format!("results/smoke/{name}/{cell}/traces.parquet"));
        let Ok(mut bytes) = std::fs::read(&file) else { continue };
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    let said = bench.run(&["export", "--out", "all.csv"]).expect(4);
    assert!(said.err.contains(cell) && said.err.contains("hash"), "{}", said.err);
    assert!(said.err.contains("1 damaged cell left out"), "{}", said.err);
    let text = bench.read("all.csv");
    assert!(!text.contains(cell) && said.err.contains("of 29 cells"), "{}", said.err);
}

#[test]
fn what_cannot_be_exported_costs_exit_two_and_writes_nothing() {
    let bench = filled();
    bench.write("empty/driftbench.toml", &bench.read("results/driftbench.toml"));
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
        let said = bench.run(&all).expect(2);
        assert!(said.err.starts_with("error: ") && said.err.contains(message), "{}", said.err);
        assert_eq!(bench.files(), before, "{all:?} left something");
    }
}

/// Two axes of the problem that no other column tells.
const AXES: &str = "title = \"Axes\"
seed = 1
replicates = 3
start = { offset = 1.0 }
budget = { rounds = 8 }
record = { points = 4 }
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
    let axes = metadata.iter().find(|pair| pair.key == "driftbench.axes").unwrap();
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
    let text = include_str!("../docs/FORMAT.md");
    let block = |language: &str| -> &str {
        let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
        let block = rest.split_once("```").unwrap().0;
        assert!(block.contains("rows.parquet") && !block.contains("traces.parquet"), "{block}");
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
    let bench = Bench::new();
    bench.write("axes.toml", AXES);
    bench.run(&["run", "axes.toml", "--quiet"]).expect(0);
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
        bench.run(&["run", "axes.toml", "--set", set, "--quiet"]).expect(0);
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
    let offsets: BTreeSet<String> = column(&bench.read("rows.csv"), "offset").into_iter().collect();
    assert_eq!(offsets, BTreeSet::from(["1.0".to_owned(), "2.0".to_owned()]));
}

/// A setting that an algorithm does not have is null; a default that the manifest names as
/// a value of an axis is there.
#[test]
fn settings_are_null_where_a_cell_has_none_and_defaults_of_axes_are_told() {
    let bench = Bench::new();
    let text = AXES.replace("[1.0, 2.0]", "1.0").replace("[0.5, 1]", "0.5").replace("[1, 2]", "2");
    let text = text.replace(
        "[[algorithm.scaffold]]\nstep-size = 0.05\n",
        "[[algorithm.scaffold]]\nstep-size = 0.05\nserver-step = [0.5, 1.0]\n",
    );
    bench.write("axes.toml", &text);
    bench.run(&["run", "axes.toml", "--quiet"]).expect(0);
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
    let bench = Bench::new();
    let text = bench.read(&bench.bring("diverging.toml"));
    let label = "=HYPERLINK(\\\"http://x\\\",\\\"y\\\")";
    let text = text.replace("label = \"", "label = \"@");
    let text = text.replacen("step-size", &format!("label = \"{label}\"\nstep-size"), 1);
    bench.write("m.toml", &text);
    bench.run(&["run", "m.toml", "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    bench.run(&["export", "--out", "reports/all.csv", "--quiet"]).expect(0);
    let mut found = 0;
    for file in bench.files_below("reports") {
        if file.extension().is_none_or(|end| end != "csv") {
            continue;
        }
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
    let said = bench.run(&["diff", "reports", "results"]).expect(0);
    assert!(said.out.contains("bit-identical, 0 changed"), "{}", said.out);
}
