//! Algorithms: settings of the one engine, and wrappers around runs.
//!
//! FedLSA is FedAvg on a linear field and SCAFFLSA is Scaffold on one: one
//! file each, two names.
//!
//! *Invariant*: an algorithm knows the engine and the problem's oracle; of a
//! problem's facts it uses none, so that theory can judge it.

mod averaged;
pub mod fedavg;
pub mod richardson_romberg;
pub mod scaffold;

use crate::federated::{Conditions, Run};
use crate::problem::{Facts, Fault, Faults, Problem};
pub use averaged::{Average, Averaged};
use serde::{Deserialize, Serialize};

/// An engine run whose limit enters an algorithm's with a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Weight of the run; weights sum to one.
    pub weight: f64,
    /// Whether control variates correct it.
    pub corrected: bool,
    /// γ.
    pub step_size: f64,
    /// H.
    pub local_steps: u64,
}

/// Settings that describe an algorithm.
pub trait Settings {
    /// γ and H as the manifest gives them.
    fn scale(&self) -> (f64, u64);
    /// Polyak-Ruppert averaging, if any.
    fn average(&self) -> Average;
    /// The name of the curve in figures, if the manifest gives one.
    fn label(&self) -> Option<&str>;
    /// The runs of the engine that the estimate is a combination of.
    fn components(&self) -> Vec<Component>;
    /// The algorithm before averaging, on its way.
    fn start<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p>;

    /// All that is wrong with the settings themselves.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let (step_size, local_steps) = self.scale();
        faults.positive("step-size", step_size);
        faults.at_least_one("local-steps", local_steps);
        if let Average::BurnIn(share) = self.average() {
            faults.require((0.0..1.0).contains(&share), "average.burn-in", || {
                format!("must be a share of the rounds in [0, 1), not {share}")
            });
        }
        faults.0
    }
}

/// The registry: a new algorithm is its file and a line (or two names) below.
macro_rules! algorithms {
    ($($variant:ident($field:ident, $kind:literal, $name:literal, $settings:ty),)*) => {
        /// An algorithm as a manifest describes it: one `[[algorithm.<kind>]]`.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub enum Spec {
            $(#[doc = concat!("`[[algorithm.", $kind, "]]`")] #[serde(rename = $kind)] $variant($settings),)*
        }

        /// All algorithms of a manifest, by kind: `[[algorithm.<kind>]]`.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(default)]
        pub struct Table {
            $(#[serde(rename = $kind)] $field: Vec<$settings>,)*
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

        impl Spec {
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

            /// The algorithm, on its way.
            pub fn launch<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p> {
                match self { $(Self::$variant(settings) => {
                    settings.average().wrap(settings.start(problem, from), from.rounds)
                })* }
            }
        }
    };
}

algorithms! {
    FedAvg(fedavg, "fedavg", "FedAvg", fedavg::Settings),
    FedLsa(fedlsa, "fedlsa", "FedLSA", fedavg::Settings),
    Scaffold(scaffold, "scaffold", "Scaffold", scaffold::Settings),
    Scafflsa(scafflsa, "scafflsa", "SCAFFLSA", scaffold::Settings),
    RichardsonRomberg(richardson_romberg, "richardson-romberg", "Richardson-Romberg", richardson_romberg::Settings),
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
