//! The numbers z of THEORY (6.1) in parts: blocks that are coupled only through numbers that they share.
//!
//! z are the second moments of the state at the start of a cycle of rounds: the entries of E u uᵀ on and above the
//! diagonal, where u = (1, x), and of D_g for each type of clients, the covariance of a client's deviations. z ← Q z
//! over a cycle, and the error after a round of the cycle is r_phase · z.

use crate::linalg::{Matrix, cholesky};
use std::collections::BTreeMap;

/// A part of the numbers z, whose numbers after a cycle depend on no numbers outside of the part, and what they add to
/// the error. The first of them is E 1·1.
pub struct CurvePart {
    /// r_phase of THEORY (6.1) for each round of the cycle; 0 for numbers that another part adds to the error.
    pub errors: Vec<Vec<f64>>,
    /// For each number the matrix of second moments that has it (0 is E u uᵀ, and 1, 2, … are D_1, D_2, …), and its row
    /// and column there.
    pub places: Vec<(usize, usize, usize)>,
}

impl CurvePart {
    /// The identity of THEORY (5.5) in place of covariances: 1 for squares other than E 1·1, and 0 for other
    /// numbers, among them the means E 1·x_i.
    pub fn identity(&self) -> Vec<f64> {
        let mut identity = Vec::with_capacity(self.places.len());
        for &(block, i, j) in &self.places {
            let is_unit = block == 0 && i == 0;
            identity.push(f64::from(u8::from(i == j && !is_unit)));
        }
        identity
    }

    /// Whether the matrices that have these numbers at [`Self::places`], and 0 for entries that are not in the part,
    /// are positive definite: a condition of the proof of THEORY (5.5). The first row of E u uᵀ, which is E 1·1 and the
    /// means, is left out: it is no covariance.
    pub fn is_definite(&self, numbers: &[f64]) -> bool {
        let mut matrices: BTreeMap<usize, BTreeMap<usize, BTreeMap<usize, f64>>> = BTreeMap::new();
        for ((block, i, j), x) in self.places.iter().zip(numbers) {
            // E 1·1, or a mean.
            if *block == 0 && *i == 0 {
                continue;
            }
            let rows = matrices.entry(*block).or_default();
            rows.entry(*i).or_default().insert(*j, *x);
            rows.entry(*j).or_default().insert(*i, *x);
        }
        matrices.values().all(|rows| {
            let index: Vec<usize> = rows.keys().copied().collect();
            let matrix = Matrix::from_fn(index.len(), index.len(), |i, j| {
                rows.get(&index[i]).and_then(|row| row.get(&index[j])).copied().unwrap_or(0.0)
            });
            cholesky(matrix).is_ok()
        })
    }
}

/// The numbers of a part, as places in z.
pub struct PartPlaces {
    /// The places in increasing order; the first is the place of E 1·1.
    pub places: Vec<usize>,
    /// For each place whether this part adds its number to the error. A number that several parts share is added
    /// by one of them.
    pub adds: Vec<bool>,
}

/// A set of places in z, as one bit for each place, 64 in a word.
#[derive(Clone)]
struct PlaceSet(Vec<u64>);

impl PlaceSet {
    /// The empty set of places below `length`.
    fn empty(length: usize) -> Self {
        Self(vec![0; length.div_ceil(64)])
    }

    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn insert_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn contains(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// The first place that is in this set and not in another; `None` if there is none.
    fn first_missing_in(&self, other: &Self) -> Option<usize> {
        let word = (0..self.0.len()).find(|word| self.0[*word] & !other.0[*word] != 0)?;
        let missing = self.0[word] & !other.0[word];
        Some(64 * word + missing.trailing_zeros() as usize)
    }
}

/// Splits the numbers on which errors depend into parts, where `map` is Q and the rows of `errors` are r_phase. A
/// part is closed: no number of it depends on a number outside of it.
pub fn parts_of(map: &Matrix, errors: &Matrix) -> Vec<PartPlaces> {
    let n = map.rows();
    // The places that each number of the next cycle reads.
    let mut reads = Vec::with_capacity(n);
    for i in 0..n {
        let mut set = PlaceSet::empty(n);
        for (j, x) in map.row(i).iter().enumerate() {
            if *x != 0.0 {
                set.insert(j);
            }
        }
        reads.push(set);
    }
    // Each number that enters an error, with all places on which it depends.
    let mut closures: Vec<(PlaceSet, usize)> = Vec::new();
    for i in (0..n).filter(|i| (0..errors.rows()).any(|phase| errors[(phase, *i)] != 0.0)) {
        let mut seen = PlaceSet::empty(n);
        // E 1·1 is in every part.
        seen.insert(0);
        seen.insert(i);
        let mut done = PlaceSet::empty(n);
        while let Some(place) = seen.first_missing_in(&done) {
            done.insert(place);
            seen.insert_all(&reads[place]);
        }
        closures.push((seen, i));
    }
    // From the largest set on, so that a set that lies within another comes after it and becomes no part.
    closures.sort_by_key(|(seen, _)| std::cmp::Reverse(seen.count()));
    let mut parts: Vec<(PlaceSet, Vec<usize>)> = Vec::new();
    for (seen, own) in closures {
        match parts.iter_mut().find(|(known, _)| seen.is_within(known)) {
            Some((_, all)) => all.push(own),
            None => parts.push((seen, vec![own])),
        }
    }
    let mut found = Vec::with_capacity(parts.len());
    for (seen, own) in parts {
        let places: Vec<usize> = (0..n).filter(|i| seen.contains(*i)).collect();
        let adds = places.iter().map(|i| own.contains(i)).collect();
        found.push(PartPlaces { places, adds });
    }
    found
}
