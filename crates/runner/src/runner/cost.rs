//! What a cell is expected to cost, computed from its settings.
//!
//! Nothing is timed, and all numbers are whole, so that every machine expects the same: how cells
//! are split into shards depends on it. The constants are fitted to measured times;
//! docs/SCALE.md compares expected and measured costs.

use super::prepare::wants_twin;
use crate::manifest::{Metric, Oracle, TimeAverage};
use crate::plan::Identity;
use exactfed_core::algorithm::Component;
use exactfed_core::federated::{Learning, Variates};
use exactfed_core::problem::Spec;

/// What a cell costs in addition to its rounds, in nanoseconds: it is prepared and written.
pub const CELL: u64 = 500_000;
/// What a round costs in addition to its clients, in nanoseconds.
const ROUND: u64 = 260;
/// What a client costs in a round in addition to its oracle calls, in nanoseconds.
const CLIENT: u64 = 23;
/// What a matrix of averages costs in a round in addition to its d² entries, in nanoseconds.
const MATRIX: u64 = 28;
/// Mini-batches and proximal terms take a loop that no kernel speeds up: it takes this many times
/// as long for each oracle call.
const WITHOUT_KERNEL: u64 = 2;
/// Control variates that are measured take this many times as long for each oracle call.
const MEASURED_VARIATES: u64 = 4;
/// The cost of a linearised twin, in tenths of that of the run.
const TWIN: u64 = 14;
/// N and d of a problem whose data file determines them.
const FROM_FILE: (usize, usize) = (10, 8);

/// The expected cost of a cell in nanoseconds of one thread; `u64::MAX` if it is larger.
pub fn expected_nanoseconds(identity: &Identity) -> u64 {
    let (clients, dimension) = size(&identity.problem);
    let call = oracle_call(identity, dimension as u64);
    let components = identity.algorithm.components();
    let runs = components.iter().map(|component| round(component, clients, call));
    let runs = runs.fold(0, u64::saturating_add);
    let record = &identity.record;
    let coupled = u64::from(record.metrics.contains(&Metric::SqCoupling));
    let twin = if wants_twin(identity) { TWIN } else { 0 };
    let matrices = record.averages.iter().map(|average| match average {
        TimeAverage::Bias => 0,
        TimeAverage::Covariance => 1,
        _ => clients as u64,
    });
    let entries = (dimension as u64).saturating_mul(dimension as u64);
    let matrices = matrices.fold(0, u64::saturating_add);
    let averages = matrices.saturating_mul(entries.saturating_add(MATRIX));
    let round = (runs / 10).saturating_mul(10 * (1 + coupled) + twin).saturating_add(averages);
    let rounds = identity.rounds.saturating_mul(identity.runs());
    round.saturating_mul(rounds).saturating_add(CELL)
}

/// What a round of a run of the engine costs.
fn round(component: &Component, clients: usize, call: u64) -> u64 {
    let terms = &component.terms;
    let batches = terms.batches.iter().fold(0u64, |sum, batch| sum.saturating_add(*batch));
    let steps = terms.steps_of_all(clients);
    let calls = steps.saturating_mul(batches) / terms.batches.len().max(1) as u64;
    let without_kernel = terms.proximal > 0.0 || terms.batches.iter().any(|batch| *batch > 1);
    let factor = if without_kernel { WITHOUT_KERNEL } else { 1 };
    let more = match terms.variates {
        Variates::Fresh | Variates::Kept(Learning::OptionOne) => MEASURED_VARIATES,
        Variates::None | Variates::Kept(Learning::OptionTwo) | Variates::Unknown(_) => 0,
    };
    let cohort = terms.cohort.unwrap_or(clients) as u64;
    let calls = calls.saturating_mul(factor + more).saturating_mul(call);
    calls.saturating_add(cohort.saturating_mul(CLIENT)).saturating_add(ROUND)
}

/// N and d, as far as the settings determine them.
fn size(problem: &Spec) -> (usize, usize) {
    let (clients, dimension) = FROM_FILE;
    match problem {
        Spec::LogisticDataset(of) => (of.dataset.clients.unwrap_or(clients), dimension),
        Spec::LeastSquaresDataset(of) => (of.dataset.clients.unwrap_or(clients), dimension),
        Spec::SoftmaxDataset(of) => (of.dataset.clients.unwrap_or(clients), dimension),
        other => other.extent().map_or(FROM_FILE, |extent| (extent.clients, extent.dimension)),
    }
}

/// What an oracle call costs, in nanoseconds.
fn oracle_call(identity: &Identity, d: u64) -> u64 {
    let (one, records) = match &*identity.problem {
        Spec::Garnet(_) | Spec::Mdp(_) => (8 + d / 4, 1),
        Spec::Lms(_) => (106, 1),
        Spec::Logistic(of) => {
            let exact = identity.oracle == Oracle::Exact;
            (
                27u64.saturating_add(d.saturating_mul(3) / 2),
                if exact { of.records } else { of.batch },
            )
        }
        Spec::LogisticDataset(of) => (280, of.batch),
        Spec::SparseLogistic(of) => {
            let exact = identity.oracle == Oracle::Exact;
            let nonzeros = of.nonzeros as u64;
            (
                30u64.saturating_add(nonzeros.saturating_mul(3)),
                if exact { of.records } else { of.batch },
            )
        }
        Spec::LeastSquaresDataset(of) => (280, of.batch),
        Spec::SoftmaxDataset(of) => (280, of.batch),
        Spec::Synthetic(of) => {
            let exact = identity.oracle == Oracle::Exact;
            (100u64.saturating_add(d / 4), if exact { of.typical_records() } else { of.batch })
        }
        _ => (38u64.saturating_add(d.saturating_mul(d).saturating_mul(3)), 1),
    };
    one.saturating_mul(records as u64)
}
