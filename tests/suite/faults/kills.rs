//! Runs that are killed, what they leave behind, and runs that share a results folder at the same time.

use super::{SLOW, many, nothing_half_written, wait_for};
use crate::support::process::Running;
use crate::support::{Bench, Finished, TINY, edited};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A run is killed again and again, at moments that have nothing to do with what it does.
#[test]
fn a_killed_run_goes_on_where_it_stood() {
    for (text, pause) in [(SLOW.to_owned(), 400), (many(500), 2300)] {
        let bench = Bench::new();
        bench.write("m.toml", &text);
        let calm = bench.undisturbed("m.toml");
        let mut stored = Vec::new();
        for round in 0..4_u64 {
            let mut run = bench.start(&["run", "m.toml", "--threads", "2"]);
            std::thread::sleep(Duration::from_millis(pause + 97 * round));
            run.kill();
            if bench.path("results/exactfed.toml").exists() {
                stored.push(bench.digests("results").len());
            }
        }
        assert!(stored.is_sorted(), "{stored:?}: something was lost");
        // A run removes temporary files that are a second old: another run may still write a younger one.
        std::thread::sleep(Duration::from_millis(1100));
        bench.compute(&["m.toml"]);
        nothing_half_written(&bench.path("results/m"));
        assert_eq!(bench.digests("results"), calm, "{stored:?}");
    }
}

/// Runs of a manifest of two cells that take almost no time, so that the runs consist of their first moments.
struct BriefRuns {
    bench: Bench,
    /// The digests of an undisturbed run, by cell.
    digests: BTreeMap<String, String>,
}

impl BriefRuns {
    /// Writes the manifest, and runs it once for the digests.
    fn new() -> Self {
        let bench = Bench::new();
        bench.write("m.toml", edited(TINY, &[("step-size = 0.1", "step-size = [0.1, 0.2]")]));
        bench.compute(&["m.toml", "--out", "calm"]);
        let digests = digests(&indexes(&bench.path("calm/m")));
        assert_eq!(digests.len(), 2);
        Self { bench, digests }
    }

    /// Starts runs at the same time, one into each of these results folders.
    fn start(&self, folders: &[String]) -> Vec<Running> {
        let arguments = ["run", "m.toml", "--quiet", "--threads", "1", "--out"];
        folders.iter().map(|out| self.bench.start(&[&arguments[..], &[out]].concat())).collect()
    }

    /// Waits until the runs have ended, and asserts that each folder then holds all cells and no others.
    #[track_caller]
    fn finish(&self, runs: Vec<Running>, folders: &[String]) {
        for run in runs {
            let output = Finished::from(run.finish()).expect(0);
            assert_eq!(output.err, "");
        }
        for folder in folders {
            let stored = indexes(&self.bench.path(folder).join("m"));
            assert_eq!(digests(&stored), self.digests, "{folder}");
        }
    }
}

/// The index of each complete cell in the folder of an experiment, by the id of the cell. The packs have one cell each,
/// and the index is JSON in the pack, with the digest of the cell and the time that it took.
fn indexes(folder: &Path) -> BTreeMap<String, String> {
    let mut indexes = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().ends_with(".parquet") {
            continue;
        }
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let index = text.lines().find_map(|line| line.find("{\"id\":").map(|start| &line[start..]));
        if let Some(index) = index {
            indexes.insert(index[7..23].to_owned(), index.to_owned());
        }
    }
    indexes
}

/// The digest in the index of each cell, by the id of the cell.
fn digests(indexes: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for (cell, index) in indexes {
        let digest = index.split(',').find(|part| part.starts_with("\"digest\":"));
        digests.insert(cell.clone(), digest.unwrap_or_default().to_owned());
    }
    digests
}

/// At whichever moment after its start a run is killed, the next run goes on, and computes no complete cell again.
#[test]
fn a_run_that_was_killed_in_its_first_moments_goes_on() {
    const KILLS: u32 = 200;
    const AT_ONCE: u32 = 4;
    let runs = BriefRuns::new();
    let names = |name: &str, first: u32| -> Vec<String> {
        (first..first + AT_ONCE).map(|k| format!("{name}-{k}")).collect()
    };
    // The last kill comes when undisturbed runs have ended, which takes longer on a busy machine.
    let folders = names("whole", 0);
    let begin = Instant::now();
    runs.finish(runs.start(&folders), &folders);
    let last = begin.elapsed().max(Duration::from_millis(60));
    for first in (0..KILLS).step_by(AT_ONCE as usize) {
        let folders = names("killed", first);
        let begin = Instant::now();
        for (k, run) in (first..).zip(&mut runs.start(&folders)) {
            std::thread::sleep((last * k / KILLS).saturating_sub(begin.elapsed()));
            run.kill_alone();
        }
        let stored = |folder: &String| indexes(&runs.bench.path(folder).join("m"));
        let before: Vec<_> = folders.iter().map(stored).collect();
        runs.finish(runs.start(&folders), &folders);
        for (folder, before) in folders.iter().zip(before) {
            let after = stored(folder);
            // An index contains the time that its cell took, and would differ if the cell had been computed again.
            assert!(before.iter().all(|(cell, index)| after[cell] == *index), "{folder}");
        }
    }
}

/// Runs that create a results folder at the same time share it, and each of them succeeds.
#[test]
fn runs_that_start_together_share_a_new_folder() {
    let runs = BriefRuns::new();
    for (count, together) in [(100, 2), (30, 3)] {
        // Two folders at a time keep two cores busy.
        for first in (0..count).step_by(2) {
            let folders = [first, first + 1].map(|k| format!("{together}-{k}"));
            let each: Vec<String> =
                folders.iter().flat_map(|f| vec![f.clone(); together]).collect();
            runs.finish(runs.start(&each), &folders);
            for folder in &folders {
                nothing_half_written(&runs.bench.path(folder));
                nothing_half_written(&runs.bench.path(folder).join("m"));
            }
        }
    }
}

/// A folder that holds only the temporary file of a marker, which a killed run left, is used, and the file is removed.
/// A folder that holds files of somebody else is refused, and stays as it is.
#[test]
fn a_folder_with_an_unfinished_marker_is_used_and_one_with_other_files_is_not() {
    let bench = Bench::new();
    bench.write("m.toml", TINY);
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    for (k, text) in ["", "sche", "schema = 4\nvers"].into_iter().enumerate() {
        let left = format!("left-{k}/.writing-abcdef");
        bench.write(&left, text);
        let file = std::fs::File::options().append(true).open(bench.path(&left)).unwrap();
        file.set_modified(long_ago).unwrap();
        bench.compute(&["m.toml", "--out", &format!("left-{k}")]);
        nothing_half_written(&bench.path(&format!("left-{k}")));
        bench.run(&["verify", "--all", "--quiet", &format!("left-{k}")]).expect(0);
    }
    for (k, file) in ["letter.txt", ".hidden", ".writing-abcdef"].into_iter().enumerate() {
        let folder = format!("mine-{k}");
        bench.write(&format!("{folder}/{file}"), "dear");
        bench.write(&format!("{folder}/.writing-ghijkl"), "");
        let before = bench.contents(&folder);
        let refused = bench.run(&["run", "m.toml", "--out", &folder]).expect(2);
        refused.warns(&format!("{folder}: is neither empty nor a results folder"));
        assert_eq!(bench.contents(&folder), before);
    }
}

#[test]
fn two_runs_at_once_share_what_there_is_to_do() {
    let bench = Bench::new();
    bench.write("a.toml", SLOW);
    bench.write("b.toml", SLOW.replace("seed = 5", "seed = 6"));
    bench.compute(&["a.toml", "b.toml", "--out", "calm"]);
    let mut first = bench.start(&["run", "a.toml", "--threads", "1"]);
    wait_for(&mut first, &bench.path("results/a"), 1);
    // The first run stands still until the second has noticed it.
    first.signal("STOP");
    let mut second = bench.start(&["run", "a.toml", "b.toml", "--threads", "1"]);
    second.wait_for("waiting", |run| run.err().contains("waiting").then_some(()));
    first.signal("CONT");
    let [first, second] = [first, second].map(|run| Finished::from(run.finish()).expect(0));
    assert!(first.err.contains("a: 24 cells, "), "{}", first.err);
    let wait = "a: another run is at work on it: waiting until it ends\na: all 24 cells are done\n";
    assert!(second.err.contains("b: 24 cells, "), "{}", second.err);
    assert!(second.err.ends_with(wait), "{}", second.err);
    let digests = |folder| bench.run(&["digest", folder]).expect(0).out;
    assert_eq!(digests("results"), digests("calm"));
}
