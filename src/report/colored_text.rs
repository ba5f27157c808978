//! Texts in which names of algorithms have the colours of their families.

use serde::Serialize;

/// A part of a text: the name of an algorithm, or what stands between names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColoredText {
    pub text: String,
    /// The family of the algorithm, whose colour the text has; `None` between names.
    pub family: Option<usize>,
}
