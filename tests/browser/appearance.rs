//! Light and dark, print, and narrow windows.

use crate::{Page, list, number, page};
use serde_json::{Value, json};

/// Contrasts with the paper (WCAG 2): of each curve, and of each text.
const CONTRASTS: &str = "
const parts = color => color.match(/[\\d.]+/g).map(Number);
const lit = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = color => { const [r, g, b] = parts(color); return 0.2126 * lit(r) + 0.7152 * lit(g) + 0.0722 * lit(b); };
const paper = light(getComputedStyle(document.body).backgroundColor);
const contrast = color => (Math.max(light(color), paper) + 0.05) / (Math.min(light(color), paper) + 0.05);
const of = (query, key) => [...document.querySelectorAll(query)].map(n => contrast(getComputedStyle(n)[key]));
const probe = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
const palette = JSON.parse(document.getElementById('data').textContent).styles.palette;
probe.innerHTML = palette.map((c, i) => `<g data-color=\"${i}\"><polyline stroke=\"rgb(${c})\"/></g>`).join('');
document.body.append(probe);
const colors = [...probe.querySelectorAll('polyline')].map(n => getComputedStyle(n).stroke);
const all = [colors.map(contrast), of('.series polyline', 'stroke'), of('main p, main a, main td, main button, .chip, .statement, .estimate, .matrix span, .chart text', 'color'),
             of('.chart text, .interval text', 'fill'), colors, getComputedStyle(document.body).backgroundColor];
probe.remove();
return all;";

fn least(values: &Value) -> f64 {
    list(values).iter().map(number).fold(f64::INFINITY, f64::min)
}

#[test]
fn light_and_dark_can_be_read() {
    let page = page();
    let seen = ["light", "dark"].map(|scheme| {
        page.browser.media("screen", scheme);
        let seen = page.browser.run(CONTRASTS, json!([]));
        assert_eq!(list(&seen[0]).len(), 48);
        for (what, wanted) in [(0, 3.0), (1, 3.0), (2, 4.5), (3, 4.5)] {
            assert!(!list(&seen[what]).is_empty());
            assert!(least(&seen[what]) >= wanted, "{scheme} {what}: {}", seen[what]);
        }
        seen
    });
    assert_ne!(seen[0][5], seen[1][5], "the paper");
    let (light, dark) = (list(&seen[0][4]), list(&seen[1][4]));
    assert!(light.iter().zip(dark).all(|(a, b)| a != b), "{light:?} {dark:?}");
}

/// The fill of the hole of an open marker as drawings have it, that of its marker, and the colour of the paper.
const HOLE: &str = "
const probe = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
probe.innerHTML = '<g data-color=\"0\"><path fill=\"#3366AA\" d=\"M0 0l9 0 0 9z\"/><path fill=\"#FFFFFF\" d=\"M2 1l6 0 0 6z\"/></g>';
document.body.append(probe);
const [marker, hole] = [...probe.querySelectorAll('path')].map(n => getComputedStyle(n).fill);
probe.remove();
return [hole, marker, getComputedStyle(document.body).backgroundColor];";

#[test]
fn open_markers_are_open_on_light_and_dark_paper() {
    let page = page();
    for scheme in ["light", "dark"] {
        page.browser.media("screen", scheme);
        let seen = page.browser.run(HOLE, json!([]));
        assert_eq!(seen[0], seen[2], "{scheme}: {seen}");
        assert_ne!(seen[0], seen[1], "{scheme}: {seen}");
    }
}

#[test]
fn print_has_no_controls_and_all_details() {
    let page = page();
    let shown = |query: &str| {
        let all = page.ask(
            "[...document.querySelectorAll(arguments[0])].map(n => n.checkVisibility({ contentVisibilityAuto: true }) && n.getClientRects().length > 0)",
            json!([query]),
        );
        let all: Vec<bool> = list(&all).iter().map(|v| v.as_bool().unwrap()).collect();
        assert!(!all.is_empty(), "{query}");
        all
    };
    page.browser.media("screen", "light");
    assert!(shown(".controls").iter().all(|v| *v) && shown("details pre").iter().all(|v| !*v));
    page.browser.media("print", "light");
    for query in [".controls", ".files", ".again button", "nav", ".filter"] {
        assert!(shown(query).iter().all(|v| !*v), "{query}");
    }
    for query in ["details pre", "details table", ".chart svg", ".again code", ".interval"] {
        assert!(shown(query).iter().all(|v| *v), "{query}");
    }
    let cut = page.ask(
        "[...document.querySelectorAll('.scroll')].filter(n => n.scrollHeight > n.clientHeight + 1).length",
        json!([]),
    );
    assert_eq!(cut, 0, "no table is cut");
}

impl Page {
    fn widths(&self) -> (f64, f64) {
        let both = self.ask("[document.documentElement.scrollWidth, innerWidth]", json!([]));
        (number(&both[0]), number(&both[1]))
    }
}

/// Nothing makes the page itself wider than the window; tables and maps scroll.
#[test]
fn no_page_is_wider_than_its_window() {
    let page = page();
    for file in ["browser/page/report.html", "index.html", "claims.html"] {
        for wide in [390, 900, 1600] {
            page.browser.size(wide, 900);
            page.browser.open(&page.path(file), "");
            crate::drawings::settle(&page);
            let (scroll, window) = page.widths();
            assert!(scroll <= window && window == f64::from(wide), "{file} at {wide}: {scroll}");
        }
    }
}
