//! A page alone: no request but for itself, no word on the console, nothing taken
//! from a manifest run, and all of it there without scripts.

use crate::{list, page};
use serde_json::{Value, json};

const PAGES: [&str; 3] = ["browser/page/report.html", "index.html", "claims.html"];

#[test]
fn nothing_is_fetched_and_nothing_is_said() {
    let page = page();
    page.browser.log("performance");
    for file in PAGES {
        page.browser.open(&page.path(file), "");
        crate::drawings::settle(&page);
        let console = page.browser.log("browser");
        assert!(console.is_empty(), "{file}: {console:?}");
        let events = page.browser.log("performance");
        let asked: Vec<String> = events.iter().filter_map(request).collect();
        let own = format!("file://{}", page.path(file).display());
        assert!(asked.contains(&own), "the log sees requests: {asked:?}");
        let strange =
            |url: &&String| **url != own && *url != "about:blank" && !url.starts_with("blob:");
        assert_eq!(asked.iter().find(strange), None, "{file}");
    }
}

/// The address that an event of the log asks for.
fn request(event: &Value) -> Option<String> {
    let text: Value = serde_json::from_str(event["message"].as_str()?).ok()?;
    let message = &text["message"];
    let sent = message["method"] == "Network.requestWillBeSent";
    sent.then(|| message["params"]["request"]["url"].as_str().map(str::to_owned))?
}

/// Were something from a manifest to become a part of the page, it could ask.
#[test]
fn a_page_may_not_fetch_and_titles_do_not_run() {
    let page = page();
    assert!(page.text("document.title").contains("<script>document.title = \"taken\"</script>"));
    assert_eq!(
        page.ask("document.querySelectorAll('h1 script, h2 i, main b').length", json!([])),
        0
    );
    let tried = page.browser.wait(
        "const done = arguments[0]; fetch('http://127.0.0.1:1/').then(() => done('sent'), e => done(String(e)));",
        json!([]),
    );
    assert_ne!(tried, "sent");
    let output = page.browser.log("browser");
    let refused = |entry: &Value| {
        entry["message"].as_str().is_some_and(|m| m.contains("Content Security Policy"))
    };
    assert!(output.iter().any(refused), "{output:?}");
    let globals = page.ask(
        "['plots', 'Plot', 'model', 'remember', 'esc', 'copy'].filter(name => name in window)",
        json!([]),
    );
    assert!(list(&globals).is_empty(), "{globals}");
}

#[test]
fn without_scripts_all_is_there() {
    let page = page();
    page.browser.command("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    for file in PAGES {
        page.browser.open(&page.path(file), "");
        let root = page.browser.command("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
        let count = |query: &str| {
            let asks = json!({"nodeId": root, "selector": query});
            list(&page.browser.command("DOM.querySelectorAll", asks)["nodeIds"]).len()
        };
        assert!(count("h1") == 1 && count("table tbody tr, .card, .sides li") > 0, "{file}");
        assert_eq!(count(".controls, .tip, p.filter, th button"), 0, "{file}: no dead control");
        if file == PAGES[0] {
            // Curves have their labels; the map has a key for squares where no algorithm is
            // separated from the others.
            assert_eq!((count(".chart svg"), count("#map svg .legend .key")), (4, 1));
            for id in ["curves", "one", "points"] {
                let named = count(&format!("#{id} svg .labels text, #{id} svg .legend .key"));
                assert!(named > 1, "{id}");
            }
            assert_eq!(count(".files a[href^=\"figures/\"][href$=\".svg\"]"), 4);
            assert_eq!(count(".files a[href^=\"figures/\"][href$=\".csv\"]"), 4);
            assert!(count("math") > 0 && count(".interval") == 3);
        }
    }
}
