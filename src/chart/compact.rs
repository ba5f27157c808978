//! The output of plotters in fewer characters: an attribute that has its default is omitted, and
//! neighbouring shapes of one style are one path with relative coordinates. Drawings are under
//! version control, and most of them is coordinates.
//!
//! *Invariant*: every point of every shape stays where plotters drew it, in the same order.

use std::fmt::Write;

/// Attributes that change nothing: shapes are opaque by default, and texts inherit the family of the
/// whole drawing.
const DEFAULTS: [&str; 2] = [" opacity=\"1\"", " font-family=\"sans-serif\""];

/// The inside of a drawing by plotters, which writes one element per line.
pub fn compact(svg: &str) -> String {
    let mut elements: Vec<String> = Vec::new();
    let mut last: Option<PlottedShape> = None;
    for line in svg.lines() {
        let mut element = line.to_owned();
        // Other lines are texts.
        if line.starts_with('<') {
            for default in DEFAULTS {
                element = element.replace(default, "");
            }
        }
        let Some(shape) = PlottedShape::parse(&element) else {
            elements.extend(last.take().map(|shape| shape.element()));
            elements.push(element);
            continue;
        };
        match &mut last {
            Some(last) if last.can_take(&shape) => last.path.push_str(&shape.path),
            _ => elements.extend(last.replace(shape).map(|shape| shape.element())),
        }
    }
    elements.extend(last.map(|shape| shape.element()));
    elements.join("\n")
}

/// A polygon or a line through points, or several of one style.
struct PlottedShape {
    /// The attributes of its style.
    style: String,
    /// The commands that draw it.
    path: String,
}

impl PlottedShape {
    /// The shape of an element; `None` if the element is none.
    fn parse(element: &str) -> Option<Self> {
        let (name, rest) = element.strip_prefix('<')?.split_once(' ')?;
        let end = match name {
            "polygon" => "z",
            "polyline" => "",
            _ => return None,
        };
        let (style, points) = rest.strip_suffix("\"/>")?.split_once(" points=\"")?;
        let mut path = PathCommands::default();
        for point in points.split_whitespace() {
            let (x, y) = point.split_once(',')?;
            path.add(x.parse().ok()?, y.parse().ok()?);
        }
        Some(Self { style: style.to_owned(), path: path.commands + end })
    }

    /// Whether another shape may be drawn by the same element. Where translucent shapes overlap, two
    /// are darker than one.
    fn can_take(&self, other: &Self) -> bool {
        self.style == other.style && !self.style.contains("opacity")
    }

    fn element(&self) -> String {
        format!("<path {} d=\"{}\"/>", self.style, self.path)
    }
}

/// The commands of a path, whose first point is absolute and whose others are relative.
#[derive(Default)]
struct PathCommands {
    commands: String,
    /// The number of points.
    count: usize,
    /// The last point.
    x: i32,
    y: i32,
}

impl PathCommands {
    fn add(&mut self, x: i32, y: i32) {
        match self.count {
            0 => self.commands.push('M'),
            1 => self.commands.push('l'),
            _ => {}
        }
        self.add_number(x - self.x);
        self.add_number(y - self.y);
        self.count += 1;
        self.x = x;
        self.y = y;
    }

    /// A sign or a command separates numbers as a space does.
    fn add_number(&mut self, number: i32) {
        if number >= 0 && self.commands.ends_with(|last: char| last.is_ascii_digit()) {
            self.commands.push(' ');
        }
        let _ = write!(self.commands, "{number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_style_are_one_path() {
        let svg = [
            "<polyline fill=\"none\" opacity=\"1\" stroke=\"#0072B2\" points=\"1,2 4,1 4,0 \"/>",
            "<polyline fill=\"none\" opacity=\"1\" stroke=\"#0072B2\" points=\"-7,2 \"/>",
            "<polygon opacity=\"1\" fill=\"#0072B2\" points=\"0,0 10,0 10,10 \"/>",
            "<text x=\"1\" font-family=\"sans-serif\" opacity=\"1\" fill=\"#3C3C3C\">",
            "not opacity=\"1\"",
            "</text>",
            "<polygon opacity=\"0.16\" fill=\"#0072B2\" points=\"1,1 2,2 \"/>",
            "<polygon opacity=\"0.16\" fill=\"#0072B2\" points=\"1,1 2,2 \"/>",
        ];
        let expected = [
            "<path fill=\"none\" stroke=\"#0072B2\" d=\"M1 2l3-1 0-1M-7 2\"/>",
            "<path fill=\"#0072B2\" d=\"M0 0l10 0 0 10z\"/>",
            "<text x=\"1\" fill=\"#3C3C3C\">",
            "not opacity=\"1\"",
            "</text>",
            "<path opacity=\"0.16\" fill=\"#0072B2\" d=\"M1 1l1 1z\"/>",
            "<path opacity=\"0.16\" fill=\"#0072B2\" d=\"M1 1l1 1z\"/>",
        ];
        assert_eq!(compact(&svg.join("\n")), expected.join("\n"));
    }
}
