//! What a run costs that reaches a target.

use exactfed_core::round_program::RoundSettings;
use exactfed_core::theory::frontier::{RangeEnd, Reached, Search};
use exactfed_core::words::number;
use exactfed_runner::manifest::Prices;
use exactfed_runner::manifest::frontier::{FrontierObjective, FrontierQuantity};
use exactfed_runner::manifest::searched::SearchedAlgorithm;

/// What it costs to reach a target with an algorithm and a number of local steps, at the best step size. Costs that are
/// random, as under a coin, are average ones, which need not be whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontierCost<'a> {
    /// The algorithm that pays this.
    pub algorithm: &'a SearchedAlgorithm,
    /// The settings with which it runs.
    pub run: RoundSettings,
    /// The number T of rounds until the target is reached.
    pub rounds: u64,
    /// The communications in these rounds.
    pub communications: f64,
    /// The gradients (oracle calls) of one client in these rounds, on average over all clients, whether they take part
    /// or not.
    pub gradients: f64,
    /// The gradients in these rounds of the slowest client that takes part in each, which seconds count. They are more
    /// than [`gradients`](Self::gradients), a mean over all clients, where not all take part.
    pub slowest_gradients: f64,
    /// The draws of one client in these rounds, averaged as gradients are: fewer than gradients where several use the
    /// same draw.
    pub samples: f64,
    /// The bytes that the server and all clients together send each other in these rounds, in both directions.
    pub bytes: f64,
    /// The end of the range of step sizes at which γ lies; `None` if it lies inside.
    pub edge: Option<RangeEnd>,
}

/// The text before a number of local steps: `H = `, or `batch ` of mini-batch SGD, whose client makes as many oracle
/// calls at one point.
pub fn steps_prefix(algorithm: &SearchedAlgorithm) -> &'static str {
    if algorithm.counts_batches() { "batch " } else { "H = " }
}

impl<'a> FrontierCost<'a> {
    /// The costs of a run that a search found to reach its target: the price of a round of the run's settings
    /// ([`RoundPrice`](exactfed_core::round_program::RoundPrice)) times the number of rounds. The price is of one
    /// client, on average over all N; only bytes are summed over the clients, and have both directions. `algorithms`
    /// are those that [`RoundSettings::algorithm`] names by their places; θ has `dimension` coordinates of 8 bytes.
    pub(super) fn new(
        algorithms: &'a [SearchedAlgorithm],
        search: &Search,
        reached: &Reached,
        dimension: usize,
    ) -> Self {
        let Reached { run, rounds, edge, .. } = *reached;
        let price = search.round_price(&run);
        let times = rounds as f64;
        let vectors = price.vectors * run.clients as f64;
        Self {
            algorithm: &algorithms[run.algorithm],
            run,
            rounds,
            communications: price.communications * times,
            gradients: price.gradients * times,
            slowest_gradients: price.slowest_gradients * times,
            samples: price.samples * times,
            bytes: 8.0 * dimension as f64 * vectors * times,
            edge,
        }
    }

    /// The settings of the run beyond γ and H, such as the server step, in words; empty if the algorithm has none.
    pub fn settings(&self) -> String {
        let all = self.algorithm.settings(self.run.choice);
        all.into_iter()
            .map(|(key, value)| {
                format!("{} {}", self.algorithm.setting_words(key), number(value, 4))
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The step size of the server; 1 if the algorithm has none.
    pub fn server_step(&self) -> f64 {
        self.algorithm.server_step(self.run.choice)
    }

    /// The value of an objective, which is less for a better run. It is NaN for seconds without `prices`, the
    /// manifest's prices of the simulated wall clock.
    pub fn value(&self, objective: FrontierObjective, prices: Option<&Prices>) -> f64 {
        self.quantity(objective.quantity(), objective, prices).unwrap_or(f64::NAN)
    }

    /// A quantity of the run. The cost, price × communications + gradients, needs an `objective` with a price, and
    /// seconds need `prices`: both are `None` without.
    pub fn quantity(
        &self,
        quantity: FrontierQuantity,
        objective: FrontierObjective,
        prices: Option<&Prices>,
    ) -> Option<f64> {
        Some(match quantity {
            FrontierQuantity::Cost => objective.price()? * self.communications + self.gradients,
            FrontierQuantity::Communications => self.communications,
            FrontierQuantity::Gradients => self.gradients,
            FrontierQuantity::Samples => self.samples,
            FrontierQuantity::Bytes => self.bytes,
            FrontierQuantity::Seconds => {
                prices?.seconds(self.communications, self.bytes, self.slowest_gradients)
            }
            FrontierQuantity::LocalSteps => self.run.local_steps as f64,
            FrontierQuantity::StepSize => self.run.step_size,
            FrontierQuantity::ServerStep => self.server_step(),
        })
    }
}
