//! `run --live`: pages are written while cells are run, and reload themselves; in the end results and
//! pages are those of `run` and `report`. `tests/browser/run_live.rs` opens such pages.
#![cfg(unix)]

use crate::live_run::{CELLS, FAILED, LiveRun, REASON, SOME_FAIL, status};
use crate::support::{Bench, TINY, edited, hash};
use std::time::{Duration, Instant};

const PAGE: &str = "m/report.html";
/// What a page has whose run is not over.
const BAR: &str = "class=\"live-bar\"";

fn bench(manifest: &str) -> Bench {
    let bench = Bench::new();
    bench.write("m.toml", manifest);
    bench
}

/// No page has a bar, and there is no status.
#[track_caller]
fn has_no_trace_of_a_run(bench: &Bench) {
    for (name, bytes) in bench.contents("reports") {
        assert!(name != "status.js" && !String::from_utf8_lossy(&bytes).contains(BAR), "{name}");
    }
}

/// The version of a page with a bar.
#[track_caller]
fn version_in(page: &str) -> u64 {
    let (_, rest) = page.split_once("data-version=\"").unwrap();
    rest.split_once('"').unwrap().0.parse().unwrap()
}

#[test]
fn pages_and_progress_are_written_while_cells_are_run() {
    let bench = bench(&edited(SOME_FAIL, &[("rounds = 100000", "rounds = 60000")]));
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1"]);
    let first = live.wait_for("a stored cell", |status| status["done"].as_u64() >= Some(1));
    assert_eq!((&first["phase"], &first["cells"]), (&"running".into(), &CELLS.into()));
    let mut numbers = vec!["steps_per_second", "cells_per_second", "seconds_left"];
    numbers.extend(cfg!(target_os = "linux").then_some("peak_memory"));
    for number in numbers {
        assert!(first[number].as_f64() > Some(0.0), "{number}: {first}");
    }
    assert_eq!(first["experiment"], "m");
    for page in ["index.html", PAGE] {
        let text = live.wait_for_page(page, |_| true);
        assert!(text.contains(BAR) && text.ends_with("</html>\n"), "{page}");
        assert!(text.contains("script-src 'unsafe-inline' 'self' file:;"), "{page}");
    }
    let failing = live.wait_for("a failed cell", |status| status["failed"].as_u64() >= Some(1));
    assert_eq!(failing["phase"], "running", "the failure is shown as it happens: {failing}");
    let reason = failing["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains(REASON), "{reason}");
    live.wait_for_page(PAGE, |page| page.contains(BAR) && page.contains(REASON));

    let finished = live.finish().expect(4);
    finished
        .warns("the first page is written: open reports/index.html; pages that are open reload");
    finished.warns("1 report written: open reports/index.html");
    assert_eq!(finished.out, "");
    has_no_trace_of_a_run(&bench);
    bench.has_pages_of_report();
    bench.run(&["run", "m.toml", "--quiet", "--out", "plain"]).expect(4);
    assert_eq!(bench.digests("results"), bench.digests("plain"));
    assert_eq!(bench.digests("results").len() as u64, CELLS - FAILED);
}

/// A page changes when a cell was stored, and only then. The status names no version that is not
/// there, and nobody reads half of a file.
#[test]
fn versions_rise_when_pages_change() {
    let bench = bench(SOME_FAIL);
    let begin = Instant::now();
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1", "--quiet"]);
    let mut versions = Vec::new();
    let mut pages = Vec::new();
    while !live.run.has_ended() && begin.elapsed() < Duration::from_secs(240) {
        let newest = status(&bench).and_then(|status| status["versions"][PAGE].as_u64());
        let page = bench.read(&format!("reports/{PAGE}"));
        assert!(page.ends_with("</html>\n"), "{} bytes", page.len());
        if let Some(newest) = newest
            && page.contains(BAR)
        {
            let version = version_in(&page);
            assert!(version >= newest, "{version} is older than {newest}");
            if versions.last() != Some(&version) {
                versions.push(version);
                pages.push(page);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(versions.len() >= 2 && versions.is_sorted(), "{versions:?}");
    // Reports take at most a quarter of the time, and wait two seconds for each other.
    let most = begin.elapsed().as_secs() / 2 + 3;
    assert!((versions.len() as u64) <= most, "{} in {:?}", versions.len(), begin.elapsed());
    assert!(pages.iter().any(|page| page.contains("have no results yet")), "a page of some cells");
    let finished = live.finish().expect(4);
    assert!(!finished.err.contains("written"), "{}", finished.err);
    has_no_trace_of_a_run(&bench);
}

#[test]
fn an_interrupted_run_leaves_what_run_and_report_would() {
    let bench = bench(&edited(SOME_FAIL, &[("rounds = 100000", "rounds = 40000")]));
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1"]);
    live.wait_for("a stored cell", |status| status["done"].as_u64() >= Some(1));
    let finished = live.interrupt().expect(130);
    finished.warns("interrupted: ").warns("1 report written");
    let stored = bench.digests("results");
    assert!((1..(CELLS - FAILED) as usize).contains(&stored.len()), "{} cells", stored.len());
    has_no_trace_of_a_run(&bench);
    bench.has_pages_of_report();
    // The same command goes on, and ends with what an undisturbed run has.
    bench.run(&["run", "--live", "m.toml", "--quiet"]).expect(4);
    bench.run(&["run", "m.toml", "--quiet", "--out", "plain"]).expect(4);
    let digests = bench.digests("results");
    assert_eq!(digests, bench.digests("plain"));
    assert!(stored.iter().all(|line| digests.contains(line)));
    has_no_trace_of_a_run(&bench);
    bench.has_pages_of_report();
}

/// A round that takes minutes is not waited for, and the pages are written all the same.
#[test]
fn an_interruption_within_a_long_round_writes_the_pages() {
    let quick = "\n[[algorithm.fedlin]]\nstep-size = [0.01, 0.02]\nlocal-steps = 1\n";
    let changes = [
        ("rounds = 100000", "rounds = 1"),
        ("[0.01, 0.02, 0.03]", "0.01"),
        ("local-steps = 20", "local-steps = 900000000"),
        // So few that a round is not split, of which the third thread could take a part.
        ("clients = 8", "clients = 5"),
        (", { from = 5e199, to = 1e200 }, { from = 0.5, to = 1.0 }]", "]"),
    ];
    let bench = bench(&format!("{}{quick}", edited(SOME_FAIL, &changes)));
    // The long cell comes first, and the third thread runs the others meanwhile.
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "3"]);
    live.wait_for("two stored cells", |status| status["done"] == 2);
    let begin = Instant::now();
    live.interrupt().expect(130).warns("interrupted: 2 of 3 cells are stored");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    has_no_trace_of_a_run(&bench);
    bench.has_pages_of_report();
}

/// What a killed run leaves is removed by the next report, and by the next run.
#[test]
fn a_killed_run_leaves_a_status_that_the_next_command_removes() {
    let slow = edited(SOME_FAIL, &[("rounds = 100000", "rounds = 60000")]);
    for next in [&["report"][..], &["run", "m.toml", "--live"]] {
        let bench = bench(&slow);
        let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1"]);
        live.wait_for_page(PAGE, |_| true);
        live.wait_for("a stored cell", |status| status["done"].as_u64() >= Some(1));
        live.run.kill_alone();
        assert!(status(&bench).is_some() && bench.read("reports/index.html").contains(BAR));
        // A temporary file is a leftover once it is older than a second.
        std::thread::sleep(Duration::from_millis(1200));
        bench.run(&[next, &["--quiet"]].concat());
        has_no_trace_of_a_run(&bench);
        bench.has_pages_of_report();
    }
}

/// Pages of other experiments do not change during the run.
#[test]
fn pages_of_other_experiments_have_no_bar() {
    let bench = bench(&edited(SOME_FAIL, &[("rounds = 100000", "rounds = 20000")]));
    bench.write("other.toml", TINY);
    bench.compute(&["other.toml"]);
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1", "--reports", "reports"]);
    let index = live.wait_for_page("index.html", |page| page.contains(BAR));
    assert!(index.contains("other/report.html"), "{index}");
    let other = live.wait_for_page("other/report.html", |_| true);
    assert!(!other.contains(BAR));
    live.finish().expect(4);
    assert_eq!(bench.read("reports/other/report.html"), other);
    has_no_trace_of_a_run(&bench);
    bench.has_pages_of_report();
}

/// The page of an experiment that cannot be reported at the end stays, without its bar.
#[test]
fn a_page_that_is_not_written_again_loses_its_bar() {
    let bench = bench(&edited(SOME_FAIL, &[("rounds = 100000", "rounds = 60000")]));
    bench.write("a.toml", TINY);
    let mut live = LiveRun::start(&bench, &["a.toml", "m.toml", "--threads", "1"]);
    let page = live.wait_for_page("a/report.html", |page| !page.contains("no results yet"));
    assert!(page.contains(BAR));
    live.wait_for_page(PAGE, |page| page.contains(BAR));
    let pack = bench.largest_pack("results/a");
    bench.write(&pack, "damaged");
    let finished = live.finish();
    finished.warns("error: a cannot be reported: ");
    assert!(bench.read("reports/a/report.html").contains("</html>"));
    has_no_trace_of_a_run(&bench);
}

#[test]
fn watch_is_short_for_a_live_run() {
    let bench = bench(TINY);
    let watched = bench.run(&["watch", "m.toml"]).expect(0);
    watched.warns("1 report written: open reports/index.html");
    has_no_trace_of_a_run(&bench);
    bench.has_pages_of_report();
    let pages = bench.contents("reports");
    bench.run(&["run", "m.toml", "--live", "--reports", "live"]).expect(0);
    assert_eq!(bench.contents("live"), pages);
    // There is no server any more.
    for option in ["--port", "--host", "--exit"] {
        let refused = bench.run(&["watch", "m.toml", option, "1"]).expect(2);
        refused.warns(&format!("error: unexpected argument '{option}' found"));
    }
}

/// A file of a user that has the name of the status is not overwritten.
#[test]
fn a_status_that_no_run_wrote_is_left_alone() {
    let bench = bench(TINY);
    bench.write("reports/status.js", "mine");
    let refused = bench.run(&["run", "m.toml", "--live"]).expect(2);
    refused.warns("reports/status.js: was not written by `exactfed report`");
    assert!(!bench.path("results").exists());
    bench.compute(&["m.toml"]);
    bench.report();
    assert_eq!(hash(bench.read("reports/status.js").as_bytes()), hash(b"mine"));
}

/// Cells are not run for pages that cannot be written.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_of_reports_is_tried_before_cells_are_run() {
    let bench = bench(TINY);
    let before = bench.files();
    for command in [
        vec!["run", "m.toml", "--live", "--reports", "/proc"],
        vec!["reproduce", "--experiments", ".", "--reports", "/proc"],
    ] {
        bench.run(&command).expect(2).warns("error: /proc: no file can be created in it: ");
        assert_eq!(bench.files(), before, "{command:?}");
    }
}
