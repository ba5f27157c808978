//! What the publications state: one entry for each theorem, expansion, figure and remark that can
//! be tested, with the conditions under which it is stated.
//!
//! *Invariant*: an entry that no experiment measures names tests, or says why there is none.

/// A statement of a publication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statement {
    /// Its name in manifests: the key of the publication and the place, `RR Theorem 1`.
    pub name: &'static str,
    /// What is stated, in a sentence.
    pub says: &'static str,
    /// The conditions under which it is stated.
    pub conditions: &'static [Condition],
    /// Tests of the program that check it: paths in the repository with the names of functions.
    pub tests: &'static [&'static str],
    /// Why no claim measures it; empty if claims do.
    pub reason: &'static str,
}

/// A condition that may be checked from what is known of an instance and a run. γ is the step
/// size, H the number of local steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// Every f_c is strongly convex, or sym Ā_c ≽ aI on a linear field.
    StronglyConvex,
    /// The gradient of every draw is cocoercive (RR A1(b)): E‖F_c(θ; Z) − F_c(θ'; Z)‖² ≤
    /// L⟨θ − θ', F̄_c(θ) − F̄_c(θ')⟩ with a finite L. Every draw's loss is convex.
    ConvexDraws,
    /// γ L ≤ this, L as in [`Condition::ConvexDraws`].
    StepTimesSmoothness(f64),
    /// γ H μ ≤ 1, μ the least strong convexity of the f_c.
    PathTimesConvexity,
    /// γ H ≤ this.
    Path(f64),
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
    /// H ≤ min(a/(32γC_A²), 1/γ, 1/(γa)) and γC_A ≤ 1 (SCAFFLSA, Theorem 5.3).
    FewLocalSteps,
    /// Every client takes part in every round, with the weight 1/N.
    AllClients,
    /// What the program cannot check, in words.
    Unknown(&'static str),
}

impl Statement {
    /// A statement that claims of experiments measure.
    pub(super) const fn new(
        name: &'static str,
        says: &'static str,
        conditions: &'static [Condition],
    ) -> Self {
        Self { name, says, conditions, tests: &[], reason: "" }
    }

    /// The same with tests of the program that check it.
    pub(super) const fn tested(self, tests: &'static [&'static str]) -> Self {
        Self { tests, ..self }
    }

    /// The same with the reason why no claim measures it.
    pub(super) const fn unmeasured(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }

    /// The key of the publication.
    pub fn source(&self) -> &'static str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// The place in the publication.
    pub fn place(&self) -> &'static str {
        self.name.split_once(' ').map_or("", |(_, place)| place)
    }
}

impl Condition {
    /// How pages write it.
    pub fn words(self) -> String {
        let fraction = |bound: f64| match (1.0 / bound).round() {
            1.0 => String::from("1"),
            inverse => format!("1/{inverse}"),
        };
        match self {
            Self::StronglyConvex => "every f_c is strongly convex".into(),
            Self::ConvexDraws => "every draw's loss is convex and smooth".into(),
            Self::StepTimesSmoothness(most) => format!("γL ≤ {}", fraction(most)),
            Self::PathTimesConvexity => "γμH ≤ 1".into(),
            Self::Path(most) => format!("γH ≤ {}", fraction(most)),
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
            Self::FewLocalSteps => "H ≤ min(a/(32ηC_A²), 1/η, 1/(ηa)) and ηC_A ≤ 1".into(),
            Self::AllClients => "every client takes part with the same weight".into(),
            Self::Unknown(words) => words.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_words() {
        assert_eq!(Condition::StepTimesSmoothness(1.0 / 45.0).words(), "γL ≤ 1/45");
        assert_eq!(Condition::Path(1.0).words(), "γH ≤ 1");
    }
}
