//! One ratio: what the label of a curve says in the script's drawing, in the static drawing and, where
//! a page has one grid point, in the line below the headline.

use crate::{Page, list};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// Of each figure whose labels compare curves: its id, whether it shows the quantity of the ranking,
/// and the labels of the script's drawing and of the text of the static one, each as panel, name,
/// ratio and reference.
const LABELS: &str = "
const [drawings] = arguments, kept = (panel, name, value) => {
  const found = /, ([^,]*?)× (.+)$/.exec(value ?? '');
  return found && { panel, name, ratio: found[1], than: found[2] };
};
const ofScript = id => [...document.querySelectorAll(`#${CSS.escape(id)} .cell`)].flatMap(cell => {
  const title = cell.querySelector('.title').textContent, texts = [...cell.querySelectorAll('.labels text')];
  return texts.flatMap((text, i) => [...text.querySelectorAll('[data-label]')].map(name => kept(title, name.dataset.label, texts[i + 1]?.classList.contains('value') && texts[i + 1].textContent)));
});
const ofFile = text => [...new DOMParser().parseFromString(text, 'image/svg+xml').querySelectorAll('.panel')].flatMap(panel => {
  const title = [...panel.querySelectorAll('text')].find(t => !t.closest('.axes, .labels, .series'))?.textContent.trim() ?? '';
  return [...panel.querySelectorAll('.labels .key')].map(key => kept(title, key.dataset.label, key.querySelector('.value')?.textContent));
});
const { figures } = JSON.parse(document.getElementById('data').textContent);
return figures.filter(figure => figure.labels.ranked).map(figure => ({ id: figure.id, y: figure.y, at: figure.labels.at,
  script: ofScript(figure.id).filter(Boolean), file: ofFile(drawings[figure.id]).filter(Boolean) }));";

/// The line below the headline, and the head of the column of errors in the ranking.
const LINE: &str = "
const heads = [...document.querySelectorAll('table th')].map(th => th.textContent), at = heads.indexOf('smallest mean error');
return [document.querySelector('.finding-line')?.textContent ?? '', at < 0 ? '' : heads[at + 1]];";

/// A number that a page writes, and half a unit of its last digit: `9.7`, `31 000`, `1.26·10⁻³`.
fn read(text: &str) -> (f64, f64) {
    let raised = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|d| d == c).map(|d| d.to_string());
    let plain =
        |c: char| raised(c).unwrap_or(if "⁻−".contains(c) { "-".into() } else { c.into() });
    let text = text.replace("·10", "e").replace([' ', '\u{a0}', '\u{202f}'], "");
    let text: String = text.chars().map(plain).collect();
    let value: f64 = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mantissa = text.split('e').next().unwrap();
    let digits = mantissa.chars().filter(char::is_ascii_digit).collect::<String>();
    let significant = digits.trim_start_matches('0').len() as i32;
    let exponent = libm::floor(libm::log10(value.abs())) as i32;
    // Of a whole number such as 31 000 only two digits may be significant.
    let known = if mantissa.contains('.') { significant } else { significant.min(2) };
    (value, 0.5 * libm::pow(10.0, f64::from(exponent + 1 - known)))
}

/// Whether two texts are roundings of one number.
fn same_number(a: &str, b: &str) -> bool {
    // A joined label has the smallest and the largest of its curves.
    let ends = |text: &str| -> Vec<(f64, f64)> { text.split(" to ").map(read).collect() };
    let (a, b) = (ends(a), ends(b));
    let low = |all: &[(f64, f64)]| all.iter().map(|(v, e)| v - e).fold(f64::INFINITY, f64::min);
    let high = |all: &[(f64, f64)]| all.iter().map(|(v, e)| v + e).fold(0.0, f64::max);
    low(&a) <= high(&b) * (1.0 + 1e-6) && low(&b) <= high(&a) * (1.0 + 1e-6)
}

/// The ratios that the line below a headline has to the best algorithm: its name, and by the names of
/// others their ratios.
fn ratios_of_line(line: &str) -> Option<(String, HashMap<String, String>)> {
    let (_, rest) = line.split_once("Ratios of ")?;
    let (head, rest) = rest.split_once("’s: ")?;
    let best = head.rsplit_once(" to ")?.1.to_owned();
    let list = rest.split(';').next()?;
    // `FedAvg 7.43 [2.98, 18.8], Scaffold 1.23`: a name is what stands before the last number.
    let mut ratios = HashMap::new();
    let mut depth = 0;
    let in_brackets = |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    };
    for entry in list.split(in_brackets) {
        let numbered = entry.split('[').next().and_then(|entry| entry.trim().rsplit_once(' '));
        // A part of a name with a comma has no number.
        if let Some((name, ratio)) = numbered {
            ratios.insert(name.to_owned(), ratio.to_owned());
        }
    }
    Some((best, ratios))
}

/// Compares all ratios of the labels of the open page; how many were compared.
pub fn check(page: &Page, file: &Path) -> usize {
    let ids = "JSON.parse(document.getElementById('data').textContent).figures.map(f => f.id)";
    let drawing = |id: &Value| {
        let id = id.as_str().unwrap().to_owned();
        let svg = file.with_file_name(format!("figures/{id}.svg"));
        (id, json!(std::fs::read_to_string(svg).unwrap()))
    };
    let drawings: serde_json::Map<String, Value> =
        list(&page.ask(ids, json!([]))).iter().map(drawing).collect();
    let found = page.browser.run(LABELS, json!([drawings]));
    let line = page.browser.run(LINE, json!([]));
    let of_line = ratios_of_line(line[0].as_str().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut compared = 0;
    for figure in list(&found) {
        let at = format!("{}#{}", file.display(), figure["id"]);
        for label in list(&figure["script"]) {
            let is_same = |other: &&Value| {
                ["panel", "name", "than"].iter().all(|key| other[*key] == label[*key])
            };
            let (name, ratio, than) =
                (text(&label["name"]), text(&label["ratio"]), text(&label["than"]));
            if let Some(other) = list(&figure["file"]).iter().find(is_same) {
                assert!(same_number(&ratio, &text(&other["ratio"])), "{at}: {label} and {other}");
                compared += 1;
            }
            // The ends of curves are the last rounds, at which this page ranks.
            let is_ranking =
                figure["at"] == "last" && line[1] == text(&figure["y"]).replacen('θ', "θ_T", 1);
            let of_line = of_line.as_ref().filter(|(best, _)| is_ranking && *best == than);
            if let Some(wanted) = of_line.and_then(|(_, ratios)| ratios.get(&name)) {
                assert!(same_number(&ratio, wanted), "{at}: {label}, not {wanted} of the headline");
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn roundings_of_one_number_are_told_from_others() {
    assert!(same_number("7.4", "7.43") && !same_number("9.0", "7.43"));
    assert!(same_number("31 000", "3.05·10⁴") && !same_number("31 000", "3.3·10⁴"));
    assert!(same_number("1.00 to 1.02", "1.015"));
    let line = "Tuned: step size. Ratios of geometric means of the error to Scaffold’s: FedAvg 7.43 [2.98, 18.8], A, B 1.2; 10 paired instances.";
    let (best, ratios) = ratios_of_line(line).unwrap();
    assert_eq!((best.as_str(), ratios["FedAvg"].as_str()), ("Scaffold", "7.43"));
}
