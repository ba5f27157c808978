//! The rounds of a built-in algorithm as a program.

use super::{AlgorithmModel, Correction, RunModel};
use crate::problem::Facts;
use crate::program::{
    Coefficient, CoefficientNumbers, Each, Expression, Level, Mask, Operation, PerClient, Program,
    Round, combination, mean, sum,
};
use std::collections::BTreeMap;

fn each<T: PartialEq + Copy>(n: usize, of: impl Fn(usize) -> T) -> PerClient<T> {
    let all: Vec<T> = (0..n).map(of).collect();
    if all.iter().all(|x| *x == all[0]) { PerClient::All(all[0]) } else { PerClient::Each(all) }
}

/// The rounds of an algorithm up to this number; the last repeats if step sizes are constant. From the
/// second on, the control variates of the first run are the atom of the state after those of the runs.
pub fn program(facts: &dyn Facts, model: &AlgorithmModel<'_>, rounds: u64) -> Program {
    let factor = |t: u64| model.decay.as_ref().map_or(1.0, |factor| factor(t));
    // What the round after the last one has as its state is known as well.
    let number = if model.decay.is_some() { rounds + 1 } else { 2 };
    let of = (facts.clients(), facts.dim());
    let round = |t: u64| Writing::new(of.0, model, t == 0, factor(t)).round();
    whole(of, (0..number).map(round).collect(), usize::from(model.decay.is_none()))
}

/// The first round and any later one with the first step sizes, for so many clients and dimensions.
pub fn constant(of: (usize, usize), model: &AlgorithmModel<'_>) -> Program {
    let [first, later] = [true, false].map(|first| Writing::new(of.0, model, first, 1.0));
    // One run without variates begins as it goes on.
    let first = (first.state != later.state).then(|| first.round());
    whole(of, first.into_iter().chain([later.round()]).collect(), 1)
}

fn whole((clients, dimension): (usize, usize), rounds: Vec<Round>, cycle: usize) -> Program {
    Program { clients, dimension, order: (0..rounds.len()).collect(), rounds, cycle }
}

impl RunModel<'_> {
    /// Whether its control variates are part of the state; those that are measured in each round are
    /// for ψ alone.
    pub fn keeps(&self) -> bool {
        self.correction != Correction::None
    }
}

/// A round that is being written.
struct Writing<'a> {
    model: &'a AlgorithmModel<'a>,
    n: usize,
    /// Whether it is the first: all runs begin at θ_0, and variates are 0.
    first: bool,
    /// The factor of step sizes.
    factor: f64,
    state: Vec<Level>,
    operations: Vec<Operation>,
}

impl<'a> Writing<'a> {
    fn new(n: usize, model: &'a AlgorithmModel<'a>, first: bool, factor: f64) -> Self {
        let kept = model.runs.iter().filter(|run| run.keeps()).count();
        let mut state = vec![Level::Server; if first { 1 } else { model.runs.len() }];
        state.extend(vec![Level::Clients; if first { 0 } else { kept }]);
        Self { model, n, first, factor, state, operations: Vec::new() }
    }

    fn add(&mut self, operation: Operation) -> usize {
        self.operations.push(operation);
        self.state.len() + self.operations.len() - 1
    }

    fn is_part(&self) -> bool {
        self.model.cohort < self.n
    }

    /// θ_t of a run, and its variates.
    fn atoms(&self, run: usize) -> (usize, Option<usize>) {
        let runs = &self.model.runs;
        if self.first {
            return (0, None);
        }
        let before = runs[..run].iter().filter(|run| run.keeps()).count();
        (run, runs[run].keeps().then_some(runs.len() + before))
    }

    /// The mean of as many oracle calls as local steps, at θ_t.
    fn calls(&mut self, run: usize, members: bool) -> usize {
        let (model, n) = (self.model, self.n);
        let update = |k: usize| (model.runs[run].update)(k);
        let calls = each(n, |k| update(k).steps * update(k).batch);
        let draws = (model.common && model.runs.len() > 1).then_some(0);
        let at = sum([(self.atoms(run).0, 1.0)]);
        self.add(Operation::Fields { at, calls, members, draws })
    }

    fn round(mut self) -> Round {
        let (mut estimates, mut variates) = (Vec::new(), Vec::new());
        let mut ends = None;
        for run in 0..self.model.runs.len() {
            let (estimate, variate, end) = self.run(run);
            estimates.push(estimate);
            variates.extend(variate);
            ends.get_or_insert(end);
        }
        // The estimates of all runs, weighted.
        let mut terms: BTreeMap<usize, f64> = BTreeMap::new();
        for (run, estimate) in self.model.runs.iter().zip(&estimates) {
            for (atom, coefficient) in &estimate.terms {
                let Coefficient::Number(x) = coefficient else { continue };
                *terms.entry(*atom).or_default() += run.weight * x;
            }
        }
        let terms = terms.into_iter().map(|(atom, x)| (atom, Coefficient::Number(x))).collect();
        let alone = self.model.runs.len() == 1 && !self.is_part();
        let ends = ends.filter(|_| alone).map(|end| sum([(end, 1.0)]));
        let cohort = self.is_part().then_some(self.model.cohort);
        let next = estimates.into_iter().chain(variates).collect();
        let Self { state, operations, .. } = self;
        Round { state, cohort, masks: vec![], operations, next, result: combination(terms), ends }
    }

    /// ξ of a run, and the atom of the mean of its variates, or of those measured in this round.
    fn correction(&mut self, number: usize) -> (Option<Expression>, Option<usize>) {
        let own = self.atoms(number).1;
        match (self.model.runs[number].correction, own) {
            (Correction::None, _) => (None, None),
            (Correction::Fresh, _) => {
                let rows = self.calls(number, false);
                let all = self.add(mean(sum([(rows, 1.0)])));
                (Some(sum([(rows, -1.0), (all, 1.0)])), Some(rows))
            }
            (_, None) => (Some(sum([])), None),
            // With random communication (H1) the variates' mean stays 0.
            (_, Some(own)) if self.model.coin.is_some() => (Some(sum([(own, -1.0)])), None),
            (_, Some(own)) => {
                let all = self.add(mean(sum([(own, 1.0)])));
                (Some(sum([(own, -1.0), (all, 1.0)])), Some(all))
            }
        }
    }

    /// The next θ and variates of a run, and the atom of its clients' ends.
    fn run(&mut self, number: usize) -> (Expression, Option<Expression>, usize) {
        let (model, n, factor, members) = (self.model, self.n, self.factor, self.is_part());
        let run = &model.runs[number];
        let update = |k: usize| (run.update)(k);
        let (theta, own) = self.atoms(number);
        let (correction, own_mean) = self.correction(number);
        let proximal = update(0).proximal;
        let ends = self.add(Operation::Steps {
            start: sum([(theta, 1.0)]),
            correction,
            anchor: (proximal != 0.0).then(|| sum([(theta, 1.0)])),
            step: each(n, |k| factor * update(k).step),
            count: each(n, |k| if model.coin.is_some() { 1 } else { update(k).steps }),
            batch: each(n, |k| update(k).batch),
            proximal,
            members,
            draws: (model.common && model.runs.len() > 1).then_some(0),
            coin: model.coin,
        });
        let rows = sum([(ends, 1.0)]);
        let after = self.add(if members { Operation::Members { rows } } else { mean(rows) });
        let estimate = sum([(theta, 1.0 - run.server_step), (after, run.server_step)]);
        let learned = match run.correction {
            Correction::None => return (estimate, None, ends),
            Correction::Fresh => return (estimate, own_mean.map(|rows| sum([(rows, 1.0)])), ends),
            Correction::KeptFresh => sum([(self.calls(number, members), 1.0)]),
            Correction::Kept => {
                // c_k − c̄ + (θ_t − θ_k)/(γ_k E_k); under a coin c_k + (p/γ)(θ̄ − θ_k).
                let from = if model.coin.is_some() { after } else { theta };
                let mut terms =
                    vec![(from, self.rates(number, 1.0)), (ends, self.rates(number, -1.0))];
                terms.extend(own.map(|own| (own, Coefficient::Number(1.0))));
                terms.extend(own_mean.map(|mean| (mean, Coefficient::Number(-1.0))));
                terms.sort_by_key(|(atom, _)| *atom);
                combination(terms)
            }
        };
        if !members {
            return (estimate, Some(learned), ends);
        }
        let other = own.map_or_else(|| sum([]), |own| sum([(own, 1.0)]));
        let selected = self.add(Operation::Select { member: learned, other });
        (estimate, Some(sum([(selected, 1.0)])), ends)
    }

    /// How fast the variates of a run learn, 1/(γ_k E_k) or p/γ_k, times a sign.
    fn rates(&self, number: usize, sign: f64) -> Coefficient {
        let rate = |k: usize| {
            let update = (self.model.runs[number].update)(k);
            match self.model.coin {
                Some(p) => sign * p / (self.factor * update.step),
                None => sign / (self.factor * update.step * update.steps as f64),
            }
        };
        match each(self.n, rate) {
            PerClient::All(x) => Coefficient::Number(x),
            PerClient::Each(all) => Coefficient::Numbers(CoefficientNumbers::Clients(all)),
        }
    }
}

/// Under a coin: a round is a local step of all clients, after which they communicate with
/// probability p. The state is where each client is, and its variate.
pub fn single_steps(facts: &dyn Facts, run: &RunModel<'_>, probability: f64) -> Program {
    let corrected = run.keeps();
    let update = |k: usize| (run.update)(k);
    let n = facts.clients();
    let round = |first: bool| {
        let theta = 0;
        let own = (corrected && !first).then_some(1);
        let mut state = vec![if first { Level::Server } else { Level::Clients }];
        state.extend(own.map(|_| Level::Clients));
        let base = state.len();
        let correction = corrected.then(|| own.map_or_else(|| sum([]), |own| sum([(own, -1.0)])));
        let step = Operation::Steps {
            start: sum([(theta, 1.0)]),
            correction,
            anchor: None,
            step: each(n, |k| update(k).step),
            count: PerClient::All(1),
            batch: each(n, |k| update(k).batch),
            proximal: 0.0,
            members: false,
            draws: None,
            coin: None,
        };
        let (ends, all, met) = (base, base + 1, base + 2);
        let apart = sum([(ends, -1.0), (all, 1.0)]);
        let meet = Operation::Mask { of: apart, mask: 0, level: Level::Clients };
        let operations = vec![step, mean(sum([(ends, 1.0)])), meet];
        let mut next = vec![sum([(ends, 1.0), (met, 1.0)])];
        let rate = probability / update(0).step;
        let kept = own.map_or_else(|| sum([(met, rate)]), |own| sum([(own, 1.0), (met, rate)]));
        next.extend(corrected.then_some(kept));
        let masks = vec![Mask { probability, each: Each::Row, level: Level::Server }];
        let (result, ends) = (sum([(all, 1.0)]), Some(next[0].clone()));
        Round { state, cohort: None, masks, operations, next, result, ends }
    };
    whole((n, facts.dim()), vec![round(true), round(false)], 1)
}
