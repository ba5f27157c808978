//! A figure of a kind that only the tests of this crate have. Its file and its row in `kinds!` are all
//! that it needs: were there a second place, this test would not compile or would fail.

use super::Figures;
use super::kind::{DrawnFrom, FigureOf};
use super::line_figure::LineFigure;
use crate::needs::Needs;
use crate::predictions::{MomentsCache, Theory};
use crate::ranking::Rankings;
use crate::scene::figure::{Band, Body, Scale, XAxis};
use crate::simulated;
use crate::wrong::{self, Mutation};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::{Checker, KindKeys};
use exactfed_runner::runner::prepare;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::HashSet;

/// A curve for each algorithm, of an error at the last round over the number of clients.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct DummyFigureKeys {
    /// The quantity that is drawn, if it is recorded.
    pub y: Quantity,
}

/// The setting on the x axis.
const CLIENTS: &str = "clients";

impl KindKeys<FigureKeys> for DummyFigureKeys {
    const DEFAULT_QUANTITY_KEY: Option<&'static str> = Some("y");

    /// Notes a table whose cells do not differ in the number of clients, or whose quantity is not recorded.
    fn check(figure: &FigureOf<Self>, table: &mut Checker<'_>) {
        table.axis_of_numbers("", CLIENTS);
        table.quantity("y", figure.y);
    }
}

/// The figure of lines that a table `[[figure.dummy]]` asks for: each cell is a point of a curve over the number of
/// clients.
pub fn over_clients(figure: &FigureOf<DummyFigureKeys>) -> LineFigure<'_> {
    LineFigure {
        common: &figure.common,
        x: XAxis::Cells(CLIENTS.to_owned()),
        y: std::slice::from_ref(&figure.y),
        at: None,
        band: Band::Ci95,
        theory: &[],
        scale_x: Scale::Log,
        slope: Some(-1.0),
    }
}

#[test]
fn one_row_registers_a_figure() {
    let manifest = wrong::manifest(3, "2").replace("clients = 4", "clients = [2, 4]");
    let plan = simulated::plan(manifest + "[[figure.dummy]]\n");
    let prepared = prepare(&plan.folder(), &plan.cells.iter().collect::<Vec<_>>()).unwrap();
    let cells = simulated::results(&prepared, &Needs::of_plan(&plan), Mutation::None);
    let theory = Theory::new(&prepared, &HashSet::new(), MomentsCache::Off);
    let rankings = Rankings::new(std::iter::empty());
    let from = DrawnFrom { theory: &theory, rankings: &rankings, frontiers: &[] };
    let drawn = Figures::new(&plan, &cells).draw(&plan, &cells, &from);
    let [figure] = &drawn[..] else { panic!("{drawn:?}") };
    let Body::Plot(plot) = &figure.body else { panic!("{figure:?}") };
    let points = plot.panels[0].series.iter().map(|series| series.points.len());
    assert_eq!(figure.id, "dummy");
    assert_eq!(
        points.collect::<Vec<_>>(),
        [2, 2],
        "two algorithms, each at two numbers of clients"
    );
}

/// The schema has the kind, from which the reference of manifests is written.
#[test]
fn a_registered_figure_is_in_the_schema() {
    let figures = &crate::KINDS.schema()["$defs"]["FigureTables"]["properties"];
    assert!(figures["dummy"].is_object(), "{figures}");
}
