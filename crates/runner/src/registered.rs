//! What this process has registered: algorithms and problems of its own, and what loads those
//! that a manifest names by files of Python.
//!
//! A plan does not look here: whoever makes a [`Source`](crate::manifest::Source) puts in what is
//! registered at that time.

use exactfed_core::registry::Registry;
use std::path::Path;
use std::sync::{OnceLock, PoisonError, RwLock};

static REGISTERED: RwLock<Option<Registry>> = RwLock::new(None);
static LOADER: OnceLock<Loader> = OnceLock::new();

/// Loads a file of Python, or a module by its name, which registers its algorithms. If there are
/// sources of algorithms, nothing of the file is run but what they contain. Returns a line for
/// each part of the file that was left out; the error is a sentence.
pub type Loader = fn(&Path, Option<&[String]>) -> Result<Vec<String>, String>;

/// What is registered now.
pub fn registered() -> Registry {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.clone().unwrap_or_default()
}

/// Changes what is registered.
pub fn register<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    change(registered.get_or_insert_default())
}

/// Says what loads Python code; the first to say it counts.
pub fn set_loader(loader: Loader) {
    let _ = LOADER.set(loader);
}

/// Loads a file of Python, or a module by its name, as a [`Loader`] does.
///
/// # Errors
/// Why it cannot be loaded.
pub fn load(file: &Path, sources: Option<&[String]>) -> Result<Vec<String>, String> {
    let loader = LOADER.get().ok_or("algorithms in Python need the Python package of exactfed, and this program is not part of it: install the wheel that `make wheel` builds, and run the `exactfed` that comes with it")?;
    loader(file, sources)
}
