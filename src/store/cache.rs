//! The cache: columns of numbers that take long to compute, kept with the results so that they need
//! not be computed for every report.
//!
//! *Invariant*: the cache changes no page. A file is named by the content that its numbers were computed
//! from; one of another version or content, and one that is damaged or cannot be written, is computed
//! again without a message. A checksum is no signature, so `verify` compares what is cached with what is
//! computed now ([`CheckedCache`]), and an optimum is used only if its gradient has the norm that was
//! written with it.

use super::Store;
use super::checksum::{checked, checksum};
use exactfed_core::problem::{MOST_REFINED, Minimiser};
use exactfed_evidence::results::{Cacheable, Cached, Columns};
use exactfed_runner::data::MOST_KEPT;
use exactfed_runner::files::{MOST_READ, create_below, read_plain, write_atomically};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Prepared, Scenario};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The folder of what is cached; the content that its numbers are computed from, which the file is
/// named by; and the difference between numbers, relative to the larger, that is rounding: products
/// and decompositions of matrices differ between processors in their last bits. Of measures, pages
/// show six digits. No experiment's name begins with a dot.
fn about(what: &Cached) -> (&'static str, &str, f64) {
    match what {
        Cached::Moments(key) => (".moments", key, 0.0),
        Cached::Frontier(key) => (".frontiers", key, 1e-9),
        Cached::Measures(key) => (".measures", key, 1e-6),
        Cached::Optimum(key) => (".optima", key, 0.0),
    }
}

fn file(root: &Path, what: &Cached) -> PathBuf {
    let (folder, key, _) = about(what);
    root.join(folder).join(key)
}

/// Cached columns of this version, if there are some.
pub fn read(root: &Path, what: &Cached) -> Option<Columns> {
    decode(&read_plain(&file(root, what), MOST_READ).ok()?, what)
}

/// The optimum that is cached under a key, if there is one.
pub fn read_optimum(root: &Path, key: &str) -> Option<Minimiser> {
    let mut theta = read(root, &Cached::Optimum(key.to_owned()))?.remove(OPTIMUM)?;
    let error = theta.pop()?;
    let residual = theta.pop()?;
    Some(Minimiser { theta, residual, error })
}

/// A cached file that was compared with what is computed now.
pub struct CheckedCache {
    /// The file.
    pub file: PathBuf,
    /// How they differ, if they do.
    pub difference: Option<String>,
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

impl Store {
    /// Caches columns, if they can be written.
    pub(super) fn cache_columns(&self, what: &Cached, columns: &Columns) {
        if create_below(&self.root, &self.root.join(about(what).0)).is_ok() {
            // Nothing depends on the cache: the folder may be read-only.
            let _ = write_atomically(&file(&self.root, what), &encode(columns, what));
        }
    }

    /// Compares what is cached with what is computed now, if something is cached.
    pub fn check_cached(&self, of: &Cacheable<'_>) -> Option<CheckedCache> {
        let cached = read(&self.root, &of.what)?;
        let difference = difference(&cached, (of.compute)().as_ref(), about(&of.what).2);
        Some(CheckedCache { file: file(&self.root, &of.what), difference })
    }

    /// The optima that are cached with the results of a plan, if it has results.
    pub fn known_optima(plan: &Plan) -> impl Fn(&str) -> Option<Minimiser> + use<'_> {
        let root = plan.source.copies.as_deref().and_then(Path::parent);
        move |key| read_optimum(root?, key)
    }

    /// Compares the cached optimum of an instance with that of the instance, which was built without
    /// it; if one is cached and may be read.
    pub fn check_optimum(&self, scenario: &Scenario) -> Option<CheckedCache> {
        let found = scenario.instance.searched_optimum()?;
        let compute = || Some(optimum_columns(found));
        let what = Cached::Optimum(scenario.key.to_string());
        self.check_cached(&Cacheable { what, compute: Box::new(compute) })
    }

    /// Caches the optima of these cells' instances that took a search.
    pub fn keep_optima(&self, cells: &[Prepared<'_>]) {
        let mut seen = HashSet::new();
        let scenarios = cells.iter().flat_map(|cell| &cell.scenarios);
        for scenario in scenarios.filter(|scenario| seen.insert(&*scenario.key)) {
            let Some(found) = scenario.instance.searched_optimum() else { continue };
            let d = found.theta.len();
            let may_be_cached = d > MOST_REFINED && 8 * d as u64 <= MOST_KEPT;
            let what = Cached::Optimum(scenario.key.to_string());
            if may_be_cached && read(&self.root, &what).is_none() {
                self.cache_columns(&what, &optimum_columns(found));
            }
        }
    }
}

/// The only column: θ*, its residual and the bound on its error.
const OPTIMUM: &str = "optimum";

fn optimum_columns(found: &Minimiser) -> Columns {
    let column = found.theta.iter().copied().chain([found.residual, found.error]).collect();
    Columns::from([(OPTIMUM.to_owned(), column)])
}

/// A line (version, key, rows, names), then the numbers, column by column, then the checksum.
fn encode(columns: &Columns, what: &Cached) -> Vec<u8> {
    let rows = columns.values().next().map_or(0, Vec::len);
    let names: Vec<&str> = columns.keys().map(String::as_str).collect();
    let mut bytes = format!("{} {rows} {}\n", beginning(what), names.join(",")).into_bytes();
    bytes.extend(columns.values().flatten().flat_map(|x| x.to_le_bytes()));
    let last = checksum(&bytes);
    bytes.extend(last.as_bytes());
    bytes
}

fn decode(bytes: &[u8], what: &Cached) -> Option<Columns> {
    let bytes = checked(bytes)?;
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let (head, names) = head.rsplit_once(' ')?;
    let (head, rows) = head.rsplit_once(' ')?;
    if head != beginning(what) {
        return None;
    }
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    let rows: usize = rows.parse().ok()?;
    if rows.checked_mul(8)?.checked_mul(names.len())? != body.len() {
        return None;
    }
    let mut numbers = body.chunks_exact(8).map(|b| Some(f64::from_le_bytes(b.try_into().ok()?)));
    let mut column = |name: &&str| {
        Some(((*name).to_owned(), numbers.by_ref().take(rows).collect::<Option<Vec<f64>>>()?))
    };
    names.iter().map(&mut column).collect()
}

/// The beginning of a cached file.
fn beginning(what: &Cached) -> String {
    format!("exactfed-columns {} {}", what.version(), about(what).1)
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
