//! Whether a program that was read is one: its atoms exist and its lists are as long as they must
//! be.

use super::{
    Coefficient, CoefficientNumbers, Expression, Level, Mask, Operation, PerClient, Program, Round,
    Weights,
};

impl Program {
    /// Checks that each round reads atoms that exist, and that lists are as long as they must be.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let known = |place: &usize| *place < self.rounds.len();
        if self.clients == 0 || self.dimension == 0 || !self.order.iter().all(known) {
            return Err("it names a round that it does not have".into());
        }
        if self.cycle > self.order.len() {
            return Err("its cycle is longer than its rounds".into());
        }
        let first = self.round(1).map_or(&[][..], |round| &round.state);
        if !matches!(first, [] | [Level::Server]) {
            return Err("it begins with more than θ_0".into());
        }
        for round in &self.rounds {
            self.check_round(round)?;
        }
        for number in 1..=(self.order.len() + self.cycle.min(1)) as u64 {
            let (Some(round), Some(next)) = (self.round(number), self.round(number + 1)) else {
                continue;
            };
            if round.next.len() != next.state.len() {
                return Err("a round leaves another state than the next one has".into());
            }
            for (expression, level) in round.next.iter().zip(&next.state) {
                self.check_expression(round, expression, *level, round.operations.len())?;
            }
        }
        Ok(())
    }

    fn check_round(&self, round: &Round) -> Result<(), String> {
        if round.cohort.is_some_and(|size| size == 0 || size >= self.clients) {
            return Err("a cohort is empty, or everybody".into());
        }
        let is_sound = |mask: &Mask| (0.0..=1.0).contains(&mask.probability);
        if round.masks.len() > 62 || !round.masks.iter().all(is_sound) {
            return Err("a mask has no probability".into());
        }
        for (place, operation) in round.operations.iter().enumerate() {
            let masked = match operation {
                Operation::Mask { mask, level, .. } => round
                    .masks
                    .get(*mask)
                    .is_none_or(|mask| (mask.level, *level) == (Level::Clients, Level::Server)),
                _ => false,
            };
            let drawn = matches!(operation, Operation::Members { .. } | Operation::Select { .. });
            if masked || drawn && round.cohort.is_none() || !self.sized(operation) {
                return Err(format!("operation {place} of a round is not complete"));
            }
            let level = match operation {
                Operation::Matrix { level, .. } | Operation::Mask { level, .. } => *level,
                _ => Level::Clients,
            };
            for expression in operation.reads() {
                self.check_expression(round, expression, level, place)?;
            }
        }
        round.check_draws()?;
        let all = round.operations.len();
        if let Some(ends) = &round.ends {
            self.check_expression(round, ends, Level::Clients, all)?;
        }
        self.check_expression(round, &round.result, Level::Server, all)
    }

    fn sized(&self, operation: &Operation) -> bool {
        let n = self.clients;
        let d = self.dimension;
        match operation {
            Operation::Steps { step, count, batch, coin, draws, .. } => {
                let is_coin = |p: f64| p > 0.0 && p <= 1.0;
                let has_coin = coin.is_none_or(|p| is_coin(p) && draws.is_none());
                let are_positive = count.are(n, |e| *e > 0) && batch.are(n, |b| *b > 0);
                step.are(n, |_| true) && are_positive && has_coin
            }
            Operation::Fields { calls, .. } => calls.are(n, |calls| *calls > 0),
            Operation::Sum { weights: Weights::Each(all), .. } => all.len() == n,
            Operation::Mix { matrix, .. } => matrix.len() == n * n,
            Operation::Matrix { matrix, .. } => matrix.len() == d * d,
            _ => true,
        }
    }

    fn check_expression(
        &self,
        round: &Round,
        expression: &Expression,
        level: Level,
        operations: usize,
    ) -> Result<(), String> {
        let state = round.state.len();
        let of = |atom: usize| match atom.checked_sub(state) {
            None => Some(round.state[atom]),
            Some(place) if place < operations => Some(round.operations[place].level()),
            Some(_) => None,
        };
        let n = self.clients;
        let d = self.dimension;
        let sized = |coefficient: &Coefficient| match coefficient {
            Coefficient::Number(_) => true,
            Coefficient::Numbers(CoefficientNumbers::Entries(all)) => all.len() == d,
            Coefficient::Numbers(CoefficientNumbers::Clients(all)) => {
                level == Level::Clients && all.len() == n
            }
            Coefficient::Numbers(CoefficientNumbers::Rows(all)) => {
                level == Level::Clients && all.len() == n * d
            }
        };
        let fits = |(atom, coefficient): &(usize, Coefficient)| {
            let known = of(*atom).is_some_and(|own| own == Level::Server || own == level);
            known && sized(coefficient)
        };
        match expression.terms.iter().all(fits) && sized(&expression.constant) {
            true => Ok(()),
            false => Err("an expression reads what is not there".into()),
        }
    }
}

impl<T> PerClient<T> {
    /// Whether there are n values, or one for all, and each is sound.
    fn are(&self, n: usize, sound: impl Fn(&T) -> bool) -> bool {
        match self {
            Self::All(value) => sound(value),
            Self::Each(values) => values.len() == n && values.iter().all(sound),
        }
    }
}
