//! A comparison as text: a summary for a terminal, Markdown for a pull request, a page with
//! charts, JSON for programs.
//!
//! *Invariant*: all four agree on every cell. Markdown and the page are truncated, because a
//! comment and a browser hold only so much, and state the number of rows left out. JSON is
//! complete.

mod headline;
mod json;
mod shown;

use super::templates::Templates;
use crate::compare::{Change, Class, Comparison};
use crate::evidence::Figure;
use exactfed_runner::files::{Error, error};
pub use headline::clean;
use json::JsonComparison;
use minijinja::context;
use minijinja::value::{Serde, Value};
use shown::{ChangeCard, MOST_SHOWN, ShownComparison};
use std::path::Path;

/// A change as a page shows it.
pub struct DrawnChange<'a> {
    /// The change.
    pub change: &'a Change,
    /// The curves of both sides in one panel, and the curve of their ratio.
    pub figures: [Figure; 2],
    /// The page of its experiment, relative to the page of the comparison; `None` if there is no such page.
    pub page: Option<String>,
}

/// How a comparison is written.
pub enum DiffFormat<'a> {
    /// For a terminal.
    Text,
    /// For a pull request.
    Markdown,
    /// A page, with charts of the largest changes.
    Html(Vec<DrawnChange<'a>>),
    /// For programs.
    Json,
}

/// Characters that a comment on GitHub holds.
const MOST_CHARACTERS: usize = 65_536;
/// Lines of each list that a terminal shows.
const MOST_LINES: usize = 20;
/// Figures that a page shows unfolded.
const MOST_OPEN: usize = 12;
/// Rows of each table in Markdown: the first of these numbers with which the text is short enough for a comment, or the
/// last.
const MOST_ROWS: [usize; 8] = [400, 200, 100, 50, 25, 10, 5, 1];

/// The comparison in a format; `fails` are the classes of changes that make `diff` fail, each with the number of its
/// changes. They are only stated: the command sets the exit code.
///
/// # Errors
/// If a chart cannot be drawn, or the text cannot be written in the format.
pub fn render(
    comparison: &Comparison,
    fails: &[(Class, usize)],
    format: DiffFormat<'_>,
) -> Result<String, Error> {
    match format {
        DiffFormat::Json => json_text(comparison, fails),
        DiffFormat::Html(changes) => html_page(comparison, fails, &changes),
        DiffFormat::Markdown => markdown(comparison, fails),
        DiffFormat::Text => {
            let diff = template_values(comparison, fails);
            Templates::new().render("diff.txt", context! { diff, most => MOST_LINES })
        }
    }
}

/// What the templates show of a comparison.
fn template_values(comparison: &Comparison, fails: &[(Class, usize)]) -> Value {
    Value::from(Serde(ShownComparison::new(comparison, fails)))
}

/// The comparison as JSON, with a line end.
fn json_text(comparison: &Comparison, fails: &[(Class, usize)]) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(&JsonComparison::new(comparison, fails));
    Ok(text.map_err(|e| error(Path::new("diff.json"), e))? + "\n")
}

/// The comparison as a page with the charts of `changes`, which must come in the order of
/// [`Comparison::largest_first`]: the first are unfolded. These are the changes whose verdict says that results
/// changed, up to [`MOST_OPEN`], or the first [`MOST_OPEN`] if no change has such a verdict.
fn html_page(
    comparison: &Comparison,
    fails: &[(Class, usize)],
    changes: &[DrawnChange<'_>],
) -> Result<String, Error> {
    let mut drawn = Vec::new();
    for change in changes {
        drawn.push(ChangeCard::new(change)?);
    }
    let open = match changes.iter().filter(|c| c.change.verdict.is_change()).count() {
        0 => MOST_OPEN,
        stated => stated.min(MOST_OPEN),
    };
    let cards = Value::from(Serde(drawn));
    let diff = template_values(comparison, fails);
    Templates::new().render("diff.html", context! { diff, most => MOST_SHOWN, cards, open })
}

/// The comparison as Markdown, with as many rows in each table as a comment on GitHub has room for. With one row in
/// each table it may still be too long.
fn markdown(comparison: &Comparison, fails: &[(Class, usize)]) -> Result<String, Error> {
    let templates = Templates::new();
    let diff = template_values(comparison, fails);
    let mut out = String::new();
    for most in MOST_ROWS {
        out = templates.render("diff.md", context! { diff => diff.clone(), most })?;
        if out.chars().count() <= MOST_CHARACTERS {
            break;
        }
    }
    Ok(out)
}
