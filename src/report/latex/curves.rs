//! Figures of curves for `pgfplots`: a group of panels that share their y axis.
//!
//! *Invariant*: what is drawn is what the SVG draws: curves are cut where they are not
//! finite or beyond the panel, bands end at its edge.

use super::escape::text;
use super::{entries, ink};
use crate::analysis::{
    Body, DASHES as PATTERNS, Figure, Key, Legend, MARKS as SHAPES, Panel, Point, Role, Scale,
    Series, Style,
};
use crate::chart;
use std::fmt::Write;

/// Width of all panels of a row together, and height of one, in centimetres.
const WIDE: f64 = 15.0;

/// Marks along a curve, about.
const MARKED: usize = 8;

/// Dashes of measured curves, and of predictions, by pattern.
const DASHES: [&str; PATTERNS] = ["solid", "dashed", "densely dotted", "dash dot"];
const FAINT: [&str; 13] = [
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
    "dash pattern=on 1pt off 3pt",
];
/// Marks of pgfplots, and by how many degrees they are turned.
const MARKS: [(&str, u32); SHAPES] = [
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
    let Body::Panels { panels, legend, x, y, scale_x, scale_y } = &figure.body else {
        return String::new();
    };
    let columns = figure.columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns);
    let wide =
        if columns == 1 { 9.0 } else { (WIDE - 0.35 * (columns - 1) as f64) / columns as f64 };
    let high = (0.68 * wide).max(3.2);
    let mode = |scale: &Scale| if *scale == Scale::Log { "log" } else { "linear" };
    let (low, top) = chart::extent(figure).unwrap_or((1.0, 10.0));
    let mut out = format!(
        "\\begin{{tikzpicture}}\n\\begin{{groupplot}}[\n  group style={{group size={columns} by {rows}, horizontal sep=0.35cm, vertical sep=1.7cm, yticklabels at=edge left, ylabels at=edge left}},\n  scale only axis, width={wide:.2}cm, height={high:.2}cm,\n  xmode={}, ymode={}, ymin={}, ymax={},\n  xlabel={{{}}}, ylabel={{{}}},\n  tick label style={{font=\\scriptsize}}, label style={{font=\\footnotesize}}, title style={{font=\\footnotesize, yshift=-0.8ex}},\n  grid=major, grid style={{black!12}}, tick align=outside, tick pos=left, axis line style={{black!50}},\n  every axis plot/.append style={{line join=round}},\n{}]\n",
        mode(scale_x),
        mode(scale_y),
        number(low),
        number(top),
        text(x),
        text(y),
        ticks("y", *scale_y, low, top),
    );
    for (i, panel) in panels.iter().enumerate() {
        let key = if i == 0 { key_style(legend, columns, wide, high) } else { String::new() };
        let (left, right) = across(panel, *scale_x);
        let _ = writeln!(
            out,
            "\\nextgroupplot[title={{{}}}, xmin={}, xmax={},\n{}{key}]",
            text(&panel.title),
            number(left),
            number(right),
            ticks("x", *scale_x, left, right),
        );
        let sides = Sides { x: (left, right), y: (low, top) };
        for series in &panel.series {
            curve(&mut out, series, sides);
        }
        if i == 0 {
            legend.iter().for_each(|item| entry(&mut out, item));
        }
    }
    out.push_str("\\end{groupplot}\n\\end{tikzpicture}\n");
    out
}

/// Ends of the axes.
#[derive(Clone, Copy)]
struct Sides {
    x: (f64, f64),
    y: (f64, f64),
}

impl Sides {
    fn holds(self, point: &Point) -> bool {
        let within = |v: f64, (low, high): (f64, f64)| (low..=high).contains(&v);
        within(point.x, self.x) && within(point.y, self.y)
    }
}

/// Six digits: more than can be seen.
fn number(value: f64) -> String {
    format!("{value:.5e}")
}

/// Ends of a panel's x axis.
fn across(panel: &Panel, scale: Scale) -> (f64, f64) {
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

/// Ticks of a log axis that spans hardly a power of ten: 1, 2, 5 times one. Others are
/// left to pgfplots.
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
            let told = match e {
                -2..=2 => format!("${}$", short(value)),
                e if m == 1 => format!("$10^{{{e}}}$"),
                e => format!("${m}\\cdot 10^{{{e}}}$"),
            };
            (number(value), format!("{{{told}}}"))
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
fn key_style(legend: &[Legend], columns: usize, wide: f64, high: f64) -> String {
    let all = columns as f64 * wide + 0.35 * (columns - 1) as f64;
    let middle = 0.5 * all / wide;
    let above = 1.0 + 0.75 / high;
    let many = entries(legend, all.max(12.0));
    format!(
        "  legend columns={many}, legend style={{at={{({middle:.3},{above:.3})}}, anchor=south, draw=none, font=\\footnotesize, /tikz/every even column/.append style={{column sep=0.5em}}}}, legend cell align=left"
    )
}

fn entry(out: &mut String, item: &Legend) {
    let line = match item.key {
        Key::Line => format!("{}, {}", measured(item.style), mark(item.style, true)),
        Key::Theory | Key::Reference => theory(item.style),
        Key::Patch => format!("area legend, draw=none, fill={}", ink(item.style)),
    };
    let _ = writeln!(out, "\\addlegendimage{{{line}}}\\addlegendentry{{{}}}", text(&item.label));
}

fn measured(style: Style) -> String {
    format!("{}, line width=0.9pt, {}", ink(style), DASHES[style.dash % DASHES.len()])
}

fn theory(style: Style) -> String {
    format!("{}, line width=0.7pt, {}", ink(style), FAINT[style.dash % FAINT.len()])
}

/// A mark: filled where it is of what is measured, open where it is predicted.
fn mark(style: Style, measured: bool) -> String {
    let (name, turn) = MARKS[style.mark % MARKS.len()];
    let (size, fill) = if measured { ("1.4pt", "") } else { ("1.1pt", ", fill=white") };
    let style = format!("{{solid, rotate={turn}{fill}}}");
    format!("mark={name}, mark size={size}, every mark/.append style={style}")
}

fn curve(out: &mut String, series: &Series, sides: Sides) {
    let _ = writeln!(out, "% {}", super::comment(&series.label));
    let color = ink(series.style);
    let seen = |p: &Point| sides.holds(p);
    let banded = |p: &Point| seen(p) && !p.low.is_nan() && !p.high.is_nan();
    for stretch in series.points.split(|p| !banded(p)).filter(|s| s.len() > 1) {
        let clip = |v: f64| number(v.clamp(sides.y.0, sides.y.1));
        let lower = stretch.iter().map(|p| format!("({},{})", number(p.x), clip(p.low)));
        let upper = stretch.iter().rev().map(|p| format!("({},{})", number(p.x), clip(p.high)));
        let outline: Vec<String> = lower.chain(upper).collect();
        let _ = writeln!(
            out,
            "\\addplot[forget plot, draw=none, fill={color}, fill opacity=0.16] coordinates {{{}}} -- cycle;",
            outline.join(" ")
        );
    }
    let of_runs = series.role == Role::Measured;
    let style = if of_runs { measured(series.style) } else { theory(series.style) };
    let mark = mark(series.style, of_runs);
    let stretches = || series.points.split(|p| !seen(p)).filter(|s| !s.is_empty());
    for stretch in stretches() {
        let points: Vec<String> =
            stretch.iter().map(|p| format!("({},{})", number(p.x), number(p.y))).collect();
        let every = stretch.len().div_ceil(MARKED);
        let marks = match stretch.len() {
            1 => format!("only marks, {mark}"),
            _ if series.role == Role::Reference => "mark=none".into(),
            _ if every == 1 => mark.clone(),
            _ => {
                let first = 1 + series.style.mark % SHAPES * every / SHAPES;
                format!("{mark}, mark repeat={every}, mark phase={first}")
            }
        };
        let _ = writeln!(
            out,
            "\\addplot[forget plot, {style}, {marks}] coordinates {{{}}};",
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
