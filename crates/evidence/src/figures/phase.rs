//! The map of the best algorithm over two numbers of a problem.

use crate::frontier::phase::{ComputedPhase, ComputedSquare, TIE};
use crate::frontier::{FrontierCost, steps_prefix};
use crate::scene::figure::{Body, Figure};
use crate::scene::line::{Color, LegendEntry};
use crate::scene::map::{DenseMap, Lead, Map, MapLine, Maps, Ranking, Square, SquareValue};
use crate::stats::Ratio;
use exactfed_core::words::{number, readable, thousands};
use exactfed_runner::manifest::phase::{PhaseAxis, PhaseBoundary, PhaseNumber};
use exactfed_runner::manifest::searched::SearchedAlgorithm;

/// The figure of a map, with the colours of its algorithms, and the rules by which they are compared.
pub fn figure(
    phase: &ComputedPhase<'_>,
    color: &dyn Fn(&SearchedAlgorithm) -> Color,
    rules: &str,
) -> Figure {
    let columns = phase.phase.x.values.points as usize;
    let reached = phase.places().enumerate().filter(|(_, instances)| is_reached(instances));
    let squares = reached.map(|(place, instances)| {
        let value = SquareValue::Ranking(ranking(phase, instances, color));
        Square { x: place % columns, y: place / columns, value }
    });
    let names = |axis: PhaseAxis| {
        axis.values.values().into_iter().map(|x| readable(x, 2)).collect::<Vec<_>>()
    };
    let map = Map {
        title: String::new(),
        x: names(phase.phase.x),
        y: names(phase.phase.y),
        squares: squares.collect(),
        dense: Some(DenseMap {
            values: [phase.phase.x.values.values(), phase.phase.y.values.values()],
            remarks: phase.places().filter(is_reached).map(remark).collect(),
            csv: csv(phase),
            lines: phase.phase.boundaries.iter().filter_map(|b| line(phase, b)).collect(),
        }),
    };
    let wins = |a: &&SearchedAlgorithm| map.squares.iter().any(|s| s.color() == color(a));
    let patch = |a: &SearchedAlgorithm| LegendEntry::patch(&a.label, color(a));
    let mut legend: Vec<LegendEntry> = phase.algorithms.iter().filter(wins).map(patch).collect();
    if map.squares.iter().any(|square| square.color() == Color::Neutral) {
        legend.push(LegendEntry::patch("the instances differ", Color::Neutral));
    }
    let axes = format!("{} and {}", phase.phase.x.over.symbol(), phase.phase.y.over.symbol());
    let title = format!("Which algorithm costs least, over {axes}");
    let title = phase.phase.title.clone().unwrap_or(title);
    let body = Body::Maps(Maps {
        maps: vec![map],
        legend,
        x: phase.phase.x.over.symbol().into(),
        y: phase.phase.y.over.symbol().into(),
    });
    Figure::plain(phase.phase.id.clone(), title, caption(phase, rules), 1, body)
}

/// Whether an algorithm reaches ε at a place of the map, on some instance.
fn is_reached(instances: &&[ComputedSquare<'_>]) -> bool {
    instances.iter().any(|square| !square.ranked.all.is_empty())
}

/// Which algorithms are best at a place of the map on every instance: within [`TIE`] of the least cost of each. The colour is
/// that of the first of them that the manifest names.
fn ranking(
    phase: &ComputedPhase<'_>,
    instances: &[ComputedSquare<'_>],
    color: &dyn Fn(&SearchedAlgorithm) -> Color,
) -> Ranking {
    let is_best = |algorithm: &&SearchedAlgorithm| {
        let ties = |square: &ComputedSquare<'_>| square.ranked.ties(algorithm);
        instances.iter().all(ties)
    };
    let leaders: Vec<&SearchedAlgorithm> = phase.algorithms.iter().filter(is_best).collect();
    let ahead = |square: &ComputedSquare<'_>| match square.ranked.lead() {
        _ if square.ranked.tied > 1 => Lead::Tie,
        None => Lead::Alone,
        Some(times) => Lead::Ratio(Ratio::exact(times)),
    };
    let Some(first) = leaders.first() else {
        let (color, lead) = (Color::Neutral, Lead::InstancesDiffer);
        return Ranking { leaders: Vec::new(), color, lead };
    };
    let color = color(first);
    let lead = instances.iter().map(ahead).reduce(less_ahead).unwrap_or(Lead::Alone);
    let leaders = leaders.iter().map(|a| a.label.clone()).collect();
    Ranking { leaders, color, lead }
}

/// Which of two instances has the smaller lead.
fn less_ahead(one: Lead, other: Lead) -> Lead {
    match (one, other) {
        (Lead::Tie, _) | (_, Lead::Tie) => Lead::Tie,
        (Lead::Ratio(a), Lead::Ratio(b)) if b.estimate < a.estimate => Lead::Ratio(b),
        (Lead::Ratio(a), _) => Lead::Ratio(a),
        (_, other) => other,
    }
}

/// What is compared on which problems.
fn caption(phase: &ComputedPhase<'_>, rules: &str) -> String {
    let on_axis = |of: &PhaseNumber| [phase.phase.x.over, phase.phase.y.over].contains(of);
    let fixed = PhaseNumber::ALL.into_iter().filter(|(of, ..)| !on_axis(of));
    let numbers = phase.squares[0].numbers;
    let fixed = fixed.map(|(of, _, symbol)| format!("{symbol} = {}", number(numbers.get(of), 3)));
    let seeds = phase.seeds.len();
    let seed_names: Vec<String> = phase.seeds.iter().map(u64::to_string).collect();
    let on_all = match seeds {
        1 => String::new(),
        _ => format!(
            " Each square is solved on {seeds} instances, which differ in the directions of heterogeneity (seeds {}). It has a colour where one algorithm is within {} % of the least cost on each of the {seeds}, and is grey where none is.",
            seed_names.join(", "),
            number(100.0 * (TIE - 1.0), 2),
        ),
    };
    let mut caption = format!(
        "The algorithm with the least price × communications + gradients of a client, each at its best step size and number of local steps, exact and without sampling, for {} problems: quadratics in d = {} of two types of clients, with {}.{on_all} Pale: several are within {} % of the least, which is no practical difference, and the colour is that of the first of them in the legend. {rules}",
        thousands(phase.problems),
        phase.dimension,
        fixed.collect::<Vec<_>>().join(", "),
        number(100.0 * (TIE - 1.0), 2),
    );
    let edges = phase.squares.iter().filter(|square| square.is_best_at_edge()).count();
    if edges > 0 {
        caption += &format!(
            " On {} of {} problems and prices the best step size or number of local steps is at the end of its range.",
            thousands(edges),
            thousands(phase.squares.len())
        );
    }
    let none = phase.places().filter(|instances| !is_reached(instances)).count();
    if none > 0 {
        caption += &format!(" Blank ({none}): nothing that was tried reaches ε.");
    }
    for boundary in &phase.phase.boundaries {
        caption += &format!(" Line: {}.", boundary.label);
    }
    caption
}

/// What else is said of a place: on one instance the settings of the best and what the next costs; on several how often
/// each algorithm has the least cost.
fn remark(instances: &[ComputedSquare<'_>]) -> String {
    match instances {
        [square] => settings_of_best(square).unwrap_or_default(),
        _ => first_places(instances),
    }
}

/// How many instances each algorithm is first on, those within [`TIE`] of the least cost included, and on how many nothing reaches ε.
fn first_places(instances: &[ComputedSquare<'_>]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for square in instances {
        for (algorithm, ..) in &square.ranked.all[..square.ranked.tied] {
            match counts.iter_mut().find(|known| known.0 == algorithm.label) {
                Some(known) => known.1 += 1,
                None => counts.push((&algorithm.label, 1)),
            }
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let of = instances.len();
    let texts = counts.iter().map(|(label, count)| format!("{label} on {count} of {of}"));
    format!("best: {}", texts.collect::<Vec<_>>().join(", "))
}

/// The settings of the best on a square, and what the next costs.
fn settings_of_best(square: &ComputedSquare<'_>) -> Option<String> {
    let (algorithm, cost, least) = square.ranked.all.first()?;
    let mut out = format!("γ = {}", readable(cost.run.step_size, 2));
    if algorithm.has_local_steps {
        out = format!("{}{}, {out}", steps_prefix(algorithm), cost.run.local_steps);
    }
    let settings = cost.settings();
    let settings = (!settings.is_empty()).then(|| format!(", {settings}"));
    out += &settings.unwrap_or_default();
    out += &format!(", T = {}", cost.rounds);
    if let Some((next, _, value)) = square.ranked.all.get(1) {
        out += &format!("; {} ×{}", next.label, readable(value / least, 3));
    }
    Some(out)
}

/// A line for each square: its numbers, the best algorithm with its settings, those that tie with it, and how many
/// times more each algorithm costs.
fn csv(phase: &ComputedPhase<'_>) -> String {
    type Text = fn(&FrontierCost<'_>) -> String;
    let settings: [(&str, Text); 6] = [
        ("local_steps", |cost| cost.run.local_steps.to_string()),
        ("step_size", |cost| format!("{:?}", cost.run.step_size)),
        ("server_step", |cost| digits(cost.server_step())),
        ("rounds", |cost| cost.rounds.to_string()),
        ("communications", |cost| digits(cost.communications)),
        ("gradients", |cost| digits(cost.gradients)),
    ];
    let numbers = PhaseNumber::ALL.iter().map(|(_, name, _)| *name);
    let heads = ["seed"].into_iter().chain(numbers).chain(["algorithm", "ties", "cost"]);
    let heads = heads.chain(settings.iter().map(|(name, _)| *name)).map(str::to_owned);
    let times = phase.algorithms.iter().map(|a| format!("times_{}", a.name));
    let mut out = heads.chain(times).collect::<Vec<_>>().join(",").replace('-', "_") + "\n";
    for square in &phase.squares {
        let (all, tied) = (&square.ranked.all, square.ranked.tied);
        let numbers = PhaseNumber::ALL.iter().map(|(of, ..)| digits(square.numbers.get(*of)));
        let mut names = all[..tied].iter().map(|one| one.0.name.as_str());
        let first = names.next().unwrap_or_default();
        let ties = names.collect::<Vec<_>>().join(" ");
        let least = all.first().map_or(f64::NAN, |one| one.2);
        let of_first = settings
            .iter()
            .map(|(_, text)| all.first().map_or_else(String::new, |(_, cost, _)| text(cost)));
        let times = phase.algorithms.iter().map(|algorithm| {
            let own = all.iter().find(|one| one.0 == algorithm);
            digits(own.map_or(f64::NAN, |one| one.2 / least))
        });
        let seed = std::iter::once(square.seed.to_string());
        let line = seed.chain(numbers).chain([first.to_owned(), ties, digits(least)]);
        out += &(line.chain(of_first).chain(times).collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

/// Six digits of a number; nothing of no number.
fn digits(x: f64) -> String {
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    if x.is_finite() { format!("{rounded:?}") } else { String::new() }
}

/// A boundary in units of squares, where it crosses the map.
fn line(phase: &ComputedPhase<'_>, boundary: &PhaseBoundary) -> Option<MapLine> {
    // A value's place is the middle of its square.
    let scale = |axis: PhaseAxis| {
        let (from, to, count) = (axis.values.from, axis.values.to, axis.values.points as f64);
        let each = libm::log(to / from) / (count - 1.0);
        (move |x: f64| 0.5 + libm::log(x / from) / each, each, count)
    };
    let ((x, x_each, wide), (y, y_each, high)) = (scale(phase.phase.x), scale(phase.phase.y));
    let (x0, y0) = (x(boundary.through[0]), y(boundary.through[1]));
    let slope = boundary.power * x_each / y_each;
    let at = |x: f64| (x, y0 + slope * (x - x0));
    let (mut left, mut right) = (0.0, wide);
    if slope != 0.0 {
        let (a, b) = (x0 - y0 / slope, x0 + (high - y0) / slope);
        (left, right) = (f64::max(left, a.min(b)), f64::min(right, a.max(b)));
    }
    let (from, to) = (at(left), at(right));
    let inside = (-1e-9..=high + 1e-9).contains(&from.1);
    (left < right && inside).then_some((from, to))
}
