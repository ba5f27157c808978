//! Assembles the reports and the documents into one folder of static pages: every link between
//! them is relative, so that the folder works on any server and from a disk.
//!
//! `make site`, or `cargo run --release --locked -p exactfed-tools --bin site -- reports site`

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Documents outside `docs/`.
const TOP: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// The page that lists all documents.
const DOCUMENTS: &str = "docs/index.html";
/// The links of the navigation at the top of every page: a name, and a page of the site.
const NAVIGATION: [(&str, &str); 5] = [
    ("exactfed", "index.html"),
    ("Experiments", "reports/index.html"),
    ("Claims", "reports/claims.html"),
    ("Tutorial", "docs/TUTORIAL.html"),
    ("Docs", DOCUMENTS),
];
const NAVIGATION_STYLE: &str = include_str!("../../../templates/site.css");
const DOCUMENT_STYLE: &str = include_str!("../../../templates/document.css");
const DOCUMENT: &str = include_str!("../../../templates/document.html");
/// The name of a file in every site that this program wrote, so that it removes no other folder.
const MARK: &str = ".exactfed-site";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [reports, out] = arguments.as_slice() else {
        eprintln!("usage: site REPORTS OUT");
        return ExitCode::from(2);
    };
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    match build(root, Path::new(reports), Path::new(out)) {
        Ok(pages) => {
            eprintln!("{pages} pages written: open {out}/index.html");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Builds the site in the folder `out` from a repository and a folder of reports, and returns the number of its pages.
/// An earlier site there is removed.
///
/// # Errors
/// If there are no reports in HTML, the folder holds something else, or a file cannot be read or
/// written.
pub fn build(root: &Path, reports: &Path, out: &Path) -> Result<usize, String> {
    if !reports.join("index.html").is_file() {
        let missing = reports.join("index.html");
        return Err(format!("{} does not exist: run `make reproduce` first", missing.display()));
    }
    let mut site = Site::open(root, reports, out)?;
    fs::write(out.join(MARK), "").map_err(|e| failed(out, e))?;
    let mut pages = site.copy_reports("")? + 1;
    let mut titles = BTreeMap::new();
    for source in site.sources.clone() {
        let text = read(&root.join(&source))?;
        let document = site.document(&source, &text)?;
        site.write_document(&page_of(&source), &document)?;
        titles.insert(source, document.title);
        pages += 1;
    }
    let list =
        titles.iter().fold(String::from("<h1>Docs</h1>\n<ul>\n"), |mut list, (file, title)| {
            let _ =
                writeln!(list, "<li><a href=\"../{}\">{}</a></li>", page_of(file), escape(title));
            list
        }) + "</ul>\n";
    let list = Document { title: "Docs".into(), sections: Vec::new(), body: list };
    site.write_document(DOCUMENTS, &list)?;
    let style = read(&root.join("templates/style.css"))? + NAVIGATION_STYLE + DOCUMENT_STYLE;
    site.write("style.css", style)?;
    Ok(pages)
}

/// A page of prose, as HTML.
#[derive(Serialize)]
struct Document {
    title: String,
    /// The headings of its sections, for the contents.
    sections: Vec<Heading>,
    body: String,
}

/// A site that is being built.
struct Site<'a> {
    /// The folder of the repository.
    root: &'a Path,
    /// The folder of the reports.
    reports: &'a Path,
    /// The folder of the site.
    out: &'a Path,
    /// The address of the repository's host, if `Cargo.toml` has it: documents link there to sources.
    repository: Option<String>,
    /// The documents, as paths below the root.
    sources: BTreeSet<String>,
}

impl<'a> Site<'a> {
    /// Begins a site in the folder `out`, from which an earlier one is removed, and lists the documents.
    ///
    /// # Errors
    /// If the folder holds something else than a site.
    fn open(root: &'a Path, reports: &'a Path, out: &'a Path) -> Result<Self, String> {
        if out.exists() {
            let is_empty = fs::read_dir(out).map_err(|e| failed(out, e))?.next().is_none();
            if !is_empty && !out.join(MARK).is_file() {
                return Err(format!("{} is not a site that `make site` wrote", out.display()));
            }
            fs::remove_dir_all(out).map_err(|e| failed(out, e))?;
        }
        fs::create_dir_all(out).map_err(|e| failed(out, e))?;
        let mut sources: BTreeSet<String> = TOP.map(str::to_owned).into();
        for folder in ["docs", "docs/notes"].iter().filter(|folder| root.join(folder).is_dir()) {
            let documents = names(&root.join(folder))?.into_iter();
            let documents = documents.filter(|name| name.ends_with(".md"));
            sources.extend(documents.map(|name| format!("{folder}/{name}")));
        }
        let manifest = root.join("Cargo.toml");
        let text: toml::Table = read(&manifest)?.parse().map_err(|e| failed(&manifest, e))?;
        let repository = text.get("package").and_then(|package| package.get("repository"));
        let repository = repository.and_then(toml::Value::as_str);
        let repository = repository.map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self { root, reports, out, repository, sources })
    }

    /// Writes a file below the site's folder.
    fn write(&self, file: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        let path = self.out.join(file);
        fs::create_dir_all(path.parent().unwrap_or(self.out)).map_err(|e| failed(&path, e))?;
        fs::write(&path, bytes).map_err(|e| failed(&path, e))
    }

    /// Copies what is in a folder below the reports (empty, or with a `/` at the end) into the site: pages, which get
    /// the site's navigation, and all other files. Markdown is left out, since each page is there as HTML. Returns
    /// the number of pages.
    fn copy_reports(&self, folder: &str) -> Result<usize, String> {
        let mut pages = 0;
        for name in names(&self.reports.join(folder))? {
            let below = format!("{folder}{name}");
            let path = self.reports.join(folder).join(&name);
            let file = format!("reports/{below}");
            if path.is_dir() {
                pages += self.copy_reports(&format!("{below}/"))?;
            } else if name.ends_with(".html") {
                self.write(&file, with_navigation(&read(&path)?, &file))?;
                pages += 1;
            } else if !name.ends_with(".md") {
                self.write(&file, fs::read(&path).map_err(|e| failed(&path, e))?)?;
            }
        }
        Ok(pages)
    }

    /// Writes the page of a document, by the template of documents.
    fn write_document(&self, page: &str, document: &Document) -> Result<(), String> {
        // The contents follow the heading of the page.
        let (heading, rest) = document.body.split_once("</h1>\n").unwrap_or(("", &document.body));
        let up = up(page);
        let navigation = navigation(page);
        let values =
            context! { heading, rest, up, navigation, document => Value::from(Serde(document)) };
        let text = Environment::new().render_named_str("document.html", DOCUMENT, values);
        self.write(page, text.map_err(|e| failed(Path::new(page), e))?)
    }

    /// Renders a document, whose path below the root is `source`, as HTML: with the anchors of GitHub, with links to
    /// pages of the site in place of those to documents, and with tables that can be scrolled. A link that leads
    /// nowhere is left out, and its text stays. Images that it shows are copied.
    fn document(&mut self, source: &str, text: &str) -> Result<Document, String> {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
        let headings = headings(&events);
        let mut ids = headings.iter();
        let mut out = Vec::new();
        let mut links = Vec::new();
        let mut images = Vec::new();
        for event in events {
            match event {
                Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                    let id = ids.next().map(|heading| CowStr::from(heading.id.clone()));
                    out.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let target = self.target(source, &dest_url)?;
                    links.push(target.is_some());
                    out.extend(target.map(|url| {
                        Event::Start(Tag::Link { link_type, dest_url: url.into(), title, id })
                    }));
                }
                Event::End(TagEnd::Link) if links.pop() == Some(false) => {}
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    let target = self.target(source, &dest_url)?;
                    images.push(target.is_some());
                    out.extend(target.map(|url| {
                        Event::Start(Tag::Image { link_type, dest_url: url.into(), title, id })
                    }));
                }
                Event::End(TagEnd::Image) if images.pop() == Some(false) => {}
                Event::Start(Tag::Table(columns)) => {
                    let region = "<div class=\"site-table\" role=\"region\" aria-label=\"Table\" tabindex=\"0\">\n";
                    out.extend([Event::Html(region.into()), Event::Start(Tag::Table(columns))]);
                }
                Event::End(TagEnd::Table) => {
                    out.extend([Event::End(TagEnd::Table), Event::Html("</div>\n".into())]);
                }
                Event::Start(Tag::CodeBlock(_)) => {
                    out.push(Event::Html("<pre tabindex=\"0\"><code>".into()));
                }
                Event::End(TagEnd::CodeBlock) => out.push(Event::Html("</code></pre>\n".into())),
                other => out.push(other),
            }
        }
        let mut body = String::new();
        html::push_html(&mut body, out.into_iter());
        let title = headings.first().map_or(source, |heading| &heading.text).to_owned();
        let sections = headings.into_iter().filter(|heading| heading.is_section).collect();
        Ok(Document { title, sections, body })
    }

    /// The address to which a link of the document `source` leads on its page: another site, a page of this one, an
    /// image, which is copied, or a file at the repository's host. `None` if there is no such address: a report that
    /// was not written, or a source where the repository has no address.
    fn target(&mut self, source: &str, link: &str) -> Result<Option<String>, String> {
        if link.starts_with('#') || link.contains("://") || link.starts_with("mailto:") {
            return Ok(Some(link.to_owned()));
        }
        let (file, anchor) = link.split_once('#').map_or((link, None), |(f, a)| (f, Some(a)));
        let anchor = anchor.map_or(String::new(), |anchor| format!("#{anchor}"));
        let file = joined(source, file);
        let up = up(&page_of(source));
        if self.sources.contains(&file) {
            return Ok(Some(format!("{up}{}{anchor}", page_of(&file))));
        }
        if let Some(report) = file.strip_prefix("reports/") {
            let page = page_of(report);
            let page = page
                .strip_suffix("README.html")
                .map_or(page.clone(), |f| f.to_owned() + "index.html");
            let exists = self.reports.join(&page).is_file();
            return Ok(exists.then(|| format!("{up}reports/{page}{anchor}")));
        }
        let path = self.root.join(&file);
        if [".svg", ".png"].iter().any(|end| file.ends_with(end)) && path.is_file() {
            self.write(&file, fs::read(&path).map_err(|e| failed(&path, e))?)?;
            return Ok(Some(format!("{up}{file}")));
        }
        let kind = if path.is_dir() { "tree" } else { "blob" };
        Ok(self.repository.as_ref().map(|url| format!("{url}/{kind}/HEAD/{file}{anchor}")))
    }
}

/// A heading of a document.
#[derive(Serialize)]
struct Heading {
    /// Whether it is of the second level.
    is_section: bool,
    text: String,
    /// Its anchor on GitHub.
    id: String,
}

/// The headings of a document in their order; an anchor that was there before gets a number, as on GitHub.
fn headings(events: &[Event<'_>]) -> Vec<Heading> {
    let mut all = Vec::new();
    let mut open = None;
    let mut seen = BTreeMap::new();
    for event in events {
        match event {
            Event::Start(Tag::Heading { level, .. }) => open = Some((*level, String::new())),
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, text)) = &mut open {
                    text.push_str(part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let (level, text) = open.take().unwrap_or((HeadingLevel::H1, String::new()));
                let kept = text.trim().to_lowercase();
                let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                let id: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
                let count: &mut usize = seen.entry(id.clone()).or_default();
                let id = if *count == 0 { id } else { format!("{id}-{count}") };
                *count += 1;
                all.push(Heading { is_section: level == HeadingLevel::H2, text, id });
            }
            _ => {}
        }
    }
    all
}

/// The path of the page of a document, both below the root; a file that is no Markdown keeps its path.
fn page_of(source: &str) -> String {
    match source.strip_suffix(".md") {
        Some("README") => "index.html".into(),
        Some(name) => format!("{name}.html"),
        None => source.to_owned(),
    }
}

/// The relative address of the site's folder on a page, with a `/` at the end unless it is empty: `../` for each
/// folder.
fn up(page: &str) -> String {
    "../".repeat(page.matches('/').count())
}

/// The path below the root to which a relative link in the document `source` leads.
fn joined(source: &str, link: &str) -> String {
    let mut parts: Vec<&str> = source.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The navigation on a page, which marks the link to this page.
fn navigation(page: &str) -> String {
    let up = up(page);
    let links = NAVIGATION.iter().map(|(name, file)| {
        let current = if *file == page { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{up}{file}\"{current}>{name}</a>")
    });
    let links: Vec<String> = links.collect();
    format!("<nav class=\"site\" aria-label=\"Site\">{}</nav>", links.join(" "))
}

/// The HTML of a report's page with the site's navigation at the beginning of its body, but after the link by which
/// keyboards skip it, if there is one; `page` is its path in the site.
fn with_navigation(report: &str, page: &str) -> String {
    let styled =
        report.replacen("</head>", &format!("<style>{NAVIGATION_STYLE}</style>\n</head>"), 1);
    let begin = styled.find("<body").and_then(|at| Some(at + styled[at..].find('>')? + 1));
    let begin = begin.unwrap_or(0);
    let skip = styled[begin..].trim_start().starts_with("<a class=\"skip\"");
    let skip = styled[begin..].find("</a>").filter(|_| skip).map_or(0, |end| end + "</a>".len());
    let (before, after) = styled.split_at(begin + skip);
    format!("{before}\n{}{after}", navigation(page))
}

/// The names of the files and folders in a folder, sorted, without hidden ones.
fn names(folder: &Path) -> Result<BTreeSet<String>, String> {
    let entries = fs::read_dir(folder).map_err(|e| failed(folder, e))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| failed(file, e))
}

fn failed(file: &Path, reason: impl Display) -> String {
    format!("{}: {reason}", file.display())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
