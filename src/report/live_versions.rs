//! The versions of pages that a run rewrites, by which pages that are open find out that there is a newer one.

use exactfed_runner::files::sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// The versions of the pages that a run rewrites.
pub struct LiveVersions {
    /// The names of the experiments whose pages the run rewrites.
    experiments: BTreeSet<String>,
    /// The version of each page that was written, by the path of the page below the folder of the reports.
    pub pages: BTreeMap<String, Version>,
    /// Whether the final pages are being written, which have no bar.
    pub is_final: bool,
    /// How often the status was written.
    pub statuses: u64,
}

/// The version of a page.
pub struct Version {
    /// A number that rises when the content changes.
    pub number: u64,
    /// The hash of the content.
    hash: String,
}

impl LiveVersions {
    /// No versions yet, for a run that rewrites the pages of these experiments and the pages about all experiments.
    pub fn new(experiments: BTreeSet<String>) -> Self {
        Self { experiments, pages: BTreeMap::new(), is_final: false, statuses: 0 }
    }

    /// Takes note that a page, whose path below the folder of the reports is `file`, now has this content, and returns
    /// the number of its version, which is a new one if the content changed. `None` for a page that gets no bar: one of
    /// an experiment that is not run, and any page once the final ones are written.
    pub fn update(&mut self, file: &str, text: &str) -> Option<u64> {
        // A page about all experiments is in no folder of an experiment.
        let experiment = file.rsplit_once('/').map(|(experiment, _)| experiment);
        let is_of_run = experiment.is_none_or(|name| self.experiments.contains(name));
        if self.is_final || !is_of_run {
            return None;
        }
        let hash = sha256(text.as_bytes());
        let before = self.pages.get(file);
        if let Some(version) = before.filter(|version| version.hash == hash) {
            return Some(version.number);
        }
        // The time, so that a page of an earlier run that was killed has an older version.
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let next = before.map_or(0, |version| version.number + 1);
        let number = next.max(u64::try_from(time).unwrap_or(0));
        self.pages.insert(file.to_owned(), Version { number, hash });
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_when_pages_of_the_run_change() {
        let mut versions = LiveVersions::new(["a/b".to_owned()].into());
        let first = versions.update("a/b/report.html", "1").unwrap();
        assert_eq!(versions.update("a/b/report.html", "1"), Some(first));
        let second = versions.update("a/b/report.html", "2").unwrap();
        assert!(second > first && versions.update("a/b/report.html", "1") > Some(second));
        assert!(versions.update("index.html", "1").is_some());
        assert_eq!(versions.update("other/report.html", "1"), None);
        versions.is_final = true;
        assert_eq!(versions.update("index.html", "2"), None);
    }
}
