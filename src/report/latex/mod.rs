//! LaTeX from analysed experiments: tables for `booktabs`, figures for `pgfplots`, and a
//! document of both that compiles by itself.
//!
//! *Invariant*: the files are functions of the results alone, as pages are; all text
//! goes through `escape::text`.

mod curves;
mod escape;
mod maps;
mod tables;

use super::view::Page;
use crate::analysis::{Body, COLORS, Figure, GREY, Legend, Style};
use crate::chart;
use escape::text;
use std::fmt::Write;

/// A file's name below the experiment's folder, and its text.
pub type File = (String, String);

/// The files of an experiment.
pub fn files(page: &Page, figures: &[Figure]) -> Vec<File> {
    let mut all = vec![("tables.tex".to_owned(), tables::tables(page))];
    all.extend(figures.iter().map(|f| (format!("figures/{}.tex", f.id), figure(f))));
    all.push(("all.tex".to_owned(), document(page)));
    all
}

/// What goes into a comment or stays on one line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A name for `\label`: letters, digits and what separates them.
fn key(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-:.".contains(c);
    text.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

/// A figure to be \input.
fn figure(figure: &Figure) -> String {
    let mut out = format!(
        "% {}\n% Needs \\usepackage{{amssymb,pgfplots}} and \\usepgfplotslibrary{{groupplots}}.\n",
        comment(&figure.title)
    );
    let legend = match &figure.body {
        Body::Panels { legend, .. } | Body::Maps { legend, .. } => legend,
    };
    let mut styles: Vec<Style> = legend.iter().map(|l| l.style).collect();
    styles.extend(figure.styles());
    let mut known: Vec<String> = Vec::new();
    for style in styles {
        let name = ink(style);
        if !known.contains(&name) {
            let (r, g, b) = chart::style::rgb(style);
            let _ = writeln!(out, "\\definecolor{{{name}}}{{RGB}}{{{r},{g},{b}}}");
            known.push(name);
        }
    }
    out.push_str(&match &figure.body {
        Body::Panels { panels, .. } if !panels.iter().any(|p| p.drawn()) => {
            nothing(&figure.caption)
        }
        Body::Maps { maps, .. } if !maps.iter().any(|m| !m.cells.is_empty()) => {
            nothing(&figure.caption)
        }
        Body::Panels { .. } => curves::draw(figure),
        Body::Maps { .. } => maps::draw(figure),
    });
    out
}

/// A figure in which there is nothing to draw says so.
fn nothing(caption: &str) -> String {
    format!(
        "\\begin{{tikzpicture}}\n\\node[text width=9cm, align=center, draw=gray, inner sep=1em] {{{}}};\n\\end{{tikzpicture}}\n",
        text(caption)
    )
}

/// The name of a style's colour.
fn ink(style: Style) -> String {
    if style.color == GREY { "dbgrey".into() } else { format!("db{}", style.color % COLORS) }
}

/// Entries of a legend in a row of so many centimetres.
fn entries(legend: &[Legend], wide: f64) -> usize {
    let longest = legend.iter().map(|l| l.label.chars().count()).max().unwrap_or(0);
    let one = 1.2 + 0.16 * longest as f64;
    ((wide / one) as usize).clamp(1, legend.len().max(1))
}

/// Everything in one document.
fn document(page: &Page) -> String {
    let mut out = String::from(concat!(
        "% Compile in this folder: pdflatex all.tex\n",
        "\\documentclass{article}\n",
        "\\usepackage[T1]{fontenc}\n",
        "\\usepackage[utf8]{inputenc}\n",
        "\\usepackage[margin=2cm]{geometry}\n",
        "\\usepackage{amsmath,amssymb,booktabs,graphicx,pgfplots}\n",
        "\\usepgfplotslibrary{groupplots}\n",
        "\\pgfplotsset{compat=1.16}\n",
        "\\newsavebox{\\fitted}\n",
        "\\newcommand{\\fit}[1]{\\sbox{\\fitted}{#1}%\n",
        "\\ifdim\\wd\\fitted>\\linewidth\\sbox{\\fitted}{\\resizebox{\\linewidth}{!}{\\usebox{\\fitted}}}\\fi\n",
        "\\ifdim\\ht\\fitted>0.8\\textheight\\sbox{\\fitted}{\\resizebox{!}{0.8\\textheight}{\\usebox{\\fitted}}}\\fi\n",
        "\\usebox{\\fitted}}\n",
        "\\begin{document}\n",
    ));
    let source = if page.source.is_empty() { String::new() } else { format!(" ({})", page.source) };
    let _ = writeln!(out, "\\section*{{{}{}}}", text(&page.title), text(&source));
    for paragraph in &page.paragraphs {
        let _ = writeln!(out, "{}\n", text(paragraph));
    }
    for figure in &page.figures {
        let _ = writeln!(
            out,
            "\\begin{{figure}}[htbp]\n\\centering\n\\fit{{\\input{{figures/{}}}}}\n\\caption{{{}. {}}}\n\\end{{figure}}",
            figure.id,
            text(&figure.title),
            text(&figure.caption),
        );
    }
    out.push_str("\\clearpage\n\\input{tables}\n\\end{document}\n");
    out
}
