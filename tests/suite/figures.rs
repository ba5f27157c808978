//! Figures as files: a label or an entry of a legend looks as its curve is drawn, and the curve
//! has the numbers of the cells that it is named after.

use crate::support::looks::{Drawing, Look, Named, compare};
use crate::support::{Bench, QUADRATIC, edited, files_with, root};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

/// The reports of figures with many curves.
fn reported() -> Bench {
    let bench = Bench::new();
    bench.write("experiments/page.toml", include_str!("../browser/page.toml"));
    bench.compute(&["experiments/page.toml"]);
    bench.compute(&[&bench.bring("all-atoms")]);
    for (name, budget) in [("complexity", "budget.rounds=60"), ("schedules", "replicates=2")] {
        let file = format!("experiments/scafflsa/{name}.toml");
        bench.write(&file, fs::read(root().join(&file)).unwrap());
        bench.compute(&[&file, "--set", "replicates=2", "--set", budget]);
    }
    // Cut short, claims may be refuted.
    let output = bench.run(&["report", "--quiet"]);
    assert!(output.code <= 1, "{}", output.err);
    bench
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

/// The corners of a polygon, from its points.
fn corners(points: &str) -> Vec<[f64; 2]> {
    let point = |p: &str| {
        let (x, y) = p.split_once(',').unwrap();
        [x, y].map(|v| v.parse::<f64>().unwrap())
    };
    points.split_whitespace().map(point).collect()
}

/// The corners of the first shape of a path, whose coordinates after the first are relative.
fn first_corners(commands: &str) -> Vec<[f64; 2]> {
    let first = commands.trim_start_matches('M').split(['M', 'z']).next().unwrap_or_default();
    let numbers = first.replace('-', " -").replace('l', " ");
    let steps: Vec<f64> = numbers.split_whitespace().map(|v| v.parse().unwrap()).collect();
    let mut all: Vec<[f64; 2]> = Vec::new();
    for step in steps.chunks(2) {
        let [x, y] = all.last().copied().unwrap_or_default();
        all.push([x + step[0], y + step[1]]);
    }
    all
}

/// A marker with these corners, wherever and however large it is.
fn mark(all: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let middle = [0, 1].map(|i| all.iter().map(|p| p[i]).sum::<f64>() / all.len() as f64);
    let from: Vec<[f64; 2]> = all.iter().map(|p| [p[0] - middle[0], p[1] - middle[1]]).collect();
    let reach = from.iter().map(|p| libm::hypot(p[0], p[1])).fold(0.0, f64::max);
    from.iter().map(|p| p.map(|v| v / reach)).collect()
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

/// The labels and the legend of a drawing, which look alike.
fn keys(svg: &str) -> Vec<Named> {
    let key = |part: &str| {
        let (line, polygon) = part.split_once("<polygon").unwrap_or((part, ""));
        let look = Look {
            ink: Some(color(attribute(line, "stroke"))),
            dash: dash(attribute(line, "stroke-dasharray"), 1.0),
            mark: mark(corners(attribute(polygon, "points"))),
        };
        let with = attribute(part, "data-with").split(" | ").filter(|name| !name.is_empty());
        Named {
            label: attribute(part, "data-label").to_owned(),
            with: with.map(str::to_owned).collect(),
            role: String::new(),
            look,
        }
    };
    parts(svg, "<g class=\"key\"", "</g>").map(key).collect()
}

/// The names of the measured curves of a drawing, each once, in their order.
pub fn names(svg: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in drawn(svg).into_iter().filter(|line| line.role == "measured") {
        if !names.contains(&line.label) {
            names.push(line.label);
        }
    }
    names
}

/// The curves of a drawing, without those that have no points.
fn drawn(svg: &str) -> Vec<Named> {
    let curve = |part: &str| {
        let roles = part.split('"').next().unwrap();
        let marks = part.split_once("<path fill=\"#").map(|(before, _)| &part[before.len()..]);
        let line = part.split_once("stroke=\"#").map(|(_, rest)| format!("#{}", &rest[..6]));
        let filled = marks.map(|path| attribute(path, "fill").to_owned());
        let look = Look {
            ink: Some(line.or(filled)?),
            dash: dash(attribute(part, "stroke-dasharray"), 4.0),
            mark: marks.map(|m| mark(first_corners(attribute(m, "d")))).unwrap_or_default(),
        };
        let role = roles.split_whitespace().next_back().unwrap_or_default().to_owned();
        let label = attribute(part, "data-label").to_owned();
        Some(Named { label, with: Vec::new(), role, look })
    };
    parts(svg, "<g class=\"series ", "</g>").filter_map(curve).collect()
}

/// The drawings of all figures of curves below a folder.
fn drawings(reports: &Path) -> Vec<(String, String)> {
    let files = files_with(reports, "svg").into_iter();
    let all = files.map(|f| (f.display().to_string(), fs::read_to_string(f).unwrap()));
    all.filter(|(_, text)| text.contains("class=\"series")).collect()
}

#[test]
fn labels_show_the_curves_that_they_name() {
    let bench = reported();
    for (reports, least) in [(bench.path("reports"), 60), (root().join("reports"), 300)] {
        let drawings = drawings(&reports).into_iter().map(|(id, svg)| Drawing {
            id,
            by: "plotters".into(),
            keys: keys(&svg),
            lines: drawn(&svg),
        });
        let compared: usize = drawings.map(|drawing| compare(&drawing)).sum();
        assert!(compared > least, "{compared} in {reports:?}");
    }
}

/// Each curve of a figure ends at the mean of the cell that its name and panel tell.
#[test]
fn curves_have_the_numbers_of_their_cells() {
    let bench = reported();
    let summary = bench.rows("reports/page/summary.csv");
    let end = |row: &HashMap<String, String>| {
        let name = format!("{} {} {}", row["label"], row["clients"], row["local-steps"]);
        (name, row["sq_error_mean"].parse().unwrap_or(f64::NAN))
    };
    let ends: BTreeMap<String, f64> = summary.iter().map(end).collect();
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    for row in bench.rows("reports/page/figures/curves.csv") {
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

/// Three algorithms, two numbers of local steps and of clients.
fn plain() -> String {
    let changes = [
        ("seed = 1", "seed = 3"),
        ("replicates = 2", "replicates = 5"),
        ("clients = 2", "clients = [4, 2]"),
        ("noise = 0.1", "gradient-heterogeneity = 1.0, noise = 0.5"),
        ("rounds = 20", "local-steps = 200"),
    ];
    let entry = |kind| format!("[[algorithm.{kind}]]\nstep-size = 0.1\nlocal-steps = [10, 1]\n");
    edited(QUADRATIC, &changes) + &["scaffold", "fedavg", "fedlin"].map(entry).concat()
}

/// The reports of this manifest, with more at its end.
fn report_of(more: &str) -> Bench {
    let bench = Bench::ran(&(plain() + more));
    bench.report();
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
    let wanted =
        ["Scaffold", "FedAvg", "FedLin"].map(|a| ["10", "1"].map(|h| format!("{a}, H = {h}")));
    for file in ["first", "second"] {
        let svg = bench.read(&format!("reports/m/figures/{file}.svg"));
        assert_eq!(names(&svg), wanted.concat(), "{file}");
        let titles: Vec<&str> = svg.match_indices("N = ").map(|(i, _)| &svg[i..i + 5]).collect();
        assert!(file == "second" || titles == ["N = 4", "N = 2"], "{titles:?}");
    }
}

#[test]
fn a_figure_shows_only_the_settings_that_it_asks_for() {
    let bench = report_of(
        "[[figure.convergence]]\nid = \"few\"\nonly = { clients = 4, local-steps = 10 }\n\
         [[figure.scaling]]\nid = \"over\"\nx = \"local-steps\"\nonly = { clients = 4 }\n\
         [[figure.convergence]]\nid = \"both\"\n\
         only = { clients = 4, local-steps = [1, 10], label = \"FedLin\" }\n",
    );
    let svg = bench.read("reports/m/figures/both.svg");
    assert_eq!(names(&svg), ["FedLin, H = 10", "FedLin, H = 1"], "two values are two curves");
    for file in ["few", "over"] {
        let svg = bench.read(&format!("reports/m/figures/{file}.svg"));
        assert_eq!(names(&svg), ["Scaffold", "FedAvg", "FedLin"], "{file}: one value is no name");
    }
    let rows = bench.rows("reports/m/figures/over.csv");
    assert_eq!(rows.iter().filter(|row| row["role"] == "measured").count(), 6);
}

#[test]
fn a_manifest_without_figures_shows_its_curves() {
    let bench = report_of("");
    let svg = bench.read("reports/m/figures/convergence.svg");
    assert_eq!((svg.matches("<g class=\"panel\"").count(), names(&svg).len()), (2, 6));
    assert!(bench.read("reports/m/report.html").contains("id=\"convergence\""));
}

/// The table and the map say the same of every place, and count the same comparisons.
#[test]
fn a_map_and_its_table_agree() {
    let bench =
        report_of("[[figure.winners]]\nid = \"map\"\nx = \"local-steps\"\ny = \"clients\"\n");
    let square = |row: &HashMap<String, String>| {
        ((row["y"].clone(), row["x"].clone()), row["winner"].clone())
    };
    let squares: BTreeMap<(String, String), String> =
        bench.rows("reports/m/figures/map.csv").iter().map(square).collect();
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

/// Figures of all kinds in any order, with ids and without: each has a file of its own kind.
#[test]
fn every_figure_has_its_own_id() {
    let over = "x = \"local-steps\"\ny = \"clients\"\n";
    let figures = [
        ("winners", "", over, "winners", "<rect"),
        ("convergence", "id = \"curves\"\n", "", "curves", "communications"),
        ("stability", "", over, "stability", "<rect"),
        ("scaling", "", "x = \"clients\"\n", "scaling", "<path"),
        ("winners", "id = \"map\"\n", over, "map", "<rect"),
        ("scaling", "", "x = \"local-steps\"\n", "scaling-2", "<path"),
        ("convergence", "", "x = \"gradients\"\n", "convergence-2", "gradients"),
    ];
    let table = |(i, (kind, id, keys, ..)): (usize, &(&str, &str, &str, &str, &str))| {
        format!("[[figure.{kind}]]\n{id}title = \"Heading {i} of {kind}\"\n{keys}")
    };
    let bench = report_of(&figures.iter().enumerate().map(table).collect::<String>());
    let page = bench.read("reports/m/report.md");
    let headings = page.lines().filter(|line| line.starts_with("![Heading"));
    let wanted = figures
        .iter()
        .enumerate()
        .map(|(i, (kind, .., id, _))| format!("![Heading {i} of {kind}](figures/{id}.svg)"));
    assert_eq!(headings.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for (kind, _, _, id, has) in figures {
        let svg = bench.read(&format!("reports/m/figures/{id}.svg"));
        assert!(svg.contains(has), "{id} is no figure of {kind}");
        let head = bench.read(&format!("reports/m/figures/{id}.csv"));
        let head = head.lines().next().unwrap();
        let is_map = ["winners", "stability"].contains(&kind);
        assert_eq!(!head.contains("role"), is_map, "{id}: {head}");
        assert_eq!(head.contains("winner"), kind == "winners", "{id}: {head}");
    }
}

/// A slope needs two places across.
#[test]
fn one_place_across_has_no_slope() {
    let figure = "[[figure.scaling]]\nid = \"points\"\nx = \"step-size\"\nreference-slope = 1.0\n";
    let bench = report_of(figure);
    let svg = bench.read("reports/m/figures/points.svg");
    assert!(names(&svg).len() == 12 && !svg.contains("slope"), "{:?}", names(&svg));
    assert!(!svg.contains("NaN"));
}

/// A reference slope begins at the data, so that one sees where curves leave it.
#[test]
fn a_slope_goes_through_the_first_point_of_the_first_curve() {
    let figure = "[[figure.scaling]]\nid = \"points\"\nx = \"local-steps\"\npanels = [\"clients\"]\nreference-slope = 3.0\n";
    let bench = report_of(figure);
    let rows = bench.rows("reports/m/figures/points.csv");
    let of = |panel: &str, role: &str| -> Vec<[f64; 2]> {
        let is_it = |row: &&HashMap<String, String>| row["panel"] == panel && row["role"] == role;
        let all = rows.iter().filter(is_it);
        all.map(|row| ["x", "y"].map(|axis| row[axis].parse().unwrap())).collect()
    };
    let panels: std::collections::BTreeSet<&String> =
        rows.iter().map(|row| &row["panel"]).collect();
    assert_eq!(panels.len(), 2);
    for panel in panels {
        // Rows stand in the order of the curves, and of their points.
        let (first, slope) = (of(panel, "measured")[0], of(panel, "reference"));
        assert_eq!(slope.len(), 2, "{rows:?}");
        assert_eq!(slope[0], first, "{panel}");
        let steepness = libm::log(slope[1][1] / slope[0][1]) / libm::log(slope[1][0] / slope[0][0]);
        assert!((steepness - 3.0).abs() < 1e-9, "{panel}: {steepness}");
    }
    assert!(
        bench.read("reports/m/report.md").contains("through the first point of the first curve")
    );
}
