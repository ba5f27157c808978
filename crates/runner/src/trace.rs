//! The results of a run: a row per recorded round, how it ended, and the digest, which is equal
//! for two runs if all their bits are.

pub use crate::hex::TraceDigest;
use crate::manifest::{Metric, Quantity, TimeAverage};
use exactfed_core::federated::Cost;
use sha2::{Digest, Sha256};

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// All rounds were run.
    #[default]
    Finished,
    /// The estimate became infinite or NaN; the rows before that are stored.
    Diverged,
    /// It came to the target of the budget, before or at the last round; its last row is the first recorded round at
    /// which it had.
    Reached,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Finished, Self::Diverged, Self::Reached];

    /// The name of the outcome in stored results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Diverged => "diverged",
            Self::Reached => "reached",
        }
    }

    /// The outcome of this name; `None` for any other text.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.name() == name)
    }
}

/// One replicate of a cell, column by column, a row per recorded round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The numbers t of the recorded rounds.
    pub round: Vec<u64>,
    /// What the rounds up to t have cost.
    pub cost: Vec<Cost>,
    /// ‖θ_t − θ*‖²; empty where the manifest leaves θ* out.
    pub sq_error: Vec<f64>,
    /// ‖θ_t − lim E θ_t‖², where theory knows the limit; else empty.
    pub sq_error_limit: Vec<f64>,
    /// Further metrics that are measured, each with a number for each row.
    pub further: Vec<(Metric, Vec<f64>)>,
    /// θ_t, d numbers a row, where the manifest asks for it; else empty.
    pub theta: Vec<f64>,
    /// The averages over the rounds after the burn-in, each with its numbers; none for a run that diverged.
    pub averages: Vec<(TimeAverage, Vec<f64>)>,
    /// How the run ended.
    pub outcome: Outcome,
}

impl Trace {
    /// The number of recorded rounds.
    pub fn rows(&self) -> usize {
        self.round.len()
    }

    /// ‖θ_T − θ*‖²; `None` if the run diverged, or θ* is left out.
    pub fn final_error(&self) -> Option<f64> {
        self.final_value(Quantity::SqError)
    }

    /// The values of a measured quantity at the recorded rounds, one for each; empty if it is not recorded. Averages
    /// and costs are not among measured quantities.
    pub fn measured(&self, quantity: Quantity) -> &[f64] {
        match quantity {
            Quantity::SqError => &self.sq_error,
            Quantity::SqErrorLimit => &self.sq_error_limit,
            other => {
                let mut further = self.further.iter();
                let found = further.find(|(metric, _)| metric.quantity() == other);
                found.map_or(&[], |(_, values)| values)
            }
        }
    }

    /// A measured quantity at the last round; `None` if the run diverged, or it is not recorded.
    pub fn final_value(&self, quantity: Quantity) -> Option<f64> {
        match self.outcome {
            Outcome::Finished | Outcome::Reached => self.measured(quantity).last().copied(),
            Outcome::Diverged => None,
        }
    }
}

/// Extends the traces of runs that ended at a target to the recorded rounds of the longest trace: after it has ended, a
/// run keeps its last values and costs no more. Without this, the rows that all runs have would end with the run that
/// reaches the target first. Iterates, which figures and claims do not use, stay as they are.
pub fn hold_last_values(traces: &mut [Trace]) {
    if traces.iter().all(|trace| trace.outcome != Outcome::Reached) {
        return;
    }
    let Some(longest) = traces.iter().max_by_key(|trace| trace.rows()) else { return };
    let rounds = longest.round.clone();
    for trace in traces.iter_mut().filter(|trace| trace.outcome == Outcome::Reached) {
        trace.round.extend_from_slice(&rounds[trace.rows()..]);
        hold_last(&mut trace.cost, rounds.len());
        hold_last(&mut trace.sq_error, rounds.len());
        hold_last(&mut trace.sq_error_limit, rounds.len());
        for (_, values) in &mut trace.further {
            hold_last(values, rounds.len());
        }
    }
}

/// Repeats the last value of a column until it has this many; an empty one stays empty.
fn hold_last<T: Copy>(column: &mut Vec<T>, rows: usize) {
    if let Some(last) = column.last().copied() {
        column.resize(rows, last);
    }
}

/// The digest of the traces of a cell's runs, in the order of the runs: a hash over every bit of their rows, averages
/// and outcomes. Of costs it contains the communications, the local steps, the gradients of all clients and the
/// vectors sent. Results store it, and are compared by it: what is hashed, and in which order, must stay as it is, or
/// every stored cell would seem to have changed.
pub fn digest(traces: &[Trace]) -> TraceDigest {
    let mut hash = Sha256::new();
    let mut word = |x: u64| hash.update(x.to_le_bytes());
    for trace in traces {
        word(trace.rows() as u64);
        word(trace.outcome as u64);
        trace.round.iter().for_each(|&t| word(t));
        for cost in &trace.cost {
            word(cost.communications);
            word(cost.local_steps);
            word(cost.oracle_calls);
            word(cost.vectors_sent);
        }
        for metric in [&trace.sq_error, &trace.sq_error_limit, &trace.theta] {
            word(metric.len() as u64);
            metric.iter().for_each(|x| word(x.to_bits()));
        }
        let further = trace.further.iter().map(|(metric, values)| (metric.name(), values));
        let averages = trace.averages.iter().map(|(average, values)| (average.name(), values));
        for (name, values) in further.chain(averages) {
            name.bytes().for_each(|byte| word(u64::from(byte)));
            word(values.len() as u64);
            values.iter().for_each(|x| word(x.to_bits()));
        }
    }
    TraceDigest::from_hash(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_sees_the_last_bit() {
        let trace = Trace { round: vec![0], sq_error: vec![1.0], ..Trace::default() };
        let mut other = trace.clone();
        other.sq_error[0] = f64::from_bits(1.0_f64.to_bits() + 1);
        let one = digest(std::slice::from_ref(&trace));
        assert_eq!(one.to_string().len(), 32);
        assert_ne!(one, digest(&[other]));
        assert_ne!(one, digest(&[trace.clone(), trace.clone()]));
        let diverged = Trace { outcome: Outcome::Diverged, ..trace };
        assert_ne!(one, digest(&[diverged]));
    }
}
