//! `diff` as a user meets it: pairs of results or reports whose difference is known, each with the verdict and the
//! exit code that it must get.

mod pages;
mod sides;
mod verdicts;

use crate::support::process::Program;
use crate::support::{Bench, Finished, edited};
use exactfed::compare::{SideExperiment, record};
use exactfed::trace::Trace;

/// A manifest of three cells: FedAvg with 2 and with 5 local steps, and Scaffold.
const MANIFEST: &str = include_str!("../manifests/small-problems.toml");

/// The file of the manifest in a bench; the experiment has the name `small`.
const FILE: &str = "experiments/small.toml";

/// Changes of the manifest: texts in it, each with the text that replaces it.
type Changes<'a> = &'a [(&'a str, &'a str)];

/// Runs the manifest with changes into the results folder `out`; `more` are further arguments of `run`.
fn ran(bench: &Bench, out: &str, changes: Changes<'_>, more: &[&str]) {
    bench.write(FILE, edited(MANIFEST, changes));
    bench.compute(&[&[FILE, "--out", out], more].concat());
}

/// A bench with results of the manifest in `a` and of the changed manifest in `b`.
fn pair(changes: Changes<'_>) -> Bench {
    let bench = Bench::new();
    ran(&bench, "a", &[], &[]);
    ran(&bench, "b", changes, &[]);
    bench
}

/// Rewrites the results in `b` as an engine would have left them that edits each trace: `edit` gets the label of the
/// cell, the replicate and its trace.
fn rewrite(bench: &Bench, edit: &dyn Fn(&str, usize, &mut Trace)) {
    bench.forge("b", |cell, stored| {
        stored.traces.iter_mut().enumerate().for_each(|(r, t)| edit(&cell.label, r, t));
        true
    });
}

/// An edit for `rewrite` that multiplies the errors of the cells with this label.
fn scaled(label: &'static str, factor: f64) -> impl Fn(&str, usize, &mut Trace) {
    move |label_of_cell, _, trace| {
        if label_of_cell == label {
            trace.sq_error.iter_mut().for_each(|x| *x *= factor);
        }
    }
}

/// The JSON output of a diff, whatever its verdicts are.
fn json(bench: &Bench, a: &str, b: &str) -> serde_json::Value {
    let output = bench.run(&["diff", a, b, "--format", "json", "--fail-on", "none"]);
    serde_json::from_str(&output.out)
        .unwrap_or_else(|e| panic!("{e}: {} {}", output.out, output.err))
}

/// Verdict and name of each changed cell, in the order of a diff.
fn verdicts(json: &serde_json::Value) -> Vec<(&str, &str)> {
    let all = json["changed"].as_array().unwrap().iter();
    all.map(|c| (c["verdict"].as_str().unwrap(), c["name"].as_str().unwrap())).collect()
}

/// A bench with results in `a` and their report in `pages`.
fn reported() -> Bench {
    let bench = Bench::new();
    ran(&bench, "a", &[], &[]);
    bench.run(&["report", "a", "--out", "pages", "--quiet"]).expect(0);
    bench
}

/// What the report in `pages` keeps of its experiment for a diff.
fn recorded(bench: &Bench) -> SideExperiment {
    let files = [record::RECORD, record::FINALS].map(|f| bench.read(&format!("pages/small/{f}")));
    record::read(Some(&files[0]), &files[1]).unwrap()
}

/// Writes the files that a report keeps for a diff, for this experiment, into a folder of pages.
fn write_record(bench: &Bench, pages: &str, experiment: &SideExperiment) {
    record::files(experiment, || experiment.cells.clone().into_iter())
        .iter()
        .for_each(|(f, text)| bench.write(&format!("{pages}/small/{f}"), text));
}

/// Runs `git` in the folder of the bench, with an author for commits.
pub fn git(bench: &Bench, arguments: &[&str]) -> Finished {
    let git = Program::new("git").args(["-c", "user.name=t", "-c", "user.email=t@t"]);
    git.args(arguments).folder(&bench.folder).run().into()
}
