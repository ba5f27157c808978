//! Where the panels of a drawing are.
//!
//! A large panel stands at the left with the others at its right, or above them if they are many;
//! other panels fill rows of equal widths. The page's script follows the same rules in the width
//! of its window.

use crate::evidence::{Body, Figure};

/// Width of a drawing for a page, in pixels: about that in which code hosts show documents, so that
/// text keeps its size there.
pub const PAGE: u32 = 960;

/// Height of a panel's title.
pub const TITLE: u32 = 20;

/// Space between panels.
const GAP: u32 = 14;

/// The width from which panels stand beside a large one.
const WIDE: u32 = 700;

/// Panels that have room beside a large one.
const MOST_BESIDE: usize = 3;

/// A panel with its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelArea {
    pub x: u32,
    pub y: u32,
    pub wide: u32,
    /// Height without the title.
    pub high: u32,
    /// Whether it is the large panel, or the only one.
    pub is_large: bool,
}

/// The places of all panels of a figure, and the height of the drawing.
pub fn places(figure: &Figure, width: u32) -> (Vec<PanelArea>, u32) {
    let count = figure.body.panels();
    let only = (count == 1).then_some(0);
    let is_dense =
        matches!(&figure.body, Body::Maps(all) if all.maps.iter().any(|map| map.dense.is_some()));
    match figure.large.or(only).filter(|large| *large < count) {
        Some(large) if width >= WIDE && count > 1 && count <= MOST_BESIDE + 1 => {
            large_at_left(count, large, width)
        }
        Some(_) if count == 1 && is_dense => {
            let high = (width / 2).clamp(300, 480);
            (vec![PanelArea { x: 0, y: 0, wide: width, high, is_large: true }], TITLE + high)
        }
        Some(large) => large_above(count, large, figure.columns, width),
        None => rows(count, figure.columns, width, 0),
    }
}

/// A large panel at the left of the others.
fn large_at_left(count: usize, large: usize, width: u32) -> (Vec<PanelArea>, u32) {
    let (wide, others) = ((width - GAP) * 16 / 25, count as u32 - 1);
    let each = (470 / others).max(150);
    let total = each * others;
    let narrow = width - GAP - wide;
    let place = |i: usize| match i {
        i if i == large => PanelArea { x: 0, y: 0, wide, high: total - TITLE, is_large: true },
        i => {
            let y = each * (i as u32 - u32::from(i > large));
            PanelArea { x: wide + GAP, y, wide: narrow, high: each - TITLE, is_large: false }
        }
    };
    ((0..count).map(place).collect(), total)
}

/// A large panel in full width above the others.
fn large_above(count: usize, large: usize, columns: usize, width: u32) -> (Vec<PanelArea>, u32) {
    let high = (width * 9 / 25).clamp(260, 420);
    let top = PanelArea { x: 0, y: 0, wide: width, high, is_large: true };
    if count == 1 {
        return (vec![top], TITLE + high);
    }
    let (mut all, end) = rows(count - 1, columns, width, TITLE + high + GAP);
    all.insert(large, top);
    (all, end)
}

/// Panels in rows of equal widths, from `top` on.
fn rows(count: usize, columns: usize, width: u32, top: u32) -> (Vec<PanelArea>, u32) {
    let most = (width / 185).max(1) as usize;
    let columns = columns.clamp(1, most).min(count.max(1)) as u32;
    let wide = (width - GAP * (columns - 1)) / columns;
    let high = (wide * 3 / 5).clamp(170, 380);
    let each = TITLE + high + GAP;
    let place = |i: u32| {
        let (column, row) = (i % columns, i / columns);
        PanelArea { x: column * (wide + GAP), y: top + row * each, wide, high, is_large: false }
    };
    let end = top + (count as u32).div_ceil(columns) * each;
    ((0..count as u32).map(place).collect(), end)
}
