//! What the publications state: one entry for each theorem, expansion, figure and remark that can
//! be tested, with the conditions under which it is stated.
//!
//! *Invariant*: an entry that no experiment measures names tests, or says why there is none.

use super::Publication;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A statement of a publication.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Statement {
    /// Its name in manifests: the key of the publication and the place, `RR Theorem 1`.
    pub name: String,
    /// What is stated, in a sentence.
    pub says: String,
    /// The conditions under which it is stated, after those that say what it is about: the algorithm, and which of its
    /// iterates. They are the lists that the next two fields name.
    #[serde(skip)]
    pub conditions: Vec<Condition>,
    /// The name of the list in the file that says what the statement is about, if any.
    subject: Option<String>,
    /// The name of the list in the file with the conditions under which it is stated, if any.
    #[serde(rename = "conditions")]
    stated_under: Option<String>,
    /// What the first version of the publication asks of the step size, where versions differ.
    #[serde(default)]
    pub first_version: String,
    /// Tests of the program that check it: paths in the repository with the names of functions.
    #[serde(default)]
    pub tests: Vec<String>,
    /// Why no claim measures it; empty if claims do.
    #[serde(default)]
    pub reason: String,
}

/// The file of a source: a publication, what it states, and the lists of conditions that its statements name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceFile {
    publication: Publication,
    /// Lists of conditions that say what a statement is about.
    subjects: BTreeMap<String, Vec<Condition>>,
    /// Lists of conditions under which a statement is stated.
    conditions: BTreeMap<String, Vec<Condition>>,
    statements: Vec<Statement>,
}

/// The publication of the file of a source and its statements, in the order of the file. The conditions of a statement
/// are put together from the lists that it names, first its subject. The text is part of the program.
///
/// # Panics
/// If the file is no such table, or a statement names a list that the file does not have.
pub(super) fn read(text: &str) -> (Publication, Vec<Statement>) {
    let SourceFile { mut publication, subjects, conditions, mut statements } =
        toml::from_str(text).unwrap_or_else(|error| panic!("the file of a source: {error}"));
    for statement in &mut statements {
        let named = [(&subjects, &statement.subject), (&conditions, &statement.stated_under)];
        for (lists, name) in named {
            let Some(name) = name else { continue };
            let list = lists.get(name).unwrap_or_else(|| panic!("no list {name}"));
            statement.conditions.extend_from_slice(list);
        }
    }
    publication.bibtex = publication.to_bibtex();
    (publication, statements)
}

/// An algorithm that statements are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatedAlgorithm {
    /// FedAvg, FedLSA on a linear field.
    #[serde(rename = "fedavg")]
    FedAvg,
    /// Scaffold with a fixed number of local steps, SCAFFLSA under H2 on a linear field.
    Scaffold,
    /// Scaffold with random communication (Scaffnew), SCAFFLSA under H1 on a linear field.
    RandomScaffold,
    /// 2θ^(γ) − θ^(2γ) of FedAvg.
    RichardsonRomberg,
    /// Two runs of FedAvg combined over the number of local steps.
    OverLocalSteps,
    /// 2θ^(γ) − θ^(2γ) of Scaffold.
    ExtrapolatedScaffold,
    /// Mini-batch SGD, centralised LSA on a linear field.
    MinibatchSgd,
    /// Any other algorithm: no statement is about it.
    Other,
}

/// A condition that may be checked from what is known of an instance and a run. γ is the step
/// size, H the number of local steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// The algorithm is one of these, or compared with one of these in a claim.
    #[serde(rename_all = "kebab-case")]
    Algorithm {
        /// The algorithms that the statement is about.
        any_of: Vec<StatedAlgorithm>,
        /// The algorithms that a claim may compare with them.
        #[serde(default)]
        compared_with: Vec<StatedAlgorithm>,
    },
    /// The step size does not fall from round to round.
    ConstantStepSize,
    /// The estimate is the last iterate. Statements on the bias do not need it: the mean of the
    /// iterates has the bias of the stationary distribution.
    LastIterate,
    /// The estimate is the mean of the iterates.
    AveragedIterates,
    /// Every f_c is strongly convex, or sym Ā_c ≽ aI on a linear field.
    StronglyConvex,
    /// The gradient of every draw is cocoercive (RR A1(b)): E‖F_c(θ; Z) − F_c(θ'; Z)‖² ≤
    /// L⟨θ − θ', F̄_c(θ) − F̄_c(θ')⟩ with a finite L. Every draw's loss is convex.
    ConvexDraws,
    /// γ L is at most one over this number, with L as in [`Condition::ConvexDraws`].
    StepTimesSmoothness(f64),
    /// γ H μ is at most one over this number, with μ the least strong convexity of the f_c.
    PathTimesConvexity(f64),
    /// γ H ≤ 1.
    Path,
    /// γ H L ≤ 1.
    PathTimesSmoothness,
    /// Gradients are exact.
    WithoutNoise,
    /// Fields are affine in θ.
    Linear,
    /// Fields are gradients of quadratic functions.
    Quadratic,
    /// All clients have one distribution.
    Homogeneous,
    /// F̄_c(θ*) = 0 for every client.
    ZeroGradients,
    /// Draws are independent.
    IndependentDraws,
    /// H = 1.
    OneLocalStep,
    /// H > 1.
    SeveralLocalSteps,
    /// N = 1.
    OneClient,
    /// Step sizes are γ_k = μ/E_k.
    Normalised,
    /// SCAFFLSA A2 at the step size: γ ≤ 2/L and γa ≤ 1/2.
    Stable,
    /// H ≤ min(a/(32γC_A²), a(γ)/(16γ max(‖Ā_c‖² + ‖Σ_Ã‖)), 1/γ, 1/(γa)), a(γ) ≤ a the rate at γ, and γC_A ≤ 1
    /// (SCAFFLSA, Theorem 5.3; the second is not printed there, and the proof of Theorem B.5 needs it).
    FewLocalSteps,
    /// Every client takes part in every round, with the same number of local steps and the weight
    /// 1/N, and the server takes their mean.
    AllClients,
    /// What the program cannot check, in words.
    Unknown(String),
}

impl Statement {
    /// All conditions of the statement: those in its file, and [`Condition::AllClients`], which all sources but BOOK
    /// assume without saying so.
    pub fn all_conditions(&self) -> Vec<Condition> {
        let everyone = (self.source() != "BOOK").then_some(Condition::AllClients);
        self.conditions.iter().cloned().chain(everyone).collect()
    }

    /// The key of the publication, the first word of the statement's name.
    pub fn source(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// The place in the publication, such as `Theorem 1`: the statement's name without its first word.
    pub fn place(&self) -> &str {
        self.name.split_once(' ').map_or("", |(_, place)| place)
    }
}

impl StatedAlgorithm {
    /// The words by which pages name the algorithm where they write conditions of statements, of which none is about
    /// `Other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FedAvg => "FedAvg (FedLSA)",
            Self::Scaffold => "Scaffold (SCAFFLSA) with a fixed number of local steps",
            Self::RandomScaffold => "Scaffold (SCAFFLSA) with random communication",
            Self::RichardsonRomberg => "Richardson-Romberg over γ",
            Self::OverLocalSteps => "Richardson-Romberg over H",
            Self::ExtrapolatedScaffold => "Richardson-Romberg of Scaffold",
            Self::MinibatchSgd => "mini-batch SGD",
            Self::Other => "another",
        }
    }
}

impl Condition {
    /// For a condition that is an inequality of γ, H, L and μ, its left side at the step size γ and H local steps, and
    /// the most that the left side may be. `convexity` and `smoothness` return the constants μ and L, and are called
    /// only if the condition has them. `None` for a condition that is no such inequality, which callers check in
    /// another way.
    ///
    /// # Errors
    /// The error of the constant that the condition needs.
    pub fn sides<E>(
        &self,
        (step, local_steps): (f64, f64),
        convexity: impl Fn() -> Result<f64, E>,
        smoothness: impl Fn() -> Result<f64, E>,
    ) -> Result<Option<(f64, f64)>, E> {
        let path = step * local_steps;
        Ok(Some(match self {
            Self::StepTimesSmoothness(inverse) => (step, 1.0 / (inverse * smoothness()?)),
            Self::PathTimesConvexity(inverse) => (path * convexity()?, 1.0 / inverse),
            Self::PathTimesSmoothness => (path * smoothness()?, 1.0),
            Self::Path => (path, 1.0),
            _ => return Ok(None),
        }))
    }

    /// What pages and unmet conditions of bounds write for the condition: a clause in the symbols of the source that
    /// has it, where only one has (η in SCAFFLSA, μ for a step size in BOOK). Algorithms that a claim may compare are
    /// left out.
    pub fn words(&self) -> String {
        match self {
            Self::Algorithm { any_of, .. } => {
                let names: Vec<&str> = any_of.iter().map(|algorithm| algorithm.name()).collect();
                format!("the algorithm is {}", names.join(" or "))
            }
            Self::ConstantStepSize => "the step size is constant".into(),
            Self::LastIterate => "iterates are not averaged".into(),
            Self::AveragedIterates => "iterates are averaged".into(),
            Self::StronglyConvex => "every f_c is strongly convex".into(),
            Self::ConvexDraws => "every draw's loss is convex and smooth".into(),
            Self::StepTimesSmoothness(1.0) => "γL ≤ 1".into(),
            Self::StepTimesSmoothness(inverse) => format!("γL ≤ 1/{inverse}"),
            Self::PathTimesConvexity(1.0) => "γμH ≤ 1".into(),
            Self::PathTimesConvexity(inverse) => format!("γμH ≤ 1/{inverse}"),
            Self::Path => "γH ≤ 1".into(),
            Self::PathTimesSmoothness => "γHL ≤ 1".into(),
            Self::WithoutNoise => "gradients are exact".into(),
            Self::Linear => "fields are affine".into(),
            Self::Quadratic => "functions are quadratic".into(),
            Self::Homogeneous => "clients are homogeneous".into(),
            Self::ZeroGradients => "every client's gradient is 0 at θ*".into(),
            Self::IndependentDraws => "draws are independent".into(),
            Self::OneLocalStep => "H = 1".into(),
            Self::SeveralLocalSteps => "H > 1".into(),
            Self::OneClient => "N = 1".into(),
            Self::Normalised => "μ_k = μ/E_k".into(),
            Self::Stable => "η ≤ 2/L and ηa ≤ 1/2".into(),
            Self::FewLocalSteps => "H ≤ min(a/(32ηC_A²), a/(16η max(‖Ā_c‖² + ‖Σ_Ã‖)), 1/η, 1/(ηa)) and ηC_A ≤ 1".into(),
            Self::AllClients => "every client takes part with the same number of local steps and weight, and the server takes the mean".into(),
            Self::Unknown(words) => words.clone(),
        }
    }
}
