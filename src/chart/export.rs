//! Drawings as PDF, PNG and SVG, for papers and slides: the only user of usvg, svg2pdf, resvg and png.
//!
//! Text becomes outlines of the font in [`super::font`], so that the files do not depend on the
//! fonts of a machine. An SVG must carry its looks in attributes or plain style sheets: variables
//! and queries of style sheets (`var()`, `@media`) are not known here.

use super::figure::DrawError;
use super::font;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree, WriteOptions};
use std::sync::{Arc, LazyLock};
use thiserror::Error;

/// Width of one column of a paper of two columns, in inches.
pub const COLUMN: f64 = 3.25;
/// Width of the text of such a paper in inches: two columns and the space between them.
pub const TEXT: f64 = 6.75;
/// Pixels per inch of a drawing, as in style sheets.
const DRAWN: f64 = 96.0;
/// Pixels below which a drawing has no room for its labels; narrower figures are scaled.
const NARROWEST: f64 = 300.0;
/// Pixels per inch of a PNG.
const RESOLUTION: f64 = 300.0;
/// The most pixels of a PNG: 400 MB of memory.
const MOST_PIXELS: f64 = 1e8;

/// The bundled font under every generic name, so that each name in a drawing ends there.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    for bytes in font::FILES.iter() {
        fonts.load_font_source(Source::Binary(Arc::new(*bytes)));
    }
    fonts.set_sans_serif_family(font::FAMILY);
    fonts.set_serif_family(font::FAMILY);
    fonts.set_monospace_family(font::FAMILY);
    Arc::new(fonts)
});

/// The width in pixels at which to draw a figure that will be `inches` wide on paper. A narrow figure is drawn wider,
/// with room for its labels, and scaled when it is exported.
pub fn pixels(inches: f64) -> u32 {
    (inches * DRAWN).round().max(NARROWEST) as u32
}

/// Why a figure is not exported for papers.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The figure cannot be drawn.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// The drawing is no SVG.
    #[error(transparent)]
    Svg(#[from] resvg::usvg::Error),
    /// The drawing cannot be converted to PDF.
    #[error("{0}")]
    Pdf(svg2pdf::ConversionError),
    /// The image cannot be encoded as PNG.
    #[error(transparent)]
    Png(#[from] png::EncodingError),
    /// The image would have too many pixels.
    #[error("an image of {wide} × {high} pixels is too large: choose a smaller width, or PDF")]
    TooLarge {
        /// Its width in pixels.
        wide: f64,
        /// Its height in pixels.
        high: f64,
    },
}

/// A drawing whose text is outlines, from which files for papers are made.
pub struct Outlines(Tree);

impl Outlines {
    /// Reads the text of an SVG file, and replaces its texts by the outlines of their letters in the bundled font.
    ///
    /// # Errors
    /// If it is no SVG.
    pub fn new(svg: &str) -> Result<Self, ExportError> {
        let options = Options {
            font_family: font::FAMILY.into(),
            fontdb: Arc::clone(&FONTS),
            ..Options::default()
        };
        let drawing = Tree::from_str(svg, &options)?;
        // With text in it, svg2pdf would embed subsets of the fonts, by crates that add 4 MB to the
        // program.
        let without_text = outlined(&drawing);
        Ok(Self(Tree::from_str(&without_text, &options)?))
    }

    /// The bytes of an SVG file of this width in inches; the height keeps the proportions of the drawing.
    ///
    /// # Errors
    /// None: the result is as that of [`pdf`](Self::pdf) and [`png`](Self::png), so that an export calls any of the
    /// three.
    pub fn svg(&self, inches: f64) -> Result<Vec<u8>, ExportError> {
        let wide = self.width();
        let high = self.height();
        let tall = inches * high / wide;
        let inner = outlined(&self.0);
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{inches}in\" height=\"{tall}in\" viewBox=\"0 0 {wide} {high}\">"
        );
        Ok(format!("{head}\n{inner}</svg>\n").into_bytes())
    }

    /// The width of the drawing in pixels.
    fn width(&self) -> f64 {
        f64::from(self.0.size().width())
    }

    /// The height of the drawing in pixels.
    fn height(&self) -> f64 {
        f64::from(self.0.size().height())
    }

    /// The bytes of a PDF file of one page of this width in inches, which are the same in every call.
    ///
    /// # Errors
    /// If the drawing cannot be converted.
    pub fn pdf(&self, inches: f64) -> Result<Vec<u8>, ExportError> {
        let dpi = (self.width() / inches) as f32;
        let page = svg2pdf::PageOptions { dpi };
        let mut file = svg2pdf::to_pdf(&self.0, svg2pdf::ConversionOptions::default(), page)
            .map_err(ExportError::Pdf)?;
        sort_resources(&mut file);
        Ok(file)
    }

    /// The bytes of a PNG file of this width in inches, at 300 pixels per inch on white.
    ///
    /// # Errors
    /// If the image is too large.
    pub fn png(&self, inches: f64) -> Result<Vec<u8>, ExportError> {
        let wide = (inches * RESOLUTION).round();
        let scale = wide / self.width();
        let high = (self.height() * scale).round().max(1.0);
        let too_large = ExportError::TooLarge { wide, high };
        if wide * high > MOST_PIXELS {
            return Err(too_large);
        }
        let mut image = Pixmap::new(wide as u32, high as u32).ok_or(too_large)?;
        image.fill(Color::WHITE);
        let scale = scale as f32;
        resvg::render(&self.0, Transform::from_scale(scale, scale), &mut image.as_mut());
        Ok(encode(&image)?)
    }
}

/// The dictionaries of a PDF that name what the page and the drawings in it use.
const RESOURCES: [&str; 6] =
    ["/XObject", "/Pattern", "/ExtGState", "/Shading", "/Font", "/ColorSpace"];

/// Sorts the entries of the dictionaries of [`RESOURCES`] in the bytes of a PDF that svg2pdf wrote. Svg2pdf keeps
/// them in a hash map: their order, and with it the bytes of the file, would differ from call to call.
///
/// pdf-writer puts each entry on a line of its own. Lines that change places leave every object
/// where it is, so that the table of objects at the end of the file stays correct.
fn sort_resources(file: &mut [u8]) {
    let mut start = 0;
    // The number of bytes of the stream that follows, once it was read.
    let mut length = None;
    // Where the first entry of the dictionary of resources begins that is being read.
    let mut entries: Option<usize> = None;
    while start < file.len() {
        let line_length = file[start..].iter().position(|byte| *byte == b'\n');
        let next = line_length.map_or(file.len(), |length| start + length + 1);
        let line = String::from_utf8_lossy(&file[start..next]).trim().to_owned();
        let mut end = next;
        if line == ">>" {
            if let Some(first) = entries.take() {
                sort_lines(&mut file[first..start]);
            }
        } else if let Some(name) = line.strip_suffix(" <<") {
            entries = RESOURCES.contains(&name).then_some(next);
        } else if let Some(bytes) = line.strip_prefix("/Length ") {
            length = bytes.parse().ok();
        } else if line == "stream" {
            // Skips compressed bytes, which may look like anything.
            end += length.take().unwrap_or(0);
        }
        start = end;
    }
}

/// Sorts the lines of a piece of a file in place, each with its line end.
fn sort_lines(lines: &mut [u8]) {
    let mut sorted: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    sorted.sort_unstable();
    let sorted = sorted.concat();
    lines.copy_from_slice(&sorted);
}

/// The SVG text of a drawing, in which letters are outlines, with coordinates of three decimals.
fn outlined(drawing: &Tree) -> String {
    let precision = WriteOptions { coordinates_precision: 3, ..WriteOptions::default() };
    drawing.to_string(&WriteOptions { preserve_text: false, ..precision })
}

/// The bytes of a PNG file of an opaque image. The file records [`RESOLUTION`], in pixels per metre, so that programs
/// show the image at its size.
fn encode(image: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width(), image.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // Figures are areas of one colour: filters or the fast compression would make files several times larger.
    encoder.set_compression(png::Compression::Default);
    encoder.set_filter(png::FilterType::NoFilter);
    let per_metre = (RESOLUTION / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let mut bytes: Vec<u8> = Vec::with_capacity(3 * image.pixels().len());
    for pixel in image.pixels() {
        bytes.extend([pixel.red(), pixel.green(), pixel.blue()]);
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&bytes)?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points per inch.
    const POINTS: f64 = 72.0;
    const SVG: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="650" height="400" viewBox="0 0 650 400"><rect width="650" height="400" fill="#ffffff"/><text x="20" y="200" font-family="system-ui, sans-serif" font-size="100">θ̄‖⁻⁴✓</text></svg>"##;

    /// The four numbers of the page box of a PDF of one page: its left, lower, right and upper edge in points.
    fn page_box(pdf: &[u8]) -> Vec<f64> {
        let text = String::from_utf8_lossy(pdf);
        assert!(text.starts_with("%PDF-"), "{}", &text[..20]);
        let boxes: Vec<&str> = text.split("/MediaBox [").skip(1).collect();
        assert_eq!(boxes.len(), 1, "one page");
        let numbers = boxes[0].split(']').next().unwrap().split_whitespace();
        numbers.map(|number| number.parse().unwrap()).collect()
    }

    #[test]
    fn a_pdf_has_one_page_of_the_width() {
        let drawing = Outlines::new(SVG).unwrap();
        for inches in [COLUMN, TEXT] {
            let pdf = drawing.pdf(inches).unwrap();
            let expected = [0.0, 0.0, inches * POINTS, inches * POINTS * 400.0 / 650.0];
            let apart = page_box(&pdf).into_iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 0.01, "{:?}", page_box(&pdf));
            assert_eq!(pdf, Outlines::new(SVG).unwrap().pdf(inches).unwrap());
        }
    }

    /// A drawing with many resources, which svg2pdf would write in any order: each group has an opacity of its own and
    /// a gradient.
    fn many_resources() -> String {
        let group = |i: usize| {
            format!(
                r##"<linearGradient id="g{i}"><stop stop-color="#ff0000"/><stop offset="1" stop-color="#0000{i:02}"/></linearGradient><g opacity="0.{i:02}"><rect x="{i}" y="1" width="9" height="9" fill="url(#g{i})"/><path d="M0 0 L{i} 9" stroke="#000"/></g>"##
            )
        };
        let groups: String = (10..40).map(group).collect();
        format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99">{groups}</svg>"#)
    }

    /// The orders of 30 resources in a hash map differ even in one process.
    #[test]
    fn a_pdf_has_the_same_bytes_each_time() {
        let svg = many_resources();
        let write = || Outlines::new(&svg).unwrap().pdf(COLUMN).unwrap();
        let first = write();
        let text = String::from_utf8_lossy(&first);
        assert!(text.contains("/gs9 ") && text.contains("/xo9 "), "the drawing has few resources");
        for _ in 0..5 {
            assert!(write() == first, "the bytes differ");
        }
    }

    /// Every entry of the table of objects leads to an object, with its number.
    #[test]
    fn the_objects_of_a_pdf_are_where_its_table_says() {
        let file = Outlines::new(&many_resources()).unwrap().pdf(COLUMN).unwrap();
        let text = String::from_utf8_lossy(&file);
        let (_, table) = text.rsplit_once("\nxref\n").unwrap();
        let entries = table.lines().skip(1).take_while(|line| !line.starts_with("trailer"));
        let mut objects = 0;
        for (number, entry) in
            entries.enumerate().filter(|(_, entry)| entry.trim_end().ends_with('n'))
        {
            let offset: usize = entry[..10].parse().unwrap();
            let object = format!("{number} 0 obj\n");
            assert!(file[offset..].starts_with(object.as_bytes()), "object {number}");
            objects += 1;
        }
        assert!(objects > 60, "{objects}");
    }

    #[test]
    fn a_png_has_the_width_and_records_its_resolution() {
        let drawing = Outlines::new(SVG).unwrap();
        let file = drawing.png(COLUMN).unwrap();
        assert_eq!(file, Outlines::new(SVG).unwrap().png(COLUMN).unwrap());
        let mut reader = png::Decoder::new(file.as_slice()).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (975, 600));
        assert_eq!(reader.info().pixel_dims.unwrap().xppu, 11811);
        let mut pixels = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut pixels).unwrap();
        let dark = pixels.chunks(3).filter(|pixel| pixel.iter().all(|v| *v < 64)).count();
        assert!((5_000..200_000).contains(&dark), "{dark} dark pixels: is the text there?");
        assert_eq!(pixels[..3], [255, 255, 255]);
    }

    #[test]
    fn an_svg_has_the_width_and_no_text() {
        let file = Outlines::new(SVG).unwrap().svg(COLUMN).unwrap();
        let text = String::from_utf8(file).unwrap();
        let head = format!("width=\"{COLUMN}in\" height=\"2in\" viewBox=\"0 0 650 400\"");
        assert!(text.contains(&head) && !text.contains("<text"), "{}", &text[..200]);
        let again = Outlines::new(&text).unwrap();
        assert!((again.width() - COLUMN * DRAWN).abs() < 1e-3, "{}", again.width());
    }

    #[test]
    fn what_cannot_be_exported_is_refused() {
        assert!(Outlines::new("<p>no drawing</p>").is_err());
        let too_large = Outlines::new(SVG).unwrap().png(200.0).unwrap_err().to_string();
        assert!(too_large.contains("60000 × 36923 pixels"), "{too_large}");
    }
}
