use super::*;
use crate::kernel::{axpy, dot, squared_distance};
use crate::linalg::Matrix;
use crate::problem::arrays::NoFiles;
use crate::problem::spectrum::Spectrum;
use crate::problem::{Exact, Settings as _, garnet, lms, logistic, quadratic, td};
use crate::theory::linear::RoundMap;

fn quadratic(noise: f64, multiplicative: f64) -> quadratic::Quadratic {
    quadratic::Settings {
        dimension: 3,
        clients: 4,
        spectrum: Spectrum { from: 0.5, to: 2.0 },
        gradient_heterogeneity: 1.5,
        hessian_heterogeneity: 0.3,
        noise,
        multiplicative_noise: multiplicative,
    }
    .build(3, &NoFiles)
    .unwrap()
}

fn lms(noise: f64) -> lms::Lms {
    lms::Settings {
        dimension: 2,
        clients: 5,
        spectrum: Spectrum { from: 0.5, to: 2.0 },
        covariances: lms::Covariances::Rotated,
        model_spread: 0.4,
        noise,
    }
    .build(2, &NoFiles)
    .unwrap()
}

fn garnet() -> td::Td {
    garnet::Settings {
        states: 10,
        actions: 2,
        branching: 2,
        features: 3,
        discount: 0.5,
        clients: 3,
        heterogeneity: garnet::Heterogeneity::Independent {},
        policy: garnet::Policy::Uniform,
        noise: td::Noise::Independent,
    }
    .build(5, &NoFiles)
    .unwrap()
}

fn setup(step_size: f64, local_steps: u64, rounds: u64) -> RunSetup {
    RunSetup { step_size, local_steps, rounds, start_sq_error: 4.0, cohort: None }
}

/// Second moments of (θ − θ*, 1) under FedAvg, closed, with
/// ‖θ_0 − θ*‖² as the setup has it.
struct Exactly {
    moments: Matrix,
    d: usize,
}

impl Exactly {
    fn start(d: usize, square: f64) -> Self {
        let mut z = vec![libm::sqrt(square / d as f64); d];
        z.push(1.0);
        let mut moments = Matrix::zeros(d + 1, d + 1);
        moments.add_outer(1.0, &z, &z);
        Self { moments, d }
    }

    fn round(&mut self, facts: &dyn Facts, step: f64, steps: u64) {
        let (d, n) = (self.d, facts.clients());
        let mut sum = Matrix::zeros(d + 1, d + 1);
        let mut means = Matrix::zeros(d + 1, d + 1);
        for c in 0..n {
            let (jacobian, mut field) = (facts.jacobian(c), vec![0.0; d]);
            facts.mean_field(c, facts.optimum(), &mut field);
            let one = Matrix::from_fn(d + 1, d + 1, |i, j| {
                let unit = f64::from(u8::from(i == j));
                match (i == d, j == d) {
                    (true, _) => unit,
                    (false, true) => -step * field[i],
                    (false, false) => unit - step * jacobian[(i, j)],
                }
            });
            let mut s = self.moments.clone();
            for _ in 0..steps {
                let noise = facts.noise_map(c, &s).unwrap();
                let moved = one.times(&s).times(&one.transpose());
                s = Matrix::from_fn(d + 1, d + 1, |i, j| {
                    let noise = if i < d && j < d { noise[(i, j)] } else { 0.0 };
                    moved[(i, j)] + step * step * noise
                });
            }
            let all = one.power(steps);
            sum = sum.plus(1.0, &s);
            sum = sum.plus(-1.0, &all.times(&self.moments).times(&all.transpose()));
            means = means.plus(1.0, &all);
        }
        let together = means.times(&self.moments).times(&means.transpose());
        self.moments = sum.plus(1.0, &together).scaled(1.0 / (n * n) as f64);
    }

    fn sq_error(&self) -> f64 {
        (0..self.d).map(|i| self.moments[(i, i)]).sum()
    }

    fn sq_error_around(&self, point: &[f64]) -> f64 {
        let along: f64 = (0..self.d).map(|i| self.moments[(i, self.d)] * point[i]).sum();
        self.sq_error() - 2.0 * along + dot(point, point)
    }
}

/// Every proved bound of FedAvg against exact moments; the names of those whose
/// conditions held.
fn bounds_hold(facts: &dyn Facts, step: f64, steps: u64) -> Vec<&'static str> {
    let constants = Constants::new(facts).unwrap();
    let bias = RoundMap::new(facts, step, steps).unwrap().bias().unwrap();
    let mut exactly = Exactly::start(facts.dim(), 4.0);
    let mut names = Vec::new();
    for t in 0..150 {
        for bound in all(facts, &constants, Algorithm::FedAvg, &setup(step, steps, t)) {
            let Ok(value) = bound.value else { continue };
            let have = match bound.quantity {
                Bounded::SqError => exactly.sq_error(),
                Bounded::LimitSqError => exactly.sq_error_around(&bias),
                Bounded::Bias => libm::sqrt(dot(&bias, &bias)),
                Bounded::Lyapunov => unreachable!(),
            };
            let rounding = 1e-12 * (1.0 + have);
            let holds = have <= value + rounding;
            assert!(
                holds || !bound.proved,
                "{} at {step}, {steps}, {t}: {have} > {value}",
                bound.name
            );
            names.push(bound.name);
        }
        exactly.round(facts, step, steps);
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn fedavg_stays_below_its_bounds() {
    let mut names = Vec::new();
    for (step, steps) in [(0.1, 1), (0.05, 4), (0.02, 10), (0.002, 100), (0.001, 10)] {
        for problem in [quadratic(0.5, 0.0), quadratic(0.5, 0.3), quadratic(0.0, 0.0)] {
            names.extend(bounds_hold(&problem, step, steps));
        }
        names.extend(bounds_hold(&lms(0.3), step, steps));
        names.extend(bounds_hold(&garnet(), step, steps));
    }
    for name in [
        "SCAFFLSA, Theorem A.5",
        "RR, Proposition 2",
        "RR, Corollary 1",
        "RR, Theorem 2",
        "RR (second version), Lemma 7",
        "RR (second version), Proposition 4",
        "BOOK, Theorem 5.1",
    ] {
        assert!(names.contains(&name), "{name} was never evaluated");
    }
    let td = bounds_hold(&garnet(), 0.05, 4);
    assert_eq!(td, ["SCAFFLSA, Theorem A.5"]);
}

/// With two runs of independent noise and of the same start.
#[test]
fn richardson_romberg_stays_below_theorem_5() {
    let problem = quadratic(0.5, 0.0);
    let constants = Constants::new(&problem).unwrap();
    let (step, steps) = (0.005, 20);
    let mut runs = [Exactly::start(3, 4.0), Exactly::start(3, 4.0)];
    for t in 0..200 {
        let bound =
            &all(&problem, &constants, Algorithm::RichardsonRomberg, &setup(step, steps, t))[0];
        let mean = |run: &Exactly| (0..3).map(|i| run.moments[(i, 3)]).collect::<Vec<f64>>();
        let (near, far) = (mean(&runs[0]), mean(&runs[1]));
        let spread = |run: &Exactly, mean: &[f64]| run.sq_error_around(mean);
        let mut left: Vec<f64> = near.iter().map(|x| 2.0 * x).collect();
        axpy(-1.0, &far, &mut left);
        let have = dot(&left, &left) + 4.0 * spread(&runs[0], &near) + spread(&runs[1], &far);
        assert!(have <= *bound.value.as_ref().unwrap(), "{t}: {have} {bound:?}");
        runs[0].round(&problem, step, steps);
        runs[1].round(&problem, 2.0 * step, steps);
    }
}

/// Scaffold without noise, by its definition.
#[test]
fn scaffold_stays_below_theorem_b5() {
    let problem = Exact::new(quadratic(0.0, 0.0));
    let constants = Constants::new(&problem).unwrap();
    let (step, steps, n, d) = (0.0005, 4, 4, 3);
    let mut theta: Vec<f64> = problem.optimum().iter().map(|x| x + libm::sqrt(4.0 / 3.0)).collect();
    let mut variates = vec![vec![0.0; d]; n];
    let length = step * steps as f64;
    for t in 0..300 {
        let bound = &all(&problem, &constants, Algorithm::Scaffold, &setup(step, steps, t))[0];
        let mut psi = squared_distance(&theta, problem.optimum());
        let mut mean = vec![0.0; d];
        let (mut ends, mut field) = (Vec::new(), vec![0.0; d]);
        for (c, variate) in variates.iter().enumerate() {
            problem.mean_field(c, problem.optimum(), &mut field);
            axpy(1.0, variate, &mut field);
            psi += length * length * dot(&field, &field) / n as f64;
            let mut local = theta.clone();
            for _ in 0..steps {
                problem.mean_field(c, &local, &mut field);
                axpy(1.0, variate, &mut field);
                axpy(-step, &field, &mut local);
            }
            axpy(1.0 / n as f64, &local, &mut mean);
            ends.push(local);
        }
        for (variate, end) in variates.iter_mut().zip(&ends) {
            axpy(1.0 / length, end, variate);
            axpy(-1.0 / length, &mean, variate);
        }
        let value = *bound.value.as_ref().unwrap();
        assert!(
            psi <= value * (1.0 + 1e-12) && bound.quantity == Bounded::Lyapunov,
            "{psi} {value}"
        );
        theta = mean;
    }
}

/// SCAFFLSA B.4 mended: A = aI, p² = z = 2ηa − η²a², and
/// E ψ_K = (1 − z)^K ψ_0 + (1 − (1 − z)^K) η²σ/z.
#[test]
fn the_scalar_example_stays_below_theorem_b2() {
    let problem = quadratic::Settings {
        dimension: 1,
        clients: 4,
        spectrum: Spectrum { from: 1.0, to: 1.0 },
        gradient_heterogeneity: 0.7,
        hessian_heterogeneity: 0.0,
        noise: 1.0,
        multiplicative_noise: 0.0,
    }
    .build(1, &NoFiles)
    .unwrap();
    let constants = Constants::new(&problem).unwrap();
    let eta = 0.05_f64;
    let z = 2.0 * eta - eta * eta;
    assert!((eta * eta / z - 0.025_641).abs() < 1e-6);
    let start = 4.0 + eta * eta / z * 0.49;
    for k in [0, 1, 10, 100, 1000] {
        let gone = libm::pow(1.0 - z, k as f64);
        let exact = gone * start + (1.0 - gone) * eta * eta / z;
        let algorithm = Algorithm::Coin { probability: libm::sqrt(z) };
        let bound = &all(&problem, &constants, algorithm, &setup(eta, 1, k))[0];
        let value = *bound.value.as_ref().unwrap();
        assert!(exact <= value && value < 4.0 * exact + 0.5, "{k}: {exact} {value}");
    }
}

#[test]
fn constants_of_a_quadratic_are_those_it_was_made_with() {
    let constants = Constants::new(&quadratic(0.5, 0.3)).unwrap();
    assert!(constants.linear && constants.gradient);
    let moments = constants.moments().unwrap();
    for (have, want) in [
        (constants.zeta1(), 1.5),
        (constants.zeta2(), 0.3),
        (constants.mean_curvature, 0.5),
        (constants.mean_norm, 2.0),
        (constants.sigma_omega(), 0.75 + 0.09 * 2.25),
        (moments.sigma_epsilon, 0.75),
        (moments.cocoercivity, 1.09 * constants.norm()),
        (moments.worst, 1.09 * constants.norm() * constants.norm()),
    ] {
        assert!((have - want).abs() < 1e-9, "{have} {want}");
    }
    for client in &constants.clients {
        let noise = client.noise.unwrap();
        assert!((noise.multiplicative - 0.09 * client.norm * client.norm).abs() < 1e-9);
        assert!((noise.beta2 - noise.multiplicative).abs() < 1e-9 && noise.sigma2 > 0.749);
    }
}

#[test]
fn td_is_no_gradient() {
    let problem = garnet();
    let own = Constants::new(&problem).unwrap();
    assert!(own.linear && !own.gradient);
}

#[test]
fn what_fails_is_said() {
    let problem = quadratic(0.5, 0.3);
    let constants = Constants::new(&problem).unwrap();
    let bound =
        |algorithm, setup: &RunSetup| all(&problem, &constants, algorithm, setup)[0].clone();
    let unmet = bound(Algorithm::Scaffold, &setup(0.1, 100, 1)).value.unwrap_err();
    let conditions: Vec<&str> = unmet.iter().map(|u| u.condition.as_str()).collect();
    assert_eq!(conditions, ["ηaH ≤ 1", "η ≤ a/(16H max(‖Ā_c‖² + ‖Σ_Ã‖))", "ηH ≤ 1"]);
    assert!(unmet.iter().all(|u| u.have > u.need));
    let partial = RunSetup { cohort: Some(2), ..setup(0.01, 2, 1) };
    let unmet = bound(Algorithm::FedAvg, &partial).value.unwrap_err();
    assert_eq!(unmet[0].condition, "every client takes part in every round");
    let unmet = bound(Algorithm::Coin { probability: 0.0 }, &setup(0.9, 1, 1)).value.unwrap_err();
    assert_eq!(unmet.len(), 2);
    let noisy = &all(&problem, &constants, Algorithm::FedAvg, &setup(0.01, 2, 1));
    let corollary = noisy.iter().find(|b| b.name == "RR, Corollary 1").unwrap();
    assert_eq!(corollary.value.as_ref().unwrap_err()[0].condition, "fields are exact");
}

/// On a field that is not linear the constants are those at θ*.
#[test]
fn no_bound_is_drawn_on_a_logistic_field() {
    let problem = logistic::Settings {
        dimension: 3,
        records: 50,
        clients: 5,
        data: logistic::Data::Noisy { spread: 1.0, separation: 1.0 },
        split: logistic::SharedRecords::Own,
        l2: 0.1,
        margin: 0.0,
        batch: 1,
    }
    .build(1, &NoFiles)
    .unwrap();
    let constants = Constants::new(&problem).unwrap();
    assert!(!constants.linear && constants.gradient && constants.moments().is_none());
    for bound in all(&problem, &constants, Algorithm::FedAvg, &setup(0.01, 2, 1)) {
        let unmet = bound.value.unwrap_err();
        assert!(unmet[0].condition.starts_with("the field is linear"), "{unmet:?}");
    }
}

/// RR Proposition 4 of 002 halves Theorem 2's bound; instances above the half.
#[test]
fn the_halved_bound_of_rr_fails_and_the_whole_holds() {
    let mut most = 0.0_f64;
    for seed in 0..200 {
        let problem = quadratic::Settings {
            dimension: 2,
            clients: 2,
            spectrum: Spectrum { from: 1.0, to: 1.0 },
            gradient_heterogeneity: 1.0,
            hessian_heterogeneity: 0.01,
            noise: 0.0,
            multiplicative_noise: 0.0,
        }
        .build(seed, &NoFiles)
        .unwrap();
        let constants = Constants::new(&problem).unwrap();
        for steps in [2, 3, 10, 50] {
            let setup = setup(1.0 / (1.02 * steps as f64), steps, 1);
            let bias = RoundMap::new(&problem, setup.step_size, steps).unwrap().bias().unwrap();
            let bound = richardson_romberg::theorem_2(&constants, &setup).value.unwrap();
            most = most.max(libm::sqrt(dot(&bias, &bias)) / bound);
        }
    }
    assert!(most > 0.5 && most < 1.0, "{most}");
}

#[test]
fn unequal_work_and_cohorts_enter_the_noise_of_the_book() {
    let constants = Constants::new(&lms(0.3)).unwrap();
    let whole = book::gradient_noise(&constants, &|_| 4, 5).unwrap();
    let part = book::gradient_noise(&constants, &|_| 4, 2).unwrap();
    let less = book::gradient_noise(&constants, &|_| 1, 5).unwrap();
    assert!(part.sigma2 > whole.sigma2 && part.beta2 > whole.beta2);
    assert!((less.sigma2 - 4.0 * whole.sigma2).abs() < 1e-12);
    let setup = RunSetup { cohort: Some(2), ..setup(1e-4, 3, 1_000_000_000) };
    let bound = |steps: &[u64]| book::unequal(&constants, &setup, steps).value.unwrap();
    let (equal, mixed) = (bound(&[3; 5]), bound(&[1, 2, 3, 4, 5]));
    assert!(mixed != equal && mixed > 0.0);
    let leading = book::leading(&constants, &setup).value.unwrap();
    assert!(equal < leading && equal > 0.2 * leading, "{equal} {leading}");
}

#[test]
fn squares_contract() {
    assert_eq!(contraction(0.5, 0.2, 10, 0), 1.0);
    assert!((contraction(0.5, 0.2, 10, 3) - libm::pow(0.9, 30.0)).abs() < 1e-15);
    assert_eq!(contraction(2.0, 0.5, 1, 1), 0.0);
}

/// SCAFFLSA (26) without the factor ‖Ā_c‖², as printed, and with it.
#[test]
fn the_printed_bound_of_rho_fails_and_the_mended_one_holds() {
    let problem = quadratic::Settings {
        dimension: 2,
        clients: 2,
        spectrum: Spectrum { from: 20.0, to: 20.0 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 5.0,
        noise: 0.0,
        multiplicative_noise: 0.0,
    }
    .build(1, &NoFiles)
    .unwrap();
    let constants = Constants::new(&problem).unwrap();
    let length = 2.0 * 1e-3;
    let rho = RoundMap::new(&problem, 1e-3, 2).unwrap().rho;
    let have = libm::sqrt(dot(&rho, &rho));
    let growth = libm::exp(length * constants.norm());
    let apart: f64 = constants.clients.iter().map(|c| c.distance / 2.0).sum();
    assert!(have > length * length * growth * apart, "{have}");
    let mended: f64 = constants.clients.iter().map(|c| c.norm * c.norm * c.distance / 2.0).sum();
    assert!(have < 0.5 * length * length * growth * mended, "{have}");
}
