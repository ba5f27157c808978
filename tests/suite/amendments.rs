//! What decides a verdict of a published manifest changes after verdicts only with an `[[amendment]]` that names the change.
//!
//! The history of the manifests is read from git in two calls, which takes a second. A change counts if the commit before
//! it had a report of the experiment with verdicts. An amendment covers it that names what changed, and that the
//! manifest did not have before the change. So an amendment covers no later change of the same key.

use crate::support::Bench;
use crate::support::process::Program;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use toml::{Table, Value};

/// Keys of a manifest that decide no verdict. Claims are compared one by one.
const UNDECISIVE_KEYS: [&str; 9] = [
    "title",
    "question",
    "finding",
    "source",
    "published",
    "analysis",
    "figure",
    "opens-with",
    "amendment",
];
/// Keys of claims that decide no verdict. `identity` says that a claim holds by construction.
const UNDECISIVE_CLAIM_KEYS: [&str; 12] = [
    "id",
    "statement",
    "source",
    "statements",
    "figure",
    "answer",
    "dispute",
    "side",
    "reason",
    "expected",
    "refutes",
    "identity",
];
/// The same of tables of a manifest.
const UNDECISIVE_TABLE_KEYS: [(&str, &[&str]); 2] =
    [("frontier", &["title", "guide"]), ("phase", &["title", "boundaries"])];

/// Changes that decide nothing although keys that decide verdicts changed: manifest, beginning of the commit's name, why.
const DECIDED_NOTHING: [(&str, &str, &str); 3] = [
    ("book/msd", "fd356ec5", "the label of an algorithm was written out"),
    ("book/unnormalised", "fd356ec5", "the label of an algorithm was spelled with subscripts"),
    (
        "scafflsa/speedup",
        "720d1893",
        "a second heterogeneity was added, and the claims name the first, of which they were",
    ),
];

/// A commit's change of one manifest, or that of the working tree.
struct Change {
    /// The commit's name.
    commit: String,
    /// The path of the manifest before and after the change.
    paths: [String; 2],
    /// What git calls the manifest before the change, and the commit before it.
    before: String,
    parent: String,
    /// What git calls the manifest after the change; `None` of the working tree.
    after: Option<String>,
}

/// Something that a change made different.
#[derive(Debug, PartialEq)]
enum Difference {
    /// A key of the manifest, as a path.
    Setting(String),
    /// A key of a claim, as a path: id and key.
    Claim(String, String),
    /// The id of a claim that is no more.
    Removed(String),
}

#[test]
fn changes_after_verdicts_are_amended() {
    match unamended_changes(Path::new(".")) {
        Ok(found) => assert!(found.is_empty(), "write an [[amendment]] for:\n{}", found.join("\n")),
        // Past the capture of the test harness, so that a reader of the log sees it.
        Err(why) => {
            let _ =
                writeln!(std::io::stderr(), "skipped: changes_after_verdicts_are_amended: {why}");
        }
    }
}

/// What changed in the published manifests after verdicts without an amendment, one text each.
///
/// # Errors
/// Why there is no history to read.
fn unamended_changes(folder: &Path) -> Result<Vec<String>, String> {
    let changes = changes(folder)?;
    let renamed: HashMap<&str, &str> = changes
        .iter()
        .filter(|change| change.paths[0] != change.paths[1])
        .map(|change| (change.paths[0].as_str(), change.paths[1].as_str()))
        .collect();
    let mut names = Vec::new();
    for change in &changes {
        names.push(change.before.clone());
        names.extend(change.after.clone());
        names.extend(reports_of(&change.paths[0]).map(|path| format!("{}:{path}", change.parent)));
    }
    let texts = texts(folder, &names)?;
    let mut found = BTreeSet::new();
    for change in &changes {
        let now = current_path(&change.paths[1], &renamed);
        // An experiment that was removed has no page to warn on.
        let Ok(current) = std::fs::read_to_string(folder.join(now)) else { continue };
        let mut reports = reports_of(&change.paths[0]);
        let has_verdicts = reports.any(|path| {
            texts.get(&format!("{}:{path}", change.parent)).is_some_and(|text| has_verdicts(text))
        });
        let after = change.after.as_ref().map_or(Some(&current), |name| texts.get(name));
        let (Some(before), Some(after), true) = (texts.get(&change.before), after, has_verdicts)
        else {
            continue;
        };
        let before = table(before, &change.paths[0])?;
        let after = table(after, &change.paths[1])?;
        let manifest = now.trim_start_matches("experiments/").trim_end_matches(".toml");
        let decides_nothing = DECIDED_NOTHING
            .iter()
            .any(|(of, commit, _)| *of == manifest && change.commit.starts_with(commit));
        if decides_nothing {
            continue;
        }
        let known = amendments(&before);
        let current = table(&current, now)?;
        let new: Vec<Table> =
            amendments(&current).into_iter().filter(|a| !known.contains(a)).collect();
        for difference in differences(&before, &after) {
            if !new.iter().any(|amendment| names_difference(amendment, &difference)) {
                let commit = &change.commit[..change.commit.len().min(8)];
                found.insert(format!("{manifest}, {commit}: {difference:?}"));
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The output of git.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let program = Program::new("git").args(arguments).folder(folder);
    let output = program.try_start().map_err(|e| format!("git cannot be started: {e}"))?.finish();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// All changes of manifests, the oldest first, and those of the working tree last.
fn changes(folder: &Path) -> Result<Vec<Change>, String> {
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    let is_own = std::fs::canonicalize(top.trim()).ok() == std::fs::canonicalize(folder).ok();
    if !is_own {
        return Err("the folder is no git repository".to_owned());
    }
    if git(folder, &["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
        return Err("the git history is shallow".to_owned());
    }
    // A merge is listed (-c) where its manifest is that of none of its parents.
    let arguments = [
        "log",
        "--reverse",
        "--topo-order",
        "--full-history",
        "--format=@%H",
        "--raw",
        "-c",
        "--no-abbrev",
        "-M",
        "--",
        "experiments",
    ];
    let mut commit = String::new();
    let mut all = Vec::new();
    for line in git(folder, &arguments)?.lines() {
        if let Some(name) = line.strip_prefix('@') {
            name.clone_into(&mut commit);
        } else if line.starts_with(':') {
            all.extend(listed_changes(line, &commit));
        }
    }
    for line in
        git(folder, &["diff", "--raw", "--no-abbrev", "-M", "HEAD", "--", "experiments"])?.lines()
    {
        for change in listed_changes(line, "working tree") {
            all.push(Change { parent: "HEAD".into(), after: None, ..change });
        }
    }
    Ok(all)
}

/// The changes of a line of git's raw format, one for each parent of the commit: none of what is no manifest, and none of
/// one that was added or removed.
fn listed_changes(line: &str, commit: &str) -> Vec<Change> {
    let parents = line.chars().take_while(|c| *c == ':').count();
    let mut fields = line.split('\t');
    let head: Vec<&str> = fields.next().unwrap_or_default().split(' ').collect();
    let paths: Vec<&str> = fields.collect();
    let (Some(first), Some(last)) = (paths.first(), paths.last()) else { return Vec::new() };
    let is_manifest = |path: &str| {
        path.ends_with(".toml") && path.matches('/').count() == 2 && !path.contains("/smoke/")
    };
    let names = &head[parents + 1..];
    let is_missing = |name: &str| name.chars().all(|c| c == '0');
    (0..parents)
        .filter(|_| is_manifest(first) && is_manifest(last))
        .filter(|parent| !is_missing(names[*parent]) && !names[parents + 1].starts_with('D'))
        .map(|parent| Change {
            commit: commit.to_owned(),
            paths: [(*first).to_owned(), (*last).to_owned()],
            before: names[parent].to_owned(),
            parent: format!("{commit}^{}", parent + 1),
            after: Some(names[parents].to_owned()),
        })
        .collect()
}

/// The paths of a manifest's report: pages were HTML alone at first.
fn reports_of(manifest: &str) -> impl Iterator<Item = String> {
    let folder = manifest.replacen("experiments/", "reports/", 1);
    let folder = folder.trim_end_matches(".toml").to_owned();
    ["report.md", "report.html"].into_iter().map(move |file| format!("{folder}/{file}"))
}

fn has_verdicts(report: &str) -> bool {
    ["supported", "refuted", "inconclusive"].iter().any(|verdict| report.contains(verdict))
}

/// The path that a manifest has today.
fn current_path<'a>(path: &'a str, renamed: &HashMap<&'a str, &'a str>) -> &'a str {
    let mut path = path;
    // A name that was given twice would lead around for ever.
    for _ in 0..renamed.len() {
        path = renamed.get(path).copied().unwrap_or(path);
    }
    path
}

/// The texts that git has under these names; names that it does not know are left out.
fn texts(folder: &Path, names: &[String]) -> Result<HashMap<String, String>, String> {
    let list = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    std::fs::write(list.path(), names.join("\n") + "\n").map_err(|e| e.to_string())?;
    let script = "git cat-file --batch < \"$1\"";
    let program = Program::new("sh").args(["-c", script, "sh"]).args([list.path()]).folder(folder);
    let output = program.try_start().map_err(|e| format!("sh cannot be started: {e}"))?.finish();
    let (mut rest, mut found) = (output.stdout.as_slice(), HashMap::new());
    for name in names {
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or("git ended early")?;
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let mut words = head.rsplit(' ');
        let (size, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if let (Ok(size), "blob") = (size.parse::<usize>(), kind) {
            found.insert(name.clone(), String::from_utf8_lossy(&rest[..size]).into_owned());
            rest = &rest[size + 1..];
        }
    }
    Ok(found)
}

fn table(text: &str, path: &str) -> Result<Table, String> {
    text.parse().map_err(|e| format!("{path}: {e}"))
}

fn amendments(manifest: &Table) -> Vec<Table> {
    let all = manifest.get("amendment").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_table).cloned().collect()
}

/// The claims of a manifest by id: each with what decides its verdict.
fn claims(manifest: &Table) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for (kind, all) in manifest.get("claim").and_then(Value::as_table).into_iter().flatten() {
        for claim in all.as_array().into_iter().flatten().filter_map(Value::as_table) {
            let id = claim.get("id").and_then(Value::as_str).unwrap_or_default();
            let mut keys = BTreeMap::from([("kind".to_owned(), kind.clone())]);
            for (key, value) in claim {
                if !UNDECISIVE_CLAIM_KEYS.contains(&key.as_str()) {
                    flatten(value, key, &mut keys);
                }
            }
            found.insert(id.to_owned(), keys);
        }
    }
    found
}

/// What decides the verdicts of a manifest, apart from its claims, by path.
fn settings(manifest: &Table) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (key, value) in manifest {
        if !UNDECISIVE_KEYS.contains(&key.as_str()) && key != "claim" {
            flatten(value, key, &mut found);
        }
    }
    for (of, keys) in UNDECISIVE_TABLE_KEYS {
        found.retain(|path, _| {
            let mut parts = path.split('.');
            parts.next() != Some(of) || parts.nth(1).is_none_or(|key| !keys.contains(&key))
        });
    }
    found
}

/// Adds the values below a path, each by its own path. Tables of an array are named by id or label, else by their place.
fn flatten(value: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                flatten(value, &format!("{path}.{key}"), found);
            }
        }
        // A table without keys, such as an algorithm with its defaults, is a value like any other.
        Value::Array(all) if all.iter().any(Value::is_table) => {
            for (place, value) in all.iter().enumerate() {
                let name = ["id", "label"].iter().find_map(|key| value.get(key)?.as_str());
                let name = name.map_or_else(|| place.to_string(), str::to_owned);
                flatten(value, &format!("{path}.{name}"), found);
            }
        }
        _ => {
            found.insert(path.to_owned(), value.to_string());
        }
    }
}

/// The paths at which two lists of values differ.
fn changed_paths(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let all = before.keys().chain(after.keys());
    all.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// All that decides verdicts and differs between two versions of a manifest. New claims change no verdict that was seen.
fn differences(before: &Table, after: &Table) -> Vec<Difference> {
    let changed = changed_paths(&settings(before), &settings(after));
    let mut found: Vec<Difference> = changed.into_iter().map(Difference::Setting).collect();
    let later = claims(after);
    for (id, keys) in claims(before) {
        match later.get(&id) {
            Some(later) => {
                let changed = changed_paths(&keys, later);
                found.extend(changed.into_iter().map(|path| Difference::Claim(id.clone(), path)));
            }
            // One that has another name now is the same claim.
            None if later.values().any(|other| *other == keys) => {}
            None => found.push(Difference::Removed(id)),
        }
    }
    found
}

/// Whether the parts of a shorter path are parts of a longer one, in their order: `algorithm.fedavg.step-size` of
/// `algorithm.fedavg.0.step-size`.
fn is_short_for(short: &str, path: &str) -> bool {
    let mut parts = path.split('.');
    short.split('.').all(|part| parts.any(|other| other == part))
}

/// Whether an amendment names a difference. Its `setting` lists keys or paths: of the manifest, of the claim that `claim`
/// names, or with "of all claims" of every claim. For a claim, "claim" names all of it and "cells" what selects its
/// cells. "claim ID" names a claim that was removed.
fn names_difference(amendment: &Table, difference: &Difference) -> bool {
    let text = |key: &str| amendment.get(key).and_then(Value::as_str);
    let words: Vec<&str> = text("setting").unwrap_or_default().split(", ").collect();
    let is_of_all_claims = words.contains(&"of all claims");
    let names_path = |path: &str| words.iter().any(|word| is_short_for(word, path));
    match difference {
        Difference::Setting(path) => {
            text("claim").is_none() && !is_of_all_claims && names_path(path)
        }
        Difference::Claim(id, path) => {
            let selects = ["of", "left", "right"].iter().any(|key| is_short_for(key, path));
            let names_whole = words.contains(&"claim") || (selects && words.contains(&"cells"));
            let is_of_claim = text("claim") == Some(id.as_str());
            (is_of_claim && (names_whole || names_path(path)))
                || (is_of_all_claims && names_path(path))
                || names_removed(&words, id)
        }
        Difference::Removed(id) => names_removed(&words, id),
    }
}

/// Whether the words of an amendment say that a claim was removed, which covers its earlier changes too.
fn names_removed(words: &[&str], id: &str) -> bool {
    words.iter().any(|word| word.strip_prefix("claim ") == Some(id))
}

/// A repository with one published manifest.
struct Repository {
    bench: Bench,
}

const MANIFEST: &str = "title = \"t\"\nreplicates = 20\n\n[[claim.slope]]\nid = \"falls\"\nstatement = \"s\"\nmargin = 0.1\n";

impl Repository {
    /// One whose first commit has the manifest, and whose second has its report.
    fn new() -> Self {
        let repository = Self { bench: Bench::new() };
        repository.git(&["init", "-q"]);
        repository.commit(MANIFEST);
        repository
    }

    fn git(&self, arguments: &[&str]) {
        crate::diff::git(&self.bench, arguments).expect(0);
    }

    fn commit(&self, manifest: &str) {
        self.bench.write("experiments/x/one.toml", manifest);
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", "c"]);
    }

    fn report(&self) {
        let page = "| **supported** | s | 1.0 |\n";
        self.bench.write("reports/x/one/report.md", page);
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", "report"]);
    }

    fn unamended(&self) -> Vec<String> {
        unamended_changes(self.bench.folder.path()).unwrap()
    }
}

#[test]
fn a_margin_that_changes_after_verdicts_needs_an_amendment() {
    let repository = Repository::new();
    // Before there are verdicts anything may change.
    let first = MANIFEST.replace("0.1", "0.15");
    repository.commit(&first);
    repository.report();
    assert!(repository.unamended().is_empty());
    // Of a statement's words or a title nobody can choose a verdict.
    let named = first.replace("statement = \"s\"", "statement = \"other words\"");
    repository.commit(&named.replace("\"t\"", "\"another title\""));
    assert!(repository.unamended().is_empty());
    let wider = named.replace("0.15", "0.2");
    repository.bench.write("experiments/x/one.toml", &wider);
    let found = repository.unamended();
    assert_eq!(found.len(), 1, "not yet committed: {found:?}");
    repository.commit(&wider);
    let found = repository.unamended();
    assert!(found.len() == 1 && found[0].contains("Claim(\"falls\", \"margin\")"), "{found:?}");
    let amendment =
        "\n[[amendment]]\nsetting = \"margin\"\nclaim = \"falls\"\nfrom = 0.15\nto = 0.2\n";
    let other = amendment.replace("margin", "factor");
    repository.commit(&format!("{wider}{other}"));
    assert_eq!(repository.unamended().len(), 1, "it names another key");
    let amended = format!("{wider}{amendment}");
    repository.commit(&amended);
    assert!(repository.unamended().is_empty());
    // It is of the first change, and not of every later one.
    repository.commit(&amended.replacen("margin = 0.2", "margin = 0.3", 1));
    assert_eq!(repository.unamended().len(), 1);
}

#[test]
fn settings_and_claims_that_are_removed_need_amendments() {
    let repository = Repository::new();
    repository.report();
    let changed =
        MANIFEST.replace("= 20", "= 40").replace("falls", "another").replace("0.1", "0.3");
    repository.commit(&changed);
    let found = repository.unamended().concat();
    assert!(found.contains("Setting(\"replicates\")"), "{found}");
    assert!(found.contains("Removed(\"falls\")"), "{found}");
    // Another name alone is no change, also of the file.
    repository.git(&["mv", "experiments/x/one.toml", "experiments/x/two.toml"]);
    repository.git(&["commit", "-qm", "renamed"]);
    assert_eq!(repository.unamended().len(), 2);
    let amendments =
        "\n[[amendment]]\nsetting = \"replicates, claim falls\"\nfrom = \"20; margin 0.1\"\n";
    repository.bench.write("experiments/x/two.toml", format!("{changed}{amendments}"));
    assert!(repository.unamended().is_empty(), "{:?}", repository.unamended());
}

/// A change in a merge itself, of which no other commit has a trace.
#[test]
fn merges_are_read() {
    let repository = Repository::new();
    repository.report();
    repository.git(&["checkout", "-qb", "side"]);
    repository.bench.write("other", "side");
    repository.git(&["add", "."]);
    repository.git(&["commit", "-qm", "side"]);
    repository.git(&["checkout", "-q", "-"]);
    repository.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    repository.commit(&MANIFEST.replace("0.1", "0.3"));
    let found = repository.unamended();
    assert!(found.len() == 1 && found[0].contains("margin"), "{found:?}");
}
