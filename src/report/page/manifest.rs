//! The manifest on its page, and the command that runs it again.

use crate::evidence::Experiment;
use crate::evidence::looks::TakenLooks;
use crate::report::text_table::TextTable;
use crate::stats::looks::Looks;
use exactfed_core::definition::Definition;
use exactfed_core::words::{quoted, shell_word};
use exactfed_runner::manifest::Source;
use exactfed_runner::plan::{Cell, Plan, sets_replicates};
use serde::Serialize;
use std::path::Path;

/// A manifest with what a reader needs to run it.
#[derive(Serialize)]
pub struct ManifestSection {
    /// The path of its file.
    pub file: String,
    /// The command that runs it.
    pub command: String,
    /// The command that writes its page.
    pub report_command: String,
    /// The text of the manifest.
    pub text: String,
    /// The settings that all cells have in common.
    pub settings: TextTable,
    /// The problem and the algorithms that are defined outside of the program.
    pub user_code: Vec<UserCode>,
}

/// An algorithm or a problem that is defined outside of the program.
#[derive(Serialize)]
pub struct UserCode {
    /// "algorithm" or "problem".
    pub what: &'static str,
    pub name: String,
    pub kind: String,
    pub version: String,
    /// Its code in Python; empty if it is registered in Rust.
    pub source: String,
}

impl UserCode {
    /// What a page shows of a definition.
    fn new(what: &'static str, definition: &Definition) -> Self {
        Self {
            what,
            name: definition.name.clone(),
            kind: definition.kind.clone(),
            version: definition.version.clone(),
            source: definition.source.clone(),
        }
    }
}

impl ManifestSection {
    /// The section on the manifest of an experiment.
    pub fn new(experiment: &Experiment<'_>) -> Self {
        let plan = experiment.plan;
        let source = &plan.source;
        let of_algorithms =
            source.algorithms.iter().map(|known| UserCode::new("algorithm", &known.definition));
        let of_problem = source.problem.iter().map(|own| UserCode::new("problem", own));
        Self {
            file: source.name.clone(),
            command: command(&plan.experiment, source, experiment.looks.as_ref()),
            report_command: report_command(plan),
            text: source.text.clone(),
            settings: shared_settings(plan),
            user_code: of_problem.chain(of_algorithms).collect(),
        }
    }
}

/// The command that runs a manifest again with its `--set` and its planned looks: for a shell, or in Python if the
/// manifest is not in a file. Readers copy it from the page.
fn command(experiment: &str, source: &Source, looks: Option<&TakenLooks>) -> String {
    if source.unfiled {
        return format!(
            "exactfed.run(manifest, name={experiment:?})   # in Python, with the manifest of this page"
        );
    }
    let file = shell_word(&source.name);
    // With planned looks the command names the replicates of the looks instead.
    let overrides = source.overrides.iter().filter(|set| looks.is_none() || !sets_replicates(set));
    let sets: String = overrides.map(|set| format!(" --set {}", quoted(set))).collect();
    match looks.map(|looks| looks.planned) {
        None => format!("exactfed run {file}{sets}"),
        Some(Looks { first, most }) => format!(
            "exactfed run {file}{sets} --replicates {first} --until-decided --max-replicates {most}"
        ),
    }
}

/// The command that writes the page again. Results run no code, so that it names the files that may define a problem in
/// Python. Algorithms in Python need none here.
fn report_command(plan: &Plan) -> String {
    let mut command = "exactfed report".to_owned();
    if plan.source.problem.is_none() || plan.source.unfiled {
        return command;
    }
    let folder = Path::new(&plan.source.name).parent().unwrap_or(Path::new(""));
    for named in &plan.manifest.python {
        // What is not the path of a file is the name of an installed module.
        if Path::new(named).extension().is_some_and(|end| end == "py") {
            let file = folder.join(named).display().to_string();
            command += &format!(" --run-code {}", shell_word(&file));
        }
    }
    command
}

/// The table of the settings that all cells of the plan have with the same value; candidates of tuning are not
/// considered. Settings outside of the tables of the manifest, such as the seed, are left out, and so are tables whose
/// own settings are in rows.
fn shared_settings(plan: &Plan) -> TextTable {
    let heads = ["setting", "value"];
    let Some(first) = plan.cells.first() else { return TextTable::new(&heads, std::iter::empty()) };
    let shared = first.settings.iter().filter(|(path, value)| {
        // A table is a setting too, as is each value in it.
        let is_leaf = !first.settings.iter().any(|(k, _)| k.starts_with(&format!("{path}.")));
        let has_it = |cell: &Cell| cell.settings.at_path(path) == Some(*value);
        is_leaf && path.contains('.') && plan.cells.iter().all(has_it)
    });
    TextTable::new(&heads, shared.map(|(path, value)| vec![path.into(), value.into()]))
}
