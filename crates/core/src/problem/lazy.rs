//! Values that are computed when they are first asked for.

use std::sync::OnceLock;

/// The value of a cell, computed if there is none yet. The cell is not locked during the computation, as
/// [`OnceLock::get_or_init`] would: a thread that waits for the parallel parts of a computation may take
/// up other work, which may ask for the same value, and would wait for itself. Instead both compute the
/// value, with equal bits.
pub fn get_or_compute<T>(cell: &OnceLock<T>, compute: impl FnOnce() -> T) -> &T {
    cell.get().unwrap_or_else(|| {
        let value = compute();
        cell.get_or_init(|| value)
    })
}
