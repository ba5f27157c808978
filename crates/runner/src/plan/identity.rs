//! What determines the numbers of a cell.

use super::budget::evaluations_per_call;
use crate::hex::CellId;
use crate::manifest::{InstanceMode, Oracle, Prices, Quantity, Record, Start, Until};
use exactfed_core::federated::Cost;
use exactfed_core::rng::{MAX_REPLICATES, Purpose, Stream};
use exactfed_core::{algorithm, problem};
use serde::{Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// The version of the numbers that cells compute. It enters every cell's id, and rises when a release changes what a
/// cell computes, so that earlier results are not taken for its results.
pub const NUMERICS: u32 = 2;

/// The number of the first replicate of fresh runs, and of the first of their instances if there are several. Fresh
/// runs are those of the settings that were selected among candidates. Candidates have the numbers below it, so that
/// fresh runs share no draws with the runs by which they were selected.
pub const FRESH: u64 = MAX_REPLICATES / 2;

/// What determines a cell's numbers. It derefs to what nearly all cells of a plan share.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Identity {
    /// What determines its runs beside the problem, the algorithm, the start and the length.
    #[serde(flatten, serialize_with = "whole")]
    pub keys: Arc<RunKeys>,
    /// The number T of rounds.
    pub rounds: u64,
    /// The target at which a run ends earlier, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// What is recorded, and at which rounds.
    #[serde(serialize_with = "whole")]
    pub record: Arc<Record>,
    /// The starting point θ_0.
    #[serde(serialize_with = "whole")]
    pub start: Arc<Start>,
    /// The settings of the problem.
    #[serde(serialize_with = "whole")]
    pub problem: Arc<problem::Spec>,
    /// The settings of the algorithm.
    #[serde(serialize_with = "whole")]
    pub algorithm: Arc<algorithm::Spec>,
}

/// What determines the runs of a cell beside the problem, the algorithm, the start and the length: nearly all cells of
/// a plan have the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunKeys {
    /// The version [`NUMERICS`] of the numerical results.
    pub numerics: u32,
    /// The seed of instances, and of the noise of runs unless that has a seed of its own.
    pub seed: u64,
    /// The seed of the noise of runs, if it is not `seed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_seed: Option<u64>,
    /// Independent runs on each instance.
    pub replicates: u64,
    /// Instances of the problem.
    #[serde(skip_serializing_if = "is_one")]
    pub instances: u64,
    /// Whether the runs are the fresh ones of a selected candidate. Their noise and further instances are drawn apart
    /// from the runs by which the candidate was selected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Whether oracles are noisy.
    pub oracle: Oracle,
    /// Whether replicates share one instance.
    #[serde(skip_serializing_if = "InstanceMode::is_fixed")]
    pub instance: InstanceMode,
}

impl Deref for Identity {
    type Target = RunKeys;

    fn deref(&self) -> &RunKeys {
        &self.keys
    }
}

impl RunKeys {
    /// The seed that the instance of this number of a cell has, derived from `seed`. If that is the manifest's `seed`,
    /// it is the seed by which the instance is built; if it is `noise-seed`, it is that of the noise of runs on the
    /// instance.
    pub fn instance_seed(&self, seed: u64, number: u64) -> u64 {
        let number = if self.fresh { number + FRESH } else { number };
        // Instances of single runs and further instances are drawn from different copies of the stream.
        let copy = match self.instance {
            InstanceMode::PerReplicate => 1,
            // The first of several instances is that of the manifest's seed.
            InstanceMode::Fixed if self.instances == 1 || number == 0 => return seed,
            InstanceMode::Fixed => 2,
        };
        Stream::new(seed, Purpose::SharedInstance, copy, number, 0).bits()
    }
}

fn is_one(instances: &u64) -> bool {
    *instances == 1
}

/// Serialises a shared value as if the cell had its own.
fn whole<T: Serialize, S: Serializer>(shared: &Arc<T>, to: S) -> Result<S::Ok, S::Error> {
    shared.as_ref().serialize(to)
}

impl Identity {
    /// The table whose text is hashed into the cell's id. The index of a pack has it too.
    pub fn canonical(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are plain tables")
    }

    /// The rounds that are recorded, from 0 to T.
    pub fn recorded(&self) -> Vec<u64> {
        self.record.rounds(self.rounds)
    }

    /// The local steps of all clients that take part in one round of one run, together, on average where they are
    /// random; there are `clients` clients in all. It is the unit in which progress counts steps.
    pub fn steps_per_round(&self, clients: usize) -> u64 {
        let components = self.algorithm.components();
        components.iter().map(|c| c.terms.steps_of_all(clients)).sum()
    }

    /// The content id of the cell that has this number of replicates and is otherwise the same, such as that of an
    /// earlier look at claims, whose runs are the first of this cell's and may be stored already.
    pub fn id_with(&self, replicates: u64) -> CellId {
        let keys = Arc::new(RunKeys { replicates, ..(*self.keys).clone() });
        CellId::of(&Self { keys, ..self.clone() }.canonical().to_string())
    }

    /// The number of runs of the cell: the replicates on all instances together.
    pub fn runs(&self) -> u64 {
        self.instances.saturating_mul(self.replicates)
    }

    /// The number of instances that must be built: those that the manifest asks for, or one for each replicate.
    pub fn built_instances(&self) -> u64 {
        if self.instance.is_fixed() { self.instances } else { self.replicates }
    }

    /// The number of the instance on which a run is, among those that are built. Runs are numbered from 0 over all
    /// instances, those on the first instance first.
    pub fn instance_of(&self, run: u64) -> u64 {
        if self.instance.is_fixed() { run / self.replicates } else { run }
    }

    /// What all rounds of a run cost in the unit `of`, and what one round costs. `None` if rounds differ, as under a
    /// coin, if the cost depends on a number of clients or a dimension that only a file says, or if `of` is no cost.
    /// The runs that the algorithm combines are counted together.
    pub fn cost(&self, of: Quantity, prices: &Prices) -> Option<(f64, f64)> {
        let each_round = [Quantity::Communications, Quantity::LocalSteps, Quantity::Gradients];
        // These three do not depend on the number of clients and the dimension: any do where they are not known, but
        // there must be a client for each entry of the lists of the algorithm.
        let extent = self.problem.extent().map(|extent| (extent.clients, extent.dimension));
        let (clients, d) = extent.or(each_round.contains(&of).then_some((1, 1)))?;
        let batch = evaluations_per_call(&self.problem, self.oracle);
        let components = self.algorithm.components().into_iter();
        let round = components
            .map(|c| {
                let listed = c.terms.local_steps.len().max(c.terms.batches.len());
                c.terms.round_cost(clients.max(listed), batch, d)
            })
            .sum::<Option<Cost>>()?;
        let of_rounds = |rounds: u64| of.of_cost(&round.times(rounds), prices);
        Some((of_rounds(self.rounds)?, of_rounds(1)?))
    }

    /// The local steps of all clients that take part together, in all rounds of all runs of the cell; `clients` is the
    /// number of all clients. `plan` states it.
    pub fn client_steps(&self, clients: usize) -> u64 {
        self.steps_per_round(clients).saturating_mul(self.rounds).saturating_mul(self.runs())
    }
}
