//! `watch`: reports are served while cells are run; results and pages on the disk are those of
//! `run` and `report`.
#![cfg(unix)]

mod clients;

use crate::served::{CELLS, FAILED, REASON, SOME_FAIL, Served};
use crate::support::process::Running;
use crate::support::{Bench, Finished, TINY, edited};
use std::time::{Duration, Instant};

const PAGE: &str = "m/report.html";

fn bench(manifest: &str) -> Bench {
    let bench = Bench::new();
    bench.write("m.toml", manifest);
    bench
}

/// Ends a program as Ctrl-C does.
#[track_caller]
fn interrupt(run: Running, code: i32) -> Finished {
    run.signal("INT");
    Finished::from(run.finish()).expect(code)
}

/// The progress that a page shows until it has asked for it.
#[track_caller]
fn status_in(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"watch-status\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn pages_and_progress_are_served_while_cells_are_run() {
    // Nothing in the progress ends its element of the page.
    let label = "local-steps = 20\nlabel = \"</script>\"";
    let changes = [("local-steps = 20", label), ("rounds = 100000", "rounds = 60000")];
    let bench = bench(&edited(SOME_FAIL, &changes));
    let mut served = Served::start(&bench, &["m.toml", "--threads", "1"]);
    let index = served.get("/");
    assert_eq!((index.code, &status_in(&index.body)["cells"]), (200, &CELLS.into()));
    assert!(index.head.contains("content-type: text/html") && index.head.contains("no-store"));
    assert!(index.body.contains("id=\"watch\""), "{}", index.body);
    let first = served.wait_for("a stored cell", |status| status["done"].as_u64() >= Some(1));
    assert_eq!((&first["phase"], &first["cells"]), (&"running".into(), &CELLS.into()));
    let mut numbers = vec!["steps_per_second", "cells_per_second", "seconds_left"];
    numbers.extend(cfg!(target_os = "linux").then_some("peak_memory"));
    for number in numbers {
        assert!(first[number].as_f64() > Some(0.0), "{number}: {first}");
    }
    assert_eq!(first["experiment"], "m");
    let is_being_run = |page| served.status(page)["is_being_run"].clone();
    assert_eq!([PAGE, "", "other/report.html"].map(is_being_run), [true, false, false]);

    let failing = served.wait_for("a failed cell", |status| status["failed"].as_u64() >= Some(1));
    assert_eq!(failing["phase"], "running", "the failure is shown as it happens: {failing}");
    let reason = failing["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains(REASON), "{reason}");
    let last = served.wait_for("the end", |status| status["phase"] == "finished");
    assert_eq!((&last["done"], &last["failed"]), (&(CELLS - FAILED).into(), &FAILED.into()));
    assert!(served.get("/m/report.html").body.contains(REASON));
    assert_eq!(served.status("no/report.html")["version"], serde_json::Value::Null);
    served.run.wait_for("a hint", |run| run.err().contains("until Ctrl-C").then_some(()));

    // The served page is the one on the disk, with the bar and the right to ask this server.
    let (answer, page) = (served.get("/m/report.html").body, bench.read("reports/m/report.html"));
    let [mut shown, mut asked] = [status_in(&answer), served.status(PAGE)];
    // The server goes on.
    for status in [&mut shown, &mut asked] {
        status["peak_memory"].take();
    }
    assert_eq!((&shown, &shown["is_being_run"]), (&asked, &false.into()));
    let (before, bar) = answer.split_once("<style>\n#watch").unwrap();
    let (_, after) = bar.rsplit_once("</script>\n").unwrap();
    let policy = "connect-src 'self'; ";
    assert!(before.contains(policy) && !page.contains(policy) && !page.contains("#watch"));
    assert_eq!(before.replacen(policy, "", 1) + after, page);

    interrupt(served.run, 4).prints("reports: http://127.0.0.1:").warns("1 report written");
    bench.has_pages_of_report();
    bench.run(&["run", "m.toml", "--quiet", "--out", "plain"]).expect(4);
    assert_eq!(bench.digests("results"), bench.digests("plain"));
}

/// A page changes when a cell was stored, and only then.
#[test]
fn pages_change_while_cells_are_run() {
    let bench = bench(SOME_FAIL);
    let mut served = Served::start(&bench, &["m.toml", "--threads", "1", "--quiet"]);
    let mut versions = Vec::new();
    let mut pages = Vec::new();
    let begin = Instant::now();
    while served.status(PAGE)["phase"] != "finished" && begin.elapsed() < Duration::from_secs(240) {
        let version = served.status(PAGE)["version"].clone();
        if version.is_string() && versions.last() != Some(&version) {
            pages.push(served.get("/m/report.html").body);
            versions.push(version);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(versions.len() >= 2, "{versions:?}");
    // Reports take at most a quarter of the time, and wait two seconds for each other.
    let most = begin.elapsed().as_secs() / 2 + 3;
    assert!((versions.len() as u64) <= most, "{} in {:?}", versions.len(), begin.elapsed());
    assert!(pages.iter().any(|page| page.contains("have no results yet")), "a page of some cells");
    let version = served.status(PAGE)["version"].clone();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.status(PAGE)["version"], version);
    let body = served.get("/m/report.html").body;
    assert_eq!(status_in(&body)["version"], version, "the page knows its version");
    served.wait_for("the end", |status| status["phase"] == "finished");
    let finished = interrupt(served.run, 4);
    assert!(!finished.err.contains("report written"), "{}", finished.err);
}

#[test]
fn an_interrupted_watch_leaves_what_run_and_report_would() {
    let bench = bench(&edited(SOME_FAIL, &[("rounds = 100000", "rounds = 40000")]));
    let mut served = Served::start(&bench, &["m.toml", "--threads", "1"]);
    served.wait_for("a stored cell", |status| status["done"].as_u64() >= Some(1));
    let finished = interrupt(served.run, 130);
    finished.warns("interrupted: ").warns("1 report written");
    let stored = bench.digests("results");
    assert!((1..(CELLS - FAILED) as usize).contains(&stored.len()), "{} cells", stored.len());
    bench.has_pages_of_report();
    // The same command goes on, and ends with what an undisturbed run has.
    bench.run(&["watch", "m.toml", "--exit", "--quiet", "--port", "0"]).expect(4);
    bench.run(&["run", "m.toml", "--quiet", "--out", "plain"]).expect(4);
    let digests = bench.digests("results");
    assert_eq!(digests, bench.digests("plain"));
    assert!(stored.iter().all(|line| digests.contains(line)));
    bench.run(&["report", "--quiet", "--out", "fresh"]).expect(0);
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
    let mut served = Served::start(&bench, &["m.toml", "--threads", "3"]);
    served.wait_for("two stored cells", |status| status["done"] == 2);
    let begin = Instant::now();
    interrupt(served.run, 130).warns("interrupted: 2 of 3 cells are stored");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    bench.has_pages_of_report();
}

/// A watch that has nothing to do any more but to serve.
fn finished(bench: &Bench) -> Served {
    let mut served = Served::start(bench, &["m.toml"]);
    served.wait_for("the end", |status| status["phase"] == "finished");
    served
}

#[test]
fn pages_are_served_with_their_types() {
    let bench = bench(TINY);
    let served = finished(&bench);
    for (path, media) in [
        ("/", "text/html"),
        ("/index.html", "text/html"),
        ("/m/report.html?a=b", "text/html"),
        ("/m/report.md", "text/plain"),
        ("/m/summary.csv", "text/csv"),
        ("/.watch/status/", "application/json"),
    ] {
        let answer = served.get(path);
        assert_eq!(answer.code, 200, "{path}");
        let head = answer.head;
        assert!(head.contains(&format!("content-type: {media}")), "{path}: {head}");
        assert!(head.contains("nosniff") && head.contains("no-store"), "{path}: {head}");
    }
    let head = served.request("HEAD /m/report.html", "localhost");
    assert_eq!((head.code, head.body.as_str()), (200, ""));
    let length = served.get("/m/report.html").body.len();
    assert!(head.head.contains(&format!("content-length: {length}")), "{}", head.head);
    interrupt(served.run, 0);
}

#[test]
fn other_files_are_not_served() {
    let bench = bench(TINY);
    let served = finished(&bench);
    let secret = "not for others";
    bench.write("secret.html", secret);
    bench.write("reports/own.html", secret);
    bench.write("reports/m/report.md", "replaced by a link");
    std::fs::remove_file(bench.path("reports/m/report.md")).unwrap();
    std::os::unix::fs::symlink(bench.path("secret.html"), bench.path("reports/m/report.md"))
        .unwrap();
    let absolute = format!("/{}", bench.path("secret.html").display());
    for path in [
        "/own.html",
        "/m/report.md",
        "/../secret.html",
        "/m/../../secret.html",
        "/%2e%2e/secret.html",
        "/m/..%2f..%2fsecret.html",
        "/.exactfed-reports",
        "/m",
        "/m/",
        "/results/exactfed.toml",
        &absolute,
    ] {
        let answer = served.get(path);
        assert_eq!((answer.code, answer.body.contains(secret)), (404, false), "{path}");
    }
    interrupt(served.run, 0);
}

#[test]
fn requests_under_other_names_are_refused() {
    let bench = bench(TINY);
    let served = finished(&bench);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = served.request(&format!("{method} /"), "127.0.0.1");
        assert!(answer.code == 405 && answer.head.contains("allow: get, head"), "{method}");
    }
    let port = served.port;
    let at_port = |host: &str| format!("{host}:{port}");
    for host in ["localhost", "127.0.0.1", &at_port("[::1]"), &at_port("LOCALHOST")] {
        assert_eq!(served.request("GET /", host).code, 200, "{host}");
    }
    for host in [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "10.0.0.1",
        "localhost:1",
        "localhost:evil.com",
        "[::1].evil.com",
        &(at_port("127.0.0.1") + ".evil.com"),
    ] {
        let answer = served.request("GET /", host);
        assert!([400, 403].contains(&answer.code), "{host}: {}", answer.code);
        assert!(!answer.body.contains("id=\"watch\""), "{host}");
        let answer = served.request("GET /.watch/status/", host);
        assert!(!answer.body.contains("phase"), "{host}");
    }
    // Of two hosts a request means neither, whichever comes first, even if they are equal.
    for [first, second] in [["127.0.0.1", "evil.com"], ["evil.com", "localhost"], ["localhost"; 2]]
    {
        let answer = served.request("GET /", &format!("{first}\r\nHost: {second}"));
        assert_eq!(answer.code, 400, "{first} and {second}");
        assert!(!answer.body.contains("id=\"watch\""), "{first} and {second}");
    }
    interrupt(served.run, 0);
}

#[test]
fn a_port_that_is_taken_is_bad_input() {
    let (first, second) = (bench(TINY), bench(TINY));
    let served = finished(&first);
    let port = served.port.to_string();
    let before = second.files();
    let failed = second.run(&["watch", "m.toml", "--port", &port]).expect(2);
    failed.warns(&format!("error: --port {port}: another program listens on this port"));
    assert_eq!(failed.out, "");
    assert_eq!(second.files(), before, "nothing is written");
    interrupt(served.run, 0);
    // It is free again, and without --port there is always one.
    second.run(&["watch", "m.toml", "--port", &port, "--exit"]).expect(0);
    let one = finished(&first);
    first.run(&["watch", "m.toml", "--exit"]).expect(0).prints("reports: http://127.0.0.1:");
    interrupt(one.run, 0);
}

#[test]
fn another_host_is_opened_with_a_warning() {
    let bench = bench(TINY);
    let quiet = bench.run(&["watch", "m.toml", "--exit", "--port", "0"]).expect(0);
    assert!(!quiet.err.contains("warning"), "{}", quiet.err);
    let host = ["watch", "m.toml", "--exit", "--port", "0", "--host", "0.0.0.0", "--quiet"];
    let open = bench.run(&host).expect(0);
    open.warns("warning: every machine that can connect to 0.0.0.0:");
    open.prints("reports: http://127.0.0.1:");
    bench.run(&["watch", "m.toml", "--exit", "--host", "192.0.2.1"]).expect(2).warns("--host 192");
}

/// Cells are not run for pages that cannot be written.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_of_reports_is_tried_before_cells_are_run() {
    let bench = bench(TINY);
    let before = bench.files();
    for command in [
        vec!["watch", "m.toml", "--exit", "--port", "0", "--reports", "/proc"],
        vec!["reproduce", "--experiments", ".", "--reports", "/proc"],
    ] {
        bench.run(&command).expect(2).warns("error: /proc: no file can be created in it: ");
        assert_eq!(bench.files(), before, "{command:?}");
    }
}
