//! How predictions are drawn: which they are, their pattern, what legends and captions
//! say of them.

use super::theory::Theory;
use super::{Panel, Result, Role};
use crate::manifest::claim::Prediction;
use crate::manifest::figure::Theory as Drawn;
use crate::theory::cost::Cost;

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

/// The pattern of a kind of line.
pub fn pattern(kind: Drawn) -> usize {
    kind as usize
}

/// What the legend calls the kind of line of a pattern.
pub fn name(of: usize) -> &'static str {
    let kinds = [
        Drawn::ExactBias,
        Drawn::ExactMoments,
        Drawn::FirstOrder,
        Drawn::SecondOrder,
        Drawn::Closure,
        Drawn::Bounds,
    ];
    kinds.into_iter().find(|kind| pattern(*kind) == of).map_or("", legend)
}

/// What the legend calls a kind of line.
pub fn legend(kind: Drawn) -> &'static str {
    match kind {
        Drawn::ExactBias => "exact bias, squared",
        Drawn::ExactMoments => "infinite replicates (exact)",
        Drawn::FirstOrder => "first order",
        Drawn::SecondOrder => "and the term after it",
        Drawn::Closure => "closure",
        Drawn::Bounds => "published bound",
    }
}

/// What a caption says of the predictions beside a figure's curves.
pub fn caption(
    asked: &[Drawn],
    panels: &[Panel],
    cells: &[&Result<'_>],
    theory: &Theory<'_>,
) -> String {
    let there = |kind: Drawn| {
        let mut series = panels.iter().flat_map(|p| &p.series);
        series.any(|s| s.role == Role::Theory && s.style.dash == pattern(kind))
    };
    let mut out = String::new();
    for kind in asked {
        out.push_str(match (kind, there(*kind)) {
            (Drawn::ExactBias, true) => " Dotted: the squared exact bias of the curve of that colour (SCAFFLSA Thm 4.1), where it is not far below the panel.",
            (Drawn::ExactMoments, true) => " Grey: what infinitely many runs would give, by exact second moments.",
            (Drawn::FirstOrder, true) => " First order: (γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[X] with A X + X Aᵀ = C (RR Thm 4 with the signs that hold; without b_h for Scaffold).",
            (Drawn::SecondOrder, true) => " The term after it is not divided by N: the clients' own variance within a round.",
            (Drawn::Closure, true) => " Closure: the field's curvature acting on the exact second moments of its linearisation.",
            (Drawn::Bounds, true) => " Published bounds are drawn where their conditions hold.",
            (Drawn::Bounds, false) => " The conditions of no published bound hold; the table of bounds says which fail.",
            _ => "",
        });
    }
    for kind in asked {
        let without = |c: &&Result<'_>| {
            let mut each = predictions(*kind).iter();
            each.find_map(|by| theory.too_costly(&c.cell.id, *by))
        };
        let costs: Vec<Cost> = cells.iter().filter_map(without).collect();
        if let Some(most) = costs.iter().copied().reduce(Cost::most) {
            let (count, kind) = (costs.len(), legend(*kind));
            out.push_str(&format!(
                " Not computed at this size, of {count} of {} cells: \"{kind}\" ({most}).",
                cells.len()
            ));
        }
    }
    out
}
