//! Pages from analysed experiments: the only user of minijinja.
//!
//! *Invariant*: a page is a function of the results alone. It has no time, no machine and no
//! commit, so that writing it again changes nothing; those are on a provenance page in the same
//! folder, which is not under version control.
//!
//! *Invariant*: everything that comes from a manifest is escaped.

mod claims;
mod description;
pub mod diff;
mod formula;
mod latex;
mod markdown;
mod number_text;
mod numbers;
mod owned;
mod page_data;
mod series;
mod truncation;
mod view;

use crate::analysis::table::FinalsColumns;
use crate::analysis::{Experiment, compare, unique};
use crate::chart::export::Outlines;
use crate::stats::mean;
use driftbench_core::sources;
use driftbench_core::words::count;
use driftbench_runner::files::{Error, error, remove_leftovers};
use driftbench_runner::manifest::Quantity;
use driftbench_runner::plan::Plan;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use owned::{FIGURE_ENDS, Owned, PAGES, is_figure, is_table};
use series::quoted;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pages for a browser.
    Html,
    /// Pages for a code host.
    Md,
    /// Tables and figures for a paper.
    Latex,
    /// Figures, as outlines.
    Pdf,
    /// Figures, as images.
    Png,
}

/// Writes the pages of experiments, in sequence or in parallel, and then an index of all, so that
/// only a few experiments are in memory at the same time.
pub struct Writer {
    pages: Pages,
    out: PathBuf,
    owned: Owned,
    formats: Vec<Format>,
    /// Width of PDF and PNG figures.
    inches: f64,
}

/// A drawing of so many inches as a file.
type Export = fn(&Outlines, f64) -> Result<Vec<u8>, String>;

/// What the index needs of an experiment.
pub struct IndexEntry {
    page: Value,
    claims: Vec<claims::ClaimText>,
}

impl Writer {
    /// A writer of pages of these formats in this folder, which it creates. PDF and PNG figures
    /// are so many inches wide.
    ///
    /// # Errors
    /// If there can be no such folder, or a page would overwrite a file that is not its own.
    pub fn new(out: &Path, formats: Vec<Format>, inches: f64) -> Result<Self, Error> {
        fs::create_dir_all(out).map_err(|e| error(out, e))?;
        let owned = Owned::open(out)?;
        let writer = Self { pages: Pages::new(), out: out.to_owned(), owned, formats, inches };
        let pages = PAGES.iter().filter(|page| writer.writes(page)).map(|page| out.join(page));
        pages.filter(|page| page.exists()).try_for_each(|page| writer.owned.claim(&page, &[]))?;
        Ok(writer)
    }

    /// Whether a page is of one of the formats.
    fn writes(&self, file: &str) -> bool {
        let format = if file.ends_with(".html") { Format::Html } else { Format::Md };
        self.formats.contains(&format)
    }

    /// The file or folder to open first.
    pub fn front(&self) -> PathBuf {
        let front = ["index.html", "README.md"].into_iter().find(|page| self.writes(page));
        front.map_or_else(|| self.out.clone(), |page| self.out.join(page))
    }

    /// Writes an experiment's page and the other files in its folder.
    ///
    /// # Errors
    /// If a file cannot be written, or an analysis text is not a template.
    pub fn page(&self, experiment: &Experiment<'_>) -> Result<IndexEntry, Error> {
        let folder = self.out.join(&experiment.plan.experiment);
        let figures = folder.join("figures");
        check_inside(&self.out, &figures)?;
        fs::create_dir_all(&figures).map_err(|e| error(&figures, e))?;
        let manifest = Path::new(&experiment.plan.source.name);
        let page = view::page(experiment).map_err(|message| error(manifest, message))?;
        for figure in &page.figures {
            self.figure(&figures, &figure.id, &figure.svg)?;
        }
        for figure in &experiment.figures {
            let file = figures.join(format!("{}.csv", figure.id));
            self.owned.write(&file, series::csv(figure).as_bytes())?;
        }
        if self.formats.contains(&Format::Latex) {
            for (name, text) in latex::files(experiment, &page) {
                self.owned.write(&folder.join(name), text.as_bytes())?;
            }
        }
        let ids = FIGURE_ENDS
            .iter()
            .flat_map(|end| page.figures.iter().map(move |f| format!("{}{end}", f.id)));
        sweep(&self.owned, &figures, is_figure, &ids.collect())?;
        let depth = experiment.plan.experiment.split('/').count();
        let (up, values) = ("../".repeat(depth), Value::from(Serde(&page)));
        for file in ["report.md", "report.html"].into_iter().filter(|f| self.writes(f)) {
            let text =
                self.pages.render(file, context! { page => values.clone(), up => up.clone() })?;
            self.owned.write(&folder.join(file), text.as_bytes())?;
        }
        for (file, text) in &page.files {
            self.owned.write(&folder.join(file), text.as_bytes())?;
        }
        let tables = page.files.iter().map(|(file, _)| file.clone()).collect();
        sweep(&self.owned, &folder, is_table, &tables)?;
        self.owned.write(&folder.join("summary.csv"), summary(experiment).as_bytes())?;
        for (file, text) in compare::record::files(&compare::results::side_experiment(experiment)) {
            self.owned.write(&folder.join(file), text.as_bytes())?;
        }
        let provenance = provenance(experiment);
        self.owned.write(&folder.join("provenance.md"), provenance.as_bytes())?;
        let names = page.figures.into_iter().map(|f| context! { id => f.id, title => f.title });
        let figures: Vec<Value> = names.collect();
        let counts = Value::from(Serde(page.claims.counts));
        let experiment = Value::from(Serde(page.experiment));
        Ok(IndexEntry { page: context! { experiment, counts, figures }, claims: page.claims.list })
    }

    /// Writes the drawing of a figure in each format.
    fn figure(&self, folder: &Path, id: &str, svg: &str) -> Result<(), Error> {
        let file = |end: &str| folder.join(format!("{id}{end}"));
        self.owned.write(&file(".svg"), svg.as_bytes())?;
        let exports: [(Format, &str, Export); 2] =
            [(Format::Pdf, ".pdf", Outlines::pdf), (Format::Png, ".png", Outlines::png)];
        let outlines = LazyCell::new(|| Outlines::new(svg));
        for (_, end, export) in exports.iter().filter(|one| self.formats.contains(&one.0)) {
            let file = file(end);
            let bytes = outlines.as_ref().map_err(String::clone);
            let bytes = bytes.and_then(|outlines| export(outlines, self.inches));
            self.owned.write(&file, &bytes.map_err(|e| error(&file, e))?)?;
        }
        Ok(())
    }

    /// Writes the index, the claims and the disagreements. Experiments without a page are listed
    /// with the reason.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn index(
        &self,
        entries: Vec<IndexEntry>,
        failed: &[(String, String)],
    ) -> Result<(), Error> {
        let (mut pages, mut claims) = (Vec::new(), Vec::new());
        for entry in entries {
            pages.push(entry.page);
            claims.extend(entry.claims);
        }
        let sources: Vec<&str> =
            claims.iter().filter_map(|claim| claim.stated.source.as_deref()).collect();
        let values = context! {
            pages,
            cited => Value::from(Serde(sources::named_in(&sources.join(";")))),
            failed => Value::from(Serde(failed)),
            claims => Value::from(Serde(&claims)),
            counts => Value::from(Serde(claims::counts(&claims))),
            tally => Value::from(Serde(claims::counts(&claims))), // where `counts` is a macro
            disputes => Value::from(Serde(claims::disputes(&claims))),
        };
        for file in PAGES.into_iter().filter(|file| self.writes(file)) {
            let template = if file == "README.md" { "index.md" } else { file };
            let text = self.pages.render(template, values.clone())?;
            self.owned.write(&self.out.join(file), text.as_bytes())?;
        }
        self.owned.settle()
    }
}

/// Checks that a manifest's analysis text is a template and names cells of the plan.
///
/// # Errors
/// What is wrong with it.
pub fn check_analysis(plan: &Plan) -> Result<(), String> {
    let text = plan.manifest.analysis.as_deref().unwrap_or_default();
    description::check(text, plan)
}

/// Checks that no part of a folder below `out` is a symbolic link, so that figures are neither
/// written nor removed elsewhere.
fn check_inside(out: &Path, folder: &Path) -> Result<(), Error> {
    let mut place = out.to_owned();
    for part in folder.strip_prefix(out).unwrap_or(folder) {
        place.push(part);
        if place.symlink_metadata().is_ok_and(|kind| kind.is_symlink()) {
            return Err(error(&place, "is a symbolic link, which reports do not follow"));
        }
    }
    Ok(())
}

/// Removes files of a folder that a report wrote, whose names are those of a kind of file, and
/// that are obsolete: figures that the manifest no longer has, tables that fit their page again.
fn sweep(
    owned: &Owned,
    folder: &Path,
    kind: fn(&str) -> bool,
    wanted: &BTreeSet<String>,
) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|e| error(folder, e))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind(&name) && !wanted.contains(&name) && owned.has(&entry.path()) {
            fs::remove_file(entry.path()).map_err(|e| error(&entry.path(), e))?;
        }
    }
    remove_leftovers(folder);
    Ok(())
}

const TABLES: &str = include_str!("../../templates/tables.js");
const FIGURES: &str =
    concat!(include_str!("../../templates/figures.js"), include_str!("../../templates/plots.js"));

struct Pages(Environment<'static>);

impl Pages {
    fn new() -> Self {
        let mut env = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        env.set_syntax(syntax.build().expect("the default delimiters are valid"));
        env.add_filter("md", markdown::escaped);
        env.add_filter("count", |number: usize, noun: &str| count(number, noun));
        env.add_filter("prose", markdown::prose);
        env.add_filter("code", markdown::code);
        env.add_filter("fenced", markdown::fenced);
        // Scripts are plain text and not templates.
        env.add_global("tables_js", Value::from_safe_string(TABLES.into()));
        env.add_global("figures_js", Value::from_safe_string(FIGURES.into()));
        for (name, text) in [
            ("parts.md", include_str!("../../templates/parts.md")),
            ("report.md", include_str!("../../templates/report.md")),
            ("report.html", include_str!("../../templates/report.html")),
            ("index.md", include_str!("../../templates/index.md")),
            ("index.html", include_str!("../../templates/index.html")),
            ("claims.md", include_str!("../../templates/claims.md")),
            ("claims.html", include_str!("../../templates/claims.html")),
            ("disagreements.md", include_str!("../../templates/disagreements.md")),
            ("disagreements.html", include_str!("../../templates/disagreements.html")),
            ("diff.md", include_str!("../../templates/diff.md")),
            ("diff.html", include_str!("../../templates/diff.html")),
            ("style.css", include_str!("../../templates/style.css")),
            ("parts.html", include_str!("../../templates/parts.html")),
        ] {
            env.add_template(name, text).expect("the templates are part of the program");
        }
        Self(env)
    }

    fn render(&self, name: &str, values: Value) -> Result<String, Error> {
        let rendered = self.0.get_template(name).and_then(|t| t.render(values));
        rendered.map_err(|e| error(Path::new(name), e))
    }
}

/// A number with nine digits: enough to show a change, few enough to be equal on all machines.
fn number(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:.8e}") }
}

/// One line per cell, for programs and for later diffs.
fn summary(experiment: &Experiment<'_>) -> String {
    let columns = FinalsColumns::new(experiment);
    let mut out = String::from("cell,label");
    columns.settings.iter().for_each(|name| out.push_str(&format!(",{}", quoted(name))));
    out.push_str(",n,diverged,sq_error_mean,sq_error_sd,sq_error_ci95_low,sq_error_ci95_high");
    columns.further.iter().for_each(|q| out.push_str(&format!(",{}_mean", q.column())));
    out.push_str(",digest\n");
    for result in &experiment.cells {
        let (cell, runs) = (result.cell, &result.runs);
        let _ = write!(out, "{},{}", cell.id, quoted(&cell.label));
        for value in columns.values(cell) {
            out.push_str(&format!(",{}", quoted(&value)));
        }
        let _ = write!(out, ",{},{}", runs.count, runs.diverged);
        let summary = result.summary(Quantity::SqError);
        let four = summary.map_or([f64::NAN; 4], |s| [s.mean, s.sd, s.interval.0, s.interval.1]);
        let further =
            columns.further.iter().map(|q| runs.finals(*q).map_or(f64::NAN, |s| mean(&s)));
        for value in four.into_iter().chain(further) {
            out.push_str(&format!(",{}", number(value)));
        }
        let _ = writeln!(out, ",{}", result.digest);
    }
    out
}

/// Which versions computed the results, on which system, and how long it took.
fn provenance(experiment: &Experiment<'_>) -> String {
    let by = experiment.cells.iter().map(|cell| {
        let p = &cell.provenance;
        let dirty = if p.dirty { ", with uncommitted changes" } else { "" };
        format!("- driftbench {} at commit {}{dirty}", p.version, p.commit)
    });
    let seconds: f64 = experiment.cells.iter().map(|c| c.seconds).sum();
    format!(
        "# Provenance of {}\n\nThe results were computed by\n\n{}\n\nin {seconds:.1} s of one thread. This page was written on {} ({}, {} processors).\n",
        experiment.plan.experiment,
        unique(by).join("\n"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        std::thread::available_parallelism().map_or(1, usize::from),
    )
}
