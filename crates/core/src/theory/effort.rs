//! Estimates of the computational effort of theory, made before it is computed: a report
//! refuses what exceeds the limits and says so, instead of running for hours or out of
//! memory.
//!
//! *Invariant*: an estimate depends on sizes alone, so every machine refuses the same.

use crate::problem::{Facts, group_clients};
use std::fmt;
use std::ops::Add;

/// The most multiplications of a computation: about a minute on one thread.
pub const MOST_PRODUCTS: f64 = 4e10;
/// The most bytes of working memory of a computation.
pub const MOST_BYTES: f64 = 1e9;

/// The estimated effort of a computation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// The number of multiplications.
    pub products: f64,
    /// Bytes of working memory.
    pub bytes: f64,
}

impl Effort {
    /// `products` multiplications, with `numbers` numbers in memory at once.
    pub fn new(products: f64, numbers: f64) -> Self {
        Self { products, bytes: 8.0 * numbers }
    }

    /// Whether products and memory are within [`MOST_PRODUCTS`] and [`MOST_BYTES`]; false if one of them is NaN.
    pub fn fits(self) -> bool {
        self.products <= MOST_PRODUCTS && self.bytes <= MOST_BYTES
    }

    /// The larger number of products and the larger memory of two efforts, which may be from different ones: pages
    /// say that what was refused takes up to this.
    pub fn most(self, other: Self) -> Self {
        Self { products: self.products.max(other.products), bytes: self.bytes.max(other.bytes) }
    }
}

impl Add for Effort {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { products: self.products + other.products, bytes: self.bytes + other.bytes }
    }
}

/// What a page says of a computation that is refused: the numbers that exceed their limits, as in
/// `about 2e11 products and 206 GB of memory`. The list is empty if the effort fits.
impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.products > MOST_PRODUCTS {
            parts.push(format!("{:.0e} products", self.products));
        }
        if self.bytes > MOST_BYTES {
            parts.push(format!("{:.0} GB of memory", self.bytes / 1e9));
        }
        write!(f, "about {}", parts.join(" and "))
    }
}

/// The number of different distributions of the clients' oracles: what depends on a client's distribution alone is
/// computed once for each of them.
pub fn distributions(facts: &dyn Facts) -> f64 {
    group_clients(facts.clients(), |c| facts.distribution(c)).0.len() as f64
}

/// About how many multiplications one call of [`Facts::noise_map`] takes: 2 d² for each of the [`Facts::draws`], as if
/// the field of each draw had a matrix of rank one, and 3 d³ for products of d × d matrices.
pub fn noise_map(facts: &dyn Facts) -> f64 {
    let d = facts.dim() as f64;
    d * d * (2.0 * facts.draws() as f64 + 3.0 * d)
}

/// The effort of forming the Jacobians of all clients, which are in memory at once, and of `decompositions`
/// eigenvalue decompositions of d × d matrices for each distribution, of about 10 d³ products each.
pub fn spectra(facts: &dyn Facts, decompositions: f64) -> Effort {
    let n = facts.clients() as f64;
    let d = facts.dim() as f64;
    let distributions = distributions(facts);
    let each = 10.0 * decompositions * d * d * d;
    Effort::new(distributions * each + n * facts.draws() as f64 * d * d, (n + 10.0) * d * d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federated::{Learning, Variates};
    use crate::linalg::Matrix;
    use crate::theory::bounds::Constants;
    use crate::theory::deterministic::drift_effort;
    use crate::theory::expansion;
    use crate::theory::heterogeneity::Measures;
    use crate::{moments, sample};

    /// A problem of any size: d, N and whether it is linear. Other facts are not available.
    struct Sized(usize, usize, bool);

    impl Facts for Sized {
        fn dim(&self) -> usize {
            self.0
        }
        fn clients(&self) -> usize {
            self.1
        }
        fn linear(&self) -> bool {
            self.2
        }
        fn optimum(&self) -> &[f64] {
            unreachable!()
        }
        fn local_optimum(&self, _: usize) -> Option<&[f64]> {
            unreachable!()
        }
        fn mean_field(&self, _: usize, _: &[f64], _: &mut [f64]) {
            unreachable!()
        }
        fn jacobian(&self, _: usize) -> Matrix {
            unreachable!()
        }
        fn noise_covariance(&self, _: usize) -> Matrix {
            unreachable!()
        }
    }

    /// The efforts of what a report computes about one instance. The first four are the moments after 1000 rounds
    /// without and with control variates, and the stationary moments without and with them.
    fn costs(facts: &dyn Facts, local_steps: u64) -> [Effort; 8] {
        let run = |variates| sample::components(&[(1.0, 0.1)], local_steps, variates);
        let plain = run(Variates::None);
        let corrected = run(Variates::Kept(Learning::OptionTwo));
        let with_variates = true;
        let blocks = expansion::Expansion::blocks_effort(facts, with_variates);
        [
            moments::effort(facts, &plain, 1000, 200),
            moments::effort(facts, &corrected, 1000, 200),
            moments::stationary_effort(facts, &plain),
            moments::stationary_effort(facts, &corrected),
            Measures::effort(facts),
            Constants::effort(facts),
            expansion::Expansion::effort(facts) + blocks,
            expansion::closure_effort(facts, local_steps),
        ]
    }

    /// Each computation of [`costs`], and the drift with other numbers of local steps, fits for each small size and
    /// exceeds a limit for each large one.
    #[test]
    fn small_instances_fit_and_large_ones_do_not() {
        let small = [(1, 1), (3, 10), (8, 20)].map(|size| (size, [100, 100], true));
        let large =
            [(600, 2000), (50, 1_000_000), (5000, 40)].map(|size| (size, [10, 10_000], false));
        for ((d, n), [steps, of_drift], fits) in small.into_iter().chain(large) {
            for linear in [true, false] {
                let facts = Sized(d, n, linear);
                let all = costs(&facts, steps).into_iter().chain([drift_effort(&facts, of_drift)]);
                assert!(all.into_iter().all(|cost| cost.fits() == fits), "{d} {n} {linear}");
            }
        }
    }

    /// Computations that are cheap in a small dimension are refused if clients or local steps alone are too many.
    #[test]
    fn what_grows_with_clients_or_steps_alone_is_counted() {
        // Clients of different distributions in one dimension: the moments of pairs of control variates take the
        // memory.
        let many = costs(&Sized(1, 30_000, true), 1);
        assert!(many[0].fits() && !many[1].fits() && many[2].fits() && !many[3].fits());
        // More local steps than fit in memory.
        assert!(!expansion::closure_effort(&Sized(20, 2, false), 1_000_000).fits());
    }

    /// The text of a refusal names the products or the memory, whichever exceeds its limit; NaN does not fit.
    #[test]
    fn what_exceeds_a_bound_is_named() {
        let text = |products, numbers| Effort::new(products, numbers).to_string();
        assert!(Effort::new(1e9, 1e6).fits());
        assert!(!Effort::new(f64::NAN, 0.0).fits());
        assert_eq!(text(2e11, 2.57e10), "about 2e11 products and 206 GB of memory");
        assert_eq!(text(1e3, 2.57e10), "about 206 GB of memory");
        assert_eq!(text(2e11, 1.0), "about 2e11 products");
    }
}
