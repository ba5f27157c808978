//! What a figure draws, as CSV: every point of every curve, every square of a map.
//!
//! *Invariant*: numbers have the digits that bring back the same bits; what is not
//! there (a band's end, the other kind's columns) is empty.

use crate::analysis::{Body, Figure, Map, Panel};
use driftbench_core::words::inert;
use std::fmt::Write;

/// A figure's values, a line a point or a square.
pub fn csv(figure: &Figure) -> String {
    match &figure.body {
        Body::Panels { panels, .. } => curves(panels),
        Body::Maps { maps, .. } => squares(maps),
    }
}

fn curves(panels: &[Panel]) -> String {
    let mut out = String::from("panel,series,role,x,y,low,high,n,diverged\n");
    for panel in panels {
        for series in &panel.series {
            let role = series.role.name();
            let (title, label) = (quoted(&panel.title), quoted(&series.label));
            for point in &series.points {
                let [x, y, low, high] = [point.x, point.y, point.low, point.high].map(number);
                let _ = writeln!(
                    out,
                    "{title},{label},{role},{x},{y},{low},{high},{},{}",
                    point.n, series.diverged
                );
            }
        }
    }
    out
}

fn squares(maps: &[Map]) -> String {
    let stability = maps.iter().flat_map(|m| &m.cells).any(|c| c.stability.is_some());
    let mut out = String::from(if stability {
        "panel,x,y,runs,diverged,radius_mean,radius_square,differs\n"
    } else {
        "panel,x,y,winner,detail,sure\n"
    });
    for map in maps {
        for cell in &map.cells {
            let [title, x, y] = [&map.title, &map.x[cell.x], &map.y[cell.y]].map(|t| quoted(t));
            let _ = match &cell.stability {
                Some(found) => {
                    let [mean, square] =
                        [found.mean, found.square].map(|r| number(r.unwrap_or(f64::NAN)));
                    let (runs, diverged, differs) = (found.runs, found.diverged, found.differs());
                    writeln!(out, "{title},{x},{y},{runs},{diverged},{mean},{square},{differs}")
                }
                None => {
                    let [winner, detail] = [&cell.winner, &cell.detail].map(|t| quoted(t));
                    writeln!(out, "{title},{x},{y},{winner},{detail},{}", cell.sure)
                }
            };
        }
    }
    out
}

/// The shortest digits that are this number again; nothing for no number.
fn number(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:?}") }
}

/// A field after RFC 4180, that no spreadsheet takes for a formula.
pub fn quoted(text: &str) -> String {
    let text = inert(text);
    let special = text.contains([',', '"', '\n', '\r']);
    if special { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{MapCell, Point, Role, Scale, Series, Stability, Style};

    fn figure(body: Body) -> Figure {
        let [id, title, caption] = ["f", "t", "c"].map(str::to_owned);
        Figure { id, title, caption, columns: 1, asks: None, body }
    }

    #[test]
    fn points_come_back_bit_for_bit_and_fields_are_quoted() {
        let values = [1.0 / 3.0, 5e-324, f64::MAX, f64::INFINITY, -0.0];
        let point = |y: f64| Point { x: 0.1 + 0.2, y, low: f64::NAN, high: y, n: 3 };
        let series = Series {
            label: "a \"b\", c".into(),
            style: Style::plain(0),
            role: Role::Measured,
            points: values.map(point).to_vec(),
            diverged: 1,
            cells: Vec::new(),
            rows: Vec::new(),
        };
        let text = csv(&figure(Body::Panels {
            panels: vec![Panel { title: "H = 1\n".into(), series: vec![series] }],
            legend: vec![],
            x: "x".into(),
            y: "y".into(),
            scale_x: Scale::Linear,
            scale_y: Scale::Log,
        }));
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
    fn squares_tell_what_their_map_is_of() {
        let found = Stability { runs: 4, diverged: 0, mean: None, square: Some(1.5) };
        let cell = |stability| MapCell {
            x: 0,
            y: 1,
            color: 0,
            winner: "0 of 4 ≠".into(),
            detail: "ρ 1.500".into(),
            lines: Vec::new(),
            sure: false,
            stability,
        };
        let map = |stability| {
            let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
            let (x, y) = (names(&["0.1"]), names(&["1", "10"]));
            let maps = vec![Map { title: "FedAvg".into(), x, y, cells: vec![cell(stability)] }];
            csv(&figure(Body::Maps { maps, legend: vec![], x: "γ".into(), y: "H".into() }))
        };
        assert!(map(Some(found)).ends_with("\nFedAvg,0.1,10,4,0,,1.5,true\n"));
        assert!(map(None).ends_with("\nFedAvg,0.1,10,0 of 4 ≠,ρ 1.500,false\n"));
    }
}
