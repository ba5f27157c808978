//! Measurements of whole processes.

use crate::beside;
use crate::manifest::Manifest;
use crate::problems;
use crate::process::{Ran, run};
use crate::values::Values;
use exactfed::problem::Facts as _;
use exactfed::problem::td::Noise;
use exactfed::stats::quantile;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

/// The parameters of a measurement.
pub struct Context {
    pub quick: bool,
    pub cores: usize,
    /// An empty folder.
    pub scratch: PathBuf,
}

type Measure = fn(&Context, &mut Values) -> Result<(), String>;

/// Every measurement, by the name with which its ids begin.
pub const ALL: [(&str, Measure); 6] = [
    ("set-up", set_up),
    ("peers", peers),
    ("threads", threads),
    ("memory", memory),
    ("cells", cells),
    ("grid", grid),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn exactfed(arguments: &[&str], accepted: &[i32]) -> Result<Ran, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exactfed"));
    run(command.current_dir(root()).args(arguments), accepted)
}

/// A run of a manifest into a folder of its own.
fn fresh(context: &Context, file: &str, threads: usize) -> Result<Ran, String> {
    let folder = tempfile::tempdir_in(&context.scratch).map_err(|e| e.to_string())?;
    let out = folder.path().display().to_string();
    exactfed(&["run", file, "--out", &out, "--quiet", "--threads", &threads.to_string()], &[0])
}

fn written(context: &Context, name: &str, manifest: &Manifest) -> Result<String, String> {
    let path = context.scratch.join(name.replace(' ', "-")).with_extension("toml");
    fs::write(&path, manifest.text()).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path.display().to_string())
}

/// Seconds until instances exist, with the generation of their data and the search for θ*.
fn set_up(_: &Context, values: &mut Values) -> Result<(), String> {
    let mut timed = |name: &str, build: &dyn Fn() -> usize| {
        let begin = Instant::now();
        let d = build();
        values.put(format!("set-up/{name} d={d}"), begin.elapsed().as_secs_f64(), "s");
    };
    timed("logistic", &|| problems::logistic(784, 250, 20).dim());
    timed("td S=1000", &|| {
        problems::garnet([1000, 128, 20], problems::perturbed(), Noise::Independent, 1).dim()
    });
    timed("softmax", &|| problems::softmax(784, 20, 1).dim());
    timed("sparse", &|| problems::sparse_logistic(47_236, 75, 1000).dim());
    Ok(())
}

/// The Python programs below benches/peers.
const PEERS: [&str; 6] = [
    "garnet_numba.py",
    "logistic_numba.py",
    "sparse_numba.py",
    "td_wide_numba.py",
    "logistic_wide_numba.py",
    "softmax_numba.py",
];

/// The Python programs, on one thread and on all, and the same workloads of the engine
/// before and after them.
fn peers(context: &Context, values: &mut Values) -> Result<(), String> {
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    run(Command::new(&python).args(["-c", "import numba, numpy"]), &[0])
        .map_err(|_| format!("{python} has no numba, see benches/peers/README.md"))?;
    for threads in if context.cores > 1 { vec![1, context.cores] } else { vec![1] } {
        if threads == 1 {
            beside::floors(values);
        }
        beside::measure(values, threads);
        for file in PEERS {
            let mut command = Command::new(&python);
            command.arg(root().join("benches/peers").join(file));
            command.env("NUMBA_NUM_THREADS", threads.to_string());
            for line in run(&mut command, &[0])?.out.lines() {
                peer(line, values).ok_or_else(|| format!("{file} printed {line:?}"))?;
            }
        }
        beside::measure(values, threads);
    }
    Ok(())
}

fn peer(line: &str, values: &mut Values) -> Option<()> {
    let row: serde_json::Value = serde_json::from_str(line).ok()?;
    let (peer, workload) = (row["peer"].as_str()?, row["workload"].as_str()?);
    let id = format!("peers/{peer}/{workload}/threads={}", row["threads"].as_u64()?);
    values.put(id, row["ns_per_step"].as_f64()?, "ns/element");
    Some(())
}

/// The published grid and its report, without earlier results.
fn grid(context: &Context, values: &mut Values) -> Result<(), String> {
    if context.quick {
        return Err("left out by --quick".into());
    }
    let path = |name: &str| context.scratch.join(name).display().to_string();
    let (manifest, results, reports) =
        ("experiments/scafflsa/grid.toml", path("grid"), path("grid-reports"));
    let plan = exactfed(&["plan", manifest, "--out", &results], &[0])?;
    let words: Vec<&str> = plan.out.lines().last().unwrap_or("").split_whitespace().collect();
    let named = words.windows(3).find(|w| w[1..] == ["client", "steps,"]);
    let steps: f64 = named
        .and_then(|w| w[0].parse().ok())
        .ok_or("exactfed plan does not say how many client steps")?;
    let ran = exactfed(&["run", manifest, "--out", &results, "--quiet"], &[0])?;
    // A refuted claim is exit code 1.
    let report = exactfed(&["report", &results, "--out", &reports], &[0, 1])?;
    values.put("grid/client steps", steps, "steps");
    values.put("grid/step", ran.seconds * 1e9 * context.cores as f64 / steps, "ns/element");
    values.put("grid/seconds", ran.seconds + report.seconds, "s");
    for (name, ran) in [("run", ran), ("report", report)] {
        values.put(format!("grid/{name} seconds"), ran.seconds, "s");
        peak(values, &format!("grid/{name} memory"), &ran);
    }
    Ok(())
}

fn peak(values: &mut Values, id: &str, ran: &Ran) {
    if let Some(peak) = ran.peak {
        values.put(id, peak, "MB");
    }
}

/// Many cells with little computation, and a second run for which they are complete.
fn cells(context: &Context, values: &mut Values) -> Result<(), String> {
    let manifest = Manifest::many(if context.quick { 1000 } else { 10_000 }, 10);
    let file = written(context, "cells", &manifest)?;
    let out = context.scratch.join("cells").display().to_string();
    values.put("cells/count", manifest.cells() as f64, "cells");
    for name in ["first", "second"] {
        let ran = exactfed(&["run", &file, "--out", &out, "--quiet"], &[0])?;
        values.put(format!("cells/{name} run"), ran.seconds, "s");
        let each = ran.seconds * context.cores as f64 / manifest.cells() as f64;
        values.put(format!("cells/{name} run, a cell"), each * 1e6, "µs");
        peak(values, &format!("cells/{name} run memory"), &ran);
    }
    Ok(())
}

/// One long replicate and many small cells, on one thread, on two, and as two processes
/// with one thread each: the last shows the speed-up of the machine without shared data.
fn threads(context: &Context, values: &mut Values) -> Result<(), String> {
    for (name, manifest) in
        [("one replicate", Manifest::one(100, 1000, 4000)), ("cells", Manifest::many(1000, 5000))]
    {
        let file = written(context, name, &manifest)?;
        let [one, two, apart] = alternately(|turn| match turn {
            0 | 1 => Ok(fresh(context, &file, turn + 1)?.seconds),
            _ => two_processes(context, &file),
        })?;
        values.put(format!("threads/{name}, 1"), one, "s");
        values.put(format!("threads/{name}, 2"), two, "s");
        values.put(format!("threads/{name}"), one / two, "times");
        values.put(format!("threads/{name} apart"), 2.0 * one / apart, "times");
        values.put(format!("threads/{name} steps"), manifest.client_steps(), "steps");
    }
    Ok(())
}

/// Seconds until two simultaneous runs with one thread each have ended.
fn two_processes(context: &Context, file: &str) -> Result<f64, String> {
    let begin = Instant::now();
    thread::scope(|scope| {
        let other = scope.spawn(|| fresh(context, file, 1));
        fresh(context, file, 1)?;
        other.join().map_err(|_| "a measurement panicked")?
    })?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Medians of five measurements of each of K kinds, alternating between the kinds.
fn alternately<const K: usize>(
    mut seconds: impl FnMut(usize) -> Result<f64, String>,
) -> Result<[f64; K], String> {
    let mut samples = [const { Vec::new() }; K];
    for _ in 0..5 {
        for (kind, sample) in samples.iter_mut().enumerate() {
            sample.push(seconds(kind)?);
        }
    }
    Ok(samples.map(|sample| quantile(&sample, 0.5)))
}

/// Peak memory for growing numbers of rounds and local steps.
fn memory(context: &Context, values: &mut Values) -> Result<(), String> {
    for (rounds, steps) in [(1000, 1), (100_000, 1), (1000, 1000)] {
        let file = written(context, "memory", &Manifest::one(100, steps, rounds))?;
        let ran = fresh(context, &file, context.cores)?;
        let peak = ran.peak.ok_or("there is no /proc")?;
        values.put(format!("memory/T={rounds} H={steps}"), peak, "MB");
    }
    Ok(())
}
