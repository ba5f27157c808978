//! The pages about all experiments as their templates read them.
//!
//! *Invariant*: an experiment is on exactly one of two pages. Those in a folder `smoke` test the
//! program and have a page of their own, with counts of their own, unless there are no others.

use super::claims::ClaimText;
use super::colored_text::ColoredText;
use super::coverage::{Coverage, Errata};
use super::gallery::Gallery;
use super::guide::GuideProblem;
use super::index_entry::IndexEntry;
use super::published::{PublishedElsewhere, PublishedExperiments};
use minijinja::value::{Serde, Value};
use serde::Serialize;

/// What the pages about all experiments show.
pub struct OverviewPages {
    /// The experiments of the index with their claims and disagreements.
    index: Gallery,
    /// The smoke experiments; `None` if there are none, or no others, so that the index shows them.
    smoke: Option<Gallery>,
    published: Option<PublishedExperiments>,
    guide: Option<Guide>,
    coverage: Option<Coverage>,
    errata: Option<Errata>,
}

impl OverviewPages {
    /// The pages on these experiments. Smoke experiments are on the index where there are no others. The coverage and
    /// the errata count the claims of all experiments, also of smoke experiments; the guide and the lists of claims and
    /// disagreements are on the experiments of the index. `elsewhere` are published experiments in another folder.
    pub fn new(entries: Vec<IndexEntry>, elsewhere: Option<&PublishedElsewhere>) -> Self {
        let claims: Vec<&ClaimText> = entries.iter().flat_map(|entry| &entry.claims).collect();
        let coverage = Coverage::new(&claims);
        let errata = Errata::new(&claims);
        let (mut smoke, mut shown): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(IndexEntry::is_smoke);
        if shown.is_empty() {
            std::mem::swap(&mut smoke, &mut shown);
        }
        Self {
            published: PublishedExperiments::new(&shown, elsewhere),
            guide: Guide::new(&shown),
            index: Gallery::new(shown),
            smoke: (!smoke.is_empty()).then(|| Gallery::new(smoke)),
            coverage,
            errata,
        }
    }

    /// The values with which the template of the page of this name (of [`PAGES`](super::navigation::PAGES)) is filled;
    /// `None` for a page that would be empty, which is not written, and for a name that no such page has.
    pub fn shown(&self, page: &str) -> Option<Value> {
        match page {
            "index" => Some(Value::from(Serde(&self.index))),
            "claims" if !self.index.claims.is_empty() => Some(Value::from(Serde(&self.index))),
            "disagreements" if !self.index.disputes.is_empty() => {
                Some(Value::from(Serde(&self.index)))
            }
            "published" => self.published.as_ref().map(|all| Value::from(Serde(all))),
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
    /// The findings of the experiments with a frontier that the page shows, those with a map first.
    findings: Vec<GuideFinding>,
    /// The claims that manifests mark as answers to the question of the page (`answer = true`).
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
    /// The guide to these experiments; `None` where none has a frontier that its manifest shows on the page (key
    /// `guide`).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::index_entry::Card;
    use crate::report::navigation::PAGES;

    /// The entry of an experiment of which nothing but the name and the question is known.
    fn entry(name: &str, question: Option<&str>) -> IndexEntry {
        let question = question.map(str::to_owned);
        let card = Card { name: name.into(), question, ..Card::default() };
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
        let pages = OverviewPages::new(all(), None);
        let expected: Vec<Vec<&str>> =
            vec![vec!["a/three", "a/four"], vec!["a/one"], vec!["a/two", "smoke"]];
        assert_eq!((names(&pages.index), pages.index.cards), (expected, 5));
        let smoke = pages.smoke.as_ref().unwrap();
        assert_eq!(names(smoke), [["smoke/x"], ["old/smoke/y"]]);
        let alone =
            OverviewPages::new(all().into_iter().filter(IndexEntry::is_smoke).collect(), None);
        assert_eq!(shown(&alone), ["index"], "alone they are the index");
        assert_eq!(alone.index.cards, 2);
        let none = OverviewPages::new(Vec::new(), None);
        assert_eq!(shown(&none), ["index"]);
        assert!(names(&none.index).is_empty());
    }
}
