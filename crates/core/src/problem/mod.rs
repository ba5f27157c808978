//! Problems: the clients' stochastic oracles, and exact facts about them.
//!
//! A problem has two interfaces. Its [`Facts`] are exact and object-safe: the optimum, mean
//! fields, Jacobians, noise covariances. Its oracle ([`Problem`]) is fast and generic.
//! Theory uses the facts alone, the engine the oracle alone.
//!
//! *Invariant*: this module does no I/O and reads no clock and no environment; an instance
//! is a function of its settings, its files' contents and the seed.

mod affine;
pub mod arrays;
pub mod atoms;
mod chain;
pub mod check;
pub mod column;
mod constants;
mod cost;
pub mod custom;
pub mod dataset;
mod defaults;
pub mod drawn_quadratic;
mod exact;
mod facts;
mod fault;
mod form;
pub mod function;
pub mod garnet;
mod groups;
mod lazy;
pub mod least_squares;
pub mod lms;
pub mod logistic;
pub mod mdp;
mod minimise;
mod optimum_set;
mod oracle;
mod penalty;
mod penalty_number;
mod probabilities;
pub mod quadratic;
mod records;
pub mod settings;
mod size;
pub mod softmax;
mod spec;
pub mod spectrum;
pub mod td;
mod twin;

pub use crate::kernel::Draws;
pub use chain::{Move, Trajectory};
pub use constants::{Constant, ProblemConstants};
pub use cost::{ProblemCost, RecordCost, RecordsCost, vector_operations};
pub(crate) use defaults::{is_default, is_unit, unit};
pub use exact::Exact;
pub use facts::{DrawSmoothness, Facts, RecordField, RecordPass, RecordsOf, by_distribution};
pub use fault::{Fault, Faults, MOST_DIMENSIONS, MOST_SPARSE_FEATURES};
pub use form::{OracleForm, Visitor};
pub use groups::group_clients;
pub use minimise::{MOST_REFINED, Minimiser, OptimumSearch};
pub use optimum_set::OptimumSet;
pub use oracle::{JointGain, Problem, RecordSizes, mean_of_calls};
pub use penalty::{Penalty, PenaltyMultiple};
pub use records::{InstanceInputs, RecordProblem, Reshuffled, Sampling};
pub use settings::{OnRecords, RecordMetrics, Settings};
pub use size::{InstanceSize, MemoryPart};
pub use spec::Spec;
pub use twin::Twin;
