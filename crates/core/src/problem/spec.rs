//! The registry of problems, and what a manifest says of one.

use super::arrays::{DataFile, Files};
use super::{
    Extent, Fault, Form, RecordMetrics, Settings, Visitor, atoms, custom, garnet, least_squares,
    lms, logistic, mdp, quadratic, softmax,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The registry: to add a problem, add its file and a line below.
macro_rules! problems {
    ($($variant:ident($kind:literal, $settings:ty),)*) => {
        /// A problem as a manifest describes it: `[problem.<kind>]`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Spec {
            $(#[doc = concat!("`[problem.", $kind, "]`")] #[serde(rename = $kind)] $variant($settings),)*
            /// A problem that is defined outside of this crate, which is read by its definition.
            #[serde(untagged, skip_deserializing)]
            #[schemars(skip, !untagged)]
            Custom(custom::CustomProblemSettings),
        }

        impl Spec {
            /// The name of the problem's kind in a manifest.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Custom(settings) => settings.kind(),
                }
            }

            /// Everything that is wrong with the settings themselves.
            pub fn check(&self) -> Vec<Fault> {
                match self {
                    $(Self::$variant(settings) => settings.check(),)*
                    Self::Custom(settings) => settings.check(),
                }
            }

            /// The kinds of all problems.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// Whether the instance depends on the seed.
            pub fn uses_seed(&self) -> bool {
                match self {
                    $(Self::$variant(settings) => settings.uses_seed(),)*
                    Self::Custom(_) => true,
                }
            }

            /// Whether every F_c is affine in θ.
            pub fn linear(&self) -> bool {
                match self {
                    $(Self::$variant(settings) => settings.linear(),)*
                    Self::Custom(settings) => settings.problem.linear,
                }
            }

            /// Which metrics of records the instance has.
            pub fn record_metrics(&self) -> RecordMetrics {
                match self {
                    $(Self::$variant(settings) => settings.record_metrics(),)*
                    Self::Custom(_) => RecordMetrics::default(),
                }
            }

            /// The oracle evaluations of one oracle call with noise.
            pub fn batch(&self) -> u64 {
                match self {
                    $(Self::$variant(settings) => settings.batch(),)*
                    Self::Custom(_) => 1,
                }
            }

            /// The size of the instance; `None` if it depends on a file.
            pub fn extent(&self) -> Option<Extent> {
                match self {
                    $(Self::$variant(settings) => settings.extent(),)*
                    Self::Custom(settings) => settings.problem.build.extent(&settings.values),
                }
            }

            /// The files that the settings name, by key.
            pub fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
                match self {
                    $(Self::$variant(settings) => settings.files(),)*
                    Self::Custom(_) => Vec::new(),
                }
            }

            /// Builds the instance and calls the visitor with it.
            ///
            /// # Errors
            /// A [`Fault`] if the instance has no unique solution, a file does not hold what it
            /// should, or the form does not exist.
            pub fn build<V: Visitor>(
                &self,
                seed: u64,
                files: &dyn Files,
                form: Form,
                visitor: V,
            ) -> Result<V::Out, Fault> {
                match self {
                    $(Self::$variant(settings) => settings.visit(seed, files, form, visitor),)*
                    Self::Custom(custom::CustomProblemSettings { problem, values }) => {
                        let built = problem.build.build(values, seed, files, form)?;
                        let visited = visitor.visit_custom(built);
                        visited.ok_or_else(|| Fault::new("", "this is for built-in problems alone"))
                    }
                }
            }
        }
    };
}

problems! {
    Garnet("garnet", garnet::Settings),
    Mdp("mdp", mdp::Settings),
    Atoms("atoms", atoms::Settings),
    Quadratic("quadratic", quadratic::Settings),
    Lms("lms", lms::Settings),
    Logistic("logistic", logistic::Settings),
    LogisticDataset("logistic-dataset", logistic::dataset::Settings),
    SparseLogistic("sparse-logistic", logistic::generated::Settings),
    LeastSquaresDataset("least-squares-dataset", least_squares::Settings),
    SoftmaxDataset("softmax-dataset", softmax::dataset::Settings),
    Synthetic("synthetic", softmax::synthetic::Settings),
}
