//! Maps over two settings: what their squares show, as values and as the texts in a square.

use crate::cells::panels::Sides;
use crate::scene::line::{Color, LegendEntry};
use crate::stats::Ratio;
use exactfed_core::theory::exact::SpectralRadii;
use exactfed_core::words::readable;
use exactfed_runner::plan::Setting;
use std::collections::HashMap;

/// The maps of a figure.
#[derive(Clone, Debug)]
pub struct Maps {
    /// The maps, left to right, then down.
    pub maps: Vec<Map>,
    /// The entries that say what colours mean.
    pub legend: Vec<LegendEntry>,
    /// Title of the x axis.
    pub x: String,
    /// Title of the y axis.
    pub y: String,
}

/// A map over two settings.
#[derive(Clone, Debug)]
pub struct Map {
    /// The settings that distinguish it from the figure's other maps.
    pub title: String,
    /// Values of the setting on the x axis.
    pub x: Vec<String>,
    /// Values of the setting on the y axis.
    pub y: Vec<String>,
    /// The squares that have results.
    pub squares: Vec<Square>,
    /// What it has if its squares have no texts.
    pub dense: Option<DenseMap>,
}

/// A map of too many squares for a text in each.
#[derive(Clone, Debug)]
pub struct DenseMap {
    /// The numbers on the x axis and on the y axis.
    pub values: [Vec<f64>; 2],
    /// What else is to be said of each square, in the order of [`Map::squares`].
    pub remarks: Vec<String>,
    /// All values, in place of a line for each square's texts.
    pub csv: String,
    /// Lines that theory predicts.
    pub lines: Vec<MapLine>,
}

/// A line over a map, between two points in units of squares.
pub type MapLine = ((f64, f64), (f64, f64));

/// The values of a setting along an axis, as texts, in their order.
fn value_texts(values: &[&Setting]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

/// Whether theory knows that second moments stay bounded in one of two neighbouring squares and do not in the other,
/// so that an edge is drawn between them. False if one of them does not exist or has no known radius.
fn is_boundary(a: Option<&&Square>, b: Option<&&Square>) -> bool {
    let a_bounded = a.and_then(|a| a.stability()?.bounded());
    let b_bounded = b.and_then(|b| b.stability()?.bounded());
    a_bounded.zip(b_bounded).is_some_and(|(a, b)| a != b)
}

/// A square of a map.
#[derive(Clone, Debug)]
pub struct Square {
    /// Index of its value on the x axis.
    pub x: usize,
    /// Index of its value on the y axis.
    pub y: usize,
    /// What the square shows, which decides on its colour.
    pub value: SquareValue,
}

/// What a square shows.
#[derive(Clone, Debug)]
pub enum SquareValue {
    /// Which algorithm ranks first.
    Ranking(Ranking),
    /// How many runs diverged.
    Stability(StabilityValue),
}

/// Which algorithm ranks first on a square: by results at a grid point, or by exact costs.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The labels of the algorithm with the smallest mean, and then of those that are not separated from it; of exact
    /// costs those of the algorithms that cost least, or that count as equal.
    pub leaders: Vec<String>,
    /// The colour of the square: that of the algorithm that ranks first, or grey if none does alone.
    pub color: Color,
    /// How far ahead the first is.
    pub lead: Lead,
}

/// How far the algorithm with the smallest mean is ahead of the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lead {
    /// Runs of every algorithm diverged.
    AllDiverged,
    /// No algorithm whose runs reach the cost at which algorithms are compared has a mean.
    EndedBeforeCost,
    /// No algorithm has a mean: the metric is not recorded for some of them, or is NaN; runs of others may have
    /// diverged.
    WithoutValues,
    /// Every algorithm has a run that does not reach the target at which algorithms are compared.
    TargetNotReached,
    /// The smallest mean is above the error at the start.
    AboveStart,
    /// How many times larger the mean of the next algorithm is; without limits for single runs.
    Ratio(Ratio),
    /// The smallest mean and the next are both zero to rounding.
    BothZero,
    /// Runs of every other algorithm diverged.
    OthersDiverged,
    /// No other algorithm has a mean: the metric is not recorded for some of them, or is NaN; runs of others may have
    /// diverged.
    OthersWithoutValues,
    /// Every other algorithm has a run that does not reach the target.
    OthersMissTarget,
    /// There is no other algorithm at this grid point, or none whose runs reach the cost.
    Alone,
    /// Several exact values are the same.
    Tie,
    /// The first is exactly ahead, by a round at most.
    Round,
    /// No algorithm ranks first on every instance.
    InstancesDiffer,
}

/// The most lines with names of algorithms in a square.
const MOST_NAMES: usize = 3;

impl Ranking {
    /// The names of all algorithms that rank first, as one text; `none` if there are none.
    pub fn winner(&self) -> String {
        if self.leaders.is_empty() { "none".into() } else { self.leaders.join(" or ") }
    }

    /// How far ahead the first is, in words: the lines of text that a square has for it. None for a tie, which the
    /// number of names shows.
    pub fn detail(&self) -> Vec<String> {
        match self.lead {
            Lead::AllDiverged => vec!["all diverged".into()],
            Lead::EndedBeforeCost => vec!["runs end".into(), "before".into()],
            Lead::WithoutValues => vec!["no values".into()],
            Lead::TargetNotReached => vec!["target not".into(), "reached".into()],
            Lead::AboveStart => vec!["all end above".into(), "the start".into()],
            Lead::Ratio(Ratio { estimate, low, high, .. }) => {
                let limits = (!low.is_nan() && !high.is_nan())
                    .then(|| format!("[{}, {}]", factor_text(low), factor_text(high)));
                std::iter::once(format!("×{}", factor_text(estimate))).chain(limits).collect()
            }
            Lead::BothZero => vec!["both zero".into(), "to rounding".into()],
            Lead::OthersDiverged => vec!["all others".into(), "diverged".into()],
            Lead::OthersWithoutValues => vec!["others without".into(), "values".into()],
            Lead::OthersMissTarget => vec!["others miss".into(), "the target".into()],
            Lead::Alone => vec!["alone".into()],
            Lead::Tie => Vec::new(),
            Lead::Round => vec!["by a round".into()],
            Lead::InstancesDiffer => vec!["instances".into(), "differ".into()],
        }
    }

    /// Whether one algorithm is separated from all others. Its square has a strong colour.
    pub fn is_separated(&self) -> bool {
        self.leaders.len() == 1 && !matches!(self.lead, Lead::Alone | Lead::Round)
    }

    /// Whether the ratio and both its limits are within 0.015 of 1: to two decimals they are 0.99, 1.00 or 1.01, so
    /// that they say nothing. A ratio without limits never is.
    fn is_ratio_idle(&self) -> bool {
        match self.lead {
            Lead::Ratio(ratio) => [ratio.estimate, ratio.low, ratio.high]
                .into_iter()
                .all(|v: f64| (v - 1.0).abs() < 0.015),
            _ => false,
        }
    }

    /// The text in a square, line by line: who ranks first and, with fewer than two names, how far ahead.
    fn lines(&self) -> Vec<String> {
        match self.lead {
            Lead::Tie => return vec![format!("tie of {}", self.leaders.len())],
            Lead::Round => return self.leaders.clone(),
            _ => (),
        }
        let mut lines = self.leaders.clone();
        if lines.len() > MOST_NAMES {
            let more = lines.len() - (MOST_NAMES - 1);
            lines.truncate(MOST_NAMES - 1);
            lines.push(format!("and {more} more"));
        }
        if lines.len() < 2 {
            lines.extend(self.detail());
        }
        lines
    }
}

/// How many runs of a cell diverged, and what theory predicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StabilityValue {
    /// The number of replicates of the cell.
    pub runs: usize,
    /// The number of replicates that diverged.
    pub diverged: usize,
    /// Spectral radii of a round, where they are known.
    pub radii: Option<SpectralRadii>,
}

impl StabilityValue {
    /// Whether second moments stay bounded over the rounds; `None` if their spectral radius is not known.
    pub fn bounded(&self) -> Option<bool> {
        self.radii.map(|radii| radii.square < 1.0)
    }

    /// Whether runs and theory differ: runs diverged although second moments stay bounded, or none did although they
    /// do not. False if theory does not know.
    pub fn differs(&self) -> bool {
        self.bounded().is_some_and(|bounded| bounded == (self.diverged > 0))
    }

    /// The text in a square, line by line: how many runs diverged, and the radii that are known.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.count()];
        lines.extend(self.texts().into_iter().flatten());
        lines
    }

    /// The texts of the spectral radii of second moments and of the mean; `None` where they are not known.
    fn texts(&self) -> [Option<String>; 2] {
        let Some(radii) = self.radii else { return [None, None] };
        [
            Some(format!("ρ {}", radius_text(radii.square))),
            Some(format!("ρ of the mean {}", radius_text(radii.mean))),
        ]
    }

    /// The text that says how many runs diverged, as `2 of 10`, with the sign ≠ where theory differs.
    fn count(&self) -> String {
        let differs = if self.differs() { " ≠" } else { "" };
        format!("{} of {}{differs}", self.diverged, self.runs)
    }
}

/// The text of a factor: with two decimals from 0.1 to 10, and with three digits otherwise.
fn factor_text(factor: f64) -> String {
    if (0.1..9.995).contains(&factor) { format!("{factor:.2}") } else { readable(factor, 3) }
}

/// The text of a spectral radius: with three decimals below 10, with six where three would hide on which side of 1 it
/// is, and with fewer above 10.
fn radius_text(radius: f64) -> String {
    match radius {
        f64::INFINITY => "∞".into(),
        r if r >= 1000.0 => readable(r, 1),
        r if (r - 1.0).abs() < 5e-4 && (r - 1.0).abs() >= 5e-7 => format!("{r:.6}"),
        r if r >= 10.0 => format!("{r:.0}"),
        r => format!("{r:.3}"),
    }
}

impl Square {
    /// The text that is drawn in the square, line by line; a dense map draws none.
    pub fn lines(&self) -> Vec<String> {
        match &self.value {
            SquareValue::Ranking(ranking) => ranking.lines(),
            SquareValue::Stability(stability) => stability.lines(),
        }
    }

    /// What the square shows, for tables and the script of a page, a text per column: two texts of a ranking (who
    /// ranks first, and how far ahead), and three of stability (how many runs diverged, and the spectral radii of
    /// second moments and of the mean). A text is empty where it would say nothing.
    pub fn shows(&self) -> Vec<String> {
        match &self.value {
            SquareValue::Ranking(ranking) => {
                let detail = ranking.detail().join(" ");
                match (ranking.leaders.as_slice(), ranking.is_ratio_idle()) {
                    ([], _) => vec![detail, String::new()],
                    (_, true) => vec![ranking.winner(), String::new()],
                    (_, false) => vec![ranking.winner(), detail],
                }
            }
            SquareValue::Stability(stability) => {
                let radii = stability.texts().map(|text| text.unwrap_or_else(|| "–".to_owned()));
                std::iter::once(stability.count()).chain(radii).collect()
            }
        }
    }

    /// The colour of the square: of a ranking that of the first algorithm or grey; of stability one colour where runs
    /// diverged, and another where none did.
    pub fn color(&self) -> Color {
        match &self.value {
            SquareValue::Ranking(ranking) => ranking.color,
            // The colours of the first two families, which stand for no algorithm here.
            SquareValue::Stability(stability) => {
                Color::of_family(usize::from(stability.diverged > 0))
            }
        }
    }

    /// The opacity of its colour, at least 0 and below 0.995, since thumbnails write two decimals of it.
    pub fn opacity(&self) -> f64 {
        match &self.value {
            SquareValue::Stability(StabilityValue { runs, diverged, .. }) if *diverged > 0 => {
                0.2 + 0.5 * (*diverged as f64 / (*runs).max(1) as f64)
            }
            SquareValue::Stability(_) => 0.25,
            SquareValue::Ranking(ranking) if ranking.is_separated() => 0.55,
            SquareValue::Ranking(_) => 0.18,
        }
    }

    /// The value of a square of a map of stability; `None` in a map of rankings.
    pub fn stability(&self) -> Option<&StabilityValue> {
        match &self.value {
            SquareValue::Stability(stability) => Some(stability),
            SquareValue::Ranking(_) => None,
        }
    }

    /// Whether the square is drawn with an outline, because runs and theory differ.
    pub fn is_outlined(&self) -> bool {
        self.stability().is_some_and(StabilityValue::differs)
    }
}

impl Map {
    /// A map over the values of two settings, those of the x axis first. Its squares have texts, since it is not dense.
    pub fn new(title: String, (xs, ys): &Sides<'_>, squares: Vec<Square>) -> Self {
        Self { title, x: value_texts(xs), y: value_texts(ys), squares, dense: None }
    }

    /// The edges between neighbouring squares in one of which second moments stay bounded and in the other not, in
    /// units of squares from the lower left corner: together the boundary of stability by theory. Empty in a map of
    /// rankings.
    pub fn edges(&self) -> Vec<MapLine> {
        let mut squares: HashMap<(usize, usize), &Square> = HashMap::new();
        for square in &self.squares {
            squares.entry((square.x, square.y)).or_insert(square);
        }
        let mut edges = Vec::new();
        for Square { x, y, .. } in &self.squares {
            let left = *x as f64;
            let low = *y as f64;
            if is_boundary(squares.get(&(*x, *y)), squares.get(&(x + 1, *y))) {
                edges.push(((left + 1.0, low), (left + 1.0, low + 1.0)));
            }
            if is_boundary(squares.get(&(*x, *y)), squares.get(&(*x, y + 1))) {
                edges.push(((left, low + 1.0), (left + 1.0, low + 1.0)));
            }
        }
        edges
    }
}

/// What a caption says about the number of squares without a cell, of all maps of a figure; empty if there are none.
pub fn blank_squares(maps: &[Map]) -> String {
    let count: usize =
        maps.iter().map(|m| (m.x.len() * m.y.len()).saturating_sub(m.squares.len())).sum();
    match count {
        0 => String::new(),
        count => format!(" Blank squares ({count}): no cell, or none with results yet."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_radii_have_the_digits_that_say_something() {
        let factors = [0.004, 0.9, 0.999, 1.126, 11.04, 1234.5].map(factor_text);
        assert_eq!(factors, ["4.00·10⁻³", "0.90", "1.00", "1.13", "11.0", "1 230"]);
        let radii =
            [0.7, 1.0, 1.000_000_1, 1.000_1, 1.2, 172.3, 6012.0, f64::INFINITY].map(radius_text);
        assert_eq!(radii, ["0.700", "1.000", "1.000", "1.000100", "1.200", "172", "6 000", "∞"]);
    }

    /// A ratio of 1 says nothing about a tie, and where nothing ranks first, one text says so.
    #[test]
    fn squares_show_no_text_that_says_nothing() {
        let ratio = |estimate, low, high| Lead::Ratio(Ratio { estimate, low, high, p: 1.0 });
        let shows = |leaders: &[&str], lead| {
            let leaders = leaders.iter().map(|l| (*l).to_owned()).collect();
            let value = SquareValue::Ranking(Ranking { leaders, color: Color::Neutral, lead });
            Square { x: 0, y: 0, value }.shows()
        };
        assert_eq!(shows(&["A", "B"], ratio(1.0, 0.999, 1.01)), ["A or B", ""]);
        assert_eq!(shows(&["A", "B"], ratio(1.1, 0.9, 1.3)), ["A or B", "×1.10 [0.90, 1.30]"]);
        assert_eq!(shows(&[], Lead::AboveStart), ["all end above the start", ""]);
    }
}
