//! One pass over the tree of a manifest: what it found, and the errors of its deserializers.

use super::axis::{Choice, GridAxis};
use super::document::{Diagnostic, Diagnostics, Node};
use serde::de;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::{self, Display};

/// What one pass over the tree finds.
pub struct ReadPass<'a> {
    pub(super) choice: &'a Choice,
    found: RefCell<Diagnostics>,
    /// Nodes that were reported, and tables that lack one of them.
    pub(super) bad: RefCell<HashSet<usize>>,
    pub(super) axes: RefCell<Vec<GridAxis>>,
}

impl<'a> ReadPass<'a> {
    pub fn new(choice: &'a Choice) -> Self {
        let (found, bad, axes) = Default::default();
        Self { choice, found, bad, axes }
    }

    /// How much is known to be wrong: the numbers of diagnostics and of bad nodes.
    pub fn progress(&self) -> (usize, usize) {
        (self.found.borrow().len(), self.bad.borrow().len())
    }

    /// Begins a pass; returns how much is known to be wrong.
    pub fn begin(&self) -> (usize, usize) {
        self.axes.borrow_mut().clear();
        self.progress()
    }

    /// What all passes found, and the axes that the last one met.
    pub fn finish(self) -> (Vec<Diagnostic>, Vec<GridAxis>) {
        (self.found.into_inner().into_vec(), self.axes.into_inner())
    }

    pub(super) fn is_bad(&self, node: &Node) -> bool {
        self.bad.borrow().contains(&node.id)
    }

    pub(super) fn note(&self, diagnostic: Diagnostic) {
        self.found.borrow_mut().add(diagnostic);
    }
}

/// What is wrong with a value, until the diagnostic of some node states it.
#[derive(Debug)]
pub enum ReadError {
    /// The diagnostic was noted.
    Reported,
    Missing(&'static str),
    Message(String),
}

impl std::error::Error for ReadError {}
impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
impl de::Error for ReadError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Message(message.to_string())
    }
    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}
