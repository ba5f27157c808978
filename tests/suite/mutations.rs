//! The claims of `experiments/`, judged on results that are wrong in the way that the claim is about:
//! sides exchanged, a setting ignored, an average not taken, control variates or an
//! extrapolation that do nothing. No supported claim may stay supported under all of them.
//!
//! The results are those of the folder that `EXACTFED_RESULTS` names, as `make mutations` sets it;
//! without it, those of the small experiments, which are run here.

use crate::support::files_with;
use exactfed::evidence::claims::{Claim, ClaimedCells, Judge, WrongResult, claims, setting_number};
use exactfed::evidence::frontier::{self, ComputedFrontier, FrontierCost, FrontierPoint};
use exactfed::evidence::needs::Needs;
use exactfed::evidence::predictions::{MomentsCache, Theory, exact_bias};
use exactfed::evidence::{CellResult, Grouping, Runs, tuned};
use exactfed::stats::verdict::{LEVEL, Verdict};
use exactfed::store::{Results, Store};
use exactfed_core::round_program::RoundSettings;
use exactfed_runner::manifest::searched::SearchedAlgorithm;
use exactfed_runner::manifest::{Metric, Source};
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::{Prepared, prepare};
use exactfed_runner::trace::{Trace, TraceDigest};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Local steps of all clients of an experiment up to which it is run here.
const SMALL: u64 = 4_000_000;

/// The traces of cells, by id.
type Traces = HashMap<String, Vec<Trace>>;

/// A manifest with the results of its cells.
struct Subject<'a> {
    plan: &'a Plan,
    prepared: &'a [Prepared<'a>],
    theory: &'a Theory<'a>,
    frontiers: Vec<ComputedFrontier<'a>>,
    traces: Traces,
}

impl<'a> Subject<'a> {
    /// The results of all cells, of which some are replaced.
    fn cells(&self, replaced: &Traces) -> Vec<CellResult<'a>> {
        let needs = Needs::of_claims(self.plan);
        let prices = self.plan.manifest.prices.unwrap_or_default();
        let known = self.plan.cells.iter().filter_map(|cell| {
            let traces =
                replaced.get(cell.id.as_str()).or_else(|| self.traces.get(cell.id.as_str()))?;
            let runs = Runs::new(traces.clone(), Grouping::new(cell), &needs.traces(cell), &prices);
            let (digest, provenance) = (TraceDigest::default(), Arc::default());
            Some(CellResult {
                cell,
                runs,
                digest,
                provenance,
                seconds: 0.0,
                selected_by: None,
                exact_bias: None,
            })
        });
        known.collect()
    }

    fn prepared(&self, cell: &CellResult<'_>) -> Option<&'a Prepared<'a>> {
        self.prepared.iter().find(|prepared| prepared.cell.id == cell.cell.id)
    }

    fn verdicts(&self, replaced: &Traces, frontiers: &[ComputedFrontier<'a>]) -> Vec<Verdict> {
        let cells = self.cells(replaced);
        let judge = Judge { plan: self.plan, cells: &cells, theory: self.theory, frontiers };
        let judged = judge.look(self.plan, LEVEL);
        judged.iter().map(|claim| claim.judgement.verdict).collect()
    }
}

/// A trace with every measurement, but no cost, times a factor.
fn scaled(trace: &Trace, factor: f64) -> Trace {
    let mut trace = trace.clone();
    let further = trace.further.iter_mut().map(|(_, column)| column);
    let averages = trace.averages.iter_mut().map(|(_, vector)| vector);
    let columns = [&mut trace.sq_error, &mut trace.sq_error_limit];
    let all = columns.into_iter().chain(further).chain(averages).flatten();
    all.for_each(|x| *x *= factor);
    trace
}

/// A trace of which each row has the measurements of an earlier one.
fn earlier(trace: &Trace, row: impl Fn(usize) -> usize) -> Trace {
    let mut out = trace.clone();
    let moved = |column: &[f64]| (0..column.len()).map(|i| column[row(i)]).collect::<Vec<f64>>();
    out.sq_error = moved(&trace.sq_error);
    out.sq_error_limit = moved(&trace.sq_error_limit);
    for ((_, column), (_, from)) in out.further.iter_mut().zip(&trace.further) {
        *column = moved(from);
    }
    out
}

fn standing(trace: &Trace) -> Trace {
    let mut out = earlier(trace, |_| 0);
    let start = trace.sq_error.first().copied().unwrap_or(0.0);
    for (_, vector) in &mut out.averages {
        vector.iter_mut().for_each(|x| *x = 0.0);
        vector.iter_mut().take(1).for_each(|x| *x = libm::sqrt(start));
    }
    out
}

fn slow(trace: &Trace) -> Trace {
    let before = |i: usize| trace.round.partition_point(|round| 4 * round <= trace.round[i]);
    earlier(trace, |i| before(i).max(1) - 1)
}

/// A trace with the distances from θ* and from the virtual environment's fixed point exchanged.
fn around_other_point(trace: &Trace) -> Trace {
    let mut out = trace.clone();
    let mut further = out.further.iter_mut();
    if let Some((_, column)) = further.find(|(m, _)| *m == Metric::SqErrorVirtual) {
        std::mem::swap(&mut out.sq_error, column);
    }
    out
}

/// The results of the cells that a claim is about, with what is wrong; `None` if that changes nothing.
fn replaced(
    claimed: &ClaimedCells<'_>,
    subject: &Subject<'_>,
    cells: &[CellResult<'_>],
    wrong: &WrongResult,
) -> Option<Traces> {
    let frontiers = &subject.frontiers;
    let judge = Judge { plan: subject.plan, cells, theory: subject.theory, frontiers };
    let own = judge.chosen(claimed.of);
    let traces = |id: &str| subject.traces.get(id);
    let each = |change: &dyn Fn(&CellResult<'_>, &Trace) -> Trace| -> Traces {
        let changed = own.iter().filter_map(|cell| {
            let all = traces(&cell.cell.id)?.iter().map(|trace| change(cell, trace));
            Some((cell.cell.id.to_string(), all.collect()))
        });
        changed.collect()
    };
    let found = match wrong {
        WrongResult::Doubled => each(&|_, trace| scaled(trace, 2.0)),
        WrongResult::Halved => each(&|_, trace| scaled(trace, 0.5)),
        WrongResult::Negated => each(&|_, trace| scaled(trace, -1.0)),
        WrongResult::Standing => each(&|_, trace| standing(trace)),
        WrongResult::Slow => each(&|_, trace| slow(trace)),
        WrongResult::OtherPoint => each(&|_, trace| around_other_point(trace)),
        WrongResult::TimesClients => each(&|cell, trace| {
            let clients = subject.prepared(cell).map_or(1, |p| p.scenarios[0].instance.clients());
            scaled(trace, clients as f64)
        }),
        WrongResult::TimesLocalSteps => {
            each(&|cell, trace| scaled(trace, cell.cell.identity.algorithm.scale().1 as f64))
        }
        WrongResult::TiltedUp | WrongResult::TiltedDown => {
            let over = claimed.over?;
            let first = own.iter().find_map(|cell| setting_number(cell, over))?;
            let power = if *wrong == WrongResult::TiltedUp { 1.0 } else { -1.0 };
            each(&|cell, trace| {
                let x = setting_number(cell, over).unwrap_or(first);
                scaled(trace, libm::pow(x / first, power))
            })
        }
        WrongResult::WithoutNoise => each(&|cell, trace| {
            let bias = subject.prepared(cell).and_then(exact_bias);
            let sq_error = trace.sq_error.iter().map(|x| bias.unwrap_or(*x)).collect();
            Trace { sq_error, ..trace.clone() }
        }),
        WrongResult::FrontierTilted(..)
        | WrongResult::FrontierExchanged(..)
        | WrongResult::FrontierDoubled(_) => return None,
        WrongResult::Exchanged
        | WrongResult::Ignored
        | WrongResult::Reversed
        | WrongResult::Plain
        | WrongResult::Corrected => {
            let copy = |(to, from): (String, String)| Some((to, traces(&from)?.clone()));
            sources(claimed, &judge, cells, wrong)?.into_iter().filter_map(copy).collect()
        }
    };
    let is_changed = |(id, changed): (&String, &Vec<Trace>)| traces(id) != Some(changed);
    found.iter().any(is_changed).then_some(found)
}

/// The cells that have the results of others, each with the other: ids.
fn sources(
    claimed: &ClaimedCells<'_>,
    judge: &Judge<'_>,
    cells: &[CellResult<'_>],
    wrong: &WrongResult,
) -> Option<Vec<(String, String)>> {
    let id = |cell: &CellResult<'_>| cell.cell.id.to_string();
    let own = judge.chosen(claimed.of);
    Some(match wrong {
        WrongResult::Exchanged => {
            let pairs = judge.pairs(claimed.of, claimed.right?).both;
            pairs.iter().flat_map(|(a, b)| [(id(a), id(b)), (id(b), id(a))]).collect()
        }
        WrongResult::Ignored | WrongResult::Reversed => {
            let groups = judge.along(claimed.of, claimed.over?);
            let of_group = |(_, group): &(String, Vec<(f64, &CellResult<'_>)>)| {
                let source = |i: usize| match wrong {
                    WrongResult::Ignored => 0,
                    _ => group.len() - 1 - i,
                };
                let pair = |i: usize| (id(group[i].1), id(group[source(i)].1));
                (0..group.len()).map(pair).collect::<Vec<_>>()
            };
            groups.iter().flat_map(of_group).collect()
        }
        _ => {
            let is_other = |other: &CellResult<'_>, cell: &CellResult<'_>| match wrong {
                WrongResult::Plain => is_plain_of(other.cell, cell.cell),
                _ => is_plain_of(cell.cell, other.cell),
            };
            let other = |cell: &&CellResult<'_>| {
                let other = cells.iter().find(|other| is_other(other, cell))?;
                Some((id(cell), id(other)))
            };
            own.iter().filter_map(other).collect()
        }
    })
}

/// Whether a cell is the plain algorithm with the settings of another one.
fn is_plain_of(plain: &Cell, of: &Cell) -> bool {
    let (a, b) = (&plain.identity, &of.identity);
    ["fedavg", "fedlsa"].contains(&a.algorithm.kind())
        && a.algorithm.kind() != b.algorithm.kind()
        && a.algorithm.scale() == b.algorithm.scale()
        && a.algorithm.average() == b.algorithm.average()
        && (a.seed, a.rounds, a.oracle, a.replicates) == (b.seed, b.rounds, b.oracle, b.replicates)
        && a.problem == b.problem
        && a.start == b.start
}

/// A claim, its verdict, and its verdicts under what may be wrong.
type Row = (String, Verdict, Vec<(String, Verdict)>);

/// The frontiers with what is wrong; `None` if it is wrong with cells.
fn wrong_frontiers<'a>(
    frontiers: &[ComputedFrontier<'a>],
    wrong: &WrongResult,
) -> Option<Vec<ComputedFrontier<'a>>> {
    use WrongResult::{FrontierDoubled, FrontierExchanged, FrontierTilted};
    if !matches!(wrong, FrontierDoubled(_) | FrontierExchanged(..) | FrontierTilted(..)) {
        return None;
    }
    let factor = |own: &SearchedAlgorithm| match wrong {
        FrontierDoubled(name) if name.as_str() == own.name => 2.0,
        _ => 1.0,
    };
    let tilt = |point: &FrontierPoint<'_>| match wrong {
        FrontierTilted(a, b) => libm::pow(point.clients as f64, *a) * libm::pow(point.target, *b),
        _ => factor(point.algorithm),
    };
    let mut frontiers = frontiers.to_vec();
    for frontier in &mut frontiers {
        let manifest = frontier.frontier;
        let other = |own: &'a SearchedAlgorithm| match wrong {
            FrontierExchanged(a, b) if own.name == a.as_str() => {
                manifest.algorithm(b).unwrap_or(own)
            }
            FrontierExchanged(a, b) if own.name == b.as_str() => {
                manifest.algorithm(a).unwrap_or(own)
            }
            _ => own,
        };
        for best in &mut frontier.best {
            let by = tilt(best);
            best.cost = best.cost.map(|cost| FrontierCost {
                run: RoundSettings {
                    local_steps: (cost.run.local_steps as f64 * by).ceil() as u64,
                    step_size: cost.run.step_size * by,
                    ..cost.run
                },
                communications: cost.communications * by,
                gradients: cost.gradients * by,
                samples: cost.samples * by,
                bytes: cost.bytes * by,
                ..cost
            });
            best.algorithm = other(best.algorithm);
        }
        let squares = frontier.phases.iter_mut().flat_map(|phase| &mut phase.squares);
        for (algorithm, _, value) in squares.flat_map(|square| &mut square.ranked.all) {
            *value *= factor(algorithm);
            *algorithm = other(algorithm);
        }
    }
    Some(frontiers)
}

/// The claims of a manifest under everything that may be wrong with them.
fn rows(subject: &Subject<'_>) -> Vec<Row> {
    let plan = subject.plan;
    let cells = subject.cells(&Traces::new());
    let frontiers = &subject.frontiers;
    let judged = Judge { plan, cells: &cells, theory: subject.theory, frontiers }.look(plan, LEVEL);
    let row = |id: &str, claim: &dyn Claim<'_>| {
        let place = judged.iter().position(|judged| judged.common.id == id).unwrap();
        let claimed = claim.cells();
        let under = |wrong: WrongResult| {
            let verdicts = match &claimed {
                Some(claimed) => {
                    let replaced = replaced(claimed, subject, &cells, &wrong)?;
                    subject.verdicts(&replaced, &subject.frontiers)
                }
                None => {
                    let wrong = wrong_frontiers(&subject.frontiers, &wrong)?;
                    subject.verdicts(&Traces::new(), &wrong)
                }
            };
            Some((format!("{wrong:?}"), verdicts[place]))
        };
        let with_cells = claimed.iter().flat_map(|_| WrongResult::WITH_CELLS);
        let under = claim.wrong().into_iter().chain(with_cells).filter_map(under).collect();
        (format!("{}#{id}", plan.experiment), judged[place].judgement.verdict, under)
    };
    let ids = plan.claim_tables.iter().map(|table| &table.common().id);
    ids.zip(claims(plan)).map(|(id, claim)| row(id, &*claim)).collect()
}

/// The manifests of `experiments/`, by name.
fn manifests() -> Vec<(String, Source)> {
    let root = Path::new("experiments");
    let source = |file: PathBuf| {
        let experiment = file.strip_prefix(root).unwrap().with_extension("");
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.to_str().unwrap().to_owned();
        (experiment.to_str().unwrap().to_owned(), Source { name, text, ..Source::default() })
    };
    files_with(root, "toml").into_iter().map(source).collect()
}

/// The rows of a manifest; `None` if its results are neither stored nor quickly computed.
fn of_manifest(name: &str, source: Source, stored: Option<&Store>) -> Option<Vec<Row>> {
    let plan = exactfed::evidence::plan(name.to_owned(), source).unwrap_or_else(|e| panic!("{e}"));
    if plan.claim_tables.is_empty() {
        return None;
    }
    let plan = match stored {
        Some(store) => tuned::follow(plan, store).unwrap(),
        None if plan.tuning.is_some() || !plan.manifest.frontier.is_empty() => return None,
        None => plan,
    };
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let of_cell = |cell: &&Cell| {
        let clients = cell.identity.problem.extent().map_or(usize::MAX, |extent| extent.clients);
        cell.identity.client_steps(clients)
    };
    if stored.is_none() && cells.iter().map(of_cell).fold(0, u64::saturating_add) > SMALL {
        return None;
    }
    let prepared = prepare(&plan.folder(), &cells).unwrap();
    let traces = |prepared: &Prepared<'_>| {
        let cell = prepared.cell;
        let traces = match stored {
            Some(store) => store.read(&plan.experiment, &cell.id).unwrap()?.traces,
            None => (0..cell.identity.runs()).map(|r| prepared.simulate(r)).collect(),
        };
        Some((cell.id.to_string(), traces))
    };
    let traces: Traces = prepared.par_iter().filter_map(traces).collect();
    assert_eq!(traces.len(), plan.cells.len(), "{name}: results are missing: run `make reproduce`");
    let needs = Needs::of_claims(&plan);
    let moments = plan.cells.iter().filter(|cell| needs.claims_need_moments(cell));
    let moments: HashSet<&str> = moments.map(|cell| cell.id.as_str()).collect();
    let cache = stored.map_or(MomentsCache::Off, |store| MomentsCache::Read(store));
    let theory = Theory::new(&prepared, &moments, cache);
    let frontiers = stored.map(|store| frontier::frontiers(&plan, store, &|_| ()).unwrap());
    let frontiers = frontiers.unwrap_or_default();
    Some(rows(&Subject { plan: &plan, prepared: &prepared, theory: &theory, frontiers, traces }))
}

/// The beginning of the page of all claims.
const PAGE: &str = "# Claims on wrong results

Written by `make mutations`. Each claim with its verdict, and how many of the kinds of wrong results that apply to it (docs/METHODOLOGY.md, What a claim would have refuted) refute it.
What does not refute it leaves it supported, or undecided: a claim of one kind of error alone has little power.

| claim | verdict | refuted by |
| --- | --- | --- |
";

#[test]
fn no_supported_claim_survives_everything_that_may_be_wrong() {
    let stored = std::env::var_os("EXACTFED_RESULTS");
    let stored = stored.map(|folder| Store::open_existing(Path::new(&folder)).unwrap());
    let (mut judged, mut survivors) = (0, Vec::new());
    let mut page = PAGE.to_owned();
    for (name, source) in manifests() {
        for (claim, verdict, under) in
            of_manifest(&name, source, stored.as_ref()).into_iter().flatten()
        {
            judged += 1;
            let each = under.iter().map(|(wrong, verdict)| format!("{wrong}: {}", verdict.name()));
            let each: Vec<String> = each.collect();
            println!("{claim}: {} | {}", verdict.name(), each.join(", "));
            let refuted = under.iter().filter(|(_, verdict)| *verdict == Verdict::Refuted).count();
            page += &format!("| {claim} | {} | {refuted} of {} |\n", verdict.name(), under.len());
            let survives = under.iter().all(|(_, verdict)| *verdict == Verdict::Supported);
            if verdict == Verdict::Supported && survives {
                survivors.push(claim);
            }
        }
    }
    println!("{judged} claims");
    if let Some(folder) = std::env::var_os("EXACTFED_REPORTS") {
        std::fs::write(Path::new(&folder).join("mutations.md"), page).unwrap();
    }
    assert!(judged > 0, "no claim was judged");
    assert!(survivors.is_empty(), "supported whatever is wrong: {survivors:#?}");
}
