//! Figures of several quantities: a panel for each, with the same curves and one y axis.

use crate::bands::PageData;
use crate::figures::names;
use crate::support::Bench;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Two algorithms with two numbers of local steps on records of five clients, with metrics of the clients.
const CLIENTS: &str = r#"title = "t"
seed = 1
replicates = 3
[problem.logistic]
dimension = 2
records = 30
clients = 5
l2 = 0.1
data = { heterogeneous = { spread = 1.0, perturbation = 1.0 } }
[start]
zero = true
[budget]
rounds = 12
[record]
every = 3
metrics = ["accuracy", "first-decile-accuracy", "worst-accuracy", "accuracy-spread", "train-loss", "worst-train-loss"]
[[algorithm.fedavg]]
step-size = 0.2
local-steps = [1, 4]
[[algorithm.scaffold]]
step-size = 0.2
local-steps = [1, 4]
"#;

/// The data of a figure in the page of the experiment `m`, as its script reads them.
fn page_data(bench: &Bench, id: &str) -> Value {
    PageData::of(&bench.read("reports/m/report.html")).figure(id).clone()
}

/// The titles of the panels that a figure of a page has before a reader chooses others.
fn panel_titles(figure: &Value) -> Vec<&str> {
    let groups = figure["views"][0]["groups"].as_array().unwrap();
    groups.iter().map(|group| group[0].as_str().unwrap()).collect()
}

/// The last value of each measured curve in the CSV file of a figure, by its panel and its name.
fn last_values(bench: &Bench, id: &str) -> BTreeMap<(String, String), f64> {
    let mut last = BTreeMap::new();
    for row in bench.rows(&format!("reports/m/figures/{id}.csv")) {
        assert_eq!(row["role"], "measured");
        last.insert((row["panel"].clone(), row["series"].clone()), row["y"].parse().unwrap());
    }
    last
}

/// A figure of several quantities has a panel for each, with all curves and one y axis. Every curve ends at the mean of
/// its quantity, and the page has the same panels as the drawing.
#[test]
fn a_figure_has_a_panel_for_each_of_several_quantities() {
    let bench = Bench::ran(&format!(
        "{CLIENTS}[[figure.convergence]]\nid = \"several\"\n\
         y = [\"accuracy\", \"first-decile-accuracy\", \"worst-accuracy\"]\n"
    ));
    bench.report();
    let quantities = [
        ("accuracy", "accuracy_mean"),
        ("first decile of accuracy", "first_decile_accuracy_mean"),
        ("worst accuracy", "worst_accuracy_mean"),
    ];
    let last = last_values(&bench, "several");
    let summary = bench.rows("reports/m/summary.csv");
    assert_eq!((last.len(), summary.len()), (12, 4));
    for row in &summary {
        let curve = format!("{}, H = {}", row["label"], row["local-steps"]);
        for (title, column) in quantities {
            let mean: f64 = row[column].parse().unwrap();
            let found = last[&(title.to_owned(), curve.clone())];
            assert!((found - mean).abs() <= 1e-8, "{title} of {curve}: {found}, not {mean}");
        }
    }
    let svg = bench.read("reports/m/figures/several.svg");
    let panels: Vec<&str> = svg.split("<g class=\"panel\"").skip(1).collect();
    let titles = quantities.map(|(title, _)| title);
    assert_eq!(panels.len(), titles.len());
    for (panel, title) in panels.iter().zip(titles) {
        assert!(panel.contains(&format!(">{title}</text>")), "{title}");
        assert_eq!(names(panel), names(&svg), "{title}");
    }
    assert_eq!(names(&svg).len(), 4);
    assert!(svg.contains(">fraction</text>"), "the y axis has the unit of all quantities");
    let listed = "accuracy, first decile of accuracy and worst accuracy";
    assert!(svg.contains(&format!("<title>{listed} over communications</title>")), "{svg}");
    let markdown = bench.read("reports/m/report.md");
    assert!(markdown.contains(&format!("Mean of {listed} over n = 3 runs; ")), "{markdown}");
    let data = page_data(&bench, "several");
    assert_eq!(panel_titles(&data), titles);
    assert_eq!(data["views"][0]["symbols"], json!(["quantity"]), "what a reader may choose");
    let frames = data["layout"]["frames"].as_array().unwrap();
    assert!(frames.len() == 3 && frames.iter().all(|frame| frame["y"] == frames[0]["y"]), "{data}");
    let cells = data["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &data["views"][0]["groups"][1][1]), (12, &json!([4, 5, 6, 7])));
    for i in 0..4 {
        assert_eq!(cells[i]["id"], cells[4 + i]["id"]);
        assert_ne!(cells[i]["mean"], cells[8 + i]["mean"], "an accuracy and the worst one differ");
        // The sequences of three runs follow one another.
        assert_eq!(cells[i]["runs"][1], 3, "{}", cells[i]);
        assert_ne!(cells[i]["runs"], cells[8 + i]["runs"]);
    }
}

/// Quantities and settings together have a panel for each pair, in a row for each quantity.
#[test]
fn a_figure_has_panels_for_quantities_and_settings() {
    let bench = Bench::ran(&format!(
        "{CLIENTS}[[figure.convergence]]\nid = \"product\"\n\
         y = [\"train-loss\", \"worst-train-loss\"]\npanels = [\"local-steps\"]\n"
    ));
    bench.report();
    let data = page_data(&bench, "product");
    let titles = [
        "training loss, H = 1",
        "training loss, H = 4",
        "worst training loss, H = 1",
        "worst training loss, H = 4",
    ];
    assert_eq!((panel_titles(&data), &data["layout"]["columns"]), (titles.to_vec(), &json!(2)));
    let chosen = ["quantity,local-steps", "quantity"];
    assert!((0..2).all(|i| data["views"][i]["panels"] == chosen[i]), "{data}");
    assert_eq!((&data["y"], &data["large"]), (&json!("loss"), &Value::Null));
    let last = last_values(&bench, "product");
    let pairs: Vec<(&str, &str)> = last.keys().map(|(p, s)| (p.as_str(), s.as_str())).collect();
    let wanted = titles.map(|title| ["FedAvg", "Scaffold"].map(|algorithm| (title, algorithm)));
    assert_eq!(pairs, wanted.concat());
    for row in bench.rows("reports/m/summary.csv") {
        let title = format!("worst training loss, H = {}", row["local-steps"]);
        let mean: f64 = row["worst_train_loss_mean"].parse().unwrap();
        assert!((last[&(title, row["label"].clone())] - mean).abs() <= 1e-8 * mean);
    }
}

/// A list of one quantity is the quantity.
#[test]
fn a_list_of_one_quantity_draws_what_its_name_draws() {
    let drawn = |y: &str| {
        let figure = format!("[[figure.convergence]]\nid = \"f\"\ny = {y}\n");
        let bench = Bench::ran(&(CLIENTS.to_owned() + &figure));
        bench.report();
        let files = ["f.svg", "f.csv"].map(|file| bench.read(&format!("reports/m/figures/{file}")));
        (files, page_data(&bench, "f"))
    };
    assert_eq!(drawn("[\"worst-accuracy\"]"), drawn("\"worst-accuracy\""));
}

/// A list of quantities that a figure cannot draw is refused before anything runs.
#[test]
fn quantities_that_one_figure_cannot_show_are_refused() {
    let refused = |keys: &str, message: &str| {
        let bench = Bench::new();
        bench.write("m.toml", format!("{CLIENTS}[[figure.convergence]]\n{keys}\n"));
        for command in ["check", "run"] {
            bench.run(&[command, "m.toml"]).expect(2).warns(message);
        }
        assert_eq!(bench.files(), ["m.toml"], "something was written");
    };
    let axis = "`train-loss` does not fit on the y axis of `accuracy`, which all panels share";
    refused("y = [\"accuracy\", \"train-loss\"]", axis);
    let spread = "`accuracy-spread` does not fit on the y axis of `accuracy`";
    refused("y = [\"accuracy\", \"worst-accuracy\", \"accuracy-spread\"]", spread);
    refused("y = [\"bytes\", \"accuracy\"]", "`accuracy` does not fit on the y axis of `bytes`");
    refused("y = [\"accuracy\", \"accuracy\"]", "`accuracy` is listed twice");
    refused("y = [\"accuracy\", \"auc\"]", "`auc` is not recorded: write metrics = [\"auc\"]");
    refused("y = []", "`y` needs at least one quantity");
    refused("y = [\"acuracy\"]", "did you mean `accuracy`?");
    refused("y = \"acuracy\"", "did you mean `accuracy`?");
    refused("y = 3", "expected a name or a list of names");
    let predicted = "y = [\"sq-error\", \"sq-error-limit\"]\ntheory = [\"exact-bias\"]";
    refused(predicted, "`theory` needs a figure of one quantity");
}
