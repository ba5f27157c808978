//! The site of `make site`: no page is wider than a window, and nothing is asked of a network.

use crate::driver::Browser;
use crate::support::root;
use crate::{reports, site_builder};
use serde_json::json;

#[test]
fn pages_of_the_site_fit_narrow_windows() {
    let browser = Browser::start();
    let bench = reports();
    let site = bench.path("site");
    site_builder::build(root(), &bench.path("reports"), &site).unwrap();
    for (wide, scheme) in [(390, "dark"), (1400, "light")] {
        browser.size(wide, 844);
        browser.media("screen", scheme);
        for page in bench.files_below("site") {
            if page.extension().is_none_or(|extension| extension != "html") {
                continue;
            }
            browser.open(&page, "");
            let excess = "const { scrollWidth, clientWidth } = document.documentElement; return scrollWidth - clientWidth";
            assert_eq!(browser.run(excess, json!([])), json!(0), "{} at {wide}", page.display());
            let console = browser.log("browser");
            assert!(console.is_empty(), "{}: {console:?}", page.display());
        }
    }
}
