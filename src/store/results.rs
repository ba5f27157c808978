//! What evidence reads of a store ([`Results`]).

use super::Store;
use exactfed_core::problem::Minimiser;
use exactfed_core::program::Traced;
use exactfed_evidence::results::{
    Cached, Columns, PlannedLooks, Results, ShownVerdicts, StoredCell,
};
use exactfed_runner::files::Error;
use exactfed_runner::plan::CellId;

impl Results for Store {
    fn read(&self, experiment: &str, id: &str) -> Result<Option<StoredCell>, Error> {
        self.read(experiment, id)
    }

    fn failure(&self, experiment: &str, id: &str) -> Result<Option<String>, Error> {
        Ok(self.failed(experiment, id)?.map(|failed| failed.reason))
    }

    fn reading_order(&self, experiment: &str, ids: &[&str]) -> Vec<usize> {
        self.reading_order(experiment, ids)
    }

    fn ids(&self, experiment: &str) -> Result<Vec<CellId>, Error> {
        self.ids(experiment)
    }

    fn release(&self, experiment: &str) {
        self.forget_packs(experiment);
    }

    fn settings(&self, experiment: &str, id: &str) -> Result<toml::Table, Error> {
        self.settings(experiment, id)
    }

    fn programs(&self, experiment: &str, id: &str) -> Vec<Traced> {
        self.programs(experiment, id)
    }

    fn planned_looks(&self, experiment: &str) -> Result<Vec<PlannedLooks>, Error> {
        self.planned_looks(experiment)
    }

    fn shown_verdicts(&self, experiment: &str) -> Result<Vec<ShownVerdicts>, Error> {
        self.shown_verdicts(experiment)
    }

    fn known_optimum(&self, key: &str) -> Option<Minimiser> {
        self.optimum(key)
    }

    fn cached(&self, what: &Cached) -> Option<Columns> {
        self.cached_columns(what)
    }

    fn cache(&self, what: &Cached, columns: &Columns) {
        self.cache_columns(what, columns);
    }
}
