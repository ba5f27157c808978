//! The packs of an experiment: which cells they hold, and the rows that were read last.
//!
//! *Invariant*: if several packs hold a cell, the one of the highest generation counts.

use super::pack::Pack;
use super::parquet::TraceRows;
use super::paths::{contents, file_name, is_pack};
use exactfed_runner::files::Error;
use exactfed_runner::hex::HexText;
use exactfed_runner::panics::lock;
use exactfed_runner::plan::CellId;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// The packs of an experiment.
#[derive(Clone, Default)]
pub struct Packs {
    /// Those whose index is as it was written, in the order of their generations.
    pub packs: Vec<Arc<Pack>>,
    /// Why the index of each other one is not.
    pub damaged: Vec<(PathBuf, Error)>,
    /// The pack that holds a cell, by the bytes of its id, and the number of the cell in it.
    places: HashMap<[u8; 8], (u32, u32)>,
}

impl Packs {
    /// The packs below an experiment's folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (mut packs, mut damaged) = (Vec::new(), Vec::new());
        for path in contents(folder)?.1 {
            if !is_pack(&file_name(&path)) {
                continue;
            }
            match Pack::open(&path) {
                Ok(pack) => packs.push(pack),
                // A run may have replaced it since the folder was listed.
                Err(_) if path.symlink_metadata().is_err() => {}
                Err(e) => damaged.push((path, e)),
            }
        }
        packs.sort_by_key(|pack| pack.head.generation);
        let mut all = Self { damaged, ..Self::default() };
        packs.into_iter().for_each(|pack| all.push(pack));
        Ok(all)
    }

    /// Adds a pack that counts before all others.
    pub fn push(&mut self, pack: Pack) {
        let k = self.packs.len() as u32;
        let cells = (0..).zip(&pack.cells);
        self.places.extend(cells.map(|(i, cell)| (HexText::bytes(&cell.record.id), (k, i))));
        self.packs.push(Arc::new(pack));
    }

    /// The pack that holds a cell, and the number of the cell in it; `None` if no pack does.
    ///
    /// # Errors
    /// If no pack does whose index can be read, and there are others.
    pub fn find(&self, id: &str) -> Result<Option<(Arc<Pack>, usize)>, Error> {
        match (self.place(id), self.damaged.first()) {
            (Some((pack, i)), _) => Ok(Some((self.packs[pack].clone(), i))),
            (None, Some((_, e))) => Err(e.clone()),
            (None, None) => Ok(None),
        }
    }

    /// Ids of all cells, in no order.
    pub fn ids(&self) -> impl Iterator<Item = CellId> {
        self.places.keys().map(|bytes| CellId::from_hash(bytes))
    }

    /// The number of the pack that holds a cell, and that of the cell in it.
    pub fn place(&self, id: &str) -> Option<(usize, usize)> {
        self.places
            .get(&HexText::bytes(&CellId::read(id)?))
            .map(|(pack, i)| (*pack as usize, *i as usize))
    }

    /// The cells of the `k`-th pack that no later one holds.
    pub fn current(&self, k: usize) -> Vec<usize> {
        let cells = self.packs[k].cells.iter().enumerate();
        cells
            .filter(|(i, cell)| self.place(&cell.record.id) == Some((k, *i)))
            .map(|(i, _)| i)
            .collect()
    }

    /// The generation of a pack that counts before all existing ones.
    pub fn next_generation(&self) -> u64 {
        self.packs.iter().map(|pack| pack.head.generation).max().unwrap_or(0).saturating_add(1)
    }
}

/// The rows of a pack, read by whoever needs them first.
type SharedRows = Arc<OnceLock<Result<TraceRows, Error>>>;

/// The rows of the packs that were read last.
#[derive(Default)]
pub struct RecentRows(Mutex<Vec<(PathBuf, SharedRows)>>);

impl RecentRows {
    /// The number of packs whose rows are held: more than threads read at a time.
    const MOST: usize = 8;

    /// The rows of a pack. Those of a single cell are not held: nobody reads them twice.
    pub fn rows(&self, pack: &Pack) -> SharedRows {
        if pack.cells.len() == 1 {
            return SharedRows::default();
        }
        let mut recent = lock(&self.0);
        let position = recent.iter().position(|(path, _)| *path == pack.path);
        let found = position.map(|i| recent.remove(i));
        let found = found.unwrap_or_else(|| (pack.path.clone(), Arc::default()));
        let rows = found.1.clone();
        recent.push(found);
        if recent.len() > Self::MOST {
            recent.remove(0);
        }
        rows
    }
}
