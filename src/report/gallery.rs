//! Experiments as cards, grouped by their questions, with counts of the verdicts on their claims: the content of the
//! index and of the page of smoke experiments.

use super::claims::{self, ClaimText};
use super::index_entry::{Card, IndexEntry};
use super::verdict_bars::{Dispute, VerdictBar, bars_by_publication, disputes};
use crate::evidence::family::{family, family_name};
use crate::stats::verdict::{LEVEL, Verdict};
use exactfed_core::sources::{self, Publication};
use exactfed_runner::manifest::claim::Expected;
use serde::Serialize;
use std::collections::BTreeSet;

/// A choice among publications: its key, and its short citation.
type PublicationChoice = (&'static str, String);

/// Experiments that are shown together, and their claims.
#[derive(Serialize)]
pub struct Gallery {
    /// The number of experiments.
    pub cards: usize,
    levels: SampledLevels,
    /// How many of the claims have each verdict.
    counts: Vec<(Verdict, usize)>,
    /// The counts of claims that are not expected to be refuted.
    tested: Vec<(Verdict, usize)>,
    /// The counts of claims that are expected to be refuted.
    controls: Vec<(Verdict, usize)>,
    /// The number of groups of authors of the publications that claims name.
    author_groups: usize,
    /// The verdicts by publication.
    bars: Vec<VerdictBar>,
    pub disputes: Vec<Dispute>,
    /// Numbers and names of the families whose algorithms occur.
    families: Vec<(usize, String)>,
    /// The publications, topics and kinds of algorithms by which a reader can choose experiments.
    publications: Vec<PublicationChoice>,
    topics: BTreeSet<&'static str>,
    algorithms: BTreeSet<String>,
    /// The publications that claims name, by which a reader can choose claims.
    stated: Vec<PublicationChoice>,
    /// The publications of `stated` in full.
    cited: Vec<&'static Publication>,
    pub claims: Vec<ClaimText>,
    pub groups: Vec<CardGroup>,
}

/// How many claims are decided by samples, by the level of a page and by a stricter one. A page holds the probability
/// of a wrong verdict among its own claims below the level, so that over many pages some verdicts may be wrong.
#[derive(Serialize)]
struct SampledLevels {
    /// The experiments with a claim that has a p-value.
    experiments: usize,
    /// The p-values that are at most the level of a page.
    decided: usize,
    /// The p-values that are at most the level of a page divided by the number of experiments, so that a verdict is
    /// wrong on any of their pages with at most the probability of that level (Bonferroni).
    decided_together: usize,
}

impl SampledLevels {
    /// The counts for the claims of these experiments, by the p-values that are adjusted for the claims of each page.
    fn new(entries: &[IndexEntry]) -> Self {
        let experiments = entries.iter().filter(|entry| !entry.p.is_empty()).count();
        Self {
            experiments,
            decided: count_p_values(entries, LEVEL),
            decided_together: count_p_values(entries, LEVEL / experiments as f64),
        }
    }
}

/// How many p-values of the claims of all experiments are at most `level`.
fn count_p_values(entries: &[IndexEntry], level: f64) -> usize {
    entries.iter().flat_map(|entry| &entry.p).filter(|p| **p <= level).count()
}

impl Gallery {
    /// The gallery of these experiments, with everything that a reader may choose them by. Its claims are in the order
    /// of the experiments.
    pub fn new(entries: Vec<IndexEntry>) -> Self {
        let levels = SampledLevels::new(&entries);
        let mut cards = Vec::new();
        let mut claims = Vec::new();
        for entry in entries {
            cards.push(entry.card);
            claims.extend(entry.claims);
        }
        let named: BTreeSet<&str> =
            cards.iter().flat_map(|card| card.keys.iter().copied()).collect();
        let publications =
            sources::sources().iter().filter(|source| named.contains(source.key.as_str()));
        let algorithms: BTreeSet<String> =
            cards.iter().flat_map(|card| card.algorithms.iter().cloned()).collect();
        let families: BTreeSet<usize> = algorithms.iter().map(|kind| family(kind)).collect();
        let stated: Vec<&str> = claims.iter().filter_map(|c| c.stated.source.as_deref()).collect();
        let cited = sources::named_in(&stated.join(";"));
        let (controls, tested): (Vec<&ClaimText>, Vec<_>) =
            claims.iter().partition(|claim| claim.stated.expected == Expected::Refuted);
        Self {
            cards: cards.len(),
            levels,
            counts: claims::counts(&claims),
            tested: claims::counts(tested),
            controls: claims::counts(controls),
            author_groups: author_groups(&cited),
            bars: bars_by_publication(&claims),
            disputes: disputes(&claims),
            families: families.into_iter().map(|f| (f, family_name(f))).collect(),
            publications: publications.map(choice).collect(),
            topics: cards.iter().flat_map(|card| card.topics.iter().copied()).collect(),
            algorithms,
            stated: cited.iter().copied().map(choice).collect(),
            cited,
            claims,
            groups: group_by_question(cards),
        }
    }
}

/// A publication as a choice.
fn choice(source: &'static Publication) -> PublicationChoice {
    (&source.key, source.authors_and_year())
}

/// How many of the publications share no author with an earlier one: the index says by how many groups of authors the
/// claims are.
fn author_groups(cited: &[&Publication]) -> usize {
    let mut groups = 0;
    for (i, source) in cited.iter().enumerate() {
        let own = authors(source);
        let is_known = |author: &str| cited[..i].iter().any(|one| authors(one).contains(author));
        groups += usize::from(!own.split(", ").any(is_known));
    }
    groups
}

/// The authors of a publication, with commas between.
fn authors(source: &Publication) -> String {
    source.authors.replace(" and ", ", ")
}

/// The questions of the published experiments, in the order of a reader's interest.
const QUESTIONS: [&str; 13] = [
    "Do published numbers of other groups come out again?",
    "Which algorithm needs the fewest communications?",
    "Which algorithm is best when each is tuned?",
    "What do participation, local work and data change?",
    "Which algorithms remove the heterogeneity bias?",
    "Does the error fall with the number of clients?",
    "From how many clients on is half of the error bias?",
    "Do local steps save communication?",
    "What do local steps cost, and what do they buy?",
    "When does Richardson-Romberg help?",
    "How large is FedAvg's bias, and of which order?",
    "Which of the printed formulas hold?",
    "Do runs agree with exact theory and with bounds?",
];

/// The experiments that ask the same question.
#[derive(Serialize)]
pub struct CardGroup {
    /// The question; `None` for the experiments that state none.
    question: Option<String>,
    pub cards: Vec<Card>,
}

/// The cards by question: first the questions of [`QUESTIONS`] in their order, then other questions by the number of
/// their cards, and last the cards without a question.
fn group_by_question(cards: Vec<Card>) -> Vec<CardGroup> {
    let mut groups: Vec<CardGroup> = Vec::new();
    for card in cards {
        match groups.iter_mut().find(|group| group.question == card.question) {
            Some(group) => group.cards.push(card),
            None => groups.push(CardGroup { question: card.question.clone(), cards: vec![card] }),
        }
    }
    groups.sort_by_key(|group| {
        let place = group.question.as_ref().map(|question| {
            QUESTIONS.iter().position(|known| known == question).unwrap_or(QUESTIONS.len())
        });
        (place.unwrap_or(usize::MAX), std::cmp::Reverse(group.cards.len()))
    });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question that is asked in other words would silently be among the last.
    #[test]
    fn the_questions_of_all_published_experiments_have_a_place() {
        let mut asked: BTreeSet<String> = BTreeSet::new();
        for folder in std::fs::read_dir("experiments").unwrap().flatten() {
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let text = std::fs::read_to_string(file.path()).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("question = \""));
                asked.extend(line.map(|rest| rest.trim_end_matches('"').to_owned()));
            }
        }
        assert!(asked.iter().map(String::as_str).eq(BTreeSet::from(QUESTIONS)), "{asked:?}");
    }
}
