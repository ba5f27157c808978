//! How the noises of a round become known: their covariances from the second moments of their sources. Of a vector that
//! each client has, `mean` is the mean over a type of clients, and `own` a client's deviation from it, THEORY (3.1).
//!
//! A type is all clients that no round tells apart, a form a vector W x + Σ G_i n_i of coordinates x and noises n_i,
//! and the source of a noise the vector in whose second moments its covariance is linear. A matrix of second moments
//! may have several *layers*: then each entry is as many numbers next to each other.
//!
//! V is the covariance of a noise that each client draws on its own, 𝒩_h the noise map of h local steps, b a coin of
//! probability s, and 1_k says whether client k is drawn, with the probability p = L/N, q = p (1 − p) and
//! r = −q/(N − 1). Other draws have q_g and r_gh for types and pairs of types ([`super::participation`]). S, J and Π̄ of
//! steps under a coin are explained in [`super::coin`].
//!
//! ```text
//! THEORY (2.6)   V = 𝒩_h(E y y'ᵀ) for local steps and gradients, from their states y and y'
//! THEORY (3.5)   Cov n̄_g = V / n_g,   Cov ñ_k = (1 − 1/n_g) V
//! THEORY (3.6)   Cov n̄_g = J(Ȳ) − Π̄ Ȳ Π̄ᵀ + (S − J)(Ȳ + D) / n_g
//!                Cov ñ_k = J(D) − Π̄ D Π̄ᵀ + (1 − 1/n_g) (S − J)(Ȳ + D)
//! THEORY (4.5)   E (b − s)² v v'ᵀ = s (1 − s) E v v'ᵀ, or its diagonal if each entry has a coin of its own
//! THEORY (4.6)   Cov( Σ_{k∈G} (1_k − p) a_k, Σ_{j∈H} (1_j − p) b_j )
//!                = (q − r) Σ_{k∈G∩H} E a_k b_kᵀ + r E ( Σ_{k∈G} a_k ) ( Σ_{j∈H} b_j )ᵀ
//! THEORY (4.11)  = Σ_{g∈G∩H} (q_g − r_gg) n_g E a_k b_kᵀ + Σ_{g∈G, h∈H} r_gh n_g n_h E ā_g b̄_hᵀ
//! THEORY (4.7)   of deviations: (1 − 1/n) ( (q − r) E ā_g b̄_gᵀ + (q + r/(n − 1)) E ã_k b̃_kᵀ )
//! ```

use super::form::Form;
use super::layers;
use super::moments::ProgramMoments;
use super::noise::{KnownMoments, NoiseCovariance};
use super::participation::DrawLaw;
use super::stages::{Drawn, Law, NoiseSource, Stage};
use crate::linalg::Matrix;
use crate::round_program::Each;

impl ProgramMoments<'_> {
    /// Adds to what is known the coordinates or the noises of a stage. The second moments of a noise's source are
    /// known by then, since stages are in the order of the round.
    pub(super) fn learn(&self, known: &mut KnownMoments, stage: &Stage) {
        match stage {
            Stage::Coordinates(form) => known.append(form),
            Stage::Sum(parts) => known.add_sum(parts),
            Stage::Noise { source, law, with } => {
                let mut with_earlier = Vec::with_capacity(with.len());
                for earlier in with {
                    let covariance = self.covariance(known, source, &earlier.source, &earlier.law);
                    with_earlier.push((earlier.id, covariance));
                }
                known.add_noise(self.covariance(known, source, source, law), with_earlier);
            }
            Stage::Drawn(all) => self.learn_draw(known, all),
        }
    }

    /// The covariance of two noises that are drawn together, or of one noise with itself, by their law from the second
    /// moments of their sources a and b; there are deviations if both are of one type. It is THEORY (3.5) for draws of
    /// each client, of local steps by THEORY (2.3), (2.6), (2.7) and of masks by THEORY (4.5); THEORY (3.6) and,
    /// for two types, THEORY (2.11) under a coin.
    fn covariance(
        &self,
        known: &KnownMoments,
        a: &NoiseSource,
        b: &NoiseSource,
        law: &Law,
    ) -> NoiseCovariance {
        let d = self.setup.d;
        let layers = known.layers;
        // The type, if both sources are of one type.
        let same = a.of.filter(|_| a.of == b.of);
        let mean = known.second(&a.y, &b.y);
        let own = same.map(|g| known.own_second(g, &a.own, &b.own));
        match law {
            Law::Normal => {
                let mut covariance = Matrix::zeros(d, d * layers);
                // In the difference of two runs, which have the same normal numbers, the number 1 and the noise are 0.
                let unit = known.unit();
                for i in 0..d {
                    layers::entry_mut(&mut covariance, (i, i), layers).copy_from_slice(&unit);
                }
                self.split_by_type(covariance, same)
            }
            Law::Steps(steps) => {
                let whole = whole_moments(mean, own.as_ref());
                self.split_by_type(steps.noise_from(&whole, layers), same)
            }
            Law::Mask { variance, each, shared } => {
                let mask = MaskLaw { variance: *variance, each: *each, layers };
                if *shared {
                    // All clients lose the same entries, so that means and deviations are masked alike.
                    NoiseCovariance {
                        mean: mask.covariance(&mean),
                        deviation: own.map(|own| mask.covariance(&own)),
                    }
                } else {
                    let whole = whole_moments(mean, own.as_ref());
                    self.split_by_type(mask.covariance(&whole), same)
                }
            }
            Law::Coin(pair) => {
                let of_number = pair.covariance_by_number(&mean, layers);
                let Some(own) = own else {
                    return NoiseCovariance { mean: of_number, deviation: None };
                };
                let whole = mean.plus(1.0, &own);
                // (S − J)(Ȳ + D): what the oracle's noise adds for each client.
                let of_one = pair.mine.second_of_one(&whole, layers);
                let of_oracle = of_one.plus(-1.0, &pair.second_of_two(&whole, layers));
                let split = self.split_by_type(of_oracle, same);
                let of_deviations = pair.covariance_by_number(&own, layers);
                NoiseCovariance {
                    mean: split.mean.plus(1.0, &of_number),
                    deviation: split.deviation.map(|part| part.plus(1.0, &of_deviations)),
                }
            }
        }
    }

    /// Splits the covariance V of two noises of one client, which each client draws on its own, if both are of type
    /// `same`: the means over the n clients of the type have V/n, and the deviations (1 − 1/n) V, THEORY (3.5). For
    /// `None`, noises of the server or of different types, nothing is split.
    fn split_by_type(&self, covariance: Matrix, same: Option<usize>) -> NoiseCovariance {
        let Some(g) = same else {
            return NoiseCovariance { mean: covariance, deviation: None };
        };
        let n = self.setup.types[g].count;
        NoiseCovariance {
            mean: covariance.scaled(1.0 / n),
            deviation: Some(covariance.scaled(1.0 - 1.0 / n)),
        }
    }

    /// Adds the noises of the last of these operations, which read which clients take part, with their covariances with
    /// noises of the earlier operations and with each other.
    fn learn_draw(&self, known: &mut KnownMoments, all: &[Drawn]) {
        let Some(last) = all.last() else { return };
        let types = self.setup.types.len();
        for g in 0..last.noises(types) {
            let mut with_earlier = Vec::new();
            for other in all {
                for h in 0..other.noises(types) {
                    let id = other.first + h;
                    if id < last.first + g {
                        with_earlier.push((id, self.drawn_covariance(known, last, g, other, h)));
                    }
                }
            }
            let own = self.drawn_covariance(known, last, g, last, g);
            known.add_noise(own, with_earlier);
        }
    }

    /// The covariance of two noises of a draw of clients, noise g of `a` and noise h of `b`. If `a.server`, the first is
    /// Σ_k (m_k − E m_k) a_k over all clients k, and otherwise the mean of (1_k − E 1_k) a_k over type g; the second is
    /// made of `b` and h in this way. The covariance of means is THEORY (4.6), or (4.11) where clients are drawn by
    /// their shares, divided by the numbers of clients of the types, and the covariance of a client's deviations THEORY (4.7), if both noises are of one
    /// type. There are at least two clients, since a cohort is neither empty nor everybody.
    fn drawn_covariance(
        &self,
        known: &KnownMoments,
        a: &Drawn,
        g: usize,
        b: &Drawn,
        h: usize,
    ) -> NoiseCovariance {
        let types = &self.setup.types;
        let factors = [a.factor(), b.factor()];
        let law = &a.law;
        let d = self.setup.d;
        let mut out = Matrix::zeros(d, d * known.layers);
        let mut deviation = None;
        // The types whose clients are in both noises.
        let both = (0..types.len()).filter(|k| (a.server || *k == g) && (b.server || *k == h));
        for k in both {
            let mean = known.second(&a.mean[k], &b.mean[k]);
            let own = known.own_second(k, &a.own[k], &b.own[k]);
            let count = types[k].count;
            let q = law.own(factors, k);
            let r = law.pair(factors, k, k);
            out.add((q - r) * count, &mean.plus(1.0, &own));
            if !a.server && !b.server {
                let rest = if count > 1.0 { q + r / (count - 1.0) } else { 0.0 };
                let each = mean.scaled(q - r).plus(rest, &own);
                deviation = Some(each.scaled(1.0 - 1.0 / count));
            }
        }
        // The second term of THEORY (4.6): the sums over the clients of each noise, as means times numbers of clients.
        let (a_mean, a_count) = self.mean_of_drawn(a, g);
        let (b_mean, b_count) = self.mean_of_drawn(b, h);
        if let DrawLaw::Uniform { .. } = **law {
            let r = law.pair(factors, 0, 0);
            out.add(r * a_count * b_count, &known.second(a_mean, b_mean));
        } else {
            for i in (0..types.len()).filter(|i| a.server || *i == g) {
                let mut others = Form::zero(d);
                for j in (0..types.len()).filter(|j| b.server || *j == h) {
                    let r = law.pair(factors, i, j);
                    others.add(&vec![r * types[i].count * types[j].count; d], &b.mean[j]);
                }
                out.add(1.0, &known.second(&a.mean[i], &others));
            }
        }
        // From sums over types to means.
        NoiseCovariance { mean: out.scaled(1.0 / (a_count * b_count)), deviation }
    }

    /// A form and a number whose product is the sum of the rows a_k that noise number g of a draw is made of: the sum
    /// over all clients and 1, or the mean over type g and n_g.
    fn mean_of_drawn<'d>(&self, drawn: &'d Drawn, g: usize) -> (&'d Form, f64) {
        if drawn.server { (&drawn.total, 1.0) } else { (&drawn.mean[g], self.setup.types[g].count) }
    }
}

/// E y y'ᵀ of the sources y and y' of two noises of one client, THEORY (3.2): the sum of these second moments of the
/// means over its type and of its deviations. Without deviations, the sources are of different types or of the server,
/// and the means have all of it, THEORY (3.4).
fn whole_moments(of_means: Matrix, of_deviations: Option<&Matrix>) -> Matrix {
    match of_deviations {
        None => of_means,
        Some(of_deviations) => of_means.plus(1.0, of_deviations),
    }
}

/// How a mask's coins make the covariance of its noise, THEORY (4.5).
#[derive(Clone, Copy)]
struct MaskLaw {
    /// s (1 − s).
    variance: f64,
    /// Whether each vector or each of its entries has a coin.
    each: Each,
    /// The number of layers of second moments.
    layers: usize,
}

impl MaskLaw {
    /// The covariance of (b − s) v from `second` = E v vᵀ, d × d. The coins of different entries are one coin, or
    /// independent; or those of a subset, whose correlation is −1/(d − 1), THEORY (4.19).
    fn covariance(self, second: &Matrix) -> Matrix {
        let d = second.rows();
        let correlation = match self.each {
            Each::Row => 1.0,
            Each::Entry => 0.0,
            // A subset of the only entry is that entry: there are no pairs.
            Each::Subset => -1.0 / (d.max(2) - 1) as f64,
        };
        Matrix::from_fn(d, second.cols(), |i, j| {
            let factor = if i == j / self.layers { 1.0 } else { correlation };
            factor * self.variance * second[(i, j)]
        })
    }
}
