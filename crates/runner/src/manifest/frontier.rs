//! `[[frontier]]`: for each algorithm the least cost of bringing the exact error down to a target and
//! holding it there, over step sizes and local steps. Frontiers change no run.

use super::searched::{AlgorithmName, SGD, SearchedAlgorithm, SearchedFault, WrittenAlgorithm};
use exactfed_core::words::number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A frontier: algorithms on the manifest's problem, each at its best step size and number of
/// local steps, for each number of clients and target. It needs a linear problem with independent
/// draws, one instance of it, and no axes of `problem`, `start` and `oracle`. `report` computes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Frontier {
    /// Name of the frontier; those of its figures begin with it.
    #[schemars(example = &"quadratic")]
    pub id: String,
    /// Heading of its first figure; made from what is drawn if it is left out.
    #[schemars(example = &"Communications to reach an error")]
    pub title: Option<String>,
    /// The algorithms. One that is defined in Python or Rust is named by its kind. Values of keys that are
    /// to be tried stand with a name: `{ fedavgm = { momentum = [0.5, 0.9] } }`.
    #[serde(rename = "algorithms", default = "usual_algorithms")]
    pub written: Vec<WrittenAlgorithm>,
    /// The algorithms that are written, with the settings that are tried; those with faults are left out.
    #[serde(skip)]
    pub algorithms: Vec<SearchedAlgorithm>,
    /// What is wrong with the algorithms that `algorithms` lacks.
    #[serde(skip)]
    pub faults: Vec<SearchedFault>,
    /// Numbers of clients; by default that of the problem. Clients with the same distribution are
    /// of one type, and each type keeps its fraction of the clients. With `clients = 2` a quadratic
    /// has two types, so that any even number is possible here. The time of the computation grows
    /// with the number of types.
    #[serde(default)]
    #[schemars(example = serde_json::json!([10, 100, 1000]))]
    pub clients: Vec<u64>,
    /// The errors ε to be reached, root mean squares of ‖θ_T − θ*‖: a list, or numbers of equal
    /// ratio.
    #[schemars(example = serde_json::json!([0.1, 0.01]))]
    pub targets: ListOr<f64, EqualRatios>,
    /// The step sizes γ that are tried.
    #[schemars(example = serde_json::json!({ "from": 1e-5, "to": 1.6, "points": 100 }))]
    pub step_size: EqualRatios,
    /// The numbers of local steps H that are tried: a list, or powers of a ratio. For mini-batch
    /// SGD they are batches, for Scaffnew the mean number of local steps of a round, 1/p.
    #[serde(default = "usual_local_steps")]
    #[schemars(example = serde_json::json!({ "up-to": 65_536, "ratio": 2.0 }))]
    pub local_steps: ListOr<u64, Powers>,
    /// Prices of a communication in gradients of a client. At each price the least cost is sought,
    /// communications × price + gradients. Figures and claims that name no price use the middle
    /// one, or the upper of two.
    #[serde(default = "usual_prices")]
    #[schemars(example = serde_json::json!([1.0, 100.0, 10_000.0]))]
    pub price_ratios: Vec<f64>,
    /// Budgets of gradients of a client. Within each budget the fewest communications are sought. A
    /// budget is a multiple of the gradients that SGD needs to reach the smallest target with as
    /// many clients, so it does not depend on the target.
    #[serde(default = "usual_budgets")]
    #[schemars(example = serde_json::json!([1.0, 10.0]))]
    pub budgets: Vec<f64>,
    /// Whether the page *Which algorithm, when?* shows it.
    #[serde(default = "yes")]
    pub guide: bool,
    /// The start.
    #[serde(default)]
    pub start: FrontierStart,
    /// The root mean square of ‖θ_0 − θ*‖ of the isotropic start, above 0; 1 if it is left out.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 3.0)]
    pub radius: Option<f64>,
}

fn usual_prices() -> Vec<f64> {
    vec![1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
}

fn usual_budgets() -> Vec<f64> {
    vec![1.0, 4.0, 16.0]
}

fn yes() -> bool {
    true
}

/// The algorithms of a frontier that names none.
fn usual_algorithms() -> Vec<WrittenAlgorithm> {
    [SGD, "minibatch-sgd", "fedavg", "richardson-romberg", "scaffold"]
        .map(WrittenAlgorithm::named)
        .into()
}

/// The start of a frontier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrontierStart {
    /// A random point in a direction that is uniform, so that no direction is favoured.
    #[default]
    Isotropic,
    /// That of the runs, `[start]`.
    Runs,
}

/// What the search for a frontier makes as small as possible, over step sizes and numbers of local steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FrontierObjective {
    /// Communications × this price + gradients of a client.
    Price(f64),
    /// Communications, with at most this multiple of the gradients of a client with which SGD reaches the smallest
    /// target.
    Budget(f64),
    /// Seconds of the simulated wall clock.
    Seconds,
}

impl FrontierObjective {
    /// The quantity that the search makes as small as possible.
    pub fn quantity(self) -> FrontierQuantity {
        match self {
            Self::Price(_) => FrontierQuantity::Cost,
            Self::Budget(_) => FrontierQuantity::Communications,
            Self::Seconds => FrontierQuantity::Seconds,
        }
    }

    /// What is made as small as possible, in words for captions.
    pub fn words(self) -> String {
        match self {
            Self::Price(price) => format!("{} × communications + gradients", number(price, 3)),
            Self::Budget(budget) => format!(
                "communications within {} times the gradients with which SGD reaches the smallest ε",
                number(budget, 3)
            ),
            Self::Seconds => "seconds, at the prices of the manifest".to_owned(),
        }
    }

    /// The price of a communication in gradients; `None` unless the objective is the cost at a price.
    pub fn price(self) -> Option<f64> {
        if let Self::Price(price) = self { Some(price) } else { None }
    }

    /// The budget, a multiple of the gradients of SGD; `None` unless the objective is within a budget.
    pub fn budget(self) -> Option<f64> {
        if let Self::Budget(budget) = self { Some(budget) } else { None }
    }
}

/// A number of a frontier that claims are about, each at the best step size and number of local
/// steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrontierQuantity {
    /// Communications × price + gradients of a client, at the price that the points are at.
    Cost,
    /// Communications of a client.
    #[default]
    Communications,
    /// Gradients of a client.
    Gradients,
    /// Draws of a client: runs on common draws use each once.
    Samples,
    /// Bytes sent by all.
    Bytes,
    /// Seconds of the simulated wall clock.
    Seconds,
    /// The number of local steps H.
    LocalSteps,
    /// The step size γ.
    StepSize,
    /// The server step.
    ServerStep,
}

impl FrontierQuantity {
    /// All of them in the order of the variants, with their names in manifests and on pages.
    pub const ALL: [(Self, &str, &str); 9] = [
        (Self::Cost, "cost", "cost"),
        (Self::Communications, "communications", "communications"),
        (Self::Gradients, "gradients", "gradients of a client"),
        (Self::Samples, "samples", "draws of a client"),
        (Self::Bytes, "bytes", "bytes"),
        (Self::Seconds, "seconds", "seconds"),
        (Self::LocalSteps, "local-steps", "H"),
        (Self::StepSize, "step-size", "γ"),
        (Self::ServerStep, "server-step", "the server step"),
    ];

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Its name on pages.
    pub fn words(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}

/// Numbers of equal ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EqualRatios {
    /// One end, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.001)]
    pub from: f64,
    /// The other end, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub to: f64,
    /// How many numbers, with both ends.
    #[schemars(range(min = 2), example = 10)]
    pub points: u64,
}

impl EqualRatios {
    /// The numbers from `from` to `to`, each in the same ratio to the one before, both ends exact. All of them are
    /// listed: checks of the manifest limit `points` to numbers from 2 on that fit in memory, and must come first.
    pub fn values(&self) -> Vec<f64> {
        let last = self.points.saturating_sub(1).max(1);
        let ratio = libm::log(self.to / self.from);
        (0..self.points)
            .map(|i: u64| match i {
                0 => self.from,
                i if i == last => self.to,
                i => self.from * libm::exp(ratio * i as f64 / last as f64),
            })
            .collect()
    }
}

/// The whole numbers closest to the powers of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Powers {
    /// The largest, 1 or more.
    #[schemars(range(min = 1), example = 65_536)]
    pub up_to: u64,
    /// The ratio, above 1.
    #[serde(default = "two")]
    #[schemars(extend("exclusiveMinimum" = 1.0), example = 2.0)]
    pub ratio: f64,
}

fn two() -> f64 {
    2.0
}

fn usual_local_steps() -> ListOr<u64, Powers> {
    ListOr::Table(Powers { up_to: 65_536, ratio: 2.0 })
}

impl Powers {
    /// The whole numbers, increasing from 1 to `up-to` with both ends. Powers that round to one number give it once.
    /// The ratio must be above 1, or there would be no end, and `up-to` 1 or more: checks of the manifest see to it.
    pub fn values(&self) -> Vec<u64> {
        let mut all = vec![1];
        let mut power = self.ratio;
        while libm::round(power) < self.up_to as f64 {
            all.push(libm::round(power) as u64);
            power *= self.ratio;
        }
        all.push(self.up_to);
        all.dedup();
        all
    }
}

/// A list of values, or a table that describes one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ListOr<L, T> {
    /// The values.
    List(Vec<L>),
    /// What describes them.
    Table(T),
}

/// The middle of these numbers by their size, or the upper of two, in whatever order they are listed; `None` of an empty
/// list.
fn middle_of(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

impl Frontier {
    /// The frontier of this id, or the first of `all` if `id` is `None`; `None` if there is no such frontier.
    pub fn named<'m>(id: Option<&str>, all: &'m [Self]) -> Option<&'m Self> {
        all.iter().find(|frontier| id.is_none_or(|id| frontier.id == id))
    }

    /// All objectives of the frontier, in the order in which files list them: a price each, a budget each, and seconds
    /// if the manifest has `[prices]` (`is_priced`).
    pub fn objectives(&self, is_priced: bool) -> Vec<FrontierObjective> {
        let prices = self.price_ratios.iter().copied().map(FrontierObjective::Price);
        let budgets = self.budgets.iter().copied().map(FrontierObjective::Budget);
        prices.chain(budgets).chain(is_priced.then_some(FrontierObjective::Seconds)).collect()
    }

    /// The objective of figures and claims that name none: seconds if the manifest has `[prices]` (`is_priced`),
    /// otherwise the cost at the middle price, or at the upper of two.
    pub fn lead(&self, is_priced: bool) -> FrontierObjective {
        match (is_priced, middle_of(&self.price_ratios)) {
            (false, Some(middle)) => FrontierObjective::Price(middle),
            _ => FrontierObjective::Seconds,
        }
    }

    /// The objective of figures over budgets, which show one: the middle budget, or the upper of two. Checks of the
    /// manifest see to it that there is one.
    pub fn middle_budget(&self) -> FrontierObjective {
        FrontierObjective::Budget(middle_of(&self.budgets).unwrap_or(f64::NAN))
    }

    /// The kinds of its algorithms whose rounds cannot be run, because results define them and their code is not
    /// loaded. Such a frontier cannot be computed again.
    pub fn lacking_code(&self) -> impl Iterator<Item = &str> {
        self.algorithms.iter().filter_map(SearchedAlgorithm::kind_without_code)
    }

    /// The algorithm of this name.
    pub fn algorithm(&self, name: &AlgorithmName) -> Option<&SearchedAlgorithm> {
        self.algorithms.iter().find(|algorithm| algorithm.name == name.as_str())
    }

    /// The targets ε, listed or of equal ratio, the largest first.
    pub fn all_targets(&self) -> Vec<f64> {
        let mut all = match &self.targets {
            ListOr::List(list) => list.clone(),
            ListOr::Table(range) => range.values(),
        };
        all.sort_by(|a, b| b.total_cmp(a));
        all
    }

    /// The smallest target ε, which a map has unless it states another one; `None` of an empty list. A range is not
    /// listed, so that checks may ask for it whatever the number of its points is.
    pub fn smallest_target(&self) -> Option<f64> {
        match &self.targets {
            ListOr::List(list) => list.iter().copied().min_by(f64::total_cmp),
            ListOr::Table(range) => Some(range.from.min(range.to)),
        }
    }

    /// The numbers of local steps H that are tried, listed or powers of a ratio, the smallest first.
    pub fn all_local_steps(&self) -> Vec<u64> {
        let mut all = match &self.local_steps {
            ListOr::List(list) => list.clone(),
            ListOr::Table(powers) => powers.values(),
        };
        all.sort_unstable();
        all
    }

    /// The root mean square distance of an isotropic start from θ*; `None` of another start.
    pub fn isotropic_radius(&self) -> Option<f64> {
        (self.start == FrontierStart::Isotropic).then(|| self.radius.unwrap_or(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_names_of_manifests() {
        for (quantity, name, _) in FrontierQuantity::ALL {
            assert_eq!(
                (serde_json::to_value(quantity).unwrap(), quantity.name()),
                (name.into(), name)
            );
        }
    }

    #[test]
    fn the_middle_does_not_depend_on_the_order_of_the_list() {
        assert_eq!(middle_of(&[100.0, 10_000.0, 1.0]), Some(100.0));
        assert_eq!(middle_of(&[1.0, 100.0, 10_000.0]), Some(100.0));
        assert_eq!(middle_of(&[16.0, 4.0]), Some(16.0));
        assert_eq!(middle_of(&[]), None);
    }

    #[test]
    fn numbers_of_equal_ratio_have_both_ends() {
        let all = EqualRatios { from: 1.0, to: 0.01, points: 3 }.values();
        assert!(all[0] == 1.0 && (all[1] - 0.1).abs() < 1e-15 && all[2] == 0.01, "{all:?}");
        let powers = |up_to, ratio| Powers { up_to, ratio }.values();
        assert_eq!(powers(16, 2.0), [1, 2, 4, 8, 16]);
        assert_eq!(powers(10, 2.0), [1, 2, 4, 8, 10]);
        assert_eq!(powers(1, 2.0), [1]);
        // Ratios close to 1 give whole numbers several times.
        assert_eq!(powers(4, 1.3), [1, 2, 3, 4]);
    }
}
