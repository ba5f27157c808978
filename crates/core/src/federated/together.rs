//! Runs that differ in their noise alone and are advanced together: a client's records are read once for all runs, where
//! they would be read from memory once for each, or one call evaluates the fields of all clients of all runs.

use super::pool::advance_together_in_parallel;
use super::{Conditions, Federated, Run, Schedule, Terms, Variates};
use crate::kernel::Cohort;
use crate::problem::{JointGain, Problem, RecordSizes};

/// The size in bytes up to which the records of all clients stay in the second-level cache, so that nothing is gained
/// by running replicates together. `cargo bench --bench round -- replicates` measures both ways.
const CACHED: usize = 8 << 20;
/// The most runs that go together: more gain nothing, and would report progress late.
const MOST: u64 = 20;

/// The most numbers that the θ of the clients of runs with shared calls have together, N d each: 32 MiB.
const MOST_SHARED_NUMBERS: usize = 4 << 20;

/// How many of `runs` replicates of an algorithm should go together on a problem on which `gain` says what that gains: 1
/// where nothing would be gained. `entries` are the numbers of θ, and of a variate, of all clients of a run, N d.
///
/// Shared records must exceed the second-level cache, in a round the runs must take twice as many steps on a client as
/// it has records, and their θ and variates must not need more memory than the records. With shared calls these must not
/// need more memory than [`MOST_SHARED_NUMBERS`].
pub fn runs_together(gain: JointGain, entries: usize, terms: &Terms, runs: u64) -> u64 {
    // θ_k, and c_k and ξ_k if there are variates.
    let vectors = if terms.variates == Variates::None { 1 } else { 3 };
    let numbers = vectors * entries;
    let most = runs.min(MOST);
    if !can_go_together(gain, terms) {
        return 1;
    }
    match gain {
        JointGain::None => 1,
        JointGain::SharedRecords(RecordSizes { bytes, largest }) => {
            let most = most.min((bytes / (8 * numbers)) as u64);
            let steps = most.saturating_mul(terms.most_steps());
            if bytes > CACHED && steps >= 2 * largest as u64 { most } else { 1 }
        }
        JointGain::SharedCalls => most.min((MOST_SHARED_NUMBERS / numbers) as u64).max(1),
    }
}

/// Whether runs with these terms can go on together: no coin ends their local steps, which have one size for a client in
/// a round. All clients must take part and finish their work, so that the runs do not differ in this, unless they share
/// calls, in which clients and their numbers of steps may differ.
fn can_go_together(gain: JointGain, terms: &Terms) -> bool {
    let may_differ = matches!(gain, JointGain::SharedCalls);
    let are_alike = !terms.may_leave_out_clients() && terms.stragglers.is_none();
    let has_one_size = terms.decay_by_step().is_none();
    terms.schedule == Schedule::Every && has_one_size && (may_differ || are_alike)
}

/// Several runs of one algorithm that go on together, round by round.
pub trait RunsTogether {
    /// Runs one round of every run that was not stopped; the bits are those that each run has alone.
    fn round(&mut self);
    /// The run that was launched from conditions number `place`, from 0 on, whether it was stopped or not.
    ///
    /// # Panics
    /// If there are fewer.
    fn run(&self, place: usize) -> &dyn Run;
    /// Leaves run number `place` as it is in all later rounds.
    fn stop(&mut self, place: usize);
}

/// Runs of the engine with the same terms on a problem.
pub struct Together<'p, P: Problem> {
    problem: &'p P,
    runs: Vec<JointRun<'p, P>>,
}

/// A run, and whether it goes on or was stopped.
struct JointRun<'p, P: Problem> {
    run: Federated<'p, P>,
    goes_on: bool,
}

impl<'p, P: Problem> Together<'p, P> {
    /// A run from each of these conditions, at its θ_0.
    ///
    /// # Panics
    /// If rounds do not have a fixed number of local steps of all clients, or steps of a round differ in their sizes:
    /// under a coin, if sizes fall from step to step, or, unless the runs share calls, with a cohort or stragglers.
    pub fn new(problem: &'p P, terms: &Terms, from: &[Conditions<'_>]) -> Self {
        assert!(can_go_together(problem.joint_gain(), terms));
        let mut runs = Vec::with_capacity(from.len());
        for conditions in from {
            let run = Federated::new(problem, terms.clone(), conditions);
            runs.push(JointRun { run, goes_on: true });
        }
        Self { problem, runs }
    }
}

impl<P: Problem> RunsTogether for Together<'_, P> {
    fn round(&mut self) {
        let unstopped = self.runs.iter_mut().filter(|joint| joint.goes_on);
        let mut active: Vec<_> = unstopped.map(|joint| &mut joint.run).collect();
        active.iter_mut().for_each(|run| run.begin_fixed_round());
        // A round with nobody changes nothing.
        active.retain(|run| !run.cohort.members.indices().is_empty());
        let mut cohorts: Vec<Cohort<'_, P::State>> = Vec::with_capacity(active.len());
        for run in &mut active {
            cohorts.push(run.prepare_cohort(run.plans.equal_steps));
        }
        advance_together_in_parallel(self.problem, cohorts);
        active.into_iter().for_each(Federated::end_fixed_round);
    }

    fn run(&self, place: usize) -> &dyn Run {
        &self.runs[place].run
    }

    fn stop(&mut self, place: usize) {
        self.runs[place].goes_on = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::garnet::Heterogeneity;
    use crate::problem::logistic;
    use crate::sample;

    /// Asserts that every run has the bits and the cost that it has alone, also after another run was stopped.
    fn assert_bits_of_single_runs<P: Problem>(problem: &P) {
        let start = vec![0.5; problem.dim()];
        let from = |replicate| Conditions { seed: 5, replicate, start: &start, rounds: 9, copy: 0 };
        for terms in sample::terms(0.1, 5) {
            if !can_go_together(problem.joint_gain(), &terms) {
                continue;
            }
            let mut together = Together::new(problem, &terms, &[from(0), from(1), from(2)]);
            let mut apart: Vec<_> =
                (0..3).map(|r| Federated::new(problem, terms.clone(), &from(r))).collect();
            for round in 0..9 {
                together.round();
                apart
                    .iter_mut()
                    .enumerate()
                    .filter(|(r, _)| *r != 1 || round < 4)
                    .for_each(|(_, run)| run.round());
                for (place, alone) in apart.iter().enumerate() {
                    let run = together.run(place);
                    assert_eq!(run.estimate(), alone.estimate(), "{terms:?}, round {round}");
                    assert_eq!(run.cost(), alone.cost());
                    let ends = run.clients().map(|clients| clients.ends);
                    assert_eq!(ends, alone.clients().map(|clients| clients.ends));
                }
                if round == 3 {
                    together.stop(1);
                }
            }
        }
    }

    #[test]
    fn runs_have_the_bits_that_they_have_alone() {
        let records = logistic::Settings { records: 30, l2: 0.5.into(), ..sample::blobs() };
        let problem = sample::build(&records, 3);
        assert_bits_of_single_runs(&problem);
        assert_bits_of_single_runs(&sample::weighted_logistic());
        assert_bits_of_single_runs(&sample::weighted_ridge());
        assert_bits_of_single_runs(&sample::build(
            &sample::garnet(Heterogeneity::Independent {}, 7),
            3,
        ));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| assert_bits_of_single_runs(&problem));
    }

    #[test]
    fn runs_go_together_where_records_are_read_again_and_again() {
        let terms = Terms::fedavg(0.1, 100);
        let large = RecordSizes { bytes: 32 << 20, largest: 250 };
        let entries = 20 * 784;
        let count = |terms: &Terms, records, runs| {
            runs_together(JointGain::SharedRecords(records), entries, terms, runs)
        };
        assert_eq!(count(&terms, large, 10), 10);
        assert_eq!(count(&terms, large, 100), 20);
        assert_eq!(count(&terms, large, 1), 1, "a run alone");
        assert_eq!(count(&terms, large, 4), 1, "400 steps on 250 records");
        assert_eq!(count(&terms, RecordSizes { bytes: 8 << 20, ..large }, 10), 1, "in the cache");
        assert_eq!(count(&Terms { cohort: Some(3), ..terms.clone() }, large, 10), 1);
        assert_eq!(runs_together(JointGain::None, entries, &terms, 10), 1, "without records");
        let gain = JointGain::SharedRecords(large);
        let shared = runs_together(gain, 600_000, &terms, 20);
        assert_eq!(shared, 6, "many clients with the same records: 4.8 MB for the θ of a run");
        assert_eq!(runs_together(gain, 600_000, &Terms::scaffold(0.1, 100), 20), 1);
    }

    #[test]
    fn runs_share_calls_while_their_vectors_fit() {
        let terms = Terms::fedavg(0.1, 3);
        let count = |terms: &Terms, entries, runs| {
            runs_together(JointGain::SharedCalls, entries, terms, runs)
        };
        assert_eq!(count(&terms, 1230, 7), 7);
        assert_eq!(count(&terms, 1230, 100), 20);
        assert_eq!(count(&Terms { cohort: Some(3), ..terms.clone() }, 1230, 7), 7);
        assert_eq!(count(&terms, 1 << 20, 20), 4);
        assert_eq!(count(&terms, 1 << 30, 20), 1);
        assert_eq!(count(&Terms::scaffold(0.1, 3), 1 << 20, 20), 1);
    }
}
