//! Finite Markov chains by the transitions that occur, and their stationary distributions.

use crate::kernel::SparseRows;
use crate::linalg::{Dd, Matrix, Singular, refine, solve};

/// The most states of a chain whose stationary distribution is found by factoring its linear system. With
/// more states the chain is run first, which takes less time ([`Mixing`]).
const MOST_FACTORED: usize = 128;
/// The largest difference of Σμ from 1, and of μP from μ, that a stationary distribution may have: ten
/// times the largest difference from 1 that a sum of a user's probabilities may have.
const ROUNDING: f64 = 10.0 * super::probabilities::ROUNDING;

/// The transpose of a square matrix of sparse rows; of P it has the columns of P as its rows.
fn transpose(rows: &SparseRows) -> SparseRows {
    let mut columns = vec![Vec::new(); rows.dim()];
    for (i, row) in (0..).zip(rows.iter()) {
        row.iter().for_each(|(j, x)| columns[j].push((i, x)));
    }
    SparseRows::from_rows(rows.len(), columns.into_iter())
}

/// Draws that follow a finite Markov chain, on a linear field.
pub struct Trajectory {
    /// The distribution of the state before the first oracle call.
    pub begin: Vec<f64>,
    /// The stationary distribution of the state, S numbers.
    pub stationary: Vec<f64>,
    /// All moves of positive probability, from every state.
    pub moves: Vec<Move>,
}

/// What an oracle call along a trajectory may do, with its probability: it returns
/// `matrix` (θ − θ*) + `offset`, and the state changes from `from` to `to`.
pub struct Move {
    /// The state s before the call.
    pub from: usize,
    /// The state s' after the call.
    pub to: usize,
    /// The probability of this move, given that the state is s.
    pub probability: f64,
    /// A(Z), d × d.
    pub matrix: Matrix,
    /// F_c(θ*; Z), d numbers.
    pub offset: Vec<f64>,
}

/// A Markov chain: the S × S matrix P(s' | s), of which the transitions that occur are stored.
pub struct Chain(SparseRows);

impl Chain {
    /// The chain with these transition probabilities, S × S, of which those that are 0 are left out. That each row
    /// sums to 1 is not checked here, but by [`Chain::stationary`].
    pub fn new(transitions: &Matrix) -> Self {
        Self(SparseRows::from_dense(transitions.rows(), transitions.entries()))
    }

    /// The mean chain of several chains on the same states: each of its transition probabilities is the mean of
    /// theirs, with equal weights.
    ///
    /// # Panics
    /// If there is no chain.
    pub fn mean<'a>(chains: impl ExactSizeIterator<Item = &'a Self> + Clone) -> Self {
        let share = 1.0 / chains.len() as f64;
        let states = chains.clone().next().expect("a chain").states();
        let mut sums = vec![0.0; states];
        let rows = (0..states).map(|s| {
            for chain in chains.clone() {
                chain.from(s).for_each(|(t, p)| sums[t] += share * p);
            }
            let row = std::mem::replace(&mut sums, vec![0.0; states]);
            (0..).zip(row).filter(|(_, p)| *p != 0.0)
        });
        Self(SparseRows::from_rows(states, rows))
    }

    /// S, the number of states.
    pub fn states(&self) -> usize {
        self.0.len()
    }

    /// The successors of a state in increasing order, each with its probability P(s' | s).
    pub fn from(&self, state: usize) -> impl Iterator<Item = (usize, f64)> {
        self.0.row(state).iter()
    }

    /// The stationary distribution μ, S numbers: μP = μ and Σμ = 1. A state that is left for ever has
    /// probability 0. The bits do not depend on how the system is solved.
    ///
    /// # Errors
    /// [`Singular`] if it is not unique, or a row of P does not sum to 1.
    pub fn stationary(&self) -> Result<Vec<f64>, Singular> {
        let n = self.states();
        let into = transpose(&self.0);
        if !has_one_class(&into) {
            return Err(Singular);
        }
        let mut rhs = vec![0.0; n];
        rhs[n - 1] = 1.0;
        let system = SparseRows::from_rows(n, (0..n as u32).map(|i| stationary_equation(&into, i)));
        let mixing = (n > MOST_FACTORED).then(|| Mixing::new(&into)).flatten();
        let refined = mixing.map(|mixing| {
            refine(
                &rhs,
                |residual| mixing.solve(residual),
                |x: &[Dd], i: usize| {
                    let row = system.row(i).iter();
                    row.fold(Dd::from(rhs[i]), |sum, (j, a)| sum.minus_product(a, x[j])).hi
                },
            )
        });
        let mut mu = match refined {
            Some(Ok(mu)) => mu,
            _ => solve(&Matrix::from_entries(n, n, system.to_dense()), &rhs)?,
        };
        // Transient states come out as 0 up to the last bits of double-double.
        mu.iter_mut().for_each(|p| *p = if *p < 1e-25 { 0.0 } else { *p });
        // Rows that are not probabilities pass the solver; their solution fails this check.
        let sum: f64 = mu.iter().sum();
        let invariant = (0..n).all(|j| {
            let next = into.row(j).iter().map(|(i, p)| mu[i] * p).sum::<f64>();
            (next - mu[j]).abs() <= ROUNDING
        });
        if (sum - 1.0).abs() <= ROUNDING && invariant { Ok(mu) } else { Err(Singular) }
    }
}

/// The coefficients of equation number i of the linear system of the stationary distribution μ, sparse:
/// each with the number of the state of μ that it multiplies, increasing. Equation i is entry i of
/// μ(P − I) = 0; the last one, which follows from the others, is replaced by Σμ = 1. `into` are the columns
/// of P.
fn stationary_equation(into: &SparseRows, i: u32) -> Vec<(u32, f64)> {
    if i as usize + 1 == into.len() {
        return (0..=i).map(|j| (j, 1.0)).collect();
    }
    let column = into.row(i as usize).iter();
    let mut row: Vec<(u32, f64)> = column.map(|(j, p)| (j as u32, p)).collect();
    match row.binary_search_by_key(&i, |entry| entry.0) {
        Ok(place) => row[place].1 -= 1.0,
        Err(place) => row.insert(place, (i, -1.0)),
    }
    row
}

/// Whether the chain has exactly one class of states that is never left, and so one stationary
/// distribution: whether some state is reached from all others. `into` are the columns of P: row j of it has the states
/// from which state j is reached in one transition.
fn has_one_class(into: &SparseRows) -> bool {
    // Searches backwards begin at states that no earlier search reached. If some state is reached from all
    // others, the state at which the last of these searches begins is one.
    let mut reached = vec![false; into.len()];
    let mut last = 0;
    while let Some(state) = (last..reached.len()).find(|state| !reached[*state]) {
        last = state;
        reach_back(into, state, &mut reached);
    }
    reached.fill(false);
    reach_back(into, last, &mut reached);
    reached.iter().all(|reached| *reached)
}

/// Marks in `reached` the states from which `target` is reached, except through states that are marked
/// already. `into` are the columns of P.
fn reach_back(into: &SparseRows, target: usize, reached: &mut [bool]) {
    let mut open = vec![target];
    reached[target] = true;
    while let Some(state) = open.pop() {
        for (before, _) in into.row(state).iter() {
            if !std::mem::replace(&mut reached[before], true) {
                open.push(before);
            }
        }
    }
}

/// A chain that forgets its start quickly. Systems with the matrix P − I are then solved to some digits by
/// sums over its powers, which take less time than a factorisation; [`refine`] makes them exact.
struct Mixing<'a> {
    /// The columns of P: row j has the states from which state j is reached.
    into: &'a SparseRows,
    /// The stationary distribution, to some digits.
    approximate: Vec<f64>,
}

impl<'a> Mixing<'a> {
    /// The most transitions that are tried: a chain that needs more counts as slow.
    const MOST: usize = 2000;
    /// The size, relative to the right side, of what approximate solutions leave.
    const CLOSE: f64 = 1e-4;

    /// Lets the chain with these columns of P run from equal probabilities until a transition hardly changes the
    /// distribution. `None` if that takes more than [`MOST`](Self::MOST) transitions: then its systems are factored
    /// instead.
    fn new(into: &'a SparseRows) -> Option<Self> {
        let n = into.len();
        let mut mixing = Self { into, approximate: vec![1.0 / n as f64; n] };
        (0..Self::MOST).find(|_| {
            let next = mixing.next_distribution(&mixing.approximate);
            let change = crate::kernel::difference(&next, &mixing.approximate);
            mixing.approximate = next;
            change.iter().map(|x| x.abs()).sum::<f64>() <= 0.1 * Self::CLOSE
        })?;
        Some(mixing)
    }

    /// xP: the distribution of the state after a transition, for x the distribution before it.
    fn next_distribution(&self, x: &[f64]) -> Vec<f64> {
        (0..x.len())
            .map(|j| self.into.row(j).iter().fold(0.0, |sum, (i, p)| sum + x[i] * p))
            .collect()
    }

    /// An approximation of the x with x(P − I) = r in all entries but the last, and Σx equal to the last
    /// entry of r. With the last entry of r replaced so that its entries add up to 0, −Σ_k r Pᵏ solves the
    /// first equations and adds up to 0; the multiple of the stationary distribution adds what Σx lacks.
    ///
    /// # Errors
    /// [`Singular`] if the terms of the sum do not vanish within [`MOST`](Self::MOST) transitions.
    fn solve(&self, r: &[f64]) -> Result<Vec<f64>, Singular> {
        let n = r.len();
        let mut x: Vec<f64> = self.approximate.iter().map(|p| r[n - 1] * p).collect();
        let mut term = r.to_vec();
        term[n - 1] = -r[..n - 1].iter().sum::<f64>();
        let enough = Self::CLOSE * largest_size(&term);
        for _ in 0..Self::MOST {
            if largest_size(&term) <= enough {
                return Ok(x);
            }
            x.iter_mut().zip(&term).for_each(|(x, term)| *x -= term);
            term = self.next_distribution(&term);
        }
        Err(Singular)
    }
}

/// The largest |x_i|; 0 without numbers.
fn largest_size(x: &[f64]) -> f64 {
    x.iter().fold(0.0_f64, |most, x| most.max(x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn a_chain_of_two_islands_has_no_unique_law() {
        for n in [4, MOST_FACTORED + 2] {
            let same = |i: usize, j: usize| 2 * i / n == 2 * j / n;
            let share = 2.0 / n as f64;
            let islands = Matrix::from_fn(n, n, |i, j| if same(i, j) { share } else { 0.0 });
            assert_eq!(Chain::new(&islands).stationary(), Err(Singular));
        }
        let drift = Matrix::from_fn(3, 3, |i, j| f64::from(u8::from(j == (i + 1).min(2))));
        assert_eq!(Chain::new(&drift).stationary(), Ok(vec![0.0, 0.0, 1.0]));
    }

    #[test]
    fn rows_that_do_not_add_up_have_no_law() {
        let leaky = Matrix::from_fn(2, 2, |i, j| if i == j { 0.4 } else { 0.5 });
        assert_eq!(Chain::new(&leaky).stationary(), Err(Singular));
        let negative = Matrix::from_fn(2, 2, |i, j| [[1.5, -0.5], [0.5, 0.5]][i][j]);
        assert_eq!(Chain::new(&negative).stationary(), Err(Singular));
    }

    /// Whether the chain is run or its system is factored, the refined bits are the same.
    #[test]
    fn both_solvers_give_the_same_bits() {
        let n = MOST_FACTORED + 40;
        let mut rng = Stream::shared_instance(11);
        let mut dense = Matrix::zeros(n, n);
        for s in 0..n {
            for t in rng.distinct(n, 5) {
                dense[(s, t)] = 0.2;
            }
        }
        let chain = Chain::new(&dense);
        let system = Matrix::from_fn(n, n, |i, j| {
            if i + 1 == n { 1.0 } else { dense[(j, i)] - f64::from(u8::from(i == j)) }
        });
        let mut rhs = vec![0.0; n];
        rhs[n - 1] = 1.0;
        let into = transpose(&chain.0);
        assert!(Mixing::new(&into).is_some());
        let found = chain.stationary().unwrap();
        let factored = solve(&system, &rhs).unwrap();
        for (found, factored) in found.iter().zip(&factored) {
            assert!(found == factored || factored.abs() < 1e-25, "{found} {factored}");
        }
    }

    /// A cycle never forgets its start; its system is factored.
    #[test]
    fn a_periodic_chain_is_solved_too() {
        let n = MOST_FACTORED + 2;
        let cycle = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(j == (i + 1) % n)));
        let mu = Chain::new(&cycle).stationary().unwrap();
        assert!(mu.iter().all(|p| (p - 1.0 / n as f64).abs() < 1e-16));
    }
}
