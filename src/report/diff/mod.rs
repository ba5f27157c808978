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
/// changes.
///
/// # Errors
/// If a chart cannot be drawn, or the text cannot be written in the format.
pub fn render(
    comparison: &Comparison,
    fails: &[(Class, usize)],
    format: DiffFormat<'_>,
) -> Result<String, Error> {
    if let DiffFormat::Json = format {
        let text = serde_json::to_string_pretty(&JsonComparison::new(comparison, fails))
            .map_err(|e| error(Path::new("diff.json"), e))?;
        return Ok(text + "\n");
    }
    let templates = Templates::new();
    let diff = Value::from(Serde(ShownComparison::new(comparison, fails)));
    match format {
        DiffFormat::Html(changes) => {
            let mut cards = Vec::new();
            for change in &changes {
                cards.push(ChangeCard::new(change)?);
            }
            // Figures without a verdict on a change are folded, unless no figure has one.
            let open = match changes.iter().filter(|c| c.change.verdict.is_change()).count() {
                0 => MOST_OPEN,
                stated => stated.min(MOST_OPEN),
            };
            let cards = Value::from(Serde(cards));
            templates.render("diff.html", context! { diff, most => MOST_SHOWN, cards, open })
        }
        DiffFormat::Markdown => {
            let mut out = String::new();
            for most in MOST_ROWS {
                out = templates.render("diff.md", context! { diff => diff.clone(), most })?;
                if out.chars().count() <= MOST_CHARACTERS {
                    break;
                }
            }
            Ok(out)
        }
        DiffFormat::Text | DiffFormat::Json => {
            templates.render("diff.txt", context! { diff, most => MOST_LINES })
        }
    }
}
