//! Passes over records in random orders have exact moments where rounds are whole passes.

use crate::federated::{Run, Terms};
use crate::kernel::squared_distance;
use crate::moments::ExactMoments;
use crate::problem::{Facts, Reshuffled};
use crate::sample;
use crate::theory::exact::MomentsError;

const RUNS: u64 = 3000;

/// The errors of an algorithm with these terms after rounds 1 to 4 on passes over batches of this size are those of
/// runs. Returns the exact ones.
fn assert_errors(terms: &Terms, batch: usize) -> Vec<f64> {
    let problem = Reshuffled(sample::short_ridge(batch));
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    let components = [crate::algorithm::Component { weight: 1.0, terms: terms.clone(), copy: 0 }];
    let exact = ExactMoments::new(&problem, &components).unwrap();
    let moments = exact.at_rounds(&start, &[1, 2, 3, 4], None).unwrap();
    let mut errors = vec![Vec::new(); 4];
    for replicate in 0..RUNS {
        let mut run = sample::launch(&problem, terms, &start, replicate);
        for errors in &mut errors {
            run.round();
            errors.push(squared_distance(run.estimate(), problem.optimum()));
        }
    }
    for (round, (errors, moments)) in errors.iter().zip(&moments).enumerate() {
        let what = format!("{terms:?}, batches of {batch}, round {}", round + 1);
        sample::assert_mean(errors, moments.sq_error, &what);
    }
    moments.iter().map(|moments| moments.sq_error).collect()
}

#[test]
fn rounds_of_whole_passes_have_exact_errors() {
    let pass = Terms { local_steps: vec![3, 4, 5], ..Terms::fedavg(0.3, 1) };
    let passes = Terms { local_steps: vec![6, 4, 5], ..pass.clone() };
    let halves = Terms { local_steps: vec![2, 2, 3], ..pass.clone() };
    assert_errors(&pass, 1);
    assert_errors(&passes, 1);
    assert_errors(&halves, 2);
    assert_errors(&Terms { proximal: 0.5, ..pass.clone() }, 1);
    assert_errors(&Terms { cohort: Some(2), ..pass.clone() }, 1);
    let scaffold = Terms { local_steps: vec![3, 4, 5], ..Terms::scaffold(0.3, 1) };
    assert_errors(&scaffold, 1);
}

/// A pass leaves less noise than as many draws with replacement.
#[test]
fn a_pass_leaves_less_noise_than_draws_with_replacement() {
    let terms = Terms { local_steps: vec![3, 4, 5], ..Terms::fedavg(0.1, 1) };
    let components = [crate::algorithm::Component { weight: 1.0, terms, copy: 0 }];
    let trace = |facts: &dyn Facts| {
        let exact = ExactMoments::new(facts, &components).unwrap();
        let (moments, _) = exact.stationary().unwrap();
        moments.covariance.trace()
    };
    let pass = trace(&Reshuffled(sample::short_ridge(1)));
    let with_replacement = trace(&sample::short_ridge(1));
    assert!(pass > 0.0 && 3.0 * pass < with_replacement, "{pass} {with_replacement}");
}

#[test]
fn rounds_that_end_inside_of_passes_have_no_moments() {
    let problem = Reshuffled(sample::short_ridge(1));
    let refused = |terms: Terms| {
        let components = [crate::algorithm::Component { weight: 1.0, terms, copy: 0 }];
        ExactMoments::new(&problem, &components).err()
    };
    assert_eq!(refused(Terms::fedavg(0.1, 3)), Some(MomentsError::PartOfPass));
    let fedlin = Terms {
        local_steps: vec![3, 4, 5],
        variates: crate::federated::Variates::Fresh,
        ..Terms::fedavg(0.1, 1)
    };
    assert_eq!(refused(fedlin), Some(MomentsError::PartOfPass));
}
