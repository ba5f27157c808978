//! Pages from analysed experiments: the only user of minijinja.
//!
//! *Invariant*: a page is a function of the results alone. It has no time, no machine and no
//! commit, so that writing it again changes nothing; those are on a provenance page in the same
//! folder, which is not under version control. While a run rewrites pages they also have a bar
//! ([`live`]).
//!
//! *Invariant*: everything that comes from a manifest is escaped.

mod amendments;
mod claims;
mod coverage;
pub mod diff;
mod finding;
mod fixed_figure;
mod format;
mod formula;
mod frontier;
mod guide;
pub mod history;
mod index;
mod interval_chart;
mod latex;
mod live;
mod looks;
mod manifest_texts;
mod markdown;
mod matrix;
mod navigation;
mod notation;
mod number_text;
mod numbers;
mod owned;
mod page_data;
mod series;
mod topics;
mod truncation;
mod tuning;
mod view;

use crate::chart::export::{ExportError, Outlines, TEXT, pixels};
use crate::chart::{self, style};
use crate::compare::record::{FINALS, RECORD};
use crate::compare::results::write_record;
use crate::evidence::family::FAMILIES;
use crate::evidence::table::FinalsColumns;
use crate::evidence::{Color, Experiment, Figure, unique};
use crate::stats::mean;
use exactfed_core::sources;
use exactfed_core::words::count;
use exactfed_runner::files::{
    Error, MOST_READ, check_writable, create_below, error, read_regular, refuse_links,
    remove_leftovers,
};
use exactfed_runner::panics::lock;
use exactfed_runner::plan::Plan;
pub use format::Format;
pub use index::IndexEntry;
use live::LiveVersions;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, State, context};
use navigation::{PAGES, PageLink, page_files, with_navigation};
use number_text::nine_digits;
use owned::{FIGURE_ENDS, FRONTIER, Owned, PAPER, is_figure, is_table};
use series::line;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// Writes the pages of experiments, in sequence or in parallel, and then an index of all, so that
/// only a few experiments are in memory at the same time.
pub struct Writer {
    pages: Pages,
    out: PathBuf,
    owned: Owned,
    formats: Vec<Format>,
    /// Width of figures for papers.
    pub inches: f64,
    /// Whether pages show the cells of their manifests and nothing else that results contain.
    pub of_manifests: bool,
    /// The pages about all experiments to which pages have links, once an index was written.
    linked: Mutex<Option<Vec<&'static PageLink>>>,
    /// The versions of pages, while a run rewrites them.
    live: Mutex<Option<LiveVersions>>,
}

/// A drawing of so many inches as a file.
type Export = fn(&Outlines, f64) -> Result<Vec<u8>, ExportError>;

impl Writer {
    /// A writer of pages of these formats in this folder, which it creates. Figures for papers
    /// are as wide as the text of a paper.
    ///
    /// # Errors
    /// If there can be no such folder, no file can be written to it, or a page would overwrite a file that is not its own.
    pub fn new(out: &Path, formats: &[Format]) -> Result<Self, Error> {
        fs::create_dir_all(out).map_err(|e| error(out, e))?;
        check_writable(out)?;
        let (owned, formats) = (Owned::open(out)?, formats.to_vec());
        let (out, inches) = (out.to_owned(), TEXT);
        let pages = Pages::new();
        let linked = Mutex::default();
        let live = Mutex::default();
        let writer = Self { pages, out, owned, formats, inches, of_manifests: false, linked, live };
        let pages = page_files().filter(|(file, _)| writer.writes(file));
        let mut existing =
            pages.map(|(file, _)| writer.out.join(file)).filter(|page| page.exists());
        existing.try_for_each(|page| writer.owned.claim(&page, &[]))?;
        Ok(writer)
    }

    /// Whether a page is of one of the formats.
    fn writes(&self, file: &str) -> bool {
        let format = if file.ends_with(".html") { Format::Html } else { Format::Md };
        self.formats.contains(&format)
    }

    /// The page to open first, or the folder where no format has one.
    pub fn index_file(&self) -> PathBuf {
        let page = ["index.html", "README.md"].into_iter().find(|page| self.writes(page));
        page.map_or_else(|| self.out.clone(), |page| self.out.join(page))
    }

    /// What is in a file below the folder that a report wrote; `name` has `/` between parts.
    /// `None` for any other file, and for one that is reached through a symbolic link.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let path = self.out.join(name);
        let is_own = Path::new(name).components().all(is_plain)
            && self.owned.has(&path)
            && refuse_links(&self.out, &path).is_ok();
        is_own.then(|| read_regular(&path, MOST_READ).ok()).flatten()
    }

    /// Writes an experiment's page and the other files in its folder.
    ///
    /// # Errors
    /// If a file cannot be written, or an analysis text is not a template.
    pub fn page(&self, experiment: &Experiment<'_>) -> Result<IndexEntry, Error> {
        let folder = self.out.join(&experiment.plan.experiment);
        let figures = folder.join("figures");
        create_below(&self.out, &figures)?;
        let manifest = Path::new(&experiment.plan.source.name);
        // The names of the files with whole tables, or the first error.
        let mut tables = Ok(BTreeSet::new());
        let page = view::page(experiment, &mut |name, write| {
            let Ok(names) = &mut tables else { return };
            names.insert(name.to_owned());
            if let Err(fault) = self.owned.stream(&folder.join(name), write) {
                tables = Err(fault);
            }
        });
        let page = page.map_err(|message| error(manifest, message))?;
        let mut tables = tables?;
        for figure in &page.figures {
            let file = figures.join(format!("{}.svg", figure.id));
            self.owned.write(&file, figure.svg.as_bytes())?;
        }
        for figure in &experiment.figures {
            self.export(&figures, figure)?;
            let file = figures.join(format!("{}.csv", figure.id));
            self.owned.write(&file, series::csv(figure).as_bytes())?;
        }
        if self.formats.contains(&Format::Latex) {
            let text = latex::tables(experiment.plan, &page);
            self.owned.write(&folder.join("tables.tex"), text.as_bytes())?;
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
            let text = match lock(&self.linked).as_ref() {
                Some(places) => with_navigation(&text, &up, "", places),
                None => text,
            };
            self.write_page(&format!("{}/{file}", experiment.plan.experiment), &up, &text)?;
        }
        if !experiment.frontiers.is_empty() {
            let text = frontier::csv(&experiment.frontiers);
            self.owned.write(&folder.join(FRONTIER), text.as_bytes())?;
            tables.insert(FRONTIER.to_owned());
        }
        sweep(&self.owned, &folder, is_table, &tables)?;
        let [summary, finals] = ["summary.csv", FINALS].map(|file| folder.join(file));
        let (summary, record) = rayon::join(
            || self.owned.stream(&summary, |out| write_summary(experiment, out)),
            || self.owned.stream(&finals, |out| write_record(experiment, out)),
        );
        summary?;
        self.owned.write(&folder.join(RECORD), record?.as_bytes())?;
        let provenance = provenance(experiment);
        self.owned.write(&folder.join("provenance.md"), provenance.as_bytes())?;
        Ok(IndexEntry::new(experiment, page))
    }

    /// Writes a figure for papers in each format, drawn for its width, so that its text has the
    /// same size in each.
    fn export(&self, folder: &Path, figure: &Figure) -> Result<(), Error> {
        let exports: [(Format, &str, Export); 3] = [
            (Format::Pdf, ".pdf", Outlines::pdf),
            (Format::Png, ".png", Outlines::png),
            (Format::Svg, PAPER, Outlines::svg),
        ];
        let draw = || -> Result<Outlines, ExportError> {
            Outlines::new(&chart::svg(figure, pixels(self.inches))?)
        };
        let outlines = LazyCell::new(draw);
        for (_, end, export) in exports.iter().filter(|one| self.formats.contains(&one.0)) {
            let file = folder.join(format!("{}{end}", figure.id));
            let outlines = outlines.as_ref().map_err(|e| error(&file, e))?;
            let bytes = export(outlines, self.inches).map_err(|e| error(&file, e))?;
            self.owned.write(&file, &bytes)?;
        }
        Ok(())
    }

    /// Writes the index, the claims and the disagreements, and the smoke experiments where they
    /// have a page of their own. Experiments without a page are listed with the reason.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn index(
        &self,
        entries: Vec<IndexEntry>,
        failed: &[(String, String)],
    ) -> Result<(), Error> {
        let names: Vec<String> = entries.iter().map(|entry| entry.name().to_owned()).collect();
        let shown = index::pages(entries).into_iter();
        let shown: BTreeMap<&str, Value> =
            shown.map(|(page, values)| (page, Value::from(Serde(values)))).collect();
        let is_linked = |(page, words): &&PageLink| shown.contains_key(page) && !words.is_empty();
        let places: Vec<&'static PageLink> = PAGES.iter().filter(is_linked).collect();
        let [smoke, guide, coverage, errata] =
            ["smoke", "which-algorithm", "coverage", "errata"].map(|page| shown.get(page));
        let (failed, has_disputes) =
            (Value::from(Serde(failed)), shown.contains_key("disagreements"));
        let common = context! { smoke, guide, coverage, errata, failed, has_disputes };
        let before = lock(&self.linked).replace(places.clone());
        let changed = before.as_ref() != Some(&places) && self.writes("report.html");
        for name in names.iter().filter(|_| changed) {
            let file = format!("{name}/report.html");
            let text = self.read(&file).and_then(|bytes| String::from_utf8(bytes).ok());
            let up = "../".repeat(name.split('/').count());
            if let Some(text) = text {
                let linked = with_navigation(&text, &up, "", &places);
                if linked != text {
                    self.owned.write(&self.out.join(&file), linked.as_bytes())?;
                }
            }
        }
        // The index comes last: what it lists is complete.
        for (file, page) in page_files().filter(|(file, _)| self.writes(file)) {
            let (path, template) = (self.out.join(&file), file.replace("README", "index"));
            if let Some(gallery) = shown.get(page) {
                let values = context! { gallery, ..common.clone() };
                let text = self.pages.render(&template, values)?;
                let text = with_navigation(&text, "", page, &places);
                self.write_page(&file, "", &text)?;
            } else if self.owned.has(&path) && path.exists() {
                fs::remove_file(&path).map_err(|e| error(&path, e))?;
            }
        }
        self.remove_status()?;
        self.owned.settle()
    }

    /// Writes a page of a format to a file below the folder, to which `up` leads.
    fn write_page(&self, file: &str, up: &str, text: &str) -> Result<(), Error> {
        if file.ends_with(".html") {
            return self.write_html(file, up, text);
        }
        self.owned.write(&self.out.join(file), text.as_bytes())
    }
}

/// What a notebook shows of an experiment: its headline, its first figure and its claims.
///
/// # Errors
/// If a figure cannot be drawn, or the analysis text cannot be filled.
pub fn notebook(experiment: &Experiment<'_>) -> Result<String, Error> {
    let manifest = Path::new(&experiment.plan.source.name);
    let page =
        view::page(experiment, &mut |_, _| {}).map_err(|message| error(manifest, message))?;
    Pages::new().render("notebook.html", context! { page => Value::from(Serde(&page)) })
}

/// Checks that a manifest's texts on its results are templates and name cells and claims of the
/// plan.
///
/// # Errors
/// The key whose text is not, and what is wrong with it.
pub fn check_texts(plan: &Plan) -> Result<(), (&'static str, String)> {
    let manifest = &plan.manifest;
    for (key, text) in [("analysis", &manifest.analysis), ("finding", &manifest.finding)] {
        manifest_texts::check(text.as_deref().unwrap_or_default(), plan).map_err(|e| (key, e))?;
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
const TREES: [(&str, &str); 7] = templates![
    "report.page" "index.page" "smoke.page" "claims.page" "disagreements.page" "coverage.page"
    "errata.page"
];

/// The other templates.
const TEMPLATES: [(&str, &str); 20] = templates![
    "parts.md" "parts.html" "style.css" "figure.css" "figure.html" "report.css" "index.css"
    "guide.css" "which-algorithm.md" "which-algorithm.html" "notebook.html" "diff.md" "diff.html"
    "diff.css" "diff.txt" "history.md" "history.html" "history.css" "history.txt" "live.html"
];

/// Whether a template writes HTML.
fn is_html(state: &State<'_, '_>) -> bool {
    state.auto_escape() == &AutoEscape::Html
}

/// Adds the filters of the templates.
fn add_filters(env: &mut Environment<'_>) {
    env.add_filter("md", markdown::escaped);
    // Text, text of a paragraph and a name, in the language of the page.
    let escaped: fn(&str) -> String = markdown::escaped;
    for (name, in_markdown) in [("shown", escaped), ("prose", markdown::prose)] {
        env.add_filter(name, move |state: &State<'_, '_>, text: &str| match is_html(state) {
            true => notation::notation(&notation::unbroken(text)),
            false => Value::from(in_markdown(text)),
        });
    }
    env.add_filter("named", |state: &State<'_, '_>, text: &str| match is_html(state) {
        true => text.to_owned(),
        false => markdown::escaped(text),
    });
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

struct Pages(Environment<'static>);

impl Pages {
    fn new() -> Self {
        let mut env = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        env.set_syntax(syntax.build().expect("the default delimiters are valid"));
        add_filters(&mut env);
        let inks = |paper: usize| -> Vec<String> {
            let of_family = |family| style::hex(style::ink(Color::of_family(family))[paper]);
            (0..FAMILIES).map(of_family).collect()
        };
        // The colours of lines, and of the names beside them; the last is that of no family.
        let palette = |paper: usize, colors: &[(u8, u8, u8)]| -> Vec<Value> {
            let color = |(i, line): (usize, &(u8, u8, u8))| {
                let ink = style::hex(style::ink(Color::Palette(i))[paper]);
                context! { name => i.to_string(), line => style::hex(*line), ink }
            };
            let grey = style::hex(style::NEUTRAL[paper]);
            let none = context! { name => "none", line => grey.clone(), ink => grey };
            colors.iter().enumerate().map(color).chain([none]).collect()
        };
        env.add_global("amended", amendments::AMENDED);
        env.add_global("inks", context! { light => inks(0), dark => inks(1) });
        let (light, dark) = (palette(0, &style::PALETTE), palette(1, &style::DARK_PALETTE));
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

    fn render(&self, name: &str, values: Value) -> Result<String, Error> {
        let parts = if name.ends_with(".html") { "parts.html" } else { "parts.md" };
        let values = context! { parts, ..values };
        let rendered = self.0.get_template(name).and_then(|t| t.render(values));
        rendered.map_err(|e| error(Path::new(name), e))
    }
}

/// Writes one line per cell, for programs and for later diffs.
fn write_summary(experiment: &Experiment<'_>, out: &mut dyn Write) -> io::Result<()> {
    let columns = FinalsColumns::new(experiment);
    let mut heads = vec!["cell".to_owned(), "label".to_owned()];
    heads.extend(columns.settings.iter().cloned());
    heads.extend(["n", "diverged"].map(str::to_owned));
    let first = columns.first.column();
    heads.extend(["mean", "sd", "ci95_low", "ci95_high"].map(|of| format!("{first}_{of}")));
    heads.extend(columns.further.iter().map(|quantity| format!("{}_mean", quantity.column())));
    heads.push("digest".to_owned());
    out.write_all(line(&heads).as_bytes())?;
    for result in &experiment.cells {
        let (cell, runs) = (result.cell, &result.runs);
        let mut fields = vec![cell.id.to_string(), cell.label.clone()];
        fields.extend(columns.values(cell));
        fields.extend([runs.count.to_string(), runs.diverged.to_string()]);
        let summary = result.summary(columns.first);
        let four = summary.map_or([f64::NAN; 4], |s| [s.mean, s.sd, s.interval.0, s.interval.1]);
        let further =
            columns.further.iter().map(|q| runs.finals(*q).map_or(f64::NAN, |s| mean(&s)));
        fields.extend(four.into_iter().chain(further).map(nine_digits));
        fields.push(result.digest.to_string());
        out.write_all(line(&fields).as_bytes())?;
    }
    Ok(())
}

/// Which versions computed the results, on which system, and how long it took.
fn provenance(experiment: &Experiment<'_>) -> String {
    let by = experiment.cells.iter().map(|cell| {
        let p = &cell.provenance;
        let dirty = if p.dirty { ", with uncommitted changes" } else { "" };
        format!("- exactfed {} at commit {}{dirty}", p.version, p.commit)
    });
    let computed = if experiment.cells.is_empty() {
        "No results of runs are on this page.".to_owned()
    } else {
        let seconds: f64 = experiment.cells.iter().map(|cell| cell.seconds).sum();
        let versions = unique(by).join("\n");
        format!(
            "The results were computed by\n\n{versions}\n\nin {seconds:.1} s of one thread by the clock."
        )
    };
    format!(
        "# Provenance of {}\n\n{computed} This page was written on {} ({}, {} processors).\n",
        experiment.plan.experiment,
        std::env::consts::OS,
        std::env::consts::ARCH,
        std::thread::available_parallelism().map_or(1, usize::from),
    )
}
