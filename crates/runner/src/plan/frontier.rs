//! What is wrong with frontiers, as far as it shows before the problem is built.

use super::checker::Checker;
use super::hashes::Hashes;
use super::places::{diagnostic_of, diagnostic_under};
use super::settings::short;
use crate::manifest::axis::{Choice, GridAxis};
use crate::manifest::frontier::{EqualRatios, Frontier, FrontierStart, ListOr, Powers};
use crate::manifest::searched::SearchedFault;
use crate::manifest::{Diagnostic, InstanceMode, Manifest, Node};
use exactfed_core::problem;
use std::collections::BTreeSet;

/// The most numbers of a frontier: step sizes, local steps, targets or numbers of clients.
const MOST_NUMBERS: u64 = 10_000;

/// What the figures of a frontier have in their ids after that of the frontier, in the order of pages: which
/// algorithm is best over prices and targets, the least cost, the fewest communications within a budget of
/// gradients, communications against gradients, and the best numbers of local steps and step sizes.
pub const FRONTIER_FIGURES: [&str; 6] =
    ["-map", "", "-budget", "-pareto", "-local-steps", "-step-size"];

/// The ids of the figures of all frontiers, each with the path of its frontier, `frontier.<number>`.
pub fn frontier_figures(manifest: &Manifest) -> impl Iterator<Item = (String, String)> {
    let frontiers = manifest.frontier.iter().enumerate();
    frontiers.flat_map(|(i, frontier)| {
        FRONTIER_FIGURES.map(|end| (format!("{}{end}", frontier.id), format!("frontier.{i}")))
    })
}

/// The problem that all frontiers of a manifest are about, with the hashes of its files; `None` without frontiers.
///
/// # Errors
/// Axes that the problem or the oracle has, since a frontier is of one problem, or the start, if a frontier begins
/// there. What is wrong with the problem itself is reported here only if the manifest has no algorithms, whose cells
/// would report it.
pub fn frontier_problem(
    root: &Node,
    manifest: &Manifest,
    axes: &[GridAxis],
    hashes: &mut Hashes,
) -> Result<Option<problem::Spec>, Vec<Diagnostic>> {
    if manifest.frontier.is_empty() {
        return Ok(None);
    }
    let mut spec = manifest.problem().clone();
    let mut faults = hashes.resolve(&mut spec);
    faults.extend(spec.check());
    let base = format!("problem.{}", spec.kind());
    // The cells report the faults of their problems.
    let has_cells = !manifest.algorithm.is_empty();
    let mut found: Vec<Diagnostic> = faults
        .iter()
        .filter(|_| !has_cells)
        .map(|fault| diagnostic_of(root, &base, &Choice::new(), fault))
        .collect();
    let of_start = manifest.frontier.iter().any(|f| f.start == FrontierStart::Runs);
    for axis in axes.iter().filter(|axis| {
        let top = axis.path.split('.').next().unwrap_or_default();
        axis.len > 1 && (["problem", "oracle"].contains(&top) || (of_start && top == "start"))
    }) {
        let key = short(&axis.path);
        let message = format!("a frontier is of one problem: `{key}` must have one value");
        found.push(diagnostic_under(root, &axis.path, &Choice::new(), message));
    }
    if found.is_empty() { Ok(Some(spec)) } else { Err(found) }
}

impl<'a> Checker<'a> {
    /// The frontier with this id, or the first one if `id` is `None`. Notes that there is none: of an id with the
    /// known ids, and without an id by the message `none`.
    pub fn frontier_of(&mut self, id: Option<&str>, none: &str) -> Option<&'a Frontier> {
        let all = &self.manifest.frontier;
        let found = Frontier::named(id, all);
        if found.is_none() {
            let known: Vec<&str> = all.iter().map(|f| f.id.as_str()).collect();
            let message = id
                .map(|id| format!("no frontier is called \"{id}\""))
                .unwrap_or_else(|| none.to_owned());
            self.note("frontier", message, |d| d.naming(id.unwrap_or_default(), &known));
        }
        found
    }

    /// Notes what is wrong with the frontiers of a manifest: with each one, and with the problem for all of them.
    /// Returns whether the tables of all frontiers are sound, so that maps may be made of their numbers.
    pub fn frontiers(&mut self) -> bool {
        let manifest = self.manifest;
        let before = self.found.len();
        let mut ids = BTreeSet::new();
        for (i, frontier) in manifest.frontier.iter().enumerate() {
            let message = format!("a frontier's id names its files: \"{}\" cannot", frontier.id);
            let is_new = ids.insert(&frontier.id);
            self.table(&format!("frontier.{i}"), |checker| {
                checker.check_id(&frontier.id, message, "frontiers", is_new);
                checker.frontier(frontier);
            });
        }
        let are_sound = self.found.len() == before;
        if !manifest.frontier.is_empty() {
            let kind = manifest.problem().kind();
            let message = format!(
                "a frontier needs a linear problem with independent draws, whose moments close: `{kind}` is not linear"
            );
            self.require(manifest.problem().linear(), "frontier.0", message);
            let message = "a frontier is of one instance: leave out `instances`";
            self.require(manifest.instances.is_none(), "instances", message);
            let message = "a frontier is of one instance: `instance` must be \"fixed\"";
            self.require(manifest.instance == InstanceMode::Fixed, "instance", message);
        }
        are_sound
    }

    /// Notes what is wrong with the keys of a frontier.
    fn frontier(&mut self, frontier: &Frontier) {
        let message = "`algorithms` must name at least one algorithm";
        self.require(!frontier.written.is_empty(), "algorithms", message);
        self.distinct("algorithms", frontier.written.iter().map(|written| written.name()));
        for SearchedFault { place, message, unknown } in &frontier.faults {
            self.note(
                &format!("algorithms.{place}"),
                message.clone(),
                |diagnostic| match unknown {
                    Some((name, known)) => {
                        let known: Vec<&str> = known.iter().map(String::as_str).collect();
                        diagnostic.naming(name, &known)
                    }
                    None => diagnostic,
                },
            );
        }
        self.distinct("clients", frontier.clients.iter());
        let message = "`clients` must be 1 or more, not 0";
        self.require(!frontier.clients.contains(&0), "clients", message);
        match &frontier.targets {
            ListOr::List(list) => self.positive_list("targets", list),
            ListOr::Table(range) => self.equal_ratios("targets", range),
        }
        self.equal_ratios("step-size", &frontier.step_size);
        match &frontier.local_steps {
            ListOr::List(list) => {
                let message = "`local-steps` must be numbers of 1 or more, at least one";
                let holds = !list.is_empty() && !list.contains(&0);
                self.require(holds, "local-steps", message);
                self.distinct("local-steps", list.iter());
            }
            ListOr::Table(Powers { up_to, ratio }) => {
                let message = "`up-to` of `local-steps` must be 1 or more, not 0";
                self.require(*up_to > 0, "local-steps", message);
                // Above 1.01 there are fewer than ten thousand numbers.
                let message =
                    format!("`ratio` of `local-steps` must be at least 1.01, not {ratio}");
                let holds = ratio.is_finite() && *ratio >= 1.01;
                self.require(holds, "local-steps", message);
            }
        }
        self.positive_list("price-ratios", &frontier.price_ratios);
        self.positive_list("budgets", &frontier.budgets);
        self.frontier_start(frontier);
    }

    /// Notes what is wrong with the start of a frontier, and a target that the start has reached already.
    fn frontier_start(&mut self, frontier: &Frontier) {
        let Some(radius) = frontier.isotropic_radius() else {
            let message = "`radius` is of the isotropic start, and `start` is \"runs\"";
            self.require(frontier.radius.is_none(), "radius", message);
            let message = "`start = \"runs\"` is the start of [start], which is not written";
            self.require(self.manifest.start.is_some(), "start", message);
            return;
        };
        self.above("radius", radius, 0.0);
        let largest = match &frontier.targets {
            ListOr::List(list) => list.iter().copied().fold(0.0, f64::max),
            ListOr::Table(range) => range.from.max(range.to),
        };
        let message = format!(
            "every target must be below the error of the start, whose root mean square (`radius`) is {radius}, and {largest} is not"
        );
        self.require(largest < radius, "targets", message);
    }

    /// Notes that a key is not a list of different finite numbers above 0.
    fn positive_list(&mut self, key: &str, list: &[f64]) {
        let holds = !list.is_empty() && list.iter().all(|x| x.is_finite() && *x > 0.0);
        let message = format!("`{key}` must be finite numbers above 0, at least one");
        self.require(holds, key, message);
        self.distinct(key, list.iter().map(f64::to_string));
    }

    /// Notes that the ends or the number of points of a range are not allowed.
    pub(super) fn equal_ratios(&mut self, path: &str, range: &EqualRatios) {
        let key = short(path);
        let ends = [range.from, range.to];
        let are_sound = ends.iter().all(|end| end.is_finite() && *end > 0.0);
        let message = format!("`from` and `to` of `{key}` must be two finite numbers above 0");
        let holds = are_sound && range.from != range.to;
        self.require(holds, path, message);
        let message =
            format!("`points` of `{key}` must be from 2 to {MOST_NUMBERS}, not {}", range.points);
        self.require((2..=MOST_NUMBERS).contains(&range.points), path, message);
    }
}
