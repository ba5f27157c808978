//! An axis: the position of a value, and the values with tick labels.

use crate::evidence::Scale;
use exactfed_core::words::{number, power_of_ten};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::{Cartesian2d, ChartContext, SVGBackend};
use std::ops::Range;

/// A chart of plotters with these axes.
pub type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

/// An axis as plotters reads it: its ends and its ticks.
pub struct Ruler {
    /// Left or lower end.
    pub low: f64,
    /// Right or upper end.
    pub high: f64,
    /// Positions and labels of the ticks.
    pub ticks: Vec<(f64, String)>,
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let fraction = (value - self.low) / (self.high - self.low);
        from + (fraction * f64::from(to - from)).round() as i32
    }
    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|t| t.0).collect()
    }
    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, value: &f64) -> String {
        let named = self.ticks.iter().find(|t| t.0 == *value);
        named.map(|t| t.1.clone()).unwrap_or_default()
    }
}

/// An axis over `low..=high`. A position on it is a value, or its decimal logarithm.
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
    /// An axis over all `values` that have a position, with some room at both ends.
    pub fn over(scale: Scale, values: impl Iterator<Item = f64>, room: f64) -> Self {
        Self::with_bands(scale, values, room, std::iter::empty())
    }

    /// The same, extended by ends of bands, by at most a quarter of the values' range at each end.
    pub fn with_bands(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        room: f64,
        bands: impl Iterator<Item = f64>,
    ) -> Self {
        let placed = values.filter_map(|v| place(scale, v));
        let ends = placed.fold(None, |ends: Option<(f64, f64)>, v| {
            Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let (least, most) = ends.unwrap_or((0.0, 1.0));
        let reach = (most - least) / 4.0;
        let bands = bands.filter_map(|v| place(scale, v));
        let (low, high) = bands.fold((least, most), |(low, high), v| {
            (low.min(v.max(least - reach)), high.max(v.min(most + reach)))
        });
        // At least a tenth of a value, so that noise of rounding does not fill a panel.
        let least = if scale == Scale::Log { 0.04 } else { 1e-12 + 1e-3 * high.abs() };
        let pad = (room * (high - low)).max((least - (high - low)) / 2.0).max(0.0);
        Self { scale, low: low - pad, high: high + pad }
    }

    /// The position of a value; `None` if it is not finite, out of range, or not above 0 on a
    /// logarithmic axis.
    pub fn place(&self, value: f64) -> Option<f64> {
        place(self.scale, value).filter(|v| (self.low..=self.high).contains(v))
    }

    /// The position of an end of a band: the edge of the panel if it is out of range.
    pub fn clip(&self, value: f64) -> f64 {
        match place(self.scale, value) {
            Some(v) => v.clamp(self.low, self.high),
            None if value > 0.0 => self.high,
            None => self.low,
        }
    }

    /// The distance of a position from the upper end, as a share of the axis.
    pub fn below_top(&self, at: f64) -> f64 {
        (self.high - at) / (self.high - self.low)
    }

    /// The axis as plotters reads it, with about so many ticks, on a stretch of so many pixels.
    /// Ticks whose texts would overlap are left out, powers of ten last; `extent` is the length of
    /// a text along the axis.
    pub fn ruler(&self, about: usize, pixels: u32, extent: impl Fn(&str) -> f64) -> Ruler {
        let (low, high) = (self.low, self.high);
        let mut ticks = self.ticks(about);
        ticks.sort_by_key(|(at, _)| at.fract() != 0.0);
        let mut kept: Vec<(f64, String)> = Vec::new();
        for (at, text) in ticks {
            let by = f64::from(pixels) / (high - low);
            let apart = |(other, words): &(f64, String)| {
                (at - other).abs() * by >= (extent(&text) + extent(words)) / 2.0
            };
            if kept.iter().all(apart) {
                kept.push((at, text));
            }
        }
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ruler { low, high, ticks: kept }
    }

    /// Positions and labels of the ticks, from low to high.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let values = round_values(self.low, self.high, about);
                values.map(|value| (value, plain(value))).collect()
            }
            // Less than a factor of three: what differs is a few per cent.
            Scale::Log if self.high - self.low < 0.45 => {
                let [low, high] = [self.low, self.high].map(|at| libm::pow(10.0, at));
                let values = round_values(low, high, about);
                values.map(|value| (libm::log10(value), brief(number(value, 3)))).collect()
            }
            Scale::Log => {
                let decades = self.high - self.low;
                let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
                if decades < 2.0 {
                    return self.minor(first - 1);
                }
                let step = (decades / about as f64).ceil().max(1.0) as usize;
                (first..=last).step_by(step).map(|e| (f64::from(e), power_of_ten(e))).collect()
            }
        }
    }

    /// Ticks at 1, 2 and 5 times a power of ten, for axes of less than two decades.
    fn minor(&self, from: i32) -> Vec<(f64, String)> {
        let all = (from..from + 3).flat_map(|e| [(1, e), (2, e), (5, e)]);
        let tick =
            |(m, e): (i32, i32)| (libm::log10(f64::from(m)) + f64::from(e), scientific(m, e));
        all.map(tick).filter(|(position, _)| (self.low..=self.high).contains(position)).collect()
    }
}

/// The position of a value on a scale; `None` if it has none.
pub fn place(scale: Scale, value: f64) -> Option<f64> {
    let placed = match scale {
        Scale::Linear => value,
        Scale::Log if value > 0.0 => libm::log10(value),
        Scale::Log => return None,
    };
    placed.is_finite().then_some(placed)
}

/// About so many values in a range, multiples of 1, 2 or 5 times a power of ten.
fn round_values(low: f64, high: f64, about: usize) -> impl Iterator<Item = f64> {
    let step = round_step((high - low) / about as f64);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(move |i| i as f64 * step)
}

/// 1, 2 or 5 times a power of ten, at least `raw`.
fn round_step(raw: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(raw.max(1e-300)).floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    power * steps.into_iter().find(|s| s * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0)
}

/// A number on a linear axis: 20k for 20 000.
fn plain(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    brief(format!("{scaled:.4}")) + unit
}

/// A number without zeros at the end of its decimals.
fn brief(number: String) -> String {
    if !number.contains('.') || number.contains('·') {
        return number;
    }
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn scientific(mantissa: i32, exponent: i32) -> String {
    match exponent {
        -3..=3 => plain(f64::from(mantissa) * libm::pow(10.0, f64::from(exponent))),
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
            let (values, bands) = ([1.0, 1e4].into_iter(), bands.iter().copied());
            ends(Axis::with_bands(Scale::Log, values, 0.0, bands))
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
