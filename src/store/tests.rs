//! Results are read as they were written, in folders of their own and in packs, and every changed
//! bit is detected.

use super::export::{ExportFormat, export};
use super::paths::{CELL, PACK_INDEX, TRACES, is_pack};
use super::*;
use crate::npz;
use exactfed_core::problem::arrays::NoFiles;
use exactfed_evidence::results::Provenance;
use exactfed_runner::manifest::{Metric, Source, TimeAverage};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Done, Prepared, prepare};
use exactfed_runner::trace;
use exactfed_runner::trace::Trace;
use std::time::Duration;

const NAME: &str = "smoke/t";
const LOGISTIC: &str = include_str!("../../experiments/smoke/logistic.toml");
const DIVERGING: &str = include_str!("../../experiments/smoke/diverging.toml");

fn by() -> Provenance {
    Provenance { version: "0".into(), commit: "c".into(), dirty: false }
}

fn planned(name: &str, manifest: &str) -> Plan {
    let source = Source { name: "t".into(), text: manifest.into(), ..Source::default() };
    crate::evidence::plan(name.into(), source).unwrap_or_else(|e| panic!("{e}"))
}

/// The traces of every cell of a plan.
fn traces_of_all(plan: &Plan) -> Vec<Vec<Trace>> {
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let traces =
        |p: &Prepared<'_>| (0..p.cell.identity.replicates).map(|r| p.simulate(r)).collect();
    prepared.iter().map(traces).collect()
}

/// Writes cells of a plan as a pack of a generation, or as a folder each.
fn write(
    store: &Store,
    plan: &Plan,
    cells: &[usize],
    traces: &[Vec<Trace>],
    generation: Option<u64>,
) {
    let new = |&i: &usize| {
        let (cell, elapsed) = (&plan.cells[i], Duration::from_millis(i as u64));
        Done { cell, clients: 4, traces: traces[i].clone(), elapsed, optimum_error: None }
    };
    let new: Vec<Done<'_>> = cells.iter().map(new).collect();
    let together = if generation.is_some() { new.len() } else { 1 };
    for batch in new.chunks(together) {
        store.write_batch(plan, batch, &by(), generation).unwrap();
    }
}

/// The folders of the packs, sorted.
fn folders(store: &Store) -> Vec<PathBuf> {
    let mut folders = subfolders(&store.folder(NAME)).unwrap();
    folders.retain(|path| is_pack(&file_name(path)));
    folders
}

/// A store with all cells of a plan, in one pack of this generation or in a folder each.
fn filled(
    folder: &Path,
    manifest: &str,
    generation: Option<u64>,
) -> (Store, Plan, Vec<Vec<Trace>>) {
    let plan = planned(NAME, manifest);
    let traces = traces_of_all(&plan);
    let store = Store::open(folder).unwrap();
    store.create().unwrap();
    store.write_experiment(&plan).unwrap();
    write(&store, &plan, &(0..plan.cells.len()).collect::<Vec<_>>(), &traces, generation);
    (store, plan, traces)
}

/// A pack.
const PACKED: Option<u64> = Some(1);

#[test]
fn cells_come_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [LOGISTIC, DIVERGING].into_iter().flat_map(|m| [(m, None), (m, PACKED)]);
    for (k, (manifest, generation)) in kinds.enumerate() {
        let (store, plan, traces) =
            filled(&folder.path().join(k.to_string()), manifest, generation);
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
    let plan = planned(NAME, LOGISTIC);
    let mut traces = traces_of_all(&plan);
    for (i, cell) in traces.iter_mut().enumerate() {
        for trace in cell {
            let values: Vec<f64> = (0..trace.rows()).map(|k| (i + k) as f64).collect();
            let metrics = [Metric::SqGradient, Metric::Lyapunov];
            let mut further: Vec<_> =
                metrics[..i % 3].iter().map(|m| (*m, values.clone())).collect();
            further.sort_by_key(|(metric, _)| *metric);
            trace.further = further;
            trace.sq_error_limit = if i % 2 == 0 { values.clone() } else { Vec::new() };
            let bias = (TimeAverage::Bias, vec![i as f64; 3]);
            trace.averages = if i % 5 == 0 { vec![bias] } else { Vec::new() };
        }
    }
    let store = Store::open(folder.path()).unwrap();
    write(&store, &plan, &(0..traces.len()).collect::<Vec<_>>(), &traces, PACKED);
    for (cell, traces) in plan.cells.iter().zip(&traces) {
        assert_eq!(&store.read(NAME, &cell.id).unwrap().unwrap().traces, traces);
    }
}

/// Flips bits of a file, one after another.
fn flip_each(path: &Path, step: usize, check: impl Fn(usize)) {
    let whole = fs::read(path).unwrap();
    for place in (0..whole.len() * 8).step_by(step) {
        let mut bytes = whole.clone();
        bytes[place / 8] ^= 1 << (place % 8);
        fs::write(path, &bytes).unwrap();
        check(place);
    }
    fs::write(path, &whole).unwrap();
}

#[test]
fn every_flipped_bit_of_a_cell_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), DIVERGING, None);
    let id = &plan.cells[0].id;
    let is_damaged = || matches!(store.status(NAME, id), Status::Damaged(_));
    let path = store.cell_folder(NAME, id).join(TRACES);
    flip_each(&path, 97, |place| assert!(is_damaged(), "bit {place}"));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(is_damaged());
    fs::write(&path, &whole).unwrap();
    assert_eq!(store.status(NAME, id), Status::Done);
    fs::remove_file(store.cell_folder(NAME, id).join(CELL)).unwrap();
    assert_eq!(store.status(NAME, id), Status::Missing, "half a cell is no cell");
}

#[test]
fn every_flipped_bit_of_a_pack_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), DIVERGING, PACKED);
    let pack = folders(&store).remove(0);
    let id = &plan.cells[0].id;
    let is_damaged = || {
        store.forget_packs(NAME);
        matches!(store.status(NAME, id), Status::Damaged(_))
    };
    for (name, step) in [(TRACES, 97), (PACK_INDEX, 13)] {
        flip_each(&pack.join(name), step, |place| assert!(is_damaged(), "{name}, bit {place}"));
    }
    assert!(!is_damaged());
    fs::rename(&pack, pack.with_file_name("pack-0123456789abcdef")).unwrap();
    assert!(is_damaged(), "its name is its hash");
    let aside = store.recover(NAME).unwrap();
    assert_eq!(aside.len(), 1);
    assert_eq!(store.status(NAME, id), Status::Missing);
}

/// The results that were written last count, in a pack or in a folder of their own.
#[test]
fn the_last_that_was_written_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, mut traces) = filled(folder.path(), DIVERGING, PACKED);
    let digest = |id: &str| store.summary(NAME, id).unwrap().unwrap().digest;
    let next = store.packs(NAME).unwrap().next_generation();
    assert_eq!(next, 2);
    traces[1][0].sq_error[0] += 1.0;
    write(&store, &plan, &[1], &traces, Some(next));
    assert_eq!(digest(&plan.cells[1].id), trace::digest(&traces[1]));
    traces[1][0].sq_error[0] += 1.0;
    let cell = &plan.cells[1];
    store.write(&plan, cell, 4, &traces[1], Duration::ZERO, &by()).unwrap();
    assert_eq!(digest(&cell.id), trace::digest(&traces[1]));
    traces[1][0].sq_error[0] += 1.0;
    write(&store, &plan, &[1], &traces, Some(3));
    assert_eq!(digest(&cell.id), trace::digest(&traces[1]));
    assert_eq!(store.ids(NAME).unwrap().len(), plan.cells.len(), "each counts once");
}

/// Another label rewrites no file: exports have that of the last run, and the stored one for
/// cells that are not part of it.
#[test]
fn labels_follow_the_last_run_and_leave_the_files_alone() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, traces) = filled(&folder.path().join("r"), LOGISTIC, PACKED);
    let single = plan.cells.iter().rposition(|cell| cell.label.contains("Scaffold-RR")).unwrap();
    let cell = &plan.cells[single];
    store.write(&plan, cell, 4, &traces[single], Duration::ZERO, &by()).unwrap();
    let renamed = planned(NAME, &LOGISTIC.replace("Scaffold-RR", "another name"));
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
    let mut exported = planned(NAME, &renamed.source.text);
    exported.cells.remove(0);
    export(&store, &[exported], &to, ExportFormat::Parquet).unwrap();
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
    let (store, plan, traces) = filled(folder.path(), DIVERGING, PACKED);
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
    let (elsewhere, plan, traces) = filled(outside.path(), DIVERGING, None);
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
    assert_eq!(elsewhere.status(NAME, &plan.cells[0].id), Status::Done);
}

#[test]
fn the_contract_columns_and_metadata_are_there() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), LOGISTIC, None);
    let path = store.cell_folder(NAME, &plan.cells[0].id).join(TRACES);
    let mut reader = ParquetReader::new(fs::File::open(path).unwrap());
    let meta = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
    let value = |key: &str| {
        let found = meta.iter().find(|m| m.key.as_str() == format!("exactfed.{key}"));
        found.unwrap_or_else(|| panic!("no {key}")).value.clone().unwrap().to_string()
    };
    assert_eq!(value("manifest"), LOGISTIC);
    assert_eq!((value("seed").as_str(), value("commit").as_str()), ("7", "c"));
    assert_eq!((value("version").as_str(), value("dirty").as_str()), ("0", "false"));
    let frame = reader.finish().unwrap();
    let names: Vec<&str> = frame.get_column_names().into_iter().map(|n| n.as_str()).collect();
    let expected = "experiment cell problem algorithm label clients step_size local_steps instance \
        replicate round local_step communications oracle_calls sequential_calls vectors_sent \
        bytes_sent sq_error theta outcome";
    assert_eq!(names.join(" "), expected);
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

/// Everything of two experiments in one file: each row is the cell's own.
#[test]
fn an_export_holds_the_cells_bit_for_bit() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), LOGISTIC, None);
    let diverging = planned("smoke/d", DIVERGING);
    store.write_experiment(&diverging).unwrap();
    let other = Provenance { commit: "other".into(), dirty: true, ..by() };
    for (cell, traces) in diverging.cells.iter().zip(&traces_of_all(&diverging)) {
        store.write(&diverging, cell, 2, traces, Duration::ZERO, &other).unwrap();
    }
    let mut without = planned(NAME, LOGISTIC);
    without.cells.remove(0);
    let all = [diverging, without];
    let to = folder.path().join("all.parquet");
    let result = export(&store, &all, &to, ExportFormat::Parquet).unwrap();
    assert_eq!((result.cells, result.damaged.len()), (plan.cells.len() + all[0].cells.len(), 0));
    let read = |path: &Path| ParquetReader::new(fs::File::open(path).unwrap()).finish().unwrap();
    let whole = read(&to);
    assert_eq!(whole.height(), result.rows);
    let text = |frame: &DataFrame, name: &str, row: usize| {
        frame.column(name).unwrap().str().unwrap().get(row).unwrap().to_owned()
    };
    let mut from = 0;
    for plan in [&all[0], &plan] {
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
    let dropped = store.read(NAME, &plan.cells[0].id).unwrap().unwrap();
    let dropped: usize = dropped.traces.iter().map(Trace::rows).sum();
    assert_eq!(last_run.sum().unwrap() as usize, whole.height() - dropped);
}

/// A manifest whose records are in memory, under a name that has no extension.
const IN_MEMORY: &str = r#"
title = "t"
seed = 1
replicates = 1

[problem.logistic-dataset]
dataset = { file = "mine", clients = 2 }
l2 = 0.1

[start]
zero = true

[budget]
rounds = 3

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
"#;

/// Results keep a copy of a file in memory, so that they are read and run again without it; the
/// disk is never asked, and the id is that of the same bytes in a file.
#[test]
fn data_in_memory_is_read_from_its_copy_later() {
    let bytes = npz::doubles(&[
        ("x", &[4, 1], vec![0.5, -1.0, 2.0, 0.25]),
        ("y", &[4], vec![0.0, 1.0, 1.0, 0.0]),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str, text: &str| Source {
        name: folder.path().join(name).to_str().unwrap().into(),
        text: text.into(),
        ..Source::default()
    };
    fs::write(folder.path().join("mine"), "another file of this name").unwrap();
    let in_memory = [("mine".to_owned(), bytes.clone().into())].into();
    let source = Source { in_memory, ..named("m.toml", IN_MEMORY) };
    let plan = crate::evidence::plan(NAME.into(), source).unwrap_or_else(|e| panic!("{e}"));
    fs::write(folder.path().join("mine.npz"), &bytes).unwrap();
    let text = IN_MEMORY.replace("\"mine\"", "\"mine.npz\"");
    let of_file = crate::evidence::plan(NAME.into(), named("m.toml", &text))
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.cells[0].id, of_file.cells[0].id);
    let digest = |plan: &Plan| {
        let prepared = prepare(&plan.folder(), &[&plan.cells[0]]).unwrap();
        trace::digest(&[prepared[0].simulate(0)])
    };
    let wanted = digest(&plan);
    assert_eq!(wanted, digest(&of_file));

    let store = Store::open(&folder.path().join("results")).unwrap();
    store.create().unwrap();
    store.write_experiment(&plan).unwrap();
    let stored = store.experiments().unwrap().remove(0);
    assert!(stored.source().in_memory.is_empty());
    let later = crate::evidence::plan(stored.name.clone(), stored.source())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&later.cells[0].id, digest(&later)), (&plan.cells[0].id, wanted));
}

#[test]
fn data_in_memory_that_no_key_names_is_refused() {
    let bytes: std::sync::Arc<[u8]> = npz::doubles(&[("x", &[1, 1], vec![1.0])]).into();
    let refused = |names: &[&str], text: &str| {
        let in_memory = names.iter().map(|name| ((*name).to_owned(), bytes.clone())).collect();
        let source = Source { name: "t".into(), text: text.into(), in_memory, ..Source::default() };
        crate::evidence::plan(NAME.into(), source).err().unwrap().to_string()
    };
    let said = refused(&["mine", "mien"], IN_MEMORY);
    assert!(said.contains("error: no key names `mien` as a file"), "{said}");
    assert!(said.contains("= allowed: mine"), "{said}");
    let said = refused(&["mien"], IN_MEMORY);
    let message = "mine cannot be read: there is no such file; in memory there is mien";
    assert!(said.contains(message), "{said}");
    assert!(refused(&["mien"], LOGISTIC).contains("the manifest names no file"));
}
