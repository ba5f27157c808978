//! What tuning found, as the table of a page and as `tuned.csv`.

use crate::evidence::tuned::STOPPING_LEVEL;
use crate::evidence::{CandidateCounts, CandidateRow, Experiment, TunedRow, TuningResult};
use crate::report::number_text::{bracket, nine_digits, ratio_text, short, zero_below};
use crate::report::series::line;
use crate::report::text_table::{MOST_ROWS, TableFiles, TextCell, TextTable};
use exactfed_core::words::count;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Setting;
use serde::Serialize;

/// A setting in a CSV file; empty where an algorithm does not have it.
fn setting_or_empty(value: &Option<Setting>) -> String {
    value.as_ref().map(Setting::to_string).unwrap_or_default()
}

/// What tuning found.
#[derive(Serialize)]
pub struct TuningSection {
    /// How candidates were made and compared.
    pub sentences: Vec<String>,
    /// What was selected.
    pub table: TextTable,
}

impl TuningSection {
    /// The section; `None` where nothing is tuned. `tuned.csv` is handed to `files`, and `candidates.csv` too if
    /// some candidates were stopped before their last runs.
    pub fn new(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> Option<Self> {
        let found = experiment.tuning.as_ref()?;
        files("tuned.csv", &mut |out| out.write_all(csv(found).as_bytes()));
        if found.stopped_after.is_some() {
            files("candidates.csv", &mut |out| out.write_all(candidates_csv(found).as_bytes()));
        }
        let columns = TuningColumns::new(found);
        let rows = found.rows.iter().take(MOST_ROWS).map(|row| columns.row(row));
        let table = TextTable::new(&columns.heads(), rows).of_rows(found.rows.len(), "tuned.csv");
        Some(Self { sentences: sentences(experiment, found), table })
    }
}

/// Which columns the table of what was selected has.
struct TuningColumns<'a> {
    found: &'a TuningResult,
    /// Whether one value for all algorithms together was run too.
    has_shared: bool,
    /// Whether something that was selected is at the edge of what was tried.
    has_edges: bool,
}

impl<'a> TuningColumns<'a> {
    /// The columns that are needed for these rows.
    fn new(found: &'a TuningResult) -> Self {
        Self {
            found,
            has_shared: found.rows.iter().any(|row| row.shared.is_some()),
            has_edges: found.rows.iter().any(|row| !row.edges.is_empty()),
        }
    }

    /// The heads of the columns, in the order in which [`Self::row`] writes cells.
    fn heads(&self) -> Vec<String> {
        let found = self.found;
        let mut heads = vec!["algorithm".to_owned()];
        heads.extend(found.axes.iter().cloned());
        heads.extend(found.settings.iter().map(|setting| setting.key.clone()));
        heads.push(format!("{} of fresh runs", found.metric.formula()));
        if self.has_shared {
            heads.extend(["with one value for all".to_owned(), times_larger(found.metric)]);
        }
        heads.extend(["mean when selected".to_owned(), "candidates".to_owned()]);
        if self.has_edges {
            heads.push("at the edge".to_owned());
        }
        heads
    }

    /// The row of an algorithm at a point of the grid: the selected settings, what fresh runs with them show, how that
    /// compares with the settings that are best for all algorithms together, and how many candidates there were.
    fn row(&self, row: &TunedRow) -> Vec<TextCell> {
        let settings = self.found.settings.len();
        let mut cells: Vec<TextCell> = vec![row.label.as_str().into()];
        cells.extend(
            row.values.iter().map(|value| value.as_ref().map(TextCell::from).unwrap_or_default()),
        );
        cells.extend((0..settings).map(|i| {
            let value = row.selected.as_ref().and_then(|selected| selected[i]);
            value.map_or_else(TextCell::dash, |x| TextCell::stating(x, x.to_string()))
        }));
        cells.push(row.fresh.map_or_else(TextCell::dash, |summary| {
            let mean = short(summary.mean);
            match bracket(short, summary.mean, summary.interval) {
                Some(bracket) => TextCell::stating(summary.mean, format!("{mean} {bracket}")),
                None => TextCell::stating(summary.mean, mean),
            }
        }));
        match &row.shared {
            Some((shared, _)) if Some(shared) == row.selected.as_ref() => {
                cells.extend(["the same".into(), TextCell::stating(1.0, "1".to_owned())]);
            }
            Some((shared, ratio)) => {
                let values = values(Some(shared), settings, "–").join(", ");
                cells.push(match shared[..] {
                    [Some(value)] => TextCell::stating(value, values),
                    _ => values.into(),
                });
                cells.push(if ratio.estimate.is_nan() {
                    format!("both are {}", zero_below(self.found.metric)).into()
                } else {
                    TextCell::stating(ratio.estimate, ratio_text(ratio))
                });
            }
            None if self.has_shared => cells.extend([TextCell::dash(), TextCell::dash()]),
            None => {}
        }
        cells.push(TextCell::short(row.tuning_value));
        let candidates = candidates_in_words(row.candidates);
        cells.push(TextCell::stating(row.candidates.all as f64, candidates));
        if self.has_edges {
            cells.push(row.edges.join("; ").into());
        }
        cells
    }
}

/// How many candidates there are, and of how many the runs ended early.
fn candidates_in_words(counts: CandidateCounts) -> String {
    let CandidateCounts { all, diverged, stopped } = counts;
    let mut words = all.to_string();
    if diverged > 0 {
        words += &format!(", {diverged} diverged");
    }
    if stopped > 0 {
        words += &format!(", {stopped} stopped");
    }
    words
}

/// The value of each of `settings` tuned settings that is selected, or that a candidate has, as a text; the text `none`
/// for a setting that the algorithm lacks, and where nothing is selected. Otherwise there must be `settings` values.
fn values(selected: Option<&[Option<f64>]>, settings: usize, none: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for i in 0..settings {
        let value = selected.and_then(|all| all[i]);
        texts.push(value.map_or(none.to_owned(), |value| value.to_string()));
    }
    texts
}

/// A clause that says how many selected candidates are at the edge of what was tried, where a wider search might find
/// better ones and change the ranking; `None` if none is. They are counted out of the rows in which a candidate is
/// selected: algorithms at points of the grid. The table's sentences and the line below the headline contain it.
pub fn at_the_edge(found: &TuningResult) -> Option<String> {
    let selected: Vec<&TunedRow> = found.rows.iter().filter(|row| row.selected.is_some()).collect();
    let at_edge = selected.iter().filter(|row| !row.edges.is_empty()).count();
    let all = selected.len();
    let are = if at_edge == 1 { "is" } else { "are" };
    (at_edge > 0).then(|| {
        format!("{at_edge} of {all} selected candidates {are} at the edge of what was tried")
    })
}

/// The head of a column of ratios of means, which names the loss that they are ratios of where more of the metric is
/// better.
pub fn times_larger(metric: Quantity) -> String {
    match metric.info().shortfall {
        Some(shortfall) => format!("{}, times larger", shortfall.name),
        None => "times larger".to_owned(),
    }
}

/// Sentences on how candidates were made, compared and stopped, for readers of the table of what was selected.
fn sentences(experiment: &Experiment<'_>, found: &TuningResult) -> Vec<String> {
    let Some(tune) = &experiment.plan.manifest.tune else { return Vec::new() };
    let runs = tune.replicates.unwrap_or(experiment.plan.manifest.replicates);
    let mut all = vec![on_selection(experiment, found, runs)];
    all.extend(found.stopped_after.as_ref().map(|first| on_race(found, first)));
    if found.rows.iter().any(|row| row.shared.is_some()) {
        all.push(on_shared_values(experiment, found));
    }
    all.extend(at_the_edge(found).map(|edge| {
        format!(
            "{edge}, or next to a candidate that diverged. A better value may be outside: widen the range or the values in [tune]."
        )
    }));
    let none = found.rows.iter().filter(|row| row.selected.is_none()).count();
    if none > 0 {
        all.push(format!(
            "In {} no candidate is selected: some were not run, or runs of each diverged.",
            count(none, "row")
        ));
    }
    all
}

/// How candidates were selected, by this number of runs of each (on each instance, if there are several), and why the
/// page shows fresh runs of the selected ones.
fn on_selection(experiment: &Experiment<'_>, found: &TuningResult, runs: u64) -> String {
    let (on, fresh) = match experiment.plan.manifest.instances {
        Some(several) if several > 1 => {
            let on = format!(" on each of {}", count(several as usize, "instance"));
            (on, "on fresh instances and with fresh noise")
        }
        _ => (String::new(), "with fresh noise"),
    };
    let best = found.metric.best_mean();
    let too = if found.metric.more_is_better() { "large" } else { "small" };
    format!(
        "For each algorithm, and at each point of the grid, the candidate with the {best} mean of {} over {}{on} was selected. All algorithms begin with the same values and have the same noise; where the best is at the edge of a range, further candidates are added to that algorithm alone, and the table has the numbers. No setting but the {} is tuned. What this page shows are runs of the selected candidates {fresh}: on average the mean by which a candidate was selected is too {too}, since it is the {best} of several. Ratios of algorithms and claims count in their intervals that other runs would have selected other candidates.",
        found.metric.formula(),
        count(runs as usize, "run"),
        experiment.tuned_in_words(),
    )
}

/// How many candidates were stopped early in the race, and why that changes nothing for the others; `first` says in
/// words after which runs they were stopped.
fn on_race(found: &TuningResult, first: &str) -> String {
    let mut stopped = 0;
    let mut candidates = 0;
    for row in &found.rows {
        stopped += row.candidates.stopped;
        candidates += row.candidates.all;
    }
    format!(
        "Candidates race: {stopped} of {} were stopped after {first}, since their {} was worse than that of the best with a p-value below {STOPPING_LEVEL}. Those that went on have the runs that they would have without a race; candidates.csv has the mean of each candidate and says whether it was stopped.",
        count(candidates, "candidate"),
        found.metric.formula(),
    )
}

/// What the columns mean that compare the selected settings with one setting for all algorithms together.
fn on_shared_values(experiment: &Experiment<'_>, found: &TuningResult) -> String {
    let (means, mean) = match found.metric.info().shortfall {
        Some(shortfall) => {
            (format!("mean {}s", shortfall.name), format!("mean {}", found.metric.compared()))
        }
        None => ("means".to_owned(), "mean".to_owned()),
    };
    format!(
        "\"With one value for all\" is the {} that is best for all algorithms together, by the product of their {means}, and \"{}\" how many times larger the fresh {mean} is with it: what tuning each algorithm by itself gains.",
        experiment.tuned_in_words(),
        times_larger(found.metric)
    )
}

/// The text of `tuned.csv`: a line for each algorithm at each point of the grid, with what was selected, the fresh runs
/// and the gain over one setting for all algorithms, a ratio of mean losses. What does not exist is empty.
fn csv(found: &TuningResult) -> String {
    let mut heads = vec!["label".to_owned()];
    heads.extend(found.axes.iter().cloned());
    match found.settings.as_slice() {
        [_] => heads.push("selected".into()),
        several => heads.extend(several.iter().map(|setting| format!("selected_{}", setting.key))),
    }
    let further = [
        "at_edge tuning_value value low high replicates",
        "candidates diverged stopped gain gain_low gain_high",
    ];
    heads.extend(further.iter().flat_map(|names| names.split(' ')).map(str::to_owned));
    let mut out = line(&heads);
    for row in &found.rows {
        let mut cells = vec![row.label.clone()];
        cells.extend(row.values.iter().map(setting_or_empty));
        cells.extend(values(row.selected.as_deref(), found.settings.len(), ""));
        cells.push(row.edges.join("; "));
        cells.push(nine_digits(row.tuning_value));
        let fresh = row.fresh.map_or([f64::NAN; 3], |s| [s.mean, s.interval.0, s.interval.1]);
        cells.extend(fresh.map(nine_digits));
        let CandidateCounts { all, diverged, stopped } = row.candidates;
        cells.push(row.replicates.to_string());
        cells.extend([all, diverged, stopped].map(|count| count.to_string()));
        let gain = row.shared.as_ref().map(|(_, ratio)| [ratio.estimate, ratio.low, ratio.high]);
        cells.extend(gain.unwrap_or([f64::NAN; 3]).map(nine_digits));
        out.push_str(&line(&cells));
    }
    out
}

/// The text of `candidates.csv`: a line for each candidate, with the number of its runs, its mean loss and its fate.
/// The loss is empty if the candidate was not run, and infinite if a run of it diverged.
fn candidates_csv(found: &TuningResult) -> String {
    let mut heads = vec!["label".to_owned()];
    heads.extend(found.axes.iter().cloned());
    heads.extend(found.settings.iter().map(|setting| setting.key.clone()));
    heads.extend(["runs", "mean_loss", "fate"].map(str::to_owned));
    let mut out = line(&heads);
    for row in &found.rows {
        for candidate in &row.candidate_rows {
            let mut cells = vec![row.label.clone()];
            cells.extend(row.values.iter().map(setting_or_empty));
            cells.extend(values(Some(&candidate.values), found.settings.len(), ""));
            cells.push(candidate.runs.to_string());
            cells.push(candidate.loss.map_or(String::new(), nine_digits));
            cells.push(fate(candidate).to_owned());
            out.push_str(&line(&cells));
        }
    }
    out
}

/// How the race ended for a candidate, in a word or two. A loss is infinite if a run diverged.
fn fate(candidate: &CandidateRow) -> &'static str {
    match candidate.loss {
        None => "not run",
        Some(f64::INFINITY) => "diverged",
        Some(_) if candidate.is_stopped => "stopped",
        Some(_) if candidate.is_selected => "selected",
        Some(_) => "not selected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tuning found for an algorithm: the step size that is selected, if one is, and the edges that it is at.
    fn row(selected: Option<f64>, edges: &[&str]) -> TunedRow {
        TunedRow {
            label: "A".to_owned(),
            values: Vec::new(),
            selected: selected.map(|step_size| vec![Some(step_size)]),
            edges: edges.iter().map(|edge| (*edge).to_owned()).collect(),
            tuning_value: f64::NAN,
            fresh: None,
            shared: None,
            candidates: CandidateCounts::default(),
            candidate_rows: Vec::new(),
            replicates: 0,
        }
    }

    /// Rows in which every candidate diverged have none that could be at an edge.
    #[test]
    fn candidates_at_the_edge_are_counted_among_those_selected() {
        let edge = &["smallest step-size"];
        let clause =
            |rows: Vec<TunedRow>| at_the_edge(&TuningResult { rows, ..Default::default() });
        let rows = vec![row(Some(0.1), edge), row(Some(0.2), &[]), row(None, &[])];
        let expected = "1 of 2 selected candidates is at the edge of what was tried";
        assert_eq!(clause(rows).as_deref(), Some(expected));
        assert_eq!(clause(vec![row(Some(0.1), &[]), row(None, &[])]), None);
    }
}
