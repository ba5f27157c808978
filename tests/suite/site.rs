//! `make site`: every link of every page leads to a file and an anchor of the site.

#[allow(dead_code)] // its command line
#[path = "../../tools/src/bin/site.rs"]
mod builder;

use crate::support::markup::{Tag, tags};
use crate::support::{Bench, SMALL, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A site of the documents of the repository and small reports.
fn built() -> Bench {
    let bench = Bench::of_smoke(&["diverging", "logistic"]);
    // With a claim, since the navigation leads to the claims.
    bench.write("experiments/small.toml", SMALL);
    bench.compute(&["experiments/small.toml"]);
    bench.report();
    builder::build(root(), &bench.path("reports"), &bench.path("site")).unwrap();
    bench
}

/// The pages of a site with their names.
fn pages(bench: &Bench) -> BTreeMap<String, String> {
    let files = bench.contents("site").into_iter().filter(|(name, _)| name.ends_with(".html"));
    files.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

/// What is wrong with a link of a page, if anything is.
fn wrong(
    pages: &BTreeMap<String, String>,
    site: &Path,
    page: &str,
    tag: &Tag<'_>,
) -> Option<String> {
    let link = tag.value("href").or(tag.value("src"))?;
    let link = link.replace("&#x2f;", "/").replace("&amp;", "&");
    if link.starts_with("data:") || tag.name == "a" && link.starts_with("https://") {
        return None;
    }
    if link.starts_with('/') || link.contains(':') {
        return Some(format!("{page}: <{}> has {link}", tag.name));
    }
    let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/').filter(|part| !part.is_empty()) {
        match part {
            ".." if parts.pop().is_none() => {
                return Some(format!("{page}: {link} leaves the site"));
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    let target = if file.is_empty() { page.to_owned() } else { parts.join("/") };
    if !site.join(&target).is_file() {
        return Some(format!("{page}: {link} leads to no file"));
    }
    let has = |text: &String| tags(text).iter().any(|tag| tag.value("id") == Some(anchor));
    // `#verdict=…` is a state of the page and no place on it.
    let found = anchor.is_empty() || anchor.contains('=') || pages.get(&target).is_some_and(has);
    (!found).then(|| format!("{page}: {link} leads to no anchor"))
}

#[test]
fn every_link_leads_somewhere() {
    let bench = built();
    let (pages, site) = (pages(&bench), bench.path("site"));
    let mut links = 0;
    for (page, text) in &pages {
        for tag in tags(text) {
            links += 1;
            assert_eq!(wrong(&pages, &site, page, &tag), None);
        }
        assert!(text.contains("<nav class=\"site\""), "{page} has no navigation");
        assert!(!text.contains(root().to_str().unwrap()), "{page} names a folder of this machine");
    }
    assert!(links > 1000, "{links} tags");
    for page in ["index.html", "docs/MANIFEST.html", "reports/smoke/diverging/report.html"] {
        assert!(pages.contains_key(page), "{:?}", pages.keys());
    }
    let style = fs::read_to_string(site.join("style.css")).unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"));
}

/// The check of links sees what is wrong.
#[test]
fn links_to_nothing_are_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.html"), "").unwrap();
    let pages = BTreeMap::from([("a.html".to_owned(), "<p id=\"here\">".to_owned())]);
    let check = |text| wrong(&pages, folder.path(), "a.html", &tags(text)[0]);
    for text in [
        "<a href=\"b.html\">",
        "<a href=\"#there\">",
        "<a href=\"../a.html\">",
        "<a href=\"/a.html\">",
        "<img src=\"https://example.org/a.png\">",
        "<script src=\"//example.org/a.js\">",
    ] {
        assert!(check(text).is_some(), "{text}");
    }
    for text in ["<a href=\"a.html#here\">", "<a href=\"#here\">", "<a href=\"https://a.b\">"] {
        assert_eq!(check(text), None, "{text}");
    }
}

#[test]
fn links_follow_their_documents_and_sources_their_repository() {
    let (bench, root) = (Bench::new(), "repository");
    bench.write("repository/templates/style.css", "");
    bench.write("repository/docs/TUTORIAL.md", "# Tutorial & more\n");
    bench.write(
        "repository/docs/a.md",
        "# `A`: a b\n## Same\n## Same\n[up](../README.md#one-two)\n",
    );
    bench.write("repository/src/x.rs", "");
    for file in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        bench.write(&format!("{root}/{file}"), "# One two\n\n[a](docs/a.md#a-a-b) [x](src/x.rs) [src](src) [r](reports/README.md) [gone](reports/none/report.md)\n\n| t |\n| - |\n| 1 |\n");
    }
    bench.write(
        "reports/index.html",
        "<head></head><body class=\"x\">\n<a class=\"skip\" href=\"#main\">s</a>\n<p>",
    );
    let build = |manifest: &str| {
        bench.write("repository/Cargo.toml", manifest);
        builder::build(&bench.path(root), &bench.path("reports"), &bench.path("site")).unwrap();
        bench.read("site/index.html")
    };
    let page = build("[package]\nname = \"x\"\n");
    assert!(
        page.contains(
            "<a href=\"docs/a.html#a-a-b\">a</a> x src <a href=\"reports/index.html\">r</a> gone"
        ),
        "{page}"
    );
    assert!(page.contains("<h1 id=\"one-two\">") && page.contains("tabindex=\"0\">\n<table>"));
    let other = bench.read("site/docs/a.html");
    for part in [
        "id=\"a-a-b\"",
        "id=\"same\"",
        "id=\"same-1\"",
        "href=\"../index.html#one-two\"",
        "href=\"../style.css\"",
    ] {
        assert!(other.contains(part), "no {part} in {other}");
    }
    assert!(bench.read("site/docs/index.html").contains(">Tutorial &amp; more</a>"));
    let report = bench.read("site/reports/index.html");
    assert!(
        report.contains("s</a>\n<nav class=\"site\"")
            && report.contains("<a href=\"../index.html\">exactfed"),
        "{report}"
    );
    bench.write("site/old.html", "");
    let page = build("[package]\nrepository = \"https://example.org/x/\"\n");
    assert!(page.contains("<a href=\"https://example.org/x/blob/HEAD/src/x.rs\">x</a> <a href=\"https://example.org/x/tree/HEAD/src\">src</a>"), "{page}");
    assert!(!bench.path("site/old.html").exists());
}

#[test]
fn what_is_no_site_is_kept_and_reports_have_to_exist() {
    let bench = Bench::new();
    let build = || builder::build(root(), &bench.path("reports"), &bench.path("mine"));
    let message = build().unwrap_err();
    assert!(
        message.ends_with("index.html does not exist: run `make reproduce` first"),
        "{message}"
    );
    bench.write("reports/index.html", "<head></head><body>");
    bench.write("mine/notes.txt", "mine");
    let message = build().unwrap_err();
    assert!(message.ends_with("mine is not a site that `make site` wrote"), "{message}");
    assert_eq!(bench.read("mine/notes.txt"), "mine");
}
