//! `[[figure.convergence]]`: a curve for each cell of a quantity over a cost.

use super::kind::{FigureOf, TheoryKind};
use super::line_figure::LineFigure;
use crate::scene::figure::{Band, Scale, XAxis};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One quantity or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantities {
    /// A quantity.
    One(Quantity),
    /// A list of quantities.
    Several(Vec<Quantity>),
}

impl Default for Quantities {
    fn default() -> Self {
        Self::One(Quantity::default())
    }
}

impl Quantities {
    /// All quantities, in the order of the text: at least one, in a plan.
    fn all(&self) -> &[Quantity] {
        match self {
            Self::One(quantity) => std::slice::from_ref(quantity),
            Self::Several(quantities) => quantities,
        }
    }
}

/// A curve for each cell, of a quantity over the costs of a run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ConvergenceKeys {
    /// The quantity that is drawn, if it is recorded. A list has a panel for each of its quantities,
    /// which share a y axis: all are fractions of which more is better, such as accuracies, or all
    /// losses of records, or all squared distances.
    pub y: Quantities,
    /// The quantity on the x axis, if it is recorded.
    pub x: Quantity,
    /// The band around a mean.
    pub band: Band,
    /// Predictions that are drawn with the curves.
    pub theory: Vec<TheoryKind>,
    /// Scale of the x axis.
    pub scale_x: Scale,
}

impl Default for ConvergenceKeys {
    fn default() -> Self {
        Self {
            y: Quantities::default(),
            x: Quantity::Communications,
            band: Band::default(),
            theory: Vec::new(),
            scale_x: Scale::default(),
        }
    }
}

impl KindKeys<FigureKeys> for ConvergenceKeys {
    const DEFAULT_QUANTITY_KEY: Option<&'static str> = Some("y");

    /// Notes what is wrong with the table: the quantities on both axes must be recorded, and predictions need θ*.
    fn check(figure: &FigureOf<Self>, table: &mut Checker<'_>) {
        table.quantity("x", figure.x);
        match &figure.y {
            Quantities::One(y) => table.quantity("y", *y),
            Quantities::Several(all) => check_several(all, table),
        }
        table.predictions("theory", !figure.theory.is_empty());
        let message = "`theory` needs a figure of one quantity: write one table for each";
        table.require(figure.theory.is_empty() || figure.y.all().len() < 2, "theory", message);
    }
}

/// Notes what is wrong with a list of quantities on the y axis: it must not be empty, and its quantities must be
/// recorded, differ, and fit on one axis.
fn check_several(all: &[Quantity], table: &mut Checker<'_>) {
    let Some((first, others)) = all.split_first() else {
        return table.fault("y", "`y` needs at least one quantity");
    };
    table.distinct("y", all.iter().map(|quantity| quantity.name()));
    table.listed_quantities("y", all);
    let unit = first.axis_unit();
    for (i, other) in others.iter().enumerate() {
        if other != first && (unit.is_none() || other.axis_unit() != unit) {
            let message = format!(
                "`{}` does not fit on the y axis of `{}`, which all panels share: write a figure of its own",
                other.name(),
                first.name()
            );
            let fitting: Vec<&str> = Quantity::known()
                .filter(|one| unit.is_some() && one.axis_unit() == unit)
                .map(|one| one.name())
                .collect();
            table.note(&format!("y.{}", i + 1), message, |d| {
                if fitting.is_empty() { d } else { d.allowing(fitting.join(", ")) }
            });
        }
    }
}

/// The figure of lines that a table `[[figure.convergence]]` asks for: each cell is a curve of a quantity over a
/// cost, round by round, in a panel for each quantity.
pub fn over_costs(figure: &FigureOf<ConvergenceKeys>) -> LineFigure<'_> {
    LineFigure {
        common: &figure.common,
        x: XAxis::Rounds(figure.x),
        y: figure.y.all(),
        at: None,
        band: figure.band,
        theory: &figure.theory,
        scale_x: figure.scale_x,
        slope: None,
    }
}
