//! The publications that manifests and pages name by a short key, with what cites them in full, and
//! what they state, in one TOML file per source.
//!
//! *Invariant*: the entries are those of the section *Sources* in docs/GLOSSARY.md (a test of
//! `report::view` compares them).

mod statement;

use serde::Serialize;
pub use statement::{Condition, StatedAlgorithm, Statement};
use std::sync::LazyLock;

/// A publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Publication {
    /// The key by which texts name it.
    pub key: &'static str,
    /// Its authors.
    pub authors: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where it was published.
    pub venue: &'static str,
    /// The year.
    pub year: u16,
    /// An address at which it can be read or is announced; empty if none is known.
    pub link: &'static str,
    /// Its number on arXiv; empty if it has none.
    pub arxiv: &'static str,
    /// What is known of a published version that was not read; empty if there is none.
    pub published: &'static str,
    /// How BibTeX has to treat it.
    pub kind: Kind,
}

/// The kind of a publication, which decides the type of its BibTeX entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A preprint, slides, a note or another text on its own.
    Other,
    /// A draft that is not published.
    Draft,
}

/// A publication with its BibTeX entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// The publication.
    #[serde(flatten)]
    pub publication: Publication,
    /// Its BibTeX entry.
    pub bibtex: String,
}

impl From<Publication> for Citation {
    fn from(publication: Publication) -> Self {
        Self { bibtex: publication.bibtex(), publication }
    }
}

impl Publication {
    /// Authors and year: `Mangold et al. 2025`.
    pub fn authors_and_year(&self) -> String {
        let authors = self.authors.replace(" and ", ", ");
        let family_name = |author: &str| {
            let parts = author.split_whitespace().filter(|part| !part.ends_with('.'));
            parts.collect::<Vec<_>>().join(" ")
        };
        let names: Vec<String> = authors.split(", ").map(family_name).collect();
        let authors = match names.as_slice() {
            [one] => one.clone(),
            [one, other] => format!("{one} and {other}"),
            all => format!("{} et al.", all[0]),
        };
        format!("{authors} {}", self.year)
    }

    /// The family name of the first author, the year and the first long word of the title.
    fn citation_key(&self) -> String {
        let first = self.authors.split([',']).next().unwrap_or_default();
        let first = first.split(" and ").next().unwrap_or_default();
        let name = first.split(' ').next_back().unwrap_or_default();
        let mut words = self.title.split(|c: char| !c.is_alphanumeric());
        let word = words.find(|word| word.len() > 3).unwrap_or_default();
        format!("{name}{}{word}", self.year).to_lowercase()
    }

    /// The BibTeX entry.
    pub fn bibtex(&self) -> String {
        let (entry, place) = match self.kind {
            Kind::Other => ("misc", "howpublished"),
            Kind::Draft => ("unpublished", "note"),
        };
        let year = self.year.to_string();
        let mut fields = vec![
            ("author", self.authors.replace(", ", " and ")),
            // Braces keep capitals.
            ("title", format!("{{{}}}", self.title)),
            (place, self.venue.to_owned()),
            ("year", year),
        ];
        let archive = if self.arxiv.is_empty() { "" } else { "arXiv" };
        for (name, value) in [
            ("url", self.link),
            ("eprint", self.arxiv),
            ("archiveprefix", archive),
            ("note", self.published),
        ] {
            fields.extend((!value.is_empty()).then(|| (name, value.to_owned())));
        }
        let lines: Vec<String> =
            fields.iter().map(|(name, value)| format!("  {name} = {{{value}}}")).collect();
        format!("@{entry}{{{},\n{}\n}}", self.citation_key(), lines.join(",\n"))
    }
}

/// All registered sources.
pub const SOURCES: [Publication; 4] = [
    Publication {
        key: "RR",
        authors: "P. Mangold, A. Durmus, A. Dieuleveut, S. Samsonov and E. Moulines",
        title: "Refined Analysis of Constant Step Size Federated Averaging and Federated Richardson-Romberg Extrapolation",
        venue: "Preprint; its first version is hal-04878343v1 of 10 January 2025, “Refined Analysis of Federated Averaging's Bias and Federated Richardson-Romberg Extrapolation”",
        year: 2025,
        link: "https://arxiv.org/abs/2412.01389",
        arxiv: "2412.01389",
        published: "The paper in the proceedings of AISTATS 2025 was not read and may differ; which version of the preprint was read is not known.",
        kind: Kind::Other,
    },
    Publication {
        key: "SCAFFLSA",
        authors: "P. Mangold, S. Samsonov, S. Labbi, I. Levin, R. Alami, A. Naumov and E. Moulines",
        title: "SCAFFLSA: Quantifying and Eliminating Heterogeneity Bias in Federated Linear Stochastic Approximation and Temporal Difference Learning",
        venue: "Preprint, first version, February 2024",
        year: 2024,
        link: "https://arxiv.org/abs/2402.04114v1",
        arxiv: "2402.04114v1",
        published: "The paper in the proceedings of NeurIPS 2024 was not read; its title, numbering and results differ.",
        kind: Kind::Other,
    },
    Publication {
        key: "SLIDES",
        authors: "P. Mangold",
        title: "Convergence and Linear Speed-Up in Stochastic Federated Learning",
        venue: "Slides of a talk at ICCOPT",
        year: 2025,
        link: "https://iccopt2025usc.sched.com/event/1dqsT/parallel-sessions-8h-federated-optimization-and-learning-algorithms",
        arxiv: "",
        published: "",
        kind: Kind::Other,
    },
    Publication {
        key: "BOOK",
        authors: "S. Vlaski and A. H. Sayed",
        title: "Federated Learning",
        venue: "Chapter 5 of a draft of a book",
        year: 2023,
        link: "",
        arxiv: "",
        published: "",
        kind: Kind::Draft,
    },
];

/// The registered sources whose keys are words of a text, in the order of the registry.
pub fn named_in(text: &str) -> Vec<Publication> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    SOURCES.into_iter().filter(|source| words.contains(&source.key)).collect()
}

/// A source in which each key of a publication has authors and year before it where it stands
/// first.
pub fn cited(source: &str) -> String {
    let (mut out, mut rest, mut open) = (String::new(), source, named_in(source));
    while !rest.is_empty() {
        let long = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(long);
        match open.iter().position(|publication| publication.key == word) {
            Some(at) => out.push_str(&format!("{} ({word})", open.remove(at).authors_and_year())),
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
    static STATEMENTS: LazyLock<Vec<Statement>> = LazyLock::new(|| {
        let files = [
            include_str!("rr.toml"),
            include_str!("scafflsa.toml"),
            include_str!("slides.toml"),
            include_str!("book.toml"),
        ];
        files.into_iter().flat_map(statement::read).collect()
    });
    &STATEMENTS
}

/// The statement with this name.
pub fn statement(name: &str) -> Option<&'static Statement> {
    statements().iter().find(|statement| statement.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sources_are_found_by_their_keys() {
        let keys = |text: &str| named_in(text).iter().map(|s| s.key).collect::<Vec<_>>();
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
        let entry = |key: &str| named_in(key)[0].bibtex();
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
        let mut keys: Vec<String> = SOURCES.iter().map(Publication::citation_key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), SOURCES.len());
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
            let known = SOURCES.iter().any(|source| source.key == statement.source());
            assert!(known && !statement.place().is_empty(), "{}", statement.name);
            assert!(names.insert(&statement.name), "{} twice", statement.name);
            assert!(
                statement.says.ends_with('.') || statement.says.ends_with(')'),
                "{statement:?}"
            );
        }
    }
}
