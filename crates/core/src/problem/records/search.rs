//! An instance of a loss on records, whose optimum is a solution of a linear system, or is searched
//! for, or is taken from an earlier search.

use super::flat::space_of_records;
use super::instance::RecordProblem;
use super::loss::{RecordLoss, RecordSets};
use super::mean_loss::MeanLoss;
use super::optimum_bound::{self, Convexity};
use super::unpenalised::{self, Found};
use crate::linalg::solve;
use crate::problem::affine::Affine;
use crate::problem::facts::Facts as _;
use crate::problem::fault::Fault;
use crate::problem::minimise::{Minimiser, Objective as _, OptimumSearch, factored_step, minimise};

/// What an instance is made of in addition to its loss and its records, which are in sets: client c holds set number c
/// modulo the number of sets.
#[derive(Clone, Debug, Default)]
pub struct InstanceInputs<'a> {
    /// N; the number of sets if it is `None`.
    pub clients: Option<usize>,
    /// π_c, N numbers, if the shares of clients are not equal.
    pub shares: Option<Vec<f64>>,
    /// How θ* is found where it has no closed form.
    pub optimum: OptimumSearch<'a>,
}

impl<L: RecordLoss<S>, S: RecordSets> RecordProblem<L, S> {
    /// The instance in which client c holds set number c modulo the number of sets, with its θ*: the solution
    /// of a linear system if fields are affine, else as [`InstanceInputs::optimum`] says.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if there is no optimum, or none is found.
    ///
    /// # Panics
    /// If shares are given, and there is not one for each client.
    pub fn new(loss: L, records: S, given: InstanceInputs<'_>) -> Result<Self, Fault> {
        let InstanceInputs { clients, shares: client_shares, optimum: search } = given;
        let holders = clients.unwrap_or(records.sets());
        assert!(client_shares.as_ref().is_none_or(|shares| shares.len() == holders));
        let mut instance = Self::without_optimum(loss, records, clients, client_shares);
        let is_left_out = matches!(search, OptimumSearch::LeftOut);
        let known = match search {
            OptimumSearch::Known(known) => Some(known),
            OptimumSearch::New | OptimumSearch::LeftOut => None,
        };
        // The system of an affine field by its matrix is solved in any case, as it always was.
        if is_left_out && instance.loss.mean_affine().is_none() {
            return Ok(instance);
        }
        let found = if L::AFFINE {
            solve_optimum(&instance)?
        } else if instance.loss.l2() > 0.0 {
            let optimum = find_optimum(&instance, instance.shares(), known)?;
            Found { optimum, set: None }
        } else {
            let known = known.filter(|known| known.theta.len() == instance.dim());
            unpenalised::search(&instance, known)?
        };
        instance.optimum = found.optimum;
        instance.optimum_set = found.set;
        Ok(instance)
    }
}

/// The optimum of a loss with affine fields: the root of the mean field of all clients or, where the records span no more
/// than a part of the space and there is no penalty, the shortest of its roots.
///
/// # Errors
/// A [`Fault`] of `l2` if the system cannot be solved in double precision.
fn solve_optimum<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
) -> Result<Found, Fault> {
    let mean = problem.loss.mean_affine();
    if let Some(mean) = mean {
        let convexity = optimum_bound::affine_convexity(problem, &mean.matrix);
        if convexity > 0.0 {
            return solved_optimum(problem, mean, convexity);
        }
    }
    let records = &problem.records;
    let space = space_of_records(records, 0..records.sets());
    match mean.filter(|_| space.rank() == records.features()) {
        Some(mean) => solved_optimum(problem, mean, 0.0),
        None => unpenalised::solve_least_squares(problem, space),
    }
}

/// θ*, the root of the affine mean field `mean` of all clients, with a bound on its error; `convexity` is a lower bound on
/// the eigenvalues of its matrix. Nothing is searched for, so that the residual is stated as 0. The bound is infinite
/// where none is found, as it may be without a penalty;
/// [`Facts::optimum_error`](crate::problem::Facts::optimum_error) is then `None`.
///
/// # Errors
/// A [`Fault`] of `l2` if no unique root can be found.
fn solved_optimum<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    mean: &Affine,
    convexity: f64,
) -> Result<Found, Fault> {
    let theta = mean.solve().map_err(|_| unpenalised::singular_system())?;
    let convexity = Convexity::Everywhere(convexity);
    let error = optimum_bound::optimum_error(problem, &theta, convexity, |gradient: &[f64]| {
        solve(&mean.matrix, gradient).ok()
    });
    Ok(Found { optimum: Minimiser { theta, residual: 0.0, error }, set: None })
}

/// θ*, the minimiser of the mean loss of sets with a penalty, which are given with their weights, and a bound on its
/// error. The result `known` of an earlier search is taken, with its bound, if its residual is found again to the last bit:
/// then it is the minimiser of this very function. Else it is ignored, and θ* is searched for.
///
/// # Errors
/// A [`Fault`] of `l2` if the bound on the error of what Newton's method finds is larger than both its length and 1.
fn find_optimum<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    shares: impl IntoIterator<Item = (usize, f64)>,
    known: Option<&Minimiser>,
) -> Result<Minimiser, Fault> {
    let mut mean = MeanLoss::new(&problem.loss, &problem.records, shares);
    let known = known.filter(|known| known.theta.len() == problem.dim());
    if let Some(known) = known.filter(|known| known.is_at(&mut mean)) {
        return Ok(known.clone());
    }
    let mut found = minimise(&mut mean);
    // The bound needs a Newton step at this θ, and the search may have computed its last gradient elsewhere.
    mean.gradient(&found.theta);
    found.error = optimum_bound::optimum_error(
        problem,
        &found.theta,
        Convexity::Everywhere(problem.loss.l2()),
        |gradient: &[f64]| factored_step(&mean, gradient),
    );
    let message = "the optimum cannot be found in double precision; it may be too small, or features too large";
    if found.is_known() { Ok(found) } else { Err(Fault::new("l2", message)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::dot;
    use crate::problem::RecordsOf;
    use crate::sample;

    /// Without a search nothing that depends on θ* is a number, and the losses are what they are.
    #[test]
    fn an_optimum_that_is_left_out_is_not_known() {
        let RecordProblem { loss, records, clients, client_shares, .. } =
            sample::weighted_logistic();
        let theta = vec![0.5; records.features()];
        let searched = sample::weighted_logistic();
        let given = InstanceInputs {
            clients: Some(clients),
            shares: client_shares,
            optimum: OptimumSearch::LeftOut,
        };
        let problem = RecordProblem::new(loss, records, given).unwrap();
        assert!(searched.knows_optimum() && !problem.knows_optimum());
        assert_eq!(problem.dim(), theta.len());
        assert!(problem.optimum().iter().all(|x| x.is_nan()));
        assert_eq!(problem.optimum_error(), None);
        assert_eq!(problem.searched_optimum(), None);
        assert!(problem.suboptimality(&theta).unwrap().is_nan());
        assert!(problem.field_at_optimum(0).iter().all(|x| x.is_nan()));
        let [a, b] = [&searched, &problem].map(|p| p.loss(&theta, RecordsOf::Clients).unwrap());
        assert_eq!(a.to_bits(), b.to_bits());
    }

    #[test]
    fn a_known_optimum_is_taken_if_it_is_of_this_very_function() {
        let problem = sample::weighted_logistic();
        let shares = || (0..problem.clients()).map(|client| (client, problem.share(client)));
        let found = find_optimum(&problem, shares(), None).unwrap();
        // Any point that comes with its residual is taken without a search.
        let theta = vec![0.5; problem.dim()];
        let gradient = MeanLoss::new(&problem.loss, &problem.records, shares()).gradient(&theta);
        let residual = libm::sqrt(dot(&gradient, &gradient)) / problem.loss.l2;
        let point = Minimiser { theta, residual, error: 1.0 };
        assert_eq!(find_optimum(&problem, shares(), Some(&point)).unwrap(), point);
        for stale in [
            Minimiser { residual: residual + 1e-12, ..point.clone() },
            Minimiser { theta: vec![0.25; problem.dim()], ..point.clone() },
            Minimiser { theta: vec![0.5; problem.dim() + 1], ..point.clone() },
        ] {
            assert_eq!(find_optimum(&problem, shares(), Some(&stale)).unwrap(), found);
        }
    }
}
