//! Algorithms: settings of the one engine, and wrappers around runs.
//!
//! FedLSA is FedAvg on a linear field and SCAFFLSA is Scaffold on one: each pair has one file
//! and two names.
//!
//! *Invariant*: an algorithm knows the engine and the problem's oracle; of a
//! problem's facts it uses none but the numbers of records of clients and the constants in whose units its numbers are
//! written, so that theory can judge it.

pub mod adaptive;
mod averaged;
pub mod custom;
#[cfg(test)]
mod dummy;
pub mod fedadagrad;
pub mod fedadam;
pub mod fedavg;
pub mod fedlin;
pub mod fednova;
pub mod fedprox;
pub mod fedyogi;
mod info;
mod instance;
pub mod minibatch_sgd;
mod participation;
mod relative;
pub mod richardson_romberg;
pub mod rounds;
pub mod scaffnew;
pub mod scaffold;
mod searched;
mod stated;
mod work;

use crate::federated::{Conditions, Federated, Run, Schedule, Terms, Variates};
use crate::flattened::Flattened;
use crate::problem::{Facts, Fault, Faults, Problem, ProblemConstants};
use crate::round_program::{RoundPrice, Traced};
use crate::sources::StatedAlgorithm;
use adaptive::WithAdaptiveServer;
pub use averaged::Average;
pub use info::{AlgorithmInfo, Family, RoundFormula};
pub use instance::{Boxed, Instance};
pub use participation::Participation;
pub use relative::{ProblemMultiple, RelativeNumber, WrittenNumber};
use richardson_romberg::Combined;
use rounds::{ProblemSize, constant_rounds};
use schemars::JsonSchema;
pub use searched::{ProgramOf, SearchedSpecs};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use work::{EXAMPLE_BATCHES, EXAMPLE_DECAY, are_single, numbers};
pub use work::{WithWork, Work};

/// One of the runs of the engine that an algorithm is made of. The algorithm's estimate is the weighted sum of the
/// runs' estimates; most algorithms are one run of weight 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The weight of the run's estimate. The weights of an algorithm sum to 1, but for those of
    /// [`richardson_romberg::Extrapolate::LocalStepsPrinted`].
    pub weight: f64,
    /// What the run does.
    pub terms: Terms,
    /// The number of the copy of the noise: runs of one copy have the same draws, and runs of different copies have
    /// independent ones. 0 unless the runs are to be independent.
    pub copy: u8,
}

impl Component {
    /// The component of an algorithm that is one run.
    pub fn one(terms: Terms) -> Self {
        Self { weight: 1.0, terms, copy: 0 }
    }
}

/// Keys of every `[[algorithm.<kind>]]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AlgorithmKeys {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default)]
    #[schemars(example = &"FedAvg, H = 10")]
    pub label: Option<String>,
    /// The step size γ (η in SCAFFLSA, μ in BOOK), above 0. Mini-batch SGD takes one step of this
    /// size in a round; of the runs of Richardson-Romberg it is that of the finest one. It is a number, or
    /// a multiple of a constant of the problem.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub step_size: RelativeNumber,
    /// Polyak-Ruppert averaging of the estimates.
    #[serde(default)]
    pub average: Average,
}

/// The settings of an algorithm: the keys that every algorithm has, and those of its kind, `T`.
pub type Settings<T> = Flattened<AlgorithmKeys, T>;

/// What the keys of a kind of algorithm mean: above all, which runs of the engine they ask for.
pub trait AlgorithmKind: Clone {
    /// The family of the kind, whose colour its curves have on pages.
    const FAMILY: Family;

    /// What it does in a round, for pages; `None` if that is not known.
    fn round(&self) -> Option<RoundFormula>;

    /// The runs of the engine whose weighted estimates add up to the estimate of the algorithm at this step size γ; one
    /// or more. Of runs with the same draws, the last one uses the most of them in a round.
    fn components(&self, step_size: f64) -> Vec<Component>;

    /// How many clients take part in a round; `None` if all do, because the key `cohort` is not written or the kind
    /// does not have it.
    fn cohort(&self) -> Option<Participation> {
        None
    }

    /// Sets how many clients take part in a round, in place of what [`cohort`](Self::cohort) returned: a fraction
    /// becomes a number once the number of clients is known. A kind without the key `cohort` ignores it.
    fn set_cohort(&mut self, _: Participation) {}

    /// The keys that say the numbers of local steps, if the kind has all of these keys.
    fn work(&self) -> Option<&Work> {
        None
    }

    /// The same keys as [`work`](Self::work) returns, to be changed.
    fn work_mut(&mut self) -> Option<&mut Work> {
        None
    }

    /// The keys of the kind whose numbers may be multiples of constants of the problem, with these numbers.
    fn relative_numbers_mut(&mut self) -> Vec<(&'static str, &mut RelativeNumber)> {
        Vec::new()
    }

    /// What is wrong with the keys of the kind, apart from what is wrong with the [`Terms`] of its components, which
    /// are checked only if this finds nothing.
    fn faults(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// The algorithm of the sources that these settings describe, by which statements are matched with cells.
    fn stated(&self) -> StatedAlgorithm {
        stated::of_terms(&self.components(1.0)[0].terms)
    }

    /// H of the first run; for mini-batch SGD the batch, which counts as local steps.
    fn local_steps(&self) -> u64 {
        self.components(1.0).remove(0).terms.most_steps()
    }

    /// Sets the number that a search over local steps varies: H, the same for all clients; for mini-batch SGD the
    /// batch; for Scaffnew 1/p. Nothing changes where no key says it.
    fn set_local_steps(&mut self, _: u64) {}

    /// The key that [`set_local_steps`](Self::set_local_steps) sets, of which 1 must be a value: the settings that a
    /// search begins with have 1 there, until the search replaces it.
    fn local_steps_key() -> &'static str {
        "local-steps"
    }

    /// The keys that the canonical text has after `average` instead of in their place among the keys of the kind;
    /// `None` but for Richardson-Romberg. Their place enters the ids of stored cells.
    fn after_average(&self) -> Option<richardson_romberg::Pairing> {
        None
    }
}

/// The methods of [`AlgorithmKind`] for a kind with the key `cohort`, which is a field of the settings.
macro_rules! has_cohort {
    () => {
        fn cohort(&self) -> Option<Participation> {
            self.cohort
        }

        fn set_cohort(&mut self, cohort: Participation) {
            self.cohort = Some(cohort);
        }
    };
}
use has_cohort;

/// The methods of [`AlgorithmKind`] for a kind with the keys of [`Work`].
macro_rules! has_work {
    () => {
        fn work(&self) -> Option<&crate::algorithm::Work> {
            Some(&self.common)
        }

        fn work_mut(&mut self) -> Option<&mut crate::algorithm::Work> {
            Some(&mut self.common)
        }
    };
}
use has_work;

impl<T: AlgorithmKind> Settings<T> {
    /// The keys whose numbers may be multiples of constants of the problem, with these numbers: the step size and those
    /// of the kind.
    fn relative_numbers_mut(&mut self) -> Vec<(&'static str, &mut RelativeNumber)> {
        let mut all = vec![("step-size", &mut self.common.step_size)];
        all.extend(self.own.relative_numbers_mut());
        all
    }

    /// Settings with this step size γ and these keys of the kind, without a label and without averaging.
    pub fn plain(step_size: f64, own: T) -> Self {
        let step_size = step_size.into();
        Self { common: AlgorithmKeys { label: None, step_size, average: Average::None }, own }
    }

    /// The runs of the engine whose weighted estimates add up to the estimate of the algorithm.
    pub fn components(&self) -> Vec<Component> {
        self.own.components(self.common.step_size.value())
    }

    /// All that is wrong with the settings themselves, whatever the problem is: at most one fault of the terms per key.
    /// Empty if nothing is.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.own.faults());
        let mut numbers = self.clone();
        for (key, number) in numbers.relative_numbers_mut() {
            number.check(key, &mut faults);
        }
        if faults.0.is_empty() {
            // Runs of one algorithm mostly have the same faults.
            for fault in self.components().iter().flat_map(|run| run.terms.check()) {
                if faults.0.iter().all(|known| known.key != fault.key) {
                    faults.0.push(fault);
                }
            }
        }
        if let Average::BurnIn(share) = self.common.average {
            faults.require((0.0..1.0).contains(&share), "average.burn-in", || {
                format!("must be a share of the rounds in [0, 1), not {share}")
            });
        }
        faults.0
    }
}

/// The settings of an algorithm in the order in which cell ids hash them, without the label, which changes no number.
struct InCanonicalOrder<'a, T>(&'a Settings<T>);

impl<T: AlgorithmKind + Serialize> Serialize for InCanonicalOrder<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case")]
        struct Canonical<'a, T> {
            step_size: RelativeNumber,
            #[serde(flatten)]
            own: &'a T,
            average: Average,
            #[serde(flatten)]
            after: Option<richardson_romberg::Pairing>,
        }
        // Every common key is named: one that changes numbers has to enter the text.
        let Settings { common: AlgorithmKeys { label: _, step_size, average }, own } = self.0;
        let after = own.after_average();
        Canonical { step_size: *step_size, own, average: *average, after }.serialize(to)
    }
}

/// A run of a built-in algorithm on a problem, before its first round: the run of the engine that it is, or the
/// weighted sum of several. There is at least one component; the weight of one alone, which is 1, is not applied.
fn combination<'p, P: Problem>(
    components: Vec<Component>,
    problem: &'p P,
    from: &Conditions,
) -> Box<dyn Run + 'p> {
    let first = &components[0];
    let is_common = components.iter().all(|run| run.copy == first.copy);
    let has_coin = matches!(first.terms.schedule, Schedule::Bernoulli { .. });
    let has_uneven_draws = components.iter().any(|run| {
        run.terms.local_steps != first.terms.local_steps || run.terms.batches != first.terms.batches
    });
    // Runs that use unequal numbers of the common draws in a round would use them in different rounds from the second
    // one on. With `follow`, all continue after each round behind the draws of the last run, which uses the most.
    let follow = is_common && !has_coin && has_uneven_draws;
    let mut runs: Vec<(f64, Box<dyn Run + 'p>)> = Vec::with_capacity(components.len());
    for Component { weight, terms, copy } in components {
        let from = Conditions { copy: from.copy + copy, ..*from };
        runs.push((weight, Box::new(Federated::new(problem, terms, &from))));
    }
    if runs.len() == 1 { runs.remove(0).1 } else { Box::new(Combined::new(runs, follow)) }
}

/// The registry: a new algorithm is its file and a line below, or two where it
/// has another name on a linear field. A line after `#[cfg(test)]` is read by the tests of this crate alone.
macro_rules! algorithms {
    ($d:tt $($(#[cfg($only:ident)])? $variant:ident($kind:literal, $name:literal, $settings:ty $(, linear name of $other:literal)?),)*) => {
        /// An algorithm as a manifest describes it: one `[[algorithm.<kind>]]`.
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
        pub enum Spec {
            $($(#[cfg($only)])? #[doc = concat!("Runs of ", $name, ".")] #[serde(rename = $kind)] $variant(Settings<$settings>),)*
            /// A custom algorithm, which is read by its definition.
            #[serde(skip)]
            Custom(Settings<custom::CustomAlgorithmSettings>),
        }

        impl Serialize for Spec {
            /// Writes a table whose only key is the kind, with the settings in the order in which cell ids hash them.
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($(#[cfg($only)])? Self::$variant(settings) => to.serialize_newtype_variant("Spec", 0, $kind, &InCanonicalOrder(settings)),)*
                    Self::Custom(settings) => to.collect_map([(settings.kind(), InCanonicalOrder(settings))]),
                }
            }
        }

        impl Spec {
            /// The kinds of all algorithms.
            pub const KINDS: &[&str] = &[$($(#[cfg($only)])? $kind,)*];

            /// What pages say of all algorithms.
            pub const ALL: &[AlgorithmInfo] = &[$($(#[cfg($only)])? AlgorithmInfo {
                kind: $kind,
                name: $name,
                family: <$settings as AlgorithmKind>::FAMILY,
                local_steps_key: <$settings as AlgorithmKind>::local_steps_key,
                linear_name_of: { const OTHER: &[&str] = &[$($other)?]; OTHER.first().copied() },
            },)*];

            /// What pages say of the algorithm; `None` for a custom algorithm.
            pub fn info(&self) -> Option<&'static AlgorithmInfo> {
                Self::ALL.iter().find(|info| info.kind == self.kind())
            }

            /// The name of the algorithm's kind in a manifest.
            pub fn kind(&self) -> &str {
                match self {
                    $($(#[cfg($only)])? Self::$variant(_) => $kind,)*
                    Self::Custom(settings) => settings.kind(),
                }
            }

            /// The name of its curve: the label, or the algorithm's own name.
            pub fn label(&self) -> &str {
                let name = match self {
                    $($(#[cfg($only)])? Self::$variant(_) => $name,)*
                    Self::Custom(settings) => &settings.algorithm.known.definition.name,
                };
                self.common().label.as_deref().unwrap_or(name)
            }
        }

        /// The value of an expression in the settings of a spec, whichever its kind is.
        macro_rules! of_settings {
            ($d spec:expr, $d settings:ident => $d value:expr) => {
                match $d spec {
                    $($(#[cfg($only)])? Spec::$variant($d settings) => $d value,)*
                    Spec::Custom($d settings) => $d value,
                }
            };
        }
    };
}

algorithms! { $
    FedAvg("fedavg", "FedAvg", WithWork<fedavg::FedAvg>),
    FedLsa("fedlsa", "FedLSA", WithWork<fedavg::FedAvg>, linear name of "fedavg"),
    Scaffold("scaffold", "Scaffold", WithWork<scaffold::Scaffold>),
    Scafflsa("scafflsa", "SCAFFLSA", WithWork<scaffold::Scaffold>, linear name of "scaffold"),
    RichardsonRomberg("richardson-romberg", "Richardson-Romberg", richardson_romberg::RichardsonRomberg),
    MinibatchSgd("minibatch-sgd", "mini-batch SGD", minibatch_sgd::MinibatchSgd),
    CentralisedLsa("centralised-lsa", "centralised LSA", minibatch_sgd::MinibatchSgd, linear name of "minibatch-sgd"),
    FedProx("fedprox", "FedProx", WithWork<fedprox::FedProx>),
    FedLin("fedlin", "FedLin", WithWork<fedlin::FedLin>),
    FedNova("fednova", "FedNova", WithWork<fednova::FedNova>),
    Scaffnew("scaffnew", "Scaffnew", scaffnew::Scaffnew),
    FedAdagrad("fedadagrad", "FedAdagrad", WithAdaptiveServer<fedadagrad::FedAdagrad>),
    FedAdam("fedadam", "FedAdam", WithAdaptiveServer<fedadam::FedAdam>),
    FedYogi("fedyogi", "FedYogi", WithAdaptiveServer<fedyogi::FedYogi>),
    #[cfg(test)]
    Dummy("dummy", "dummy", dummy::Dummy),
}

impl Spec {
    /// The keys that every algorithm has.
    fn common(&self) -> &AlgorithmKeys {
        of_settings!(self, settings => &settings.common)
    }

    /// The same algorithm with this step size γ and this number H of local steps of every client; for mini-batch SGD H
    /// is the batch, and for Scaffnew 1/p. All other settings stay, and H is ignored where no key says it. The settings
    /// must not state H in another key: neither per client nor, but for Scaffnew, as the probability of a coin.
    pub fn with_scale(&self, step_size: f64, local_steps: u64) -> Self {
        let mut scaled = self.clone();
        of_settings!(&mut scaled, settings => {
            settings.common.step_size = step_size.into();
            settings.own.set_local_steps(local_steps);
        });
        scaled
    }

    /// The step size γ and the number H of local steps of the first run as the manifest gives them. H is the number of
    /// the slowest client; for mini-batch SGD it is the batch, and where a coin ends the local steps 1/p, rounded.
    pub fn scale(&self) -> (f64, u64) {
        let local_steps = of_settings!(self, settings => settings.own.local_steps());
        (self.common().step_size.value(), local_steps)
    }

    /// What it does in a round, for pages; `None` if that is not known.
    pub fn round(&self) -> Option<RoundFormula> {
        of_settings!(self, settings => settings.own.round())
    }

    /// The algorithm of the sources that it is, by which statements are matched with cells.
    pub fn stated(&self) -> StatedAlgorithm {
        of_settings!(self, settings => settings.own.stated())
    }

    /// How many clients take part in a round; `None` if all do.
    pub fn cohort(&self) -> Option<Participation> {
        of_settings!(self, settings => settings.own.cohort())
    }

    /// Sets how many clients take part in a round, in place of what [`cohort`](Self::cohort) returned.
    pub fn set_cohort(&mut self, cohort: Participation) {
        of_settings!(self, settings => settings.own.set_cohort(cohort))
    }

    /// The algorithm on a problem with this number of clients: a fraction of the clients as `cohort` becomes a number of
    /// them ([`Participation::among`]).
    pub fn among(mut self, clients: usize) -> Self {
        if let Some(cohort) = self.cohort() {
            self.set_cohort(cohort.among(clients));
        }
        self
    }

    /// How many times a client passes over its records in a round, if the manifest states local work so (`local-epochs`).
    pub fn local_epochs(&self) -> Option<f64> {
        of_settings!(self, settings => settings.own.work()).and_then(|work| work.local_epochs)
    }

    /// Whether it is built in, its clients take part by a schedule that is given, and its local steps are the same in
    /// all rounds: then its rounds repeat with a period.
    pub fn has_schedule(&self) -> bool {
        let is_periodic = |run: &Component| {
            let scheme = &run.terms.participation;
            let is_given = scheme.is_scheduled() && !scheme.is_shuffled();
            is_given && run.terms.repeats_local_work()
        };
        !self.is_custom() && self.components().iter().all(is_periodic)
    }

    /// The keys whose numbers are multiples of constants of the problem, with these multiples and the numbers that they
    /// were found to be on an instance, if they were.
    pub fn multiples(&self) -> Vec<(&'static str, ProblemMultiple, Option<f64>)> {
        let mut numbers = self.clone();
        let all = of_settings!(&mut numbers, settings => settings.relative_numbers_mut());
        let mut multiples = Vec::new();
        for (key, number) in all {
            if let Some((multiple, found)) = number.multiple() {
                multiples.push((key, multiple, found));
            }
        }
        multiples
    }

    /// Finds the numbers that multiples of constants of the problem are on an instance, whatever was found before.
    /// `constants` are those of this instance. Returns a fault for each key whose constant is not known there.
    pub fn resolve(&mut self, facts: &dyn Facts, constants: &ProblemConstants) -> Vec<Fault> {
        let all = of_settings!(self, settings => settings.relative_numbers_mut());
        let resolved = all.into_iter().map(|(key, number)| number.resolve(key, facts, constants));
        resolved.filter_map(Result::err).collect()
    }

    /// The algorithm as it is launched on an instance: as [`Self::on_instance`] but that multiples of constants of the
    /// problem stay as they are if their numbers were found before ([`Self::resolve`]), since that may take long.
    fn for_launch(&self, facts: &dyn Facts) -> Cow<'_, Self> {
        let is_resolved = self.multiples().iter().all(|(_, _, found)| found.is_some());
        if is_resolved { self.with_steps_of_epochs(facts) } else { self.on_instance(facts) }
    }

    /// The algorithm on an instance: multiples of constants of the problem become the numbers that they are there, as
    /// far as the constants are known, and `local-epochs` the numbers of local steps that they come to.
    pub fn on_instance(&self, facts: &dyn Facts) -> Cow<'_, Self> {
        if self.multiples().is_empty() {
            return self.with_steps_of_epochs(facts);
        }
        let mut resolved = self.clone();
        resolved.resolve(facts, &ProblemConstants::default());
        Cow::Owned(resolved.with_steps_of_epochs(facts).into_owned())
    }

    /// The algorithm on an instance: `local-epochs` become the numbers of local steps that they come to with the records
    /// that the clients hold there. Any other algorithm is the same on all instances, and so is every algorithm on a
    /// problem without records, where manifests may not state epochs.
    pub fn with_steps_of_epochs(&self, facts: &dyn Facts) -> Cow<'_, Self> {
        if self.local_epochs().is_none() {
            return Cow::Borrowed(self);
        }
        let calls: Option<Vec<f64>> =
            (0..facts.clients()).map(|client| facts.calls_of_epoch(client)).collect();
        let Some(calls) = calls else { return Cow::Borrowed(self) };
        let mut resolved = self.clone();
        let batches = self.components().remove(0).terms.batches;
        if let Some(work) = of_settings!(&mut resolved, settings => settings.own.work_mut()) {
            work.set_steps_of_epochs(&calls, &batches);
        }
        Cow::Owned(resolved)
    }

    /// All that is wrong with the settings themselves, whatever the problem is.
    pub fn check(&self) -> Vec<Fault> {
        of_settings!(self, settings => settings.check())
    }

    /// The runs of the engine whose weighted estimates add up to the estimate of the algorithm. For a custom algorithm
    /// they say what a round costs, and nothing else.
    pub fn components(&self) -> Vec<Component> {
        of_settings!(self, settings => settings.components())
    }

    /// The first thing that is wrong with the settings on a problem with this number of clients, such as a cohort of
    /// more clients than there are; `None` if nothing is. What is wrong on every problem, [`Self::check`] finds.
    pub fn check_for(&self, clients: usize) -> Option<Fault> {
        let components = self.components();
        components.iter().find_map(|run| run.terms.check_for(clients).into_iter().next())
    }

    /// What is wrong with the settings for clients with these shares, N numbers; `None` if nothing is, as where shares are
    /// equal, for which no argument stands.
    pub fn check_for_shares(&self, shares: Option<&[f64]>) -> Option<Fault> {
        let shares = shares?;
        let components = self.components();
        components.iter().find_map(|run| run.terms.check_for_shares(shares).into_iter().next())
    }

    /// A run of the algorithm, before its first round. Of a custom algorithm without code
    /// ([`Self::kind_without_code`]) it stays at θ_0, and [`Run::failure`] says why.
    pub fn launch<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p> {
        let run = match self {
            Self::Custom(settings) => settings.start(problem, from),
            _ => combination(self.components(), problem, from),
        };
        self.average().wrap(run, from.rounds)
    }

    /// Its rounds as a program, or why they are none: written from the terms of a built-in algorithm, traced from the
    /// code of any other, in a run from these conditions.
    pub fn program<P: Problem>(&self, problem: &P, from: &Conditions) -> Traced {
        match self {
            Self::Custom(settings) => settings.program(problem, from),
            _ => {
                let size = ProblemSize { clients: problem.clients(), dimension: problem.dim() };
                constant_rounds(&self.on_instance(problem).components(), size)
            }
        }
    }

    /// The kind of a custom algorithm that is known from results alone: there is no code for it, so that it cannot be
    /// run. `None` for every algorithm that can.
    pub fn kind_without_code(&self) -> Option<&str> {
        match self {
            Self::Custom(settings) if settings.algorithm.start.is_none() => Some(settings.kind()),
            _ => None,
        }
    }

    /// What a round costs on average, among this number of clients; under a coin a round that ends with a
    /// communication. Each oracle call counts as one gradient, whatever the batch of the problem is.
    pub fn round_price(&self, clients: u64) -> RoundPrice {
        rounds::round_price(&self.components(), clients as usize)
    }

    /// Whether it is made of several runs, and all of them have the same draws, so that it uses fewer draws than
    /// gradients.
    pub fn shares_draws(&self) -> bool {
        rounds::share_draws(&self.components())
    }

    /// Whether it is not built in.
    pub fn is_custom(&self) -> bool {
        matches!(self, Self::Custom(_))
    }

    /// Whether the estimate is the mean of the iterates (Polyak-Ruppert averaging), and after which part of the rounds.
    pub fn average(&self) -> Average {
        self.common().average
    }

    /// Whether its runs tell the state of their clients ([`Run::clients`]), on which some metrics are measured.
    pub fn tells_clients(&self) -> bool {
        self.single_run().is_some()
    }

    /// Whether its runs tell the control variates of their clients, on which some metrics are measured.
    pub fn tells_variates(&self) -> bool {
        self.single_run().is_some_and(|terms| terms.variates != Variates::None)
    }

    /// The terms of an algorithm that is one run of the engine and nothing else; `None` if it is custom, averaged or
    /// made of several runs. Only replicates of such a run can go together ([`Instance::launch_together`]).
    fn single_run(&self) -> Option<Terms> {
        if self.is_custom() || self.average() != Average::None {
            return None;
        }
        let mut components = self.components();
        if components.len() == 1 { components.pop().map(|run| run.terms) } else { None }
    }
}

#[cfg(test)]
mod tests;
