//! An axis: the position of a value, and the values with tick labels.

use crate::evidence::Scale;
use exactfed_core::words::{number, power_of_ten};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::{Cartesian2d, ChartContext, SVGBackend};
use std::ops::Range;

/// A chart of plotters with these axes.
pub type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

/// An axis as plotters reads it: its ends and its ticks. Its values are positions on an [`Axis`], so that plotters
/// knows of no logarithm.
pub struct Ruler {
    /// Position of the left or lower end.
    pub low: f64,
    /// Position of the right or upper end.
    pub high: f64,
    /// Positions and labels of the ticks.
    pub ticks: Vec<(f64, String)>,
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;
    /// The pixel of a position, where the axis goes from the pixel `from` to the pixel `to`.
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let fraction = (value - self.low) / (self.high - self.low);
        from + (fraction * f64::from(to - from)).round() as i32
    }
    /// The positions at which plotters draws ticks: all of them, whatever number it hints at.
    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }
    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Ruler {
    /// The label of the tick at this position.
    fn format_ext(&self, value: &f64) -> String {
        match self.ticks.iter().find(|(at, _)| at == value) {
            Some((_, text)) => text.clone(),
            None => String::new(),
        }
    }
}

/// An axis from the position `low` to the position `high`. The position of a value is the value itself on a linear
/// axis, and its decimal logarithm on a logarithmic one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The scale of its values.
    pub scale: Scale,
    /// Position of the left or lower end.
    pub low: f64,
    /// Position of the right or upper end.
    pub high: f64,
}

impl Axis {
    /// An axis over all `values` that have a position. At each end the fraction `room` of their range is left free.
    pub fn over(scale: Scale, values: impl Iterator<Item = f64>, room: f64) -> Self {
        Self::with_bands(scale, values, room, std::iter::empty())
    }

    /// An axis as [`Self::over`], extended to the ends of `bands` too, but at each end by at most a quarter of the
    /// range of the `values`, so that a wide band does not make the curves flat. From 0 to 1 if no value has a
    /// position.
    pub fn with_bands(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        room: f64,
        bands: impl Iterator<Item = f64>,
    ) -> Self {
        let mut least = f64::INFINITY;
        let mut most = f64::NEG_INFINITY;
        for position in values.filter_map(|value| value_position(scale, value)) {
            least = least.min(position);
            most = most.max(position);
        }
        if least > most {
            // No value has a position.
            least = 0.0;
            most = 1.0;
        }
        let reach = (most - least) / 4.0;
        let mut low = least;
        let mut high = most;
        for position in bands.filter_map(|value| value_position(scale, value)) {
            low = low.min(position.max(least - reach));
            high = high.max(position.min(most + reach));
        }
        // At least a factor of 1.1 on a logarithmic axis and a thousandth of the values on a linear one, so that
        // differences by rounding do not fill a panel.
        let smallest = if scale == Scale::Log { 0.04 } else { 1e-12 + 1e-3 * high.abs() };
        let extent = high - low;
        let pad = (room * extent).max((smallest - extent) / 2.0).max(0.0);
        Self { scale, low: low - pad, high: high + pad }
    }

    /// The position of a value; `None` if the value cannot be drawn: it is not finite, outside of the axis, or not
    /// above 0 on a logarithmic axis.
    pub fn place(&self, value: f64) -> Option<f64> {
        value_position(self.scale, value).filter(|v| (self.low..=self.high).contains(v))
    }

    /// The position of an end of a band or of a label: the nearer end of the axis if the value is outside of it, or
    /// is 0 or negative on a logarithmic axis. Callers leave out NaN, which would be at the lower end.
    pub fn clip(&self, value: f64) -> f64 {
        match value_position(self.scale, value) {
            Some(v) => v.clamp(self.low, self.high),
            None if value > 0.0 => self.high,
            None => self.low,
        }
    }

    /// The distance of a position from the upper end, as a fraction of the length of the axis: 0 at the upper end, 1 at
    /// the lower one. Multiplied by the height of a plotting area it is a distance from its top.
    pub fn below_top(&self, at: f64) -> f64 {
        (self.high - at) / (self.high - self.low)
    }

    /// The axis as plotters reads it, with about `about` ticks (1 or more), on a stretch of `pixels` pixels. `extent`
    /// gives the length of a tick's text along the axis in pixels, with the space that it needs. Of ticks whose texts
    /// would overlap only one is kept; on a logarithmic axis a power of ten is kept before other values.
    pub fn ruler(&self, about: usize, pixels: u32, extent: impl Fn(&str) -> f64) -> Ruler {
        let pixels_per_unit = f64::from(pixels) / (self.high - self.low);
        let mut candidates = self.ticks(about);
        // The positions of powers of ten are whole numbers. They come first, so that others give way to them.
        candidates.sort_by_key(|(at, _)| at.fract() != 0.0);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for (at, text) in candidates {
            let is_clear = ticks.iter().all(|(other, other_text)| {
                let apart = (at - other).abs() * pixels_per_unit;
                apart >= (extent(&text) + extent(other_text)) / 2.0
            });
            if is_clear {
                ticks.push((at, text));
            }
        }
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ruler { low: self.low, high: self.high, ticks }
    }

    /// Positions and labels of about `about` ticks at round values, from low to high, whether or not their texts
    /// overlap.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let extent = self.high - self.low;
        match self.scale {
            Scale::Linear => {
                let values = round_values(self.low, self.high, about);
                values.map(|value| (value, linear_text(value))).collect()
            }
            // Less than a factor of three: what differs is a few per cent.
            Scale::Log if extent < 0.45 => {
                let low = libm::pow(10.0, self.low);
                let high = libm::pow(10.0, self.high);
                let values = round_values(low, high, about);
                values.map(|value| (libm::log10(value), without_zeros(number(value, 3)))).collect()
            }
            Scale::Log if extent < 2.0 => self.ticks_of_two_decades(),
            Scale::Log => {
                let first = self.low.ceil() as i32;
                let last = self.high.floor() as i32;
                let step = (extent / about as f64).ceil().max(1.0) as usize;
                (first..=last).step_by(step).map(|e| (f64::from(e), power_of_ten(e))).collect()
            }
        }
    }

    /// Positions and labels of the ticks at 1, 2 and 5 times a power of ten, for a logarithmic axis of less than two
    /// decades.
    fn ticks_of_two_decades(&self) -> Vec<(f64, String)> {
        let first = self.low.ceil() as i32 - 1;
        let mut ticks = Vec::new();
        for exponent in first..first + 3 {
            for mantissa in [1, 2, 5] {
                let position = libm::log10(f64::from(mantissa)) + f64::from(exponent);
                if (self.low..=self.high).contains(&position) {
                    ticks.push((position, scientific_text(mantissa, exponent)));
                }
            }
        }
        ticks
    }
}

/// The position of a value on a scale: the value itself, or its decimal logarithm. `None` if that is not a finite
/// number.
pub fn value_position(scale: Scale, value: f64) -> Option<f64> {
    let position = match scale {
        Scale::Linear => value,
        Scale::Log if value > 0.0 => libm::log10(value),
        Scale::Log => return None,
    };
    if position.is_finite() { Some(position) } else { None }
}

/// About `about` values from `low` to `high`: the multiples of a step that is 1, 2 or 5 times a power of ten.
fn round_values(low: f64, high: f64, about: usize) -> impl Iterator<Item = f64> {
    let step = round_step((high - low) / about as f64);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(move |i| i as f64 * step)
}

/// The least number of the form 1, 2 or 5 times a power of ten that is at least `raw`: a step between ticks.
fn round_step(raw: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(raw.max(1e-300)).floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    power * steps.into_iter().find(|s| s * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0)
}

/// The text of a number on a linear axis, with at most four decimals and a unit for large numbers: 20k for 20 000.
fn linear_text(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    without_zeros(format!("{scaled:.4}")) + unit
}

/// The text of a number without zeros at the end of its decimals. A number with a power of ten (`2.50·10³`) is left
/// as it is.
fn without_zeros(number: String) -> String {
    if !number.contains('.') || number.contains('·') {
        return number;
    }
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The text of `mantissa` times 10 to the power of `exponent`: as a plain number where that is short.
fn scientific_text(mantissa: i32, exponent: i32) -> String {
    match exponent {
        -3..=3 => linear_text(f64::from(mantissa) * libm::pow(10.0, f64::from(exponent))),
        e if mantissa == 1 => power_of_ten(e),
        e => format!("{mantissa}·{}", power_of_ten(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_drawn_have_no_position() {
        let axis = Axis::over(Scale::Log, [1e-3, 10.0].into_iter(), 0.0);
        assert_eq!(axis.place(1.0), Some(0.0));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-4, 11.0] {
            assert_eq!(axis.place(value), None, "{value}");
        }
        assert_eq!((axis.clip(-1.0), axis.clip(1e9)), (axis.low, axis.high));
    }

    fn ends(axis: Axis) -> [f64; 2] {
        [axis.low, axis.high].map(|v| (v * 1e6).round() / 1e6)
    }

    #[test]
    fn bands_extend_a_range_by_a_quarter_and_single_values_have_room() {
        let over = |bands: &[f64]| {
            let values = [1.0, 1e4].into_iter();
            ends(Axis::with_bands(Scale::Log, values, 0.0, bands.iter().copied()))
        };
        assert_eq!(over(&[]), [0.0, 4.0]);
        assert_eq!(over(&[0.1, 10.0, -1.0, f64::NAN]), [-1.0, 4.0]);
        assert_eq!(over(&[1e-9, 1e9]), [-1.0, 5.0]);
        assert_eq!(ends(Axis::over(Scale::Log, [1.0].into_iter(), 0.04)), [-0.02, 0.02]);
        assert_eq!(ends(Axis::over(Scale::Log, [1.0, 10.0].into_iter(), 0.04)), [-0.04, 1.04]);
    }

    #[test]
    fn texts_of_ticks_do_not_overlap() {
        let axis = Axis::over(Scale::Log, [4e-3, 0.026].into_iter(), 0.0);
        let names = |pixels| {
            let ruler = axis.ruler(3, pixels, |text| 6.0 * text.len() as f64);
            ruler.ticks.into_iter().map(|t| t.1).collect::<Vec<_>>()
        };
        assert_eq!(names(400), ["0.005", "0.01", "0.02"]);
        assert_eq!(names(60), ["0.01"]);
    }

    #[test]
    fn ticks_are_round() {
        for (scale, ends, expected) in [
            (Scale::Linear, [0.0, 100_000.0], "0 20k 40k 60k 80k 100k"),
            (Scale::Log, [1e-3, 100.0], "10⁻³ 10⁻² 10⁻¹ 1 10 10²"),
            (Scale::Log, [10.0, 100.0], "10 20 50 100"),
            (Scale::Log, [0.015, 0.06], "0.02 0.05"),
            (Scale::Log, [0.64, 0.735], "0.64 0.66 0.68 0.7 0.72"),
            (Scale::Log, [1.5e-5, 6e-5], "2·10⁻⁵ 5·10⁻⁵"),
        ] {
            let ticks = Axis::over(scale, ends.into_iter(), 0.0).ticks(5);
            assert_eq!(ticks.into_iter().map(|t| t.1).collect::<Vec<_>>().join(" "), expected);
        }
        for scale in [Scale::Linear, Scale::Log] {
            assert!(!Axis::over(scale, [3.0].into_iter(), 0.0).ticks(4).is_empty(), "{scale:?}");
        }
    }
}
