//! What a problem says of each type of clients, and origins of coordinates.
//!
//! A vector's coordinates have the origin α θ* + β F̄_k(θ*): with α = 1 they are its distance from
//! θ*, and with β = 1 that of a control variate from its limit. So nothing cancels close to θ*, and
//! whatever α and β are chosen, the numbers are exact.

use super::local::{Drive, Steps};
use super::types::{Type, types};
use crate::problem::Facts;
use crate::program::Program;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// The most local steps that are kept: where step sizes fall, each round has its own.
const MOST_KEPT: usize = 4096;

/// What identifies local steps: the distribution of the oracle, and each run.
type StepsKey = (usize, [([u64; 4], bool); 2], bool);

/// What a problem says of each type of clients.
pub(super) struct Setup<'a> {
    pub facts: &'a dyn Facts,
    pub d: usize,
    pub types: Vec<Type>,
    /// The type of each client.
    pub type_of: Vec<usize>,
    /// F̄_k(θ*) of each type, d numbers.
    pub fields: Vec<Vec<f64>>,
    /// Whether the sum of all estimates is part of the state.
    pub average: bool,
    steps: RefCell<HashMap<StepsKey, Rc<Steps>>>,
}

/// α and β of each type of clients; of the server one α.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Origin {
    pub optimum: Vec<f64>,
    pub fields: Vec<f64>,
}

impl<'a> Setup<'a> {
    pub fn new(program: &Program, facts: &'a dyn Facts, average: bool) -> Self {
        let (types, type_of) = types(program, facts);
        let fields = types.iter().map(|t| facts.field_at_optimum(t.first)).collect();
        Self { facts, d: facts.dim(), types, type_of, fields, average, steps: RefCell::default() }
    }

    /// The coordinates of the number 1 and of the sum of estimates.
    pub fn before_state(&self) -> usize {
        1 + if self.average { self.d } else { 0 }
    }

    /// The local steps of two runs on the same draws, or of one run, given twice.
    pub fn local(&self, g: usize, drives: [Drive; 2], same: bool) -> Result<Rc<Steps>, String> {
        let first = self.types[g].first;
        let key =
            (self.facts.distribution(first), drives.map(|d| (d.update.bits(), d.pulled)), same);
        if let Some(known) = self.steps.borrow().get(&key) {
            return Ok(known.clone());
        }
        let one = Steps::new(self.facts, first, drives, same).ok_or(OPEN)?;
        let [a, b] = drives.map(|drive| drive.update.steps);
        let rest = one.times(a.max(b) - a.min(b));
        let made = match (one.times(a.min(b)), a.cmp(&b)) {
            (both, Ordering::Equal) => both,
            (both, Ordering::Less) => both.alone(1, &rest),
            (both, Ordering::Greater) => both.alone(0, &rest),
        };
        let made = Rc::new(made);
        let mut known = self.steps.borrow_mut();
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(key, made.clone());
        Ok(made)
    }

    /// α θ* + β F̄ of a type.
    pub fn origin(&self, g: usize, optimum: f64, fields: f64) -> Vec<f64> {
        let star = self.facts.optimum();
        (0..self.d).map(|i| optimum * star[i] + fields * self.fields[g][i]).collect()
    }
}

impl Origin {
    pub fn server(optimum: f64) -> Self {
        Self { optimum: vec![optimum], fields: vec![0.0] }
    }

    pub fn of(&self, g: usize) -> (f64, f64) {
        let at = if self.optimum.len() == 1 { 0 } else { g };
        (self.optimum[at], self.fields[at])
    }

    /// Its bits, to find rounds that are prepared already.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.optimum.iter().chain(&self.fields).map(|x| (x + 0.0).to_bits())
    }

    /// Small whole numbers, which a pattern repeats.
    pub fn of_state(&self) -> Self {
        let whole = |x: &f64| {
            let near = x.round();
            if (x - near).abs() < 1e-9 && near.abs() <= 8.0 { near } else { 0.0 }
        };
        let all = |list: &[f64]| list.iter().map(whole).collect();
        Self { optimum: all(&self.optimum), fields: all(&self.fields) }
    }
}

/// A sum whose rounding errors are 0 if it is next to a whole number or 0.
pub(super) fn tidy(sum: f64, size: f64) -> f64 {
    let near = sum.round();
    if (sum - near).abs() <= 1e-13 * size { near } else { sum }
}

const OPEN: &str = "second moments of the problem's field do not close";
