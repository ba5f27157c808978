//! What is answered to a request: pages with the progress of the run, other files as they are.
//!
//! *Invariant*: only files that a report wrote are served, and only to requests that name the
//! server by its address. A page is served as it is on the disk except for the inserted bar and
//! the permission to ask for the progress.

use super::address::Address;
use crate::cli::pages::LivePages;
use crate::cli::run::RunStatus;
use exactfed_runner::files::sha256;
use std::sync::Arc;

/// The bar and its script, inserted at the end of each page.
const BAR: &str = include_str!("../../../templates/watch.html");
/// In [`BAR`], the place of the progress at the time of the answer.
const AT_FIRST: &str = "{status}";
/// The path of the progress, before the path of the page that asks.
const STATUS: &str = "/.watch/status/";
/// The beginning of the content security policy of a page.
const POLICY: &str = "http-equiv=\"Content-Security-Policy\" content=\"";
/// What is served instead of the index before it is written.
const NO_INDEX: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>exactfed</title>\n<style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }</style>\n</head>\n<body>\n<main>\n<h1>exactfed</h1>\n<p>The reports appear here as soon as they are written.</p>\n</main>\n</body>\n</html>\n";

/// The pages of a run, its progress, and where they are served.
pub struct Site {
    pub pages: Arc<LivePages<'static>>,
    pub status: Arc<RunStatus>,
    pub address: Address,
}

/// An answer to a request.
pub struct Answer {
    /// The status code of HTTP.
    pub code: u16,
    /// The media type.
    pub media: &'static str,
    pub body: Vec<u8>,
}

impl Answer {
    /// A message in plain text.
    pub fn text(code: u16, text: impl Into<Vec<u8>>) -> Self {
        Self { code, media: TEXT, body: text.into() }
    }

    fn found(media: &'static str, body: Vec<u8>) -> Self {
        Self { code: 200, media, body }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
/// The media type of pages.
pub const HTML: &str = "text/html; charset=utf-8";

impl Site {
    /// The answer to a request for a path, with this `Host` header.
    pub fn answer(&self, is_reading: bool, host: Option<&str>, path: &str) -> Answer {
        if !host.is_some_and(|host| self.address.is_addressed_by(host)) {
            // Other sites could otherwise read the pages, under a name that leads to this machine.
            let url = self.address.url();
            let text = format!("These pages are at {url}, under no other name or port.\n");
            return Answer::text(403, text);
        }
        if !is_reading {
            return Answer::text(405, "Pages can only be read.\n");
        }
        if let Some(page) = path.strip_prefix(STATUS) {
            let status = self.status_of(page, self.file(page).as_deref());
            return Answer::found("application/json", status.into_bytes());
        }
        let name = path.strip_prefix('/').unwrap_or(path);
        match (self.file(name), media(name)) {
            (Some(page), HTML) => {
                Answer::found(HTML, with_bar(&page, &self.status_of(name, Some(&page))))
            }
            (Some(body), media) => Answer::found(media, body),
            (None, HTML) if name.is_empty() => {
                Answer::found(HTML, with_bar(NO_INDEX.as_bytes(), &self.status_of(name, None)))
            }
            // Browsers ask for it, and would report an error to the console of each page.
            (None, _) if path == "/favicon.ico" => Answer::text(204, ""),
            (None, _) => Answer::text(404, "There is no such page.\n"),
        }
    }

    /// The progress for a page with this content, as JSON.
    fn status_of(&self, name: &str, page: Option<&[u8]>) -> String {
        let experiment = name.strip_suffix("/report.html");
        // Pages that differ have different versions.
        let version = page.map(|page| sha256(page)[..16].to_owned());
        self.status.read(experiment, version).to_string()
    }

    /// The file of a path; that of no path is the index.
    fn file(&self, name: &str) -> Option<Vec<u8>> {
        self.pages.writer.read(if name.is_empty() { "index.html" } else { name })
    }
}

/// The media type of a file. The index has no name.
fn media(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("html", |(_, ending)| ending) {
        "html" => HTML,
        "svg" => "image/svg+xml",
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        _ => TEXT,
    }
}

/// A page with the bar, which shows this progress and may ask this server for the progress.
fn with_bar(page: &[u8], status: &str) -> Vec<u8> {
    let Ok(page) = std::str::from_utf8(page) else { return Vec::new() };
    // A directive that comes again later is ignored.
    let page = page.replacen(POLICY, &format!("{POLICY}connect-src 'self'; "), 1);
    // Without `<`, nothing in the progress ends its element.
    let bar = BAR.replace(AT_FIRST, &status.replace('<', "\\u003c"));
    match page.rsplit_once("</body>") {
        Some((before, after)) => format!("{before}{bar}</body>{after}"),
        None => page + &bar,
    }
    .into_bytes()
}
