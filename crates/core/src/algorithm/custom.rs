//! Custom algorithms, which are defined outside of this crate at the granularity of rounds: the engine
//! runs the clients' local steps, the algorithm does what it wants between them.

use super::info::{Family, RoundFormula};
use super::{AlgorithmKind, Component, Settings};
use crate::definition::{Definition, KeyValues};
use crate::federated::{Conditions, Cost, RoundClients, Run, StatedPrice, Terms, Variates};
use crate::problem::custom::not_finite;
use crate::problem::{Fault, Problem};
use crate::round_program::{ProgramError, Traced};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// What is known of a custom algorithm without running it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CustomDefinition {
    /// The names, the keys, the version and the source code of the algorithm.
    #[serde(flatten)]
    pub definition: Definition,
    /// Whether manifests write the key `local-steps`, H, for it.
    pub has_local_steps: bool,
    /// What a round costs in addition to its oracle calls.
    #[serde(default)]
    pub price: StatedPrice,
}

impl From<Definition> for CustomDefinition {
    /// An algorithm with local steps, whose rounds cost as much as those of FedAvg.
    fn from(definition: Definition) -> Self {
        Self { definition, has_local_steps: true, price: StatedPrice::default() }
    }
}

/// The rounds of a run of a custom algorithm: the algorithm's state between them.
pub trait CustomRounds {
    /// One round: `theta` (d numbers) is θ_t before and θ_{t+1} after it. The caller then ends the round of the clients
    /// ([`RoundClients::end_round`]).
    fn round(&mut self, clients: &mut RoundClients<'_>, theta: &mut [f64]);
}

/// Starts runs of a custom algorithm.
pub trait StartCustom: Send + Sync {
    /// A run of the algorithm from θ_0 = `from.start`, before its first round. It runs local steps on `clients`, which
    /// count what its rounds cost; each of its rounds ends with [`RoundClients::end_round`].
    fn start<'p>(
        &self,
        settings: &CustomRun<'_>,
        clients: RoundClients<'p>,
        from: &Conditions<'_>,
    ) -> Box<dyn Run + 'p>;

    /// The rounds of the algorithm as a program, or why there is none. To trace them, code may be run twice: on each of
    /// the two sets of `clients`, which have the same draws, those of a run from these conditions.
    fn program(
        &self,
        _settings: &CustomRun<'_>,
        _clients: [RoundClients<'_>; 2],
        _from: &Conditions<'_>,
    ) -> Traced {
        Err(ProgramError::NotTraced)
    }
}

/// A function that makes the state of the algorithm before the first round is enough to start runs.
impl<F> StartCustom for F
where
    F: Fn(&CustomRun<'_>, &RoundClients<'_>) -> Box<dyn CustomRounds> + Send + Sync,
{
    fn start<'p>(
        &self,
        settings: &CustomRun<'_>,
        clients: RoundClients<'p>,
        from: &Conditions<'_>,
    ) -> Box<dyn Run + 'p> {
        let rounds = self(settings, &clients);
        Box::new(RunOfRounds { clients, theta: from.start.to_vec(), rounds })
    }
}

/// A run of a custom algorithm that is written as [`CustomRounds`].
struct RunOfRounds<'p> {
    clients: RoundClients<'p>,
    theta: Vec<f64>,
    rounds: Box<dyn CustomRounds>,
}

impl Run for RunOfRounds<'_> {
    /// One round of the algorithm, after which the clients count its communication and take part again.
    fn round(&mut self) {
        self.rounds.round(&mut self.clients, &mut self.theta);
        self.clients.end_round();
    }
    fn estimate(&self) -> &[f64] {
        &self.theta
    }
    fn cost(&self) -> Cost {
        self.clients.cost()
    }
}

/// The settings of a run of a custom algorithm.
#[derive(Clone, Copy, Debug)]
pub struct CustomRun<'a> {
    /// γ.
    pub step_size: f64,
    /// H; 1 for an algorithm without this key.
    pub local_steps: u64,
    /// The values of its own keys.
    pub values: &'a KeyValues,
}

/// A custom algorithm that manifests may name.
#[derive(Clone)]
pub struct CustomAlgorithm {
    /// What is known of it without running it.
    pub known: CustomDefinition,
    /// What starts its runs; `None` if it is known from stored results alone, so that it cannot be run.
    pub start: Option<Arc<dyn StartCustom>>,
}

impl fmt::Debug for CustomAlgorithm {
    /// Writes what is known of the algorithm, and in place of its code whether there is some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomAlgorithm")
            .field("known", &self.known)
            .field("can_run", &self.start.is_some())
            .finish()
    }
}

/// A custom algorithm, with the values of those keys of its `[[algorithm.<kind>]]` that not every algorithm has.
#[derive(Clone, Debug)]
pub struct CustomAlgorithmSettings {
    /// The algorithm.
    pub algorithm: Arc<CustomAlgorithm>,
    /// H, if it is a key.
    pub local_steps: Option<u64>,
    /// The values of its keys.
    pub values: KeyValues,
}

impl PartialEq for CustomAlgorithmSettings {
    /// Whether definitions, which have a hash of the source, and settings are equal. The code itself is not compared.
    fn eq(&self, other: &Self) -> bool {
        self.algorithm.known == other.algorithm.known
            && (self.local_steps, &self.values) == (other.local_steps, &other.values)
    }
}

impl CustomAlgorithmSettings {
    /// The name of its kind in a manifest.
    pub fn kind(&self) -> &str {
        &self.algorithm.known.definition.kind
    }
}

impl Settings<CustomAlgorithmSettings> {
    /// The code that starts runs.
    ///
    /// # Errors
    /// [`ProgramError::NoCode`] if the algorithm is known from stored results alone.
    fn code(&self) -> Result<&dyn StartCustom, ProgramError> {
        let code = self.algorithm.start.as_deref();
        code.ok_or_else(|| ProgramError::NoCode { kind: self.kind().to_owned() })
    }

    /// What the code gets to know of the settings of a run: all but the label and the averaging.
    fn run_settings(&self) -> CustomRun<'_> {
        CustomRun {
            step_size: self.common.step_size.value(),
            local_steps: self.local_steps.unwrap_or(1),
            values: &self.values,
        }
    }

    /// The rounds of the algorithm on a problem as a program, or why there is none. The code is given the clients
    /// twice, at the start of the same run, since it may be run twice to trace it.
    pub(super) fn program<P: Problem>(&self, problem: &P, from: &Conditions) -> Traced {
        let code = self.code()?;
        let clients = RoundClients::new(problem, from, self.algorithm.known.price);
        let same_clients = RoundClients::new(problem, from, self.algorithm.known.price);
        code.program(&self.run_settings(), [clients, same_clients], from)
    }

    /// A run before its first round; without code, a run that stays at θ_0 and says why it cannot go on.
    pub(super) fn start<'p, P: Problem>(
        &self,
        problem: &'p P,
        from: &Conditions,
    ) -> Box<dyn Run + 'p> {
        match self.code() {
            Err(error) => {
                let reason = error.to_string();
                Box::new(FailedRun { estimate: from.start.to_vec(), reason })
            }
            Ok(code) => {
                let clients = RoundClients::new(problem, from, self.algorithm.known.price);
                code.start(&self.run_settings(), clients, from)
            }
        }
    }
}

impl Serialize for CustomAlgorithmSettings {
    /// Writes what enters the ids of cells: H, the values of the algorithm's keys, its version and the hash of its
    /// source.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { algorithm, local_steps, values } = self;
        algorithm.known.definition.canonical(*local_steps, values).serialize(to)
    }
}

impl AlgorithmKind for CustomAlgorithmSettings {
    const FAMILY: Family = Family::Others;

    fn round(&self) -> Option<RoundFormula> {
        None
    }

    /// One run whose terms say what a round costs, and nothing else of what it does.
    fn components(&self, step_size: f64) -> Vec<Component> {
        let variates = Variates::Unknown(self.algorithm.known.price);
        let terms = Terms::fedavg(step_size, self.local_steps.unwrap_or(1));
        vec![Component::one(Terms { variates, ..terms })]
    }

    /// Sets H if manifests write the key `local-steps` for the algorithm, and otherwise nothing.
    fn set_local_steps(&mut self, local_steps: u64) {
        if self.algorithm.known.has_local_steps {
            self.local_steps = Some(local_steps);
        }
    }

    /// A fault for each number among the values of its own keys that is not finite.
    fn faults(&self) -> Vec<Fault> {
        not_finite(&self.values)
    }
}

/// A run that could not begin: its rounds do nothing and cost nothing, and [`Run::failure`] says why.
pub struct FailedRun {
    /// θ_0, d numbers.
    pub estimate: Vec<f64>,
    /// Why the run could not begin.
    pub reason: String,
}

impl Run for FailedRun {
    fn round(&mut self) {}
    fn estimate(&self) -> &[f64] {
        &self.estimate
    }
    fn cost(&self) -> Cost {
        Cost::default()
    }
    fn failure(&self) -> Option<&str> {
        Some(&self.reason)
    }
}
