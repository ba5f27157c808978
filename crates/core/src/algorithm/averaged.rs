//! Polyak-Ruppert averaging: the mean of a run's estimates after a burn-in
//! (RR §6, §7).

use crate::federated::{Cost, Run};
use crate::kernel::axpy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the estimates of a run are averaged, and from which round on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Average {
    /// No averaging: the estimate is the last iterate.
    #[default]
    None,
    /// The mean of the iterates after this fraction of the rounds, in [0, 1) (RR, Figure 1: 0.1);
    /// until then the last iterate.
    BurnIn(f64),
}

impl Average {
    /// A run before its first round, whose estimate becomes the mean of its estimates after the burn-in if this says
    /// so; `rounds` is the number of rounds that it will run, of which the burn-in is a fraction, rounded down. θ_0
    /// does not enter the mean. Without averaging the run is returned as it is.
    pub fn wrap<'p>(self, run: Box<dyn Run + 'p>, rounds: u64) -> Box<dyn Run + 'p> {
        let Self::BurnIn(share) = self else { return run };
        let mean = run.estimate().to_vec();
        // Predictions of averages round it in the same way.
        let burn_in = (share * rounds as f64) as u64;
        Box::new(Averaged { run, burn_in, rounds: 0, count: 0, sum: vec![0.0; mean.len()], mean })
    }
}

/// Any run, its estimate replaced by the mean of its estimates after a burn-in.
struct Averaged<'p> {
    run: Box<dyn Run + 'p>,
    /// The number of rounds whose estimates do not enter the mean.
    burn_in: u64,
    /// The number of rounds so far.
    rounds: u64,
    /// The number of estimates in `sum`.
    count: u64,
    /// The sum of the estimates after the burn-in, d numbers.
    sum: Vec<f64>,
    /// The mean of the estimates after the burn-in, d numbers; until then the last estimate.
    mean: Vec<f64>,
}

impl Run for Averaged<'_> {
    fn round(&mut self) {
        self.run.round();
        self.rounds += 1;
        if self.rounds <= self.burn_in {
            self.mean.copy_from_slice(self.run.estimate());
            return;
        }
        self.count += 1;
        axpy(1.0, self.run.estimate(), &mut self.sum);
        for (mean, sum) in self.mean.iter_mut().zip(&self.sum) {
            *mean = sum / self.count as f64;
        }
    }

    fn estimate(&self) -> &[f64] {
        &self.mean
    }

    fn cost(&self) -> Cost {
        self.run.cost()
    }

    fn without_ends(&mut self) {
        self.run.without_ends();
    }

    fn failure(&self) -> Option<&str> {
        self.run.failure()
    }
}
