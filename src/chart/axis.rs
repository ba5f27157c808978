//! An axis: the position of a value, and the values with tick labels.

use crate::analysis::Scale;
use driftbench_core::words::power_of_ten;
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
    scale: Scale,
    /// Position of the left or lower end.
    pub low: f64,
    /// Position of the right or upper end.
    pub high: f64,
}

impl Axis {
    /// An axis over all `values` that have a position, with some room at both ends.
    pub fn over(scale: Scale, values: impl Iterator<Item = f64>, room: f64) -> Self {
        let placed = values.filter_map(|v| place(scale, v));
        let ends = placed.fold(None, |ends: Option<(f64, f64)>, v| {
            Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let (low, high) = ends.unwrap_or((0.0, 1.0));
        let least = if scale == Scale::Log { 0.45 } else { 1e-12 + 1e-3 * high.abs() };
        let pad = (room * (high - low)).max(if room > 0.0 || high - low < least {
            least / 2.0
        } else {
            0.0
        });
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

    /// The axis as plotters reads it, with about so many ticks.
    pub fn ruler(&self, about: usize) -> Ruler {
        Ruler { low: self.low, high: self.high, ticks: self.ticks(about) }
    }

    /// Positions and labels of the ticks, from low to high.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let step = round_step((self.high - self.low) / about as f64);
                let first = (self.low / step - 1e-9).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|i| (i as f64 * step, plain(i as f64 * step))).collect()
            }
            Scale::Log => {
                let decades = self.high - self.low;
                let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
                if last - first < 1 {
                    return self.minor(first - 1);
                }
                let step = (decades / about as f64).ceil().max(1.0) as usize;
                (first..=last).step_by(step).map(|e| (f64::from(e), power_of_ten(e))).collect()
            }
        }
    }

    /// Ticks at 1, 2 and 5 times a power of ten, for axes of less than a decade.
    fn minor(&self, from: i32) -> Vec<(f64, String)> {
        let all = (from..from + 3).flat_map(|e| [(1, e), (2, e), (5, e)]);
        let tick =
            |(m, e): (i32, i32)| (libm::log10(f64::from(m)) + f64::from(e), scientific(m, e));
        all.map(tick).filter(|(position, _)| (self.low..=self.high).contains(position)).collect()
    }
}

fn place(scale: Scale, value: f64) -> Option<f64> {
    let placed = match scale {
        Scale::Linear => value,
        Scale::Log if value > 0.0 => libm::log10(value),
        Scale::Log => return None,
    };
    placed.is_finite().then_some(placed)
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
    let text = format!("{scaled:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

fn scientific(mantissa: i32, exponent: i32) -> String {
    match exponent {
        0 => mantissa.to_string(),
        1 => (mantissa * 10).to_string(),
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

    #[test]
    fn ticks_are_round() {
        let names = |axis: Axis| axis.ticks(5).into_iter().map(|t| t.1).collect::<Vec<_>>();
        let linear = Axis::over(Scale::Linear, [0.0, 100_000.0].into_iter(), 0.0);
        assert_eq!(names(linear), ["0", "20k", "40k", "60k", "80k", "100k"]);
        let log = Axis::over(Scale::Log, [1e-3, 100.0].into_iter(), 0.0);
        assert_eq!(names(log), ["10⁻³", "10⁻²", "10⁻¹", "1", "10", "10²"]);
        let narrow = Axis::over(Scale::Log, [0.015, 0.06].into_iter(), 0.0);
        assert_eq!(names(narrow), ["2·10⁻²", "5·10⁻²"]);
        assert!(!Axis::over(Scale::Linear, [3.0].into_iter(), 0.0).ticks(4).is_empty());
        assert!(!Axis::over(Scale::Log, [3.0].into_iter(), 0.0).ticks(4).is_empty());
    }
}
