//! Tables for `booktabs`, at most as wide as the text.

use super::escape::text;
use crate::report::amendments::AMENDED;
use crate::report::claims::ClaimText;
use crate::report::truncation::TextTable;
use crate::report::view::Page;
use exactfed_runner::plan::Plan;
use std::fmt::Write;

/// Rows after which a table is continued as another, so that it fits a page.
const ROWS: usize = 40;

/// All tables of a page.
pub fn tables(plan: &Plan, page: &Page) -> String {
    let (name, title) = (&plan.experiment, &plan.manifest.title);
    let mut out = format!("% {}: tables.\n", super::comment(name));
    out.push_str("% Needs \\usepackage{booktabs,graphicx}.\n");
    let label = format!("tab:{}", name.replace('/', ":"));
    if page.tables.finals.rows.is_empty() {
        out.push_str("No cell has results yet.\n");
    }
    // The last column is the cell's id, which only programs use.
    table(&mut out, &without_last(&page.tables.finals), title, &label);
    claims(&mut out, &page.claims.list, &format!("{label}:claims"));
    for (rows, words, end) in [
        (&page.problems.instances, "How heterogeneous the problems are", "problems"),
        (&page.tables.bounds, "Published bounds at the last round", "bounds"),
        (&page.tables.first_order, "How far predictions are from the bias", "orders"),
    ] {
        table(&mut out, rows, &format!("{words}. {title}"), &format!("{label}:{end}"));
    }
    out
}

fn without_last(table: &TextTable) -> TextTable {
    let shorter = |row: &Vec<String>| row[..row.len().saturating_sub(1)].to_vec();
    let rows = table.rows.iter().map(shorter).collect();
    TextTable { heads: shorter(&table.heads), rows, ..table.clone() }
}

/// Whether a cell is a number, an interval, or the lack of one.
fn numeric(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || "-[–".contains(c)) || cell == "diverged"
}

fn table(out: &mut String, table: &TextTable, caption: &str, label: &str) {
    for (part, rows) in table.rows.chunks(ROWS).enumerate() {
        let right = |column: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(column));
            cells.filter(|cell| !cell.is_empty()).all(|cell| numeric(cell))
        };
        let columns: String =
            (0..table.heads.len()).map(|c| if right(c) { 'r' } else { 'l' }).collect();
        let (more, number) = match part {
            0 => (String::new(), String::new()),
            part => (" (continued)".into(), format!(":{}", part + 1)),
        };
        let _ = writeln!(
            out,
            "\n\\begin{{table}}[htbp]\n\\centering\\small\n\\caption{{{}{more}}}\n\\label{{{}{number}}}\n\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%\n\\begin{{tabular}}{{{columns}}}\n\\toprule",
            text(caption),
            super::key(label),
        );
        line(out, &table.heads);
        out.push_str("\\midrule\n");
        rows.iter().for_each(|row| line(out, row));
        out.push_str("\\bottomrule\n\\end{tabular}}\n\\end{table}\n");
    }
}

fn line(out: &mut String, cells: &[String]) {
    // A bracket after \\ would be read as its argument.
    let cells: Vec<String> = cells.iter().map(|cell| format!("{{{}}}", text(cell))).collect();
    let _ = writeln!(out, "{} \\\\", cells.join(" & "));
}

fn claims(out: &mut String, claims: &[ClaimText], label: &str) {
    for (part, some) in claims.chunks(ROWS / 4).enumerate() {
        let number = if part == 0 { String::new() } else { format!(":{}", part + 1) };
        let amended = if some.iter().any(|claim| claim.amended) { AMENDED } else { "" };
        let _ = writeln!(
            out,
            "\n\\begin{{table}}[htbp]\n\\centering\\small\n\\caption{{{}}}\n\\label{{{}{number}}}\n\\begin{{tabular}}{{p{{0.46\\linewidth}}p{{0.18\\linewidth}}p{{0.24\\linewidth}}}}\n\\toprule\nclaim & verdict & estimate \\\\\n\\midrule",
            text(format!("Claims and their verdicts. {amended}").trim_end()),
            super::key(label),
        );
        for claim in some {
            let source = claim.stated.source.as_ref().filter(|source| !source.is_empty());
            let source = source.map(|source| format!(" ({source})")).unwrap_or_default();
            let statement = format!("{}{source}", claim.stated.statement);
            let cells = [statement, claim.verdict_text.clone(), claim.tested.estimate.clone()];
            line(out, &cells);
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    }
}
