//! What is wrong with maps of the best algorithm.

use super::checker::Checker;
use crate::manifest::Manifest;
use crate::manifest::frontier::Frontier;
use crate::manifest::phase::{PhaseMap, PhaseNumber};
use crate::manifest::searched::SearchedAlgorithm;
use exactfed_core::problem::quadratic::Settings;
use exactfed_core::problem::{self, Settings as _};
use std::collections::BTreeSet;

/// The most squares of a map.
const MOST_SQUARES: u64 = 40_000;

/// The ids of the figures of all maps, one for each, with the path of the map, `phase.<number>`.
pub fn phase_figures(manifest: &Manifest) -> impl Iterator<Item = (String, String)> {
    let phases = manifest.phase.iter().enumerate();
    phases.map(|(i, phase)| (phase.id.clone(), format!("phase.{i}")))
}

/// The settings of the quadratic with two clients that all maps of a manifest are about; `None` if the problem is
/// another one.
pub fn phase_problem(problem: &problem::Spec) -> Option<&Settings> {
    match problem {
        problem::Spec::Quadratic(settings) if settings.clients == 2 => Some(settings),
        _ => None,
    }
}

impl Checker<'_> {
    /// Notes what is wrong with the maps of a manifest (`[[phase]]`): with their ids and with their contents. The
    /// problems of a map are made of numbers of its frontier, and are only looked at if `are_frontiers_sound`: what is
    /// wrong with these numbers is noted at the frontier.
    pub fn phases(&mut self, are_frontiers_sound: bool) {
        let others = super::frontier::frontier_figures(self.manifest);
        let mut ids: BTreeSet<String> = others.map(|(id, _)| id).collect();
        for (i, phase) in self.manifest.phase.iter().enumerate() {
            let message = format!("the id of a map names its file: \"{}\" cannot", phase.id);
            let is_new = ids.insert(phase.id.clone());
            self.table(&format!("phase.{i}"), |checker| {
                checker.check_id(&phase.id, message, "figures", is_new);
                checker.phase(phase, are_frontiers_sound);
            });
        }
    }

    /// Notes what is wrong with the contents of a map; with its problems only if `are_frontiers_sound`.
    fn phase(&mut self, phase: &PhaseMap, are_frontiers_sound: bool) {
        let manifest = self.manifest;
        let before = self.found.len();
        self.equal_ratios("x.values", &phase.x.values);
        self.equal_ratios("y.values", &phase.y.values);
        let message = "both axes are over the same number";
        self.require(phase.x.over != phase.y.over, "y.over", message);
        self.distinct("seeds", phase.seeds.iter());
        let squares = phase
            .x
            .values
            .points
            .saturating_mul(phase.y.values.points)
            .saturating_mul(phase.seeds.len().max(1) as u64);
        let message = format!("a map has at most {MOST_SQUARES} squares, not {squares}");
        self.require(squares <= MOST_SQUARES, "x.values", message);
        for (name, value) in &phase.at {
            let key = format!("at.{name}");
            let Some(number) = PhaseNumber::named(name) else {
                let names = PhaseNumber::ALL.map(|(_, name, _)| name);
                let message = format!("no number is called `{name}`");
                self.note(&key, message, |d| d.naming(name, &names));
                continue;
            };
            let on_axis = [phase.x.over, phase.y.over].contains(&number);
            self.require(!on_axis, &key, format!("`{name}` is on an axis"));
            let holds = value.is_finite() && *value >= 0.0;
            self.require(holds, &key, format!("`{name}` must be a finite number, 0 or more"));
        }
        for (k, boundary) in phase.boundaries.iter().enumerate() {
            let mut through = boundary.through.iter();
            let are_sound = through.all(|x| x.is_finite() && *x > 0.0);
            let holds = boundary.power.is_finite() && are_sound;
            let message = "a boundary has a finite power and goes through two numbers above 0";
            self.require(holds, &format!("boundaries.{k}"), message);
        }
        let none = "a map is about a frontier: write [[frontier]]";
        let Some(frontier) = self.frontier_of(phase.frontier.as_deref(), none) else { return };
        let message = "a map needs a frontier with an isotropic start";
        self.require(frontier.isotropic_radius().is_some(), "frontier", message);
        let Some(problem) = phase_problem(manifest.problem()) else {
            self.fault("", "a map needs a [problem.quadratic] with `clients = 2`");
            return;
        };
        self.numbers_of_clients(phase, problem, frontier);
        if are_frontiers_sound && self.found.len() == before {
            self.corners(phase, problem, frontier);
        }
    }

    /// Notes an algorithm whose rounds are known for the two clients of the problem alone, if squares have other
    /// numbers of clients. Without this their searches would fail one by one, and the squares be empty.
    fn numbers_of_clients(&mut self, phase: &PhaseMap, problem: &Settings, frontier: &Frontier) {
        let is_on_axis = [phase.x.over, phase.y.over].contains(&PhaseNumber::Clients);
        if !is_on_axis && phase.numbers(problem, frontier).clients() == problem.clients as u64 {
            return;
        }
        let treats_all_alike = SearchedAlgorithm::treats_clients_alike;
        if let Some(named) = frontier.algorithms.iter().find(|one| !treats_all_alike(one)) {
            let message = format!(
                "the rounds of `{}` are those of {} clients: a map of other numbers of clients cannot have it",
                named.name, problem.clients
            );
            self.fault("frontier", message);
        }
    }

    /// Notes the first corner of a map at which the numbers describe no problem, or a target that the start has reached
    /// already. Other squares need no check, since their numbers are between those of the corners. All other keys of
    /// the map and of its frontier must be sound.
    fn corners(&mut self, phase: &PhaseMap, problem: &Settings, frontier: &Frontier) {
        let base = phase.numbers(problem, frontier);
        let radius = frontier.isotropic_radius();
        let [xs, ys] = [phase.x, phase.y].map(|axis| [axis.values.from, axis.values.to]);
        for (x, y) in xs.into_iter().flat_map(|x| ys.map(|y| (x, y))) {
            let numbers = base.with_number(phase.x.over, x).with_number(phase.y.over, y);
            let problem = numbers.problem(problem, radius.unwrap_or(f64::NAN));
            let [of_x, of_y] = [phase.x, phase.y].map(|axis| axis.over.symbol());
            let place = format!("at {of_x} = {x} and {of_y} = {y}");
            let below = numbers.get(PhaseNumber::Target) < 1.0;
            let faults = problem.check();
            let wrong = faults
                .first()
                .map(|fault| format!("{} {}", fault.key, fault.message))
                .or((!below).then(|| "ε is not below R".to_owned()));
            if let Some(wrong) = wrong {
                return self.fault("", format!("{place} there is no problem: {wrong}"));
            }
        }
    }
}
