//! Runs that a signal interrupts: between rounds, within a long round, while instances are built, and a second time.

use super::{COUNTS, SLOW, STEPS, nothing_half_written, wait_for};
use crate::support::process::{Program, Running};
use crate::support::{Bench, Finished, array, edited};
use std::time::{Duration, Instant};

/// `Some` once the program has a handler of INT. Where the system does not show handlers, it is `Some` after two
/// seconds, which are enough.
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

/// A manifest of one cell with one round that takes minutes.
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

/// A scheduler kills a job half a minute after its signal, so that a run does not wait for the end of its round. Cells
/// that are complete are kept, in packs of one cell (3 cells) as in packs of many (1101 cells).
#[test]
fn a_signal_within_a_long_round_is_heeded() {
    for cells in [2, 1100] {
        let steps = array((1..=cells).map(|i| i as f64 / 1e4));
        let brief = format!("\n[[algorithm.fedlin]]\nstep-size = {steps}\nlocal-steps = 1\n");
        let bench = Bench::new();
        bench.write("long.toml", long() + &brief);
        // The long cell comes first, and meanwhile the other thread runs the brief cells.
        let mut run = bench.start(&["run", "long.toml", "--threads", "2", "--yes"]);
        wait_for(&mut run, &bench.path("results/long"), 1);
        std::thread::sleep(Duration::from_millis(500));
        let begin = Instant::now();
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
    // The shell ignores INT, as it does for a program in the background, and the program inherits that.
    let script = "trap '' INT; exec \"$0\" run built.toml --yes --memory 1000G --threads 1";
    let run = Program::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_exactfed")]);
    let mut run = run.folder(&bench.folder).start();
    run.wait_for("a handler of INT", listens);
    assert!(!run.has_ended(), "it builds");
    let begin = Instant::now();
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
