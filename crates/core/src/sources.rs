//! The publications that manifests and pages name by a short key, with what cites them in full.
//!
//! *Invariant*: the entries are those of the section *Sources* in docs/GLOSSARY.md (a test of
//! `report::view` compares them).

use serde::Serialize;

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
}

/// All registered sources.
pub const SOURCES: [Publication; 4] = [
    Publication {
        key: "RR",
        authors: "P. Mangold, A. Durmus, A. Dieuleveut, S. Samsonov and E. Moulines",
        title: "Refined Analysis of Constant Step Size Federated Averaging and Federated Richardson-Romberg Extrapolation",
        venue: "AISTATS",
        year: 2025,
        link: "https://openreview.net/forum?id=YxgThbmXgN",
    },
    Publication {
        key: "SCAFFLSA",
        authors: "P. Mangold, S. Samsonov, S. Labbi, I. Levin, R. Alami, A. Naumov and E. Moulines",
        title: "SCAFFLSA: Taming Heterogeneity in Federated Linear Stochastic Approximation and TD Learning",
        venue: "NeurIPS",
        year: 2024,
        link: "https://openreview.net/forum?id=HeJ1cBAgiV",
    },
    Publication {
        key: "SLIDES",
        authors: "P. Mangold",
        title: "Convergence and Linear Speed-Up in Stochastic Federated Learning",
        venue: "Slides of a talk at ICCOPT",
        year: 2025,
        link: "https://iccopt2025usc.sched.com/event/1dqsT/parallel-sessions-8h-federated-optimization-and-learning-algorithms",
    },
    Publication {
        key: "BOOK",
        authors: "S. Vlaski and A. H. Sayed",
        title: "Federated Learning",
        venue: "Chapter 5 of a draft of a book",
        year: 2023,
        link: "",
    },
];

/// The registered sources whose keys are words of a text, in the order of the registry.
pub fn named_in(text: &str) -> Vec<Publication> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    SOURCES.into_iter().filter(|source| words.contains(&source.key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
