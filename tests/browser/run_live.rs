//! Pages of a run that is going on, opened as files: the bar advances, and they reload themselves.

use crate::access;
use crate::driver::Browser;
use crate::live_run::{CELLS, LiveRun, REASON, SOME_FAIL};
use crate::support::process::wait_until;
use crate::support::{Bench, edited};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

impl Browser {
    /// Waits until an expression is true in the page.
    #[track_caller]
    fn sees(&self, expression: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        let found = wait_until(deadline, || self.value(expression).as_bool()?.then_some(()));
        let page = "document.documentElement.innerText";
        assert!(found.is_some(), "{expression}:\n{}", self.value(page));
    }

    #[track_caller]
    fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}"), json!([]))
    }

    /// Uses the page all the time from now on, as a reader does whom a reload would interrupt.
    fn use_page(&self) {
        let use_page =
            "window.use = setInterval(() => dispatchEvent(new Event('pointermove')), 100)";
        self.run(use_page, json!([]));
    }

    /// Checks that the console has no messages but those about a status that is not there.
    #[track_caller]
    fn has_clean_console(&self) {
        let mut console = self.log("browser");
        console.retain(|entry| !entry["message"].as_str().unwrap().contains("/status.js?"));
        assert!(console.is_empty(), "{console:?}");
    }
}

// A page that is reloading may not have its bar yet.
const METER: &str = "(document.querySelector('.live-bar progress')?.value ?? 0)";
const STATE: &str = "(document.querySelector('.live-bar [role=status]')?.textContent ?? '')";
/// Whether the page does not ask its reader to run what is being run.
const IS_BEING_RUN: &str = "document.documentElement.classList.contains('being-run') && \
    getComputedStyle(document.querySelector('main').appendChild(Object.assign( \
    document.createElement('span'), { className: 'to-run' }))).display === 'none'";
/// Whether the page is one of the end.
const IS_FINAL: &str =
    "document.readyState === 'complete' && document.querySelector('.live-bar') === null";

/// The cells of a manifest that take a minute in one thread.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("m.toml", edited(SOME_FAIL, &[("rounds = 100000", "rounds = 1000000")]));
    bench
}

/// The bar hides nothing, and nothing is wider than the window.
#[track_caller]
fn bar_hides_nothing(browser: &Browser) {
    browser.run("document.querySelector('.live-bar details').open = true;", json!([]));
    let bar = "document.querySelector('.live-bar')";
    let padding = "document.documentElement.style.paddingBottom";
    browser.sees(&format!("{padding} === `${{{bar}.offsetHeight}}px`"));
    browser.run("scrollTo(0, document.documentElement.scrollHeight);", json!([]));
    let end = "document.getElementById('main').getBoundingClientRect().bottom";
    browser.sees(&format!("{end} <= {bar}.getBoundingClientRect().top"));
    browser.sees("document.documentElement.scrollWidth <= innerWidth");
    let axe = access::axe();
    for scheme in ["light", "dark"] {
        browser.media("screen", scheme);
        let found = access::violations(browser, &axe);
        assert!(found.is_empty(), "{scheme}: {found:#?}");
    }
}

#[test]
fn a_page_reloads_and_shows_progress_and_failures() {
    let browser = Browser::start();
    let bench = bench();
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1"]);
    browser.size(390, 844);
    browser.open(&bench.path("reports/index.html"), "");
    browser.sees("document.querySelector('main a[href=\"m/report.html\"]') !== null");
    browser.sees(&format!("{STATE}.startsWith('Running m · ')"));
    live.wait_for_page("m/report.html", |page| page.contains("have no results yet"));
    browser.open(&bench.path("reports/m/report.html"), "#errors");
    browser.sees(&format!("{STATE}.startsWith('Running m · ')"));
    browser.sees(IS_BEING_RUN);
    let before = browser.value(METER).as_f64().unwrap();
    browser.sees(&format!("{METER} > {before}"));

    // The page is another one after it reloaded, at the same place.
    browser.run("window.isOld = true; scrollTo(0, 200);", json!([]));
    browser.sees("window.isOld === undefined && document.readyState === 'complete'");
    browser.sees("Math.abs(scrollY - 200) < 2");
    assert_eq!(browser.value("location.hash"), "#errors");

    browser.sees("document.querySelector('.live-bar li') !== null");
    let failed = browser.value("document.querySelector('.live-bar li').textContent");
    assert!(failed.as_str().unwrap().contains(REASON), "{failed}");
    browser.sees(&format!("document.querySelector('main').textContent.includes('{REASON}')"));
    browser.use_page();
    bar_hides_nothing(&browser);

    // A reader who uses the page is not interrupted by the end either.
    live.interrupt().expect(130);
    browser.sees(&format!("{STATE}.startsWith('The run has ended')"));
    browser.run("clearInterval(window.use)", json!([]));
    browser.sees(IS_FINAL);
    assert_eq!(browser.value("location.hash"), "#errors");
    let text = browser.value("document.querySelector('main').textContent");
    assert!(text.as_str().unwrap().contains(&format!("of {CELLS} cells have no results yet")));
    browser.has_clean_console();
}

/// A page shows that its run was killed, and reloads when another command has written it.
#[test]
fn a_page_notices_that_its_run_was_killed() {
    let browser = Browser::start();
    let bench = bench();
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1"]);
    browser.open(&bench.path("reports/m/report.html"), "");
    browser.sees(&format!("{STATE}.startsWith('Running m · ')"));
    live.run.kill_alone();
    assert!(!browser.value(STATE).as_str().unwrap().contains("killed"));
    let later =
        "const now = performance.now.bind(performance); performance.now = () => now() + 31e3;";
    browser.run(later, json!([]));
    browser.sees(&format!("{STATE}.startsWith('The run was killed')"));
    assert_eq!(browser.value(IS_BEING_RUN), false);
    bench.report();
    browser.sees(IS_FINAL);
    browser.has_clean_console();
}

/// A page that was moved away from its status does not reload for ever.
#[test]
fn a_page_without_a_status_stays_as_it_is() {
    let browser = Browser::start();
    let bench = bench();
    let mut live = LiveRun::start(&bench, &["m.toml", "--threads", "1"]);
    let page = live.wait_for_page("m/report.html", |page| page.contains("live-bar"));
    bench.write("elsewhere/m/report.html", page);
    browser.open(&bench.path("elsewhere/m/report.html"), "");
    browser.sees(&format!("{STATE}.startsWith('This page is no longer updated')"));
    browser.run("window.isOld = true;", json!([]));
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(browser.value("window.isOld"), true);
    browser.has_clean_console();
}
