//! Claims: what the results say of the statements in a manifest.
//!
//! *Invariant*: a claim that names several cells holds only if it holds for each
//! of them; what theory cannot say, or a run that diverged, is said and never
//! counted as support.

use super::theory::Theory;
use super::{Result, select};
use crate::manifest::claim::{
    AtLeast, Common, Expected, Less, Matches, Prediction, Reaches, Reaching, Scalar, Selection,
    Slope, When,
};
use crate::manifest::{Oracle, Quantity};
use crate::plan::{Plan, selected, short};
use crate::rng::Stream;
use crate::stats::mean;
use crate::stats::verdict::{
    Evidence, Region, Verdict, log_ratio, log_ratio_to, log_slope, needed, verdicts,
};
use std::collections::BTreeSet;

/// A claim and what became of it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// Where it is claimed.
    pub source: String,
    /// Id of the figure that shows it.
    pub figure: Option<String>,
    /// What was tested, as a formula.
    pub formula: String,
    /// The verdict; `None` where nothing could be tested.
    pub verdict: Option<Verdict>,
    /// The estimate and its 95 % interval, as readers read it.
    pub estimate: f64,
    /// Ends of the interval.
    pub interval: (f64, f64),
    /// p-value adjusted for all claims of the manifest (Holm).
    pub p: f64,
    /// Replicates.
    pub n: usize,
    /// Cells or pairs of cells that it was tested on: their names, estimates and
    /// intervals, and whether each alone would be supported (at the level 5 %,
    /// not adjusted).
    pub parts: Vec<Part>,
    /// Which of them the estimate is of: the one with the least support.
    pub part: String,
    /// Claims that were tested together.
    pub together: usize,
    /// Replicates that would decide it.
    pub needed: Option<u64>,
    /// The verdict that the manifest expects, and why.
    pub expected: (Expected, Option<String>),
    /// The disagreement that it bears on, and its side.
    pub dispute: Option<(String, String)>,
    /// What could not be tested, and why.
    pub notes: Vec<String>,
}

impl Claim {
    /// Whether the results refute what the manifest expects to hold.
    pub fn fails(&self) -> bool {
        self.verdict == Some(Verdict::Refuted) && self.expected.0 == Expected::Supported
    }

    /// Whether the results support what the manifest expects to be refuted.
    pub fn surprises(&self) -> bool {
        self.verdict == Some(Verdict::Supported) && self.expected.0 == Expected::Refuted
    }
}

/// A cell or a pair of cells that a claim was tested on.
#[derive(Clone, Debug)]
pub struct Part {
    /// What tells it apart.
    pub name: String,
    /// The estimate, as readers read it.
    pub estimate: f64,
    /// Ends of its 95 % interval.
    pub interval: (f64, f64),
    /// What the part says by itself.
    pub verdict: Verdict,
}

/// How an estimate is shown.
#[derive(Clone, Copy)]
enum Shown {
    /// As it is.
    Plain,
    /// As the exponential of itself: a ratio.
    Ratio,
}

/// What a claim was tested on.
struct Tested {
    parts: Vec<(String, Evidence)>,
    notes: Vec<String>,
    formula: String,
    shown: Shown,
}

/// The claims of a manifest, judged together.
pub fn judge(plan: &Plan, cells: &[Result], theory: &Theory<'_>) -> Vec<Claim> {
    let judge = Judge { plan, cells, theory };
    let table = &plan.manifest.claim;
    let mut tested: Vec<Tested> = Vec::new();
    let none = Selection::default;
    for c in &table.less {
        tested.push(judge.whole(&[&c.left, &c.right.clone().unwrap_or_else(none)], judge.less(c)));
    }
    for c in &table.at_least {
        let sides = [&c.left, &c.right.clone().unwrap_or_else(none)];
        tested.push(judge.whole(&sides, judge.at_least(c)));
    }
    tested.extend(table.slope.iter().map(|c| judge.whole(&[&c.of], judge.slope(c))));
    for c in &table.matches {
        tested.push(judge.whole(&[&c.of, &c.right.clone().unwrap_or_else(none)], judge.matches(c)));
    }
    tested.extend(table.reaches.iter().map(|c| judge.whole(&[&c.of], judge.reaches(c))));
    let all: Vec<Option<Evidence>> = tested
        .iter()
        .map(|t| Evidence::all(&t.parts.iter().map(|(_, e)| *e).collect::<Vec<_>>()))
        .collect();
    let told: Vec<Evidence> = all.iter().flatten().copied().collect();
    let mut found = verdicts(&told).into_iter();
    let together = told.len();
    let mut claims = Vec::with_capacity(tested.len());
    for (((_, common), tested), evidence) in table.all().into_iter().zip(tested).zip(all) {
        let verdict = evidence.and_then(|_| found.next());
        claims.push(claim(common, tested, evidence, verdict, together));
    }
    claims
}

fn claim(
    common: Common<'_>,
    tested: Tested,
    evidence: Option<Evidence>,
    verdict: Option<(Verdict, f64)>,
    together: usize,
) -> Claim {
    let shown = |x: f64| match tested.shown {
        Shown::Plain => x,
        Shown::Ratio => libm::exp(x),
    };
    let nan = f64::NAN;
    let (low, high) = evidence.map_or((nan, nan), |e| e.interval);
    let weakest = evidence.and_then(|e| {
        tested.parts.iter().find(|(_, p)| p.estimate.to_bits() == e.estimate.to_bits())
    });
    Claim {
        id: common.id.to_owned(),
        statement: common.statement.to_owned(),
        source: common.source.unwrap_or_default().to_owned(),
        figure: common.figure.map(str::to_owned),
        formula: tested.formula,
        verdict: verdict.map(|(v, _)| v),
        estimate: shown(evidence.map_or(nan, |e| e.estimate)),
        interval: (shown(low), shown(high)),
        p: verdict.map_or(nan, |(_, p)| p),
        n: evidence.map_or(0, |e| e.n),
        part: weakest.map(|(name, _)| name.clone()).unwrap_or_default(),
        parts: tested
            .parts
            .iter()
            .map(|(name, e)| Part {
                name: name.clone(),
                estimate: shown(e.estimate),
                interval: (shown(e.interval.0), shown(e.interval.1)),
                verdict: e.alone(),
            })
            .collect(),
        together,
        needed: match (verdict, evidence) {
            (Some((Verdict::Inconclusive, _)), Some(e)) => needed(&e, together),
            _ => None,
        },
        expected: (common.expected, common.reason.map(str::to_owned)),
        dispute: common.dispute.map(|d| (d.to_owned(), common.side.unwrap_or_default().to_owned())),
        notes: tested.notes,
    }
}

struct Judge<'a> {
    plan: &'a Plan,
    cells: &'a [Result],
    theory: &'a Theory<'a>,
}

/// A sample at one time, and which.
struct At {
    name: String,
    row: usize,
    sample: Vec<f64>,
}

/// What a metric is compared with.
enum Against<'a> {
    Cells(&'a Selection),
    Prediction(Prediction),
    Value(f64),
}

impl<'a> Judge<'a> {
    /// What was tested, or nothing if some of the cells that are meant have no
    /// results yet. (A selection that names nothing is no side.)
    fn whole(&self, sides: &[&Selection], tested: Tested) -> Tested {
        let meant = |cell: &&crate::plan::Cell| {
            sides.iter().any(|side| !side.0.is_empty() && selected(cell, side))
        };
        let there: BTreeSet<&str> = self.cells.iter().map(|c| c.cell.id.as_str()).collect();
        let missing =
            self.plan.cells.iter().filter(meant).filter(|c| !there.contains(c.id.as_str())).count();
        if missing == 0 {
            return tested;
        }
        let notes = vec![format!("{missing} of its cells have no results yet")];
        Tested { parts: Vec::new(), notes, ..tested }
    }

    fn chosen(&self, selection: &Selection) -> Vec<&'a Result> {
        self.cells.iter().filter(|c| selected(&c.cell, selection)).collect()
    }

    /// What tells a cell from the others of a selection.
    fn name(&self, cell: &Result, selection: &Selection) -> String {
        let one = |(key, value): (&'_ String, &'_ Scalar)| {
            (!matches!(value, Scalar::Any(_))).then(|| key.clone())
        };
        let known: Vec<String> = selection.0.iter().filter_map(one).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut details = select::details(cell, &known);
        if !selection.0.contains_key("label") {
            details = [cell.cell.label.clone(), details]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(", ");
        }
        details
    }

    /// A metric of a cell, run by run, at each time that is asked for.
    fn samples(&self, cell: &Result, metric: Quantity, at: When) -> Option<Vec<At>> {
        if metric.average().is_some() {
            let sample = cell.finals(metric)?;
            return Some(vec![At { name: String::new(), row: usize::MAX, sample }]);
        }
        if cell.diverged() > 0 {
            return None;
        }
        let columns: Vec<_> = cell.traces.iter().map(|t| cell.column(t, metric)).collect();
        let rows = columns.iter().map(|c| c.len()).min().filter(|rows| *rows > 0)?;
        let one = |row: usize, name: String| At {
            name,
            row,
            sample: columns.iter().map(|c| c[row]).collect(),
        };
        let rounds = &cell.traces[0].round;
        Some(match at {
            When::End => vec![one(rows - 1, String::new())],
            When::Round(round) => {
                let closest = (0..rows).min_by_key(|&i| rounds[i].abs_diff(round))?;
                vec![one(closest, String::new())]
            }
            When::EveryRound => {
                (1..rows).map(|row| one(row, format!("round {}", rounds[row]))).collect()
            }
            When::Stationary => {
                let from = rows / 2;
                let sample = columns.iter().map(|c| mean(&c[from..rows])).collect();
                vec![At { name: String::new(), row: rows - 1, sample }]
            }
        })
    }

    /// The settings that are zipped with this one.
    fn partners(&self, name: &str) -> Vec<String> {
        let zips = self.plan.manifest.zip.iter();
        let with = zips.filter(|zip| zip.iter().any(|other| short(other) == short(name)));
        with.flatten().map(|other| short(other).to_owned()).collect()
    }

    /// Left cells with the right cells of the same settings, where neither
    /// selection says otherwise.
    fn pairs(&self, left: &Selection, right: &Selection) -> Vec<(&'a Result, &'a Result)> {
        let mut pairs = Vec::new();
        let fixed = |side: &Selection| -> Vec<String> {
            let fixed = side.0.iter().filter(|(_, value)| !matches!(value, Scalar::Any(_)));
            fixed.map(|(key, _)| key.clone()).collect()
        };
        let keys: Vec<String> = fixed(left).into_iter().chain(fixed(right)).collect();
        let said: BTreeSet<String> = keys
            .iter()
            .flat_map(|key| self.partners(key).into_iter().chain([key.clone()]))
            .collect();
        for a in self.chosen(left) {
            for b in self.chosen(right) {
                let open: BTreeSet<&str> = a
                    .cell
                    .varied
                    .iter()
                    .chain(&b.cell.varied)
                    .map(|path| short(path))
                    .filter(|name| !said.contains(*name))
                    .collect();
                let same = open.iter().all(|name| {
                    let (x, y) = (a.cell.settings.get(name), b.cell.settings.get(name));
                    x.is_none() || y.is_none() || x == y
                });
                if same && a.cell.id != b.cell.id {
                    pairs.push((a, b));
                }
            }
        }
        pairs
    }

    /// The cells of a selection of which a run diverged: a mean that is infinite
    /// is below nothing and matches nothing.
    fn diverged(&self, of: &Selection) -> Vec<(String, Evidence)> {
        let all = self.chosen(of).into_iter().filter(|cell| cell.diverged() > 0);
        all.map(|cell| {
            let name = joined(&self.name(cell, of), "diverged");
            (name, Evidence { n: cell.traces.len(), ..Evidence::exact(f64::INFINITY, (0.0, 1.0)) })
        })
        .collect()
    }

    /// log(mean of the metric / what it is compared with), for every cell or pair.
    fn ratios(
        &self,
        metric: Quantity,
        left: &Selection,
        against: &Against<'_>,
        at: When,
        region: impl Fn(&Result) -> Region,
    ) -> (Vec<(String, Evidence)>, Vec<String>) {
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        let mut add = |cell: &Result, name: String, found: Option<(f64, f64)>, n: usize| match found
        {
            Some((estimate, error)) if estimate.is_finite() => {
                let error = if noiseless(cell) { 0.0 } else { error };
                parts.push((name, Evidence::student(estimate, error, n, region(cell))));
            }
            _ => notes.push(name),
        };
        match against {
            Against::Cells(right) => {
                for (a, b) in self.pairs(left, right) {
                    let name = self.name(a, left);
                    let (x, y) = (self.samples(a, metric, at), self.samples(b, metric, at));
                    let (Some(x), Some(y)) = (x, y) else {
                        add(a, noted(&name, "diverged, or not recorded"), None, 0);
                        continue;
                    };
                    for (x, y) in x.iter().zip(&y) {
                        let n = x.sample.len();
                        let found = Some(log_ratio(&x.sample, &y.sample));
                        add(a, joined(&name, &x.name), found, n);
                    }
                }
            }
            Against::Value(value) => {
                for cell in self.chosen(left) {
                    let name = self.name(cell, left);
                    for at in self.samples(cell, metric, at).unwrap_or_default() {
                        let found = below(&at.sample, *value);
                        add(cell, joined(&name, &at.name), found, at.sample.len());
                    }
                }
            }
            Against::Prediction(by) => {
                for cell in self.chosen(left) {
                    let name = self.name(cell, left);
                    let curve = self.theory.curve(&cell.cell.id, metric, *by);
                    let (Some(curve), Some(samples)) = (curve, self.samples(cell, metric, at))
                    else {
                        add(cell, noted(&name, &self.why(cell, *by)), None, 0);
                        continue;
                    };
                    for each in samples {
                        let rows = curve.len();
                        let value = match at {
                            When::Stationary => mean(&curve[rows / 2..]),
                            _ => curve[each.row.min(rows - 1)],
                        };
                        let found = below(&each.sample, value);
                        add(cell, joined(&name, &each.name), found, each.sample.len());
                    }
                }
            }
        }
        (parts, notes)
    }

    /// Why a prediction does not speak of a cell.
    fn why(&self, cell: &Result, by: Prediction) -> String {
        if by.is_bound() {
            let rounds = cell.cell.identity.rounds;
            return match self.theory.bound(&cell.cell.id, by, rounds) {
                None => format!("{} does not speak of it", by.words()),
                Some(bound) => {
                    let unmet = bound.value.err().unwrap_or_default();
                    if unmet.is_empty() {
                        return format!("{} is of another quantity", by.words());
                    }
                    let each = unmet.iter().map(|u| u.condition.clone());
                    format!("{}: {} fails", by.words(), each.collect::<Vec<_>>().join(", "))
                }
            };
        }
        match self.theory.without(&cell.cell.id) {
            Some(crate::runner::predict::Without::Costly(_)) => {
                "exact moments cost too much".into()
            }
            _ => format!("{} does not speak of it, or it diverged", by.words()),
        }
    }

    fn less(&self, claim: &Less) -> Tested {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let region = (f64::NEG_INFINITY, libm::log(claim.factor));
        let (mut parts, notes) =
            self.ratios(claim.metric, &claim.left, &against, claim.at, |_| region);
        parts.extend(self.diverged(&claim.left));
        let formula = comparison(claim.metric, &claim.left, &against, "≤", claim.factor, claim.at);
        Tested { parts, notes, formula, shown: Shown::Ratio }
    }

    fn at_least(&self, claim: &AtLeast) -> Tested {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let region = (libm::log(claim.factor), f64::INFINITY);
        let (parts, notes) = self.ratios(claim.metric, &claim.left, &against, claim.at, |_| region);
        let formula = comparison(claim.metric, &claim.left, &against, "≥", claim.factor, claim.at);
        Tested { parts, notes, formula, shown: Shown::Ratio }
    }

    fn slope(&self, claim: &Slope) -> Tested {
        let mut groups: Vec<(String, Vec<(f64, &Result)>)> = Vec::new();
        for cell in self.chosen(&claim.of) {
            let Some(x) = number(cell, &claim.over) else { continue };
            let mut selection = claim.of.clone();
            selection.0.insert(claim.over.clone(), Scalar::Number(x));
            selection.0.retain(|_, value| !matches!(value, Scalar::Any(_)));
            let mut known: Vec<&str> = selection.0.keys().map(String::as_str).collect();
            // γH follows from what it is made of, and zipped axes move together.
            known.push("path-length");
            let partners = self.partners(&claim.over);
            known.extend(partners.iter().map(String::as_str));
            let name = select::details(cell, &known);
            match groups.iter_mut().find(|(n, _)| *n == name) {
                Some((_, group)) => group.push((x, cell)),
                None => groups.push((name, vec![(x, cell)])),
            }
        }
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        let region = (claim.value - claim.margin, claim.value + claim.margin);
        for (name, group) in groups {
            let found = match &claim.reaching {
                None => self.slope_of(claim, &group),
                Some(reaching) => self.slope_of_cost(claim, reaching, &group),
            };
            match found {
                Some((slope, error, n)) if slope.is_finite() => {
                    let error = if group.iter().all(|(_, c)| noiseless(c)) { 0.0 } else { error };
                    parts.push((name, Evidence::student(slope, error, n, region)));
                }
                _ => notes.push(noted(
                    &name,
                    "no slope: a cell diverged, is alone or does not come down to the target",
                )),
            }
        }
        let what = match &claim.reaching {
            None => claim.metric.formula().to_owned(),
            Some(r) => {
                format!("{} until {} ≤ {}", r.cost.formula(), claim.metric.formula(), target(r))
            }
        };
        let formula = format!(
            "slope of log({what}) over log({}) of {} = {} ± {}",
            claim.over,
            told(&claim.of),
            claim.value,
            claim.margin
        );
        Tested { parts, notes, formula, shown: Shown::Plain }
    }

    fn slope_of(&self, claim: &Slope, group: &[(f64, &Result)]) -> Option<(f64, f64, usize)> {
        let mut points = Vec::with_capacity(group.len());
        for (x, cell) in group {
            let at = self.samples(cell, claim.metric, claim.at)?.pop()?;
            points.push((*x, at.sample));
        }
        let n = points.iter().map(|(_, y)| y.len()).min()?;
        let (slope, error) = log_slope(&points);
        Some((slope, error, n))
    }

    /// The slope of a cost, with its standard error by a seeded bootstrap over
    /// the replicates, which all points share.
    fn slope_of_cost(
        &self,
        claim: &Slope,
        reaching: &Reaching,
        group: &[(f64, &Result)],
    ) -> Option<(f64, f64, usize)> {
        let n = group.iter().map(|(_, c)| c.traces.len()).min()?;
        let slope = |replicates: &[usize]| {
            let points: Option<Vec<(f64, Vec<f64>)>> = group
                .iter()
                .map(|(x, cell)| {
                    let cost = reached(cell, claim.metric, reaching, replicates)?;
                    Some((*x, vec![cost]))
                })
                .collect();
            points.map(|points| log_slope(&points).0)
        };
        let all: Vec<usize> = (0..n).collect();
        let estimate = slope(&all)?;
        let mut rng = Stream::shared_instance(BOOTSTRAP_SEED);
        let sample = (0..BOOTSTRAPS).filter_map(|_| slope(&resampled(&mut rng, n)));
        let sample: Vec<f64> = sample.collect();
        let error = crate::stats::standard_deviation(&sample);
        Some((estimate, if n < 2 { f64::NAN } else { error }, n))
    }

    fn matches(&self, claim: &Matches) -> Tested {
        let margin = |cell: &Result, cells: &[&Result]| match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                let x = number(cell, over).unwrap_or(1.0);
                let least = cells.iter().filter_map(|c| number(c, over)).fold(x, f64::min);
                claim.margin * libm::pow(x / least, order)
            }
            _ => claim.margin,
        };
        let cells = self.chosen(&claim.of);
        let words = match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                format!(
                    "up to {} %, growing with {over} to the power {order}",
                    100.0 * claim.margin
                )
            }
            _ => format!("up to {} %", 100.0 * claim.margin),
        };
        if let (Some(average), Some(by)) = (claim.average, claim.prediction) {
            let (mut parts, mut notes) = (self.diverged(&claim.of), Vec::new());
            for cell in &cells {
                let name = self.name(cell, &claim.of);
                let sample: Option<Vec<Vec<f64>>> = cell
                    .traces
                    .iter()
                    .map(|t| t.averages.iter().find(|(a, _)| *a == average).map(|(_, v)| v.clone()))
                    .collect();
                let target = self.theory.vector(&cell.cell.id, average, by);
                match (sample.filter(|s| cell.diverged() == 0 && !s.is_empty()), target) {
                    (Some(sample), Some(target)) if target.iter().any(|x| *x != 0.0) => {
                        let margin = margin(cell, &cells);
                        let evidence = if noiseless(cell) {
                            Evidence::of_distance(&sample[..1], &target, margin)
                        } else {
                            Evidence::of_distance(&sample, &target, margin)
                        };
                        parts.push((name, evidence));
                    }
                    (_, Some(_)) => {
                        notes.push(noted(&name, "diverged, not recorded, or predicted to be 0"));
                    }
                    _ => notes.push(noted(&name, &self.why(cell, by))),
                }
            }
            let formula = format!(
                "‖{what} − {by}‖ ≤ margin · ‖{by}‖ for {of}, {words}",
                what = average.formula(),
                by = by.words(),
                of = told(&claim.of)
            );
            return Tested { parts, notes, formula, shown: Shown::Plain };
        }
        let metric = claim.metric.unwrap_or_default();
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let (mut parts, notes) = self.ratios(metric, &claim.of, &against, claim.at, |cell| {
            let log = libm::log1p(margin(cell, &cells));
            (-log, log)
        });
        parts.extend(self.diverged(&claim.of));
        let formula =
            format!("{}, {words}", comparison(metric, &claim.of, &against, "=", 1.0, claim.at));
        Tested { parts, notes, formula, shown: Shown::Ratio }
    }

    fn reaches(&self, claim: &Reaches) -> Tested {
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        for cell in self.chosen(&claim.of) {
            let name = self.name(cell, &claim.of);
            let limit = match (claim.within, claim.prediction) {
                (Some(within), _) => Some(within),
                (None, Some(by)) => self.promised(cell, claim, by),
                _ => None,
            };
            let Some(limit) = limit else {
                let why = claim.prediction.map(|by| self.why(cell, by)).unwrap_or_default();
                notes.push(noted(&name, &format!("{why}; or it never comes down to the target")));
                continue;
            };
            let n = cell.traces.len();
            let all: Vec<usize> = (0..n).collect();
            if cell.diverged() > 0 {
                notes.push(noted(&name, "diverged"));
                continue;
            }
            let cost = |replicates: &[usize]| {
                reached(cell, claim.metric, &claim.reaching, replicates).unwrap_or(f64::INFINITY)
            };
            let estimate = cost(&all);
            let region = (0.0, limit);
            if noiseless(cell) {
                parts.push((name, Evidence::exact(estimate, region)));
                continue;
            }
            let mut rng = Stream::shared_instance(BOOTSTRAP_SEED);
            let mut sample: Vec<f64> =
                (0..BOOTSTRAPS).map(|_| cost(&resampled(&mut rng, n))).collect();
            sample.sort_by(f64::total_cmp);
            let over = sample.iter().filter(|t| **t > limit).count();
            let share = |count: usize| (count + 1) as f64 / (BOOTSTRAPS + 1) as f64;
            let quantile = |p: f64| sample[((BOOTSTRAPS - 1) as f64 * p) as usize];
            parts.push((
                name,
                Evidence {
                    estimate,
                    error: f64::NAN,
                    interval: (quantile(0.025), quantile(0.975)),
                    support: if n < 2 { 1.0 } else { share(over) },
                    refute: if n < 2 { 1.0 } else { share(BOOTSTRAPS - over) },
                    distance: (estimate - limit).abs(),
                    n,
                },
            ));
        }
        let most = match (claim.within, claim.prediction) {
            (Some(within), _) => within.to_string(),
            (_, Some(by)) => format!("what {} needs", by.words()),
            _ => String::new(),
        };
        let formula = format!(
            "{} until {} of {} ≤ {} is at most {most}",
            claim.reaching.cost.formula(),
            claim.metric.formula(),
            told(&claim.of),
            target(&claim.reaching)
        );
        Tested { parts, notes, formula, shown: Shown::Plain }
    }

    /// The cost after which a bound is below the target, at the cell's settings.
    fn promised(&self, cell: &Result, claim: &Reaches, by: Prediction) -> Option<f64> {
        let target = target_of(cell, &claim.reaching)?;
        let below = |round: u64| {
            let bound = self.theory.bound(&cell.cell.id, by, round)?;
            bound.value.ok().map(|value| value <= target)
        };
        let mut high = 1;
        while !below(high)? {
            high *= 2;
            if high > 1 << 50 {
                return None;
            }
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if below(middle)? { high = middle } else { low = middle }
        }
        // A bound counts rounds; the cost of a round is the same in all of them.
        let trace = cell.traces.first()?;
        let rounds = *trace.round.last()? as f64;
        let cost = *cell.column(trace, claim.reaching.cost).last()?;
        Some(high as f64 * cost / rounds)
    }
}

/// Bootstrap samples of costs.
const BOOTSTRAPS: usize = 999;
/// The bootstrap's own stream: the same numbers on every machine.
const BOOTSTRAP_SEED: u64 = 0x0b00_7574;

fn resampled(rng: &mut Stream, n: usize) -> Vec<usize> {
    (0..n).map(|_| rng.index(n)).collect()
}

/// Where the mean over these replicates first is at most the target.
fn reached(
    cell: &Result,
    metric: Quantity,
    reaching: &Reaching,
    replicates: &[usize],
) -> Option<f64> {
    let target = target_of(cell, reaching)?;
    let columns: Vec<_> =
        replicates.iter().map(|&r| cell.column(&cell.traces[r], metric)).collect();
    let costs: Vec<_> =
        replicates.iter().map(|&r| cell.column(&cell.traces[r], reaching.cost)).collect();
    let rows = columns.iter().map(|c| c.len()).min()?;
    let n = columns.len() as f64;
    let at = |list: &[std::borrow::Cow<'_, [f64]>], row: usize| {
        list.iter().map(|c| c[row]).sum::<f64>() / n
    };
    let row = (0..rows).find(|&row| at(&columns, row) <= target)?;
    Some(at(&costs, row))
}

fn target_of(cell: &Result, reaching: &Reaching) -> Option<f64> {
    match &reaching.per {
        None => Some(reaching.target),
        Some(per) => Some(reaching.target * number(cell, per)?),
    }
}

fn target(reaching: &Reaching) -> String {
    match &reaching.per {
        None => reaching.target.to_string(),
        Some(per) => format!("{} {per}", reaching.target),
    }
}

fn number(cell: &Result, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name)? {
        crate::plan::Setting::Number(x) => Some(*x),
        crate::plan::Setting::Text(_) => None,
    }
}

/// Whether nothing in a cell is random, so that one run is all.
fn noiseless(cell: &Result) -> bool {
    let coin = cell.cell.settings.get("communication-probability").is_some();
    let cohort = cell.cell.settings.get("cohort").is_some();
    cell.cell.identity.oracle == Oracle::Exact && !coin && !cohort
}

/// log(mean/value); a mean of 0 is below any value.
fn below(sample: &[f64], value: f64) -> Option<(f64, f64)> {
    if value <= 0.0 || value.is_nan() {
        return None;
    }
    if mean(sample) == 0.0 {
        return Some((-700.0, 0.0));
    }
    Some(log_ratio_to(sample, value))
}

/// Why a cell is left out.
fn noted(name: &str, why: &str) -> String {
    if name.is_empty() { why.to_owned() } else { format!("{name}: {why}") }
}

fn joined(a: &str, b: &str) -> String {
    [a, b].into_iter().filter(|x| !x.is_empty()).collect::<Vec<_>>().join(", ")
}

fn against(
    right: Option<&Selection>,
    prediction: Option<Prediction>,
    value: Option<f64>,
) -> Against<'_> {
    match (right, prediction) {
        (Some(right), _) => Against::Cells(right),
        (None, Some(by)) => Against::Prediction(by),
        _ => Against::Value(value.unwrap_or(f64::NAN)),
    }
}

/// A selection in words.
fn told(selection: &Selection) -> String {
    let mut parts: Vec<String> =
        selection.0.get("label").map(ToString::to_string).into_iter().collect();
    for (key, value) in selection.0.iter().filter(|(key, _)| *key != "label") {
        let setting = match value {
            Scalar::Number(x) => crate::plan::Setting::Number(*x),
            text => crate::plan::Setting::Text(text.to_string()),
        };
        parts.push(select::pretty(key, &setting));
    }
    if parts.is_empty() { "every cell".into() } else { parts.join(", ") }
}

fn comparison(
    metric: Quantity,
    left: &Selection,
    against: &Against<'_>,
    sign: &str,
    factor: f64,
    at: When,
) -> String {
    let right = match against {
        Against::Cells(right) => format!("that of {}", told(right)),
        Against::Prediction(by) => by.words().to_owned(),
        Against::Value(value) => value.to_string(),
    };
    let factor = if factor == 1.0 { String::new() } else { format!("{factor} × ") };
    let at = match at {
        When::End => String::new(),
        When::Round(round) => format!(" at round {round}"),
        When::Stationary => " over the second half of the rounds".into(),
        When::EveryRound => " at every recorded round".into(),
    };
    format!("mean {} of {}{at} {sign} {factor}{right}", metric.formula(), told(left))
}

#[cfg(test)]
mod tests;
