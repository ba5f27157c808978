//! Records that are written and read back, and changed files that are refused.

use super::super::claims::SideClaim;
use super::super::side::{OmittedRuns, SCHEMA, SideCell, SideExperiment, SideRuns, id_of};
use super::{MOST_KEPT, RecordError, files, hash, read};
use crate::stats::looks::Looks;
use crate::stats::verdict::Verdict;
use exactfed_runner::trace::TraceDigest;

/// A cell whose settings have characters that CSV and TOML must escape, with a final error per replicate. The digest of
/// its traces is that of `step`, which is also one of its settings.
fn cell(label: &str, step: &str, finals: Vec<Option<f64>>) -> SideCell {
    SideCell {
        runs: SideRuns::done(TraceDigest::of(step), finals),
        ..SideCell::new(label, [("seed", "7"), ("step", step), ("law", "a, \"b\"\n")])
    }
}

/// An experiment with three cells, one of which has no results, and a claim.
fn record() -> SideExperiment {
    let mut missing = cell("F", "3", Vec::new());
    missing.runs = SideRuns::Missing;
    let numbers = [0.1 + 0.2, 0.0, 1e-300, f64::MIN_POSITIVE / 3.0, 123_456.789, 1e22];
    let cells = [
        ("x", cell("F, 1", "1", numbers.map(Some).to_vec())),
        ("y", cell("=\"G\"", "2", vec![None, Some(1.0 / 3.0)])),
        ("z", missing),
    ];
    let claim = SideClaim {
        id: "c".into(),
        statement: "\"quoted\"".into(),
        verdict: Verdict::Supported,
        expected_refuted: true,
        estimate: 0.5,
        low: f64::NEG_INFINITY,
        high: 1.0,
    };
    SideExperiment {
        schema: SCHEMA,
        seed: 7,
        manifest: "hash".into(),
        looks: None,
        cells: cells.map(|(name, cell)| (id_of(name), cell)).into(),
        claims: Some(vec![claim]),
    }
}

#[test]
fn every_bit_comes_back() {
    let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
    assert_eq!(finals.lines().next(), Some("cell,digest,label,step,runs,diverged,finals"));
    assert!(toml.contains("seed = \"7\""), "{toml}");
    assert_eq!(read(Some(&toml), &finals), Ok(record()));
    assert_eq!(read(Some(&toml), &finals.replace('\n', "\r\n")), Ok(record()));
}

/// Planned looks are recorded where there are any, so that other reports keep their text.
#[test]
fn planned_looks_come_back() {
    let [(_, without), _] = files(&record(), || record().cells.into_iter());
    assert!(!without.contains("looks"), "{without}");
    let looks = Some(Looks { first: 10, most: 40 });
    let planned = SideExperiment { looks, ..record() };
    let [(_, toml), (_, finals)] = files(&planned, || record().cells.into_iter());
    assert!(toml.contains("[looks]\nfirst = 10\nmost = 40\n"), "{toml}");
    assert_eq!(read(Some(&toml), &finals), Ok(planned));
}

/// Reports of the first schema have the final errors of all runs and no counts of runs. They are read as the same
/// experiment; with the schema of today their columns are refused.
#[test]
fn reports_of_all_runs_are_read_as_those_of_the_first() {
    let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
    let mut old_finals = String::new();
    for line in finals.lines() {
        let (rest, last) = line.rsplit_once(',').unwrap();
        let (rest, _diverged) = rest.rsplit_once(',').unwrap();
        let (rest, _runs) = rest.rsplit_once(',').unwrap();
        old_finals.push_str(&format!("{rest},{last}\n"));
    }
    assert!(old_finals.starts_with("cell,digest,label,step,finals\n"));
    let old_toml =
        toml.replace("schema = 2", "schema = 1").replace(&hash(&finals), &hash(&old_finals));
    assert_eq!(read(Some(&old_toml), &old_finals), Ok(record()));
    let error = read(Some(&toml), &old_finals).unwrap_err();
    assert!(matches!(error, RecordError::FinalsLine { line: 1, .. }), "{error}");
}

/// Of 40 runs the first [`MOST_KEPT`] are written, and how many the others are and how many of them diverged. A report
/// that is read and written again stays the same.
#[test]
fn of_many_runs_the_first_are_kept_and_the_others_counted() {
    let mut all = record();
    let cell = all.cells.get_mut(&id_of("x")).unwrap();
    let mut finals: Vec<Option<f64>> = (0..40).map(|i| Some(f64::from(i))).collect();
    finals[3] = None;
    finals[39] = None;
    cell.runs = SideRuns::done(TraceDigest::of("1"), finals.clone());
    let [(_, toml), (_, text)] = files(&all, || all.cells.clone().into_iter());
    let kept = read(Some(&toml), &text).unwrap();
    finals.truncate(MOST_KEPT);
    let SideRuns::Done { finals: first, omitted, .. } = &kept.cells[&id_of("x")].runs else {
        panic!("{kept:?}");
    };
    assert_eq!(**first, *finals);
    assert_eq!(*omitted, OmittedRuns { count: 20, diverged: 1 });
    let again = files(&kept, || kept.cells.clone().into_iter());
    assert_eq!(again.map(|(_, text)| text), [toml, text]);
}

#[test]
fn an_empty_text_is_no_missing_setting() {
    let mut all = record();
    let settings = [[("seed", "7"), ("name", "")], [("seed", "7"), ("name", "'")]];
    for (name, settings) in ["x", "y"].into_iter().zip(settings) {
        let cell = all.cells.get_mut(&id_of(name)).unwrap();
        cell.settings = SideCell::new("", settings).settings;
    }
    let [(_, toml), (_, text)] = files(&all, || all.cells.clone().into_iter());
    assert_eq!(read(Some(&toml), &text), Ok(all));
}

/// The messages about changed files begin with the name of the file, and with the line if one is wrong by itself.
#[test]
fn what_is_not_as_it_was_written_is_refused() {
    let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
    let wrong = |toml: &str, finals: &str| read(Some(toml), finals).unwrap_err().to_string();
    let refused = |finals: &str, place: &str| {
        let message = wrong(&toml, finals);
        assert!(message.starts_with(place), "{message}");
    };
    refused(&finals.replace("1e-300", "-1e-300"), "finals.csv:2: ");
    refused(&finals.replace("diverged 0", "diverge 0"), "finals.csv:3: ");
    refused("cell,digest,replicate,outcome,sq_error,label\n", "finals.csv:1: ");
    refused(&finals.replace(&*id_of("y"), &id_of("x")), "finals.csv:3: ");
    refused(&finals.replace(&*id_of("y"), "y"), "finals.csv:3: ");
    refused(&finals.replace(&*TraceDigest::of("2").text(), "2"), "finals.csv:3: ");
    refused(&finals.replace(",,F", ",F"), "finals.csv:4: ");
    refused(&finals.replace(",6,0,", ",5,0,"), "finals.csv:2: ");
    refused(&finals.replace(",2,1,", ",2,2,"), "finals.csv:3: ");
    refused(&finals.replace("1e-300", "1e-301"), "finals.csv: does not have the hash");
    let bad = wrong(&toml.replace("seed = 7", "seed = x"), &finals);
    assert!(bad.starts_with("record.toml:2: "), "{bad}");
}

#[test]
fn other_schemas_are_named_and_not_read() {
    let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
    assert_eq!(read(None, "anything").unwrap().schema, 0);
    let other = toml.replace("schema = 2", "schema = 9");
    assert_eq!(read(Some(&other), &finals).unwrap().schema, 9);
}
