//! The output of plotters in fewer characters: an attribute that has its default is omitted, and
//! neighbouring shapes of one style are one path with relative coordinates. Drawings are under
//! version control, and most of them is coordinates.
//!
//! *Invariant*: every point of every shape stays where plotters drew it, in the same order.

use std::fmt::Write;

/// Attributes that change nothing: shapes are opaque by default, and texts inherit the family of the
/// whole drawing.
const DEFAULTS: [&str; 2] = [" opacity=\"1\"", " font-family=\"sans-serif\""];

/// Shortens the inside of a drawing by plotters, which writes one element per line: leaves out attributes that have
/// their defaults, and joins neighbouring polygons and lines of one style to one path. Texts stay as they are.
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

/// A polygon or a line through points that plotters drew, or several of one style.
struct PlottedShape {
    /// The attributes of the element but its points, as SVG text.
    style: String,
    /// The commands of an SVG path that draw the shape.
    path: String,
}

impl PlottedShape {
    /// Reads the shape that an SVG element draws; `None` if the element is neither a polygon nor a polyline with whole
    /// coordinates.
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

    /// Whether one path element may draw this shape and the other: their style is the same, and opaque. Where
    /// translucent shapes overlap, two elements are darker than one.
    fn can_take(&self, other: &Self) -> bool {
        self.style == other.style && !self.style.contains("opacity")
    }

    /// The shape as an SVG path element.
    fn element(&self) -> String {
        format!("<path {} d=\"{}\"/>", self.style, self.path)
    }
}

/// The commands of an SVG path through points. The first point is absolute, and each other is relative to the one
/// before.
#[derive(Default)]
struct PathCommands {
    commands: String,
    /// The number of points so far.
    count: usize,
    /// The coordinates of the last point; 0 before the first.
    x: i32,
    y: i32,
}

impl PathCommands {
    /// Adds a line to this point, or begins the path at it.
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

    /// Adds a coordinate, after a space if it would otherwise run into the number before: a minus sign or a command
    /// separates numbers as well.
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
