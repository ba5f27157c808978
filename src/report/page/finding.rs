//! What the texts of a manifest, or else the ranking, say of the results: the headline of a page, the line below it,
//! and the analysis.
//!
//! *Invariant*: the headline is made from results. A manifest's `finding` is shown only while the
//! claims that it names hold; otherwise the headline is made from the ranking.

use super::headline::{Headline, of_ranking};
use crate::evidence::family::{family, family_of, named_families};
use crate::evidence::{Experiment, unique};
use crate::report::colored_text::ColoredText;
use crate::report::manifest_texts::{TextError, TextFiller};
use serde::Serialize;

/// The sentences of a page on what the results show.
#[derive(Serialize)]
pub struct Finding {
    /// The headline, in parts with and without the colour of a family.
    pub headline: Vec<ColoredText>,
    /// The headline as one text.
    pub text: String,
    /// The line below the headline, in parts as the headline.
    pub line: Vec<ColoredText>,
    /// The paragraphs of the manifest's `analysis`; none if it has no such text, or one whose claims have other
    /// verdicts than it says.
    pub paragraphs: Vec<String>,
}

impl Finding {
    /// The finding of an experiment. Its headline is the manifest's `finding` if all cells have results and its claims
    /// have the verdicts that it says, else one that is made from the ranking.
    ///
    /// # Errors
    /// If a text of the manifest cannot be filled from the results.
    pub fn new(experiment: &Experiment<'_>) -> Result<Self, TextError> {
        let manifest = &experiment.plan.manifest;
        let filler = TextFiller::of_results(experiment);
        let stated = match &manifest.finding {
            Some(finding) if !finding.is_empty() && experiment.missing.is_empty() => {
                filler.fill(finding)?
            }
            _ => None,
        };
        let Headline { text, line } = match stated {
            Some(filled) => split_finding(&filled),
            None => of_ranking(experiment),
        };
        let analysis = filler.fill(manifest.analysis.as_deref().unwrap_or_default())?;
        let paragraphs = analysis.unwrap_or_default();
        let names = names_by_length(experiment);
        Ok(Self {
            headline: colored_parts(&text, &names),
            text,
            line: colored_parts(&line, &names),
            paragraphs: paragraphs.split("\n\n").map(one_line).filter(|p| !p.is_empty()).collect(),
        })
    }
}

/// The headline in a manifest's `finding`, whose calls are filled: its first paragraph. The line below it is the rest,
/// empty if there is none.
fn split_finding(filled: &str) -> Headline {
    let (first, rest) = filled.split_once("\n\n").unwrap_or((filled, ""));
    Headline { text: one_line(first), line: one_line(rest) }
}

/// A text of a manifest, which may have line breaks, in one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name of an algorithm, and the family whose colour it has in texts.
struct ColoredName {
    name: String,
    family: usize,
}

/// The names of algorithms that the texts on an experiment may contain: labels, the names of all kinds, and the labels
/// of its frontiers. Longer names come first, so that FedAvg-RR is not taken for FedAvg.
fn names_by_length(experiment: &Experiment<'_>) -> Vec<ColoredName> {
    // A shorter label may be a word of any sentence.
    const SHORTEST: usize = 4;
    let cells = experiment.plan.cells.iter().filter(|c| c.label.chars().count() >= SHORTEST);
    let labels = cells.map(|cell| (cell.label.clone(), family_of(cell)));
    let kinds = named_families().map(|(name, family)| (name.to_owned(), family));
    let frontier_algorithms = experiment.frontiers.iter().flat_map(|frontier| frontier.algorithms);
    let of_frontiers = frontier_algorithms.map(|one| (one.label.clone(), family(&one.name)));
    let mut all = unique(labels.chain(kinds).chain(of_frontiers));
    all.sort_by_key(|(name, _)| std::cmp::Reverse(name.chars().count()));
    all.into_iter().map(|(name, family)| ColoredName { name, family }).collect()
}

/// A text in parts: each of `names` that stands there as a word of its own, and the text between them. Where several
/// names begin at one place, the first in `names` counts, which must be the longest.
fn colored_parts(text: &str, names: &[ColoredName]) -> Vec<ColoredText> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut plain = String::new();
    while let Some(first) = rest.chars().next() {
        let starts_word = !plain.chars().next_back().is_some_and(char::is_alphanumeric);
        let found = names.iter().find(|known| starts_with_word(rest, &known.name));
        match found.filter(|_| starts_word) {
            Some(ColoredName { name, family }) => {
                if !plain.is_empty() {
                    parts.push(ColoredText { text: std::mem::take(&mut plain), family: None });
                }
                parts.push(ColoredText { text: name.clone(), family: Some(*family) });
                rest = &rest[name.len()..];
            }
            None => {
                plain.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    if !plain.is_empty() {
        parts.push(ColoredText { text: plain, family: None });
    }
    parts
}

/// Whether a text begins with this word, which no letter or digit continues. No text begins with an empty word.
fn starts_with_word(text: &str, word: &str) -> bool {
    let Some(after) = text.strip_prefix(word) else { return false };
    !word.is_empty() && !after.chars().next().is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_algorithms_stand_alone() {
        let name = |name: &str, family| ColoredName { name: name.into(), family };
        let names = [name("FedAvg-RR", 1), name("FedAvg", 0)];
        let part = |text: &str, family| ColoredText { text: text.into(), family };
        assert_eq!(
            colored_parts("FedAvg-RR cuts FedAvg’s error, not FedAvgM’s", &names),
            [
                part("FedAvg-RR", Some(1)),
                part(" cuts ", None),
                part("FedAvg", Some(0)),
                part("’s error, not FedAvgM’s", None)
            ]
        );
        assert_eq!(colored_parts("", &names), []);
    }
}
