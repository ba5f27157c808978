//! All that is checked of a manifest's tables once its cells are known.

use super::checker::Checker;
use super::figures::figure_ids;
use super::kinds::{EvidenceKinds, KindTable};
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
        self.ranked_quantity();
        // What ranks the algorithms is never an average over rounds, and so is checked as `SqError` is.
        if let Some(at) = self.manifest.compare.at {
            self.compared_at("compare.at", at, Quantity::SqError, |_| true);
        }
    }

    /// Notes what is wrong with the quantity of `[compare]` by which the page ranks the algorithms, and with a cost by
    /// which it ranks or tunes them: where runs end at no target, the cost of a run is that of its budget.
    fn ranked_quantity(&mut self) {
        let key = "compare.metric";
        if let Some(metric) = self.manifest.compare.metric {
            self.quantity(key, metric);
            let is_average = metric.average().is_some();
            let name = metric.name();
            let message = format!("`{name}` is an average over rounds, which ranks no algorithms");
            self.require(!is_average, key, message);
            let message = "algorithms are ranked by `metric` of [tune]: write it there";
            self.require(self.manifest.tune.is_none(), key, message);
        }
        let ranked_by = self.manifest.ranked_by();
        let key = if self.manifest.tune.is_some() { "tune.metric" } else { key };
        if ranked_by.is_cost() {
            let ranked_at = self.manifest.ranked_at();
            let is_at_target = ranked_at.is_some_and(|at| at.target().is_some());
            let end_at_target = self.cells.iter().all(|cell| cell.identity.until.is_some());
            let message = format!(
                "`{}` is a cost, which ranks runs by what they pay until a target: write it as `at = {{ until = … }}`, or as `until` in [budget], where runs end",
                ranked_by.name()
            );
            self.require(is_at_target || end_at_target, key, message);
            let message = format!(
                "`{}` is a cost, and runs are ranked at a cost already: delete one of them",
                ranked_by.name()
            );
            self.require(is_at_target || ranked_at.is_none(), key, message);
        }
    }
}
