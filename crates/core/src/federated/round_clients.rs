//! The clients of a run as a custom algorithm sees them, which is defined outside of this crate: the algorithm decides
//! what happens in a round, and the engine runs the local steps and makes the draws.

use super::draw::{ClientDrawError, Draw, RunIdentity};
use super::messages::CompressionStreams;
use super::pool::{AnyPool, LocalRound, Pool, average};
use super::sampling::ClientSampler;
use super::terms::StatedPrice;
use super::work::RoundWork;
use super::{Conditions, ControlVariates, Cost};
use crate::client_sampling::ParticipationScheme;
use crate::compression::Compressor;
use crate::kernel::{LocalSteps, Members, Proximal, axpy};
use crate::problem::Problem;
use crate::rng::{Purpose, Stream};
use std::sync::Arc;

/// What the members of the cohort do in [`RoundClients::local_steps`].
#[derive(Clone, Copy, Debug)]
pub struct LocalWork<'a> {
    /// γ, or γ_k of each of the N clients.
    pub step_sizes: &'a [f64],
    /// H, or E_k of each of the N clients; each 1 or more.
    pub steps: &'a [u64],
    /// The oracle calls that are averaged in a local step, 1 or more.
    pub batch: u64,
    /// ξ_k, N rows of d, or one row of d for all; 0 without it.
    pub corrections: Option<&'a [f64]>,
    /// A proximal term in every local step, to a point of d numbers.
    pub proximal: Option<Proximal<'a>>,
}

/// What draws clients by a scheme that an algorithm uses.
struct SchemeSampler {
    scheme: ParticipationScheme,
    /// L, how many clients are drawn, if a number is.
    size: Option<usize>,
    /// `None` if all clients take part.
    sampler: Option<ClientSampler>,
}

/// The clients of a run of a custom algorithm, their draws and what the run has cost. The draws are those that every
/// algorithm has on the same replicate.
pub struct RoundClients<'p> {
    pool: Box<dyn AnyPool + 'p>,
    dim: usize,
    /// π_k, N numbers, if they are not equal.
    shares: Option<&'p [f64]>,
    /// The number of oracle evaluations that an oracle call counts as: the records of a batch.
    evaluations: u64,
    /// The clients that take part in the current round.
    members: Members,
    /// w_k of the clients that take part in the current round, N numbers; `None` if they are their shares, divided by the
    /// sum of these.
    weights: Option<Vec<f64>>,
    /// What draws clients by the schemes that the algorithm has used so far.
    samplers: Vec<SchemeSampler>,
    /// What each client does in local steps.
    plans: Vec<LocalSteps>,
    /// d zeros, the anchor of a proximal term of weight 0.
    zero: Vec<f64>,
    /// The stream from which cohorts are drawn.
    server: Stream,
    /// The stream for draws of the algorithm itself.
    own: Stream,
    /// The streams from which messages are compressed.
    compression: CompressionStreams,
    /// What a round costs beyond its oracle calls, unless [`RoundClients::charge`] says otherwise.
    price: StatedPrice,
    /// Whether communication in this round was counted by [`RoundClients::charge`].
    charged: bool,
    /// The compressed messages of this round so far.
    messages: u64,
    /// The bits of the run so far that `cost` does not contain in its bytes: those of compressed messages, and those
    /// that were charged as bits.
    bits: u64,
    cost: Cost,
    /// What the draws of these clients are recognised by.
    identity: Arc<RunIdentity>,
}

impl<'p> RoundClients<'p> {
    /// The clients of a problem at the start of a run whose rounds have this price.
    pub fn new<P: Problem>(problem: &'p P, from: &Conditions, price: StatedPrice) -> Self {
        let n = problem.clients();
        let dim = problem.dim();
        Self {
            pool: Box::new(Pool::new(problem, from)),
            dim,
            shares: problem.unequal_shares(),
            evaluations: problem.batch(),
            members: Members::all(n),
            weights: None,
            samplers: Vec::new(),
            plans: vec![LocalSteps { step: 0.0, steps: 1, batch: 1 }; n],
            zero: vec![0.0; dim],
            server: Stream::new(from.seed, Purpose::Server, from.copy, from.replicate, 0),
            own: Stream::new(from.seed, Purpose::Algorithm, from.copy, from.replicate, 0),
            compression: CompressionStreams::new(from, n),
            price,
            charged: false,
            messages: 0,
            bits: 0,
            cost: Cost::default(),
            identity: Arc::new(RunIdentity),
        }
    }

    /// The number of clients, N.
    pub fn count(&self) -> usize {
        self.plans.len()
    }

    /// The dimension d of θ.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The shares π_k of the clients, N numbers whose sum is 1; `None` if all are 1/N.
    pub fn unequal_shares(&self) -> Option<&'p [f64]> {
        self.shares
    }

    /// The clients that take part in this round.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Draws `size` clients without replacement, who alone take part until the round ends. A built-in algorithm with a
    /// cohort of this size has the same clients in the same round, if one cohort is drawn in each round.
    ///
    /// # Panics
    /// If `size` is 0 or above N.
    pub fn draw_cohort(&mut self, size: usize) {
        assert!((1..=self.count()).contains(&size), "a cohort has from 1 to N clients");
        // Without a draw if all take part, as the engine does it: the server's stream stays the same.
        self.members = if size < self.count() {
            Members::new(self.server.distinct(self.count(), size))
        } else {
            Members::all(self.count())
        };
        self.weights = None;
    }

    /// Selects clients by a scheme, L = `size` of them if it is given, who alone take part until the round ends, with the
    /// weights of the scheme. A built-in algorithm with this scheme has the same clients in the same round, if they are
    /// selected once in each round.
    ///
    /// # Panics
    /// If the scheme is none for these clients ([`ParticipationScheme::check_for`],
    /// [`proportional_fault`](crate::client_sampling::proportional_fault)).
    pub fn draw_by(&mut self, scheme: &ParticipationScheme, size: Option<usize>) {
        let scheme = scheme.for_shares(self.shares.is_some());
        let is_known = |known: &SchemeSampler| known.scheme == scheme && known.size == size;
        let place = self.samplers.iter().position(is_known).unwrap_or_else(|| {
            let sampler = ClientSampler::new(&scheme, size, self.plans.len(), self.shares);
            self.samplers.push(SchemeSampler { scheme, size, sampler });
            self.samplers.len() - 1
        });
        let Some(sampler) = &mut self.samplers[place].sampler else {
            self.members = Members::all(self.plans.len());
            self.weights = None;
            return;
        };
        self.members = sampler.draw(&mut self.server);
        let mut weights = Vec::new();
        for &client in self.members.indices() {
            weights.extend(sampler.weight(client));
        }
        // A scheme gives all who take part a weight, or none of them.
        self.weights = sampler.replaces_sum().then(|| {
            let mut of_clients = vec![0.0; self.plans.len()];
            for (&client, weight) in self.members.indices().iter().zip(weights) {
                of_clients[client] = weight;
            }
            of_clients
        });
    }

    /// Lets these clients alone take part until the round ends, or until others are named. `weights` are w_k, N numbers,
    /// of which those of the clients that take part count; without them the weights are their shares, divided by the sum
    /// of these. Where others are named within a round, [`RoundClients::charge`] has to say what it sends.
    ///
    /// # Panics
    /// If a client does not exist, or there are not N weights.
    pub fn participate(&mut self, members: Members, weights: Option<Vec<f64>>) {
        let n = self.count();
        assert!(members.end() <= n && weights.as_ref().is_none_or(|weights| weights.len() == n));
        self.members = members;
        self.weights = weights;
    }

    /// Whether the clients that take part have weights of their own, in place of their shares divided by their sum.
    pub fn has_own_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// Runs the local steps θ ← θ − γ_k (B⁻¹ Σ F_k(θ; Z_b) + ξ_k + μ(θ − point)) of each member, from `start` (d
    /// numbers), or without it from the member's own row of `ends`. The ends are in `ends`, N rows of d; the rows of
    /// clients that take no part are left as they are. The oracle calls and the steps of the slowest member are counted
    /// as cost; communication is counted when the round ends.
    ///
    /// # Panics
    /// If lengths do not fit N and d.
    pub fn local_steps(&mut self, start: Option<&[f64]>, work: &LocalWork<'_>, ends: &mut [f64]) {
        let LocalWork { step_sizes, steps, batch, corrections, proximal } = *work;
        let n = self.count();
        assert!([1, n].contains(&step_sizes.len()) && [1, n].contains(&steps.len()));
        if self.members.indices().is_empty() {
            return;
        }
        for &k in self.members.indices() {
            let step = *step_sizes.get(k).unwrap_or(&step_sizes[0]);
            let steps = *steps.get(k).unwrap_or(&steps[0]);
            self.plans[k] = LocalSteps { step, steps, batch };
        }
        let is_plain = batch == 1 && proximal.is_none();
        let none = Proximal { weight: 0.0, anchor: &self.zero };
        let round = LocalRound {
            members: &self.members,
            start,
            ends,
            corrections,
            plans: &self.plans,
            steps: (steps.len() == 1).then_some(steps[0]),
            extended: (!is_plain).then_some(proximal.unwrap_or(none)),
        };
        self.pool.advance(round);
        let work = RoundWork::of_members(&self.members, &self.plans);
        self.cost.local_steps += work.slowest;
        self.cost.oracle_calls += self.evaluations * work.calls;
        self.cost.sequential_calls += self.evaluations * work.sequential;
    }

    /// Writes the mean of `calls` oracle calls of each member, at its point, to the member's row of `fields`, N rows of
    /// d; other rows are left as they are. `points` has d numbers, the point of all, or N rows of d. The calls are
    /// counted as cost, but not as local steps.
    ///
    /// # Panics
    /// If lengths do not fit N and d, or `calls` is 0.
    pub fn fields(&mut self, points: &[f64], calls: u64, fields: &mut [f64]) {
        assert!(calls > 0);
        self.check_sizes(points, fields);
        let d = self.dim;
        let mut one = vec![0.0; d];
        for &client in self.members.indices() {
            let mean = &mut fields[client * d..][..d];
            self.pool.mean_field(client, calls, point_of(points, client, d), mean, &mut one);
        }
        self.count_calls(calls);
    }

    /// Makes the draws of the next `calls` oracle calls (1 or more) of each member and keeps them, so that fields can
    /// be evaluated on them at several points ([`Self::fields_of_draw`]). Streams and states of noise are then as after
    /// [`Self::fields`] with as many calls: a Markov chain has moved once for each call, whatever is evaluated later.
    /// Only members draw. A draw costs nothing; evaluations are counted.
    ///
    /// # Panics
    /// If `calls` is 0.
    pub fn draw(&mut self, calls: u64) -> Draw {
        assert!(calls > 0);
        let before = self.pool.draw(&self.members, calls);
        let members = self.members.clone();
        Draw { run: self.identity.clone(), calls, members, before }
    }

    /// Writes the mean of the oracle calls of a draw to the row of `fields` of each member, at its point, as
    /// [`Self::fields`] does with draws of its own: `fields(points, calls)` and `fields_of_draw(points, draw(calls))`
    /// have the same bits. The draw may be of an earlier round of this run. The calls are counted as cost each time.
    ///
    /// # Errors
    /// If the draw is of another run, or a client that takes part now did not draw.
    ///
    /// # Panics
    /// If lengths do not fit N and d.
    pub fn fields_of_draw(
        &mut self,
        points: &[f64],
        draw: &Draw,
        fields: &mut [f64],
    ) -> Result<(), ClientDrawError> {
        self.check_sizes(points, fields);
        self.check_run(draw)?;
        let d = self.dim;
        let mut one = vec![0.0; d];
        for &client in self.members.indices() {
            let mean = &mut fields[client * d..][..d];
            let point = point_of(points, client, d);
            self.pool.field_of_draw(client, draw, point, mean, &mut one)?;
        }
        self.count_calls(draw.calls);
        Ok(())
    }

    /// The numbers of the records that a client drew, from 0 on among those that it holds: for each oracle call of the
    /// draw as many places as a batch has, of which the last ones are `None` if the call has fewer records (the last
    /// batch of an epoch). `None` if the client did not draw, or the problem draws no records.
    ///
    /// # Errors
    /// If the draw is of another run.
    pub fn records_of_draw(
        &self,
        draw: &Draw,
        client: usize,
    ) -> Result<Option<Vec<Option<usize>>>, ClientDrawError> {
        self.check_run(draw)?;
        match self.pool.records_of_draw(client, draw) {
            Err(ClientDrawError::NotDrawn { .. }) => Ok(None),
            found => found,
        }
    }

    /// The numbers of records from which the clients draw, N numbers; `None` if the problem draws no records.
    pub fn record_counts(&self) -> Option<Vec<usize>> {
        (0..self.count()).map(|client| self.pool.record_count(client)).collect()
    }

    /// Writes the mean field F̄_k, the expectation of an oracle call, to the row of `fields` of each member, at its
    /// point as in [`Self::fields`]: the gradient over all records of the client, where it has some. Nothing is drawn. It
    /// counts as many gradients as the client draws records from, and as one where it draws none.
    ///
    /// # Panics
    /// If lengths do not fit N and d.
    pub fn mean_fields(&mut self, points: &[f64], fields: &mut [f64]) {
        self.check_sizes(points, fields);
        let d = self.dim;
        for &client in self.members.indices() {
            let field = &mut fields[client * d..][..d];
            self.pool.expected_field(client, point_of(points, client, d), field);
        }
        self.count_records();
    }

    /// The mean loss of each member at θ over the records that it holds, N numbers, which are NaN for other clients;
    /// `None` if the problem has no losses of clients. Penalties are left out, as in the metric `train-loss`. It counts
    /// as many gradients as [`Self::mean_fields`] does.
    ///
    /// # Panics
    /// If θ does not have d numbers.
    pub fn losses(&mut self, theta: &[f64]) -> Option<Vec<f64>> {
        assert_eq!(theta.len(), self.dim);
        let all = self.pool.losses(theta)?;
        let mut own = vec![f64::NAN; self.count()];
        for &client in self.members.indices() {
            own[client] = all[client];
        }
        self.count_records();
        Some(own)
    }

    /// Counts as many gradients of each member as it draws records from, and one where it draws none.
    fn count_records(&mut self) {
        let mut largest = 0;
        for &client in self.members.indices() {
            let gradients = self.pool.record_count(client).unwrap_or(1) as u64;
            self.cost.oracle_calls += gradients;
            largest = gradients.max(largest);
        }
        self.cost.sequential_calls += largest;
    }

    /// Counts `calls` oracle calls of each member.
    fn count_calls(&mut self, calls: u64) {
        self.cost.oracle_calls += self.evaluations * calls * self.members.indices().len() as u64;
        if !self.members.indices().is_empty() {
            self.cost.sequential_calls += self.evaluations * calls;
        }
    }

    /// # Panics
    /// If `fields` are not N rows of d numbers, or `points` neither one such row nor N.
    fn check_sizes(&self, points: &[f64], fields: &[f64]) {
        let all = self.count() * self.dim;
        assert!(fields.len() == all && [self.dim, all].contains(&points.len()));
    }

    /// # Errors
    /// [`ClientDrawError::OtherRun`] if other clients made the draw.
    fn check_run(&self, draw: &Draw) -> Result<(), ClientDrawError> {
        if Arc::ptr_eq(&self.identity, &draw.run) { Ok(()) } else { Err(ClientDrawError::OtherRun) }
    }

    /// Writes the mean of the members' rows of `rows` (N rows of d), weighted by the clients' shares, to `mean` (d
    /// numbers). The shares of a part of the clients are divided by their sum. If the members have weights of their own,
    /// it is the sum of their rows by these.
    ///
    /// # Panics
    /// If lengths do not fit N and d, or if nobody takes part and no weights are given.
    pub fn mean(&self, rows: &[f64], mean: &mut [f64]) {
        assert!(rows.len() == self.count() * self.dim && mean.len() == self.dim);
        let Some(weights) = &self.weights else {
            return average(self.shares, &self.members, rows, mean);
        };
        mean.fill(0.0);
        for &client in self.members.indices() {
            axpy(weights[client], &rows[client * self.dim..][..self.dim], mean);
        }
    }

    /// Lets control variates learn from a round that began at `before` (d numbers) and ended at `ends` (N rows of d), of
    /// the members alone, and writes the server's next θ to `after`: the mean of the ends or, if the members have weights
    /// of their own, θ + Σ w_k (θ_k − θ). `lengths` are γ_k E_k, N numbers.
    ///
    /// # Panics
    /// As [`Self::mean`].
    pub fn average_and_learn(
        &self,
        variates: &mut ControlVariates,
        before: &[f64],
        ends: &[f64],
        lengths: &[f64],
        after: &mut [f64],
    ) {
        if self.weights.is_none() {
            return variates.average_and_learn(&self.members, before, ends, lengths, after);
        }
        let mut moves = ends.to_vec();
        moves.chunks_exact_mut(self.dim).for_each(|row| axpy(-1.0, before, row));
        self.mean(&moves, after);
        axpy(1.0, before, after);
        variates.learn(&self.members, before, ends, lengths);
    }

    /// Compresses the row of each member, and writes what the server receives to its row of `sent`; the rows of other
    /// clients become 0 there. Both have N rows of d. Each message is counted as a vector with the bits of the
    /// compressor ([`Compressor::bits`]).
    ///
    /// # Panics
    /// If lengths do not fit N and d.
    pub fn compress(&mut self, rows: &[f64], compressor: Compressor, sent: &mut [f64]) {
        let d = self.dim;
        assert!(rows.len() == self.count() * d && sent.len() == rows.len());
        if self.members.indices().len() < self.count() {
            sent.fill(0.0);
        }
        for &client in self.members.indices() {
            let own = client * d..(client + 1) * d;
            let stream = self.compression.of_client(client);
            compressor.apply(&rows[own.clone()], stream, &mut sent[own]);
        }
        self.count_messages(compressor);
    }

    /// Compresses a vector of the server (d numbers), and writes what every member receives to `sent` (d numbers). The
    /// same message is sent to each member, and counted for each as in [`RoundClients::compress`].
    ///
    /// # Panics
    /// If lengths do not fit d.
    pub fn compress_of_server(&mut self, x: &[f64], compressor: Compressor, sent: &mut [f64]) {
        assert!(x.len() == self.dim && sent.len() == self.dim);
        compressor.apply(x, self.compression.of_server(), sent);
        self.count_messages(compressor);
    }

    /// Counts a message of this compressor to or from each member.
    fn count_messages(&mut self, compressor: Compressor) {
        let members = self.members.indices().len() as u64;
        self.messages += members;
        self.cost.vectors_sent += members;
        self.bits += members * compressor.bits(self.dim);
    }

    /// 64 uniform bits for draws of the algorithm itself, from a stream that no other draw of the run uses.
    pub fn bits(&mut self) -> u64 {
        self.own.bits()
    }

    /// Counts communications of this round, and the vectors and bytes that all clients and the server send, in place of
    /// the price that the algorithm has for every round. Several charges in a round add up, and add to the messages
    /// that were compressed.
    pub fn charge(&mut self, communications: u64, vectors: u64, bytes: u64) {
        self.cost.communications += communications;
        self.cost.vectors_sent += vectors;
        self.cost.bytes_sent += bytes;
        self.charged = true;
    }

    /// Counts bits that all clients and the server send in this round, in addition to bytes. The bytes of a run are its
    /// bits so far divided by 8, rounded up.
    pub fn charge_bits(&mut self, bits: u64) {
        self.bits += bits;
        self.charged = true;
    }

    /// Ends the round, as whoever runs the algorithm must do after each one: its price is counted unless
    /// [`RoundClients::charge`] was called or nobody took part, and in the next round all clients take part unless others
    /// are selected. Of the vectors in the price, as many as messages were compressed are counted with these messages.
    pub fn end_round(&mut self) {
        self.weights = None;
        let messages = std::mem::take(&mut self.messages);
        let is_charged = std::mem::take(&mut self.charged);
        if !is_charged && !self.members.indices().is_empty() {
            let members = self.members.indices().len() as u64;
            self.cost.communications += self.price.communications;
            let vectors = self.price.vectors * members;
            self.cost.send(vectors.saturating_sub(messages), self.dim);
        }
        if self.members.indices().len() < self.count() {
            self.members = Members::all(self.count());
        }
    }

    /// What the rounds so far have cost.
    pub fn cost(&self) -> Cost {
        Cost { bytes_sent: self.cost.bytes_sent + self.bits.div_ceil(8), ..self.cost }
    }
}

/// The point of a client among `points`, which has d numbers, the point of all, or a row of d for each client.
fn point_of(points: &[f64], client: usize, d: usize) -> &[f64] {
    let row = if points.len() == d { 0 } else { client };
    &points[row * d..][..d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_sampling::{Availability, ClientProbabilities, ParticipantWeights};
    use crate::federated::{Federated, Run, Terms};
    use crate::problem::garnet::Heterogeneity;
    use crate::sample;

    const FROM: Conditions<'static> =
        Conditions { seed: 5, replicate: 3, start: &[0.5; 4], rounds: 30, copy: 0 };
    const PRICE: StatedPrice = StatedPrice { communications: 1, vectors: 2, calls_per_step: 1 };

    /// θ_1 to θ_30 and the cost of an algorithm whose round is this function of the clients, θ and
    /// a buffer of ends.
    fn rounds<P: Problem>(
        problem: &P,
        mut round: impl FnMut(&mut RoundClients<'_>, &mut [f64], &mut [f64]),
    ) -> (Vec<Vec<f64>>, Cost) {
        let mut clients = RoundClients::new(problem, &FROM, PRICE);
        let mut theta = FROM.start.to_vec();
        let mut ends = vec![0.0; clients.count() * clients.dim()];
        let mut estimates = Vec::new();
        for _ in 0..30 {
            round(&mut clients, &mut theta, &mut ends);
            clients.end_round();
            estimates.push(theta.clone());
        }
        (estimates, clients.cost())
    }

    /// θ_1 to θ_30 and the cost of a run of the engine.
    fn engine<P: Problem>(problem: &P, terms: Terms) -> (Vec<Vec<f64>>, Cost) {
        let mut run = Federated::new(problem, terms, &FROM);
        let mut estimates = Vec::new();
        for _ in 0..30 {
            run.round();
            estimates.push(run.estimate().to_vec());
        }
        (estimates, run.cost())
    }

    /// Plain local steps of size 0.1, in one number for all clients or one for each.
    fn work(steps: &[u64]) -> LocalWork<'_> {
        LocalWork { step_sizes: &[0.1], steps, batch: 1, corrections: None, proximal: None }
    }

    /// Algorithms of the engine, written as rounds of a custom algorithm, have the bits and the costs of the engine.
    #[test]
    fn custom_rounds_are_those_of_the_engine() {
        let problem = sample::build(&sample::garnet(Heterogeneity::Independent {}, 7), 3);
        let fedavg = rounds(&problem, |clients, theta, ends| {
            clients.local_steps(Some(theta), &work(&[5]), ends);
            clients.mean(ends, theta);
        });
        assert_eq!(fedavg, engine(&problem, Terms::fedavg(0.1, 5)));

        let mut variates = ControlVariates::new(7, 4, None);
        let scaffold = rounds(&problem, |clients, theta, ends| {
            let corrections = Some(variates.corrections());
            let work = LocalWork { corrections, ..work(&[5]) };
            clients.local_steps(Some(theta), &work, ends);
            let before = theta.to_vec();
            variates.average_and_learn(clients.members(), &before, ends, &[0.5; 7], theta);
        });
        assert_eq!(scaffold, engine(&problem, Terms::scaffold(0.1, 5)));

        let unequal = [1, 2, 3, 1, 2, 3, 1];
        let listed = rounds(&problem, |clients, theta, ends| {
            clients.local_steps(Some(theta), &work(&unequal), ends);
            clients.mean(ends, theta);
        });
        let local_steps = unequal.to_vec();
        assert_eq!(listed, engine(&problem, Terms { local_steps, ..Terms::fedavg(0.1, 1) }));
    }

    /// Cohorts are those that the engine draws, and last for a round; proximal terms and
    /// mini-batches are the engine's.
    #[test]
    fn cohorts_batches_and_proximal_terms_are_those_of_the_engine() {
        let problem = sample::build(&sample::garnet(Heterogeneity::Independent {}, 7), 3);
        let mut sizes = Vec::new();
        let parts = rounds(&problem, |clients, theta, ends| {
            sizes.push(clients.members().indices().len());
            clients.draw_cohort(3);
            clients.local_steps(Some(theta), &work(&[5]), ends);
            clients.mean(ends, theta);
        });
        assert!(sizes.iter().all(|size| *size == 7), "{sizes:?}");
        assert_eq!(parts, engine(&problem, Terms { cohort: Some(3), ..Terms::fedavg(0.1, 5) }));

        let pulled = rounds(&problem, |clients, theta, ends| {
            let at = theta.to_vec();
            let work = LocalWork {
                batch: 2,
                proximal: Some(Proximal { weight: 0.3, anchor: &at }),
                ..work(&[5])
            };
            clients.local_steps(Some(theta), &work, ends);
            clients.mean(ends, theta);
        });
        let terms = Terms { batches: vec![2], proximal: 0.3, ..Terms::fedavg(0.1, 5) };
        assert_eq!(pulled, engine(&problem, terms));
    }

    /// By a scheme the clients and their weights are those of the engine; clients that the algorithm names work alone, and
    /// nobody pays nothing.
    #[test]
    fn schemes_and_named_clients_take_part() {
        let problem = sample::weighted_ridge();
        let from = Conditions { start: &[0.5; 3], ..FROM };
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
        let schedule = texts(&["1, 3", "", "2-4"]);
        let client_weights = ParticipantWeights::Rescaled;
        for (scheme, size) in [
            (ParticipationScheme::Normalised, Some(2)),
            (ParticipationScheme::Rescaled, Some(2)),
            (ParticipationScheme::WithReplacement, Some(3)),
            (ParticipationScheme::Proportional, Some(2)),
            (ParticipationScheme::Weighted(vec![1.0, 2.0, 2.0, 1.0]), Some(2)),
            (ParticipationScheme::Bernoulli(ClientProbabilities::Fraction(0.3)), None),
            (ParticipationScheme::BernoulliNormalised(ClientProbabilities::Fraction(0.8)), None),
            (ParticipationScheme::Available(Availability { schedule, client_weights }), None),
        ] {
            let mut terms = Terms::fedavg(0.1, 5);
            terms.participation = scheme.clone();
            terms.cohort = size;
            let mut run = Federated::new(&problem, terms, &from);
            let mut clients = RoundClients::new(&problem, &from, PRICE);
            let mut theta = from.start.to_vec();
            for _ in 0..30 {
                run.round();
                clients.draw_by(&scheme, size);
                let mut ends = theta.repeat(4);
                clients.local_steps(Some(&theta), &work(&[5]), &mut ends);
                ends.chunks_exact_mut(3).for_each(|row| axpy(-1.0, &theta, row));
                let mut way = vec![0.0; 3];
                if clients.has_own_weights() || !clients.members().indices().is_empty() {
                    clients.mean(&ends, &mut way);
                }
                axpy(1.0, &way, &mut theta);
                clients.end_round();
                let off = sample::distance(run.estimate(), &theta);
                assert!(off < 1e-13, "{scheme:?}: {off:e}");
            }
            assert_eq!(run.cost(), clients.cost(), "{scheme:?}");
        }
        let mut clients = RoundClients::new(&problem, &from, PRICE);
        let mut ends = vec![7.0; 12];
        clients.participate(Members::new(vec![3, 1]), Some(vec![0.0, 2.0, 9.0, -1.0]));
        clients.local_steps(Some(&[0.0; 3]), &work(&[5]), &mut ends);
        let mut sum = vec![0.0; 3];
        clients.mean(&ends, &mut sum);
        for i in 0..3 {
            assert_eq!(sum[i], 2.0 * ends[3 + i] - ends[9 + i]);
            assert_eq!((ends[i], ends[6 + i]), (7.0, 7.0), "they take no part");
        }
        clients.end_round();
        let paid = clients.cost();
        assert_eq!((paid.vectors_sent, clients.members().indices().len()), (4, 4));
        clients.participate(Members::new(Vec::new()), None);
        clients.local_steps(Some(&[0.0; 3]), &work(&[5]), &mut ends);
        clients.fields(&[0.0; 3], 2, &mut ends);
        clients.end_round();
        assert_eq!(clients.cost(), paid);
    }

    /// The mean field over many calls is near the exact one; each call is counted; a charge
    /// replaces the price of its round alone.
    #[test]
    fn calls_and_charges_are_counted() {
        let problem = sample::build(&sample::garnet(Heterogeneity::Independent {}, 7), 3);
        let mut clients = RoundClients::new(&problem, &FROM, PRICE);
        let mut fields = vec![0.0; 28];
        let mut exact = vec![0.0; 4];
        clients.fields(&[1.0; 4], 20_000, &mut fields);
        for client in 0..7 {
            crate::problem::Facts::mean_field(&problem, client, &[1.0; 4], &mut exact);
            let off = sample::distance(&fields[client * 4..][..4], &exact);
            assert!(off < 0.05, "client {client}: {off}");
        }
        clients.charge(2, 14, 100);
        clients.end_round();
        clients.end_round();
        let expected = Cost {
            communications: 3,
            local_steps: 0,
            oracle_calls: 140_000,
            sequential_calls: 20_000,
            vectors_sent: 28,
            bytes_sent: 100 + 14 * 32,
        };
        assert_eq!(clients.cost(), expected);
        let mut other = RoundClients::new(&problem, &FROM, PRICE);
        assert_eq!(clients.bits(), other.bits(), "own draws depend on nothing else");
    }
}
