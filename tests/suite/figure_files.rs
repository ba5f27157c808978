//! `report --format pdf,png`: the figures as files for papers and slides.

use crate::support::{Bench, DIVERGING, edited};
use std::collections::HashSet;

const FOLDER: &str = "reports/smoke/diverging/figures";

/// Width and height of the only page of a PDF, in points.
fn page(pdf: &[u8]) -> (f64, f64) {
    assert!(pdf.starts_with(b"%PDF-"));
    let text = String::from_utf8_lossy(pdf);
    let boxes: Vec<&str> = text.split("/MediaBox [").skip(1).collect();
    assert_eq!(boxes.len(), 1, "one page");
    let numbers = boxes[0].split(']').next().unwrap().split_whitespace();
    let numbers: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
    assert!(matches!(numbers[..2], [x, y] if x == 0.0 && y == 0.0), "{numbers:?}");
    (numbers[2], numbers[3])
}

/// Width and colours of a PNG.
fn image(png: &[u8]) -> (u32, HashSet<[u8; 3]>) {
    let mut reader = png::Decoder::new(png).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    (frame.width, pixels.chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect())
}

#[test]
fn figures_have_the_width_that_is_asked_for() {
    let bench = Bench::of_smoke(&["diverging"]);
    let written = |width: &[&str]| {
        let report = ["report", "--quiet", "--format", "pdf,png,svg"];
        bench.run(&[&report, width].concat()).expect(0);
        let read = |end| bench.read_bytes(&format!("{FOLDER}/convergence.{end}"));
        (read("pdf"), read("png"))
    };
    let (pdf, png) = written(&[]);
    assert!(!bench.path("reports/smoke/diverging/report.md").exists());
    assert_eq!(written(&["--figure-width", "text"]), (pdf.clone(), png.clone()));
    let (column, narrow) = written(&["--figure-width", "column"]);
    let svg = bench.read(&format!("{FOLDER}/convergence.paper.svg"));
    assert!(svg.contains("width=\"3.25in\"") && !svg.contains("<text"), "{}", &svg[..200]);
    let ((wide, high), (less, lower)) = (page(&pdf), page(&column));
    assert!((wide - 486.0).abs() < 0.01 && (less - 234.0).abs() < 0.01, "{wide} and {less}");
    // Drawn for the width, so that text has the same size in both.
    assert!(high / wide < lower / less, "{high} / {wide} and {lower} / {less}");
    assert_eq!((image(&png).0, image(&narrow).0), (2025, 975));
    let (other, _) = written(&["--figure-width", "88.9mm"]);
    assert!((page(&other).0 - 252.0).abs() < 0.01);

    // The drawing's colours are those of the SVG: nothing was lost on the way.
    let (_, colors) = image(&png);
    let svg = bench.read(&format!("{FOLDER}/convergence.svg"));
    let named: HashSet<&str> = svg.match_indices("\"#").map(|(i, _)| &svg[i + 2..i + 8]).collect();
    let curves: Vec<[u8; 3]> = named
        .iter()
        .filter_map(|hex| Some(u32::from_str_radix(hex, 16).ok()?.to_be_bytes()))
        .map(|[_, r, g, b]| [r, g, b])
        .filter(|color| color.iter().max().unwrap() - color.iter().min().unwrap() > 100)
        .collect();
    assert!(!curves.is_empty() && curves.iter().all(|color| colors.contains(color)), "{curves:?}");
}

#[test]
fn a_figure_that_is_gone_is_swept_away() {
    let bench = Bench::of_smoke(&["diverging"]);
    let report = || bench.run(&["report", "--quiet", "--format", "pdf,png"]).expect(0);
    let exists = |file: &str| bench.path(&format!("{FOLDER}/{file}")).exists();
    report();
    bench.write(&format!("{FOLDER}/mine.pdf"), "mine");
    assert!(exists("convergence.pdf") && exists("convergence.png"));
    bench
        .write(DIVERGING, edited(&bench.read(DIVERGING), &[("band = \"ci95\"", "id = \"other\"")]));
    bench.compute(&[DIVERGING]);
    report();
    assert!(exists("other.pdf") && exists("other.png") && exists("mine.pdf"));
    assert!(!exists("convergence.pdf") && !exists("convergence.png"));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let bench = Bench::of_smoke(&["diverging"]);
    bench.run(&["report", "--format", "gif"]).expect(2).warns("pdf, png");
    bench
        .run(&["report", "--figure-width", "column"])
        .expect(2)
        .warns("--figure-width is for figures as PDF, PNG or SVG: add --format pdf, png or svg");
    for (width, reason) in [
        ("5", "expected column, text, or a length such as 5.5in, 89mm, 9cm or 240pt"),
        ("wide", "expected column"),
        ("in", "expected column"),
        ("0in", "from 1 to 20 inches"),
        ("NaNin", "from 1 to 20 inches"),
        ("inf in", "from 1 to 20 inches"),
        ("3000pt", "from 1 to 20 inches"),
    ] {
        let report = ["report", "--format", "pdf", "--figure-width", width];
        bench.run(&report).expect(2).warns(reason);
    }
    assert!(!bench.path("reports").exists());
}

/// The files of figures are the same bytes in every process, so that version control sees a change
/// only where there is one.
#[test]
fn figures_are_the_same_bytes_in_every_process() {
    let bench = Bench::of_smoke(&["diverging", "logistic"]);
    let write = |out: &str| {
        let report = ["report", "--quiet", "--format", "pdf,png,svg", "--out", out];
        bench.run(&report).expect(0);
        bench.contents(out)
    };
    let first = write("first");
    let figures = first.keys().filter(|name| name.ends_with(".pdf")).count();
    assert!(figures >= 2, "{:?}", first.keys());
    for out in ["second", "third", "fourth"] {
        for (name, bytes) in write(out) {
            assert!(first[&name] == bytes, "{name} differs");
        }
    }
}
