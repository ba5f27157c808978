//! Texts that are made to fit in a width: by smaller letters, then by a second line.

use super::font;

/// How a text may be made to fit.
pub struct FittedText {
    /// The smallest size of letters.
    pub smallest: u32,
    /// The largest size of letters.
    pub largest: u32,
    /// A second line begins after one of these.
    pub separator: &'static str,
    pub bold: bool,
}

/// A text in one line or two.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLines {
    pub lines: Vec<String>,
    /// The size of the letters.
    pub size: f64,
}

impl FittedText {
    /// The text in letters and lines that fit in `room` pixels. It stays too wide where even the
    /// smallest letters do not fit in two lines.
    pub fn fit(&self, text: &str, room: f64) -> FittedLines {
        let filling = room / font::width(text, 1.0, self.bold);
        let size = filling.clamp(f64::from(self.smallest), f64::from(self.largest)).floor();
        let parts: Vec<&str> = text.split_inclusive(self.separator).collect();
        let width = |parts: &[&str]| font::width(parts.concat().trim_end(), size, self.bold);
        let longest = |cut: usize| width(&parts[..cut]).max(width(&parts[cut..]));
        let best_cut = (1..parts.len()).min_by(|a, b| longest(*a).total_cmp(&longest(*b)));
        let lines = match best_cut {
            Some(cut) if width(&parts) > room => {
                vec![parts[..cut].concat(), parts[cut..].concat()]
            }
            _ => vec![text.to_owned()],
        };
        FittedLines { lines, size }
    }
}
