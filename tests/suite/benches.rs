//! What the programs `bars` and `compare` make of criterion's results.

#[path = "../../benches/support/mod.rs"]
mod measurements;

use measurements::{Holds, Limit, Outcome, Value, Verdict, bars, geometric_mean, timings, verdict};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn estimate(point: f64) -> String {
    let (low, high) = (0.9 * point, 1.1 * point);
    format!(
        r#"{{"confidence_interval":{{"confidence_level":0.95,"lower_bound":{low},"upper_bound":{high}}},"point_estimate":{point},"standard_error":1.0}}"#
    )
}

/// A result as criterion leaves it.
fn result(home: &Path, names: [&str; 3], throughput: &str, mean: f64, slope: Option<f64>) {
    let folder = home.join(names.join("_")).join("new");
    fs::create_dir_all(&folder).unwrap();
    let [group, function, value] = names;
    let value = if value.is_empty() { "null".into() } else { format!("\"{value}\"") };
    let benchmark = format!(
        r#"{{"group_id":"{group}","function_id":"{function}","value_str":{value},"throughput":{throughput},"full_id":"","directory_name":"","title":""}}"#
    );
    let slope = slope.map_or("null".into(), estimate);
    let estimates = format!(r#"{{"mean":{},"slope":{slope}}}"#, estimate(mean));
    fs::write(folder.join("benchmark.json"), benchmark).unwrap();
    fs::write(folder.join("estimates.json"), estimates).unwrap();
}

#[test]
fn a_folder_of_criterion_is_read() {
    let home = tempfile::tempdir().unwrap();
    result(home.path(), ["round", "fedlsa", "N=10 H=1"], r#"{"Elements":10}"#, 50.0, Some(40.0));
    result(home.path(), ["pipeline", "cell", ""], "null", 70.0, None);
    let found = timings(home.path(), None).unwrap();
    let ids: Vec<&str> = found.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(ids, ["pipeline/cell", "round/fedlsa/N=10 H=1"]);
    assert_eq!((found[0].each().value, found[0].elements), (70.0, None));
    // The slope where there is one, of each of the ten elements.
    assert_eq!(found[1].iteration.value, 40.0);
    let each = found[1].each();
    let (low, high) = each.interval.unwrap();
    assert!((each.value - 4.0).abs() < 1e-12);
    assert!((low - 3.6).abs() < 1e-12 && (high - 4.4).abs() < 1e-12);
}

#[test]
fn what_is_older_than_the_marker_does_not_count() {
    let home = tempfile::tempdir().unwrap();
    result(home.path(), ["a", "b", "c"], "null", 1.0, None);
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    assert_eq!(timings(home.path(), Some(now - hour)).unwrap().len(), 1);
    assert!(timings(home.path(), Some(now + hour)).unwrap().is_empty());
    assert!(timings(&home.path().join("absent"), None).unwrap().is_empty());
}

#[test]
fn a_damaged_result_is_named() {
    let home = tempfile::tempdir().unwrap();
    result(home.path(), ["a", "b", "c"], "null", 1.0, None);
    fs::write(home.path().join("a_b_c/new/estimates.json"), "{").unwrap();
    let error = timings(home.path(), None).unwrap_err();
    assert!(error.contains("estimates.json"), "{error}");
}

fn within(value: f64, low: f64, high: f64) -> Value {
    Value { value, interval: Some((low, high)) }
}

#[test]
fn a_verdict_needs_the_whole_interval() {
    let of = |low: f64, high: f64| verdict(within((low + high) / 2.0, low, high), 1.05);
    assert_eq!(of(1.06, 1.2), Verdict::Slower);
    assert_eq!(of(1.04, 1.2), Verdict::Undecided);
    assert_eq!(of(0.96, 1.05), Verdict::Same);
    assert_eq!(of(0.8, 0.95), Verdict::Faster);
    assert_eq!(of(0.8, 0.96), Verdict::Undecided);
    assert_eq!(of(0.8, 1.2), Verdict::Undecided);
    assert_eq!(verdict(geometric_mean(&[2.0]), 1.05), Verdict::Undecided);
}

#[test]
fn ratios_by_hand() {
    // Logarithms ±ln 2 and t of one degree of freedom: half width ln 2 · 12.706.
    let mean = geometric_mean(&[2.0, 0.5]);
    let (low, high) = mean.interval.unwrap();
    let half = libm::log(2.0) * 12.706_204_736;
    assert!((mean.value - 1.0).abs() < 1e-12);
    assert!((libm::log(high) - half).abs() < 1e-6 && (libm::log(low) + half).abs() < 1e-6);
    let steady = geometric_mean(&[1.1, 1.101, 1.099, 1.1]);
    assert_eq!(verdict(steady, 1.05), Verdict::Slower);
    assert_eq!(verdict(steady, 1.2), Verdict::Same);
    // Half widths of ln 1.3 and ln 1.4 add as squares.
    let ratio = within(6.0, 6.0 / 1.3, 6.0 * 1.3).over(within(2.0, 2.0 / 1.4, 2.0 * 1.4));
    let both = libm::hypot(libm::log(1.3), libm::log(1.4));
    assert!((ratio.value - 3.0).abs() < 1e-12);
    assert!((libm::log(ratio.interval.unwrap().1 / 3.0) - both).abs() < 1e-12);
}

#[test]
fn a_bar_as_markdown() {
    let [point, what, bar, bench] = ["1", "a | b", "at most 9 ns", "round"].map(str::to_owned);
    let limit = Limit { point, what, bar, bench };
    let measured = within(6.612, 6.5, 123.4).with_unit("ns");
    let absent = Outcome::new("not measured".into(), Holds::NotMeasured);
    let text = bars(&[(limit.clone(), Outcome::new(measured, Holds::when(true))), (limit, absent)]);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert_eq!(lines.len(), 4);
    let of = |line: usize| lines[line].clone();
    let first = ["1", r"a \| b", "at most 9 ns", "6.61 ns (6.50 to 123)", "", "yes"];
    assert_eq!(of(2), [&first[..], &["`cargo bench --bench round`"]].concat());
    assert_eq!(of(3)[5], "not measured");
    assert!(text.lines().all(|line| line.chars().count() == text.lines().next().unwrap().len()));
}
