//! The templates of pages, with their filters.

use super::page::amendments::AMENDED;
use super::{markdown, notation};
use crate::chart::style;
use crate::evidence::Color;
use crate::evidence::family::FAMILIES;
use exactfed_core::sources;
use exactfed_core::words::count;
use exactfed_runner::files::{Error, error};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, State, context};
use serde::Serialize;
use std::path::Path;

const TABLES: &str = include_str!("../../templates/scripts/tables.js");
const GUIDE: &str = include_str!("../../templates/scripts/guide.js");
const INDEX: &str = include_str!("../../templates/scripts/index.js");
const LIVE: &str = include_str!("../../templates/scripts/live.js");
/// The script of a report. The files share one scope: `address.js` draws the figures as soon as it
/// runs, so that what figures need stands before it.
const FIGURES: &str = concat!(
    include_str!("../../templates/scripts/data.js"),
    include_str!("../../templates/scripts/numbers.js"),
    include_str!("../../templates/scripts/text.js"),
    include_str!("../../templates/scripts/browser.js"),
    include_str!("../../templates/scripts/axes.js"),
    include_str!("../../templates/scripts/lines.js"),
    include_str!("../../templates/scripts/labels.js"),
    include_str!("../../templates/scripts/panel.js"),
    include_str!("../../templates/scripts/layout.js"),
    include_str!("../../templates/scripts/curves.js"),
    include_str!("../../templates/scripts/reading.js"),
    include_str!("../../templates/scripts/files.js"),
    include_str!("../../templates/scripts/plot.js"),
    include_str!("../../templates/scripts/address.js"),
    include_str!("../../templates/scripts/maps.js"),
    include_str!("../../templates/scripts/tables.js")
);

/// Files of `templates/` with their texts.
macro_rules! templates {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../templates/", $name)))),*]
    };
}

/// The pages that are written as HTML and as Markdown: one tree of blocks each, whose macros are
/// those of `parts.html` or `parts.md`.
const TREES: [(&str, &str); 8] = templates![
    "report.page" "index.page" "smoke.page" "claims.page" "disagreements.page" "coverage.page"
    "errata.page" "published.page"
];

/// The other templates.
const TEMPLATES: [(&str, &str); 20] = templates![
    "parts.md" "parts.html" "style.css" "figure.css" "figure.html" "report.css" "index.css"
    "guide.css" "which-algorithm.md" "which-algorithm.html" "notebook.html" "diff.md" "diff.html"
    "diff.css" "diff.txt" "history.md" "history.html" "history.css" "history.txt" "live.html"
];

/// The colours of the names of families, by the number of the family, on light (0) or dark (1) paper.
fn family_inks(paper: usize) -> Vec<String> {
    (0..FAMILIES).map(|family| style::hex(style::ink(Color::of_family(family))[paper])).collect()
}

/// A colour of lines, and the colour of the names that stand next to them, which must be readable.
#[derive(Serialize)]
struct PaletteColor {
    /// The number of the colour; "none" for the colour of lines that belong to no family.
    name: String,
    line: String,
    ink: String,
}

/// The colours `lines` of lines, each with the colour of names on light (0) or dark (1) paper; the last one is the
/// colour of lines that belong to no family.
fn palette(paper: usize, lines: &[(u8, u8, u8)]) -> Value {
    let mut colors = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let ink = style::hex(style::ink(Color::Palette(i))[paper]);
        colors.push(PaletteColor { name: i.to_string(), line: style::hex(*line), ink });
    }
    let grey = style::hex(style::NEUTRAL[paper]);
    colors.push(PaletteColor { name: "none".into(), line: grey.clone(), ink: grey });
    Value::from(Serde(colors))
}

/// Whether the template that is being filled writes HTML, and not Markdown or plain text.
fn is_html(state: &State<'_, '_>) -> bool {
    state.auto_escape() == &AutoEscape::Html
}

/// Adds the functions that templates call on texts and numbers (filters). The names of the filters are written in
/// `templates/`. Where HTML and Markdown share a tree of blocks, a filter looks up in which of them it writes.
fn add_filters(env: &mut Environment<'_>) {
    env.add_filter("md", markdown::escaped);
    // In the language of the page: `shown` writes a text in one line, `prose` a paragraph, `named` a name, in which
    // nothing is notation.
    let escaped: fn(&str) -> String = markdown::escaped;
    for (name, in_markdown) in [("shown", escaped), ("prose", markdown::prose)] {
        env.add_filter(name, move |state: &State<'_, '_>, text: &str| {
            if is_html(state) {
                notation::notation(&notation::unbroken(text))
            } else {
                Value::from(in_markdown(text))
            }
        });
    }
    env.add_filter(
        "named",
        |state: &State<'_, '_>, text: &str| {
            if is_html(state) { text.to_owned() } else { markdown::escaped(text) }
        },
    );
    // The number by which a script sorts. It has the digits that are the same on all machines.
    env.add_filter("sorted_by", |number: f64| format!("{number:.8e}"));
    env.add_filter("count", |number: usize, noun: &str| count(number, noun));
    env.add_filter("pad", |text: &str, width: usize| format!("{text:<width$}"));
    env.add_filter("notation", |text: &str| notation::notation(text));
    env.add_filter("cited", |text: &str| sources::cited(text));
    env.add_filter("unbroken", |text: &str| notation::unbroken(text));
    env.add_filter("code", markdown::code);
    env.add_filter("json", |value: Value| {
        let text = serde_json::to_string(&value).unwrap_or_default();
        // Nothing in it ends the script element.
        Value::from_safe_string(text.replace('<', "\\u003c"))
    });
    env.add_filter("fenced", markdown::fenced);
}

/// The templates of pages.
pub struct Templates(Environment<'static>);

impl Templates {
    /// The templates with their filters, and with the values that all pages have: colours, scripts, and the sentence
    /// that explains "amended".
    pub fn new() -> Self {
        let mut env = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        env.set_syntax(syntax.build().expect("the default delimiters are valid"));
        add_filters(&mut env);
        env.add_global("amended", AMENDED);
        env.add_global("inks", context! { light => family_inks(0), dark => family_inks(1) });
        let light = palette(0, &style::PALETTE);
        let dark = palette(1, &style::DARK_PALETTE);
        env.add_global("palette", context! { light, dark });
        // Scripts are plain text and not templates.
        let [report, tables, index, guide, live] =
            [FIGURES, TABLES, INDEX, GUIDE, LIVE].map(|js| Value::from_safe_string(js.into()));
        env.add_global("js", context! { report, tables, index, guide, live });
        for (tree, text) in TREES {
            for end in ["html", "md"] {
                let name = tree.replace("page", end);
                env.add_template_owned(name, text).expect("the templates are part of the program");
            }
        }
        for (name, text) in TEMPLATES {
            env.add_template(name, text).expect("the templates are part of the program");
        }
        Self(env)
    }

    /// The text of the template of this name, filled with `values`. Its end, such as `.html`, decides on the language
    /// and on the macros that it gets as `parts`.
    ///
    /// # Errors
    /// If the template fails.
    pub fn render(&self, name: &str, values: Value) -> Result<String, Error> {
        let parts = if name.ends_with(".html") { "parts.html" } else { "parts.md" };
        let values = context! { parts, ..values };
        let rendered = self.0.get_template(name).and_then(|t| t.render(values));
        rendered.map_err(|e| error(Path::new(name), e))
    }
}
