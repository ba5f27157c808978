//! What is measured of a run: metrics at recorded rounds, and averages over the rounds after the
//! burn-in, biases and second moments, a vector a run.

use super::prepare::Scenario;
use crate::plan::Cell;
use crate::quantity::{MeasuredOn, Metric, Reading, TimeAverage};
use exactfed_core::federated::Run;
use exactfed_core::kernel::axpy;
use exactfed_core::problem::Facts;

/// What a cell measures, and what must be remembered of it between rounds.
pub struct Meter<'a> {
    scenario: &'a Scenario,
    cell: &'a Cell,
    /// The metrics that it measures.
    pub metrics: Vec<Metric>,
    /// The number of rounds that the meter has seen.
    seen: u64,
    /// Σ_{1≤s≤t} θ_s, d numbers; 0 unless `sq-error-average` is recorded.
    sum: Vec<f64>,
    /// The number of rounds before the averages begin.
    burn_in: u64,
    /// What is averaged, with its sum over the rounds after the burn-in so far.
    averages: Vec<(TimeAverage, Vec<f64>)>,
    /// ξ_c* = −F̄_c(θ*), N rows of d; empty unless ψ is recorded or control variates are averaged.
    corrections: Vec<f64>,
}

impl<'a> Meter<'a> {
    /// A meter for the metrics and averages that the manifest records of a cell, in the order of their table and not of
    /// the manifest. Metrics that `run`, a run of the cell on this scenario of it, does not have are left out.
    pub fn new(scenario: &'a Scenario, cell: &'a Cell, run: &dyn Run) -> Self {
        let record = &cell.identity.record;
        let facts: &dyn Facts = &*scenario.instance;
        let n = facts.clients();
        let d = facts.dim();
        let all = Metric::ALL.iter().copied().filter(|metric| record.metrics.contains(metric));
        let reads_no_ends = |metric: Metric| {
            let own = record.own_metric(metric);
            own.is_none_or(|own| !own.known.reads_clients || run.clients().is_some())
        };
        let metrics: Vec<Metric> = all
            .filter(|metric| has_metric(*metric, facts, run) && reads_no_ends(*metric))
            .collect();
        let corrected = run.clients().is_some_and(|c| !c.corrections.is_empty());
        let averages: Vec<(TimeAverage, Vec<f64>)> = TimeAverage::ALL
            .iter()
            .copied()
            .filter(|a| record.averages.contains(a) && (corrected || !a.of_variates()))
            .map(|average| {
                let size = match average {
                    TimeAverage::Bias => d,
                    TimeAverage::Covariance => d * d,
                    _ => n * d * d,
                };
                (average, vec![0.0; size])
            })
            .collect();
        let mut corrections = Vec::new();
        if metrics.contains(&Metric::Lyapunov) || has_averages_of_variates(&averages) {
            corrections = corrections_at_optimum(facts);
        }
        let seen = 0;
        let sum = vec![0.0; d];
        let burn_in = record.rounds_before(cell.identity.rounds);
        Self { scenario, cell, metrics, seen, sum, burn_in, averages, corrections }
    }

    /// Takes in a round of the run, recorded or not, and of its run on the linearised twin, if there is one: the mean
    /// of estimates and the averages need every round.
    pub fn observe(&mut self, run: &dyn Run, twin: Option<&dyn Run>) {
        self.seen += 1;
        if self.metrics.contains(&Metric::SqErrorAverage) {
            axpy(1.0, run.estimate(), &mut self.sum);
        }
        if !self.averages.is_empty() && self.seen > self.burn_in {
            self.average(run, twin);
        }
    }

    /// Adds the vectors and matrices of a round after the burn-in to their sums. The covariance of θ is about the fixed
    /// point of its mean, or θ* where that is not known; covariances with control variates are about θ* and ξ_c*.
    fn average(&mut self, run: &dyn Run, twin: Option<&dyn Run>) {
        let facts: &dyn Facts = &*self.scenario.instance;
        let optimum = facts.optimum();
        let d = facts.dim();
        let centre = self.scenario.fixed_point(self.cell).unwrap_or(optimum);
        let theta = run.estimate();
        let clients = if has_averages_of_variates(&self.averages) { run.clients() } else { None };
        let xi = clients
            .map_or(Vec::new(), |clients| difference(clients.corrections, &self.corrections));
        let n = xi.len() / d;
        for (what, sum) in &mut self.averages {
            match what {
                TimeAverage::Bias => {
                    let against = twin.map_or(optimum, |twin| twin.estimate());
                    let apart = theta.iter().zip(against).map(|(x, y)| x - y);
                    sum.iter_mut().zip(apart).for_each(|(sum, apart)| *sum += apart);
                }
                TimeAverage::Covariance => {
                    let apart = difference(theta, centre);
                    add_outer_product(&apart, &apart, sum);
                }
                TimeAverage::CrossCovariance => {
                    let apart = difference(theta, optimum);
                    let rows = sum.chunks_exact_mut(d * d).zip(xi.chunks_exact(d));
                    rows.for_each(|(sum, xi)| add_outer_product(&apart, xi, sum));
                }
                TimeAverage::VariateCovariance => {
                    let rows = sum.chunks_exact_mut(d * d).zip(xi.chunks_exact(d));
                    rows.for_each(|(sum, xi)| add_outer_product(xi, xi, sum));
                }
                TimeAverage::VariatePairCovariance => {
                    for (c, sum) in sum.chunks_exact_mut(d * d).enumerate() {
                        let one = &xi[c * d..][..d];
                        let next = &xi[(c + 1) % n * d..][..d];
                        add_outer_product(one, next, sum);
                    }
                }
            }
        }
    }

    /// Adds the values of the metrics at this recorded round to their columns, NaN where the run has none. The columns
    /// are those of the trace, one for each of `metrics`. `coupled` is the run on the same draws that starts at θ*, if
    /// there is one, after the same round.
    ///
    /// # Errors
    /// Why the code of a metric that is defined outside of this program gives no value.
    pub fn read(
        &self,
        run: &dyn Run,
        coupled: Option<&dyn Run>,
        columns: &mut [(Metric, Vec<f64>)],
    ) -> Result<(), String> {
        let reading = Reading {
            facts: &*self.scenario.instance,
            run,
            coupled,
            sum: (&self.sum, self.seen),
            reference: self.scenario.reference.as_deref(),
            corrections: &self.corrections,
        };
        for (metric, column) in columns {
            if let Some(own) = self.cell.identity.record.own_metric(*metric) {
                let clients = if own.known.reads_clients { run.clients() } else { None };
                column.push(own.value(run.estimate(), clients.as_ref().map(|all| all.ends))?);
                continue;
            }
            let (_, value) = metric.measured();
            column.push(value(&reading).unwrap_or(f64::NAN));
        }
        Ok(())
    }

    /// The averages over the rounds after the burn-in, of a run that has made all its rounds. A bias that was measured
    /// against the twin has the exact bias of the twin added, so that it is the bias itself.
    pub fn finish(self) -> Vec<(TimeAverage, Vec<f64>)> {
        let count = self.seen.saturating_sub(self.burn_in) as f64;
        let optimum = self.scenario.instance.optimum();
        let mut averages = self.averages;
        for (what, sum) in &mut averages {
            sum.iter_mut().for_each(|x| *x /= count);
            if let (TimeAverage::Bias, Some((_, limit))) = (*what, &self.scenario.twin) {
                axpy(1.0, limit, sum);
                axpy(-1.0, optimum, sum);
            }
        }
        averages
    }
}

/// a − b.
fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Whether a run on this problem has the metric, so that the manifest's metrics without a value are left out of its
/// trace.
fn has_metric(metric: Metric, facts: &dyn Facts, run: &dyn Run) -> bool {
    // θ* may be unknown: whether there is such a metric shows at any other point too.
    let anywhere = vec![0.0; facts.dim()];
    let (measured_on, _) = metric.measured();
    match measured_on {
        // It has a column of its own.
        MeasuredOn::Limit => false,
        MeasuredOn::Estimate | MeasuredOn::Field | MeasuredOn::Reference | MeasuredOn::Own => true,
        MeasuredOn::Clients => run.clients().is_some(),
        MeasuredOn::Variates => run.clients().is_some_and(|c| !c.corrections.is_empty()),
        MeasuredOn::VirtualOptimum => facts.virtual_optimum().is_some(),
        MeasuredOn::Features => facts.feature_norm(&anywhere).is_some(),
        MeasuredOn::Objective => facts.suboptimality(facts.optimum()).is_some(),
        MeasuredOn::Loss(of) => facts.loss(&anywhere, of).is_some(),
        MeasuredOn::Classes(of) => facts.accuracy(&anywhere, of).is_some(),
        MeasuredOn::ClientLosses(of) => facts.client_losses(&anywhere, of).is_some(),
        MeasuredOn::ClientClasses(of) => facts.client_accuracies(&anywhere, of).is_some(),
        MeasuredOn::Recalls(of) => facts.balanced_accuracy(&anywhere, of).is_some(),
        MeasuredOn::Order(of) => facts.auc(&anywhere, of).is_some(),
    }
}

/// Whether control variates are averaged.
fn has_averages_of_variates(averages: &[(TimeAverage, Vec<f64>)]) -> bool {
    averages.iter().any(|(average, _)| average.of_variates())
}

/// ξ_c* = −F̄_c(θ*), N rows of d: where control variates settle.
fn corrections_at_optimum(facts: &dyn Facts) -> Vec<f64> {
    let d = facts.dim();
    let mut all = vec![0.0; facts.clients() * d];
    for (client, row) in all.chunks_exact_mut(d).enumerate() {
        facts.mean_field(client, facts.optimum(), row);
        row.iter_mut().for_each(|x| *x = -*x);
    }
    all
}

/// sum ← sum + x yᵀ.
fn add_outer_product(x: &[f64], y: &[f64], sum: &mut [f64]) {
    for (x, row) in x.iter().zip(sum.chunks_exact_mut(y.len())) {
        axpy(*x, y, row);
    }
}
