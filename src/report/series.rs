//! The values of a figure as CSV: every point of every curve, every square of a map.
//!
//! *Invariant*: numbers have the digits that give the same bits when they are read; a value that
//! does not exist (the end of a band) is empty.

use crate::evidence::{Body, Figure, Map, Panel, SquareValue};
use exactfed_core::words::inert;
use std::fmt::Write;

/// The text of the CSV file of a figure, with a line for each point or square.
pub fn csv(figure: &Figure) -> String {
    match &figure.body {
        Body::Plot(plot) => curves(&plot.panels),
        Body::Maps(maps) => squares(&maps.maps),
    }
}

/// The text for a figure of curves: a line for each point of each line in each panel, also of predictions and reference
/// lines. `n` is the size of the sample of a point, 0 for a point that is not of a sample; `diverged` counts the runs
/// of the curve that diverged, and is the same in all its lines.
fn curves(panels: &[Panel]) -> String {
    let mut out = String::from("panel,series,role,x,y,low,high,n,diverged\n");
    for panel in panels {
        for series in &panel.series {
            let role = series.line.role();
            let title = quoted(&panel.title);
            let name = quoted(&series.line.name());
            for point in &series.points {
                let [x, y, low, high] = [point.x, point.y, point.low, point.high].map(exact_number);
                let _ = writeln!(
                    out,
                    "{title},{name},{role},{x},{y},{low},{high},{},{}",
                    point.n, series.diverged
                );
            }
        }
    }
    out
}

/// The text for a figure of maps: a line for each square that has results; maps of stability and maps of rankings have
/// different columns. A dense map, which is the only one of its figure, has a CSV of its own, with other columns still.
fn squares(maps: &[Map]) -> String {
    if let Some(dense) = maps.iter().find_map(|map| map.dense.as_ref()) {
        return dense.csv.clone();
    }
    let of_stability = maps.iter().flat_map(|m| &m.squares).any(|s| s.stability().is_some());
    let mut out = String::from(if of_stability {
        "panel,x,y,runs,diverged,radius_mean,radius_square,differs\n"
    } else {
        "panel,x,y,winner,detail,sure\n"
    });
    for map in maps {
        for square in &map.squares {
            let place =
                [&map.title, &map.x[square.x], &map.y[square.y]].map(|text| quoted(text)).join(",");
            let _ = match &square.value {
                SquareValue::Stability(found) => {
                    let radii = found.radii.map_or([f64::NAN; 2], |r| [r.mean, r.square]);
                    let [mean, square] = radii.map(exact_number);
                    writeln!(
                        out,
                        "{place},{},{},{mean},{square},{}",
                        found.runs,
                        found.diverged,
                        found.differs()
                    )
                }
                SquareValue::Ranking(ranking) => {
                    let winner = quoted(&ranking.winner());
                    let detail = quoted(&ranking.detail().join(" "));
                    writeln!(out, "{place},{winner},{detail},{}", ranking.is_separated())
                }
            };
        }
    }
    out
}

/// The shortest digits that are this number again; empty for NaN, which stands for a value that does not exist.
fn exact_number(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:?}") }
}

/// A line of a CSV file with these fields, with its line end.
pub fn line(fields: &[impl AsRef<str>]) -> String {
    fields.iter().map(|field| quoted(field.as_ref())).collect::<Vec<_>>().join(",") + "\n"
}

/// A text as a field of a CSV file (RFC 4180), in quotation marks where it needs them, and changed where a spreadsheet
/// would take it for a formula ([`inert`]).
pub fn quoted(text: &str) -> String {
    let text = inert(text);
    let special = text.contains([',', '"', '\n', '\r']);
    if special { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::tests::figure_of;
    use crate::evidence::{
        Color, Curve, Lead, Line, Maps, Point, Ranking, Series, Square, StabilityValue, Style,
    };
    use crate::stats::Ratio;
    use exactfed_core::theory::exact::SpectralRadii;

    #[test]
    fn points_come_back_bit_for_bit_and_fields_are_quoted() {
        let values = [1.0 / 3.0, 5e-324, f64::MAX, f64::INFINITY, -0.0];
        let point = |y: f64| Point { high: y, n: 3, ..Point::bare(0.1 + 0.2, y) };
        let curve = Curve::new("a \"b\", c", Style::solid(Color::Palette(0)));
        let points = values.map(point).to_vec();
        let series = Series { diverged: 1, ..Series::new(Line::Measured(curve), points) };
        let panel = Panel { title: "H = 1\n".into(), series: vec![series] };
        let text = csv(&figure_of(vec![panel]));
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<::csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
        assert_eq!(rows.len(), values.len());
        for (row, value) in rows.iter().zip(values) {
            assert_eq!((&row[0], &row[1], &row[2]), ("H = 1\n", "a \"b\", c", "measured"));
            assert_eq!(row[4].parse::<f64>().unwrap().to_bits(), value.to_bits());
            assert_eq!((&row[3], &row[5], &row[7], &row[8]), ("0.30000000000000004", "", "3", "1"));
        }
    }

    #[test]
    fn squares_have_the_columns_of_their_map() {
        let map = |value| {
            let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
            let map = Map {
                title: "FedAvg".into(),
                x: names(&["0.1"]),
                y: names(&["1", "10"]),
                squares: vec![Square { x: 0, y: 1, value }],
                dense: None,
            };
            let maps = Maps { maps: vec![map], legend: vec![], x: "γ".into(), y: "H".into() };
            let body = Body::Maps(maps);
            csv(&Figure { body, ..figure_of(Vec::new()) })
        };
        let radii = SpectralRadii { mean: 0.5, square: 1.5 };
        let stability = StabilityValue { runs: 4, diverged: 0, radii: Some(radii) };
        let lines = map(SquareValue::Stability(stability));
        assert!(lines.ends_with("\nFedAvg,0.1,10,4,0,0.5,1.5,true\n"), "{lines}");
        let ranking = Ranking {
            leaders: vec!["FedAvg".into(), "Scaffold".into()],
            color: Color::Neutral,
            lead: Lead::Ratio(Ratio { estimate: 1.125, low: 0.9, high: 1.5, p: 0.2 }),
        };
        let lines = map(SquareValue::Ranking(ranking));
        let expected = "\nFedAvg,0.1,10,FedAvg or Scaffold,\"×1.12 [0.90, 1.50]\",false\n";
        assert!(lines.ends_with(expected), "{lines}");
    }
}
