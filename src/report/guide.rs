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
    /// The dimension d of the problem, the start and the heterogeneity, in a sentence.
    facts: String,
    /// The cost that is least in the squares of the map, in words.
    least: String,
    /// The numbers of clients, which are the columns of the map.
    clients: Vec<String>,
    /// The map: for each target, the smallest first, a square for each number of clients.
    rows: Vec<GuideRow>,
    data: GuideData,
}

/// A row of the map: a target.
#[derive(Clone, Serialize)]
struct GuideRow {
    /// The target ε.
    target: String,
    squares: Vec<GuideSquare>,
}

/// A square of the map: which algorithm costs least with N clients to the target ε.
#[derive(Clone, Serialize)]
struct GuideSquare {
    /// The label of the algorithm; several labels with "or" between where their costs count as equal.
    label: String,
    /// The family of the algorithm, if it is ahead of all others.
    family: Option<usize>,
    /// The least cost.
    value: String,
    /// The number of local steps, or the batch, the step size and the server step with which it costs least.
    settings: String,
    /// Whether the cheapest algorithm is ahead of all others by more than one of its rounds.
    ahead: bool,
}

/// What the script of the page looks up.
#[derive(Clone, Serialize)]
struct GuideData {
    /// The experiment and the id of the frontier, with `#` between.
    name: String,
    dimension: usize,
    /// The price of a communication, in gradients of a client, at which the map shows the least cost; `None` if the map
    /// shows the least seconds, since the manifest has prices of them.
    price: Option<f64>,
    /// The middle one of the budgets, as a multiple of what SGD needs.
    budget: Option<f64>,
    /// The latency, the bandwidth and the time of a gradient that the manifest states, if it states them.
    prices: Option<(f64, Option<f64>, f64)>,
    clients: Vec<u64>,
    /// The targets in the order of the rows of the map.
    targets: Vec<f64>,
    algorithms: Vec<GuideAlgorithm>,
    /// For each number of clients the gradients of a client with which SGD reaches the smallest target: budgets are
    /// multiples of them. 0 where SGD does not reach it: then no algorithm is within any budget.
    sgd: Vec<f64>,
}

/// An algorithm of a frontier.
#[derive(Clone, Serialize)]
struct GuideAlgorithm {
    label: String,
    family: usize,
    /// What stands before a number of local steps, "H = ", or before the batch of mini-batch SGD.
    steps: String,
    /// The communications of a round, the gradients that a client computes for each local step, and the vectors of a
    /// client in a round. The script multiplies the gradients by the number of local steps (of mini-batch SGD by the
    /// batch), and each by the number of rounds.
    round: [f64; 3],
    /// For each number of clients and each target the costs that may be least; none where the target is not reached.
    costs: Vec<Vec<Vec<UsefulCost>>>,
}

/// The problems of an experiment that the page shows: one for each frontier that the manifest has marked for the guide.
pub fn problems(experiment: &Experiment<'_>) -> Vec<GuideProblem> {
    let shown = experiment.frontiers.iter().filter(|frontier| frontier.frontier.guide);
    shown.map(|frontier| GuideProblem::new(experiment, frontier)).collect()
}

impl GuideProblem {
    /// The problem of a frontier, with its map and what the script looks up.
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
    /// The square of `clients` clients and a target, by the lead objective of the frontier, which pages show first.
    /// Where no algorithm reaches the target, the square says so in place of an algorithm and its cost.
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
        // Where several are equally good, the settings are those of the first.
        let owner = if names.len() > 1 { format!("{}: ", first.label) } else { String::new() };
        let step = match least.server_step() {
            1.0 => String::new(),
            step => format!(", server step {}", short(step)),
        };
        Self {
            label: names.join(" or "),
            family: ahead.then(|| family(&first.name)),
            value: number(value, 3),
            settings: format!(
                "{owner}{}{}, γ = {}{step}",
                steps_prefix(first),
                thousands(least.run.local_steps as usize),
                short(least.run.step_size)
            ),
            ahead,
        }
    }
}

impl GuideData {
    /// What the script looks up of a frontier.
    fn new(experiment: &Experiment<'_>, frontier: &ComputedFrontier<'_>) -> Self {
        let targets: Vec<f64> = frontier.targets.iter().rev().copied().collect();
        // A budget of 1 allows as many gradients as SGD needs.
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
    /// An algorithm with its useful costs for each number of clients of the frontier and each of these targets.
    fn new(
        frontier: &ComputedFrontier<'_>,
        algorithm: &SearchedAlgorithm,
        targets: &[f64],
    ) -> Self {
        // The script uses the price of a round with one local step, for the first number of clients and the first
        // choice of further settings, for all of them.
        let one_step = algorithm.choices[0].with_scale(1.0, 1);
        let price = one_step.round_price(frontier.clients[0]);
        let mut costs = Vec::new();
        for n in &frontier.clients {
            let of_targets = targets.iter();
            costs.push(of_targets.map(|e| useful(frontier.costs(algorithm, *n, *e))).collect());
        }
        Self {
            label: algorithm.label.clone(),
            family: family(&algorithm.name),
            steps: steps_prefix(algorithm).to_owned(),
            round: [price.communications, price.gradients, price.vectors],
            costs,
        }
    }
}

/// The settings of a cost, as the script reads them: the number of local steps H, the step size γ, the number of rounds
/// T and the server step.
type UsefulCost = (u64, f64, u64, f64);

/// The costs of an algorithm, with one target and one number of clients, that may be least at some price or within some
/// budget, in ascending order of gradients. A cost with more gradients is of use only if it has fewer rounds.
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
