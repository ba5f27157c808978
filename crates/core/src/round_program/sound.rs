//! Checks that a program which was read from text is sound: its atoms exist, and its lists are as long as they must be.
//! An *atom* is a vector of the server, or one vector for each client (its *level*), which the state has at the start
//! of a round or an operation makes.

use super::{
    Coefficient, CoefficientNumbers, Each, Expression, Level, Mask, Operation, PerClient, Program,
    ProgramError, Round, Weights,
};
use crate::client_sampling::ParticipationScheme;

impl Program {
    /// Checks that the theory can follow the program: each round reads atoms that exist, lists are as long as they must
    /// be, and each round leaves the state that the next one begins with. For programs that were read from text, as
    /// those that the tracing of code in Python writes; programs of built-in algorithms are sound. The theory relies on
    /// it, and may panic for a program that is not.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ProgramError> {
        let are_known = self.order.iter().all(|place| *place < self.rounds.len());
        if self.clients == 0 || self.dimension == 0 || !are_known {
            return Err(ProgramError::UnknownRound);
        }
        if self.cycle > self.order.len() {
            return Err(ProgramError::LongCycle);
        }
        let first = self.round(1).map_or(&[][..], |round| &round.state);
        if !matches!(first, [] | [Level::Server]) {
            return Err(ProgramError::Beginning);
        }
        for round in &self.rounds {
            self.check_round(round)?;
        }
        // Each round that is known and the one after it. The last round of the cycle is followed by the first.
        for number in 1..=(self.order.len() + self.cycle.min(1)) as u64 {
            let Some(round) = self.round(number) else { continue };
            let Some(next) = self.round(number + 1) else { continue };
            if round.next.len() != next.state.len() {
                return Err(ProgramError::OtherState);
            }
            for (expression, level) in round.next.iter().zip(&next.state) {
                self.check_expression(round, expression, *level, round.operations.len())?;
            }
        }
        Ok(())
    }

    /// Checks that the cohort, the masks and the draws of a round are possible, that its operations are complete, and
    /// that each of its expressions reads only atoms that are made before it. The next state is not checked here, since
    /// its levels are those of the round that follows.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn check_round(&self, round: &Round) -> Result<(), ProgramError> {
        if !self.has_sound_participation(round) {
            return Err(ProgramError::CohortSize);
        }
        let have_probabilities = round.masks.iter().all(|mask| self.has_probability(mask));
        // The theory has one bit of a 64-bit number for each mask, which says whether an atom depends on the mask.
        if round.masks.len() > 62 || !have_probabilities {
            return Err(ProgramError::MaskProbability);
        }
        for (place, operation) in round.operations.iter().enumerate() {
            let lacks_mask = match operation {
                Operation::Mask { mask, level, .. } => !has_mask(&round.masks, *mask, *level),
                _ => false,
            };
            let is_of_cohort =
                matches!(operation, Operation::Members { .. } | Operation::Select { .. });
            let lacks_cohort = is_of_cohort && !round.draws_clients(self.clients);
            if lacks_mask || lacks_cohort || !self.has_sound_settings(operation) {
                return Err(ProgramError::IncompleteOperation { place });
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

    /// Whether the scheme of participation of a round is possible for N clients: it is the default where all take part,
    /// and a schedule is of the round alone.
    fn has_sound_participation(&self, round: &Round) -> bool {
        let scheme = &round.participation;
        if !round.draws_clients(self.clients) {
            return round.cohort.is_none() && *scheme == ParticipationScheme::Normalised;
        }
        let is_known_size = round.cohort.is_none_or(|size| (1..=self.clients).contains(&size));
        let is_of_round = !scheme.is_scheduled() || scheme.is_of_one_round();
        is_known_size && is_of_round && scheme.is_sound_in_round(round.cohort, self.clients)
    }

    /// Whether the lists of an operation have the length that N and d ask for, and its counts and
    /// probabilities are possible. Step sizes are not looked at.
    fn has_sound_settings(&self, operation: &Operation) -> bool {
        let n = self.clients;
        let d = self.dimension;
        match operation {
            Operation::Steps { step, count, batch, coin, draws, .. } => {
                let has_coin = coin.is_none_or(|p| p > 0.0 && p <= 1.0 && draws.is_none());
                let are_positive = count.are(n, |e| *e > 0) && batch.are(n, |b| *b > 0);
                step.are(n, |_| true) && are_positive && has_coin
            }
            Operation::Fields { calls, .. } => calls.are(n, |calls| *calls > 0),
            Operation::Sum { weights: Weights::Each(all), .. } => all.len() == n,
            Operation::Mix { matrix, .. } => matrix.len() == n * n,
            Operation::Matrix { matrix, level, .. } => {
                let is_of_each = *level == Level::Clients && matrix.len() == n * d * d;
                matrix.len() == d * d || is_of_each
            }
            _ => true,
        }
    }

    /// Whether the probability of a mask is possible: a subset has a whole number of the d entries, and at least one.
    fn has_probability(&self, mask: &Mask) -> bool {
        let size = mask.probability * self.dimension as f64;
        let is_whole = size >= 0.5 && (size - size.round()).abs() < 1e-6;
        (0.0..=1.0).contains(&mask.probability) && (mask.each != Each::Subset || is_whole)
    }

    /// Checks that an expression of this level reads only atoms that the first `operations` operations
    /// of the round, or its state, have made, and that its coefficients have the lengths that N and
    /// d ask for.
    ///
    /// # Errors
    /// [`ProgramError::UnknownAtom`] otherwise.
    fn check_expression(
        &self,
        round: &Round,
        expression: &Expression,
        level: Level,
        operations: usize,
    ) -> Result<(), ProgramError> {
        for (atom, coefficient) in &expression.terms {
            // What the server has can be sent to each client, but not the other way round.
            let is_readable = atom_level(round, operations, *atom)
                .is_some_and(|own| own == Level::Server || own == level);
            if !is_readable || !self.has_sound_length(coefficient, level) {
                return Err(ProgramError::UnknownAtom);
            }
        }
        if !self.has_sound_length(&expression.constant, level) {
            return Err(ProgramError::UnknownAtom);
        }
        Ok(())
    }

    /// Whether a coefficient in an expression of this level has as many numbers as it must have. Only in expressions of
    /// the clients may each client have its own.
    fn has_sound_length(&self, coefficient: &Coefficient, level: Level) -> bool {
        let Coefficient::Numbers(numbers) = coefficient else { return true };
        match numbers {
            CoefficientNumbers::Entries(all) => all.len() == self.dimension,
            CoefficientNumbers::Clients(all) => {
                level == Level::Clients && all.len() == self.clients
            }
            CoefficientNumbers::Rows(all) => {
                level == Level::Clients && all.len() == self.clients * self.dimension
            }
        }
    }
}

/// The level of an atom of a round, by its number (first the state, then the results of operations), once the round's
/// first `operations` operations are done; `None` if there is no such atom yet.
fn atom_level(round: &Round, operations: usize, atom: usize) -> Option<Level> {
    match atom.checked_sub(round.state.len()) {
        None => Some(round.state[atom]),
        Some(place) if place < operations => Some(round.operations[place].level()),
        Some(_) => None,
    }
}

/// Whether there is a mask of this number, from 0 on, that can be applied to an atom of this level: each
/// client's own coins cannot mask the one vector of the server.
fn has_mask(masks: &[Mask], number: usize, level: Level) -> bool {
    masks.get(number).is_some_and(|mask| !(mask.level == Level::Clients && level == Level::Server))
}

impl<T> PerClient<T> {
    /// Whether each value meets a condition, and there is one value for all clients or one for each of the n clients.
    fn are(&self, n: usize, meets: impl Fn(&T) -> bool) -> bool {
        match self {
            Self::All(value) => meets(value),
            Self::Each(values) => values.len() == n && values.iter().all(meets),
        }
    }
}
