//! Every text of a drawing is whole: inside the drawing, and on no other text.
//!
//! Boxes are those of the outlines in the bundled font, which is as wide as any sans-serif font that
//! a reader is likely to have. The browser tests measure the drawings of the pages' script.

use crate::support::{files_below, root};
use exactfed::chart::{self, PAGE};
use exactfed::evidence::{
    Body, Color, Curve, CurveValue, Figure, Line, Panel, Plot, Point, Scale, Series, Style,
};
use rayon::prelude::*;
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Group, Node, Options, Rect, Tree};
use std::sync::{Arc, LazyLock};

/// Texts may be nearer to each other than this where their letters do not touch, in pixels.
const TOUCHING: f32 = 0.5;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// A text with the box of its outlines.
struct DrawnText {
    words: String,
    place: Rect,
}

/// Adds the texts of a group and of the groups in it.
fn collect_texts(group: &Group, texts: &mut Vec<DrawnText>) {
    for node in group.children() {
        match node {
            Node::Group(inner) => collect_texts(inner, texts),
            Node::Text(text) => {
                let words = text.chunks().iter().map(|chunk| chunk.text()).collect();
                let outlines = text.flattened().layer_bounding_box().to_rect();
                // The outlines are in the units of the text.
                let place = outlines.transform(text.abs_transform()).unwrap();
                texts.push(DrawnText { words, place });
            }
            _ => {}
        }
    }
}

/// What is wrong with the texts of a drawing: each text that leaves it, and each pair that overlaps.
fn faults(svg: &str) -> Vec<String> {
    let options = Options { fontdb: Arc::clone(&FONTS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).unwrap();
    let (wide, high) = (tree.size().width(), tree.size().height());
    let mut texts = Vec::new();
    collect_texts(tree.root(), &mut texts);
    let mut faults = Vec::new();
    for (i, DrawnText { words, place }) in texts.iter().enumerate() {
        let is_inside = place.left() >= 0.0
            && place.top() >= 0.0
            && place.right() <= wide
            && place.bottom() <= high;
        if !is_inside {
            faults.push(format!("\"{words}\" leaves the drawing: {place:?}"));
        }
        let touches = |other: &&DrawnText| {
            let across =
                place.right().min(other.place.right()) - place.left().max(other.place.left());
            let down =
                place.bottom().min(other.place.bottom()) - place.top().max(other.place.top());
            across > TOUCHING && down > TOUCHING
        };
        let touched = texts[i + 1..].iter().filter(touches);
        faults.extend(touched.map(|other| format!("\"{words}\" touches \"{}\"", other.words)));
    }
    faults
}

/// A figure of so many panels with a curve through these values each.
fn figure(count: usize, x: &str, values: &[f64]) -> Figure {
    let points = values.iter().enumerate();
    let points: Vec<Point> = points.map(|(i, y)| Point::bare(9e4 * i as f64, *y)).collect();
    let style = Style::solid(Color::of_family(0));
    let curve = || Series::new(Line::Measured(Curve::new("FedAvg", style)), points.clone());
    let panel = |i: usize| Panel { title: format!("H = {i}"), series: vec![curve()] };
    let plot = Plot {
        panels: (0..count).map(panel).collect(),
        legend: Vec::new(),
        x: x.into(),
        y: "‖θ − θ*‖²".into(),
        scale_x: Scale::Linear,
        scale_y: Scale::Log,
        labels: CurveValue::last(Scale::Log),
    };
    Figure::plain("texts".into(), "Texts".into(), String::new(), 5, Body::Plot(plot))
}

#[test]
fn texts_are_whole_where_numbers_are_long_and_panels_narrow() {
    let ranges: [&[f64]; 4] =
        [&[1.4e-3, 1.6e-3], &[1.23e-12, 1.29e-12], &[1e-30, 1e30], &[0.31, 0.32]];
    for title in [
        "γ",
        "factor above the smallest error",
        "price of a communication, in gradients of a client",
    ] {
        for (count, width) in [(1, 312), (2, 312), (1, PAGE), (2, 648), (5, PAGE)] {
            for values in ranges {
                let svg = chart::svg(&figure(count, title, values), width).unwrap();
                let found = faults(&svg);
                assert!(found.is_empty(), "{title}, {count} panels, {width} px: {found:#?}");
            }
        }
    }
}

#[test]
fn texts_of_published_drawings_are_whole() {
    let mut files = files_below(&root().join("reports"));
    files.retain(|file| file.extension().is_some_and(|end| end == "svg"));
    assert!(files.len() > 200, "{} drawings", files.len());
    let found = files.par_iter().flat_map_iter(|file| {
        let svg = std::fs::read_to_string(file).unwrap();
        faults(&svg).into_iter().map(|fault| format!("{}: {fault}", file.display()))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{found:#?}");
}
