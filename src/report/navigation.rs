//! The pages about all experiments, and the links that every page has to them.

/// A page about all experiments: its name, and what a link says.
pub type PageLink = (&'static str, &'static str);

/// The pages about all experiments. The page of smoke experiments has no words: only the index links to it, in a
/// sentence.
pub const PAGES: [PageLink; 8] = [
    ("index", "Experiments"),
    ("published", "Other groups"),
    ("which-algorithm", "Which algorithm"),
    ("claims", "Claims"),
    ("coverage", "Coverage"),
    ("errata", "Errata"),
    ("disagreements", "Disagreements"),
    ("smoke", ""),
];

/// The files of [`PAGES`] in Markdown and HTML, each with the name of its page.
pub fn page_files() -> impl Iterator<Item = (String, &'static str)> {
    PAGES
        .into_iter()
        .flat_map(|(page, _)| ["md", "html"].map(|language| (page_file(page, language), page)))
}

/// The file of the page of this name in a language. A code host shows a file README.md in its folder.
fn page_file(page: &str, language: &str) -> String {
    match (page, language) {
        ("index", "md") => "README.md".to_owned(),
        _ => format!("{page}.{language}"),
    }
}

/// The text of a page whose navigation bar has links to `places` and no others: which pages about all experiments there
/// are is not known before the pages of all experiments are written, so that a page gets its links later. `up` leads
/// from the page to the folder of the reports, and `here` is the name of the page itself if it is one of `places`. A
/// page without a navigation bar, as in Markdown, stays as it is. The bar is found by its beginning, which
/// `templates/parts.html` writes in these words.
pub fn with_navigation(text: &str, up: &str, here: &str, places: &[&PageLink]) -> String {
    let begin = "<nav class=\"pages\" aria-label=\"Pages\">";
    let Some((before, rest)) = text.split_once(begin) else { return text.to_owned() };
    let Some((_, after)) = rest.split_once("</nav>") else { return text.to_owned() };
    let link = |(file, words): &&PageLink| {
        let current = if *file == here { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{up}{file}.html\"{current}>{words}</a>")
    };
    let links: String = places.iter().map(link).collect();
    format!(
        "{before}{begin}<a class=\"home\" href=\"{up}index.html\">exactfed</a>{links}</nav>{after}"
    )
}
