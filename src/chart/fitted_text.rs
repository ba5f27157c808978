//! Texts that are made to fit in a width: by smaller letters, then by a second line.

use super::font::{self, FontWeight};

/// How a text may be made to fit in a width.
pub struct FittedText {
    /// The smallest size of letters in pixels.
    pub smallest: u32,
    /// The largest size of letters in pixels.
    pub largest: u32,
    /// The text between two lines: a second line may begin after each occurrence.
    pub separator: &'static str,
    /// The weight of the letters.
    pub weight: FontWeight,
}

/// A text that was made to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLines {
    /// One line or two, which together are the whole text.
    pub lines: Vec<String>,
    /// The size of the letters in pixels.
    pub size: f64,
}

impl FittedText {
    /// The text in letters and lines that fit in `room` pixels: the largest letters with which it fits in one line,
    /// or else the smallest ones in two lines, parted where the longer line is shortest. It stays too wide where even
    /// two lines do not fit, or where there is no separator.
    pub fn fit(&self, text: &str, room: f64) -> FittedLines {
        // The size at which one line would fill the room.
        let filling = room / font::width(text, 1.0, self.weight);
        let size = filling.clamp(f64::from(self.smallest), f64::from(self.largest)).floor();
        let parts: Vec<&str> = text.split_inclusive(self.separator).collect();
        let width = |parts: &[&str]| font::width(parts.concat().trim_end(), size, self.weight);
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
