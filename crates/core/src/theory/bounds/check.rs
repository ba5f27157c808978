//! The conditions of a bound: the conditions of its statement, and the conditions under which it can be
//! evaluated.

use super::constants::MatrixMoments;
use super::{PublishedRun, Unmet};
use crate::sources::{Condition, statement};

/// Which linear fields a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinearField {
    /// Any linear field.
    Any,
    /// The gradients of quadratics.
    Gradient,
}

/// Collects the conditions that a run does not meet: a function of a bound states each condition, and then asks
/// [`Check::then`] for the value, which exists only if all of them hold.
pub(super) struct Check<'a> {
    run: &'a PublishedRun<'a>,
    unmet: Vec<Unmet>,
}

impl<'a> Check<'a> {
    /// A check of a run that requires no condition yet.
    pub fn new(run: &'a PublishedRun<'a>) -> Self {
        Self { run, unmet: Vec::new() }
    }

    /// A check that has required what most statements do: equal shares, a linear field of this kind, all clients in
    /// every round, and what the statement `name` asks of γ, H and the clients' optima ([`Self::stated`]), with the L
    /// of single draws. Also the moments of A(Z), from which the bound is computed; where they are `None`, the check
    /// fails.
    pub fn linear(
        run: &'a PublishedRun<'a>,
        name: &str,
        field: LinearField,
    ) -> (Self, Option<MatrixMoments>) {
        let mut check = Self::new(run);
        let moments = check.moments();
        if field == LinearField::Gradient {
            check.gradient();
        }
        check.everyone();
        let l = moments.map(|m| m.cocoercivity);
        check.stated(name, run.constants.curvature(), l);
        (check, moments)
    }

    /// Requires `have` ≤ `need` up to rounding (0.2 · 0.1 · 50 is above 1 in double precision); NaN does not meet
    /// it. `condition` says so in words.
    pub fn at_most(&mut self, condition: &str, have: f64, need: f64) {
        let rounded = need + 1e-14 * need.abs();
        if !matches!(have.partial_cmp(&rounded), Some(o) if o.is_le()) {
            self.unmet.push(Unmet { condition: condition.into(), have, need });
        }
    }

    /// Requires a condition that has no sides, and is met if `holds`.
    pub fn holds(&mut self, condition: &str, holds: bool) {
        if !holds {
            self.unmet.push(Unmet { condition: condition.into(), have: 0.0, need: 1.0 });
        }
    }

    /// Requires clients of equal shares.
    pub fn equal_shares(&mut self) {
        self.holds("clients have equal weights", self.run.constants.equal_shares);
    }

    /// Requires clients of equal shares, a linear field with known moments of A(Z) and positive definite sym Ā_c,
    /// and returns these moments: `None` if they are not known, and then the check fails.
    pub fn moments(&mut self) -> Option<MatrixMoments> {
        let constants = self.run.constants;
        self.equal_shares();
        self.holds("the field is linear: constants at θ* hold everywhere", constants.linear);
        let moments = constants.moments();
        let has_optima = constants.clients.iter().all(|client| client.distance.is_finite());
        self.holds("every client has a unique optimum", has_optima);
        self.holds("the moments of A(Z) are known and draws independent", moments.is_some());
        self.holds("sym Ā_c is positive definite for every client", constants.curvature() > 0.0);
        moments
    }

    /// Requires that all clients take part in each round, as most proofs assume.
    pub fn everyone(&mut self) {
        let all = self.run.taking_part() == self.run.constants.clients.len();
        self.holds("every client takes part in every round", all);
    }

    /// Requires a run of one round that starts at θ*, which the source writes as `optimum`.
    pub fn one_round(&mut self, optimum: &str) {
        let start = format!("the run starts at {optimum}");
        self.holds(&start, self.run.start_sq_error == 0.0);
        self.holds("it is the first round", self.run.rounds <= 1);
    }

    /// Requires fields without noise, where `moments` are the moments of A(Z).
    pub fn exact(&mut self, moments: Option<MatrixMoments>) {
        let exact = self.run.constants.sigma_omega() == 0.0;
        self.holds("fields are exact", exact && moments.is_some_and(|m| m.multiplicative == 0.0));
    }

    /// Requires what the statement `name` of the sources asks of γ, H and the clients' optima. `mu` is the least
    /// curvature of the mean fields, and `smoothness` the L with which step sizes are compared; if it is `None`,
    /// conditions that need L are left out, because the caller has found then that the check fails. What the statement
    /// asks of algorithms is not checked here: a bound exists only for runs that meet it.
    ///
    /// # Panics
    /// If the sources have no statement of this name.
    pub fn stated(&mut self, name: &str, mu: f64, smoothness: Option<f64>) {
        let run = self.run;
        let constants = self.run.constants;
        let statement = statement(name).unwrap_or_else(|| panic!("no statement {name}"));
        let step = if statement.source() == "SCAFFLSA" { "η" } else { "γ" };
        for condition in &statement.conditions {
            let pace = (run.gamma(), run.h());
            let sides = condition.sides(pace, || Ok(mu), || smoothness.ok_or(()));
            let Ok(Some((have, need))) = sides else { continue };
            match condition {
                Condition::StepTimesSmoothness(1.0) => {
                    self.at_most(&format!("{step} ≤ 1/L"), have, need);
                }
                Condition::StepTimesSmoothness(inverse) => {
                    self.at_most(&format!("{step} ≤ 1/({inverse}L)"), have, need);
                }
                _ => self.at_most(&condition.words(), have, need),
            }
        }
        if statement.conditions.contains(&Condition::ZeroGradients) {
            let (have, need) = constants.common_optimum();
            self.at_most("ζ₁ = 0", have, need);
        }
        if statement.conditions.contains(&Condition::Stable)
            && let Some((rate, sides)) = constants.stability(run.gamma())
        {
            for (words, (have, need)) in ["η ≤ 2/L", "ηa ≤ 1/2"].into_iter().zip(sides) {
                self.at_most(words, have, need);
            }
            self.holds("A2 holds with some a > 0", rate > 0.0);
        }
    }

    /// Requires fields that are gradients.
    pub fn gradient(&mut self) {
        self.holds("the field is a gradient", self.run.constants.gradient);
    }

    /// The value of the bound if all conditions hold; it is computed only then. Else, or if the value is `None`,
    /// the conditions that fail.
    pub fn then<T>(self, value: impl FnOnce() -> Option<T>) -> Result<T, Vec<Unmet>> {
        if !self.unmet.is_empty() {
            return Err(self.unmet);
        }
        value().ok_or_else(|| {
            let condition = "the bound can be computed in double precision".into();
            vec![Unmet { condition, have: 0.0, need: 1.0 }]
        })
    }
}
