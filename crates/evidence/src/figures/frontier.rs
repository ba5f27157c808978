//! The figures of a frontier: its cost over the target, the map of what is best, the step sizes
//! and local steps behind it, and what fewer communications cost in oracle calls.
//!
//! The *lead objective* is that of figures that show one: the seconds of the simulated wall clock if the manifest has
//! prices, otherwise the cost at the middle one of its prices of a communication. The *middle budget* is the middle one
//! of its budgets. The *shown target* is the smallest that some algorithm reaches at every number of clients.

use crate::figures::curves::assign_styles;
use crate::frontier::{ComputedFrontier, FrontierCost, FrontierPoint, RankedCosts};
use crate::scene::family::family;
use crate::scene::figure::{
    Body, CurveValue, Figure, LabelledPoint, Panel, Plot, Point, Scale, Series,
};
use crate::scene::line::{Color, Curve, LegendEntry, Line, Style};
use crate::scene::map::{Lead, Map, Maps, Ranking, Square, SquareValue};
use crate::stats::Ratio;
use exactfed_core::words::{number, readable, thousands};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::frontier::FrontierObjective;
use exactfed_runner::manifest::searched::{SGD, SearchedAlgorithm};
use exactfed_runner::plan::FRONTIER_FIGURES;
use std::collections::HashSet;

/// The figures of a frontier: first the maps around it, then its own six in the order of their ids.
pub fn figures(frontier: &ComputedFrontier<'_>) -> Vec<Figure> {
    let phases = frontier.phases.iter().map(|one| {
        super::phase::figure(one, &|algorithm| frontier.color(algorithm), &frontier.rules())
    });
    let lead_caption = frontier.caption(frontier.lead);
    let plain = "Which algorithm costs least, by the price of a communication";
    let of_map = frontier.frontier.title.as_deref().unwrap_or(plain);
    let of_budget = "The fewest communications within a budget of gradients";
    let of_steps = if frontier.has_batch() {
        "The best number of local steps or batch"
    } else {
        "The best number of local steps"
    };
    // In the order of their ids.
    let own = [
        (of_map, frontier.map_caption(), frontier.draw_map()),
        ("The least cost to reach ε", lead_caption.clone(), frontier.draw_cost()),
        (of_budget, frontier.budget_caption(), frontier.draw_within_budget()),
        ("Communications against gradients", frontier.pareto_caption(), frontier.draw_pareto()),
        (of_steps, lead_caption.clone(), frontier.draw_local_steps()),
        ("The best step size", lead_caption, frontier.draw_step_size()),
    ];
    let own = own.into_iter().zip(FRONTIER_FIGURES).map(|((title, caption, body), end)| {
        let is_map = matches!(body, Body::Maps(_));
        // The differences are largest where clients are few.
        let large = (!is_map && body.panels() > 2).then_some(0);
        let id = format!("{}{end}", frontier.frontier.id);
        let figure = Figure::plain(id, title.to_owned(), caption, 3, body);
        Figure { columns: if is_map { 2 } else { figure.columns }, large, ..figure }
    });
    phases.chain(own).collect()
}

/// The powers of ε of the communications that are published for these algorithms, up to logarithms.
const PUBLISHED_POWERS: [(&str, f64); 3] =
    [(SGD, -2.0), ("fedavg", -1.0), ("richardson-romberg", -0.5)];

/// The exponent of ε in the communications that are published for an algorithm, −1 where they grow as 1/ε; `None` if
/// none are. Figures show it as a line of reference.
fn published_power(algorithm: &SearchedAlgorithm) -> Option<f64> {
    let mut known = PUBLISHED_POWERS.into_iter();
    known.find(|(name, _)| *name == algorithm.name).map(|(_, power)| power)
}

/// Panels of curves, with the legend of what they show.
struct CurvePanels {
    panels: Vec<Panel>,
    legend: Vec<LegendEntry>,
}

impl ComputedFrontier<'_> {
    /// Whether mini-batch SGD is among the algorithms, which has a batch in place of local steps.
    fn has_batch(&self) -> bool {
        self.algorithms.iter().any(SearchedAlgorithm::counts_batches)
    }

    /// The name of the number of local steps in axes and tables: with mini-batch SGD it may be a batch as well.
    pub fn steps_name(&self) -> &'static str {
        if self.has_batch() { "H or batch" } else { "H" }
    }

    /// A curve for each algorithm, in their order, with the style that it has in all figures of the frontier.
    fn curves(&self) -> Vec<Curve> {
        let mut curves: Vec<Curve> = self
            .algorithms
            .iter()
            .map(|algorithm| {
                let family = family(&algorithm.name);
                Curve::new(&algorithm.label, Style::solid(Color::of_family(family)))
            })
            .collect();
        assign_styles(&mut curves, &HashSet::new());
        curves
    }

    /// The colour that an algorithm of the frontier has in all its figures; grey for an algorithm of another one.
    fn color(&self, algorithm: &SearchedAlgorithm) -> Color {
        let curves = self.curves();
        let own = curves.iter().find(|curve| curve.algorithm == algorithm.label);
        own.map_or(Color::Neutral, |curve| curve.style.color)
    }

    /// What a caption says about curves that are least in an objective: what is compared and how, at how many points
    /// the range of γ or H may be too narrow, and how many points are missing.
    fn caption(&self, least: FrontierObjective) -> String {
        let mut caption = format!(
            "Exact, without sampling: at the step size γ and the number of local steps H{} with the least {}. {}",
            if self.has_batch() { " (of mini-batch SGD the batch)" } else { "" },
            least.words(),
            self.rules()
        );
        let points: Vec<&FrontierPoint<'_>> =
            self.algorithms.iter().flat_map(|a| self.points(least, a)).collect();
        let edges = points.iter().filter(|b| b.flags.iter().any(|flag| flag.is_edge())).count();
        let none = points.iter().filter(|b| b.cost.is_none()).count();
        if edges > 0 {
            caption.push_str(&format!(" At {edges} of {} points γ or H is at the end of its range, and a wider range might give less.", points.len()));
        }
        if none > 0 {
            caption.push_str(&format!(" {none} points are left out, since no γ and H that were tried reach the target under these limits."));
        }
        caption
    }

    /// What a reader must know of the problem, in words: the dimension, the distance of the start from θ*, and the
    /// heterogeneity, if it could be computed.
    pub fn facts(&self) -> String {
        let dimension = self.dimension;
        let start = readable(self.radius, 3);
        let facts =
            format!("d = {dimension}, the start at a root mean square distance of {start} from θ*");
        let Some((zeta1, zeta2)) = self.heterogeneity else { return facts };
        let [zeta1, zeta2] = [zeta1, zeta2].map(|zeta| readable(zeta, 3));
        format!("{facts}, heterogeneity ζ₁ = {zeta1} and ζ₂ = {zeta2}")
    }

    /// The sentences of a caption about the rules of the comparison: when a target is reached; and, if an algorithm
    /// has several runs on common draws, what these pay.
    fn rules(&self) -> String {
        let common: Vec<&str> =
            self.algorithms.iter().filter(|a| a.shares_draws()).map(|a| a.label.as_str()).collect();
        let reached =
            "The target ε is reached when E‖θ_t − θ*‖² is at most ε² and stays there.".to_owned();
        if common.is_empty() {
            return reached;
        }
        if self.algorithms.iter().any(|algorithm| algorithm.most_runs() > 2) {
            return format!(
                "{reached} The runs of {} take their gradients at the same draws: all gradients are paid, although each draw is used several times, and the variance is smaller than with independent draws.",
                common.join(" and ")
            );
        }
        format!(
            "{reached} The two runs of {} take their gradients at the same draws: both are paid, although the draws are half as many, and the variance is smaller than with independent draws.",
            common.join(" and ")
        )
    }

    /// The caption of the figure of communications within a budget, with what its thin dashes are, if any can be drawn.
    fn budget_caption(&self) -> String {
        let mut caption = self.caption(self.frontier.middle_budget());
        if self.algorithms.iter().any(|a| published_power(a).is_some()) {
            caption.push_str(" Thin dashes: the published powers of ε, without their logarithms, through the last point of a curve: −2 for SGD, −1 for FedAvg (SCAFFLSA, Corollary 4.5), −1/2 for Richardson-Romberg (RR, Theorem 5, corrected).");
        }
        caption
    }

    /// The caption of the map of which algorithm costs least, by price and target.
    fn map_caption(&self) -> String {
        format!(
            "The algorithm with the least price × communications + gradients of a client, exact and without sampling, and how many times more the next costs. Grey: several cost the same, or the first would not be first with one round more. {} The problem has {}.",
            self.rules(),
            self.facts()
        )
    }

    /// The caption of the figure of communications against gradients.
    fn pareto_caption(&self) -> String {
        let target = self.shown_target().map_or_else(|| "–".into(), |target| readable(target, 3));
        format!(
            "Exact, without sampling: communications against gradients of a client to reach ε = {target}, for each number of local steps{} at its best step size; those that cost more of both than another are left out.",
            if self.has_batch() { ", or batch," } else { "" }
        )
    }

    /// A panel for each number of clients, with a curve for each algorithm: `points` gives the points of an algorithm
    /// at a number of clients. A curve without points is left out, and so is its entry of the legend if no panel has
    /// it.
    fn panels(&self, points: impl Fn(&SearchedAlgorithm, u64) -> Vec<Point>) -> CurvePanels {
        let curves = self.curves();
        let panels: Vec<Panel> = self
            .clients
            .iter()
            .map(|clients: &u64| {
                let series = self.algorithms.iter().zip(&curves).map(|(algorithm, curve)| {
                    Series::new(Line::Exact(curve.clone()), points(algorithm, *clients))
                });
                let series = series.filter(|series| !series.points.is_empty()).collect();
                Panel { title: format!("N = {}", thousands(*clients as usize)), series }
            })
            .collect();
        let legend = curves
            .iter()
            .filter(|curve| {
                panels.iter().flat_map(|p| &p.series).any(|s| s.line.curve() == Some(curve))
            })
            .map(|curve| LegendEntry::Line(Line::Exact(curve.clone())))
            .collect();
        CurvePanels { panels, legend }
    }

    /// The points of an algorithm at N = `clients` over the targets ε that it reaches, from the smallest on: `value`
    /// gives the height of a point, of the run that is least in the objective `least`.
    fn over_targets(
        &self,
        least: FrontierObjective,
        algorithm: &SearchedAlgorithm,
        clients: u64,
        value: impl Fn(&FrontierCost<'_>) -> f64,
    ) -> Vec<Point> {
        let mut points: Vec<Point> = self
            .points(least, algorithm)
            .filter(|best| best.clients == clients)
            .filter_map(|best| Some(Point::bare(best.target, value(best.cost.as_ref()?))))
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }

    /// The panels of the figure of the least cost, that is, of the lead objective, over ε.
    fn draw_cost(&self) -> Body {
        let y = match self.lead {
            FrontierObjective::Seconds => "seconds".to_owned(),
            lead => format!("cost: {}", lead.words()),
        };
        let panels = self
            .panels(|a, n| self.over_targets(self.lead, a, n, |cost| self.value(self.lead, cost)));
        plot(["ε", &y], panels, ranked_tightest())
    }

    /// The panels of the figure of the fewest communications over ε within the middle budget of the manifest, with a
    /// line of the published power of ε beside each curve that has one.
    fn draw_within_budget(&self) -> Body {
        let CurvePanels { mut panels, mut legend } = self.panels(|a, n| {
            self.over_targets(self.frontier.middle_budget(), a, n, |cost| cost.communications)
        });
        for panel in &mut panels {
            let curves = std::mem::take(&mut panel.series).into_iter();
            panel.series = curves
                .flat_map(|curve| {
                    let power = self.power_line(&curve);
                    [Some(curve), power].into_iter().flatten()
                })
                .collect();
        }
        let is_drawn = panels.iter().flat_map(|p| &p.series).any(|s| !s.line.is_measured());
        let entry = LegendEntry::Prediction(Prediction::PublishedPower);
        legend.extend(is_drawn.then_some(entry));
        plot(["ε", "communications"], CurvePanels { panels, legend }, ranked_tightest())
    }

    /// The line of the published power of ε for a curve: through the curve's point with the smallest target, with a
    /// point at each of the curve's targets at which it is not below one communication. `None` if no power is
    /// published for the algorithm, or if the line would have fewer than two points.
    fn power_line(&self, series: &Series) -> Option<Series> {
        let curve = series.line.curve()?;
        let first = series.points.first()?;
        let mut algorithms = self.algorithms.iter();
        let algorithm = algorithms.find(|algorithm| algorithm.label == curve.algorithm)?;
        let power = published_power(algorithm)?;
        let line = Line::Predicted(curve.clone(), Prediction::PublishedPower);
        let points: Vec<Point> = series
            .points
            .iter()
            .map(|p| Point::bare(p.x, first.y * libm::pow(p.x / first.x, power)))
            .filter(|p| p.y >= 1.0)
            .collect();
        (points.len() > 1).then(|| Series::new(line, points))
    }

    /// The panels of the figure of the best number of local steps over ε, of the algorithms that have local steps.
    fn draw_local_steps(&self) -> Body {
        plot(
            ["ε", self.steps_name()],
            self.panels(|a, n| {
                if a.has_local_steps {
                    self.over_targets(self.lead, a, n, |cost| cost.run.local_steps as f64)
                } else {
                    Vec::new()
                }
            }),
            tightest(),
        )
    }

    /// The panels of the figure of the best step size over ε.
    fn draw_step_size(&self) -> Body {
        plot(
            ["ε", "γ"],
            self.panels(|a, n| self.over_targets(self.lead, a, n, |cost| cost.run.step_size)),
            tightest(),
        )
    }

    /// The panels of the figure of communications against gradients, at the shown target.
    fn draw_pareto(&self) -> Body {
        let axes = ["gradients of a client", "communications"];
        let panels = self.panels(|algorithm, clients| self.pareto_points(algorithm, clients));
        plot(axes, panels, CurveValue::last(Scale::Log))
    }

    /// The points of an algorithm at N = `clients` and the shown target: the communications over the gradients of a
    /// client, for each number of local steps, without the runs that cost at least as much of both as another one.
    fn pareto_points(&self, algorithm: &SearchedAlgorithm, clients: u64) -> Vec<Point> {
        let target = self.shown_target().unwrap_or(f64::NAN);
        let costs = self.costs(algorithm, clients, target).iter();
        undominated(costs.map(|cost| Point::bare(cost.gradients, cost.communications)).collect())
    }

    /// The maps of which algorithm costs least, over the price of a communication and ε: a map for each N. The legend
    /// has the algorithms whose colour a square has.
    fn draw_map(&self) -> Body {
        let curves = self.curves();
        let maps: Vec<Map> = self.clients.iter().map(|clients| self.map_at(*clients)).collect();
        let squares: Vec<&Square> = maps.iter().flat_map(|map| &map.squares).collect();
        let legend = curves
            .iter()
            .filter(|curve| squares.iter().any(|square| square.color() == curve.style.color))
            .map(|curve| LegendEntry::patch(&curve.algorithm, curve.style.color))
            .collect();
        let x = "price of a communication, in gradients".into();
        Body::Maps(Maps { maps, legend, x, y: "ε".into() })
    }

    /// The map for a number of clients: the prices from left to right, the targets from the smallest, below, up to the
    /// largest. Objectives without a price are not on it. A place stays blank where no algorithm reaches ε.
    fn map_at(&self, clients: u64) -> Map {
        let priced: Vec<(FrontierObjective, f64)> =
            self.objectives.iter().filter_map(|one| Some((*one, one.price()?))).collect();
        let mut squares = Vec::new();
        for (x, (objective, _)) in priced.iter().enumerate() {
            for (y, target) in self.targets.iter().rev().enumerate() {
                let ranked = self.ranked(*objective, clients, *target);
                if let Some(ranking) = ranking(&ranked, &|algorithm| self.color(algorithm)) {
                    squares.push(Square { x, y, value: SquareValue::Ranking(ranking) });
                }
            }
        }
        Map {
            title: format!("N = {}", thousands(clients as usize)),
            x: priced.iter().map(|(_, price)| number(*price, 1)).collect(),
            y: self.targets.iter().rev().map(|target| readable(*target, 2)).collect(),
            squares,
            dense: None,
        }
    }
}

/// The points from left to right without those that are at least as large in both coordinates as another one. Of equal
/// points one stays.
fn undominated(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        if kept.last().is_none_or(|last| point.y < last.y) {
            kept.push(point);
        }
    }
    kept
}

/// A figure of these panels with logarithmic axes, whose titles are `axes`, that of the x axis first.
fn plot(axes: [&str; 2], curves: CurvePanels, labels: CurveValue) -> Body {
    let CurvePanels { panels, legend } = curves;
    let [x, y] = axes.map(str::to_owned);
    let [scale_x, scale_y] = [Scale::Log; 2];
    Body::Plot(Plot { panels, legend, x, y, scale_x, scale_y, labels })
}

/// Labels of curves that say the value at the smallest target that a curve reaches.
fn tightest() -> CurveValue {
    CurveValue { at: LabelledPoint::Tightest, is_ranked: false, zero_below: 0.0 }
}

/// [`tightest`] for labels that also say how many times larger the value is than the lowest one.
fn ranked_tightest() -> CurveValue {
    CurveValue { is_ranked: true, ..tightest() }
}

/// What a square of the map shows of algorithms that are ordered by their costs: the cheapest ones, and how far the
/// first is ahead. It is grey if several cost the same, or if the first is ahead by a round at most. `None` if no
/// algorithm reaches ε.
fn ranking(
    ranked: &RankedCosts<'_>,
    color: &dyn Fn(&SearchedAlgorithm) -> Color,
) -> Option<Ranking> {
    let first = ranked.all.first()?.0;
    let leaders = ranked.all[..ranked.tied].iter().map(|(a, ..)| a.label.clone()).collect();
    let (lead, color) = match ranked.lead() {
        _ if ranked.tied > 1 => (Lead::Tie, Color::Neutral),
        _ if !ranked.is_ahead() => (Lead::Round, Color::Neutral),
        None => (Lead::Alone, color(first)),
        Some(times) => (Lead::Ratio(Ratio::exact(times)), color(first)),
    };
    Some(Ranking { leaders, color, lead })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_gradients_the_fewest_communications_stay() {
        let points = [(12.0, 6.0), (12.0, 3.0), (20.0, 3.0), (30.0, 1.0), (10.0, 9.0), (30.0, 1.0)];
        let kept = undominated(points.map(|(x, y)| Point::bare(x, y)).to_vec());
        let kept: Vec<(f64, f64)> = kept.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(kept, [(10.0, 9.0), (12.0, 3.0), (30.0, 1.0)]);
    }
}
