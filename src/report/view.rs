//! A page as its templates read it: texts only.

use super::amendments;
use super::claims::{self, ClaimText};
use super::finding::Finding;
use super::formula;
use super::looks;
use super::matrix::{RankingMatrix, not_compared};
use super::number_text::{bracket, ratio_text, short};
use super::truncation::{MOST_ROWS, TableFiles, TextTable};
use super::tuning;
use super::{finding, frontier, page_data};
use crate::chart;
use crate::evidence::looks::TakenLooks;
use crate::evidence::table::{self, FinalsColumns};
use crate::evidence::{
    Body, CellResult, Experiment, Missing, Rival, Separation, Standing, Standings, band_name,
    details, problems, when_text,
};
use crate::stats::looks::Looks;
use crate::stats::verdict::Verdict;
use crate::stats::{ROUNDING_FLOOR, mean};
use exactfed_core::sources;
use exactfed_core::words::{quoted, shell_word, thousands};
use exactfed_runner::manifest::{Quantity, Source};
use exactfed_runner::plan::{Cell, Plan, sets_replicates};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The page of an experiment.
#[derive(Serialize)]
pub struct Page {
    /// Its name, title and sources, and how many cells it has.
    pub experiment: Value,
    /// The manifest, the command that runs it, the settings that all cells have in common, and the
    /// algorithms that it does not define itself.
    pub manifest: Value,
    /// What the results contain besides the cells of this page: what affects verdicts, and what
    /// does not; and the theory that is not computed at this size.
    pub notes: Value,
    /// What the texts of the manifest say of the results.
    pub finding: Finding,
    pub figures: Vec<PageFigure>,
    pub claims: PageClaims,
    /// The ranking, what was selected where settings are tuned, what the runs have cost, and the number of comparisons in its table and in maps.
    pub ranking: Value,
    pub tables: Tables,
    /// How the problem's instances are measured, and how exactly.
    pub problems: Value,
    pub formulas: Value,
    /// The numbers of its figures, as JSON that a script element can hold.
    pub data: String,
}

#[derive(Serialize)]
pub struct PageFigure {
    pub id: String,
    pub title: String,
    pub caption: String,
    /// What the caption says of the band, which another view changes; `None` where no band is drawn
    /// by the page's script.
    pub band: Option<&'static str>,
    pub svg: String,
    /// Whether the page's script draws other views of it, and saves them.
    pub live: bool,
}

#[derive(Serialize)]
pub struct PageClaims {
    pub list: Vec<ClaimText>,
    /// How many have each verdict.
    pub counts: Vec<(Verdict, usize)>,
    /// At which looks they were judged, and on which noise, where replicates were added in planned
    /// looks; empty otherwise.
    pub looks: String,
    /// Whether all that was tested are exact numbers.
    pub exact: bool,
    /// The head of the column of estimates.
    pub head: &'static str,
    /// What an earlier version of the page supported and this one does not.
    pub withdrawn: TextTable,
}

#[derive(Serialize)]
pub struct Tables {
    pub amendments: TextTable,
    pub finals: TextTable,
    /// The cells without results, if there are others.
    pub missing: TextTable,
    pub bounds: TextTable,
    pub first_order: TextTable,
    pub frontier: TextTable,
    /// What it costs to miss the best settings of frontiers.
    pub sensitivity: TextTable,
    /// The heterogeneity of the problem's instances, and the drifts there.
    pub instances: TextTable,
    pub drifts: TextTable,
}

/// The page of an experiment. Tables that are too long for it are files.
///
/// # Errors
/// If a figure cannot be drawn, or the analysis text cannot be filled.
pub fn page(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> Result<Page, String> {
    let plan = &experiment.plan;
    let manifest = &plan.manifest;
    let source = manifest.source.as_deref().unwrap_or_default();
    let claims = page_claims(experiment, files);
    let (problems, [instances, drifts]) = problems(&experiment.problems);
    let tables = Tables {
        amendments: amendments::table(&manifest.amendment),
        finals: finals(experiment),
        missing: missing(experiment),
        bounds: claims::bounds(&experiment.bounds, files),
        first_order: claims::first_order(&experiment.first_order, files),
        frontier: frontier::table(&experiment.frontiers),
        sensitivity: frontier::sensitivity(&experiment.frontiers),
        instances,
        drifts,
    };
    Ok(Page {
        experiment: json!({
            "name": plan.experiment,
            "title": manifest.title,
            "question": manifest.question,
            "opens_with": manifest.opens_with,
            "source": sources::cited(source),
            "cited": sources::named_in(source),
            "seed": manifest.seed,
            "noise_seed": manifest.noise_seed,
            "replicates": plan.cells.first().map_or(manifest.replicates, |c| c.identity.runs()),
            "sample": match manifest.instances {
                Some(several) if several > 1 => "instances, each with the mean of its runs",
                _ => "runs",
            },
            "cells": planned_cells(plan),
            "missing": experiment.missing.len(),
        }),
        manifest: json!({
            "file": plan.source.name,
            "command": command(&plan.experiment, &plan.source, experiment.looks.as_ref()),
            "text": plan.source.text,
            "settings": shared_settings(plan),
            "algorithms": own_algorithms(&plan.source),
        }),
        notes: json!({
            "amended": amendments::warning(&manifest.amendment),
            "warning": experiment.unplanned.warning(),
            "other_cells": experiment.unplanned.other_settings(),
            "not_computed": experiment.not_computed,
        }),
        finding: finding::finding(experiment)?,
        figures: figures(experiment)?,
        claims,
        ranking: ranking(experiment, files),
        tables,
        problems,
        formulas: json!({
            "algorithms": formula::algorithms(experiment),
            "quantities": formula::quantities(experiment),
        }),
        data: data(experiment)?,
    })
}

/// The claims of a page.
fn page_claims(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> PageClaims {
    let name = &experiment.plan.experiment;
    let all = experiment.claims.iter();
    let mut list: Vec<ClaimText> = all.map(|claim| claims::claim(name, claim, files)).collect();
    let looks = experiment.looks.as_ref();
    looks::add_remarks(looks, &mut list);
    amendments::mark(&experiment.plan.manifest.amendment, &mut list);
    let sentences = looks.map(looks::sentence).into_iter();
    let sentences = sentences.chain(experiment.unplanned.confirmation());
    let mut tested = list.iter().filter(|claim| claim.verdict != Verdict::NotTested).peekable();
    let exact = tested.peek().is_some() && tested.all(|claim| claim.exact);
    PageClaims {
        counts: claims::counts(&list),
        looks: sentences.collect::<Vec<_>>().join(" "),
        exact,
        head: claims::estimate_head(exact),
        withdrawn: claims::withdrawn(&experiment.claims),
        list,
    }
}

/// The number of cells of an experiment; of a tuned one with its candidates and those that follow
/// from them.
pub fn planned_cells(plan: &Plan) -> usize {
    match plan.tuning {
        None => plan.cells.len(),
        Some(_) => plan.all_cells().map(|cell| &cell.id).collect::<BTreeSet<_>>().len(),
    }
}

fn figures(experiment: &Experiment<'_>) -> Result<Vec<PageFigure>, String> {
    let figures = experiment.figures.iter().map(|figure| {
        Ok(PageFigure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            band: figure.exploration.as_ref().map(|shown| band_name(shown.band)),
            svg: chart::svg(figure, chart::PAGE).map_err(|e| e.to_string())?,
            live: matches!(figure.body, Body::Plot(_)),
        })
    });
    figures.collect()
}

/// The command that runs a manifest again, for a shell, or in Python where there is no file.
fn command(experiment: &str, source: &Source, looks: Option<&TakenLooks>) -> String {
    if source.unfiled {
        return format!(
            "exactfed.run(manifest, name={experiment:?})   # in Python, with the manifest of this page"
        );
    }
    let file = shell_word(&source.name);
    let sets = source.overrides.iter();
    let sets = sets.filter(|set| looks.is_none() || !sets_replicates(set));
    let sets: String = sets.map(|set| format!(" --set {}", quoted(set))).collect();
    match looks.map(|looks| looks.planned) {
        None => format!("exactfed run {file}{sets}"),
        Some(Looks { first, most }) => format!(
            "exactfed run {file}{sets} --replicates {first} --until-decided --max-replicates {most}"
        ),
    }
}

/// The data of the page's script, without `<`, so that nothing in it ends the element.
fn data(experiment: &Experiment<'_>) -> Result<String, String> {
    let json =
        serde_json::to_string(&page_data::page_data(experiment)).map_err(|e| e.to_string())?;
    Ok(json.replace('<', "\\u003c"))
}

/// The value of a setting, where manifests choose one by `zero = true`.
fn without_true(value: &str) -> String {
    value.strip_suffix(" true").unwrap_or(value).to_owned()
}

/// The quantity by which algorithms are ranked.
fn mean_error(standings: &Standings) -> &'static str {
    match standings.by {
        Quantity::SqError if standings.at.is_none() => "‖θ_T − θ*‖²",
        by => by.formula(),
    }
}

/// What instances of a data file are.
const SAME_RECORDS: &str = ". Instances are random divisions of the same records, and the interval does not cover new records";

/// What is said where a ratio has no logarithm.
const BY_MEANS: &str = " Where an algorithm’s value to be compared is 0 on an instance, ratios are of the means over the instances.";

/// Whether algorithms were compared over instances by their means, since one has a loss of 0.
fn is_by_means(row: &Standing) -> bool {
    row.unit == "instance" && !row.leaders.is_empty() && !row.is_geometric
}

/// The ranking: when the algorithms are compared, by which error and at what cost; its table and
/// its matrix.
fn ranking(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> Value {
    let standings = &experiment.standings;
    json!({
        "tuning": tuning::section(experiment, files),
        "table": ranking_table(standings, files),
        "matrix": RankingMatrix::new(standings, MOST_ROWS),
        "error": mean_error(standings),
        "best": standings.by.best_mean(),
        "next_mean": match standings.by.info().shortfall {
            Some(_) => format!("mean {}", standings.by.compared()),
            None => "mean".to_owned(),
        },
        "when": when_text(standings.at),
        "round": match standings.at {
            Some(_) => ": each run at its last recorded round that costs at most this",
            None => ", whatever it costs",
        },
        "ratios": match experiment.plan.manifest.instances {
            Some(several) if several > 1 => format!(
                "Ratios are geometric means over instances of the problem, with a 95 % interval by Student’s t of their logarithms: it includes the variance between instances{}.{}",
                if experiment.plan.source.files.is_empty() { "" } else { SAME_RECORDS },
                if standings.rows.iter().any(is_by_means) { BY_MEANS } else { "" }
            ),
            _ => "Ratios of means have a 95 % interval over paired runs (common noise).".to_owned(),
        },
        "costs": standings.costs,
        "comparisons": match standings.compared {
            1 => "1 comparison".to_owned(),
            several => format!("{} comparisons", thousands(several)),
        },
    })
}

/// Which algorithm ranks first at each grid point with several algorithms.
fn ranking_table(standings: &Standings, files: &mut TableFiles<'_>) -> TextTable {
    let mut heads = standings.axes.clone();
    let error = mean_error(standings);
    heads.push(match standings.by.more_is_better() {
        true => format!("{} mean", standings.by.best_mean()),
        false => "smallest mean error".to_owned(),
    });
    heads.extend([error.to_owned(), "next".to_owned(), tuning::times_larger(standings.by)]);
    heads.push(standings.rows.first().map_or("runs".into(), |row| format!("{}s", row.unit)));
    let row = |standing: &Standing| {
        let mut cells: Vec<String> =
            standing.values.iter().map(|v| without_true(&v.to_string())).collect();
        cells.push(match standing.leaders.as_slice() {
            [] => format!("none: {}", standing.nothing_ranked()),
            [one] => one.to_string(),
            several => format!("tie: {}", several.join("; ")),
        });
        cells.push(short(standing.error));
        cells.extend(match standing.next() {
            // Equal but for rounding.
            Some((next, Rival { separation: Separation::Equal, .. })) => {
                [next.to_owned(), "1".into()]
            }
            Some((next, Rival { separation: Separation::BothZero, .. })) => {
                [next.to_owned(), "both are zero to rounding".into()]
            }
            Some((next, Rival { ratio, .. })) => [next.to_owned(), ratio_text(ratio)],
            None if standing.leaders.is_empty() => ["–".into(), "–".into()],
            None => [standing.no_others().into(), "–".into()],
        });
        cells.push(format!("{}{}", standing.n, not_compared(standing)));
        cells
    };
    TextTable::first(&heads, standings.rows.iter().map(row), (MOST_ROWS, "winners"), files)
}

fn finals(experiment: &Experiment<'_>) -> TextTable {
    let columns = FinalsColumns::new(experiment);
    let mut heads = vec!["algorithm".to_owned()];
    heads.extend(columns.settings.iter().cloned());
    let metric = |m: Quantity| format!("{}, mean", m.formula());
    heads.extend([metric(columns.first), "sd".into(), "95 % interval".into()]);
    if columns.has_limit {
        heads.push(metric(Quantity::SqErrorLimit));
    }
    if columns.has_bias {
        heads.push("exact bias, squared".into());
    }
    heads.extend(columns.further.iter().map(|quantity| metric(*quantity)));
    heads.extend(["runs".into(), "cell".into()]);
    let dash = || "–".to_owned();
    let row = |result: &CellResult<'_>| {
        let (cell, runs) = (result.cell, &result.runs);
        let mean = |q: Quantity| runs.finals(q).map_or_else(dash, |sample| short(mean(&sample)));
        let mut cells = vec![cell.label.clone()];
        cells.extend(columns.values(cell).iter().map(|value| without_true(value)));
        match result.summary(columns.first) {
            Some(summary) => {
                // Runs that differ by rounding alone have no deviation.
                let is_rounding = summary.sd <= 1e-13 * summary.mean.abs();
                cells.push(short(summary.mean));
                cells.push(short(if is_rounding { 0.0 } else { summary.sd }));
                cells.push(bracket(short, summary.mean, summary.interval).unwrap_or_else(dash));
            }
            None if runs.diverged > 0 => cells.extend(["diverged".into(), dash(), dash()]),
            None => cells.extend([dash(), dash(), dash()]),
        }
        cells.extend(columns.has_limit.then(|| mean(Quantity::SqErrorLimit)));
        cells.extend(columns.has_bias.then(|| result.exact_bias.map_or_else(dash, short)));
        cells.extend(columns.further.iter().map(|quantity| mean(*quantity)));
        let diverged = match runs.diverged {
            0 => String::new(),
            diverged => format!(", {diverged} diverged"),
        };
        cells.extend([format!("{}{diverged}", runs.count), cell.id.to_string()]);
        cells
    };
    let (all, shown) =
        (&experiment.cells, table::best(&experiment.cells, columns.first, MOST_ROWS));
    let rows = shown.into_iter().map(row);
    let mut table = TextTable::new(&heads, rows);
    if table.rows.len() < all.len() {
        let diverged = match all.iter().filter(|c| c.runs.diverged > 0).count() {
            0 => String::new(),
            count => format!(" (runs of {} diverged)", thousands(count)),
        };
        let (shown, all) = (thousands(table.rows.len()), thousands(all.len()));
        table.note = format!(
            "The {shown} of {all} cells{diverged} with the {} mean; all are in",
            columns.first.best_mean()
        );
        table.file = "summary.csv".into();
    }
    table
}

/// The cells without results, where others have some: settings, and why.
fn missing(experiment: &Experiment<'_>) -> TextTable {
    let missing = &experiment.missing;
    if missing.len() == planned_cells(experiment.plan) && missing.iter().all(|m| m.failed.is_none())
    {
        return TextTable::default();
    }
    let row = |missing: &Missing<'_>| {
        let why = missing.failed.clone().unwrap_or_else(|| "not run yet".into());
        let cell = missing.cell;
        vec![cell.label.clone(), details(cell, &[]), why, cell.id.to_string()]
    };
    // Failed cells first, because their reasons are of interest.
    let mut order: Vec<&Missing<'_>> = missing.iter().collect();
    order.sort_by_key(|missing| missing.failed.is_none());
    let heads = ["algorithm", "settings", "why", "cell"];
    let mut table = TextTable::new(&heads, order.into_iter().take(MOST_MISSING).map(row));
    if missing.len() > MOST_MISSING {
        let (shown, all) = (thousands(MOST_MISSING), thousands(missing.len()));
        table.note = format!("{shown} of {all}; `exactfed plan` lists all.");
    }
    table
}

/// Cells without results that a page names.
const MOST_MISSING: usize = 100;

fn iteration_errors(found: &problems::Instances) -> Option<[String; 3]> {
    let errors = found.rows.iter().filter_map(|row| row.measures?.errors);
    let errors = errors.map(|of| [of.zeta2, of.mu, of.smoothness]);
    let most = |a: [f64; 3], b: [f64; 3]| std::array::from_fn(|i| a[i].max(b[i]));
    errors.reduce(most).map(|errors| errors.map(short))
}

/// ζ₁, ζ₂ and further measures, one row per instance; the drifts in a table of their own.
fn problems(found: &problems::Instances) -> (Value, [TextTable; 2]) {
    let several = found.rows.len() > 1;
    let has_virtual =
        found.rows.iter().any(|row| row.measures.and_then(|m| m.virtual_gap).is_some());
    let name = |instance: &problems::InstanceRow| several.then(|| instance.name.clone());
    let mut heads: Vec<&str> = several.then_some("problem").into_iter().collect();
    let mut drift_heads = heads.clone();
    heads.extend(["N", "d", "ζ₁", "ζ₂", "μ", "L", "noise: N⁻¹ Σ tr C_c"]);
    heads.extend(has_virtual.then_some("‖θ* − θ̃‖"));
    drift_heads.extend(["γ", "H", "average drift at θ*"]);
    let instance = |row: &problems::InstanceRow| {
        let mut cells: Vec<String> = name(row).into_iter().collect();
        cells.extend([row.size.0.to_string(), row.size.1.to_string()]);
        let five = row.measures.map(|m| [m.zeta1, m.zeta2, m.mu, m.smoothness, m.noise]);
        cells.extend(five.unwrap_or([f64::NAN; 5]).map(|x| short(without_rounding(x))));
        let gap = row.measures.and_then(|m| m.virtual_gap);
        cells.extend(has_virtual.then(|| gap.map_or("–".into(), short)));
        cells
    };
    let drifts = found.rows.iter().flat_map(|row| {
        row.drifts.iter().map(move |(step, steps, drift)| {
            let mut cells: Vec<String> = name(row).into_iter().collect();
            let drift = short(without_rounding(*drift));
            cells.extend([step.to_string(), steps.to_string(), drift]);
            cells
        })
    });
    let mut instances = TextTable::new(&heads, found.rows.iter().map(instance));
    let mut drifts = TextTable::new(&drift_heads, drifts);
    instances.note = note_on_further(instances.rows.len(), found.further, "instances");
    drifts.note = note_on_further(drifts.rows.len(), found.further_drifts, "drifts");
    // A bound of the size of rounding θ* itself to doubles is not worth a sentence.
    let errors = found.rows.iter().filter_map(|row| row.optimum_error);
    let optimum_error = errors.reduce(f64::max).filter(|error| *error >= 1e-15).map(short);
    let facts = json!({
        "per_replicate": found.per_replicate,
        // Whether some instance has an optimum of the averaged environment.
        "has_virtual": has_virtual,
        // Whether clients have unequal weights.
        "is_weighted": found.rows.iter().any(|row| row.weighted),
        // That the mean of a round's step is biased by who takes part.
        "biased_participation": found.biased_participation,
        // What is known of the columns of data files.
        "remarks": found.remarks,
        // Whether θ* is left out, so that facts at θ* are not known.
        "without_optimum": found.without_optimum,
        // A bound on the error of θ*, where one is known.
        "optimum_error": optimum_error,
        // The largest errors of ζ₂, μ and L that an iteration found, if there are any.
        "iteration_errors": iteration_errors(found),
    });
    (facts, [instances, drifts])
}

/// A measure of heterogeneity or noise; 0 where rounding alone makes it differ from 0.
fn without_rounding(x: f64) -> f64 {
    if x.abs() < ROUNDING_FLOOR.sqrt() { 0.0 } else { x }
}

/// That there are more than are shown.
fn note_on_further(shown: usize, further: usize, what: &str) -> String {
    match further {
        0 => String::new(),
        _ => format!("The first {} of {} {what}.", thousands(shown), thousands(shown + further)),
    }
}

/// The algorithms of the manifest that are defined outside of the program, with their code.
fn own_algorithms(source: &Source) -> Vec<Value> {
    let definitions = source.algorithms.iter().map(|known| &known.definition);
    let shown = definitions.map(|of| {
        json!({ "name": of.name, "kind": of.kind, "version": of.version, "source": of.source })
    });
    shown.collect()
}

/// The settings that all cells have in common.
fn shared_settings(plan: &Plan) -> Vec<(String, String)> {
    let Some(first) = plan.cells.first() else { return Vec::new() };
    let shared = first.settings.iter().filter(|(path, value)| {
        let leaf = !first.settings.iter().any(|(k, _)| k.starts_with(&format!("{path}.")));
        let same = |cell: &Cell| cell.settings.at_path(path) == Some(*value);
        leaf && path.contains('.') && plan.cells.iter().all(same)
    });
    shared.map(|(path, value)| (path.to_owned(), value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use exactfed_core::sources::{Publication, sources};

    #[test]
    fn the_glossary_has_the_same_sources() {
        let text = include_str!("../../docs/GLOSSARY.md");
        let section = text.split_once("## Sources").unwrap().1;
        let text = section.split_whitespace().collect::<Vec<_>>().join(" ");
        let entries: Vec<&str> = text.split("- **").skip(1).collect();
        assert_eq!(entries.len(), sources().len());
        for (entry, source) in entries.iter().zip(sources()) {
            let Publication { key, authors, title, year, link, .. } = source;
            assert!(entry.starts_with(&format!("{key}**: {authors}, ")), "{entry}");
            assert!(entry.contains(&format!("\"{title}")), "{key}: {title}");
            assert!(entry.contains(&year.to_string()), "{key}: {year}");
            let links = entry.matches("](http").count();
            assert_eq!(link.is_empty(), links == 0, "{key}");
            assert!(entry.contains(&format!("({link})")) || link.is_empty(), "{key}: {link}");
        }
    }
}
