//! What is wrong with the quantities that figures and claims name, and with the costs at which
//! runs are compared: that they are not recorded, that they need θ* where it is left out, or that no
//! run gets as far.

use super::cell::Cell;
use super::checker::Checker;
use super::settings::short;
use crate::manifest::{AtCost, ComparedAt, Manifest, Metric, Quantity, Until};
use exactfed_core::problem;
use exactfed_core::words::count;

/// The end of a message: that something needs θ*, which a manifest with this problem leaves out, or which is not known of
/// the problem.
pub fn needs_optimum(problem: &problem::Spec) -> String {
    if problem.has_optimum() {
        "needs θ*, which `record.optimum = false` leaves out".to_owned()
    } else {
        format!("needs θ*, which is not known of `{}`", problem.kind())
    }
}

/// Why figures and claims cannot be about a quantity, and what to write so that it is recorded; `None` if it is
/// recorded, as costs in other units than seconds always are. `None` also for `sq-error-limit`, which is recorded
/// without being listed wherever theory knows the limit.
pub fn unrecorded(manifest: &Manifest, quantity: Quantity) -> Option<String> {
    let name = quantity.name();
    if quantity.needs_optimum() && !manifest.record.optimum {
        return Some(format!("`{name}` {}", needs_optimum(manifest.problem())));
    }
    match (quantity.metric(), quantity.average()) {
        (Some(Metric::SqErrorLimit), _) => None,
        (Some(metric), _) if !manifest.record.metrics.contains(&metric) => {
            Some(format!("`{name}` is not recorded: write metrics = [\"{name}\"] in [record]"))
        }
        (None, Some(average)) if !manifest.record.averages.contains(&average) => {
            let average = average.name();
            Some(format!("`{name}` is not recorded: write averages = [\"{average}\"] in [record]"))
        }
        (None, None) if quantity == Quantity::Seconds && manifest.prices.is_none() => {
            Some(format!("`{name}` needs prices: write a table [prices]"))
        }
        _ => None,
    }
}

impl Checker<'_> {
    /// Notes that the quantity of a key is not recorded, if so. A default that needs θ* is passed over where the
    /// manifest leaves θ* out and records nothing that takes its place: this is noted once, at `record.optimum`.
    pub fn quantity(&mut self, key: &str, quantity: Quantity) {
        if quantity.needs_optimum() && !self.manifest.record.optimum {
            let is_default = !self.is_written(key);
            if is_default && self.manifest.record.default_quantity() == quantity {
                // That nothing is recorded that could take its place is noted at `record.optimum`.
                return;
            }
            let default = if is_default { ", the default," } else { "" };
            let value = format!("{} = \"{}\"", short(key), quantity.name());
            self.needs_optimum(key, &format!("`{value}`{default}"));
        } else if let Some(message) = unrecorded(self.manifest, quantity) {
            self.fault(key, message);
        }
    }

    /// Notes each of the quantities in the list of a key that is not recorded.
    pub fn listed_quantities(&mut self, key: &str, quantities: &[Quantity]) {
        for (i, quantity) in quantities.iter().enumerate() {
            if let Some(message) = unrecorded(self.manifest, *quantity) {
                self.fault(&format!("{key}.{i}"), message);
            }
        }
    }

    /// Notes that `what`, which a key asks for, needs θ*, if the manifest leaves θ* out.
    pub fn needs_optimum(&mut self, key: &str, what: &str) {
        let message = format!("{what} {}", needs_optimum(self.manifest.problem()));
        self.require(self.manifest.record.optimum, key, message);
    }

    /// Notes that a key asks for predictions where the manifest leaves θ* out (`record.optimum`), since all predictions
    /// are about θ*. Notes too that runs end at a target, since predictions are for all rounds of the budget.
    /// `are_asked_for` says whether the key asks for any. What else predictions need is not checked here.
    pub fn predictions(&mut self, key: &str, are_asked_for: bool) {
        if are_asked_for {
            self.needs_optimum(key, &format!("`{key}`"));
            let end_early = self.cells.iter().any(|cell| cell.identity.until.is_some());
            let message = format!(
                "`{key}` is for all rounds of a run, and `budget.until` ends runs earlier: delete one of them"
            );
            self.require(!end_early, key, message);
        }
    }

    /// Notes why runs cannot be compared by a metric at the cost or the target that a key states: the cost or the
    /// target is no positive number or is not recorded, the metric is an average over all rounds, or the budget of some
    /// cell ends before this cost. `is_meant` says which cells are to be compared.
    pub fn compared_at(
        &mut self,
        key: &str,
        at: ComparedAt,
        metric: Quantity,
        is_meant: impl Fn(&Cell) -> bool,
    ) {
        if metric.average().is_some() {
            let metric = metric.name();
            let place = if at.target().is_some() { "target" } else { "cost" };
            let message =
                format!("`{metric}` is an average over all rounds: it has no value at a {place}");
            return self.fault(key, message);
        }
        match at {
            ComparedAt::Cost(at) => self.at_cost(key, at, is_meant),
            ComparedAt::Target { until } => {
                if let Some((place, message)) = fault_of_target(self.manifest, until) {
                    let space = if message.starts_with(':') { "" } else { " " };
                    let message = format!("`{place}`{space}{message}");
                    self.fault(&format!("{key}.until.{place}"), message);
                }
            }
        }
    }

    /// Notes why runs cannot be compared at a cost. The budget is not checked where rounds differ in their costs, as
    /// under a coin: their runs show it.
    fn at_cost(&mut self, key: &str, at: AtCost, is_meant: impl Fn(&Cell) -> bool) {
        let AtCost { unit, most } = at;
        let name = unit.name();
        if !(most.is_finite() && most > 0.0) {
            let message = format!("`{name}` must be a finite number above 0, not {most}");
            return self.fault(key, message);
        }
        if let Some(message) = unrecorded(self.manifest, unit) {
            return self.fault(key, message);
        }
        let prices = self.manifest.prices.unwrap_or_default();
        // A budget ends too early if it leaves room for another whole round within the cost.
        let mut short = self.cells.iter().filter(|cell| is_meant(cell)).filter_map(|cell| {
            let (all, round) = cell.identity.cost(unit, &prices)?;
            (all < most && all + round <= most).then_some((cell, all))
        });
        let Some((cell, all)) = short.next() else { return };
        let cells = count(1 + short.count(), "cell");
        let label = &cell.label;
        let rounds = cell.identity.rounds;
        let message = format!(
            "the budget ends before {name} = {most} in {cells}: the {rounds} rounds of \"{label}\" cost {all}"
        );
        self.fault(key, message);
    }
}

/// What is wrong with a target: its metric is not measured at the recorded rounds, or no value comes to it. The message
/// follows the name of the key of the target that it is about, which comes first.
pub fn fault_of_target(manifest: &Manifest, until: Until) -> Option<(&'static str, String)> {
    let Until { metric, target } = until;
    let name = metric.name();
    if metric.is_cost() || metric.average().is_some() || metric == Quantity::SqErrorLimit {
        let message = format!("= \"{name}\" is not measured at the rounds of every run");
        return Some(("metric", message));
    }
    if let Some(why) = unrecorded(manifest, metric) {
        return Some(("metric", format!(": {why}")));
    }
    if !(target.is_finite() && target > 0.0) {
        return Some(("target", format!("must be a finite number above 0, not {target}")));
    }
    let shortfall = metric.info().shortfall.filter(|shortfall| target > shortfall.largest)?;
    let message = format!(": `{name}` is at most {}, and never {target}", shortfall.largest);
    Some(("target", message))
}
