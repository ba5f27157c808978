//! Python code: what loads it, and what does not.
//!
//! *Invariant*: no code runs because results name it. The key `python` of a manifest that a user
//! names is the word of that user; in the `experiment.toml` of results it is anybody's, and so is
//! the path that it begins from. Only algorithms that the package itself ships are loaded from
//! there (`python/tests/test_trust.py`).

use super::outcome::Failure;
use crate::store::Store;
use exactfed_core::algorithm::custom::CustomDefinition;
use exactfed_runner::manifest::Source;
use exactfed_runner::manifest::document::{Diagnostic, Rejected, Value, parse};
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::registered::{LoadError, load};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The module of algorithms that is part of the package, as manifests name it.
const SHIPPED: &str = "exactfed.algorithms";

/// Loads the Python code that a manifest names under `python`, all of which runs and registers its algorithms, before
/// the manifest is planned. Of a manifest in results only the algorithms that the package ships are loaded, since
/// anybody may have written it. A manifest that is wrong otherwise is no error here.
///
/// # Errors
/// The entries of `python` that cannot be loaded: all of them where this program runs no Python.
pub fn load_python(source: &Source) -> Result<(), Rejected> {
    // What is wrong with the manifest is found when it is read.
    let Ok(root) = parse(source) else { return Ok(()) };
    let Some(Value::Array(files)) = root.find("python").map(|node| &node.value) else {
        return Ok(());
    };
    let mut found = Vec::new();
    for (i, node) in files.iter().enumerate() {
        let Value::String(code) = &node.value else { continue };
        if source.is_stored() && code != SHIPPED {
            continue;
        }
        if let Err(message) = load(&code_path(source, code), None) {
            let place = Some(node.place.clone());
            let path = format!("python.{i}");
            found.push(Diagnostic::new(place, &path, format!("`{code}`: {message}")));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Rejected::new(source, found)) }
}

/// What to load for an entry of a manifest's `python`: the path of a file `*.py`, which the manifest names
/// relative to its folder, or the name of an installed module as it is.
fn code_path(source: &Source, code: &str) -> PathBuf {
    let base = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    if code.ends_with(".py") { base.join(code) } else { code.into() }
}

/// Loads the files or modules of Python code that the option `--python` names, all of whose code runs.
///
/// # Errors
/// The first that cannot be loaded.
pub fn load_named(files: &[PathBuf]) -> Result<(), Failure> {
    files.iter().try_for_each(|file| {
        load(file, None).map(drop).map_err(|e| unloadable("--python", file, &e))
    })
}

/// The failure to load a file that an option of the command line names.
fn unloadable(option: &str, file: &Path, error: &LoadError) -> Failure {
    Failure::input(format!("error: {option} {}: {error}", file.display()))
}

/// The Python code of these plans together with that which the command line named, so that the tasks of a
/// submission, which run elsewhere, can load it: absolute paths of files, and names of modules. A plan from
/// results has none, since it does not say where its code is.
///
/// # Errors
/// If the working directory, from which relative paths begin, is not known.
pub fn code_of_all(plans: &[Plan], named: &[PathBuf]) -> std::io::Result<BTreeSet<PathBuf>> {
    let own = plans.iter().filter(|plan| !plan.source.is_stored());
    let code = own.flat_map(|plan| plan.manifest.python.iter().map(|c| code_path(&plan.source, c)));
    let absolute = |code: PathBuf| {
        let is_file = code.extension().is_some_and(|ending| ending == "py");
        if is_file { std::path::absolute(code) } else { Ok(code) }
    };
    code.chain(named.iter().cloned()).map(absolute).collect()
}

/// Refuses to run these cells of a plan if one is of an algorithm in Python whose code is not loaded, or records such a
/// metric: such a cell has a plan, since results keep the descriptions of algorithms and metrics. The failure names
/// the algorithm or the metric at its place in the manifest.
pub fn require_code(plan: &Plan, cells: &[&Cell]) -> Result<(), Failure> {
    // By the entry of the algorithm, of which there may be many cells.
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for cell in cells {
        if let Some(kind) = cell.identity.algorithm.kind_without_code() {
            let message = format!(
                "`{kind}`: the code of this algorithm is not at hand, or has changed since the experiment was stored: run its manifest where the algorithm is defined, or name its file with --python (results run no code)"
            );
            found.insert(cell.entry.to_string(), message);
        }
    }
    for metric in plan.manifest.record.own.iter().filter(|own| own.code.is_none()) {
        let name = &metric.known.definition.kind;
        let message = format!(
            "`{name}`: the code of this metric is not at hand, or has changed since the experiment was stored: run its manifest where the metric is defined, or name its file with --python (results run no code)"
        );
        found.insert("record.metrics".to_owned(), message);
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::of_plan(plan, found.into_iter())) }
}

/// Why cells or frontiers of results are left out of `verify`, in words: the code of this kind of algorithm is
/// not loaded.
pub fn no_code(kind: &str) -> String {
    format!(
        "the code of `{kind}` is not at hand, or is not what made them; results run no code, so name a file that defines it: --run-code FILE, in Python run_code=FILE"
    )
}

/// Loads from these files of Python (`--run-code`) the problems of stored experiments that have no code here. They are
/// loaded before any plan is made, since a manifest cannot be read without its problem. As of algorithms, only those
/// statements run that are part of a source which the results keep. Returns a line for each part of the files that was
/// left out.
///
/// # Errors
/// If the folder cannot be listed, or the first file that cannot be loaded.
pub fn load_for_problems(store: &Store, files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut of_problems = BTreeSet::new();
    let mut further = BTreeSet::new();
    let listing = if files.is_empty() { Vec::new() } else { store.listing()? };
    for (_, experiment) in listing {
        let Ok(experiment) = experiment else { continue };
        let source = experiment.source();
        let problem = source.problem_without_code().filter(|own| !own.source.is_empty());
        of_problems.extend(problem.map(|own| own.source.clone()));
        // A file may define algorithms or metrics alone, and those of another experiment.
        further.extend(source.algorithms.iter().map(|known| known.definition.source.clone()));
        further.extend(source.metrics.iter().map(|known| known.definition.source.clone()));
    }
    if of_problems.is_empty() {
        return Ok(Vec::new());
    }
    let sources: Vec<String> = of_problems.union(&further).cloned().collect();
    load_covered(files, &sources)
}

/// Loads from these files what the sources contain, and returns a line for each part that was left out.
fn load_covered(files: &[PathBuf], sources: &[String]) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for file in files {
        lines.extend(
            load(file, Some(sources)).map_err(|error| unloadable("--run-code", file, &error))?,
        );
    }
    Ok(lines)
}

/// Loads from these files of Python (`--run-code`) the algorithms of stored cells and of frontiers that have no
/// code here. Of a file only those statements run that are part of the source which the results keep of such an
/// algorithm: the hash in the ids of the cells vouches for that source. `plans` come from the results, with
/// the sorted ids of the stored cells; they were made without the code, so that callers plan once more afterwards.
/// Returns a line for each part of the files that was left out.
///
/// # Errors
/// The first file that cannot be loaded.
pub fn load_for_cells(
    plans: &[(Plan, Vec<CellId>)],
    files: &[PathBuf],
) -> Result<Vec<String>, Failure> {
    let lacking = |(plan, ids): &(Plan, Vec<CellId>)| -> Vec<CustomDefinition> {
        let stored = plan.cells.iter().filter(|cell| ids.binary_search(&cell.id).is_ok());
        let of_cells = stored.filter_map(|cell| cell.identity.algorithm.kind_without_code());
        let of_frontiers = plan.manifest.frontier.iter().flat_map(|one| one.lacking_code());
        let kinds: BTreeSet<_> = of_cells.chain(of_frontiers).collect();
        let known = plan.source.algorithms.iter();
        known.filter(|known| kinds.contains(known.definition.kind.as_str())).cloned().collect()
    };
    // The store has refused experiments in which a source does not have its hash.
    let mut sources: BTreeSet<String> =
        plans.iter().flat_map(lacking).map(|known| known.definition.source).collect();
    let recorded = plans.iter().flat_map(|(plan, _)| &plan.manifest.record.own);
    let without_code = recorded.filter(|metric| metric.code.is_none());
    sources.extend(without_code.map(|metric| metric.known.definition.source.clone()));
    if sources.is_empty() {
        // All code is at hand, as after an earlier call in this process.
        return Ok(Vec::new());
    }
    // A file may have nothing but code that is at hand already.
    for (plan, _) in plans {
        let algorithms = plan.source.algorithms.iter().map(|known| &known.definition);
        let at_hand = algorithms.chain(&plan.source.problem).map(|own| own.source.clone());
        sources.extend(at_hand.filter(|source| !source.is_empty()));
    }
    let sources: Vec<String> = sources.into_iter().collect();
    load_covered(files, &sources)
}
