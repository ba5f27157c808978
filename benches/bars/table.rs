//! The promised limits ("bars"), and how each follows from the measurements.

use crate::growth;
use crate::support::{Holds, Limit, Outcome, Value};
use crate::values::Values;

/// How a limit is checked. Ids of criterion are `group/function/parameter`.
enum How {
    /// An id, its unit, and its largest allowed value.
    AtMost(&'static str, &'static str, f64),
    /// Two ids, and the largest allowed ratio of the first to the second.
    Ratio(&'static str, &'static str, f64),
    /// A workload, and the least allowed ratio of the peer's time to ours.
    Peer(&'static str, f64),
    /// The same beside numpy instead of numba.
    Numpy(&'static str, f64),
    /// A workload, and the time of reading what its steps read; at most 2.5 times that.
    Reading(&'static str),
    /// A measurement on two threads, 1.8 times as fast as on one.
    Speedup(&'static str),
    /// Ids of peaks of memory, each under 200 MB.
    Peaks(&'static [&'static str]),
    /// Ids of two peaks of memory, of which the second is at most 1.1 times the first.
    Flat(&'static str, &'static str),
    /// A group of criterion whose times grow linearly.
    Linear(&'static str),
    /// Anything else.
    Own(fn(&Values) -> Result<Outcome, String>),
}

/// Every limit with its result.
pub fn rows(values: &Values) -> Vec<(Limit, Outcome)> {
    let absent = |why| Outcome::new(format!("not measured: {why}"), Holds::NotMeasured);
    BARS.iter().map(|(limit, how)| (*limit, outcome(how, values).unwrap_or_else(absent))).collect()
}

fn outcome(how: &How, values: &Values) -> Result<Outcome, String> {
    match *how {
        How::AtMost(id, unit, most) => {
            let value = values.get(id)?;
            Ok(Outcome::new(value.with_unit(unit), Holds::when(value.value <= most)))
        }
        How::Ratio(a, b, most) => ratio(values, a, b, most),
        How::Peer(workload, least) => peer(values, "numba", workload, least),
        How::Numpy(workload, least) => peer(values, "numpy", workload, least),
        How::Reading(workload) => {
            let (ours, floor) = (format!("ours/{workload}/threads=1"), format!("floor/{workload}"));
            ratio(values, &ours, &floor, 2.5)
        }
        How::Speedup(name) => speedup(values, name),
        How::Peaks(ids) => peaks(values, ids),
        How::Flat(small, large) => flat(values, small, large),
        How::Linear(group) => linear(values, group),
        How::Own(compute) => compute(values),
    }
}

fn ratio(values: &Values, a: &str, b: &str, most: f64) -> Result<Outcome, String> {
    let (a, b) = (values.get(a)?, values.get(b)?);
    let ratio = a.over(b);
    let measured =
        format!("{}: {} over {}", ratio.with_unit(""), a.with_unit("ns"), b.with_unit("ns"));
    Ok(Outcome::new(measured, Holds::when(ratio.value <= most)))
}

/// Compares with the peer's plain implementation of the algorithm, on one thread and on
/// two, both the best of several runs in the same minute. The optimised implementations of
/// the peer are reported too, with the ratio of their time to ours.
fn peer(values: &Values, by: &str, workload: &str, least: f64) -> Result<Outcome, String> {
    let id = |who: &str, n: usize| format!("{who}/{workload}/threads={n}");
    let (mut measured, mut peers, mut holds) = (Vec::new(), Vec::new(), true);
    for threads in [1, 2] {
        let (Ok(ours), Ok(numba)) =
            (values.get(&id("ours", threads)), values.get(&id(&format!("peers/{by}"), threads)))
        else {
            continue;
        };
        let times = numba.value / ours.value;
        holds &= times >= least;
        measured.push(format!(
            "{times:.2} times faster, {} (threads: {threads})",
            ours.with_unit("ns")
        ));
        let mut row = format!("{by} {}", numba.with_unit("ns"));
        for variant in ["strict", "folded", "unrolled"] {
            if let Ok(v) = values.get(&id(&format!("peers/{by}, {variant}"), threads)) {
                row += &format!(", {variant} {} ({:.2})", v.with_unit("ns"), v.value / ours.value);
            }
        }
        peers.push(format!("{row} (threads: {threads})"));
    }
    if measured.is_empty() {
        values.get(&id(&format!("peers/{by}"), 1))?;
    }
    let mut outcome = Outcome::new(measured.join("; "), Holds::when(holds));
    outcome.peer = peers.join("; ");
    Ok(outcome)
}

/// The fastest instruction set of the kernel over its limit.
fn kernel(values: &Values) -> Result<Outcome, String> {
    let id = |name: &str| format!("td d=8 N=100 H=1000/{name}");
    let paths = ["Scalar", "Sse2", "Avx2", "Neon"];
    let timed = paths.iter().filter_map(|name| Some((name, values.get(&id(name)).ok()?)));
    let (name, best) =
        timed.min_by(|a, b| a.1.value.total_cmp(&b.1.value)).ok_or("no result of the kernel")?;
    let limit = values.get(&id("limit"))?;
    let ratio = best.over(limit);
    let measured = format!(
        "{}: {name} {} over {}",
        ratio.with_unit(""),
        best.with_unit("ns"),
        limit.with_unit("ns")
    );
    Ok(Outcome::new(measured, Holds::when(ratio.value <= 1.3)))
}

fn grid_report(values: &Values) -> Result<Outcome, String> {
    let (report, all) = (values.get("grid/report seconds")?, values.get("grid/seconds")?);
    let share = report.value / all.value;
    let measured =
        format!("{:.1} %: {} of {}", 1e2 * share, report.with_unit("s"), all.with_unit("s"));
    Ok(Outcome::new(measured, Holds::when(share < 0.05)))
}

fn grid_step(values: &Values) -> Result<Outcome, String> {
    let (step, steps) = (values.get("grid/step")?, values.get("grid/client steps")?);
    let measured = format!("{}, {} client steps", step.with_unit("ns"), steps.with_unit(""));
    Ok(Outcome::new(measured, Holds::NoBar))
}

/// Short cells; the time is scaled to 10 000 of them.
fn short_cells(values: &Values) -> Result<Outcome, String> {
    let (count, first) = (values.get("cells/count")?, values.get("cells/first run")?);
    let each = values.get("cells/first run, a cell")?.with_unit("µs");
    let measured = format!("{} for {:.0} cells, {each} a cell", first.with_unit("s"), count.value);
    Ok(Outcome::new(measured, Holds::when(first.value / count.value * 10_000.0 < 20.0)))
}

fn done_cells(values: &Values) -> Result<Outcome, String> {
    let (count, second) = (values.get("cells/count")?, values.get("cells/second run")?);
    let measured = format!("{} for {:.0} cells", second.with_unit("s"), count.value);
    Ok(Outcome::new(measured, Holds::NoBar))
}

/// The time of one iteration, whatever its number of elements.
fn overhead(values: &Values) -> Result<Outcome, String> {
    let id = "pipeline/overhead of a short cell";
    let timing = values.timings.get(id).ok_or_else(|| format!("no result {id}"))?;
    let time = timing.iteration.times(1e-3);
    Ok(Outcome::new(time.with_unit("µs"), Holds::when(time.value < 200.0)))
}

/// Two threads. If two simultaneous processes, which share no data, are not nearly twice as
/// fast as one, the machine has no two free cores and the limit is not checked.
fn speedup(values: &Values, name: &str) -> Result<Outcome, String> {
    let value = |suffix: &str| values.get(&format!("threads/{name}{suffix}"));
    let (times, one, two, apart) = (value("")?, value(", 1")?, value(", 2")?, value(" apart")?);
    let measured =
        format!("{}: {} and {}", times.with_unit(""), one.with_unit("s"), two.with_unit("s"));
    let (holds, short) = match times.value >= 1.8 {
        false if apart.value < 1.9 => (Holds::NoBar, ": the machine had no two cores to give"),
        holds => (Holds::when(holds), ""),
    };
    let peer = format!("two processes at once {}{short}", apart.with_unit(""));
    Ok(Outcome { measured, peer, holds })
}

/// The largest of the measured peaks; there is at least one.
fn peaks(values: &Values, ids: &[&str]) -> Result<Outcome, String> {
    let seen = ids.iter().map(|id| values.get(id)).collect::<Result<Vec<Value>, _>>()?;
    let most = seen.iter().map(|v| v.value).fold(0.0, f64::max);
    let each: Vec<String> = seen.iter().map(|v| v.with_unit("MB")).collect();
    Ok(Outcome::new(each.join(", "), Holds::when(most < 200.0)))
}

fn flat(values: &Values, small: &str, large: &str) -> Result<Outcome, String> {
    let (small, large) = (values.get(small)?, values.get(large)?);
    let ratio = large.over(small);
    let measured =
        format!("{}: {} and {}", ratio.with_unit(""), small.with_unit("MB"), large.with_unit("MB"));
    Ok(Outcome::new(measured, Holds::when(ratio.value <= 1.1)))
}

fn linear(values: &Values, group: &str) -> Result<Outcome, String> {
    let (slope, each) = growth::slope(values, group)?;
    let measured = format!("slope {slope:.3}; ns a client step at {each}");
    Ok(Outcome::new(measured, Holds::when((slope - 1.0).abs() <= 0.1)))
}

fn coordinates(values: &Values) -> Result<Outcome, String> {
    Ok(Outcome::new(growth::coordinates(values)?, Holds::NoBar))
}

const ROUND: &str = "cargo bench --bench round";
const KERNEL: &str = "cargo bench --bench local_step";
const PIPELINE: &str = "cargo bench --bench pipeline";
const BARS_OWN: &str = "cargo bench --bench bars";
const THRICE: &str = "at least 3 times faster than numba on as many threads";

type Bar = (Limit, How);

const fn bar(
    point: &'static str,
    what: &'static str,
    bar: &'static str,
    command: &'static str,
    how: How,
) -> Bar {
    (Limit { point, what, bar, command }, how)
}

/// A round of few clients over one of a hundred clients with a thousand local steps.
const fn small(
    what: &'static str,
    bar_: &'static str,
    id: &'static str,
    large: &'static str,
    most: f64,
) -> Bar {
    bar("2", what, bar_, ROUND, How::Ratio(id, large, most))
}

/// Logistic regression over the peer.
const fn logistic(what: &'static str, workload: &'static str) -> Bar {
    bar("3", what, THRICE, BARS_OWN, How::Peer(workload, 3.0))
}

/// Sparse logistic regression over the peer.
const fn sparse(what: &'static str, workload: &'static str) -> Bar {
    bar("3", what, "at most 0.4 times numba", BARS_OWN, How::Peer(workload, 2.5))
}

/// Rows that are longer than the registers, over the peer with `fastmath`.
const fn wide(what: &'static str, workload: &'static str) -> Bar {
    bar("3", what, "at most 0.6 times numba", BARS_OWN, How::Peer(workload, 1.0 / 0.6))
}

/// A problem over the lower limit given by its draws and operations.
const fn floor(what: &'static str, problem: &'static str, floor: &'static str) -> Bar {
    let most = "at most 1.5 times the floor";
    bar("4", what, most, KERNEL, How::Ratio(problem, floor, 1.5))
}

/// The step of a wide problem over the time of reading its rows.
const fn read(what: &'static str, workload: &'static str) -> Bar {
    bar("4", what, "at most 2.5 times reading its rows", BARS_OWN, How::Reading(workload))
}

/// The seconds until an instance exists.
const fn set_up(what: &'static str, bar_: &'static str, id: &'static str, most: f64) -> Bar {
    bar("9", what, bar_, BARS_OWN, How::AtMost(id, "s", most))
}

const FEDLSA: &str = "round/fedlsa/N=100 H=1000";
const SCAFFLSA: &str = "round/scafflsa/N=100 H=1000";
const CLOSE: &str = "at most 1.2 times N = 100, H = 1000";
const SHORTEST: &str = "at most 2.5 times N = 100, H = 1000";
const NINE: &str = "at most 9 ns a client step, one thread";

const TWICE: &str = "1.8 times faster on two cores";
const SMALL: &str = "under 200 MB";
const CONSTANT: &str = "at most 1.1 times";
const SLOPE: &str = "slope 1 within 0.1";

const BARS: &[Bar] = &[
    bar("1", "FedLSA, d = 8, N = 100, H = 1000", NINE, ROUND, How::AtMost(FEDLSA, "ns", 9.0)),
    bar("1", "SCAFFLSA, d = 8, N = 100, H = 1000", NINE, ROUND, How::AtMost(SCAFFLSA, "ns", 9.0)),
    bar("1", "FedLSA beside numba", THRICE, BARS_OWN, How::Peer("fedlsa d=8 N=100 H=1000", 3.0)),
    bar(
        "1",
        "SCAFFLSA beside numba",
        THRICE,
        BARS_OWN,
        How::Peer("scafflsa d=8 N=100 H=1000", 3.0),
    ),
    bar("1", "the kernel beside its limit", "at most 1.3 times", KERNEL, How::Own(kernel)),
    small("FedLSA, N = 10, H = 100", CLOSE, "round/fedlsa/N=10 H=100", FEDLSA, 1.2),
    small("FedLSA, N = 10, H = 10", CLOSE, "round/fedlsa/N=10 H=10", FEDLSA, 1.2),
    small("FedLSA, N = 10, H = 1", SHORTEST, "round/fedlsa/N=10 H=1", FEDLSA, 2.5),
    small("SCAFFLSA, N = 10, H = 100", CLOSE, "round/scafflsa/N=10 H=100", SCAFFLSA, 1.2),
    small("SCAFFLSA, N = 10, H = 10", CLOSE, "round/scafflsa/N=10 H=10", SCAFFLSA, 1.2),
    small("SCAFFLSA, N = 10, H = 1", SHORTEST, "round/scafflsa/N=10 H=1", SCAFFLSA, 2.5),
    logistic("FedAvg, logistic, d = 2", "fedavg logistic d=2"),
    logistic("FedAvg, logistic, d = 10", "fedavg logistic d=10"),
    logistic("FedAvg, logistic, d = 50", "fedavg logistic d=50"),
    logistic("Scaffold, logistic, d = 2", "scaffold logistic d=2"),
    logistic("Scaffold, logistic, d = 10", "scaffold logistic d=10"),
    logistic("Scaffold, logistic, d = 50", "scaffold logistic d=50"),
    wide("FedLSA, S = 300, d = 32", "fedlsa wide S=300 d=32"),
    wide("FedLSA, S = 1000, d = 64", "fedlsa wide S=1000 d=64"),
    wide("FedLSA, S = 1000, d = 128", "fedlsa wide S=1000 d=128"),
    wide("FedLSA, S = 2000, d = 256", "fedlsa wide S=2000 d=256"),
    wide("FedAvg, logistic, d = 50, N = 20", "fedavg wide logistic d=50"),
    wide("FedAvg, logistic, d = 123", "fedavg wide logistic d=123"),
    wide("FedAvg, logistic, d = 300", "fedavg wide logistic d=300"),
    bar(
        "3",
        "FedAvg, logistic, d = 784",
        "at most 0.75 times numba",
        BARS_OWN,
        How::Peer("fedavg wide logistic d=784", 1.0 / 0.75),
    ),
    wide("FedAvg, softmax, K = 10, d = 64", "fedavg softmax d=64 batch=1"),
    wide("the same, batch of 32", "fedavg softmax d=64 batch=32"),
    wide("FedAvg, softmax, K = 10, d = 784", "fedavg softmax d=784 batch=1"),
    wide("the same, batch of 32", "fedavg softmax d=784 batch=32"),
    bar(
        "3",
        "the same beside numpy",
        "at most 0.6 times numpy",
        BARS_OWN,
        How::Numpy("fedavg softmax d=784 batch=32", 1.0 / 0.6),
    ),
    sparse("FedAvg, 14 of d = 123", "fedavg sparse d=123 H=100"),
    sparse("Scaffold, 14 of d = 123", "scaffold sparse d=123 H=100"),
    sparse("FedAvg, 75 of d = 47 236, H = 100", "fedavg sparse d=47236 H=100"),
    sparse("Scaffold, 75 of d = 47 236, H = 100", "scaffold sparse d=47236 H=100"),
    sparse("FedAvg, 75 of d = 47 236, H = 1000", "fedavg sparse d=47236 H=1000"),
    sparse("Scaffold, 75 of d = 47 236, H = 1000", "scaffold sparse d=47236 H=1000"),
    floor("quadratic, d = 8", "quadratic d=8/problem", "quadratic d=8/floor"),
    floor("quadratic, d = 64", "quadratic d=64/problem", "quadratic d=64/floor"),
    floor("quadratic, d = 512", "quadratic d=512/problem", "quadratic d=512/floor"),
    floor("LMS, d = 8", "lms d=8/problem", "lms d=8/floor"),
    floor("LMS, d = 64", "lms d=64/problem", "lms d=64/floor"),
    floor("LMS, d = 512", "lms d=512/problem", "lms d=512/floor"),
    read("FedLSA, S = 300, d = 32", "fedlsa wide S=300 d=32"),
    read("FedLSA, S = 1000, d = 64", "fedlsa wide S=1000 d=64"),
    read("FedLSA, S = 1000, d = 128", "fedlsa wide S=1000 d=128"),
    read("FedLSA, S = 2000, d = 256", "fedlsa wide S=2000 d=256"),
    read("FedAvg, logistic, d = 50, N = 20", "fedavg wide logistic d=50"),
    read("FedAvg, logistic, d = 123", "fedavg wide logistic d=123"),
    read("FedAvg, logistic, d = 300", "fedavg wide logistic d=300"),
    read("FedAvg, logistic, d = 784", "fedavg wide logistic d=784"),
    bar(
        "5",
        "scafflsa/grid with its report",
        "at most 180 s",
        BARS_OWN,
        How::AtMost("grid/seconds", "s", 180.0),
    ),
    bar("5", "its report alone", "under 5 % of the whole", BARS_OWN, How::Own(grid_report)),
    bar("5", "a client step of it, times threads", "-", BARS_OWN, How::Own(grid_step)),
    bar("5", "many short cells", "under 20 s for 10 000", BARS_OWN, How::Own(short_cells)),
    bar("5", "the same, all done", "-", BARS_OWN, How::Own(done_cells)),
    bar("5", "overhead of a short cell", "under 200 µs", PIPELINE, How::Own(overhead)),
    bar("6", "one replicate at two threads", TWICE, BARS_OWN, How::Speedup("one replicate")),
    bar("6", "a thousand small cells at two threads", TWICE, BARS_OWN, How::Speedup("cells")),
    bar(
        "7",
        "peak memory of scafflsa/grid and its report",
        SMALL,
        BARS_OWN,
        How::Peaks(&["grid/run memory", "grid/report memory"]),
    ),
    bar(
        "7",
        "peak memory of many short cells",
        SMALL,
        BARS_OWN,
        How::Peaks(&["cells/first run memory", "cells/second run memory"]),
    ),
    bar(
        "7",
        "peak memory, T = 1000 and 100 000",
        CONSTANT,
        BARS_OWN,
        How::Flat("memory/T=1000 H=1", "memory/T=100000 H=1"),
    ),
    bar(
        "7",
        "peak memory, H = 1 and 1000",
        CONSTANT,
        BARS_OWN,
        How::Flat("memory/T=1000 H=1", "memory/T=1000 H=1000"),
    ),
    bar("8", "time over clients", SLOPE, ROUND, How::Linear("growth N")),
    bar("8", "time over local steps", SLOPE, ROUND, How::Linear("growth TH")),
    bar("8", "time of a step and coordinate over d", "-", ROUND, How::Own(coordinates)),
    set_up("set-up, logistic, 5000 × 784, N = 20", "at most 2 s", "set-up/logistic d=784", 2.0),
    set_up(
        "set-up, TD(0), S = 1000, d = 128, N = 20",
        "at most 2 s",
        "set-up/td S=1000 d=128",
        2.0,
    ),
    set_up("set-up, softmax, 7840 unknowns", "at most 10 s", "set-up/softmax d=7840", 10.0),
    set_up("set-up, sparse, 20 000 × 47 236", "at most 2 s", "set-up/sparse d=47236", 2.0),
];
