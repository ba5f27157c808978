//! A program as text. An *atom* is a vector of the server, or one vector for each client, which the state has at the
//! start of a round or an operation makes; first the state is numbered, then the operations.

use super::{
    Coefficient, CoefficientNumbers, Each, Expression, Level, Mask, Operation, PerClient, Program,
    Round, Weights,
};
use crate::client_sampling::ParticipationScheme;
use crate::words::ordinal;
use std::fmt::{self, Display, Formatter};

impl Display for Program {
    /// The different rounds in the order in which they occur first, each with its lines, such as `yield 0.9·s0 + m3`.
    /// The text is for readers, who see what an algorithm was taken to do; it is not read again. The program must be
    /// sound ([`Program::check`]).
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = vec![false; self.rounds.len()];
        // The number of rounds before the cycle.
        let lasting = self.order.len() - self.cycle;
        for (number, place) in self.order.iter().enumerate() {
            if std::mem::replace(&mut shown[*place], true) {
                continue;
            }
            let number = number + 1;
            let again = match self.cycle {
                _ if number <= lasting => String::new(),
                1 => " and every later one".into(),
                cycle => format!(" and every {} after it", ordinal(cycle)),
            };
            writeln!(f, "round {number}{again}")?;
            self.rounds[*place].write(f)?;
        }
        Ok(())
    }
}

impl Round {
    /// The name of an atom: its number after a letter, s for the server's and v for the clients' in the state, m for
    /// the server's and r for the clients' among the results of operations.
    fn name(&self, atom: usize) -> String {
        let Some(place) = atom.checked_sub(self.state.len()) else {
            let letter = if self.state[atom] == Level::Server { 's' } else { 'v' };
            return format!("{letter}{atom}");
        };
        let level = self.operations[place].level();
        format!("{}{atom}", if level == Level::Server { 'm' } else { 'r' })
    }

    /// The text of an expression, such as `0.9·s0 + m3`.
    fn text(&self, expression: &Expression) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (atom, factor) in &expression.terms {
            let name = self.name(*atom);
            parts.push(match factor {
                Coefficient::Number(1.0) => name,
                factor => format!("{factor}·{name}"),
            });
        }
        if expression.constant != Coefficient::Number(0.0) || parts.is_empty() {
            parts.push(expression.constant.to_string());
        }
        parts.join(" + ")
    }

    /// Writes the round: one line for its state, who takes part unless all do, each operation, each atom of the next
    /// state, and its result. A mask is written where it is applied, and where clients ended (`ends`) is left out.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = (0..self.state.len()).map(|atom| self.name(atom)).collect::<Vec<_>>();
        let state = if names.is_empty() { "none".into() } else { names.join(", ") };
        writeln!(f, "  state: {state}")?;
        match (self.cohort, &self.participation) {
            (None, ParticipationScheme::Normalised) => {}
            (Some(size), ParticipationScheme::Normalised) => writeln!(f, "  cohort of {size}")?,
            (Some(size), scheme) => writeln!(f, "  cohort of {size}, {scheme}")?,
            (None, scheme) => writeln!(f, "  participation: {scheme}")?,
        }
        for (place, operation) in self.operations.iter().enumerate() {
            let name = self.name(self.state.len() + place);
            writeln!(f, "  {name} = {}", self.operation_text(operation))?;
        }
        for (atom, expression) in self.next.iter().enumerate() {
            writeln!(f, "  next {atom} = {}", self.text(expression))?;
        }
        writeln!(f, "  yield {}", self.text(&self.result))
    }

    /// The text of an operation as the right side of an equation, for readers: it does not determine the operation.
    /// Left out are the numbers of lists and matrices; whether local steps or gradients are of the members of the
    /// cohort alone; and whether a vector is the server's or the clients', which the name of the result says.
    fn operation_text(&self, operation: &Operation) -> String {
        match operation {
            Operation::Steps {
                start,
                correction,
                anchor,
                step,
                count,
                batch,
                proximal,
                draws,
                coin,
                ..
            } => {
                let mut parts = vec![format!("start = {}", self.text(start))];
                parts.extend(
                    correction.as_ref().map(|xi| format!("correction = {}", self.text(xi))),
                );
                parts.extend(anchor.as_ref().map(|at| format!("anchor = {}", self.text(at))));
                parts.push(match coin {
                    Some(coin) => format!("gamma = {step}, until a coin of probability {coin}"),
                    None => format!("gamma = {step}, H = {count}"),
                });
                parts.extend(draws.map(|draws| format!("draws = {draws}")));
                parts.extend((*batch != PerClient::All(1)).then(|| format!("batch = {batch}")));
                parts.extend((*proximal != 0.0).then(|| format!("proximal = {proximal}")));
                format!("steps({})", parts.join(", "))
            }
            Operation::Fields { at, calls, draws, .. } => {
                let draws = draws.map_or(String::new(), |draws| format!(", draws = {draws}"));
                format!("fields({}, calls = {calls}{draws})", self.text(at))
            }
            Operation::MeanFields { at } => format!("mean fields({})", self.text(at)),
            Operation::Sum { rows, weights: Weights::Shares(_) } => {
                format!("mean({})", self.text(rows))
            }
            Operation::Sum { rows, .. } => format!("sum(weights · ({}))", self.text(rows)),
            Operation::Members { rows } => format!("mean of members({})", self.text(rows)),
            Operation::Select { member, other } => {
                format!("members: {}; others: {}", self.text(member), self.text(other))
            }
            Operation::Mix { rows, .. } => {
                format!("matrix between clients · ({})", self.text(rows))
            }
            Operation::Matrix { of, .. } => format!("matrix · ({})", self.text(of)),
            Operation::Normal { .. } => "standard normal".into(),
            Operation::Mask { of, mask, .. } => {
                let Mask { probability, each, .. } = &self.masks[*mask];
                let kind = if *each == Each::Subset { "mask of fixed size" } else { "mask" };
                format!("{kind} {mask} of probability {probability} · ({})", self.text(of))
            }
        }
    }
}

impl Display for Coefficient {
    /// The number, or for several numbers only how many there are and whether they are for entries, for clients or for
    /// the entries of all clients (N · d numbers).
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(x) => write!(f, "{x}"),
            Self::Numbers(CoefficientNumbers::Entries(all)) => write!(f, "<{} entries>", all.len()),
            Self::Numbers(CoefficientNumbers::Clients(all)) => write!(f, "<{} clients>", all.len()),
            Self::Numbers(CoefficientNumbers::Rows(all)) => write!(f, "<rows of {}>", all.len()),
        }
    }
}

impl<T: Display> Display for PerClient<T> {
    /// The value that all clients have, or only the number of clients if their values differ.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(value) => write!(f, "{value}"),
            Self::Each(all) => write!(f, "<{} clients>", all.len()),
        }
    }
}
