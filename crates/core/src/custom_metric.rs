//! Custom metrics, which are defined outside of this crate: a number that a function gives of a run at a recorded round.

use crate::definition::Definition;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What is known of a custom metric without its code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CustomMetricDefinition {
    /// The names, the version and the source code of the metric. Its kind is its name in manifests; it has no keys.
    #[serde(flatten)]
    pub definition: Definition,
    /// Whether it reads where the clients end, so that only runs that tell have it.
    #[serde(default)]
    pub reads_clients: bool,
}

/// The code of a custom metric.
pub trait MeasureCustom: Send + Sync {
    /// The value at θ, d numbers. `ends` has N rows of d numbers, where the clients end, if the metric reads them.
    ///
    /// # Errors
    /// Why there is no value, such as the traceback of an exception: the run then fails.
    fn value(&self, theta: &[f64], ends: Option<&[f64]>) -> Result<f64, String>;
}

/// A custom metric that manifests may list.
#[derive(Clone)]
pub struct CustomMetric {
    /// What is known of it without its code.
    pub known: CustomMetricDefinition,
    /// Its code; `None` if it is known from stored results alone, so that it cannot be measured.
    pub code: Option<Arc<dyn MeasureCustom>>,
}

impl CustomMetric {
    /// The value at θ, as [`MeasureCustom::value`] gives it.
    ///
    /// # Errors
    /// Why there is no value; also that the code is not known.
    pub fn value(&self, theta: &[f64], ends: Option<&[f64]>) -> Result<f64, String> {
        let name = &self.known.definition.kind;
        match &self.code {
            Some(code) => {
                code.value(theta, ends).map_err(|why| format!("the metric {name}: {why}"))
            }
            None => Err(format!(
                "the code of the metric {name} is not known: name its file in `python`"
            )),
        }
    }
}

impl fmt::Debug for CustomMetric {
    /// Writes what is known of the metric, and in place of its code whether there is some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomMetric")
            .field("known", &self.known)
            .field("can_be_measured", &self.code.is_some())
            .finish()
    }
}

impl PartialEq for CustomMetric {
    /// Whether definitions, which have a hash of the source, are equal. The code itself is not compared.
    fn eq(&self, other: &Self) -> bool {
        self.known == other.known
    }
}
