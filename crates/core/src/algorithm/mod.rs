//! Algorithms: settings of the one engine, and wrappers around runs.
//!
//! FedLSA is FedAvg on a linear field and SCAFFLSA is Scaffold on one: one
//! file each, two names.
//!
//! *Invariant*: an algorithm knows the engine and the problem's oracle; of a
//! problem's facts it uses none, so that theory can judge it.

mod averaged;
pub mod fedavg;
pub mod fedlin;
pub mod fedprox;
pub mod minibatch_sgd;
pub mod richardson_romberg;
pub mod scaffnew;
pub mod scaffold;

use crate::federated::{Conditions, Federated, Run, Schedule, Terms};
use crate::problem::{Facts, Fault, Faults, Problem};
pub use averaged::{Average, Averaged};
use richardson_romberg::Combined;
use schemars::JsonSchema;
use serde::de::{DeserializeSeed, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

/// A run of the engine whose estimate enters an algorithm's with a weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Weight of the run; weights sum to one.
    pub weight: f64,
    /// What the run does.
    pub terms: Terms,
    /// 0, or the number of the copy whose noise is its own.
    pub copy: u8,
}

impl Component {
    /// An algorithm that is one run.
    pub fn one(terms: Terms) -> Self {
        Self { weight: 1.0, terms, copy: 0 }
    }
}

/// Settings that describe an algorithm.
pub trait Settings {
    /// Polyak-Ruppert averaging, if any.
    fn average(&self) -> Average;
    /// The name of the curve in figures, if the manifest gives one.
    fn label(&self) -> Option<&str>;
    /// The runs of the engine that the estimate is a combination of.
    fn components(&self) -> Vec<Component>;

    /// What is wrong with the settings beyond the terms that they make.
    fn faults(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// γ and H of the first run.
    fn scale(&self) -> (f64, u64) {
        let first = self.components().remove(0);
        (first.terms.step_size, first.terms.most_steps())
    }

    /// All that is wrong with the settings themselves.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults(self.faults());
        if faults.0.is_empty() {
            for fault in self.components().iter().flat_map(|c| c.terms.check()) {
                if !faults.0.contains(&fault) && faults.0.iter().all(|f| f.key != fault.key) {
                    faults.0.push(fault);
                }
            }
        }
        if let Average::BurnIn(share) = self.average() {
            faults.require((0.0..1.0).contains(&share), "average.burn-in", || {
                format!("must be a share of the rounds in [0, 1), not {share}")
            });
        }
        faults.0
    }

    /// The algorithm before averaging, on its way.
    fn start<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p> {
        combination(self.components(), problem, from)
    }
}

/// The combination of these runs on a problem, on its way.
fn combination<'p, P: Problem>(
    components: Vec<Component>,
    problem: &'p P,
    from: &Conditions,
) -> Box<dyn Run + 'p> {
    let steps = |c: &Component| (c.terms.local_steps.clone(), c.terms.batches.clone());
    let same = components.iter().all(|c| c.copy == components[0].copy);
    let coin = matches!(components[0].terms.schedule, Schedule::Bernoulli { .. });
    let follow = same && !coin && components.iter().any(|c| steps(c) != steps(&components[0]));
    let mut runs: Vec<(f64, Box<dyn Run + 'p>)> = Vec::with_capacity(components.len());
    for Component { weight, terms, copy } in components {
        let from = Conditions { copy: from.copy + copy, ..*from };
        runs.push((weight, Box::new(Federated::new(problem, terms, &from))));
    }
    if runs.len() == 1 { runs.remove(0).1 } else { Box::new(Combined::new(runs, follow)) }
}

/// Examples for the documentation.
const EXAMPLE_STEPS: [u64; 3] = [1, 2, 5];
const EXAMPLE_BATCHES: [u64; 2] = [1, 4];

/// E_k or B_k from the one number of all clients or the list; 1 without either.
fn work(all: Option<u64>, each: &[u64]) -> Vec<u64> {
    if each.is_empty() { vec![all.unwrap_or(1)] } else { each.to_vec() }
}

/// Exactly one of `local-steps` and `steps-per-client` must be written.
fn one_kind_of_work(all: Option<u64>, each: &[u64]) -> Vec<Fault> {
    match (all, each.is_empty()) {
        (None, true) => {
            vec![Fault::new("local-steps", "is needed: how many local steps has a round?")]
        }
        (Some(_), false) => {
            vec![Fault::new("steps-per-client", "stands beside `local-steps`: write one of them")]
        }
        _ => Vec::new(),
    }
}

/// γ_g where a manifest says nothing: the server goes all the way.
fn whole_step() -> f64 {
    1.0
}

/// Whether γ_g is what it is where a manifest says nothing.
fn is_whole_step(step: &f64) -> bool {
    *step == whole_step()
}

/// Whether batches are what they are where a manifest says nothing: one call a step.
fn are_single(batches: &[u64]) -> bool {
    batches.is_empty() || batches == [1]
}

/// Whether a setting is what it is where nothing is written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The registry: a new algorithm is its file and a line below, or two where it
/// has another name on a linear field.
macro_rules! algorithms {
    ($($variant:ident($field:ident, $kind:literal, $name:literal, $settings:ty $(, linear name of $other:literal)?),)*) => {
        /// An algorithm as a manifest describes it: one `[[algorithm.<kind>]]`.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub enum Spec {
            $(#[doc = concat!("`[[algorithm.", $kind, "]]`")] #[serde(rename = $kind)] $variant($settings),)*
        }

        /// All algorithms of a manifest, by kind: `[[algorithm.<kind>]]`.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Table {
            $(#[doc = concat!("Runs of ", $name, ".")] #[serde(rename = $kind)] $field: Vec<$settings>,)*
        }

        impl Table {
            /// Every entry, with its kind and its place among those of the kind.
            pub fn entries(&self) -> Vec<(&'static str, usize, Spec)> {
                let mut all = Vec::new();
                $(for (i, settings) in self.$field.iter().enumerate() {
                    all.push(($kind, i, Spec::$variant(settings.clone())));
                })*
                all
            }
        }

        /// Reads the settings of one algorithm of this kind.
        #[derive(Clone, Copy, Debug)]
        pub struct OfKind<'a>(pub &'a str);

        impl<'de> DeserializeSeed<'de> for OfKind<'_> {
            type Value = Spec;

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Spec, D::Error> {
                match self.0 {
                    $($kind => <$settings>::deserialize(from).map(Spec::$variant),)*
                    other => Err(D::Error::unknown_variant(other, Spec::KINDS)),
                }
            }
        }

        impl Spec {
            /// The kinds of all algorithms.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// The other name of an algorithm whose own means it on a linear
            /// field; `None` for one that has a single name.
            pub fn linear_name_of(&self) -> Option<&'static str> {
                match self { $(Self::$variant(_) => [$($other)?].first().copied(),)* }
            }

            /// The name of the algorithm's kind in a manifest.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// The name of its curve: the label, or the algorithm's own name.
            pub fn label(&self) -> &str {
                match self { $(Self::$variant(settings) => settings.label().unwrap_or($name),)* }
            }

            /// γ and H as the manifest gives them.
            pub fn scale(&self) -> (f64, u64) {
                match self { $(Self::$variant(settings) => settings.scale(),)* }
            }

            /// All that is wrong with the settings themselves.
            pub fn check(&self) -> Vec<Fault> {
                match self { $(Self::$variant(settings) => settings.check(),)* }
            }

            /// The runs of the engine that the estimate is a combination of.
            pub fn components(&self) -> Vec<Component> {
                match self { $(Self::$variant(settings) => settings.components(),)* }
            }

            /// Polyak-Ruppert averaging, if any.
            pub fn average(&self) -> Average {
                match self { $(Self::$variant(settings) => settings.average(),)* }
            }

            /// The algorithm, on its way.
            pub fn launch<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p> {
                let run = match self { $(Self::$variant(settings) => settings.start(problem, from),)* };
                self.average().wrap(run, from.rounds)
            }
        }
    };
}

algorithms! {
    FedAvg(fedavg, "fedavg", "FedAvg", fedavg::Settings),
    FedLsa(fedlsa, "fedlsa", "FedLSA", fedavg::Settings, linear name of "fedavg"),
    Scaffold(scaffold, "scaffold", "Scaffold", scaffold::Settings),
    Scafflsa(scafflsa, "scafflsa", "SCAFFLSA", scaffold::Settings, linear name of "scaffold"),
    RichardsonRomberg(richardson_romberg, "richardson-romberg", "Richardson-Romberg", richardson_romberg::Settings),
    MinibatchSgd(minibatch_sgd, "minibatch-sgd", "mini-batch SGD", minibatch_sgd::Settings),
    CentralisedLsa(centralised_lsa, "centralised-lsa", "centralised LSA", minibatch_sgd::Settings, linear name of "minibatch-sgd"),
    FedProx(fedprox, "fedprox", "FedProx", fedprox::Settings),
    FedLin(fedlin, "fedlin", "FedLin", fedlin::Settings),
    Scaffnew(scaffnew, "scaffnew", "Scaffnew", scaffnew::Settings),
}

/// A problem that algorithms can be launched on, its type forgotten.
pub trait Instance: Facts {
    /// The algorithm on this problem, on its way.
    fn launch<'p>(&'p self, spec: &Spec, from: &Conditions) -> Box<dyn Run + 'p>;
}

impl<P: Problem> Instance for P {
    fn launch<'p>(&'p self, spec: &Spec, from: &Conditions) -> Box<dyn Run + 'p> {
        spec.launch(self, from)
    }
}

/// Makes an [`Instance`] of whatever problem it visits.
pub struct Boxed;

impl crate::problem::Visitor for Boxed {
    type Out = Box<dyn Instance>;
    fn visit<P: Problem + 'static>(self, problem: P) -> Self::Out {
        Box::new(problem)
    }
}

#[cfg(test)]
mod tests;
