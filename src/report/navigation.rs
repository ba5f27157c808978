//! The links that every page has to the pages about all experiments.

/// A page about all experiments: its file without the ending, and what a link says.
pub type PageLink = (&'static str, &'static str);

/// Those to which every page has a link, where they exist.
pub const PLACES: [PageLink; 6] = [
    ("index", "Experiments"),
    ("which-algorithm", "Which algorithm"),
    ("claims", "Claims"),
    ("coverage", "Coverage"),
    ("errata", "Errata"),
    ("disagreements", "Disagreements"),
];

/// A page with links to these places, which are not known before the pages of all experiments are;
/// `up` leads to their folder, and `here` is the one that the page is.
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
