//! Types of clients: clients that no round distinguishes, so that exchanging them changes no moment.

use crate::problem::{Facts, group_clients};
use crate::round_program::{Operation, Program, Weights};
use std::collections::HashSet;

/// Clients with the same distribution, the same share and the same constants in every round.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// The first client of the type, which has the settings of all clients of the type.
    pub first: usize,
    /// n_g, the number of clients of the type.
    pub count: f64,
}

/// The types g of a program's clients on a problem, in the order of their first clients, and the type of
/// each client: the types by which THEORY (3.1) splits vectors. Clients of a type have the same bits in
/// everything that is a client's own; a matrix between clients that does not treat them alike makes
/// each client a type.
pub(super) fn client_types(program: &Program, facts: &dyn Facts) -> (Vec<Type>, Vec<usize>) {
    let n = program.clients;
    let (first, type_of) = group_clients(n, |k| bits_of_client(program, facts, k));
    let mut operations = program.rounds.iter().flat_map(|round| &round.operations);
    let are_alike = operations.all(|operation| match operation {
        Operation::Mix { matrix, .. } => is_alike_for_types(matrix, &type_of, &first),
        _ => true,
    });
    if are_alike {
        return (Type::all(&first, &type_of), type_of);
    }
    // A matrix that tells clients apart, such as a matrix of neighbours on a graph, makes each client a type.
    let all: Vec<usize> = (0..n).collect();
    (Type::all(&all, &all), all)
}

/// The bits of all numbers that are client k's own: its distribution, its weight, and what the rounds state for
/// it. Clients with the same bits are of one type, unless a matrix between clients tells them apart.
fn bits_of_client(program: &Program, facts: &dyn Facts, k: usize) -> Vec<u64> {
    let mut bits = vec![facts.distribution(k) as u64, facts.weight(k).to_bits()];
    for round in &program.rounds {
        if let Some(number) = round.participation.number_of_client(k) {
            bits.push(number.to_bits());
        }
        for operation in &round.operations {
            match operation {
                Operation::Steps { step, count, batch, .. } => {
                    bits.push(step.of_client(k).to_bits());
                    bits.push((count.of_client(k) as f64).to_bits());
                    bits.push((batch.of_client(k) as f64).to_bits());
                }
                Operation::Fields { calls, .. } => bits.push((calls.of_client(k) as f64).to_bits()),
                Operation::Sum { weights: Weights::Each(all), .. } => bits.push(all[k].to_bits()),
                Operation::Matrix { .. } => {
                    let own = operation.matrix_of_client(k, program.dimension);
                    bits.extend(own.iter().map(|x| x.to_bits()));
                }
                _ => {}
            }
        }
        let read = round.operations.iter().flat_map(Operation::reads);
        for expression in read.chain(&round.next).chain(&round.ends) {
            let factors = expression.terms.iter().map(|(_, factor)| factor);
            for coefficient in factors.chain([&expression.constant]) {
                let numbers = coefficient.numbers_of_client(k, program.dimension);
                bits.extend(numbers.iter().map(|x| x.to_bits()));
            }
        }
    }
    bits
}

impl Type {
    /// The types whose first clients are `first`. The type of each client, `type_of`, says how many clients each type
    /// has.
    pub fn all(first: &[usize], type_of: &[usize]) -> Vec<Self> {
        let mut all: Vec<_> = first.iter().map(|&first| Self { first, count: 0.0 }).collect();
        type_of.iter().for_each(|place| all[*place].count += 1.0);
        all
    }
}

/// Whether an N × N matrix treats clients of one type alike, as THEORY (4.4) assumes: the entry of clients k and j is
/// the same for all pairs of the same two types, where a client with itself is another kind of pair than two clients.
fn is_alike_for_types(matrix: &[f64], type_of: &[usize], first: &[usize]) -> bool {
    let n = type_of.len();
    let types = first.len();
    // The entries that were seen so far of each pair of types, and of the clients of each type with themselves.
    let mut pairs = vec![HashSet::new(); types * types];
    let mut own = vec![HashSet::new(); types];
    for k in 0..n {
        for j in 0..n {
            // -0 and 0 count as equal.
            let bits = (matrix[k * n + j] + 0.0).to_bits();
            let seen = if k == j {
                &mut own[type_of[k]]
            } else {
                &mut pairs[type_of[k] * types + type_of[j]]
            };
            if seen.insert(bits) && seen.len() > 1 {
                return false;
            }
        }
    }
    true
}
