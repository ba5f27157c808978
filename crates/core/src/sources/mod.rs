//! The publications that manifests and pages name by a short key, with what cites them in full, and
//! what they state, in one TOML file per source.
//!
//! *Invariant*: the entries are those of the section *Sources* in docs/GLOSSARY.md (a test of
//! `report::page::experiment` compares them).

mod statement;

use serde::{Deserialize, Serialize};
pub use statement::{Condition, StatedAlgorithm, Statement};
use std::sync::LazyLock;

/// A publication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// The short key by which manifests and pages name it, such as `RR`.
    pub key: String,
    /// Its authors.
    pub authors: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub venue: String,
    /// The year.
    pub year: u16,
    /// An address at which it can be read or is announced; empty if none is known.
    #[serde(default)]
    pub link: String,
    /// Its number on arXiv; empty if it has none.
    #[serde(default)]
    pub arxiv: String,
    /// What is known of a published version that was not read; empty if there is none.
    #[serde(default)]
    pub published: String,
    /// Whether it is a draft that is not published.
    #[serde(default)]
    draft: bool,
    /// Its BibTeX entry, which is made of the other fields when the file of the source is read.
    #[serde(skip_deserializing)]
    pub bibtex: String,
}

impl Publication {
    /// The family names of the authors and the year, as a text cites them: `Vlaski and Sayed 2023`, or
    /// `Mangold et al. 2025` if there are more than two authors. `authors` has their names between commas, and `and`
    /// before the last.
    pub fn authors_and_year(&self) -> String {
        let authors = self.authors.replace(" and ", ", ");
        let names: Vec<String> = authors.split(", ").map(family_name).collect();
        let cited = match names.as_slice() {
            [one] => one.clone(),
            [one, other] => format!("{one} and {other}"),
            all => format!("{} et al.", all[0]),
        };
        format!("{cited} {}", self.year)
    }

    /// The key of the BibTeX entry: the family name of the first author, the year and the first word of the title that
    /// has more than three letters, such as `vlaski2023federated`.
    fn citation_key(&self) -> String {
        let authors = self.authors.replace(" and ", ", ");
        let first = authors.split(',').next().unwrap_or_default();
        let name = first.split(' ').next_back().unwrap_or_default();
        let mut words = self.title.split(|c: char| !c.is_alphanumeric());
        let word = words.find(|word| word.len() > 3).unwrap_or_default();
        format!("{name}{}{word}", self.year).to_lowercase()
    }

    /// The BibTeX entry of the publication, one field a line: `@unpublished` for a draft, whose venue is then a note,
    /// and otherwise `@misc`. Fields of which nothing is known are left out.
    fn to_bibtex(&self) -> String {
        let entry = if self.draft { "unpublished" } else { "misc" };
        let venue = if self.draft { "note" } else { "howpublished" };
        let mut fields = vec![
            ("author", self.authors.replace(", ", " and ")),
            // Braces keep capitals.
            ("title", format!("{{{}}}", self.title)),
            (venue, self.venue.clone()),
            ("year", self.year.to_string()),
        ];
        let archive = if self.arxiv.is_empty() { "" } else { "arXiv" };
        for (name, value) in [
            ("url", self.link.as_str()),
            ("eprint", &self.arxiv),
            ("archiveprefix", archive),
            ("note", &self.published),
        ] {
            fields.extend((!value.is_empty()).then(|| (name, value.to_owned())));
        }
        let lines: Vec<String> =
            fields.iter().map(|(name, value)| format!("  {name} = {{{value}}}")).collect();
        format!("@{entry}{{{},\n{}\n}}", self.citation_key(), lines.join(",\n"))
    }
}

/// An author's name without initials, which end with a dot.
fn family_name(author: &str) -> String {
    let parts = author.split_whitespace().filter(|part| !part.ends_with('.'));
    parts.collect::<Vec<_>>().join(" ")
}

/// All registered publications, always in the same order.
pub fn sources() -> &'static [Publication] {
    &REGISTERED.publications
}

/// What the files of the sources hold.
struct Registered {
    publications: Vec<Publication>,
    /// The statements of all publications, source by source.
    statements: Vec<Statement>,
}

/// The files of the sources, which are read once.
static REGISTERED: LazyLock<Registered> = LazyLock::new(|| {
    let files = [
        include_str!("rr.toml"),
        include_str!("scafflsa.toml"),
        include_str!("slides.toml"),
        include_str!("book.toml"),
    ];
    let (publications, statements): (_, Vec<_>) = files.into_iter().map(statement::read).unzip();
    Registered { publications, statements: statements.concat() }
});

/// The registered publications whose keys are words of a text, each once, in the order of [`sources`]. A word is a
/// sequence of letters and digits, in capitals as the keys are.
pub fn named_in(text: &str) -> Vec<&'static Publication> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    sources().iter().filter(|source| words.contains(&source.key.as_str())).collect()
}

/// The text `source`, which names publications by their keys, for readers who do not know the keys: where a key occurs
/// for the first time, `RR` becomes `Mangold et al. 2025 (RR)`. The rest of the text stays as it is.
pub fn cited(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    let mut not_cited_yet = named_in(source);
    while !rest.is_empty() {
        let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        match not_cited_yet.iter().position(|publication| publication.key == word) {
            Some(at) => {
                let publication = not_cited_yet.remove(at);
                out.push_str(&format!("{} ({word})", publication.authors_and_year()));
            }
            None => out.push_str(word),
        }
        let between = after.find(char::is_alphanumeric).unwrap_or(after.len());
        out.push_str(&after[..between]);
        rest = &after[between..];
    }
    out
}

/// The statements of all publications, source by source, each in the order of its publication.
pub fn statements() -> &'static [Statement] {
    &REGISTERED.statements
}

/// The statement with this name, such as `RR Theorem 1`, by which claims of manifests and bounds of the theory refer to
/// it; `None` if no publication states it under this name.
pub fn statement(name: &str) -> Option<&'static Statement> {
    statements().iter().find(|statement| statement.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sources_are_found_by_their_keys() {
        let keys = |text: &str| named_in(text).iter().map(|s| s.key.as_str()).collect::<Vec<_>>();
        assert_eq!(keys("RR, Theorems 3 to 5; SLIDES"), ["RR", "SLIDES"]);
        assert_eq!(
            keys("SLIDES: linear speed-up; RR first version; RR, section 6"),
            ["RR", "SLIDES"]
        );
        assert_eq!(keys("SCAFFLSA, Corollary 5.4"), ["SCAFFLSA"]);
        assert!(keys("Our choice, for tests; ERROR, BOOKS").is_empty());
    }

    #[test]
    fn a_bibtex_entry_has_what_is_known() {
        let entry = |key: &str| &named_in(key)[0].bibtex;
        assert_eq!(
            entry("BOOK"),
            "@unpublished{vlaski2023federated,\n  author = {S. Vlaski and A. H. Sayed},\n  \
             title = {{Federated Learning}},\n  note = {Chapter 5 of a draft of a book},\n  \
             year = {2023}\n}"
        );
        let paper = entry("RR");
        assert!(paper.starts_with("@misc{mangold2025refined,\n"), "{paper}");
        assert!(paper.contains("author = {P. Mangold and A. Durmus and A. Dieuleveut and"));
        assert!(
            paper.contains(
                "eprint = {2412.01389},\n  archiveprefix = {arXiv},\n  note = {The paper in"
            ),
            "{paper}"
        );
        let mut keys: Vec<String> = sources().iter().map(Publication::citation_key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), sources().len());
    }

    #[test]
    fn sources_have_authors_and_year_once() {
        assert_eq!(
            cited("SLIDES: linear speed-up; RR first version; RR, section 6"),
            "Mangold 2025 (SLIDES): linear speed-up; Mangold et al. 2025 (RR) first version; RR, section 6"
        );
        assert_eq!(cited("BOOK, (5.26)"), "Vlaski and Sayed 2023 (BOOK), (5.26)");
        assert_eq!(cited("(Our choice, for tests)"), "(Our choice, for tests)");
        assert_eq!(cited(""), "");
    }

    #[test]
    fn names_begin_with_a_publication_and_occur_once() {
        let mut names = HashSet::new();
        for statement in statements() {
            let known = sources().iter().any(|source| source.key == statement.source());
            assert!(known && !statement.place().is_empty(), "{}", statement.name);
            assert!(names.insert(&statement.name), "{} twice", statement.name);
            assert!(
                statement.says.ends_with('.') || statement.says.ends_with(')'),
                "{statement:?}"
            );
        }
    }
}
