//! Results are read as they were written, and every changed bit is detected.

mod merge;

use super::export::{ExportFormat, export};
use super::pack::Pack;
use super::packs::CellInPack;
use super::paths::{contents, file_name, is_pack};
use super::{BatchWriter, Provenance, Results, Status, Store};
use crate::test_support::npz;
use exactfed_core::problem::arrays::NoFiles;
use exactfed_runner::files::Error;
use exactfed_runner::manifest::{Metric, Quantity, Source, TimeAverage};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Done, Prepared, prepare};
use exactfed_runner::trace;
use exactfed_runner::trace::Trace;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "smoke/t";
const LOGISTIC: &str = include_str!("../../experiments/smoke/logistic.toml");
const DIVERGING: &str = include_str!("../../experiments/smoke/diverging.toml");

fn test_provenance() -> Provenance {
    Provenance { version: "0".into(), commit: "c".into(), dirty: false }
}

fn planned_from(name: &str, source: Source) -> Plan {
    crate::evidence::plan(name.into(), source).unwrap_or_else(|e| panic!("{e}"))
}

fn planned(name: &str, manifest: &str) -> Plan {
    planned_from(name, Source { name: "t".into(), text: manifest.into(), ..Source::default() })
}

/// The traces of every cell of a plan.
fn traces_of_all(plan: &Plan) -> Vec<Vec<Trace>> {
    let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    prepared.iter().map(traces_of_cell).collect()
}

fn traces_of_cell(cell: &Prepared<'_>) -> Vec<Trace> {
    (0..cell.cell.identity.replicates).map(|r| cell.simulate(r)).collect()
}

/// Cell `i` of a plan, which took i milliseconds.
fn done_cell<'p>(plan: &'p Plan, i: usize, traces: &[Trace]) -> Done<'p> {
    Done {
        cell: &plan.cells[i],
        clients: 4,
        traces: traces.to_vec(),
        elapsed: Duration::from_millis(i as u64),
        optimum_error: None,
        programs: Vec::new(),
    }
}

/// Writes cells of a plan as a pack of a generation.
fn write(store: &Store, plan: &Plan, cells: &[usize], traces: &[Vec<Trace>], generation: u64) {
    let done: Vec<Done<'_>> = cells.iter().map(|&i| done_cell(plan, i, &traces[i])).collect();
    store.write_pack(plan, &done, &test_provenance(), generation).unwrap();
}

/// The cell that is added when an earlier write turns out to have failed is not lost with the error.
#[test]
fn a_cell_that_meets_an_earlier_error_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, LOGISTIC);
    let store = Store::open(folder.path()).unwrap();
    store.create().unwrap();
    store.write_experiment(&plan).unwrap();
    let traces = traces_of_all(&plan);
    let provenance = test_provenance();
    let writer = BatchWriter::new(&store, &plan, &provenance).unwrap();
    writer.fail_in_background(exactfed_runner::files::error(folder.path(), "the disk is full"));
    let result = writer.during(|| writer.add(done_cell(&plan, 0, &traces[0])));
    assert_eq!(result.unwrap_err().message, "the disk is full");
    assert_eq!(store.status(NAME, &plan.cells[0].id), Status::Done);
}

/// A manifest that is submitted during a run with another one waits for the run, and keeps its record that all cells
/// are stored; the manifest of the run itself changes nothing and waits for nobody.
#[test]
fn a_manifest_is_taken_over_after_the_run_that_holds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, LOGISTIC);
    let renamed = planned(NAME, &LOGISTIC.replace("Scaffold-RR", "another name"));
    let store = Store::open(folder.path()).unwrap();
    store.create().unwrap();
    let lock = store.try_lock(NAME).unwrap().unwrap();
    store.write_experiment(&plan).unwrap();
    // As another process has it.
    let other = Store::open(folder.path()).unwrap();
    other.take_over(&plan, &|name| panic!("waits for {name}")).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let busy = |name: &str| tell.send(name.to_owned()).unwrap();
            other.take_over(&renamed, &busy).unwrap();
        });
        assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), NAME);
        store.record_complete(&plan).unwrap();
        drop(lock);
    });
    let stored = store.experiments().unwrap().remove(0);
    assert_eq!(stored.source.text, renamed.source.text);
    assert_eq!(stored.complete, Some(plan.cells_hash()));
}

/// The packs, sorted.
fn packs(store: &Store) -> Vec<PathBuf> {
    let mut files = contents(&store.folder(NAME)).unwrap().files;
    files.retain(|path| is_pack(&file_name(path)));
    files
}

/// A store with all cells of a plan in one pack.
fn filled(folder: &Path, manifest: &str) -> (Store, Plan, Vec<Vec<Trace>>) {
    let plan = planned(NAME, manifest);
    let traces = traces_of_all(&plan);
    let store = Store::open(folder).unwrap();
    store.create().unwrap();
    store.write_experiment(&plan).unwrap();
    write(&store, &plan, &(0..plan.cells.len()).collect::<Vec<_>>(), &traces, 1);
    (store, plan, traces)
}

#[test]
fn cells_come_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    for (k, manifest) in [LOGISTIC, DIVERGING].into_iter().enumerate() {
        let (store, plan, traces) = filled(&folder.path().join(k.to_string()), manifest);
        let mut ids: Vec<_> = plan.cells.iter().map(|c| c.id).collect();
        for (i, cell) in plan.cells.iter().enumerate() {
            assert_eq!(store.status(NAME, &cell.id), Status::Done);
            let stored = store.read(NAME, &cell.id).unwrap().unwrap();
            assert_eq!(stored.traces, traces[i]);
            assert_eq!(stored.record.digest, trace::digest(&traces[i]));
            assert_eq!(stored.record.seconds, i as f64 / 1000.0);
            assert_eq!(
                (&*stored.record.label, &*stored.record.provenance),
                (&*cell.label, &test_provenance())
            );
            assert_eq!(store.settings(NAME, &cell.id).unwrap(), cell.identity.canonical());
            let finals: Vec<_> = traces[i].iter().map(Trace::final_error).collect();
            assert_eq!(store.finals(NAME, &cell.id, Quantity::SqError).unwrap(), finals);
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
    write(&store, &plan, &(0..traces.len()).collect::<Vec<_>>(), &traces, 1);
    for (cell, traces) in plan.cells.iter().zip(&traces) {
        assert_eq!(&store.read(NAME, &cell.id).unwrap().unwrap().traces, traces);
    }
}

#[test]
fn every_flipped_bit_of_a_pack_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), DIVERGING);
    let pack = packs(&store).remove(0);
    let id = &plan.cells[0].id;
    let is_damaged = || {
        store.forget_packs(NAME);
        matches!(store.status(NAME, id), Status::Damaged(_))
    };
    let whole = fs::read(&pack).unwrap();
    for place in (0..whole.len() * 8).step_by(97) {
        let mut bytes = whole.clone();
        bytes[place / 8] ^= 1 << (place % 8);
        fs::write(&pack, &bytes).unwrap();
        assert!(is_damaged(), "bit {place}");
    }
    for length in [0, 7, whole.len() / 2, whole.len() - 1] {
        fs::write(&pack, &whole[..length]).unwrap();
        assert!(is_damaged(), "{length} bytes");
    }
    fs::write(&pack, &whole).unwrap();
    assert!(!is_damaged());
    fs::rename(&pack, pack.with_file_name("0123456789abcdef.parquet")).unwrap();
    assert!(is_damaged(), "its name is its hash");
    let quarantined = store.recover(NAME).unwrap();
    assert_eq!(quarantined.len(), 1);
    assert_eq!(store.status(NAME, id), Status::Missing);
}

/// A damaged pack hides no cell of another one.
#[test]
fn cells_of_sound_packs_are_found_next_to_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, traces) = filled(folder.path(), DIVERGING);
    fs::remove_file(packs(&store).remove(0)).unwrap();
    for i in 0..2 {
        write(&store, &plan, &[i], &traces, 1);
    }
    store.forget_packs(NAME);
    let found = store.packs(NAME).unwrap().find(&plan.cells[0].id).unwrap().unwrap();
    fs::write(&found.pack.path, "nothing").unwrap();
    store.forget_packs(NAME);
    assert_eq!(store.status(NAME, &plan.cells[1].id), Status::Done);
    assert!(matches!(store.status(NAME, &plan.cells[0].id), Status::Damaged(_)));
    assert_eq!(store.recover(NAME).unwrap().len(), 1);
    assert_eq!(store.ids(NAME).unwrap(), [plan.cells[1].id]);
}

/// The results that were written last count, also if the run that wrote them was killed; those
/// before them are removed, so that a reader of all packs finds each cell once.
#[test]
fn the_last_that_was_written_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, mut traces) = filled(folder.path(), DIVERGING);
    let digest = |id: &str| store.summary(NAME, id).unwrap().unwrap().digest;
    let next = store.packs(NAME).unwrap().next_generation();
    assert_eq!(next, 2);
    let cell = &plan.cells[1];
    traces[1][0].sq_error[0] += 1.0;
    write(&store, &plan, &[1], &traces, next);
    assert_eq!(digest(&cell.id), trace::digest(&traces[1]));
    store.recover(NAME).unwrap();
    let held = || -> Vec<usize> {
        packs(&store).iter().map(|path| Pack::open(path).unwrap().cells.len()).collect()
    };
    assert_eq!(held().iter().sum::<usize>(), plan.cells.len(), "each counts once");
    traces[1][0].sq_error[0] += 1.0;
    store.write(&plan, cell, 4, &traces[1], Duration::ZERO, &test_provenance()).unwrap();
    assert_eq!(digest(&cell.id), trace::digest(&traces[1]));
    assert_eq!((held().len(), held().iter().sum()), (2, plan.cells.len()));
    for (cell, traces) in plan.cells.iter().zip(&traces) {
        assert_eq!(&store.read(NAME, &cell.id).unwrap().unwrap().traces, traces);
    }
}

/// Results count from the moment at which they are stored, also if earlier ones cannot be removed after that.
#[test]
fn new_results_stay_if_the_earlier_ones_cannot_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, mut traces) = filled(folder.path(), DIVERGING);
    let earlier = packs(&store).remove(0);
    // Then the pack cannot be replaced by one without the cell.
    merge::damage(&store, NAME);
    traces[1][0].sq_error[0] += 1.0;
    let cell = &plan.cells[1];
    let written = store.write(&plan, cell, 2, &traces[1], Duration::ZERO, &test_provenance());
    assert_eq!(written.unwrap_err().path, earlier);
    store.forget_packs(NAME);
    assert_eq!(packs(&store).len(), 2);
    assert_eq!(store.read(NAME, &cell.id).unwrap().unwrap().traces, traces[1]);
}

/// Another label rewrites no file: exports have the label of the last run, and the stored label for cells that are not
/// part of it.
#[test]
fn labels_follow_the_last_run_and_leave_the_files_alone() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, traces) = filled(&folder.path().join("r"), LOGISTIC);
    let renamed = planned(NAME, &LOGISTIC.replace("Scaffold-RR", "another name"));
    let changed = renamed.cells.iter().zip(&plan.cells).filter(|(a, b)| a.label != b.label);
    assert!(changed.count() > 1);
    let before = packs(&store);
    store.write_experiment(&renamed).unwrap();
    assert!(store.recover(NAME).unwrap().is_empty());
    assert_eq!(packs(&store), before);
    for (i, cell) in plan.cells.iter().enumerate() {
        let stored = store.read(NAME, &cell.id).unwrap().unwrap();
        assert_eq!((&*stored.record.label, &stored.traces), (&*cell.label, &traces[i]));
    }
    let dropped = &plan.cells[0];
    let to = folder.path().join("all.parquet");
    let mut exported = planned(NAME, &renamed.source.text);
    exported.cells.remove(0);
    export(&store, &[exported], &to, ExportFormat::Parquet).unwrap();
    let frame = ParquetReader::new(fs::File::open(to).unwrap()).finish().unwrap();
    let text = |name: &str| frame.column(name).unwrap().str().unwrap().clone();
    for (id, label) in text("cell").iter().zip(text("label").iter()) {
        let cell = if id == Some(dropped.id.as_str()) {
            dropped
        } else {
            renamed.cells.iter().find(|cell| id == Some(cell.id.as_str())).unwrap()
        };
        assert_eq!(label, Some(cell.label.as_str()));
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_the_results() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let (elsewhere, plan, traces) = filled(outside.path(), DIVERGING);
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
    refused(
        inside
            .write(&plan, &plan.cells[0], 2, &traces[0], Duration::ZERO, &test_provenance())
            .unwrap_err(),
    );
    assert_eq!(elsewhere.status(NAME, &plan.cells[0].id), Status::Done);
}

#[test]
fn the_contract_columns_and_metadata_are_there() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), LOGISTIC);
    let path = packs(&store).remove(0);
    let mut reader = ParquetReader::new(fs::File::open(path).unwrap());
    let meta = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
    let value = |key: &str| {
        let found = meta.iter().find(|m| m.key.as_str() == format!("exactfed.{key}"));
        found.unwrap_or_else(|| panic!("no {key}")).value.clone().unwrap().to_string()
    };
    assert_eq!(value("manifest"), LOGISTIC);
    assert_eq!(value("cells").lines().count(), plan.cells.len() + 2);
    let frame = reader.finish().unwrap();
    let names: Vec<&str> = frame.get_column_names().into_iter().map(|n| n.as_str()).collect();
    let expected = "experiment cell problem algorithm label clients step_size local_steps instance \
        replicate round local_step communications oracle_calls sequential_calls vectors_sent \
        bytes_sent sq_error";
    assert!(names.join(" ").starts_with(expected));
    assert_eq!(names.last(), Some(&"outcome"));
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

/// Reports that are written at the same time, by processes that have opened the results each for itself, all record
/// what they show, and do not wait for the run that holds the lock of the experiment.
#[test]
fn no_record_of_shown_verdicts_is_lost() {
    const REPORTS: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.create().unwrap();
    let run = store.try_lock(NAME).unwrap().unwrap();
    let mut plans = Vec::new();
    for replicates in 1..=REPORTS {
        let mut plan = planned(NAME, LOGISTIC);
        plan.manifest.replicates = replicates;
        plans.push(plan);
    }
    std::thread::scope(|scope| {
        for plan in &plans {
            let report = Store::open(folder.path()).unwrap();
            scope.spawn(move || report.note_shown(plan));
        }
    });
    drop(run);
    let shown = store.shown_verdicts(NAME).unwrap();
    let mut replicates: Vec<u64> = shown.iter().map(|verdicts| verdicts.replicates).collect();
    replicates.sort_unstable();
    assert_eq!(replicates, (1..=REPORTS).collect::<Vec<_>>());
}

/// Everything of two experiments in one file: each row is the cell's own.
#[test]
fn an_export_holds_the_cells_bit_for_bit() {
    use polars::prelude::*;
    let folder = tempfile::tempdir().unwrap();
    let (store, plan, _) = filled(folder.path(), LOGISTIC);
    let diverging = planned("smoke/d", DIVERGING);
    store.write_experiment(&diverging).unwrap();
    let other = Provenance { commit: "other".into(), dirty: true, ..test_provenance() };
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
    for (last, plan) in [(&all[0], &all[0]), (&all[1], &plan)] {
        // Cells of earlier settings come after those of the last run.
        let mut ids: Vec<_> = last.cells.iter().chain(&plan.cells).map(|c| c.id).collect();
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        for id in ids {
            let found = store.packs(&plan.experiment).unwrap().find(&id).unwrap();
            let CellInPack { pack, index } = found.unwrap();
            let range = pack.rows(index);
            let cell = read(&pack.path).slice(range.start as i64, range.len());
            let rows = whole.slice(from as i64, cell.height());
            for column in cell.columns() {
                match rows.column(column.name()) {
                    Ok(there) => assert!(there.equals_missing(column), "{id}: {}", column.name()),
                    Err(_) => assert_eq!(column.null_count(), cell.height()),
                }
            }
            let record = store.summary(&plan.experiment, &id).unwrap().unwrap();
            assert_eq!(text(&rows, "digest", 0), *record.digest.text());
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
    let plan = planned_from(NAME, Source { in_memory, ..named("m.toml", IN_MEMORY) });
    fs::write(folder.path().join("mine.npz"), &bytes).unwrap();
    let text = IN_MEMORY.replace("\"mine\"", "\"mine.npz\"");
    let of_file = planned_from(NAME, named("m.toml", &text));
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
    let later = planned_from(&stored.name, stored.source());
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
