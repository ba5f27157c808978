//! Claims that were judged at several looks at growing numbers of replicates.
//!
//! *Invariant*: a claim keeps the verdict, the estimate and the p-value of the first look that
//! decided it, so that what later looks see changes no verdict.

use super::judged::JudgedClaim;
use crate::stats::looks::{Look, Looks};
use std::ops::Deref;

/// The claims of a manifest, judged together, in its order.
#[derive(Clone, Debug, Default)]
pub struct JudgedClaims<'a> {
    pub(crate) list: Vec<JudgedClaim<'a>>,
    /// The looks at which they were judged, if replicates were added in planned looks.
    pub looks: Option<TakenLooks>,
}

/// Looks that were planned and taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenLooks {
    /// The plan.
    pub planned: Looks,
    /// The looks so far.
    pub taken: Vec<Look>,
    /// Which of them decided each claim, in the order of the claims; `None` for a claim that none
    /// decided.
    pub decided: Vec<Option<usize>>,
}

impl<'a> Deref for JudgedClaims<'a> {
    type Target = [JudgedClaim<'a>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl<'a> JudgedClaims<'a> {
    /// The verdicts of looks, of which each judged all claims at its own level, in their order.
    pub fn from_looks(planned: Looks, taken: Vec<Look>, judged: Vec<Vec<JudgedClaim<'a>>>) -> Self {
        let mut each = judged.into_iter().enumerate();
        let mut list = each.next().map_or_else(Vec::new, |(_, first)| first);
        let decide = |claim: &JudgedClaim<'_>, look| claim.is_decided().then_some(look);
        let mut decided: Vec<Option<usize>> = list.iter().map(|claim| decide(claim, 0)).collect();
        for (look, judged) in each {
            for ((claim, at), later) in list.iter_mut().zip(&mut decided).zip(judged) {
                if at.is_none() {
                    *at = decide(&later, look);
                    *claim = later;
                }
            }
        }
        Self { list, looks: Some(TakenLooks { planned, taken, decided }) }
    }
}
