//! The pages about all experiments as their templates read them: experiments as cards, grouped by
//! their questions, and verdicts as counts and bars.
//!
//! *Invariant*: an experiment is on exactly one of two pages. Those in a folder `smoke` test the
//! program and have a page of their own, with counts of their own, unless there are no others.

use super::claims::{self, ClaimText};
use super::coverage::{coverage, errata};
use super::finding::ColoredText;
use super::guide;
use super::topics::topics;
use super::view::{Page, planned_cells};
use crate::chart::thumbnail::{Thumbnail, thumbnail};
use crate::evidence::claims::JudgedClaim;
use crate::evidence::family::{family, family_name};
use crate::evidence::{Experiment, Figure};
use crate::stats::verdict::{LEVEL, Verdict};
use exactfed_core::sources::{self, Publication};
use exactfed_runner::manifest::claim::Expected;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the index needs of an experiment.
#[derive(Clone, Default)]
pub struct IndexEntry {
    card: Card,
    claims: Vec<ClaimText>,
    /// The p-values of its claims, adjusted on its page; none of exact numbers.
    p: Vec<f64>,
    /// The problems with a frontier, as the page *Which algorithm, when?* shows them.
    guide: Vec<Value>,
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
        let (plan, manifest) = (&experiment.plan, &experiment.plan.manifest);
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
        let (topics, words) = topics(plan);
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
            topics,
            words,
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

/// The page *Which algorithm, when?* of the experiments of the index; `None` where no experiment has
/// a frontier.
fn guide(shown: &[IndexEntry]) -> Option<Value> {
    let problems: Vec<&Value> = shown.iter().flat_map(|entry| &entry.guide).collect();
    let claims = shown.iter().flat_map(|entry| &entry.claims);
    let mut answering: Vec<&IndexEntry> =
        shown.iter().filter(|entry| !entry.guide.is_empty()).collect();
    answering.sort_by_key(|entry| entry.map.is_none());
    let finding = |entry: &IndexEntry| {
        let IndexEntry { card, map, .. } = entry;
        json!({ "name": card.name, "headline": card.headline, "map": map })
    };
    (!problems.is_empty()).then(|| {
        json!({
            // What the pages of its problems find, maps first.
            "findings": answering.into_iter().map(finding).collect::<Vec<_>>(),
            // The claims that answer its question.
            "answers": claims.filter(|claim| claim.stated.answer).collect::<Vec<_>>(),
            "problems": problems,
        })
    })
}

/// What each page about all experiments shows, by its name; nothing of a page that would be empty.
/// Smoke experiments are on the index where there are no others.
pub fn pages(entries: Vec<IndexEntry>) -> BTreeMap<&'static str, Value> {
    let claims: Vec<&ClaimText> = entries.iter().flat_map(|entry| &entry.claims).collect();
    let of_sources = [("coverage", coverage(&claims)), ("errata", errata(&claims))];
    let (smoke, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(IndexEntry::is_smoke);
    let (shown, apart) = if others.is_empty() { (smoke, others) } else { (others, smoke) };
    let smoke = (!apart.is_empty()).then(|| gallery(apart));
    let guide = guide(&shown);
    let all = gallery(shown);
    let with = |key: &str| all[key].as_array().filter(|list| !list.is_empty()).map(|_| all.clone());
    let of_claims = [("claims", with("claims")), ("disagreements", with("disputes"))];
    let others = [("which-algorithm", guide), ("smoke", smoke), ("index", Some(all))];
    let pages = others.into_iter().chain(of_sources).chain(of_claims);
    pages.filter_map(|(page, shown)| Some((page, shown?))).collect()
}

/// Experiments that are shown together, and their claims.
fn gallery(entries: Vec<IndexEntry>) -> Value {
    let sampled = entries.iter().filter(|entry| !entry.p.is_empty()).count();
    let all_p: Vec<f64> = entries.iter().flat_map(|entry| entry.p.iter().copied()).collect();
    let decided = |level: f64| all_p.iter().filter(|p| **p <= level).count();
    let (mut cards, mut all) = (Vec::new(), Vec::new());
    for entry in entries {
        cards.push(entry.card);
        all.extend(entry.claims);
    }
    let named: BTreeSet<&str> = cards.iter().flat_map(|card| card.keys.iter().copied()).collect();
    let publications =
        sources::sources().iter().filter(|source| named.contains(source.key.as_str()));
    let choice = |source: &'static Publication| (&*source.key, source.authors_and_year());
    let algorithms: BTreeSet<&String> = cards.iter().flat_map(|card| &card.algorithms).collect();
    let families: BTreeSet<usize> = algorithms.iter().map(|kind| family(kind)).collect();
    let stated: Vec<&str> = all.iter().filter_map(|c| c.stated.source.as_deref()).collect();
    let cited = sources::named_in(&stated.join(";"));
    let (controls, tested): (Vec<&ClaimText>, Vec<_>) =
        all.iter().partition(|claim| claim.stated.expected == Expected::Refuted);
    json!({
        "cards": cards.len(),
        // Experiments with p-values, how many of these are at most the level, and at most the level over all.
        "levels": (sampled, decided(LEVEL), decided(LEVEL / sampled as f64)),
        "counts": claims::counts(&all),
        // The same of claims that are expected to hold, and of those that are expected to be refuted.
        "tested": claims::counts(tested),
        "controls": claims::counts(controls),
        "author_groups": author_groups(&cited),
        "bars": bars(&all),
        "disputes": disputes(&all),
        // Numbers and names of the families whose algorithms occur.
        "families": families.into_iter().map(|f| (f, family_name(f))).collect::<Vec<_>>(),
        // What the experiments can be chosen by: key of the publication and its short citation.
        "publications": publications.map(choice).collect::<Vec<_>>(),
        "topics": cards.iter().flat_map(|card| &card.topics).collect::<BTreeSet<_>>(),
        "algorithms": algorithms,
        // The publications that claims name, as choices and in full.
        "stated": cited.iter().copied().map(choice).collect::<Vec<_>>(),
        "cited": cited,
        "claims": all,
        "groups": groups(&cards),
    })
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

/// The cards by question: those of the published experiments in their order, then those that most
/// experiments ask, and last the experiments that state none.
fn groups(cards: &[Card]) -> Vec<Value> {
    let mut groups: Vec<(Option<&str>, Vec<&Card>)> = Vec::new();
    for card in cards {
        let question = card.question.as_deref();
        match groups.iter_mut().find(|(known, _)| *known == question) {
            Some((_, cards)) => cards.push(card),
            None => groups.push((question, vec![card])),
        }
    }
    let place = |question: &str| QUESTIONS.iter().position(|known| *known == question);
    groups.sort_by_key(|(question, cards)| {
        let place = question.map(|q| place(q).unwrap_or(QUESTIONS.len()));
        (place.unwrap_or(usize::MAX), std::cmp::Reverse(cards.len()))
    });
    let group = |(question, cards)| json!({ "question": question, "cards": cards });
    groups.into_iter().map(group).collect()
}

/// The verdicts for each publication; a claim counts for the one that its source names first.
fn bars(claims: &[ClaimText]) -> Vec<Value> {
    let first = |claim: &ClaimText| {
        let words = claim.stated.source.as_deref().unwrap_or_default();
        let mut words = words.split(|c: char| !c.is_alphanumeric());
        words.find_map(|word| sources::named_in(word).first().map(|source| source.key.as_str()))
    };
    let of = |source: Option<&'static Publication>| {
        let key = source.map(|source| source.key.as_str());
        let name = source
            .map_or("other sources".into(), |s| format!("{} ({})", s.authors_and_year(), s.key));
        let own = claims.iter().filter(|claim| first(claim) == key);
        (name, key.unwrap_or_default(), claims::counts(own))
    };
    let sources = sources::sources().iter().map(Some).chain([None]);
    let bars: Vec<_> = sources.map(of).filter(|(.., counts)| !counts.is_empty()).collect();
    let total = |counts: &[(Verdict, usize)]| counts.iter().map(|(_, count)| count).sum();
    let longest = bars.iter().map(|(.., counts)| total(counts)).max().unwrap_or(1);
    bars.iter().map(|(name, key, counts)| bar(name, key, counts, longest)).collect()
}

/// The verdicts of some claims as a bar, where so many claims fill the width; `key` is that of the
/// publication whose claims they are.
fn bar(name: &str, key: &str, counts: &[(Verdict, usize)], longest: usize) -> Value {
    let (unit, mut left) = (100.0 / longest as f64, 0.0);
    let segment = |(verdict, count): &(Verdict, usize)| {
        let (begin, width) = (left, *count as f64 * unit);
        left += width;
        (*verdict, begin, width)
    };
    // Verdict, left end and width, in percent of the longest bar.
    let segments: Vec<(Verdict, f64, f64)> = counts.iter().map(segment).collect();
    json!({ "name": name, "key": key, "counts": counts, "segments": segments })
}

/// The disagreements: of each the sides with the claims that state them, their verdicts as a bar, and
/// whether a claim of a side is refuted.
fn disputes(claims: &[ClaimText]) -> Vec<Value> {
    let mut all: BTreeMap<&str, Vec<&ClaimText>> = BTreeMap::new();
    for claim in claims {
        if let Some(dispute) = claim.stated.dispute.as_ref().filter(|name| !name.is_empty()) {
            all.entry(dispute).or_default().push(claim);
        }
    }
    let longest = all.values().map(Vec::len).max().unwrap_or(1);
    let card = |(name, claims): (&str, Vec<&ClaimText>)| {
        let counts = claims::counts(claims.iter().copied());
        let has_refuted = counts.iter().any(|(verdict, _)| *verdict == Verdict::Refuted);
        let mut sides: Vec<(&str, Vec<&ClaimText>)> = Vec::new();
        for claim in claims {
            let side = claim.stated.side.as_deref().unwrap_or(&claim.stated.statement);
            match sides.iter_mut().find(|(other, _)| *other == side) {
                Some((_, rows)) => rows.push(claim),
                None => sides.push((side, vec![claim])),
            }
        }
        let bar = bar(name, "", &counts, longest);
        json!({ "sides": sides, "bar": bar, "has_refuted": has_refuted })
    };
    all.into_iter().map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, question: Option<&str>) -> IndexEntry {
        let (name, question) = (name.into(), question.map(str::to_owned));
        let card = Card { name, question, ..Card::default() };
        IndexEntry { card, ..IndexEntry::default() }
    }

    /// The names of the cards on a page, by group.
    fn names(page: &Value) -> Vec<Vec<&str>> {
        let groups = page["groups"].as_array().unwrap().iter();
        let cards = groups.map(|group| group["cards"].as_array().unwrap().iter());
        cards.map(|cards| cards.map(|card| card["name"].as_str().unwrap()).collect()).collect()
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
        let shown = pages(all());
        let expected: Vec<Vec<&str>> =
            vec![vec!["a/three", "a/four"], vec!["a/one"], vec!["a/two", "smoke"]];
        assert_eq!((names(&shown["index"]), &shown["index"]["cards"]), (expected, &json!(5)));
        assert_eq!(names(&shown["smoke"]), [["smoke/x"], ["old/smoke/y"]]);
        let shown = pages(all().into_iter().filter(IndexEntry::is_smoke).collect());
        assert!(shown.len() == 1 && shown["index"]["cards"] == 2, "alone they are the index");
        let shown = pages(Vec::new());
        assert!(shown.len() == 1 && names(&shown["index"]).is_empty());
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
        let expected = json!([("supported", 0.0, 37.5), ("refuted", 37.5, 12.5)]);
        assert_eq!(bar("", "", &counts, 8)["segments"], expected);
    }
}
