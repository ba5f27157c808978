//! The predictions in figures of curves: which ones a kind of theory stands for, and what legends
//! and captions say about them.

use crate::cells::CellResult;
use crate::cells::panels::unique;
use crate::figures::kind::TheoryKind;
use crate::predictions::{Theory, fits};
use crate::scene::figure::{Panel, Plot, Series, XAxis};
use crate::scene::line::{Curve, LegendEntry, Line, legend_text};
use exactfed_core::theory::bounds::BoundId;
use exactfed_core::theory::effort::Effort;
use exactfed_core::words::count;
use exactfed_runner::manifest::{Prediction, Quantity};

/// The predictions that a kind of theory in a manifest stands for: one, or all bounds that figures draw.
pub fn predictions(kind: TheoryKind) -> Vec<Prediction> {
    match kind {
        TheoryKind::ExactBias => vec![Prediction::ExactBias],
        TheoryKind::ExactMoments => vec![Prediction::ExactMoments],
        TheoryKind::FirstOrder => vec![Prediction::FirstOrder],
        TheoryKind::SecondOrder => vec![Prediction::SecondOrder],
        TheoryKind::Closure => vec![Prediction::Closure],
        TheoryKind::Clt => vec![Prediction::Clt],
        TheoryKind::Bound(bound) => vec![Prediction::Bound(bound)],
        TheoryKind::Bounds => {
            let mut drawn: Vec<BoundId> = BoundId::all().collect();
            drawn.retain(|bound| bound.info().dash.is_some());
            drawn.sort_by_key(|bound| bound.info().dash);
            let contractions = [Prediction::Contraction, Prediction::ContractionPrinted];
            drawn.into_iter().map(Prediction::Bound).chain(contractions).collect()
        }
    }
}

/// The predictions that all these kinds of theory stand for, each once: a bound may be named by itself and be one of
/// all bounds as well.
pub fn all_predictions(kinds: &[TheoryKind]) -> Vec<Prediction> {
    unique(kinds.iter().flat_map(|kind| predictions(*kind)))
}

/// The legend of a figure with these panels: an entry for each of `curves` that has points, then for each prediction of
/// `kinds` that is drawn with some curve, then for a reference line.
pub fn legend(panels: &[Panel], curves: &[Curve], kinds: &[TheoryKind]) -> Vec<LegendEntry> {
    let series: Vec<&Series> = panels.iter().flat_map(|panel| &panel.series).collect();
    let with_points: Vec<&Line> =
        series.iter().filter(|s| !s.points.is_empty()).map(|s| &s.line).collect();
    let measured = curves.iter().cloned().map(Line::Measured);
    let reference = series.iter().map(|s| &s.line).find(|line| matches!(line, Line::Reference(_)));
    let predicted = all_predictions(kinds)
        .into_iter()
        .filter(|by| series.iter().any(|s| s.line.prediction() == Some(*by)));
    measured
        .filter(|line| with_points.contains(&line))
        .map(LegendEntry::Line)
        .chain(predicted.map(LegendEntry::Prediction))
        .chain(reference.cloned().map(LegendEntry::Line))
        .collect()
}

/// The words that say of how many of the cells a figure asks for exact moments that theory does not have, and why, by
/// the reason of the first such cell. Moments that are only too costly are not counted: the caption says so by itself.
/// `None` if none are missing.
pub fn without_moments(
    kinds: &[TheoryKind],
    cells: &[&CellResult<'_>],
    theory: &Theory<'_>,
) -> Option<String> {
    let is_asked = kinds.contains(&TheoryKind::ExactMoments);
    let reasons: Vec<String> = cells
        .iter()
        .filter(|_| is_asked)
        .filter_map(|cell| theory.no_moments(&cell.cell.id))
        .collect();
    let some = reasons.len();
    let all = cells.len();
    let why = reasons.first()?;
    Some(format!("exact moments of {some} of {}: {why}", count(all, "cell")))
}

/// The sentence that says why a figure of the quantity `y` that asks for all bounds draws none for these cells. Empty if
/// a bound has a value at the last round, as where a line would have a single point, or if bounds are too costly to
/// compute, which [`caption`] says by itself.
fn why_without_bounds(y: Quantity, cells: &[&CellResult<'_>], theory: &Theory<'_>) -> &'static str {
    let asked = predictions(TheoryKind::Bounds);
    let mut conditions_fail = false;
    let mut have_several_instances = false;
    for cell in cells {
        let id = &cell.cell.id;
        if asked.iter().any(|by| theory.too_costly(id, *by).is_some()) {
            return "";
        }
        have_several_instances |=
            theory.prepared(id).is_some_and(|prepared| prepared.scenarios.len() > 1);
        let bounds = asked.iter().filter_map(|by| theory.bound(id, *by, cell.cell.identity.rounds));
        for bound in bounds.filter(|bound| fits(bound, y)) {
            if bound.value.is_ok() {
                return "";
            }
            conditions_fail = true;
        }
    }
    if conditions_fail {
        " The conditions of no published bound of this quantity hold; the table of bounds shows which fail."
    } else if have_several_instances {
        " Published bounds are drawn for cells with one instance of the problem alone."
    } else {
        " No published bound of this quantity is known for these cells."
    }
}

/// What a caption says about the predictions that a figure of the quantity `y` over `x` asks for (`kinds`): what those
/// are that `plot` has drawn, and why others are not drawn. Each sentence begins with a space and is said once; the
/// text is empty without predictions.
pub fn caption(
    kinds: &[TheoryKind],
    x: &XAxis,
    y: Quantity,
    plot: &Plot,
    cells: &[&CellResult<'_>],
    theory: &Theory<'_>,
) -> String {
    let mut out = String::new();
    for kind in kinds {
        let by_kind = predictions(*kind);
        let is_drawn =
            plot.series().filter_map(|s| s.line.prediction()).any(|by| by_kind.contains(&by));
        let sentence = if is_drawn {
            let follows_first_order = out.contains(" First order: ");
            sentence_on_drawn(*kind, x, y, plot, follows_first_order)
        } else if *kind == TheoryKind::Bounds {
            why_without_bounds(y, cells, theory)
        } else {
            ""
        };
        if !out.contains(sentence) {
            out.push_str(sentence);
        }
    }
    if let Some(without) = without_moments(kinds, cells, theory) {
        out.push_str(&format!(" Not drawn: {without}."));
    }
    for kind in kinds {
        out.push_str(&sentence_on_costly(*kind, cells, theory));
    }
    out
}

/// What a caption says about the predictions of a kind that a figure of the quantity `y` over `x` has drawn. The second
/// order is worded as a term after the first one if a sentence on that stands before it (`follows_first_order`).
fn sentence_on_drawn(
    kind: TheoryKind,
    x: &XAxis,
    y: Quantity,
    plot: &Plot,
    follows_first_order: bool,
) -> &'static str {
    match kind {
        TheoryKind::ExactBias => {
            " Dotted: the squared exact bias of the curve of that colour (SCAFFLSA Thm 4.1 on linear problems), where it is not far below the panel."
        }
        TheoryKind::ExactMoments => {
            " Thin dashes with open marks in the colour of their curve: the limit of infinitely many runs, by exact second moments."
        }
        TheoryKind::FirstOrder if y == Quantity::Variance => {
            if plot.y == y.formula() {
                " First order: tr (γ/N) X with A X + X Aᵀ = C, of the covariance."
            } else {
                " First order: tr (γ/N) X with A X + X Aᵀ = C, of the covariance; the squared bias that E‖θ − θ*‖² contains is of the next order in γ."
            }
        }
        TheoryKind::FirstOrder => {
            " First order: (γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[X] with A X + X Aᵀ = C (RR Thm 4 with the signs that hold; without b_h for Scaffold)."
        }
        TheoryKind::SecondOrder if follows_first_order => {
            " The term after it is not divided by N: the clients' own variance within a round."
        }
        TheoryKind::SecondOrder => {
            " Second order: the first order and the term after it, which is not divided by N: the clients' own variance within a round."
        }
        TheoryKind::Closure => {
            " Closure: the field's curvature acting on the exact second moments of its linearisation."
        }
        TheoryKind::Clt => {
            " Central limit theorem: tr(A⁻¹CA⁻ᵀ)/(NHn) of the mean of n iterates, without any bias."
        }
        kind if kind.is_of_bounds() => match x {
            XAxis::Rounds(_) => {
                " Published bounds of this quantity at every round are drawn where their conditions hold."
            }
            XAxis::Cells(_) => {
                " Published bounds of this quantity at the last round are drawn where their conditions hold."
            }
        },
        _ => "",
    }
}

/// What a caption says about the predictions of a kind that are not computed for some of the cells, because they would
/// take too long or too much memory; empty if there are none.
fn sentence_on_costly(kind: TheoryKind, cells: &[&CellResult<'_>], theory: &Theory<'_>) -> String {
    let by_kind = predictions(kind);
    let mut costs: Vec<Effort> = Vec::new();
    for cell in cells {
        costs.extend(by_kind.iter().find_map(|by| theory.too_costly(&cell.cell.id, *by)));
    }
    let some = costs.len();
    let Some(most) = costs.into_iter().reduce(Effort::most) else { return String::new() };
    let name = match kind {
        TheoryKind::Bounds => "published bound",
        _ => by_kind.first().map_or("", |by| legend_text(*by)),
    };
    format!(" Not computed at this size, for {some} of {} cells: \"{name}\" ({most}).", cells.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::figures::kind::DrawnFrom;
    use crate::needs::Needs;
    use crate::predictions::MomentsCache;
    use crate::ranking::Rankings;
    use crate::scene::figure::{Body, CurveValue, Figure, Scale};
    use crate::scene::line::{Color, Style};
    use crate::simulated;
    use crate::wrong::Mutation;
    use exactfed_runner::runner::prepare;
    use std::collections::HashSet;

    /// FedLSA with one local step and two step sizes, for which the conditions of SCAFFLSA, Theorem 4.1 (A.5) hold.
    const FEDLSA: &str = r#"
title = "t"
seed = 5
replicates = 2

[problem.quadratic]
dimension = 2
clients = 2
spectrum = { from = 0.5, to = 1.0 }
gradient-heterogeneity = 1.0
hessian-heterogeneity = 0.2
noise = 1.0

[start]
offset = 1.0

[budget]
local-steps = 400

[record]
points = 20

[[algorithm.fedlsa]]
step-size = [0.0025, 0.005]
local-steps = 1
"#;

    const OVER_STEP_SIZES: &str = "[[figure.scaling]]\nx = \"step-size\"\n";

    /// The only figure of the manifest with this text.
    fn draw(manifest: String) -> Figure {
        let plan = simulated::plan(manifest);
        let prepared = prepare(&plan.folder(), &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        let cells = simulated::results(&prepared, &Needs::of_plan(&plan), Mutation::None);
        let theory = Theory::new(&prepared, &HashSet::new(), MomentsCache::Off);
        let rankings = Rankings::new(std::iter::empty());
        let from = DrawnFrom { theory: &theory, rankings: &rankings, frontiers: &[] };
        let mut drawn = Figures::new(&plan, &cells).draw(&plan, &cells, &from);
        assert_eq!(drawn.len(), 1);
        drawn.remove(0)
    }

    /// What the caption of a figure of biases over step sizes says of these kinds of theory, all of which are drawn.
    fn caption_of_drawn(kinds: &[TheoryKind]) -> String {
        let mut series = Vec::new();
        for prediction in all_predictions(kinds) {
            let curve = Curve::new("a", Style::solid(Color::Palette(0)));
            series.push(Series::new(Line::Predicted(curve, prediction), Vec::new()));
        }
        let plot = Plot {
            panels: vec![Panel { title: String::new(), series }],
            legend: Vec::new(),
            x: "γ".into(),
            y: Quantity::Bias.formula().into(),
            scale_x: Scale::Log,
            scale_y: Scale::Log,
            labels: CurveValue::last(Scale::Log),
        };
        let theory = Theory::new(&[], &HashSet::new(), MomentsCache::Off);
        let x = XAxis::Cells("step-size".into());
        caption(kinds, &x, Quantity::Bias, &plot, &[], &theory)
    }

    #[test]
    fn the_second_order_is_explained_without_the_first() {
        let alone = caption_of_drawn(&[TheoryKind::SecondOrder]);
        let expected = " Second order: the first order and the term after it, which is not divided by N: the clients' own variance within a round.";
        assert_eq!(alone, expected);
        let both = caption_of_drawn(&[TheoryKind::FirstOrder, TheoryKind::SecondOrder]);
        assert!(both.starts_with(" First order: (γ(H − 1)/2) b_h "), "{both}");
        assert!(both.contains(". The term after it is not divided by N: "), "{both}");
    }

    #[test]
    fn a_caption_says_why_no_bounds_are_drawn() {
        let caption = |manifest: &str, y: &str| {
            let figure = format!("{OVER_STEP_SIZES}y = \"{y}\"\ntheory = [\"bounds\"]\n");
            draw(format!("{manifest}{figure}")).caption
        };
        // Runs are stable below 2/L, and bounds need smaller steps.
        let large_steps = FEDLSA.replace("[0.0025, 0.005]", "[1.8, 1.9]");
        let fails = caption(&large_steps, "sq-error");
        assert!(
            fails.contains(" The conditions of no published bound of this quantity"),
            "{fails}"
        );
        let averaged = FEDLSA.replace("[record]", "[record]\nmetrics = [\"sq-error-average\"]");
        let unknown = caption(&averaged, "sq-error-average");
        assert!(unknown.contains(" No published bound of this quantity is known"), "{unknown}");
        let several = FEDLSA.replace("seed = 5", "seed = 5\ninstances = 3");
        let several = caption(&several, "sq-error");
        assert!(several.contains(" Published bounds are drawn for cells with one"), "{several}");
        let holds = caption(FEDLSA, "sq-error");
        assert!(holds.contains(" Published bounds of this quantity at the last round"), "{holds}");
    }

    /// The numbers of lines and of legend entries of predictions in a figure.
    fn predicted(figure: &Figure) -> (usize, usize) {
        let Body::Plot(plot) = &figure.body else { panic!("{figure:?}") };
        let entries = plot.legend.iter();
        let entries = entries.filter(|entry| matches!(entry, LegendEntry::Prediction(_)));
        let lines = plot.series().filter(|series| series.line.prediction().is_some());
        (lines.count(), entries.count())
    }

    #[test]
    fn a_bound_that_is_named_twice_is_drawn_and_explained_once() {
        let once = "theory = [\"bounds\"]\n";
        let twice = "theory = [\"scafflsa-a5\", \"bounds\"]\n";
        let expected = predicted(&draw(format!("{FEDLSA}{OVER_STEP_SIZES}{once}")));
        assert!(expected.0 > 0, "bounds are drawn");
        let over_setting = draw(format!("{FEDLSA}{OVER_STEP_SIZES}{twice}"));
        assert_eq!(predicted(&over_setting), expected, "{over_setting:?}");
        let sentence = "Published bounds of this quantity at the last round are drawn";
        assert_eq!(over_setting.caption.matches(sentence).count(), 1, "{}", over_setting.caption);
        assert!(!over_setting.caption.contains("every round"), "{}", over_setting.caption);
        let over_rounds = "[[figure.convergence]]\nx = \"communications\"\n";
        let expected = predicted(&draw(format!("{FEDLSA}{over_rounds}{once}")));
        let over_rounds = draw(format!("{FEDLSA}{over_rounds}{twice}"));
        assert_eq!(predicted(&over_rounds), expected, "{over_rounds:?}");
        let sentence = "Published bounds of this quantity at every round are drawn";
        assert_eq!(over_rounds.caption.matches(sentence).count(), 1, "{}", over_rounds.caption);
    }
}
