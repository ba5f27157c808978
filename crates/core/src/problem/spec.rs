//! The registry of problems, and what a manifest says of one.

use super::arrays::Files;
use super::fault::Fault;
use super::form::{OracleForm, Visitor};
use super::settings::Settings;
use super::{
    atoms, custom, drawn_quadratic, garnet, least_squares, lms, logistic, mdp, quadratic, softmax,
};
use crate::definition::Definition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// Makes the enum [`Spec`] of all built-in problems, each given by its variant, its kind in manifests and the
/// type of its settings. To add a problem, add its file and a line in the call below.
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
            /// The kinds of all problems.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// The name of the problem's kind in a manifest.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Custom(settings) => settings.kind(),
                }
            }

            /// The definition of a problem that is defined outside of this crate; `None` of a built-in one.
            pub fn definition(&self) -> Option<&Definition> {
                match self {
                    Self::Custom(settings) => Some(&settings.problem.definition),
                    _ => None,
                }
            }

            /// Builds the instance in this form of its oracle, and calls the visitor with it, to whom its type
            /// is known. A penalty that is a multiple of the smoothness of the losses becomes a number before.
            ///
            /// # Errors
            /// A [`Fault`] if the instance has no unique solution, or a file does not hold what it should.
            pub fn build<V: Visitor>(
                &self,
                seed: u64,
                files: &dyn Files,
                form: OracleForm,
                visitor: V,
            ) -> Result<V::Out, Fault> {
                if let Some(spec) = self.with_number_as_penalty(seed, files)? {
                    return spec.build(seed, files, form, visitor);
                }
                match self {
                    $(Self::$variant(settings) => settings.visit(seed, files, form, visitor),)*
                    Self::Custom(settings) => settings.visit(seed, files, form, visitor),
                }
            }
        }

        /// What settings say of a problem can be asked of the problem as a manifest describes it.
        impl Deref for Spec {
            type Target = dyn Settings;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$variant(settings) => settings,)*
                    Self::Custom(settings) => settings,
                }
            }
        }

        /// Mutable, as the files of settings are, which get their hashes.
        impl DerefMut for Spec {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $(Self::$variant(settings) => settings,)*
                    Self::Custom(settings) => settings,
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
    DrawnQuadratic("drawn-quadratic", drawn_quadratic::Settings),
    Lms("lms", lms::Settings),
    Logistic("logistic", logistic::Settings),
    LogisticDataset("logistic-dataset", logistic::dataset::Settings),
    SparseLogistic("sparse-logistic", logistic::generated::Settings),
    LeastSquaresDataset("least-squares-dataset", least_squares::Settings),
    SoftmaxDataset("softmax-dataset", softmax::dataset::Settings),
    Synthetic("synthetic", softmax::synthetic::Settings),
}
