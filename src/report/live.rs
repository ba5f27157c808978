//! Pages that a run rewrites. A bar at the end of each shows the progress, and its script reloads the
//! page once there is a newer version. The script learns both from the file [`STATUS`], which is a
//! script too, because a page that is opened as a file may load scripts and no other data.
//!
//! *Invariant*: once the run has ended, no page has a bar and there is no status
//! (`tests/suite/run_live.rs`).

use super::live_versions::LiveVersions;
use super::writer::Writer;
use exactfed_runner::files::{Error, error};
use exactfed_runner::panics::lock;
use minijinja::context;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The name of the file with the status, in the folder of the reports.
const STATUS: &str = "status.js";
/// How a bar begins.
const BEGIN: &str = "<!-- The progress of the run -->\n";
/// What follows a bar, which is the last element of a page.
const END: &str = "</body>";
/// The scripts that a page may have, in its security policy.
const SCRIPTS: &str = "script-src 'unsafe-inline'";
/// What a page with a bar may load in addition: the status, and from a web server also the page
/// itself, by which the script finds out whether the server still answers.
const SCRIPTS_OF_BAR: &str = "script-src 'unsafe-inline' 'self' file:; connect-src 'self'";

/// The status of a run, as the script of the bars reads it.
#[derive(Serialize)]
struct LiveStatus<'a, S> {
    /// How far the run is.
    #[serde(flatten)]
    run: &'a S,
    /// The newest version of each page, by its path below the folder of the reports. A page that is open and older
    /// reloads itself.
    versions: BTreeMap<&'a str, u64>,
    /// How often the status was written, this time included: a number that no longer rises shows that the run was
    /// killed.
    written: u64,
}

impl Writer {
    /// Gives the pages of these experiments, and the pages about all experiments, a bar when they are written from now
    /// on.
    ///
    /// # Errors
    /// If there is a file in the place of the status that no run wrote, or the list of what reports wrote cannot be
    /// written.
    pub fn begin_live(&mut self, experiments: BTreeSet<String>) -> Result<(), Error> {
        self.owned.claim(&self.out.join(STATUS), &[])?;
        *lock(&self.live) = Some(LiveVersions::new(experiments));
        Ok(())
    }

    /// Writes the status that the bars show: how far the run is (`run`, which serialises as a JSON object; the script
    /// `live.js` reads its keys), and the versions of the pages. Writes nothing before [`Self::begin_live`] and after
    /// [`Self::end_live`].
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_status(&self, run: &impl Serialize) -> Result<(), Error> {
        let path = self.out.join(STATUS);
        let mut state = lock(&self.live);
        let Some(live) = state.as_mut() else { return Ok(()) };
        live.statuses += 1;
        let mut versions = BTreeMap::new();
        for (file, version) in &live.pages {
            versions.insert(file.as_str(), version.number);
        }
        let status = LiveStatus { run, versions, written: live.statuses };
        let json = serde_json::to_string(&status).map_err(|e| error(&path, e))?;
        self.owned.write(&path, format!("showStatus({json});\n").as_bytes())
    }

    /// Writes the HTML of a page, with a bar if a run is going on that rewrites the page. `file` is its path below the
    /// folder of the reports, to which `up` leads from the page.
    pub(super) fn write_html(&self, file: &str, up: &str, text: &str) -> Result<(), Error> {
        let path = self.out.join(file);
        let mut live = lock(&self.live);
        let Some(version) = live.as_mut().and_then(|versions| versions.update(file, text)) else {
            drop(live);
            return self.owned.write(&path, text.as_bytes());
        };
        let bar = self.templates.render("live.html", context! { file, up, version })?;
        // `live` stays locked while the page is written, so that no status names a version that is not there yet.
        self.owned.write(&path, with_bar(text, &bar).as_bytes())
    }

    /// Lets pages be written without a bar from now on: the run writes its final pages. Pages that are open still find
    /// the status.
    pub fn end_bars(&self) {
        if let Some(versions) = lock(&self.live).as_mut() {
            versions.is_final = true;
        }
    }

    /// Removes the bars of pages that were not written again since [`Self::end_bars`], and the status. Pages that are
    /// open notice that it is gone, and reload themselves. Does nothing without a run that [`Self::begin_live`] began.
    ///
    /// # Errors
    /// If a file cannot be written or removed.
    pub fn end_live(&self) -> Result<(), Error> {
        let Some(versions) = lock(&self.live).take() else { return Ok(()) };
        for file in versions.pages.keys() {
            let text = self.read(file).and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(plain) = text.as_deref().and_then(without_bar) {
                self.owned.write(&self.out.join(file), plain.as_bytes())?;
            }
        }
        self.remove_status()?;
        self.owned.settle()
    }

    /// Removes the status that a run which has ended, or was killed, left in the folder. During a run of this writer,
    /// and where no report wrote a status, nothing happens.
    pub(super) fn remove_status(&self) -> Result<(), Error> {
        let path = self.out.join(STATUS);
        if lock(&self.live).is_some() || !self.owned.has(&path) || !path.exists() {
            return Ok(());
        }
        fs::remove_file(&path).map_err(|e| error(&path, e))
    }
}

/// A page with the HTML `bar` as its last element, and with the right to load what the bar needs. [`without_bar`] makes
/// the page of before from it again.
fn with_bar(page: &str, bar: &str) -> String {
    let page = page.replacen(SCRIPTS, SCRIPTS_OF_BAR, 1);
    let Some((before, after)) = page.rsplit_once(END) else { return page };
    [before, BEGIN, bar, END, after].concat()
}

/// The page as it was before [`with_bar`]; `None` if it has no bar.
fn without_bar(page: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.rsplit_once(END)?;
    let before = before.replacen(SCRIPTS_OF_BAR, SCRIPTS, 1);
    Some([&before, END, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><meta content=\"script-src 'unsafe-inline'; img-src data:\"><body>\n<main>script-src 'unsafe-inline'</main>\n</body>\n</html>\n";

    #[test]
    fn a_page_without_its_bar_is_as_it_was() {
        let live = with_bar(PAGE, "<section></section>\n");
        assert!(live.contains("file:; connect-src 'self'; img-src data:"), "{live}");
        assert!(live.ends_with("<section></section>\n</body>\n</html>\n"), "{live}");
        assert_eq!(without_bar(&live).as_deref(), Some(PAGE));
        assert_eq!(without_bar(PAGE), None);
    }
}
