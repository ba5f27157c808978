//! Figures of curves for `pgfplots`: a group of panels that share their y axis.
//!
//! *Invariant*: it draws what the SVG draws: curves end where they are not finite or leave the
//! panel, bands are clipped at its edge.

use super::escape::text;
use super::{color_name, entries};
use crate::analysis::{
    self, Body, Dash, Figure, LegendEntry, Line, Panel, Point, Scale, Series, Style,
};
use crate::chart;
use std::fmt::Write;

/// Width of all panels of a row together, and height of one, in centimetres.
const WIDE: f64 = 15.0;

/// Markers along a curve, about.
const MARKED: usize = 8;

/// Dash patterns of measured curves, and the thin ones.
const DASHES: [&str; analysis::DASHES] = ["solid", "dashed", "densely dotted", "dash dot"];
const THIN_DASHES: [&str; analysis::THIN_DASHES] = [
    "dash pattern=on 1pt off 1.6pt",
    "dash pattern=on 3.5pt off 1.4pt",
    "dash pattern=on 5pt off 1.6pt on 1pt off 1.6pt",
    "dash pattern=on 2pt off 2pt",
    "dash pattern=on 0.6pt off 1.2pt",
    "dash pattern=on 7pt off 2.4pt",
    "dash pattern=on 7pt off 2pt on 2pt off 2pt",
    "dash pattern=on 7pt off 2pt on 1pt off 2pt on 1pt off 2pt",
    "dash pattern=on 4pt off 1.4pt on 1.4pt off 1.4pt",
    "dash pattern=on 9pt off 1.4pt",
    "dash pattern=on 3pt off 1.4pt on 0.7pt off 1.4pt",
    "dash pattern=on 1.4pt off 3.5pt",
    "dash pattern=on 5pt off 3.5pt",
    "dash pattern=on 1pt off 3pt",
];
/// Markers of pgfplots, and by how many degrees they are turned.
const MARKERS: [(&str, u32); analysis::MARKERS] = [
    ("*", 0),
    ("square*", 0),
    ("triangle*", 0),
    ("diamond*", 0),
    ("triangle*", 180),
    ("10-pointed star", 0),
    ("pentagon*", 0),
    ("x", 0),
    ("triangle*", 270),
    ("+", 0),
    ("triangle*", 90),
    ("oplus*", 0),
    ("Mercedes star", 0),
    ("asterisk", 0),
    ("Mercedes star flipped", 0),
    ("otimes*", 0),
];

pub fn draw(figure: &Figure) -> String {
    let Body::Plot(plot) = &figure.body else { return String::new() };
    let (panels, legend, scale_x, scale_y) =
        (&plot.panels, &plot.legend, plot.scale_x, plot.scale_y);
    let columns = figure.columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns);
    let wide =
        if columns == 1 { 9.0 } else { (WIDE - 0.35 * (columns - 1) as f64) / columns as f64 };
    let high = (0.68 * wide).max(3.2);
    let mode = |scale: Scale| if scale == Scale::Log { "log" } else { "linear" };
    let (low, top) = chart::extent(figure).unwrap_or((1.0, 10.0));
    let mut out = format!(
        "\\begin{{tikzpicture}}\n\\begin{{groupplot}}[\n  group style={{group size={columns} by {rows}, horizontal sep=0.35cm, vertical sep=1.7cm, yticklabels at=edge left, ylabels at=edge left}},\n  scale only axis, width={wide:.2}cm, height={high:.2}cm,\n  xmode={}, ymode={}, ymin={}, ymax={},\n  xlabel={{{}}}, ylabel={{{}}},\n  tick label style={{font=\\scriptsize}}, label style={{font=\\footnotesize}}, title style={{font=\\footnotesize, yshift=-0.8ex}},\n  grid=major, grid style={{black!12}}, tick align=outside, tick pos=left, axis line style={{black!50}},\n  every axis plot/.append style={{line join=round}},\n{}]\n",
        mode(scale_x),
        mode(scale_y),
        number(low),
        number(top),
        text(&plot.x),
        text(&plot.y),
        ticks("y", scale_y, low, top),
    );
    for (i, panel) in panels.iter().enumerate() {
        let key = if i == 0 { key_style(legend, columns, wide, high) } else { String::new() };
        let (left, right) = x_ends(panel, scale_x);
        let _ = writeln!(
            out,
            "\\nextgroupplot[title={{{}}}, xmin={}, xmax={},\n{}{key}]",
            text(&panel.title),
            number(left),
            number(right),
            ticks("x", scale_x, left, right),
        );
        for series in &panel.series {
            curve(&mut out, series, (left, right), (low, top));
        }
        if i == 0 {
            legend.iter().for_each(|entry| add_entry(&mut out, entry));
        }
    }
    out.push_str("\\end{groupplot}\n\\end{tikzpicture}\n");
    out
}

/// A number with six digits: more than are visible.
fn number(value: f64) -> String {
    format!("{value:.5e}")
}

/// Ends of a panel's x axis.
fn x_ends(panel: &Panel, scale: Scale) -> (f64, f64) {
    let xs = panel.series.iter().flat_map(|s| &s.points).map(|p| p.x);
    let xs = xs.filter(|x| x.is_finite() && (scale == Scale::Linear || *x > 0.0));
    let (low, high) =
        xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    match scale {
        _ if low > high => (1.0, 10.0),
        Scale::Log => {
            let room = libm::pow(high / low, 0.02).max(1.12);
            (low / room, high * room)
        }
        Scale::Linear if low == high => (low - 0.5, high + 0.5),
        Scale::Linear => (low, high),
    }
}

/// Ticks at 1, 2 and 5 times powers of ten for a logarithmic axis of less than two decades.
/// pgfplots chooses those of other axes.
fn ticks(axis: &str, scale: Scale, low: f64, high: f64) -> String {
    if scale == Scale::Linear || high / low >= 100.0 {
        return String::new();
    }
    let from = libm::log10(low).floor() as i32;
    let all = (from..from + 4).flat_map(|e| [(1, e), (2, e), (5, e)]);
    let shown: Vec<(String, String)> = all
        .map(|(m, e)| (f64::from(m) * libm::pow(10.0, f64::from(e)), m, e))
        .filter(|(value, ..)| (low..=high).contains(value))
        .map(|(value, m, e)| {
            let name = match e {
                -2..=2 => format!("${}$", short(value)),
                e if m == 1 => format!("$10^{{{e}}}$"),
                e => format!("${m}\\cdot 10^{{{e}}}$"),
            };
            (number(value), format!("{{{name}}}"))
        })
        .collect();
    let (places, names): (Vec<String>, Vec<String>) = shown.into_iter().unzip();
    let (places, names) = (places.join(","), names.join(","));
    format!("  {axis}tick={{{places}}}, {axis}ticklabels={{{names}}}, minor {axis} tick num=0,\n")
}

/// A tick's value without a power of ten.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The legend above all panels, placed from the first.
fn key_style(legend: &[LegendEntry], columns: usize, wide: f64, high: f64) -> String {
    let all = columns as f64 * wide + 0.35 * (columns - 1) as f64;
    let middle = 0.5 * all / wide;
    let above = 1.0 + 0.75 / high;
    let many = entries(legend, all.max(12.0));
    format!(
        "  legend columns={many}, legend style={{at={{({middle:.3},{above:.3})}}, anchor=south, draw=none, font=\\footnotesize, /tikz/every even column/.append style={{column sep=0.5em}}}}, legend cell align=left"
    )
}

fn add_entry(out: &mut String, entry: &LegendEntry) {
    let style = entry.style();
    let image = match entry {
        LegendEntry::Patch { color, .. } => {
            format!("area legend, draw=none, fill={}", color_name(*color))
        }
        _ if style.dash.is_measured() => format!("{}, {}", stroke(style), marker(style)),
        _ => stroke(style),
    };
    let _ = writeln!(out, "\\addlegendimage{{{image}}}\\addlegendentry{{{}}}", text(&entry.name()));
}

/// Colour, width and dash pattern of a line.
fn stroke(style: Style) -> String {
    let (width, pattern) = match style.dash {
        Dash::Measured(index) => ("0.9pt", DASHES[index % DASHES.len()]),
        Dash::Thin(index) => ("0.7pt", THIN_DASHES[index % THIN_DASHES.len()]),
    };
    format!("{}, line width={width}, {pattern}", color_name(style.color))
}

/// A marker: filled on a measured curve, open on a prediction.
fn marker(style: Style) -> String {
    let (name, turn) = MARKERS[style.marker % MARKERS.len()];
    let (size, fill) =
        if style.dash.is_measured() { ("1.4pt", "") } else { ("1.1pt", ", fill=white") };
    let options = format!("{{solid, rotate={turn}{fill}}}");
    format!("mark={name}, mark size={size}, every mark/.append style={options}")
}

/// A curve, as far as it is between the ends of the axes.
fn curve(out: &mut String, series: &Series, x: (f64, f64), y: (f64, f64)) {
    let _ = writeln!(out, "% {}", super::comment(&series.line.name()));
    let style = series.line.style();
    let color = color_name(style.color);
    let within = |v: f64, (low, high): (f64, f64)| (low..=high).contains(&v);
    let seen = |p: &Point| within(p.x, x) && within(p.y, y);
    let banded = |p: &Point| seen(p) && !p.low.is_nan() && !p.high.is_nan();
    for stretch in series.points.split(|p| !banded(p)).filter(|s| s.len() > 1) {
        let clip = |v: f64| number(v.clamp(y.0, y.1));
        let lower = stretch.iter().map(|p| format!("({},{})", number(p.x), clip(p.low)));
        let upper = stretch.iter().rev().map(|p| format!("({},{})", number(p.x), clip(p.high)));
        let outline: Vec<String> = lower.chain(upper).collect();
        let _ = writeln!(
            out,
            "\\addplot[forget plot, draw=none, fill={color}, fill opacity=0.16] coordinates {{{}}} -- cycle;",
            outline.join(" ")
        );
    }
    let (stroke, mark) = (stroke(style), marker(style));
    let stretches = || series.points.split(|p| !seen(p)).filter(|s| !s.is_empty());
    for stretch in stretches() {
        let points: Vec<String> =
            stretch.iter().map(|p| format!("({},{})", number(p.x), number(p.y))).collect();
        let every = stretch.len().div_ceil(MARKED);
        let marks = match stretch.len() {
            1 => format!("only marks, {mark}"),
            _ if matches!(series.line, Line::Reference(_)) => "mark=none".into(),
            _ if every == 1 => mark.clone(),
            _ => {
                let first = 1 + style.marker % MARKERS.len() * every / MARKERS.len();
                format!("{mark}, mark repeat={every}, mark phase={first}")
            }
        };
        let _ = writeln!(
            out,
            "\\addplot[forget plot, {stroke}, {marks}] coordinates {{{}}};",
            points.join(" ")
        );
    }
    if let (true, Some(end)) = (series.diverged > 0, stretches().next_back().and_then(|s| s.last()))
    {
        let _ = writeln!(
            out,
            "\\addplot[forget plot, {color}, only marks, mark=x, mark size=3.4pt, line width=1.1pt] coordinates {{({},{})}};",
            number(end.x),
            number(end.y)
        );
    }
}
