//! The packs of an experiment: which cells they hold, and the rows that were read last.
//!
//! *Invariant*: if several packs hold a cell, the one of the highest generation counts. A pack is later than another if
//! its generation is higher. Of packs of one generation, the later one is that whose name is later; where they hold the
//! same cell, as an interrupted recovery may leave it, its rows are the same.

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
    /// The packs whose index is as it was written, in the order of their generations.
    pub sound: Vec<Arc<Pack>>,
    /// The files of all other packs.
    pub damaged: Vec<DamagedFile>,
    /// Where each cell is, by the bytes of its id.
    places: HashMap<[u8; 8], CellPlace>,
}

/// A file that is not as it was written.
#[derive(Clone)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: Error,
}

/// Where a cell is among the packs of an experiment. Places are ordered as they are best read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellPlace {
    /// The index of its pack in [`Packs::sound`].
    pack: u32,
    /// The index of the cell in the pack.
    index: u32,
}

/// A cell that has results: its pack, and the index of the cell in it.
pub struct CellInPack {
    pub pack: Arc<Pack>,
    pub index: usize,
}

impl Packs {
    /// Opens the packs in an experiment's folder; none if there is no folder. A pack that is not as it was written is
    /// no error here.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut sound = Vec::new();
        let mut damaged = Vec::new();
        for path in contents(folder)?.files {
            if !is_pack(&file_name(&path)) {
                continue;
            }
            match Pack::open(&path) {
                Ok(pack) => sound.push(pack),
                // A run may have replaced it since the folder was listed.
                Err(_) if path.symlink_metadata().is_err() => {}
                Err(error) => damaged.push(DamagedFile { path, error }),
            }
        }
        sound.sort_by_key(|pack| pack.head.generation);
        let mut packs = Self { damaged, ..Self::default() };
        for pack in sound {
            packs.push(pack);
        }
        Ok(packs)
    }

    /// Adds a pack whose generation is at least as high as that of all others: for each of its cells it counts, and no
    /// pack that was added before.
    pub fn push(&mut self, pack: Pack) {
        let number = self.sound.len() as u32;
        for (index, cell) in (0..).zip(&pack.cells) {
            let id = HexText::bytes(&cell.record.id);
            self.places.insert(id, CellPlace { pack: number, index });
        }
        self.sound.push(Arc::new(pack));
    }

    /// Finds a cell; `None` if no pack holds it.
    ///
    /// # Errors
    /// If no sound pack holds it, and there are damaged packs, which may.
    pub fn find(&self, id: &str) -> Result<Option<CellInPack>, Error> {
        if let Some(place) = self.place(id) {
            let pack = self.sound[place.pack as usize].clone();
            return Ok(Some(CellInPack { pack, index: place.index as usize }));
        }
        match self.damaged.first() {
            Some(damaged) => Err(damaged.error.clone()),
            None => Ok(None),
        }
    }

    /// The ids of all cells in sound packs, in no order.
    pub fn ids(&self) -> impl Iterator<Item = CellId> {
        self.places.keys().map(|bytes| CellId::from_hash(bytes))
    }

    /// Where a cell is; `None` if no sound pack holds it.
    pub fn place(&self, id: &str) -> Option<CellPlace> {
        self.places.get(&HexText::bytes(&CellId::read(id)?)).copied()
    }

    /// The indices of those cells of the `number`-th sound pack that no later pack holds, so that this pack counts for
    /// them.
    pub fn current_cells(&self, number: usize) -> Vec<usize> {
        let mut current = Vec::new();
        for (i, cell) in self.sound[number].cells.iter().enumerate() {
            let here = CellPlace { pack: number as u32, index: i as u32 };
            if self.place(&cell.record.id) == Some(here) {
                current.push(i);
            }
        }
        current
    }

    /// The generation for the next packs, with which they count before all existing ones; damaged packs, whose
    /// generation is not known, are not considered.
    pub fn next_generation(&self) -> u64 {
        self.sound.iter().map(|pack| pack.head.generation).max().unwrap_or(0).saturating_add(1)
    }
}

/// The rows of a pack, which the first thread that needs them reads while others wait.
type SharedRows = Arc<OnceLock<Result<TraceRows, Error>>>;

/// The rows of the packs that were read last.
#[derive(Default)]
pub struct RecentRows(Mutex<Vec<HeldRows>>);

/// The rows of the pack in a file.
struct HeldRows {
    path: PathBuf,
    rows: SharedRows,
}

impl RecentRows {
    /// The fewest packs whose rows may be held at a time, whatever the number of threads.
    const FEWEST: usize = 8;

    /// The most packs whose rows are held at a time: in a pool of threads at least one for each thread, so that threads
    /// that read different packs do not drop each other's rows, which would be read from the files again.
    fn most() -> usize {
        // A thread outside of a pool reads alone.
        let threads = rayon::current_thread_index().map_or(1, |_| rayon::current_num_threads());
        threads.max(Self::FEWEST)
    }

    /// The place for the rows of a pack, or for why they cannot be read. It is empty if nobody has read them lately:
    /// then the caller fills it, for others too. The rows of a pack with a single cell are not held for others, since
    /// nobody reads them twice.
    pub fn rows(&self, pack: &Pack) -> SharedRows {
        if pack.cells.len() == 1 {
            return SharedRows::default();
        }
        self.held(&pack.path)
    }

    /// The place for the rows of the pack in a file, which is held from now on; that of the pack that was not used for
    /// the longest time is dropped if there are too many.
    fn held(&self, path: &Path) -> SharedRows {
        // The last element is the pack that was used last.
        let mut recent = lock(&self.0);
        let held = match recent.iter().position(|held| held.path == path) {
            Some(i) => recent.remove(i),
            None => HeldRows { path: path.to_owned(), rows: SharedRows::default() },
        };
        let rows = held.rows.clone();
        recent.push(held);
        let too_many = recent.len().saturating_sub(Self::most());
        recent.drain(..too_many);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these packs, whose rows are used in turn, still have the same place when they are used again, by a
    /// thread of a pool with this number of threads.
    fn held_again(packs: usize, threads: usize) -> usize {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let recent = RecentRows::default();
        let paths: Vec<PathBuf> = (0..packs).map(|i| PathBuf::from(i.to_string())).collect();
        pool.install(|| {
            let first: Vec<SharedRows> = paths.iter().map(|path| recent.held(path)).collect();
            let again = paths.iter().map(|path| recent.held(path));
            first.iter().zip(again).filter(|(first, again)| Arc::ptr_eq(first, again)).count()
        })
    }

    #[test]
    fn as_many_packs_as_threads_are_held() {
        assert_eq!(held_again(8, 2), 8);
        assert_eq!(held_again(12, 12), 12);
        // Each pack was dropped before it is used again.
        assert_eq!(held_again(9, 2), 0);
        assert_eq!(held_again(13, 12), 0);
    }
}
