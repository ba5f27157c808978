//! Random reshuffling: a client passes over its records in an order that is shuffled anew for every epoch.
//!
//! An *epoch* of a client with n records takes ⌈n/B⌉ oracle calls. Each of them is the mean over the next B records of
//! the order, and the last one is the mean over those that are left, which may be fewer. So an epoch uses every record
//! once. Then the client draws another order. Epochs go on over rounds: where a round ends inside of an epoch, the next
//! round begins with the next records.

use super::instance::RecordProblem;
use super::loss::{RecordLoss, RecordSets};
use crate::kernel::{Cohort, Draws};
use crate::linalg::Matrix;
use crate::problem::facts::{DrawSmoothness, Facts, RecordPass, forward_facts, forward_measures};
use crate::problem::fault::Fault;
use crate::problem::form::{OracleForm, Visitor};
use crate::problem::oracle::{JointGain, Problem, advance_by_oracle, advance_together_by_client};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a client draws the records of its gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// With replacement: each record of a batch is drawn from all records of the client.
    #[default]
    WithReplacement,
    /// Without replacement in an epoch: the client passes over its records in a random order, B at
    /// a time, and draws another order when all are used. The last batch of an epoch has the
    /// records that are left, and counts as B gradients like the others.
    Reshuffled,
}

impl Sampling {
    /// Calls the visitor with this form of an instance whose oracle draws records in this way, and returns what the
    /// visitor returns.
    ///
    /// # Errors
    /// As [`OracleForm::visit`].
    pub fn visit<L: RecordLoss<S>, S: RecordSets, V: Visitor>(
        self,
        problem: RecordProblem<L, S>,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        match self {
            Self::WithReplacement => form.visit(problem, visitor),
            Self::Reshuffled => form.visit(Reshuffled(problem), visitor),
        }
    }
}

/// The most records that local steps draw before the first of them is taken: 32 MiB.
const MOST_DRAWN: u64 = 1 << 22;

/// A problem of records whose clients draw without replacement in an epoch. Its steps are those of the problem with
/// replacement, on records that were drawn beforehand, or a loop over the oracle, which has the same bits.
pub struct Reshuffled<L, S>(pub RecordProblem<L, S>);

/// A client's place in an epoch.
#[derive(Clone, Debug, Default)]
pub struct Epoch {
    /// The numbers of the client's records in the order of the epoch; empty before the first one. Clones share it, so
    /// that a draw can be kept without a copy of the order.
    order: Arc<[usize]>,
    /// How many of them are used.
    used: usize,
}

impl Epoch {
    /// The numbers of the records of the next batch: the next `batch` ones of the order, or those that are left. If none
    /// are, an order of the `records` records of the client is drawn first, each with equal probability.
    fn next_batch(&mut self, records: usize, batch: usize, rng: &mut Stream) -> &[usize] {
        if self.used == self.order.len() {
            self.order = rng.distinct(records, records).into();
            self.used = 0;
        }
        let begin = self.used;
        self.used = self.order.len().min(begin.saturating_add(batch));
        &self.order[begin..self.used]
    }
}

/// The facts are those of the problem with replacement as far as they are about single draws: in an epoch each batch
/// is distributed as a batch of distinct records, and batches are not independent.
impl<L: RecordLoss<S>, S: RecordSets> Facts for Reshuffled<L, S> {
    forward_facts!(self.0, {
        fn local_optimum(&self, client: usize) -> Option<&[f64]>;
        fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]);
        fn noise_covariance(&self, client: usize) -> Matrix;
        fn noise_trace(&self, client: usize) -> f64;
        fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>>;
        fn convexity(&self) -> Option<f64>;
        fn mean_smoothness(&self, client: usize) -> Option<f64>;
        fn third_derivative(&self, client: usize) -> Option<f64>;
        fn draw_smoothness(&self) -> DrawSmoothness;
        fn linear(&self) -> bool;
        fn batch(&self) -> u64;
        fn record_count(&self, client: usize) -> Option<usize>;
    });
    forward_measures!(self.0);

    /// False: what is left of an epoch depends on what was drawn before.
    fn independent(&self) -> bool {
        false
    }
    fn record_pass(&self, client: usize) -> Option<RecordPass> {
        let records = self.0.record_fields(client)?;
        Some(RecordPass { records, batch: self.0.loss.batch() })
    }
    /// ⌈n_c/B⌉, the oracle calls that use every record of the client once.
    fn calls_of_epoch(&self, client: usize) -> Option<f64> {
        self.0.calls_of_epoch(client).map(libm::ceil)
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Reshuffled<L, S> {
    /// Whether the steps of a cohort can be taken on records that are drawn beforehand: no epoch of a member ends with a
    /// batch of fewer than B records, which kernels do not know, and there are not too many records.
    fn can_draw_beforehand(&self, cohort: &Cohort<'_, Epoch>) -> bool {
        let batch = self.0.loss.batch();
        let is_whole = |client: &usize| self.0.records_of(*client).is_multiple_of(batch);
        let drawn = cohort.calls().saturating_mul(batch as u64);
        drawn <= MOST_DRAWN && cohort.members().iter().all(is_whole)
    }

    /// Draws the records of all steps of a cohort, in epochs, and gives the members streams from which steps with
    /// replacement draw these records. Returns their own streams.
    fn draw_beforehand(&self, cohort: &mut Cohort<'_, Epoch>) -> Vec<Stream> {
        let batch = self.0.loss.batch();
        cohort.replace_streams(|client, draws, calls| {
            let records = self.0.records_of(client);
            let mut drawn = Vec::with_capacity(calls as usize * batch);
            for _ in 0..calls {
                drawn.extend_from_slice(draws.state.next_batch(records, batch, draws.rng));
            }
            Stream::of_indices(drawn.into_iter(), records)
        })
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Problem for Reshuffled<L, S> {
    type State = Epoch;

    fn advance(&self, mut cohort: Cohort<'_, Epoch>) {
        if !self.can_draw_beforehand(&cohort) {
            return advance_by_oracle(self, cohort);
        }
        let own_streams = self.draw_beforehand(&mut cohort);
        let mut states = vec![(); cohort.entries()];
        self.0.advance(cohort.with_states(&mut states));
        cohort.restore_streams(own_streams);
    }

    fn joint_gain(&self) -> JointGain {
        self.0.joint_gain()
    }

    fn advance_together(&self, mut runs: Vec<Cohort<'_, Epoch>>) {
        if !runs.iter().all(|run| self.can_draw_beforehand(run)) {
            return advance_together_by_client(self, runs);
        }
        let own_streams: Vec<Vec<Stream>> =
            runs.iter_mut().map(|run| self.draw_beforehand(run)).collect();
        let mut states: Vec<Vec<()>> = runs.iter().map(|run| vec![(); run.entries()]).collect();
        let redrawn = runs.iter_mut().zip(&mut states);
        self.0.advance_together(redrawn.map(|(run, states)| run.with_states(states)).collect());
        for (run, streams) in runs.iter_mut().zip(own_streams) {
            run.restore_streams(streams);
        }
    }

    fn oracle(&self, client: usize, draws: &mut Draws<Epoch>, theta: &[f64], field: &mut [f64]) {
        let all = self.0.records_of(client);
        let batch = draws.state.next_batch(all, self.0.loss.batch(), draws.rng);
        let mut records = batch.iter().copied();
        // As many records are asked for as there are.
        let next_record = || records.next().unwrap_or_default();
        self.0.records.field(client, theta, batch.len(), next_record, field);
    }

    /// Draws the next batch of the epoch, which may have fewer than B records.
    fn draw(&self, client: usize, draws: &mut Draws<Epoch>, records: &mut Vec<usize>) {
        let all = self.0.records_of(client);
        records.extend(draws.state.next_batch(all, self.0.loss.batch(), draws.rng));
    }

    fn linearised(
        &self,
        client: usize,
        draws: &mut Draws<Epoch>,
        theta: &[f64],
        field: &mut [f64],
    ) {
        let all = self.0.records_of(client);
        let batch = draws.state.next_batch(all, self.0.loss.batch(), draws.rng);
        let mut records = batch.iter().copied();
        let next_record = || records.next().unwrap_or_default();
        self.0.linearised_field(client, theta, batch.len(), next_record, field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federated::{Run, Terms};
    use crate::kernel::records::RecordTables;
    use crate::kernel::{CohortData, LocalSteps, Members, Proximal, dot};
    use crate::problem::least_squares::RidgeLoss;
    use crate::rng::Purpose;
    use crate::sample;

    /// Ridge regression of four clients with 4, 8, 12 and 16 records, in batches of this size.
    fn ridge(batch: usize) -> Reshuffled<RidgeLoss, RecordTables> {
        let (settings, files) = sample::weighted_ridge_settings();
        let settings = crate::problem::least_squares::Settings { batch, ..settings };
        Reshuffled(crate::problem::Settings::build(&settings, 1, &files).unwrap())
    }

    #[test]
    fn an_epoch_uses_every_record_once_and_its_last_batch_has_the_rest() {
        let mut rng = Stream::shared_instance(5);
        let mut again = rng.clone();
        let mut epoch = Epoch::default();
        let mut orders = Vec::new();
        for _ in 0..3 {
            let mut order = Vec::new();
            for size in [3, 3, 1] {
                let batch = epoch.next_batch(7, 3, &mut rng);
                assert_eq!(batch.len(), size);
                order.extend_from_slice(batch);
            }
            assert_eq!(order, again.distinct(7, 7), "the order is the stream's permutation");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
            orders.push(order);
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2], "{orders:?}");
    }

    /// FedAvg with 3 local steps, so that rounds end inside of epochs, equals plain loops over the permutations.
    #[test]
    fn rounds_pass_over_permutations_of_the_records() {
        let problem = ridge(3);
        let start = [0.5, -1.0, 0.25];
        let gamma = 0.05;
        let run = sample::run(&problem, &Terms::fedavg(gamma, 3), &start, 4, 2);
        let tables = &problem.0.records;
        let l2 = problem.0.loss.l2();
        let mut orders: Vec<Vec<usize>> = vec![Vec::new(); 4];
        let mut streams: Vec<Stream> =
            (0..4).map(|c| Stream::new(5, Purpose::Client, 0, 2, c)).collect();
        let mut theta = start.to_vec();
        for _ in 0..4 {
            let mut mean = vec![0.0; 3];
            for client in 0..4 {
                let n = tables.records(client);
                let mut own = theta.clone();
                for _ in 0..3 {
                    if orders[client].is_empty() {
                        orders[client] = streams[client].distinct(n, n);
                    }
                    let size = orders[client].len().min(3);
                    let batch: Vec<usize> = orders[client].drain(..size).collect();
                    let mut gradient: Vec<f64> = own.iter().map(|x| l2 * x).collect();
                    for record in batch {
                        let x = tables.row(client, record);
                        // At a product of 0 the error is minus the target.
                        let error = dot(x, &own) + tables.error(client, record, 0.0);
                        gradient.iter_mut().zip(x).for_each(|(g, x)| *g += error * x / size as f64);
                    }
                    own.iter_mut().zip(&gradient).for_each(|(own, g)| *own -= gamma * g);
                }
                let share = problem.share(client);
                mean.iter_mut().zip(&own).for_each(|(mean, own)| *mean += share * own);
            }
            theta = mean;
        }
        assert!(sample::distance(run.estimate(), &theta) < 1e-13, "{theta:?}");
        assert!(sample::distance(&theta, &start) > 0.1);
    }

    /// Records that are drawn beforehand give the bits of the oracle, for one run and for several together: steps on one
    /// record and on mini-batches, in rounds that end inside of epochs; and where an epoch ends with fewer than B records.
    #[test]
    fn steps_on_records_that_were_drawn_beforehand_are_those_of_the_oracle() {
        let start = [0.5, -1.0, 0.25];
        let steps = |client: u64| LocalSteps { step: 0.05, steps: 5 + client, batch: 1 };
        for (size, batch) in [(1, 1), (1, 3), (2, 1), (4, 2), (3, 1)] {
            let problem = ridge(size);
            let plans: Vec<LocalSteps> =
                (0..4).map(|client| LocalSteps { batch, ..steps(client) }).collect();
            let ends = |way: &dyn Fn(Vec<Cohort<'_, Epoch>>)| {
                let members = Members::new(vec![0, 1, 3]);
                let correction = [0.125, 0.0, -0.5];
                let mut runs: Vec<_> = (0..2).map(|run| ClientsOfRun::new(run, &start)).collect();
                for _ in 0..3 {
                    let cohorts = runs.iter_mut().map(|run| {
                        let mut cohort = run.cohort(&members, &correction, &plans);
                        if batch > 1 {
                            cohort.extended = Some(Proximal::NONE);
                        }
                        cohort
                    });
                    way(cohorts.collect());
                }
                let bits = |run: &ClientsOfRun| -> Vec<u64> {
                    run.theta.iter().map(|x| x.to_bits()).collect()
                };
                runs.iter().map(bits).collect::<Vec<_>>()
            };
            let by_oracle =
                ends(&|runs| runs.into_iter().for_each(|run| advance_by_oracle(&problem, run)));
            let apart = ends(&|runs| runs.into_iter().for_each(|run| problem.advance(run)));
            let together = ends(&|runs| problem.advance_together(runs));
            assert_eq!(apart, by_oracle, "B = {size}, {batch} calls");
            assert_eq!(together, by_oracle, "B = {size}, {batch} calls");
        }
    }

    /// θ, streams and epochs of the four clients of a run.
    struct ClientsOfRun {
        theta: Vec<f64>,
        streams: Vec<Stream>,
        epochs: Vec<Epoch>,
    }

    impl ClientsOfRun {
        fn new(run: u64, start: &[f64]) -> Self {
            let stream = |client| Stream::new(5, Purpose::Client, 0, run, client);
            let streams = (0..4).map(stream).collect();
            Self { theta: start.repeat(4), streams, epochs: vec![Epoch::default(); 4] }
        }

        fn cohort<'a>(
            &'a mut self,
            members: &'a Members,
            corrections: &'a [f64],
            plans: &'a [LocalSteps],
        ) -> Cohort<'a, Epoch> {
            let data = CohortData {
                start: None,
                theta: &mut self.theta,
                corrections,
                streams: &mut self.streams,
                states: &mut self.epochs,
                plans,
                steps: None,
            };
            Cohort::new(members, data)
        }
    }

    /// A step of mini-batch SGD on as many gradients as a client has records is one of gradient descent, whatever the
    /// order is, and so is a call with B = n.
    #[test]
    fn all_records_together_are_the_full_gradient() {
        let start = [0.5, -1.0, 0.25];
        let theta = |problem: &Reshuffled<RidgeLoss, RecordTables>, batches: Vec<u64>| {
            let terms = Terms { batches, ..Terms::fedavg(0.1, 1) };
            sample::run(problem, &terms, &start, 1, 0).estimate().to_vec()
        };
        let single = ridge(1);
        let mut descent = start.to_vec();
        for client in 0..4 {
            let mut field = vec![0.0; 3];
            single.mean_field(client, &start, &mut field);
            crate::kernel::axpy(-0.1 * single.share(client), &field, &mut descent);
        }
        for found in [theta(&single, vec![4, 8, 12, 16]), theta(&ridge(16), vec![1])] {
            assert!(sample::distance(&found, &descent) < 1e-14, "{found:?} {descent:?}");
        }
    }

    #[test]
    fn draws_depend_on_each_other_and_epochs_are_whole_calls() {
        let problem = ridge(3);
        assert!(!problem.independent() && problem.0.independent());
        assert_eq!(problem.noise_map(0, &Matrix::identity(4)), None);
        let calls: Vec<f64> = (0..4).filter_map(|c| problem.calls_of_epoch(c)).collect();
        assert_eq!(calls, [2.0, 3.0, 4.0, 6.0]);
        assert_eq!(problem.0.calls_of_epoch(1), Some(8.0 / 3.0));
    }

    /// At θ* a linearised field is the field, of the same batches.
    #[test]
    fn linearised_fields_have_the_batches_of_fields() {
        let problem = Reshuffled(sample::weighted_logistic());
        let star = problem.optimum().to_vec();
        let mut field = vec![0.0; 3];
        let mut linearised = vec![0.0; 3];
        let mut streams = [Stream::shared_instance(3), Stream::shared_instance(3)];
        let mut epochs = [Epoch::default(), Epoch::default()];
        let [rng, other_rng] = &mut streams;
        let [state, other_state] = &mut epochs;
        for _ in 0..20 {
            problem.oracle(2, &mut Draws { rng, state }, &star, &mut field);
            let mut draws = Draws { rng: other_rng, state: other_state };
            problem.linearised(2, &mut draws, &star, &mut linearised);
            assert!(sample::distance(&field, &linearised) < 1e-14);
        }
    }
}
