//! Properties of every chart.

use super::panel::stretches;
use super::*;
use crate::analysis::{Color, Curve, Line, Panel, Plot, Point, Scale, Series, Style};

fn at(x: f64, y: f64) -> Point {
    Point { x, y, low: y / 2.0, high: y * 2.0, n: 3 }
}

fn figure(points: Vec<Point>) -> Figure {
    let curve = Curve::new("a < b", Style::solid(Color::Palette(0)));
    let series = Series::new(Line::Measured(curve.clone()), points);
    Figure {
        id: "test".into(),
        title: "<script>".into(),
        caption: String::new(),
        columns: 1,
        large: None,
        exploration: None,
        body: Body::Plot(Plot {
            panels: vec![Panel { title: "one".into(), series: vec![series] }],
            legend: vec![LegendEntry::Line(Line::Measured(curve))],
            x: "x".into(),
            y: "y".into(),
            scale_x: Scale::Linear,
            scale_y: Scale::Log,
        }),
    }
}

#[test]
fn points_that_cannot_be_drawn_interrupt_curves() {
    let (x, y) = (
        Axis::over(Scale::Linear, [0.0, 10.0].into_iter(), 0.0),
        Axis::over(Scale::Log, [0.1, 10.0].into_iter(), 0.0),
    );
    let points = [
        at(0.0, 1.0),
        at(1.0, f64::NAN),
        at(2.0, 1.0),
        at(3.0, 2.0),
        at(4.0, 0.0),
        at(5.0, 1e9),
        at(6.0, 5.0),
    ];
    let lengths: Vec<usize> = stretches(&points, x, y).iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 2, 1]);
}

/// Plotters clamps to the axis: points that are omitted must not reappear as a line along the
/// panel's edge.
#[test]
fn no_curve_touches_the_edge_of_the_panel() {
    let mut points: Vec<Point> = (0..20).map(|i| at(f64::from(i), 1.0 + f64::from(i))).collect();
    for (i, y) in [(4, 0.0), (9, f64::NAN), (12, f64::INFINITY), (15, -3.0)] {
        points[i].y = y;
    }
    let svg = svg(&figure(points)).unwrap();
    let lines: Vec<&str> =
        svg.lines().filter(|l| l.contains("<polyline") && l.contains("#0072B2")).collect();
    assert_eq!(lines.len(), 5, "five stretches: {lines:?}");
    let high = Size { wide: 620, high: 360 }.high;
    let edges = [6 * FINE, (high - 6 - 36) * FINE];
    for line in lines {
        let points = line.split("points=\"").nth(1).and_then(|l| l.split('"').next()).unwrap();
        for point in points.split_whitespace() {
            let y: u32 = point.split(',').nth(1).unwrap().parse().unwrap();
            assert!(y > edges[0] && y < edges[1], "{point} is on the edge {edges:?}");
        }
    }
}

#[test]
fn text_is_escaped_and_series_are_layers() {
    let svg = svg(&figure(vec![at(0.0, 1.0), at(1.0, 2.0)])).unwrap();
    assert!(svg.contains("<title>&lt;script&gt;</title>") && !svg.contains("<script>"));
    assert!(svg.contains("<g class=\"series measured\" data-label=\"a &lt; b\""));
    assert!(svg.contains("<g class=\"key\" data-label=\"a &lt; b\""));
}

#[test]
fn an_empty_figure_is_drawn_empty() {
    let svg = svg(&figure(Vec::new())).unwrap();
    assert!(svg.contains("</svg>"));
    assert!(!svg.contains("NaN"));
}

/// A whole small drawing: an interrupted curve, its band, markers, axes and legend.
#[test]
fn a_small_figure_as_svg() {
    let mut points: Vec<Point> = (0..5).map(|i| at(f64::from(i), 1.0 + f64::from(i))).collect();
    points[2].y = f64::NAN;
    insta::assert_snapshot!("small_svg", svg(&figure(points)).unwrap());
}
