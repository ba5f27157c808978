//! The hot loops of a run, on slices and in a fixed order of operations. In this crate no
//! other module has `unsafe` code.
//!
//! *Invariant*: every result is made of IEEE operations in an order that depends on the
//! dimension alone, without fused multiply-add and library sums. So every instruction
//! set (scalar, SSE2, AVX2, AVX-512, NEON) gives the same bits.

pub mod alias;
mod cohort;
pub mod exp;
mod fold;
mod log;
pub mod outer;
mod padding;
mod product;
pub mod records;
mod rows;
mod server;
mod simd;
pub mod softmax;
mod sparse;
mod strips;
pub mod td;
mod vectors;

#[cfg(test)]
pub(crate) use cohort::testing;
pub use cohort::{Cohort, CohortData, Draws, Local, LocalSteps, Members, Proximal};
pub use fold::fold_sum;
pub use product::{product, products};
pub use rows::{Aligned, Rows, Table};
pub use server::{
    FinishedSteps, ImpliedVariates, StoredVariates, learn_all_on, learn_on, mean_of,
    update_corrections, weighted_mean_of,
};
pub use simd::{InstructionSet, prefetch_all};
pub use sparse::{
    LogisticLoss, SparseRecords, SparseRow, SparseRows, SparseRowsError, SupportRound,
    VariatesToLearn,
};
pub use vectors::{MarginField, axpy, descend, descend_along, difference, dot, squared_distance};
