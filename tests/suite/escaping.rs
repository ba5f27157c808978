//! What a manifest says stays text: on every page, in every file, whatever it is.
//! Two experiments that differ in their texts alone must give files of one
//! structure: the same elements, table cells, links, commands and fields.

use crate::support::markup::{LEFT_OUT, Tag, tags, without_code};
use crate::support::{Bench, TINY, edited};
use std::collections::BTreeMap;

/// Texts that would be something else if they were let.
const EVIL: &str = r##"<script>alert(1)</script> "q" 'q' ]]> --> &amp; a|b `c` [x](javascript:alert(2)) \[y\](javascript:alert(3)) ![z](http://z) $\input{/etc/passwd}$ %\n #{{ 1 }} {% raw %} ../../up /etc <img src=x onerror=alert(4)> ~~ ** __ ^^5c"##;

fn manifest(text: &str, figure: &str) -> String {
    // TOML's basic strings: quotes and backslashes escaped.
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let name: String = text.chars().take(90).collect();
    let (text, name) = (quoted(text), quoted(&name));
    let prose = text.replace("{{", "{ {").replace("{%", "{ %");
    format!(
        r#"title = {text}
source = {text}
analysis = {prose}
seed = 1
replicates = 2
start.offset = 1.0
budget.rounds = 6
record.every = 2

[problem.least-squares-dataset]
dataset = {{ file = "{figure}.csv", label = {name}, features = [{feature}], split = {{ column = "site" }} }}

[[algorithm.fedavg]]
label = {name}
step-size = [0.01, 0.02]
local-steps = [1, 2]

[[algorithm.scaffold]]
label = "S"
step-size = [0.01, 0.02]
local-steps = [1, 2]

[[figure.convergence]]
title = {text}
panels = ["local-steps", "step-size"]
labels = [{name}]

[[figure.winners]]
title = {text}
x = "step-size"
y = "local-steps"

[[claim.less]]
id = "c"
statement = {text}
source = {text}
figure = "convergence"
left = {{ label = {name}, local-steps = 1, step-size = 0.01 }}
value = 1e9

[[claim.less]]
id = "d"
statement = {text}
expected = "refuted"
refutes = "reading"
reason = {text}
left = {{ label = {name}, local-steps = 1, step-size = 0.01 }}
value = 1e-12
"#,
        feature = quoted(&format!("f {}", text.len()))
    )
}

/// Runs and reports a manifest in folders of these names; the files by path.
fn files(text: &str, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let bench = Bench::new();
    let manifest = manifest(text, "data");
    let table = {
        let name: String = text.chars().take(90).collect();
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let read: toml::Table = toml::from_str(&manifest).unwrap();
        let dataset = &read["problem"]["least-squares-dataset"]["dataset"];
        let feature = dataset["features"][0].as_str().unwrap();
        let mut table = format!("{},{},site\n", quoted(&name), quoted(feature));
        for i in 0..8 {
            table += &format!("{},{},{}\n", i % 3, 1 + i, quoted(&text[..1 + i % 2]));
        }
        table
    };
    bench.write(&format!("{folder}/experiments/x/e.toml"), &manifest);
    bench.write(&format!("{folder}/experiments/x/data.csv"), &table);
    let (path, set) = (format!("{folder}/experiments/x/e.toml"), format!("title='{}'", &text[..5]));
    bench.compute(&[&path, "--set", &set]);
    bench.run(&["report", "--format", "html,md,latex", "--quiet"]).expect(0);
    bench.run(&["export", "results", "--out", "reports/all.csv"]).expect(0);
    bench
        .run(&["diff", "reports", "reports", "--format", "html", "--out", "reports/diff.html"])
        .expect(0);
    let top: Vec<&str> = folder.split('/').take(1).chain(["reports", "results"]).collect();
    let mut here = bench.files();
    here.retain(|name| !top.contains(&name.as_str()));
    assert!(here.is_empty(), "written outside: {here:?}");
    bench.contents("reports")
}

/// The elements of a page, each with the names of its attributes.
fn elements(text: &str) -> Vec<String> {
    let element = |tag: Tag<'_>| {
        let attributes = tag.attributes.iter().map(|(name, value)| match *name {
            "href" | "src" | "id" | "type" | "class" => format!(" {name}={value}"),
            name => format!(" {name}"),
        });
        tag.name.to_owned() + &attributes.collect::<String>()
    };
    tags(text).into_iter().map(element).collect()
}

/// What Markdown could read as something other than text, line by line: what a
/// backslash does not take away, code set aside by its backticks.
fn marks(text: &str) -> Vec<String> {
    let marks = |line: &str| {
        let mut letters = line.chars();
        let mut text = String::new();
        while let Some(c) = letters.next() {
            match c {
                '\\' => drop(letters.next()),
                c if "|*_[]<>$~".contains(c) || c == LEFT_OUT => text.push(c),
                _ => {}
            }
        }
        text
    };
    without_code(text).lines().map(marks).collect()
}

/// Commands and groups of LaTeX, comments apart.
fn commands(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in text.lines() {
        let code = line.replace("\\%", "");
        let code = code.split('%').next().unwrap_or_default();
        for part in code.split('\\').skip(1) {
            let name: String = part.chars().take_while(char::is_ascii_alphabetic).collect();
            // What stands for a character says only that it is one.
            let character = name.is_empty()
                || name.starts_with("text")
                || ["ldots", "ensuremath"].contains(&name.as_str());
            if !character {
                all.push(name);
            }
        }
    }
    all
}

fn fields(bytes: &[u8]) -> Vec<usize> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    reader.records().map(|record| record.unwrap().len()).collect()
}

#[test]
fn texts_of_a_manifest_are_text_in_every_file() {
    let plain: String =
        EVIL.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { 'x' }).collect();
    let (good, evil) = (files(&plain, "a"), files(EVIL, "it's <i>|`a`"));
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&good), names(&evil), "files are named after ids alone");
    let mut seen = 0;
    for (name, bytes) in &evil {
        let (text, other) = match (String::from_utf8(bytes.clone()), &good[name]) {
            (Ok(text), other) => (text, String::from_utf8(other.clone()).unwrap()),
            (Err(_), _) => panic!("{name} is not text"),
        };
        let kind = name.rsplit('.').next().unwrap();
        match kind {
            "html" | "svg" => same(name, &elements(&other), &elements(&text)),
            "md" if name.ends_with("provenance.md") => {}
            "md" => same(name, &marks(&other), &marks(&text)),
            "tex" => same(name, &commands(&other), &commands(&text)),
            "csv" => same(name, &fields(other.as_bytes()), &fields(bytes)),
            "toml" => same(
                name,
                &toml::from_str::<toml::Table>(&other).unwrap().keys().collect::<Vec<_>>(),
                &toml::from_str::<toml::Table>(&text).unwrap().keys().collect::<Vec<_>>(),
            ),
            // The list of the files that the report wrote.
            "exactfed-reports" => assert_eq!(other, text, "{name}: files are named after ids"),
            other => panic!("{name}: what is {other}?"),
        }
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}

#[track_caller]
fn same<T: PartialEq + std::fmt::Debug>(name: &str, plain: &[T], evil: &[T]) {
    for (i, (plain, evil)) in plain.iter().zip(evil).enumerate() {
        assert_eq!(plain, evil, "{name}: place {i}");
    }
    assert_eq!(plain.len(), evil.len(), "{name}");
}

/// What no page can show is refused where it stands: control characters, names
/// of several lines, names that fill a page or that no file can have.
#[test]
fn texts_that_cannot_be_shown_are_refused() {
    let bench = Bench::new();
    let long = "x".repeat(101);
    for (change, message) in [
        ("title = \"a\\u0000b\"", "`title` holds the control character U+0000"),
        ("title = \"a\\u001b[31mb\"", "`title` holds the control character U+001B"),
        ("title = \"a\\u009bb\"", "`title` holds the control character U+009B"),
    ] {
        bench.write("m.toml", edited(TINY, &[("title = \"t\"", change)]));
        let output = bench.run(&["run", "m.toml"]).expect(2);
        assert!(output.err.contains(message), "{}", output.err);
        assert!(!output.err.contains(['\u{1b}', '\0', '\u{9b}']), "{:?}", output.err);
    }
    for (label, message) in [
        ("label = \"a\\nb\"", "`label` is a name: it must stand in one line"),
        (&format!("label = \"{long}\""), "`label` has 101 characters; at most 100 are allowed"),
        (
            &format!("label = \"a\"\n[[figure.convergence]]\nid = \"{long}\""),
            "`id` has 101 characters",
        ),
    ] {
        bench.write("m.toml", format!("{TINY}{label}\n"));
        bench.run(&["run", "m.toml"]).expect(2).warns(message);
    }
    for path in ["..", ".", "a/../b", "/etc/x", "x.y/../../z"] {
        bench.write("m.toml", format!("{TINY}[[figure.convergence]]\nid = \"{path}\"\n"));
        bench.run(&["run", "m.toml"]).expect(2).warns("a figure's id names its file");
    }
    bench.write("experiments/..m.toml", TINY);
    bench.write("m m.toml", TINY);
    for path in ["experiments/..m.toml", "m m.toml"] {
        let output = bench.run(&["run", path]).expect(2);
        output.warns("the name of an experiment comes from the path of its manifest");
    }
    assert!(!bench.path("results").exists());
}

/// A terminal obeys nothing that a broken manifest says, and a line of a million
/// letters is not repeated.
#[test]
fn messages_about_odd_texts_are_short_and_plain() {
    let bench = Bench::new();
    let long = format!("title = \"{}\" x\n", "é".repeat(1_000_000));
    for text in ["title = \u{1b}]0;owned\u{7}\n", "\"\u{1b}[2J\" = 1\n", "\u{0}", long.as_str()] {
        bench.write("m.toml", text);
        let output = bench.run(&["check", "m.toml"]).expect(2);
        assert!(!output.err.contains(['\u{1b}', '\u{7}', '\0']), "{:?}", output.err);
        assert!(output.err.len() < 4_000, "{} bytes", output.err.len());
    }
    // Of thousands of mistakes a hundred are printed.
    let keys: String = (0..5_000).map(|i| format!("k{i} = 1\n")).collect();
    bench.write("m.toml", &keys);
    let output = bench.run(&["check", "m.toml"]).expect(2);
    assert!(
        output.err.ends_with(" more, which are not printed\n") && output.err.len() < 60_000,
        "{}",
        output.err
    );
    // A text of a megabyte is a text.
    let title = format!("title = \"{}\"", "<|`".repeat(300_000));
    bench.write("m.toml", edited(TINY, &[("title = \"t\"", &title)]) + "[[figure.convergence]]\n");
    bench.run(&["reproduce", "--experiments", ".", "--quiet"]).expect(0);
    assert!(bench.read("reports/m/report.md").len() > 900_000);
}

/// A manifest shown on a page ends where it ends.
#[test]
fn a_manifest_of_backticks_stays_in_its_fence() {
    let bench = Bench::new();
    let fences = "# ````\n# `````\ntitle = '''\n````\n<b>'''";
    let text = edited(TINY, &[("title = \"t\"", fences)]);
    let text = text.trim_end();
    bench.write("m.toml", text);
    bench.run(&["reproduce", "--experiments", ".", "--quiet"]).expect(0);
    let page = bench.read("reports/m/report.md");
    let whole = format!("\n``````toml\n{text}\n``````\n\n</details>");
    assert!(page.contains(&whole), "{page}");
}

/// Analysis texts are figures in sentences, not programs.
#[test]
fn an_analysis_text_has_no_statements() {
    let bench = Bench::new();
    let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    for (text, message) in [
        (loops, "statements {% … %} are not offered"),
        ("{{ range(99999)|list }}", "analysis"),
        ("{{ 'a' * 999999999999 }}", "analysis"),
    ] {
        let analysis = format!("seed = 1\nanalysis = \"\"\"{text}\"\"\"");
        bench.write("m.toml", edited(TINY, &[("seed = 1", &analysis)]));
        bench.run(&["check", "m.toml"]).expect(2).warns(message);
    }
}
