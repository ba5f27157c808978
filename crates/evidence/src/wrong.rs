//! Engines that are deliberately wrong, for tests that claims and diffs detect it.

use exactfed_core::algorithm::Spec;
use exactfed_core::federated::{Clients, Conditions, ControlVariates, Cost, Run};
use exactfed_core::kernel::{Members, mean_of};
use exactfed_core::problem::arrays::NoFiles;
use exactfed_core::problem::{Draws, OracleForm, Problem, Visitor};
use exactfed_core::rng::{Purpose, Stream};
use exactfed_runner::runner::Prepared;
use exactfed_runner::trace::Trace;

/// What is deliberately wrong with the engine that runs, so that tests see whether claims find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing: the program's own engine runs.
    None,
    /// Control variates learn with the wrong sign.
    FlippedSign,
    /// Control variates learn half of what they should.
    HalfLearnt,
    /// The server takes the clients' mean of the previous round.
    StaleAverage,
}

/// A manifest with FedLSA and SCAFFLSA on a noisy quadratic problem; further tables may follow.
pub fn manifest(replicates: u32, local_steps: &str) -> String {
    format!(
        r#"
title = "t"
seed = 5
replicates = {replicates}

[problem.quadratic]
dimension = 2
clients = 4
spectrum = {{ from = 0.5, to = 1.5 }}
gradient-heterogeneity = 1.0
hessian-heterogeneity = 0.3
noise = 0.3

[start]
offset = 1.0

[budget]
rounds = 60

[[algorithm.fedlsa]]
step-size = 0.1
local-steps = {local_steps}

[[algorithm.scafflsa]]
step-size = 0.1
local-steps = {local_steps}
"#
    )
}

/// The traces of a cell of FedLSA or SCAFFLSA under an engine with this mutation, a trace per replicate. The cell has
/// one instance, whose problem is built of no files. FedLSA has no control variates, so that mutations of these leave
/// its runs as they are.
pub fn traces(prepared: &Prepared<'_>, mutation: Mutation) -> Vec<Trace> {
    let cell = &prepared.cell.identity;
    let corrected = matches!(*cell.algorithm, Spec::Scafflsa(_));
    let spared = !corrected && mutation != Mutation::StaleAverage;
    if mutation == Mutation::None || spared {
        return (0..cell.replicates).map(|r| prepared.simulate(r)).collect();
    }
    let start =
        cell.problem.build(cell.seed, &NoFiles, OracleForm::Own, WrongRuns(mutation)).unwrap();
    (0..cell.replicates)
        .map(|replicate| {
            prepared.simulate_with(replicate, &|_, algorithm, from| start(algorithm, from))
        })
        .collect()
}

/// Makes the function that starts runs with this mutation on a problem.
struct WrongRuns(Mutation);

impl Visitor for WrongRuns {
    type Out = Box<dyn Fn(&Spec, &Conditions<'_>) -> Box<dyn Run>>;

    fn visit<P: Problem + 'static>(self, problem: P) -> Self::Out {
        // Runs borrow their problem for as long as they like: a few problems of tests stay in memory.
        let problem: &'static P = Box::leak(Box::new(problem));
        Box::new(move |algorithm, from| Box::new(WrongRun::new(problem, algorithm, self.0, from)))
    }
}

/// FedLSA or SCAFFLSA step by step, with all clients and equal numbers of local steps.
struct WrongRun<P: Problem + 'static> {
    problem: &'static P,
    mutation: Mutation,
    step_size: f64,
    local_steps: u64,
    /// The value of γH that the control variates use, if there are any.
    learning_length: Option<f64>,
    /// The server's estimate θ, d numbers.
    theta: Vec<f64>,
    /// The clients' mean of the previous round, which a stale server takes.
    stale: Vec<f64>,
    /// θ_c of the N clients after their local steps, N rows of d.
    ends: Vec<f64>,
    variates: ControlVariates,
    streams: Vec<Stream>,
    states: Vec<P::State>,
    cost: Cost,
}

impl<P: Problem> WrongRun<P> {
    /// A run of FedLSA or SCAFFLSA with this mutation, from the start and on the streams of the engine that is right.
    fn new(problem: &'static P, algorithm: &Spec, mutation: Mutation, from: &Conditions) -> Self {
        let n = problem.clients();
        let d = problem.dim();
        let (step_size, local_steps) = algorithm.scale();
        let mut streams: Vec<Stream> = (0..n as u64)
            .map(|c| Stream::new(from.seed, Purpose::Client, from.copy, from.replicate, c))
            .collect();
        let states = streams.iter_mut().enumerate().map(|(c, rng)| problem.begin(c, rng)).collect();
        // What control variates learn is divided by γH: twice the length halves it.
        let factor = match mutation {
            Mutation::FlippedSign => -1.0,
            Mutation::HalfLearnt => 2.0,
            Mutation::None | Mutation::StaleAverage => 1.0,
        };
        let length = factor * (step_size * local_steps as f64);
        Self {
            problem,
            mutation,
            step_size,
            local_steps,
            learning_length: matches!(algorithm, Spec::Scafflsa(_)).then_some(length),
            theta: from.start.to_vec(),
            stale: from.start.to_vec(),
            ends: from.start.repeat(n),
            variates: ControlVariates::new(n, d, None),
            streams,
            states,
            cost: Cost::default(),
        }
    }
}

impl<P: Problem> Run for WrongRun<P> {
    /// All clients take their local steps, the server takes their mean, and control variates learn, with the mutation
    /// in one of these.
    fn round(&mut self) {
        let n = self.streams.len();
        let d = self.theta.len();
        let mut field = vec![0.0; d];
        for (client, end) in self.ends.chunks_exact_mut(d).enumerate() {
            end.copy_from_slice(&self.theta);
            let draws =
                &mut Draws { rng: &mut self.streams[client], state: &mut self.states[client] };
            for _ in 0..self.local_steps {
                self.problem.oracle(client, draws, end, &mut field);
                let correction = self.variates.correction(client);
                for i in 0..d {
                    end[i] -= self.step_size * (field[i] + correction[i]);
                }
            }
        }
        let before = self.theta.clone();
        let everyone = Members::all(n);
        mean_of(&everyone, &self.ends, &mut self.theta);
        if self.mutation == Mutation::StaleAverage {
            std::mem::swap(&mut self.stale, &mut self.theta);
        }
        if let Some(length) = self.learning_length {
            self.variates.learn(&everyone, &before, &self.ends, &vec![length; n]);
        }
        self.cost.communications += 1;
        self.cost.local_steps += self.local_steps;
    }

    fn estimate(&self) -> &[f64] {
        &self.theta
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    /// The clients as metrics measure them: θ_c after the local steps of the round, ξ_c if there are control variates,
    /// and γH of each client.
    fn clients(&self) -> Option<Clients<'_>> {
        Some(Clients {
            ends: &self.ends,
            apart: false,
            corrections: self.learning_length.map_or(&[], |_| self.variates.corrections()),
            lengths: vec![self.step_size * self.local_steps as f64; self.streams.len()],
        })
    }
}
