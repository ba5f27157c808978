//! What pages say of algorithms.

/// Algorithms that are variants of one another: a family has a colour of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Local steps and their mean.
    FedAvg,
    /// Extrapolation.
    RichardsonRomberg,
    /// Control variates that clients keep.
    Scaffold,
    /// Control variates that are measured in each round.
    FedLin,
    /// Communication by a coin.
    Scaffnew,
    /// A proximal term.
    FedProx,
    /// A step in each round.
    Sgd,
    /// All others.
    Others,
}

impl Family {
    /// All families, in the order of their colours.
    pub const ALL: [Self; 8] = [
        Self::FedAvg,
        Self::RichardsonRomberg,
        Self::Scaffold,
        Self::FedLin,
        Self::Scaffnew,
        Self::FedProx,
        Self::Sgd,
        Self::Others,
    ];
}

/// What pages and messages say of a built-in kind of algorithms.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// Its kind in manifests.
    pub kind: &'static str,
    /// The name of its curves, unless they have a label.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// Returns the key with the number that a search over local steps varies: H, a batch or a probability.
    pub local_steps_key: fn() -> &'static str,
    /// The kind that is the same algorithm under the name that it has on any field; `None` unless this is a name for
    /// linear fields alone, as `fedlsa` is for `fedavg`.
    pub linear_name_of: Option<&'static str>,
}

/// A description of a round of an algorithm for pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundFormula {
    /// In words.
    pub words: &'static str,
    /// In TeX, step by step.
    pub tex: &'static [&'static str],
}

/// A local step without a correction, in TeX.
pub const LOCAL: &str = r"\theta_c \leftarrow \theta_c - \gamma F_c(\theta_c; Z)";
/// A local step with the correction ξ_c, in TeX.
pub const CORRECTED: &str =
    r"\theta_c \leftarrow \theta_c - \gamma \left( F_c(\theta_c; Z) + \xi_c \right)";
/// A local step with a proximal term, in TeX.
pub const PULLED: &str = r"\theta_c \leftarrow \theta_c - \gamma \left( F_c(\theta_c; Z) + \mu \left( \theta_c - \theta_t \right) \right)";
/// The server's mean of the clients, in TeX.
pub const MEAN: &str = r"\theta_{t+1} = \frac{1}{N} \sum_{c=1}^{N} \theta_c";

/// The round of Scaffold under a coin, which is Scaffnew.
pub const BY_COIN: RoundFormula = RoundFormula {
    words: "a local step of every client; after each, with probability p, the mean; two vectors per client and communication",
    tex: &[
        CORRECTED,
        r"\xi_c \leftarrow \xi_c + \frac{p}{\gamma} \left( \theta_c - \bar\theta \right), \quad \bar\theta = \frac{1}{N} \sum_{c=1}^{N} \theta_c",
    ],
};

/// The clients' mean change Δ_t in a round, in TeX.
pub const MEAN_CHANGE: &str = r"\Delta_t = \frac{1}{N} \sum_{c=1}^{N} \theta_c - \theta_t";
/// The first moment of an adaptive server, by coordinate, in TeX.
pub const FIRST_MOMENT: &str = r"m_t = \beta_1 m_{t-1} + (1 - \beta_1) \Delta_t";
/// The move of an adaptive server, by coordinate, in TeX.
pub const ADAPTIVE_STEP: &str = r"\theta_{t+1} = \theta_t + \gamma_g \frac{m_t}{\sqrt{v_t} + \tau}";
