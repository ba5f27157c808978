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

/// The figure of a map around a frontier. `color` gives the colour that an algorithm has in the figures of the
/// frontier, and `rules` are the sentences of its captions about how algorithms are compared.
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
    let map = Map {
        title: String::new(),
        x: value_names(phase.phase.x),
        y: value_names(phase.phase.y),
        squares: squares.collect(),
        dense: Some(DenseMap {
            values: [phase.phase.x.values.values(), phase.phase.y.values.values()],
            remarks: phase.places().filter(is_reached).map(remark_on_place).collect(),
            csv: csv(phase),
            lines: phase.phase.boundaries.iter().filter_map(|b| boundary_line(phase, b)).collect(),
        }),
    };
    let mut legend: Vec<LegendEntry> = phase
        .algorithms
        .iter()
        .filter(|a| map.squares.iter().any(|square| square.color() == color(a)))
        .map(|a| LegendEntry::patch(&a.label, color(a)))
        .collect();
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

/// The values along an axis of the map, as texts of two digits.
fn value_names(axis: PhaseAxis) -> Vec<String> {
    axis.values.values().into_iter().map(|x| readable(x, 2)).collect()
}

/// How far the best algorithm of a square is ahead of the next on the square's instance: not at all if several are
/// within [`TIE`] of the least cost, and it is alone if no other algorithm reaches ε.
fn lead_on(square: &ComputedSquare<'_>) -> Lead {
    match square.ranked.lead() {
        _ if square.ranked.tied > 1 => Lead::Tie,
        None => Lead::Alone,
        Some(times) => Lead::Ratio(Ratio::exact(times)),
    }
}

/// Whether any algorithm reaches ε at a place of the map on some instance; the place stays blank otherwise.
fn is_reached(instances: &&[ComputedSquare<'_>]) -> bool {
    instances.iter().any(|square| !square.ranked.all.is_empty())
}

/// Which algorithms are best at a place of the map on every instance, that is, within [`TIE`] of the least cost on
/// each. The colour is that of the first of them in the manifest, and the lead is the smallest on any instance. If no
/// algorithm is best on all instances, they differ: there is no leader, and the colour is grey. So it is if nothing
/// reaches ε on some of the instances, though not on all ([`is_reached`]).
fn ranking(
    phase: &ComputedPhase<'_>,
    instances: &[ComputedSquare<'_>],
    color: &dyn Fn(&SearchedAlgorithm) -> Color,
) -> Ranking {
    let leaders: Vec<&SearchedAlgorithm> = phase
        .algorithms
        .iter()
        .filter(|algorithm| instances.iter().all(|square| square.ranked.ties(algorithm)))
        .collect();
    let Some(first) = leaders.first() else {
        let color = Color::Neutral;
        let lead = Lead::InstancesDiffer;
        return Ranking { leaders: Vec::new(), color, lead };
    };
    let color = color(first);
    let lead = instances.iter().map(lead_on).reduce(less_ahead).unwrap_or(Lead::Alone);
    let leaders = leaders.iter().map(|a| a.label.clone()).collect();
    Ranking { leaders, color, lead }
}

/// The smaller one of the leads on two instances: a tie is the smallest, then come ratios by their size, and being
/// alone is the largest. [`lead_on`] gives no other leads than these three.
fn less_ahead(one: Lead, other: Lead) -> Lead {
    match (one, other) {
        (Lead::Tie, _) | (_, Lead::Tie) => Lead::Tie,
        (Lead::Ratio(a), Lead::Ratio(b)) if b.estimate < a.estimate => Lead::Ratio(b),
        (Lead::Ratio(a), _) => Lead::Ratio(a),
        (_, other) => other,
    }
}

/// The caption: what is compared on which problems, what the colours mean, and what to be careful about.
fn caption(phase: &ComputedPhase<'_>, rules: &str) -> String {
    let on_axes = [phase.phase.x.over, phase.phase.y.over];
    // Numbers that are on no axis are the same for all squares.
    let numbers = phase.squares[0].numbers;
    let fixed = PhaseNumber::ALL
        .into_iter()
        .filter(|(of, ..)| !on_axes.contains(of))
        .map(|(of, _, symbol)| format!("{symbol} = {}", number(numbers.get(of), 3)));
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

/// The text that a page shows for a place below who is best: on one instance the settings of the best and what the
/// next costs; on several how often each algorithm is best.
fn remark_on_place(instances: &[ComputedSquare<'_>]) -> String {
    match instances {
        [square] => settings_of_best(square).unwrap_or_default(),
        _ => first_places(instances),
    }
}

/// The text that says on how many of the instances of a place each algorithm is best or within [`TIE`] of the least
/// cost, the most frequent one first. An instance on which nothing reaches ε counts for no algorithm.
fn first_places(instances: &[ComputedSquare<'_>]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for square in instances {
        for (algorithm, ..) in &square.ranked.all[..square.ranked.tied] {
            match counts.iter_mut().find(|(label, _)| *label == algorithm.label) {
                Some((_, count)) => *count += 1,
                None => counts.push((&algorithm.label, 1)),
            }
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let of = instances.len();
    let texts = counts.iter().map(|(label, count)| format!("{label} on {count} of {of}"));
    format!("best: {}", texts.collect::<Vec<_>>().join(", "))
}

/// The text with the settings and the number of rounds of the best algorithm on a square, and how many times more the
/// next one costs; `None` if nothing reaches ε.
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

/// The CSV file of a map, with a line for each square: the seed of its instance, the numbers of its problem, the best
/// algorithm with its settings and cost, the algorithms that tie with it, and how many times more each algorithm
/// costs (empty if it does not reach ε).
fn csv(phase: &ComputedPhase<'_>) -> String {
    type Text = fn(&FrontierCost<'_>) -> String;
    let settings: [(&str, Text); 6] = [
        ("local_steps", |cost| cost.run.local_steps.to_string()),
        ("step_size", |cost| format!("{:?}", cost.run.step_size)),
        ("server_step", |cost| six_digits(cost.server_step())),
        ("rounds", |cost| cost.rounds.to_string()),
        ("communications", |cost| six_digits(cost.communications)),
        ("gradients", |cost| six_digits(cost.gradients)),
    ];
    let numbers = PhaseNumber::ALL.iter().map(|(_, name, _)| *name);
    let heads = ["seed"]
        .into_iter()
        .chain(numbers)
        .chain(["algorithm", "ties", "cost"])
        .chain(settings.iter().map(|(name, _)| *name))
        .map(str::to_owned);
    let times = phase.algorithms.iter().map(|a| format!("times_{}", a.name));
    let mut out = heads.chain(times).collect::<Vec<_>>().join(",").replace('-', "_") + "\n";
    for square in &phase.squares {
        let all = &square.ranked.all;
        let tied = square.ranked.tied;
        let numbers = PhaseNumber::ALL.iter().map(|(of, ..)| six_digits(square.numbers.get(*of)));
        let mut names = all[..tied].iter().map(|(algorithm, ..)| algorithm.name.as_str());
        let first = names.next().unwrap_or_default();
        let ties = names.collect::<Vec<_>>().join(" ");
        let least = all.first().map_or(f64::NAN, |(_, _, value)| *value);
        let of_first = settings
            .iter()
            .map(|(_, text)| all.first().map_or_else(String::new, |(_, cost, _)| text(cost)));
        let times = phase.algorithms.iter().map(|algorithm| {
            let own = all.iter().find(|(known, ..)| *known == algorithm);
            six_digits(own.map_or(f64::NAN, |(_, _, value)| value / least))
        });
        let seed = std::iter::once(square.seed.to_string());
        let line = seed.chain(numbers).chain([first.to_owned(), ties, six_digits(least)]);
        out += &(line.chain(of_first).chain(times).collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

/// A number with six digits; an empty text if it is not finite.
fn six_digits(x: f64) -> String {
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    if x.is_finite() { format!("{rounded:?}") } else { String::new() }
}

/// An axis of a map whose values have equal ratios. The middle of a square is the place of its value.
struct LogAxis {
    /// The first value.
    from: f64,
    /// The logarithm of the ratio of neighbouring values.
    each: f64,
    /// The number of values.
    count: f64,
}

impl LogAxis {
    /// The axis of a map that the manifest asks for, which has at least two values.
    fn new(axis: PhaseAxis) -> Self {
        let from = axis.values.from;
        let count = axis.values.points as f64;
        Self { from, each: libm::log(axis.values.to / from) / (count - 1.0), count }
    }

    /// The place of a value, in squares from the edge of the map.
    fn place(&self, x: f64) -> f64 {
        0.5 + libm::log(x / self.from) / self.each
    }
}

/// The line of a boundary that the manifest draws over a map, a power law through a point, in units of squares and
/// cut at the edges of the map; `None` if it does not cross the map.
fn boundary_line(phase: &ComputedPhase<'_>, boundary: &PhaseBoundary) -> Option<MapLine> {
    let across = LogAxis::new(phase.phase.x);
    let upwards = LogAxis::new(phase.phase.y);
    let wide = across.count;
    let high = upwards.count;
    let x0 = across.place(boundary.through[0]);
    let y0 = upwards.place(boundary.through[1]);
    let slope = boundary.power * across.each / upwards.each;
    let mut left = 0.0;
    let mut right = wide;
    if slope != 0.0 {
        let a = x0 - y0 / slope;
        let b = x0 + (high - y0) / slope;
        left = f64::max(left, a.min(b));
        right = f64::min(right, a.max(b));
    }
    let from = (left, y0 + slope * (left - x0));
    let to = (right, y0 + slope * (right - x0));
    let inside = (-1e-9..=high + 1e-9).contains(&from.1);
    (left < right && inside).then_some((from, to))
}
