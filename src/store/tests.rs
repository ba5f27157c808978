//! Results are read as they were written, and damage is found.

use super::paths::TRACES;
use super::provenance::Provenance;
use super::*;
use driftbench_core::problem::arrays::NoFiles;
use driftbench_runner::manifest::Source;
use driftbench_runner::plan::Plan;
use driftbench_runner::runner::{self, Silent, prepare};
use driftbench_runner::trace;

fn filled(folder: &Path, manifest: &str) -> (Store, Plan) {
    let source = Source { name: "t".into(), text: manifest.into(), ..Source::default() };
    let plan = Plan::new("smoke/t".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let store = Store::open(folder).unwrap();
    store.create().unwrap();
    store.write_experiment(&plan).unwrap();
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let by = Provenance { version: "0".into(), commit: "c".into(), dirty: false };
    runner::run(&prepared, 1, &Silent, |done| {
        store.write(&plan, done.cell, 4, &done.traces, done.elapsed, &by)
    })
    .unwrap();
    (store, plan)
}

pub const LOGISTIC: &str = include_str!("../../experiments/smoke/logistic.toml");
pub const DIVERGING: &str = include_str!("../../experiments/smoke/diverging.toml");

#[test]
fn traces_come_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    for manifest in [LOGISTIC, DIVERGING] {
        let (store, plan) = filled(&folder.path().join("r"), manifest);
        let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        for p in &prepared {
            let stored = store.read("smoke/t", &p.cell.id).unwrap().unwrap();
            let again: Vec<Trace> =
                (0..p.cell.identity.replicates).map(|r| p.simulate(r, &Silent)).collect();
            assert_eq!(stored.traces, again);
            assert_eq!(stored.record.digest, trace::digest(&again));
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan) = filled(folder.path(), DIVERGING);
    let id = &plan.cells[0].id;
    let path = store.cell_folder("smoke/t", id).join(TRACES);
    let whole = fs::read(&path).unwrap();
    for place in (0..whole.len() * 8).step_by(97) {
        let mut bytes = whole.clone();
        bytes[place / 8] ^= 1 << (place % 8);
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(store.status("smoke/t", id), Status::Damaged(_)), "bit {place}");
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(store.status("smoke/t", id), Status::Damaged(_)));
    fs::write(&path, &whole).unwrap();
    assert_eq!(store.status("smoke/t", id), Status::Done);
    fs::remove_file(store.cell_folder("smoke/t", id).join(CELL)).unwrap();
    assert_eq!(store.status("smoke/t", id), Status::Missing, "half a cell is no cell");
}

#[test]
fn the_contract_columns_and_metadata_are_there() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan) = filled(folder.path(), LOGISTIC);
    let path = store.cell_folder("smoke/t", &plan.cells[0].id).join(TRACES);
    let mut reader = ParquetReader::new(fs::File::open(path).unwrap());
    let meta = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
    let value = |key: &str| {
        let found = meta.iter().find(|m| m.key.as_str() == format!("driftbench.{key}"));
        found.unwrap_or_else(|| panic!("no {key}")).value.clone().unwrap().to_string()
    };
    assert_eq!(value("manifest"), LOGISTIC);
    assert_eq!((value("seed").as_str(), value("commit").as_str()), ("7", "c"));
    assert_eq!((value("version").as_str(), value("dirty").as_str()), ("0", "false"));
    let frame = reader.finish().unwrap();
    let names: Vec<&str> = frame.get_column_names().into_iter().map(|n| n.as_str()).collect();
    let expected = [
        "experiment",
        "cell",
        "problem",
        "algorithm",
        "label",
        "clients",
        "step_size",
        "local_steps",
        "replicate",
        "round",
        "local_step",
        "communications",
        "oracle_calls",
        "sequential_calls",
        "vectors_sent",
        "bytes_sent",
        "sq_error",
        "theta",
        "outcome",
    ];
    assert_eq!(names, expected);
}

#[test]
fn folders_that_are_not_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    assert!(Store::open(folder.path()).is_err());
    assert!(Store::open(&folder.path().join("new")).is_ok());
    assert!(Store::open(&folder.path().join("letter.txt")).is_err());
    assert!(Store::open_existing(&folder.path().join("new")).is_err());
}

/// A plan as it is exported, without its first cells.
pub fn exported(plan: &Plan, without: usize) -> export::ExportedExperiment {
    let planned = |cell: &driftbench_runner::plan::Cell| {
        let defaults = Vec::new();
        (cell.id.clone(), export::PlannedCell { label: cell.label.clone(), defaults })
    };
    export::ExportedExperiment {
        name: plan.experiment.clone(),
        manifest: plan.source.text.clone(),
        last_run: plan.cells.iter().skip(without).map(planned).collect(),
    }
}

/// Everything of two experiments in one file: each row is the cell's own.
#[test]
fn an_export_holds_the_cells_bit_for_bit() {
    use export::{ExportFormat, export};
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan) = filled(folder.path(), LOGISTIC);
    let diverging = {
        let source = Source { name: "d".into(), text: DIVERGING.into(), ..Source::default() };
        let plan = Plan::new("smoke/d".into(), source).unwrap_or_else(|e| panic!("{e}"));
        store.write_experiment(&plan).unwrap();
        let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        let by = Provenance { version: "0".into(), commit: "other".into(), dirty: true };
        runner::run(&prepared, 1, &Silent, |done| {
            store.write(&plan, done.cell, 2, &done.traces, done.elapsed, &by)
        })
        .unwrap();
        plan
    };
    let all = [exported(&diverging, 0), exported(&plan, 1)];
    let to = folder.path().join("all.parquet");
    let result = export(&store, &all, &to, ExportFormat::Parquet).unwrap();
    assert_eq!((result.cells, result.damaged.len()), (plan.cells.len() + diverging.cells.len(), 0));
    let read = |path: &Path| ParquetReader::new(fs::File::open(path).unwrap()).finish().unwrap();
    let whole = read(&to);
    assert_eq!(whole.height(), result.rows);
    let text = |frame: &DataFrame, name: &str, row: usize| {
        frame.column(name).unwrap().str().unwrap().get(row).unwrap().to_owned()
    };
    let mut from = 0;
    for plan in [&diverging, &plan] {
        let mut ids: Vec<&String> = plan.cells.iter().map(|c| &c.id).collect();
        ids.sort();
        for id in ids {
            let cell = read(&store.cell_folder(&plan.experiment, id).join(TRACES));
            let rows = whole.slice(from as i64, cell.height());
            for column in cell.columns() {
                let there = rows.column(column.name()).unwrap();
                assert!(there.equals(column), "{id}: {}", column.name());
            }
            let absent = rows.columns().iter().filter(|c| c.null_count() > 0);
            assert!(absent.clone().all(|c| c.null_count() == rows.height()));
            assert!(absent.clone().all(|c| cell.column(c.name()).is_err()));
            let record = store.summary(&plan.experiment, id).unwrap().unwrap();
            assert_eq!(text(&rows, "digest", 0), record.digest);
            assert_eq!(text(&rows, "commit", 0), record.provenance.commit);
            let settings: serde_json::Value =
                serde_json::from_str(&text(&rows, "settings", 0)).unwrap();
            assert_eq!(settings["seed"], 7);
            from += cell.height();
        }
    }
    assert_eq!(from, whole.height());
    let last_run = whole.column("last_run").unwrap().bool().unwrap();
    let dropped = store.read("smoke/t", &plan.cells[0].id).unwrap().unwrap();
    let dropped: usize = dropped.traces.iter().map(Trace::rows).sum();
    assert_eq!(last_run.sum().unwrap() as usize, whole.height() - dropped);
}
