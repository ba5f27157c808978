//! `submit` against a Slurm that is made of two scripts: what it is asked, what is written,
//! what stays if it refuses. `scripts/slurm-test.sh` tests a real one.
#![cfg(unix)]

use crate::support::process::Program;
use crate::support::{Bench, Finished};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const GARNET: &str = "experiments/smoke/garnet.toml";

/// Notes its arguments, a line each, and answers with the next number.
const SBATCH: &str = "#!/bin/sh
printf '%s\\n' \"$@\" --- >> \"$NOTES/asked\"
n=$(($(cat \"$NOTES/n\" 2> /dev/null || echo 40) + 1))
echo $n > \"$NOTES/n\"
echo $n
";

/// The first submission of a call in `here`.
const FOLDER: &str = "here/results/.slurm/1";

struct Slurm {
    bench: Bench,
    /// Where `submit` is called, below the bench's folder.
    here: String,
}

impl Slurm {
    fn new(here: &str) -> Self {
        let slurm = Self { bench: Bench::new(), here: here.into() };
        let text = fs::read_to_string(crate::support::smoke("garnet.toml")).unwrap();
        slurm.bench.write(&format!("{here}/{GARNET}"), &text);
        slurm.program("sbatch", SBATCH);
        slurm.program("squeue", "#!/bin/sh\n");
        slurm.program("scancel", "#!/bin/sh\necho \"$@\" >> \"$NOTES/cancelled\"\n");
        slurm
    }

    fn program(&self, name: &str, text: &str) {
        self.executable(&format!("bin/{name}"), text);
    }

    /// A file that can be run, in place of one that may be in use.
    fn executable(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.bench.path(name);
        let _ = fs::remove_file(&path);
        self.bench.write(name, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn call(&self, program: &str, arguments: &[&str], more: &[(&str, &str)]) -> Finished {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.bench.path("bin").display());
        let program = Program::new(program)
            .args(arguments)
            .folder(self.bench.path(&self.here))
            .env("PATH", path)
            .env("NOTES", self.bench.folder.path());
        let program = more.iter().fold(program, |program, (name, value)| program.env(name, value));
        program.run().into()
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        self.call(env!("CARGO_BIN_EXE_exactfed"), arguments, &[])
    }

    /// Submits the manifest with these arguments.
    fn submit(&self, more: &[&str]) -> Finished {
        self.run(&[&["submit", "--slurm", GARNET], more].concat())
    }

    /// What the scripts of a submission leave, as Slurm would run them.
    fn task(&self, folder: &str, task: &str) -> Finished {
        let script = self.bench.path(&format!("{folder}/task.sh"));
        let about = [
            ("SLURM_ARRAY_TASK_ID", task),
            ("SLURM_ARRAY_JOB_ID", "41"),
            ("SLURM_CPUS_PER_TASK", "1"),
        ];
        self.call("sh", &[script.to_str().unwrap()], &about)
    }

    fn merge(&self, folder: &str) -> Finished {
        let script = self.bench.path(&format!("{folder}/merge.sh"));
        self.call("sh", &[script.to_str().unwrap()], &[])
    }

    fn asked(&self) -> Vec<Vec<String>> {
        let text = self.bench.read("asked");
        let commands = text.split("---\n").filter(|c| !c.is_empty());
        commands.map(|c| c.lines().map(str::to_owned).collect()).collect()
    }
}

/// Blanks, quotes of both kinds, a dollar, a percent sign, letters of another alphabet.
const AWKWARD: &str = "it's \"a\" $HOME % папка";

#[test]
fn all_of_it_with_an_awkward_name_and_without_a_cluster() {
    let slurm = Slurm::new(AWKWARD);
    let bench = &slurm.bench;
    let out = "res ' ults";
    slurm.run(&["run", GARNET, "--out", "whole", "--quiet"]).expect(0);
    let whole = slurm.run(&["digest", "whole"]).expect(0).out;
    slurm.run(&["run", GARNET, "--out", out, "--shard", "1/4", "--quiet"]).expect(0);
    let how = ["--out", out, "--tasks", "3", "--threads-per-task", "2"];
    let rest = ["--", "--partition=short", "--comment=a b"];
    let output = slurm.submit(&[&how[..], &rest[..]].concat()).expect(0);
    output
        .prints("27 cells of 1 experiment in 3 tasks")
        .prints("squeue -j 41,42")
        .prints("scancel 41 42");
    let asked = slurm.asked();
    let has = |i: usize, option: &str| asked[i].iter().any(|a| a == option);
    for option in ["--array=1-3", "--cpus-per-task=2", "--requeue", "--partition=short"] {
        assert!(has(0, option), "{option}: {asked:?}");
    }
    for option in ["--dependency=afterany:41", "--comment=a b", "--output=merge.log"] {
        assert!(has(1, option), "{option}: {asked:?}");
    }
    let folder = format!("{AWKWARD}/{out}/.slurm/1");
    assert!(asked[0].last().unwrap().ends_with(&format!("{folder}/task.sh")));

    // The manifest may be edited now, and what is submitted is not submitted twice.
    let manifest = format!("{AWKWARD}/{GARNET}");
    let text = bench.read(&manifest);
    bench.write(&manifest, text.replace("seed = 7", "seed = 8"));
    slurm.submit(&["--out", out, "--dry-run"]).expect(0);
    bench.write(&manifest, &text);
    let output = slurm.submit(&["--out", out]).expect(2);
    output.warns("27 of these cells are submitted already");
    bench.write(&manifest, "title = \"edited\"");

    for task in ["1", "2", "3"] {
        slurm.task(&folder, task).expect(0).prints("ends with exit code 0, 9 cells finished");
    }
    slurm.merge(&folder).expect(0);
    assert_eq!(slurm.run(&["digest", out]).expect(0).out, whole);
    assert!(bench.path(&format!("{AWKWARD}/reports/smoke/garnet/report.md")).is_file());
    assert_eq!(bench.read(&format!("{folder}/ended")), "0\n");
    assert!(!bench.path(&format!("{folder}/tasks")).exists(), "tasks' folders are merged");
    slurm.merge(&folder).expect(0);
    bench.write(&manifest, &text);
    let output = slurm.submit(&["--out", out]).expect(0);
    output.warns("all 36 cells are done; nothing is submitted");
    assert_eq!(slurm.asked().len(), 2, "sbatch was not asked again");
}

#[test]
fn a_dry_run_prints_and_writes_nothing() {
    let slurm = Slurm::new("here");
    let output = slurm.submit(&["--tasks", "5", "--dry-run"]).expect(0);
    for part in ["    5", "sbatch --job-name=exactfed", "task.sh:", "merge.sh:", "#!/bin/sh"] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    assert!(!slurm.bench.path("here/results").exists());
    assert!(!slurm.bench.path("asked").exists());
    // More tasks than cells are none.
    let output = slurm.submit(&["--tasks", "99", "--dry-run"]).expect(0);
    output.prints("--array=1-36").prints("36 tasks in all");
}

#[test]
fn if_slurm_refuses_nothing_stays() {
    let slurm = Slurm::new("here");
    let refuse = "#!/bin/sh\necho 'sbatch: error: invalid partition specified: x' >&2\nexit 1\n";
    slurm.program("sbatch", refuse);
    let output = slurm.submit(&["--", "-p", "x"]).expect(2);
    output.warns("invalid partition specified: x");
    assert!(!slurm.bench.path("here/results").exists());
    // The second is refused: the first is taken back.
    let second = "#!/bin/sh\ncase \"$*\" in *dependency*) echo no >&2; exit 1;; esac\necho 41\n";
    slurm.program("sbatch", second);
    slurm.submit(&[]).expect(2);
    assert_eq!(slurm.bench.read("cancelled"), "41\n");
    assert!(!slurm.bench.path("here/results").exists());
    // Results that are there stay as they are.
    slurm.run(&["run", GARNET, "--shard", "1/9", "--set", "seed=8", "--quiet"]).expect(0);
    let kept = || slurm.bench.read("here/results/smoke/garnet/experiment.toml");
    let before = kept();
    slurm.submit(&[]).expect(2);
    assert_eq!(kept(), before);
    assert!(!slurm.bench.path("here/results/.slurm").exists());
    slurm.program("sbatch", "#!/bin/sh\necho Submitted batch job 41\n");
    slurm.submit(&[]).expect(2).warns("instead of the number of a job");
}

#[test]
fn bad_input_is_reported_before_anything_is_submitted() {
    let slurm = Slurm::new("here");
    slurm.submit(&["--set", "problem.garnet.discount=2"]).expect(2).warns("discount");
    slurm.submit(&["--", "--array=1-4"]).expect(2).warns("--tasks");
    slurm.run(&["submit", GARNET]).expect(2);
    slurm.submit(&["--tasks", "0"]).expect(2);
    assert!(!slurm.bench.path("asked").exists() && !slurm.bench.path("here/results").exists());
}

/// What the tasks' script does when its program ends early: it asks for another turn only
/// while it is running, and not for ever without gain.
#[test]
fn a_task_that_ends_early_is_queued_again() {
    let slurm = Slurm::new("here");
    let bench = &slurm.bench;
    slurm.submit(&["--tasks", "2"]).expect(0);
    slurm.program("scontrol", "#!/bin/sh\necho \"$@\" >> \"$NOTES/requeued\"\n");
    slurm.program("squeue", "#!/bin/sh\necho RUNNING\n");
    let own = bench.read_bytes(&format!("{FOLDER}/exactfed"));
    let program = format!("{FOLDER}/exactfed");
    let replace = |text: &str| slurm.executable(&program, text);
    replace("#!/bin/sh\nkill -9 $$\n");
    for turn in 1..=3 {
        let output = slurm.task(FOLDER, "2").expect(137);
        assert_eq!(output.out.contains("gave up"), turn == 3, "{}", output.out);
    }
    assert_eq!(bench.read("requeued"), "requeue 41_2\nrequeue 41_2\n");
    // A task that was cancelled does not requeue itself.
    slurm.program("squeue", "#!/bin/sh\necho COMPLETING\n");
    slurm.task(FOLDER, "1").expect(137).prints("state in Slurm: COMPLETING");
    // Told to end, it tells its program, waits for it, and asks for another turn.
    slurm.program("squeue", "#!/bin/sh\necho RUNNING\n");
    replace(
        "#!/bin/sh\n[ \"$1\" = run ] || exit 0\ntrap 'sleep 1; exit 130' TERM\nkill -USR1 $PPID\nsleep 20 > /dev/null 2>&1 & wait\n",
    );
    slurm.task(FOLDER, "1").expect(130).prints("ended early with exit code 130");
    assert_eq!(bench.read("requeued").lines().count(), 3);
    // Of a submission that came to nothing the merge says so, and it may be submitted anew.
    slurm.executable(&program, own);
    slurm.merge(FOLDER).expect(4).warns("no task has left results");
    slurm.submit(&[]).expect(0).prints("/.slurm/2/*.log");
}

/// A signal that comes before the task's program runs, while it is started, and while the
/// script does not know its number yet.
#[test]
fn a_signal_at_any_moment_reaches_the_program() {
    let slurm = Slurm::new("here");
    let bench = &slurm.bench;
    slurm.submit(&[]).expect(0);
    slurm.program("squeue", "#!/bin/sh\necho RUNNING\n");
    slurm.program("scontrol", "#!/bin/sh\n");
    // Ends by itself, with 0, if it is not told to.
    let obeys = "#!/bin/sh\n[ \"$1\" = run ] || exit 0\ntrap 'exit 130' TERM\n";
    let waits = "sleep 20 > /dev/null 2>&1 & wait\n";
    let program = &format!("{FOLDER}/exactfed");
    let script = &format!("{FOLDER}/task.sh");
    let good = bench.read(script);
    for (before, inserted, signals) in [
        ("before=$(finished)", "kill -USR1 $$", ""),
        ("run=$!", "kill -USR1 $$", ""),
        ("run=$!", "sleep 1", "kill -USR1 $PPID\n"),
    ] {
        let line = format!("\n{before}\n");
        assert_eq!(good.matches(&line).count(), 1, "{before}");
        bench.write(script, good.replace(&line, &format!("\n{inserted}{line}")));
        slurm.executable(program, format!("{obeys}{signals}{waits}"));
        let output = slurm.task(FOLDER, "1");
        assert!([130, 143].contains(&output.code), "{inserted}, {before}: {}", output.out);
    }
    // The code is the program's, though it ended while the script slept before it told it.
    slurm.executable(program, "#!/bin/sh\n[ \"$1\" = run ] || exit 0\nkill -TERM $PPID\nsleep 1\n");
    bench.write(script, &good);
    slurm.task(FOLDER, "1").expect(0).prints("ends with exit code 0");
}

#[test]
fn missing_cells_are_reported_after_the_merge_and_waiting_ends_as_the_merge_does() {
    let slurm = Slurm::new("here");
    slurm.submit(&["--tasks", "2"]).expect(0);
    slurm.task(FOLDER, "1").expect(0);
    slurm.merge(FOLDER).expect(4).warns("18 of the 36 cells");
    assert!(slurm.bench.path("here/results/.slurm/1/tasks/1/smoke").is_dir(), "they are kept");
    // A Slurm that runs a job at once, in `sbatch` itself.
    let at_once = "#!/bin/sh
for script; do :; done
case \"$*\" in *--array*) list='1 2' job=41 ;; *) list=1 job=42 ;; esac
for task in $list; do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_JOB_ID=$job sh \"$script\" >> \"$NOTES/log\" 2>&1
done
echo $job
";
    slurm.program("sbatch", at_once);
    let output = slurm.submit(&["--tasks", "2", "--wait"]).expect(0);
    output.prints("18 cells of 1 experiment in 2 tasks").warns("does not affect them");
    slurm.run(&["plan", GARNET]).expect(0);
    assert_eq!(slurm.bench.digests("here/results").len(), 36);
}

/// Two experiments, the folder of one below that of the other: the merge finds both, and
/// what a task has left is removed only when every cell of the list is in the results.
#[test]
fn tasks_are_kept_until_every_cell_is_in_the_results() {
    let slurm = Slurm::new("here");
    let bench = &slurm.bench;
    let text = fs::read_to_string(crate::support::smoke("diverging.toml")).unwrap();
    let (outer, inner) = ("experiments/a.toml", "experiments/a/b.toml");
    bench.write(&format!("here/{outer}"), &text);
    bench.write(&format!("here/{inner}"), text.replace("seed = 7", "seed = 8"));
    slurm.run(&["run", outer, inner, "--out", "whole", "--quiet"]).expect(0);
    let whole = slurm.run(&["digest", "whole"]).expect(0).out;
    assert_eq!(whole.lines().count(), 4);
    slurm.run(&["submit", "--slurm", outer, inner, "--tasks", "2"]).expect(0);
    for task in ["1", "2"] {
        slurm.task(FOLDER, task).expect(0);
    }
    // A cell of one task is damaged: the merge has no sound copy of it.
    let tasks = bench.path(&format!("{FOLDER}/tasks"));
    let files = || bench.files_below(&format!("{FOLDER}/tasks"));
    let mut cells = files();
    cells.retain(|file| file.extension().is_some_and(|end| end == "parquet"));
    assert_eq!(cells.len(), 4);
    let inside = |file: &&std::path::PathBuf| file.to_string_lossy().contains("/a/b/");
    let hurt = cells.iter().find(inside).unwrap();
    let bytes = fs::read(hurt).unwrap();
    fs::write(hurt, &bytes[1..]).unwrap();
    let before = files().len();
    slurm.merge(FOLDER).expect(4).warns("1 of the 4 cells").warns("/tasks stays");
    assert_eq!(files().len(), before, "nothing is removed");
    // What is missing may be submitted again meanwhile.
    slurm.run(&["submit", "--slurm", outer, inner, "--dry-run"]).expect(0).prints("--array=1-1");
    // With a sound copy the merge is done again, and finds every cell.
    fs::write(hurt, &bytes).unwrap();
    slurm.merge(FOLDER).expect(0);
    assert!(!tasks.exists(), "every cell is in the results");
    assert_eq!(slurm.run(&["digest", "results"]).expect(0).out, whole);
    assert!(bench.path("here/reports/a/report.md").is_file());
    assert!(bench.path("here/reports/a/b/report.md").is_file());
}

/// Without the list of its cells a submission is neither merged nor removed.
#[test]
fn without_its_list_a_submission_is_kept() {
    let slurm = Slurm::new("here");
    slurm.submit(&["--tasks", "1"]).expect(0);
    slurm.task(FOLDER, "1").expect(0);
    fs::remove_file(slurm.bench.path(&format!("{FOLDER}/todo"))).unwrap();
    slurm.merge(FOLDER).expect(2).warns("todo, the list of cells, is missing");
    assert!(slurm.bench.path(&format!("{FOLDER}/tasks/1/smoke/garnet")).is_dir());
}
