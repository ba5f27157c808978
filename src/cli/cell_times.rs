//! How long cells take on this machine: the first rounds of one cell of each shape are run, and the
//! times of the other cells follow from their numbers of rounds, runs and recorded rows.
//!
//! *Invariant*: nothing is written, and a cell that cannot be measured is no error.

use super::outcome::Failure;
use super::prepare::{pool, prepared};
use crate::store::{encoded_size, provenance};
use exactfed_core::words::count;
use exactfed_runner::manifest::{Oracle, Spacing};
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::runner::cost::{RunCost, operations};
use exactfed_runner::runner::{Done, MeasuredTask, Prepared, TaskTime};
use exactfed_runner::trace::Trace;
use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The time after which no further shape is measured, since users wait for it. The shapes that take
/// most operations come first.
const MOST_TIME: Duration = Duration::from_secs(2);
/// The most operations of a round, with what is recorded of it, that is measured: some tenths of a
/// second.
const MOST_OPERATIONS: u64 = 300_000_000;
/// The most shapes for which instances are built only to be measured.
const MOST_SHAPES: usize = 64;
/// The most rows that are encoded to see how long it takes.
const MOST_ROWS: u64 = 1 << 14;
/// How often encoding is repeated; the shortest time counts.
const REPEATS: usize = 2;
/// The seconds of an operation at a typical rate, for plans in which no cell can be measured.
const TYPICAL_OPERATION: f64 = 1.0 / 3.2e9;

/// What cells have in common if their rounds take equally long, so that one of them is measured for
/// all. It is known before instances are built.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CellShape {
    problem: String,
    algorithm: String,
    oracle: Oracle,
    /// The operations of a round and of a recorded row follow from N, d, local steps, batches,
    /// participation and metrics.
    cost: RunCost,
    /// Bytes of the instance, since one that exceeds the caches is slower; 0 where a data file
    /// determines them.
    bytes: u64,
}

impl CellShape {
    /// The shape of a cell, from its settings alone.
    fn new(cell: &Cell) -> Self {
        let identity = &cell.identity;
        let parts = identity.problem.extent().map_or(Vec::new(), |extent| extent.parts);
        Self {
            problem: identity.problem.kind().to_owned(),
            algorithm: identity.algorithm.kind().to_owned(),
            oracle: identity.oracle,
            cost: RunCost::new(identity),
            bytes: parts.iter().map(|part| part.bytes as u64).fold(0, u64::saturating_add),
        }
    }

    /// How unlike another shape is, for comparisons alone: in how many of the problem, the algorithm
    /// and the oracle they differ, and among equals of these the logarithm of the ratio of their
    /// rounds' operations, without its sign.
    fn distance(&self, other: &Self) -> (usize, f64) {
        let differences = [
            self.problem != other.problem,
            self.algorithm != other.algorithm,
            self.oracle != other.oracle,
        ];
        let ratio = self.cost.round.max(1) as f64 / other.cost.round.max(1) as f64;
        (differences.into_iter().filter(|differs| *differs).count(), libm::log(ratio).abs())
    }
}

/// The measured times of a shape, on one thread.
struct ShapeTime {
    /// The times of the runs that go together as one task.
    runs: TaskTime,
    /// The seconds in which a pack with `rows` rows of the measured cell was encoded.
    encoding: f64,
    /// The rows of the pack that was encoded.
    rows: u64,
    /// The seconds of the whole measured cell, divided by its operations: the rate for cells of other
    /// shapes.
    of_operation: f64,
}

impl ShapeTime {
    /// Runs the first rounds of a cell and encodes as many rows as its results have, up to
    /// [`MOST_ROWS`]; nothing is written. It is called on a pool of one thread, since it times the thread. `None` if a
    /// round of these fails or diverges, no run of the cell is missing, or the rows cannot be encoded.
    fn measure(plan: &Plan, prepared: &Prepared<'_>) -> Option<Self> {
        let cell = prepared.cell;
        let MeasuredTask { time, trace } = prepared.measure()?;
        let wanted = rows_of(cell).min(MOST_ROWS);
        // The trace of the first rounds stands for the traces of all runs, which are not there.
        let copies = wanted.div_ceil(trace_rows(&trace));
        let traces = vec![trace; copies as usize];
        let rows = traces.iter().map(trace_rows).sum();
        let elapsed = Duration::ZERO;
        let clients = prepared.clients();
        let programs = Vec::new();
        let optimum_error = prepared.optimum_error();
        let done = [Done { cell, clients, traces, elapsed, optimum_error, programs }];
        let mut encoding = f64::INFINITY;
        for _ in 0..REPEATS {
            let begin = Instant::now();
            encoded_size(plan, &done, &provenance()).ok()?;
            encoding = encoding.min(begin.elapsed().as_secs_f64());
        }
        let mut measured = Self { runs: time, encoding, rows, of_operation: 0.0 };
        measured.of_operation = measured.seconds(cell) / operations(&cell.identity) as f64;
        Some(measured)
    }

    /// The seconds of a cell of this shape on one thread: of its runs, and of encoding its rows. The
    /// latter grow with the rows, and are never less than what the encoded pack took.
    fn seconds(&self, cell: &Cell) -> f64 {
        let identity = &cell.identity;
        let recorded = recorded_rounds(cell);
        let runs = self.runs.of_runs(identity.runs(), identity.rounds, recorded);
        runs + self.encoding * (rows_of(cell) as f64 / self.rows as f64).max(1.0)
    }
}

/// The rows of a trace, at least 1, since it divides.
fn trace_rows(trace: &Trace) -> u64 {
    (trace.rows() as u64).max(1)
}

/// The rows of a cell's results, of all its runs.
fn rows_of(cell: &Cell) -> u64 {
    recorded_rounds(cell).saturating_mul(cell.identity.runs())
}

/// The number of rounds of each run of a cell that are recorded, and so of the rows of a run.
fn recorded_rounds(cell: &Cell) -> u64 {
    let identity = &cell.identity;
    match identity.record.spacing {
        Spacing::Linear => identity.record.points(identity.rounds),
        // Many of the first points fall on the same round.
        Spacing::Log => identity.recorded().len() as u64,
    }
}

/// The times of the cells of a plan.
#[derive(Default)]
pub struct CellTimes {
    measured: Vec<(CellShape, ShapeTime)>,
    /// The place of each shape in `measured`.
    places: HashMap<CellShape, usize>,
    /// Whether cells have times at [`TYPICAL_OPERATION`] if nothing was measured; else they have none.
    counts_operations: bool,
}

impl CellTimes {
    /// Measures a cell of each shape of these cells, after building their instances; of more than
    /// [`MOST_SHAPES`] shapes those that take most operations. For commands that have no prepared
    /// cells at hand.
    ///
    /// # Errors
    /// Why an instance cannot be built.
    pub fn of_cells(plan: &Plan, cells: &[&Cell]) -> Result<Self, Failure> {
        let mut chosen = representatives(cells);
        chosen.truncate(MOST_SHAPES);
        Ok(Self::measure(plan, cells, &prepared(plan, &chosen)?))
    }

    /// Measures a prepared cell of each shape of these cells, where there is one, as long as
    /// [`MOST_TIME`] lasts; shapes whose round takes more than [`MOST_OPERATIONS`] are left out. Cells of all other
    /// shapes have times that are scaled ([`Self::seconds`]).
    pub fn measure(plan: &Plan, cells: &[&Cell], prepared: &[Prepared<'_>]) -> Self {
        let mut times = Self::default();
        // On several threads runs would go in parallel, and a time would not be of one run.
        let Ok(pool) = pool(Some(1)) else { return times };
        let begin = Instant::now();
        let by_shape = prepared_by_shape(prepared);
        for cell in representatives(cells) {
            if begin.elapsed() > MOST_TIME {
                break;
            }
            let shape = CellShape::new(cell);
            // An interruption would wait for the end of a round.
            if shape.cost.of_rounds(1, 1) > MOST_OPERATIONS {
                continue;
            }
            let Some(built) = by_shape.get(&shape) else { continue };
            if let Some(time) = pool.install(|| ShapeTime::measure(plan, built)) {
                times.add(shape, time);
            }
        }
        times
    }

    /// The same times; but if no cell was measured, as where a single round takes too many operations,
    /// the times of all cells follow from their operations at a typical rate. This is good enough to
    /// decide whether a run needs confirmation, and not to be stated.
    pub fn or_counted(self) -> Self {
        Self { counts_operations: true, ..self }
    }

    /// Adds the times of a shape that was not measured before.
    fn add(&mut self, shape: CellShape, time: ShapeTime) {
        self.places.insert(shape.clone(), self.measured.len());
        self.measured.push((shape, time));
    }

    /// The seconds of a cell on one thread. Where no cell of its shape was measured, the time of the
    /// most similar shape is scaled by operations; where no cell at all was measured, the result is
    /// `None`, unless [operations are counted](Self::or_counted) instead.
    pub fn seconds(&self, cell: &Cell) -> Option<f64> {
        let shape = CellShape::new(cell);
        if let Some(place) = self.places.get(&shape) {
            return Some(self.measured[*place].1.seconds(cell));
        }
        let distance = |known: &CellShape| known.distance(&shape);
        let nearest = self.measured.iter().min_by(|(a, _), (b, _)| {
            distance(a).partial_cmp(&distance(b)).unwrap_or(Ordering::Equal)
        });
        let of_operation = match nearest {
            Some((_, time)) => time.of_operation,
            None if self.counts_operations => TYPICAL_OPERATION,
            None => return None,
        };
        Some(of_operation * operations(&cell.identity) as f64)
    }

    /// The seconds of these cells on so many threads, if all threads are busy to the end; `None` where a cell
    /// [has no time](Self::seconds).
    pub fn total<'c>(&self, cells: impl Iterator<Item = &'c Cell>, threads: usize) -> Option<f64> {
        let seconds = cells.map(|cell| self.seconds(cell)).sum::<Option<f64>>()?;
        Some(seconds / threads as f64)
    }

    /// The line that `plan` prints of these cells if the shapes of some were not measured, so that
    /// their times are scaled; empty if all were.
    pub fn not_measured(&self, cells: &[&Cell]) -> String {
        let is_scaled = |cell: &&&Cell| !self.places.contains_key(&CellShape::new(cell));
        match cells.iter().filter(is_scaled).count() {
            0 => String::new(),
            _ if self.measured.is_empty() => "no cell could be measured\n".to_owned(),
            scaled => format!(
                "{} not measured: their times are those of similar cells, scaled by operations\n",
                count(scaled, "cell")
            ),
        }
    }
}

/// The seconds of each cell of a plan on so many threads (its seconds on one thread, divided by their number), in the
/// order of the plan, for `Plan.frame` of Python; all are `None` where an instance cannot be built or no cell can be
/// measured.
pub fn seconds_of_cells(plan: &Plan, threads: usize) -> Vec<Option<f64>> {
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let Ok(times) = CellTimes::of_cells(plan, &cells) else { return vec![None; cells.len()] };
    let seconds = cells.iter().map(|cell| times.total(std::iter::once(*cell), threads.max(1)));
    seconds.collect()
}

/// One cell of each shape among these, which is measured for the others of its shape: the cell with the
/// smallest step size, since it diverges last. The shapes whose cells together take most operations
/// come first.
pub fn representatives<'a>(cells: &[&'a Cell]) -> Vec<&'a Cell> {
    let mut by_shape: HashMap<CellShape, (u64, &'a Cell)> = HashMap::new();
    for &cell in cells {
        let (total, chosen) = by_shape.entry(CellShape::new(cell)).or_insert((0, cell));
        *total = total.saturating_add(operations(&cell.identity));
        if step_size(cell) < step_size(chosen) {
            *chosen = cell;
        }
    }
    let mut chosen: Vec<(u64, &Cell)> = by_shape.into_values().collect();
    chosen.sort_by_key(|(total, cell)| (Reverse(*total), cell.id.to_string()));
    chosen.into_iter().map(|(_, cell)| cell).collect()
}

/// γ as the manifest gives it.
fn step_size(cell: &Cell) -> f64 {
    cell.identity.algorithm.scale().0
}

/// The prepared cell that [represents](representatives) each shape of the prepared cells, by the shape.
fn prepared_by_shape<'p, 'a>(prepared: &'p [Prepared<'a>]) -> HashMap<CellShape, &'p Prepared<'a>> {
    let cells: Vec<&Cell> = prepared.iter().map(|prepared| prepared.cell).collect();
    let chosen: HashSet<CellId> = representatives(&cells).iter().map(|cell| cell.id).collect();
    let representing = prepared.iter().filter(|prepared| chosen.contains(&prepared.cell.id));
    representing.map(|prepared| (CellShape::new(prepared.cell), prepared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{manifest_source, planned};
    use std::path::{Path, PathBuf};

    fn plan_of(file: &Path) -> Plan {
        let planned =
            manifest_source(file, Vec::new()).and_then(|(name, source)| planned(name, source));
        planned.unwrap_or_else(|e| panic!("{}", e.message))
    }

    /// Every algorithm on every problem is measured, also where runs diverge.
    #[test]
    fn cells_of_every_kind_are_measured() {
        let entries = std::fs::read_dir("experiments/smoke").unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> =
            files.filter(|file| file.extension().is_some_and(|end| end == "toml")).collect();
        assert!(files.len() > 10, "{files:?}");
        for file in files {
            let plan = plan_of(&file);
            let cells: Vec<&Cell> = plan.cells.iter().collect();
            let chosen = representatives(&cells);
            let built = prepared(&plan, &chosen).unwrap_or_else(|e| panic!("{}", e.message));
            let mut measured = CellTimes::default();
            for cell in &built {
                let label = &cell.cell.label;
                let time = ShapeTime::measure(&plan, cell);
                let time = time.unwrap_or_else(|| panic!("{}: {label}", file.display()));
                measured.add(CellShape::new(cell.cell), time);
            }
            assert_eq!(measured.not_measured(&cells), "", "{}", file.display());
            for cell in cells {
                let seconds = measured.seconds(cell).unwrap();
                assert!(seconds.is_finite() && seconds > 0.0, "{}: {}", file.display(), cell.label);
            }
        }
    }

    /// Cells of no measured shape get the time of the most similar one, scaled by operations.
    #[test]
    fn times_of_other_shapes_are_scaled() {
        let plan = plan_of(Path::new("experiments/smoke/garnet.toml"));
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let none = CellTimes::default();
        assert_eq!(none.total(plan.cells.iter(), 1), None);
        assert_eq!(none.not_measured(&cells), "no cell could be measured\n");
        let mut one = none;
        let runs = TaskTime { runs: 2, start: 1.0, round: 0.5, row: 0.25 };
        assert_eq!(runs.of_runs(4, 10, 6), 2.0 * (1.0 + 5.0 + 1.0));
        let time = ShapeTime { runs, encoding: 0.0, rows: 1, of_operation: 2e-9 };
        let shape = CellShape::new(cells[0]);
        one.add(shape.clone(), time);
        for cell in &cells {
            let operations = operations(&cell.identity);
            let expected = if CellShape::new(cell) == shape {
                runs.of_runs(cell.identity.runs(), cell.identity.rounds, recorded_rounds(cell))
            } else {
                2e-9 * operations as f64
            };
            assert_eq!(one.seconds(cell), Some(expected));
        }
        let others = cells.iter().filter(|cell| CellShape::new(cell) != shape).count();
        assert!(one.not_measured(&cells).starts_with(&format!("{others} cells not measured: ")));
    }

    /// Where no cell was measured, a question needs times nevertheless: operations are counted.
    #[test]
    fn operations_are_counted_where_no_cell_was_measured() {
        let plan = plan_of(Path::new("experiments/smoke/garnet.toml"));
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let times = CellTimes::measure(&plan, &cells, &[]);
        assert_eq!(times.seconds(cells[0]), None);
        let mut times = times.or_counted();
        for cell in &cells {
            let counted = TYPICAL_OPERATION * operations(&cell.identity) as f64;
            assert_eq!(times.seconds(cell), Some(counted));
        }
        assert!(times.total(plan.cells.iter(), 2).is_some_and(|seconds| seconds > 0.0));
        assert_eq!(times.not_measured(&cells), "no cell could be measured\n");
        let runs = TaskTime { runs: 1, start: 0.0, round: 1.0, row: 0.0 };
        let time = ShapeTime { runs, encoding: 0.0, rows: 1, of_operation: 2e-9 };
        times.add(CellShape::new(cells[0]), time);
        let identity = &cells[0].identity;
        let measured = runs.of_runs(identity.runs(), identity.rounds, recorded_rounds(cells[0]));
        assert_eq!(times.seconds(cells[0]), Some(measured), "a measured time is preferred");
    }

    /// Cells that differ in their step sizes and budgets alone are measured once, at the smallest step.
    #[test]
    fn a_shape_is_measured_once() {
        let plan = plan_of(Path::new("experiments/smoke/garnet.toml"));
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let chosen = representatives(&cells);
        assert!(chosen.len() < cells.len());
        for cell in cells {
            let of_shape =
                chosen.iter().filter(|other| CellShape::new(other) == CellShape::new(cell));
            let of_shape: Vec<_> = of_shape.collect();
            assert!(of_shape.len() == 1 && step_size(of_shape[0]) <= step_size(cell));
        }
    }
}
