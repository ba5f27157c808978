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
use serde::Serialize;

/// A problem with a frontier.
#[derive(Clone, Serialize)]
pub struct GuideProblem {
    experiment: String,
    title: String,
    /// d, the start and the heterogeneity, in a sentence.
    facts: String,
    /// What is least in the map, in words.
    least: String,
    clients: Vec<String>,
    /// The map: for each target a square for each number of clients.
    rows: Vec<GuideRow>,
    data: GuideData,
}

/// A row of the map.
#[derive(Clone, Serialize)]
struct GuideRow {
    target: String,
    squares: Vec<GuideSquare>,
}

/// The best at N and ε.
#[derive(Clone, Serialize)]
struct GuideSquare {
    /// The algorithm; several are equally good.
    label: String,
    /// Its family, if it is one.
    family: Option<usize>,
    value: String,
    settings: String,
    /// Whether the first is ahead by more than a round.
    ahead: bool,
}

/// What the script of the page looks up.
#[derive(Clone, Serialize)]
struct GuideData {
    name: String,
    dimension: usize,
    price: Option<f64>,
    budget: Option<f64>,
    /// Latency, bandwidth and the time of an oracle call.
    prices: Option<(f64, Option<f64>, f64)>,
    clients: Vec<u64>,
    targets: Vec<f64>,
    algorithms: Vec<GuideAlgorithm>,
    /// The oracle calls with which SGD reaches the smallest target.
    sgd: Vec<f64>,
}

/// An algorithm of a frontier.
#[derive(Clone, Serialize)]
struct GuideAlgorithm {
    label: String,
    family: usize,
    /// What stands before a number of local steps or a batch.
    steps: String,
    /// Of a round: communications, oracle calls of a client for each local step, and vectors of a client.
    round: [f64; 3],
    /// For each number of clients and each target the costs that may be least.
    costs: Vec<Vec<Vec<UsefulCost>>>,
}

/// The problems of an experiment that the page shows.
pub fn problems(experiment: &Experiment<'_>) -> Vec<GuideProblem> {
    let shown = experiment.frontiers.iter().filter(|frontier| frontier.frontier.guide);
    shown.map(|frontier| GuideProblem::new(experiment, frontier)).collect()
}

impl GuideProblem {
    fn new(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> Self {
        let rows = frontier.targets.iter().rev().map(|target| GuideRow {
            target: readable(*target, 2),
            squares: frontier
                .clients
                .iter()
                .map(|n| GuideSquare::new(frontier, *n, *target))
                .collect(),
        });
        Self {
            experiment: experiment.plan.experiment.clone(),
            title: experiment.plan.manifest.title.clone(),
            facts: frontier.facts(),
            least: frontier.lead.words(),
            clients: frontier.clients.iter().map(|n| thousands(*n as usize)).collect(),
            rows: rows.collect(),
            data: GuideData::new(experiment, frontier),
        }
    }
}

impl GuideSquare {
    /// The best at N and ε, by the lead objective of the frontier.
    fn new(frontier: &ComputedFrontier<'_>, clients: u64, target: f64) -> Self {
        let ranked = frontier.ranked(frontier.lead, clients, target);
        let Some((first, least, value)) = ranked.all.first().copied() else {
            return Self {
                label: "none".into(),
                family: None,
                value: "not reached".into(),
                settings: String::new(),
                ahead: false,
            };
        };
        let ahead = ranked.is_ahead();
        let names: Vec<&str> =
            ranked.all[..ranked.tied].iter().map(|(a, ..)| a.label.as_str()).collect();
        let of = if names.len() > 1 { format!("{}: ", first.label) } else { String::new() };
        let step = match least.server_step() {
            1.0 => String::new(),
            step => format!(", server step {}", short(step)),
        };
        Self {
            label: names.join(" or "),
            family: ahead.then(|| family(&first.name)),
            value: number(value, 3),
            settings: format!(
                "{of}{}{}, γ = {}{step}",
                steps_prefix(first),
                thousands(least.run.local_steps as usize),
                short(least.run.step_size)
            ),
            ahead,
        }
    }
}

impl GuideData {
    fn new(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> Self {
        let targets: Vec<f64> = frontier.targets.iter().rev().copied().collect();
        let sgd = frontier.clients.iter();
        Self {
            name: format!("{}#{}", experiment.plan.experiment, frontier.frontier.id),
            dimension: frontier.dimension,
            price: frontier.lead.price(),
            budget: frontier.frontier.middle_budget().budget(),
            prices: frontier.prices.map(|p| (p.latency, p.bandwidth, p.call)),
            clients: frontier.clients.clone(),
            algorithms: frontier
                .algorithms
                .iter()
                .map(|algorithm| GuideAlgorithm::new(frontier, algorithm, &targets))
                .collect(),
            targets,
            sgd: sgd.map(|n| frontier.allowed(FrontierObjective::Budget(1.0), *n)).collect(),
        }
    }
}

impl GuideAlgorithm {
    fn new(
        frontier: &ComputedFrontier<'_>,
        algorithm: &SearchedAlgorithm,
        targets: &[f64],
    ) -> Self {
        let one_step = algorithm.choices[0].with_scale(1.0, 1);
        let price = one_step.round_price(frontier.clients[0]);
        let at_clients = |n: &u64| {
            let costs = |target: &f64| useful(frontier.costs(algorithm, *n, *target));
            targets.iter().map(costs).collect()
        };
        Self {
            label: algorithm.label.clone(),
            family: family(&algorithm.name),
            steps: steps_prefix(algorithm).to_owned(),
            round: [price.communications, price.gradients, price.vectors],
            costs: frontier.clients.iter().map(at_clients).collect(),
        }
    }
}

/// H, γ, T and the server step.
type UsefulCost = (u64, f64, u64, f64);

/// The costs that may be least at some price or within some budget: more local steps are
/// of use only if they save rounds.
fn useful(costs: &[FrontierCost<'_>]) -> Vec<UsefulCost> {
    let mut useful: Vec<UsefulCost> = Vec::new();
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
