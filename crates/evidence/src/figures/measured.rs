//! The points that figures show of cells: means of samples, and the bands around them.
//!
//! *Invariant*: a band is computed here and nowhere else. Drawings, CSV files and Python take the
//! points of a figure. The data of a page have the ends of every band that a reader may choose, so
//! that its script computes none.

use crate::cells::CellResult;
use crate::cells::mean_limits::mean_limits;
use crate::scene::figure::{Band, Point, XAxis};
use crate::stats::{geometric_mean, mean, quantile, standard_deviation, student_95};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::quantity::Shortfall;

/// The samples of a quantity that a figure shows of a cell.
pub struct MeasuredSamples {
    /// The quantity of which they are.
    quantity: Quantity,
    /// A sample for each recorded round up to the first divergence, or the sample of the last round.
    samples: Vec<Vec<f64>>,
    /// Whether a sample has a number for each of several instances of the problem.
    is_over_instances: bool,
}

impl MeasuredSamples {
    /// Takes from the runs of a cell the samples of the quantity `y` that a figure with the x axis `x` shows: of
    /// every recorded round, if its column was read ([`CellResult::samples`]), or of the last round alone if the whole
    /// cell is a point. There are none of a last round before which a run diverged.
    pub fn new(cell: &CellResult<'_>, x: &XAxis, y: Quantity) -> Self {
        let samples = match x {
            XAxis::Rounds(_) => cell.samples(y),
            XAxis::Cells(_) => cell.runs.finals(y).into_iter().collect(),
        };
        Self { quantity: y, samples, is_over_instances: cell.is_over_instances() }
    }

    /// The means of the samples as points at these places on the x axis, a place per sample, with a band around each.
    pub fn points(&self, places: &[f64], band: Band) -> Vec<Point> {
        let mut points = Vec::with_capacity(self.samples.len());
        for (x, sample) in places.iter().zip(&self.samples) {
            let mut point = point(*x, sample, self.quantity, band);
            if self.is_over_instances {
                point.geometric = geometric_mean(sample);
            }
            points.push(point);
        }
        points
    }
}

/// The places of a cell's points on an x axis: of every recorded round, up to the first divergence, the mean cost of
/// its runs; or one place, which is none if the cell has no such setting or quantity.
pub fn places(cell: &CellResult<'_>, x: &XAxis) -> Vec<f64> {
    match x {
        XAxis::Rounds(cost) => cell.samples(*cost).iter().map(|sample| mean(sample)).collect(),
        XAxis::Cells(name) => x_value(cell, name).into_iter().collect(),
    }
}

/// The points that a figure with these axes shows of a cell, with a band around each: one per round, or at most one
/// of the last round.
pub fn points(cell: &CellResult<'_>, x: &XAxis, y: Quantity, band: Band) -> Vec<Point> {
    MeasuredSamples::new(cell, x, y).points(&places(cell, x), band)
}

/// The value of a cell on an x axis of this name: its setting, or if no setting has the name the mean of the quantity
/// at the last round. `None` if the setting is a text, or if there is no such quantity, or a run diverged.
pub fn x_value(cell: &CellResult<'_>, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name) {
        Some(setting) => setting.number(),
        None => Some(mean(&cell.runs.finals(Quantity::named(name)?)?)),
    }
}

/// A point at the place `x`: the mean of a sample of a quantity, with a band around it.
pub fn point(x: f64, sample: &[f64], quantity: Quantity, band: Band) -> Point {
    let (low, high) = band_ends(sample, quantity, band);
    Point { x, y: mean(sample), geometric: f64::NAN, low, high, n: sample.len() }
}

/// The 95 % interval of the mean of a sample, by Student's t on the logarithm; of a mean that is not positive, which
/// has no logarithm, on the mean itself.
pub fn student_limits(sample: &[f64]) -> (f64, f64) {
    let mean = mean(sample);
    let standard_error = standard_deviation(sample) / (sample.len() as f64).sqrt();
    let half = student_95(sample.len()) * standard_error;
    if mean > 0.0 {
        // The band of a positive mean is positive.
        (mean * libm::exp(-half / mean), mean * libm::exp(half / mean))
    } else {
        (mean - half, mean + half)
    }
}

/// The lower and upper end of a band around the mean of a sample of a quantity; NaN for no band.
fn band_ends(sample: &[f64], quantity: Quantity, band: Band) -> (f64, f64) {
    let mean = mean(sample);
    let sd = standard_deviation(sample);
    let standard_error = sd / (sample.len() as f64).sqrt();
    match band {
        Band::Std => (mean - sd, mean + sd),
        Band::Sem => (mean - standard_error, mean + standard_error),
        Band::Ci95 => mean_limits(quantity, sample, student_limits),
        Band::Quantiles => (quantile(sample, 0.1), quantile(sample, 0.9)),
        Band::None => (f64::NAN, f64::NAN),
    }
}

/// The bands among which a reader of a page may choose in a figure for which the manifest asks for the band `own`. The
/// standard error is offered only where the manifest asks for it.
pub fn offered_bands(own: Band) -> Vec<Band> {
    let all = [Band::Std, Band::Sem, Band::Ci95, Band::Quantiles].into_iter();
    all.filter(|band| *band != Band::Sem || own == Band::Sem).collect()
}

/// What a band around means of a quantity shows, in the words of a caption, such as `band: 10 % to 90 % quantile`. A
/// page looks for these words in the first sentence of the caption (`templates/figure.html`), and its script replaces
/// them when a reader chooses another band: they must not contain `. `, which ends the sentence. The script has words of
/// its own for the bands (`BANDS` in `templates/scripts/data.js`).
pub fn band_name(band: Band, quantity: Quantity) -> String {
    let words = match band {
        Band::Std => "band: mean ± standard deviation",
        Band::Sem => "band: mean ± standard error",
        Band::Ci95 => {
            let skewed = "for skewed errors the tables' intervals are wider";
            let logarithm = match quantity.info().shortfall {
                Some(Shortfall { largest, name, .. }) => {
                    format!(
                        "logarithm of the {name} ({largest} − {}; {skewed})",
                        quantity.formula()
                    )
                }
                None => format!("logarithm ({skewed})"),
            };
            return format!(
                "band: pointwise 95 % interval of the mean by Student's t on the {logarithm}"
            );
        }
        Band::Quantiles => "band: 10 % to 90 % quantile",
        Band::None => "no band",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_by_hand() {
        let sample = [1.0, 2.0, 3.0, 6.0];
        let ends = |band| {
            let point = point(0.0, &sample, Quantity::SqError, band);
            assert_eq!((point.y, point.n), (3.0, 4));
            (point.low, point.high)
        };
        let sd = (14.0_f64 / 3.0).sqrt();
        let near = |(low, high): (f64, f64), wanted: (f64, f64)| {
            assert!(
                (low - wanted.0).abs() < 1e-12 && (high - wanted.1).abs() < 1e-12,
                "{low} {high}"
            );
        };
        near(ends(Band::Std), (3.0 - sd, 3.0 + sd));
        near(ends(Band::Sem), (3.0 - sd / 2.0, 3.0 + sd / 2.0));
        near(ends(Band::Quantiles), (1.3, 5.1));
        // Student's 97.5 % quantile with three degrees of freedom.
        let half = 3.182_446_305_284_263 * sd / 2.0;
        let (low, high) = ends(Band::Ci95);
        assert!((libm::log(high / 3.0) - half / 3.0).abs() < 1e-9, "{low} {high}");
        assert!((low * high - 9.0).abs() < 1e-9);
        assert!(ends(Band::None).0.is_nan());
    }

    /// The band of accuracies is that of the error rates 0.2 and 0.4, and its caption says so.
    #[test]
    fn the_band_of_an_accuracy_is_below_1() {
        let point = point(0.0, &[0.8, 0.6], Quantity::Accuracy, Band::Ci95);
        // Student's 97.5 % quantile with one degree of freedom.
        let half = 12.706_204_736_174_7 * 0.1;
        assert!((1.0 - point.high - 0.3 * libm::exp(-half / 0.3)).abs() < 1e-9, "{}", point.high);
        assert_eq!(point.low, 0.0, "the error rate is not above 1");
        let name = band_name(Band::Ci95, Quantity::Accuracy);
        assert!(name.contains("logarithm of the error rate (1 − accuracy; for skewed"), "{name}");
        assert!(!name.contains(". "), "{name}");
    }

    #[test]
    fn the_standard_error_is_offered_where_it_is_asked_for() {
        assert_eq!(offered_bands(Band::None), [Band::Std, Band::Ci95, Band::Quantiles]);
        assert!(offered_bands(Band::Sem).contains(&Band::Sem));
    }
}
