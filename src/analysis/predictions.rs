//! How predictions are drawn: which they are, their pattern, what legends and captions
//! say of them.

use super::CellResult;
use super::figure::{Curve, GREY, Key, Legend, Panel, Role, Style};
use super::theory::Theory;
use driftbench_core::theory::cost::Cost;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::manifest::figure::Theory as Drawn;
use std::collections::HashSet;

/// The predictions of a kind of line.
pub fn predictions(kind: Drawn) -> &'static [Prediction] {
    match kind {
        Drawn::ExactBias => &[Prediction::ExactBias],
        Drawn::ExactMoments => &[Prediction::ExactMoments],
        Drawn::FirstOrder => &[Prediction::FirstOrder],
        Drawn::SecondOrder => &[Prediction::SecondOrder],
        Drawn::Closure => &[Prediction::Closure],
        Drawn::Bounds => &[
            Prediction::ScafflsaA5,
            Prediction::ScafflsaB2,
            Prediction::ScafflsaB5,
            Prediction::RrProposition4,
            Prediction::RrTheorem2,
            Prediction::Book51,
        ],
    }
}

/// The pattern of a line to compare with.
pub const REFERENCE: usize = 12;

/// The pattern of a prediction's line.
pub fn pattern(prediction: Prediction) -> usize {
    match prediction {
        Prediction::ExactBias => 0,
        Prediction::ExactMoments => 1,
        Prediction::FirstOrder => 2,
        Prediction::SecondOrder => 3,
        Prediction::Closure => 4,
        Prediction::ScafflsaA5 => 5,
        Prediction::ScafflsaB2 => 6,
        Prediction::ScafflsaB5 => 7,
        Prediction::RrProposition4 => 8,
        Prediction::RrTheorem2 => 9,
        Prediction::Book51 => 10,
        // Claims are tested on these; no figure draws them.
        Prediction::Stationary
        | Prediction::FirstOrderPrinted
        | Prediction::RrCorollary1
        | Prediction::Contraction
        | Prediction::ContractionPrinted => 11,
    }
}

/// How a prediction beside a curve looks: the curve's colour and mark in a pattern of its own.
pub fn style(prediction: Prediction, curve: Style) -> Style {
    Style { dash: pattern(prediction), ..curve }
}

/// What stands before a curve's name where a prediction for it is named.
pub fn words(prediction: Prediction) -> String {
    match prediction {
        Prediction::ExactBias => "exact bias of".into(),
        other => format!("{} for", other.words()),
    }
}

/// What the legend calls a prediction.
pub fn legend(prediction: Prediction) -> &'static str {
    match prediction {
        Prediction::ExactBias => "exact bias, squared",
        Prediction::ExactMoments => "infinite replicates (exact)",
        Prediction::FirstOrder => "first order",
        Prediction::SecondOrder => "and the term after it",
        Prediction::Closure => "closure",
        other => other.words(),
    }
}

/// The entries of a legend for the curves that have points, and for the predictions that are
/// drawn beside them.
pub fn legends(curves: &[Curve], asked: &[Drawn], panels: &[Panel]) -> Vec<Legend> {
    let series = || panels.iter().flat_map(|p| &p.series);
    let of_runs = series().filter(|s| s.role == Role::Measured && !s.points.is_empty());
    let drawn: HashSet<&str> = of_runs.map(|s| s.label.as_str()).collect();
    let curves = curves.iter().filter(|curve| drawn.contains(curve.label.as_str()));
    let measured = |curve: &Curve| {
        let Curve { label, style, .. } = curve.clone();
        Legend { label, style, key: Key::Line }
    };
    let there = |p: &&Prediction| series().any(|s| s.role == Role::Theory(**p));
    let theory = |prediction: &Prediction| Legend {
        label: legend(*prediction).into(),
        style: style(*prediction, Style::plain(GREY)),
        key: Key::Theory,
    };
    let predicted = asked.iter().flat_map(|kind| predictions(*kind)).filter(there);
    curves.map(measured).chain(predicted.map(theory)).collect()
}

/// What a caption says of the predictions beside a figure's curves.
pub fn caption(
    asked: &[Drawn],
    y: Quantity,
    panels: &[Panel],
    cells: &[&CellResult<'_>],
    theory: &Theory<'_>,
) -> String {
    let there = |kind: Drawn| {
        let mut series = panels.iter().flat_map(|p| &p.series);
        series.any(|s| matches!(s.role, Role::Theory(p) if predictions(kind).contains(&p)))
    };
    let mut out = String::new();
    for kind in asked {
        out.push_str(match (kind, there(*kind)) {
            (Drawn::ExactBias, true) => " Dotted: the squared exact bias of the curve of that colour (SCAFFLSA Thm 4.1 on linear problems), where it is not far below the panel.",
            (Drawn::ExactMoments, true) => " Thin dashes with open marks in the colour of their curve: what infinitely many runs would give, by exact second moments.",
            (Drawn::FirstOrder, true) if y == Quantity::Variance => " First order: tr (γ/N) AC, of the covariance.",
            (Drawn::FirstOrder, true) => " First order: (γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[X] with A X + X Aᵀ = C (RR Thm 4 with the signs that hold; without b_h for Scaffold).",
            (Drawn::SecondOrder, true) => " The term after it is not divided by N: the clients' own variance within a round.",
            (Drawn::Closure, true) => " Closure: the field's curvature acting on the exact second moments of its linearisation.",
            (Drawn::Bounds, true) => " Published bounds that speak of this quantity round by round are drawn where their conditions hold.",
            (Drawn::Bounds, false) => " The conditions of no published bound hold; the table of bounds says which fail.",
            _ => "",
        });
    }
    for kind in asked {
        let without = |c: &&CellResult<'_>| {
            let mut each = predictions(*kind).iter();
            each.find_map(|by| theory.too_costly(&c.cell.id, *by))
        };
        let costs: Vec<Cost> = cells.iter().filter_map(without).collect();
        if let Some(most) = costs.iter().copied().reduce(Cost::most) {
            let kind = match kind {
                Drawn::Bounds => "published bound",
                kind => predictions(*kind).first().map_or("", |by| legend(*by)),
            };
            let count = costs.len();
            out.push_str(&format!(
                " Not computed at this size, of {count} of {} cells: \"{kind}\" ({most}).",
                cells.len()
            ));
        }
    }
    out
}
