//! Every random draw: its stream and its distribution.
//!
//! *Invariant*: a stream is identified by the seed, purpose, copy, replicate and client, and by
//! nothing else. So no draw depends on threads, on the order of the runs, on the algorithm
//! or on the grid: two algorithms on one replicate have the same noise, and ten clients
//! are the first ten of a hundred.
//!
//! *Invariant*: draws are made of integer arithmetic, IEEE operations and `libm`, so they
//! have the same bits on every machine.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::LazyLock;

/// The number of replicates that the stream numbers can distinguish.
pub const MAX_REPLICATES: u64 = 1 << 24;
/// The number of clients that the stream numbers can distinguish.
pub const MAX_CLIENTS: u64 = 1 << 28;

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// What all clients of an instance share.
    SharedInstance = 0,
    /// One client's part of an instance.
    ClientInstance = 1,
    /// A client's oracle noise during a run.
    Client = 2,
    /// The server's coins during a run.
    Server = 3,
    /// Draws during a run of an algorithm that is defined outside of this crate.
    Algorithm = 4,
    /// The compression of a client's messages during a run.
    ClientCompression = 5,
    /// The compression of the server's messages during a run.
    ServerCompression = 6,
    /// Which clients are stragglers in the rounds of a run, and how much they do.
    Stragglers = 7,
}

/// How many draws a stream makes in advance at a time: the 32 words of 64 bits that ChaCha8 computes together.
pub const AHEAD: usize = 32;

/// A ChaCha8 stream: the seed gives the key; purpose, copy, replicate and client give the
/// stream number. It stores draws made in advance, which kernels read in place.
#[derive(Clone)]
pub struct Stream {
    source: StreamSource,
    /// How many draws of `ahead` are used.
    used: usize,
    ahead: [u64; AHEAD],
}

/// Where a stream takes its draws from.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all streams have the large one")]
enum StreamSource {
    Cipher(ChaCha8Rng),
    /// Draws that were made beforehand ([`Stream::of_indices`]): those that are left.
    Given(std::vec::IntoIter<u64>),
}

impl Stream {
    /// The stream of `purpose` for `client` in `replicate`, from its beginning; `client` is 0 where the stream is not
    /// of a client. `copy` distinguishes runs of one replicate that must not share noise (Richardson-Romberg with
    /// independent coupling), and is 0 for all others. Among the streams of [`Purpose::SharedInstance`], copy 0 draws
    /// an instance, and others the seeds of several instances (1 and 2, with the number of an instance as
    /// `replicate`) and the test set (2, with 0): a copy with a new use needs another number.
    pub fn new(seed: u64, purpose: Purpose, copy: u8, replicate: u64, client: u64) -> Self {
        debug_assert!(replicate < MAX_REPLICATES && client < MAX_CLIENTS);
        let mut rng = ChaCha8Rng::from_seed(key(seed));
        rng.set_stream((purpose as u64) << 60 | u64::from(copy) << 52 | replicate << 28 | client);
        Self { source: StreamSource::Cipher(rng), used: AHEAD, ahead: [0; AHEAD] }
    }

    /// The stream for what all clients of an instance share.
    pub fn shared_instance(seed: u64) -> Self {
        Self::new(seed, Purpose::SharedInstance, 0, 0, 0)
    }

    /// The stream for one client's part of an instance.
    pub fn client_instance(seed: u64, client: usize) -> Self {
        Self::new(seed, Purpose::ClientInstance, 0, 0, client as u64)
    }

    /// A stream from which [`Stream::index`] with this `n` draws these indices in `0..n`, one after the other. So kernels
    /// whose steps draw records with replacement can be given records that were drawn otherwise.
    ///
    /// # Panics
    /// If n is 0 or above 2³², and later if more is drawn than these indices.
    pub fn of_indices(indices: impl Iterator<Item = usize>, n: usize) -> Self {
        assert!(n > 0 && n as u64 <= 1 << 32);
        // This is the least whole number that is at least 2⁶⁴/n, so that i times it, times n, is i·2⁶⁴ and less than n²
        // more. It is 0 for n = 1, where i is 0.
        let spacing = (u64::MAX / n as u64).wrapping_add(1);
        let draws: Vec<u64> = indices.map(|i| i as u64 * spacing).collect();
        let source = StreamSource::Given(draws.into_iter());
        Self { source, used: AHEAD, ahead: [0; AHEAD] }
    }

    /// The next draw of the stream, 64 uniform bits, from which all other draws are made.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if self.used == AHEAD {
            self.draw_ahead();
        }
        // The remainder changes nothing, but removes a bounds check.
        let draw = self.ahead[self.used % AHEAD];
        self.used += 1;
        draw
    }

    /// The next draws, from 1 to [`AHEAD`] words of 64 uniform bits, which kernels read in place. They count as used
    /// only once [`Stream::skip`] says so.
    #[inline]
    pub fn ready(&mut self) -> &[u64] {
        if self.used >= AHEAD {
            self.draw_ahead();
        }
        &self.ahead[self.used..]
    }

    /// Marks the first `count` of the draws that [`Stream::ready`] returned as used.
    ///
    /// # Panics
    /// If `ready` returned fewer draws.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.used += count;
        assert!(self.used <= AHEAD, "more draws skipped than were ready");
    }

    /// The place of the next draw among those that are made, [`AHEAD`] if all are used: the field that
    /// [`Stream::unused`] reads first. It is returned as a reference, so that a kernel can prefetch it.
    #[inline]
    pub(crate) fn position(&self) -> &usize {
        &self.used
    }

    /// The draws that are made and not yet used. In contrast to [`Stream::ready`] it makes no more if there are none,
    /// and returns an empty slice.
    #[inline]
    pub(crate) fn unused(&self) -> &[u64] {
        &self.ahead[self.used.min(AHEAD)..]
    }

    /// Makes the next [`AHEAD`] draws in place of those that are used. Their bytes are read as little-endian words, so
    /// that the draws are the same on every machine. Draws that were made beforehand may end before the last of them,
    /// which are then not used.
    ///
    /// # Panics
    /// If the stream was given its draws, and none is left.
    #[cold]
    #[inline(never)]
    fn draw_ahead(&mut self) {
        match &mut self.source {
            StreamSource::Cipher(rng) => {
                rng.fill_bytes(bytemuck::cast_slice_mut(&mut self.ahead));
                if cfg!(target_endian = "big") {
                    self.ahead.iter_mut().for_each(|word| *word = u64::from_le(*word));
                }
            }
            StreamSource::Given(left) => {
                assert!(left.len() > 0, "more draws than were given");
                self.ahead.iter_mut().zip(left).for_each(|(ahead, draw)| *ahead = draw);
            }
        }
        self.used = 0;
    }

    /// A uniform number in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform index in `0..n` from one draw, for an n of 1 or more. No probability differs from 1/n by more than
    /// 2⁻⁶⁴.
    #[inline]
    pub fn index(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// `k` indices in `0..n`, drawn without replacement: the first `k` entries of a uniform permutation, in its
    /// order. With k = n it shuffles.
    ///
    /// # Panics
    /// If k is above n.
    pub fn distinct(&mut self, n: usize, k: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in 0..k {
            let j = i + self.index(n - i);
            all.swap(i, j);
        }
        all.truncate(k);
        all
    }

    /// A standard Gaussian number, by the ziggurat of Marsaglia and Tsang with 256
    /// layers and `libm` in wedge and tail. It mostly takes one draw of [`Stream::bits`], sometimes more.
    pub fn gaussian(&mut self) -> f64 {
        let zig = &*ZIGGURAT;
        loop {
            let draw = self.bits();
            let layer = (draw & 0xff) as usize;
            // uniform on (-1, 1) from the 53 bits above the layer's
            let u = ((draw >> 11) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64) - 1.0;
            let x = u * zig.edge[layer];
            if x.abs() < zig.edge[layer + 1] {
                return x;
            }
            // Beyond the edge, the base layer is the tail; in any other layer the density decides.
            if layer == 0 {
                return self.tail().copysign(u);
            }
            let low = zig.height[layer];
            let high = zig.height[layer + 1];
            if low + self.uniform() * (high - low) < libm::exp(-0.5 * x * x) {
                return x;
            }
        }
    }

    /// The number of trials up to the first success, which has the probability p in (0, 1] in each trial, such as the
    /// number of local steps up to a communication under a coin: geometric on 1, 2, …, from one draw.
    pub fn geometric(&mut self, p: f64) -> u64 {
        let u = 1.0 - self.uniform();
        if p >= 1.0 {
            return 1;
        }
        // P(τ > k) = (1 − p)^k; u is in (0, 1].
        ((libm::log(u) / libm::log1p(-p)) as u64).saturating_add(1)
    }

    /// A number from the gamma distribution of this shape, which must be above 0, and of scale 1 (Marsaglia and Tsang
    /// 2000). It is 0 where it underflows, as it does for a tiny shape.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        // Their method needs a shape of 1 or more. A smaller shape is that of Gamma(shape + 1) U^(1/shape), U uniform.
        if shape < 1.0 {
            let boost = libm::pow(1.0 - self.uniform(), 1.0 / shape);
            return boost * self.gamma(shape + 1.0);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.gaussian();
            let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
            if v <= 0.0 {
                continue;
            }
            let u = 1.0 - self.uniform();
            if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// `n` shares of a whole, 0 or more with the sum 1 up to rounding, from the distribution Dirichlet(α, …, α) with
    /// α above 0: the smaller α is, the more unequal they are.
    pub fn dirichlet(&mut self, n: usize, alpha: f64) -> Vec<f64> {
        let mut shares: Vec<f64> = (0..n).map(|_| self.gamma(alpha)).collect();
        let total = shares.iter().fold(0.0, |sum, x| sum + x);
        if total > 0.0 {
            shares.iter_mut().for_each(|x| *x /= total);
        } else {
            // All underflowed: for so small an α one share has all the weight.
            shares[self.index(n)] = 1.0;
        }
        shares
    }

    /// A Gaussian number, given that it is above the edge where the ziggurat's tail begins, by Marsaglia's method. The
    /// caller gives it its sign.
    fn tail(&mut self) -> f64 {
        loop {
            let x = -libm::log(1.0 - self.uniform()) / ZIG_EDGE;
            let y = -libm::log(1.0 - self.uniform());
            if y + y > x * x {
                return ZIG_EDGE + x;
            }
        }
    }
}

/// The 256 bits of ChaCha8's key for a seed of 64 bits: four outputs of SplitMix64, so that similar seeds have unlike
/// keys.
fn key(seed: u64) -> [u8; 32] {
    let mut state = seed;
    let mut key = [0; 32];
    for word in key.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    key
}

/// Where the ziggurat's base layer ends and its tail begins.
const ZIG_EDGE: f64 = 3.654_152_885_361_009;
/// The area of each of the ziggurat's 256 layers, which cover the area below exp(-x²/2), x ≥ 0.
const ZIG_AREA: f64 = 0.004_928_673_233_974_655;

/// The layers of equal area under the Gaussian density from which [`Stream::gaussian`] draws.
struct Ziggurat {
    /// The right ends of the layers. The end of the base layer is stretched to the layer's area.
    edge: [f64; 257],
    /// exp(-x²/2) at the layers' lower sides.
    height: [f64; 257],
}

/// exp(−x²/2): the Gaussian density but for its factor, which the ziggurat leaves out.
fn bell(x: f64) -> f64 {
    libm::exp(-0.5 * x * x)
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let mut edge = [0.0; 257];
    let mut height = [0.0; 257];
    edge[0] = ZIG_AREA / bell(ZIG_EDGE);
    edge[1] = ZIG_EDGE;
    height[1] = bell(ZIG_EDGE);
    for i in 2..256 {
        height[i] = height[i - 1] + ZIG_AREA / edge[i - 1];
        edge[i] = libm::sqrt(-2.0 * libm::log(height[i]));
    }
    height[256] = 1.0;
    Ziggurat { edge, height }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_indices_are_drawn_in_their_order() {
        for n in [1, 2, 3, 7, 64, 1000, 32_561, 1 << 32] {
            let wanted: Vec<usize> = (0..100).map(|i| i * 7 % n).chain([n - 1, 0, n / 2]).collect();
            let mut stream = Stream::of_indices(wanted.iter().copied(), n);
            let drawn: Vec<usize> = wanted.iter().map(|_| stream.index(n)).collect();
            assert_eq!(drawn, wanted, "n = {n}");
        }
    }

    #[test]
    #[should_panic(expected = "more draws than were given")]
    fn nothing_is_drawn_after_the_given_indices() {
        Stream::of_indices(std::iter::empty(), 1).bits();
    }

    #[test]
    fn streams_are_named_by_every_part_of_their_name() {
        let base = Stream::new(1, Purpose::Client, 0, 0, 0).bits();
        for mut other in [
            Stream::new(2, Purpose::Client, 0, 0, 0),
            Stream::new(1, Purpose::Server, 0, 0, 0),
            Stream::new(1, Purpose::Client, 1, 0, 0),
            Stream::new(1, Purpose::Client, 0, 1, 0),
            Stream::new(1, Purpose::Client, 0, 0, 1),
        ] {
            assert_ne!(base, other.bits());
        }
        assert_eq!(base, Stream::new(1, Purpose::Client, 0, 0, 0).bits());
    }

    #[test]
    fn values_are_fixed_for_ever() {
        // Every stored result was computed with these values.
        let mut s = Stream::new(2024, Purpose::Client, 0, 3, 7);
        let bits = [s.bits(), s.bits()];
        let gaussian = [s.gaussian().to_bits(), s.gaussian().to_bits()];
        assert_eq!(bits, [0x45c5_27f4_6c4b_25f8, 0xd8dd_6349_4fc3_e3c9]);
        assert_eq!(gaussian, [0x3ffd_ba1f_6570_a4a1, 0xbfd8_6a52_1b09_0c24]);
    }

    #[test]
    fn draws_that_are_ready_are_the_next_ones() {
        let mut a = Stream::shared_instance(5);
        let mut b = a.clone();
        for take in [1, 3, 32, 33, 7, 1, 64] {
            let ready = a.ready().to_vec();
            let take = take.min(ready.len());
            a.skip(take);
            assert_eq!(ready[..take], (0..take).map(|_| b.bits()).collect::<Vec<_>>());
        }
        assert_eq!(a.bits(), b.bits());
    }

    #[test]
    fn indices_are_uniform() {
        let n = 7;
        let draws = 70_000;
        let mut s = Stream::shared_instance(11);
        let mut count = vec![0.0; n];
        (0..draws).for_each(|_| count[s.index(n)] += 1.0);
        let expected = draws as f64 / n as f64;
        let chi2: f64 = count.iter().map(|c| (c - expected) * (c - expected) / expected).sum();
        assert!(chi2 < 22.5, "chi-square {chi2} on 6 degrees of freedom, p < 0.001");
    }

    /// The probability that a standard Gaussian number is at most x.
    fn normal_distribution(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    #[test]
    fn gaussians_follow_the_normal_law() {
        let n = 2_000_000;
        let mut s = Stream::shared_instance(3);
        let mut x: Vec<f64> = (0..n).map(|_| s.gaussian()).collect();
        x.sort_by(f64::total_cmp);
        let ks = x.iter().enumerate().fold(0.0_f64, |worst, (i, &x)| {
            worst.max((normal_distribution(x) - i as f64 / n as f64).abs())
        });
        assert!(ks * (n as f64).sqrt() < 1.95, "Kolmogorov distance {ks}, p < 0.001");
        let beyond = x.iter().filter(|x| x.abs() > ZIG_EDGE).count() as f64;
        let expected = 2.0 * normal_distribution(-ZIG_EDGE) * n as f64;
        assert!((beyond - expected).abs() < 4.0 * expected.sqrt(), "{beyond} against {expected}");
    }

    /// Asserts that `n` draws have this mean and this variance, within the standard errors that [`assert_mean`] allows.
    ///
    /// [`assert_mean`]: crate::sample::assert_mean
    fn assert_moments(n: usize, mean: f64, variance: f64, mut draw: impl FnMut() -> f64) {
        let x: Vec<f64> = (0..n).map(|_| draw()).collect();
        crate::sample::assert_mean(&x, mean, "mean");
        let squares: Vec<f64> = x.iter().map(|x| (x - mean) * (x - mean)).collect();
        crate::sample::assert_mean(&squares, variance, "variance");
    }

    #[test]
    fn geometric_gamma_and_dirichlet_have_their_moments() {
        let mut s = Stream::shared_instance(21);
        for p in [1.0, 0.7, 0.1, 0.001] {
            assert_moments(200_000, 1.0 / p, (1.0 - p) / (p * p), || s.geometric(p) as f64);
        }
        for shape in [0.1, 0.5, 1.0, 3.0, 40.0] {
            assert_moments(400_000, shape, shape, || s.gamma(shape));
        }
        let n = 5;
        let alpha = 0.3;
        let mean = 1.0 / n as f64;
        let total = n as f64 * alpha;
        assert_moments(200_000, mean, mean * (1.0 - mean) / (total + 1.0), || {
            s.dirichlet(n, alpha)[2]
        });
        for alpha in [1e-6, 1e-3, 1.0, 1e6] {
            let sum: f64 = s.dirichlet(7, alpha).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{alpha}: {sum}");
        }
    }

    #[test]
    fn distinct_draws_are_distinct_and_in_range() {
        let mut s = Stream::shared_instance(8);
        for k in 0..=6 {
            let mut indices = s.distinct(6, k);
            assert!(indices.iter().all(|&i| i < 6));
            indices.sort_unstable();
            indices.dedup();
            assert_eq!(indices.len(), k);
        }
    }
}
