//! Packs: cells are read as they were written, and every changed bit is detected.

use super::export::{ExportFormat, export};
use super::parquet::NewCell;
use super::paths::{CELL, TRACES, is_pack};
use super::provenance::Provenance;
use super::tests::{DIVERGING, LOGISTIC, exported};
use super::*;
use driftbench_core::problem::arrays::NoFiles;
use driftbench_runner::manifest::Source;
use driftbench_runner::plan::Plan;
use driftbench_runner::runner::{Prepared, Silent, prepare};
use driftbench_runner::trace::{self, Trace};
use std::time::Duration;

const NAME: &str = "smoke/t";

fn by() -> Provenance {
    Provenance { version: "0".into(), commit: "c".into(), dirty: false }
}

fn planned(manifest: &str) -> Plan {
    let source = Source { name: "t".into(), text: manifest.into(), ..Source::default() };
    Plan::new(NAME.into(), source).unwrap_or_else(|e| panic!("{e}"))
}

/// The traces of every cell of a plan.
fn traces_of_all(plan: &Plan) -> Vec<Vec<Trace>> {
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let traces = |p: &Prepared<'_>| {
        (0..p.cell.identity.replicates).map(|r| p.simulate(r, &Silent)).collect()
    };
    prepared.iter().map(traces).collect()
}

fn write(store: &Store, plan: &Plan, cells: &[usize], traces: &[Vec<Trace>], generation: u64) {
    let new = |&i: &usize| NewCell {
        cell: &plan.cells[i],
        clients: 4,
        traces: &traces[i],
        elapsed: Duration::from_millis(i as u64),
    };
    let new: Vec<NewCell<'_>> = cells.iter().map(new).collect();
    store.write_batch(plan, &new, &by(), Some(generation)).unwrap();
}

/// The folders of the packs, sorted.
fn folders(store: &Store) -> Vec<PathBuf> {
    let mut folders = subfolders(&store.folder(NAME)).unwrap();
    folders.retain(|path| is_pack(&file_name(path)));
    folders
}

/// A store in which all cells of a plan are in one pack.
fn packed(folder: &Path, manifest: &str) -> (Store, Plan, Vec<Vec<Trace>>) {
    let plan = planned(manifest);
    let traces = traces_of_all(&plan);
    let store = Store::open(folder).unwrap();
    store.create().unwrap();
    store.write_experiment(&plan).unwrap();
    write(&store, &plan, &(0..plan.cells.len()).collect::<Vec<_>>(), &traces, 1);
    (store, plan, traces)
}

#[test]
fn a_pack_holds_its_cells_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    for (name, manifest) in [("a", LOGISTIC), ("b", DIVERGING)] {
        let (store, plan, traces) = packed(&folder.path().join(name), manifest);
        let mut ids: Vec<String> = plan.cells.iter().map(|c| c.id.clone()).collect();
        for (i, cell) in plan.cells.iter().enumerate() {
            assert_eq!(store.status(NAME, &cell.id), Status::Done);
            let stored = store.read(NAME, &cell.id).unwrap().unwrap();
            assert_eq!(stored.traces, traces[i]);
            assert_eq!(stored.record.digest, trace::digest(&traces[i]));
            assert_eq!(stored.record.seconds, i as f64 / 1000.0);
            assert_eq!((&stored.record.label, &stored.record.provenance), (&cell.label, &by()));
            assert_eq!(store.settings(NAME, &cell.id).unwrap(), cell.identity.canonical());
            let finals: Vec<_> = traces[i].iter().map(Trace::final_error).collect();
            assert_eq!(store.finals(NAME, &cell.id).unwrap(), finals);
        }
        ids.sort();
        assert_eq!(store.ids(NAME).unwrap(), ids);
        assert!(store.read(NAME, "0123456789abcdef").unwrap().is_none());
    }
}

/// Cells that record other metrics than their neighbours keep their own.
#[test]
fn cells_of_one_pack_need_not_measure_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(LOGISTIC);
    let mut traces = traces_of_all(&plan);
    for (i, cell) in traces.iter_mut().enumerate() {
        for trace in cell {
            let values: Vec<f64> = (0..trace.rows()).map(|k| (i + k) as f64).collect();
            let metrics = [
                driftbench_runner::manifest::Metric::SqGradient,
                driftbench_runner::manifest::Metric::Lyapunov,
            ];
            let mut further: Vec<_> =
                metrics[..i % 3].iter().map(|m| (*m, values.clone())).collect();
            further.sort_by_key(|(metric, _)| *metric);
            trace.further = further;
            trace.sq_error_limit = if i % 2 == 0 { values.clone() } else { Vec::new() };
            let bias = (driftbench_runner::manifest::TimeAverage::Bias, vec![i as f64; 3]);
            trace.averages = if i % 5 == 0 { vec![bias] } else { Vec::new() };
        }
    }
    let store = Store::open(folder.path()).unwrap();
    write(&store, &plan, &(0..traces.len()).collect::<Vec<_>>(), &traces, 1);
    for (cell, traces) in plan.cells.iter().zip(&traces) {
        assert_eq!(&store.read(NAME, &cell.id).unwrap().unwrap().traces, traces);
    }
}

#[test]
fn every_flipped_bit_of_a_pack_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = packed(folder.path(), DIVERGING);
    let pack = folders(&store).remove(0);
    let id = &plan.cells[0].id;
    for (name, step) in [(TRACES, 97), ("cells.jsonl", 13)] {
        let path = pack.join(name);
        let whole = fs::read(&path).unwrap();
        for place in (0..whole.len() * 8).step_by(step) {
            let mut bytes = whole.clone();
            bytes[place / 8] ^= 1 << (place % 8);
            fs::write(&path, &bytes).unwrap();
            store.forget_packs(NAME);
            assert!(matches!(store.status(NAME, id), Status::Damaged(_)), "{name}, bit {place}");
        }
        fs::write(&path, &whole).unwrap();
    }
    store.forget_packs(NAME);
    assert_eq!(store.status(NAME, id), Status::Done);
    fs::rename(&pack, pack.with_file_name("pack-0123456789abcdef")).unwrap();
    store.forget_packs(NAME);
    assert!(matches!(store.status(NAME, id), Status::Damaged(_)), "its name is its hash");
    let aside = store.recover(NAME).unwrap();
    assert_eq!(aside.len(), 1);
    assert_eq!(store.status(NAME, id), Status::Missing);
}

/// The results that were written last count, in a pack or in a folder of their own.
#[test]
fn the_last_that_was_written_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, mut traces) = packed(folder.path(), DIVERGING);
    let digest = |id: &str| store.summary(NAME, id).unwrap().unwrap().digest;
    let next = store.packs(NAME).unwrap().next_generation();
    assert_eq!(next, 2);
    traces[1][0].sq_error[0] += 1.0;
    write(&store, &plan, &[1], &traces, next);
    assert_eq!(digest(&plan.cells[1].id), trace::digest(&traces[1]));
    traces[1][0].sq_error[0] += 1.0;
    let cell = &plan.cells[1];
    store.write(&plan, cell, 4, &traces[1], Duration::ZERO, &by()).unwrap();
    assert_eq!(digest(&cell.id), trace::digest(&traces[1]));
    traces[1][0].sq_error[0] += 1.0;
    write(&store, &plan, &[1], &traces, 3);
    assert_eq!(digest(&cell.id), trace::digest(&traces[1]));
    assert_eq!(store.ids(NAME).unwrap().len(), plan.cells.len(), "each counts once");
}

/// Another label rewrites no file: exports have that of the last run, and the stored one for
/// cells that are not part of it.
#[test]
fn labels_follow_the_last_run_and_leave_the_files_alone() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, traces) = packed(&folder.path().join("r"), LOGISTIC);
    let single = plan.cells.iter().rposition(|cell| cell.label.contains("Scaffold-RR")).unwrap();
    let cell = &plan.cells[single];
    store.write(&plan, cell, 4, &traces[single], Duration::ZERO, &by()).unwrap();
    let renamed = planned(&LOGISTIC.replace("Scaffold-RR", "another name"));
    let changed = renamed.cells.iter().zip(&plan.cells).filter(|(a, b)| a.label != b.label);
    assert!(changed.count() > 1 && renamed.cells[single].label != cell.label);
    let before = folders(&store);
    store.write_experiment(&renamed).unwrap();
    assert!(store.recover(NAME).unwrap().is_empty());
    assert_eq!(folders(&store), before);
    for (i, cell) in plan.cells.iter().enumerate() {
        let stored = store.read(NAME, &cell.id).unwrap().unwrap();
        assert_eq!((&stored.record.label, &stored.traces), (&cell.label, &traces[i]));
    }
    let dropped = &plan.cells[0];
    let to = folder.path().join("all.parquet");
    export(&store, &[exported(&renamed, 1)], &to, ExportFormat::Parquet).unwrap();
    let frame = ParquetReader::new(fs::File::open(to).unwrap()).finish().unwrap();
    let text = |name: &str| frame.column(name).unwrap().str().unwrap().clone();
    let (ids, labels) = (text("cell"), text("label"));
    for (id, label) in ids.iter().zip(labels.iter()) {
        let cell = match id == Some(dropped.id.as_str()) {
            true => dropped,
            false => renamed.cells.iter().find(|cell| id == Some(cell.id.as_str())).unwrap(),
        };
        assert_eq!(label, Some(cell.label.as_str()));
    }
}

/// Leftovers of a killed run: a folder that was never complete is removed, and one that was to
/// be replaced is restored unless it was.
#[test]
fn leftovers_are_put_right() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, traces) = packed(folder.path(), DIVERGING);
    let (one, two) = (&plan.cells[0], &plan.cells[1]);
    for cell in [one, two] {
        store.write(&plan, cell, 2, &traces[0], Duration::ZERO, &by()).unwrap();
    }
    let path = |name: &str| store.folder(NAME).join(name);
    fs::create_dir(path(".writing-abc")).unwrap();
    fs::write(path(".writing-abc").join(TRACES), "half").unwrap();
    fs::rename(path(&one.id), path(&format!(".replaced-{}", one.id))).unwrap();
    fs::create_dir(path(&format!(".replaced-{}", two.id))).unwrap();
    assert!(store.recover(NAME).unwrap().is_empty());
    assert!(!path(".writing-abc").exists());
    assert!(!path(&format!(".replaced-{}", two.id)).exists());
    for cell in [one, two] {
        assert!(path(&cell.id).join(CELL).is_file());
        assert_eq!(store.status(NAME, &cell.id), Status::Done);
    }
}

#[test]
fn a_lock_keeps_others_out_until_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (Store::open(folder.path()).unwrap(), Store::open(folder.path()).unwrap());
    let lock = one.try_lock("a/b").unwrap();
    assert!(lock.is_some());
    assert!(two.try_lock("a/b").unwrap().is_none());
    assert!(two.try_lock("a/c").unwrap().is_some());
    drop(lock);
    assert!(two.try_lock("a/b").unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_the_results() {
    use std::os::unix::fs::symlink;
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (elsewhere, plan, traces) = packed(outside.path(), DIVERGING);
    for cell in &plan.cells {
        elsewhere.write(&plan, cell, 2, &traces[0], Duration::ZERO, &by()).unwrap();
    }
    let before = fs::read_dir(elsewhere.folder(NAME)).unwrap().count();
    let inside = Store::open(&folder.path().join("r")).unwrap();
    inside.create().unwrap();
    fs::create_dir_all(inside.folder("smoke")).unwrap();
    symlink(elsewhere.folder(NAME), inside.folder(NAME)).unwrap();
    let refused = |e: Error| assert!(e.message.contains("is a symbolic link"), "{e}");
    assert!(inside.experiments().unwrap().is_empty());
    refused(inside.try_lock(NAME).unwrap_err());
    refused(inside.write_experiment(&plan).unwrap_err());
    refused(inside.read(NAME, &plan.cells[0].id).map(|_| ()).unwrap_err());
    refused(inside.recover(NAME).map(|_| ()).unwrap_err());
    refused(inside.write(&plan, &plan.cells[0], 2, &traces[0], Duration::ZERO, &by()).unwrap_err());
    fs::remove_file(inside.folder(NAME)).unwrap();
    fs::create_dir(inside.folder(NAME)).unwrap();
    let id = &plan.cells[0].id;
    symlink(elsewhere.cell_folder(NAME, id), inside.cell_folder(NAME, id)).unwrap();
    assert!(matches!(inside.status(NAME, id), Status::Damaged(_)));
    inside.quarantine(NAME, id).unwrap();
    inside.write(&plan, &plan.cells[0], 2, &traces[0], Duration::ZERO, &by()).unwrap();
    assert_eq!(inside.status(NAME, id), Status::Done);
    let file = inside.cell_folder(NAME, id).join(TRACES);
    fs::remove_file(&file).unwrap();
    symlink(elsewhere.cell_folder(NAME, id).join(TRACES), &file).unwrap();
    assert!(matches!(inside.status(NAME, id), Status::Damaged(_)));
    assert_eq!(fs::read_dir(elsewhere.folder(NAME)).unwrap().count(), before);
    assert_eq!(elsewhere.status(NAME, id), Status::Done);
}
