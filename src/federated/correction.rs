//! Control variates: c_k of each client, their mean c̄, and ξ_k = c̄ − c_k,
//! which is added to client k's field.
//!
//! *Invariant*: Σ_k ξ_k = 0 up to rounding, whatever clients take part and
//! whatever work they do, since c̄ is the mean of what is kept.

use crate::kernel::mean_rows;

/// The clients' control variates.
pub struct ControlVariates {
    d: usize,
    /// c_k, N rows of d.
    variates: Vec<f64>,
    /// c̄, d numbers.
    mean: Vec<f64>,
    /// ξ_k, N rows of d.
    corrections: Vec<f64>,
}

impl ControlVariates {
    /// Variates at 0 for `clients` clients in dimension d.
    pub fn new(clients: usize, d: usize) -> Self {
        let zero = vec![0.0; clients * d];
        Self { d, variates: zero.clone(), mean: vec![0.0; d], corrections: zero }
    }

    /// ξ_k, d numbers.
    pub fn of(&self, client: usize) -> &[f64] {
        &self.corrections[client * self.d..][..self.d]
    }

    /// ξ of all clients, N rows of d.
    pub fn all(&self) -> &[f64] {
        &self.corrections
    }

    /// c_k ← c_k − c̄ + (θ_t − θ_k)/(γ_k E_k), from a round that client k began
    /// at `before`, ended at `end`, and moved along in by `length` = γ_k E_k.
    /// With equal work and full participation this is
    /// ξ_k ← ξ_k + (θ_k − θ_{t+1})/(γH) (SLIDES II; SCAFFLSA Alg. 4 with the
    /// opposite sign), and it stays right without either, where the compact
    /// rule goes to the root of Σ E_k F̄_k. [`Self::settle`] follows.
    pub fn learn(&mut self, client: usize, before: &[f64], end: &[f64], length: f64) {
        let variate = &mut self.variates[client * self.d..][..self.d];
        for i in 0..self.d {
            variate[i] = variate[i] - self.mean[i] + (before[i] - end[i]) / length;
        }
    }

    /// c_k ← `value`, d numbers. [`Self::settle`] follows.
    pub fn set(&mut self, client: usize, value: &[f64]) {
        self.variates[client * self.d..][..self.d].copy_from_slice(value);
    }

    /// ξ_k ← ξ_k + (p/γ)(θ_k − θ̄) for every client, at a communication under
    /// a coin of probability p (SCAFFLSA Alg. 2; Scaffnew): `ends` are θ_k, N
    /// rows of d, `mean` is θ̄, `rate` p/γ.
    pub fn learn_by_coin(&mut self, ends: &[f64], mean: &[f64], rate: f64) {
        let rows = self.variates.chunks_exact_mut(self.d).zip(ends.chunks_exact(self.d));
        for (variate, end) in rows {
            for i in 0..mean.len() {
                variate[i] -= rate * (end[i] - mean[i]);
            }
        }
        self.settle();
    }

    /// c̄ ← N⁻¹ Σ c_k and ξ_k ← c̄ − c_k.
    pub fn settle(&mut self) {
        mean_rows(&self.variates, &mut self.mean);
        let d = self.d;
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

    fn sum(variates: &ControlVariates, n: usize) -> f64 {
        let of = |i: usize| (0..n).map(|c| variates.of(c)[i]).sum::<f64>().abs();
        (0..variates.d).map(of).fold(0.0, f64::max)
    }

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
            (0..n).for_each(|c| variates.learn(c, &before, &ends[c * d..][..d], length));
            variates.settle();
            for (k, xi) in published.iter().enumerate() {
                assert!((variates.corrections[k] - xi).abs() < 1e-12);
            }
            assert!(sum(&variates, n) < 1e-13);
        }
    }

    #[test]
    fn the_coins_rule_is_the_published_one() {
        let (n, d, rate) = (4, 2, 1.3);
        let mut rng = Stream::shared_instance(2);
        let mut variates = ControlVariates::new(n, d);
        let mut published = vec![0.0; n * d];
        for _ in 0..20 {
            let ends: Vec<f64> = (0..n * d).map(|_| rng.gaussian()).collect();
            let mut mean = vec![0.0; d];
            mean_rows(&ends, &mut mean);
            variates.learn_by_coin(&ends, &mean, rate);
            for (k, xi) in published.iter_mut().enumerate() {
                *xi += rate * (ends[k] - mean[k % d]);
                assert!((variates.corrections[k] - *xi).abs() < 1e-12);
            }
            assert!(sum(&variates, n) < 1e-13);
        }
    }
}
