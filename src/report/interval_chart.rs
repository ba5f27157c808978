//! An estimate with its interval, and the numbers for which a claim holds, as a small drawing.

use super::notation::numbers;
use super::number_text::{NumberText, estimate_text};
use crate::chart::axis::{Axis, value_position};
use crate::evidence::Scale;
use crate::evidence::claims::{Estimate, EstimateScale};
use crate::stats::verdict::Region;
use std::fmt::Write;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 40.0;
/// Height of a drawing that stands in a row of a table, without the labels below the scale.
const ROW: f64 = 26.0;
/// Room at both sides of the scale.
const MARGIN: f64 = 12.0;
/// Where the interval is drawn, from the top.
const MIDDLE: f64 = 13.0;
/// Ends of a region that are nearer to each other than this have one label.
const ONE_LABEL: f64 = 70.0;
/// The least range of a scale, so that numbers which are equal but for rounding are drawn at one place. On a linear
/// scale it is a part of the largest magnitude of a number, on a logarithmic one a part of a decade.
const LEAST_RANGE: f64 = 0.1;

/// An axis on which all of these numbers are visible that can be; `None` where none can. It depends on no unit: numbers
/// that are all multiplied by the same factor are drawn at the same places.
fn axis(scale: Scale, values: &[f64]) -> Option<Axis> {
    let places = values.iter().filter_map(|value| value_position(scale, *value));
    let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), place| {
        (low.min(place), high.max(place))
    });
    let least_range = match scale {
        // Zeros alone have a range too, so that they are in the middle.
        Scale::Linear => LEAST_RANGE * low.abs().max(high.abs()).max(f64::MIN_POSITIVE),
        Scale::Log => LEAST_RANGE,
    };
    let room = 0.12 * (high - low).max(least_range);
    (low <= high).then_some(Axis { scale, low: low - room, high: high + room })
}

/// The horizontal place of a number in the drawing, in pixels; a number beyond an end of the axis is at that end.
fn across(axis: Axis, value: f64) -> f64 {
    let share = (axis.clip(value) - axis.low) / (axis.high - axis.low);
    MARGIN + (WIDTH - 2.0 * MARGIN) * share
}

/// Draws an estimate, which is of this kind, and the region of the numbers for which the claim holds, as SVG for a
/// page; `style.css` gives its classes their colours. Ratios are on a logarithmic scale; `text` writes the numbers of
/// the labels. Empty if the estimate is NaN (nothing was tested), or if the region has no end with which it could be
/// compared: one that is finite, and for a ratio above 0, since no ratio is negative.
pub fn svg(estimate: Estimate, region: Region, kind: EstimateScale, text: NumberText) -> String {
    let is_ratio = matches!(kind, EstimateScale::Logarithm | EstimateScale::MeanOver { .. });
    let Estimate { value, interval: ends } = estimate;
    let limits = [region.0, region.1];
    let is_known = |limit: &f64| limit.is_finite() && !(is_ratio && *limit <= 0.0);
    let known: Vec<f64> = limits.into_iter().filter(is_known).collect();
    let scale = if is_ratio { Scale::Log } else { Scale::Linear };
    if value.is_nan() || known.is_empty() {
        return String::new();
    }
    let Some(axis) = axis(scale, &[&[value, ends.0, ends.1], known.as_slice()].concat()) else {
        return String::new();
    };
    let holds = numbers(&match limits.each_ref().map(is_known) {
        [true, true] => format!("{} to {}", text(region.0), text(region.1)),
        [true, false] => format!("≥ {}", text(region.0)),
        _ => format!("≤ {}", text(region.1)),
    });
    let mut out = format!(
        "<svg class=\"interval\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}; the claim holds for {holds}\">",
        numbers(&estimate_text(text, estimate, kind))
    );
    draw_region(&mut out, axis, region, &known);
    draw_estimate(&mut out, axis, estimate);
    let labels: Vec<(f64, String)> = known.iter().map(|end| (*end, numbers(&text(*end)))).collect();
    draw_labels(&mut out, axis, &labels, &holds);
    out.push_str("</svg>");
    out
}

/// Draws estimates that stand in the rows of a table, each with its interval, as SVG on a common scale, in their order:
/// the states of a claim in a history. The scale is logarithmic if all finite numbers, ends of intervals among them,
/// are positive and the largest is more than 20 times the smallest. The drawings have no labels, since the rows state
/// the numbers; an estimate that is NaN has an empty drawing.
pub fn rows(estimates: &[Estimate]) -> Vec<String> {
    let values = estimates.iter().flat_map(|e| [e.value, e.interval.0, e.interval.1]);
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let is_far = low > 0.0 && values.iter().any(|value| *value > 20.0 * low);
    let axis = axis(if is_far { Scale::Log } else { Scale::Linear }, &values);
    let mut drawings = Vec::new();
    for estimate in estimates {
        let Some(axis) = axis.filter(|_| !estimate.value.is_nan()) else {
            drawings.push(String::new());
            continue;
        };
        let mut out = format!(
            "<svg class=\"interval\" viewBox=\"0 0 {WIDTH} {ROW}\" width=\"{WIDTH}\" height=\"{ROW}\" aria-hidden=\"true\">"
        );
        draw_estimate(&mut out, axis, *estimate);
        drawings.push(out + "</svg>");
    }
    drawings
}

/// Draws the scale, the region, and a line at each end of the region that is in `known`, the ends with which the
/// estimate can be compared; at an end that is not, the region reaches the margin.
fn draw_region(out: &mut String, axis: Axis, region: Region, known: &[f64]) {
    let left = MARGIN;
    let right = WIDTH - MARGIN;
    let low = if known.contains(&region.0) { across(axis, region.0) } else { left };
    let high = if known.contains(&region.1) { across(axis, region.1) } else { right };
    let _ = write!(
        out,
        "<rect class=\"holds\" x=\"{low:.1}\" y=\"2\" width=\"{:.1}\" height=\"22\"/><path class=\"scale\" d=\"M{left} {MIDDLE}H{right}\"/>",
        (high - low).max(1.0)
    );
    for end in known {
        let _ = write!(out, "<path class=\"limit\" d=\"M{:.1} 2V24\"/>", across(axis, *end));
    }
}

/// Draws the interval, with a bar at each end that is on the scale, and the estimate, which is not NaN, as a dot: at an
/// end of the scale if it is beyond. An interval of NaN is left out.
fn draw_estimate(out: &mut String, axis: Axis, Estimate { value, interval }: Estimate) {
    let (low, high) = interval;
    if low <= high {
        let left = across(axis, low);
        let right = across(axis, high);
        let _ = write!(out, "<path class=\"reach\" d=\"M{left:.1} {MIDDLE}H{right:.1}");
        for (end, x) in [(low, left), (high, right)] {
            if axis.place(end).is_some() {
                let _ = write!(out, "M{x:.1} {}V{}", MIDDLE - 4.0, MIDDLE + 4.0);
            }
        }
        out.push_str("\"/>");
    }
    let _ = write!(out, "<circle cx=\"{:.1}\" cy=\"{MIDDLE}\" r=\"4\"/>", across(axis, value));
}

/// Writes the ends of the region in `known`, each with its text, below the scale: the texts at two ends if both have
/// room, else the text `holds`, which says all of the region.
fn draw_labels(out: &mut String, axis: Axis, known: &[(f64, String)], holds: &str) {
    let mut label = |x: f64, text: &str| {
        // Half of the width of the text, so that it stays inside.
        let half = 3.3 * text.chars().count() as f64;
        let x = x.clamp(half, WIDTH - half);
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"36\">{text}</text>");
    };
    let x = |end: f64| across(axis, end);
    match known {
        [(low, low_text), (high, high_text)] if x(*high) - x(*low) >= ONE_LABEL => {
            label(x(*low), low_text);
            label(x(*high), high_text);
        }
        [(low, _), (high, _)] => label(0.5 * (x(*low) + x(*high)), holds),
        all => all.iter().for_each(|(end, _)| label(x(*end), holds)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::number_text::short;
    use super::*;

    const INFINITY: f64 = f64::INFINITY;
    /// The estimate is a ratio.
    const RATIO: bool = true;

    /// The drawing of an estimate with its interval, which is a ratio if `is_ratio`, and of a claim's region.
    fn drawn(value: f64, interval: (f64, f64), region: Region, is_ratio: bool) -> String {
        let scale = if is_ratio { EstimateScale::Logarithm } else { EstimateScale::Plain };
        svg(Estimate { value, interval }, region, scale, short)
    }

    /// The number that follows each occurrence of the text `before` in a drawing.
    fn numbers_after(svg: &str, before: &str) -> Vec<f64> {
        let after = svg.split(before).skip(1);
        let number = |rest: &str| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
            rest[..end].parse().unwrap()
        };
        after.map(number).collect()
    }

    #[test]
    fn the_estimate_is_on_its_side_of_the_limit() {
        for (value, region, is_ratio) in [
            (0.01, (0.0, 0.5), true),
            (20.0, (0.0, 0.5), true),
            (-0.2, (-1.0, 1.0), false),
            (3.0, (-INFINITY, 0.2), false),
            (3.0, (2.0, INFINITY), true),
        ] {
            let svg = drawn(value, (value - 0.005, value + 0.005), region, is_ratio);
            let (dot, limits) =
                (numbers_after(&svg, "cx=\"")[0], numbers_after(&svg, "\"limit\" d=\"M"));
            let expected = [region.0, region.1].into_iter();
            let expected: Vec<bool> = expected
                .filter(|end| end.is_finite() && !(is_ratio && *end <= 0.0))
                .map(|end| end < value)
                .collect();
            assert_eq!(limits.iter().map(|x| *x < dot).collect::<Vec<_>>(), expected, "{svg}");
        }
    }

    #[test]
    fn what_is_beyond_the_scale_ends_at_its_end_without_a_bar() {
        let svg = drawn(0.5, (0.0, INFINITY), (0.0, 1.0), RATIO);
        assert!(svg.contains("class=\"reach\" d=\"M12.0 13H288.0\""), "{svg}");
        assert!(svg.contains("aria-label=\"0.500 [0, ∞]; the claim holds for ≤ 1.00\""), "{svg}");
        let svg = drawn(INFINITY, (INFINITY, INFINITY), (0.0, 1.0), RATIO);
        assert_eq!(numbers_after(&svg, "cx=\""), [288.0]);
    }

    /// The places of two estimates in rows of a table, with intervals of 0.2 around them, in this unit.
    fn places_in_unit(unit: f64) -> Vec<f64> {
        let estimate = |value: f64| Estimate {
            value: value * unit,
            interval: ((value - 0.1) * unit, (value + 0.1) * unit),
        };
        let drawings = rows(&[estimate(1.0), estimate(3.0)]);
        drawings.iter().map(|svg| numbers_after(svg, "cx=\"")[0]).collect()
    }

    #[test]
    fn small_numbers_are_as_far_apart_as_large_ones() {
        let places = places_in_unit(1.0);
        assert!(places[1] - places[0] > 150.0, "{places:?}");
        for unit in [1e-4, 1e-30, 1e30] {
            assert_eq!(places_in_unit(unit), places, "{unit}");
        }
        let ratio = |unit: f64| {
            drawn(1e-9 * unit, (0.9e-9 * unit, 1.1e-9 * unit), (0.0, 1.3e-9 * unit), RATIO)
        };
        assert_eq!(numbers_after(&ratio(1.0), "cx=\""), numbers_after(&ratio(1e9), "cx=\""));
    }

    #[test]
    fn numbers_that_are_all_equal_are_in_the_middle() {
        for value in [0.0, -2.0, 1e-300] {
            let drawings = rows(&[Estimate { value, interval: (value, value) }]);
            assert_eq!(numbers_after(&drawings[0], "cx=\""), [150.0], "{value}");
        }
    }

    #[test]
    fn nothing_is_drawn_of_what_was_not_tested() {
        let nan = f64::NAN;
        assert_eq!(drawn(nan, (nan, nan), (nan, nan), RATIO), "");
        assert_eq!(drawn(1.0, (nan, nan), (nan, nan), !RATIO), "");
        assert!(!drawn(1.0, (nan, nan), (0.0, 2.0), !RATIO).contains("reach"));
    }
}
