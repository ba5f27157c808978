//! The packs of an experiment: which cells they hold, and the rows that were read last.
//!
//! *Invariant*: if several packs hold a cell, the one of the highest generation counts.

use super::batch::Batch;
use super::parquet::TraceRows;
use super::paths::{file_name, is_pack, subfolders};
use exactfed_runner::files::Error;
use exactfed_runner::panics::lock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// The folder of a pack, and the pack or why its index is not as it was written.
pub type OpenedPack = (PathBuf, Result<Batch, Error>);

/// All packs below an experiment's folder, in the order of their generations.
pub fn open_packs(folder: &Path) -> Result<Vec<OpenedPack>, Error> {
    let mut packs = Vec::new();
    for place in subfolders(folder)? {
        if is_pack(&file_name(&place)) {
            let pack = Batch::open(&place);
            packs.push((place, pack));
        }
    }
    packs.sort_by_key(|(_, pack)| pack.as_ref().ok().and_then(|pack| pack.head.generation));
    Ok(packs)
}

/// The packs of an experiment.
#[derive(Default)]
pub struct Packs {
    packs: Vec<Arc<Batch>>,
    /// The pack that holds a cell, and the number of the cell in it.
    places: HashMap<Box<str>, (u32, u32)>,
}

impl Packs {
    /// The packs below an experiment's folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (mut packs, mut places) = (Vec::new(), HashMap::new());
        for (k, (_, pack)) in open_packs(folder)?.into_iter().enumerate() {
            let pack = pack?;
            for (i, (id, _)) in pack.cells().enumerate() {
                places.insert(id.into(), (k as u32, i as u32));
            }
            packs.push(Arc::new(pack));
        }
        Ok(Self { packs, places })
    }

    /// The pack that holds a cell, and the number of the cell in it.
    pub fn find(&self, id: &str) -> Option<(Arc<Batch>, usize)> {
        let (pack, i) = self.place(id)?;
        Some((self.packs[pack as usize].clone(), i as usize))
    }

    /// Ids of all cells, in no order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(|id| &**id)
    }

    /// The position of a cell among all, for reading one after another.
    pub fn place(&self, id: &str) -> Option<(u32, u32)> {
        self.places.get(id).copied()
    }

    /// The generation of a pack that counts before all existing ones.
    pub fn next_generation(&self) -> u64 {
        let last = self.packs.iter().filter_map(|pack| pack.head.generation).max();
        last.unwrap_or(0).saturating_add(1)
    }
}

/// The rows of a batch, read by whoever needs them first.
type SharedRows = Arc<OnceLock<Result<TraceRows, Error>>>;

/// The rows of the packs that were read last.
#[derive(Default)]
pub struct RecentRows(Mutex<Vec<(PathBuf, SharedRows)>>);

impl RecentRows {
    /// The number of packs whose rows are held: more than threads read at a time.
    const MOST: usize = 8;

    /// The rows of a batch. Those of a single cell are not held: nobody reads them twice.
    pub fn rows(&self, batch: &Batch) -> SharedRows {
        if batch.head.generation.is_none() {
            return SharedRows::default();
        }
        let mut recent = lock(&self.0);
        let position = recent.iter().position(|(folder, _)| *folder == batch.folder);
        let found = position.map(|i| recent.remove(i));
        let found = found.unwrap_or_else(|| (batch.folder.clone(), Arc::default()));
        let rows = found.1.clone();
        recent.push(found);
        if recent.len() > Self::MOST {
            recent.remove(0);
        }
        rows
    }
}
