//! What a row of the table of quantities says.

use super::average::TimeAverage;
use super::measure::Reading;
use exactfed_core::federated::Cost;
use exactfed_core::problem::RecordsOf;
use exactfed_core::theory::exact::Moments;

/// What is known of a quantity: its row of the table.
#[derive(Clone, Copy, Debug)]
pub struct QuantityInfo {
    /// The name in a manifest.
    pub name: &'static str,
    /// The column in Parquet.
    pub column: &'static str,
    /// How pages and axes write it.
    pub symbol: &'static str,
    /// What it means in words and in TeX; `None` of costs, whose symbol says it.
    pub meaning: Option<(&'static str, &'static str)>,
    /// Where its values come from.
    pub kind: QuantityKind,
    /// The function that gives its expectation from the exact moments of a run; `None` if they do not determine it.
    pub expected: Option<ExpectedValue>,
    /// Whether it is a norm or a difference of objectives, and not a square. Of a norm that should be 0, rounding
    /// leaves the root of what it leaves of a square, so that larger values still count as 0.
    pub is_norm: bool,
    /// Whether it is the squared distance of an estimate from what it should be, which sentences call
    /// an error.
    pub is_error: bool,
    /// What is compared in place of a quantity of which more is better; `None` for a quantity of which less is better.
    pub shortfall: Option<Shortfall>,
    /// Whether it is the standard deviation of fractions, which is at most 1/2.
    pub is_spread_of_fractions: bool,
    /// Whether it is about θ*, or about the exact limit, which is computed from θ*: it is not measured
    /// where a manifest leaves θ* out.
    pub needs_optimum: bool,
    /// Whether it is not measured where θ* is not unique: elsewhere a distance to θ* is one to the set of optima.
    pub needs_unique_optimum: bool,
}

/// How far a quantity of which more is better is below its largest value. Ratios and rankings are of
/// this difference, so that everywhere less of what is compared is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shortfall {
    /// The largest value of the quantity.
    pub largest: f64,
    /// The value that a run counts with after it has diverged, which no run falls below.
    pub least: f64,
    /// The name of the difference to the largest value.
    pub name: &'static str,
}

/// Computes a quantity from exact moments, θ* and the exact limit, d numbers each; the limit is `None` where it is not
/// known. Returns `None` where these do not determine the quantity.
pub type ExpectedValue = fn(&Moments, &[f64], Option<&[f64]>) -> Option<f64>;

/// Measures a metric at a recorded round; `None` where the run has no such value.
pub type MeasuredValue = fn(&Reading<'_>) -> Option<f64>;

/// Where the values of a quantity come from.
#[derive(Clone, Copy, Debug)]
pub enum QuantityKind {
    /// The squared error, which every run records unless its manifest leaves θ* out.
    Error,
    /// It is measured at recorded rounds.
    Measured(MeasuredOn, MeasuredValue),
    /// It follows from this average over the rounds after the burn-in, of which there is one for a run.
    Average(TimeAverage),
    /// It is counted round by round: which count of a cost it is, and an amount that examples in documents name.
    Count(fn(&mut Cost) -> &mut u64, f64),
    /// The simulated seconds.
    Seconds,
}

/// What a metric is measured on: it decides which runs have the metric, and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredOn {
    /// The exact limit, whose distance has a column of its own.
    Limit,
    /// The estimate of any run.
    Estimate,
    /// The clients of one run.
    Clients,
    /// Control variates.
    Variates,
    /// The optimum of the virtual environment (TD).
    VirtualOptimum,
    /// The reference point of the manifest.
    Reference,
    /// What code outside of this program reads.
    Own,
    /// The features (TD).
    Features,
    /// An objective.
    Objective,
    /// The mean field of all clients.
    Field,
    /// The loss of records.
    Loss(RecordsOf),
    /// The predicted classes of records.
    Classes(RecordsOf),
    /// The loss of each client's records.
    ClientLosses(RecordsOf),
    /// The predicted classes of each client's records.
    ClientClasses(RecordsOf),
    /// The predicted classes of the records of each class.
    Recalls(RecordsOf),
    /// The order of records of different classes by their scores.
    Order(RecordsOf),
}

impl QuantityInfo {
    /// A row with what every quantity has. The other methods add what only some quantities have: without them less is
    /// better, the quantity is a square that sentences do not call an error, nothing predicts it, and θ* is not needed.
    pub(super) const fn new(
        name: &'static str,
        column: &'static str,
        symbol: &'static str,
        kind: QuantityKind,
    ) -> Self {
        Self {
            name,
            column,
            symbol,
            meaning: None,
            kind,
            expected: None,
            is_norm: false,
            is_error: false,
            shortfall: None,
            is_spread_of_fractions: false,
            needs_optimum: false,
            needs_unique_optimum: false,
        }
    }

    /// Adds what the quantity means, in words and in TeX, for the formulas below figures.
    pub(super) const fn meaning(self, words: &'static str, tex: &'static str) -> Self {
        Self { meaning: Some((words, tex)), ..self }
    }

    /// Adds the function that gives the expectation of the quantity from exact moments.
    pub(super) const fn expected(self, expected: ExpectedValue) -> Self {
        Self { expected: Some(expected), ..self }
    }

    /// Says that the quantity is about θ*, so that it is refused where a manifest leaves θ* out.
    pub(super) const fn of_optimum(self) -> Self {
        Self { needs_optimum: true, ..self }
    }

    /// Says that the quantity is about a single θ*, so that it is also refused where there are several.
    pub(super) const fn of_unique_optimum(self) -> Self {
        Self { needs_unique_optimum: true, ..self.of_optimum() }
    }

    /// Says that sentences may call the quantity an error.
    pub(super) const fn error(self) -> Self {
        Self { is_error: true, ..self }
    }

    /// Says that the quantity is no square, of which rounding leaves more.
    pub(super) const fn norm(self) -> Self {
        Self { is_norm: true, ..self }
    }

    /// Says that the quantity is the standard deviation of fractions.
    pub(super) const fn spread_of_fractions(self) -> Self {
        Self { is_spread_of_fractions: true, ..self.norm() }
    }

    /// Says that the quantity is a fraction of which more is better; `shortfall` is the name of 1 minus the fraction,
    /// such as "error rate".
    pub(super) const fn more_is_better(self, shortfall: &'static str) -> Self {
        let shortfall = Shortfall { largest: 1.0, least: 0.0, name: shortfall };
        Self { shortfall: Some(shortfall), ..self }
    }
}
