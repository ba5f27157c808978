//! The effort of exact moments, estimated from the numbers of types, vectors and local steps of a program.

use super::pass::pass_sizes;
use super::types::client_types;
use crate::linalg::{DIRECT, KRYLOV};
use crate::problem::Facts;
use crate::round_program::{Level, Operation, Program};
use crate::theory::effort::{self, Effort};

/// The number of restarts of GMRES with which the effort of a solution is estimated. How many it takes is not known
/// before.
const FEWEST_RESTARTS: f64 = 4.0;

/// How many multiplications a program's rounds take, and how many numbers they keep in memory: from them follows the
/// effort of its moments, before anything is computed.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSizes {
    /// The multiplications that preparing a round takes, in which its local steps are computed.
    pub prepare: f64,
    /// The multiplications that applying a prepared round to a state takes.
    pub round: f64,
    /// How many numbers are in memory at once.
    numbers: f64,
    /// The dimension d.
    d: f64,
    /// How many numbers the second moments of a state are.
    state: f64,
}

/// The most local steps that a client makes in an operation, their mean number 1/p under a coin, 1 for gradients
/// whatever their number, and 0 for operations that take no gradients, which have no noise map.
fn steps_of(operation: &Operation, clients: usize) -> f64 {
    match operation {
        Operation::Steps { coin: Some(p), .. } => 1.0 / p,
        Operation::Steps { count, .. } => {
            (0..clients).map(|k| count.of_client(k)).max().unwrap_or(1) as f64
        }
        Operation::Fields { .. } => 1.0,
        _ => 0.0,
    }
}

impl ProgramSizes {
    /// The largest sizes over the different rounds of a program. The factors are rough counts of products of matrices:
    /// they decide which computations are refused, and no result depends on them.
    pub fn new(program: &Program, facts: &dyn Facts) -> Self {
        let d = facts.dim() as f64;
        let (all_types, _) = client_types(program, facts);
        let types = all_types.len() as f64;
        let mut pass_products = 0.0;
        let mut pass_numbers = 0.0_f64;
        for each in &all_types {
            let [products, numbers] = pass_sizes(facts, each.first);
            pass_products += products;
            pass_numbers = pass_numbers.max(numbers);
        }
        let y = 2.0 * d + 1.0;
        let mut out = Self { prepare: 0.0, round: 0.0, numbers: 0.0, d, state: 0.0 };
        for each in &program.rounds {
            let vectors_of_clients =
                each.state.iter().filter(|level| **level == Level::Clients).count() as f64;
            let vectors_of_server = each.state.len() as f64 - vectors_of_clients;
            // The coordinates of the state, and those of a client's deviations.
            let all = d * (vectors_of_server + types * vectors_of_clients);
            let own = d * vectors_of_clients;
            let local = each
                .operations
                .iter()
                .map(|operation| steps_of(operation, program.clients))
                .filter(|count| *count > 0.0);
            let doublings: f64 = local.clone().map(|count| 1.5 * libm::log2(count + 1.0)).sum();
            let noisy = types * local.count() as f64;
            let noise = (d + 1.0) * (d + 1.0) * effort::noise_map(facts);
            let steps = doublings * d * d * y * y * (d * d + 2.0 * y) + noise;
            let prepare = types * steps + pass_products;
            let width = 1.0 + all + d * each.operations.len() as f64;
            let fields = each
                .operations
                .iter()
                .filter(|operation| {
                    matches!(operation, Operation::Fields { .. } | Operation::MeanFields { .. })
                })
                .count() as f64;
            // Each type reads vectors of all types.
            let pairs = (own / d + fields) * types * types;
            let round = 4.0 * width * all.max(d) * d + noisy * d * d * y * y + 20.0 * pairs;
            out.prepare = out.prepare.max(prepare);
            out.round = out.round.max(round);
            let numbers = 3.0 * width * width + noisy * d * d * y * y + pass_numbers;
            out.numbers = out.numbers.max(numbers);
            out.state = out.state.max(all * all / 2.0 + types * own * own / 2.0);
        }
        out
    }

    /// The effort of the moments of `rounds` rounds, where `prepared` rounds are prepared (once if all are the same)
    /// and the moments of `rows` rounds are stored.
    pub fn effort(&self, prepared: u64, rounds: u64, rows: usize) -> Effort {
        let stored = rows as f64 * (self.d * self.d + 2.0 * self.d);
        let products = prepared as f64 * self.prepare + rounds as f64 * self.round;
        Effort::new(products, self.numbers + stored)
    }

    /// The effort of the stationary moments of a cycle of `cycle` rounds, THEORY (5.6): of a direct solution, or of
    /// `FEWEST_RESTARTS` restarts of GMRES.
    pub fn at_rest(&self, cycle: usize) -> Effort {
        let once = self.effort(cycle as u64, cycle as u64, cycle.saturating_sub(1));
        let length = self.state;
        let (applied, held) = if length <= DIRECT as f64 {
            (length, 3.0 * length * length)
        } else {
            (FEWEST_RESTARTS * (KRYLOV as f64 + 1.0), (2.0 * KRYLOV as f64 + 5.0) * length)
        };
        let solved = length.min(DIRECT as f64).powi(3);
        let products = cycle as f64 * (self.prepare + applied * self.round) + solved;
        Effort { products, bytes: once.bytes + 8.0 * held }
    }
}
