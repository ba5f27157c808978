//! Columns of numbers as the bytes of a file of a cache.
//!
//! *Invariant*: the cache changes no page. Columns of another version or another cell, and
//! columns that are damaged or cannot be written, are computed again without a message. A hash is
//! no signature, so `verify` compares what is cached with what is computed now ([`CheckedCache`]).

use exactfed_evidence::results::Columns;
use exactfed_runner::files::sha256;
use std::path::PathBuf;

/// A cached file that was compared with what is computed now.
pub struct CheckedCache {
    /// The file.
    pub file: PathBuf,
    /// How they differ, if they do.
    pub difference: Option<String>,
}

impl CheckedCache {
    /// Compares columns, whose numbers may differ by less than this share of the larger one; `now`
    /// is `None` where there is nothing to be computed.
    pub(super) fn new(file: PathBuf, cached: &Columns, now: Option<&Columns>, share: f64) -> Self {
        Self { file, difference: difference(cached, now, share) }
    }
}

/// The first place where cached columns differ from those that are computed now.
fn difference(cached: &Columns, now: Option<&Columns>, share: f64) -> Option<String> {
    let Some(now) = now else { return Some("it has numbers, and nothing is known now".into()) };
    let equal =
        |a: f64, b: f64| a.to_bits() == b.to_bits() || (a - b).abs() < share * a.abs().max(b.abs());
    if let Some(name) = cached.keys().find(|name| !now.contains_key(*name)) {
        return Some(format!("it has the column {name}, which is not computed now"));
    }
    now.iter().find_map(|(name, now)| {
        let Some(cached) = cached.get(name) else {
            return Some(format!("it lacks the column {name}"));
        };
        if cached.len() != now.len() {
            let (there, rows) = (cached.len(), now.len());
            return Some(format!("the column {name} has {there} numbers, now {rows}"));
        }
        let place = (0..now.len()).find(|&i| !equal(cached[i], now[i]))?;
        Some(format!("number {place} of {name} is {:e}, now {:e}", cached[place], now[place]))
    })
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
    fn differences_are_found_in_every_column_and_row() {
        let now = Columns::from([("a".into(), vec![1.0, f64::NAN]), ("b".into(), vec![0.0, 2.0])]);
        let found = |change: &dyn Fn(&mut Columns), share: f64| {
            let mut cached = now.clone();
            change(&mut cached);
            difference(&cached, Some(&now), share)
        };
        assert_eq!(found(&|_| {}, 0.0), None);
        let close = |cached: &mut Columns| cached.get_mut("b").unwrap()[1] = 2.0 + 1e-12;
        assert_eq!(found(&close, 1e-9), None);
        for (change, named) in [
            (&close as &dyn Fn(&mut Columns), "number 1 of b is 2.000000000001e0, now 2e0"),
            (&|cached| cached.get_mut("b").unwrap()[0] = -0.0, "number 0 of b is -0e0, now 0e0"),
            (&|cached| cached.get_mut("a").unwrap()[1] = 1.0, "number 1 of a is 1e0, now NaN"),
            (&|cached| cached.get_mut("a").unwrap().truncate(1), "a has 1 numbers, now 2"),
            (&|cached| drop(cached.remove("a")), "lacks the column a"),
            (&|cached| drop(cached.insert("c".into(), vec![1.0, 2.0])), "has the column c"),
        ] {
            let difference = found(change, 0.0).unwrap();
            assert!(difference.contains(named), "{difference}");
        }
        assert!(difference(&now, None, 0.0).is_some());
    }

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
