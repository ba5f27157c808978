//! The figures of a frontier: its cost over the target, the map of what is best, the step sizes
//! and local steps behind it, and what fewer communications cost in oracle calls.

use crate::figures::curves::assign_styles;
use crate::frontier::{ComputedFrontier, FrontierCost, FrontierPoint};
use crate::scene::family::family;
use crate::scene::figure::Scale;
use crate::scene::figure::{Body, CurveValue, Figure, LabelledPoint, Panel, Plot, Point, Series};
use crate::scene::line::{Color, Curve, LegendEntry, Line, Style};
use crate::scene::map::{Lead, Map, Maps, Ranking, Square, SquareValue};
use crate::stats::Ratio;
use exactfed_core::words::{readable, thousands};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::frontier::{FrontierAlgorithm, FrontierQuantity};
use exactfed_runner::plan::FrontierFigure;
use std::collections::HashSet;

/// The figures of a frontier.
pub fn figures(frontier: &ComputedFrontier<'_>) -> Vec<Figure> {
    FrontierFigure::ALL.into_iter().map(|kind| figure(frontier, kind)).collect()
}

fn figure(frontier: &ComputedFrontier<'_>, kind: FrontierFigure) -> Figure {
    let plain = match kind {
        FrontierFigure::Cost => "Least cost to reach ε",
        FrontierFigure::Map => "Which algorithm is best",
        FrontierFigure::LocalSteps => frontier.steps_title(),
        FrontierFigure::StepSize => "The best step size",
        FrontierFigure::Pareto => "Communications against oracle calls",
    };
    let title = match (kind, frontier.title) {
        (FrontierFigure::Cost, Some(title)) => title.to_owned(),
        (FrontierFigure::Pareto, _) => plain.to_owned(),
        _ => format!("{plain}: {}", frontier.what()),
    };
    let (caption, body) = match kind {
        FrontierFigure::Cost => (frontier.cost_caption(), frontier.cost()),
        FrontierFigure::Map => (frontier.map_caption(), frontier.map()),
        FrontierFigure::LocalSteps => (frontier.caption(), frontier.local_steps()),
        FrontierFigure::StepSize => (frontier.caption(), frontier.step_size()),
        FrontierFigure::Pareto => (frontier.pareto_caption(), frontier.pareto()),
    };
    Figure {
        id: kind.id(frontier.id),
        title,
        caption,
        columns: body.panels().clamp(1, 3),
        // The differences are largest where clients are few.
        large: matches!(&body, Body::Plot(plot) if plot.panels.len() > 2).then_some(0),
        exploration: None,
        body,
    }
}

/// The power of ε of the communications that is published for the algorithm of this label, up to
/// logarithms.
fn published_power(algorithm: &str) -> Option<f64> {
    let known = [
        (FrontierAlgorithm::Sgd, -2.0),
        (FrontierAlgorithm::Fedavg, -1.0),
        (FrontierAlgorithm::RichardsonRomberg, -0.5),
    ];
    known.into_iter().find(|(one, _)| one.label() == algorithm).map(|(_, power)| power)
}

impl ComputedFrontier<'_> {
    /// What the figures show, in a few words.
    fn what(&self) -> &'static str {
        match self.objectives()[0] {
            FrontierQuantity::Communications => "communications",
            FrontierQuantity::Seconds => "seconds",
            _ => "oracle calls",
        }
    }

    /// Whether mini-batch SGD is among the algorithms, which has a batch in place of local steps.
    fn has_batch(&self) -> bool {
        self.algorithms.contains(&FrontierAlgorithm::MinibatchSgd)
    }

    /// The name of what each algorithm does most of in a round.
    pub fn steps_name(&self) -> &'static str {
        if self.has_batch() { "H or batch" } else { "H" }
    }

    fn steps_title(&self) -> &'static str {
        match self.has_batch() {
            true => "The best number of local steps or batch",
            false => "The best number of local steps",
        }
    }

    /// The value of the first objective.
    pub fn value(&self, cost: &FrontierCost) -> f64 {
        cost.quantity(self.objectives()[0], self.prices.as_ref()).unwrap_or(f64::NAN)
    }

    /// A curve for each algorithm.
    fn curves(&self) -> Vec<Curve> {
        let curve = |algorithm: &FrontierAlgorithm| {
            let family = family(algorithm.name());
            Curve::new(algorithm.label(), Style::solid(Color::of_family(family)))
        };
        let mut curves: Vec<Curve> = self.algorithms.iter().map(curve).collect();
        assign_styles(&mut curves, &HashSet::new());
        curves
    }

    /// What is compared and how, for every caption.
    fn caption(&self) -> String {
        let mut caption = format!(
            "Exact, without sampling: the step size γ and the number of local steps H{} at which an algorithm needs the fewest {}",
            if self.has_batch() { " (of mini-batch SGD the batch)" } else { "" },
            self.what()
        );
        match self.cap {
            Some(cap) => {
                caption.push_str(&format!(", with at most {} times the oracle calls of SGD", cap))
            }
            None => caption.push_str(", at the prices of the manifest"),
        }
        caption.push_str(". The target ε is reached when E‖θ_t − θ*‖² is at most ε² and stays there; Richardson-Romberg pays for both of its runs.");
        let points = || self.algorithms.iter().flat_map(|a| self.points(*a));
        let edges = points().filter(|b| b.flags.iter().any(|flag| flag.is_edge())).count();
        let none = points().filter(|b| b.cost.is_none()).count();
        if edges > 0 {
            caption.push_str(&format!(" At {edges} of {} points γ or H is at the end of its range, and a wider range might give less.", points().count()));
        }
        if none > 0 {
            caption.push_str(&format!(" {none} points are left out, since no γ and H that were tried reach the target under these limits."));
        }
        caption
    }

    fn cost_caption(&self) -> String {
        let mut caption = self.caption();
        if self.cap.is_some() && self.rises() {
            caption.push_str(" A curve rises with ε where the cap binds: SGD reaches a larger ε with fewer oracle calls, and so fewer are allowed.");
        }
        let drawn = self.algorithms.iter().filter(|a| published_power(a.label()).is_some()).count();
        if drawn > 0 && self.objectives()[0] == FrontierQuantity::Communications {
            caption.push_str(" Thin dashes: the published powers of ε, without their logarithms, through the last point of a curve: −2 for SGD, −1 for FedAvg (SCAFFLSA, Corollary 4.5), −1/2 for Richardson-Romberg (RR, Theorem 5, corrected).");
        }
        caption
    }

    /// Whether a curve of the least costs rises with ε. Without a cap none does: what reaches and holds a
    /// target reaches every larger one no later.
    fn rises(&self) -> bool {
        let value = |cost: &FrontierCost| self.value(cost);
        let mut curves = self.algorithms.iter().flat_map(|algorithm| {
            self.clients.iter().map(move |n| self.over_targets(*algorithm, *n, value))
        });
        curves.any(|points| points.windows(2).any(|pair| pair[1].y > pair[0].y))
    }

    fn map_caption(&self) -> String {
        format!(
            "The algorithm with the fewest {}, and how many times more the next needs. {}",
            self.what(),
            self.caption()
        )
    }

    fn pareto_caption(&self) -> String {
        let target = self.pareto_target().map_or_else(|| "–".into(), |target| readable(target, 3));
        format!(
            "Exact, without sampling: communications against oracle calls of a client to reach ε = {target}, for each number of local steps{} at its best step size; those that cost more of both than another are left out.",
            if self.has_batch() { ", or batch," } else { "" }
        )
    }

    /// A panel for each number of clients, with a curve for each algorithm.
    fn panels(
        &self,
        points: impl Fn(FrontierAlgorithm, u64) -> Vec<Point>,
    ) -> (Vec<Panel>, Vec<LegendEntry>) {
        let curves = self.curves();
        let panel = |clients: &u64| {
            let series = self.algorithms.iter().zip(&curves).map(|(algorithm, curve)| {
                Series::new(Line::Exact(curve.clone()), points(*algorithm, *clients))
            });
            let series = series.filter(|series| !series.points.is_empty()).collect();
            Panel { title: format!("N = {}", thousands(*clients as usize)), series }
        };
        let panels: Vec<Panel> = self.clients.iter().map(panel).collect();
        let is_drawn = |curve: &&Curve| {
            panels.iter().flat_map(|p| &p.series).any(|s| s.line.curve() == Some(curve))
        };
        let legend = curves.iter().filter(is_drawn);
        let legend = legend.map(|curve| LegendEntry::Line(Line::Exact(curve.clone())));
        let legend = legend.collect();
        (panels, legend)
    }

    /// The points of an algorithm at N, from the smallest target on.
    fn over_targets(
        &self,
        algorithm: FrontierAlgorithm,
        clients: u64,
        value: impl Fn(&FrontierCost) -> f64,
    ) -> Vec<Point> {
        let point =
            |best: &FrontierPoint| Some(Point::bare(best.target, value(best.cost.as_ref()?)));
        let points = self.points(algorithm).filter(|best| best.clients == clients);
        let mut points: Vec<Point> = points.filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }

    /// A figure over ε, whose labels say the values at the smallest that a curve reaches.
    fn plot(
        &self,
        y: &str,
        (panels, legend): (Vec<Panel>, Vec<LegendEntry>),
        is_ranked: bool,
    ) -> Body {
        let (x, y) = ("ε".to_owned(), y.to_owned());
        let (scale_x, scale_y) = (Scale::Log, Scale::Log);
        let labels = CurveValue { at: LabelledPoint::Tightest, is_ranked };
        Body::Plot(Plot { panels, legend, x, y, scale_x, scale_y, labels })
    }

    /// The least cost over ε, with the published powers.
    fn cost(&self) -> Body {
        let value = |cost: &FrontierCost| self.value(cost);
        let (mut panels, mut legend) = self.panels(|a, n| self.over_targets(a, n, value));
        if self.objectives()[0] == FrontierQuantity::Communications {
            for panel in &mut panels {
                let curves = std::mem::take(&mut panel.series).into_iter();
                let with_power = |curve: Series| {
                    let power = power_line(&curve);
                    [Some(curve), power].into_iter().flatten()
                };
                panel.series = curves.flat_map(with_power).collect();
            }
            let is_drawn = panels.iter().flat_map(|p| &p.series).any(|s| !s.line.is_measured());
            let entry = LegendEntry::Prediction(Prediction::PublishedPower);
            legend.extend(is_drawn.then_some(entry));
        }
        self.plot(self.what(), (panels, legend), true)
    }

    fn local_steps(&self) -> Body {
        let steps = |cost: &FrontierCost| cost.local_steps as f64;
        let is_free = |a| a != FrontierAlgorithm::Sgd;
        let points = |a, n| if is_free(a) { self.over_targets(a, n, steps) } else { Vec::new() };
        self.plot(self.steps_name(), self.panels(points), false)
    }

    fn step_size(&self) -> Body {
        let step = |cost: &FrontierCost| cost.step_size;
        self.plot("γ", self.panels(|a, n| self.over_targets(a, n, step)), false)
    }

    /// The target of the figure of communications against oracle calls: the smallest that some
    /// algorithm reaches at every number of clients.
    fn pareto_target(&self) -> Option<f64> {
        let is_reached = |target: &f64| {
            self.clients
                .iter()
                .all(|n| self.algorithms.iter().any(|a| !self.costs(*a, *n, *target).is_empty()))
        };
        self.targets.iter().rev().copied().find(is_reached)
    }

    fn pareto(&self) -> Body {
        let points = |algorithm, clients| {
            let target = self.pareto_target().unwrap_or(f64::NAN);
            let mut points: Vec<Point> = Vec::new();
            let mut costs = self.costs(algorithm, clients, target).to_vec();
            costs.sort_by(|a, b| a.gradients.total_cmp(&b.gradients));
            for cost in costs {
                if points.last().is_none_or(|last| cost.communications < last.y) {
                    points.push(Point::bare(cost.gradients, cost.communications));
                }
            }
            points
        };
        let (panels, legend) = self.panels(points);
        Body::Plot(Plot {
            panels,
            legend,
            x: "oracle calls of a client".into(),
            y: "communications".into(),
            scale_x: Scale::Log,
            scale_y: Scale::Log,
            labels: CurveValue::last(Scale::Log),
        })
    }

    /// Which algorithm is best over ε and N.
    fn map(&self) -> Body {
        let curves = self.curves();
        let color = |label: &str| {
            let own = curves.iter().find(|curve| curve.algorithm == label);
            own.map_or(Color::Neutral, |curve| curve.style.color)
        };
        let mut squares = Vec::new();
        for (x, clients) in self.clients.iter().enumerate() {
            for (y, target) in self.targets.iter().rev().enumerate() {
                let ranking = self.ranking(*clients, *target, &color);
                squares.extend(ranking.map(|ranking| Square {
                    x,
                    y,
                    value: SquareValue::Ranking(ranking),
                }));
            }
        }
        let wins = |curve: &&Curve| squares.iter().any(|s: &Square| s.color() == curve.style.color);
        let patch = |curve: &Curve| LegendEntry::Patch {
            name: curve.algorithm.clone(),
            color: curve.style.color,
        };
        let legend = curves.iter().filter(wins).map(patch).collect();
        let names = |values: Vec<f64>| values.into_iter().map(|v| readable(v, 2)).collect();
        let map = Map {
            title: String::new(),
            x: self.clients.iter().map(|n| thousands(*n as usize)).collect(),
            y: names(self.targets.iter().rev().copied().collect()),
            squares,
        };
        Body::Maps(Maps { maps: vec![map], legend, x: "N".into(), y: "ε".into() })
    }

    /// The best algorithms at N and ε; `None` if none reaches ε.
    fn ranking(&self, clients: u64, target: f64, color: &dyn Fn(&str) -> Color) -> Option<Ranking> {
        let value = |a: &FrontierAlgorithm| {
            let best = self.points(*a).find(|b| b.clients == clients && b.target == target)?;
            Some((a.label().to_owned(), self.value(best.cost.as_ref()?)))
        };
        let mut all: Vec<(String, f64)> = self.algorithms.iter().filter_map(value).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let least = all.first()?.1;
        let leaders: Vec<String> =
            all.iter().filter(|(_, v)| *v == least).map(|(label, _)| label.clone()).collect();
        let lead = match all.get(leaders.len()) {
            _ if leaders.len() > 1 => Lead::Alone,
            Some((_, next)) => {
                let (low, high) = (f64::NAN, f64::NAN);
                Lead::Ratio(Ratio { estimate: next / least, low, high, p: 0.0 })
            }
            None => Lead::Alone,
        };
        let color = if leaders.len() == 1 { color(&leaders[0]) } else { Color::Neutral };
        Some(Ranking { leaders, color, lead })
    }
}

/// The published power of ε through the point of a series with the smallest target, at those of its
/// targets for which it is not below one communication.
fn power_line(series: &Series) -> Option<Series> {
    let (curve, first) = (series.line.curve()?, series.points.first()?);
    let power = published_power(&curve.algorithm)?;
    let at = |p: &Point| Point::bare(p.x, first.y * libm::pow(p.x / first.x, power));
    let line = Line::Predicted(curve.clone(), Prediction::PublishedPower);
    let points: Vec<Point> = series.points.iter().map(at).filter(|p| p.y >= 1.0).collect();
    (points.len() > 1).then(|| Series::new(line, points))
}
