//! What this process has registered: algorithms and problems of its own, and what loads those
//! that a manifest names by files of Python.
//!
//! A plan does not look here: whoever makes a [`Source`](crate::manifest::Source) puts in what is
//! registered at that time.

use crate::quantity::{MOST_OWN, Quantity, assign};
use exactfed_core::custom_metric::{CustomMetricDefinition, MeasureCustom};
use exactfed_core::definition::DefinitionError;
use exactfed_core::registry::Registry;
use std::path::Path;
use std::sync::{OnceLock, PoisonError, RwLock};
use thiserror::Error;

static REGISTERED: RwLock<Option<Registry>> = RwLock::new(None);
static LOADER: OnceLock<Loader> = OnceLock::new();

/// Why no algorithms of Python are registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// This program cannot run Python.
    #[error(
        "algorithms in Python need the Python package of exactfed, and this program is not part of it: install the wheel that `make wheel` builds, and run the `exactfed` that comes with it"
    )]
    NoPython,
    /// The code ended with an exception: its traceback, or its text alone where that says all.
    #[error("{0}")]
    Code(String),
}

/// Loads Python code, which registers its algorithms: a file `*.py` by its path, or a module by its name. Without
/// sources (`None`) all of the code is run, as a user wants it of code that he names, and no lines are returned. The
/// sources are those that results keep of their algorithms, and results may be anybody's: with them the code must be a
/// file, of which only those statements are run that the sources contain, and a line is returned for each statement
/// that was left out.
pub type Loader = fn(&Path, Option<&[String]>) -> Result<Vec<String>, LoadError>;

/// A copy of what is registered now: what is registered later does not change it.
pub fn registered() -> Registry {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.clone().unwrap_or_default()
}

/// Lets `change` add to what is registered or remove from it, and returns what `change` returns. The registry is locked
/// meanwhile: `change` must not call this function or [`registered`], which would wait for ever.
pub fn register<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    change(registered.get_or_insert_default())
}

/// Why a metric cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetricError {
    /// No manifest could name it.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// All places are taken.
    #[error("{name}: a process can know {} metrics in addition to the built-in ones", MOST_OWN)]
    TooMany {
        /// Its name in manifests.
        name: String,
    },
}

/// Registers a metric: what is known of it, and its code. It replaces one of the same name.
///
/// # Errors
/// What is wrong with the definition, such as the name of a built-in quantity; or that there are too many metrics.
pub fn register_metric(
    known: CustomMetricDefinition,
    code: impl MeasureCustom + 'static,
) -> Result<(), MetricError> {
    let name = known.definition.kind.clone();
    let shown = known.definition.name.clone();
    let built_in = Quantity::ALL.iter().filter(|q| q.metric().is_none_or(|m| !m.is_own()));
    let taken: Vec<&str> = built_in.flat_map(|q| [q.name(), q.column()]).collect();
    known.definition.check(&taken)?;
    if !assign(&name, &shown) {
        return Err(MetricError::TooMany { name });
    }
    register(|registry| registry.add_metric(known, code, &taken))?;
    Ok(())
}

/// Says what loads Python code, which the Python package does when it is imported. Later calls change nothing.
pub fn set_loader(loader: Loader) {
    let _ = LOADER.set(loader);
}

/// Loads a file of Python, or a module by its name, as a [`Loader`] does.
///
/// # Errors
/// [`LoadError::NoPython`] in a program that has set no loader, which all are but the Python package, and otherwise
/// why the code cannot be loaded.
pub fn load(file: &Path, sources: Option<&[String]>) -> Result<Vec<String>, LoadError> {
    let loader = LOADER.get().ok_or(LoadError::NoPython)?;
    loader(file, sources)
}
