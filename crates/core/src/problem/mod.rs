//! Problems: what a client's oracle returns, and what is known exactly.
//!
//! A problem has two faces. Its [`Facts`] are cold and object-safe: the
//! optimum, mean fields, Jacobians, noise covariances, all exact. Its oracle
//! ([`Problem`]) is hot and generic. Theory sees the facts alone, the engine
//! the oracle alone.
//!
//! *Invariant*: nothing here does I/O, reads a clock or an environment; an
//! instance is a function of its settings and the seed.

mod affine;
pub mod arrays;
pub mod atoms;
pub mod check;
pub mod dataset;
mod exact;
pub mod garnet;
mod generic;
pub mod least_squares;
pub mod lms;
pub mod logistic;
pub mod mdp;
mod newton;
pub mod quadratic;
pub mod spectrum;
pub mod td;
mod twin;

use crate::kernel::Cohort;
use crate::linalg::Matrix;
use crate::rng::Stream;
use arrays::{DataFile, Files};
pub use exact::Exact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use twin::Twin;

/// What is known exactly of a problem. F_c is client c's field, F̄_c its mean,
/// F̄ = N⁻¹ Σ F̄_c; θ* solves F̄(θ*) = 0 and θ_c* solves F̄_c(θ_c*) = 0.
pub trait Facts: Send + Sync {
    /// d, the dimension of θ.
    fn dim(&self) -> usize;
    /// N, the number of clients.
    fn clients(&self) -> usize;
    /// θ*, d numbers.
    fn optimum(&self) -> &[f64];
    /// θ_c*, d numbers.
    fn local_optimum(&self, client: usize) -> &[f64];
    /// F̄_c(θ) into `field`, d numbers.
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]);
    /// F̄_c(θ*), d numbers.
    fn field_at_optimum(&self, client: usize) -> Vec<f64> {
        let mut field = vec![0.0; self.dim()];
        self.mean_field(client, self.optimum(), &mut field);
        field
    }
    /// H_c = ∇F̄_c(θ*), d × d.
    fn jacobian(&self, client: usize) -> Matrix;
    /// C_c = Cov F_c(θ*; Z), d × d.
    fn noise_covariance(&self, client: usize) -> Matrix;
    /// Whether every F_c is affine in θ.
    fn linear(&self) -> bool;
    /// Whether a client's draws are independent from step to step, so that on
    /// a linear field means and moments close; a Markovian oracle's are not.
    fn independent(&self) -> bool {
        true
    }
    /// Oracle evaluations that one local step costs: the batch.
    fn batch(&self) -> u64 {
        1
    }
    /// E (F_c(θ; Z) − F̄_c(θ))(F_c(θ'; Z) − F̄_c(θ'))ᵀ, d × d, of the field
    /// linearised at θ* draw by draw (where it is linear, of the field itself):
    /// a linear map of `s` = E (e, 1)(e', 1)ᵀ, (d+1) × (d+1), with e = θ − θ*
    /// and e' = θ' − θ*. `None` where second moments do not close.
    fn noise_map(&self, _client: usize, _s: &Matrix) -> Option<Matrix> {
        None
    }
    /// ∇²F̄_c(θ*)\[M\], d numbers: Σ_jk M_jk ∂²F̄_c/∂θ_j∂θ_k, the third derivatives
    /// of a loss; `None` where they are not known.
    fn curvature(&self, _client: usize, _m: &Matrix) -> Option<Vec<f64>> {
        self.linear().then(|| vec![0.0; self.dim()])
    }
    /// The most terms that exact means over a client's draws are sums of: its records, pairs
    /// of states or atoms. It decides what theory costs and nothing else.
    fn draws(&self) -> usize {
        1
    }
    /// Which law a client's oracle has: clients of one number have one law.
    fn distribution(&self, client: usize) -> usize {
        client
    }
    /// f(θ) − f(θ*), f the mean of the clients' losses; `None` where the field
    /// is no gradient.
    fn suboptimality(&self, _theta: &[f64]) -> Option<f64> {
        None
    }
    /// xᵀ Σφ x with Σφ = N⁻¹ Σ E φφᵀ, the norm of values under the stationary
    /// laws (SCAFFLSA §4); `None` where there are no features.
    fn feature_norm(&self, _x: &[f64]) -> Option<f64> {
        None
    }
    /// θ̃, the TD fixed point of the averaged kernel and reward (Wang et al.
    /// 2023), d numbers; `None` where there is no such thing.
    fn virtual_optimum(&self) -> Option<&[f64]> {
        None
    }
}

/// A problem that can be run: its stochastic oracle.
pub trait Problem: Facts {
    /// What a client's noise remembers between steps; `()` when i.i.d.
    type State: Send;

    /// The state of a client's noise when a run begins.
    fn begin(&self, client: usize, rng: &mut Stream) -> Self::State;

    /// F_c(θ; Z) into `field`, d numbers: the definition.
    fn oracle(
        &self,
        client: usize,
        state: &mut Self::State,
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    );

    /// Whether [`Problem::linearised`] is known.
    fn has_twin(&self) -> bool {
        self.linear()
    }

    /// F_c(θ*; Z) + ∇F_c(θ*; Z)(θ − θ*) into `field`, d numbers, from the draws
    /// that [`Problem::oracle`] takes: the field linearised draw by draw.
    fn linearised(
        &self,
        client: usize,
        state: &mut Self::State,
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.oracle(client, state, theta, rng, field);
    }

    /// θ ← θ − γ_c (F_c(θ, Z) + ξ_c), E_c times, for each client of the cohort.
    /// A problem may fuse and interleave; the bits must stay those of this loop.
    fn advance(&self, cohort: Cohort<'_, Self::State>)
    where
        Self: Sized,
    {
        generic::advance(self, cohort);
    }
}

/// Why settings cannot be what they are: the key, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Key within the settings' table.
    pub key: &'static str,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl Fault {
    /// A fault of `key`.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// The largest d.
pub const MOST_DIMENSIONS: usize = 5_000;
/// The most memory that an instance may take.
const MOST_GIGABYTES: usize = 16;

/// Collects the faults of settings.
#[derive(Default)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Notes a fault of `key` unless `holds`.
    pub fn require(&mut self, holds: bool, key: &'static str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Fault { key, message: message() });
        }
    }

    /// `value` must be a finite number above 0.
    pub fn positive(&mut self, key: &'static str, value: f64) {
        let message = || format!("must be a finite number above 0, not {value}");
        self.require(value.is_finite() && value > 0.0, key, message);
    }

    /// `value` must be a finite number, 0 or more.
    pub fn non_negative(&mut self, key: &'static str, value: f64) {
        let message = || format!("must be a finite number, 0 or more, not {value}");
        self.require(value.is_finite() && value >= 0.0, key, message);
    }

    /// `value` must be 1 or more.
    pub fn at_least_one(&mut self, key: &'static str, value: u64) {
        self.require(value > 0, key, || "must be 1 or more, not 0".into());
    }

    /// `value` is a dimension: 1 or more, and small enough for d × d matrices.
    pub fn dimension(&mut self, key: &'static str, value: usize) {
        self.at_least_one(key, value as u64);
        let message =
            || format!("must be at most {MOST_DIMENSIONS} (d × d matrices are made), not {value}");
        self.require(value <= MOST_DIMENSIONS, key, message);
    }

    /// What is made of `count` things of so many bytes each must fit in memory.
    pub fn memory(&mut self, key: &'static str, count: usize, bytes: usize) {
        let total = count as u128 * bytes as u128;
        let gigabytes = total as f64 / 1e9;
        let message = || {
            format!(
                "makes an instance of about {gigabytes:.1} GB; at most {MOST_GIGABYTES} are allowed"
            )
        };
        self.require(total <= MOST_GIGABYTES as u128 * 1_000_000_000, key, message);
    }

    /// `clients` must be 1 or more, and have a stream each.
    pub fn clients(&mut self, clients: usize) {
        self.at_least_one("clients", clients as u64);
        let most = crate::rng::MAX_CLIENTS;
        let message = || format!("must be at most {most} (a stream each), not {clients}");
        self.require(clients as u64 <= most, "clients", message);
    }
}

/// How large an instance will be, known before it is built.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// N.
    pub clients: usize,
    /// d.
    pub dimension: usize,
    /// What takes memory.
    pub shares: Vec<Share>,
}

impl Extent {
    /// N clients with a d × d matrix and some vectors each.
    pub fn of_matrices(clients: usize, dimension: usize) -> Self {
        let (n, d) = (clients as f64, dimension as f64);
        // Twice, since exact limits take the matrices of all clients.
        let bytes = n * (8.0 * (2.0 * d * d + 4.0 * d) + 150.0);
        let what = format!("{clients} clients' matrices of {dimension} × {dimension}");
        Self { clients, dimension, shares: vec![Share::new("clients", bytes, what)] }
    }
}

/// Something that takes memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The setting that makes it large: a key, or a path.
    pub key: String,
    /// About so many bytes while it is made and used.
    pub bytes: f64,
    /// What it is, in the plural.
    pub what: String,
}

impl Share {
    /// A share of `key`.
    pub fn new(key: &str, bytes: f64, what: impl Into<String>) -> Self {
        Self { key: key.to_owned(), bytes, what: what.into() }
    }
}

/// Which oracle an instance has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Face {
    /// Its own.
    Own,
    /// Its mean field ([`Exact`]).
    Exact,
    /// Its own, linearised at θ* draw by draw ([`Twin`]).
    Twin,
}

/// What is done with a problem once its type is known.
pub trait Visitor {
    /// What comes of it.
    type Out;
    /// Called with the instance.
    fn visit<P: Problem + 'static>(self, problem: P) -> Self::Out;
}

/// Settings that describe a problem.
pub trait Settings {
    /// The instance they describe.
    type Instance: Problem + 'static;
    /// All that is wrong with the settings themselves.
    fn check(&self) -> Vec<Fault>;
    /// Whether the seed enters the instance; with all of it in a file it does not.
    fn uses_seed(&self) -> bool {
        true
    }
    /// Whether every F_c is affine in θ.
    fn linear(&self) -> bool {
        true
    }
    /// How large an instance will be; `None` where a file says.
    fn extent(&self) -> Option<Extent> {
        None
    }
    /// The files that the settings name.
    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        Vec::new()
    }
    /// The instance that these settings, this seed and what is in the files fix.
    ///
    /// # Errors
    /// A [`Fault`] where the drawn instance has no unique solution, or a file
    /// does not hold what it should.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Self::Instance, Fault>;
}

/// The registry: a new problem is its file and a line at the bottom.
macro_rules! problems {
    ($($variant:ident($kind:literal, $settings:ty),)*) => {
        /// A problem as a manifest describes it: `[problem.<kind>]`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Spec {
            $(#[doc = concat!("`[problem.", $kind, "]`")] #[serde(rename = $kind)] $variant($settings),)*
        }

        impl Spec {
            /// The name of the problem's kind in a manifest.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// All that is wrong with the settings themselves.
            pub fn check(&self) -> Vec<Fault> {
                match self { $(Self::$variant(settings) => settings.check(),)* }
            }

            /// The kinds of all problems.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// Whether the seed enters the instance.
            pub fn uses_seed(&self) -> bool {
                match self { $(Self::$variant(settings) => settings.uses_seed(),)* }
            }

            /// Whether every F_c is affine in θ.
            pub fn linear(&self) -> bool {
                match self { $(Self::$variant(settings) => settings.linear(),)* }
            }

            /// How large an instance will be; `None` where a file says.
            pub fn extent(&self) -> Option<Extent> {
                match self { $(Self::$variant(settings) => settings.extent(),)* }
            }

            /// The files that the settings name, by key.
            pub fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
                match self { $(Self::$variant(settings) => settings.files(),)* }
            }

            /// Builds the instance and hands one of its faces to the visitor.
            ///
            /// # Errors
            /// A [`Fault`] where the drawn instance has no unique solution, or a
            /// file does not hold what it should.
            pub fn build<V: Visitor>(
                &self,
                seed: u64,
                files: &dyn Files,
                face: Face,
                visitor: V,
            ) -> Result<V::Out, Fault> {
                match self {
                    $(Self::$variant(settings) => settings.build(seed, files).map(|problem| match face {
                        Face::Own => visitor.visit(problem),
                        Face::Exact => visitor.visit(Exact::new(problem)),
                        Face::Twin => visitor.visit(Twin::new(problem)),
                    }),)*
                }
            }
        }
    };
}

problems! {
    Garnet("garnet", garnet::Settings),
    Mdp("mdp", mdp::Settings),
    Atoms("atoms", atoms::Settings),
    Quadratic("quadratic", quadratic::Settings),
    Lms("lms", lms::Settings),
    Logistic("logistic", logistic::Settings),
    LogisticDataset("logistic-dataset", logistic::dataset::Settings),
    LeastSquaresDataset("least-squares-dataset", least_squares::Settings),
}
