//! The numbers z of THEORY (6.1) in parts: blocks that are coupled only through numbers that they share.

use crate::linalg::{Matrix, cholesky};
use std::collections::BTreeMap;

/// Numbers of z that depend on no others, of which E 1·1 is the first, and what they add to the error.
pub struct CurvePart {
    /// r_phase of THEORY (6.1) for each round of the cycle; 0 for numbers that another part adds to the error.
    pub errors: Vec<Vec<f64>>,
    /// For each number the matrix of second moments in which it is (0 is E u uᵀ), and its row and column there.
    pub places: Vec<(usize, usize, usize)>,
}

impl CurvePart {
    /// The identity of THEORY (5.5) in place of covariances: 1 for squares other than E 1·1, and 0 for other
    /// numbers, among them the means E 1·x_i.
    pub fn identity(&self) -> Vec<f64> {
        let is_square = |(block, i, j): &(usize, usize, usize)| i == j && (*block, *i) != (0, 0);
        self.places.iter().map(|place| f64::from(u8::from(is_square(place)))).collect()
    }

    /// Whether the covariances with these numbers, and with 0 for entries that are not in the part, are positive
    /// definite.
    pub fn is_definite(&self, numbers: &[f64]) -> bool {
        let mut matrices: BTreeMap<usize, BTreeMap<usize, BTreeMap<usize, f64>>> = BTreeMap::new();
        let of_covariances = |place: &(usize, usize, usize)| place.0 > 0 || place.1 > 0;
        let each = self.places.iter().zip(numbers).filter(|(place, _)| of_covariances(place));
        for ((block, i, j), x) in each {
            let rows = matrices.entry(*block).or_default();
            rows.entry(*i).or_default().insert(*j, *x);
            rows.entry(*j).or_default().insert(*i, *x);
        }
        matrices.values().all(|rows| {
            let index: Vec<usize> = rows.keys().copied().collect();
            let entry = |i: usize, j: usize| {
                rows.get(&index[i]).and_then(|row| row.get(&index[j])).copied().unwrap_or(0.0)
            };
            cholesky(Matrix::from_fn(index.len(), index.len(), entry)).is_ok()
        })
    }
}

/// The parts of z: the numbers on which errors depend, where `map` is Q and the rows of `errors` are r_phase.
/// A part is given by the places of its numbers in z, each with whether the part adds it to the error; a
/// number that several parts share is added once.
pub fn parts_of(map: &Matrix, errors: &Matrix) -> Vec<(Vec<usize>, Vec<bool>)> {
    let n = map.rows();
    // Sets of places, 64 in a number. E 1·1 is the first.
    let words = n.div_ceil(64);
    let has = |set: &[u64], i: usize| set[i / 64] >> (i % 64) & 1 == 1;
    let reads = |i: usize| {
        let mut set = vec![0_u64; words];
        let row = map.row(i).iter().enumerate();
        row.filter(|(_, x)| **x != 0.0).for_each(|(j, _)| set[j / 64] |= 1 << (j % 64));
        set
    };
    let reads: Vec<Vec<u64>> = (0..n).map(reads).collect();
    let mut closures: Vec<(Vec<u64>, usize)> = Vec::new();
    for i in (0..n).filter(|i| (0..errors.rows()).any(|phase| errors[(phase, *i)] != 0.0)) {
        // What the number depends on.
        let mut seen = vec![0_u64; words];
        seen[0] |= 1;
        seen[i / 64] |= 1 << (i % 64);
        let mut done = vec![0_u64; words];
        while let Some(word) = (0..words).find(|w| seen[*w] & !done[*w] != 0) {
            let bit = (seen[word] & !done[word]).trailing_zeros() as usize;
            done[word] |= 1 << bit;
            seen.iter_mut().zip(&reads[64 * word + bit]).for_each(|(seen, reads)| *seen |= reads);
        }
        closures.push((seen, i));
    }
    let size = |set: &[u64]| set.iter().map(|word| word.count_ones()).sum::<u32>();
    closures.sort_by_key(|(seen, _)| std::cmp::Reverse(size(seen)));
    let mut parts: Vec<(Vec<u64>, Vec<usize>)> = Vec::new();
    for (seen, own) in closures {
        let within = |known: &[u64]| seen.iter().zip(known).all(|(a, b)| a & !b == 0);
        match parts.iter_mut().find(|(known, _)| within(known)) {
            Some((_, all)) => all.push(own),
            None => parts.push((seen, vec![own])),
        }
    }
    let of = |(seen, own): (Vec<u64>, Vec<usize>)| {
        let places: Vec<usize> = (0..n).filter(|i| has(&seen, *i)).collect();
        let is_own = places.iter().map(|i| own.contains(i)).collect();
        (places, is_own)
    };
    parts.into_iter().map(of).collect()
}
