//! Checks that a problem's facts and oracle agree: for the tests of any problem, also of
//! a user's own.

use super::oracle::Problem;
use crate::kernel::{Draws, axpy, dot};
use crate::linalg::Matrix;
use crate::rng::{Purpose, Stream};

/// Checks a problem's facts against each other and its oracle against them:
/// θ* and each θ_c* are roots, the Jacobian is the derivative of the mean field, the
/// curvature its second derivative, and `draws` oracle calls have the stated mean and
/// covariance at θ*, and the covariance of the noise map elsewhere, within standard errors.
/// Roots are checked of all clients, the rest of the first three. Draws must be independent, since the standard
/// errors are those of independent draws: a problem with Markovian noise may fail.
///
/// # Panics
/// With the first disagreement.
pub fn agree<P: Problem>(problem: &P, draws: usize) {
    roots(problem, 1e-9);
    for client in 0..problem.clients().min(3) {
        compare_jacobian(problem, client);
        compare_products_with_jacobians(problem, client);
        compare_sample_moments(problem, client, draws);
        compare_curvature(problem, client);
        compare_noise_map(problem, client, draws);
    }
}

/// Compares the stated curvature ∇²F̄_c(θ*)[M] for M = uuᵀ with second differences of the mean field along
/// u, and panics where they differ; nothing is compared if the problem does not know its curvature.
fn compare_curvature<P: Problem>(problem: &P, client: usize) {
    let d = problem.dim();
    let h = 1e-3;
    let u: Vec<f64> = (0..d).map(|i| 1.0 / (1.0 + i as f64)).collect();
    let mut m = Matrix::zeros(d, d);
    m.add_outer(1.0, &u, &u);
    let Some(stated) = problem.curvature(client, &m) else { return };
    let mut second = vec![0.0; d];
    let mut field = vec![0.0; d];
    for (weight, along) in [(1.0, h), (-2.0, 0.0), (1.0, -h)] {
        let mut theta = problem.optimum().to_vec();
        axpy(along, &u, &mut theta);
        problem.mean_field(client, &theta, &mut field);
        axpy(weight / (h * h), &field, &mut second);
    }
    for i in 0..d {
        let have = stated[i];
        let want = second[i];
        let most = 1e-4 * (1.0 + want.abs());
        assert!((have - want).abs() < most, "client {client}, curvature {i}: {have}, not {want}");
    }
}

/// Compares the stated noise map with the stated covariance at θ*, and with the sample covariance of the
/// field linearised at θ* between two other points on the same `n` draws, by standard errors; it panics where
/// they differ. Nothing is compared if second moments do not close, that is, if the noise map is `None`.
fn compare_noise_map<P: Problem>(problem: &P, client: usize, n: usize) {
    let d = problem.dim();
    let mut s = Matrix::zeros(d + 1, d + 1);
    s[(d, d)] = 1.0;
    let Some(at_optimum) = problem.noise_map(client, &s) else { return };
    let covariance = problem.noise_covariance(client);
    let size = (0..d).map(|i| covariance[(i, i)]).fold(1e-9, f64::max);
    for (have, want) in at_optimum.entries().iter().zip(covariance.entries()) {
        assert!((have - want).abs() < 1e-9 * size, "client {client}: at θ* {have}, not {want}");
    }
    let [first, second] = [0.7, -0.4].map(|k| Probe::new(problem, client, k));
    let s = Matrix::from_fn(d + 1, d + 1, |i, j| first.extended[i] * second.extended[j]);
    let Some(stated) = problem.noise_map(client, &s) else { return };
    let mut rng = Stream::new(10, Purpose::Client, 0, 0, client as u64);
    let mut state = problem.begin(client, &mut rng);
    compare_products(&format!("client {client}, noise map"), n, &stated, |f, g| {
        let mut same = rng.clone();
        problem.linearised(
            client,
            &mut Draws { rng: &mut rng, state: &mut state },
            &first.theta,
            f,
        );
        problem.linearised(
            client,
            &mut Draws { rng: &mut same, state: &mut state },
            &second.theta,
            g,
        );
        axpy(-1.0, &first.mean, f);
        axpy(-1.0, &second.mean, g);
    });
}

/// A point away from θ*, at which the noise of the linearised field is compared with the noise map.
struct Probe {
    /// (e, 1) with e the difference of the point from θ*, d + 1 numbers.
    extended: Vec<f64>,
    theta: Vec<f64>,
    /// The mean at θ of the field linearised at θ*.
    mean: Vec<f64>,
}

impl Probe {
    /// The point θ* + e with e_i = `scale`/(1 + i) − 0.2.
    fn new<P: Problem>(problem: &P, client: usize, scale: f64) -> Self {
        let e: Vec<f64> = (0..problem.dim()).map(|i| scale / (1.0 + i as f64) - 0.2).collect();
        let theta = problem.optimum().iter().zip(&e).map(|(x, e)| x + e).collect();
        let mut mean = problem.field_at_optimum(client);
        axpy(1.0, &problem.jacobian(client).apply(&e), &mut mean);
        let mut extended = e;
        extended.push(1.0);
        Self { extended, theta, mean }
    }
}

/// Compares the mean of f gᵀ over `n` draws of (f, g) with `stated`, d × d, entry by entry, and panics where they
/// are more than 4.5 standard errors apart. `draw(f, g)` writes a new pair of d numbers each, drawn independently of
/// the pairs before. `what` begins the message.
fn compare_products(
    what: &str,
    n: usize,
    stated: &Matrix,
    mut draw: impl FnMut(&mut [f64], &mut [f64]),
) {
    let d = stated.rows();
    let mut second = Matrix::zeros(d, d);
    let mut fourth = Matrix::zeros(d, d);
    let mut f = vec![0.0; d];
    let mut g = vec![0.0; d];
    for _ in 0..n {
        draw(&mut f, &mut g);
        second.add_outer(1.0 / n as f64, &f, &g);
        let squares_of_f: Vec<f64> = f.iter().map(|x| x * x).collect();
        let squares_of_g: Vec<f64> = g.iter().map(|x| x * x).collect();
        fourth.add_outer(1.0 / n as f64, &squares_of_f, &squares_of_g);
    }
    for (i, j) in (0..d * d).map(|k| (k / d, k % d)) {
        let truth = stated[(i, j)];
        let error = ((fourth[(i, j)] - truth * truth).max(0.0) / n as f64).sqrt();
        let off = (second[(i, j)] - truth).abs();
        let within = off <= 4.5 * error + 1e-15;
        assert!(within, "{what} {i} {j}: off by {off}, standard error {error}");
    }
}

/// Checks that the shares π_c sum to 1, that θ* solves Σ π_c F̄_c = 0 and that each θ_c* that exists solves F̄_c = 0: the
/// norms of the mean fields there are below `rounding`. For θ* the limit is multiplied by 1 plus the largest norm of
/// a client's mean field there.
///
/// # Panics
/// If one of these does not hold.
pub fn roots<P: Problem>(problem: &P, rounding: f64) {
    let n = problem.clients();
    let d = problem.dim();
    let shares: f64 = (0..n).map(|client| problem.share(client)).sum();
    assert!((shares - 1.0).abs() < 1e-12, "the shares of the clients sum to {shares}");
    assert_eq!(problem.optimum().len(), d, "the optimum has another dimension");
    let mut mean = vec![0.0; d];
    let mut field = vec![0.0; d];
    let mut size: f64 = 0.0;
    for client in 0..n {
        if let Some(own) = problem.local_optimum(client) {
            problem.mean_field(client, own, &mut field);
            let local = dot(&field, &field).sqrt();
            assert!(
                local < rounding,
                "client {client}: the mean field at its optimum has norm {local}"
            );
        }
        problem.mean_field(client, problem.optimum(), &mut field);
        size = size.max(dot(&field, &field).sqrt());
        axpy(problem.share(client), &field, &mut mean);
    }
    let norm = dot(&mean, &mean).sqrt();
    assert!(norm < rounding * (1.0 + size), "the mean field at the optimum has norm {norm}");
}

/// Compares the stated Jacobian of a client with central differences of its mean field at θ*, and panics where they
/// differ.
fn compare_jacobian<P: Problem>(problem: &P, client: usize) {
    let d = problem.dim();
    let h = 1e-5;
    let jacobian = problem.jacobian(client);
    let mut up = vec![0.0; d];
    let mut down = vec![0.0; d];
    for j in 0..d {
        let mut theta = problem.optimum().to_vec();
        theta[j] += h;
        problem.mean_field(client, &theta, &mut up);
        theta[j] -= 2.0 * h;
        problem.mean_field(client, &theta, &mut down);
        for i in 0..d {
            let slope = (up[i] - down[i]) / (2.0 * h);
            let stated = jacobian[(i, j)];
            let off = (slope - stated).abs();
            let most = 1e-6 * (1.0 + stated.abs());
            assert!(off < most, "client {client}, Jacobian {i} {j}: {stated}, not {slope}");
        }
    }
}

/// Compares `jacobian_product`, with the Jacobian of a client alone and with a weighted sum of it and the
/// first client's, and `noise_trace` with what the matrices give; and checks that a Jacobian which is
/// stated to be symmetric is so. Problems may compute the two without the matrices. It panics where they differ.
fn compare_products_with_jacobians<P: Problem>(problem: &P, client: usize) {
    let d = problem.dim();
    let x: Vec<f64> = (0..d).map(|i| 1.0 / (1.0 + i as f64) - 0.2).collect();
    for weights in [vec![(client, 1.0)], vec![(client, 0.7), (0, -0.4)]] {
        for transposed in [false, true] {
            let mut have = vec![f64::NAN; d];
            let mut want = vec![0.0; d];
            problem.jacobian_product(&weights, transposed, &x, &mut have);
            let mut size = 1e-300;
            for (client, weight) in &weights {
                let jacobian = problem.jacobian(*client);
                let other = jacobian.transpose();
                let apart = jacobian
                    .plus(-1.0, &other)
                    .entries()
                    .iter()
                    .fold(0.0_f64, |most, x| most.max(x.abs()));
                assert!(!problem.symmetric() || apart < 1e-12 * problem.dim() as f64);
                let product = if transposed { other } else { jacobian }.apply(&x);
                axpy(*weight, &product, &mut want);
                size += dot(&product, &product).sqrt();
            }
            for (have, want) in have.iter().zip(&want) {
                assert!((have - want).abs() < 1e-12 * size, "client {client}: {have}, not {want}");
            }
        }
    }
    let have = problem.noise_trace(client);
    let want = problem.noise_covariance(client).trace();
    let second = dot(&problem.field_at_optimum(client), &problem.field_at_optimum(client)) + want;
    assert!((have - want).abs() < 1e-12 * second, "client {client}: trace {have}, not {want}");
}

/// Compares the oracle's sample mean and covariance at θ* over `n` calls with the stated ones. The limit of
/// 4.5 standard errors holds for some hundred entries together.
fn compare_sample_moments<P: Problem>(problem: &P, client: usize, n: usize) {
    let mut rng = Stream::new(9, Purpose::Client, 0, 0, client as u64);
    let mut state = problem.begin(client, &mut rng);
    let mean = problem.field_at_optimum(client);
    let covariance = problem.noise_covariance(client);
    let mut first = vec![0.0; problem.dim()];
    compare_products(&format!("client {client}, covariance"), n, &covariance, |f, g| {
        let draws = &mut Draws { rng: &mut rng, state: &mut state };
        problem.oracle(client, draws, problem.optimum(), f);
        axpy(-1.0, &mean, f);
        axpy(1.0 / n as f64, f, &mut first);
        g.copy_from_slice(f);
    });
    for (i, off) in first.iter().enumerate() {
        let error = (covariance[(i, i)].max(0.0) / n as f64).sqrt();
        assert!(off.abs() <= 4.5 * error + 1e-15, "client {client}, mean {i}: off by {off}");
    }
}
