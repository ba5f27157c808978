//! The page *Which algorithm, when?*: for a problem, N and ε the algorithm, the step size and the
//! number of local steps that cost least. The page holds every number of local steps that may be
//! best at some price or cap, so that its script looks up other prices and caps; without the
//! script it shows the maps of the manifests' own.

use super::number_text::short;
use crate::evidence::Experiment;
use crate::evidence::family::family;
use crate::evidence::frontier::{ComputedFrontier, FrontierCost, FrontierPoint, steps_prefix};
use exactfed_core::words::{number, readable, thousands};
use exactfed_runner::manifest::frontier::{FrontierAlgorithm, FrontierQuantity};
use serde::Serialize;
use serde_json::{Value, json};

/// A problem with a frontier.
#[derive(Clone, Serialize)]
pub struct GuideProblem {
    /// The name of the experiment.
    experiment: String,
    title: String,
    /// d, the start and the heterogeneity, in a sentence.
    facts: String,
    /// What is least in the map, in words.
    least: String,
    /// The numbers of clients.
    clients: Vec<String>,
    /// The map: for each target a square for each number of clients.
    rows: Vec<GuideRow>,
    /// What the script looks up.
    data: Value,
}

/// The squares of a target.
#[derive(Clone, Serialize)]
struct GuideRow {
    target: String,
    squares: Vec<GuideSquare>,
}

/// What is best at N and ε.
#[derive(Clone, Serialize)]
struct GuideSquare {
    /// The algorithm; several are equally good.
    label: String,
    /// Its family, if it is one.
    family: Option<usize>,
    /// What it costs.
    value: String,
    /// Its settings.
    settings: String,
}

/// The problems of an experiment that the page shows.
pub fn problems(experiment: &Experiment<'_>) -> Vec<GuideProblem> {
    experiment.frontiers.iter().map(|frontier| problem(experiment, frontier)).collect()
}

fn problem(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> GuideProblem {
    let of = &frontier.problem;
    let heterogeneity = of.heterogeneity.map_or_else(String::new, |(zeta1, zeta2)| {
        format!(", heterogeneity ζ₁ = {} and ζ₂ = {}", short(zeta1), short(zeta2))
    });
    let least = match (frontier.objectives()[0], frontier.cap) {
        (FrontierQuantity::Communications, Some(cap)) => {
            format!("communications, with at most {} times the oracle calls of SGD", cap)
        }
        (objective, _) => objective.name().to_owned(),
    };
    let row = |target: &f64| GuideRow {
        target: readable(*target, 2),
        squares: frontier.clients.iter().map(|n| square(frontier, *n, *target)).collect(),
    };
    GuideProblem {
        experiment: experiment.plan.experiment.clone(),
        title: experiment.plan.manifest.title.clone(),
        facts: format!(
            "d = {}, the start at a root mean square distance of {} from θ*{heterogeneity}",
            of.dimension,
            short(of.radius)
        ),
        least,
        clients: frontier.clients.iter().map(|n| thousands(*n as usize)).collect(),
        rows: frontier.targets.iter().rev().map(row).collect(),
        data: data(experiment, frontier),
    }
}

/// The best at N and ε, by the first objective of the frontier.
fn square(frontier: &ComputedFrontier<'_>, clients: u64, target: f64) -> GuideSquare {
    let value = |cost: &FrontierCost| frontier.value(cost);
    let point = |algorithm| {
        let is_here = |b: &&FrontierPoint| b.clients == clients && b.target == target;
        let best = frontier.points(algorithm).find(is_here)?;
        Some((algorithm, best.cost?))
    };
    let mut all: Vec<_> = frontier.algorithms.iter().filter_map(|a| point(*a)).collect();
    // As the page's script orders them: of equals that with the fewest oracle calls first.
    let order = |a: &FrontierCost, b: &FrontierCost| {
        value(a).total_cmp(&value(b)).then(a.gradients.total_cmp(&b.gradients))
    };
    all.sort_by(|a, b| order(&a.1, &b.1));
    let Some((first, least)) = all.first().copied() else {
        let (label, value) = ("none".to_owned(), "not reached".to_owned());
        return GuideSquare { label, family: None, value, settings: String::new() };
    };
    all.retain(|(_, cost)| value(cost) == value(&least));
    let names: Vec<&str> = all.iter().map(|(algorithm, _)| algorithm.label()).collect();
    let family = match all.as_slice() {
        [(one, _)] => Some(family(one.name())),
        _ => None,
    };
    let of = if all.len() > 1 { format!("{}: ", first.label()) } else { String::new() };
    let settings = format!(
        "{of}{}{}, γ = {}",
        steps_prefix(first),
        thousands(least.local_steps as usize),
        short(least.step_size)
    );
    let value = number(value(&least), 3);
    GuideSquare { label: names.join(" or "), family, value, settings }
}

/// What the script of the page looks up.
fn data(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> Value {
    let targets: Vec<f64> = frontier.targets.iter().rev().copied().collect();
    let algorithm = |algorithm: &FrontierAlgorithm| {
        let method = *algorithm;
        let price = method.round_price(1);
        let costs = frontier.clients.iter().map(|n| {
            let at = |target: &f64| useful(frontier.costs(*algorithm, *n, *target));
            targets.iter().map(at).collect::<Vec<_>>()
        });
        json!({
            "label": algorithm.label(),
            "family": family(method.name()),
            // What stands before a number of local steps or a batch.
            "steps": steps_prefix(*algorithm),
            // Of a round: communications, oracle calls of a client for each local step, and
            // vectors of a client.
            "round": [price.communications, price.gradients, price.vectors],
            "costs": costs.collect::<Vec<_>>(),
        })
    };
    let sgd = |n: &u64| {
        let at = |target: &f64| frontier.sgd.get(&(*n, target.to_bits())).copied();
        targets.iter().map(at).collect::<Vec<_>>()
    };
    json!({
        "title": experiment.plan.manifest.title,
        "dimension": frontier.problem.dimension,
        "cap": frontier.cap,
        "prices": frontier.prices.map(|p| (p.latency, p.bandwidth, p.call)),
        "clients": frontier.clients,
        "targets": targets,
        "algorithms": frontier.algorithms.iter().map(algorithm).collect::<Vec<_>>(),
        "sgd": frontier.clients.iter().map(sgd).collect::<Vec<_>>(),
    })
}

/// H, γ and T of the costs that may be least at some price or under some cap: more local steps are
/// of use only if they save rounds.
fn useful(costs: &[FrontierCost]) -> Vec<(u64, f64, u64)> {
    let mut useful: Vec<(u64, f64, u64)> = Vec::new();
    let mut by_gradients: Vec<&FrontierCost> = costs.iter().collect();
    by_gradients.sort_by(|a, b| a.gradients.total_cmp(&b.gradients).then(a.rounds.cmp(&b.rounds)));
    for cost in by_gradients {
        if useful.last().is_none_or(|(_, _, rounds)| cost.rounds < *rounds) {
            useful.push((cost.local_steps, three_digits(cost.step_size), cost.rounds));
        }
    }
    useful
}

fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}
