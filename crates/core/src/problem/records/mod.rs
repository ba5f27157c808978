//! Problems whose losses are means over records: f_c(θ) = E ℓ(θ; record) + λ/2 ‖θ‖² over the
//! records that client c holds. The oracle draws a batch of records with replacement, or passes over
//! the records in an order that is shuffled for every epoch ([`Reshuffled`]).
//!
//! A loss depends on θ through the products of a record x with K rows of θ (K is 1 but for
//! softmax regression). So a problem is a pair: a [`RecordLoss`] is a function of the products of
//! one record, and [`RecordSets`] sum over records. A *set* is the records that a client holds; clients
//! whose oracles have the same distribution may hold the same set.
//!
//! *Invariant*: d × d matrices are made only by facts that are such matrices, and by the search
//! for an optimum in few unknowns.

mod by_class;
mod dense;
mod flat;
mod instance;
mod loss;
mod mean_loss;
mod optimum_bound;
mod reshuffled;
mod search;
mod smoothness;
mod unpenalised;

pub use instance::RecordProblem;
pub use loss::{RecordLoss, RecordPlace, RecordSets, SetTerm};
pub use reshuffled::{Reshuffled, Sampling};
pub use search::InstanceInputs;
