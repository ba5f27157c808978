//! What programs outside of this crate add to manifests: algorithms and problems of their own.

use crate::algorithm::custom::{CustomAlgorithm, CustomDefinition, StartCustom};
use crate::algorithm::{self, Boxed};
use crate::definition::{Definition, KeyValues};
use crate::problem::arrays::Files;
use crate::problem::custom::{BuildCustom, CustomProblem};
use crate::problem::{self, Fault, InstanceSize, OracleForm, Problem};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Algorithms and problems that manifests may name beside the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The algorithms, by kind.
    pub algorithms: BTreeMap<String, Arc<CustomAlgorithm>>,
    /// The problems, by kind.
    pub problems: BTreeMap<String, Arc<CustomProblem>>,
}

/// A kind of problems that is registered.
pub trait ProblemKind: Send + Sync {
    /// The type of the instances.
    type Instance: Problem + 'static;
    /// Whether every F_c is affine in θ.
    fn linear(&self) -> bool;
    /// N and d, for estimates of memory and time.
    fn size(&self, values: &KeyValues) -> (usize, usize);
    /// Everything that is wrong with the values of the keys.
    fn check(&self, _values: &KeyValues) -> Vec<Fault> {
        Vec::new()
    }
    /// Builds an instance from the values of the keys, the seed and files.
    ///
    /// # Errors
    /// A [`Fault`] if the instance has no unique solution.
    fn build(
        &self,
        values: &KeyValues,
        seed: u64,
        files: &dyn Files,
    ) -> Result<Self::Instance, Fault>;
}

impl Registry {
    /// Adds an algorithm, in place of another of its kind.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn add_algorithm(
        &mut self,
        known: impl Into<CustomDefinition>,
        start: impl StartCustom + 'static,
    ) -> Result<(), String> {
        let (known, start) = (known.into(), Arc::new(start) as Arc<dyn StartCustom>);
        known.definition.check(algorithm::Spec::KINDS)?;
        let kind = known.definition.kind.clone();
        self.algorithms.insert(kind, Arc::new(CustomAlgorithm { known, start: Some(start) }));
        Ok(())
    }

    /// Adds a problem, in place of another of its kind.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn add_problem(
        &mut self,
        definition: Definition,
        kind: impl ProblemKind + 'static,
    ) -> Result<(), String> {
        definition.check(problem::Spec::KINDS)?;
        let (name, linear) = (definition.kind.clone(), kind.linear());
        let problem = CustomProblem { definition, linear, build: Arc::new(kind) };
        self.problems.insert(name, Arc::new(problem));
        Ok(())
    }

    /// Adds algorithms of which only the definitions are known. One that is registered with the
    /// same definition stays; where the definitions differ, it is replaced, since its runs are
    /// not those of the definition.
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

/// A kind, whose type is forgotten.
impl<K: ProblemKind> BuildCustom for K {
    fn check(&self, values: &KeyValues) -> Vec<Fault> {
        ProblemKind::check(self, values)
    }

    fn extent(&self, values: &KeyValues) -> Option<InstanceSize> {
        let (clients, dimension) = self.size(values);
        Some(InstanceSize::of_matrices(clients, dimension))
    }

    fn build(
        &self,
        values: &KeyValues,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
    ) -> Result<Box<dyn Any>, Fault> {
        Ok(Box::new(form.visit(ProblemKind::build(self, values, seed, files)?, Boxed)?))
    }
}
