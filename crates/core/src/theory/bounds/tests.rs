use super::*;
use crate::federated::{Learning, Variates};
use crate::kernel::{dot, squared_distance};
use crate::linalg::Matrix;
use crate::moments::ExactMoments;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum;
use crate::problem::spectrum::Spectrum;
use crate::problem::{Exact, Facts, garnet, lms, logistic, td};
use crate::rng::Stream;
use crate::round_program::LocalUpdate;
use crate::sample;
use crate::sources::StatedAlgorithm::{self, FedAvg, RandomScaffold, RichardsonRomberg, Scaffold};
use crate::theory::bounds::scafflsa::BoundForm::{Corrected, Printed};
use crate::theory::deterministic;
use crate::theory::exact::Moments;
use crate::theory::linear::RoundMap;

/// Four clients whose optima and Hessians differ, with this noise.
fn quadratic(noise: f64, multiplicative_noise: f64) -> Quadratic {
    let settings = quadratic::Settings {
        gradient_heterogeneity: 1.5,
        hessian_heterogeneity: 0.3,
        noise,
        multiplicative_noise,
        ..sample::quadratic(4)
    };
    sample::build(&settings, 3)
}

/// Two clients in two dimensions, without noise.
fn pair(a: f64, gradient_heterogeneity: f64, hessian_heterogeneity: f64, seed: u64) -> Quadratic {
    let base = sample::isotropic(2, 2, a);
    let settings = quadratic::Settings { gradient_heterogeneity, hessian_heterogeneity, ..base };
    sample::build(&settings, seed)
}

/// Least mean squares of five clients with covariances of their own: the problem of BOOK.
fn lms() -> lms::Lms {
    let settings = lms::Settings {
        dimension: 2,
        clients: 5,
        spectrum: Spectrum { from: 0.5, to: 2.0 },
        covariances: lms::Covariances::Rotated,
        model_spread: 0.4,
        noise: 0.3,
    };
    sample::build(&settings, 2)
}

/// TD(0) on three independent environments: a linear field that is no gradient.
fn garnet() -> td::Td {
    let base = sample::garnet(garnet::Heterogeneity::Independent {}, 3);
    sample::build(&garnet::Settings { branching: 2, features: 3, discount: 0.5, ..base }, 5)
}

/// Exact moments of rounds 0 to `rounds` − 1 of runs of independent noise, given as weights
/// and step sizes, with ‖θ_0 − θ*‖² as `PublishedRun::even` has it.
fn moments(
    facts: &dyn Facts,
    runs: &[(f64, f64)],
    steps: u64,
    variates: Variates,
    rounds: u64,
) -> Vec<Moments> {
    let components = sample::components(runs, steps, variates);
    let apart = libm::sqrt(4.0 / facts.dim() as f64);
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + apart).collect();
    let rounds: Vec<u64> = (0..rounds).collect();
    ExactMoments::new(facts, &components).unwrap().at_rounds(&start, &rounds, None).unwrap()
}

/// Asserts that exact moments are at most every proved bound of an algorithm whose conditions hold. Returns the names
/// of all bounds whose conditions hold, proved or not.
fn bounds_hold(
    facts: &dyn Facts,
    algorithm: StatedAlgorithm,
    step: f64,
    steps: u64,
) -> Vec<&'static str> {
    let constants = Constants::new(facts).unwrap();
    let bias = RoundMap::new(facts, step, steps).unwrap().bias().unwrap();
    // Two runs of independent noise and of the same start.
    let extrapolated = [(2.0, step), (-1.0, 2.0 * step)];
    let (runs, correction) = match algorithm {
        RichardsonRomberg => (&extrapolated[..], Variates::None),
        Scaffold => (&[(1.0, step)][..], Variates::Kept(Learning::OptionTwo)),
        _ => (&[(1.0, step)][..], Variates::None),
    };
    let mut names = Vec::new();
    for moments in moments(facts, runs, steps, correction, 300) {
        let t = moments.round;
        for bound in
            PublishedRun::even(facts, &constants, algorithm, step, steps, t).listed_bounds()
        {
            let Ok(value) = bound.value else { continue };
            let have = match bound.info.quantity {
                Bounded::SqError => moments.sq_error,
                Bounded::LimitSqError => {
                    moments.covariance.trace() + sample::distance(&moments.mean, &bias).powi(2)
                }
                Bounded::Bias => libm::sqrt(dot(&bias, &bias)),
                Bounded::Lyapunov => moments.lyapunov.unwrap(),
            };
            let holds = have <= value + 1e-12 * (1.0 + have);
            assert!(
                holds || !bound.info.proved,
                "{} at {step}, {steps}, {t}: {have} > {value}",
                bound.info.name
            );
            names.push(&*bound.info.name);
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// No proved bound is exceeded, on quadratics with and without noise, on least mean squares and on TD(0). Each bound
/// that the test names is evaluated somewhere, and on TD(0), whose field is no gradient, only SCAFFLSA's Theorem 4.1
/// is.
#[test]
fn algorithms_stay_below_their_bounds() {
    let mut names = Vec::new();
    for (step, steps) in [(0.1, 1), (0.05, 4), (0.02, 10), (0.002, 100), (0.001, 10)] {
        let quadratics = [(0.5, 0.0), (0.5, 0.3), (0.0, 0.0)].map(|(a, b)| quadratic(a, b));
        let [first, second, third] = &quadratics;
        for problem in [first as &dyn Facts, second, third, &lms(), &garnet()] {
            names.extend(bounds_hold(problem, FedAvg, step, steps));
        }
    }
    names.extend(bounds_hold(&quadratic(0.5, 0.0), RichardsonRomberg, 0.005, 20));
    names.extend(bounds_hold(&Exact::new(quadratic(0.0, 0.0)), Scaffold, 0.0005, 4));
    for name in [
        "SCAFFLSA, Theorem 4.1 (A.5)",
        "SCAFFLSA, Theorem 5.3 (B.5)",
        "RR, Proposition 2",
        "RR, Corollary 1",
        "RR, Theorem 2",
        "RR (second version), Lemma 7",
        "RR (second version), Proposition 4",
        "RR (second version), Theorem 5",
        "BOOK, Theorem 5.1",
    ] {
        assert!(names.contains(&name), "{name} was never evaluated");
    }
    let td = bounds_hold(&garnet(), FedAvg, 0.05, 4);
    assert_eq!(td, ["SCAFFLSA, Theorem 4.1 (A.5)"]);
}

/// The corrected equality of SCAFFLSA B.4 has the value that follows from its recursion, ψ ← (1 − p²)ψ + η², which is
/// below the bound of Theorem B.2. The printed form is above it.
#[test]
fn the_scalar_example_stays_below_theorem_b2() {
    let base = sample::isotropic(4, 1, 1.0);
    let settings = quadratic::Settings { gradient_heterogeneity: 0.7, noise: 1.0, ..base };
    let problem = sample::build(&settings, 1);
    let constants = Constants::new(&problem).unwrap();
    let eta = 0.05_f64;
    let z = 2.0 * eta - eta * eta;
    assert!((eta * eta / z - 0.025_641).abs() < 1e-6);
    let start = 4.0 + eta * eta / z * 0.49;
    for k in [0, 1, 10, 100, 1000] {
        let gone = libm::pow(1.0 - z, k as f64);
        let exact = gone * start + (1.0 - gone) * eta * eta / z;
        let p = libm::sqrt(z);
        let run = |p| PublishedRun {
            probability: Some(p),
            ..PublishedRun::even(&problem, &constants, RandomScaffold, eta, 1, k)
        };
        let equality = |p, form| scafflsa::theorem_b4(&run(p), form).unwrap();
        assert!((equality(p, Corrected).unwrap() / exact - 1.0).abs() < 1e-12);
        assert!(equality(p, Printed).unwrap() > 1.005 * exact);
        assert_eq!(equality(0.9 * p, Corrected).unwrap_err()[0].condition, "p² = 2ηa − η²a²");
        let bound = &run(p).listed_bounds()[0];
        let value = *bound.value.as_ref().unwrap();
        assert!(exact <= value && value < 4.0 * exact + 0.5, "{k}: {exact} {value}");
    }
}

/// Eigenvalues from 0.5 to 2 in three dimensions, ζ₁ = 1.5, ζ₂ = 0.3, additive noise of standard deviation 0.5 in each
/// direction, and multiplicative noise of 0.3, which adds 0.3² = 0.09 times the square of the gradient.
#[test]
fn constants_of_a_quadratic_are_those_it_was_made_with() {
    let td = Constants::new(&garnet()).unwrap();
    assert!(td.linear && !td.gradient);
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

/// A bound whose conditions a run does not meet has, in place of a value, all conditions that fail, with their sides.
#[test]
fn what_fails_is_said() {
    let problem = quadratic(0.5, 0.3);
    let constants = Constants::new(&problem).unwrap();
    let run = |algorithm, step, steps| {
        PublishedRun::even(&problem, &constants, algorithm, step, steps, 1)
    };
    let unmet = |run: PublishedRun<'_>| run.listed_bounds().remove(0).value.unwrap_err();
    let found = unmet(run(Scaffold, 0.1, 100));
    let conditions: Vec<&str> = found.iter().map(|u| u.condition.as_str()).collect();
    assert_eq!(conditions, ["ηaH ≤ 1", "η ≤ a/(16H max(‖Ā_c‖² + ‖Σ_Ã‖))", "ηH ≤ 1"]);
    assert!(found.iter().all(|u| u.have > u.need));
    let partial = PublishedRun { cohort: Some(2), ..run(FedAvg, 0.01, 2) };
    assert_eq!(unmet(partial)[0].condition, "every client takes part in every round");
    let coin = run(RandomScaffold, 0.9, 1);
    assert_eq!(unmet(PublishedRun { probability: Some(0.0), ..coin }).len(), 2);
    let noisy = run(FedAvg, 0.01, 2).listed_bounds();
    let corollary = noisy.iter().find(|b| b.info.name == "RR, Corollary 1").unwrap();
    assert_eq!(corollary.value.as_ref().unwrap_err()[0].condition, "fields are exact");
}

/// On a field that is not linear the constants are those at θ*.
#[test]
fn no_bound_is_drawn_on_a_logistic_field() {
    let data = logistic::Data::Noisy { spread: 1.0, separation: 1.0 };
    let problem = sample::build(&logistic::Settings { data, ..sample::blobs() }, 1);
    let constants = Constants::new(&problem).unwrap();
    assert!(!constants.linear && constants.gradient && constants.moments().is_none());
    let run = PublishedRun::even(&problem, &constants, FedAvg, 0.01, 2, 1);
    for bound in run.listed_bounds() {
        let unmet = bound.value.unwrap_err();
        let first = unmet[0].condition.as_str();
        let deterministic =
            bound.info.name == "RR, Proposition 2" || bound.info.name == "RR, Corollary 1";
        let expected = if deterministic { "fields are exact" } else { "the field is linear" };
        assert!(first.starts_with(expected), "{unmet:?}");
    }
}

/// Without noise RR's Proposition 2 and Corollary 1 hold on logistic fields, by μ and L that
/// hold at every θ.
#[test]
fn deterministic_bounds_hold_on_a_logistic_field() {
    let problem = Exact::new(sample::build(&sample::blobs(), 1));
    let constants = Constants::new(&problem).unwrap();
    let (mu, l) = constants.everywhere.unwrap();
    assert!(mu <= constants.curvature() && l >= constants.norm());
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    for (step, steps) in [(0.05, 2), (0.1, 10)] {
        let update = |_| LocalUpdate::of_steps(step, steps);
        let limit = deterministic::fixed_point(&problem, update).unwrap();
        let run = |rounds| PublishedRun {
            start_sq_error: problem.dim() as f64,
            ..PublishedRun::even(&problem, &constants, FedAvg, step, steps, rounds)
        };
        let bias = sample::distance(&limit, problem.optimum());
        let bound = richardson_romberg::proposition_2(&run(0)).unwrap();
        assert!(bias > 0.0 && bias <= bound, "{bias} {bound}");
        let mut theta = start.clone();
        for t in 0..100 {
            let have = squared_distance(&theta, problem.optimum());
            let bound = richardson_romberg::corollary_1(&run(t)).unwrap();
            assert!(have <= bound, "{t}: {have} {bound}");
            theta = deterministic::round(&problem, &theta, &update);
        }
    }
}

/// RR Proposition 2: the printed expression lacks −γ and a factor of every product.
#[test]
fn the_identity_of_proposition_2_holds_as_mended() {
    let problem = quadratic(0.5, 0.0);
    let norm = |x: &[f64]| libm::sqrt(dot(x, x));
    for (step, steps) in [(0.1, 1), (0.1, 2), (0.05, 7), (1e-4, 4)] {
        let bias = RoundMap::new(&problem, step, steps).unwrap().bias().unwrap();
        let found = |printed| richardson_romberg::identity(&problem, step, steps, printed);
        let printed = true;
        let mended = found(!printed).unwrap();
        let apart = sample::distance(&mended, &bias);
        assert!(apart <= 1e-6 * norm(&bias) + 1e-13, "{step} {steps}: {apart}");
        if steps == 1 {
            assert!(found(printed).is_none());
            continue;
        }
        // With the factor −γ: γ((H − 2)/2) b_h to first order instead of γ((H − 1)/2) b_h.
        let ratio = step * norm(&found(printed).unwrap()) / norm(&bias);
        match (steps, step) {
            (2, _) => assert!(ratio < 1e-9, "{ratio}"),
            (4, _) => assert!((ratio - 2.0 / 3.0).abs() < 1e-3, "{ratio}"),
            _ => assert!(ratio < 0.95, "{ratio}"),
        }
    }
}

/// RR Lemma 5 and its Remark 2: only ∇f_c(θ*) = 0 matters, and no common Hessian. There is no
/// bias then, and the error is of order γ.
#[test]
fn lemma_5_needs_common_optima_alone() {
    let base = sample::quadratic(4);
    for multiplicative_noise in [0.0, 0.5] {
        let hessians = quadratic::Settings { hessian_heterogeneity: 0.4, noise: 1.0, ..base };
        let settings = quadratic::Settings { multiplicative_noise, ..hessians };
        let problem = sample::build(&settings, 3);
        let names = bounds_hold(&problem, FedAvg, 0.05, 5);
        assert!(names.contains(&"RR, Lemma 5"), "{names:?}");
        let bias = RoundMap::new(&problem, 0.05, 5).unwrap().bias().unwrap();
        assert!(dot(&bias, &bias) < 1e-24);
    }
    let apart = bounds_hold(&quadratic(0.5, 0.0), FedAvg, 0.05, 4);
    assert!(!apart.contains(&"RR, Lemma 5"));
}

/// RR Proposition 4 of 002 halves Theorem 2's bound; instances above the half.
#[test]
fn the_halved_bound_of_rr_fails_and_the_whole_holds() {
    let mut most = 0.0_f64;
    for seed in 0..200 {
        let problem = pair(1.0, 1.0, 0.01, seed);
        let constants = Constants::new(&problem).unwrap();
        for steps in [2, 3, 10, 50] {
            let step = 1.0 / (1.02 * steps as f64);
            let bias = RoundMap::new(&problem, step, steps).unwrap().bias().unwrap();
            let run = PublishedRun::even(&problem, &constants, FedAvg, step, steps, 1);
            let bound = richardson_romberg::theorem_2(&run).unwrap();
            most = most.max(libm::sqrt(dot(&bias, &bias)) / bound);
        }
    }
    assert!(most > 0.5 && most < 1.0, "{most}");
}

/// Fewer participating clients and fewer local steps make the gradient noise of a round larger, unequal numbers of
/// local steps change Theorem 5.1, and its value is at most the leading terms that BOOK prints, and not far below.
#[test]
fn unequal_work_and_cohorts_enter_the_noise_of_the_book() {
    let problem = lms();
    let constants = Constants::new(&problem).unwrap();
    let run = |local_steps: &[u64], cohort| PublishedRun {
        local_steps: local_steps.to_vec(),
        cohort,
        ..PublishedRun::even(&problem, &constants, FedAvg, 1e-4, 3, 1_000_000_000)
    };
    let noise = |steps, cohort| book::gradient_noise(&run(&[steps], cohort)).unwrap();
    let whole = noise(4, None);
    let part = noise(4, Some(2));
    let less = noise(1, None);
    assert!(part.0 > whole.0 && part.1 > whole.1);
    assert!((less.1 - 4.0 * whole.1).abs() < 1e-12);
    let bound = |steps: &[u64]| book::theorem_5_1(&run(steps, Some(2))).unwrap();
    let equal = bound(&[3]);
    let mixed = bound(&[1, 2, 3, 4, 5]);
    assert!(mixed != equal && mixed > 0.0);
    let leading = book::leading(&run(&[3], Some(2))).unwrap();
    assert!(equal < leading && equal > 0.2 * leading, "{equal} {leading}");
}

/// (1 − γμ)^{Ht} is 1 before the first round, and 0 where γμ = 1. It is known up to γL = 1 for FedAvg and up to
/// γHL = 1 for Scaffold, where all clients take the same number of single draws; here μ = L = 2.
#[test]
fn squares_contract_where_the_conditions_hold() {
    let problem = sample::build(&sample::isotropic(3, 1, 2.0), 1);
    let constants = Constants::new(&problem).unwrap();
    let run = |algorithm, step, steps, rounds| {
        PublishedRun::even(&problem, &constants, algorithm, step, steps, rounds)
    };
    let factor = |run: PublishedRun<'_>| contraction(&run);
    assert_eq!(factor(run(FedAvg, 0.1, 10, 0)), Some(1.0));
    assert!((factor(run(FedAvg, 0.1, 10, 3)).unwrap() - libm::pow(0.8, 30.0)).abs() < 1e-15);
    assert_eq!(factor(run(FedAvg, 0.51, 1, 1)), None);
    let scaffold = factor(run(StatedAlgorithm::Scaffold, 0.1, 4, 3)).unwrap();
    assert!((scaffold - libm::pow(0.8, 12.0)).abs() < 1e-15);
    assert_eq!(factor(run(StatedAlgorithm::Scaffold, 0.1, 6, 3)), None);
    for other in [StatedAlgorithm::RandomScaffold, StatedAlgorithm::RichardsonRomberg] {
        assert_eq!(factor(run(other, 0.1, 4, 3)), None);
    }
    let plain = || run(FedAvg, 0.1, 4, 3);
    assert_eq!(factor(PublishedRun { cohort: Some(2), ..plain() }), None);
    assert_eq!(factor(PublishedRun { batches: vec![2], ..plain() }), None);
    assert_eq!(factor(PublishedRun { local_steps: vec![1, 4, 4], ..plain() }), None);
}

/// μ is the least of the clients' functions, which is below that of their mean.
#[test]
fn squares_contract_as_those_of_the_least_convex_client() {
    let settings =
        quadratic::Settings { hessian_heterogeneity: 0.2, ..sample::isotropic(2, 2, 1.0) };
    let problem = sample::build(&settings, 1);
    let constants = Constants::new(&problem).unwrap();
    let least = constants.curvature();
    assert!(least < constants.mean_curvature - 0.05, "{least}");
    let run = PublishedRun::even(&problem, &constants, FedAvg, 0.25, 1, 1);
    assert!((contraction(&run).unwrap() - (1.0 - 0.25 * least)).abs() < 1e-15);
}

/// A run of FedAvg of one round, which starts at θ*.
fn one_round<'a>(
    facts: &'a dyn Facts,
    constants: &'a Constants,
    step: f64,
    steps: u64,
) -> PublishedRun<'a> {
    let run = PublishedRun::even(facts, constants, FedAvg, step, steps, 1);
    PublishedRun { start_sq_error: 0.0, ..run }
}

/// SCAFFLSA (26) without the factor ‖Ā_c‖²/2, as printed, and with it.
#[test]
fn the_printed_bound_of_rho_fails_and_the_corrected_one_holds() {
    let problem = Exact::new(pair(20.0, 1.0, 5.0, 1));
    let constants = Constants::new(&problem).unwrap();
    let rho = RoundMap::new(&problem, 1e-3, 2).unwrap().rho;
    let have = dot(&rho, &rho);
    let run = one_round(&problem, &constants, 1e-3, 2);
    let bound = |form| scafflsa::drift(&run, form).unwrap();
    assert!(have > bound(Printed) && have < bound(Corrected), "{have}");
    let unmet = scafflsa::drift(&PublishedRun { rounds: 2, ..run }, Printed).unwrap_err();
    assert_eq!(unmet[0].condition, "it is the first round");
}

/// BOOK (5.33) is the exact error of a round of one step from w°, with every cohort, and without
/// noise that of the choice of clients.
#[test]
fn lemma_5_1_is_the_variance_of_a_round() {
    let noisy = lms();
    let silent = Exact::new(lms());
    for (problem, cohorts) in [(&noisy as &dyn Facts, 1..6), (&silent, 1..5)] {
        let constants = Constants::new(problem).unwrap();
        for cohort in cohorts {
            let mut components = sample::components(&[(1.0, 0.1)], 1, Variates::None);
            components[0].terms.cohort = Some(cohort);
            let exact = ExactMoments::new(problem, &components).unwrap();
            let exact = exact.at_rounds(problem.optimum(), &[1], None).unwrap()[0].sq_error;
            let all = one_round(problem, &constants, 0.1, 1);
            let run = PublishedRun { cohort: Some(cohort), ..all };
            let lemma = book::lemma_5_1(&run).unwrap();
            assert!((lemma / exact - 1.0).abs() < 1e-12, "{cohort}: {lemma} {exact}");
        }
    }
}

/// BOOK (5.54): the square of d_i is of order μ⁴, and below the bound of that order.
#[test]
fn the_perturbation_is_of_fourth_order() {
    let problem = Exact::new(lms());
    let constants = Constants::new(&problem).unwrap();
    let square = |mu: f64| {
        let rho = RoundMap::new(&problem, mu / 4.0, 4).unwrap().rho;
        let run = one_round(&problem, &constants, mu / 4.0, 4);
        let bound = book::perturbation(&run).unwrap();
        let have = dot(&rho, &rho);
        assert!(have <= bound, "{have} {bound}");
        have
    };
    let ratio = square(0.02) / square(0.01);
    assert!((ratio - 16.0).abs() < 0.5, "{ratio}");
}

/// BOOK, problem 5.3: the first order of the exact stationary error.
#[test]
fn the_mean_square_deviation_is_that_of_first_order() {
    let problem = lms();
    let constants = Constants::new(&problem).unwrap();
    let apart = |mu: f64| {
        let steps = [1, 2, 3, 5, 1];
        let mut components = sample::components(&[(1.0, mu)], 1, Variates::None);
        let terms = &mut components[0].terms;
        terms.cohort = Some(2);
        terms.local_steps = steps.to_vec();
        terms.normalised = true;
        let exact = ExactMoments::new(&problem, &components).unwrap();
        let exact = exact.stationary().unwrap().0.sq_error;
        let run = PublishedRun {
            local_steps: steps.to_vec(),
            normalised: true,
            cohort: Some(2),
            ..PublishedRun::even(&problem, &constants, FedAvg, mu, 5, 1)
        };
        exact / book::mean_square_deviation(&run).unwrap() - 1.0
    };
    let large = apart(1e-3);
    let small = apart(1e-4);
    assert!(small.abs() < 2e-3 && (large / small - 10.0).abs() < 0.5, "{large} {small}");
}

/// On a logistic field the rate of SLIDES has terms in Q, which bounds the third derivatives.
#[test]
fn the_rate_of_scaffold_has_third_derivatives() {
    let data = logistic::Data::Heterogeneous { spread: 0.5, separation: 1.0, perturbation: 0.5 };
    let problem = sample::build(&logistic::Settings { data, ..sample::blobs() }, 1);
    let constants = Constants::new(&problem).unwrap();
    let q = constants.third.unwrap();
    let mut rng = Stream::shared_instance(3);
    for client in 0..4 {
        let v = spectrum::direction(3, &mut rng);
        let third = problem.curvature(client, &Matrix::outer(&v, &v)).unwrap();
        let size = libm::sqrt(dot(&third, &third));
        assert!(size > 0.0 && size <= q, "{size} {q}");
    }
    let rate = |constants: &Constants, step, steps| {
        let run = PublishedRun::even(&problem, constants, Scaffold, step, steps, 1_000_000);
        scaffold::rate(&run)
    };
    let flat = Constants { third: Some(0.0), ..constants.clone() };
    let whole = rate(&constants, 0.01, 4).unwrap();
    let without = rate(&flat, 0.01, 4).unwrap();
    let (mu, _) = constants.everywhere.unwrap();
    let floor = 0.01 * constants.sigma_omega() / (4.0 * mu);
    assert!((without / floor - 1.0).abs() < 1e-9 && whole > without, "{whole} {without}");
    let unmet = rate(&constants, 0.5, 10).unwrap_err();
    assert_eq!(unmet[0].condition, "γHL ≤ 1");
}
