//! The page *Published experiments of other groups, run again*, from the manifests that name such an experiment.

use super::claims::ClaimText;
use super::colored_text::ColoredText;
use super::index_entry::IndexEntry;
use exactfed_runner::manifest::Published;
use serde::Serialize;
use std::collections::BTreeSet;

/// The published experiments of other groups.
#[derive(Serialize)]
pub struct PublishedExperiments {
    experiments: Vec<PublishedExperiment>,
    /// The number of publications.
    publications: usize,
    /// The authors of the publications in short, each once, in the order of their first experiments.
    authors: Vec<String>,
    elsewhere: Option<PublishedElsewhere>,
}

/// Published experiments that have their pages in another folder, since they need a data set or Python.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedElsewhere {
    /// The folder of their manifests, from the folder in which the folder of the pages is; their pages are in
    /// `reports` there.
    pub folder: String,
    /// The authors of the publications, each once, in the order of the manifests.
    pub authors: Vec<String>,
}

/// A published experiment with what its runs find.
#[derive(Serialize)]
struct PublishedExperiment {
    /// The name of the experiment, by which its page is found.
    name: String,
    /// What was published, as the manifest says it.
    published: Published,
    /// The headline of its page.
    headline: Vec<ColoredText>,
    claims: Vec<ClaimText>,
}

impl PublishedExperiments {
    /// The published experiments among all experiments of the index, in the order of the index; `None` if there are
    /// none. Authors who are named here are not named again among those of the experiments `elsewhere`.
    pub fn new(entries: &[IndexEntry], elsewhere: Option<&PublishedElsewhere>) -> Option<Self> {
        let mut experiments = Vec::new();
        let mut authors: Vec<String> = Vec::new();
        let mut publications = BTreeSet::new();
        for entry in entries {
            let Some(published) = &entry.published else { continue };
            publications.insert((&published.authors, &published.paper));
            let short = short_citation(&published.authors);
            if !authors.contains(&short) {
                authors.push(short);
            }
            experiments.push(PublishedExperiment {
                name: entry.card.name.clone(),
                published: published.clone(),
                headline: entry.card.headline.clone(),
                claims: entry.claims.clone(),
            });
        }
        let mut elsewhere = elsewhere.cloned();
        if let Some(all) = &mut elsewhere {
            all.authors = all.authors.iter().map(|author| short_citation(author)).collect();
            all.authors.dedup();
            all.authors.retain(|author| !authors.contains(author));
        }
        let publications = publications.len();
        (!experiments.is_empty()).then_some(Self { experiments, publications, authors, elsewhere })
    }
}

/// "First et al. 2020" of "First, Second and Third 2020": how a list of publications names one by three authors or more.
/// Other citations stay as they are.
fn short_citation(authors: &str) -> String {
    let short = authors.split_once(", ").zip(authors.rsplit_once(' '));
    short.map_or_else(
        || authors.to_owned(),
        |((first, _), (_, year))| format!("{first} et al. {year}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_of_many_authors_are_short() {
        for (authors, short) in [
            ("Li, Huang, Yang, Wang and Zhang 2020", "Li et al. 2020"),
            ("T. Li, Sahu and Smith 2020", "T. Li et al. 2020"),
            ("Crawshaw and Liu 2024", "Crawshaw and Liu 2024"),
            ("Doe 1999", "Doe 1999"),
        ] {
            assert_eq!(short_citation(authors), short);
        }
    }
}
