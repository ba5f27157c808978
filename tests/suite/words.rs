//! One term for one thing, in what users read: the documents, the help and the messages of the program
//! and the published pages contain none of the words and phrases that docs/notes/words.md lists as not
//! used. Headlines are short.

use crate::support::markup::without_code;
use crate::support::{Bench, files_with, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The history of the development, which keeps the words with which it was written.
const HISTORY: &str = "docs/notes/changes-before-0.1.0.md";

/// The list of the words that are not used.
const WORDS: &str = "docs/notes/words.md";

/// A word or phrase that is not used, and the term that replaces it.
struct Rejected {
    phrase: String,
    instead: String,
}

/// The rows of the table in a list of words: each has phrases, separated by commas, and what replaces
/// them.
fn rejected(list: &str) -> Vec<Rejected> {
    let (_, table) =
        list.split_once("\n## Words that are not used\n").expect("the list has a table");
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let mut all = Vec::new();
    for row in rows.take_while(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [phrases, instead] = cells[..] else { panic!("not two cells: {row}") };
        for phrase in phrases.split(',').map(str::trim) {
            assert!(!phrase.is_empty() && !instead.is_empty(), "an empty phrase: {row}");
            all.push(Rejected { phrase: phrase.to_lowercase(), instead: instead.to_owned() });
        }
    }
    all
}

/// Whether a paragraph has a phrase between other words. Hyphens and apostrophes belong to words.
fn has_phrase(paragraph: &str, phrase: &str) -> bool {
    let is_in_word = |c: char| c.is_alphanumeric() || ['-', '\'', '’'].contains(&c);
    paragraph.match_indices(phrase).any(|(at, _)| {
        let before = paragraph[..at].chars().next_back();
        let after = paragraph[at + phrase.len()..].chars().next();
        !before.is_some_and(is_in_word) && !after.is_some_and(is_in_word)
    })
}

/// Where a text contains rejected words. Emphasis and single line breaks do not separate words.
fn find(name: &str, text: &str, rejected: &[Rejected]) -> Vec<String> {
    let mut found = Vec::new();
    for paragraph in text.to_lowercase().replace(['*', '_'], "").split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        for Rejected { phrase, instead } in rejected {
            if has_phrase(&paragraph, phrase) {
                found.push(format!("{name}: \"{phrase}\": use {instead}, in: {paragraph}"));
            }
        }
    }
    found
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
    documents.retain(|document| !document.ends_with(HISTORY) && !document.ends_with(WORDS));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    documents.extend(others.map(|file| root().join(file)));
    let mut found = Vec::new();
    for document in documents {
        found.extend(find(&name(&document), &without_code(&read(&document)), &rejected));
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
fn rejected_words_are_found_where_they_are_planted() {
    let rejected = rejected(
        "# Words\n\n## Words that are not used\n\n| not used | used instead |\n| --- | --- |\n\
         | told, set aside | shown |\n\n## After\n\n| a | b |\n",
    );
    assert_eq!(rejected.len(), 2);
    for text in
        ["It is *told*.", "Told", "It was set\n  aside.", "| set aside |", "`x` is told `y`"]
    {
        assert_eq!(find("page.md", &without_code(text), &rejected).len(), 1, "{text}");
    }
    for text in ["foretold, claims-told", "It is set. Aside from that", "set\n\naside", "`told`"] {
        assert!(find("page.md", &without_code(text), &rejected).is_empty(), "{text}");
    }
}
