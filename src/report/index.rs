//! The pages about all experiments as their templates read them: experiments as cards, grouped by
//! their questions, and verdicts as counts and bars.
//!
//! *Invariant*: an experiment is on exactly one of two pages. Those in a folder `smoke` test the
//! program and have a page of their own, with counts of their own, unless there are no others.

use super::claims::{self, ClaimText};
use super::colored_text::ColoredText;
use super::coverage::{Coverage, Errata};
use super::guide::{self, GuideProblem};
use super::page::{Page, planned_cells};
use super::topics::topics;
use crate::chart::thumbnail::{Thumbnail, thumbnail};
use crate::evidence::claims::JudgedClaim;
use crate::evidence::family::{family, family_name};
use crate::evidence::{Experiment, Figure};
use crate::stats::verdict::{LEVEL, Verdict};
use exactfed_core::sources::{self, Publication};
use exactfed_runner::manifest::claim::Expected;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What the index needs of an experiment.
#[derive(Clone, Default)]
pub struct IndexEntry {
    card: Card,
    claims: Vec<ClaimText>,
    /// The p-values of its claims, adjusted on its page; none of exact numbers.
    p: Vec<f64>,
    /// The problems with a frontier, as the page *Which algorithm, when?* shows them.
    guide: Vec<GuideProblem>,
    /// Its first map of the best algorithm, as SVG.
    map: Option<String>,
}

/// An experiment on a card.
#[derive(Clone, Default, Serialize)]
struct Card {
    name: String,
    title: String,
    question: Option<String>,
    headline: Vec<ColoredText>,
    /// Its source with authors and year.
    source: String,
    /// The keys of the publications that the source names.
    keys: Vec<&'static str>,
    thumbnail: Option<Thumbnail>,
    /// How many of its claims have each verdict.
    counts: Vec<(Verdict, usize)>,
    /// The kinds of its problems and algorithms, as manifests name them.
    problems: BTreeSet<String>,
    algorithms: BTreeSet<String>,
    /// What it is about, and other words by which it is found.
    topics: Vec<&'static str>,
    words: String,
    /// Cells, and how many of them have no results.
    cells: (usize, usize),
}

impl IndexEntry {
    /// The entry of an experiment with this page.
    pub fn new(experiment: &Experiment<'_>, page: Page) -> Self {
        let plan = experiment.plan;
        let manifest = &plan.manifest;
        let source = manifest.source.as_deref().unwrap_or_default();
        let kinds = || plan.all_cells().map(|cell| &cell.identity);
        let problem = plan.frontier_problem.iter().map(|problem| problem.kind());
        let problems = kinds().map(|identity| identity.problem.kind()).chain(problem);
        let frontiers = manifest.frontier.iter().flat_map(|frontier| &frontier.algorithms);
        let of_frontiers = frontiers.map(|algorithm| algorithm.name.as_str());
        let algorithms = kinds().map(|identity| identity.algorithm.kind()).chain(of_frontiers);
        let owned = |kinds: BTreeSet<&str>| kinds.into_iter().map(str::to_owned).collect();
        let drawn = experiment.figures.iter().find(|figure: &&Figure| figure.has_content());
        let question = manifest.question.as_deref().unwrap_or_default().trim();
        let topics = topics(plan);
        let card = Card {
            name: plan.experiment.clone(),
            title: manifest.title.clone(),
            question: (!question.is_empty()).then(|| question.to_owned()),
            headline: page.finding.headline,
            source: sources::cited(source),
            keys: claims::keys(source),
            thumbnail: drawn.and_then(thumbnail),
            counts: page.claims.counts,
            problems: owned(problems.collect()),
            algorithms: owned(algorithms.collect()),
            topics: topics.names,
            words: topics.words,
            cells: (planned_cells(plan), experiment.missing.len()),
        };
        let p = experiment.claims.iter().filter_map(JudgedClaim::p).collect();
        let phase = manifest.phase.first().map(|phase| phase.id.as_str());
        let map = page.figures.iter().find(|figure| Some(&*figure.id) == phase);
        let map = map.map(|figure| figure.svg.clone());
        Self { card, claims: page.claims.list, p, guide: guide::problems(experiment), map }
    }

    /// The name of the experiment.
    pub fn name(&self) -> &str {
        &self.card.name
    }

    /// Whether no cell is without results.
    pub fn is_complete(&self) -> bool {
        self.card.cells.1 == 0
    }

    /// Whether the experiment tests the program: it is in a folder `smoke`.
    fn is_smoke(&self) -> bool {
        self.card.name.split('/').rev().skip(1).any(|folder| folder == "smoke")
    }
}

/// What the pages about all experiments show.
pub struct OverviewPages {
    /// The experiments of the index with their claims and disagreements.
    index: Gallery,
    /// The smoke experiments, where there are others.
    smoke: Option<Gallery>,
    guide: Option<Guide>,
    coverage: Option<Coverage>,
    errata: Option<Errata>,
}

impl OverviewPages {
    /// The pages on these experiments. Smoke experiments are on the index where there are no others.
    pub fn new(entries: Vec<IndexEntry>) -> Self {
        let claims: Vec<&ClaimText> = entries.iter().flat_map(|entry| &entry.claims).collect();
        let coverage = Coverage::new(&claims);
        let errata = Errata::new(&claims);
        let (smoke, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(IndexEntry::is_smoke);
        let (shown, apart) = if others.is_empty() { (smoke, others) } else { (others, smoke) };
        Self {
            guide: Guide::new(&shown),
            index: Gallery::new(shown),
            smoke: (!apart.is_empty()).then(|| Gallery::new(apart)),
            coverage,
            errata,
        }
    }

    /// What the page of this name shows; `None` of a page that would be empty.
    pub fn shown(&self, page: &str) -> Option<Value> {
        match page {
            "index" => Some(Value::from(Serde(&self.index))),
            "claims" if !self.index.claims.is_empty() => Some(Value::from(Serde(&self.index))),
            "disagreements" if !self.index.disputes.is_empty() => {
                Some(Value::from(Serde(&self.index)))
            }
            "smoke" => self.smoke.as_ref().map(|smoke| Value::from(Serde(smoke))),
            "which-algorithm" => self.guide.as_ref().map(|guide| Value::from(Serde(guide))),
            "coverage" => self.coverage.as_ref().map(|coverage| Value::from(Serde(coverage))),
            "errata" => self.errata.as_ref().map(|errata| Value::from(Serde(errata))),
            _ => None,
        }
    }
}

/// The page *Which algorithm, when?*.
#[derive(Serialize)]
struct Guide {
    /// What the pages of its problems find, maps first.
    findings: Vec<GuideFinding>,
    /// The claims that answer its question.
    answers: Vec<ClaimText>,
    problems: Vec<GuideProblem>,
}

/// What an experiment of the guide finds.
#[derive(Serialize)]
struct GuideFinding {
    name: String,
    headline: Vec<ColoredText>,
    /// Its first map of the best algorithm, as SVG.
    map: Option<String>,
}

impl Guide {
    /// The guide to these experiments; `None` where none has a frontier.
    fn new(shown: &[IndexEntry]) -> Option<Self> {
        let mut answering: Vec<&IndexEntry> =
            shown.iter().filter(|entry| !entry.guide.is_empty()).collect();
        if answering.is_empty() {
            return None;
        }
        let problems = shown.iter().flat_map(|entry| entry.guide.iter().cloned()).collect();
        answering.sort_by_key(|entry| entry.map.is_none());
        let findings = answering.into_iter().map(|entry| GuideFinding {
            name: entry.card.name.clone(),
            headline: entry.card.headline.clone(),
            map: entry.map.clone(),
        });
        let claims = shown.iter().flat_map(|entry| &entry.claims);
        Some(Self {
            findings: findings.collect(),
            answers: claims.filter(|claim| claim.stated.answer).cloned().collect(),
            problems,
        })
    }
}

/// A choice among publications: its key, and its short citation.
type PublicationChoice = (&'static str, String);

/// Experiments that are shown together, and their claims.
#[derive(Serialize)]
struct Gallery {
    /// The number of experiments.
    cards: usize,
    levels: SampledLevels,
    counts: Vec<(Verdict, usize)>,
    /// The counts of claims that are expected to hold.
    tested: Vec<(Verdict, usize)>,
    /// The counts of claims that are expected to be refuted.
    controls: Vec<(Verdict, usize)>,
    author_groups: usize,
    bars: Vec<VerdictBar>,
    disputes: Vec<Dispute>,
    /// Numbers and names of the families whose algorithms occur.
    families: Vec<(usize, String)>,
    /// What the experiments can be chosen by.
    publications: Vec<PublicationChoice>,
    topics: BTreeSet<&'static str>,
    algorithms: BTreeSet<String>,
    /// The publications that claims name, as choices.
    stated: Vec<PublicationChoice>,
    /// The same publications in full.
    cited: Vec<&'static Publication>,
    claims: Vec<ClaimText>,
    groups: Vec<CardGroup>,
}

/// How many verdicts on samples there are at two levels.
#[derive(Serialize)]
struct SampledLevels {
    /// Experiments with p-values.
    experiments: usize,
    /// The p-values that are at most the level of a page.
    decided: usize,
    /// Those that are at most the level over all experiments together.
    decided_together: usize,
}

impl SampledLevels {
    fn new(entries: &[IndexEntry]) -> Self {
        let experiments = entries.iter().filter(|entry| !entry.p.is_empty()).count();
        let decided =
            |level: f64| entries.iter().flat_map(|entry| &entry.p).filter(|p| **p <= level).count();
        Self {
            experiments,
            decided: decided(LEVEL),
            decided_together: decided(LEVEL / experiments as f64),
        }
    }
}

impl Gallery {
    fn new(entries: Vec<IndexEntry>) -> Self {
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
            bars: bars(&claims),
            disputes: disputes(&claims),
            families: families.into_iter().map(|f| (f, family_name(f))).collect(),
            publications: publications.map(choice).collect(),
            topics: cards.iter().flat_map(|card| card.topics.iter().copied()).collect(),
            algorithms,
            stated: cited.iter().copied().map(choice).collect(),
            cited,
            claims,
            groups: groups(cards),
        }
    }
}

fn choice(source: &'static Publication) -> PublicationChoice {
    (&source.key, source.authors_and_year())
}

/// How many of the sources share no author with an earlier one.
fn author_groups(cited: &[&Publication]) -> usize {
    let authors = |source: &Publication| source.authors.replace(" and ", ", ");
    let is_new = |(i, source): &(usize, &&Publication)| {
        let own = authors(source);
        !cited[..*i].iter().any(|other| own.split(", ").any(|one| authors(other).contains(one)))
    };
    cited.iter().enumerate().filter(is_new).count()
}

/// The questions of the published experiments, in the order of a reader's interest.
const QUESTIONS: [&str; 12] = [
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

/// The experiments that ask a question.
#[derive(Serialize)]
struct CardGroup {
    question: Option<String>,
    cards: Vec<Card>,
}

/// The cards by question: those of the published experiments in their order, then those that most
/// experiments ask, and last the experiments that state none.
fn groups(cards: Vec<Card>) -> Vec<CardGroup> {
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

/// The verdicts of some claims as a bar.
#[derive(Serialize)]
struct VerdictBar {
    name: String,
    /// The key of the publication whose claims they are; empty of other claims.
    key: &'static str,
    counts: Vec<(Verdict, usize)>,
    /// Verdict, left end and width, in percent of the longest bar.
    segments: Vec<(Verdict, f64, f64)>,
}

impl VerdictBar {
    /// A bar of these counts, where so many claims fill the width.
    fn new(name: String, key: &'static str, counts: Vec<(Verdict, usize)>, longest: usize) -> Self {
        let unit = 100.0 / longest as f64;
        let mut left = 0.0;
        let mut segments = Vec::new();
        for (verdict, count) in &counts {
            let width = *count as f64 * unit;
            segments.push((*verdict, left, width));
            left += width;
        }
        Self { name, key, counts, segments }
    }
}

/// The verdicts for each publication; a claim counts for the one that its source names first.
fn bars(claims: &[ClaimText]) -> Vec<VerdictBar> {
    let mut all = Vec::new();
    for source in sources::sources().iter().map(Some).chain([None]) {
        let key = source.map(|source| source.key.as_str());
        let counts = claims::counts(claims.iter().filter(|claim| first_key(claim) == key));
        if !counts.is_empty() {
            all.push((source, counts));
        }
    }
    let totals = all.iter().map(|(_, counts)| counts.iter().map(|(_, count)| count).sum());
    let longest = totals.max().unwrap_or(1);
    all.into_iter()
        .map(|(source, counts)| match source {
            Some(source) => {
                let name = format!("{} ({})", source.authors_and_year(), source.key);
                VerdictBar::new(name, &source.key, counts, longest)
            }
            None => VerdictBar::new("other sources".into(), "", counts, longest),
        })
        .collect()
}

/// The key of the publication that a claim's source names first.
fn first_key(claim: &ClaimText) -> Option<&'static str> {
    let source = claim.stated.source.as_deref().unwrap_or_default();
    let mut words = source.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| sources::named_in(word).first().map(|source| source.key.as_str()))
}

/// Statements that contradict each other.
#[derive(Serialize)]
struct Dispute {
    /// Each side with the claims that state it.
    sides: Vec<(String, Vec<ClaimText>)>,
    bar: VerdictBar,
    /// Whether a claim of a side is refuted.
    has_refuted: bool,
}

fn disputes(claims: &[ClaimText]) -> Vec<Dispute> {
    let mut all: BTreeMap<&str, Vec<&ClaimText>> = BTreeMap::new();
    for claim in claims {
        if let Some(dispute) = claim.stated.dispute.as_ref().filter(|name| !name.is_empty()) {
            all.entry(dispute).or_default().push(claim);
        }
    }
    let longest = all.values().map(Vec::len).max().unwrap_or(1);
    all.into_iter().map(|(name, claims)| Dispute::new(name, &claims, longest)).collect()
}

impl Dispute {
    /// The dispute of this name; the longest bar is of so many claims.
    fn new(name: &str, claims: &[&ClaimText], longest: usize) -> Self {
        let counts = claims::counts(claims.iter().copied());
        let mut sides: Vec<(String, Vec<ClaimText>)> = Vec::new();
        for claim in claims.iter().copied() {
            let side = claim.stated.side.as_deref().unwrap_or(&claim.stated.statement);
            match sides.iter_mut().find(|(other, _)| *other == side) {
                Some((_, stating)) => stating.push(claim.clone()),
                None => sides.push((side.to_owned(), vec![claim.clone()])),
            }
        }
        Self {
            sides,
            has_refuted: counts.iter().any(|(verdict, _)| *verdict == Verdict::Refuted),
            bar: VerdictBar::new(name.to_owned(), "", counts, longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::navigation::PAGES;

    fn entry(name: &str, question: Option<&str>) -> IndexEntry {
        let (name, question) = (name.into(), question.map(str::to_owned));
        let card = Card { name, question, ..Card::default() };
        IndexEntry { card, ..IndexEntry::default() }
    }

    /// The names of the cards on a page, by group.
    fn names(gallery: &Gallery) -> Vec<Vec<&str>> {
        let groups = gallery.groups.iter();
        groups.map(|group| group.cards.iter().map(|card| card.name.as_str()).collect()).collect()
    }

    /// The names of the pages that are not empty.
    fn shown(pages: &OverviewPages) -> Vec<&'static str> {
        let names = PAGES.iter().map(|(page, _)| *page);
        names.filter(|page| pages.shown(page).is_some()).collect()
    }

    #[test]
    fn each_experiment_is_once_on_one_page() {
        let all = || {
            vec![
                entry("a/one", Some("small")),
                entry("a/two", None),
                entry("a/three", Some("large")),
                entry("smoke/x", Some("large")),
                entry("a/four", Some("large")),
                entry("smoke", None),
                entry("old/smoke/y", None),
            ]
        };
        let pages = OverviewPages::new(all());
        let expected: Vec<Vec<&str>> =
            vec![vec!["a/three", "a/four"], vec!["a/one"], vec!["a/two", "smoke"]];
        assert_eq!((names(&pages.index), pages.index.cards), (expected, 5));
        let smoke = pages.smoke.as_ref().unwrap();
        assert_eq!(names(smoke), [["smoke/x"], ["old/smoke/y"]]);
        let alone = OverviewPages::new(all().into_iter().filter(IndexEntry::is_smoke).collect());
        assert_eq!(shown(&alone), ["index"], "alone they are the index");
        assert_eq!(alone.index.cards, 2);
        let none = OverviewPages::new(Vec::new());
        assert_eq!(shown(&none), ["index"]);
        assert!(names(&none.index).is_empty());
    }

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

    #[test]
    fn segments_of_a_bar_fill_its_share_of_the_width() {
        let counts = vec![(Verdict::Supported, 3), (Verdict::Refuted, 1)];
        let expected = [(Verdict::Supported, 0.0, 37.5), (Verdict::Refuted, 37.5, 12.5)];
        assert_eq!(VerdictBar::new(String::new(), "", counts, 8).segments, expected);
    }
}
