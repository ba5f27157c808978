//! A program that does not end fails its test, with what it printed, and nothing that it
//! started goes on.
#![cfg(unix)]

use crate::support::process::{Program, wait_until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_secs(2);

/// The message of a test that fails.
fn failure(test: impl FnOnce()) -> String {
    let begin = Instant::now();
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("it fails");
    assert!(begin.elapsed() < 30 * SHORT, "{:?}", begin.elapsed());
    *panic.downcast::<String>().expect("a message")
}

/// A shell whose child goes on writing to a file, for a minute at most.
fn beating(folder: &tempfile::TempDir, more: &str) -> Program {
    let beat = "for i in 1 2 3 4 5 6; do for j in 1 2 3 4 5 6 7 8 9 10; do for k in 1 2 3 4 5 6 7 8 9 10; do echo >> beat; sleep 0.1; done; done; done";
    let script = format!("echo begun; echo warned >&2; ({beat}) & {more}");
    Program::new("sh").args(["-c", &script]).folder(folder).deadline(SHORT)
}

/// Nothing writes to the file any more.
fn is_silent(folder: &tempfile::TempDir) {
    let length = || std::fs::metadata(folder.path().join("beat")).map(|m| m.len()).unwrap_or(0);
    let before = length();
    assert!(before > 0);
    let grown = wait_until(Instant::now() + SHORT, || (length() > before).then_some(()));
    assert!(grown.is_none(), "what the program started goes on");
}

#[test]
fn a_program_that_does_not_end_is_killed_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let message = failure(|| drop(beating(&folder, "wait").run()));
    for part in ["sh: did not end", "stdout:\nbegun\n", "stderr:\nwarned\n"] {
        assert!(message.contains(part), "{message}");
    }
    is_silent(&folder);
}

#[test]
fn what_outlives_its_program_is_killed_too() {
    let folder = tempfile::tempdir().unwrap();
    let message = failure(|| drop(beating(&folder, "").run()));
    assert!(message.contains("or what it started did not"), "{message}");
    is_silent(&folder);
}

#[test]
fn a_program_that_is_not_waited_for_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = beating(&folder, "wait").start();
    running.wait_for("a beat", |_| folder.path().join("beat").exists().then_some(()));
    drop(running);
    is_silent(&folder);
}

#[test]
fn waiting_for_something_ends_with_the_program_or_in_time() {
    let never = |script: &str| {
        let mut running = Program::new("sh").args(["-c", script]).deadline(SHORT).start();
        failure(|| running.wait_for("miracle", |_| None))
    };
    assert!(never("echo done").contains("ended before there was miracle"));
    assert!(never("sleep 60").contains("there was no miracle in time"));
}

#[test]
fn output_is_read_while_it_is_written() {
    let bytes = 300_000;
    let script = format!("head -c {bytes} /dev/zero; head -c {bytes} /dev/zero >&2; exit 3");
    let output = Program::new("sh").args(["-c", &script]).run();
    assert_eq!((output.stdout.len(), output.stderr.len()), (bytes, bytes));
    assert_eq!(output.status.code(), Some(3));
}
