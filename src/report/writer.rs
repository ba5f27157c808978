//! Writes the pages of experiments, the other files in their folders, and the pages about all experiments.

use super::format::Format;
use super::index::OverviewPages;
use super::index_entry::IndexEntry;
use super::live_versions::LiveVersions;
use super::navigation::{PAGES, PageLink, page_files, with_navigation};
use super::owned::{FIGURE_ENDS, FRONTIER, Owned, PAPER, is_figure, is_table};
use super::page::Page;
use super::provenance::provenance;
use super::published::PublishedElsewhere;
use super::summary::write_summary;
use super::templates::Templates;
use super::{frontier_csv, latex, series};
use crate::chart;
use crate::chart::export::{ExportError, Outlines, TEXT, pixels};
use crate::compare::record::{FINALS, RECORD};
use crate::compare::results::write_record;
use crate::evidence::{Experiment, Figure};
use exactfed_runner::files::{
    Error, MOST_READ, check_writable, create_below, error, read_regular, refuse_links,
    remove_leftovers,
};
use exactfed_runner::panics::lock;
use minijinja::context;
use minijinja::value::{Serde, Value};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// Writes the pages of experiments, in sequence or in parallel ([`Writer::page`]), and then the pages about all
/// experiments ([`Writer::index`]), so that only a few experiments are in memory at the same time. While a run goes on,
/// both are written again and again.
pub struct Writer {
    pub(super) templates: Templates,
    pub(super) out: PathBuf,
    pub(super) owned: Owned,
    formats: Vec<Format>,
    /// Width of figures for papers (PDF, PNG and `.paper.svg`), which a caller may set; figures of pages have another.
    pub inches: f64,
    /// Whether pages show the cells of their manifests and nothing else that results contain, as `reproduce` wants it.
    /// The writer does not read it: whoever analyses an experiment for [`Writer::page`] leaves the rest out.
    pub of_manifests: bool,
    /// Published experiments in another folder, which the pages about all experiments name.
    pub elsewhere: Option<PublishedElsewhere>,
    /// The pages about all experiments to which the pages of experiments link; `None` until an index was written.
    linked: Mutex<Option<Vec<&'static PageLink>>>,
    /// The versions of pages while a run rewrites them; `None` if there is no such run.
    pub(super) live: Mutex<Option<LiveVersions>>,
}

/// A function that makes a file of a drawing, whose width is given in inches.
type Export = fn(&Outlines, f64) -> Result<Vec<u8>, ExportError>;

impl Writer {
    /// A writer of pages of these formats in this folder, which it creates. Figures for papers
    /// are as wide as the text of a paper.
    ///
    /// # Errors
    /// If there can be no such folder, no file can be written to it, or a page would overwrite a file that is not its
    /// own.
    pub fn new(out: &Path, formats: &[Format]) -> Result<Self, Error> {
        fs::create_dir_all(out).map_err(|e| error(out, e))?;
        check_writable(out)?;
        let writer = Self {
            templates: Templates::new(),
            out: out.to_owned(),
            owned: Owned::open(out)?,
            formats: formats.to_vec(),
            inches: TEXT,
            of_manifests: false,
            elsewhere: None,
            linked: Mutex::default(),
            live: Mutex::default(),
        };
        // The pages of experiments are claimed when they are written, the pages about all experiments now, before work
        // is done for them.
        for (file, _) in page_files().filter(|(file, _)| writer.writes(file)) {
            let page = writer.out.join(file);
            if page.exists() {
                writer.owned.claim(&page, &[])?;
            }
        }
        Ok(writer)
    }

    /// Whether a page with this file name is in one of the formats that this writer writes.
    fn writes(&self, file: &str) -> bool {
        let format = if file.ends_with(".html") { Format::Html } else { Format::Md };
        self.formats.contains(&format)
    }

    /// The index that a reader should open first; the folder of the reports if no format of this writer has an index.
    pub fn index_file(&self) -> PathBuf {
        let page = ["index.html", "README.md"].into_iter().find(|page| self.writes(page));
        page.map_or_else(|| self.out.clone(), |page| self.out.join(page))
    }

    /// What is in a file below the folder that a report wrote, to change it; `name` has `/` between parts.
    /// `None` for any other file, and for one that is reached through a symbolic link, cannot be read or has more than
    /// [`MOST_READ`] bytes.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.out.join(name);
        let mut parts = Path::new(name).components();
        let is_own = parts.all(|part| matches!(part, Component::Normal(_)))
            && self.owned.has(&path)
            && refuse_links(&self.out, &path).is_ok();
        is_own.then(|| read_regular(&path, MOST_READ).ok()).flatten()
    }

    /// Writes the folder of an experiment: its page with tables and figures, and the files for other programs, among
    /// them what a later `diff` compares ([`RECORD`], [`FINALS`]). Removes the tables that the page no longer has.
    /// Returns what [`Self::index`] needs of the experiment. Several threads may call it, for different experiments.
    ///
    /// # Errors
    /// If a file cannot be written, or an analysis text is not a template.
    pub fn page(&self, experiment: &Experiment<'_>) -> Result<IndexEntry, Error> {
        let name = &experiment.plan.experiment;
        let folder = self.out.join(name);
        let figures = folder.join("figures");
        create_below(&self.out, &figures)?;
        let manifest = Path::new(&experiment.plan.source.name);
        // The names of the files with whole tables, or the first error.
        let mut written = Ok(BTreeSet::new());
        let page = Page::new(experiment, &mut |name, write| {
            let Ok(names) = &mut written else { return };
            names.insert(name.to_owned());
            if let Err(fault) = self.owned.stream(&folder.join(name), write) {
                written = Err(fault);
            }
        });
        let page = page.map_err(|e| error(manifest, e))?;
        let mut tables = written?;
        self.write_figures(&figures, experiment, &page)?;
        if self.formats.contains(&Format::Latex) {
            let text = latex::tables(experiment.plan, &page);
            self.owned.write(&folder.join("tables.tex"), text.as_bytes())?;
        }
        self.write_report(name, &page)?;
        if !experiment.frontiers.is_empty() {
            let text = frontier_csv::csv(&experiment.frontiers);
            self.owned.write(&folder.join(FRONTIER), text.as_bytes())?;
            tables.insert(FRONTIER.to_owned());
        }
        // A frontier.csv of a manifest that no longer has a frontier is among the files that go.
        sweep(&self.owned, &folder, is_table, &tables)?;
        let [summary, finals] = ["summary.csv", FINALS].map(|file| folder.join(file));
        // `write_record` writes FINALS, and returns the text of RECORD.
        let (summary, record) = rayon::join(
            || self.owned.stream(&summary, |out| write_summary(experiment, out)),
            || self.owned.stream(&finals, |out| write_record(experiment, out)),
        );
        summary?;
        self.owned.write(&folder.join(RECORD), record?.as_bytes())?;
        self.owned.write(&folder.join("provenance.md"), provenance(experiment).as_bytes())?;
        Ok(IndexEntry::new(experiment, page))
    }

    /// Writes the drawings and the values of an experiment's figures to `folder`: as SVG, as CSV, and in the formats
    /// for papers. Removes the files of figures that the experiment no longer has. Of a figure that it has, files in
    /// formats that are not wanted this time stay as an earlier report wrote them.
    fn write_figures(
        &self,
        folder: &Path,
        experiment: &Experiment<'_>,
        page: &Page,
    ) -> Result<(), Error> {
        for figure in &page.figures {
            let file = folder.join(format!("{}.svg", figure.id));
            self.owned.write(&file, figure.svg.as_bytes())?;
        }
        for figure in &experiment.figures {
            self.export(folder, figure)?;
            let file = folder.join(format!("{}.csv", figure.id));
            self.owned.write(&file, series::csv(figure).as_bytes())?;
        }
        let mut wanted = BTreeSet::new();
        for figure in &page.figures {
            wanted.extend(FIGURE_ENDS.iter().map(|end| format!("{}{end}", figure.id)));
        }
        sweep(&self.owned, folder, is_figure, &wanted)
    }

    /// Writes the page of the experiment of this name in Markdown and HTML, as far as these formats are wanted. The
    /// page in HTML links to the pages about all experiments that the last index had; before there was one, to none:
    /// [`Self::link_reports`] adds the links.
    fn write_report(&self, experiment: &str, page: &Page) -> Result<(), Error> {
        let up = "../".repeat(experiment.split('/').count());
        let values = Value::from(Serde(page));
        for file in ["report.md", "report.html"].into_iter().filter(|f| self.writes(f)) {
            let context = context! { page => values.clone(), up => up.clone() };
            let mut text = self.templates.render(file, context)?;
            if let Some(places) = lock(&self.linked).as_ref() {
                text = with_navigation(&text, &up, "", places);
            }
            self.write_page(&format!("{experiment}/{file}"), &up, &text)?;
        }
        Ok(())
    }

    /// Writes a figure to `folder` in each format for papers that is wanted. It is drawn anew for the width in the
    /// paper, so that its text has the same size in each format.
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

    /// Writes the pages about all experiments, `entries`, and removes those that would be empty. The index lists the
    /// experiments whose pages could not be written, `failed`, each by its name and with the reason. Removes the status
    /// of a run that was killed, and writes the list of what reports wrote in order.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn index(
        &self,
        entries: Vec<IndexEntry>,
        failed: &[(String, String)],
    ) -> Result<(), Error> {
        let names: Vec<String> = entries.iter().map(|entry| entry.name().to_owned()).collect();
        let pages = OverviewPages::new(entries, self.elsewhere.as_ref());
        let mut shown: BTreeMap<&str, Value> = BTreeMap::new();
        for (page, _) in PAGES {
            shown.extend(pages.shown(page).map(|values| (page, values)));
        }
        let is_linked = |(page, words): &&PageLink| shown.contains_key(page) && !words.is_empty();
        let places: Vec<&'static PageLink> = PAGES.iter().filter(is_linked).collect();
        self.link_reports(&names, &places)?;
        let common = context! {
            smoke => shown.get("smoke"),
            published => shown.get("published"),
            guide => shown.get("which-algorithm"),
            coverage => shown.get("coverage"),
            errata => shown.get("errata"),
            failed => Value::from(Serde(failed)),
            has_disputes => shown.contains_key("disagreements"),
        };
        // The index comes last: what it lists is complete.
        for (file, page) in page_files().filter(|(file, _)| self.writes(file)) {
            let path = self.out.join(&file);
            if let Some(gallery) = shown.get(page) {
                let values = context! { gallery, ..common.clone() };
                let text = self.templates.render(&file.replace("README", "index"), values)?;
                let text = with_navigation(&text, "", page, &places);
                self.write_page(&file, "", &text)?;
            } else if self.owned.has(&path) && path.exists() {
                fs::remove_file(&path).map_err(|e| error(&path, e))?;
            }
        }
        self.remove_status()?;
        self.owned.settle()
    }

    /// Lets the pages of experiments link to the pages about all experiments in `places` from now on, and replaces the
    /// links of the pages of the experiments `names`, which were written before, where these differ. Only pages in HTML
    /// have such links. A page that cannot be read stays as it is.
    fn link_reports(&self, names: &[String], places: &[&'static PageLink]) -> Result<(), Error> {
        let before = lock(&self.linked).replace(places.to_vec());
        if before.as_deref() == Some(places) || !self.writes("report.html") {
            return Ok(());
        }
        for name in names {
            let file = format!("{name}/report.html");
            let read = self.read(&file).and_then(|bytes| String::from_utf8(bytes).ok());
            let Some(text) = read else { continue };
            let linked = with_navigation(&text, &"../".repeat(name.split('/').count()), "", places);
            if linked != text {
                // Not by `write_html`: the text has its bar already if a run goes on.
                self.owned.write(&self.out.join(&file), linked.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Writes a page in HTML or Markdown. `file` is its path below the folder of the reports, to which `up` leads from
    /// the page.
    fn write_page(&self, file: &str, up: &str, text: &str) -> Result<(), Error> {
        if file.ends_with(".html") {
            return self.write_html(file, up, text);
        }
        self.owned.write(&self.out.join(file), text.as_bytes())
    }
}

/// Removes obsolete files from a folder: figures that the manifest no longer has, and tables that the page no longer
/// has or that fit the page again. They are the files whose names `is_of_kind` accepts and `wanted` does not have, and
/// which `owned` lists as written by a report. Also removes temporary files that killed processes have left there,
/// whatever `is_of_kind` says of them.
fn sweep(
    owned: &Owned,
    folder: &Path,
    is_of_kind: fn(&str) -> bool,
    wanted: &BTreeSet<String>,
) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|e| error(folder, e))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_of_kind(&name) && !wanted.contains(&name) && owned.has(&entry.path()) {
            fs::remove_file(entry.path()).map_err(|e| error(&entry.path(), e))?;
        }
    }
    remove_leftovers(folder);
    Ok(())
}
