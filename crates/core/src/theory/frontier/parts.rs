//! The second moments of a curve in parts that depend on each other alone.

use super::products::Products;
use super::round::PairMap;
use crate::linalg::Matrix;
use faer::Mat;

/// Numbers that depend on each other alone, and what they add to the error.
pub struct CurvePart {
    /// The map over a cycle.
    pub map: Mat<f64>,
    /// What each adds to the error after each round of the cycle.
    pub errors: Vec<Vec<f64>>,
    /// Those that no moments have below 0.
    pub squares: Vec<usize>,
    /// The place of E 1·1.
    pub one: usize,
}

impl CurvePart {
    /// Those of a pair of runs.
    pub fn of_pair(pair: PairMap) -> Self {
        let PairMap { weight, map, trace, one, blocks } = pair;
        let after = |j| trace.iter().fold(0.0, |sum, &k| sum + weight * map[(k, j)]);
        let errors = vec![(0..map.ncols()).map(after).collect()];
        let same = blocks.iter().filter(|(products, _)| products.same);
        let diagonal =
            |(p, at): &(Products, usize)| (0..p.n).map(|i| at + p.index(i, i)).collect::<Vec<_>>();
        let squares = same.flat_map(diagonal).collect();
        Self { map, errors, squares, one }
    }
}

/// The numbers that errors depend on, in parts that depend on no number of another part but those
/// that they share, and which of them are the part's own among those that errors are made of.
pub fn parts_of(map: &Matrix, errors: &[Vec<f64>]) -> Vec<(Vec<usize>, Vec<bool>)> {
    let n = map.rows();
    let reads = |i: usize| {
        let row = map.row(i).iter().enumerate();
        row.filter(|(_, x)| **x != 0.0).map(|(j, _)| j).collect::<Vec<_>>()
    };
    let reads: Vec<Vec<usize>> = (0..n).map(reads).collect();
    let mut closures: Vec<(Vec<bool>, Vec<usize>)> = Vec::new();
    for i in (0..n).filter(|i| errors.iter().any(|of| of[*i] != 0.0)) {
        // What the number depends on; E 1·1 is the first number.
        let mut seen = vec![false; n];
        (seen[0], seen[i]) = (true, true);
        let mut open = vec![i];
        while let Some(i) = open.pop() {
            for &j in &reads[i] {
                if !seen[j] {
                    seen[j] = true;
                    open.push(j);
                }
            }
        }
        match closures.iter_mut().find(|(known, _)| *known == seen) {
            Some((_, own)) => own.push(i),
            None => closures.push((seen, vec![i])),
        }
    }
    closures.sort_by_key(|(seen, _)| std::cmp::Reverse(seen.iter().filter(|x| **x).count()));
    let mut parts: Vec<(Vec<bool>, Vec<usize>)> = Vec::new();
    for (seen, own) in closures {
        let within = |known: &Vec<bool>| seen.iter().zip(known).all(|(a, b)| !a || *b);
        match parts.iter_mut().find(|(known, _)| within(known)) {
            Some((_, all)) => all.extend(own),
            None => parts.push((seen, own)),
        }
    }
    let of = |(seen, own): (Vec<bool>, Vec<usize>)| {
        let places: Vec<usize> = (0..n).filter(|i| seen[*i]).collect();
        let is_own = places.iter().map(|i| own.contains(i)).collect();
        (places, is_own)
    };
    parts.into_iter().map(of).collect()
}
