//! The effect of local steps until a coin ends them, on first and second moments: a geometric number of steps,
//! which all clients share.
//!
//! y = (e, 1, w) is the state in which a client begins its local steps, n numbers: the error e = θ − θ*, the number 1,
//! and the constant part w of the drift. It is (e, 1) where w is the same in all rounds. A matrix of second moments may
//! have several *layers*: then each entry is as many numbers next to each other, and maps act on each layer alike.
//!
//! The number K of steps has P(K = k) = p (1 − p)^{k−1}. With Π_k and X_k of k steps as in [`super::local`], and T the
//! map of E y yᵀ over one step, the end e of one client has these moments, and e' is the end of another client with the
//! same K:
//!
//! ```text
//! THEORY (2.8)    E e = Π̄ E y,            Π̄ = Σ_k p (1 − p)^{k−1} Π_k
//! THEORY (2.9)    E e eᵀ = S(E y yᵀ),     S(Y) = the e-block of Σ_k p (1 − p)^{k−1} Tᵏ(Y)
//! THEORY (2.10)   E e e'ᵀ = J(E y y'ᵀ),   J(Y) = Σ_k p (1 − p)^{k−1} the e-block of X_1ᵏ Y (X_1'ᵏ)ᵀ
//! THEORY (2.11)   the noises n = e − Π̄ y have the covariances J(Y) − Π̄ Y Π̄'ᵀ, and S(Y) − Π̄ Y Π̄ᵀ of one client
//! ```

use super::layers;
use super::local::{Steps, extended, largest, rows_of};
use crate::linalg::Matrix;
use std::sync::{Arc, OnceLock};

/// Terms of a series whose weight, or whose map of second moments, has a size of at most this are neglected.
pub(super) const NEGLIGIBLE: f64 = 1e-20;
/// The most that the product of the weight of the neglected terms and the size of the largest known power of a local
/// step may be. If it is larger, steps expand, and the series is summed with discounted steps instead.
const SMALL: f64 = 1e-17;
/// The size beyond which the powers of a local step are taken to grow for ever, so that a sum is infinite.
const GROWN: f64 = 1e40;
/// The most doublings of a discounted local step. If its power has not vanished by then, it is taken never to vanish:
/// rounding errors could decide about it.
const MOST_DOUBLINGS: u32 = 40;

/// What does not exist after a geometric number of local steps, because a sum is infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InfiniteMoments {
    /// Second moments: (1 − p) times the spectral radius of their map in a local step is not below 1.
    Second,
    /// Means as well: (1 − p) times the spectral radius of their map in a local step is not below 1 either.
    All,
}

/// The local steps of a client until the next communication under a coin of probability p: moments after a
/// geometric number K of steps, which all clients share.
///
/// The series THEORY (2.8), (2.9) are summed by doubling. The series of second moments is finite if and only if
/// (1 − p) ρ(T) < 1, where T is the map of second moments in a local step. Where local steps expand, its
/// terms are small only as products of a small weight and a large power; there each step is discounted by
/// √(1 − p), so that weight and power are one number.
pub struct GeometricSteps {
    /// The probability p that the coin ends the steps after one of them.
    probability: f64,
    /// The moments that are infinite after the steps, if any are.
    pub infinite: Option<InfiniteMoments>,
    /// The factor by which each step in `powers` multiplies y in addition: √(1 − p) where steps expand, else 1.
    discount: f64,
    /// Π̄ = E Π_K, d × n: THEORY (2.8).
    pub end: Matrix,
    /// S, which maps E y yᵀ of one client to E e eᵀ, d² × n²: THEORY (2.9). Without rows if second moments
    /// are not followed or infinite.
    second: Matrix,
    /// X_h of THEORY (2.4) for h = 1, 2, 4, … steps, discounted.
    powers: Vec<Matrix>,
}

impl GeometricSteps {
    /// How many doublings of a local step lead to a number h of steps for which (1 − p)^h is negligible. For steps that
    /// do not expand all later terms are negligible too.
    pub fn doublings(probability: f64) -> u32 {
        let mut weight = 1.0 - probability;
        let mut doublings = 0;
        while weight > NEGLIGIBLE {
            weight *= weight;
            doublings += 1;
        }
        doublings
    }

    /// The moments after a geometric number of steps. `powers` has 1, 2, 4, … local steps, the last of them after as
    /// many [doublings](Self::doublings) as the probability needs.
    pub fn new(powers: &[Arc<Steps>], probability: f64) -> Self {
        let step = &powers[0];
        let last = &powers[powers.len() - 1];
        let tails = 1.0 - probability;
        // The probability that there are more steps than the last power has.
        let weight = libm::pow(tails, libm::ldexp(1.0, powers.len() as i32 - 1));
        if step.is_of_means() {
            return Self::of_means(step, probability, None);
        }
        // A coin that always falls leaves one step, whatever its size.
        if tails == 0.0 || weight * last.size() <= SMALL {
            return Self::summed(powers, probability, 1.0);
        }
        let discount = libm::sqrt(tails);
        let mut discounted = vec![Arc::new(step.discounted(discount))];
        for _ in 0..MOST_DOUBLINGS {
            let last = discounted[discounted.len() - 1].clone();
            let size = last.size();
            if size <= NEGLIGIBLE && last.rest * last.rest <= NEGLIGIBLE {
                return Self::summed(&discounted, probability, discount);
            }
            if size.is_nan() || size > GROWN {
                break;
            }
            discounted.push(Arc::new(last.then(&last)));
        }
        Self::of_means(step, probability, Some(InfiniteMoments::Second))
    }

    /// Sums the series THEORY (2.8), (2.9), from the powers 1, 2, 4, … of a step with this discount: by doubling,
    /// S_{2n} = S_n + (1 − p)ⁿ S_n Tⁿ, and Π̄ in the same way.
    fn summed(powers: &[Arc<Steps>], probability: f64, discount: f64) -> Self {
        let step = &powers[0];
        let d = step.d;
        let n = step.ends[0].cols();
        let tails = 1.0 - probability;
        let mut end = step.ends[0].scaled(probability / discount);
        let square = discount * discount;
        let mut second = step.second_moments().scaled(probability / square);
        // The factor of (1 − p)ⁿ that the discounted powers do not contain, for means and for second moments.
        let mut weight = tails / discount;
        let mut of_squares = tails / square;
        for steps in &powers[..powers.len() - 1] {
            // The sum over the first n steps is known; add the next n.
            end.add(weight, &end.times(&extended(&steps.ends[0], steps.rest)));
            let ee = Matrix::from_fn(d * d, d * d, |i, k| second[(i, k / d * n + k % d)]);
            let mut later = steps.pulled_back(&second);
            later.add(1.0, &steps.mirrored(|rows| rows_of(&ee, rows).times(&steps.noise)));
            second.add(of_squares, &later);
            weight *= weight;
            of_squares *= of_squares;
        }
        let powers = powers.iter().map(|steps| extended(&steps.ends[0], steps.rest)).collect();
        Self { probability, infinite: None, discount, end, second, powers }
    }

    /// The steps with Π̄ of THEORY (2.8) alone, where second moments are not followed (`infinite` is `None`) or are
    /// infinite. If the series of means is infinite too, the entries of Π̄ are NaN.
    fn of_means(step: &Steps, probability: f64, infinite: Option<InfiniteMoments>) -> Self {
        let d = step.d;
        let n = step.ends[0].cols();
        let tails = 1.0 - probability;
        let mut end = step.ends[0].scaled(probability);
        let mut power = extended(&step.ends[0].scaled(tails), tails);
        for _ in 0..MOST_DOUBLINGS {
            let size = largest(&power);
            if size <= NEGLIGIBLE {
                return Self::without_second_moments(probability, infinite, end);
            }
            if size.is_nan() || size > GROWN {
                break;
            }
            end.add(1.0, &end.times(&power));
            power = power.times(&power);
        }
        let unknown = Matrix::from_fn(d, n, |_, _| f64::NAN);
        Self::without_second_moments(probability, Some(InfiniteMoments::All), unknown)
    }

    /// The steps of which the mean of the end is known, Π̄ = `end`, but no second moments.
    fn without_second_moments(
        probability: f64,
        infinite: Option<InfiniteMoments>,
        end: Matrix,
    ) -> Self {
        let n = end.cols();
        let second = Matrix::zeros(0, n * n);
        Self { probability, infinite, discount: 1.0, end, second, powers: Vec::new() }
    }

    /// S(Y) = E e eᵀ at the end of one client, d × d, where Y = `y` is its E y yᵀ in this many layers: THEORY (2.9).
    /// Second moments must be followed, and finite ([`Self::infinite`] is `None`).
    pub fn second_of_one(&self, y: &Matrix, layers: usize) -> Matrix {
        layers::mapped(&self.second, y, self.end.rows(), layers)
    }
}

/// Two clients that share the number K of their steps, and no other draw. Second moments of their ends exist only if
/// none of their [`GeometricSteps::infinite`] is set.
pub struct CoinPair {
    /// The steps of the first client.
    pub mine: Arc<GeometricSteps>,
    /// The steps of the second client.
    pub theirs: Arc<GeometricSteps>,
    /// J, which maps E y y'ᵀ to E e e'ᵀ, d² × n n', once it was asked for.
    map: OnceLock<Matrix>,
}

impl CoinPair {
    /// The pair of two clients with these steps, which are the same for two clients of one type. Both must have the
    /// same coin.
    pub fn new(mine: &Arc<GeometricSteps>, theirs: &Arc<GeometricSteps>) -> Arc<Self> {
        Arc::new(Self { mine: mine.clone(), theirs: theirs.clone(), map: OnceLock::new() })
    }

    /// J(Y) = E e e'ᵀ at the ends of the two clients, d × d, where Y = `y` is their E y y'ᵀ: THEORY (2.10).
    /// Given K their ends are independent.
    pub fn second_of_two(&self, y: &Matrix, layers: usize) -> Matrix {
        let d = self.mine.end.rows();
        if layers > 1 {
            return layers::mapped(self.map.get_or_init(|| self.map()), y, d, layers);
        }
        let sum = self.summed(y.clone(), |y, a, b| a.times(y).times(&b.transpose()));
        let first = self.mine.probability / self.discount();
        Matrix::from_fn(d, d, |i, j| first * sum[(i, j)])
    }

    /// J(Y) − Π̄ Y Π̄'ᵀ, where Y = `y` is E y y'ᵀ of the two clients: the covariance that the number of steps adds,
    /// which all clients share.
    pub fn covariance_by_number(&self, y: &Matrix, layers: usize) -> Matrix {
        let left = self.mine.end.times(y);
        let product = layers::times_transposed(&left, &self.theirs.end, layers);
        self.second_of_two(y, layers).plus(-1.0, &product)
    }

    /// What each pair of steps multiplies y y'ᵀ by in the powers: the product of the discounts of both clients.
    fn discount(&self) -> f64 {
        self.mine.discount * self.theirs.discount
    }

    /// Σ_k (1 − p)^{k−1} times the image of `begin` after k steps, THEORY (2.10), by doubling. `step` applies the
    /// powers X_h and X_h' of the two clients, its second and third argument, to a partial sum. The powers are
    /// discounted once for each step, but the weights for k − 1 steps, so that the caller must divide the result by
    /// [`Self::discount`].
    fn summed(&self, begin: Matrix, step: impl Fn(&Matrix, &Matrix, &Matrix) -> Matrix) -> Matrix {
        let mut mine = MatrixPowers::new(&self.mine);
        let mut theirs = MatrixPowers::new(&self.theirs);
        let mut sum = step(&begin, &mine.power, &theirs.power);
        let mut weight = (1.0 - self.mine.probability) / self.discount();
        for _ in 0..MOST_DOUBLINGS {
            if weight * largest(&mine.power) * largest(&theirs.power) <= NEGLIGIBLE {
                break;
            }
            let later = step(&sum, &mine.power, &theirs.power);
            sum.add(weight, &later);
            weight *= weight;
            mine.square();
            theirs.square();
        }
        sum
    }

    /// J of THEORY (2.10) as a matrix, d² × n n', which is applied to second moments of several layers at once.
    fn map(&self) -> Matrix {
        let d = self.mine.end.rows();
        let n = self.mine.end.cols();
        let first = self.mine.probability / self.discount();
        let ends = Matrix::from_fn(d * d, n * n, |i, k| {
            if (i / d, i % d) == (k / n, k % n) { first } else { 0.0 }
        });
        // Each row is a matrix R of weights of y y'ᵀ, which the steps turn into AᵀRB.
        self.summed(ends, |rows, a, b| {
            let turned = a.transpose();
            let mut entries = Vec::with_capacity(d * d * n * n);
            for i in 0..d * d {
                let row = Matrix::from_entries(n, n, rows.row(i).to_vec());
                entries.extend(turned.times(&row).times(b).into_entries());
            }
            Matrix::from_entries(d * d, n * n, entries)
        })
    }
}

/// X_h of a client for h = 1, 2, 4, … steps, THEORY (2.4), one after another. The series of a pair of clients may need
/// more powers than are known of one of them: these are squares of the last known power.
struct MatrixPowers<'a> {
    /// The known powers after the present one.
    known: &'a [Matrix],
    /// The present power.
    power: Matrix,
}

impl<'a> MatrixPowers<'a> {
    /// Begins with one step.
    fn new(steps: &'a GeometricSteps) -> Self {
        Self { known: &steps.powers[1..], power: steps.powers[0].clone() }
    }

    /// Goes on to twice as many steps: to the next known power, or else to the square of the present one.
    fn square(&mut self) {
        self.power = match self.known {
            [next, rest @ ..] => {
                self.known = rest;
                next.clone()
            }
            [] => self.power.times(&self.power),
        };
    }
}
