//! The registry of problems, and what a manifest says of one.

use super::arrays::Files;
use super::{
    Fault, Form, Settings, Visitor, atoms, custom, garnet, least_squares, lms, logistic, mdp,
    quadratic, softmax,
};
use crate::definition::KeysSeed;
use schemars::JsonSchema;
use serde::de::{self, EnumAccess, Error as _, VariantAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The registry: to add a problem, add its file and a line below.
macro_rules! problems {
    ($($variant:ident($kind:literal, $settings:ty),)*) => {
        /// A problem as a manifest describes it: `[problem.<kind>]`.
        #[derive(Clone, Debug, PartialEq, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Spec {
            $(#[doc = concat!("`[problem.", $kind, "]`")] #[serde(rename = $kind)] $variant($settings),)*
            /// A problem that is defined outside of this crate.
            #[schemars(skip)]
            Custom(custom::CustomProblemSettings),
        }

        impl Serialize for Spec {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(settings) => to.serialize_newtype_variant("Spec", 0, $kind, settings),)*
                    Self::Custom(settings) => to.serialize_newtype_variant("Spec", 0, settings.kind(), settings),
                }
            }
        }

        impl<'de> Deserialize<'de> for Spec {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let kinds = custom::KNOWN.with_borrow(|known| known.names_with(Self::KINDS));
                from.deserialize_enum("Spec", kinds, SpecVisitor)
            }
        }

        struct SpecVisitor;

        impl<'de> de::Visitor<'de> for SpecVisitor {
            type Value = Spec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a problem")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Spec, A::Error> {
                let (kind, content) = data.variant::<String>()?;
                match kind.as_str() {
                    $($kind => content.newtype_variant::<$settings>().map(Spec::$variant),)*
                    other => match custom::known(other) {
                        Some(problem) => {
                            let keys = KeysSeed { definition: &problem.definition, local_steps: false };
                            let (_, values) = content.newtype_variant_seed(keys)?;
                            Ok(Spec::Custom(custom::CustomProblemSettings { problem, values }))
                        }
                        None => Err(A::Error::unknown_variant(other, Spec::KINDS)),
                    },
                }
            }
        }

        impl Spec {
            /// The kinds of all problems.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// The name of the problem's kind in a manifest.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Custom(settings) => settings.kind(),
                }
            }

            /// Builds the instance and calls the visitor with it.
            ///
            /// # Errors
            /// As for [`Settings::visit`].
            pub fn build<V: Visitor>(
                &self,
                seed: u64,
                files: &dyn Files,
                form: Form,
                visitor: V,
            ) -> Result<V::Out, Fault> {
                match self {
                    $(Self::$variant(settings) => settings.visit(seed, files, form, visitor),)*
                    Self::Custom(settings) => settings.visit(seed, files, form, visitor),
                }
            }
        }

        /// A problem is described by its settings.
        impl Deref for Spec {
            type Target = dyn Settings;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$variant(settings) => settings,)*
                    Self::Custom(settings) => settings,
                }
            }
        }

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
    Lms("lms", lms::Settings),
    Logistic("logistic", logistic::Settings),
    LogisticDataset("logistic-dataset", logistic::dataset::Settings),
    SparseLogistic("sparse-logistic", logistic::generated::Settings),
    LeastSquaresDataset("least-squares-dataset", least_squares::Settings),
    SoftmaxDataset("softmax-dataset", softmax::dataset::Settings),
    Synthetic("synthetic", softmax::synthetic::Settings),
}
