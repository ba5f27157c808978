//! Pages of frontiers: figures that belong to no cells, and the page that looks up the best
//! algorithm.

use crate::drawings::{same_figure, settle};
use crate::driver::Browser;
use crate::support::Bench;
use crate::{Page, list, number};
use serde_json::{Value, json};

/// The reports of a frontier, with the page from N and ε to an algorithm open.
fn opened(file: &str) -> Page {
    let browser = Browser::start();
    let bench = Bench::new();
    let manifest = concat!(include_str!("frontier.toml"), "\n", include_str!("phase.toml"));
    bench.write("experiments/x/frontier.toml", manifest);
    bench.compute(&["experiments/x/frontier.toml"]);
    bench.report();
    let page = Page { browser, bench };
    page.browser.open(&page.path(file), "");
    settle(&page);
    page
}

#[test]
fn exact_figures_are_drawn_twice_alike_and_have_no_bands() {
    let page = opened("x/frontier/report.html");
    for wide in [1400, 390] {
        page.browser.size(wide, 900);
        settle(&page);
        for id in ["least", "least-budget", "least-local-steps", "least-step-size", "least-pareto"]
        {
            same_figure(&page, "x/frontier", id);
        }
    }
    page.browser.size(1400, 900);
    settle(&page);
    let controls = "[...document.querySelectorAll('#least select')].map(s => s.name)";
    let names = page.ask(controls, json!([]));
    assert!(!list(&names).contains(&json!("band")), "{names}");
    // Labels say the whole numbers at the tightest target; of H and γ there is no lowest.
    let labels = |id: &str| {
        let texts = "[...document.querySelectorAll(`#${arguments[0]} .labels .value`)].map(t => t.textContent)";
        let texts = page.ask(texts, json!([id]));
        list(&texts).iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let least = labels("least");
    assert!(
        !least.is_empty() && least.iter().all(|text| text.contains(" at ε = 0.1")),
        "{least:?}"
    );
    assert!(least.iter().any(|text| text.ends_with(", lowest")), "{least:?}");
    assert!(least.iter().all(|text| !text.split(' ').next().unwrap().contains('.')), "{least:?}");
    for id in ["least-local-steps", "least-step-size"] {
        let texts = labels(id);
        assert!(!texts.is_empty() && texts.iter().all(|text| text.contains(" at ε = 0.1")));
        assert!(!texts.concat().contains("lowest") && !texts.concat().contains('×'), "{texts:?}");
    }
    let rows = page.csv("least");
    let roles: Vec<&str> = rows[1..].iter().map(|row| row[2].as_str()).collect();
    assert!(roles.contains(&"exact") && !roles.contains(&"measured"), "{roles:?}");
    let console = page.browser.log("browser");
    assert!(console.is_empty(), "{console:?}");
}

/// A map of many squares is looked up by two numbers and by the pointer, and what it says is in its table.
#[test]
fn a_map_is_looked_up() {
    let page = opened("x/frontier/report.html");
    page.browser.size(1400, 900);
    settle(&page);
    let row = |noise: &str, zeta: &str| {
        let rows = page.bench.rows("reports/x/frontier/figures/noise.csv");
        let is_it = |row: &&std::collections::HashMap<String, String>| {
            let is = |column: &str, text: &str| row[column].parse::<f64>() == text.parse::<f64>();
            is("noise", noise) && is("gradient_heterogeneity", zeta)
        };
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{noise} {zeta}: {rows:?}"));
        (row["local_steps"].clone(), row["rounds"].clone())
    };
    let answer = |x: &str, y: &str| {
        let look = "const form = document.querySelector('#noise .lookup'), [x, y] = form.elements; [x.value, y.value] = arguments; form.dispatchEvent(new Event('input', { bubbles: true })); return form.querySelector('output').textContent;";
        page.browser.run(look, json!([x, y])).as_str().unwrap().to_owned()
    };
    for (x, y) in [("0.01", "10"), ("100", "0.1"), ("1", "1")] {
        let (local_steps, rounds) = row(x, y);
        let said = answer(x, y);
        assert!(said.contains(&format!("T = {rounds}")), "{said}");
        assert!(local_steps == "1" || said.contains(&format!(" {local_steps}, ")), "{said}");
    }
    assert!(answer("1e9", "1").contains("the map has"), "out of range");
    assert!(answer("", "x").contains("the map has"), "no numbers");
    // In the middle of the map is its middle square.
    let tip = "(() => { const chart = document.querySelector('#noise .chart'), panel = chart.querySelector('svg .panel'), box = chart.querySelector('svg').getBoundingClientRect(); const scale = box.width / panel.ownerSVGElement.viewBox.baseVal.width, [left, top, wide, high] = panel.dataset.area.split(' ').map(Number); chart.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + (left + wide / 2) * scale, clientY: box.top + (top + high / 2) * scale })); return chart.querySelector('.tip').textContent; })()";
    let tip = page.text(tip);
    assert!(tip.contains(&format!("T = {}", row("1", "1").1)), "{tip}");
    let console = page.browser.log("browser");
    assert!(console.is_empty(), "{console:?}");
}

/// Sets a field of the form, as a reader does.
fn set(page: &Page, name: &str, value: &str) {
    let change = "const field = document.querySelector('.ask').elements[arguments[0]]; field.value = arguments[1]; field.dispatchEvent(new Event('input', { bubbles: true }));";
    page.browser.run(change, json!([name, value]));
}

/// The rows of the table of algorithms: the label and the numbers beside it.
fn table(page: &Page) -> Vec<(String, Vec<f64>)> {
    let texts = "[...document.querySelectorAll('.best tbody tr')].map(tr => [...tr.cells].map(td => td.textContent))";
    let rows = page.ask(texts, json!([]));
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let plain = |v: &Value| text(v).replace(['\u{2009}', '\u{a0}', '\u{202f}', ' '], "");
    let numbers = |v: &Value| plain(v).parse::<f64>().unwrap_or(f64::NAN);
    list(&rows).iter().map(|r| (text(&r[0]), list(r)[1..].iter().map(numbers).collect())).collect()
}

/// Mini-batch SGD has a batch in place of local steps, in the heads of columns and on the map.
fn batches_are_named(page: &Page) {
    let head = page.text("document.querySelector('.best thead').textContent");
    assert!(head.contains("H or batch"), "{head}");
    let prefixes = "JSON.parse(document.getElementById('data').textContent)[0].algorithms.map(a => [a.label, a.steps])";
    let prefixes = page.ask(prefixes, json!([]));
    assert_eq!(list(&prefixes).len(), 6, "{prefixes}");
    for pair in list(&prefixes) {
        let batch = if pair[0] == "mini-batch SGD" { "batch " } else { "H = " };
        assert_eq!(pair[1], batch, "{pair}");
    }
    let squares = page.ask("[...document.querySelectorAll('.choice td')].map(td => [td.children[0].textContent, td.children[2].textContent])", json!([]));
    assert_eq!(list(&squares).len(), 6, "{squares}");
    for square in list(&squares) {
        let [label, settings] = [0, 1].map(|i| square[i].as_str().unwrap());
        let of = settings.split_once(": ").map_or(label, |(first, _)| first);
        let is_batch = of == "mini-batch SGD";
        assert_eq!(settings.contains("batch "), is_batch, "{label}: {settings}");
        assert_eq!(settings.contains("H = "), !is_batch, "{label}: {settings}");
    }
}

/// Compares every answer of the page with its row of the table; how many there were.
fn answers_equal_rows(page: &Page) -> usize {
    let csv = page.bench.rows("reports/x/frontier/frontier.csv");
    let labels = [
        ("sgd", "SGD"),
        ("minibatch-sgd", "mini-batch SGD"),
        ("fedavg", "FedAvg"),
        ("fedavg-server-step", "FedAvg, server step"),
        ("richardson-romberg", "Richardson-Romberg"),
        ("scaffold", "Scaffold"),
    ];
    let mut compared = 0;
    // Targets are listed from the smallest on.
    for (n, clients) in ["2", "10"].iter().enumerate() {
        for (e, target) in ["0.1", "0.22360679774997896", "0.5"].iter().enumerate() {
            set(page, "clients", &n.to_string());
            set(page, "target", &e.to_string());
            for (label, numbers) in table(page) {
                let (name, _) = labels.iter().find(|(_, own)| *own == label).unwrap();
                let number = |text: &str| text.parse::<f64>().unwrap();
                let row = csv.iter().find(|row| {
                    row["algorithm"] == *name
                        && row["clients"] == *clients
                        && (number(&row["target"]) / number(target) - 1.0).abs() < 1e-9
                        && row["price"] == "100.0"
                });
                let row = row.unwrap_or_else(|| panic!("{name} {clients} {target}"));
                let columns =
                    ["local_steps", "server_step", "rounds", "communications", "gradients"];
                let expected = columns.map(|column| number(&row[column]));
                assert_eq!(numbers[1..6], expected, "{label}, N = {clients}, ε = {target}");
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn the_page_answers_as_the_table_does() {
    let page = opened("which-algorithm.html");
    let compared = answers_equal_rows(&page);
    assert!(compared > 15, "{compared}");
    batches_are_named(&page);
    // At prices at which only oracle calls count, fewer calls are never worse.
    set(&page, "aim", "seconds");
    for (name, value) in [("latency", "0"), ("bandwidth", ""), ("call", "1")] {
        set(&page, name, value);
    }
    let seconds = table(&page);
    assert!(seconds.windows(2).all(|pair| pair[0].1[5] <= pair[1].1[5]), "{seconds:?}");
    set(&page, "call", "0");
    assert!(
        page.text("document.querySelector('.answer').textContent").contains("must take some time")
    );
    // The address holds the choices.
    set(&page, "aim", "communications");
    set(&page, "budget", "2");
    let [address, answer] =
        ["location.href", "document.querySelector('.answer').textContent"].map(|of| page.text(of));
    assert!(address.ends_with("clients=10&target=0.5&least=communications&budget=2"), "{address}");
    page.browser.open_address("about:blank");
    page.browser.open_address(&address);
    assert_eq!(page.text("document.querySelector('.answer').textContent"), answer);
    let console = page.browser.log("browser");
    assert!(console.is_empty(), "{console:?}");
}

/// On a telephone nothing is wider than the window.
#[test]
fn the_page_of_answers_fits() {
    let page = opened("which-algorithm.html");
    for wide in [390, 900, 1600] {
        page.browser.size(wide, 844);
        page.browser.open(&page.path("which-algorithm.html"), "");
        let excess = "document.documentElement.scrollWidth - innerWidth";
        assert!(number(&page.ask(excess, json!([]))) <= 0.0, "{wide}");
    }
}

#[test]
fn axe_finds_nothing_on_pages_of_frontiers() {
    let axe = crate::access::axe();
    let page = opened("which-algorithm.html");
    for file in ["which-algorithm.html", "x/frontier/report.html"] {
        for (wide, scheme) in [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")] {
            page.browser.size(wide, 844);
            page.browser.media("screen", scheme);
            page.browser.open(&page.path(file), "");
            settle(&page);
            let found = crate::access::violations(&page.browser, &axe);
            assert!(found.is_empty(), "{file}, {wide} px, {scheme}: {found:#?}");
        }
    }
}
