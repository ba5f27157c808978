//! The constants of the published bounds.
//!
//! A client's linear field is A(Z)θ − b(Z) for a draw Z; Ā_c is the mean of A(Z), F̄_c the mean field, θ_c* its only root,
//! and ε the noise at a point. On other fields H_c, the Jacobian at θ*, stands for Ā_c. sym M is ½ (M + Mᵀ), and norms
//! of matrices are spectral norms.

use crate::kernel::{difference, dot, squared_distance};
use crate::linalg::Matrix;
use crate::problem::{DrawSmoothness, Facts, by_distribution};
use crate::theory::effort::{self, Effort};

/// The largest d for which moments of A(Z) are computed: they take d(d+1)/2 + d + 1
/// values of the noise map per distribution.
pub const MOST_DIMENSIONS: usize = 40;

/// The noise of one client's linear field as a function of θ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixNoise {
    /// L, the smallest with E AᵀA ≼ L sym Ā: SCAFFLSA A3 with the inequality (14)
    /// corrected, and the use of RR A1(b); infinite unless sym Ā ≻ 0.
    pub cocoercivity: f64,
    /// ‖Σ_Ã‖, Σ_Ã = E (A − Ā)ᵀ(A − Ā) (SCAFFLSA 11).
    pub multiplicative: f64,
    /// Tr Σ_ε, the noise at θ_c* (SCAFFLSA 10).
    pub at_local: f64,
    /// δ̂² = ‖E AᵀA‖, the mean-square smoothness (BOOK 5.43).
    pub smoothness: f64,
    /// β² of BOOK (5.28): the noise at θ is at most β²‖θ − θ_c*‖² + σ².
    pub beta2: f64,
    /// σ² of BOOK (5.28).
    pub sigma2: f64,
}

/// The constants of one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientConstants {
    /// The smallest eigenvalue of sym Ā_c: a of SCAFFLSA A3, μ of RR A1(a), ν_k
    /// of BOOK; not above 0 where a linear field of the client has no unique root, whatever rounding errors make of it.
    pub curvature: f64,
    /// ‖Ā_c‖, the largest singular value; δ_k of BOOK.
    pub norm: f64,
    /// ‖H_c − A‖, the spectral norm.
    pub apart: f64,
    /// ‖θ_c* − θ*‖, the distance of the client's optimum from the common one; infinite if the client has no unique
    /// optimum.
    pub distance: f64,
    /// ‖F̄_c(θ*)‖, on a linear field ‖Ā_c(θ_c* − θ*)‖.
    pub field: f64,
    /// Tr C_c = Tr Σ_ω, the noise at θ* (SCAFFLSA 43).
    pub at_optimum: f64,
    /// The moments of A(Z); `None` if the field is not linear, draws depend on
    /// each other, the client has no unique optimum, or d is above [`MOST_DIMENSIONS`].
    pub noise: Option<MatrixNoise>,
}

/// The constants of an instance. On a nonlinear field the constants of the Jacobians hold only at
/// θ*, and no theorem may use them elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants {
    /// Whether every field is affine, so that the constants at θ* hold everywhere.
    pub linear: bool,
    /// Whether every Jacobian is symmetric, so that the fields are gradients.
    pub gradient: bool,
    /// Whether all clients have the share 1/N, as the theorems assume.
    pub equal_shares: bool,
    /// The smallest eigenvalue of sym A, A = Σ π_c H_c: ν of BOOK; not above 0 where θ* is not unique.
    pub mean_curvature: f64,
    /// ‖A‖: δ of BOOK.
    pub mean_norm: f64,
    /// μ and L of RR A1 for the mean fields at every θ, the least and the largest over clients;
    /// `None` if they are not known.
    pub everywhere: Option<(f64, f64)>,
    /// L of RR A1(b) for every draw, at every θ, as the problem states it; `None` if it is not known or not
    /// finite. Bounds read it on nonlinear fields; on linear ones they read `cocoercivity` of
    /// [`Constants::moments`].
    pub draws: Option<f64>,
    /// Q of SLIDES, the largest over clients; `None` if it is not known.
    pub third: Option<f64>,
    /// The clients, N of them.
    pub clients: Vec<ClientConstants>,
}

impl Constants {
    /// The effort of [`Constants::new`]: eigenvalues of Jacobians, and where the moments of A(Z) are computed the
    /// values of the noise map and further eigenvalues.
    pub fn effort(facts: &dyn Facts) -> Effort {
        let d = facts.dim() as f64;
        let known = has_matrix_noise(facts);
        let maps = if known { d * (d + 1.0) / 2.0 + d + 1.0 } else { 0.0 };
        let noise = effort::distributions(facts) * maps * effort::noise_map(facts);
        effort::spectra(facts, if known { 8.0 } else { 4.0 }) + Effort::new(noise, 0.0)
    }

    /// The constants of an instance, by eigenvalue decompositions of the Jacobians of all its distributions; `None` if
    /// one of these fails.
    pub fn new(facts: &dyn Facts) -> Option<Self> {
        let jacobians: Vec<Matrix> = (0..facts.clients()).map(|c| facts.jacobian(c)).collect();
        let mean = Matrix::weighted_mean(jacobians.iter(), facts.unequal_shares());
        let known = has_matrix_noise(facts);
        let (values, clients) = by_distribution(facts, |c| {
            let jacobian = &jacobians[c];
            let field = facts.field_at_optimum(c);
            let local_optimum = facts.local_optimum(c);
            let smallest = jacobian.symmetric_part().symmetric_extremes()?.1;
            // A singular Ā_c maps some x to 0, so that xᵀ (sym Ā_c) x is 0.
            let is_singular = facts.linear() && local_optimum.is_none();
            let curvature = if is_singular { smallest.min(0.0) } else { smallest };
            let distance = local_optimum
                .map_or(f64::INFINITY, |own| libm::sqrt(squared_distance(own, facts.optimum())));
            let of_moments = local_optimum.filter(|_| known);
            Some(ClientConstants {
                curvature,
                norm: jacobian.spectral_norm()?,
                apart: jacobian.plus(-1.0, &mean).spectral_norm()?,
                distance,
                field: libm::sqrt(dot(&field, &field)),
                at_optimum: facts.noise_covariance(c).trace(),
                noise: of_moments.and_then(|own| noise(facts, c, jacobian, curvature, own)),
            })
        })?;
        let gradient = jacobians.iter().all(is_symmetric);
        // μ and L of each distribution at every θ. On quadratics they are the extreme eigenvalues of the Jacobian.
        let ranges = by_distribution(facts, |c| {
            if facts.linear() && gradient {
                Some((values[clients[c]].curvature, values[clients[c]].norm))
            } else {
                facts.convexity().zip(facts.mean_smoothness(c))
            }
        });
        let everywhere = ranges.and_then(|(ranges, _)| {
            ranges
                .into_iter()
                .reduce(|(mu, l), (other_mu, other_l)| (mu.min(other_mu), l.max(other_l)))
        });
        let smallest = mean.symmetric_part().symmetric_extremes()?.1;
        let mean_curvature =
            if facts.optimum_set().is_some() { smallest.min(0.0) } else { smallest };
        Some(Self {
            draws: match facts.draw_smoothness() {
                DrawSmoothness::AtMost(l) => Some(l),
                _ => None,
            },
            third: by_distribution(facts, |c| facts.third_derivative(c))
                .map(|(all, _)| all.into_iter().fold(0.0, f64::max)),
            everywhere,
            linear: facts.linear(),
            equal_shares: facts.unequal_shares().is_none(),
            gradient,
            mean_curvature,
            mean_norm: mean.spectral_norm()?,
            clients: clients.into_iter().map(|group| values[group]).collect(),
        })
    }

    /// The unweighted mean of a constant over clients: the theorems are for equal shares, and bounds check these.
    fn mean(&self, value: impl Fn(&ClientConstants) -> f64) -> f64 {
        self.clients.iter().map(value).fold(0.0, |sum, x| sum + x) / self.clients.len() as f64
    }

    /// The number of clients, N.
    pub fn count(&self) -> f64 {
        self.clients.len() as f64
    }

    /// a of SCAFFLSA A3, μ of RR A1(a): the least over clients, at θ*. Theorems need it to be positive.
    pub fn curvature(&self) -> f64 {
        self.clients.iter().map(|c| c.curvature).fold(f64::INFINITY, f64::min)
    }

    /// C_A = max ‖Ā_c‖ as in SCAFFLSA A1, not a bound over draws; on gradient fields
    /// the L of RR without noise.
    pub fn norm(&self) -> f64 {
        self.clients.iter().map(|c| c.norm).fold(0.0, f64::max)
    }

    /// ζ₁ of RR A2, without the shares of clients; its square is Δ_heter of SCAFFLSA (130).
    pub fn zeta1(&self) -> f64 {
        libm::sqrt(self.mean(|c| c.field * c.field))
    }

    /// ζ₂ of RR A2: the root mean square over clients of ‖H_c − A‖, without their shares.
    pub fn zeta2(&self) -> f64 {
        libm::sqrt(self.mean(|c| c.apart * c.apart))
    }

    /// N⁻¹ Σ Tr Σ_ω: σ̄_ω of SCAFFLSA, σ_*² of SLIDES, at most τ² of RR A3.
    pub fn sigma_omega(&self) -> f64 {
        self.mean(|c| c.at_optimum)
    }

    /// ζ₁, and the most that it may be if ζ₁ = 0 up to rounding: all clients have a common optimum if the first
    /// number is at most the second.
    pub fn common_optimum(&self) -> (f64, f64) {
        (self.zeta1(), 1e-12 * self.norm())
    }

    /// SCAFFLSA A2 at a step size η: a, which is [`MatrixMoments::rate`], and the left and the right sides of the
    /// inequalities η ≤ 2/L and ηa ≤ 1/2. A2 holds if both inequalities do and a is positive. `None` if the moments
    /// of A(Z) are not known.
    pub fn stability(&self, step: f64) -> Option<(f64, [(f64, f64); 2])> {
        let moments = self.moments()?;
        let rate = moments.rate(self.curvature(), step);
        Some((rate, [(step, 2.0 / moments.cocoercivity), (step * rate, 0.5)]))
    }

    /// The constants of the random matrices A(Z) over all clients; `None` if [`ClientConstants::noise`] of a client
    /// is not known.
    pub fn moments(&self) -> Option<MatrixMoments> {
        let mut m = MatrixMoments::default();
        let n = self.count();
        for client in &self.clients {
            let noise = client.noise?;
            m.cocoercivity = m.cocoercivity.max(noise.cocoercivity);
            m.multiplicative += noise.multiplicative / n;
            m.worst = m.worst.max(client.norm * client.norm + noise.multiplicative);
            m.sigma_epsilon += noise.at_local / n;
            m.v_heter += noise.multiplicative * client.distance * client.distance / n;
        }
        Some(m)
    }
}

/// The means and the largest values over clients of the constants of the random matrices A_c(Z) of linear fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatrixMoments {
    /// L: the largest over clients of [`MatrixNoise::cocoercivity`].
    pub cocoercivity: f64,
    /// N⁻¹ Σ ‖Σ_Ã‖, the mean over clients of [`MatrixNoise::multiplicative`].
    pub multiplicative: f64,
    /// max ‖Ā_c‖² + ‖Σ_Ã‖ (SCAFFLSA Theorem B.5).
    pub worst: f64,
    /// σ̄_ε = N⁻¹ Σ Tr Σ_ε (SCAFFLSA 31).
    pub sigma_epsilon: f64,
    /// v_heter = N⁻¹ Σ ‖Σ_Ã‖‖θ_c* − θ*‖² (SCAFFLSA 31).
    pub v_heter: f64,
}

impl MatrixMoments {
    /// a of SCAFFLSA A2 at step sizes up to η, from A3's `curvature` a and L:
    /// E‖(I − ηA)u‖² ≤ (1 − ηa(2 − ηL))‖u‖², the square of (1 − η·rate)‖u‖. It
    /// falls from a at η = 0 to a/2 or more at 1/L; the source uses a throughout. For
    /// a positive `curvature` it is positive where 0 < η < 2/L; η must not be 0.
    pub fn rate(&self, curvature: f64, step_size: f64) -> f64 {
        let square = 1.0 - step_size * curvature * (2.0 - step_size * self.cocoercivity);
        (1.0 - libm::sqrt(square.max(0.0))) / step_size
    }
}

/// Whether the moments of A(Z) can be computed, [`ClientConstants::noise`].
fn has_matrix_noise(facts: &dyn Facts) -> bool {
    facts.linear() && facts.independent() && facts.dim() <= MOST_DIMENSIONS
}

/// The noise of the linear field of client c with this Jacobian, whose symmetric part has the smallest eigenvalue
/// `curvature`, and with the root θ_c* = `local_optimum`. `None` if the problem has no noise map, or an eigenvalue cannot be found.
fn noise(
    facts: &dyn Facts,
    c: usize,
    jacobian: &Matrix,
    curvature: f64,
    local_optimum: &[f64],
) -> Option<MatrixNoise> {
    let d = facts.dim();
    let units = Matrix::identity(d + 1);
    // Σ_Ã = E (A − Ā)ᵀ(A − Ā).
    let mut spread = Matrix::zeros(d, d);
    for j in 0..d {
        for k in j..d {
            spread[(j, k)] = noise_product(facts, c, units.row(j), units.row(k))?;
            spread[(k, j)] = spread[(j, k)];
        }
    }
    // (θ_c* − θ*, 1): the noise ε at θ_c* is the noise map of this vector.
    let mut there = difference(local_optimum, facts.optimum());
    there.push(1.0);
    let at_local = noise_product(facts, c, &there, &there)?.max(0.0);
    // q = E (A − Ā)ᵀ ε: the noise at θ_c* + e has the mean square eᵀ Σ_Ã e + 2 qᵀe + E ‖ε‖².
    let q = (0..d)
        .map(|j| noise_product(facts, c, units.row(j), &there))
        .collect::<Option<Vec<f64>>>()?;
    let multiplicative = spread.symmetric_extremes()?.0.max(0.0);
    let cross = dot(&q, &q);
    // 2 qᵀe ≤ s‖e‖² + ‖q‖²/s with s = ‖Σ_Ã‖. A q of rounding errors alone is left out, since s may be 0.
    let joined = cross > 1e-20 * multiplicative * at_local;
    // E AᵀA.
    let second = spread.plus(1.0, &jacobian.transpose().times(jacobian));
    Some(MatrixNoise {
        cocoercivity: cocoercivity(&second, &jacobian.symmetric_part(), curvature)?,
        multiplicative,
        at_local,
        smoothness: second.symmetric_extremes()?.0,
        beta2: if joined { 2.0 * multiplicative } else { multiplicative },
        sigma2: if joined { at_local + cross / multiplicative } else { at_local },
    })
}

/// E⟨N x, N y⟩, where N (e, 1) is the noise of client c at θ* + e, and x and y have d + 1 numbers; `None` if the
/// problem has no noise map.
fn noise_product(facts: &dyn Facts, c: usize, x: &[f64], y: &[f64]) -> Option<f64> {
    Some(facts.noise_map(c, &Matrix::outer(x, y))?.trace())
}

/// The smallest L with `second` ≼ L `part`: with part = GGᵀ (Cholesky), the
/// largest eigenvalue of G⁻¹ second G⁻ᵀ. `curvature` is the smallest eigenvalue of `part`; the result is infinite
/// unless it is positive. `None` if the largest eigenvalue cannot be found.
fn cocoercivity(second: &Matrix, part: &Matrix, curvature: f64) -> Option<f64> {
    let d = part.rows();
    let mut g = Matrix::zeros(d, d);
    for j in 0..d {
        let square = (0..j).fold(part[(j, j)], |sum, k| sum - g[(j, k)] * g[(j, k)]);
        if curvature <= 0.0 || square <= 0.0 {
            return Some(f64::INFINITY);
        }
        g[(j, j)] = libm::sqrt(square);
        for i in j + 1..d {
            let left = (0..j).fold(part[(i, j)], |sum, k| sum - g[(i, k)] * g[(j, k)]);
            g[(i, j)] = left / g[(j, j)];
        }
    }
    let half = solve_lower(&g, second);
    solve_lower(&g, &half.transpose()).symmetric_extremes().map(|(most, _)| most)
}

/// G⁻¹ m for a lower triangular matrix G, column by column of m.
fn solve_lower(g: &Matrix, m: &Matrix) -> Matrix {
    let mut out = m.clone();
    for column in 0..m.cols() {
        for i in 0..g.rows() {
            let left = (0..i).fold(m[(i, column)], |sum, k| sum - g[(i, k)] * out[(k, column)]);
            out[(i, column)] = left / g[(i, i)];
        }
    }
    out
}

/// Whether a matrix is symmetric up to rounding errors relative to its largest entry.
fn is_symmetric(a: &Matrix) -> bool {
    let largest = (0..a.rows()).flat_map(|i| a.row(i)).fold(0.0, |most: f64, x| most.max(x.abs()));
    for i in 0..a.rows() {
        for j in 0..i {
            // Also false if an entry is not a number.
            let is_same = (a[(i, j)] - a[(j, i)]).abs() <= 1e-12 * largest;
            if !is_same {
                return false;
            }
        }
    }
    true
}
