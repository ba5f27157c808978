//! Whether the draws of a round are such that their noises are uncorrelated, as THEORY (4.1) takes them to be. An
//! *atom* is a vector of the server, or one vector for each client, which the state has at the start of the round or an
//! operation makes.

use super::{Operation, ProgramError, Round};
use std::collections::BTreeSet;

/// Something that a round draws once and of which several of its operations may make use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DrawSource {
    /// The cohort: which clients take part.
    Cohort,
    /// The mask with this number in the list of the round.
    Mask(usize),
    /// The draws of local steps that share them under this number.
    Steps(usize),
    /// The draws of gradients that share them under this number.
    Fields(usize),
}

impl DrawSource {
    /// What an operation draws or applies that other operations of the round may draw or apply too; `None` if it draws
    /// nothing, or has draws that it shares with no other.
    fn of_operation(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Members { .. } | Operation::Select { .. } => Some(Self::Cohort),
            Operation::Mask { mask, .. } => Some(Self::Mask(*mask)),
            Operation::Steps { draws, .. } => draws.map(Self::Steps),
            Operation::Fields { draws, .. } => draws.map(Self::Fields),
            _ => None,
        }
    }

    /// The words by which messages name this kind of draws.
    fn words(self) -> &'static str {
        match self {
            Self::Cohort => "participation",
            Self::Mask(_) => "a mask",
            Self::Steps(_) | Self::Fields(_) => "shared draws",
        }
    }
}

impl Round {
    /// Checks that noises which are made from the same draws are correlated only as far as moments follow it. An
    /// operation that masks may read the result of another that depends on the cohort; but if a third operation
    /// applies the cohort to what the mask made, the noises of both are products of the same two draws. All atoms that
    /// operations read must exist, which is checked before.
    ///
    /// # Errors
    /// [`ProgramError::CombinedDraws`], which names the two kinds of draws.
    pub(super) fn check_draws(&self) -> Result<(), ProgramError> {
        // The draws of this round that each atom depends on. The state was made by draws of earlier rounds.
        let mut known: Vec<BTreeSet<DrawSource>> = vec![BTreeSet::new(); self.state.len()];
        let mut orders: BTreeSet<(DrawSource, DrawSource)> = BTreeSet::new();
        for operation in &self.operations {
            let reads = operation.reads().into_iter().flat_map(|expression| &expression.terms);
            let mut sources: BTreeSet<DrawSource> =
                reads.flat_map(|(atom, _)| &known[*atom]).copied().collect();
            if let Some(own) = DrawSource::of_operation(operation) {
                check_order(own, &sources, &mut orders)?;
                sources.insert(own);
            }
            known.push(sources);
        }
        Ok(())
    }
}

/// Records in `orders` that an operation which applies the draws `own` reads what was made with the draws `earlier`:
/// each pair of `orders` has the draws that some operation applies last as its second entry.
///
/// # Errors
/// If moments do not follow that: the draws are applied a second time (the cohort may be), gradients read what a mask
/// or the cohort made in this round, or another operation applies the same two draws in the other order.
fn check_order(
    own: DrawSource,
    earlier: &BTreeSet<DrawSource>,
    orders: &mut BTreeSet<(DrawSource, DrawSource)>,
) -> Result<(), ProgramError> {
    for other in earlier {
        let are_gradients = matches!(own, DrawSource::Steps(_) | DrawSource::Fields(_));
        let is_applied_twice = *other == own && own != DrawSource::Cohort;
        let is_of_part = are_gradients && matches!(other, DrawSource::Cohort | DrawSource::Mask(_));
        if is_applied_twice || is_of_part || orders.contains(&(own, *other)) {
            return Err(ProgramError::CombinedDraws {
                earlier: other.words().to_owned(),
                later: own.words().to_owned(),
            });
        }
        if *other != own {
            orders.insert((*other, own));
        }
    }
    Ok(())
}
