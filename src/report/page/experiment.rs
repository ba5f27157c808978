//! What a page says of its experiment as a whole.

use crate::evidence::Experiment;
use exactfed_core::sources::{self, Publication};
use exactfed_runner::manifest::{Opening, Published};
use exactfed_runner::plan::Plan;
use serde::Serialize;
use std::collections::BTreeSet;

/// The name, the title and the sources of an experiment, and how many cells it has.
#[derive(Serialize)]
pub struct ExperimentSection {
    pub name: String,
    pub title: String,
    pub question: Option<String>,
    /// What the page shows below its headline.
    pub opens_with: Opening,
    /// Its source, with the authors and the year of publications.
    pub source: String,
    /// The published experiment of another group that it runs again.
    pub published: Option<Published>,
    /// The publications that its source names.
    pub cited: Vec<&'static Publication>,
    pub seed: u64,
    pub noise_seed: Option<u64>,
    /// Runs of a cell on all instances together.
    pub replicates: u64,
    /// What the numbers of a sample belong to: runs, or instances.
    pub sample: &'static str,
    /// The number of cells.
    pub cells: usize,
    /// How many of the cells have no results.
    pub missing: usize,
}

impl ExperimentSection {
    /// The section on an experiment. All cells have the same number of replicates, which the first one states.
    pub fn new(experiment: &Experiment<'_>) -> Self {
        let plan = experiment.plan;
        let manifest = &plan.manifest;
        let source = manifest.source.as_deref().unwrap_or_default();
        let has_instances = manifest.instances.is_some_and(|instances| instances > 1);
        Self {
            name: plan.experiment.clone(),
            title: manifest.title.clone(),
            question: manifest.question.clone(),
            opens_with: manifest.opens_with,
            source: sources::cited(source),
            published: manifest.published.clone(),
            cited: sources::named_in(source),
            seed: manifest.seed,
            noise_seed: manifest.noise_seed,
            replicates: plan.cells.first().map_or(manifest.replicates, |c| c.identity.runs()),
            sample: if has_instances {
                "instances, each with the mean of its runs"
            } else {
                "runs"
            },
            cells: planned_cells(plan),
            missing: experiment.missing.len(),
        }
    }
}

/// The number of different cells of an experiment, with and without results. For a tuned experiment its candidates
/// count too, and the fresh runs with the settings that are selected, and that are best for all algorithms, as far as
/// results decide them.
pub fn planned_cells(plan: &Plan) -> usize {
    if plan.tuning.is_none() {
        return plan.cells.len();
    }
    plan.all_cells().map(|cell| &cell.id).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use exactfed_core::sources::{Publication, sources};

    #[test]
    fn the_glossary_has_the_same_sources() {
        let text = include_str!("../../../docs/GLOSSARY.md");
        let section = text.split_once("## Sources").unwrap().1;
        let text = section.split_whitespace().collect::<Vec<_>>().join(" ");
        let entries: Vec<&str> = text.split("- **").skip(1).collect();
        assert_eq!(entries.len(), sources().len());
        for (entry, source) in entries.iter().zip(sources()) {
            let Publication { key, authors, title, year, link, .. } = source;
            assert!(entry.starts_with(&format!("{key}**: {authors}, ")), "{entry}");
            assert!(entry.contains(&format!("\"{title}")), "{key}: {title}");
            assert!(entry.contains(&year.to_string()), "{key}: {year}");
            let links = entry.matches("](http").count();
            assert_eq!(link.is_empty(), links == 0, "{key}");
            assert!(entry.contains(&format!("({link})")) || link.is_empty(), "{key}: {link}");
        }
    }
}
