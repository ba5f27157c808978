//! The formats of reports.

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pages for a browser.
    Html,
    /// Pages for a code host.
    Md,
    /// Tables for a paper.
    Latex,
    /// Figures, as outlines.
    Pdf,
    /// Figures, as images.
    Png,
    /// Figures of the width of a paper, as outlines.
    Svg,
}

impl Format {
    /// All formats with their names.
    pub const ALL: [(Self, &str); 6] = [
        (Self::Html, "html"),
        (Self::Md, "md"),
        (Self::Latex, "latex"),
        (Self::Pdf, "pdf"),
        (Self::Png, "png"),
        (Self::Svg, "svg"),
    ];

    /// Whether it is a format of figures for papers, whose width a user may choose.
    pub fn has_width(self) -> bool {
        matches!(self, Self::Pdf | Self::Png | Self::Svg)
    }

    /// The format of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(format, _)| format)
    }
}
