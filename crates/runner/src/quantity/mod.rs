//! What is measured of a run and what a run costs: one table of quantities, with the names that
//! manifests, Parquet columns and pages use, and the functions that give their values.
//!
//! A new metric is a row of the table in `table.rs`, with its function in [`measure`].

mod average;
mod cost;
#[cfg(test)]
mod dummy;
mod info;
mod measure;
mod over_clients;
mod own;
mod table;

pub use average::TimeAverage;
pub use cost::{AtCost, ComparedAt, Prices, Until};
use exactfed_core::algorithm::Spec;
use exactfed_core::federated::Cost;
use exactfed_core::problem::RecordsOf;
pub use info::{ExpectedValue, MeasuredOn, MeasuredValue, QuantityInfo, QuantityKind, Shortfall};
pub use measure::Reading;
pub use own::{MOST_OWN, assign};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
pub use table::{Metric, Quantity};

impl Metric {
    /// The name in a manifest.
    pub fn name(self) -> &'static str {
        self.quantity().name()
    }

    /// The column in Parquet.
    pub fn column(self) -> &'static str {
        self.quantity().column()
    }

    /// What it is measured on, and the function that gives its value at a recorded round. The table makes every metric
    /// from a row of the kind [`QuantityKind::Measured`], so that there is no other case.
    pub fn measured(self) -> (MeasuredOn, MeasuredValue) {
        match self.quantity().info().kind {
            QuantityKind::Measured(on, value) => (on, value),
            kind => unreachable!("{} is of the kind {kind:?}", self.name()),
        }
    }

    /// All metrics that have a name, as [`Quantity::known`].
    pub fn known() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|metric| metric.quantity().has_name())
    }

    /// Whether it is defined outside of this program.
    pub fn is_own(self) -> bool {
        self.measured().0 == MeasuredOn::Own
    }

    /// Whether it is measured on each client's records in the test set, so that each record of the test set must belong
    /// to a client.
    pub fn is_per_client_of_test(self) -> bool {
        use MeasuredOn::{ClientClasses, ClientLosses};
        matches!(self.measured().0, ClientLosses(RecordsOf::Test) | ClientClasses(RecordsOf::Test))
    }

    /// Whether runs of an algorithm have the metric, as far as the algorithm decides it: some metrics are measured on
    /// clients or their control variates, which not all runs have. The problem may still lack what it is measured on.
    pub fn is_of(self, algorithm: &Spec) -> bool {
        match self.measured().0 {
            MeasuredOn::Clients => algorithm.tells_clients(),
            MeasuredOn::Variates => algorithm.tells_variates(),
            _ => true,
        }
    }
}

/// What several quantities can have in common that are drawn on one y axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisUnit {
    /// Fractions of which more is better, such as accuracies.
    Fraction,
    /// Mean losses of records, and what is computed from the clients' ones.
    Loss,
    /// Squared distances of an estimate from what it should be.
    SquaredDistance,
}

impl AxisUnit {
    /// The title of a y axis on which several such quantities are drawn.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fraction => "fraction",
            Self::Loss => "loss",
            Self::SquaredDistance => "squared distance",
        }
    }
}

#[expect(clippy::derivable_impls, reason = "a macro writes the variants")]
impl Default for Quantity {
    fn default() -> Self {
        Self::SqError
    }
}

impl Quantity {
    /// The name in a manifest.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The column in Parquet.
    pub fn column(self) -> &'static str {
        self.info().column
    }

    /// How pages and axes write it.
    pub fn formula(self) -> &'static str {
        self.info().symbol
    }

    /// The average over rounds that a manifest must record for this quantity; `None` if it follows from no average.
    pub fn average(self) -> Option<TimeAverage> {
        match self.info().kind {
            QuantityKind::Average(average) => Some(average),
            _ => None,
        }
    }

    /// How pages write it where second moments are taken around θ*, because no limit is known and the bias is not
    /// recorded. This is another symbol for the variance alone.
    pub fn formula_around_optimum(self) -> &'static str {
        match self {
            Self::Variance => "E‖θ − θ*‖²",
            other => other.formula(),
        }
    }

    /// Whether it is counted, so that it is a whole number: every cost but the simulated seconds.
    pub fn is_counted(self) -> bool {
        matches!(self.info().kind, QuantityKind::Count(..))
    }

    /// What it has in common with the quantities that panels of one figure show with it, which have one y axis. `None`
    /// if no other quantity fits on its axis: the spread of an accuracy is a fraction too, and far below accuracies.
    pub fn axis_unit(self) -> Option<AxisUnit> {
        use MeasuredOn::{ClientLosses, Loss};
        match self.info().kind {
            _ if self.more_is_better() => Some(AxisUnit::Fraction),
            _ if self.info().is_error => Some(AxisUnit::SquaredDistance),
            QuantityKind::Measured(Loss(_) | ClientLosses(_), _) => Some(AxisUnit::Loss),
            _ => None,
        }
    }

    /// Whether it is a cost of a run.
    pub fn is_cost(self) -> bool {
        Self::COSTS.contains(&self)
    }

    /// Whether more of it is better, as of an accuracy.
    pub fn more_is_better(self) -> bool {
        self.info().shortfall.is_some()
    }

    /// What rankings and ratios compare in place of a value of this quantity, so that less is always better: the value
    /// itself, or for an accuracy how far it is below the largest, which is an error rate. The value of a run that
    /// diverged is not finite, and stays as it is.
    pub fn loss(self, value: f64) -> f64 {
        match self.info().shortfall {
            Some(Shortfall { largest, .. }) if value.is_finite() => largest - value,
            _ => value,
        }
    }

    /// The least and the largest value that the quantity can have: 0 and 1 for a fraction such as an accuracy, and 0 and
    /// 1/2 for the standard deviation of fractions. The ends are infinite for other quantities, also for those that are
    /// never negative.
    pub fn possible_values(self) -> (f64, f64) {
        match self.info() {
            QuantityInfo { shortfall: Some(Shortfall { least, largest, .. }), .. } => {
                (least, largest)
            }
            QuantityInfo { is_spread_of_fractions: true, .. } => (0.0, 0.5),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// A limit of a mean of this quantity, moved to the nearest of [`Self::possible_values`] if it is beyond them.
    pub fn nearest_possible(self, limit: f64) -> f64 {
        let (least, largest) = self.possible_values();
        limit.clamp(least, largest)
    }

    /// The lower and the upper limit of a mean of this quantity, from those of the mean of its [`Self::loss`]. Both are
    /// [possible](Self::possible_values).
    pub fn limits_from_loss(self, low: f64, high: f64) -> (f64, f64) {
        let limits = match self.info().shortfall {
            // The smallest accuracy has the largest error rate.
            Some(Shortfall { largest, .. }) => (largest - high, largest - low),
            None => (low, high),
        };
        (self.nearest_possible(limits.0), self.nearest_possible(limits.1))
    }

    /// Whether a value has come to a target: down to it, or up to it if more is better. An accuracy is a fraction of
    /// records and often equal to its target, from which the mean of equal fractions differs by rounding.
    pub fn meets(self, value: f64, target: f64) -> bool {
        const ROUNDING: f64 = 1e-9;
        if self.more_is_better() { value >= target * (1.0 - ROUNDING) } else { value <= target }
    }

    /// What sentences call that which [`Self::loss`] returns, in a few words: "error", "error rate", "train loss"
    /// or "cost in communications".
    pub fn loss_name(self) -> String {
        match self.info().shortfall {
            Some(shortfall) => shortfall.name.to_owned(),
            None if self.info().is_error => "error".to_owned(),
            None if self.is_cost() => format!("cost in {}", self.formula()),
            None => self.name().replace('-', " "),
        }
    }

    /// How captions write that which [`Self::loss`] returns: its symbol, or "error rate (1 − accuracy)".
    pub fn compared(self) -> String {
        match self.info().shortfall {
            Some(Shortfall { largest, name, .. }) => {
                format!("{name} ({largest} − {})", self.formula())
            }
            None => self.formula().to_owned(),
        }
    }

    /// Which of several means is the best: the smallest or the largest.
    pub fn best_mean(self) -> &'static str {
        if self.more_is_better() { "largest" } else { "smallest" }
    }

    /// Which of several means is the worst: the largest or the smallest.
    pub fn worst_mean(self) -> &'static str {
        if self.more_is_better() { "smallest" } else { "largest" }
    }

    /// Whether it is about θ*, so that it is not known where a manifest leaves θ* out.
    pub fn needs_optimum(self) -> bool {
        self.info().needs_optimum
    }

    /// Whether it is about a single θ*, so that it is not known where there are several. Of other quantities that need
    /// θ*, a distance is then the one to the set of optima.
    pub fn needs_unique_optimum(self) -> bool {
        self.info().needs_unique_optimum
    }

    /// The value that a run which has diverged counts with in means and comparisons, than which none is worse:
    /// infinity, or for an accuracy 0.
    pub fn after_divergence(self) -> f64 {
        self.info().shortfall.map_or(f64::INFINITY, |shortfall| shortfall.least)
    }

    /// All quantities that have a name: those of this program, and the metrics of others that are known by now.
    pub fn known() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|quantity| quantity.has_name())
    }

    /// The quantity that has this name in a manifest; `None` for any other text, such as the name of a setting.
    pub fn named(name: &str) -> Option<Self> {
        Self::known().find(|q| q.name() == name)
    }

    /// The quantity that has this name in a manifest, in a frame of Python (its column) or on a page (its symbol).
    /// Words may be joined by a hyphen, an underscore or a space. `None` for any other text, which plots in Python then
    /// take for the name of a setting.
    pub fn known_as(name: &str) -> Option<Self> {
        let wanted = with_hyphens(name);
        Self::known().find(|q| {
            [q.name(), q.column(), q.formula()].iter().any(|own| with_hyphens(own) == wanted)
        })
    }

    /// What a cost is in this unit, in seconds if these are simulated at the given prices; `None` if this quantity is
    /// no cost.
    pub fn of_cost(self, cost: &Cost, prices: &Prices) -> Option<f64> {
        match self.info().kind {
            QuantityKind::Count(part, _) => Some(*part(&mut { *cost }) as f64),
            QuantityKind::Seconds => {
                let communications = cost.communications as f64;
                let bytes = cost.bytes_sent as f64;
                let calls = cost.sequential_calls as f64;
                Some(prices.seconds(communications, bytes, calls))
            }
            _ => None,
        }
    }
}

impl Serialize for Quantity {
    /// Writes the name.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Quantity {
    /// Reads the name.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::named(&name).ok_or_else(|| D::Error::custom(format!("`{name}` is no quantity")))
    }
}

impl Serialize for Metric {
    /// Writes the name.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.quantity().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Metric {
    /// Reads the name.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let quantity = Quantity::deserialize(from)?;
        let name = quantity.name();
        quantity.metric().ok_or_else(|| D::Error::custom(format!("`{name}` is no metric")))
    }
}

/// A name whose words are joined by hyphens, as names in manifests are.
fn with_hyphens(name: &str) -> String {
    name.replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the table are those that serde reads and the schema has.
    #[test]
    fn names_are_those_of_manifests() {
        for quantity in Quantity::known() {
            let name = serde_json::to_value(quantity).unwrap();
            assert_eq!(name, quantity.name());
            for known in [quantity.name(), quantity.column(), quantity.formula()] {
                assert_eq!(Quantity::known_as(known), Some(quantity), "no two are named alike");
            }
        }
        for metric in Metric::known() {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
            assert_eq!(metric.quantity().metric(), Some(metric));
            metric.measured();
        }
    }

    /// A limit of an error rate is a limit of the accuracy on its other side. What no accuracy, and no standard
    /// deviation of accuracies, can be is no limit; other quantities have the limits of their losses.
    #[test]
    fn limits_are_values_that_the_quantity_can_have() {
        assert_eq!(Quantity::TestAccuracy.limits_from_loss(0.25, 0.5), (0.5, 0.75));
        assert_eq!(Quantity::Auc.limits_from_loss(-0.5, f64::INFINITY), (0.0, 1.0));
        assert_eq!(Quantity::AccuracySpread.limits_from_loss(-0.1, 3.0), (0.0, 0.5));
        assert_eq!(Quantity::TestLossSpread.limits_from_loss(-0.1, 3.0), (-0.1, 3.0));
        assert_eq!(Quantity::SqError.limits_from_loss(0.1, f64::INFINITY), (0.1, f64::INFINITY));
        let unknown = Quantity::Accuracy.limits_from_loss(f64::NAN, f64::NAN);
        assert!(unknown.0.is_nan() && unknown.1.is_nan());
    }

    /// What has θ* or the limit in its symbol needs it. Only a variance, ψ and the distances from a run that starts at
    /// θ* need it without showing it.
    #[test]
    fn what_needs_the_optimum_shows_it() {
        let others = [
            Quantity::Variance,
            Quantity::Lyapunov,
            Quantity::SqCoupling,
            Quantity::SqCouplingVariates,
        ];
        for quantity in Quantity::ALL {
            let shows = ["θ*", "lim"].iter().any(|sign| quantity.formula().contains(sign));
            let needs = shows || others.contains(quantity);
            assert_eq!(quantity.needs_optimum(), needs, "{}", quantity.name());
        }
    }
}
