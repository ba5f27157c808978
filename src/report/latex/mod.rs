//! The tables of a page for LaTeX with `booktabs`, at most as wide as the text.
//!
//! *Invariant*: the file is a function of the results alone, as pages are; all text goes through
//! `escape::text`.

mod escape;

use super::claims::ClaimText;
use super::page::Page;
use super::page::amendments::AMENDED;
use super::text_table::{TextCell, TextTable};
use escape::text;
use exactfed_runner::plan::Plan;
use std::fmt::Write;

/// Rows after which a table is continued as another, so that it fits a page.
const ROWS: usize = 40;
/// Claims after which their table is continued as another: their rows have several lines.
const CLAIMS: usize = 10;

/// The text of `tables.tex`: the errors, the claims, the heterogeneity, the bounds and the predictions of a page, each
/// in an environment of its own and with the rows that the page shows. The page's other tables are not in it. A table
/// without rows is left out.
pub fn tables(plan: &Plan, page: &Page) -> String {
    let name = &plan.experiment;
    let title = &plan.manifest.title;
    let comment = name.replace(char::is_control, " ");
    let mut out = format!("% {comment}: tables.\n% Needs \\usepackage{{booktabs,graphicx}}.\n");
    let label = format!("tab:{}", name.replace('/', ":"));
    if page.errors.rows.is_empty() {
        out.push_str("No cell has results yet.\n");
    }
    // The last column is the cell's id, which only programs use.
    table(&mut out, &without_last(&page.errors), title, &label);
    claims(&mut out, &page.claims.list, &format!("{label}:claims"));
    for (rows, words, end) in [
        (&page.heterogeneity.instances, "How heterogeneous the problems are", "problems"),
        (&page.bounds, "Published bounds at the last round", "bounds"),
        (&page.first_order, "How far predictions are from the bias", "orders"),
    ] {
        table(&mut out, rows, &format!("{words}. {title}"), &format!("{label}:{end}"));
    }
    out
}

/// A table without its last column, which it must have.
fn without_last(table: &TextTable) -> TextTable {
    let mut shorter = table.clone();
    shorter.heads.pop();
    for row in &mut shorter.rows {
        row.pop();
    }
    shorter
}

/// Whether the text of a cell is a number, an interval, or what stands in place of a missing number.
fn is_numeric(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || "-[–".contains(c)) || cell == "diverged"
}

/// Whether all cells of a column that have a text are numeric.
fn is_numeric_column(table: &TextTable, column: usize) -> bool {
    let cells = table.rows.iter().filter_map(|row| row.get(column));
    cells.filter(|cell| !cell.text.is_empty()).all(|cell| is_numeric(&cell.text))
}

/// Writes a table, whose columns of numbers are aligned to the right. Every [`ROWS`] rows another one begins, as a
/// continuation with a label of its own.
fn table(out: &mut String, table: &TextTable, caption: &str, label: &str) {
    let columns: String = (0..table.heads.len())
        .map(|column| if is_numeric_column(table, column) { 'r' } else { 'l' })
        .collect();
    let heads: Vec<String> = table.heads.iter().map(|head| cell(head)).collect();
    for (part, rows) in table.rows.chunks(ROWS).enumerate() {
        let more = if part == 0 { "" } else { " (continued)" };
        begin(out, &format!("{}{more}", text(caption)), label, part);
        out.push_str("\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n");
        tabular(out, &columns, &heads.join(" & "), rows);
        out.push_str("}\n\\end{table}\n");
    }
}

/// Writes the claims with their verdicts and estimates as tables of [`CLAIMS`] rows each.
fn claims(out: &mut String, claims: &[ClaimText], label: &str) {
    for (part, some) in claims.chunks(CLAIMS).enumerate() {
        let amended = if some.iter().any(|claim| claim.amended) { AMENDED } else { "" };
        let caption = format!("Claims and their verdicts. {amended}");
        begin(out, &text(caption.trim_end()), label, part);
        let columns = "p{0.46\\linewidth}p{0.18\\linewidth}p{0.24\\linewidth}";
        let rows: Vec<Vec<TextCell>> = some.iter().map(claim_row).collect();
        tabular(out, columns, "claim & verdict & estimate", &rows);
        out.push_str("\n\\end{table}\n");
    }
}

/// The row of a claim: the statement with its source, the verdict, and the estimate.
fn claim_row(claim: &ClaimText) -> Vec<TextCell> {
    let source = match claim.stated.source.as_deref() {
        None | Some("") => String::new(),
        Some(source) => format!(" ({source})"),
    };
    vec![
        format!("{}{source}", claim.stated.statement).into(),
        claim.verdict_text.as_str().into(),
        claim.estimate.as_str().into(),
    ]
}

/// Writes the beginning of a table's environment. `caption` is LaTeX already, and `label` is not: characters that a
/// label may not have become hyphens. `part` counts the parts of a table that is continued, from 0; from the second one
/// on its number, counted from 1, is added to the label.
fn begin(out: &mut String, caption: &str, label: &str, part: usize) {
    let mut plain_label = String::new();
    for c in label.chars() {
        let is_plain = c.is_ascii_alphanumeric() || "-:.".contains(c);
        plain_label.push(if is_plain { c } else { '-' });
    }
    let number = if part == 0 { String::new() } else { format!(":{}", part + 1) };
    let _ = writeln!(
        out,
        "\n\\begin{{table}}[htbp]\n\\centering\\small\n\\caption{{{caption}}}\n\\label{{{plain_label}{number}}}"
    );
}

/// Writes the rows of a table below its line of heads. `columns` are the alignments of the columns and `heads` the
/// heads, both as LaTeX; the texts of the rows are escaped here.
fn tabular(out: &mut String, columns: &str, heads: &str, rows: &[Vec<TextCell>]) {
    let _ = writeln!(out, "\\begin{{tabular}}{{{columns}}}\n\\toprule\n{heads} \\\\\n\\midrule");
    for row in rows {
        let cells: Vec<String> = row.iter().map(|one| cell(&one.text)).collect();
        let _ = writeln!(out, "{} \\\\", cells.join(" & "));
    }
    out.push_str("\\bottomrule\n\\end{tabular}");
}

/// A cell in a group: a bracket after \\ would be read as its argument.
fn cell(words: &str) -> String {
    format!("{{{}}}", text(words))
}
