//! Figures as files: what a legend says of a curve is how the curve is drawn, and the curve
//! has the numbers of the cells that it is named after.

mod support;

use std::collections::{BTreeMap, HashMap};
use support::Bench;

/// A published experiment, cut short.
fn bring(bench: &Bench, name: &str) -> String {
    let file = format!("experiments/{name}.toml");
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
    bench.write(&file, &std::fs::read_to_string(from).unwrap());
    file
}

/// The reports of figures with many curves.
fn reported() -> Bench {
    let bench = Bench::new();
    bench.write("experiments/page.toml", include_str!("browser/page.toml"));
    bench.run(&["run", "experiments/page.toml", "--quiet"]).expect(0);
    bench.bring_folder("data");
    let atoms = bench.bring("all-atoms.toml");
    bench.run(&["run", &atoms, "--quiet"]).expect(0);
    for (name, budget) in [("complexity", "budget.rounds=60"), ("schedules", "replicates=2")] {
        let file = bring(&bench, &format!("scafflsa/{name}"));
        let short = ["--quiet", "--set", "replicates=2", "--set", budget];
        bench.run(&[&["run", &file], &short[..]].concat()).expect(0);
    }
    // Cut short, claims may be refuted.
    let said = bench.run(&["report", "--quiet"]);
    assert!(said.code <= 1, "{}", said.err);
    bench
}

/// How a line looks: colour, dashes, and the corners of its mark around the middle, in
/// hundredths of their reach.
#[derive(Clone, Debug)]
struct Look {
    color: String,
    dash: Vec<f64>,
    mark: Vec<(i64, i64)>,
}

impl Look {
    /// Whether two looks are one, but for whole pixels.
    fn same(&self, other: &Self) -> bool {
        let near =
            |((a, b), (c, d)): (&(i64, i64), &(i64, i64))| (a - c).abs() + (b - d).abs() < 25;
        let marks = self.mark.len() == other.mark.len();
        let marks = marks && self.mark.iter().zip(&other.mark).all(near);
        self.color == other.color && self.dash == other.dash && marks
    }
}

/// The value of an attribute of the first element in a text.
fn attribute<'t>(text: &'t str, name: &str) -> &'t str {
    let from = text.find(&format!(" {name}=\"")).map(|i| &text[i + name.len() + 3..]);
    from.and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

/// The parts of a text that begin with an opening tag and end before another text.
fn parts<'t>(text: &'t str, open: &'t str, close: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(open).skip(1).map(move |part| part.split(close).next().unwrap_or_default())
}

fn mark(polygon: &str) -> Vec<(i64, i64)> {
    let numbers = |p: &str| -> Vec<f64> { p.split(',').map(|v| v.parse().unwrap()).collect() };
    let all: Vec<Vec<f64>> = attribute(polygon, "points").split_whitespace().map(numbers).collect();
    let count = all.len() as f64;
    let middle = [0, 1].map(|i| all.iter().map(|p| p[i]).sum::<f64>() / count);
    let from = |p: &Vec<f64>| (p[0] - middle[0], p[1] - middle[1]);
    let reach = all.iter().map(from).map(|(x, y)| (x * x + y * y).sqrt()).fold(0.0, f64::max);
    let share = |v: f64| (100.0 * v / reach).round() as i64;
    all.iter().map(from).map(|(x, y)| (share(x), share(y))).collect()
}

fn dash(text: &str, by: f64) -> Vec<f64> {
    text.split_whitespace().map(|v| v.parse::<f64>().unwrap() / by).collect()
}

/// `rgb(0,114,178)` and `#0072B2` alike.
fn color(text: &str) -> String {
    match text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) {
        Some(parts) => {
            let hex = parts.split(',').map(|v| format!("{:02X}", v.trim().parse::<u8>().unwrap()));
            format!("#{}", hex.collect::<String>())
        }
        None => text.to_owned(),
    }
}

/// The legend of a drawing: names and looks.
fn legend(svg: &str) -> Vec<(String, Look)> {
    let key = |part: &str| {
        let (line, polygon) = part.split_once("<polygon").unwrap_or((part, ""));
        let mark = if attribute(polygon, "points").is_empty() { vec![] } else { mark(polygon) };
        let look = Look {
            color: color(attribute(line, "stroke")),
            dash: dash(attribute(line, "stroke-dasharray"), 1.0),
            mark,
        };
        (attribute(part, "data-label").to_owned(), look)
    };
    parts(svg, "<g class=\"key\"", "</g>").map(key).collect()
}

/// The curves of a drawing: role, name and look; without those that have no points.
fn drawn(svg: &str) -> Vec<(String, String, Look)> {
    let curve = |part: &str| {
        let role = part.split('"').next().unwrap().to_owned();
        let polygon = part.split("<polygon opacity=\"1\"").nth(1);
        let line = part.split_once("stroke=\"#").map(|(_, rest)| format!("#{}", &rest[..6]));
        let filled = polygon.map(|p| attribute(p, "fill").to_owned());
        let look = Look {
            color: line.or(filled)?,
            dash: dash(attribute(part, "stroke-dasharray"), 4.0),
            mark: polygon.map(mark).unwrap_or_default(),
        };
        Some((role, attribute(part, "data-label").to_owned(), look))
    };
    parts(svg, "<g class=\"series ", "</g>").filter_map(curve).collect()
}

/// The drawings of all figures of curves.
fn drawings(bench: &Bench) -> Vec<(String, String)> {
    let files = bench.files_below("reports");
    let svg = files.iter().filter(|f| f.extension().is_some_and(|end| end == "svg"));
    let all = svg.map(|f| (f.display().to_string(), std::fs::read_to_string(f).unwrap()));
    all.filter(|(_, text)| text.contains("class=\"series")).collect()
}

#[test]
fn legends_show_the_curves_that_they_name() {
    let bench = reported();
    let mut compared = 0;
    for (file, svg) in drawings(&bench) {
        let (keys, lines) = (legend(&svg), drawn(&svg));
        for (label, look) in &keys {
            let mut named = lines.iter().filter(|(_, of, _)| of == label).peekable();
            assert!(named.peek().is_some() || look.mark.is_empty(), "{file}: {label} is not drawn");
            for (_, _, line) in named {
                assert!(line.same(look), "{file}: {label} is {look:?}, drawn {line:?}");
                compared += 1;
            }
        }
        for (role, label, look) in &lines {
            match role.split_whitespace().next_back() {
                Some("theory") => {
                    // It has the colour and mark of its curve, and a dash of the legend.
                    let of = keys.iter().filter(|(of, _)| label.ends_with(of.as_str()));
                    let (_, curve) = of.max_by_key(|(of, _)| of.len()).unwrap();
                    assert_eq!(look.color, curve.color, "{file}: {label}");
                    let kinds =
                        keys.iter().filter(|(_, k)| k.mark.is_empty() && k.dash == look.dash);
                    assert_eq!(kinds.count(), 1, "{file}: {label}");
                }
                _ => assert!(keys.iter().any(|(of, _)| of == label), "{file}: {label} has no key"),
            }
        }
        // No two names share a look.
        let mut looks: HashMap<String, &str> = HashMap::new();
        for (role, label, look) in &lines {
            let other = looks.insert(format!("{role} {look:?}"), label);
            assert!(other.is_none_or(|other| other == label), "{file}: {label} and {other:?}");
        }
    }
    assert!(compared > 60, "{compared}");
}

/// Each curve of a figure ends at the mean of the cell that its name and panel tell.
#[test]
fn curves_have_the_numbers_of_their_cells() {
    let bench = reported();
    let mut summary = csv::Reader::from_path(bench.path("reports/page/summary.csv")).unwrap();
    let ends: BTreeMap<String, f64> = summary
        .deserialize()
        .map(|row| {
            let row: HashMap<String, String> = row.unwrap();
            let name = format!("{} {} {}", row["label"], row["clients"], row["local-steps"]);
            (name, row["sq_error_mean"].parse().unwrap_or(f64::NAN))
        })
        .collect();
    let mut curves = csv::Reader::from_path(bench.path("reports/page/figures/curves.csv")).unwrap();
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    for row in curves.deserialize() {
        let row: HashMap<String, String> = row.unwrap();
        if row["role"] == "measured" && row["diverged"] == "0" {
            let clients = row["panel"].strip_prefix("N = ").unwrap();
            let (label, steps) = row["series"].split_once(", H = ").unwrap();
            last.insert(format!("{label} {clients} {steps}"), row["y"].parse().unwrap());
        }
    }
    assert_eq!(last.len(), 8, "two algorithms, two H, two N");
    for (name, y) in last {
        assert!((ends[&name] - y).abs() <= 1e-8 * y, "{name}: {y} is not {}", ends[&name]);
    }
}

const PLAIN: &str = r#"
title = "Order"
seed = 3
replicates = 5

[problem.quadratic]
dimension = 2
clients = [4, 2]
spectrum = { from = 0.5, to = 1.0 }
gradient-heterogeneity = 1.0
noise = 0.5

[start]
offset = 1.0

[budget]
local-steps = 200

[[algorithm.scaffold]]
step-size = 0.1
local-steps = [10, 1]

[[algorithm.fedavg]]
step-size = 0.1
local-steps = [10, 1]

[[algorithm.fedlin]]
step-size = 0.1
local-steps = [10, 1]
"#;

/// The reports of this manifest, with more at its end.
fn report_of(more: &str) -> Bench {
    let bench = Bench::new();
    bench.write("experiments/m.toml", &format!("{PLAIN}{more}"));
    bench.run(&["run", "experiments/m.toml", "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    bench
}

#[test]
fn curves_and_figures_stand_in_the_order_of_the_manifest() {
    let bench = report_of(
        "[[figure.scaling]]\nid = \"second\"\nx = \"clients\"\n[[figure.convergence]]\nid = \"first\"\npanels = [\"clients\"]\n",
    );
    let page = bench.read("reports/m/report.md");
    let (second, first) = (page.find("second.svg").unwrap(), page.find("first.svg").unwrap());
    assert!(second < first, "the figures stand in the order of their kinds");
    let names =
        ["Scaffold", "FedAvg", "FedLin"].map(|a| ["10", "1"].map(|h| format!("{a}, H = {h}")));
    for file in ["first", "second"] {
        let svg = bench.read(&format!("reports/m/figures/{file}.svg"));
        let keys: Vec<String> = legend(&svg).into_iter().map(|(label, _)| label).collect();
        assert_eq!(keys, names.concat(), "{file}");
        let titles: Vec<&str> = svg.match_indices("N = ").map(|(i, _)| &svg[i..i + 5]).collect();
        assert!(file == "second" || titles == ["N = 4", "N = 2"], "{titles:?}");
    }
}

#[test]
fn a_manifest_without_figures_shows_its_curves() {
    let bench = report_of("");
    let svg = bench.read("reports/m/figures/convergence.svg");
    assert_eq!((svg.matches("<g class=\"panel\"").count(), legend(&svg).len()), (2, 6));
    assert!(bench.read("reports/m/report.html").contains("id=\"convergence\""));
}

/// The table and the map say the same of every place, and count the same comparisons.
#[test]
fn a_map_and_its_table_agree() {
    let bench =
        report_of("[[figure.winners]]\nid = \"map\"\nx = \"local-steps\"\ny = \"clients\"\n");
    let mut map = csv::Reader::from_path(bench.path("reports/m/figures/map.csv")).unwrap();
    let squares: BTreeMap<(String, String), String> = map
        .deserialize()
        .map(|row| {
            let row: HashMap<String, String> = row.unwrap();
            ((row["y"].clone(), row["x"].clone()), row["winner"].clone())
        })
        .collect();
    let page = bench.read("reports/m/report.md");
    let table = page.split("| clients | local-steps | smallest mean error").nth(1).unwrap();
    let rows = table.split("\n\n").next().unwrap().lines().filter(|l| l.starts_with("| "));
    let rows: BTreeMap<(String, String), String> = rows
        .filter(|row| !row.contains("---"))
        .map(|row| {
            let fields: Vec<&str> = row.split('|').map(str::trim).collect();
            let leaders = fields[3].trim_start_matches("tie: ").replace("; ", " or ");
            ((fields[1].to_owned(), fields[2].to_owned()), leaders)
        })
        .collect();
    assert_eq!(rows.len(), 4, "{page}");
    assert_eq!(rows, squares);
    // At H = 1 all three are one algorithm, and all three are named.
    let tie = &squares[&("4".to_owned(), "1".to_owned())];
    assert!(["Scaffold", "FedAvg", "FedLin"].iter().all(|name| tie.contains(name)), "{tie}");
    assert_eq!(page.matches(" comparisons of this page").count(), 2);
    let counts: Vec<&str> = page
        .match_indices(" comparisons of this page")
        .map(|(i, _)| page[..i].split(' ').next_back().unwrap())
        .collect();
    assert_eq!(counts[0], counts[1]);
}

/// A slope needs two places across.
#[test]
fn one_place_across_has_no_slope() {
    let figure = "[[figure.scaling]]\nid = \"points\"\nx = \"step-size\"\nreference-slope = 1.0\n";
    let bench = report_of(figure);
    let svg = bench.read("reports/m/figures/points.svg");
    assert!(legend(&svg).len() == 12 && !svg.contains("slope"), "{:?}", legend(&svg));
    assert!(!svg.contains("NaN"));
}
