//! Types of clients: clients that no round distinguishes, so that exchanging them changes no moment.

use crate::problem::{Facts, group_clients};
use crate::round_program::{Operation, Program, Weights};
use std::collections::HashSet;

/// Clients with the same distribution, the same share and the same constants in every round.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// The first client of the type: its settings are those of all.
    pub first: usize,
    /// n_g, the number of clients of the type.
    pub count: f64,
}

/// The types g of a program's clients on a problem, in the order of their first clients, and the type of
/// each client: the types by which THEORY (3.1) splits vectors. Clients of a type have the same bits in
/// everything that is a client's own; a matrix between clients that does not treat them alike makes
/// each client a type.
pub(super) fn types(program: &Program, facts: &dyn Facts) -> (Vec<Type>, Vec<usize>) {
    let n = program.clients;
    // The bits of all that is a client's own.
    let own = |k: usize| {
        let mut bits = vec![facts.distribution(k) as u64, facts.weight(k).to_bits()];
        program.rounds.iter().for_each(|round| {
            let mut put = |x: f64| bits.push(x.to_bits());
            for operation in &round.operations {
                match operation {
                    Operation::Steps { step, count, batch, .. } => {
                        let own = [
                            step.of_client(k),
                            count.of_client(k) as f64,
                            batch.of_client(k) as f64,
                        ];
                        own.into_iter().for_each(&mut put);
                    }
                    Operation::Fields { calls, .. } => put(calls.of_client(k) as f64),
                    Operation::Sum { weights: Weights::Each(all), .. } => put(all[k]),
                    _ => {}
                }
            }
            let read = round.operations.iter().flat_map(Operation::reads);
            for expression in read.chain(&round.next).chain(&round.ends) {
                let factors = expression.terms.iter().map(|(_, factor)| factor);
                for coefficient in factors.chain([&expression.constant]) {
                    coefficient
                        .numbers_of_client(k, program.dimension)
                        .iter()
                        .for_each(|x| put(*x));
                }
            }
        });
        bits
    };
    let (first, type_of) = group_clients(n, own);
    let mut operations = program.rounds.iter().flat_map(|round| &round.operations);
    let is_blind = |operation: &Operation| match operation {
        Operation::Mix { matrix, .. } => interchangeable(matrix, &type_of, &first),
        _ => true,
    };
    // Neighbours on a graph: each client is a type.
    let each = || ((0..n).collect(), (0..n).collect());
    let (first, type_of) = if operations.all(is_blind) { (first, type_of) } else { each() };
    (Type::all(&first, &type_of), type_of)
}

impl Type {
    /// The types with these first clients, counted from the type of each client.
    pub fn all(first: &[usize], type_of: &[usize]) -> Vec<Self> {
        let mut all: Vec<_> = first.iter().map(|&first| Self { first, count: 0.0 }).collect();
        type_of.iter().for_each(|place| all[*place].count += 1.0);
        all
    }
}

/// Whether a matrix has the same entry for all pairs of a client of one type and another client of
/// one type.
fn interchangeable(matrix: &[f64], type_of: &[usize], first: &[usize]) -> bool {
    let n = type_of.len();
    let types = first.len();
    let mut pairs = vec![HashSet::new(); types * types];
    let mut own = vec![HashSet::new(); types];
    for k in 0..n {
        for j in 0..n {
            let bits = (matrix[k * n + j] + 0.0).to_bits();
            let seen = match k == j {
                true => &mut own[type_of[k]],
                false => &mut pairs[type_of[k] * types + type_of[j]],
            };
            if seen.insert(bits) && seen.len() > 1 {
                return false;
            }
        }
    }
    true
}
