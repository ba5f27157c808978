//! docs/TUTORIAL.md, docs/RECIPES.md and docs/YOUR-DATA.md, run as a reader runs them: the files of a page are written
//! and its commands started in its order, in an empty directory, and each must print what the page
//! shows.
//!
//! A block whose first line is `# NAME` is a file. A `console` block is a list of commands, each
//! after `$ ` and followed by its output. In an output `…` stands for any text of a line, or, as a
//! line of its own, for any number of lines. Commands that need Python are run by
//! python/tests/test_docs.py.
#![cfg(unix)]

use crate::support::Bench;
use crate::support::markup::blocks;
use crate::support::process::Program;
use exactfed::problem::column::MARKS;
use std::path::Path;
use std::time::Duration;

/// Time that one command may take; each takes a few seconds at most.
const DEADLINE: Duration = Duration::from_secs(120);
/// Stands for text that differs between machines.
const ANY: &str = "…";

/// A step of the page, in its order.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    File { name: &'a str, text: &'a str },
    Typed { line: &'a str, shown: Vec<&'a str> },
}

/// The files and commands of a page of Markdown.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for block in blocks(page) {
        let mut lines = block.text.lines();
        if block.language == "console" {
            for line in lines {
                match (line.strip_prefix("$ "), steps.last_mut()) {
                    (Some(line), _) => steps.push(Step::Typed { line, shown: Vec::new() }),
                    (None, Some(Step::Typed { shown, .. })) => shown.push(line),
                    _ => panic!("a console block begins with output: {line}"),
                }
            }
        } else if let Some(name) = lines.next().and_then(|first| first.strip_prefix("# ")) {
            let is_name = name.contains('.') && !name.contains([' ', '/']);
            assert!(is_name, "`{name}` is no file name");
            steps.push(Step::File { name, text: block.text });
        }
    }
    steps
}

/// Whether a printed line is the shown one.
fn is_line(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (shown.trim_end(), printed.trim_end());
    let Some((begin, rest)) = shown.split_once(ANY) else { return shown == printed };
    let Some(mut left) = printed.strip_prefix(begin) else { return false };
    let parts: Vec<&str> = rest.split(ANY).collect();
    let (end, middle) = parts.split_last().expect("split returns one part at least");
    for part in middle {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

/// Whether printed lines are the shown ones.
fn is_output(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == ANY => {
            (0..=printed.len()).any(|skipped| is_output(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, more)| is_line(line, first) && is_output(rest, more)),
    }
}

/// A line that a slow run prints every five seconds.
fn is_progress(line: &str) -> bool {
    line.contains(" %, ") && line.contains(" cells, ") && line.contains(" steps/s")
}

/// Lines without empty ones at the end, and without those of progress.
fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<&str> = lines.filter(|line| !is_progress(line)).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// What a command prints on both streams, in one order.
fn printed(bench: &Bench, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_exactfed"));
    let mut folders = vec![program.parent().expect("a program is in a folder").to_owned()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let output = Program::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .folder(&bench.folder)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .deadline(DEADLINE)
        .run();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_of_the_tutorial_prints_what_the_page_shows() {
    let page = include_str!("../../docs/TUTORIAL.md");
    follow(page, &["check", "plan", "run", "report", "diff", "export"]);
}

#[test]
fn every_command_of_the_recipes_prints_what_the_page_shows() {
    follow(include_str!("../../docs/RECIPES.md"), &["run", "report", "merge", "submit"]);
}

#[test]
fn every_command_of_the_page_on_your_data_prints_what_the_page_shows() {
    follow(include_str!("../../docs/YOUR-DATA.md"), &["init", "check", "run", "report"]);
}

/// The page lists each mark of a missing value, and no other text.
#[test]
fn the_page_on_your_data_lists_the_marks_of_missing_values() {
    let page = include_str!("../../docs/YOUR-DATA.md");
    let (_, list) = page.split_once("or one of these texts:\n\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let mut listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    // An empty field is named before the list.
    listed.push("");
    listed.sort_unstable();
    let mut marks = MARKS;
    marks.sort_unstable();
    assert_eq!(listed, marks);
}

/// Follows a page, which must show these commands of exactfed.
fn follow(page: &str, commands: &[&str]) {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    let mut run = Vec::new();
    for step in steps(page) {
        match step {
            Step::File { name, text } => bench.write(name, text),
            Step::Typed { line, .. } if line.starts_with("python") => {}
            Step::Typed { line, shown } => {
                run.push(line);
                let out = printed(&bench, line);
                if !is_output(&trimmed(shown.iter().copied()), &trimmed(out.lines())) {
                    wrong.push(format!("$ {line}\nshown:\n{}\nprinted:\n{out}", shown.join("\n")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), run.len(), wrong.join("\n"));
    for name in commands {
        let begin = format!("exactfed {name} ");
        assert!(run.iter().any(|line| format!("{line} ").starts_with(&begin)), "{name}: {run:?}");
    }
}

#[test]
fn a_page_is_taken_apart() {
    let page = "Text.\n```toml\n# a.toml\nb = 1\n```\n```sh\nnot run\n```\n\
                ```console\n$ one\n1\n\n$ two\n```\n";
    let file = Step::File { name: "a.toml", text: "# a.toml\nb = 1\n" };
    let one = Step::Typed { line: "one", shown: vec!["1", ""] };
    let two = Step::Typed { line: "two", shown: vec![] };
    assert_eq!(steps(page), [file, one, two]);
}

#[test]
fn other_output_than_the_shown_one_is_found() {
    let printed = ["8 cells in 0.2 s, 4e7 steps/s", "", "end"];
    let same = |shown: &[&str]| is_output(shown, &printed);
    assert!(same(&["8 cells in 0.2 s, 4e7 steps/s", "", "end"]));
    assert!(same(&["8 cells in …, … steps/s", "…", "end"]));
    assert!(same(&["…", "end"]) && same(&["…"]) && same(&["8 cells …", "", "…", "end", "…"]));
    assert!(!same(&["9 cells in …", "", "end"]), "another number");
    assert!(!same(&["8 cells in … cells", "", "end"]), "another end of a line");
    assert!(!same(&["8 cells in …", "", "end", "more"]), "a line too few");
    assert!(!same(&["8 cells in …", ""]) && !same(&["…", "8"]), "a line too many");
}
