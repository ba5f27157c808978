//! The memory that cells need, estimated before anything is built.
//!
//! The estimate is within a factor of about two of a run's peak. For a problem from a
//! file neither N nor d is known, and its instance is not counted.

use super::prepare::{wants_coupled_run, wants_twin};
use crate::manifest::{Metric, TimeAverage};
use crate::plan::{Cell, Identity};
use exactfed_core::federated::Variates;
use exactfed_core::problem::{MemoryPart, Spec};
use exactfed_core::rng::Stream;
use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;

/// The parts of a kind of data in all instances.
#[derive(Default)]
struct InstancesPart {
    /// The bytes in all instances.
    bytes: f64,
    /// The bytes in the instance of the problem in which they are most.
    most: f64,
    /// What the data of that problem are, in words.
    what: String,
}

/// The parts of memory that instances take. They are built before the first run, and stay until all runs of their plan
/// have ended.
#[derive(Clone, Debug, Default)]
pub struct InstanceMemory(pub Vec<MemoryPart>);

/// The parts of memory that runs, their traces and their averages take, which are freed when the runs of their plan
/// have ended.
#[derive(Clone, Debug, Default)]
pub struct RunMemory(pub Vec<MemoryPart>);

/// The memory that cells of a plan need.
#[derive(Clone, Debug, Default)]
pub struct PlanMemory {
    /// What their instances need.
    pub instances: InstanceMemory,
    /// What running them needs in addition; no parts for commands that run nothing.
    pub runs: RunMemory,
}

impl PlanMemory {
    /// What building the instances of these cells needs, and running the cells on a number of threads.
    pub fn of_cells(cells: &[&Cell], threads: usize) -> Self {
        Self { instances: of_instances(cells), runs: of_runs(cells, threads) }
    }

    /// All its parts, those of the instances first.
    pub fn parts(&self) -> impl Iterator<Item = &MemoryPart> {
        self.instances.0.iter().chain(&self.runs.0)
    }
}

/// The bytes that several plans need whose instances are all built first, and whose runs come one plan after the other:
/// the instances of all, and the runs of the plan whose runs need most.
pub fn bytes_of_plans(plans: &[PlanMemory]) -> f64 {
    let bytes = |parts: &[MemoryPart]| parts.iter().map(|part| part.bytes).sum::<f64>();
    let instances = plans.iter().map(|plan| bytes(&plan.instances.0)).sum::<f64>();
    instances + plans.iter().map(|plan| bytes(&plan.runs.0)).fold(0.0, f64::max)
}

/// The memory that the instances of these cells need, all of which exist at once: a part for each kind of data, in no
/// order, whose key is the path of the setting that makes it large. Problems whose size only a file says are not
/// counted.
pub fn of_instances(cells: &[&Cell]) -> InstanceMemory {
    // Each problem, with the most instances of it that a cell has: cells share them.
    let mut copies: HashMap<*const Spec, (&Spec, f64)> = HashMap::new();
    for identity in cells.iter().map(|c| &c.identity) {
        let problem = &identity.problem;
        let wanted = identity.built_instances() as f64;
        let known = copies.entry(Arc::as_ptr(problem)).or_insert((&**problem, 0.0));
        known.1 = known.1.max(wanted);
    }
    let mut parts: HashMap<String, InstancesPart> = HashMap::new();
    let mut instances = 0.0;
    for (spec, copies) in copies.into_values() {
        instances += copies;
        for MemoryPart { key, bytes, what } in spec.extent().map_or(Vec::new(), |size| size.parts) {
            let path = format!("problem.{}.{key}", spec.kind());
            let part = parts.entry(path).or_default();
            part.bytes += bytes * copies;
            if (bytes, &what) > (part.most, &part.what) {
                part.most = bytes;
                part.what = what;
            }
        }
    }
    let all = parts.into_iter().map(|(key, InstancesPart { bytes, what, .. })| {
        let prefix =
            if instances > 1.0 { format!("{instances} instances with ") } else { String::new() };
        MemoryPart { key, bytes, what: prefix + &what }
    });
    InstanceMemory(all.collect())
}

/// The memory that running these cells on a number of threads needs in addition to their instances: a run on each
/// thread, and the traces and averages of unfinished cells. Each part is what the cell needs which needs most of it,
/// under the path of a setting that makes it large; a part of which no cell needs anything is left out.
pub fn of_runs(cells: &[&Cell], threads: usize) -> RunMemory {
    // N and d of each problem; 0 where only a file says them, so that nothing is counted.
    let mut sizes: HashMap<*const Spec, (f64, f64)> = HashMap::new();
    // The cell that needs most for the states of runs, for traces, and for averages.
    let mut most: [Option<(f64, &Identity)>; 3] = [None; 3];
    for identity in cells.iter().map(|cell| &cell.identity) {
        let (n, d) = *sizes.entry(Arc::as_ptr(&identity.problem)).or_insert_with(|| {
            let extent = identity.problem.extent();
            extent.map_or((0.0, 0.0), |e| (e.clients as f64, e.dimension as f64))
        });
        let runs = identity.runs() as f64;
        // As many cells are unfinished at a time as it takes to give each thread a run.
        let unfinished_cells = 1.0 + (threads as f64 - 1.0) / runs.max(1.0);
        let unfinished_runs = unfinished_cells.ceil() * runs;
        let found = [
            threads as f64 * bytes_of_run(identity, n, d),
            unfinished_runs * bytes_of_trace(identity, d),
            unfinished_runs * bytes_of_averages(identity, n, d),
        ];
        for (bytes, most) in found.into_iter().zip(&mut most) {
            if most.is_none_or(|most| bytes > most.0) {
                *most = Some((bytes, identity));
            }
        }
    }
    let mut parts = Vec::new();
    for (place, most) in most.into_iter().enumerate() {
        let Some((bytes, identity)) = most.filter(|(bytes, _)| *bytes > 0.0) else { continue };
        let replicates = identity.runs();
        let points = identity.record.points(identity.rounds);
        let (key, what) = match place {
            0 => {
                let key = format!("problem.{}.clients", identity.problem.kind());
                (key, format!("states of {threads} runs at a time"))
            }
            1 => {
                let what =
                    format!("traces of {replicates} replicates with up to {points} rounds each");
                (traced_by(identity).into(), what)
            }
            _ => ("record.averages".into(), format!("averages of {replicates} replicates")),
        };
        parts.push(MemoryPart { key, bytes, what });
    }
    RunMemory(parts)
}

/// The bytes that a cell needs by itself on one thread, with its instances.
pub fn of_cell(cell: &Cell) -> f64 {
    PlanMemory::of_cells(&[cell], 1).parts().map(|part| part.bytes).sum()
}

/// The path of the setting that makes the traces of a cell large, which a refusal of the run names.
fn traced_by(identity: &Identity) -> &'static str {
    let record = &identity.record;
    let points = record.points(identity.rounds);
    match (record.iterates, record.every) {
        _ if identity.runs() > points => "replicates",
        (true, _) => "record.iterates",
        (false, Some(_)) => "record.every",
        (false, None) => "record.points",
    }
}

/// The bytes of the state of a run with n clients in d dimensions: streams, iterates and control variates of the
/// clients, for every run that the estimate combines and those on the same draws next to it (on the linearised twin,
/// and from θ*), and ξ_c* where the Lyapunov function is measured.
fn bytes_of_run(identity: &Identity, n: f64, d: f64) -> f64 {
    let mut client = 0.0;
    for component in identity.algorithm.components() {
        let vectors = if component.terms.variates == Variates::None { 1.0 } else { 3.0 };
        // 64 bytes for a client's numbers in addition to its stream and its vectors.
        client += size_of::<Stream>() as f64 + 64.0 + 8.0 * d * vectors;
    }
    let runs = 1 + usize::from(wants_coupled_run(identity)) + usize::from(wants_twin(identity));
    let corrections = identity.record.metrics.contains(&Metric::Lyapunov);
    n * (client * runs as f64 + if corrections { 8.0 * d } else { 0.0 })
}

/// The bytes of a run's trace in d dimensions, and of its copy on the way to the store.
fn bytes_of_trace(identity: &Identity, d: f64) -> f64 {
    let record = &identity.record;
    // A round, six costs and two squared errors are recorded of every run.
    let columns = 9.0 + record.metrics.len() as f64 + if record.iterates { d } else { 0.0 };
    2.0 * 8.0 * columns * record.points(identity.rounds) as f64 + 300.0
}

/// The bytes of the averages of a run with n clients in d dimensions, and of their copy on the way to the store.
fn bytes_of_averages(identity: &Identity, n: f64, d: f64) -> f64 {
    2.0 * 8.0
        * identity
            .record
            .averages
            .iter()
            .map(|average| match average {
                TimeAverage::Bias => d,
                TimeAverage::Covariance => d * d,
                _ => n * d * d,
            })
            .sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    /// The plan of ten replicates of FedAvg on quadratics, after the replacement of a text by another for each pair of
    /// `change`.
    fn plan(change: &[(&str, &str)]) -> Plan {
        let mut text = String::from(
            "title = \"t\"\nseed = 1\nreplicates = 10\n\n[problem.quadratic]\ndimension = 10\n\
             clients = 100\nspectrum = { from = 0.5, to = 1.0 }\nnoise = 0.1\n\n[start]\n\
             offset = 1.0\n\n[budget]\nrounds = 1000\n\n[record]\npoints = 100\n\n\
             [[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 1\n",
        );
        for (from, to) in change {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        Plan::of_text(&text, &[])
    }

    /// The bytes of the instances of a plan, and the parts of its runs on two threads.
    fn needs(plan: &Plan) -> (f64, Vec<MemoryPart>) {
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let PlanMemory { instances, runs } = PlanMemory::of_cells(&cells, 2);
        (instances.0.iter().map(|part| part.bytes).sum(), runs.0)
    }

    /// The states of runs are freed with the plan's other memory of runs, though the same setting of the problem makes
    /// them large as makes its instances.
    #[test]
    fn runs_of_several_plans_need_what_the_largest_needs() {
        let of_plan = |clients: &str| {
            let plan = plan(&[("clients = 100", clients)]);
            PlanMemory::of_cells(&plan.cells.iter().collect::<Vec<_>>(), 2)
        };
        let [small, large] = ["clients = 100", "clients = 200"].map(of_plan);
        let states = large.runs.0.iter().find(|part| part.what.starts_with("states of "));
        assert_eq!(states.unwrap().key, "problem.quadratic.clients");
        let [few, many] = [&small.runs, &large.runs]
            .map(|runs| runs.0.iter().map(|part| part.bytes).sum::<f64>());
        assert!(few < many);
        let of_instances = |plan: &PlanMemory| plan.instances.0[0].bytes;
        let instances = of_instances(&small) + of_instances(&large);
        assert_eq!(bytes_of_plans(&[small.clone(), large.clone()]), instances + many);
        assert_eq!(bytes_of_plans(&[large, small]), instances + many);
        assert_eq!(bytes_of_plans(&[]), 0.0);
    }

    #[test]
    fn instances_are_counted_once_each() {
        let (one, _) = needs(&plan(&[]));
        let (grid, _) = needs(&plan(&[("step-size = 0.1", "step-size = [0.1, 0.2]")]));
        assert_eq!(one, grid, "cells share an instance");
        let (two, _) = needs(&plan(&[("noise = 0.1", "noise = [0.1, 0.2]")]));
        assert_eq!(two, 2.0 * one);
        let (each, _) = needs(&plan(&[("seed = 1", "seed = 1\ninstance = \"per-replicate\"")]));
        assert_eq!(each, 10.0 * one);
        assert!((160_000.0..320_000.0).contains(&one), "twice 100 matrices of 10 × 10: {one}");
    }

    #[test]
    fn traces_grow_with_points_replicates_and_iterates() {
        let traces = |change: &[(&str, &str)]| {
            let (_, parts) = needs(&plan(change));
            parts.into_iter().find(|part| part.key.starts_with("record.")).unwrap()
        };
        let base = traces(&[]);
        assert_eq!(base.key, "record.points");
        // Twice ten replicates of nine columns at 102 rounds, for two cells under way.
        assert_eq!(base.bytes, 2.0 * 10.0 * (2.0 * 9.0 * 8.0 * 102.0 + 300.0));
        let iterates = traces(&[("points = 100", "points = 100\niterates = true")]);
        assert_eq!(iterates.key, "record.iterates");
        assert_eq!(iterates.bytes, 2.0 * 10.0 * (2.0 * 19.0 * 8.0 * 102.0 + 300.0));
        let every =
            traces(&[("points = 100", "every = 1"), ("rounds = 1000", "rounds = 5_000_000")]);
        assert_eq!(every.key, "record.every");
        assert!(every.bytes > 1e9, "{every:?}");
    }

    #[test]
    fn sizes_beyond_64_bits_are_numbers_too() {
        let plan = plan(&[
            ("replicates = 10", "replicates = 16_000_000"),
            ("rounds = 1000", "rounds = 1_000_000_000_000"),
            ("points = 100", "points = 10_000_000"),
        ]);
        let (_, parts) = needs(&plan);
        assert!(parts.iter().all(|part| part.bytes.is_finite() && part.bytes > 0.0));
        assert!(parts.iter().any(|part| part.bytes > 1e15), "{parts:?}");
    }
}
