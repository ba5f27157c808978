//! The list of published bounds: what each is called and drawn like, and of which runs it is.

use super::{
    Algorithm, Bound, Bounded, Constants, RunSetup, book, richardson_romberg, scafflsa, scaffold,
};
use crate::problem::Facts;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A published bound.
pub struct PublishedBound {
    /// Its name in manifests; `None` where only tables have it.
    pub key: Option<&'static str>,
    /// What it is, for the reference of manifests.
    pub description: &'static str,
    /// The statement of the sources that it is, by name.
    pub statement: &'static str,
    /// How pages write it in a sentence.
    pub words: &'static str,
    /// Its dash pattern, if figures with all bounds draw it.
    pub dash: Option<usize>,
    /// Whether tables list it for every run that it is of, or only where a claim is tested on it.
    pub is_listed: bool,
    /// The bound of a run; `None` of runs that it is not of.
    bound: fn(&PublishedRun<'_>) -> Option<Bound>,
}

/// A run in the terms of published bounds.
pub struct PublishedRun<'a> {
    /// What is known of the instance.
    pub facts: &'a dyn Facts,
    /// Its constants.
    pub constants: &'a Constants,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The parameters of the run.
    pub setup: RunSetup,
    /// E_k, the local steps of each client; one number if they are equal.
    pub local_steps: &'a [u64],
    /// B_k, the draws of a local step, likewise.
    pub batches: &'a [u64],
    /// Whether γ_k = γ/E_k.
    pub normalised: bool,
    /// γH, or γ if γ_k = γ/E_k: BOOK's μ.
    pub path: f64,
}

impl<'a> PublishedRun<'a> {
    /// The run of clients with the same number of local steps, of one draw each.
    #[cfg(test)]
    pub fn even(
        facts: &'a dyn Facts,
        constants: &'a Constants,
        algorithm: Algorithm,
        setup: &RunSetup,
    ) -> Self {
        let (setup, even, path) = (*setup, &[1][..], setup.step_size * setup.local_steps as f64);
        let (local_steps, batches, normalised) = (even, even, false);
        Self { facts, constants, algorithm, setup, local_steps, batches, normalised, path }
    }

    /// All bounds of the run that tables list, or those that they do not.
    pub fn bounds(&self, listed: bool) -> Vec<Bound> {
        let chosen = PUBLISHED.iter().filter(|bound| bound.is_listed == listed);
        chosen.filter_map(|bound| (bound.bound)(self)).collect()
    }

    fn is_even(&self) -> bool {
        self.local_steps.iter().all(|steps| *steps == self.local_steps[0])
    }

    /// The run, if it is of this algorithm with equal local steps of one draw each.
    fn of(&self, algorithm: Algorithm) -> Option<&Self> {
        let is_plain = self.is_even() && self.batches == [1] && !self.is_normalised_fedavg();
        (self.algorithm == algorithm && is_plain).then_some(self)
    }

    /// A bound of this algorithm with equal local steps of one draw each.
    fn bound(&self, of: Algorithm, bound: fn(&Constants, &RunSetup) -> Bound) -> Option<Bound> {
        self.of(of).map(|run| bound(run.constants, &run.setup))
    }

    fn is_normalised_fedavg(&self) -> bool {
        self.algorithm == Algorithm::FedAvg && self.normalised
    }

    /// The run, if it is of FedAvg whose clients all move by the same γ in a round.
    fn level(&self) -> Option<&Self> {
        let is_level = self.is_even() || self.normalised;
        (self.algorithm == Algorithm::FedAvg && is_level).then_some(self)
    }

    /// p of communication by a coin.
    fn probability(&self) -> Option<f64> {
        match self.algorithm {
            Algorithm::Coin { probability } => Some(probability),
            _ => None,
        }
    }

    /// The setup of BOOK, whose step size μ is that of a whole round of normalised steps.
    fn whole_round(&self) -> RunSetup {
        RunSetup { step_size: self.path, local_steps: 1, ..self.setup }
    }

    /// E_k of every client.
    fn steps(&self) -> Vec<u64> {
        (0..self.facts.clients()).map(|c| self.local_steps[c % self.local_steps.len()]).collect()
    }

    fn batch(&self, client: usize) -> f64 {
        self.batches[client % self.batches.len()] as f64
    }
}

/// All of them, in the order of tables.
pub static PUBLISHED: &[PublishedBound] = &[
    PublishedBound {
        key: Some("scafflsa-a5"),
        description: "SCAFFLSA, Theorem 4.1 with the constants of A.5.",
        statement: "SCAFFLSA Theorem 4.1, corrected",
        words: "the bound of SCAFFLSA, Theorem 4.1 (A.5)",
        dash: Some(5),
        is_listed: true,
        bound: |run| theorem_a5(run, Bounded::SqError, false),
    },
    PublishedBound {
        key: Some("scafflsa-a5-limit"),
        description: "The same around the exact limit of the mean, of sq-error-limit.",
        statement: "SCAFFLSA Theorem 4.1, corrected",
        words: "the bound of SCAFFLSA, Theorem 4.1 (A.5), around the limit",
        dash: None,
        is_listed: false,
        bound: |run| theorem_a5(run, Bounded::LimitSqError, false),
    },
    PublishedBound {
        key: Some("scafflsa-a5-printed"),
        description: "The same around the limit, with the third term as printed.",
        statement: "SCAFFLSA Theorem 4.1, as printed",
        words: "the bound of SCAFFLSA, Theorem 4.1 (A.5), as printed",
        dash: None,
        is_listed: false,
        bound: |run| theorem_a5(run, Bounded::LimitSqError, true),
    },
    PublishedBound {
        key: Some("scafflsa-b2"),
        description: "SCAFFLSA, Theorem 5.1 with the constants of B.2, of the Lyapunov function.",
        statement: "SCAFFLSA Theorem 5.1",
        words: "the bound of SCAFFLSA, Theorem 5.1 (B.2)",
        dash: Some(6),
        is_listed: true,
        bound: |run| {
            run.of(run.algorithm)?;
            Some(scafflsa::theorem_b2(run.constants, &run.setup, run.probability()?))
        },
    },
    PublishedBound {
        key: Some("scafflsa-b5"),
        description: "SCAFFLSA, Theorem 5.3 with the constants of B.5.",
        statement: "SCAFFLSA Theorem 5.3",
        words: "the bound of SCAFFLSA, Theorem 5.3 (B.5)",
        dash: Some(7),
        is_listed: true,
        bound: |run| run.bound(Algorithm::Scaffold, scafflsa::theorem_b5),
    },
    PublishedBound {
        key: Some("scafflsa-26-printed"),
        description: "SCAFFLSA, (26) as printed.",
        statement: "SCAFFLSA (26)",
        words: "the bound of SCAFFLSA, (26), as printed",
        dash: None,
        is_listed: false,
        bound: |run| Some(scafflsa::drift(run.level()?.constants, &run.setup, true)),
    },
    PublishedBound {
        key: Some("scafflsa-26"),
        description: "SCAFFLSA, (26) with the factor ‖Ā_c‖²/2 that it lacks: of the first round from θ*.",
        statement: "SCAFFLSA (26)",
        words: "the bound of SCAFFLSA, (26), with its missing factor",
        dash: None,
        is_listed: false,
        bound: |run| Some(scafflsa::drift(run.level()?.constants, &run.setup, false)),
    },
    PublishedBound {
        key: Some("scafflsa-b4-printed"),
        description: "SCAFFLSA, Theorem B.4 as printed.",
        statement: "SCAFFLSA Theorem B.4",
        words: "the equality of SCAFFLSA, Theorem B.4, as printed",
        dash: None,
        is_listed: false,
        bound: |run| by_coin(run, true),
    },
    PublishedBound {
        key: Some("scafflsa-b4"),
        description: "SCAFFLSA, Theorem B.4 where its equality holds, p² = 2ηa − η²a².",
        statement: "SCAFFLSA Theorem B.4",
        words: "the equality of SCAFFLSA, Theorem B.4, corrected",
        dash: None,
        is_listed: false,
        bound: |run| by_coin(run, false),
    },
    PublishedBound {
        key: Some("rr-proposition2"),
        description: "RR, Proposition 2: the bound γ(H − 1)Lζ₁/μ on the bias, on nonlinear fields without noise.",
        statement: "RR Proposition 2, bound",
        words: "the bound of RR, Proposition 2",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::proposition_2),
    },
    PublishedBound {
        key: Some("rr-corollary1"),
        description: "RR, Corollary 1 (without noise).",
        statement: "RR Corollary 1",
        words: "the bound of RR, Corollary 1",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::corollary_1),
    },
    PublishedBound {
        key: Some("rr-theorem2"),
        description: "RR, Theorem 2: the bound γ(H − 1)ζ₁ζ₂/μ on the bias.",
        statement: "RR Theorem 2, bound",
        words: "the bound of RR, Theorem 2",
        dash: Some(9),
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::theorem_2),
    },
    PublishedBound {
        key: Some("rr-proposition5-printed"),
        description: "RR, Proposition 5 (Proposition 4 of the first version): half that bound, as printed.",
        statement: "RR Proposition 5",
        words: "the bound of RR, Proposition 5, as printed",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::proposition_5),
    },
    PublishedBound {
        key: Some("rr-lemma5"),
        description: "RR, Lemma 5, for clients of a common optimum (Remark 2 of the first version).",
        statement: "RR Lemma 5",
        words: "the bound of RR, Lemma 5",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::lemma_5),
    },
    PublishedBound {
        key: Some("rr-lemma7"),
        description: "RR, second version, Lemma 7.",
        statement: "RR Lemma 7",
        words: "the bound of RR, Lemma 7",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::lemma_7),
    },
    PublishedBound {
        key: Some("rr-proposition4"),
        description: "RR, second version, Proposition 4, around the limit.",
        statement: "RR Proposition 4",
        words: "the bound of RR, Proposition 4",
        dash: Some(8),
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, richardson_romberg::proposition_4),
    },
    PublishedBound {
        key: None,
        description: "RR, second version, Theorem 5.",
        statement: "RR Theorem 5, bias",
        words: "the bound of RR, Theorem 5",
        dash: None,
        is_listed: true,
        bound: |run| {
            run.of(Algorithm::RichardsonRomberg)?;
            Some(richardson_romberg::theorem_5(run.facts, run.constants, &run.setup))
        },
    },
    PublishedBound {
        key: Some("book51"),
        description: "BOOK, Theorem 5.1, with its orders written out.",
        statement: "BOOK Theorem 5.1",
        words: "the bound of BOOK, Theorem 5.1",
        dash: Some(10),
        is_listed: true,
        bound: |run| {
            if run.is_normalised_fedavg() && run.batches == [1] {
                return Some(book::unequal(run.constants, &run.whole_round(), &run.steps()));
            }
            run.of(Algorithm::FedAvg)?;
            Some(book::theorem_5_1(run.constants, &run.setup))
        },
    },
    PublishedBound {
        key: None,
        description: "BOOK, (5.57) without its orders.",
        statement: "BOOK (5.57)",
        words: "(5.57) of BOOK without its orders",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::FedAvg, book::leading),
    },
    PublishedBound {
        key: Some("book-lemma51"),
        description: "BOOK, Lemma 5.1: the equality (5.33), after one round from θ*.",
        statement: "BOOK Lemma 5.1",
        words: "the equality of BOOK, Lemma 5.1",
        dash: None,
        is_listed: false,
        bound: |run| {
            run.level()?;
            let draws = |client: usize| run.batch(client);
            Some(book::lemma_5_1(run.facts, run.constants, &run.setup, &draws))
        },
    },
    PublishedBound {
        key: Some("book554"),
        description: "BOOK, (5.54) with the distance that local steps travel: of the first round from θ*.",
        statement: "BOOK (5.54)",
        words: "the bound of BOOK, (5.54), by the distance travelled",
        dash: None,
        is_listed: false,
        bound: |run| {
            Some(book::perturbation(run.level()?.constants, &run.whole_round(), &run.steps()))
        },
    },
    PublishedBound {
        key: Some("book53"),
        description: "BOOK, problem 5.3 to first order in the step size.",
        statement: "BOOK problem 5.3",
        words: "the first order of BOOK, problem 5.3",
        dash: None,
        is_listed: false,
        bound: |run| {
            let steps = run.level()?.steps();
            let calls = |client: usize| run.batch(client) * steps[client] as f64;
            Some(book::mean_square_deviation(run.facts, run.constants, &run.whole_round(), &calls))
        },
    },
    PublishedBound {
        key: Some("slides-rate"),
        description: "SLIDES, the rate of Scaffold, with its universal constant set to 1.",
        statement: "SLIDES rate of Scaffold",
        words: "the rate of SLIDES with the constant 1",
        dash: None,
        is_listed: true,
        bound: |run| run.bound(Algorithm::Scaffold, scaffold::rate),
    },
];

fn theorem_a5(run: &PublishedRun<'_>, of: Bounded, printed: bool) -> Option<Bound> {
    run.of(Algorithm::FedAvg)?;
    Some(scafflsa::theorem_a5(run.facts, run.constants, &run.setup, of, printed))
}

/// SCAFFLSA, Theorem B.4, as printed or mended.
fn by_coin(run: &PublishedRun<'_>, is_printed: bool) -> Option<Bound> {
    Some(scafflsa::theorem_b4(run.constants, &run.setup, run.probability()?, is_printed))
}

/// A published bound that manifests name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub struct BoundId(u8);

impl BoundId {
    /// All that manifests name.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PUBLISHED.len() as u8).map(Self).filter(|id| id.info().key.is_some())
    }

    /// What it is.
    pub fn info(self) -> &'static PublishedBound {
        &PUBLISHED[usize::from(self.0)]
    }

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        self.info().key.unwrap_or_default()
    }

    /// Its dash pattern, where a figure names it: those without one of their own take turns.
    pub fn dash(self) -> usize {
        self.info().dash.unwrap_or(11 + usize::from(self.0 % 2))
    }

    /// The bound of a run; `None` of runs that it is not of.
    pub fn of(self, run: &PublishedRun<'_>) -> Option<Bound> {
        (self.info().bound)(run)
    }
}

impl fmt::Debug for BoundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<BoundId> for &'static str {
    fn from(id: BoundId) -> Self {
        id.name()
    }
}

impl TryFrom<String> for BoundId {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        let unknown = || format!("no published bound is called {name}");
        Self::all().find(|id| id.name() == name).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::quadratic;
    use crate::sample;
    use crate::sources::statement;
    use crate::theory::bounds::Unmet;
    use std::collections::HashSet;

    #[test]
    fn names_and_dashes_are_of_one_bound_each_and_statements_are_known() {
        let all: Vec<BoundId> = BoundId::all().collect();
        let names: HashSet<&str> = all.iter().map(|id| id.name()).collect();
        assert_eq!(names.len(), all.len());
        let dashes: Vec<usize> = PUBLISHED.iter().filter_map(|bound| bound.dash).collect();
        assert_eq!(dashes.iter().collect::<HashSet<_>>().len(), dashes.len());
        for bound in PUBLISHED {
            assert!(statement(bound.statement).is_some(), "{}", bound.statement);
        }
        assert!(BoundId::try_from("rr-theorem9".to_owned()).is_err());
    }

    /// A row and the function of its bound name a statement each: beyond what that of the row allows,
    /// the bound has no value.
    #[test]
    fn bounds_fail_where_an_inequality_of_their_statement_fails() {
        let base = quadratic::Settings { noise: 0.1, ..sample::isotropic(3, 2, 2.0) };
        let facts = sample::build(&base, 1);
        let constants = Constants::new(&facts).unwrap();
        let (mu, l) = (constants.curvature(), constants.moments().unwrap().cocoercivity);
        let setup = sample::setup(10.0, 4, 3);
        let coin = Algorithm::Coin { probability: 0.25 };
        let algorithms =
            [Algorithm::FedAvg, Algorithm::Scaffold, coin, Algorithm::RichardsonRomberg];
        let mut compared = 0;
        // The equality of Theorem B.4 needs no bound of η.
        for row in PUBLISHED.iter().filter(|row| row.statement != "SCAFFLSA Theorem B.4") {
            let run = |algorithm| PublishedRun::even(&facts, &constants, algorithm, &setup);
            let found = algorithms.iter().find_map(|algorithm| (row.bound)(&run(*algorithm)));
            let unmet = found.expect("a bound of some algorithm").value.err().unwrap_or_default();
            for condition in &statement(row.statement).unwrap().conditions {
                let sides = condition.sides((10.0, 4.0), || Ok(mu), || Ok::<_, ()>(l)).unwrap();
                let Some((have, need)) = sides else { continue };
                let is_it = |found: &Unmet| {
                    (found.have - have).abs() < 1e-9 * have
                        && (found.need - need).abs() < 1e-9 * need
                };
                assert!(unmet.iter().any(is_it), "{}: {condition:?}, {unmet:?}", row.statement);
                compared += 1;
            }
        }
        assert!(compared > 12, "{compared} inequalities");
    }
}
