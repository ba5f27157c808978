//! What a figure gives away: its drawing, its numbers, its address, its command.

use crate::{Page, list, page};
use serde_json::json;

#[test]
fn the_drawing_as_seen_is_saved_whole() {
    let page = page();
    page.choose("curves", "x", "seconds");
    page.browser.click("#curves .legend button[data-label=\"Too large\"]");
    page.browser.click("#curves input[name=theory]");
    let (name, text) = page.saved("curves", "svg");
    assert_eq!(name, "curves.svg");
    let found = page.ask(
        "(text => {
           const page = new DOMParser().parseFromString(text, 'image/svg+xml'), all = q => [...page.querySelectorAll(q)];
           return [all('parsererror').length, all('.panel').length, all('.series').map(s => s.dataset.label),
                   all('.legend text').map(t => t.textContent), all('title')[0].textContent, all('.dot, .cursor').length,
                   all('.axes text').some(t => t.textContent === 'simulated seconds'), all('script, [tabindex], [aria-hidden]').length,
                   all('.labels text').length > 0,
                   all('*').flatMap(n => ['fill', 'stroke', 'style'].map(k => n.getAttribute(k)).filter(v => v !== null && !/^(none|#[0-9a-f]{6}|rgb\\(\\d+,\\d+,\\d+\\))$/.test(v)))];
         })(arguments[0])",
        json!([text]),
    );
    let labels = [
        "FedAvg <b>\"plain\"</b>, H = 2",
        "FedAvg <b>\"plain\"</b>, H = 10",
        "Scaffold, H = 2",
        "Scaffold, H = 10",
    ];
    let drawn: Vec<&str> = [labels, labels].concat();
    let title = "Curves & <i>\"panels\"</i>";
    let wanted = json!([0, 2, drawn, labels, title, 0, true, 0, true, []]);
    assert_eq!(found, wanted);
    for part in ["NaN", "var(", "color-mix"] {
        assert!(!text.contains(part), "{part}");
    }
    for own in ["Our choice, for tests", "exactfed, browser/page", "Curves &amp; "] {
        assert!(text.contains(own), "the file says what it is and where it is from: {own}");
    }
    // After a reset the file has all curves, and in the dark it is the same.
    page.browser.click("#curves .reset");
    let (_, light) = page.saved("curves", "svg");
    assert!(light.contains("Too large") && light.contains("infinite replicates (exact)"));
    page.browser.media("screen", "dark");
    assert_eq!(page.saved("curves", "svg").1, light);
}

#[test]
fn the_numbers_as_seen_are_saved() {
    let page = page();
    let rows = page.csv("curves");
    assert_eq!(
        rows[0],
        ["panel", "curve", "role", "communications", "y", "low", "high", "n", "band"]
    );
    let count = |rows: &[Vec<String>], label: &str, role: &str| {
        rows.iter().filter(|r| r[1].ends_with(label) && r[2] == role).count()
    };
    let before = count(&rows, "Scaffold, H = 10", "measured");
    assert!(before >= 40 && count(&rows, "Scaffold, H = 10", "theory") > 0);
    assert!(rows[1..].iter().all(|r| r.len() == 9 && r[4].parse::<f64>().is_ok()));
    let summary = page.bench.read("reports/browser/page/summary.csv");
    let line = summary.lines().find(|l| l.contains(",Scaffold,2,") && l.contains(",10,"));
    let last =
        rows.iter().rfind(|r| r[0] == "N = 2" && r[1] == "Scaffold, H = 10" && r[2] == "measured");
    let mean: f64 = last.unwrap()[4].parse().unwrap();
    let written = line.unwrap_or_else(|| panic!("{summary}")).split(',');
    let mut written = written.filter_map(|v| v.parse::<f64>().ok());
    assert!(written.any(|v| (v - mean).abs() < 1e-6 * mean), "{mean} in {summary}");
    page.browser.click("#curves .legend button[data-label=\"Scaffold, H = 10\"]");
    page.choose("curves", "band", "none");
    let rows = page.csv("curves");
    assert_eq!(
        count(&rows, "Scaffold, H = 10", "measured") + count(&rows, "Scaffold, H = 10", "theory"),
        0
    );
    assert!(rows[1..].iter().all(|r| r[5].is_empty() && r[6].is_empty()));
}

/// The numbers as a table follow the view; and a figure alone, for another page.
#[test]
fn a_figure_is_a_table_and_can_be_embedded() {
    let page = page();
    let heads = "[...document.querySelectorAll('#curves .numbers thead')].map(head => [...head.querySelectorAll('th')].map(th => th.textContent))";
    page.browser.click("#curves .table");
    let all = page.ask(heads, json!([]));
    assert!(list(&all).len() == 2 && list(&all[0]).len() > 6, "{all}");
    assert_eq!(all[0][0], "communications");
    page.browser.click("#curves input[name=theory]");
    page.choose("curves", "panels", "");
    let one = page.ask(heads, json!([]));
    assert!(list(&one).len() == 1, "{one}");
    page.browser.click("#curves .table");
    assert_eq!(page.ask(heads, json!([])), json!([]));
    page.browser.open(&page.path("browser/page/report.html"), "?embed=curves#curves.band=none");
    let seen = page.ask(
        "[document.querySelectorAll('.plot').length, document.querySelectorAll('.panel').length, document.querySelector('h1, nav') === null, document.querySelector('#curves select[name=band]').value]",
        json!([]),
    );
    assert_eq!(seen, json!([1, 2, true, "none"]));
}

impl Page {
    fn copied(&self, selector: &str) -> String {
        self.browser.click(selector);
        self.text("window.copied")
    }
}

#[test]
fn commands_and_addresses_are_copied_with_and_without_a_clipboard() {
    let page = page();
    let command = "exactfed run experiments/browser/page.toml && exactfed report";
    page.choose("curves", "band", "none");
    let ways = [
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: t => { window.copied = t; return Promise.resolve(); } } })",
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: () => Promise.reject(new Error('no')) } });
         document.execCommand = () => { window.copied = document.activeElement.value; return true; }",
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value: undefined })",
    ];
    for way in ways {
        let open = "document.querySelector('#curves .about').open = true;";
        page.browser.run(&format!("window.copied = ''; {open} {way}"), json!([]));
        assert_eq!(page.copied("#curves .again .copy"), command, "{way}");
        assert_eq!(
            page.text("document.querySelector('#curves .again .copy').textContent"),
            "copied"
        );
        assert!(page.copied("#curves .files .link").ends_with("report.html#curves.band=none"));
        let frame = page.copied("#curves .files .embed");
        let there = ["<iframe src=\"file:", "report.html?embed=curves#curves.band=none\" title="];
        assert!(there.iter().all(|part| frame.contains(part)), "{frame}");
    }
    let left = page.ask("[...document.querySelectorAll('textarea')].map(a => a.value)", json!([]));
    assert!(list(&left).is_empty());
}
