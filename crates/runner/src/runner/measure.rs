//! What is measured of a run at a recorded round.

use super::average::{Sums, corrections_at_optimum};
use super::prepare::Scenario;
use crate::manifest::{Metric, Record, TimeAverage};
use exactfed_core::federated::Run;
use exactfed_core::kernel::{axpy, dot, squared_distance};
use exactfed_core::problem::{Facts, RecordsOf};

/// The metrics that a cell records, and what they must remember between rounds.
pub struct Meter<'a> {
    scenario: &'a Scenario,
    /// The metrics that it measures.
    pub metrics: Vec<Metric>,
    /// Σ_{s≤t} θ_s, if the mean is listed for.
    sum: Vec<f64>,
    /// ξ_c* = −F̄_c(θ*), N rows of d, if ψ is listed for or control variates are averaged.
    corrections: Vec<f64>,
    averages: Sums<'a>,
}

impl<'a> Meter<'a> {
    /// A meter for these metrics, in their own order whatever the record's;
    /// what `run` on this scenario does not have is left out.
    pub fn new(scenario: &'a Scenario, record: &Record, rounds: u64, run: &dyn Run) -> Self {
        let listed = &record.metrics;
        let facts: &dyn Facts = &*scenario.instance;
        let d = facts.dim();
        let has = |metric: &Metric| match metric {
            // It has a column of its own.
            Metric::SqErrorLimit => false,
            Metric::SqErrorAverage | Metric::SqGradient | Metric::SqCoupling => true,
            Metric::SqErrorClients => run.clients().is_some(),
            Metric::SqErrorVirtual => facts.virtual_optimum().is_some(),
            Metric::SqErrorFeatures => facts.feature_norm(&vec![0.0; d]).is_some(),
            Metric::Suboptimality => facts.suboptimality(facts.optimum()).is_some(),
            Metric::TrainLoss | Metric::TestLoss | Metric::Accuracy | Metric::TestAccuracy => {
                of_records(facts, *metric, facts.optimum()).is_some()
            }
            Metric::Lyapunov | Metric::CorrectionSum => {
                run.clients().is_some_and(|c| !c.corrections.is_empty())
            }
        };
        let all = Metric::ALL.iter().copied().filter(|m| listed.contains(m)).filter(has);
        let metrics: Vec<Metric> = all.collect();
        let averages = Sums::new(scenario, record, rounds, run);
        let mut corrections = Vec::new();
        if metrics.contains(&Metric::Lyapunov) || averages.of_variates() {
            corrections = corrections_at_optimum(facts);
        }
        Self { scenario, metrics, sum: vec![0.0; d], corrections, averages }
    }

    /// Sees a round of the run and of its twin, recorded or not.
    pub fn see(&mut self, run: &dyn Run, twin: Option<&dyn Run>) {
        self.averages.see(run, twin, &self.corrections);
        if self.metrics.contains(&Metric::SqErrorAverage) {
            axpy(1.0, run.estimate(), &mut self.sum);
        }
    }

    /// The value of each metric now; `coupled` is the estimate of the run on the
    /// same draws, if there is one.
    pub fn read(&self, run: &dyn Run, coupled: Option<&[f64]>) -> Vec<f64> {
        self.metrics.iter().map(|metric| self.value(*metric, run, coupled)).collect()
    }

    /// What was averaged over the rounds.
    pub fn averages(self) -> Vec<(TimeAverage, Vec<f64>)> {
        self.averages.finish()
    }

    fn value(&self, metric: Metric, run: &dyn Run, coupled: Option<&[f64]>) -> f64 {
        let facts: &dyn Facts = &*self.scenario.instance;
        let (theta, optimum, d) = (run.estimate(), facts.optimum(), facts.dim());
        match metric {
            Metric::SqErrorLimit => f64::NAN,
            Metric::SqCoupling => coupled.map_or(f64::NAN, |other| squared_distance(theta, other)),
            Metric::SqErrorAverage if self.averages.seen == 0 => squared_distance(theta, optimum),
            Metric::SqErrorAverage => {
                let mean: Vec<f64> =
                    self.sum.iter().map(|x| x / self.averages.seen as f64).collect();
                squared_distance(&mean, optimum)
            }
            Metric::SqErrorClients => spread(facts, run),
            Metric::SqErrorVirtual => {
                facts.virtual_optimum().map_or(f64::NAN, |other| squared_distance(theta, other))
            }
            Metric::SqErrorFeatures => {
                let apart: Vec<f64> = theta.iter().zip(optimum).map(|(x, y)| x - y).collect();
                facts.feature_norm(&apart).unwrap_or(f64::NAN)
            }
            Metric::Suboptimality => facts.suboptimality(theta).unwrap_or(f64::NAN),
            Metric::SqGradient => {
                let (mut mean, mut field) = (vec![0.0; d], vec![0.0; d]);
                for client in 0..facts.clients() {
                    facts.mean_field(client, theta, &mut field);
                    axpy(facts.share(client), &field, &mut mean);
                }
                dot(&mean, &mean)
            }
            Metric::TrainLoss | Metric::TestLoss | Metric::Accuracy | Metric::TestAccuracy => {
                of_records(facts, metric, theta).unwrap_or(f64::NAN)
            }
            Metric::Lyapunov => self.lyapunov(run),
            Metric::CorrectionSum => {
                let mut sum = vec![0.0; d];
                if let Some(clients) = run.clients() {
                    for (client, xi) in clients.corrections.chunks_exact(d).enumerate() {
                        axpy(facts.weight(client), xi, &mut sum);
                    }
                }
                libm::sqrt(dot(&sum, &sum))
            }
        }
    }

    /// ψ: the clients' (45, between communications) or the server's (51) mean
    /// squared error, plus Σ π_c ℓ_c² ‖ξ_c − ξ_c*‖² with ℓ = η/p or ηH.
    fn lyapunov(&self, run: &dyn Run) -> f64 {
        let facts: &dyn Facts = &*self.scenario.instance;
        let optimum = facts.optimum();
        let Some(clients) = run.clients() else { return f64::NAN };
        let (d, n) = (optimum.len(), clients.lengths.len() as f64);
        let rows = clients.corrections.chunks_exact(d).zip(self.corrections.chunks_exact(d));
        let mut variates = 0.0;
        for (client, ((xi, star), length)) in rows.zip(&clients.lengths).enumerate() {
            variates += facts.weight(client) * length * length * squared_distance(xi, star);
        }
        let error = if clients.apart {
            spread(facts, run)
        } else {
            squared_distance(run.estimate(), optimum)
        };
        error + variates / n
    }
}

/// The loss or accuracy that a metric is; `None` for all other metrics.
fn of_records(facts: &dyn Facts, metric: Metric, theta: &[f64]) -> Option<f64> {
    match metric {
        Metric::TrainLoss => facts.loss(theta, RecordsOf::Clients),
        Metric::TestLoss => facts.loss(theta, RecordsOf::Test),
        Metric::Accuracy => facts.accuracy(theta, RecordsOf::Clients),
        Metric::TestAccuracy => facts.accuracy(theta, RecordsOf::Test),
        _ => None,
    }
}

/// Σ_c π_c ‖θ_c − θ*‖².
fn spread(facts: &dyn Facts, run: &dyn Run) -> f64 {
    let Some(clients) = run.clients() else { return f64::NAN };
    let optimum = facts.optimum();
    let rows = clients.ends.chunks_exact(optimum.len()).enumerate();
    let square = |sum, (client, end)| sum + facts.weight(client) * squared_distance(end, optimum);
    rows.fold(0.0, square) / facts.clients() as f64
}
