//! The rounds of an algorithm as linear programs: what its clients' local steps, means and sums
//! do, without its code. From a program follow the exact moments of the algorithm on every linear
//! problem ([`crate::theory::exact`], which says what `THEORY (2.1)` means).
//!
//! A round begins with the state that the round before left, does its operations one after the
//! other, and leaves the next state. State and results of operations are *atoms*, numbered within
//! the round: first the state, then the results. Everything is an affine [`Expression`] of atoms.

mod draws;
mod error;
mod searched;
mod sound;
mod text;

use crate::client_sampling::ParticipationScheme;
pub use error::ProgramError;
pub use searched::{LocalRun, LocalRuns, LocalUpdate, RoundPrice, RoundSettings, Rounds};
use serde::{Deserialize, Serialize};

/// The rounds of an algorithm as a program, or why there is none.
pub type Traced = Result<Program, ProgramError>;

/// The rounds of an algorithm for a number of clients and of dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The number of clients, N.
    pub clients: usize,
    /// The dimension d of every vector.
    pub dimension: usize,
    /// The different rounds, each of which may occur many times.
    pub rounds: Vec<Round>,
    /// For round 1, 2, … the place in `rounds` of what it does.
    pub order: Vec<usize>,
    /// The number of rounds at the end of `order` that repeat for ever; 0 if none does.
    pub cycle: usize,
    /// The estimate before the first round is this multiple of θ_0. The weights of extrapolated runs, whose sum it
    /// is, need not add up to 1.
    #[serde(default = "crate::problem::unit", skip_serializing_if = "crate::problem::is_unit")]
    pub start_weight: f64,
}

/// Whether an atom is one vector of d numbers or one such vector for each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The server has one vector.
    Server,
    /// Each client has a vector.
    Clients,
}

/// What the server and the clients do from one start to the next, as atoms and operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The levels of the atoms of the state at its start. Before the first round it is θ_0, or
    /// nothing.
    pub state: Vec<Level>,
    /// The number L of clients that are drawn; `None` if no number is drawn.
    pub cohort: Option<usize>,
    /// How the clients that take part are selected, and which weights they have in [`Operation::Members`]; by default
    /// all take part where no number is drawn. A schedule has this round alone.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    pub participation: ParticipationScheme,
    /// The random masks that it draws.
    pub masks: Vec<Mask>,
    /// The operations of the round in their order; each makes an atom.
    pub operations: Vec<Operation>,
    /// The state of the next round, one expression for each of its atoms.
    pub next: Vec<Expression>,
    /// The estimate θ_t after the round.
    pub result: Expression,
    /// The clients' parameters before they communicate, if the round records them: their mean square distances from θ*
    /// are then among the moments. In rounds of single local steps under a coin they are those after a communication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Expression>,
}

/// Coins that are 1 with a probability and 0 otherwise: independent ones, or a subset of fixed size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mask {
    /// The probability of 1.
    pub probability: f64,
    /// What one coin is for.
    pub each: Each,
    /// Whether each client has coins of its own, or all share those of the server.
    pub level: Level,
}

/// What one coin of a mask is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    /// One coin decides about all entries of a vector.
    Row,
    /// Each entry of a vector has its own coin.
    Entry,
    /// The entries of a vector have coins of which exactly d times the probability are 1, a whole number from 1 to d:
    /// a subset that is drawn without replacement. THEORY (4.19).
    Subset,
}

/// Σ coefficient · atom + constant, where a coefficient multiplies an atom entry by entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    /// Atoms with their coefficients, in increasing order of the atoms.
    pub terms: Vec<(usize, Coefficient)>,
    /// The coefficient that is added to the sum, entry by entry.
    pub constant: Coefficient,
}

/// One number for all entries of all clients, or several: one for each entry, for each client, or for
/// each entry of each client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Coefficient {
    /// One number for all entries of all clients.
    Number(f64),
    /// Several numbers, for entries or for clients.
    Numbers(CoefficientNumbers),
}

/// The numbers of a coefficient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoefficientNumbers {
    /// One number for each of the d entries, the same for all clients.
    Entries(Vec<f64>),
    /// One number for each of the N clients, the same for all entries.
    Clients(Vec<f64>),
    /// N · d numbers, client by client.
    Rows(Vec<f64>),
}

/// A value that may differ between the clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerClient<T> {
    /// The value that all clients have.
    All(T),
    /// N values, one for each client.
    Each(Vec<T>),
}

impl<T: Copy> PerClient<T> {
    /// The value that client number `client`, from 0 on, has.
    pub fn of_client(&self, client: usize) -> T {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[client],
        }
    }
}

/// The weights of a sum over clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Weights {
    /// The shares π_k of the problem.
    Shares(Shares),
    /// N weights, one for each client.
    Each(Vec<f64>),
}

/// The word `shares`, which stands for the shares of the problem where a program is stored as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shares {
    /// The weight of client k is π_k.
    Shares,
}

/// An operation of a round, which makes one atom: the server's where it says so, and otherwise one row of d numbers for
/// each client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Operation {
    /// Where clients end after `count` steps θ ← θ − γ(F(θ; Z) + ξ + μ(θ − anchor)), THEORY (2.1).
    Steps {
        /// The parameters at which clients begin.
        start: Expression,
        /// The correction ξ that is added to each gradient; 0 without it.
        correction: Option<Expression>,
        /// The point to which the proximal term pulls; the start if there is none.
        anchor: Option<Expression>,
        /// The step size γ.
        step: PerClient<f64>,
        /// The number H of steps.
        count: PerClient<u64>,
        /// The number B of gradients that a step averages.
        batch: PerClient<u64>,
        /// The weight μ of the proximal term.
        proximal: f64,
        /// Whether the clients of the cohort alone take them: what comes out of the others enters
        /// no result.
        members: bool,
        /// Operations of the same kind and number share their draws, THEORY (2.3), but not under a coin. None
        /// of them may read what another one makes in the round, nor atoms that depend on masks or on the
        /// cohort.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draws: Option<usize>,
        /// With it the count is not fixed: after each step a coin of this probability, which all
        /// clients share, ends the steps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        coin: Option<f64>,
    },
    /// The mean of `calls` gradients of each client.
    Fields {
        /// The θ at which gradients are taken.
        at: Expression,
        /// The number of gradients that each client averages.
        calls: PerClient<u64>,
        /// Whether the clients of the cohort alone compute gradients, as in [`Operation::Steps`].
        members: bool,
        /// The number of the draws that it shares, as in [`Operation::Steps`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draws: Option<usize>,
    },
    /// The mean field F̄_k of each client, without a draw: THEORY (1.1).
    MeanFields {
        /// The θ at which mean fields are taken.
        at: Expression,
    },
    /// Σ w_k row_k, an atom of the server.
    Sum {
        /// One row for each client.
        rows: Expression,
        /// The weights w_k, one for each client.
        weights: Weights,
    },
    /// Σ_k w_k row_k with the weights w_k of the round's scheme, which are 0 for clients that do not take part: an atom
    /// of the server, THEORY (4.6), (4.11). It is the mean of the rows of the clients that take part, but for a scheme
    /// whose weights do not sum to 1 or that draws clients several times.
    Members {
        /// One row for each client.
        rows: Expression,
    },
    /// One row for a client of the cohort, another for a client of the rest: THEORY (4.6), (4.7).
    Select {
        /// The row of a client that takes part.
        member: Expression,
        /// The row of a client that does not take part.
        other: Expression,
    },
    /// Σ_j M_kj row_j for each client k, THEORY (4.4).
    Mix {
        /// One row for each client.
        rows: Expression,
        /// M, N × N, row by row.
        matrix: Vec<f64>,
    },
    /// M x, an atom of the server or of the clients; or M_k x_k for each client k.
    Matrix {
        /// The vector x, or one x for each client.
        of: Expression,
        /// M, d × d, row by row; or, of the clients, N such matrices M_k, one after the other.
        matrix: Vec<f64>,
        /// Whether x is the server's or the clients'.
        level: Level,
    },
    /// Independent standard normal numbers.
    Normal {
        /// Whether the server or each client draws d of them.
        level: Level,
    },
    /// The entries where a mask is 1, and 0 elsewhere: THEORY (4.5).
    Mask {
        /// The vector, or one for each client, whose entries are masked.
        of: Expression,
        /// The number of the mask in the list of the round.
        mask: usize,
        /// Whether `of` is the server's or the clients'. One mask of the server may mask the rows of all
        /// clients.
        level: Level,
    },
}

/// The expression Σ coefficient · atom without a constant; `terms` are in increasing order of the atoms.
pub fn combination(terms: Vec<(usize, Coefficient)>) -> Expression {
    Expression { terms, constant: Coefficient::Number(0.0) }
}

/// The expression Σ number · atom without a constant. The atoms are given in any order; one with the number 0 is left
/// out.
pub fn sum<const K: usize>(terms: [(usize, f64); K]) -> Expression {
    let mut terms: Vec<_> = terms.into_iter().filter(|(_, x)| *x != 0.0).collect();
    terms.sort_by_key(|(atom, _)| *atom);
    combination(terms.into_iter().map(|(atom, x)| (atom, Coefficient::Number(x))).collect())
}

/// The operation that takes the mean of one row for each client, weighted by the clients' shares.
pub fn mean(rows: Expression) -> Operation {
    Operation::Sum { rows, weights: Weights::Shares(Shares::Shares) }
}

impl Program {
    /// What round number `round` does, counted from 1; `None` for round 0, and beyond the last round if none repeats.
    pub fn round(&self, round: u64) -> Option<&Round> {
        self.place(round).map(|place| &self.rounds[place])
    }

    /// The place in [`Self::rounds`] of what round number `round` does, counted from 1; `None` as for [`Self::round`].
    pub fn place(&self, round: u64) -> Option<usize> {
        let last = self.order.len() as u64;
        let index = match round.checked_sub(last + 1) {
            None => round.checked_sub(1)?,
            Some(_) if self.cycle == 0 => return None,
            Some(beyond) => last - self.cycle as u64 + beyond % self.cycle as u64,
        };
        Some(self.order[index as usize])
    }

    /// Which round of the cycle round number `round`, counted from 1, is: 0 for the first round of the cycle, up to
    /// `cycle` − 1. Rounds before the cycle, and 0, are numbered as if it had repeated before it too. Always 0 if no
    /// round repeats.
    pub fn phase(&self, round: u64) -> usize {
        let cycle = self.cycle.max(1) as u64;
        // The number of the first round of the cycle.
        let begin = (self.order.len() - self.cycle) as u64 + 1;
        ((round + cycle - begin % cycle) % cycle) as usize
    }

    /// How large a part of the rounds `before` + 1 to `last` is in each phase of the cycle, `cycle` numbers with the
    /// sum 1: the weights w_i of THEORY (5.7), with which the mean of the iterates weighs the limits of the phases. All
    /// are equal if there are no such rounds; there are no numbers if no round repeats.
    pub fn phase_shares(&self, before: u64, last: u64) -> Vec<f64> {
        let cycle = self.cycle as u64;
        let all = if last > before { last - before } else { cycle };
        let first = self.phase(before + 1) as u64;
        let mut shares = Vec::new();
        for phase in 0..cycle {
            // How many rounds after the first one the first round of this phase comes.
            let after = (phase + cycle - first) % cycle;
            shares.push(((all + cycle - 1 - after) / cycle) as f64 / all as f64);
        }
        shares
    }

    /// Whether the program says what each of the rounds 1 to `rounds` does.
    pub fn reaches(&self, rounds: u64) -> bool {
        self.cycle > 0 || rounds <= self.order.len() as u64
    }
}

impl Round {
    /// Whether it depends on a draw or a schedule of clients which of this number of clients take part.
    pub fn draws_clients(&self, clients: usize) -> bool {
        self.participation.draws_clients(self.cohort, clients)
    }
}

impl Operation {
    /// All expressions that the operation reads, from whose atoms it computes its result.
    pub fn reads(&self) -> Vec<&Expression> {
        match self {
            Self::Steps { start, correction, anchor, .. } => {
                [Some(start), correction.as_ref(), anchor.as_ref()].into_iter().flatten().collect()
            }
            Self::Fields { at: of, .. }
            | Self::MeanFields { at: of }
            | Self::Sum { rows: of, .. }
            | Self::Members { rows: of }
            | Self::Mix { rows: of, .. }
            | Self::Matrix { of, .. }
            | Self::Mask { of, .. } => vec![of],
            Self::Select { member, other } => vec![member, other],
            Self::Normal { .. } => vec![],
        }
    }

    /// The d × d matrix, row by row, with which [`Operation::Matrix`] multiplies the row of a client; that of client 0
    /// is also the server's. Empty for another operation.
    pub fn matrix_of_client(&self, client: usize, d: usize) -> &[f64] {
        match self {
            Self::Matrix { matrix, .. } if matrix.len() == d * d => matrix,
            Self::Matrix { matrix, .. } => &matrix[client * d * d..][..d * d],
            _ => &[],
        }
    }

    /// Whether the operation's result is the server's or the clients'.
    pub fn level(&self) -> Level {
        match self {
            Self::Sum { .. } | Self::Members { .. } => Level::Server,
            Self::Matrix { level, .. } | Self::Normal { level } | Self::Mask { level, .. } => {
                *level
            }
            _ => Level::Clients,
        }
    }
}

impl Coefficient {
    /// The coefficients of the d entries of the vector of client number `client`, from 0 on, d numbers. An expression
    /// of the server has no numbers that differ between clients ([`Program::check`]), so that any `client` gives the
    /// server's coefficients.
    pub fn entries_of_client(&self, client: usize, d: usize) -> Vec<f64> {
        match self {
            Self::Number(x) => vec![*x; d],
            Self::Numbers(CoefficientNumbers::Entries(all)) => all.clone(),
            Self::Numbers(CoefficientNumbers::Clients(all)) => vec![all[client]; d],
            Self::Numbers(CoefficientNumbers::Rows(all)) => {
                all[client * d..(client + 1) * d].to_vec()
            }
        }
    }

    /// The numbers that the coefficient states for client number `client` alone: 1 or d of them, or none if it is the
    /// same for all clients. Only clients for which all these numbers agree can be of one type, whose moments are
    /// followed together.
    pub fn numbers_of_client(&self, client: usize, d: usize) -> &[f64] {
        match self {
            Self::Numbers(CoefficientNumbers::Clients(all)) => &all[client..=client],
            Self::Numbers(CoefficientNumbers::Rows(all)) => &all[client * d..(client + 1) * d],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{alternating, program};

    /// In the program of [`alternating`], rounds 2 and 3 repeat for ever.
    #[test]
    fn rounds_have_the_phases_of_the_cycle() {
        let program = alternating();
        assert_eq!([0, 1, 2, 3, 4].map(|round| program.phase(round)), [0, 1, 0, 1, 0]);
        assert_eq!(program.phase_shares(1, 4), [2.0 / 3.0, 1.0 / 3.0]);
        assert_eq!(program.phase_shares(2, 5), [1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(program.phase_shares(0, 2), [0.5, 0.5]);
        assert_eq!(program.phase_shares(9, 9), [0.5, 0.5]);
        let three = Program { rounds: Vec::new(), order: vec![0, 1, 2], cycle: 3, ..program };
        assert_eq!(three.phase_shares(4, 8), [0.25, 0.5, 0.25]);
        assert_eq!(three.phase_shares(4, 5), [0.0, 1.0, 0.0]);
        assert!(alternating().to_string().contains("round 2 and every 2nd after it"));
    }

    /// In a program that [`program`] makes, atom 0 is θ, atom 1 where the clients end, and atom 2 their mean, and the
    /// only round repeats. Each change of the good program makes one thing wrong.
    #[test]
    fn what_is_no_program_is_refused() {
        let good = program(vec![], vec![], sum([(2, 1.0)]));
        good.check().unwrap();
        // The message about the good program after a change.
        let with = |change: fn(&mut Program)| {
            let mut changed = good.clone();
            change(&mut changed);
            changed.check().unwrap_err()
        };
        assert_eq!(with(|p| p.order = vec![1]), ProgramError::UnknownRound);
        assert_eq!(with(|p| p.cycle = 2), ProgramError::LongCycle);
        let unknown_atom = with(|p| p.rounds[0].result = sum([(7, 1.0)]));
        assert_eq!(unknown_atom, ProgramError::UnknownAtom);
        let other_level = with(|p| p.rounds[0].result = sum([(1, 1.0)]));
        assert_eq!(other_level, ProgramError::UnknownAtom);
        assert_eq!(with(|p| p.rounds[0].next = vec![]), ProgramError::OtherState);
        let beginning = with(|p| p.rounds[0].state = vec![Level::Clients]);
        assert_eq!(beginning, ProgramError::Beginning);
        assert_eq!(with(|p| p.rounds[0].cohort = Some(4)), ProgramError::CohortSize);
        let scheme_without_draw =
            with(|p| p.rounds[0].participation = ParticipationScheme::Rescaled);
        assert_eq!(scheme_without_draw, ProgramError::CohortSize);
        let mut with_replacement = good.clone();
        with_replacement.rounds[0].cohort = Some(4);
        with_replacement.rounds[0].participation = ParticipationScheme::WithReplacement;
        with_replacement.check().unwrap();
        let members = Operation::Members { rows: sum([(1, 1.0)]) };
        let changed = program(vec![], vec![members], sum([(2, 1.0)]));
        assert_eq!(changed.check(), Err(ProgramError::IncompleteOperation { place: 2 }));
        let mask = Operation::Mask { of: sum([(1, 1.0)]), mask: 0, level: Level::Clients };
        let changed = program(vec![], vec![mask], sum([(2, 1.0)]));
        assert_eq!(changed.check(), Err(ProgramError::IncompleteOperation { place: 2 }));
    }
}
