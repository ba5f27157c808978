//! The algorithms of frontiers: their names, and the values of their settings that are tried.

mod algorithm;
mod names;
mod reader;

pub use algorithm::{SearchedAlgorithm, TriedSetting};
pub use names::{AlgorithmName, AlgorithmVariant, SGD, VARIANTS, WrittenAlgorithm, variant};
pub use reader::{SearchedFault, read_all};
