//! What is kept of each experiment for the pages about all experiments.

use super::claims::{self, ClaimText};
use super::colored_text::ColoredText;
use super::guide::{self, GuideProblem};
use super::page::{Page, planned_cells};
use super::topics::topics;
use crate::chart::thumbnail::{Thumbnail, thumbnail};
use crate::evidence::claims::JudgedClaim;
use crate::evidence::{Experiment, Figure};
use crate::stats::verdict::Verdict;
use exactfed_core::sources;
use exactfed_runner::manifest::Published;
use exactfed_runner::plan::Plan;
use serde::Serialize;
use std::collections::BTreeSet;

/// What the pages about all experiments need of one, once its own page was written: all else is dropped, so that only a
/// few experiments are in memory at the same time.
#[derive(Clone, Default)]
pub struct IndexEntry {
    pub(super) card: Card,
    pub(super) claims: Vec<ClaimText>,
    /// The p-values of its claims, adjusted for the claims of its page; claims on exact numbers have none.
    pub(super) p: Vec<f64>,
    /// The problems of those of its frontiers that the page *Which algorithm, when?* shows (key `guide`); empty if it
    /// shows none.
    pub(super) guide: Vec<GuideProblem>,
    /// Its first map of the best algorithm (`[[phase]]`), as SVG; `None` if the manifest has none.
    pub(super) map: Option<String>,
    /// The published experiment of another group that it runs again; `None` if its manifest names none.
    pub(super) published: Option<Published>,
}

/// An experiment on a card.
#[derive(Clone, Default, Serialize)]
pub struct Card {
    pub name: String,
    pub title: String,
    /// What the experiment asks, by which cards are grouped.
    pub question: Option<String>,
    pub headline: Vec<ColoredText>,
    /// The source that the manifest names, with authors and year.
    pub source: String,
    /// The keys of the publications that the source names.
    pub keys: Vec<&'static str>,
    /// A small drawing of the first figure that is not empty.
    pub thumbnail: Option<Thumbnail>,
    /// How many of its claims have each verdict.
    pub counts: Vec<(Verdict, usize)>,
    /// The kinds of its problems, as manifests name them.
    pub problems: BTreeSet<String>,
    /// The kinds of its algorithms, as manifests name them.
    pub algorithms: BTreeSet<String>,
    /// The topics by which the index can be filtered.
    pub topics: Vec<&'static str>,
    /// Synonyms of the topics, which the search of the index knows and the card does not show.
    pub words: String,
    /// The number of cells, and how many of them have no results.
    pub cells: (usize, usize),
}

impl IndexEntry {
    /// The entry of an experiment, whose texts and drawings are taken from its page, but for the thumbnail, which is
    /// drawn here.
    pub fn new(experiment: &Experiment<'_>, page: Page) -> Self {
        let plan = experiment.plan;
        let manifest = &plan.manifest;
        let source = manifest.source.as_deref().unwrap_or_default();
        let topics = topics(plan);
        let drawn = experiment.figures.iter().find(|figure: &&Figure| figure.has_content());
        let question = manifest.question.as_deref().unwrap_or_default().trim();
        let card = Card {
            name: plan.experiment.clone(),
            title: manifest.title.clone(),
            question: (!question.is_empty()).then(|| question.to_owned()),
            headline: page.finding.headline,
            source: sources::cited(source),
            keys: claims::keys(source),
            thumbnail: drawn.and_then(thumbnail),
            counts: page.claims.counts,
            problems: problem_kinds(plan),
            algorithms: algorithm_kinds(plan),
            topics: topics.names,
            words: topics.words,
            cells: (planned_cells(plan), experiment.missing.len()),
        };
        let p = experiment.claims.iter().filter_map(JudgedClaim::p).collect();
        let phase = manifest.phase.first().map(|phase| phase.id.as_str());
        let drawn_map = page.figures.iter().find(|figure| Some(&*figure.id) == phase);
        let map = drawn_map.map(|figure| figure.svg.clone());
        Self {
            card,
            claims: page.claims.list,
            p,
            guide: guide::problems(experiment),
            map,
            published: manifest.published.clone(),
        }
    }

    /// The name of the experiment.
    pub fn name(&self) -> &str {
        &self.card.name
    }

    /// Whether every cell has results.
    pub fn is_complete(&self) -> bool {
        self.card.cells.1 == 0
    }

    /// Whether the experiment tests the program: it is in a folder `smoke`.
    pub(super) fn is_smoke(&self) -> bool {
        self.card.name.split('/').rev().skip(1).any(|folder| folder == "smoke")
    }
}

/// The kinds of the problems of an experiment's cells, candidates of tuning among them, and of its frontiers. The
/// search of the index finds the experiment by them.
fn problem_kinds(plan: &Plan) -> BTreeSet<String> {
    let of_cells = plan.all_cells().map(|cell| cell.identity.problem.kind());
    let of_frontiers = plan.frontier_problem.iter().map(|problem| problem.kind());
    of_cells.chain(of_frontiers).map(str::to_owned).collect()
}

/// The kinds of the algorithms of an experiment's cells, candidates of tuning among them, and of its frontiers. A
/// reader of the index chooses experiments by them.
fn algorithm_kinds(plan: &Plan) -> BTreeSet<String> {
    let of_cells = plan.all_cells().map(|cell| cell.identity.algorithm.kind());
    let frontiers = plan.manifest.frontier.iter().flat_map(|frontier| &frontier.algorithms);
    let of_frontiers = frontiers.map(|algorithm| algorithm.name.as_str());
    of_cells.chain(of_frontiers).map(str::to_owned).collect()
}
