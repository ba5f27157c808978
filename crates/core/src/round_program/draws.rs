//! Whether the draws of a round are such that their noises are uncorrelated, as THEORY (4.1) takes them to be.

use super::{Operation, ProgramError, Round};
use std::collections::BTreeSet;

/// What a round draws once, and operations of it may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DrawSource {
    /// The clients that take part.
    Cohort,
    /// The mask of this number.
    Mask(usize),
    /// The draws of this number of local steps.
    Steps(usize),
    /// The draws of this number of gradients.
    Fields(usize),
}

impl DrawSource {
    /// The draws of an operation that others may share; `None` if it has none.
    fn of_operation(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Members { .. } | Operation::Select { .. } => Some(Self::Cohort),
            Operation::Mask { mask, .. } => Some(Self::Mask(*mask)),
            Operation::Steps { draws, .. } => draws.map(Self::Steps),
            Operation::Fields { draws, .. } => draws.map(Self::Fields),
            _ => None,
        }
    }

    /// How messages call it.
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
    /// applies the cohort to what the mask made, the noises of both are products of the same two draws.
    ///
    /// # Errors
    /// Names the two kinds of draws that are combined so.
    pub(super) fn check_draws(&self) -> Result<(), ProgramError> {
        // What each atom depends on within the round; the state was made by earlier draws.
        let mut known: Vec<BTreeSet<DrawSource>> = vec![BTreeSet::new(); self.state.len()];
        let mut orders: BTreeSet<(DrawSource, DrawSource)> = BTreeSet::new();
        for operation in &self.operations {
            let reads = operation.reads().into_iter().flat_map(|expression| &expression.terms);
            let mut depends: BTreeSet<DrawSource> =
                reads.flat_map(|(atom, _)| &known[*atom]).copied().collect();
            if let Some(own) = DrawSource::of_operation(operation) {
                check_order(own, &depends, &mut orders)?;
                depends.insert(own);
            }
            known.push(depends);
        }
        Ok(())
    }
}

/// Records in `orders` that an operation with the draws `own` reads what depends on the draws `depends`.
///
/// # Errors
/// If moments do not follow that: the draws are applied a second time, gradients read what a mask or the
/// cohort made in this round, or another operation applies the same two draws in the other order.
fn check_order(
    own: DrawSource,
    depends: &BTreeSet<DrawSource>,
    orders: &mut BTreeSet<(DrawSource, DrawSource)>,
) -> Result<(), ProgramError> {
    for other in depends {
        let is_of_steps = matches!(own, DrawSource::Steps(_) | DrawSource::Fields(_));
        let is_own = *other == own && own != DrawSource::Cohort;
        let is_part = is_of_steps && matches!(other, DrawSource::Cohort | DrawSource::Mask(_));
        if is_own || is_part || orders.contains(&(own, *other)) {
            let earlier = other.words().to_owned();
            let later = own.words().to_owned();
            return Err(ProgramError::CombinedDraws { earlier, later });
        }
        if *other != own {
            orders.insert((*other, own));
        }
    }
    Ok(())
}
