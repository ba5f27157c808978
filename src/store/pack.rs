//! Packs: many small cells in one folder, so that a grid of a hundred thousand cells
//! is not a hundred thousand folders.
//!
//! A pack is `pack-<hash>/` with `traces.parquet`, the rows of its cells one after
//! another, and `cells.jsonl`: a line on the pack, then a line a cell, in the order of
//! the rows.
//!
//! *Invariant*: the folder's name is the hash of `cells.jsonl`, which holds the hash of
//! the Parquet file; so no bit of a pack can change unseen, and packs of the same name
//! are equal.

use super::parquet::{self, Context, Entry, Rows};
use super::provenance::Provenance;
use super::{CellSummary, Store, TRACES, whole};
use driftbench_runner::files::{Error, TemporaryFolder, error, read_plain};
use driftbench_runner::plan::{Plan, cell_id, hex};
use driftbench_runner::trace::{self, Trace};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

const INDEX: &str = "cells.jsonl";
const PREFIX: &str = "pack-";

/// The first line of `cells.jsonl`.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Head {
    experiment: String,
    /// Where packs hold the same cell, the one with the highest number counts.
    generation: u64,
    bytes: u64,
    sha256: String,
    provenance: Provenance,
}

/// A line of `cells.jsonl`.
#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    label: String,
    digest: String,
    rows: usize,
    seconds: f64,
    /// What determines the numbers, as `cell.toml` has it.
    cell: String,
}

/// What is held of a cell in a pack.
struct Held {
    id: Box<str>,
    label: Arc<str>,
    digest: Box<str>,
    seconds: f64,
    rows: Range<usize>,
    /// Its line in the index.
    line: Range<usize>,
}

/// A cell that is put into a pack.
pub struct Member<'a> {
    /// The cell and its traces.
    pub entry: Entry<'a>,
    /// Time that it took on one thread.
    pub elapsed: Duration,
}

/// A pack whose index is as it was written.
pub struct Pack {
    folder: PathBuf,
    head: Head,
    cells: Vec<Held>,
    /// Whether the Parquet file is as it was written.
    sound: OnceLock<Result<(), String>>,
}

/// Whether a folder's name is a pack's.
pub fn is_pack(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(super::is_cell)
}

fn name_of(index: &[u8]) -> String {
    hex(&Sha256::digest(index)[..8])
}

impl Pack {
    /// The pack of this folder, its index checked and its Parquet file not.
    ///
    /// # Errors
    /// If its index is not as it was written.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(INDEX);
        let bytes = read_plain(&path)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if name.strip_prefix(PREFIX) != Some(&name_of(&bytes)) {
            return Err(error(&path, "does not have the hash that its folder is named by"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|e| error(&path, e))?;
        Self::parsed(folder, text).map_err(|e| error(&path, e))
    }

    fn parsed(folder: &Path, text: &str) -> Result<Self, String> {
        let bad = |e: serde_json::Error| e.to_string();
        let mut lines = text.lines();
        let head: Head = serde_json::from_str(lines.next().unwrap_or_default()).map_err(bad)?;
        let (mut cells, mut row): (Vec<Held>, usize) = (Vec::new(), 0);
        for line in lines {
            let from = line.as_ptr().addr() - text.as_ptr().addr();
            let told: Line = serde_json::from_str(line).map_err(bad)?;
            let hash = cell_id(&told.cell);
            if hash != told.id {
                let id = told.id;
                return Err(format!("has settings of cell {hash} where those of {id} belong"));
            }
            let label = match cells.last() {
                Some(last) if *last.label == *told.label => last.label.clone(),
                _ => told.label.into(),
            };
            cells.push(Held {
                id: told.id.into(),
                label,
                digest: told.digest.into(),
                seconds: told.seconds,
                rows: row..row + told.rows,
                line: from..from + line.len(),
            });
            row += told.rows;
        }
        Ok(Self { folder: folder.to_owned(), head, cells, sound: OnceLock::new() })
    }

    fn traces_file(&self) -> PathBuf {
        self.folder.join(TRACES)
    }

    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let bytes = whole(&self.traces_file(), self.head.bytes, &self.head.sha256)?;
        let cells = self.cells.iter().map(|held| (&*held.id, Some(held.rows.len())));
        parquet::of_cells(&bytes, cells).map_err(|e| error(&self.traces_file(), e))?;
        Ok(bytes)
    }

    /// Sees, once, that the Parquet file is as it was written.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self) -> Result<(), Error> {
        let sound = self.sound.get_or_init(|| self.bytes().map(drop).map_err(|e| e.message));
        sound.clone().map_err(|message| error(&self.traces_file(), message))
    }

    fn rows(&self) -> Result<Rows, String> {
        let rows = Rows::read(self.bytes().map_err(|e| e.message)?)?;
        let told = self.cells.last().map_or(0, |cell| cell.rows.end);
        match rows.len() == told {
            true => Ok(rows),
            false => Err(format!("has {} rows, not {told}", rows.len())),
        }
    }

    fn summary(&self, i: usize) -> CellSummary {
        let held = &self.cells[i];
        CellSummary {
            id: held.id.to_string(),
            label: held.label.to_string(),
            digest: held.digest.to_string(),
            seconds: held.seconds,
            provenance: self.head.provenance.clone(),
        }
    }

    /// What determines the numbers of its `i`-th cell.
    fn settings(&self, i: usize) -> Result<toml::Table, Error> {
        let path = self.folder.join(INDEX);
        let range = &self.cells[i].line;
        let mut line = vec![0; range.len()];
        let mut read = || {
            let mut file = fs::File::open(&path)?;
            file.seek(SeekFrom::Start(range.start as u64))?;
            file.read_exact(&mut line)
        };
        read().map_err(|e| error(&path, e))?;
        let told: Line = serde_json::from_slice(&line).map_err(|e| error(&path, e))?;
        toml::from_str(&told.cell).map_err(|e| error(&path, e.message()))
    }

    /// Ids and digests of its cells, in their order.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cells.iter().map(|held| (&*held.id, &*held.digest))
    }

    /// Where packs hold the same cell, the one with the highest number counts.
    pub fn generation(&self) -> u64 {
        self.head.generation
    }

    /// The version of the program that computed it.
    pub fn version(&self) -> &str {
        &self.head.provenance.version
    }

    /// Copies it into another experiment's folder, without these cells. It is checked once
    /// more on the way.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn copy(&self, to: &Path, without: &HashSet<&str>) -> Result<(), Error> {
        let bytes = self.bytes()?;
        let kept = |held: &&Held| !without.contains(&*held.id);
        if self.cells.iter().all(|held| kept(&held)) {
            let index = read_plain(&self.folder.join(INDEX))?;
            let temporary = TemporaryFolder::new(to)?;
            temporary.add(TRACES, &bytes)?;
            temporary.add(INDEX, &index)?;
            return temporary.settle(&to.join(format!("{PREFIX}{}", name_of(&index))));
        }
        let (mut lines, mut rows) = (Vec::new(), Vec::new());
        for (i, held) in self.cells.iter().enumerate().filter(|(_, held)| kept(held)) {
            rows.push(held.rows.clone());
            lines.push(Line {
                id: held.id.to_string(),
                label: held.label.to_string(),
                digest: held.digest.to_string(),
                rows: held.rows.len(),
                seconds: held.seconds,
                cell: self.settings(i)?.to_string(),
            });
        }
        if lines.is_empty() {
            return Ok(());
        }
        let bytes = parquet::picked(bytes, &rows).map_err(|e| error(&self.traces_file(), e))?;
        Self::write(to, self.head.clone(), &lines, &bytes).map(drop)
    }

    /// Writes a pack beside its place and renames it.
    fn write(folder: &Path, head: Head, lines: &[Line], traces: &[u8]) -> Result<PathBuf, Error> {
        let head =
            Head { bytes: traces.len() as u64, sha256: hex(&Sha256::digest(traces)), ..head };
        let mut index = serde_json::to_string(&head).map_err(|e| error(folder, e))?;
        for line in lines {
            index.push('\n');
            index.push_str(&serde_json::to_string(line).map_err(|e| error(folder, e))?);
        }
        index.push('\n');
        let place = folder.join(format!("{PREFIX}{}", name_of(index.as_bytes())));
        let temporary = TemporaryFolder::new(folder)?;
        temporary.add(TRACES, traces)?;
        temporary.add(INDEX, index.as_bytes())?;
        temporary.settle(&place)?;
        Ok(place)
    }
}

/// The packs of an experiment.
#[derive(Default)]
pub struct Packs {
    packs: Vec<Arc<Pack>>,
    /// Which pack a cell is in, and where.
    places: HashMap<Box<str>, (u32, u32)>,
}

impl Packs {
    /// The packs below an experiment's folder.
    ///
    /// # Errors
    /// The first pack whose index is not as it was written.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut packs = Vec::new();
        for place in folders(folder)? {
            packs.push(Arc::new(Pack::open(&place)?));
        }
        // The last one that names a cell counts.
        packs.sort_by_key(|pack| pack.head.generation);
        let mut places = HashMap::new();
        for (k, pack) in packs.iter().enumerate() {
            for (i, cell) in pack.cells.iter().enumerate() {
                places.insert(cell.id.clone(), (k as u32, i as u32));
            }
        }
        Ok(Self { packs, places })
    }

    /// A cell that is in one of them.
    pub fn cell(&self, id: &str) -> Option<Packed> {
        let (pack, i) = self.place(id)?;
        Some(Packed { pack: self.packs[pack as usize].clone(), i: i as usize })
    }

    /// Ids of all cells, in no order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(|id| &**id)
    }

    /// Where a cell stands among all, for reading one after another.
    pub fn place(&self, id: &str) -> Option<(u32, u32)> {
        self.places.get(id).copied()
    }

    /// The number of a pack whose cells count before all that are there.
    pub fn next_generation(&self) -> u64 {
        self.packs.iter().map(|pack| pack.head.generation + 1).max().unwrap_or(1)
    }
}

/// The folders of packs below an experiment's, sorted.
///
/// # Errors
/// If the folder cannot be read.
pub fn folders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(error(folder, e)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| error(folder, e))?;
        let plain = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if plain && is_pack(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The rows of a pack, or why they cannot be read; filled by who asks first.
type Shared = Arc<OnceLock<Result<Rows, String>>>;

/// The rows of the packs that were read last.
#[derive(Default)]
pub struct Recent(Mutex<Vec<(PathBuf, Shared)>>);

impl Recent {
    /// Packs whose rows are held: more than threads read at a time.
    const MOST: usize = 8;

    fn rows(&self, pack: &Pack) -> Shared {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = recent.iter().position(|(folder, _)| folder == &pack.folder);
        let found = held.map(|i| recent.remove(i));
        let found = found.unwrap_or_else(|| (pack.folder.clone(), Arc::default()));
        let rows = found.1.clone();
        recent.push(found);
        if recent.len() > Self::MOST {
            recent.remove(0);
        }
        rows
    }
}

impl Store {
    /// Writes cells into one pack of this generation. What was kept of them elsewhere no
    /// longer counts.
    ///
    /// # Errors
    /// If it cannot be written; then nothing is left of it.
    pub fn write_pack(
        &self,
        plan: &Plan,
        members: &[Member<'_>],
        provenance: &Provenance,
        generation: u64,
    ) -> Result<(), Error> {
        let folder = self.make_folder(&plan.experiment)?;
        let entries: Vec<&Entry<'_>> = members.iter().map(|member| &member.entry).collect();
        let context = Context { plan, provenance, cell: None };
        let bytes = parquet::write(&context, &entries).map_err(|e| error(&folder, e))?;
        let line = |member: &Member<'_>| Line {
            id: member.entry.cell.id.clone(),
            label: member.entry.cell.label.clone(),
            digest: trace::digest(member.entry.traces),
            rows: member.entry.traces.iter().map(Trace::rows).sum(),
            seconds: member.elapsed.as_secs_f64(),
            cell: member.entry.cell.identity.canonical().to_string(),
        };
        let lines: Vec<Line> = members.iter().map(line).collect();
        let head = Head {
            experiment: plan.experiment.clone(),
            generation,
            provenance: provenance.clone(),
            ..Head::default()
        };
        Pack::write(&folder, head, &lines, &bytes)?;
        for line in &lines {
            let place = self.cell_folder(&plan.experiment, &line.id);
            if place.is_dir() {
                fs::remove_dir_all(&place).map_err(|e| error(&place, e))?;
            }
        }
        self.forget(&plan.experiment);
        Ok(())
    }

    /// Writes packs again in which these cells (by id) have another label.
    ///
    /// # Errors
    /// If a pack cannot be read or written.
    pub fn relabel_packs(&self, plan: &Plan, labels: &HashMap<&str, &str>) -> Result<(), Error> {
        let folder = self.folder(&plan.experiment);
        let packs = self.packs(&plan.experiment)?;
        for pack in &packs.packs {
            let other = |held: &&Held| labels.get(&*held.id).is_some_and(|l| **l != *held.label);
            if !pack.cells.iter().any(|held| other(&held)) {
                continue;
            }
            let told = |held: &Held| labels.get(&*held.id).map_or(&*held.label, |l| *l).to_owned();
            let mut lines = Vec::new();
            for (i, held) in pack.cells.iter().enumerate() {
                lines.push(Line {
                    id: held.id.to_string(),
                    label: told(held),
                    digest: held.digest.to_string(),
                    rows: held.rows.len(),
                    seconds: held.seconds,
                    cell: pack.settings(i)?.to_string(),
                });
            }
            let column = lines.iter().flat_map(|l| std::iter::repeat_n(&*l.label, l.rows));
            let context = Context { plan, provenance: &pack.head.provenance, cell: None };
            let bytes = parquet::relabelled(pack.bytes()?, column, &context);
            let bytes = bytes.map_err(|e| error(&pack.traces_file(), e))?;
            let place = Pack::write(&folder, pack.head.clone(), &lines, &bytes)?;
            if place != pack.folder {
                fs::remove_dir_all(&pack.folder).map_err(|e| error(&pack.folder, e))?;
            }
        }
        self.forget(&plan.experiment);
        Ok(())
    }
}

/// A cell of a pack.
pub struct Packed {
    pack: Arc<Pack>,
    i: usize,
}

impl Packed {
    /// What the index says of it.
    pub fn summary(&self) -> CellSummary {
        self.pack.summary(self.i)
    }

    /// What determines its numbers.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn settings(&self) -> Result<toml::Table, Error> {
        self.pack.settings(self.i)
    }

    /// Sees that its pack is as it was written.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self) -> Result<(), Error> {
        self.pack.check()
    }

    /// The file of its rows.
    pub fn file(&self) -> PathBuf {
        self.pack.traces_file()
    }

    /// What `of` makes of its rows.
    ///
    /// # Errors
    /// If the pack is not as it was written.
    pub fn rows<T>(
        &self,
        recent: &Recent,
        of: impl FnOnce(&Rows, Range<usize>) -> T,
    ) -> Result<T, Error> {
        let held = recent.rows(&self.pack);
        let rows = held.get_or_init(|| self.pack.rows());
        let rows = rows.as_ref().map_err(|message| error(&self.file(), message))?;
        Ok(of(rows, self.pack.cells[self.i].rows.clone()))
    }
}
