//! Accessibility: axe-core, all of its rules, on every kind of page. The file comes
//! from the variable AXE; it is not a part of this repository.

use crate::driver::left_out;
use crate::{list, page};
use serde_json::json;

const RUN: &str = "
const done = arguments[0];
axe.run().then(found => done(found.violations.map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 120) + ' ' + n.failureSummary).slice(0, 3).join(' | ')}`)), e => done([String(e)]));";

#[test]
fn axe_finds_nothing() {
    let Some(axe) = std::env::var_os("AXE") else {
        return left_out("axe-core: AXE names no file");
    };
    let axe = std::fs::read_to_string(&axe).unwrap_or_else(|e| panic!("AXE, {axe:?}: {e}"));
    let Some(page) = page() else { return };
    for file in ["browser/page/report.html", "index.html", "claims.html", "disagreements.html"] {
        for (wide, scheme) in [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")] {
            page.browser.size(wide, 900);
            page.browser.media("screen", scheme);
            page.browser.open(&page.path(file), "");
            crate::drawings::settle(&page);
            let open = "document.querySelectorAll('details').forEach(d => d.open = true);";
            page.browser.run(&format!("{open}\n{axe}"), json!([]));
            let found = page.browser.wait(RUN, json!([]));
            assert!(list(&found).is_empty(), "{file}, {wide} px, {scheme}: {found:#}");
        }
    }
}
