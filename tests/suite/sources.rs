//! The published experiments against the registry of what the sources state: no statement without
//! a claim, a test or a reason, and no reference to a claim that does not exist.

use exactfed::evidence::errata::errata;
use exactfed::evidence::predictions::{MomentsCache, Theory};
use exactfed::manifest::Source;
use exactfed::runner::prepare;
use exactfed_core::sources::{Condition, statements};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        match entry.unwrap().path() {
            path if path.is_dir() => collect(&path, files),
            path if path.extension().is_some_and(|end| end == "toml") => files.push(path),
            _ => {}
        }
    }
}

/// The claims of all manifests, as `experiment#claim`, with the statements that they name.
fn claims() -> BTreeMap<String, Vec<String>> {
    let (root, mut files, mut all) = (Path::new("experiments"), Vec::new(), BTreeMap::new());
    collect(root, &mut files);
    for file in files {
        let name = file.strip_prefix(root).unwrap().with_extension("");
        let name = name.to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let source = Source { name: file.to_str().unwrap().into(), text, ..Source::default() };
        let plan = exactfed::evidence::plan(name.clone(), source).unwrap_or_else(|e| panic!("{e}"));
        for keys in plan.claim_tables.iter().map(|claim| claim.common()) {
            all.insert(format!("{name}#{}", keys.id), keys.statements.clone());
        }
    }
    all
}

#[test]
fn every_statement_of_the_sources_has_a_claim_a_test_or_a_reason() {
    let named: BTreeSet<String> = claims().into_values().flatten().collect();
    let mut empty = Vec::new();
    for statement in statements() {
        for test in &statement.tests {
            let (file, function) = test.split_once(": ").expect("a file and a function");
            let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert!(text.contains(&format!("fn {function}()")), "{file} has no test {function}");
        }
        let has_claim = named.contains(&statement.name);
        let excused = !statement.tests.is_empty() || !statement.reason.is_empty();
        assert!(
            !has_claim || statement.reason.is_empty(),
            "{} has a claim, and a reason why it has none",
            statement.name
        );
        if !has_claim && !excused {
            empty.push(&statement.name);
        }
    }
    assert!(empty.is_empty(), "without a claim, a test or a reason: {empty:#?}");
}

#[test]
fn errata_refer_to_claims_that_exist() {
    let known = claims();
    let errata = errata().iter().flat_map(|source| &source.errata);
    let missing: Vec<&String> = errata
        .flat_map(|erratum| &erratum.claims)
        .filter(|claim| !known.contains_key(*claim))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The published page of all statements says of each claim whether its cells meet the conditions.
#[test]
fn every_condition_is_evaluated_for_a_published_cell() {
    let page = fs::read_to_string("reports/coverage.md").unwrap();
    let is_row = |line: &&str| {
        line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| where |")
    };
    let rows: Vec<&str> = page.lines().filter(is_row).collect();
    assert_eq!(rows.len(), statements().len());
    let mut evaluated = Vec::new();
    let mut all = Vec::new();
    for (statement, row) in statements().iter().zip(rows) {
        let place = format!("| {} |", statement.place());
        assert!(row.replace('\\', "").starts_with(&place), "{row}");
        let conditions = statement.conditions.iter();
        let known = conditions.filter(|condition| !matches!(condition, Condition::Unknown(_)));
        let kinds = known.map(|condition| (discriminant(condition), condition.words()));
        all.extend(kinds.clone());
        // A claim that has cells and constants is on one of these sides; a test has its own instance.
        let sides = ["(inside)", "(partly outside)", "(outside)", "| tested by "];
        if sides.iter().any(|side| row.contains(side)) {
            evaluated.extend(kinds.map(|(kind, _)| kind));
        }
    }
    let never: BTreeSet<String> = all
        .into_iter()
        .filter(|(kind, _)| !evaluated.contains(kind))
        .map(|(_, words)| words)
        .collect();
    assert!(never.is_empty(), "no published cell has these conditions evaluated: {never:?}");
}

const PAIRS: &str = r#"title = "t"
seed = 1
replicates = 1
start.offset = 1.0
budget.rounds = 3
problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }
[[algorithm.richardson-romberg]]
label = "over the step size"
step-size = 0.01
local-steps = 4
[[algorithm.richardson-romberg]]
label = "over local steps"
step-size = 0.01
local-steps = 4
extrapolate = "local-steps"
[[algorithm.richardson-romberg]]
label = "of Scaffold"
step-size = 0.01
local-steps = 4
over = "scaffold"
"#;

/// RR's Theorem 5 is about FedAvg, extrapolated over its step size.
#[test]
fn a_bound_is_one_of_the_algorithm_that_its_statement_is_about() {
    let source = Source { name: "t.toml".into(), text: PAIRS.into(), ..Source::default() };
    let plan = exactfed::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap_or_else(|e| panic!("{e:?}"));
    let theory = Theory::new(&prepared, &HashSet::new(), MomentsCache::Off);
    for cell in &plan.cells {
        let found = theory.listed_bounds(&cell.id, 3);
        let names: Vec<&str> = found.iter().map(|bound| &*bound.info.name).collect();
        let is_stated = cell.label.contains("over the step size");
        assert_eq!(names.concat().contains("Theorem 5"), is_stated, "{}: {names:?}", cell.label);
        assert!(is_stated || names.is_empty(), "{}: {names:?}", cell.label);
    }
}
