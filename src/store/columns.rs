//! A cache of columns of numbers beside a cell's results, so that they need not be computed
//! for every report.
//!
//! *Invariant*: the cache changes no page. Columns of another version or another cell, and
//! columns that are damaged or cannot be written, are computed again without a message.

use super::Store;
use exactfed_runner::files::{sha256, write_atomically};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Columns of the same length, by name.
pub type Columns = BTreeMap<String, Vec<f64>>;

const FILE: &str = "theory.columns";

impl Store {
    fn columns_file(&self, experiment: &str, id: &str) -> PathBuf {
        self.cell_folder(experiment, id).join(FILE)
    }

    /// The cached columns of a cell, if they are of this version.
    pub fn columns(&self, experiment: &str, id: &str, version: u32) -> Option<Columns> {
        decode(&fs::read(self.columns_file(experiment, id)).ok()?, version, id)
    }

    /// Caches columns beside a cell that has results, if they can be written.
    pub fn cache_columns(&self, experiment: &str, id: &str, version: u32, columns: &Columns) {
        let file = self.columns_file(experiment, id);
        let folder = file.parent().and_then(|folder| folder.symlink_metadata().ok());
        if folder.is_some_and(|folder| folder.is_dir()) {
            // Nothing depends on the cache: the folder may be read-only.
            let _ = write_atomically(&file, &encode(columns, version, id));
        }
    }
}

/// A line (version, cell, rows, names, hash), then the numbers, column by column.
pub(super) fn encode(columns: &Columns, version: u32, cell: &str) -> Vec<u8> {
    let body: Vec<u8> = columns.values().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let rows = columns.values().next().map_or(0, Vec::len);
    let names: Vec<&str> = columns.keys().map(String::as_str).collect();
    let head = format!("{version} {cell} {rows} {}", names.join(","));
    let hash = hash(&head, &body);
    [format!("exactfed-columns {head} {hash}\n").into_bytes(), body].concat()
}

fn hash(head: &str, body: &[u8]) -> String {
    sha256(&[head.as_bytes(), body].concat())
}

pub(super) fn decode(bytes: &[u8], version: u32, cell: &str) -> Option<Columns> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let parts: Vec<&str> = head.split(' ').collect();
    let ["exactfed-columns", by, id, rows, names, written] = parts.as_slice() else {
        return None;
    };
    if *id != cell || hash(&format!("{by} {id} {rows} {names}"), body) != *written {
        return None;
    }
    let (by, rows): (u32, usize) = (by.parse().ok()?, rows.parse().ok()?);
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    let complete = rows.checked_mul(8)?.checked_mul(names.len())? == body.len();
    if by != version || !complete {
        return None;
    }
    let number = |b: &[u8]| Some(f64::from_le_bytes(b.try_into().ok()?));
    let column = |(i, name): (usize, &&str)| {
        let part = &body[i * rows * 8..(i + 1) * rows * 8];
        let values = part.chunks_exact(8).map(number).collect::<Option<Vec<f64>>>()?;
        Some(((*name).to_owned(), values))
    };
    names.iter().enumerate().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let columns = Columns::from([
            ("a".to_owned(), vec![1.0, f64::MIN_POSITIVE, -0.0]),
            ("b".to_owned(), vec![2.0, f64::INFINITY, 1e300]),
        ]);
        let bytes = encode(&columns, 3, "c");
        assert_eq!(decode(&bytes, 3, "c"), Some(columns));
        assert_eq!(decode(&bytes, 4, "c"), None);
        assert_eq!(decode(&bytes, 3, "d"), None, "another cell's");
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], 3, "c"), None, "{cut}");
        }
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&wrong, 3, "c"), None, "{bit}");
        }
    }
}
