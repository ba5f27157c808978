//! A user's own data: what is right runs, what is wrong costs one message that
//! names the file, the array or column, the index and what was expected.

mod arrays;
mod class_weights;
mod clients;
mod columns;
mod instances;
mod missing;
mod named;
mod refused;
mod reshuffled;
mod sparse;
mod unusual;
mod written;

use crate::support::{Bench, Finished};

/// A manifest of one cell, a short FedAvg, on this table of a problem.
fn manifest(problem: &str) -> String {
    format!(
        "title = \"t\"\nseed = 1\nreplicates = 1\n\n{problem}\n\n[start]\nzero = true\n\n\
         [budget]\nrounds = 3\n\n[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n"
    )
}

/// A folder with the manifest `mine.toml` and one file of data.
struct Data {
    bench: Bench,
}

impl Data {
    /// The file of data has this name and these bytes; `problem` is the table of the manifest that names it.
    fn new(problem: &str, file: &str, bytes: &[u8]) -> Self {
        let bench = Bench::new();
        bench.write("mine.toml", manifest(problem));
        bench.write(file, bytes);
        Self { bench }
    }

    /// A logistic regression on records, with these settings of `dataset` but for `file`.
    fn of_records(settings: &str, file: &str, bytes: &[u8]) -> Self {
        Self::new(&records_in(file, settings), file, bytes)
    }

    /// Asserts that `run` refuses the manifest with this message, and writes nothing.
    #[track_caller]
    fn refused(&self, message: &str) -> Finished {
        let before = self.bench.files();
        let output = self.bench.run(&["run", "mine.toml"]).expect(2);
        assert_eq!(self.bench.files(), before, "something was written");
        output.warns(message);
        output
    }

    /// Asserts that `run` and `report` accept the manifest; the pages are in `reports`.
    #[track_caller]
    fn accepted(&self) {
        self.bench.compute(&["mine.toml"]);
        self.bench.report();
    }

    /// Runs the manifest and returns the final errors of the runs of its one cell.
    #[track_caller]
    fn final_errors(&self) -> String {
        self.accepted();
        final_errors_in(&self.bench, "reports")
    }
}

/// The final errors of the runs of the first cell in `finals.csv`, as text: one number per run, separated by spaces.
fn final_errors_in(bench: &Bench, pages: &str) -> String {
    let text = bench.read(&format!("{pages}/mine/finals.csv"));
    text.lines().nth(1).unwrap().rsplit(',').next().unwrap().to_owned()
}

/// The table of a logistic regression on the records in `r.csv`, with these other settings of `dataset`.
fn records(settings: &str) -> String {
    records_in("r.csv", settings)
}

/// The table of a logistic regression on the records in a file, with these other settings of `dataset`.
fn records_in(file: &str, settings: &str) -> String {
    format!("[problem.logistic-dataset]\nl2 = 0.1\ndataset = {{ file = \"{file}\", {settings} }}")
}

/// Six records with a feature, the client that holds them, and their label.
const TABLE: &str = "age,site,label\n1,a,0\n2,b,1\n3,a,1\n4,b,0\n5.5,c,1\n-6,c,0\n";
