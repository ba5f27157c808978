//! The manifests that commands are given, and their plans.

use super::code::{load_named, load_python};
use super::names;
use super::outcome::Failure;
use crate::report::check_texts;
use crate::store::{EXPERIMENT, Store, StoredExperiment, read_table};
use exactfed_runner::files;
use exactfed_runner::manifest::Source;
use exactfed_runner::plan::Plan;
use exactfed_runner::registered::registered;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most bytes of a manifest.
const MOST_MANIFEST: u64 = 16 << 20;

/// The manifests that a command is given.
#[derive(clap::Args, Clone)]
pub struct Manifests {
    /// Manifest files
    #[arg(required = true, value_name = "MANIFEST")]
    pub files: Vec<PathBuf>,
    /// Override a setting, such as seed=7 or problem.garnet.clients=10
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Number of replicates of each cell, instead of the manifest's
    #[arg(long, value_name = "R")]
    pub replicates: Option<u64>,
    /// Python code to load first, which defines algorithms: a file, or an installed module (may
    /// be repeated)
    #[arg(long, value_name = "CODE")]
    pub python: Vec<PathBuf>,
}

impl Manifests {
    /// Loads the Python code that the command line names, reads all manifests, and returns their plans in
    /// the order of the names of experiments. Warnings about plans are printed.
    ///
    /// # Errors
    /// Everything that is wrong with any of them; also if two have the same name, or names that differ only
    /// in upper and lower case.
    pub fn plans(&self) -> Result<Vec<Plan>, Failure> {
        load_named(&self.python)?;
        // The name and the file of each experiment so far, by the name in lower case.
        let mut known: BTreeMap<String, (String, String)> = BTreeMap::new();
        let plans = self.files.iter().map(|file| {
            let plan = self.plan(file)?;
            let name = &plan.experiment;
            let file = &plan.source.name;
            match known.insert(name.to_ascii_lowercase(), (name.clone(), file.clone())) {
                None => Ok(plan),
                Some((same, other)) if same == *name => Err(Failure::input(format!(
                    "error: {other} and {file} are both the experiment \"{name}\"\n"
                ))),
                Some((_, other)) => Err(Failure::input(format!(
                    "error: the names of {other} and {file} differ only in upper and lower case, which not every file system distinguishes\n"
                ))),
            }
        });
        let mut plans = Failure::join(plans)?;
        plans.sort_by(|a, b| a.experiment.cmp(&b.experiment));
        for (plan, warning) in plans.iter().filter_map(|plan| Some((plan, plan.warning()?))) {
            eprintln!("warning: {}: {warning}", plan.source.name);
        }
        Ok(plans)
    }

    /// The plan of one of the files, with the overrides of the command line, the last of which is that of
    /// `--replicates`.
    fn plan(&self, file: &Path) -> Result<Plan, Failure> {
        let replicates = self.replicates.map(|r| format!("replicates={r}"));
        let overrides = self.overrides.iter().cloned().chain(replicates).collect();
        let (experiment, source) = manifest_source(file, overrides)?;
        planned(experiment, source)
    }
}

/// The plan of a manifest, with the algorithms of the Python code that it names, which is loaded, and with all others
/// that this process has registered. The texts in it that state results, such as its finding, are checked too, so that
/// a mistake shows before the runs.
///
/// # Errors
/// Everything that is wrong with the manifest.
pub fn planned(experiment: String, source: Source) -> Result<Plan, Failure> {
    load_python(&source)?;
    let plan = crate::evidence::plan(experiment, Source { registry: registered(), ..source })?;
    check_texts(&plan).map_err(|(key, message)| {
        let found = (key.to_owned(), format!("`{key}`: {message}"));
        Failure::of_plan(&plan, std::iter::once(found))
    })?;
    Ok(plan)
}

/// The name of the experiment that a file describes, and its manifest with these overrides in addition. The
/// file is a manifest, or the `experiment.toml` in a folder of results, which holds a manifest as it was
/// run, its name and copies of its data files. The latter counts as one that anybody may have written: of the Python
/// code that it names, only the package's own is loaded ([`Source::is_stored`]).
///
/// # Errors
/// If the file cannot be read, or its path names no experiment.
pub fn manifest_source(file: &Path, overrides: Vec<String>) -> Result<(String, Source), Failure> {
    let name = file.display().to_string();
    let text = files::read_text(file, MOST_MANIFEST)
        .map_err(|e| Failure::input(format!("error: {name} cannot be read: {}\n", e.message)))?;
    let kept = if file.file_name().is_some_and(|name| name == EXPERIMENT) {
        StoredExperiment::parse(&text)
            .map_err(|e| Failure::input(format!("error: {name}: {e}\n")))?
    } else {
        None
    };
    let Some(kept) = kept else {
        let experiment = names::from_manifest(file).map_err(Failure::input)?;
        return Ok((experiment, Source { name, ..text_source(text, overrides) }));
    };
    names::check(&kept.name, file).map_err(Failure::input)?;
    let mut source = kept.source();
    // The results folder is above as many folders as the name has parts, and the file.
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let root = path.ancestors().nth(kept.name.split('/').count() + 1).unwrap_or(&path);
    source.copies = Some(Store::copies(root));
    source.overrides.extend(overrides);
    Ok((kept.name, source))
}

/// The source of a manifest that is a text and in no file, for an experiment of this name; Python's
/// `Manifest` takes such texts. Data files are looked for in the working directory. Messages call the manifest by the
/// last part of the name with `.toml`, and pages show how it is run in Python.
///
/// # Errors
/// If no experiment can have this name.
pub fn unfiled_source(
    experiment: &str,
    text: String,
    overrides: Vec<String>,
) -> Result<Source, Failure> {
    let last = experiment.rsplit('/').next().unwrap_or_default();
    let name = format!("{last}.toml");
    names::check(experiment, Path::new(&name)).map_err(Failure::input)?;
    Ok(Source { name, unfiled: true, ..text_source(text, overrides) })
}

/// The source of a manifest's text without a name, with the reader of Parquet files.
fn text_source(text: String, overrides: Vec<String>) -> Source {
    Source { text, overrides, tables: Some(read_table), ..Source::default() }
}
