//! One term for one thing: the documents, the help of the program and the templates of the
//! pages contain none of the words and phrases that docs/notes/words.md lists as not used.

use crate::support::markup::{tags, without, without_code};
use crate::support::{Bench, files_with, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The history of the development, which keeps the words with which it was written.
const HISTORY: &str = "docs/notes/changes-before-0.1.0.md";

/// The list of the words that are not used.
const WORDS: &str = "docs/notes/words.md";

/// The heading of the table in that list.
const HEADING: &str = "## Words that are not used\n";

/// Attributes of HTML with text for readers.
const ATTRIBUTES: [&str; 5] = ["title", "aria-label", "alt", "placeholder", "content"];

/// A word or phrase that is not used, and the term that replaces it.
struct Rejected {
    words: Vec<String>,
    instead: String,
}

/// A word in lower case, or punctuation between words.
#[derive(PartialEq, Eq)]
enum Token {
    Word(String),
    Stop,
}

/// The tokens of a text, each with its line, counted from 1. Hyphens and apostrophes inside a
/// word belong to it. Emphasis and single line breaks do not separate words.
fn tokens(text: &str) -> Vec<(usize, Token)> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let mut word = String::new();
        let blank = if line.trim().is_empty() { "|" } else { "" };
        for c in line.chars().chain(blank.chars()).chain(['\n']) {
            if c.is_alphanumeric() || ['-', '\'', '’'].contains(&c) {
                word.push(c);
                continue;
            }
            if ['*', '_'].contains(&c) {
                continue;
            }
            let whole = word.trim_matches(['-', '\'', '’']);
            if !whole.is_empty() {
                found.push((i + 1, Token::Word(whole.to_lowercase())));
            }
            word.clear();
            if !c.is_whitespace() {
                found.push((i + 1, Token::Stop));
            }
        }
    }
    found
}

/// The words of a phrase.
fn phrase(text: &str) -> Vec<String> {
    let word = |(_, token)| match token {
        Token::Word(word) => Some(word),
        Token::Stop => None,
    };
    tokens(text).into_iter().filter_map(word).collect()
}

/// Where a text contains rejected words.
fn find(name: &str, text: &str, rejected: &[Rejected]) -> Vec<String> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        for Rejected { words, instead } in rejected {
            let here = tokens[at..].iter().take(words.len());
            let same = here.zip(words).all(|((_, token), word)| match token {
                Token::Word(own) => own == word,
                Token::Stop => false,
            });
            if same && tokens.len() - at >= words.len() {
                let line = tokens[at].0;
                found.push(format!("{name}:{line}: \"{}\": use {instead}", words.join(" ")));
            }
        }
    }
    found
}

/// The list before, in and after the section with the table.
fn split(list: &str) -> (&str, &str, &str) {
    let parts = list.split_once(&format!("\n{HEADING}"));
    let (before, rest) = parts.unwrap_or_else(|| panic!("the list has no {HEADING:?}"));
    let end = rest.find("\n## ").unwrap_or(rest.len());
    (before, &rest[..end], &rest[end..])
}

/// The list without the table, with the same numbers of lines.
fn without_table(list: &str) -> String {
    let (before, table, after) = split(list);
    let lines = table.matches('\n').count() + HEADING.matches('\n').count() + 1;
    format!("{before}{}{after}", "\n".repeat(lines))
}

/// The rows of the table: each has phrases, separated by commas, and what replaces them.
fn rejected(list: &str) -> Vec<Rejected> {
    let (_, table, _) = split(list);
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut all = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [phrases, instead] = cells[..] else { panic!("not two cells: {row}") };
        for text in phrases.split(',') {
            let words = phrase(text);
            assert!(!words.is_empty() && !instead.is_empty(), "an empty phrase: {row}");
            all.push(Rejected { words, instead: instead.to_owned() });
        }
    }
    all
}

/// A template without its expressions and statements; the texts inside them are kept.
fn template(text: &str) -> String {
    let (mut parts, mut at) = (Vec::new(), 0);
    let next = |at: usize| ["{{", "{%", "{#"].iter().filter_map(|open| text[at..].find(open)).min();
    while let Some(begin) = next(at).map(|i| at + i) {
        let is_remark = text[begin..].starts_with("{#");
        let close = if is_remark {
            "#}"
        } else if text[begin..].starts_with("{{") {
            "}}"
        } else {
            "%}"
        };
        let end = text[begin..].find(close).map_or(text.len(), |end| begin + end + 2);
        at = begin;
        for (i, part) in text[begin..end].split_inclusive('"').enumerate() {
            // Every second part is between quotation marks.
            if i % 2 == 0 || is_remark {
                parts.push(at..at + part.len());
            }
            at += part.len();
        }
    }
    without(text, parts)
}

/// The texts of a page of HTML: what is between its tags, and some attributes.
fn html(text: &str) -> String {
    let mut parts = Vec::new();
    let mut tags = tags(text).into_iter();
    while let Some(tag) = tags.next() {
        let close = format!("/{}", tag.name);
        if ["script", "style", "code", "pre"].contains(&tag.name) {
            let end = tags.find(|tag| tag.name == close).map_or(text.len(), |tag| tag.whole.end);
            parts.push(tag.whole.start..end);
            continue;
        }
        let mut at = tag.whole.start;
        for (name, value) in tag.attributes {
            if ATTRIBUTES.contains(&name) {
                let open = format!("{name}=\"");
                let begin = at + text[at..].find(&open).expect("it is there") + open.len();
                parts.push(at..begin);
                at = begin + value.len();
            }
        }
        parts.push(at..tag.whole.end);
    }
    without(text, parts)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn word_list() -> String {
    read(&root().join(WORDS))
}

/// A path as readers write it.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The files of the project below a folder, without those of a build, of results or of git, which
/// ignores pages and what is built of the Python module.
fn project_files(folder: &Path, found: &mut Vec<PathBuf>) {
    const OTHERS: [&str; 6] = [".git", "target", "results", "site", "node_modules", "__pycache__"];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !OTHERS.contains(&name.as_str()) {
            project_files(&path, found);
        } else if path.is_file()
            && ![".html", ".so", ".pyc"].iter().any(|end| name.ends_with(end))
            && name != "provenance.md"
        {
            found.push(path);
        }
    }
}

#[test]
fn the_former_name_is_not_used() {
    let former = concat!("drift", "bench");
    let uses = |path: &PathBuf| {
        let mut text = path.to_string_lossy().into_owned().into_bytes();
        text.extend(fs::read(root().join(path)).unwrap());
        text.windows(former.len()).any(|part| part.eq_ignore_ascii_case(former.as_bytes()))
    };
    let mut files = Vec::new();
    project_files(root(), &mut files);
    let relative = |path: PathBuf| path.strip_prefix(root()).unwrap().to_owned();
    let mut using: Vec<PathBuf> = files.into_iter().map(relative).filter(uses).collect();
    using.sort();
    // The history, and the name by which older results are recognised.
    assert_eq!(using, [Path::new(HISTORY), Path::new("src/store/paths.rs")]);
}

/// The commands that `exactfed --help` lists.
fn commands(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let entries = list.take_while(|line| !line.trim().is_empty());
    // Lines that are indented further continue a description.
    let own = entries.filter_map(|line| line.strip_prefix("  ").filter(|l| !l.starts_with(' ')));
    own.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[test]
fn documents_use_the_words_of_the_glossary() {
    let rejected = rejected(&word_list());
    let mut documents = files_with(&root().join("docs"), "md");
    assert!(documents.len() > 8, "the documents were found");
    documents.retain(|document| !document.ends_with(HISTORY));
    for optional in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        documents.extend(Some(root().join(optional)).filter(|path| path.exists()));
    }
    let mut found = Vec::new();
    for document in documents {
        let mut text = read(&document);
        if document.ends_with(WORDS) {
            text = without_table(&text);
        }
        found.extend(find(&name(&document), &without_code(&text), &rejected));
    }
    assert!(found.is_empty(), "{} rejected words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn templates_use_the_words_of_the_glossary() {
    let rejected = rejected(&word_list());
    let [mut pages, trees, texts] =
        ["html", "page", "md"].map(|end| files_with(&root().join("templates"), end));
    assert!(pages.len() > 4 && trees.len() > 4 && texts.len() > 2, "the templates were found");
    pages.extend(trees);
    let mut found = Vec::new();
    for page in pages {
        found.extend(find(&name(&page), &html(&template(&read(&page))), &rejected));
    }
    for text in texts {
        found.extend(find(&name(&text), &without_code(&template(&read(&text))), &rejected));
    }
    assert!(found.is_empty(), "{} rejected words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn help_uses_the_words_of_the_glossary() {
    let rejected = rejected(&word_list());
    let bench = Bench::new();
    let help = bench.run(&["--help"]).expect(0).out;
    let commands = commands(&help);
    assert!(commands.len() > 8 && commands.contains(&"schema"), "{commands:?} of\n{help}");
    let mut found = find("exactfed --help", &help, &rejected);
    for command in commands {
        let help = bench.run(&[command, "--help"]).expect(0).out;
        found.extend(find(&format!("exactfed {command} --help"), &help, &rejected));
    }
    let schema = bench.run(&["schema", "--markdown"]).expect(0).out;
    found.extend(find("exactfed schema --markdown", &without_code(&schema), &rejected));
    assert!(found.is_empty(), "{} rejected words:\n{}", found.len(), found.join("\n"));
}

/// The sentences of a page or of a message: without tables, figures, excerpts of manifests, lists of
/// amended settings, and one symbol with its meaning.
fn sentences(text: &str) -> String {
    let is_other = |line: &&str| {
        line.starts_with(['|', '!'])
            || line.contains(" | ")
            || line.contains("-->")
            || ["expression:", "**After verdicts"].iter().any(|begin| line.starts_with(begin))
    };
    let kept = |line| if is_other(&line) { "" } else { line };
    let lines: Vec<&str> = text.lines().map(kept).collect();
    lines.join("\n").replace("in the mean Σφ", "").replace("in the mean covariance", "")
}

#[test]
fn pages_and_messages_use_the_words_of_the_glossary() {
    let rejected = rejected(&word_list());
    let mut pages = files_with(&root().join("reports"), "md");
    // Their labels name settings.
    pages.retain(|page| !page.starts_with(root().join("reports/smoke")));
    let messages = files_with(&root().join("tests/suite/snapshots"), "snap");
    assert!(pages.len() > 80 && messages.len() > 80, "pages and messages were found");
    let mut found = Vec::new();
    for file in pages.into_iter().chain(messages) {
        found.extend(find(&name(&file), &sentences(&without_code(&read(&file))), &rejected));
    }
    assert!(found.is_empty(), "{} rejected words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn headlines_of_published_pages_have_at_most_twenty_words() {
    let pages = files_with(&root().join("reports"), "md").into_iter();
    let pages: Vec<PathBuf> = pages.filter(|page| page.ends_with("report.md")).collect();
    assert!(pages.len() > 80, "the pages were found");
    let long = pages.iter().filter_map(|page| {
        let text = read(page);
        let headline = text.lines().find_map(|line| line.strip_prefix("# "))?;
        let words = headline.split_whitespace().count();
        (words > 20).then(|| format!("{}: {words} words: {headline}", name(page)))
    });
    let long: Vec<String> = long.collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_rejected_word_is_found_where_it_is_planted() {
    let list = word_list();
    let rejected = rejected(&list);
    assert!(rejected.len() > 20, "the table was read");
    for one in &rejected {
        let planted = one.words.join(" ");
        let capitals = planted.to_uppercase();
        let broken = one.words.join("\n  ");
        for text in [
            format!("# On words\n\nThe cell {planted} here.\n"),
            format!("# On words\n\n{capitals}: a heading.\n"),
            format!("# On words\n\n- the cell **{planted}**, here\n"),
            format!("# On words\n\n- the cell {broken}\n  here\n"),
            format!("| a | b |\n| --- | --- |\n| `run` | {planted} |\n"),
        ] {
            let found = find("page.md", &without_code(&text), &rejected);
            let own = format!("page.md:3: \"{planted}\": use {}", one.instead);
            assert!(found.contains(&own), "{text}\n{found:?}");
        }
        let title = format!("<p>\n<b title=\"Cells {planted}\">\n{planted}</b>\n</p>");
        let found = find("page.html", &html(&template(&title)), &rejected);
        for line in [2, 3] {
            let own = format!("page.html:{line}: \"{planted}\": use {}", one.instead);
            assert!(found.contains(&own), "{title}\n{found:?}");
        }
        let text = format!("{list}\nThe cell {planted} here.\n");
        let found = find("words.md", &without_code(&without_table(&text)), &rejected);
        assert!(!found.is_empty(), "{planted} at the end of the list");
    }
}

#[test]
fn code_and_parts_of_words_are_not_rejected() {
    let table = "# Words\n\n## Words that are not used\n\n| not used | used instead |\n\
                 | --- | --- |\n| told, set aside | shown |\n\n## After\n\nCells.\n";
    let rejected = rejected(table);
    let phrases: Vec<String> = rejected.iter().map(|one| one.words.join(" ")).collect();
    assert_eq!(phrases, ["told", "set aside"]);
    for allowed in [
        "The test `what_is_told` and `set aside`.",
        "A span of `two\nlines told` ends.",
        "A span of ``a ` told`` ends.",
        "```sh\ntold\n```\nand\n````md\n```\ntold\n````\n",
        "  ```\n  told\n  ```\n",
        "foretold, claims-told, told-you, untold",
        "The values are set. Aside from that, no.",
        "The values are set\n\naside",
        "set | aside",
    ] {
        let found = find("page.md", &without_code(allowed), &rejected);
        assert!(found.is_empty(), "{allowed}: {found:?}");
    }
    for allowed in [
        "{{ claim.told }} {% if told %}<p class=\"told\">{% endif %}{# told #}",
        "<style>\n.told { color: red }\n</style><script src=\"a\">told()</script>",
        "<code>told</code> and <pre>told</pre>",
    ] {
        let found = find("page.html", &html(&template(allowed)), &rejected);
        assert!(found.is_empty(), "{allowed}: {found:?}");
    }
    for (planted, line) in [
        ("A `span` told.", 1),
        ("A backtick ` that nothing closes\n\nis told `here`.", 3),
        ("```\ncode\n```\nis told", 4),
        ("`two\nlines` and told", 2),
        ("Cells were set *aside*.", 1),
    ] {
        let found = find("page.md", &without_code(planted), &rejected);
        assert_eq!(found.len(), 1, "{planted}: {found:?}");
        assert!(found[0].starts_with(&format!("page.md:{line}: ")), "{planted}: {found:?}");
    }
    for planted in [
        "{{ heading(\"Cells told\") }}",
        "{# a\nremark #}\n<p>told</p>",
        "<pres>told</pres>",
        "<a href=\"{{ page }}\" aria-label=\"Cells told {{ n }} times\">",
    ] {
        let found = find("page.html", &html(&template(planted)), &rejected);
        assert_eq!(found.len(), 1, "{planted}: {found:?}");
    }
    assert!(find("words.md", &without_code(&without_table(table)), &rejected).is_empty());
    assert_eq!(without_table(table).lines().count(), table.lines().count());
    assert!(without_table(table).ends_with("\n## After\n\nCells.\n"));
}

#[test]
fn commands_are_read_from_help() {
    let help = "About\n\nUsage: exactfed <COMMAND>\n\nCommands:\n  run     Run cells\n          \
                and more\n  report  Write\n  help    Print\n\nOptions:\n  -h  Print help\n";
    assert_eq!(commands(help), ["run", "report"]);
}
