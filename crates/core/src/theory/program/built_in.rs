//! The rounds of a built-in algorithm as a program.

use crate::problem::Facts;
use crate::program::{
    Coefficient, Expression, Level, Numbers, Operation, PerClient, Program, Round, Shares, Weights,
};
use crate::theory::moments::{AlgorithmModel, Correction};

/// Σ coefficient · atom.
fn sum<const K: usize>(terms: [(usize, f64); K]) -> Expression {
    let terms = terms.into_iter().filter(|(_, x)| *x != 0.0);
    let terms = terms.map(|(atom, x)| (atom, Coefficient::Number(x))).collect();
    Expression { terms, constant: Coefficient::Number(0.0) }
}

fn each<T: PartialEq + Copy>(n: usize, of: impl Fn(usize) -> T) -> PerClient<T> {
    let all: Vec<T> = (0..n).map(of).collect();
    if all.iter().all(|x| *x == all[0]) { PerClient::All(all[0]) } else { PerClient::Each(all) }
}

/// The first rounds of an algorithm of one run, of which the last repeats if its step sizes are
/// constant; `None` if its rounds are no program.
pub fn program(facts: &dyn Facts, model: &AlgorithmModel<'_>, rounds: u64) -> Option<Program> {
    if model.coin.is_some() || model.runs.len() > 1 {
        return None;
    }
    let factor = |t: u64| model.decay.as_ref().map_or(1.0, |factor| factor(t));
    let number = if model.decay.is_some() { rounds } else { 2 };
    let all = (0..number).map(|t| round(facts, model, t == 0, factor(t))).collect();
    let (clients, dimension) = (facts.clients(), facts.dim());
    let cycle = usize::from(model.decay.is_none());
    let order = (0..number as usize).collect();
    Some(Program { clients, dimension, rounds: all, order, cycle })
}

fn round(facts: &dyn Facts, model: &AlgorithmModel<'_>, first: bool, factor: f64) -> Round {
    let run = &model.runs[0];
    let n = facts.clients();
    let members = model.cohort < n;
    let update = |k: usize| (run.update)(k);
    let step = each(n, |k| factor * update(k).step);
    let kept = matches!(run.correction, Correction::Kept | Correction::KeptFresh);
    // θ is atom 0, the variates are atom 1 if they are state.
    let has_state = kept && !first;
    let mut state = vec![Level::Server];
    if has_state {
        state.push(Level::Clients);
    }
    let mut operations: Vec<Operation> = Vec::new();
    let base = state.len();
    let add = |operations: &mut Vec<Operation>, operation: Operation| {
        operations.push(operation);
        base + operations.len() - 1
    };
    let calls = |members| Operation::Fields {
        at: sum([(0, 1.0)]),
        calls: each(n, |k| update(k).steps * update(k).batch),
        members,
        draws: None,
    };
    let shares = || Weights::Shares(Shares::Shares);
    let mean = |rows: Expression| match members {
        true => Operation::Members { rows },
        false => Operation::Sum { rows, weights: shares() },
    };
    let mut own_mean = None;
    let correction = match run.correction {
        Correction::None => None,
        Correction::Fresh => {
            let rows = add(&mut operations, calls(false));
            let rows_mean = Operation::Sum { rows: sum([(rows, 1.0)]), weights: shares() };
            let all = add(&mut operations, rows_mean);
            Some(sum([(rows, -1.0), (all, 1.0)]))
        }
        _ if first => Some(sum([])),
        _ => {
            let rows_mean = Operation::Sum { rows: sum([(1, 1.0)]), weights: shares() };
            let all = add(&mut operations, rows_mean);
            own_mean = Some(all);
            Some(sum([(1, -1.0), (all, 1.0)]))
        }
    };
    let proximal = update(0).proximal;
    let ends = add(
        &mut operations,
        Operation::Steps {
            start: sum([(0, 1.0)]),
            correction,
            anchor: (proximal != 0.0).then(|| sum([(0, 1.0)])),
            step: step.clone(),
            count: each(n, |k| update(k).steps),
            batch: update(0).batch,
            proximal,
            members,
            draws: None,
            coin: None,
        },
    );
    let after = add(&mut operations, mean(sum([(ends, 1.0)])));
    let result = sum([(0, 1.0 - run.server_step), (after, run.server_step)]);
    let mut next = vec![result.clone()];
    if kept {
        let learned = match run.correction {
            Correction::KeptFresh => sum([(add(&mut operations, calls(members)), 1.0)]),
            _ => {
                // c_k − c̄ + (θ_t − θ_k)/(γ_k E_k).
                let rate = |k: usize| 1.0 / (factor * update(k).step * update(k).steps as f64);
                let rates = |sign: f64| match each(n, |k| sign * rate(k)) {
                    PerClient::All(x) => Coefficient::Number(x),
                    PerClient::Each(all) => Coefficient::Numbers(Numbers::Clients(all)),
                };
                let mut terms = vec![(0, rates(1.0))];
                if let Some(all) = own_mean {
                    terms.push((1, Coefficient::Number(1.0)));
                    terms.push((all, Coefficient::Number(-1.0)));
                }
                terms.push((ends, rates(-1.0)));
                Expression { terms, constant: Coefficient::Number(0.0) }
            }
        };
        next.push(match members {
            true => {
                let other = if has_state { sum([(1, 1.0)]) } else { sum([]) };
                let select = Operation::Select { member: learned, other };
                sum([(add(&mut operations, select), 1.0)])
            }
            false => learned,
        });
    }
    let cohort = members.then_some(model.cohort);
    Round { state, cohort, masks: Vec::new(), operations, next, result }
}
