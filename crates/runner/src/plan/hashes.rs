//! Hashes of the data files that a manifest names: they enter the ids of its cells.

use super::settings::SpecParts;
use crate::data::{DataError, DataFolder};
use crate::manifest::{Diagnostic, Source};
use exactfed_core::algorithm::{Boxed, Instance};
use exactfed_core::problem::arrays::{Contents, DataFile, FileSize, Files, FilesError};
use exactfed_core::problem::{self, Fault, OptimumSearch, OracleForm};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The data files of a source: those in memory, those in the folder of the manifest, and the copies that results keep.
/// The folder is that of the name of the source, or the working directory if the name has none.
pub fn data_folder(source: &Source) -> DataFolder {
    let base = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    DataFolder::new(base, source.copies.clone(), source.tables, source.in_memory.clone())
}

/// Data files from which an instance is built without its optimum.
struct WithoutOptimum<'a>(&'a DataFolder);

impl Files for WithoutOptimum<'_> {
    fn open(&self, file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        self.0.open(file)
    }
    fn optimum_search(&self) -> OptimumSearch<'_> {
        OptimumSearch::LeftOut
    }
}

/// Hashes and sizes of the data files, each read once.
pub struct Hashes {
    folder: DataFolder,
    /// The hashes that are known so far, by the paths of the files in the manifest.
    pub known: BTreeMap<String, String>,
    /// What is known of how much the files hold, by their paths.
    pub sizes: BTreeMap<String, FileSize>,
}

impl Hashes {
    /// The hashes that a source already knows, with its folder for the others.
    pub fn new(source: &Source) -> Self {
        Self {
            folder: data_folder(source),
            known: source.files.clone(),
            sizes: source.sizes.clone(),
        }
    }

    /// An error if a file in memory was given that no key of the manifest names, after all problems are resolved.
    pub fn unused(&self, source: &Source) -> Option<Diagnostic> {
        let unused = source.in_memory.keys().find(|name| !self.known.contains_key(*name))?;
        let named: Vec<&str> = self.known.keys().map(String::as_str).collect();
        let diagnostic = Diagnostic::new(None, "", format!("no key names `{unused}` as a file"));
        Some(if named.is_empty() {
            diagnostic.allowing("the manifest names no file")
        } else {
            diagnostic.naming(unused, &named)
        })
    }

    /// The number of clients of a problem, from its settings or its files; `None` if something is wrong with it, or
    /// neither says it.
    pub fn clients(&self, problem: &SpecParts<problem::Spec>) -> Option<usize> {
        problem.faults.is_empty().then(|| problem.spec.clients(&self.folder)).flatten()
    }

    /// The instance of a problem with this seed, of which the optimum is not searched for; `None` if something is wrong
    /// with it, which is reported when it is built for its runs.
    pub fn instance(
        &self,
        problem: &SpecParts<problem::Spec>,
        seed: u64,
    ) -> Option<Box<dyn Instance>> {
        if !problem.faults.is_empty() {
            return None;
        }
        let files = WithoutOptimum(&self.folder);
        problem.spec.build(seed, &files, OracleForm::Own, Boxed).ok()
    }

    /// The hash of the file at a path: the one that is known, or else that of its bytes, which is known from then on
    /// together with how much the file holds.
    fn hash(&mut self, path: &str) -> Result<String, DataError> {
        if let Some(hash) = self.known.get(path) {
            return Ok(hash.clone());
        }
        let (hash, size) = self.folder.hash(path)?;
        self.known.insert(path.to_owned(), hash.clone());
        self.sizes.insert(path.to_owned(), size);
        Ok(hash)
    }

    /// The contents of the file at a path, whose hash is known from then on, so that results keep a copy of it.
    ///
    /// # Errors
    /// Why it cannot be read, or that it has changed since its hash became known.
    pub fn read(&mut self, path: &str) -> Result<Arc<Contents>, FilesError> {
        let hash = self.hash(path).map_err(|error| FilesError::Unread(Box::new(error)))?;
        self.folder.open(&DataFile { sha256: Some(hash), ..DataFile::at(path) })
    }

    /// The problem with a number as λ, if it is written as a multiple of the smoothness of its losses on the instance
    /// of this seed; `None` otherwise. Its files must be resolved ([`Self::resolve`]).
    ///
    /// # Errors
    /// Why the number is not known.
    pub fn with_number_as_penalty(
        &self,
        problem: &problem::Spec,
        seed: u64,
    ) -> Result<Option<problem::Spec>, Fault> {
        problem.with_number_as_penalty(seed, &self.folder)
    }

    /// Adds to the settings of a problem the hashes of its data files and how much they hold. Returns a fault for each
    /// file that cannot be read. A hash that the source states is taken, whatever the file holds now: runs compare it
    /// when they read the file.
    pub fn resolve(&mut self, problem: &mut problem::Spec) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, file) in problem.files() {
            let path = &file.path;
            let hash = match self.hash(path) {
                Ok(hash) => hash,
                Err(error) => {
                    faults.push(Fault::new(key, format!(": {error}")));
                    continue;
                }
            };
            if !self.sizes.contains_key(path) {
                self.sizes.extend(self.folder.size(path, &hash).map(|size| (path.clone(), size)));
            }
            file.size = self.sizes.get(path).copied();
            file.sha256 = Some(hash);
        }
        faults
    }
}
