//! What is added to a client's field: nothing, or a control variate.

use crate::kernel::mean_rows;

/// The ξ_c that is added to client c's field, and how it learns.
pub trait Correction {
    /// Vectors that a client sends, and receives, in a round.
    const VECTORS: u64;
    /// ξ_c, d numbers.
    fn of(&self, client: usize) -> &[f64];
    /// After a round that began at `before` (d numbers) and ended, client by
    /// client, at `ends` (N rows of d), having moved along `length` = γH.
    fn update(&mut self, before: &[f64], ends: &[f64], length: f64);
}

/// ξ = 0: FedAvg, FedLSA.
pub struct Uncorrected(Vec<f64>);

impl Uncorrected {
    /// No correction in dimension d.
    pub fn new(d: usize) -> Self {
        Self(vec![0.0; d])
    }
}

impl Correction for Uncorrected {
    const VECTORS: u64 = 1;
    fn of(&self, _client: usize) -> &[f64] {
        &self.0
    }
    fn update(&mut self, _before: &[f64], _ends: &[f64], _length: f64) {}
}

/// ξ_c = c̄ − c_c: Scaffold, SCAFFLSA. After a round
/// c_c ← c_c − c̄ + (θ_t − θ_c^H)/(γH), c̄ ← N⁻¹ Σ c_c,
/// which with equal work and full participation is
/// ξ_c ← ξ_c + (θ_c^H − θ_{t+1})/(γH) (SLIDES II; SCAFFLSA Alg. 2, 4 with the
/// opposite sign), and stays right without either.
pub struct ControlVariates {
    d: usize,
    /// c_c, N rows of d.
    variates: Vec<f64>,
    /// c̄, d numbers.
    mean: Vec<f64>,
    /// ξ_c, N rows of d.
    corrections: Vec<f64>,
}

impl ControlVariates {
    /// Variates at 0 for `clients` clients in dimension d.
    pub fn new(clients: usize, d: usize) -> Self {
        let zero = vec![0.0; clients * d];
        Self { d, variates: zero.clone(), mean: vec![0.0; d], corrections: zero }
    }
}

impl Correction for ControlVariates {
    const VECTORS: u64 = 2;

    fn of(&self, client: usize) -> &[f64] {
        &self.corrections[client * self.d..][..self.d]
    }

    fn update(&mut self, before: &[f64], ends: &[f64], length: f64) {
        let d = self.d;
        for (variate, end) in self.variates.chunks_exact_mut(d).zip(ends.chunks_exact(d)) {
            for i in 0..d {
                variate[i] = variate[i] - self.mean[i] + (before[i] - end[i]) / length;
            }
        }
        mean_rows(&self.variates, &mut self.mean);
        let rows = self.corrections.chunks_exact_mut(d).zip(self.variates.chunks_exact(d));
        for (correction, variate) in rows {
            for i in 0..d {
                correction[i] = self.mean[i] - variate[i];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn corrections_sum_to_zero_and_follow_the_published_rule() {
        let (n, d, length) = (5, 3, 0.7);
        let mut rng = Stream::shared_instance(1);
        let mut variates = ControlVariates::new(n, d);
        let mut published = vec![0.0; n * d];
        for _ in 0..20 {
            let before: Vec<f64> = (0..d).map(|_| rng.gaussian()).collect();
            // As the engine does it: the correction acts on the round's ends.
            let ends: Vec<f64> = (0..n * d)
                .map(|k| before[k % d] - length * (rng.gaussian() + variates.corrections[k]))
                .collect();
            let mut after = vec![0.0; d];
            mean_rows(&ends, &mut after);
            for (k, xi) in published.iter_mut().enumerate() {
                *xi += (ends[k] - after[k % d]) / length;
            }
            variates.update(&before, &ends, length);
            for (k, xi) in published.iter().enumerate() {
                assert!((variates.corrections[k] - xi).abs() < 1e-12);
            }
            for i in 0..d {
                let sum: f64 = (0..n).map(|c| variates.of(c)[i]).sum();
                assert!(sum.abs() < 1e-13, "sum of the corrections is {sum}");
            }
        }
    }
}
