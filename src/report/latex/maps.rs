//! Maps over two settings in plain TikZ: one square per cell, with its text.

use super::color_name;
use super::escape::text;
use crate::analysis::{Map, Maps, Square};
use std::fmt::Write;

/// Width of all maps of a row together, and height of a square, in centimetres.
const WIDE: f64 = 16.0;
const HIGH: f64 = 1.25;
/// Least width of a square with room for its text, in centimetres.
const LEAST: f64 = 1.4;

pub fn draw(figure: &Maps, columns: usize) -> String {
    let Maps { maps, legend, x, y } = figure;
    let across = maps.iter().map(|m| m.x.len()).max().unwrap_or(1).max(1);
    let room = |columns: usize| (WIDE / columns as f64 - 1.4) / across as f64;
    // As many maps in a row as leave room for the text.
    let columns = columns.clamp(1, maps.len().max(1));
    let columns = (1..=columns).rev().find(|c| room(*c) >= LEAST).unwrap_or(1);
    let upwards = maps.iter().map(|m| m.y.len()).max().unwrap_or(1).max(1);
    let wide = room(columns).clamp(0.9, 2.4);
    let mut out = String::from("\\begin{tikzpicture}[font=\\scriptsize]\n");
    let step = (across as f64 * wide + 1.4, upwards as f64 * HIGH + 1.9);
    for (i, map) in maps.iter().enumerate() {
        let at = ((i % columns) as f64 * step.0, -((i / columns) as f64) * step.1);
        let _ = writeln!(
            out,
            "\\begin{{scope}}[shift={{({:.2}cm,{:.2}cm)}}, x={wide:.3}cm, y={HIGH}cm]",
            at.0, at.1
        );
        draw_map(&mut out, map, (x, y));
        out.push_str("\\end{scope}\n");
    }
    let mut left = 0.0;
    for entry in legend {
        let (name, color) = (entry.name(), color_name(entry.style().color));
        let top = upwards as f64 * HIGH + 0.9;
        let sample = match entry.is_patch() {
            true => format!("\\fill[{color}] ({left:.2}cm,{top:.2}cm) rectangle +(0.5cm,0.25cm);"),
            false => format!(
                "\\draw[{color}, line width=1.6pt] ({left:.2}cm,{:.2}cm) -- +(0.5cm,0);",
                top + 0.12
            ),
        };
        let _ = writeln!(
            out,
            "{sample} \\node[anchor=west] at ({:.2}cm,{:.2}cm) {{{}}};",
            left + 0.55,
            top + 0.12,
            text(&name)
        );
        left += 1.3 + 0.16 * name.chars().count() as f64;
    }
    out.push_str("\\end{tikzpicture}\n");
    out
}

fn draw_map(out: &mut String, map: &Map, (x, y): (&str, &str)) {
    let (nx, ny) = (map.x.len(), map.y.len());
    let middle = nx as f64 / 2.0;
    let _ = writeln!(
        out,
        "\\node[font=\\footnotesize, anchor=south] at ({middle},{ny}) {{{}}};",
        text(&map.title)
    );
    for square in &map.squares {
        draw_square(out, square);
    }
    let _ = writeln!(out, "\\draw[black!50] (0,{ny}) -- (0,0) -- ({nx},0);");
    for ((ax, ay), (bx, by)) in map.edges() {
        let _ =
            writeln!(out, "\\draw[line width=1.6pt, line cap=rect] ({ax},{ay}) -- ({bx},{by});");
    }
    for (i, name) in map.x.iter().enumerate() {
        let at = i as f64 + 0.5;
        let _ = writeln!(out, "\\node[anchor=north] at ({at},0) {{{}}};", text(name));
    }
    for (i, name) in map.y.iter().enumerate() {
        let at = i as f64 + 0.5;
        let _ = writeln!(out, "\\node[anchor=east] at (0,{at}) {{{}}};", text(name));
    }
    let _ = writeln!(
        out,
        "\\node[anchor=north, yshift=-1.3em, font=\\footnotesize] at ({middle},0) {{{}}};",
        text(x)
    );
    let _ = writeln!(
        out,
        "\\node[anchor=south, rotate=90, yshift=1.6em, font=\\footnotesize] at (0,{}) {{{}}};",
        ny as f64 / 2.0,
        text(y)
    );
}

fn draw_square(out: &mut String, square: &Square) {
    let (x, y) = (square.x as f64, square.y as f64);
    let fill = color_name(square.color());
    let percent = (100.0 * square.opacity()).round();
    let corners = |inset: f64| {
        let (a, b, c, d) = (x + inset, y + inset, x + 1.0 - inset, y + 1.0 - inset);
        format!("({a:.3},{b:.3}) rectangle ({c:.3},{d:.3})")
    };
    let _ = writeln!(out, "\\fill[{fill}!{percent}] {};", corners(0.02));
    if square.is_outlined() {
        let _ = writeln!(out, "\\draw[line width=0.7pt] {};", corners(0.06));
    }
    // A bracket after \\ would be read as its argument.
    let lines: Vec<String> = square.lines().iter().map(|l| format!("{{{}}}", text(l))).collect();
    let _ = writeln!(
        out,
        "\\node[align=center, font=\\tiny, inner sep=0pt] at ({},{}) {{{}}};",
        x + 0.5,
        y + 0.5,
        lines.join("\\\\")
    );
}
