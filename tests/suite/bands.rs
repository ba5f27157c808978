//! The band of a figure is one computation: the CSV file of a figure, the data of the page's
//! script and a computation from the stored runs have the same ends and the same sample size.

use crate::support::Bench;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;

/// Several instances with several runs on each.
const INSTANCES: &str = include_str!("../manifests/instances.toml");

/// The data of a page's script.
pub(crate) struct PageData {
    json: Value,
    singles: Vec<u8>,
    doubles: Vec<u8>,
}

impl PageData {
    pub(crate) fn of(html: &str) -> Self {
        let (_, rest) = html.split_once("id=\"data\">").expect("the page has data");
        let json: Value = serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap();
        let block = |name: &str| STANDARD.decode(json["numbers"][name].as_str().unwrap()).unwrap();
        let singles = block("singles");
        let doubles = block("doubles");
        Self { json, singles, doubles }
    }

    pub(crate) fn figure(&self, id: &str) -> &Value {
        let figures = self.json["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["id"] == id).expect("the page has the figure")
    }

    /// The numbers of a stored sequence.
    fn numbers(&self, slice: &Value) -> Vec<f64> {
        let part = |i: usize| slice[i].as_u64().unwrap() as usize;
        let single = |i: usize| f32::from_le_bytes(self.singles[4 * i..][..4].try_into().unwrap());
        let double = |i: usize| f64::from_le_bytes(self.doubles[8 * i..][..8].try_into().unwrap());
        let number = |i: usize| if part(0) == 0 { f64::from(single(i)) } else { double(i) };
        (part(1)..part(1) + part(2)).map(number).collect()
    }
}

/// A point: mean, ends of the band, sample size.
#[derive(Clone, Copy, Debug)]
struct BandedPoint {
    y: f64,
    low: f64,
    high: f64,
    n: f64,
}

#[track_caller]
fn agree(found: BandedPoint, wanted: BandedPoint, what: &str) {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
    let pairs = [(found.y, wanted.y), (found.low, wanted.low), (found.high, wanted.high)];
    let all = pairs.into_iter().all(|(a, b)| near(a, b)) && found.n == wanted.n;
    assert!(all, "{what}: {found:?}, not {wanted:?}");
}

/// The measured points of each curve in the CSV file of a figure, by the title of its panel.
fn points_of_csv(bench: &Bench, id: &str) -> BTreeMap<String, Vec<BandedPoint>> {
    let mut curves: BTreeMap<String, Vec<BandedPoint>> = BTreeMap::new();
    for row in bench.rows(&format!("reports/m/figures/{id}.csv")) {
        let number = |name: &str| row[name].parse().unwrap_or(f64::NAN);
        let (y, low, high, n) = (number("y"), number("low"), number("high"), number("n"));
        let curve = format!("{} | {}", row["panel"], row["series"]);
        if row["role"] == "measured" {
            curves.entry(curve).or_default().push(BandedPoint { y, low, high, n });
        }
    }
    curves
}

/// The measured points of each curve over rounds in the data of a page, with one of its bands.
fn points_of_page(page: &PageData, id: &str, band: &str) -> BTreeMap<String, Vec<BandedPoint>> {
    let figure = page.figure(id);
    let offered = figure["bands"].as_array().expect("the page says which bands it offers");
    let place = offered.iter().position(|name| name == band).expect("the band is offered");
    let view = &figure["views"][0];
    let mut curves = BTreeMap::new();
    for group in view["groups"].as_array().unwrap() {
        for cell in group[1].as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as usize) {
            let (of, data) = (&view["of"][cell], &figure["cells"][cell]);
            let curve = &view["curves"][of.as_u64().unwrap() as usize];
            let ends = |i: usize| page.numbers(&data["bands"][place][i]);
            let (means, low, high) = (page.numbers(&data["mean"]), ends(0), ends(1));
            let n = data["n"].as_f64().unwrap();
            let point = |i: usize| BandedPoint { y: means[i], low: low[i], high: high[i], n };
            let name = format!(
                "{} | {}",
                group[0].as_str().unwrap(),
                curve["algorithm"].as_str().unwrap()
            );
            curves.insert(name, (0..means.len()).map(point).collect());
        }
    }
    curves
}

/// The ends of the bands from the stored runs, computed by other code: ‖θ − θ*‖² of a cell's runs
/// at the last round is averaged over the runs on each instance.
fn points_of_runs(bench: &Bench) -> BTreeMap<String, [BandedPoint; 4]> {
    let mut last: BTreeMap<(String, u64, u64), (u64, f64)> = BTreeMap::new();
    for row in bench.rows("all.csv") {
        let number = |name: &str| row[name].parse::<u64>().unwrap();
        let curve = format!("H = {} | {}", row["local_steps"], row["label"]);
        let kept = last.entry((curve, number("instance"), number("replicate"))).or_default();
        if number("round") >= kept.0 {
            *kept = (number("round"), row["sq_error"].parse().unwrap());
        }
    }
    let mut runs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    last.into_iter()
        .for_each(|((curve, _, _), (_, error))| runs.entry(curve).or_default().push(error));
    runs.into_iter().map(|(curve, runs)| (curve, bands_by_hand(&runs))).collect()
}

/// ± standard deviation, ± standard error, 95 % interval and quantiles of five instances with four
/// runs on each.
fn bands_by_hand(runs: &[f64]) -> [BandedPoint; 4] {
    const STUDENT: f64 = 2.776_445_105;
    let mut means: Vec<f64> = runs.chunks(4).map(|runs| runs.iter().sum::<f64>() / 4.0).collect();
    assert_eq!(means.len(), 5);
    let y = means.iter().sum::<f64>() / 5.0;
    let sd = (means.iter().map(|m| (m - y) * (m - y)).sum::<f64>() / 4.0).sqrt();
    let error = sd / 5.0_f64.sqrt();
    let factor = libm::exp(STUDENT * error / y);
    means.sort_by(f64::total_cmp);
    let between = |a: f64, b: f64| a + 0.4 * (b - a);
    let ends = [
        (y - sd, y + sd),
        (y - error, y + error),
        (y / factor, y * factor),
        (between(means[0], means[1]), between(means[4], means[3])),
    ];
    ends.map(|(low, high)| BandedPoint { y, low, high, n: 5.0 })
}

#[test]
fn the_page_the_csv_and_the_runs_have_one_band() {
    let bench = Bench::ran(INSTANCES);
    bench.report();
    bench.run(&["export", "--out", "all.csv", "--quiet"]).expect(0);
    let html = bench.read("reports/m/report.html");
    let page = PageData::of(&html);
    let by_hand = points_of_runs(&bench);
    assert_eq!(by_hand.len(), 4, "two algorithms at two numbers of local steps");
    for (kind, id) in ["std", "sem", "ci95", "quantiles"].into_iter().enumerate() {
        assert_eq!(page.figure(id)["unit"], "instance");
        let wanted = points_of_csv(&bench, id);
        let found = points_of_page(&page, id, id);
        assert!(wanted.keys().eq(by_hand.keys()) && found.keys().eq(by_hand.keys()), "{wanted:?}");
        for (curve, points) in &wanted {
            assert_eq!(found[curve].len(), points.len(), "{id}, {curve}");
            for (found, wanted) in found[curve].iter().zip(points) {
                agree(*found, *wanted, &format!("{id}, {curve}"));
            }
            agree(
                *points.last().unwrap(),
                by_hand[curve][kind],
                &format!("{id}, {curve}, by hand"),
            );
        }
        // What a reader may choose in another figure of the same cells is the same band.
        if id != "sem" {
            let chosen = points_of_page(&page, "sem", id);
            for (curve, points) in &wanted {
                agree(*chosen[curve].last().unwrap(), *points.last().unwrap(), curve);
            }
        }
    }
    // The caption states the sample whose size the points have.
    assert!(html.contains("5 instances with 4 runs each"));
}

/// The points of a figure over a setting are cells: each has the band of its last round.
#[test]
fn a_point_of_a_setting_has_the_band_of_its_cell() {
    let bench = Bench::ran(INSTANCES);
    bench.report();
    let page = PageData::of(&bench.read("reports/m/report.html"));
    let figure = page.figure("ends");
    let place = figure["bands"].as_array().unwrap().iter().position(|name| name == "ci95").unwrap();
    let mut found: Vec<BandedPoint> = Vec::new();
    for cell in figure["cells"].as_array().unwrap() {
        let only = |slice: &Value| page.numbers(slice)[0];
        let (low, high) = (only(&cell["bands"][place][0]), only(&cell["bands"][place][1]));
        found.push(BandedPoint {
            y: only(&cell["mean"]),
            low,
            high,
            n: cell["n"].as_f64().unwrap(),
        });
    }
    let mut wanted: Vec<BandedPoint> =
        points_of_csv(&bench, "ends").into_values().flatten().collect();
    assert_eq!((found.len(), wanted.len()), (4, 4));
    found.sort_by(|a, b| a.y.total_cmp(&b.y));
    wanted.sort_by(|a, b| a.y.total_cmp(&b.y));
    found.iter().zip(&wanted).for_each(|(found, wanted)| agree(*found, *wanted, "ends"));
}
