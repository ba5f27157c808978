//! Small instances, runs and statistics for the tests of this crate.

use crate::algorithm::Component;
use crate::algorithm::richardson_romberg::{Base, Coupling, Extrapolate, RichardsonRomberg};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{
    Clock, Conditions, Cost, Decay, DecayUnit, Federated, Learning, Run, Schedule, Stragglers,
    Terms, Variates,
};
use crate::linalg::Matrix;
use crate::problem::arrays::{Column, Contents, DataFile, Files, FilesError, NoFiles};
use crate::problem::dataset::{ClassWeights, ClientWeights, Dataset, Split};
use crate::problem::logistic::generated;
use crate::problem::softmax::synthetic;
use crate::problem::spectrum::Spectrum;
use crate::problem::{Problem, Sampling, Settings, garnet, least_squares, logistic, quadratic, td};
use crate::rng::Stream;
use crate::round_program::{
    Coefficient, Expression, Level, Mask, Operation, PerClient, Program, Round, sum,
};
use std::sync::Arc;

/// The instance of a problem that settings and a seed determine, where the settings name no file.
pub fn build<S: Settings>(settings: &S, seed: u64) -> S::Instance {
    settings.build(seed, &NoFiles).unwrap()
}

/// Quadratic functions with eigenvalues from ½ to 2 in three dimensions, without noise and heterogeneity.
pub fn quadratic(clients: usize) -> quadratic::Settings {
    quadratic::Settings {
        dimension: 3,
        clients,
        spectrum: Spectrum { from: 0.5, to: 2.0 },
        gradient_heterogeneity: 0.0,
        hessian_heterogeneity: 0.0,
        noise: 0.0,
        multiplicative_noise: 0.0,
        multiplicative_form: quadratic::MultiplicativeForm::default(),
    }
}

/// Quadratic functions all of whose eigenvalues are `a`, in `dimension` dimensions, without noise and heterogeneity.
pub fn isotropic(clients: usize, dimension: usize, a: f64) -> quadratic::Settings {
    quadratic::Settings { dimension, spectrum: Spectrum { from: a, to: a }, ..quadratic(clients) }
}

/// Quadratic functions in two dimensions that differ between the clients, with additive and multiplicative noise.
pub fn noisy(clients: usize) -> quadratic::Quadratic {
    let settings = quadratic::Settings {
        dimension: 2,
        spectrum: Spectrum { from: 0.5, to: 1.5 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.2,
        noise: 0.7,
        multiplicative_noise: 0.3,
        ..quadratic(clients)
    };
    build(&settings, 3)
}

/// TD(0) on random environments of ten states, with features in four dimensions and independent draws.
pub fn garnet(heterogeneity: garnet::Heterogeneity, clients: usize) -> garnet::Settings {
    garnet::Settings {
        states: 10,
        actions: 2,
        branching: 3,
        features: 4,
        discount: 0.9,
        clients,
        heterogeneity,
        policy: garnet::Policy::Uniform,
        noise: td::Noise::Independent,
    }
}

/// TD(0) in two dimensions on equal environments of three states, with the transitions [`CHAIN`]. Client c has
/// environment number `environment_of[c]`, and the last client has the last one. Clients with one environment are of
/// one type.
pub fn chain(environment_of: Vec<usize>, noise: td::Noise) -> td::Td {
    let last = environment_of[environment_of.len() - 1];
    let all = (0..=last).map(|_| td::Environment {
        transitions: Matrix::from_entries(3, 3, CHAIN.to_vec()),
        rewards: vec![1.0, -1.0, 0.5],
    });
    let phi = vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5];
    td::Td::new(phi, 2, 0.8, all, environment_of, noise).unwrap()
}

/// A transition matrix of three states, row by row.
pub const CHAIN: [f64; 9] = [0.1, 0.6, 0.3, 0.5, 0.2, 0.3, 0.3, 0.3, 0.4];

/// Logistic regression of four clients, each with 40 records of its own in three dimensions.
pub fn blobs() -> logistic::Settings {
    logistic::Settings {
        dimension: 3,
        records: 40,
        clients: 4,
        data: logistic::Data::Heterogeneous { spread: 1.0, separation: 1.0, perturbation: 1.0 },
        split: logistic::SharedRecords::Own,
        l2: 0.2.into(),
        margin: 0.0,
        batch: 1,
        sampling: Sampling::default(),
    }
}

/// Logistic regression of four clients, each with 30 sparse records of its own in 40 dimensions.
pub fn sparse() -> generated::Settings {
    generated::Settings {
        dimension: 40,
        nonzeros: 5,
        records: 30,
        clients: 4,
        frequency_decay: 0.7,
        signal: 3.0,
        heterogeneity: 2.0,
        l2: 0.05.into(),
        batch: 1,
        sampling: Sampling::default(),
    }
}

/// Softmax regression of four clients, each with 30 records of three classes in three dimensions.
pub fn synthetic() -> synthetic::Settings {
    synthetic::Settings {
        weights: ClientWeights::Equal,
        alpha: 0.5,
        beta: 2.0,
        iid: false,
        clients: 4,
        dimension: 3,
        classes: 3,
        records: synthetic::Sizes::Equal(30),
        l2: 0.1.into(),
        batch: 2,
        sampling: Sampling::default(),
    }
}

/// Files that all have the same contents.
pub struct Fixed(pub Contents);

impl Files for Fixed {
    fn open(&self, _file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        Ok(Arc::new(self.0.clone()))
    }
}

/// A dataset of 40 records with three features and two classes, and its file. Four clients hold 4, 8, 12 and 16 of the
/// records, and weigh in proportion to these numbers.
fn unequal_records() -> (Dataset, Fixed) {
    let mut rng = Stream::shared_instance(11);
    let client: Vec<f64> = (0..40).map(|i| [3, 2, 3, 1, 3, 2, 0, 1, 2, 3][i % 10].into()).collect();
    let label: Vec<f64> = (0..40).map(|i| (i % 2).into()).collect();
    let mut feature = || -> Vec<f64> {
        let along = label.iter().zip(&client);
        along.map(|(label, client)| label * (1.0 - 0.4 * client) + rng.gaussian()).collect()
    };
    let features = [("a", feature()), ("b", feature()), ("c", feature())];
    let others = [("client", client.clone()), ("label", label.clone())];
    let columns = features.into_iter().chain(others);
    let named = columns.map(|(name, values)| (name.to_owned(), Column::Numbers(values)));
    let dataset = Dataset {
        clients: None,
        split: Split::Column("client".into()),
        weights: ClientWeights::Records,
        intercept: false,
        ..Dataset::example()
    };
    (dataset, Fixed(Contents::Table(named.collect())))
}

/// Ridge regression in three dimensions for four clients with 4, 8, 12 and 16 records, which weigh by their records.
pub fn weighted_ridge() -> least_squares::LeastSquares {
    let (settings, files) = weighted_ridge_settings();
    settings.build(1, &files).unwrap()
}

/// The settings of [`weighted_ridge`], and its file.
pub fn weighted_ridge_settings() -> (least_squares::Settings, Fixed) {
    let (dataset, files) = unequal_records();
    let sampling = Sampling::default();
    (least_squares::Settings { dataset, l2: 0.2.into(), batch: 2, sampling }, files)
}

/// Ridge regression in two dimensions for three clients with 3, 4 and 5 records, in batches of this size, so few that
/// all orders of a client's records can be listed.
pub fn short_ridge(batch: usize) -> least_squares::LeastSquares {
    let holders = vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0];
    let mut rng = Stream::shared_instance(12);
    let features: Vec<f64> = holders.iter().map(|_| rng.gaussian()).collect();
    let labels: Vec<f64> = holders.iter().map(|holder| holder + rng.gaussian()).collect();
    let columns = [("a", features), ("client", holders), ("label", labels)];
    let named = columns.map(|(name, values)| (name.to_owned(), Column::Numbers(values)));
    let files = Fixed(Contents::Table(named.into_iter().collect()));
    let dataset = Dataset {
        clients: None,
        split: Split::Column("client".into()),
        intercept: true,
        standardise: false,
        ..Dataset::example()
    };
    let sampling = Sampling::default();
    least_squares::Settings { dataset, l2: 0.3.into(), batch, sampling }.build(1, &files).unwrap()
}

/// Least squares without a penalty on rows of three features, for one client. Targets are the products
/// of the rows with `theta`.
pub fn least_squares(rows: &[f64], theta: &[f64; 3]) -> least_squares::LeastSquares {
    let column = |j: usize| rows.chunks_exact(3).map(|row| row[j]).collect();
    let mut targets = Vec::new();
    for row in rows.chunks_exact(3) {
        targets.push(row.iter().zip(theta).map(|(x, theta)| x * theta).sum());
    }
    let columns = [("a", column(0)), ("b", column(1)), ("c", column(2)), ("label", targets)];
    let named = columns.map(|(name, values)| (name.to_owned(), Column::Numbers(values)));
    let dataset =
        Dataset { clients: Some(1), intercept: false, standardise: false, ..Dataset::example() };
    let files = Fixed(Contents::Table(named.into_iter().collect()));
    let sampling = Sampling::default();
    least_squares::Settings { dataset, l2: 0.0.into(), batch: 1, sampling }
        .build(1, &files)
        .unwrap()
}

/// Least squares without a penalty on random records of d features with random targets; client c holds `counts[c]` of
/// them.
pub fn unpenalised_ridge(counts: &[usize], d: usize) -> least_squares::LeastSquares {
    let mut rng = Stream::shared_instance(23);
    let all: usize = counts.iter().sum();
    let rows: Vec<f64> = (0..all * d).map(|_| rng.gaussian()).collect();
    let targets = (0..all).map(|_| rng.gaussian()).collect();
    let clients = counts.iter().enumerate().flat_map(|(c, count)| vec![c as f64; *count]);
    ridge_of_clients(&rows, targets, clients.collect(), d)
}

/// Least squares without a penalty for one client, on `count` random records of d features, each `copies` times with
/// targets that differ.
pub fn repeated_ridge(count: usize, d: usize, copies: usize) -> least_squares::LeastSquares {
    let mut rng = Stream::shared_instance(29);
    let rows: Vec<f64> = (0..count * d).map(|_| rng.gaussian()).collect();
    let targets: Vec<f64> = (0..count * copies).map(|_| rng.gaussian()).collect();
    ridge_of_clients(&rows.repeat(copies), targets, vec![0.0; count * copies], d)
}

/// Least squares without a penalty on these records, whose features are not standardised: d numbers, a target and the
/// number of the client for each.
fn ridge_of_clients(
    rows: &[f64],
    targets: Vec<f64>,
    clients: Vec<f64>,
    d: usize,
) -> least_squares::LeastSquares {
    let mut columns = vec![("label".to_owned(), targets), ("client".to_owned(), clients)];
    for j in 0..d {
        let column = rows.chunks_exact(d).map(|row| row[j]).collect();
        columns.push((format!("feature {j}"), column));
    }
    let named = columns.into_iter().map(|(name, values)| (name, Column::Numbers(values)));
    let dataset = Dataset {
        clients: None,
        split: Split::Column("client".into()),
        intercept: false,
        standardise: false,
        ..Dataset::example()
    };
    let files = Fixed(Contents::Table(named.collect()));
    let sampling = Sampling::default();
    least_squares::Settings { dataset, l2: 0.0.into(), batch: 1, sampling }
        .build(1, &files)
        .unwrap()
}

/// Logistic regression in three dimensions for four clients with 4, 8, 12 and 16 records, which weigh by their records.
pub fn weighted_logistic() -> logistic::Logistic {
    let (dataset, files) = unequal_records();
    let sampling = Sampling::default();
    let settings = logistic::dataset::Settings {
        dataset,
        l2: 0.5.into(),
        margin: 0.0,
        class_weights: ClassWeights::Equal,
        batch: 1,
        sampling,
    };
    settings.build(1, &files).unwrap()
}

/// One choice of terms for each way in which local steps, participation or control variates can differ, for problems of
/// three or more clients: client k has entry k modulo the length of a list of steps or batches.
pub fn terms(step_size: f64, local_steps: u64) -> Vec<Terms> {
    let fedavg = Terms::fedavg(step_size, local_steps);
    let scaffold = Terms::scaffold(step_size, local_steps);
    let unequal = vec![7, local_steps, 1];
    let coin = Schedule::Bernoulli { probability: 0.1, clock: Clock::Communications };
    let first = Variates::Kept(Learning::OptionOne);
    let decay = Decay::by_rounds(0.5, 3.0);
    let by_step = Decay { by: DecayUnit::LocalSteps, ..decay };
    let stragglers = Stragglers { fraction: 0.6, most: None, epochs: None };
    vec![
        fedavg.clone(),
        Terms { local_steps: unequal.clone(), ..fedavg.clone() },
        Terms { local_steps: unequal.clone(), normalised: true, ..fedavg.clone() },
        Terms { cohort: Some(2), server_step: 0.7, ..fedavg.clone() },
        Terms { proximal: 0.3, ..fedavg.clone() },
        Terms { proximal: 3.0, ..fedavg.clone() },
        Terms { batches: vec![3, 1], ..fedavg.clone() },
        Terms { decay: Some(decay), ..fedavg.clone() },
        Terms { decay: Some(by_step), local_steps: unequal.clone(), ..fedavg.clone() },
        Terms { decay: Some(by_step), proximal: 0.3, ..scaffold.clone() },
        Terms { stragglers: Some(stragglers), ..fedavg.clone() },
        Terms { stragglers: Some(stragglers), cohort: Some(2), ..scaffold.clone() },
        Terms { variates: Variates::Fresh, ..fedavg },
        Terms { variates: first, server_step: 0.5, ..scaffold.clone() },
        Terms { local_steps: unequal, normalised: true, ..scaffold.clone() },
        Terms { schedule: coin, ..Terms::scaffold(step_size, 1) },
        Terms { proximal: 0.3, ..scaffold.clone() },
        scaffold,
    ]
}

/// A run of the engine with these terms from θ_0 = `start`, before its first round. Replicates differ in their noise.
pub fn launch<'p, P: Problem>(
    problem: &'p P,
    terms: &Terms,
    start: &[f64],
    replicate: u64,
) -> Federated<'p, P> {
    let from = Conditions { seed: 5, replicate, start, rounds: 0, copy: 0 };
    Federated::new(problem, terms.clone(), &from)
}

/// A run of the engine with these terms after `rounds` rounds from θ_0 = `start`. Replicates differ in their noise.
pub fn run<'p, P: Problem>(
    problem: &'p P,
    terms: &Terms,
    start: &[f64],
    rounds: u64,
    replicate: u64,
) -> Federated<'p, P> {
    let mut run = launch(problem, terms, start, replicate);
    (0..rounds).for_each(|_| run.round());
    run
}

/// A cost from five counts: communications, local steps, oracle calls of all clients, oracle calls of the slowest
/// client, and vectors of d numbers that were sent.
pub fn cost(counts: [u64; 5], d: u64) -> Cost {
    let [communications, local_steps, oracle_calls, sequential_calls, vectors_sent] = counts;
    let bytes_sent = 8 * d * vectors_sent;
    Cost { communications, local_steps, oracle_calls, sequential_calls, vectors_sent, bytes_sent }
}

/// The operation in which all clients take `count` local steps of size `step` from the first atom of the state.
pub fn steps(count: u64, step: f64) -> Operation {
    Operation::Steps {
        start: sum([(0, 1.0)]),
        correction: None,
        anchor: None,
        step: PerClient::All(step),
        count: PerClient::All(count),
        batch: PerClient::All(1),
        proximal: 0.0,
        members: false,
        draws: None,
        coin: None,
    }
}

/// The step size of the programs that [`program`] makes.
pub const STEP: f64 = 0.2;

/// A program of four clients in one dimension whose only round repeats; `masks` are the random masks that the round
/// draws. Atom 0 is θ of the server, atom 1 where the clients end after one local step, atom 2 their mean, and the
/// results of the operations `more` follow. The next θ is `next`, which is the estimate too.
pub fn program(masks: Vec<Mask>, more: Vec<Operation>, next: Expression) -> Program {
    let mean = crate::round_program::mean(sum([(1, 1.0)]));
    let mut operations = vec![steps(1, STEP), mean];
    operations.extend(more);
    let round = Round {
        state: vec![Level::Server],
        cohort: None,
        participation: ParticipationScheme::Normalised,
        masks,
        operations,
        next: vec![next.clone()],
        result: next,
        ends: None,
    };
    Program {
        clients: 4,
        dimension: 1,
        rounds: vec![round],
        order: vec![0],
        cycle: 1,
        start_weight: 1.0,
    }
}

/// A program of two kinds of rounds. The next θ is θ̄ + 0.5 z in the first kind and 0.1 θ̄ + 0.6 in the second, where
/// θ̄ is the mean of the clients' ends and z is a standard normal number. Round 1 is of the second kind; from then on
/// the first and the second kind take turns.
pub fn alternating() -> Program {
    let normal = Operation::Normal { level: Level::Server };
    let mut both = program(vec![], vec![normal], sum([(2, 1.0), (3, 0.5)]));
    let next = Expression { constant: Coefficient::Number(0.6), ..sum([(2, 0.1)]) };
    both.rounds.extend(program(vec![], vec![], next).rounds);
    Program { order: vec![1, 0, 1], cycle: 2, ..both }
}

/// The settings that extrapolate two runs of FedAvg on common draws, with H = `local_steps` in the finer one.
pub fn romberg(local_steps: u64, extrapolate: Extrapolate) -> RichardsonRomberg {
    RichardsonRomberg {
        local_steps: Some(local_steps),
        extrapolate,
        points: 2,
        cohort: None,
        participation: ParticipationScheme::Normalised,
        over: Base::Fedavg,
        coupling: Coupling::Common,
    }
}

/// Runs on draws of their own, given as weights and step sizes, each of H = `steps` equal local steps of all
/// clients in each round.
pub fn components(runs: &[(f64, f64)], steps: u64, variates: Variates) -> Vec<Component> {
    let mut components = Vec::new();
    for (copy, &(weight, step)) in (0..).zip(runs) {
        let terms = Terms { variates, ..Terms::fedavg(step, steps) };
        components.push(Component { weight, terms, copy });
    }
    components
}

/// The Euclidean distance ‖x − y‖ of two vectors.
pub fn distance(x: &[f64], y: &[f64]) -> f64 {
    crate::kernel::squared_distance(x, y).sqrt()
}

/// The mean of a sample.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// The standard error of the mean of a sample.
pub fn standard_error(sample: &[f64]) -> f64 {
    let n = sample.len() as f64;
    let mean = mean(sample);
    (sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
}

/// Asserts that the mean of a distribution is `exact`, within 4.5 standard errors of a sample.
pub fn assert_mean(sample: &[f64], exact: f64, what: &str) {
    let off = (mean(sample) - exact).abs();
    let error = standard_error(sample);
    assert!(off <= 4.5 * error + 1e-15, "{what}: off by {off}, standard error {error}");
}
