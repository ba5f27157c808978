//! Accessibility: axe-core, all of its rules, on every kind of page. The file comes
//! from the variable AXE; it is not a part of this repository.

use crate::driver::Browser;
use crate::{list, page};
use serde_json::{Value, json};

const RUN: &str = "
const done = arguments[0];
axe.run().then(found => done(found.violations.map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 120) + ' ' + n.failureSummary).slice(0, 3).join(' | ')}`)), e => done([String(e)]));";

/// The script of axe-core.
pub fn axe() -> String {
    let axe = std::env::var_os("AXE").expect("AXE names the file of axe-core: see `make browser`");
    std::fs::read_to_string(&axe).unwrap_or_else(|e| panic!("AXE, {axe:?}: {e}"))
}

/// What axe-core finds in the open page, all of whose details are shown.
pub fn violations(browser: &Browser, axe: &str) -> Vec<Value> {
    let open = "document.querySelectorAll('details').forEach(d => d.open = true);";
    browser.run(&format!("{open}\n{axe}"), json!([]));
    list(&browser.wait(RUN, json!([]))).to_vec()
}

#[test]
fn axe_finds_nothing() {
    let axe = axe();
    let page = page();
    for file in ["browser/page/report.html", "index.html", "claims.html"] {
        for (wide, scheme) in [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")] {
            page.browser.size(wide, 900);
            page.browser.media("screen", scheme);
            page.browser.open(&page.path(file), "");
            crate::drawings::settle(&page);
            let found = violations(&page.browser, &axe);
            assert!(found.is_empty(), "{file}, {wide} px, {scheme}: {found:#?}");
        }
    }
}
