//! Problems that are defined outside of this crate.

use super::arrays::Files;
use super::exact::Exact;
use super::fault::Fault;
use super::form::{OracleForm, Visitor};
use super::oracle::Problem;
use super::settings::{RecordMetrics, Settings};
use super::size::InstanceSize;
use crate::definition::{Definition, KeyValues, SettingValue};
use serde::{Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A kind of problems that is registered by a program of a user, in Rust or through Python.
pub trait ProblemKind: Send + Sync {
    /// The type of the instances.
    type Instance: Problem + 'static
    where
        Self: Sized;
    /// Whether every F_c is affine in θ.
    fn linear(&self, values: &KeyValues) -> bool;
    /// N and d, for estimates of memory and time.
    fn size(&self, values: &KeyValues) -> (usize, usize);
    /// Whether θ* is known, or can be found; it is by default. If it is not, manifests need not leave it out
    /// (`record.optimum = false`): they are read as if they did.
    fn has_optimum(&self, _values: &KeyValues) -> bool {
        true
    }
    /// Whether an instance depends on the seed; it does by default.
    fn uses_seed(&self) -> bool {
        true
    }
    /// Whether instances state the loss of each client ([`Facts::client_losses`](super::Facts::client_losses)), which
    /// metrics of training losses record; not by default.
    fn has_loss(&self, _values: &KeyValues) -> bool {
        false
    }
    /// Whether clients hold records, whose number says how long an epoch is
    /// ([`Facts::calls_of_epoch`](super::Facts::calls_of_epoch)); not by default.
    fn has_records(&self, _values: &KeyValues) -> bool {
        false
    }
    /// The size of an instance with what takes memory: by default a d × d matrix for each client.
    fn extent(&self, values: &KeyValues) -> InstanceSize {
        let (clients, dimension) = self.size(values);
        InstanceSize::of_matrices(clients, dimension)
    }
    /// Everything that is wrong with the values of the keys; nothing by default.
    fn check(&self, _values: &KeyValues) -> Vec<Fault> {
        Vec::new()
    }
    /// Builds an instance from the values of the keys, the seed and files. Keys that a manifest leaves out have their
    /// defaults, and [`Self::check`] has found nothing wrong.
    ///
    /// # Errors
    /// A [`Fault`] if the instance has no unique solution.
    fn build(
        &self,
        values: &KeyValues,
        seed: u64,
        files: &dyn Files,
    ) -> Result<Self::Instance, Fault>
    where
        Self: Sized;
}

/// Builds an instance from the values of the keys, the seed and files, with this form of its oracle. Its
/// type is erased: it is what [`super::Visitor::visit_custom`] takes, a boxed instance of the module
/// `algorithm`, which this module does not know.
pub type BuildInstance =
    dyn Fn(&KeyValues, u64, &dyn Files, OracleForm) -> Result<Box<dyn Any>, Fault> + Send + Sync;

/// A problem that manifests may name.
pub struct CustomProblem {
    /// Its names, keys, version and source.
    pub definition: Definition,
    /// What is known of its instances before they are built.
    pub kind: Arc<dyn ProblemKind>,
    /// Builds an instance of it.
    pub build: Box<BuildInstance>,
}

impl fmt::Debug for CustomProblem {
    /// Writes the definition alone; functions have no text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomProblem")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

/// The values of the keys of a table `[problem.<kind>]` whose kind is registered, and the problem.
#[derive(Clone, Debug)]
pub struct CustomProblemSettings {
    /// The problem that was registered.
    pub problem: Arc<CustomProblem>,
    /// The values of its keys.
    pub values: KeyValues,
}

/// Settings are equal if they give the same definition the same values: the functions of a problem follow
/// from its definition.
impl PartialEq for CustomProblemSettings {
    fn eq(&self, other: &Self) -> bool {
        (&self.problem.definition, &self.values) == (&other.problem.definition, &other.values)
    }
}

impl CustomProblemSettings {
    /// The name of its kind in a manifest.
    pub fn kind(&self) -> &str {
        &self.problem.definition.kind
    }

    /// Whether nothing is wrong with the values. Only then the kind is asked what they give: its answers may need an
    /// instance, which wrong values do not have.
    fn is_sound(&self) -> bool {
        self.check().is_empty()
    }
}

impl Settings for CustomProblemSettings {
    /// Stands for the type of the instances, which only their builder knows: no instance has it.
    type Instance = Exact;

    /// Reports the numbers that are not finite or, if there are none, what the kind itself finds wrong.
    fn check(&self) -> Vec<Fault> {
        let mut faults = not_finite(&self.values);
        if faults.is_empty() {
            faults = self.problem.kind.check(&self.values);
        }
        faults
    }

    fn linear(&self) -> bool {
        self.is_sound() && self.problem.kind.linear(&self.values)
    }

    /// Whether the kind knows θ*. Where the settings are wrong, it is said to, so that nothing else is reported.
    fn has_optimum(&self) -> bool {
        !self.is_sound() || self.problem.kind.has_optimum(&self.values)
    }

    fn uses_seed(&self) -> bool {
        self.problem.kind.uses_seed()
    }

    fn record_metrics(&self) -> RecordMetrics {
        // Where the settings are wrong, nothing else is to be reported.
        let loss = !self.is_sound() || self.problem.kind.has_loss(&self.values);
        RecordMetrics { loss, ..RecordMetrics::default() }
    }

    fn has_epochs(&self) -> bool {
        self.is_sound() && self.problem.kind.has_records(&self.values)
    }

    /// The size that the kind states; `None` where the settings are wrong.
    fn extent(&self) -> Option<InstanceSize> {
        self.is_sound().then(|| self.problem.kind.extent(&self.values))
    }

    /// Always fails: instances are built by `visit`, since their type is not known here. The key of the fault is empty,
    /// as it is of the whole table.
    fn build(&self, _seed: u64, _files: &dyn Files) -> Result<Exact, Fault> {
        Err(Fault::new("", "this is for built-in problems alone"))
    }

    /// Builds the instance in this form and calls the visitor with it.
    ///
    /// # Errors
    /// A fault of the builder, or of a visitor that takes built-in problems alone.
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        let built = (self.problem.build)(&self.values, seed, files, form)?;
        let visited = visitor.visit_custom(built);
        visited.ok_or_else(|| Fault::new("", "this is for built-in problems alone"))
    }
}

/// A fault for each number among the values that is not finite, under the name of its key. Whole numbers, flags and
/// texts need no check; custom algorithms are checked by it too.
pub fn not_finite(values: &KeyValues) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (key, value) in values.iter() {
        if let SettingValue::Number(x) = value
            && !x.is_finite()
        {
            let message = format!("must be a finite number, not {x}");
            faults.push(Fault::new(key.to_owned(), message));
        }
    }
    faults
}

/// Settings are serialised as a built-in problem's are, as a table with the kind as its only key. The ids of
/// cells hash this text, and so it has the version and the source of the kind too.
impl Serialize for CustomProblemSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([(self.kind(), self.problem.definition.canonical(None, &self.values))])
    }
}
