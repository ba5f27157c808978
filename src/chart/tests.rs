//! Properties of every chart.

use super::axis::Axis;
use super::drawing::FINE;
use super::layout::{PAGE, PanelArea, PanelLayout, TITLE};
use super::panel::stretches;
use super::style;
use crate::evidence::{
    Body, Color, Curve, CurveSetting, CurveValue, Figure, LabelledPoint, LegendEntry, Line, Panel,
    Plot, Point, Scale, Series, Style,
};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::plan::Setting;

/// A point of a sample of 3, with a band from half to twice its value.
fn at(x: f64, y: f64) -> Point {
    Point { low: y / 2.0, high: y * 2.0, n: 3, ..Point::bare(x, y) }
}

fn measured(name: &str, style: Style, points: Vec<Point>) -> Series {
    Series::new(Line::Measured(Curve::new(name, style)), points)
}

/// A figure of these panels, with the legend of the first.
pub fn figure_of(panels: Vec<Panel>) -> Figure {
    let lines = panels.first().into_iter().flat_map(|panel| &panel.series);
    let legend = lines.map(|series| LegendEntry::Line(series.line.clone())).collect();
    let plot = Plot {
        panels,
        legend,
        x: "x".into(),
        y: "y".into(),
        scale_x: Scale::Linear,
        scale_y: Scale::Log,
        labels: CurveValue::last(Scale::Log),
    };
    Figure::plain("test".into(), "<script>".into(), String::new(), 1, Body::Plot(plot))
}

fn one_panel(series: Vec<Series>) -> Figure {
    figure_of(vec![Panel { title: "one".into(), series }])
}

/// A figure of one curve.
fn figure(points: Vec<Point>) -> Figure {
    one_panel(vec![measured("a < b", Style::solid(Color::Palette(0)), points)])
}

fn svg(figure: &Figure) -> String {
    super::svg(figure, PAGE).unwrap()
}

/// What stands between a mark and the next quotation mark.
fn after<'s>(svg: &'s str, mark: &str) -> &'s str {
    svg.split_once(mark).unwrap().1.split('"').next().unwrap()
}

/// The points of each line of a path, whose coordinates after the first are relative.
fn paths(commands: &str) -> Vec<Vec<[f64; 2]>> {
    let mut lines = Vec::new();
    for line in commands.split('M').skip(1) {
        let numbers = line.replace('-', " -").replace(['l', 'z'], " ");
        let steps: Vec<f64> = numbers.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let mut points = Vec::new();
        let mut place = [0.0, 0.0];
        for step in steps.chunks(2) {
            place = [place[0] + step[0], place[1] + step[1]];
            points.push(place);
        }
        lines.push(points);
    }
    lines
}

#[test]
fn points_that_cannot_be_drawn_interrupt_curves() {
    let x = Axis::over(Scale::Linear, [0.0, 10.0].into_iter(), 0.0);
    let y = Axis::over(Scale::Log, [0.1, 10.0].into_iter(), 0.0);
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
    let svg = svg(&figure(points));
    let is_curve = |l: &&str| l.starts_with("<path fill=\"none\"") && l.contains("#0072B2");
    let curve = svg.lines().find(is_curve).unwrap();
    let lines: Vec<Vec<[f64; 2]>> = paths(after(curve, " d=\""));
    assert_eq!(lines.len(), 5, "five stretches: {lines:?}");
    let area: Vec<u32> =
        after(&svg, "data-area=\"").split(' ').map(|v| v.parse().unwrap()).collect();
    let top = area[1] - TITLE;
    let edges = [top * FINE, (top + area[3]) * FINE].map(f64::from);
    for [x, y] in lines.concat() {
        assert!(y > edges[0] && y < edges[1], "{x},{y} is on the edge {edges:?}");
    }
}

#[test]
fn text_is_escaped_and_series_are_layers() {
    let svg = svg(&figure(vec![at(0.0, 1.0), at(1.0, 2.0)]));
    assert!(svg.contains("<title>&lt;script&gt;</title>") && !svg.contains("<script>"));
    assert!(svg.contains("<g class=\"series measured\" data-label=\"a &lt; b\""));
    let labels = svg.split("<g class=\"labels\">").nth(1).unwrap();
    assert!(labels.contains("<g class=\"key\" data-label=\"a &lt; b\""));
    assert!(!svg.contains("class=\"legend\""), "a curve with a label is in no legend");
}

#[test]
fn an_empty_figure_is_drawn_empty() {
    let svg = svg(&figure(Vec::new()));
    assert!(svg.contains("</svg>"));
    assert!(!svg.contains("NaN"));
}

/// A whole small drawing: an interrupted curve, its band, markers, axes and legend.
#[test]
fn a_small_figure_as_svg() {
    let mut points: Vec<Point> = (0..5).map(|i| at(f64::from(i), 1.0 + f64::from(i))).collect();
    points[2].y = f64::NAN;
    insta::assert_snapshot!("small_svg", svg(&figure(points)));
}

/// A figure of panels with a curve each, which end at these values.
fn panels(count: usize, ends: &[f64]) -> Figure {
    let mut series = Vec::new();
    for (i, end) in ends.iter().enumerate() {
        let style = Style { marker: i, ..Style::solid(Color::of_family(i)) };
        let points = vec![at(0.0, 1.0), at(1.0, *end)];
        series.push(measured(&format!("algorithm {i}"), style, points));
    }
    let panels = (0..count).map(|i| Panel { title: format!("panel {i}"), series: series.clone() });
    Figure { columns: 4, ..figure_of(panels.collect()) }
}

/// The panels of a drawing do not overlap, and fill its width.
#[test]
fn panels_stand_apart() {
    for (count, large) in
        [(1, None), (2, None), (4, Some(2)), (5, Some(0)), (9, Some(8)), (12, None)]
    {
        for width in [330, 620, PAGE] {
            let figure = Figure { large, ..panels(count, &[0.1]) };
            let PanelLayout { areas: all, height } = PanelLayout::new(&figure, width);
            assert_eq!(all.len(), count);
            for (i, a) in all.iter().enumerate() {
                assert!(a.x + a.wide <= width && a.y + TITLE + a.high <= height, "{a:?}");
                assert_eq!(a.is_large, count == 1 || large == Some(i));
                let apart = |b: &PanelArea| {
                    a.x + a.wide <= b.x
                        || b.x + b.wide <= a.x
                        || a.y + TITLE + a.high <= b.y
                        || b.y + TITLE + b.high <= a.y
                };
                assert!(all.iter().skip(i + 1).all(apart), "{count} {large:?} {width}: {all:?}");
            }
            assert!(all.iter().any(|a| a.x + a.wide + 4 >= width), "{width}: {all:?}");
        }
    }
}

/// The places of the names in a drawing, top to bottom.
fn name_places(svg: &str) -> Vec<f64> {
    let labels = svg.split("<g class=\"labels\">").nth(1).unwrap();
    let y = |part: &str| part.split("y=\"").nth(1)?.split('"').next()?.parse().ok();
    labels.split("<text x=").skip(1).filter(|t| t.contains("bold")).filter_map(y).collect()
}

#[test]
fn labels_do_not_overlap_and_say_the_value() {
    let ends: Vec<f64> = (0..8).map(|i| 0.1 * (1.0 + 0.05 * f64::from(i))).collect();
    let svg = svg(&panels(1, &ends));
    let places = name_places(&svg);
    assert_eq!(places.len(), 8);
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 14.9), "{places:?}");
    assert!(svg.contains("0.135, 1.4× algorithm 0") && svg.contains("0.100, lowest"), "{svg}");
    assert!(svg.contains("class=\"leader\""));
}

/// Fractions, which are on linear axes, are not compared by ratios.
#[test]
fn labels_on_a_linear_axis_say_the_value_alone() {
    let mut figure = panels(1, &[0.5, 0.9]);
    let Body::Plot(plot) = &mut figure.body else { panic!() };
    plot.scale_y = Scale::Linear;
    plot.labels = CurveValue::last(Scale::Linear);
    let svg = svg(&figure);
    assert!(svg.contains("0.500") && svg.contains("0.900"), "{svg}");
    assert!(!svg.contains("lowest") && !svg.contains('×'), "{svg}");
}

/// Curves on top of each other share a label, and the lower one is wider.
#[test]
fn curves_that_coincide_are_named_together() {
    let svg = svg(&panels(1, &[0.1, 0.1, 0.9]));
    assert_eq!(name_places(&svg).len(), 2);
    assert!(svg.contains(">both</text>"), "{svg}");
    let width = |i: usize| {
        let part = svg.split(&format!("data-label=\"algorithm {i}\"")).nth(1).unwrap();
        after(part.split("<path fill=\"none\"").nth(1).unwrap(), "stroke-width=\"").to_owned()
    };
    assert_eq!([width(0), width(1)], ["16", "8"]);
}

/// Where labels have no room, a legend names the curves.
#[test]
fn without_room_for_labels_there_is_a_legend() {
    let ends: Vec<f64> = (0..20).map(|i| 0.1 * (1.0 + f64::from(i))).collect();
    let svg = svg(&Figure { columns: 4, ..panels(12, &ends) });
    assert_eq!(svg.matches("<g class=\"key\"").count(), 20);
    assert!(svg.contains("<g class=\"legend\""));
}

/// A curve of an algorithm under this H, which ends at a value.
fn ending(algorithm: &str, steps: Option<f64>, marker: usize, end: f64) -> Series {
    let style = Style { marker, ..Style::solid(Color::of_family(marker)) };
    let setting = |h: f64| CurveSetting {
        name: "local-steps".into(),
        value: Setting::Number(h),
        text: format!("H = {h}"),
    };
    let settings = steps.into_iter().map(setting).collect();
    let curve = Curve { settings, ..Curve::new(algorithm, style) };
    Series::new(Line::Measured(curve), vec![at(0.0, 1.0), at(1.0, end)])
}

/// The drawing of one panel of these.
fn drawn(series: Vec<Series>) -> String {
    svg(&one_panel(series))
}

/// The second lines of the labels in a drawing, which say values, sorted as texts.
fn values(svg: &str) -> Vec<&str> {
    let all = svg.split("<text class=\"value\"").skip(1);
    let mut all: Vec<&str> = all.filter_map(|part| part.split(['<', '>']).nth(1)).collect();
    all.sort_unstable();
    all
}

#[test]
fn curves_are_compared_with_other_algorithms_under_their_settings() {
    let svg = drawn(vec![
        ending("A", Some(1.0), 0, 1.0),
        ending("B", Some(1.0), 1, 0.5),
        ending("A", Some(10.0), 2, 8.0),
        ending("B", Some(10.0), 3, 0.1),
        ending("C", None, 4, 0.2),
    ]);
    let wanted = ["0.100, lowest", "0.200, 2.0× B, H = 10", "0.500", "1, 2.0× B", "8, 80× B"];
    assert_eq!(values(&svg), wanted);
}

#[test]
fn there_is_no_lowest_of_one_curve_and_no_ratio_to_rounding_errors() {
    let one = [("A", 0.25), ("B", 0.25)].map(|(name, end)| ending(name, None, 0, end));
    assert_eq!(values(&drawn(one.to_vec())), ["0.250"]);
    let far = [("A", 0.25), ("B", 1e-9)].map(|(name, end)| ending(name, None, 0, end));
    assert_eq!(values(&drawn(far.to_vec())), ["0.250", "1.00·10⁻⁹, lowest"]);
}

/// Curves that coincide say the smallest and the largest of their values, with as many digits as
/// another, so that the number next to the word is the lowest.
#[test]
fn a_joined_label_does_not_read_as_less_than_the_lowest() {
    let ends = |values: [f64; 3]| {
        let named = ["FedAvg", "Scaffold", "Richardson-Romberg"].into_iter().zip(values);
        named.enumerate().map(|(i, (name, end))| ending(name, None, i, end)).collect()
    };
    let apart = |values| self::values(&drawn(ends(values))).join(" | ");
    assert_eq!(apart([0.6239, 0.6241, 0.55]), "0.550, lowest | 0.624, 1.1× Richardson-Romberg");
    let range = "0.620 to 0.624, FedAvg lowest | 0.700, 1.1× FedAvg";
    assert_eq!(apart([0.62, 0.624, 0.7]), range);
    // A whole number has all of its digits, so that three of 1004.6 would read as less.
    let range = "1 003 to 1 005, FedAvg lowest | 1 503, 1.5× FedAvg";
    assert_eq!(apart([1003.0, 1503.0, 1004.6]), range);
}

/// Over instances labels compare geometric means, as the ranking does, and say so where the order of
/// the drawn means is another.
#[test]
fn labels_over_instances_compare_geometric_means() {
    let end = |name, family, y, geometric| {
        let style = Style::solid(Color::of_family(family));
        let last = Point { geometric, ..at(1.0, y) };
        measured(name, style, vec![Point { geometric: 1.0, ..at(0.0, 1.0) }, last])
    };
    let svg = drawn(vec![end("A", 0, 0.9, 0.74), end("B", 1, 0.1, 0.1)]);
    assert_eq!(values(&svg), ["0.100, lowest", "0.900, 7.4× B"]);
    let svg = drawn(vec![end("A", 0, 0.2, 0.15), end("B", 1, 0.25, 0.1)]);
    assert_eq!(values(&svg), ["0.200, 1.5× B", "0.250, lowest geometric mean"]);
}

#[test]
fn values_that_are_zero_to_rounding_have_no_ratio() {
    let curves =
        vec![ending("A", None, 0, 4e-33), ending("B", None, 1, 3e-30), ending("C", None, 2, 0.5)];
    let labels = CurveValue { zero_below: 1e-28, ..CurveValue::last(Scale::Log) };
    let svg = labelled(curves, "x", labels);
    let wanted = ["0.500", "3.00·10⁻³⁰, zero to rounding", "4.00·10⁻³³, zero to rounding"];
    assert_eq!(values(&svg), wanted);
}

/// The drawing of one panel of these, whose labels say the values at these points.
fn labelled(series: Vec<Series>, x: &str, labels: CurveValue) -> String {
    let mut figure = one_panel(series);
    let Body::Plot(plot) = &mut figure.body else { unreachable!("a figure of curves") };
    plot.x = x.to_owned();
    plot.scale_x = Scale::Log;
    plot.labels = labels;
    svg(&figure)
}

/// A curve through these points.
fn through(algorithm: &str, family: usize, points: &[(f64, f64)]) -> Series {
    let points = points.iter().map(|(x, y)| at(*x, *y)).collect();
    measured(algorithm, Style::solid(Color::of_family(family)), points)
}

/// The order at the largest step size is not that of the selected ones.
#[test]
fn a_tuned_curve_is_labelled_with_its_selected_point() {
    let with_ring = |series: Series, at: usize| {
        let curve = series.line.curve().unwrap().clone();
        let ring = Series::new(Line::Selected(curve), vec![series.points[at]]);
        [series, ring]
    };
    let curves = [
        with_ring(through("Scaffold", 0, &[(0.01, 0.5), (0.0316227766, 1e-4), (1.0, 2.87)]), 1),
        with_ring(through("mini-batch SGD", 1, &[(0.01, 0.9), (0.1, 0.3), (1.0, 7.64e-3)]), 2),
    ];
    let mut all = curves.concat();
    // None of its candidates was selected, and runs of another's diverged.
    all.push(through("FedAvg", 2, &[(0.01, 0.7), (1.0, 0.8)]));
    all[0].diverged = 3;
    let labels = CurveValue {
        at: LabelledPoint::Selected,
        is_ranked: false,
        ..CurveValue::last(Scale::Log)
    };
    let svg = labelled(all, "γ", labels);
    let wanted = ["1.00·10⁻⁴ at γ = 0.0316", "7.64·10⁻³ at γ = 1", "none selected"];
    assert_eq!(values(&svg), wanted);
}

/// Communications are whole. A curve that ends at a looser target is compared with none.
#[test]
fn a_curve_of_a_frontier_is_labelled_at_its_tightest_target() {
    let curves = || {
        vec![
            through("SGD", 0, &[(0.003, 244_071.0), (0.3, 24.0)]),
            through("Scaffold", 1, &[(0.003, 8.0), (0.3, 3.0)]),
            through("mini-batch SGD", 3, &[(0.003, 8.0), (0.3, 5.0)]),
            through("FedAvg", 2, &[(0.01, 7.0), (0.3, 2.0)]),
        ]
    };
    let tightest =
        |is_ranked| CurveValue { at: LabelledPoint::Tightest, is_ranked, zero_below: 0.0 };
    let svg = labelled(curves(), "ε", tightest(true));
    let lowest = "8 at ε = 0.003, lowest";
    let wanted = ["244 071 at ε = 0.003, 31 000× Scaffold", "7 at ε = 0.01", lowest, lowest];
    assert_eq!(values(&svg), wanted);
    let svg = labelled(curves(), "ε", tightest(false));
    let eight = "8 at ε = 0.003";
    assert_eq!(values(&svg), ["244 071 at ε = 0.003", "7 at ε = 0.01", eight, eight]);
}

/// At the right end of a profile every curve is at 1.
#[test]
fn a_profile_is_labelled_with_the_share_on_which_an_algorithm_is_best() {
    let curves = vec![
        through("A", 0, &[(1.0, 0.65), (8.0, 1.0)]),
        through("B", 1, &[(1.0, 0.35), (8.0, 1.0)]),
    ];
    let svg = labelled(
        curves,
        "factor",
        CurveValue { at: LabelledPoint::Best, is_ranked: false, zero_below: 0.0 },
    );
    assert_eq!(values(&svg), ["best or tied on 35 %", "best or tied on 65 %"]);
}

/// The name next to a line has its colour, also where a family has several lines.
#[test]
fn a_label_has_the_colour_of_its_curve() {
    let tones = [1, 2, 3].map(|tone| {
        let style = Style::solid(Color::tone(6, tone));
        measured(&format!("SGD {tone}"), style, vec![at(0.0, 1.0), at(1.0, tone as f64)])
    });
    let svg = drawn(tones.to_vec());
    for label in svg.split("<g class=\"key\"").skip(1) {
        let index = after(label, "data-color=\"").parse().unwrap();
        let fill = after(label.split("class=\"name\"").nth(1).unwrap(), "fill=\"");
        assert_eq!(fill, style::hex(style::ink(Color::Palette(index))[0]));
        assert_eq!(fill, style::hex(style::PALETTE[index]), "{label}");
    }
}

/// Curves of two families on one another: the lower is wide, the upper dashed.
#[test]
fn both_colours_of_curves_that_coincide_are_seen() {
    let dashes = |families: [usize; 2]| {
        let svg = drawn(families.map(|f| ending(&format!("A{f}"), None, f, 0.5)).to_vec());
        svg.matches("<path stroke-dasharray").count()
    };
    assert_eq!([dashes([0, 2]), dashes([1, 1])], [1, 0]);
}

/// A prediction that ends far from every curve has a label, and its legend an entry only where it
/// is drawn.
#[test]
fn predictions_are_named_where_they_are_drawn() {
    let with = |end: f64| {
        let curve = ending("A", None, 0, 0.5);
        let Line::Measured(own) = curve.line.clone() else { unreachable!("a curve") };
        let line = Line::Predicted(own, Prediction::ExactBias);
        let flat = Series::new(line, vec![Point::bare(0.0, end), Point::bare(1.0, end)]);
        drawn(vec![curve, flat])
    };
    let far = with(0.05);
    let near = with(0.49);
    let outside = with(1e-6);
    assert!(far.contains(">exact bias</text>") && !near.contains(">exact bias</text>"), "{far}");
    // A line of one height has no marks.
    let theory = far.split("series theory").nth(1).unwrap().split("</g>").next().unwrap();
    let is_line = theory.contains("<path fill=\"none\"") && !theory.contains("<path fill=\"#");
    assert!(is_line, "{theory}");
    let outside = outside.split("series theory").nth(1).unwrap().split("</g>").next().unwrap();
    assert!(!outside.contains("<path"), "{outside}");
}

/// The style sheet paints what is filled in the colour of its curve, but for the holes of open markers, which it finds
/// by the colour that drawings give them.
#[test]
fn holes_of_open_markers_are_no_part_of_their_curve() {
    let curve = ending("A", None, 0, 0.5);
    let Line::Measured(own) = curve.line.clone() else { unreachable!("a curve") };
    let points = [(0.0, 1.0), (0.5, 0.8), (1.0, 0.6)].map(|(x, y)| Point::bare(x, y));
    let prediction = Series::new(Line::Predicted(own, Prediction::ExactBias), points.to_vec());
    let svg = drawn(vec![curve, prediction]);
    let theory = svg.split("series theory").nth(1).unwrap().split("</g>").next().unwrap();
    assert_eq!(theory.matches("<path fill=\"#FFFFFF\"").count(), 3, "{theory}");
    let sheet = include_str!("../../templates/figure.css");
    let curves = sheet.find("[data-color] path[fill^=\"#\"] { fill: var(--c);").unwrap();
    let holes = "[data-color] :is(.hole, path[fill=\"#FFFFFF\"]) { fill: var(--paper); }";
    // Both rules have the same specificity, so that the later one holds.
    assert!(sheet.find(holes).unwrap() > curves);
}
