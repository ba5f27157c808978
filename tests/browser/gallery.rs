//! The index and the claims: filtered by words, verdicts and choices, and linked so.

use crate::driver::Browser;
use crate::support::{Bench, TINY, edited};
use crate::{Page, list, number, page};
use serde_json::json;

/// The index of four experiments, two of which ask the same.
fn gallery() -> Page {
    let browser = Browser::start();
    let bench = Bench::new();
    let head = |question: &str, source: &str| {
        let keys = format!("title = \"t\"\nquestion = \"{question}\"\nsource = \"{source}\"");
        edited(TINY, &[("title = \"t\"", &keys), ("replicates = 1", "replicates = 20")])
    };
    let claim = |value: &str| {
        format!(
            "[[claim.less]]\nid = \"c\"\nstatement = \"s\"\nleft = {{ label = \"FedAvg\" }}\nvalue = {value}\n"
        )
    };
    let refuted =
        claim("1e-9\nexpected = \"refuted\"\nrefutes = \"reading\"\nreason = \"it is not\"");
    let scaffold = "[[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 1\n";
    for (name, text) in [
        ("a/one", head("Does it work?", "RR, Theorem 3") + &claim("1e9")),
        ("a/two", head("Does it work?", "SCAFFLSA, section 5") + &refuted),
        ("a/three", head("Is it fast?", "RR, section 7") + scaffold + &refuted),
        ("a/four", TINY.to_owned() + "cohort = 1\n"),
    ] {
        let file = format!("experiments/{name}.toml");
        bench.write(&file, text);
        bench.compute(&[&file]);
    }
    bench.report();
    let page = Page { browser, bench };
    page.browser.open(&page.path("index.html"), "");
    page
}

impl Page {
    /// The names on the cards that are shown.
    fn cards(&self) -> Vec<String> {
        let all = self.ask(
            "[...document.querySelectorAll('.card')].filter(c => c.checkVisibility()).map(c => c.querySelector('.name').textContent)",
            json!([]),
        );
        list(&all).iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    }

    fn status(&self) -> String {
        self.text("document.querySelector('.finder [role=status]').textContent")
    }

    fn address(&self) -> String {
        self.text("location.hash")
    }

    /// The headings of the groups that are shown.
    fn groups(&self) -> usize {
        let count =
            "[...document.querySelectorAll('section h2')].filter(h => h.checkVisibility()).length";
        number(&self.ask(count, json!([]))) as usize
    }
}

#[test]
fn cards_are_found_by_words_verdicts_and_choices() {
    let page = gallery();
    assert_eq!(page.cards(), ["a/one", "a/two", "a/three", "a/four"]);
    assert_eq!((page.status(), page.address(), page.groups()), (String::new(), String::new(), 3));
    page.browser.click(".finder button[value=refuted]");
    assert_eq!(page.cards(), ["a/two", "a/three"]);
    assert_eq!((page.status().as_str(), page.groups()), ("2 of 4 experiments", 2));
    let numbers = "[...document.querySelectorAll('section:not([hidden]) > h2 small')].map(n => n.textContent)";
    assert_eq!(page.ask(numbers, json!([])), json!(["1", "1"]), "numbers follow the filters");
    page.browser.click(".finder option[value=RR]");
    assert_eq!(
        (page.cards(), page.address()),
        (vec!["a/three".into()], "#verdict=refuted&source=RR".into())
    );
    page.browser.write(".finder input", "theorem");
    assert_eq!(
        (page.cards().len(), page.status(), page.groups()),
        (0, "0 of 4 experiments".into(), 0)
    );
    let none = "document.querySelector('.none').checkVisibility()";
    assert_eq!(page.ask(none, json!([])), true, "an empty result has a sentence");
    page.browser.click(".none a[href='#topic=partial-participation']");
    page.browser.wait("setTimeout(arguments[0], 50);", json!([]));
    assert_eq!((page.cards(), page.ask(none, json!([]))), (vec!["a/four".into()], json!(false)));
    page.browser.click(".finder .clear");
    assert_eq!(
        (page.cards().len(), page.status(), page.address()),
        (4, String::new(), String::new())
    );
    page.browser.write(".finder input", "client sampling");
    assert_eq!(page.cards(), ["a/four"], "synonyms of a topic are found");
    page.browser.click(".finder .clear");
    page.browser.write(".finder input", "mangold THEOREM");
    assert_eq!(page.cards(), ["a/one"]);
}

/// With the keyboard alone, and by a link.
#[test]
fn a_filtered_index_can_be_linked() {
    let page = gallery();
    page.browser.run("document.querySelector('.finder input').focus();", json!([]));
    let [tab, down] = ["\u{E004}", "\u{E015}"];
    page.browser.press(&[tab]);
    page.browser.press(&[" "]);
    assert_eq!(page.cards(), ["a/two", "a/three"]);
    for key in [tab, down, down] {
        page.browser.press(&[key]);
    }
    let address = page.address();
    assert_eq!(address, "#verdict=refuted&source=SCAFFLSA");
    assert_eq!(page.cards(), ["a/two"]);
    page.browser.open(&page.path("claims.html"), "");
    page.browser.open(&page.path("index.html"), &address);
    assert_eq!((page.cards(), page.status()), (vec!["a/two".into()], "1 of 4 experiments".into()));
    let pressed = page.text("document.querySelector('.finder [value=refuted]').ariaPressed");
    assert_eq!(pressed, "true");
    page.browser.run("location.hash = '#algorithm=scaffold&source=none';", json!([]));
    page.browser.wait("setTimeout(arguments[0], 50);", json!([]));
    assert_eq!(page.cards(), ["a/three"], "what is no choice filters nothing");
}

#[test]
fn claims_are_chosen_by_verdict() {
    let page = page();
    page.browser.open(&page.path("claims.html"), "");
    let verdicts = page.column("main", 0);
    assert_eq!(verdicts, ["inconclusive", "inconclusive", "supported"]);
    page.browser.click(".finder [value=supported]");
    assert_eq!(page.column("main .claims", 0), ["supported"]);
    assert_eq!(
        (page.status().as_str(), page.address().as_str()),
        ("1 of 3 claims", "#verdict=supported")
    );
    page.browser.click("h1 a.inconclusive");
    page.browser.wait("setTimeout(arguments[0], 50);", json!([]));
    assert_eq!(page.status(), "2 of 3 claims", "a count in the headline is a link to its claims");
    page.browser.click(".finder .clear");
    page.browser.write(".finder input", "Scaffold always");
    assert_eq!(page.status(), "1 of 3 claims");
    let said = &page.column("main .claims", 1)[0];
    assert!(said.starts_with("Scaffold ends below FedAvg, <b>always</b>"), "{said}");
}

/// The first figure of each page, and where it ends.
#[test]
fn the_first_screen_of_each_page_has_a_figure() {
    let page = gallery();
    for (file, figure) in [("index.html", ".thumb"), ("claims.html", ".bar")] {
        for (wide, high) in [(1400, 900), (390, 844)] {
            page.browser.size(wide, high);
            page.browser.open(&page.path(file), "");
            let end = page.ask(
                "document.querySelector(arguments[0]).getBoundingClientRect().bottom",
                json!([figure]),
            );
            assert!(number(&end) < f64::from(high), "{file} at {wide}: {end}");
        }
    }
}

#[test]
fn rows_of_claims_are_blocks_in_a_narrow_window() {
    let page = page();
    let left = "[...document.querySelectorAll('.claims tbody tr:first-child td')].map(c => Math.round(c.getBoundingClientRect().left))";
    for (wide, blocks) in [(1400, false), (390, true)] {
        page.browser.size(wide, 844);
        page.browser.open(&page.path("claims.html"), "");
        let lefts = page.ask(left, json!([]));
        let first = number(&list(&lefts)[0]);
        assert_eq!(list(&lefts).iter().all(|x| number(x) == first), blocks, "{wide}: {lefts}");
    }
    page.browser.click(".finder [value=supported]");
    let hidden = page.ask("[...document.querySelectorAll('.claims tbody tr')].filter(r => r.checkVisibility()).length", json!([]));
    assert_eq!(hidden, 1, "blocks are filtered too");
}
