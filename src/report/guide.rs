//! The page *Which algorithm, when?*: the claims that answer it, and for a problem, N and ε the algorithm, the
//! step size and the number of local steps that cost least. The page holds every number of local
//! steps that may be best at some price or within some budget, so that its script looks up others;
//! without the script it shows the maps at the manifests' middle prices.

use super::number_text::short;
use crate::evidence::Experiment;
use crate::evidence::family::family;
use crate::evidence::frontier::{ComputedFrontier, FrontierCost, steps_prefix};
use exactfed_core::words::{number, readable, thousands};
use exactfed_runner::manifest::frontier::FrontierObjective;
use exactfed_runner::manifest::searched::SearchedAlgorithm;
use serde_json::{Value, json};

/// The problems of an experiment that the page shows.
pub fn problems(experiment: &Experiment<'_>) -> Vec<Value> {
    let shown = experiment.frontiers.iter().filter(|frontier| frontier.frontier.guide);
    shown.map(|frontier| problem(experiment, frontier)).collect()
}

/// A problem with a frontier.
fn problem(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> Value {
    let row = |target: &f64| {
        let squares = frontier.clients.iter().map(|n| square(frontier, *n, *target));
        json!({ "target": readable(*target, 2), "squares": squares.collect::<Vec<_>>() })
    };
    let clients = frontier.clients.iter().map(|n| thousands(*n as usize));
    json!({
        "experiment": experiment.plan.experiment,
        "title": experiment.plan.manifest.title,
        // d, the start and the heterogeneity, in a sentence.
        "facts": frontier.facts(),
        // What is least in the map, in words.
        "least": frontier.lead.words(),
        "clients": clients.collect::<Vec<_>>(),
        // The map: for each target a square for each number of clients.
        "rows": frontier.targets.iter().rev().map(row).collect::<Vec<_>>(),
        "data": data(experiment, frontier),
    })
}

/// The best at N and ε, by the lead objective of the frontier.
fn square(frontier: &ComputedFrontier<'_>, clients: u64, target: f64) -> Value {
    let ranked = frontier.ranked(frontier.lead, clients, target);
    let Some((first, least, value)) = ranked.all.first().copied() else {
        return json!({
            "label": "none",
            "family": null,
            "value": "not reached",
            "settings": "",
            "ahead": false,
        });
    };
    let ahead = ranked.is_ahead();
    let names: Vec<&str> =
        ranked.all[..ranked.tied].iter().map(|(a, ..)| a.label.as_str()).collect();
    let of = if names.len() > 1 { format!("{}: ", first.label) } else { String::new() };
    let step = match least.server_step() {
        1.0 => String::new(),
        step => format!(", server step {}", short(step)),
    };
    json!({
        // The algorithm; several are equally good.
        "label": names.join(" or "),
        // Its family, if it is one.
        "family": ahead.then(|| family(&first.name)),
        "value": number(value, 3),
        "settings": format!(
            "{of}{}{}, γ = {}{step}",
            steps_prefix(first),
            thousands(least.run.local_steps as usize),
            short(least.run.step_size)
        ),
        // Whether the first is ahead by more than a round.
        "ahead": ahead,
    })
}

/// What the script of the page looks up.
fn data(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> Value {
    let targets: Vec<f64> = frontier.targets.iter().rev().copied().collect();
    let algorithm = |algorithm: &SearchedAlgorithm| {
        let one_step = algorithm.choices[0].with_scale(1.0, 1);
        let price = one_step.round_price(frontier.clients[0]);
        let costs = frontier.clients.iter().map(|n| {
            let at = |target: &f64| useful(frontier.costs(algorithm, *n, *target));
            targets.iter().map(at).collect::<Vec<_>>()
        });
        json!({
            "label": algorithm.label,
            "family": family(&algorithm.name),
            // What stands before a number of local steps or a batch.
            "steps": steps_prefix(algorithm),
            // Of a round: communications, oracle calls of a client for each local step, and vectors of a client.
            "round": [price.communications, price.gradients, price.vectors],
            "costs": costs.collect::<Vec<_>>(),
        })
    };
    json!({
        "name": format!("{}#{}", experiment.plan.experiment, frontier.frontier.id),
        "dimension": frontier.dimension,
        "price": frontier.lead.price(),
        "budget": frontier.frontier.middle_budget().budget(),
        "prices": frontier.prices.map(|p| (p.latency, p.bandwidth, p.call)),
        "clients": frontier.clients,
        "targets": targets,
        "algorithms": frontier.algorithms.iter().map(algorithm).collect::<Vec<_>>(),
        // The oracle calls with which SGD reaches the smallest target.
        "sgd": frontier.clients.iter().map(|n| frontier.allowed(FrontierObjective::Budget(1.0), *n)).collect::<Vec<_>>(),
    })
}

/// H, γ, T and the server step of the costs that may be least at some price or within some budget: more local steps are
/// of use only if they save rounds.
fn useful(costs: &[FrontierCost<'_>]) -> Vec<(u64, f64, u64, f64)> {
    let mut useful: Vec<(u64, f64, u64, f64)> = Vec::new();
    let mut by_gradients: Vec<&FrontierCost<'_>> = costs.iter().collect();
    by_gradients.sort_by(|a, b| a.gradients.total_cmp(&b.gradients).then(a.rounds.cmp(&b.rounds)));
    for cost in by_gradients {
        if useful.last().is_none_or(|(_, _, rounds, _)| cost.rounds < *rounds) {
            let run = &cost.run;
            let three_digits = format!("{:.2e}", run.step_size).parse().unwrap_or(run.step_size);
            useful.push((run.local_steps, three_digits, cost.rounds, cost.server_step()));
        }
    }
    useful
}
