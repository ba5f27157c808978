//! What a merge leaves in the first folder.

use super::*;
use crate::store::merge::{CopiedCells, MergeSources};
use crate::store::packs::Packs;

/// Writes an experiment and these cells of it, in one pack.
fn add_experiment(store: &Store, plan: &Plan, cells: &[usize]) {
    store.create().unwrap();
    store.write_experiment(plan).unwrap();
    write(store, plan, cells, &traces_of_all(plan), 1);
}

/// A store with all cells of some plans, each of whose runs was complete.
fn complete(folder: &Path, plans: &[&Plan]) -> Store {
    let store = Store::open(folder).unwrap();
    for plan in plans {
        add_experiment(&store, plan, &(0..plan.cells.len()).collect::<Vec<_>>());
        store.record_complete(plan).unwrap();
    }
    store
}

/// A store with other numbers of the first cell of a plan, and no other cells.
fn changed(folder: &Path, plan: &Plan) -> Store {
    let store = Store::open(folder).unwrap();
    store.create().unwrap();
    store.write_experiment(plan).unwrap();
    let mut traces = traces_of_all(plan);
    traces[0][0].sq_error[0] += 1.0;
    write(&store, plan, &[0], &traces, 1);
    store
}

/// Changes a bit among the rows of the only pack of an experiment.
pub fn damage(store: &Store, experiment: &str) {
    let mut files = contents(&store.folder(experiment)).unwrap().files;
    files.retain(|path| is_pack(&file_name(path)));
    assert_eq!(files.len(), 1);
    let mut bytes = fs::read(&files[0]).unwrap();
    let place = bytes.len() / 16;
    bytes[place] ^= 1;
    fs::write(&files[0], bytes).unwrap();
}

/// The folders as they are on the disk, opened anew.
fn opened(folders: &[&Store]) -> Vec<Store> {
    folders.iter().map(|store| Store::open(&store.root).unwrap()).collect()
}

/// Merges folders into the first of them.
fn merge(folders: &[&Store]) {
    let folders = opened(folders);
    MergeSources::new(&folders, None).unwrap().copy(&|_| {}).unwrap();
}

/// Reads two folders for a merge, lets something happen, and merges the second into the first.
fn merge_after(folders: &[&Store; 2], happens: impl FnOnce()) -> Result<MergeResult, Error> {
    let folders = opened(folders);
    let mut sources = MergeSources::new(&folders, None)?;
    happens();
    let copied = sources.copy(&|_| {})?;
    Ok(MergeResult { copied, conflicts: sources.conflicts().len() })
}

/// What a merge copied, and the number of conflicts that it knows of afterwards.
#[derive(Debug)]
struct MergeResult {
    copied: CopiedCells,
    conflicts: usize,
}

/// The names of the experiments in a folder that are recorded as complete.
fn complete_names(store: &Store) -> Vec<String> {
    let experiments = store.experiments().unwrap().into_iter();
    experiments.filter(|one| one.complete.is_some()).map(|one| one.name).collect()
}

/// The cells that the first folder loses by the damage are missing, and no file of it was removed. If another folder
/// has them, it is as complete as it was.
#[test]
fn a_damaged_first_folder_is_complete_if_it_heals() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, DIVERGING);
    let part = Store::open(&folder.path().join("part")).unwrap();
    add_experiment(&part, &plan, &[0]);
    let whole = complete(&folder.path().join("whole"), &[&plan]);
    for (other, is_complete) in [(&part, false), (&whole, true)] {
        let out = complete(&folder.path().join(format!("out-{is_complete}")), &[&plan]);
        damage(&out, NAME);
        merge(&[&out, other]);
        let merged = &opened(&[&out])[0];
        assert_eq!(merged.status(NAME, &plan.cells[0].id), Status::Done);
        merged.refuse_removed(&plan).unwrap();
        assert_eq!(complete_names(merged).len(), usize::from(is_complete));
    }
}

/// What is damaged or in conflict in one experiment says nothing of another one.
#[test]
fn only_experiments_that_lack_cells_are_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, DIVERGING);
    let other_plan = planned("smoke/other", DIVERGING);
    let from = complete(&folder.path().join("from"), &[&plan, &other_plan]);
    let out = Store::open(&folder.path().join("out")).unwrap();
    damage(&from, NAME);
    merge(&[&out, &from]);
    assert_eq!(complete_names(&out), ["smoke/other"]);

    let whole = complete(&folder.path().join("whole"), &[&plan, &other_plan]);
    let changed = changed(&folder.path().join("changed"), &plan);
    let out = Store::open(&folder.path().join("out-of-conflict")).unwrap();
    merge(&[&out, &whole, &changed]);
    assert_eq!(complete_names(&out), ["smoke/other"]);
}

/// A clone on Windows may have the same manifest with other line ends.
#[test]
fn line_ends_make_no_other_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let windows = DIVERGING.replace('\n', "\r\n");
    let mut stores = Vec::new();
    for (name, manifest) in [("unix", DIVERGING), ("windows", &*windows)] {
        let store = Store::open(&folder.path().join(name)).unwrap();
        add_experiment(&store, &planned(NAME, manifest), &[0]);
        stores.push(store);
    }
    assert!(MergeSources::new(&stores, None).unwrap().different_manifests().is_empty());
    let other = planned(NAME, &DIVERGING.replace("seed = 7", "seed = 8"));
    add_experiment(&stores[1], &other, &[0]);
    assert_eq!(MergeSources::new(&stores, None).unwrap().different_manifests().len(), 1);
}

/// A damaged cell whose sound copies contradict each other is not merged, so that it is lost.
#[test]
fn copies_in_conflict_heal_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, DIVERGING);
    let out = complete(&folder.path().join("out"), &[&plan]);
    let whole = complete(&folder.path().join("whole"), &[&plan]);
    let changed = changed(&folder.path().join("changed"), &plan);
    damage(&out, NAME);
    for (others, is_healed) in [(vec![&whole], true), (vec![&whole, &changed], false)] {
        let folders = opened(&[vec![&out], others].concat());
        let sources = MergeSources::new(&folders, None).unwrap();
        let damaged: Vec<bool> = sources.damaged().map(|(_, is_healed)| is_healed).collect();
        assert_eq!(damaged, [is_healed]);
    }
}

/// A run may end in the first folder while a merge reads the others, or waits for it: its cells are there then.
#[test]
fn what_a_run_stored_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, DIVERGING);
    let whole = complete(&folder.path().join("whole"), &[&plan]);
    let out = Store::open(&folder.path().join("out")).unwrap();
    let same = merge_after(&[&out, &whole], || add_experiment(&out, &plan, &[1])).unwrap();
    assert_eq!(same.copied, CopiedCells { new: 1, had: 1, healed: 0 });
    assert_eq!(same.conflicts, 0);
    let held = |store: &Store| -> usize {
        let packs = Packs::open(&store.folder(NAME)).unwrap();
        packs.sound.iter().map(|pack| pack.cells.len()).sum()
    };
    assert_eq!(held(&out), plan.cells.len(), "each cell is stored once");

    let out = Store::open(&folder.path().join("out-of-conflict")).unwrap();
    let run = || drop(changed(&out.root, &plan));
    let other = merge_after(&[&out, &whole], run).unwrap();
    assert_eq!(other.copied, CopiedCells { new: 1, had: 1, healed: 0 });
    assert_eq!(other.conflicts, 1, "other numbers are not passed over");
    let kept = &opened(&[&out])[0];
    let digest = |store: &Store| store.summary(NAME, &plan.cells[0].id).unwrap().unwrap().digest;
    assert_ne!(digest(kept), digest(&whole));
    assert_eq!(held(&out), plan.cells.len());
}

/// A manifest that a run has written meanwhile is not replaced by another one that nobody preferred.
#[test]
fn another_manifest_that_was_run_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(NAME, DIVERGING);
    let other = planned(NAME, &DIVERGING.replace("seed = 7", "seed = 8"));
    let whole = complete(&folder.path().join("whole"), &[&plan]);
    for (name, had_results) in [("empty", false), ("had-results", true)] {
        let out = Store::open(&folder.path().join(name)).unwrap();
        if had_results {
            add_experiment(&out, &plan, &[0]);
        }
        out.create().unwrap();
        let run = || out.write_experiment(&other).unwrap();
        let refused = merge_after(&[&out, &whole], run).unwrap_err();
        assert!(refused.message.contains("was changed since the merge began"), "{refused}");
        let kept = out.experiments().unwrap().remove(0);
        assert_eq!(kept.source.text, other.source.text);
        let cells = Packs::open(&out.folder(NAME)).unwrap().ids().count();
        assert_eq!(cells, usize::from(had_results), "nothing was copied");
    }
}
