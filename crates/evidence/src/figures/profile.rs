//! Performance profiles (Dolan and Moré 2002): on which share of the instances an algorithm's error
//! is within a factor of the smallest.

use crate::cells::CellResult;
use crate::cells::costs::when_text;
use crate::figures::curves::views;
use crate::ranking;
use crate::scene::figure::{
    Body, CurveValue, Figure, LabelledPoint, Panel, Plot, Point, Scale, Series,
};
use crate::scene::line::{LegendEntry, Line};
use crate::stats::{mean, standard_deviation};
use exactfed_core::words::count;
use exactfed_runner::manifest::{ComparedAt, Quantity};

/// The fewest instances with which a profile has enough steps to be read.
const FEWEST: u64 = 10;
/// The most panels of a figure.
const MOST_PANELS: usize = 12;
/// The factor up to which the x axis is linear.
const LINEAR: f64 = 4.0;
/// Standard errors of a ratio within which two errors count as equal. Without them two equal
/// algorithms would each be best on half of the instances.
const TIE: f64 = 2.0;

/// The figure of the performance profiles of an experiment, with a panel for each grid point: algorithms are compared
/// by the quantity `by` at the cost `at`, or at the last round without one. `None` if there are fewer than ten
/// instances, if no grid point has two algorithms, or if there are too many grid points.
pub fn figure(cells: &[CellResult<'_>], by: Quantity, at: Option<ComparedAt>) -> Option<Figure> {
    let instances: Vec<u64> = cells.iter().map(|c| c.cell.identity.instances).collect();
    if instances.iter().any(|instances| *instances < FEWEST) {
        return None;
    }
    let all: Vec<&CellResult<'_>> = cells.iter().collect();
    let (axes, points) = ranking::grid_points(&all);
    if points.is_empty() || points.len() > MOST_PANELS {
        return None;
    }
    let view = views(&axes, &[], &all).into_iter().next()?;
    // For each panel and each of its cells the ratios by instance.
    let mut ratios_by_panel: Vec<Vec<Vec<f64>>> = Vec::new();
    for (_, places) in &view.groups {
        let compared: Vec<&CellResult<'_>> = places.iter().map(|place| all[*place]).collect();
        ratios_by_panel.push(ratios_by_instance(&compared, by, at));
    }
    // All curves go on to the largest finite ratio of any.
    let finite = ratios_by_panel.iter().flatten().flatten().copied().filter(|r| r.is_finite());
    let farthest = finite.fold(1.0, f64::max);
    let mut panels = Vec::with_capacity(view.groups.len());
    for ((title, places), ratios_by_cell) in view.groups.iter().zip(&ratios_by_panel) {
        let series = places.iter().zip(ratios_by_cell).map(|(place, ratios)| {
            let curve = &view.curves[view.curve_of_cell[*place]];
            Series {
                cells: vec![all[*place].cell.id.to_string()],
                ..Series::new(Line::Measured(curve.clone()), profile_steps(ratios, farthest))
            }
        });
        panels.push(Panel { title: title.clone(), series: series.collect() });
    }
    let legend = view.curves.iter().cloned().map(|c| LegendEntry::Line(Line::Measured(c)));
    let plot = Plot {
        panels,
        legend: legend.collect(),
        x: format!(
            "factor above the smallest {}",
            by.info().shortfall.map_or("error", |shortfall| shortfall.name)
        ),
        y: "share of instances".into(),
        scale_x: if farthest > LINEAR { Scale::Log } else { Scale::Linear },
        scale_y: Scale::Linear,
        labels: CurveValue { at: LabelledPoint::Best, is_ranked: false, zero_below: 0.0 },
    };
    let caption = format!(
        "The share of {} on which {} {} is within a factor of the smallest (performance profile, Dolan and Moré). The left end is the share on which an algorithm is best, alone or tied: errors within two standard errors of the smallest, from the runs on the instance, count as equal to it, so that these shares may add up to more than 100 %.",
        count(instances.iter().copied().max().unwrap_or(0) as usize, "instance"),
        by.compared(),
        when_text(at),
    );
    let title = "How often and by how much each algorithm is behind".into();
    Some(Figure::plain("profile".into(), title, caption, 4, Body::Plot(plot)))
}

/// For each of the cells of a grid point, one per algorithm, the ratio of its mean loss to the smallest one among
/// them, a number per instance: 1 where both are equal within two standard errors, and infinite on all instances if a
/// run of the cell diverged or has no finite value.
fn ratios_by_instance(
    cells: &[&CellResult<'_>],
    by: Quantity,
    at: Option<ComparedAt>,
) -> Vec<Vec<f64>> {
    // The losses of each cell's runs by instance; `None` if a run diverged.
    let runs: Vec<Option<Vec<Vec<f64>>>> = cells
        .iter()
        .map(|cell| {
            let by_instance = cell.runs.by_instance(by, at)?;
            let losses = by_instance
                .into_iter()
                .map(|runs| runs.into_iter().map(|value| by.loss(value)).collect());
            Some(losses.collect())
        })
        .collect();
    let with_values = runs.iter().flatten().map(Vec::len).max();
    // Where no cell has values, no algorithm is within any factor of the best on any of the instances.
    let of_runs = cells.iter().map(|cell| cell.runs.sample_size()).max().unwrap_or(0);
    let instances = with_values.unwrap_or(of_runs);
    let mut ratios = vec![Vec::with_capacity(instances); cells.len()];
    for i in 0..instances {
        let own: Vec<Option<&[f64]>> =
            runs.iter().map(|r| Some(r.as_ref()?.get(i)?.as_slice())).collect();
        let best = own.iter().flatten().min_by(|a, b| mean(a).total_cmp(&mean(b))).copied();
        for (own, ratios) in own.into_iter().zip(&mut ratios) {
            ratios
                .push(own.zip(best).map_or(f64::INFINITY, |(own, best)| ratio_to_best(own, best)));
        }
    }
    ratios
}

/// How many times larger the mean of the runs `own` of an algorithm on an instance is than the mean of the runs
/// `best` of the best algorithm, run by run with the same noise; 1 where the means are equal within [`TIE`] standard
/// errors.
fn ratio_to_best(own: &[f64], best: &[f64]) -> f64 {
    // Two means of 0, as of algorithms that predict every class of an instance, have no ratio.
    if mean(own) <= mean(best) {
        return 1.0;
    }
    let ratio = mean(own) / mean(best);
    if libm::log(ratio) <= TIE * log_error(own, best) { 1.0 } else { ratio }
}

/// The standard error of the logarithm of the ratio of the means of two samples whose numbers are paired; 0 of one
/// pair, which has no spread.
fn log_error(a: &[f64], b: &[f64]) -> f64 {
    let x = mean(a);
    let y = mean(b);
    let terms: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / x - b / y).collect();
    match standard_deviation(&terms) / (terms.len() as f64).sqrt() {
        error if error.is_finite() => error,
        _ => 0.0,
    }
}

/// The profile of an algorithm from its ratios, one per instance: over each factor from 1 to `last` the share of the
/// instances whose ratio is at most this factor, as the corners of a line of steps. Each point has the number of
/// instances. Without ratios the shares are 0.
fn profile_steps(ratios: &[f64], last: f64) -> Vec<Point> {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let share = |count: usize| count as f64 / n.max(1) as f64;
    let best = sorted.iter().filter(|r| **r <= 1.0).count();
    // At each ratio the share of instances jumps: before it the instances with smaller ratios count, after it this
    // one too.
    let mut corners = vec![(1.0, share(best))];
    for (i, ratio) in sorted.iter().enumerate().skip(best).filter(|(_, r)| r.is_finite()) {
        corners.push((*ratio, share(i)));
        corners.push((*ratio, share(i + 1)));
    }
    let end = corners.last().map_or(0.0, |corner| corner.1);
    corners.push((last, end));
    corners.into_iter().map(|(x, y)| Point { n, ..Point::bare(x, y) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::Needs;
    use crate::simulated;
    use crate::wrong::{self, Mutation};
    use exactfed_runner::runner::prepare;

    /// Where runs of one algorithm diverged, the other one is best; where runs of both did, none is.
    #[test]
    fn algorithms_that_all_diverged_are_never_within_a_factor() {
        let plan = simulated::plan(wrong::manifest(2, "4"));
        let cells: Vec<_> = plan.cells.iter().collect();
        let prepared = prepare(&plan.folder(), &cells).unwrap();
        let needs = Needs::of_claims(&plan);
        let mut results = simulated::results(&prepared, &needs, Mutation::None);
        for best_share in [1.0, 0.0] {
            let diverged = if best_share == 1.0 { &mut results[..1] } else { &mut results[..] };
            diverged.iter_mut().for_each(|result| result.runs.diverged = 1);
            let compared: Vec<_> = results.iter().collect();
            let ratios = ratios_by_instance(&compared, Quantity::SqError, None);
            assert_eq!(ratios[0], [f64::INFINITY; 2]);
            for (ratios, share) in ratios.iter().zip([0.0, best_share]) {
                let steps = profile_steps(ratios, 3.0);
                assert!(steps.iter().all(|point| (point.y, point.n) == (share, 2)), "{steps:?}");
            }
        }
    }

    #[test]
    fn steps_by_hand() {
        let corners = |ratios: &[f64], last| -> Vec<(f64, f64)> {
            profile_steps(ratios, last).iter().map(|p| (p.x, p.y)).collect()
        };
        let expected = [(1.0, 0.5), (2.0, 0.5), (2.0, 0.75), (4.0, 0.75), (4.0, 1.0), (8.0, 1.0)];
        assert_eq!(corners(&[4.0, 1.0, 2.0, 1.0], 8.0), expected);
        // A run that diverged is behind by every factor.
        assert_eq!(corners(&[1.0, f64::INFINITY], 3.0), [(1.0, 0.5), (3.0, 0.5)]);
        assert_eq!(corners(&[], 3.0), [(1.0, 0.0), (3.0, 0.0)]);
    }

    #[test]
    fn errors_within_their_noise_are_equal() {
        // Means 2 and 2.2; differences scatter by far more.
        let a = [1.0, 3.0, 2.0, 2.0];
        let b = [3.2, 1.2, 2.4, 2.0];
        assert!(libm::log(mean(&b) / mean(&a)) <= TIE * log_error(&b, &a));
        // Paired runs of which each is larger by the same factor differ for sure.
        let twice = a.map(|x| 2.0 * x);
        assert!(log_error(&twice, &a) < 1e-15);
        assert_eq!((ratio_to_best(&b, &a), ratio_to_best(&twice, &a)), (1.0, 2.0));
        // Nothing is missing to the best, or all of it.
        assert_eq!(
            (ratio_to_best(&[0.0], &[0.0]), ratio_to_best(&[0.1], &[0.0])),
            (1.0, f64::INFINITY)
        );
    }
}
