//! What a merge leaves in the first folder.

use super::*;
use crate::store::merge::MergeSources;

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
fn damage(store: &Store, experiment: &str) {
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
