//! What the templates see: strings only.

use super::claims::{self, ClaimText};
use super::formula::{self, Formula};
use super::number_text::{bracket, interval, short};
use super::truncation::{File, MOST_ROWS, TextTable};
use super::{description, page_data};
use crate::analysis::{
    Experiment, Missing, Rival, Separation, Standing, Standings, details, problems, table,
};
use crate::chart;
use crate::stats::{ROUNDING_FLOOR, Summary};
use driftbench_core::words::thousands;
use driftbench_runner::manifest::{Quantity, Source};
use serde::Serialize;

#[derive(Serialize)]
pub struct Page {
    pub name: String,
    pub title: String,
    pub source: String,
    pub manifest: String,
    /// The command that runs it again.
    pub again: String,
    pub text: String,
    pub seed: u64,
    pub replicates: u64,
    pub cells: usize,
    pub missing: usize,
    /// The cells without results, if there are others.
    pub absent: TextTable,
    /// What else the results hold: what bears on verdicts, and what does not.
    pub unplanned: [String; 2],
    pub paragraphs: Vec<String>,
    pub figures: Vec<Figure>,
    pub table: TextTable,
    pub problems: Problems,
    /// What theory does not compute at this size.
    pub not_computed: Vec<String>,
    pub claims: Vec<ClaimText>,
    pub counts: Vec<(String, usize)>,
    pub bounds: TextTable,
    pub first_order: TextTable,
    pub settings: Vec<(String, String)>,
    pub winners: TextTable,
    /// Comparisons with the best of a place, in the table of winners and in maps.
    pub compared: String,
    pub algorithms: Vec<Formula>,
    pub quantities: Vec<Formula>,
    /// The numbers of its figures, as JSON that a script element can hold.
    pub data: String,
    /// What is too long for the page.
    #[serde(skip)]
    pub files: Vec<File>,
}

#[derive(Serialize)]
pub struct Problems {
    pub per_replicate: bool,
    /// Whether some instance has an optimum of the averaged environment.
    pub has_virtual: bool,
    pub instances: TextTable,
    pub drifts: TextTable,
}

#[derive(Serialize)]
pub struct Figure {
    pub id: String,
    pub title: String,
    pub caption: String,
    pub svg: String,
    /// Whether the page's script draws other views of it, and saves them.
    pub live: bool,
}

pub fn page(experiment: &Experiment<'_>) -> Result<Page, String> {
    let plan = &experiment.plan;
    let manifest = &plan.manifest;
    let text = manifest.analysis.as_deref().unwrap_or_default();
    let narrated = description::render(text, experiment)?;
    let mut files = Vec::new();
    let told = experiment.claims.iter();
    let judged: Vec<ClaimText> =
        told.map(|c| claims::claim(&plan.experiment, c, &mut files)).collect();
    let figures = experiment.figures.iter().map(|figure| {
        Ok(Figure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            caption: match &manifest.source {
                Some(source) => format!("{source}. {}", figure.caption),
                None => figure.caption.clone(),
            },
            svg: chart::svg(figure)?,
            live: figure.exploration.is_some(),
        })
    });
    Ok(Page {
        name: plan.experiment.clone(),
        title: manifest.title.clone(),
        source: manifest.source.clone().unwrap_or_default(),
        manifest: plan.source.name.clone(),
        again: again(&plan.source),
        text: plan.source.text.clone(),
        seed: manifest.seed,
        replicates: manifest.replicates,
        cells: plan.cells.len(),
        missing: experiment.missing.len(),
        absent: absent(experiment),
        unplanned: [experiment.unplanned.warning(), experiment.unplanned.told()],
        paragraphs: paragraphs(&narrated),
        figures: figures.collect::<Result<_, String>>()?,
        table: finals(experiment),
        problems: problems(&experiment.problems),
        not_computed: experiment.not_computed.clone(),
        counts: claims::counts(&judged),
        claims: judged,
        bounds: claims::bounds(&experiment.bounds, &mut files),
        first_order: claims::first_order(&experiment.first_order, &mut files),
        settings: settings(experiment),
        winners: winners(&experiment.standings, &mut files),
        compared: match experiment.standings.compared {
            1 => "1 comparison".into(),
            several => format!("{} comparisons", thousands(several)),
        },
        algorithms: formula::algorithms(experiment),
        quantities: formula::quantities(experiment),
        data: data(experiment)?,
        files,
    })
}

/// The command that runs a manifest again, for a shell.
fn again(source: &Source) -> String {
    let manifest = &source.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=@%".contains(c);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let file = if manifest.chars().all(plain) { manifest.clone() } else { quoted(manifest) };
    let sets = source.overrides.iter().map(|o| format!(" --set {}", quoted(o)));
    format!("driftbench run {file}{}", sets.collect::<String>())
}

/// No `<`, so that nothing in it ends the element.
fn data(experiment: &Experiment<'_>) -> Result<String, String> {
    let json =
        serde_json::to_string(&page_data::page_data(experiment)).map_err(|e| e.to_string())?;
    Ok(json.replace('<', "\\u003c"))
}

/// Who wins, where several algorithms stand beside one another.
fn winners(standings: &Standings, files: &mut Vec<File>) -> TextTable {
    let mut heads = standings.axes.clone();
    let further = ["smallest mean error", "‖θ_T − θ*‖²", "next", "times larger", "runs"];
    heads.extend(further.map(str::to_owned));
    let row = |row: &Standing| {
        let mut cells = row.place.clone();
        cells.push(match row.leaders.as_slice() {
            [] if row.error.is_nan() => "none: all diverged".into(),
            [] => "none: above the start".into(),
            [one] => one.clone(),
            several => format!("tie: {}", several.join("; ")),
        });
        cells.push(short(row.error));
        cells.extend(match &row.next {
            // Equal but for rounding.
            Some((next, Rival { separation: Separation::Equal, .. })) => [next.clone(), "1".into()],
            Some((next, Rival { ratio, .. })) => {
                [next.clone(), interval(ratio.estimate, (ratio.low, ratio.high))]
            }
            None if row.leaders.is_empty() => ["–".into(), "–".into()],
            None => ["all others diverged".into(), "–".into()],
        });
        let diverged = match row.diverged.len() {
            0 => String::new(),
            _ => format!("; diverged: {}", row.diverged.join(", ")),
        };
        cells.push(format!("{}{diverged}", row.n));
        cells
    };
    TextTable::first(heads, standings.rows.iter().map(row), (MOST_ROWS, "winners"), files)
}

fn paragraphs(text: &str) -> Vec<String> {
    let blocks = text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    blocks.filter(|p| !p.is_empty()).collect()
}

fn finals(experiment: &Experiment<'_>) -> TextTable {
    let table = table::finals(experiment);
    let mut heads = vec!["algorithm".to_owned()];
    heads.extend(table.settings.iter().cloned());
    let metric = |m: Quantity| format!("{}, mean", m.formula());
    heads.extend([metric(Quantity::SqError), "sd".into(), "95 % interval".into()]);
    if table.has_limit {
        heads.push(metric(Quantity::SqErrorLimit));
    }
    if table.has_bias {
        heads.push("exact bias, squared".into());
    }
    heads.extend(table.further.iter().map(|quantity| metric(*quantity)));
    heads.extend(["runs".into(), "cell".into()]);
    let rows = table.best(MOST_ROWS).map(|row| {
        let mut cells = vec![row.label.clone()];
        cells.extend(row.settings.iter().cloned());
        match &row.sq_error {
            Some(summary) => {
                // Runs that differ by rounding alone do not differ.
                let is_rounding = summary.sd <= 1e-13 * summary.mean.abs();
                cells.push(short(summary.mean));
                cells.push(short(if is_rounding { 0.0 } else { summary.sd }));
                let interval = bracket(summary.mean, summary.interval);
                cells.push(interval.unwrap_or_else(|| "–".into()));
            }
            None => cells.extend(["diverged".into(), "–".into(), "–".into()]),
        }
        if table.has_limit {
            let mean = |s: &Summary| short(s.mean);
            cells.push(row.sq_error_limit.as_ref().map_or("–".into(), mean));
        }
        if table.has_bias {
            cells.push(row.exact_bias.map_or("–".into(), short));
        }
        for summary in &row.further {
            cells.push(summary.as_ref().map_or("–".into(), |s| short(s.mean)));
        }
        let diverged =
            if row.diverged > 0 { format!(", {} diverged", row.diverged) } else { String::new() };
        cells.push(format!("{}{diverged}", row.n));
        cells.push(row.id.clone());
        cells
    });
    let (rows, all): (Vec<Vec<String>>, _) = (rows.collect(), experiment.cells.len());
    let (mut cut, mut file) = (String::new(), String::new());
    if rows.len() < all {
        let diverged = match experiment.cells.iter().filter(|c| c.diverged() > 0).count() {
            0 => String::new(),
            count => format!(" (runs of {} diverged)", thousands(count)),
        };
        let (shown, all) = (thousands(rows.len()), thousands(all));
        cut = format!("The {shown} of {all} cells{diverged} with the smallest mean; all are in");
        file = "summary.csv".into();
    }
    TextTable { heads, rows, cut, file }
}

/// The cells without results, where others have some: which, and why.
fn absent(experiment: &Experiment<'_>) -> TextTable {
    let missing = &experiment.missing;
    if missing.len() == experiment.plan.cells.len() && missing.iter().all(|m| m.failed.is_none()) {
        return TextTable::default();
    }
    let row = |missing: &Missing<'_>| {
        let why = missing.failed.clone().unwrap_or_else(|| "not run yet".into());
        vec![missing.cell.label.clone(), details(missing.cell, &[]), why, missing.cell.id.clone()]
    };
    // Those that failed have something to say.
    let mut first: Vec<&Missing<'_>> = missing.iter().collect();
    first.sort_by_key(|missing| missing.failed.is_none());
    let heads = ["algorithm", "settings", "why", "cell"];
    let mut table = TextTable::new(&heads, first.into_iter().take(MOST_ABSENT).map(row));
    if missing.len() > MOST_ABSENT {
        let (shown, all) = (thousands(MOST_ABSENT), thousands(missing.len()));
        table.cut = format!("{shown} of {all}; `driftbench plan` lists all.");
    }
    table
}

/// Cells without results that a page names.
const MOST_ABSENT: usize = 100;

/// ζ₁, ζ₂ and their kin, an instance a row; the drifts in a table of their own.
fn problems(table: &problems::Instances) -> Problems {
    let several = table.rows.len() > 1;
    let gap = table.rows.iter().any(|row| row.measures.and_then(|m| m.virtual_gap).is_some());
    let mut heads = Vec::new();
    if several {
        heads.push("problem");
    }
    heads.extend(["N", "d", "ζ₁", "ζ₂", "μ", "L", "noise: N⁻¹ Σ tr C_c"]);
    if gap {
        heads.push("‖θ* − θ̃‖");
    }
    let instance = |row: &problems::Instance| {
        let mut cells = if several { vec![row.name.clone()] } else { Vec::new() };
        cells.extend([row.size.0.to_string(), row.size.1.to_string()]);
        let five = row.measures.map(|m| [m.zeta1, m.zeta2, m.mu, m.smoothness, m.noise]);
        cells.extend(five.unwrap_or([f64::NAN; 5]).map(|x| short(without_rounding(x))));
        if gap {
            let found = row.measures.and_then(|m| m.virtual_gap);
            cells.push(found.map_or("–".into(), short));
        }
        cells
    };
    let drift = |row: &problems::Instance| {
        let name = several.then(|| row.name.clone());
        let line = move |(step, steps, drift): &(f64, u64, f64)| {
            let mut cells: Vec<String> = name.clone().into_iter().collect();
            let drift = short(without_rounding(*drift));
            cells.extend([step.to_string(), steps.to_string(), drift]);
            cells
        };
        row.drifts.iter().map(line).collect::<Vec<_>>()
    };
    let drifts: Vec<Vec<String>> = table.rows.iter().flat_map(drift).collect();
    let mut drift_heads: Vec<String> = if several { vec!["problem".into()] } else { Vec::new() };
    drift_heads.extend(["γ".into(), "H".into(), "average drift at θ*".into()]);
    Problems {
        per_replicate: table.per_replicate,
        has_virtual: gap,
        instances: TextTable {
            cut: more(table.rows.len(), table.further, "instances"),
            ..TextTable::new(&heads, table.rows.iter().map(instance))
        },
        drifts: TextTable {
            cut: more(drifts.len(), table.further_drifts, "drifts"),
            heads: drift_heads,
            rows: drifts,
            file: String::new(),
        },
    }
}

/// A measure of heterogeneity or noise, 0 where it is what rounding leaves of 0.
fn without_rounding(x: f64) -> f64 {
    if x.abs() < ROUNDING_FLOOR.sqrt() { 0.0 } else { x }
}

/// That there are more than are told.
fn more(shown: usize, further: usize, what: &str) -> String {
    match further {
        0 => String::new(),
        _ => format!("The first {} of {} {what}.", thousands(shown), thousands(shown + further)),
    }
}

/// Settings that all cells share.
fn settings(experiment: &Experiment<'_>) -> Vec<(String, String)> {
    let Some(first) = experiment.plan.cells.first() else { return Vec::new() };
    let shared = first.settings.iter().filter(|(path, value)| {
        let leaf = !first.settings.iter().any(|(k, _)| k.starts_with(&format!("{path}.")));
        let same = |c: &driftbench_runner::plan::Cell| c.settings.at_path(path) == Some(*value);
        leaf && path.contains('.') && experiment.plan.cells.iter().all(same)
    });
    shared.map(|(path, value)| (path.to_owned(), value.to_string())).collect()
}
