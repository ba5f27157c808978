//! How long cells are expected to take, and times in words.

use exactfed_runner::plan::Cell;
use exactfed_runner::runner::cost::expected_nanoseconds;

/// The expected time of these cells on so many threads, in seconds.
pub fn expected_seconds<'a>(cells: impl Iterator<Item = &'a Cell>, threads: usize) -> f64 {
    let costs = cells.map(|cell| expected_nanoseconds(&cell.identity));
    costs.fold(0, u64::saturating_add) as f64 * 1e-9 / threads as f64
}

/// A time in words, to two digits.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
