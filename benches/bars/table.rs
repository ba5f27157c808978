//! The promised limits ("bars") of bars.toml, and how each follows from the measurements.

use crate::growth;
use crate::support::{Holds, Limit, Outcome, Value};
use crate::values::Values;
use serde::Deserialize;

/// A limit with how it is checked.
#[derive(Deserialize)]
struct Bar {
    #[serde(flatten)]
    limit: Limit,
    #[serde(flatten)]
    how: How,
}

/// How a limit is checked. Ids of criterion are `group/function/parameter`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// An id, its unit, and its largest allowed value.
    AtMost(String, String, f64),
    /// Two ids, their unit, and the largest allowed ratio of the first to the second.
    Ratio(String, String, String, f64),
    /// A peer, a workload, and the least allowed ratio of the peer's time to ours.
    Peer(String, String, f64),
    /// A measurement on two threads, 1.8 times as fast as on one.
    Speedup(String),
    /// Ids of peaks of memory, each under 200 MB.
    Peaks(Vec<String>),
    /// A group of criterion whose times grow linearly.
    Linear(String),
    /// Anything else: one of [`OWN`].
    Own(String),
}

/// How a limit that nothing else is like follows from the measurements.
type Compute = fn(&Values) -> Result<Outcome, String>;

/// What is measured by functions of its own, by name.
const OWN: [(&str, Compute); 6] = [
    ("kernel", kernel),
    ("grid-step", grid_step),
    ("short-cells", short_cells),
    ("done-cells", done_cells),
    ("overhead", overhead),
    ("coordinates", coordinates),
];

/// Every limit with its result.
pub fn rows(values: &Values) -> Vec<(Limit, Outcome)> {
    #[derive(Deserialize)]
    struct BarsFile {
        bars: Vec<Bar>,
    }
    let file: BarsFile = toml::from_str(include_str!("bars.toml")).expect("bars.toml");
    let absent = |why| Outcome::new(format!("not measured: {why}"), Holds::NotMeasured);
    let row = |bar: Bar| (bar.limit, outcome(&bar.how, values).unwrap_or_else(absent));
    file.bars.into_iter().map(row).collect()
}

fn outcome(how: &How, values: &Values) -> Result<Outcome, String> {
    match how {
        How::AtMost(id, unit, most) => {
            let value = values.get(id)?;
            Ok(Outcome::new(value.with_unit(unit), Holds::when(value.value <= *most)))
        }
        How::Ratio(a, b, unit, most) => {
            let (a, b) = (values.get(a)?, values.get(b)?);
            let (ratio, holds) = (a.over(b), a.over(b).value <= *most);
            let [ratio, a, b] = [(ratio, ""), (a, unit), (b, unit)].map(|(v, u)| v.with_unit(u));
            Ok(Outcome::new(format!("{ratio}: {a} over {b}"), Holds::when(holds)))
        }
        How::Peer(by, workload, least) => peer(values, by, workload, *least),
        How::Speedup(name) => speedup(values, name),
        How::Peaks(ids) => peaks(values, ids),
        How::Linear(group) => linear(values, group),
        How::Own(name) => {
            let (_, compute) =
                OWN.iter().find(|(own, _)| own == name).ok_or("no function measures it")?;
            compute(values)
        }
    }
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
fn peaks(values: &Values, ids: &[String]) -> Result<Outcome, String> {
    let seen = ids.iter().map(|id| values.get(id)).collect::<Result<Vec<Value>, _>>()?;
    let most = seen.iter().map(|v| v.value).fold(0.0, f64::max);
    let each: Vec<String> = seen.iter().map(|v| v.with_unit("MB")).collect();
    Ok(Outcome::new(each.join(", "), Holds::when(most < 200.0)))
}

fn linear(values: &Values, group: &str) -> Result<Outcome, String> {
    let (slope, each) = growth::slope(values, group)?;
    let measured = format!("slope {slope:.3}; ns a client step at {each}");
    Ok(Outcome::new(measured, Holds::when((slope - 1.0).abs() <= 0.1)))
}

fn coordinates(values: &Values) -> Result<Outcome, String> {
    Ok(Outcome::new(growth::coordinates(values)?, Holds::NoBar))
}
