//! What the targets share: what is small enough to be run, and problems that
//! are built from a data file.
//!
//! *Invariant*: a target fails only where the harness does: by a panic, by time
//! or by memory. What a target itself refuses, it refuses in silence.

use exactfed_core::problem::Spec;
use exactfed_core::problem::arrays::{Contents, DataFile, Files, FilesError};
use exactfed_runner::data::{self, TableReader};
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::{self, Silent, prepare};
use exactfed_runner::trace::{Outcome, Trace};
use std::sync::Arc;

/// Settings of a problem above this make it too large to run for every input.
const MOST_SETTING: i64 = 24;
/// Steps of all clients that a run may take for every input.
const MOST_STEPS: u64 = 3_000;
/// Cells of a grid that are run.
const MOST_CELLS: usize = 6;

/// Whether a cell runs in no time.
fn tiny(cell: &Cell) -> bool {
    fn small(value: &toml::Value) -> bool {
        match value {
            toml::Value::Integer(n) => (-MOST_SETTING..=MOST_SETTING).contains(n),
            toml::Value::Array(all) => all.len() as i64 <= MOST_SETTING && all.iter().all(small),
            toml::Value::Table(all) => all.values().all(small),
            _ => true,
        }
    }
    let table = cell.identity.canonical();
    let steps = cell.identity.client_steps(MOST_SETTING as usize);
    let settings =
        ["problem", "algorithm", "start"].iter().all(|key| table.get(*key).is_none_or(small));
    // A coin throws long rounds.
    let coin = |value: f64| value > 0.05;
    let settings_of = |key: &str| cell.settings.get(key).cloned();
    let thrown = match settings_of("communication-probability") {
        Some(exactfed_runner::plan::Setting::Number(p)) => coin(p),
        _ => true,
    };
    settings && thrown && steps <= MOST_STEPS && cell.identity.replicates <= 4
}

/// Prepares and runs a plan whose cells are all tiny.
pub fn run(plan: &Plan, files: &dyn Files) {
    if plan.cells.len() > MOST_CELLS || !plan.cells.iter().all(tiny) {
        return;
    }
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let Ok(prepared) = prepare(files, &cells) else { return };
    let kept = std::sync::Mutex::new(0);
    let failed = runner::run(&prepared, 1, &Silent, |done| -> Result<(), ()> {
        let replicates = done.cell.identity.replicates as usize;
        assert_eq!(done.traces.len(), replicates);
        done.traces.iter().for_each(sound);
        *kept.lock().expect("nobody panicked") += 1;
        Ok(())
    });
    assert!(failed.expect("keeping is no trouble").is_empty());
    assert_eq!(kept.into_inner().expect("nobody panicked"), cells.len());
}

/// A run ends with finite errors, or it diverged.
fn sound(trace: &Trace) {
    assert!(trace.sq_error.iter().all(|e| e.is_finite() && *e >= 0.0), "{:?}", trace.sq_error);
    assert!(trace.rows() > 0 || trace.outcome == Outcome::Diverged);
}

/// Gives the same contents, whatever the file.
struct Only(Arc<Contents>);

impl Files for Only {
    fn open(&self, _file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        Ok(self.0.clone())
    }
}

/// Manifests' problems that read a file; `%` is its name.
const PROBLEMS: &[&str] = &[
    "[atoms]\nfile = \"%\"\n",
    "[mdp]\nfile = \"%\"\n",
    "[mdp]\nfile = \"%\"\nnoise = { markov = { burn-in = 2 } }\n",
    "[logistic-dataset]\ndataset = { file = \"%\", clients = 2, standardise = true }\nl2 = 0.1\n",
    "[logistic-dataset]\ndataset = { file = \"%\", split = { column = \"client\" }, intercept = true }\nl2 = 0.1\n",
    "[softmax-dataset]\ndataset = { file = \"%\", clients = 2, intercept = true }\nl2 = 0.1\n",
    "[logistic-dataset]\ndataset = { file = \"%\", clients = 2, storage = \"sparse\", intercept = true }\nl2 = 0.1\n",
    "[least-squares-dataset]\ndataset = { file = \"%\", clients = 2, split = { dirichlet = 1.0 } }\n",
    "[logistic-dataset]\ndataset = { file = \"%\", clients = 2, split = { quantity = 1.0 }, weights = \"records\", test = { fraction = 0.3 } }\nl2 = 0.1\n",
    "[least-squares-dataset]\ndataset = { file = \"%\", clients = 2, test = { column = \"client\" }, standardise = true }\nl2 = 0.1\n",
    "[least-squares-dataset]\ndataset = { file = \"%\", features = [\"x\"], clients = 1, split = \"by-label\" }\n",
];

/// Reads a data file of this name, where `tables` reads Parquet, and builds every problem that could be of it.
pub fn built(name: &str, bytes: &[u8], tables: Option<TableReader>) {
    let file = DataFile::at(name);
    let Ok(contents) = data::read(&file, bytes.to_vec(), tables) else { return };
    // What is large takes its time by right.
    let numbers = match &contents {
        Contents::Arrays(all) => all.values().map(|a| a.values.len()).sum(),
        Contents::Table(all) => all.iter().map(|(_, c)| c.len()).sum(),
        Contents::Records { features, .. } | Contents::SparseArrays { features, .. } => {
            features.len().saturating_mul(features.dim())
        }
    };
    if numbers > 600 {
        return;
    }
    for tune in [false, true] {
        let wishes = data::describe::Wishes { tune, ..Default::default() };
        let _ = data::describe::describe(&file, &contents, &wishes);
    }
    let files = Only(Arc::new(contents));
    for problem in PROBLEMS {
        let text = problem.replace('%', name);
        let spec: Spec = toml::from_str(&text).expect("the settings are right");
        if !spec.check().is_empty() {
            continue;
        }
        let _ = spec.build(1, &files, exactfed_core::problem::OracleForm::Own, exactfed_core::algorithm::Boxed);
    }
}
