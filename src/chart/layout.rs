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

/// The width of a drawing in pixels from which on other panels stand at the right of a large one.
const WIDE: u32 = 700;

/// The most panels that have room at the right of a large one.
const MOST_BESIDE: usize = 3;

/// Where a panel with its title is in a drawing, in pixels from its left and upper edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelArea {
    /// The left edge.
    pub x: u32,
    /// The upper edge of the title.
    pub y: u32,
    /// The width of the panel.
    pub wide: u32,
    /// The height of the panel without the title.
    pub high: u32,
    /// Whether it is the large panel, or the only one.
    pub is_large: bool,
}

/// Where the panels of a drawing are.
pub struct PanelLayout {
    /// The areas of all panels in their order.
    pub areas: Vec<PanelArea>,
    /// The height of the drawing in pixels.
    pub height: u32,
}

impl PanelLayout {
    /// The places of the panels of a figure in a drawing of this width in pixels. A panel that is alone is large. A
    /// large panel that the figure does not have counts as none.
    pub fn new(figure: &Figure, width: u32) -> Self {
        let count = figure.body.panels();
        let only = if count == 1 { Some(0) } else { None };
        let Some(large) = figure.large.or(only).filter(|large| *large < count) else {
            return Self::rows(count, figure.columns, width, 0);
        };
        if width >= WIDE && count > 1 && count <= MOST_BESIDE + 1 {
            Self::large_at_left(count, large, width)
        } else if count == 1 && is_dense(&figure.body) {
            let high = (width / 2).clamp(300, 480);
            let area = PanelArea { x: 0, y: 0, wide: width, high, is_large: true };
            Self { areas: vec![area], height: TITLE + high }
        } else {
            Self::large_above(count, large, figure.columns, width)
        }
    }

    /// Places `count` panels, two at least: the one with the index `large` at the left over the whole height, and the
    /// others at its right, one below the other.
    fn large_at_left(count: usize, large: usize, width: u32) -> Self {
        let wide = (width - GAP) * 16 / 25;
        let narrow = width - GAP - wide;
        let others = count as u32 - 1;
        // The height of each other panel with its title: all have 470 pixels, unless each then has too few.
        let each = (470 / others).max(150);
        let height = each * others;
        let mut areas = Vec::new();
        let mut y = 0;
        for i in 0..count {
            if i == large {
                let high = height - TITLE;
                areas.push(PanelArea { x: 0, y: 0, wide, high, is_large: true });
                continue;
            }
            let high = each - TITLE;
            areas.push(PanelArea { x: wide + GAP, y, wide: narrow, high, is_large: false });
            y += each;
        }
        Self { areas, height }
    }

    /// Places `count` panels, one at least: the one with the index `large` in full width at the top, and the others
    /// below it in rows of `columns` panels.
    fn large_above(count: usize, large: usize, columns: usize, width: u32) -> Self {
        let high = (width * 9 / 25).clamp(260, 420);
        let top = PanelArea { x: 0, y: 0, wide: width, high, is_large: true };
        if count == 1 {
            return Self { areas: vec![top], height: TITLE + high };
        }
        let mut layout = Self::rows(count - 1, columns, width, TITLE + high + GAP);
        layout.areas.insert(large, top);
        layout
    }

    /// Places `count` panels of equal size in rows, the first of which begins at the height `top`. A row has
    /// `columns` panels, or fewer where the drawing is too narrow for them.
    fn rows(count: usize, columns: usize, width: u32, top: u32) -> Self {
        // A panel and the space next to it take at least 185 pixels, unless the panel is alone in its row.
        let most = (width / 185).max(1) as usize;
        let columns = columns.clamp(1, most).min(count.max(1)) as u32;
        let wide = (width - GAP * (columns - 1)) / columns;
        let high = (wide * 3 / 5).clamp(170, 380);
        let each = TITLE + high + GAP;
        let mut areas = Vec::new();
        for i in 0..count as u32 {
            let x = i % columns * (wide + GAP);
            let y = top + i / columns * each;
            areas.push(PanelArea { x, y, wide, high, is_large: false });
        }
        Self { areas, height: top + (count as u32).div_ceil(columns) * each }
    }
}

/// Whether some map of a figure has so many squares that they have no texts. Such a map, if it is alone, is higher than
/// another.
fn is_dense(body: &Body) -> bool {
    match body {
        Body::Maps(maps) => maps.maps.iter().any(|map| map.dense.is_some()),
        Body::Plot(_) => false,
    }
}
