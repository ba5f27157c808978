//! All that is checked of a manifest's tables once its cells are known.

use super::figures::figure_ids;
use super::kinds::{EvidenceKinds, KindTable};
use super::places::Checker;
use crate::manifest::Quantity;
use crate::manifest::claim::ClaimKeys;
use crate::manifest::figure::FigureKeys;

impl Checker<'_> {
    /// Notes what is wrong with all tables but those that determine cells, given the tables of figures and claims.
    pub(super) fn check(
        &mut self,
        kinds: &EvidenceKinds,
        figures: &[KindTable<FigureKeys>],
        claims: &[KindTable<ClaimKeys>],
    ) {
        self.figures(figures);
        self.claims(claims, &figure_ids(self.manifest, figures));
        self.amendments(claims, kinds.is_none());
        let are_frontiers_sound = self.frontiers();
        self.phases(are_frontiers_sound);
        self.tune();
        self.equal_labels();
        // What ranks the algorithms is never an average over rounds, and so is checked as `SqError` is.
        if let Some(at) = self.manifest.compare.at {
            self.at_cost("compare.at", at, Quantity::SqError, |_| true);
        }
    }
}
