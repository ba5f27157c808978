//! Draws of a fixed number of distinct clients with given probabilities.
//!
//! Each client k is taken by a coin of its own, of the *working probability* p_k, and the whole draw is repeated until
//! exactly L clients are taken (Hájek 1964, rejective sampling; the conditional Poisson design). Of all designs of size
//! L with the same inclusion probabilities this one has the largest entropy. With S the number of clients that the
//! coins take,
//!
//! ```text
//! P(k)    = p_k P(S without k = L − 1) / P(S = L)
//! P(k, l) = p_k p_l P(S without k and l = L − 2) / P(S = L)
//! ```
//!
//! The distributions of S are found by the recursion of elementary symmetric functions in the odds p_k/(1 − p_k) (Chen,
//! Dempster and Liu 1994), here in its form for probabilities: it adds products of positive numbers alone, and neither
//! overflows nor cancels.

use crate::rng::Stream;

/// How far above 1 an inclusion probability may be by rounding.
const ROUNDING: f64 = 1e-12;
/// The most iterations for working probabilities. About 50 are needed, since the error halves in each.
const MOST_ITERATIONS: usize = 10_000;
/// The most iterations in a row that find no smaller error.
const MOST_STALLED: usize = 20;
/// The relative error of inclusion probabilities at which the iteration ends.
const TOLERANCE: f64 = 4.0 * f64::EPSILON;

/// Whether a client with this share can be one of L = `size` distinct clients with the probability L π_k.
pub(super) fn is_possible(share: f64, size: usize) -> bool {
    share * size as f64 <= 1.0 + ROUNDING
}

/// The design of maximum entropy that draws L of N clients, client k with the probability L π_k.
#[derive(Clone, Debug)]
pub struct FixedSizeDesign {
    /// L, the number of clients that are drawn.
    size: usize,
    /// p_k, N numbers: the probability of each client's coin.
    working: Vec<f64>,
    /// P(S = L), the probability that the coins take L clients.
    acceptance: f64,
}

impl FixedSizeDesign {
    /// The design for these shares π_k of the N clients, whose sum is 1, and L = `size` from 1 to N. `None` if L π_k is
    /// above 1 for a client.
    ///
    /// The odds of the working probabilities are multiplied by the square root of the quotient of the odds that
    /// inclusion probabilities are to have and those that they have, until these agree. The step of the logarithms is
    /// half of the diagonal step of Newton's method for their concave likelihood. It converges, since the correlations
    /// of different clients are negative and sum to −1 for each client, weighted by standard deviations: so the scaled
    /// Hessian has eigenvalues from 0 to 2.
    pub fn new(shares: &[f64], size: usize) -> Option<Self> {
        let mut targets = Vec::with_capacity(shares.len());
        for share in shares {
            if !is_possible(*share, size) {
                return None;
            }
            let target = share * size as f64;
            // A client that always takes part does so exactly.
            targets.push(if target >= 1.0 - ROUNDING { 1.0 } else { target });
        }
        let mut design = Self { size, working: targets.clone(), acceptance: 1.0 };
        let mut least_error = f64::INFINITY;
        let mut stalled = 0;
        for _ in 0..MOST_ITERATIONS {
            let inclusion = design.update_acceptance();
            let mut error = 0.0_f64;
            for (have, want) in inclusion.iter().zip(&targets) {
                if *want > 0.0 {
                    error = error.max((have / want - 1.0).abs());
                }
            }
            stalled = if error < least_error { 0 } else { stalled + 1 };
            // Rounding may keep the error from falling as far as the tolerance.
            if error <= TOLERANCE || stalled == MOST_STALLED {
                break;
            }
            least_error = error.min(least_error);
            for (k, p) in design.working.iter_mut().enumerate() {
                let want = targets[k];
                if want > 0.0 && want < 1.0 {
                    let quotient = want * (1.0 - inclusion[k]) / ((1.0 - want) * inclusion[k]);
                    let odds = *p / (1.0 - *p) * libm::sqrt(quotient);
                    *p = odds / (1.0 + odds);
                }
            }
        }
        Some(design)
    }

    /// Computes P(S = L) again from the working probabilities, and returns the inclusion probabilities, N numbers.
    fn update_acceptance(&mut self) -> Vec<f64> {
        let size = self.size;
        let without = sums_without_each(&self.working, size - 1);
        let mut inclusion: Vec<f64> =
            self.working.iter().zip(&without).map(|(p, s)| p * s).collect();
        // L P(S = L) = Σ_k P(k is taken and S = L).
        self.acceptance = inclusion.iter().sum::<f64>() / size as f64;
        inclusion.iter_mut().for_each(|x| *x /= self.acceptance);
        inclusion
    }

    /// P(k, l) of a client k with each client l, N numbers: the probability that both are drawn, and for l = k the
    /// probability that k is drawn.
    pub fn joint_inclusion(&self, k: usize) -> Vec<f64> {
        let mut others = self.working.clone();
        others[k] = 0.0;
        let with_both = match self.size.checked_sub(2) {
            Some(rest) => sums_without_each(&others, rest),
            None => vec![0.0; others.len()],
        };
        let scale = self.working[k] / self.acceptance;
        let mut joint: Vec<f64> =
            others.iter().zip(&with_both).map(|(p, s)| scale * p * s).collect();
        let of_one: f64 = sums_without_each(&self.working, self.size - 1)[k];
        joint[k] = scale * of_one;
        joint
    }

    /// Draws the clients of a round: L of their numbers, in increasing order.
    pub fn draw(&self, stream: &mut Stream) -> Vec<usize> {
        loop {
            let mut taken = Vec::with_capacity(self.size + 1);
            for (client, p) in self.working.iter().enumerate() {
                if stream.uniform() < *p {
                    taken.push(client);
                }
            }
            if taken.len() == self.size {
                return taken;
            }
        }
    }
}

/// P(S without k = `size`) for each client k, where S is the number of coins of these probabilities that are 1, N
/// numbers.
fn sums_without_each(probabilities: &[f64], size: usize) -> Vec<f64> {
    let n = probabilities.len();
    let width = size + 1;
    // Row k has the distribution, from 0 to `size`, of the number of the clients from k on that are taken.
    let mut after = vec![0.0; (n + 1) * width];
    after[n * width] = 1.0;
    for k in (0..n).rev() {
        let p = probabilities[k];
        for count in 0..width {
            let below = if count > 0 { after[(k + 1) * width + count - 1] } else { 0.0 };
            after[k * width + count] = (1.0 - p) * after[(k + 1) * width + count] + p * below;
        }
    }
    // The distribution of the number of the clients before k that are taken.
    let mut before = vec![0.0; width];
    before[0] = 1.0;
    let mut sums = Vec::with_capacity(n);
    for (k, p) in probabilities.iter().enumerate() {
        let row = &after[(k + 1) * width..][..width];
        sums.push(before.iter().zip(row.iter().rev()).map(|(x, y)| x * y).sum());
        for count in (0..width).rev() {
            let below = if count > 0 { before[count - 1] } else { 0.0 };
            before[count] = (1.0 - p) * before[count] + p * below;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All subsets of `size` of `n` clients, as lists.
    fn subsets(n: usize, size: usize) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for bits in 0..1_u32 << n {
            if bits.count_ones() as usize == size {
                all.push((0..n).filter(|k| bits >> k & 1 == 1).collect());
            }
        }
        all
    }

    /// Shares from records, for which L π_k is at most 1: also exactly 1, and far from each other.
    fn cases() -> Vec<(Vec<f64>, usize)> {
        let lists: [(&[f64], usize); 6] = [
            (&[36.0, 20.0, 8.0], 1),
            (&[20.0, 20.0, 8.0, 1.0, 15.0], 2),
            (&[3.0, 3.0, 2.0, 2.0, 1.0, 1.0], 4),
            (&[5.0, 4.0, 1.0], 2),
            (&[999.0, 999.0, 2.0], 2),
            (&[1e-9, 0.3, 0.3, 0.3, 0.1], 3),
        ];
        let mut all = Vec::new();
        for (records, size) in lists {
            let total: f64 = records.iter().sum();
            all.push((records.iter().map(|count| count / total).collect(), size));
        }
        all
    }

    /// The probabilities of all subsets, each proportional to the product of its clients' odds, have the inclusion
    /// probabilities L π_k, and their joint inclusion probabilities are those that the design gives.
    #[test]
    fn inclusion_probabilities_are_those_of_all_subsets() {
        for (shares, size) in cases() {
            let design = FixedSizeDesign::new(&shares, size).unwrap();
            let n = shares.len();
            let chance = |k: usize, is_in: bool| {
                if is_in { design.working[k] } else { 1.0 - design.working[k] }
            };
            let mut total = 0.0;
            let mut joint = vec![0.0; n * n];
            for subset in subsets(n, size) {
                let weight: f64 = (0..n).map(|k| chance(k, subset.contains(&k))).product();
                total += weight;
                for k in &subset {
                    subset.iter().for_each(|l| joint[k * n + l] += weight);
                }
            }
            for k in 0..n {
                let found = design.joint_inclusion(k);
                let wanted = size as f64 * shares[k];
                assert!((found[k] / wanted - 1.0).abs() < 1e-12, "{shares:?}: {found:?} {wanted}");
                for l in 0..n {
                    let enumerated = joint[k * n + l] / total;
                    assert!((found[l] - enumerated).abs() < 1e-14, "{shares:?}: {k} {l}");
                }
            }
        }
    }

    /// The frequencies of 20 000 draws are those of the design, within four standard errors.
    #[test]
    fn draws_have_the_probabilities_of_the_design() {
        let draws = 20_000;
        for (shares, size) in cases() {
            let design = FixedSizeDesign::new(&shares, size).unwrap();
            let n = shares.len();
            let mut stream = Stream::shared_instance(3);
            let mut counts = vec![0.0; n * n];
            for _ in 0..draws {
                let drawn = design.draw(&mut stream);
                assert_eq!(drawn.len(), size);
                for k in &drawn {
                    drawn.iter().for_each(|l| counts[k * n + l] += 1.0);
                }
            }
            for k in 0..n {
                for (l, wanted) in design.joint_inclusion(k).into_iter().enumerate() {
                    let found: f64 = counts[k * n + l] / f64::from(draws);
                    let error = libm::sqrt(wanted * (1.0 - wanted).max(0.0) / f64::from(draws));
                    let off = (found - wanted).abs();
                    assert!(off <= 4.0 * error + 1e-12, "{shares:?}: {k} {l}: {found} {wanted}");
                }
            }
        }
    }

    /// Many clients of very unequal shares: nothing overflows, and the iteration ends.
    #[test]
    fn many_clients_have_their_inclusion_probabilities() {
        let total: f64 = (1..=400).map(f64::from).sum();
        let shares: Vec<f64> = (1..=400).map(|k| f64::from(k) / total).collect();
        let design = FixedSizeDesign::new(&shares, 200).unwrap();
        for k in [0, 1, 200, 399] {
            let found = design.joint_inclusion(k);
            let wanted = 200.0 * shares[k];
            assert!((found[k] / wanted - 1.0).abs() < 1e-11, "{k}: {} {wanted}", found[k]);
            let others: f64 = found.iter().sum::<f64>() - found[k];
            assert!((others / (199.0 * found[k]) - 1.0).abs() < 1e-11, "{k}: {others}");
        }
        assert!(FixedSizeDesign::new(&shares, 201).is_none());
    }
}
