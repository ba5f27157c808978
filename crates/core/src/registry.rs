//! What programs outside of this crate add to manifests: custom algorithms and custom problems.

use crate::algorithm::custom::{CustomAlgorithm, CustomDefinition, StartCustom};
use crate::algorithm::{self, Boxed};
use crate::definition::{Definition, DefinitionError};
use crate::problem;
pub use crate::problem::custom::ProblemKind;
use crate::problem::custom::{BuildInstance, CustomProblem};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Custom algorithms and problems, which manifests may name in addition to the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The custom algorithms, by kind.
    pub algorithms: BTreeMap<String, Arc<CustomAlgorithm>>,
    /// The custom problems, by kind.
    pub problems: BTreeMap<String, Arc<CustomProblem>>,
}

impl Registry {
    /// Adds a custom algorithm, in place of another of its kind.
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

    /// Adds a custom problem, in place of another of its kind.
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
        let own = kind.clone();
        let build: Box<BuildInstance> = Box::new(move |values, seed, files, form| {
            Ok(Box::new(form.visit(own.build(values, seed, files)?, Boxed)?))
        });
        self.problems.insert(name, Arc::new(CustomProblem { definition, kind, build }));
        Ok(())
    }

    /// Adds custom algorithms whose definitions alone are known. An algorithm that is registered with the same
    /// definition stays. One with another definition is replaced, since its runs would differ from
    /// the runs of this definition.
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
