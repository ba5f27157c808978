//! `provenance.md`: which program computed the results of a page, where and in which time. Pages do not state it, so
//! that they stay the same when results are computed again.

use crate::evidence::{Experiment, unique};

/// The text of `provenance.md`: the versions of exactfed that computed the results, the time that they took, and the
/// system on which the page is being written. They are of the cells that the page shows; runs by which tuning selected
/// these do not count.
pub fn provenance(experiment: &Experiment<'_>) -> String {
    let by = experiment.cells.iter().map(|cell| {
        let p = &cell.provenance;
        let dirty = if p.dirty { ", with uncommitted changes" } else { "" };
        format!("- exactfed {} at commit {}{dirty}", p.version, p.commit)
    });
    let computed = if experiment.cells.is_empty() {
        "No results of runs are on this page.".to_owned()
    } else {
        let seconds: f64 = experiment.cells.iter().map(|cell| cell.seconds).sum();
        let versions = unique(by).join("\n");
        format!(
            "The results were computed by\n\n{versions}\n\nin {seconds:.1} s of one thread by the clock."
        )
    };
    format!(
        "# Provenance of {}\n\n{computed} This page was written on {} ({}, {} processors).\n",
        experiment.plan.experiment,
        std::env::consts::OS,
        std::env::consts::ARCH,
        std::thread::available_parallelism().map_or(1, usize::from),
    )
}
