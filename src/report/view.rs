//! What the templates see: strings only.

use super::claims::{self, Claim};
use super::formula::{self, Formula};
use super::{explore, narrate};
use crate::analysis::{Experiment, Standing, Sure, problems, standings, table};
use crate::chart;
use crate::manifest::{Quantity, Source};
use crate::stats::Summary;
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
    pub paragraphs: Vec<String>,
    pub figures: Vec<Figure>,
    pub table: Table,
    pub problems: Problems,
    pub claims: Vec<Claim>,
    pub counts: Vec<(String, usize)>,
    pub bounds: Table,
    pub orders: Table,
    pub settings: Vec<(String, String)>,
    pub winners: Table,
    pub algorithms: Vec<Formula>,
    pub quantities: Vec<Formula>,
    /// The numbers of its figures, as JSON that a script element can hold.
    pub data: String,
}

#[derive(Serialize)]
pub struct Problems {
    pub per_replicate: bool,
    pub instances: Table,
    pub drifts: Table,
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

#[derive(Clone, Serialize)]
pub struct Table {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

pub fn page(experiment: &Experiment) -> Result<Page, String> {
    let plan = &experiment.plan;
    let manifest = &plan.manifest;
    let text = manifest.analysis.as_deref().unwrap_or_default();
    let narrated = narrate::render(text, experiment)?;
    let judged: Vec<Claim> =
        experiment.claims.iter().map(|c| claims::claim(&plan.experiment, c)).collect();
    let figures = experiment.figures.iter().map(|figure| {
        Ok(Figure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            caption: match &manifest.source {
                Some(source) => format!("{source}. {}", figure.caption),
                None => figure.caption.clone(),
            },
            svg: chart::svg(figure)?,
            live: figure.asks.is_some(),
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
        paragraphs: paragraphs(&narrated),
        figures: figures.collect::<Result<_, String>>()?,
        table: finals(experiment),
        problems: problems(&experiment.problems),
        counts: claims::counts(&judged),
        claims: judged,
        bounds: claims::bounds(&experiment.bounds),
        orders: claims::orders(&experiment.orders),
        settings: settings(experiment),
        winners: winners(experiment),
        algorithms: formula::algorithms(experiment),
        quantities: formula::quantities(experiment),
        data: data(experiment)?,
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
fn data(experiment: &Experiment) -> Result<String, String> {
    let json = serde_json::to_string(&explore::data(experiment)).map_err(|e| e.to_string())?;
    Ok(json.replace('<', "\\u003c"))
}

/// Who wins, where several algorithms stand beside one another.
fn winners(experiment: &Experiment) -> Table {
    let (axes, rows) = standings(&experiment.cells);
    let mut heads = axes;
    heads.extend(
        ["smallest mean error", "‖θ_T − θ*‖²", "next", "times larger", "sure", "runs"]
            .map(str::to_owned),
    );
    let row = |row: Standing| {
        let mut cells = row.place;
        let error = short(row.error);
        let dash = || "–".to_owned();
        cells.extend(match (row.sure, row.second) {
            (Sure::Nobody, _) => ["none: above the start".into(), error, dash(), dash(), dash()],
            // Equal but for rounding: which one is smaller says nothing.
            (Sure::Same, Some((next, _))) => {
                ["tie".into(), error, format!("{}, {next}", row.winner), "1".into(), dash()]
            }
            (sure, Some((next, ratio))) => {
                let told = claims::interval(ratio.estimate, (ratio.low, ratio.high));
                let sure = if sure == Sure::Yes { "yes" } else { "no" };
                [row.winner, error, next, told, sure.into()]
            }
            (_, None) => [row.winner, error, "all others diverged".into(), dash(), "yes".into()],
        });
        let diverged = match row.diverged.len() {
            0 => String::new(),
            _ => format!("; diverged: {}", row.diverged.join(", ")),
        };
        cells.push(format!("{}{diverged}", row.n));
        cells
    };
    Table { heads, rows: rows.into_iter().map(row).collect() }
}

fn paragraphs(text: &str) -> Vec<String> {
    let blocks = text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    blocks.filter(|p| !p.is_empty()).collect()
}

/// Three digits: `1.23e-4`.
pub fn short(value: f64) -> String {
    match value {
        v if v.is_nan() => "–".into(),
        0.0 => "0".into(),
        v if (0.01..1000.0).contains(&v.abs()) => {
            let digits = 2 - (libm::log10(v.abs()).floor() as i32);
            format!("{v:.*}", digits.max(0) as usize)
        }
        v => format!("{v:.2e}"),
    }
}

fn finals(experiment: &Experiment) -> Table {
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
    let rows = table.rows.iter().map(|row| {
        let mut cells = vec![row.label.clone()];
        cells.extend(row.settings.iter().cloned());
        match &row.sq_error {
            Some(summary) => {
                let (low, high) = summary.interval();
                cells.push(short(summary.mean));
                cells.push(short(summary.sd));
                cells.push(format!("[{}, {}]", short(low), short(high)));
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
    Table { heads, rows: rows.collect() }
}

/// ζ₁, ζ₂ and their kin, an instance a row; the drifts in a table of their own.
fn problems(table: &problems::Table) -> Problems {
    let several = table.rows.len() > 1;
    let gap = table.rows.iter().any(|row| row.measures.virtual_gap.is_some());
    let mut heads = Vec::new();
    if several {
        heads.push("problem");
    }
    heads.extend(["N", "d", "ζ₁", "ζ₂", "μ", "L", "noise: N⁻¹ Σ tr C_c"]);
    if gap {
        heads.push("‖θ* − θ̃‖");
    }
    let instance = |row: &problems::Row| {
        let m = &row.measures;
        let mut cells = if several { vec![row.name.clone()] } else { Vec::new() };
        cells.extend([row.size.0.to_string(), row.size.1.to_string()]);
        cells.extend([m.zeta1, m.zeta2, m.mu, m.smoothness, m.noise].map(short));
        if gap {
            cells.push(m.virtual_gap.map_or("–".into(), short));
        }
        cells
    };
    let drift = |row: &problems::Row| {
        let name = several.then(|| row.name.clone());
        let line = move |(step, steps, drift): &(f64, u64, f64)| {
            let mut cells: Vec<String> = name.clone().into_iter().collect();
            cells.extend([step.to_string(), steps.to_string(), short(*drift)]);
            cells
        };
        row.drifts.iter().map(line).collect::<Vec<_>>()
    };
    let drifts: Vec<Vec<String>> = table.rows.iter().flat_map(drift).collect();
    let mut drift_heads: Vec<String> = if several { vec!["problem".into()] } else { Vec::new() };
    drift_heads.extend(["γ".into(), "H".into(), "average drift at θ*".into()]);
    Problems {
        per_replicate: table.per_replicate,
        instances: Table {
            heads: heads.into_iter().map(str::to_owned).collect(),
            rows: table.rows.iter().map(instance).collect(),
        },
        drifts: Table { heads: drift_heads, rows: drifts },
    }
}

/// Settings that all cells share.
fn settings(experiment: &Experiment) -> Vec<(String, String)> {
    let Some(first) = experiment.plan.cells.first() else { return Vec::new() };
    let shared = first.settings.0.iter().filter(|(path, value)| {
        let leaf = !first.settings.0.keys().any(|k| k.starts_with(&format!("{path}.")));
        let same = |c: &crate::plan::Cell| c.settings.0.get(*path) == Some(*value);
        leaf && path.contains('.') && experiment.plan.cells.iter().all(same)
    });
    shared.map(|(path, value)| (path.clone(), value.to_string())).collect()
}
