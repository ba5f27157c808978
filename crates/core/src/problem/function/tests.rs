use super::*;
use crate::client_sampling::{ClientProbabilities, ParticipationScheme};
use crate::federated::{Conditions, Federated, Run, RunsTogether, Schedule, Terms, Together};
use crate::problem::check;
use crate::sample;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of clients of the problems of these tests.
const CLIENTS: usize = 3;

/// What is wrong with functions.
#[derive(Clone, Copy, PartialEq)]
enum Defect {
    None,
    /// Fields differ from call to call.
    Random,
    /// A row's field depends on how many rows there are.
    Joint,
    /// The mean is of another field.
    Mean,
    /// The loss is of another field.
    Loss,
}

/// Records x_ci = (c + 1) sin(i + 1) + i/7 in each coordinate, with the field θ − x, or tanh(θ − x) if it is curved.
struct Sample {
    counts: Vec<usize>,
    dimension: usize,
    curved: bool,
    many_rows: bool,
    defect: Defect,
    /// What is stated as θ*.
    optimum: Option<Vec<f64>>,
    calls: AtomicU64,
}

impl Sample {
    fn new(dimension: usize, curved: bool) -> Self {
        let counts = vec![4, 7, 5];
        let many_rows = true;
        let defect = Defect::None;
        Self {
            counts,
            dimension,
            curved,
            many_rows,
            defect,
            optimum: None,
            calls: AtomicU64::new(0),
        }
    }

    fn sizes(&self) -> FunctionSizes {
        FunctionSizes {
            clients: CLIENTS,
            dimension: self.dimension,
            draws: DrawSpace::Records(self.counts.clone()),
            shares: None,
        }
    }

    fn build(self) -> Result<FunctionProblem, FunctionFault> {
        let sizes = self.sizes();
        FunctionProblem::new(Arc::new(self), sizes)
    }

    fn distance(&self, theta: f64, client: usize, record: u64) -> f64 {
        let i = record as f64;
        theta - (client as f64 + 1.0) * libm::sin(i + 1.0) - i / 7.0
    }
}

impl ProblemFunctions for Sample {
    fn fields(&self, rows: FieldRows<'_>, fields: &mut [f64]) -> Result<(), FunctionError> {
        let FieldRows { thetas, clients, draws } = rows;
        let d = self.dimension;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        for (row, field) in fields.chunks_exact_mut(d).enumerate() {
            for (i, field) in field.iter_mut().enumerate() {
                let apart = self.distance(thetas[row * d + i], clients[row], draws[row]);
                *field = if self.curved { libm::tanh(apart) } else { apart };
                match self.defect {
                    Defect::Random => *field += 1e-12 * call as f64,
                    Defect::Joint => *field += 1e-15 * clients.len() as f64,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn prefers_many_rows(&self) -> bool {
        self.many_rows
    }

    fn mean_fields(
        &self,
        thetas: &[f64],
        clients: &[usize],
        fields: &mut [f64],
    ) -> Result<bool, FunctionError> {
        if self.defect != Defect::Mean {
            return Ok(false);
        }
        fields.iter_mut().zip(thetas).for_each(|(field, theta)| *field = theta - clients[0] as f64);
        Ok(true)
    }

    fn losses(&self, thetas: &[f64], clients: &[usize]) -> Option<Result<Vec<f64>, FunctionError>> {
        let d = self.dimension;
        let rows = thetas.chunks_exact(d).zip(clients);
        let loss = |(theta, &client): (&[f64], &usize)| {
            let mut sum = 0.0;
            for record in 0..self.counts[client] as u64 {
                for &x in theta {
                    let apart = self.distance(x, client, record);
                    sum += if self.curved {
                        libm::log(libm::cosh(apart))
                    } else {
                        0.5 * apart * apart
                    };
                }
            }
            let mean = sum / self.counts[client] as f64;
            if self.defect == Defect::Loss { 2.0 * mean } else { mean }
        };
        Some(Ok(rows.map(loss).collect()))
    }

    fn optimum(&self) -> Option<Result<Vec<f64>, FunctionError>> {
        Some(Ok(self.optimum.clone()?))
    }
}

/// The run with these terms after some rounds.
fn walked<'p>(
    problem: &'p FunctionProblem,
    terms: &Terms,
    from: &Conditions,
) -> Federated<'p, FunctionProblem> {
    let mut run = Federated::new(problem, terms.clone(), from);
    (0..6).for_each(|_| run.round());
    run
}

/// Steps by shared calls have the bits of the loop over the oracle, for all forms of steps, alone and with other runs.
#[test]
fn shared_calls_have_the_bits_of_the_oracle() {
    for dimension in [2, 6] {
        let shared = Sample::new(dimension, true).build().unwrap();
        let looped = Sample { many_rows: false, ..Sample::new(dimension, true) }.build().unwrap();
        assert_equal_runs(&shared, &looped);
    }
}

/// Asserts that runs of two problems have the same bits, for all forms of steps, alone and with other runs.
fn assert_equal_runs(shared: &FunctionProblem, looped: &FunctionProblem) {
    let start = vec![0.5; shared.dim()];
    let from = |replicate| Conditions { seed: 5, replicate, start: &start, rounds: 6, copy: 0 };
    // Nobody takes part in some rounds.
    let coins = ParticipationScheme::Bernoulli(ClientProbabilities::Fraction(0.3));
    let with_coins = Terms { participation: coins, ..Terms::fedavg(0.1, 5) };
    for terms in sample::terms(0.1, 5).into_iter().chain([with_coins]) {
        let of_oracle: Vec<_> = (0..4).map(|r| walked(looped, &terms, &from(r))).collect();
        let alone = walked(shared, &terms, &from(0));
        assert_eq!(alone.estimate(), of_oracle[0].estimate(), "{terms:?}");
        // Steps of a round that differ in their sizes are not taken together.
        if terms.schedule != Schedule::Every || terms.decay_by_step().is_some() {
            continue;
        }
        let all: Vec<_> = (0..4).map(from).collect();
        let mut together = Together::new(shared, &terms, &all);
        (0..6).for_each(|_| together.round());
        for (place, run) in of_oracle.iter().enumerate() {
            assert_eq!(together.run(place).estimate(), run.estimate(), "{terms:?}");
            assert_eq!(together.run(place).cost(), run.cost());
        }
    }
}

/// Records with the loss of margins log cosh m, whose steps are taken in place or by calls of the field.
struct MarginSample {
    records: MarginRecords,
    in_place: bool,
}

impl ProblemFunctions for MarginSample {
    fn fields(&self, rows: FieldRows<'_>, fields: &mut [f64]) -> Result<(), FunctionError> {
        self.records.write_fields(rows, |margins, slopes| self.slopes(margins, slopes), fields)
    }

    fn prefers_many_rows(&self) -> bool {
        self.in_place
    }

    fn margin_records(&self) -> Option<&MarginRecords> {
        self.in_place.then_some(&self.records)
    }

    fn slopes(&self, margins: &[f64], slopes: &mut [f64]) -> Result<(), FunctionError> {
        slopes.iter_mut().zip(margins).for_each(|(slope, &m)| *slope = libm::tanh(m));
        Ok(())
    }

    fn mean_fields(
        &self,
        thetas: &[f64],
        clients: &[usize],
        fields: &mut [f64],
    ) -> Result<bool, FunctionError> {
        let slopes = |margins: &[f64], slopes: &mut [f64]| self.slopes(margins, slopes);
        self.records.write_mean_fields(thetas, clients, slopes, fields)?;
        Ok(true)
    }
}

/// Steps on margins have the bits of the loop over the oracle, in short and in long dimensions.
#[test]
fn steps_on_margins_have_the_bits_of_the_oracle() {
    for dimension in [3, 40] {
        let build = |in_place| {
            let counts = vec![4, 7, 5];
            let numbers = (0..16 * dimension).map(|i| libm::sin(i as f64 + 1.0)).collect();
            let records = MarginRecords::new(numbers, &counts, dimension, 0.3);
            let draws = DrawSpace::Records(counts);
            let sizes = FunctionSizes { clients: CLIENTS, dimension, draws, shares: None };
            FunctionProblem::new(Arc::new(MarginSample { records, in_place }), sizes).unwrap()
        };
        assert_equal_runs(&build(true), &build(false));
    }
}

/// A local step of all clients of all runs is one call.
#[test]
fn a_step_is_one_call() {
    let functions = Arc::new(Sample::new(2, true));
    let problem = FunctionProblem::new(functions.clone(), functions.sizes()).unwrap();
    let start = [0.5, 0.5];
    let from = |replicate| Conditions { seed: 5, replicate, start: &start, rounds: 3, copy: 0 };
    let mut together = Together::new(&problem, &Terms::fedavg(0.1, 7), &[from(0), from(1)]);
    let before = functions.calls.load(Ordering::Relaxed);
    together.round();
    assert_eq!(functions.calls.load(Ordering::Relaxed) - before, 7);
}

#[test]
fn an_affine_field_has_exact_facts() {
    let problem = Sample::new(2, false).build().unwrap();
    assert!(problem.linear() && problem.knows_facts_at_optimum());
    check::agree(&problem, 20_000);
    let roots = (0..CLIENTS).map(|client| problem.local_optimum(client).unwrap()[0]);
    let means: Vec<f64> = roots.collect();
    let mean = means.iter().sum::<f64>() / CLIENTS as f64;
    assert!((problem.optimum()[0] - mean).abs() < 1e-12);
    let gap = problem.suboptimality(&[mean + 1.0, mean]).unwrap();
    assert!((gap - 0.5).abs() < 1e-12, "{gap}");
    let sizes =
        FunctionSizes { shares: Some(vec![1.0, 2.0, 1.0]), ..Sample::new(2, false).sizes() };
    let weighted = FunctionProblem::new(Arc::new(Sample::new(2, false)), sizes).unwrap();
    check::roots(&weighted, 1e-12);
    let expected = 0.25 * means[0] + 0.5 * means[1] + 0.25 * means[2];
    assert!((weighted.optimum()[0] - expected).abs() < 1e-12);
}

/// For a curved field nothing but a stated θ* is known.
#[test]
fn a_curved_field_has_the_optimum_that_is_stated() {
    let unknown = Sample::new(1, true).build().unwrap().with_stated_optimum().unwrap();
    assert!(!unknown.linear() && !unknown.knows_optimum() && unknown.optimum()[0].is_nan());
    assert_eq!(unknown.suboptimality(&[0.0]), None);
    let mean = |theta: f64| {
        let mut sum = 0.0;
        for client in 0..CLIENTS {
            let mut field = [0.0];
            unknown.mean_field(client, &[theta], &mut field);
            sum += field[0];
        }
        sum
    };
    let mut low = -9.0;
    let mut high = 9.0;
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if mean(middle) < 0.0 { low = middle } else { high = middle }
    }
    let stated = |theta: f64| {
        let sample = Sample { optimum: Some(vec![theta]), ..Sample::new(1, true) };
        sample.build().unwrap().with_stated_optimum()
    };
    let problem = stated(low).unwrap();
    assert!(problem.knows_optimum() && !problem.knows_facts_at_optimum());
    assert!(problem.suboptimality(&[low]).unwrap().abs() < 1e-12);
    assert!(problem.suboptimality(&[low + 1.0]).unwrap() > 0.1);
    let said = stated(low + 0.1).err().unwrap().to_string();
    assert!(
        said.starts_with("optimum is not the optimum: the norm of the mean gradient is"),
        "{said}"
    );
    let said = stated(f64::INFINITY).err().unwrap().to_string();
    assert_eq!(said, "optimum must be 1 finite numbers");
}

#[test]
fn functions_that_contradict_themselves_are_refused() {
    for (defect, said) in [
        (Defect::Random, "grad is no function of its arguments: for client 0 and draw"),
        (Defect::Joint, "grad must treat rows independently: row 0 of 23 (client 0, draw"),
        (Defect::Mean, "mean_grad and grad disagree: in coordinate"),
        (Defect::Loss, "value and grad disagree: the derivative of value along a drawn direction"),
    ] {
        let found = Sample { defect, ..Sample::new(3, true) }.build().err().unwrap().to_string();
        assert!(found.starts_with(said), "{found}");
    }
    assert!(Sample { defect: Defect::None, ..Sample::new(3, true) }.build().is_ok());
}

#[test]
fn sizes_that_no_problem_has_are_refused() {
    let refused = |change: &dyn Fn(&mut FunctionSizes)| {
        let sample = Sample::new(2, false);
        let mut sizes = sample.sizes();
        change(&mut sizes);
        FunctionProblem::new(Arc::new(sample), sizes).err().unwrap().to_string()
    };
    let clients = refused(&|sizes| sizes.clients = 0);
    assert_eq!(clients, "clients is 0; it must be from 1 to 268435456");
    assert_eq!(refused(&|sizes| sizes.dimension = 0), "dim is 0; it must be 1 or more");
    let counts =
        |counts: Vec<usize>| refused(&|sizes| sizes.draws = DrawSpace::Records(counts.clone()));
    assert_eq!(counts(vec![1; 2]), "records has 2 numbers; expected one for each of the 3 clients");
    assert_eq!(counts(vec![1, 0, 1]), "client 1 has no records");
    let shares = refused(&|sizes| sizes.shares = Some(vec![1.0, 0.0, 1.0]));
    assert_eq!(shares, "shares must be 3 positive numbers, one for each client");
    let seeds = refused(&|sizes| sizes.draws = DrawSpace::Seeds);
    assert!(seeds.starts_with("without records the mean of grad cannot be computed"), "{seeds}");
}

/// Fields θ − c − z with z uniform on [0, 1) by the seed, in two coordinates, whose mean is stated with this shift.
struct Seeded {
    shift: f64,
}

impl ProblemFunctions for Seeded {
    fn fields(&self, rows: FieldRows<'_>, fields: &mut [f64]) -> Result<(), FunctionError> {
        let FieldRows { thetas, clients, draws } = rows;
        for (i, field) in fields.iter_mut().enumerate() {
            let z = (draws[i / 2] >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
            *field = thetas[i] - clients[i / 2] as f64 - z;
        }
        Ok(())
    }

    fn prefers_many_rows(&self) -> bool {
        true
    }

    fn mean_fields(
        &self,
        thetas: &[f64],
        clients: &[usize],
        fields: &mut [f64],
    ) -> Result<bool, FunctionError> {
        for (i, field) in fields.iter_mut().enumerate() {
            *field = thetas[i] - clients[i / 2] as f64 - 0.5 + self.shift;
        }
        Ok(true)
    }
}

/// The mean over seeds has a random error, so that a small shift is not seen, and one of a few of its standard errors,
/// 0.0045, is.
#[test]
fn means_are_compared_with_drawn_seeds() {
    let build = |shift: f64| {
        let sizes =
            FunctionSizes { clients: CLIENTS, dimension: 2, draws: DrawSpace::Seeds, shares: None };
        FunctionProblem::new(Arc::new(Seeded { shift }), sizes)
    };
    for shift in [0.0, 0.01, -0.01] {
        assert!(build(shift).is_ok(), "{shift}");
    }
    for shift in [0.06, -0.06] {
        let found = build(shift).err().unwrap();
        let FunctionFault::MeanOfDraws { client: 0, coordinate: 0, error, draws, .. } = found
        else {
            panic!("{found}");
        };
        assert!((error * libm::sqrt(12.0 * draws as f64) - 1.0).abs() < 0.05, "{error}");
        assert!(found.to_string().contains("the mean of grad over 4096 draws is"), "{found}");
    }
}
