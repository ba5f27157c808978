//! The files that claims name in addition to those of the problem. They decide verdicts and change no number, so that
//! they are no part of the ids of cells.

use super::hashes::Hashes;
use super::places::diagnostic_under;
use super::settings::short;
use crate::manifest::axis::Choice;
use crate::manifest::{Diagnostic, Node};
use exactfed_core::problem::arrays::Contents;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The contents of the files that the claims of a manifest name, by their paths as the manifest writes them.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles(BTreeMap<String, Arc<Contents>>);

impl NamedFiles {
    /// No files.
    pub(super) const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Reads the files at the paths that claims name, each once: `named` has the place of a claim's key, and the path
    /// there. A file that cannot be read is left out, and `found` gets a diagnostic for each claim that names it.
    pub(super) fn read<'a>(
        named: impl Iterator<Item = (String, &'a str)>,
        hashes: &mut Hashes,
        root: &Node,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut files = BTreeMap::new();
        for (place, path) in named {
            if files.contains_key(path) {
                continue;
            }
            match hashes.read(path) {
                Ok(contents) => {
                    files.insert(path.to_owned(), contents);
                }
                Err(error) => {
                    let message = format!("`{}`: {error}", short(&place));
                    found.push(diagnostic_under(root, &place, &Choice::new(), message));
                }
            }
        }
        Self(files)
    }

    /// The contents of the file at a path; `None` if no claim names the file, or if it could not be read.
    pub fn contents(&self, path: &str) -> Option<&Contents> {
        self.0.get(path).map(|contents| &**contents)
    }
}
