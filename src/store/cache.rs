//! The cache: columns of numbers that take long to compute, kept with the results so that they need
//! not be computed for every report.
//!
//! *Invariant*: the cache changes no page. A file is named by the content that its numbers were computed
//! from. A file of another version or content, or one that is damaged, counts as absent: its numbers
//! are computed again without a message. A checksum is no signature, so `verify` compares cached
//! columns with columns that are computed now ([`CheckedCache`]), and an optimum is used only if its
//! gradient has the norm that was written with it.

use super::checksum::{checked_body, checksum_line};
use super::folder::Store;
use exactfed_core::problem::{MOST_REFINED, Minimiser};
use exactfed_evidence::results::{Cacheable, Cached, Columns};
use exactfed_runner::data::MOST_KEPT;
use exactfed_runner::files::{MOST_READ, create_below, read_plain, write_atomically};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Prepared, Scenario};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How a kind of columns is cached.
struct CacheKind<'a> {
    /// The folder below the root. No experiment's name begins with a dot.
    folder: &'static str,
    /// The hash of the content that the numbers are computed from, which is the name of the file.
    key: &'a str,
    /// The relative difference between cached and computed numbers that is rounding: products and
    /// decompositions of matrices differ between processors in their last bits. Pages show six
    /// digits of measures. 0 asks for the same bits.
    rounding: f64,
}

impl<'a> CacheKind<'a> {
    /// How these columns are cached: in which folder, and how far numbers that `verify` computes again may differ.
    fn new(what: &'a Cached) -> Self {
        let (folder, key, rounding) = match what {
            Cached::Moments(key) => (".moments", key, 0.0),
            Cached::Frontier(key) => (".frontiers", key, 1e-9),
            Cached::Measures(key) => (".measures", key, 1e-6),
            Cached::Optimum(key) => (".optima", key, 0.0),
        };
        Self { folder, key, rounding }
    }

    /// The file that holds the columns, below the root of a store.
    fn file(&self, root: &Path) -> PathBuf {
        root.join(self.folder).join(self.key)
    }
}

/// Reads the cached columns of `what` below the root of a results folder; `None` if there are none of the version that
/// this program computes ([`Cached::version`]), or they are damaged.
pub fn read_columns(root: &Path, what: &Cached) -> Option<Columns> {
    let bytes = read_plain(&CacheKind::new(what).file(root), MOST_READ).ok()?;
    decode(&bytes, what)
}

/// The optimum of the instance with this key that is cached below the root of a results folder; `None` if there is
/// none. Nothing here checks that it is one: whoever builds the instance compares its gradient with the residual.
pub fn read_optimum(root: &Path, key: &str) -> Option<Minimiser> {
    let mut theta = read_columns(root, &Cached::Optimum(key.to_owned()))?.remove(OPTIMUM)?;
    // The reverse of `optimum_columns`.
    let error = theta.pop()?;
    let residual = theta.pop()?;
    Some(Minimiser { theta, residual, error })
}

/// A cached file that was compared with what is computed now.
pub struct CheckedCache {
    /// The file.
    pub file: PathBuf,
    /// The first difference, if there is one.
    pub difference: Option<String>,
}

/// Describes the first place where cached columns differ from columns that are computed now by more than `rounding`,
/// relative to the larger number; `None` if there is no such place. `computed` is `None` if nothing can be computed
/// now.
fn difference(cached: &Columns, computed: Option<&Columns>, rounding: f64) -> Option<String> {
    let Some(computed) = computed else {
        return Some("it has numbers, and nothing is known now".into());
    };
    if let Some(name) = cached.keys().find(|name| !computed.contains_key(*name)) {
        return Some(format!("it has the column {name}, which is not computed now"));
    }
    for (name, computed) in computed {
        let Some(cached) = cached.get(name) else {
            return Some(format!("it lacks the column {name}"));
        };
        if cached.len() != computed.len() {
            return Some(format!(
                "the column {name} has {} numbers, now {}",
                cached.len(),
                computed.len()
            ));
        }
        for (place, (was, is)) in cached.iter().zip(computed).enumerate() {
            if !is_equal(*was, *is, rounding) {
                return Some(format!("number {place} of {name} is {was:e}, now {is:e}"));
            }
        }
    }
    None
}

/// Whether two numbers have the same bits, or a relative difference below `rounding`.
fn is_equal(a: f64, b: f64, rounding: f64) -> bool {
    a.to_bits() == b.to_bits() || (a - b).abs() < rounding * a.abs().max(b.abs())
}

impl Store {
    /// Writes columns to the cache, if they can be written, in place of what it has for `what`. No lock is needed: a
    /// file is replaced as a whole.
    pub(super) fn cache_columns(&self, what: &Cached, columns: &Columns) {
        let kind = CacheKind::new(what);
        if create_below(&self.root, &self.root.join(kind.folder)).is_ok() {
            // Nothing depends on the cache: the folder may be read-only.
            let _ = write_atomically(&kind.file(&self.root), &encode(columns, what));
        }
    }

    /// Computes columns and compares them with the cached ones, as `verify` does; `None` if nothing is cached.
    pub fn check_cached(&self, of: &Cacheable<'_>) -> Option<CheckedCache> {
        let cached = read_columns(&self.root, &of.what)?;
        let kind = CacheKind::new(&of.what);
        let difference = difference(&cached, (of.compute)().as_ref(), kind.rounding);
        Some(CheckedCache { file: kind.file(&self.root), difference })
    }

    /// A function that looks up the optimum of an instance by its key in the cache of the results folder from which the
    /// plan was read, so that building the instance needs no search. It finds nothing for a plan that was read from a
    /// manifest.
    pub fn known_optima(plan: &Plan) -> impl Fn(&str) -> Option<Minimiser> + use<'_> {
        // The copies of data files, of which a plan from results knows, are in a folder directly below the root.
        let root = plan.source.copies.as_deref().and_then(Path::parent);
        move |key| read_optimum(root?, key)
    }

    /// Compares the cached optimum of an instance with the optimum of `scenario`, whose instance must
    /// have been built without the cache. `None` if no optimum is cached, or none was searched for.
    pub fn check_optimum(&self, scenario: &Scenario) -> Option<CheckedCache> {
        let found = scenario.instance.searched_optimum()?;
        let compute = || Some(optimum_columns(found));
        let what = Cached::Optimum(scenario.key.to_string());
        self.check_cached(&Cacheable { what, compute: Box::new(compute) })
    }

    /// Caches the optima of these cells' instances that a search found, each once, so that reports need no search. Two
    /// kinds are left out and searched for again instead: optima in few unknowns, whose search is short, and optima of
    /// more than [`MOST_KEPT`] bytes, the limit up to which results keep copies of data files.
    pub fn keep_optima(&self, cells: &[Prepared<'_>]) {
        let mut seen = HashSet::new();
        for scenario in cells.iter().flat_map(|cell| &cell.scenarios) {
            if !seen.insert(&*scenario.key) {
                continue;
            }
            let Some(found) = scenario.instance.searched_optimum() else { continue };
            let d = found.theta.len();
            let is_search_long = d > MOST_REFINED;
            let is_small = 8 * d as u64 <= MOST_KEPT;
            let what = Cached::Optimum(scenario.key.to_string());
            if is_search_long && is_small && read_columns(&self.root, &what).is_none() {
                self.cache_columns(&what, &optimum_columns(found));
            }
        }
    }
}

/// The name of the only column of a cached optimum: θ*, its residual and the bound on its error, one below the other.
const OPTIMUM: &str = "optimum";

/// The columns in which an optimum is cached, with its two numbers after the coordinates of θ*.
fn optimum_columns(found: &Minimiser) -> Columns {
    let mut column = found.theta.clone();
    column.extend([found.residual, found.error]);
    Columns::from([(OPTIMUM.to_owned(), column)])
}

/// The bytes of a cached file: a line (version, key, rows, names), then the numbers, column by column,
/// then the checksum. The columns have one length, and their names neither spaces nor commas.
fn encode(columns: &Columns, what: &Cached) -> Vec<u8> {
    let rows = columns.values().next().map_or(0, Vec::len);
    let names: Vec<&str> = columns.keys().map(String::as_str).collect();
    let mut bytes = format!("{} {rows} {}\n", beginning(what), names.join(",")).into_bytes();
    for x in columns.values().flatten() {
        bytes.extend(x.to_le_bytes());
    }
    let last = checksum_line(&bytes);
    bytes.extend(last.as_bytes());
    bytes
}

/// The columns in the bytes of a cached file, the reverse of [`encode`]; `None` if they are damaged, or of another
/// version or key.
fn decode(bytes: &[u8], what: &Cached) -> Option<Columns> {
    let body = checked_body(bytes)?;
    let line_end = body.iter().position(|b| *b == b'\n')?;
    let line = std::str::from_utf8(&body[..line_end]).ok()?;
    let numbers = &body[line_end + 1..];
    let (before_names, names) = line.rsplit_once(' ')?;
    let (before_rows, rows) = before_names.rsplit_once(' ')?;
    if before_rows != beginning(what) {
        return None;
    }
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    let rows: usize = rows.parse().ok()?;
    if rows.checked_mul(8)?.checked_mul(names.len())? != numbers.len() {
        return None;
    }
    let mut columns = Columns::new();
    for (i, name) in names.into_iter().enumerate() {
        let (column, _) = numbers[8 * rows * i..][..8 * rows].as_chunks::<8>();
        let values = column.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        columns.insert(name.to_owned(), values);
    }
    Some(columns)
}

/// The beginning of the first line of a cached file, by which a file of another version or key is recognised.
fn beginning(what: &Cached) -> String {
    format!("exactfed-columns {} {}", what.version(), CacheKind::new(what).key)
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
        let what = Cached::Measures("c".into());
        let bytes = encode(&columns, &what);
        assert_eq!(decode(&bytes, &what), Some(columns));
        assert_eq!(decode(&bytes, &Cached::Measures("d".into())), None, "of another instance");
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], &what), None, "{cut}");
        }
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&wrong, &what), None, "{bit}");
        }
    }
}
