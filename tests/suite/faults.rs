//! What goes wrong while cells are run and kept: signals, killed processes, two runs at
//! once, damaged files, a full disk. Nothing is lost, and the digests are those of an
//! uninterrupted run.
#![cfg(unix)]

use crate::support::process::{Program, Running};
use crate::support::{Bench, Finished, LOGISTIC, TINY, array, edited};
use exactfed::store::Provenance;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Some seconds of work, in cells that take about a tenth of one.
const SLOW: &str = r#"title = "Cells that take their time"
seed = 5
replicates = 2
start.offset = 1.0
budget.rounds = 5000
record.points = 4

[problem.quadratic]
dimension = 4
clients = 8
spectrum = { from = 0.5, to = 1.0 }
noise = 0.1

[[algorithm.fedavg]]
step-size = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
local-steps = [10, 20, 30, 40]
"#;

const STEPS: &str = "[0.01, 0.02, 0.03, 0.04, 0.05, 0.06]";
const COUNTS: &str = "[10, 20, 30, 40]";

/// More cells than have a folder each.
fn many(rounds: u64) -> String {
    let steps = array((1..=120).map(|i| f64::from(i) / 1000.0));
    let rounds = format!("rounds = {rounds}");
    edited(SLOW, &[("rounds = 5000", &rounds), (STEPS, &steps), (COUNTS, &array(1..=9))])
}

impl Bench {
    fn start(&self, arguments: &[&str]) -> Running {
        crate::support::exactfed().args(arguments).folder(&self.folder).start()
    }

    /// The digests of a run that nothing disturbs.
    fn undisturbed(&self, manifest: &str) -> Vec<String> {
        self.compute(&[manifest, "--out", "calm"]);
        self.digests("calm")
    }
}

/// How many cells, or packs, are there.
fn stored(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|n| !n.starts_with('.') && n != "experiment.toml").count()
}

/// Waits until a run has stored at least so many cells, or packs.
#[track_caller]
fn wait_for(run: &mut Running, folder: &Path, count: usize) {
    run.wait_for("cells", |_| (stored(folder) >= count).then_some(()));
}

/// Nothing that was not whole is left once a run has ended.
#[track_caller]
fn nothing_half_written(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(name == ".lock" || !name.starts_with('.'), "{name} is left");
    }
}

/// Whether a program heeds INT by now; where that cannot be seen, two seconds are enough.
fn listens(run: &Running) -> Option<()> {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", run.id())) else {
        std::thread::sleep(Duration::from_secs(2));
        return Some(());
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
    (caught & 2 != 0).then_some(())
}

#[test]
fn an_interrupted_run_says_what_is_stored_and_goes_on() {
    for name in ["INT", "TERM"] {
        let bench = Bench::new();
        bench.write("slow.toml", SLOW);
        let calm = bench.undisturbed("slow.toml");
        let mut run = bench.start(&["run", "slow.toml", "--threads", "1"]);
        wait_for(&mut run, &bench.path("results/slow"), 2);
        run.signal(name);
        let output = Finished::from(run.finish()).expect(130);
        let line = output.err.lines().find(|l| l.contains("interrupted: ")).unwrap_or_default();
        assert!(line.contains(" of 24 cells are stored"), "{}", output.err);
        nothing_half_written(&bench.path("results/slow"));
        let stored = bench.digests("results").len();
        assert!((2..24).contains(&stored), "{stored} cells");
        assert!(line.contains(&format!("interrupted: {stored} of 24")), "{line}, of {stored}");
        bench.run(&["run", "slow.toml"]).expect(0).warns(&format!("slow: {} cells, ", 24 - stored));
        assert_eq!(bench.digests("results"), calm);
    }
}

/// One round that takes minutes.
fn long() -> String {
    edited(
        SLOW,
        &[
            ("rounds = 5000", "rounds = 1"),
            (COUNTS, "[900000000]"),
            (STEPS, "[0.01]"),
            ("replicates = 2", "replicates = 1"),
            ("clients = 8", "clients = 5"),
        ],
    )
}

/// A scheduler gives half a minute: a run does not wait for the end of its round. What is
/// complete is kept, in folders and in packs.
#[test]
fn a_signal_within_a_long_round_is_heeded() {
    let fedlin = |steps| format!("\n[[algorithm.fedlin]]\nstep-size = {steps}\nlocal-steps = 1\n");
    let few = fedlin("[0.01, 0.02]".to_owned());
    let many = fedlin(array((1..=1100).map(|i| f64::from(i) / 1e4)));
    for (others, cells) in [(few, 2), (many, 1100)] {
        let bench = Bench::new();
        bench.write("long.toml", format!("{}{others}", long()));
        // The long cell comes first, and the other thread does the others meanwhile.
        let mut run = bench.start(&["run", "long.toml", "--threads", "2", "--yes"]);
        wait_for(&mut run, &bench.path("results/long"), 1);
        std::thread::sleep(Duration::from_millis(500));
        let begin = std::time::Instant::now();
        run.signal("TERM");
        let output = Finished::from(run.finish()).expect(130);
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
        nothing_half_written(&bench.path("results/long"));
        let stored = bench.digests("results").len();
        assert!((1..=cells).contains(&stored), "{stored} cells");
        let text = format!("long: interrupted: {stored} of {} cells are stored", cells + 1);
        assert!(output.err.contains(&text), "{} of {stored}", output.err);
        bench.run(&["verify", "--sample", "3", "--quiet"]).expect(0);
    }
}

/// While instances are built nothing can be lost, and a signal ends the process at once.
#[test]
fn a_signal_while_instances_are_built_is_heeded() {
    let bench = Bench::new();
    let quadratic = SLOW.split("\n\n").find(|table| table.starts_with("[problem")).unwrap();
    let logistic = "[problem.logistic]\ndimension = 60\nrecords = 2000\nclients = 100\nl2 = 0.001\n\
                    data = { heterogeneous = { spread = 1.0, perturbation = 1.0 } }";
    let own = "replicates = 2000\ninstance = \"per-replicate\"";
    let text = edited(SLOW, &[("replicates = 2", own), (quadratic, logistic)]);
    bench.write("built.toml", text);
    // Not heard by default, as where a shell started it in the background.
    let script = "trap '' INT; exec \"$0\" run built.toml --yes --memory 1000G --threads 1";
    let run = Program::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_exactfed")]);
    let mut run = run.folder(&bench.folder).start();
    run.wait_for("a handler of INT", listens);
    assert!(!run.has_ended(), "it builds");
    let begin = std::time::Instant::now();
    run.signal("INT");
    Finished::from(run.finish()).expect(130);
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    assert!(!bench.path("results").exists());
}

#[test]
fn a_second_signal_leaves_at_once() {
    let bench = Bench::new();
    bench.write("long.toml", long());
    let mut run = bench.start(&["run", "long.toml", "--threads", "1"]);
    wait_for(&mut run, &bench.folder.path().join("results"), 2);
    std::thread::sleep(Duration::from_millis(500));
    run.signal("INT");
    std::thread::sleep(Duration::from_millis(200));
    assert!(!run.has_ended(), "the round goes on");
    run.signal("INT");
    Finished::from(run.finish()).expect(130);
}

/// Killed again and again, at moments that have nothing to do with what it does.
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
        // An unfinished file is a leftover once it is a second old: before, somebody may write it.
        std::thread::sleep(Duration::from_millis(1100));
        bench.compute(&["m.toml"]);
        nothing_half_written(&bench.path("results/m"));
        assert_eq!(bench.digests("results"), calm, "{stored:?}");
    }
}

/// Runs of a manifest that is done in no time, so that they consist of their first moments.
struct BriefRuns {
    bench: Bench,
    /// The digests of an undisturbed run, by cell.
    digests: BTreeMap<String, String>,
}

impl BriefRuns {
    fn new() -> Self {
        let bench = Bench::new();
        bench.write("m.toml", edited(TINY, &[("step-size = 0.1", "step-size = [0.1, 0.2]")]));
        bench.compute(&["m.toml", "--out", "calm"]);
        let digests = digests(&indexes(&bench.path("calm/m")));
        assert_eq!(digests.len(), 2);
        Self { bench, digests }
    }

    /// Starts runs at once, each into a folder of this name.
    fn start(&self, folders: &[String]) -> Vec<Running> {
        let run = |out: &String| {
            self.bench.start(&["run", "m.toml", "--quiet", "--threads", "1", "--out", out])
        };
        folders.iter().map(run).collect()
    }

    /// Waits for the ends of runs, after which their folders hold all cells and nothing else.
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

/// The index of each complete cell below an experiment's folder, by the cell's name.
fn indexes(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let index = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).ok().filter(|_| name.ends_with(".parquet"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let line = text.lines().find_map(|line| line.find("{\"id\":").map(|at| &line[at..]))?;
        Some((line[7..23].to_owned(), line.to_owned()))
    };
    entries.filter_map(index).collect()
}

fn digests(indexes: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let digest = |index: &String| {
        index.split(',').find(|part| part.starts_with("\"digest\":")).unwrap_or_default().to_owned()
    };
    indexes.iter().map(|(cell, index)| (cell.clone(), digest(index))).collect()
}

/// At whichever moment after its start a run is killed, the next one goes on, and computes no
/// cell again that was complete.
#[test]
fn a_run_that_was_killed_in_its_first_moments_goes_on() {
    const KILLS: u32 = 200;
    const AT_ONCE: u32 = 4;
    let runs = BriefRuns::new();
    let names = |name: &str, first: u32| -> Vec<String> {
        (first..first + AT_ONCE).map(|k| format!("{name}-{k}")).collect()
    };
    // On a busy machine the first moments last longer.
    let (folders, begin) = (names("whole", 0), Instant::now());
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
            // An index contains the time that its cell took.
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

/// What a killed run left of the marker of its folder is no reason to refuse the folder, and is
/// removed; somebody's files are, and stay.
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
    // It stands still until the other one has noticed it.
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

/// Every way in which one file of a cell or of a pack may differ costs a message and
/// that cell, or that pack, alone.
#[test]
fn what_is_damaged_is_set_aside_and_run_again() {
    let few = edited(SLOW, &[("rounds = 5000", "rounds = 20")]);
    for (text, cells) in [(few, 24), (many(20), 1080)] {
        let bench = Bench::ran(&text);
        let calm = bench.digests("results");
        assert_eq!(calm.len(), cells);
        for harm in ["flip", "cut", "empty", "gone"] {
            let kept = bench.cells("results/m");
            let path = &kept[0];
            let bytes = bench.read_bytes(path);
            match harm {
                "flip" => bench.damage(path),
                "cut" => bench.write(path, &bytes[..bytes.len() - 1]),
                "empty" => bench.write(path, ""),
                _ => std::fs::remove_file(bench.path(path)).unwrap(),
            }
            // The name of a pack that is gone is not known any more, those of its cells are.
            let none = harm == "gone";
            let report = bench.run(&["report", "--quiet"]).expect(2);
            if none {
                report.warns("a run stored all cells, and ").warns("gone, so that a file was");
                let stored = bench.digests("results");
                let gone = calm.iter().filter(|line| !stored.contains(line)).count();
                report.warns(&format!("and {gone} of them "));
                let verified = bench.run(&["verify", "--sample", "1"]).expect(4);
                verified.prints("a run stored all cells, and ");
                if gone == 1 {
                    let cell = calm.iter().find(|line| !stored.contains(line)).unwrap();
                    report
                        .warns(&format!("is gone, so that a file was removed: {} (", &cell[..16]));
                }
            } else {
                report.warns(path);
            }
            let output = bench.run(&["run", "m.toml"]).expect(0);
            let reported =
                ["moved to", "and run again"].iter().all(|text| output.err.contains(text));
            assert!(none || reported, "{harm}: {}", output.err);
            assert_eq!(bench.digests("results"), calm, "{harm}");
            let now = bench.cells("results/m");
            let stayed = kept[1..].iter().filter(|file| now.contains(file)).count();
            assert_eq!(stayed, kept.len() - 1, "{harm}: others were touched");
        }
    }
}

/// Whether a cell was removed is known once a run has ended with all of them. A run that is not
/// ended, or is only of a part, lacks cells that nobody removed; so does one that begins anew.
#[test]
fn cells_that_were_never_run_are_not_removed_ones() {
    let bench = Bench::new();
    bench.write("m.toml", edited(SLOW, &[("rounds = 5000", "rounds = 20")]));
    bench.compute(&["m.toml", "--shard", "1/2"]);
    bench.report();
    assert!(bench.read("reports/m/report.md").contains(" of 24 cells have no results yet"));
    bench.compute(&["m.toml"]);
    bench.report();
    std::fs::remove_file(bench.path(&bench.cells("results/m")[0])).unwrap();
    bench.run(&["report", "--quiet"]).expect(2);
    bench.compute(&["m.toml"]);
    bench.report();
    // Other numbers of replicates are other cells.
    bench.compute(&["m.toml", "--shard", "1/2", "--replicates", "3"]);
    bench.report();
    bench.compute(&["m.toml"]);
    bench.report();
}

/// A file that can grow no further stands for a full disk: no rights are needed for it.
#[test]
fn a_full_disk_costs_a_message_and_keeps_what_is_stored() {
    let bench = Bench::new();
    let text = SLOW.replace("rounds = 5000", "rounds = 400");
    let fits = text.replace("record.points = 4", "record.points = 1");
    let grows = text.replace("record.points = 4", "record = { every = 1, iterates = true }");
    bench.write("fits.toml", &fits);
    bench.write("grows.toml", &grows);
    let binary = env!("CARGO_BIN_EXE_exactfed");
    let script = format!("trap '' XFSZ; ulimit -f 32; exec '{binary}' run fits.toml grows.toml");
    let run = Program::new("sh").args(["-c", &script]).folder(&bench.folder);
    Finished::from(run.run())
        .expect(4)
        .warns("File too large")
        .warns("grows: 0 of 24 cells are stored");
    nothing_half_written(&bench.path("results/grows"));
    assert_eq!(bench.digests("results").len(), 24);
    bench.compute(&["fits.toml", "grows.toml"]);
    assert_eq!(bench.digests("results").len(), 48);
}

/// No time of a file, and no time of day, has a say in what is done.
#[test]
fn a_clock_that_jumps_changes_nothing() {
    let bench = Bench::of_smoke(&["logistic"]);
    bench.report();
    let page = bench.read("reports/smoke/logistic/report.md");
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(86400);
    let far_ahead = std::time::SystemTime::now() + Duration::from_secs(3_000_000_000);
    for time in [long_ago, far_ahead] {
        for file in bench.files_below("results") {
            let file = std::fs::File::options().append(true).open(file).unwrap();
            file.set_modified(time).unwrap();
        }
        bench.run(&["run", LOGISTIC]).expect(0).warns("all 28 cells are done");
        bench.report();
        assert_eq!(bench.read("reports/smoke/logistic/report.md"), page);
    }
}

#[test]
fn verify_runs_cells_again_and_finds_other_numbers() {
    let bench = Bench::of_smoke(&["logistic"]);
    let output = bench.run(&["verify", "--sample", "5", "--quiet"]).expect(0);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("", ""));
    bench.run(&["verify", "--all"]).expect(0).prints("28 of 28 cells run again: 28 bit-identical");
    // Results that are whole and wrong: the last bit of one number.
    let id = forge(&bench);
    let output = bench.run(&["verify", "--all", "--quiet"]).expect(1);
    let wanted = format!("smoke/logistic: cell {id} ");
    assert!(output.out.contains(&wanted), "{}", output.out);
    assert!(output.out.contains("replicate 1, round "), "{}", output.out);
    assert!(output.out.contains("written by exactfed forger, commit none"), "{}", output.out);
    assert!(output.out.contains("27 bit-identical, 1 different"), "{}", output.out);
}

/// Stores a cell again with one bit of one number turned, as a run would.
fn forge(bench: &Bench) -> String {
    let id = std::cell::OnceCell::new();
    bench.forge("results", |cell, stored| {
        let number = &mut stored.traces[1].sq_error[1];
        *number = f64::from_bits(number.to_bits() ^ 1);
        stored.record.provenance =
            Arc::new(Provenance { version: "forger".into(), commit: "none".into(), dirty: false });
        id.set(cell.id).is_ok()
    });
    id.into_inner().unwrap().to_string()
}
