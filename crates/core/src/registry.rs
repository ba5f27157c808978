//! What programs outside of this crate add to manifests: custom algorithms, problems and metrics.

use crate::algorithm::custom::{CustomAlgorithm, CustomDefinition, StartCustom};
use crate::algorithm::{self, Boxed};
use crate::custom_metric::{CustomMetric, CustomMetricDefinition, MeasureCustom};
use crate::definition::{Definition, DefinitionError};
use crate::problem;
pub use crate::problem::custom::ProblemKind;
use crate::problem::custom::{BuildInstance, CustomProblem};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Custom algorithms, problems and metrics, which manifests may name in addition to the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The custom algorithms, by kind.
    pub algorithms: BTreeMap<String, Arc<CustomAlgorithm>>,
    /// The custom problems, by kind.
    pub problems: BTreeMap<String, Arc<CustomProblem>>,
    /// The custom metrics, by name.
    pub metrics: BTreeMap<String, Arc<CustomMetric>>,
}

impl Registry {
    /// Adds a custom algorithm: what is known of it without running it, and the code that starts its runs. It replaces
    /// one that was registered under the same kind; the kind of a built-in algorithm is refused.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn add_algorithm(
        &mut self,
        known: impl Into<CustomDefinition>,
        start: impl StartCustom + 'static,
    ) -> Result<(), DefinitionError> {
        let known = known.into();
        let start = Arc::new(start) as Arc<dyn StartCustom>;
        known.definition.check(algorithm::Spec::KINDS)?;
        let kind = known.definition.kind.clone();
        self.algorithms.insert(kind, Arc::new(CustomAlgorithm { known, start: Some(start) }));
        Ok(())
    }

    /// Adds a custom problem: its definition, and the code that builds its instances. It replaces one that was
    /// registered under the same kind; the kind of a built-in problem is refused.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn add_problem(
        &mut self,
        definition: Definition,
        kind: impl ProblemKind + 'static,
    ) -> Result<(), DefinitionError> {
        definition.check(problem::Spec::KINDS)?;
        let name = definition.kind.clone();
        let kind = Arc::new(kind);
        let builder = kind.clone();
        // The registry does not know the type of the instances: `Boxed` makes an `algorithm::Instance` of each.
        let build: Box<BuildInstance> = Box::new(move |values, seed, files, form| {
            Ok(Box::new(form.visit(builder.build(values, seed, files)?, Boxed)?))
        });
        self.problems.insert(name, Arc::new(CustomProblem { definition, kind, build }));
        Ok(())
    }

    /// Adds a custom metric: what is known of it, and its code. It replaces one that was registered under the same
    /// name; the names `taken` are refused.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn add_metric(
        &mut self,
        known: CustomMetricDefinition,
        code: impl MeasureCustom + 'static,
        taken: &[&str],
    ) -> Result<(), DefinitionError> {
        known.definition.check(taken)?;
        let name = known.definition.kind.clone();
        let code = Some(Arc::new(code) as Arc<dyn MeasureCustom>);
        self.metrics.insert(name, Arc::new(CustomMetric { known, code }));
        Ok(())
    }

    /// Adds the custom metrics of stored results, of which only the definitions are known, as [`Self::define`] does for
    /// algorithms.
    pub fn define_metrics(&mut self, definitions: &[CustomMetricDefinition]) {
        for known in definitions {
            let name = &known.definition.kind;
            if self.metrics.get(name).is_none_or(|other| other.known != *known) {
                let metric = CustomMetric { known: known.clone(), code: None };
                self.metrics.insert(name.clone(), Arc::new(metric));
            }
        }
    }

    /// Adds the custom algorithms of stored results, of which only the definitions are known, so that they cannot be
    /// run. An algorithm that is registered with the same definition stays, with its code. One of the same kind with
    /// another definition is replaced, since its runs would differ from the stored ones.
    pub fn define(&mut self, definitions: &[CustomDefinition]) {
        for known in definitions {
            let kind = &known.definition.kind;
            if self.algorithms.get(kind).is_none_or(|other| other.known != *known) {
                let algorithm = CustomAlgorithm { known: known.clone(), start: None };
                self.algorithms.insert(kind.clone(), Arc::new(algorithm));
            }
        }
    }
}
