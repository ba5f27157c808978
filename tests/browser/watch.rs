//! A run that is watched in a browser: the bar advances, and pages reload when cells were stored.

use crate::access;
use crate::driver::Browser;
use crate::served::{CELLS, FAILED, REASON, SOME_FAIL, Served};
use crate::support::Bench;
use crate::support::process::wait_until;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

impl Browser {
    /// Waits until an expression is true in the page.
    #[track_caller]
    fn wait_until(&self, expression: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        let found = wait_until(deadline, || self.value(expression).as_bool()?.then_some(()));
        let page = "document.documentElement.innerText";
        assert!(found.is_some(), "{expression}:\n{}", self.value(page));
    }

    #[track_caller]
    fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}"), json!([]))
    }
}

// A page that is reloading may not have its bar yet.
const METER: &str = "(document.querySelector('#watch progress')?.value ?? 0)";
const STATE: &str = "(document.querySelector('#watch [role=status]')?.textContent ?? '')";
/// Whether the page does not ask its reader to run what is being run.
const IS_BEING_RUN: &str = "document.documentElement.classList.contains('being-run') && \
    getComputedStyle(document.querySelector('main').appendChild(Object.assign( \
    document.createElement('span'), { className: 'to-run' }))).display === 'none'";

/// A page has its progress when it is loaded: here no request for it arrives.
#[track_caller]
fn shows_progress_before_it_asks_for_it(browser: &Browser, served: &Served) {
    browser.command("Network.enable", json!({}));
    browser.command("Network.setBlockedURLs", json!({"urls": ["*/.watch/status/*"]}));
    let page = served.url("m/report.html#errors");
    browser.open_address("about:blank");
    browser.open_address(&page);
    let state = browser.value(STATE);
    assert!(state.as_str().unwrap().contains("Running m · "), "{state}");
    browser.command("Network.setBlockedURLs", json!({"urls": []}));
    browser.command("Network.disable", json!({}));
    browser.open_address("about:blank");
    browser.open_address(&page);
    browser.wait_until(&format!("{STATE}.startsWith('Running m · ')"));
    // The requests that were refused.
    browser.log("browser");
}

#[test]
fn a_watched_page_reloads_and_shows_progress_and_failures() {
    let browser = Browser::start();
    let bench = Bench::new();
    bench.write("m.toml", SOME_FAIL);
    let mut served = Served::start(&bench, &["m.toml", "--threads", "1"]);
    browser.size(390, 844);
    browser.open_address(&served.url(""));
    browser.wait_until("document.querySelector('main a[href=\"m/report.html\"]') !== null");
    served.wait_for_page("m/summary.csv", |table| table.lines().count() > 1);
    browser.open_address(&served.url("m/report.html#errors"));
    browser.wait_until(&format!("{STATE}.startsWith('Running m · ')"));
    shows_progress_before_it_asks_for_it(&browser, &served);
    browser.wait_until(IS_BEING_RUN);
    let before = browser.value(METER).as_f64().unwrap();
    browser.wait_until(&format!("{METER} > {before}"));

    // The page is another one after it reloaded, at the same place.
    browser.run("window.isOld = true; scrollTo(0, 200);", json!([]));
    browser.wait_until("window.isOld === undefined && document.readyState === 'complete'");
    browser.wait_until("Math.abs(scrollY - 200) < 2");
    assert_eq!(browser.value("location.hash"), "#errors");

    browser.wait_until("document.querySelector('#watch li') !== null");
    let failed = browser.value("document.querySelector('#watch li').textContent");
    assert!(failed.as_str().unwrap().contains(REASON), "{failed}");
    browser.wait_until(&format!("document.querySelector('main').textContent.includes('{REASON}')"));
    browser.wait_until(&format!("{STATE}.startsWith('Finished')"));
    let text = format!("Finished · {} of {CELLS} cells · {FAILED} failed", CELLS - FAILED);
    assert_eq!(browser.value(STATE), text.as_str());
    assert_eq!(browser.value(METER), 1);
    assert_eq!(browser.value(IS_BEING_RUN), false);

    // The bar hides nothing, and nothing is wider than the window.
    browser.run("document.querySelector('#watch details').open = true;", json!([]));
    let edge = |id: &str, edge: &str| format!("{id}.getBoundingClientRect().{edge}");
    let (main, bar) = (edge("document.getElementById('main')", "bottom"), edge("watch", "top"));
    browser
        .wait_until("document.documentElement.style.paddingBottom === `${watch.offsetHeight}px`");
    browser.run("scrollTo(0, document.documentElement.scrollHeight);", json!([]));
    browser.wait_until(&format!("{main} <= {bar}"));
    browser.wait_until("document.documentElement.scrollWidth <= innerWidth");
    let axe = access::axe();
    for scheme in ["light", "dark"] {
        browser.media("screen", scheme);
        let found = access::violations(&browser, &axe);
        assert!(found.is_empty(), "{scheme}: {found:#?}");
    }
    let console = browser.log("browser");
    assert!(console.is_empty(), "{console:?}");

    served.run.signal("INT");
    let output = served.run.finish();
    assert_eq!(output.status.code(), Some(4));
    browser.wait_until(&format!("{STATE}.startsWith('exactfed has ended')"));
}
