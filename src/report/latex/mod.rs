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
use crate::analysis::{Body, COLORS, Color, Experiment, Figure, LegendEntry, unique};
use crate::chart;
use crate::report::truncation::File;
use escape::text;
use exactfed_runner::plan::Plan;
use std::fmt::Write;

/// The files of an experiment.
pub fn files(experiment: &Experiment<'_>, page: &Page) -> Vec<File> {
    let mut all = vec![("tables.tex".to_owned(), tables::tables(experiment.plan, page))];
    all.extend(experiment.figures.iter().map(|f| (format!("figures/{}.tex", f.id), figure(f))));
    all.push(("all.tex".to_owned(), document(experiment.plan, page)));
    all
}

/// Text without line breaks, for a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A name for `\label`: letters, digits and separators.
fn key(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-:.".contains(c);
    text.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

/// A figure for `\input`.
fn figure(figure: &Figure) -> String {
    let mut out = format!(
        "% {}\n% Needs \\usepackage{{amssymb,pgfplots}} and \\usepgfplotslibrary{{groupplots}}.\n",
        comment(&figure.title)
    );
    let legend = figure.legend().iter().map(|entry| entry.style().color);
    let colors = legend.chain(figure.colors());
    let colors = colors.map(|color| (color_name(color), chart::style::rgb(color)));
    for (name, (r, g, b)) in unique(colors) {
        let _ = writeln!(out, "\\definecolor{{{name}}}{{RGB}}{{{r},{g},{b}}}");
    }
    out.push_str(&match &figure.body {
        _ if !figure.has_content() => nothing(&figure.caption),
        Body::Plot(_) => curves::draw(figure),
        Body::Maps(maps) => maps::draw(maps, figure.columns),
    });
    out
}

/// A figure without content shows its caption instead.
fn nothing(caption: &str) -> String {
    format!(
        "\\begin{{tikzpicture}}\n\\node[text width=9cm, align=center, draw=gray, inner sep=1em] {{{}}};\n\\end{{tikzpicture}}\n",
        text(caption)
    )
}

/// The name of a colour.
fn color_name(color: Color) -> String {
    match color {
        Color::Palette(index) => format!("ef{}", index % COLORS),
        Color::Neutral => "dbgrey".into(),
    }
}

/// Entries of a legend in a row of so many centimetres.
fn entries(legend: &[LegendEntry], wide: f64) -> usize {
    let longest = legend.iter().map(|entry| entry.name().chars().count()).max().unwrap_or(0);
    let one = 1.2 + 0.16 * longest as f64;
    ((wide / one) as usize).clamp(1, legend.len().max(1))
}

/// Everything in one document.
fn document(plan: &Plan, page: &Page) -> String {
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
    let source = plan.manifest.source.as_ref().filter(|source| !source.is_empty());
    let source = source.map(|source| format!(" ({source})")).unwrap_or_default();
    let _ = writeln!(out, "\\section*{{{}{}}}", text(&plan.manifest.title), text(&source));
    let notes = ["amended", "warning"].into_iter().filter_map(|key| page.notes[key].as_str());
    for note in notes.filter(|note| !note.is_empty()) {
        let _ = writeln!(out, "\\textbf{{{}}}\n", text(note));
    }
    for paragraph in &page.finding.paragraphs {
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
