//! Runs from their start to their budget, to its target or to divergence: one alone, or several together.

use super::fault;
use super::measure::Meter;
use super::prepare::{Prepared, Scenario, stream_names, wants_coupled_run, wants_twin};
use super::sanity::Sanity;
use super::work::{RunWork, WorkRate};
use super::{Observer, Silent};
use crate::manifest::Metric;
use crate::trace::{Outcome, Trace};
use exactfed_core::algorithm::{Instance, Spec};
use exactfed_core::federated::{Conditions, Run};
use exactfed_core::kernel::{dot, squared_distance};
use std::ops::Range;

/// The number of client steps after which the work on a run is reported to the observer, also between recorded rounds,
/// so that progress moves during long runs.
const REPORTED: u64 = 1 << 22;

/// Why a run has no trace.
pub enum Stopped {
    /// The observer interrupted it.
    Interrupted,
    /// The algorithm of the run of this number failed, or the run contradicts itself: the reason.
    Failed(u64, String),
}

/// Starts a run of an algorithm on an instance. Tests put deliberately wrong runs in the algorithm's place.
pub type StartRun<'s> =
    dyn for<'p> Fn(&'p dyn Instance, &Spec, &Conditions<'_>) -> Box<dyn Run + 'p> + 's;

/// Starts the run of the algorithm itself, which is the usual [`StartRun`].
fn start<'p>(instance: &'p dyn Instance, algorithm: &Spec, from: &Conditions) -> Box<dyn Run + 'p> {
    instance.launch(algorithm, from)
}

/// What belongs to a run under way: its companions, which are further runs on the same draws (`twin` and `coupled`),
/// what is measured of it, and its trace so far. The run itself is not in here, since several runs may go together in
/// one object; methods take it as `own`.
struct Attempt<'p> {
    prepared: &'p Prepared<'p>,
    scenario: &'p Scenario,
    /// The number of the run among those of the cell.
    run: u64,
    meter: Meter<'p>,
    /// The run on the linearised twin, if biases are measured against one.
    twin: Option<Box<dyn Run + 'p>>,
    /// The run that starts at θ*, if the distance to it is recorded.
    coupled: Option<Box<dyn Run + 'p>>,
    trace: Trace,
    sanity: Sanity,
    /// The number of rounds so far.
    round: u64,
    /// How much work rounds and recorded rounds are.
    rate: WorkRate,
    /// The work that was reported to the observer.
    reported: RunWork,
}

impl<'p> Attempt<'p> {
    /// Begins to follow `own`, the run of this number before its first round, and starts its companions by `start`. An
    /// error if one of these runs has failed already, as the code of a custom algorithm can before its first round.
    fn new(
        prepared: &'p Prepared<'p>,
        run: u64,
        own: &dyn Run,
        start: &StartRun<'_>,
    ) -> Result<Self, Stopped> {
        let identity = &prepared.cell.identity;
        let scenario = prepared.scenario(run);
        let conditions = prepared.conditions(run);
        let algorithm = &scenario.algorithm;
        let instance = &*scenario.instance;
        let mut twin =
            scenario.twin.as_ref().map(|(twin, _)| start(&**twin, algorithm, &conditions));
        let optimum = scenario.optimum().filter(|_| wants_coupled_run(identity));
        let at_optimum = optimum.map(|optimum| Conditions { start: optimum, ..conditions });
        let mut coupled = at_optimum.map(|from| start(instance, algorithm, &from));
        // No metric reads where the clients of companions end.
        twin.iter_mut().chain(&mut coupled).for_each(|run| run.without_ends());
        let meter = Meter::new(scenario, prepared.cell, own);
        let further = meter.metrics.iter().map(|metric| (*metric, Vec::new())).collect();
        let trace = Trace { further, ..Trace::default() };
        let attempt = Self {
            prepared,
            scenario,
            run,
            meter,
            twin,
            coupled,
            trace,
            sanity: Sanity::default(),
            round: 0,
            rate: prepared.work_rate(),
            reported: RunWork::default(),
        };
        attempt.check(own)?;
        Ok(attempt)
    }

    /// Follows `own`, which has made a round: its companions make theirs, and the averages take the round in.
    fn follow(&mut self, own: &dyn Run) -> Result<(), Stopped> {
        self.twin.iter_mut().chain(&mut self.coupled).for_each(|other| other.round());
        self.check(own)?;
        self.meter.observe(own, self.twin.as_deref());
        self.round += 1;
        Ok(())
    }

    /// An error if the run or a companion failed, as custom algorithms can.
    fn check(&self, own: &dyn Run) -> Result<(), Stopped> {
        let runs = [Some(own), self.twin.as_deref(), self.coupled.as_deref()];
        match runs.into_iter().flatten().find_map(|run| run.failure()) {
            Some(reason) => Err(Stopped::Failed(self.run, reason.to_owned())),
            None => Ok(()),
        }
    }

    /// Records the state of the run if this round is to be recorded. Returns whether another round is to follow: not
    /// if the run has diverged or has come to the target of the budget, or all rounds are recorded, of which round T is
    /// the last.
    ///
    /// # Errors
    /// If the observer interrupts the run, or the run contradicts itself.
    fn goes_on(&mut self, own: &dyn Run, observer: &dyn Observer) -> Result<bool, Stopped> {
        let recorded = &self.prepared.recorded;
        // Round 0 is recorded whatever the start is, so that each trace has a row.
        if self.round > 0 {
            if self.diverged(own, observer) {
                return Ok(false);
            }
            if observer.interrupted() {
                return Err(Stopped::Interrupted);
            }
        }
        // The numbers of recorded rounds increase, so that at most one of them is this round.
        while recorded.get(self.trace.rows()) == Some(&self.round) {
            self.record(own).map_err(|reason| Stopped::Failed(self.run, reason))?;
            self.sanity
                .check(&self.trace, own, self.scenario)
                .map_err(|error| Stopped::Failed(self.run, error.to_string()))?;
            self.report(observer, 0);
            if self.reached() {
                self.skip_rest(observer);
                return Ok(false);
            }
        }
        self.report(observer, REPORTED);
        Ok(self.trace.rows() < recorded.len())
    }

    /// Whether the run has come to the target of the budget at the round that was recorded last. If so, that is noted
    /// in the trace. The decision depends on the numbers of this run alone.
    fn reached(&mut self) -> bool {
        let Some(until) = self.prepared.cell.identity.until else { return false };
        let value = self.trace.measured(until.metric).last();
        let is_reached = value.is_some_and(|value| until.is_met(*value));
        if is_reached {
            self.trace.outcome = Outcome::Reached;
        }
        is_reached
    }

    /// Reports the rest of the work on the run as skipped.
    fn skip_rest(&mut self, observer: &dyn Observer) {
        self.report(observer, 0);
        observer.skipped(self.prepared.work_per_run() - self.reported);
    }

    /// Whether the run has diverged: its squared error overflows, or ‖θ‖² where θ* is left out. If so, that is noted
    /// in the trace, and the rest of its work is reported as skipped.
    fn diverged(&mut self, own: &dyn Run, observer: &dyn Observer) -> bool {
        let theta = own.estimate();
        let optimum = self.scenario.optimum();
        let size = optimum.map_or_else(|| dot(theta, theta), |star| squared_distance(theta, star));
        if size.is_finite() {
            return false;
        }
        if theta.iter().any(|x| !x.is_finite()) {
            observer.not_finite(self.prepared.cell, self.run, self.round);
        }
        self.trace.outcome = Outcome::Diverged;
        self.skip_rest(observer);
        true
    }

    /// Reports the work that was done since the last report, if it is at least `least` client steps; always if `least`
    /// is 0.
    fn report(&mut self, observer: &dyn Observer, least: u64) {
        let done = self.rate.work(self.round, self.trace.rows() as u64);
        if (done - self.reported).steps >= least {
            observer.worked(done - self.reported);
            self.reported = done;
        }
    }

    /// Adds a row to the trace, with θ_t if the manifest asks for it.
    ///
    /// # Errors
    /// Why the code of a metric gives no value.
    fn record(&mut self, own: &dyn Run) -> Result<(), String> {
        let theta = own.estimate();
        let trace = &mut self.trace;
        trace.round.push(self.round);
        trace.cost.push(own.cost());
        let sq_error = |_| self.scenario.instance.sq_distance_to_optimum(theta);
        trace.sq_error.extend(self.scenario.optimum().map(sq_error));
        let limit = self.scenario.fixed_point(self.prepared.cell);
        trace.sq_error_limit.extend(limit.map(|limit| squared_distance(theta, limit)));
        self.meter.read(own, self.coupled.as_deref(), &mut trace.further)?;
        if self.prepared.cell.identity.record.iterates {
            trace.theta.extend_from_slice(theta);
        }
        Ok(())
    }

    /// The trace of a run that has ended, with its averages over rounds. A run that ended before its last round has
    /// none, since it did not come to the end of the rounds over which they are.
    fn finish(mut self) -> Trace {
        if self.trace.outcome == Outcome::Finished {
            self.trace.averages = self.meter.finish();
        }
        self.trace
    }
}

impl<'p> Prepared<'p> {
    /// The runs that are missing, divided into tasks: ranges of runs on one instance that go together, or single runs.
    /// Each task is computed by one thread.
    pub fn tasks(&self) -> Vec<Range<u64>> {
        let identity = &self.cell.identity;
        let mut tasks = Vec::new();
        let mut next = self.first_run;
        let all = identity.runs();
        while next < all {
            let instance = identity.instance_of(next);
            let rest =
                (next..all).take_while(|run| identity.instance_of(*run) == instance).count() as u64;
            // The most runs that go together: those with companions go alone.
            let together = if wants_twin(identity) || wants_coupled_run(identity) {
                1
            } else {
                let scenario = self.scenario(next);
                scenario.instance.runs_together(&scenario.algorithm, rest)
            };
            // Groups of equal size, or nearly.
            let size = rest.div_ceil(rest.div_ceil(together));
            let end = next + rest;
            let begins = (next..end).step_by(size as usize);
            tasks.extend(begins.map(|begin| begin..end.min(begin + size)));
            next = end;
        }
        tasks
    }

    /// What the run of this number starts from: its streams and θ_0. The copy of the streams is 0, to which an
    /// algorithm adds the copy of each run that it combines.
    fn conditions(&self, run: u64) -> Conditions<'_> {
        let identity = &self.cell.identity;
        let (seed, replicate) = stream_names(identity, run);
        let start = &self.scenario(run).start;
        Conditions { seed, replicate, start, rounds: identity.rounds, copy: 0 }
    }

    /// Computes the run of this number alone, from its start to its budget or to divergence, for tests of single runs.
    /// Runs on one instance have successive numbers.
    ///
    /// # Panics
    /// If the algorithm fails, as custom algorithms can, or the run contradicts itself, which is a defect of the
    /// engine.
    pub fn simulate(&self, run: u64) -> Trace {
        self.simulate_with(run, &start)
    }

    /// Computes the run of this number, where `start` starts the run in the algorithm's place.
    ///
    /// # Panics
    /// As [`Self::simulate`].
    pub fn simulate_with(&self, run: u64, start: &StartRun<'_>) -> Trace {
        match self.run_alone(run, &Silent, start) {
            Ok(trace) => trace,
            Err(Stopped::Failed(_, reason)) => panic!("{reason}"),
            Err(Stopped::Interrupted) => unreachable!("nobody interrupts"),
        }
    }

    /// Computes a task, runs on one instance, which go together if they are more than one. Returns their traces.
    ///
    /// # Errors
    /// If the observer interrupts the task, or a run fails. What is left of the work on the task then is not reported
    /// to the observer: the caller does it, who also sees panics.
    pub(super) fn attempt(
        &self,
        runs: Range<u64>,
        observer: &dyn Observer,
    ) -> Result<Vec<Trace>, Stopped> {
        // For tests of runs that panic.
        fault::strike(&self.cell.id);
        if runs.end - runs.start > 1 {
            return self.run_together(runs, observer);
        }
        self.run_alone(runs.start, observer, &start).map(|trace| vec![trace])
    }

    /// Computes the run of this number by itself, round by round, until it has diverged or all rounds are recorded.
    fn run_alone(
        &self,
        run: u64,
        observer: &dyn Observer,
        start: &StartRun<'_>,
    ) -> Result<Trace, Stopped> {
        let Scenario { instance, algorithm, .. } = self.scenario(run);
        let instance = &**instance;
        let mut own = start(instance, algorithm, &self.conditions(run));
        // No other metric reads where the clients end.
        let record = &self.cell.identity.record;
        let reads_ends = record.own.iter().any(|own| own.known.reads_clients);
        if !reads_ends && !record.metrics.contains(&Metric::SqErrorClients) {
            own.without_ends();
        }
        let mut attempt = Attempt::new(self, run, &*own, start)?;
        while attempt.goes_on(&*own, observer)? {
            own.round();
            attempt.follow(&*own)?;
        }
        Ok(attempt.finish())
    }

    /// Computes several runs on one instance together, round by round, which is faster than one after the other. They
    /// are a task of [`Self::tasks`], which puts runs together only where the engine can: a coin, or participation of a
    /// part of the clients, would make it panic. Runs that the algorithm cannot put together are computed one by one. A
    /// run that has diverged is stopped, and the others go on; where one fails, all end without traces.
    fn run_together(
        &self,
        runs: Range<u64>,
        observer: &dyn Observer,
    ) -> Result<Vec<Trace>, Stopped> {
        let Scenario { instance, algorithm, .. } = self.scenario(runs.start);
        let conditions: Vec<_> = runs.clone().map(|run| self.conditions(run)).collect();
        let Some(mut all) = instance.launch_together(algorithm, &conditions) else {
            return runs.map(|run| self.run_alone(run, observer, &start)).collect();
        };
        let mut attempts = Vec::new();
        for (place, run) in (0..).zip(runs) {
            attempts.push(Attempt::new(self, run, all.run(place), &start)?);
        }
        let mut active: Vec<usize> = (0..attempts.len()).collect();
        loop {
            let mut going = Vec::with_capacity(active.len());
            for place in active {
                if attempts[place].goes_on(all.run(place), observer)? {
                    going.push(place);
                } else {
                    all.stop(place);
                }
            }
            active = going;
            if active.is_empty() {
                return Ok(attempts.into_iter().map(Attempt::finish).collect());
            }
            all.round();
            for &place in &active {
                attempts[place].follow(all.run(place))?;
            }
        }
    }
}
