//! What is averaged over the rounds of a run after its burn-in: biases and
//! second moments, a vector a run.

use super::prepare::Scenario;
use crate::manifest::{Record, TimeAverage};
use exactfed_core::federated::Run;
use exactfed_core::kernel::axpy;
use exactfed_core::problem::Facts;

/// The sums so far.
pub struct Sums<'a> {
    scenario: &'a Scenario,
    /// Rounds before the sums begin.
    burn_in: u64,
    /// Rounds so far.
    pub seen: u64,
    sums: Vec<(TimeAverage, Vec<f64>)>,
}

impl<'a> Sums<'a> {
    /// Sums of what the record asks for and `run` on this scenario has.
    pub fn new(scenario: &'a Scenario, record: &Record, rounds: u64, run: &dyn Run) -> Self {
        let facts: &dyn Facts = &*scenario.instance;
        let (n, d) = (facts.clients(), facts.dim());
        let corrected = run.clients().is_some_and(|c| !c.corrections.is_empty());
        let listed =
            |a: &TimeAverage| record.averages.contains(a) && (corrected || !a.of_variates());
        let size = |a: &TimeAverage| match a {
            TimeAverage::Bias => d,
            TimeAverage::Covariance => d * d,
            _ => n * d * d,
        };
        let all = TimeAverage::ALL.iter().copied().filter(listed);
        let sums = all.map(|a| (a, vec![0.0; size(&a)])).collect();
        Self { scenario, burn_in: record.rounds_before(rounds), seen: 0, sums }
    }

    /// Whether control variates are averaged.
    pub fn of_variates(&self) -> bool {
        self.sums.iter().any(|(average, _)| average.of_variates())
    }

    /// Sees a round of the run and of its twin; `stars` are the corrections at the optimum, if
    /// control variates are averaged.
    pub fn observe(&mut self, run: &dyn Run, twin: Option<&dyn Run>, stars: &[f64]) {
        self.seen += 1;
        if self.sums.is_empty() || self.seen <= self.burn_in {
            return;
        }
        let facts: &dyn Facts = &*self.scenario.instance;
        let (optimum, d) = (facts.optimum(), facts.dim());
        let centre = self.scenario.limit.as_deref().unwrap_or(optimum);
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let theta = run.estimate();
        let clients = if self.of_variates() { run.clients() } else { None };
        let xi = clients.map_or(Vec::new(), |clients| minus(clients.corrections, stars));
        let n = xi.len() / d;
        for (what, sum) in &mut self.sums {
            match what {
                TimeAverage::Bias => {
                    let against = twin.map_or(optimum, |twin| twin.estimate());
                    let apart = theta.iter().zip(against).map(|(x, y)| x - y);
                    sum.iter_mut().zip(apart).for_each(|(sum, apart)| *sum += apart);
                }
                TimeAverage::Covariance => {
                    let apart = minus(theta, centre);
                    outer(&apart, &apart, sum);
                }
                TimeAverage::CrossCovariance => {
                    let apart = minus(theta, optimum);
                    let rows = sum.chunks_exact_mut(d * d).zip(xi.chunks_exact(d));
                    rows.for_each(|(sum, xi)| outer(&apart, xi, sum));
                }
                TimeAverage::VariateCovariance => {
                    let rows = sum.chunks_exact_mut(d * d).zip(xi.chunks_exact(d));
                    rows.for_each(|(sum, xi)| outer(xi, xi, sum));
                }
                TimeAverage::VariatePairCovariance => {
                    for (c, sum) in sum.chunks_exact_mut(d * d).enumerate() {
                        let (one, next) = (&xi[c * d..][..d], &xi[(c + 1) % n * d..][..d]);
                        outer(one, next, sum);
                    }
                }
            }
        }
    }

    /// The averages; a bias against a twin with the twin's exact bias added.
    pub fn finish(self) -> Vec<(TimeAverage, Vec<f64>)> {
        let count = self.seen.saturating_sub(self.burn_in) as f64;
        let optimum = self.scenario.instance.optimum();
        let mean = |(what, mut sum): (TimeAverage, Vec<f64>)| {
            sum.iter_mut().for_each(|x| *x /= count);
            if let (TimeAverage::Bias, Some((_, limit))) = (what, &self.scenario.twin) {
                axpy(1.0, limit, &mut sum);
                axpy(-1.0, optimum, &mut sum);
            }
            (what, sum)
        };
        self.sums.into_iter().map(mean).collect()
    }
}

/// ξ_c* = −F̄_c(θ*), N rows of d: where control variates settle.
pub fn corrections_at_optimum(facts: &dyn Facts) -> Vec<f64> {
    let d = facts.dim();
    let mut all = vec![0.0; facts.clients() * d];
    for (client, row) in all.chunks_exact_mut(d).enumerate() {
        facts.mean_field(client, facts.optimum(), row);
        row.iter_mut().for_each(|x| *x = -*x);
    }
    all
}

/// sum ← sum + x yᵀ.
fn outer(x: &[f64], y: &[f64], sum: &mut [f64]) {
    for (x, row) in x.iter().zip(sum.chunks_exact_mut(y.len())) {
        axpy(*x, y, row);
    }
}
