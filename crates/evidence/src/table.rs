//! The table of the cells' final metrics: which columns it has, and which cells it shows.

use crate::cells::CellResult;
use crate::cells::panels::{self, unique};
use crate::stats::CensoredMedian;
use crate::study::Experiment;
use exactfed_runner::manifest::{ComparedAt, Quantity};
use exactfed_runner::plan::{Cell, Setting, Settings, short};
use std::collections::{BTreeSet, HashMap};

/// The columns of a table of the cells' final metrics that depend on the experiment. The table of a page has all of
/// them; `summary.csv` has the settings, the first quantity and the further ones.
pub struct FinalsColumns {
    /// The names of the settings that differ between cells. A key of both the problem and an algorithm has the name of
    /// its table before it, as in `algorithm.batch`.
    pub settings: Vec<String>,
    /// The quantity by which the manifest compares runs, whose column comes first.
    pub first: Quantity,
    /// Whether there is a column of exact biases: theory knows the exact bias of some cell.
    pub has_bias: bool,
    /// Whether there is a column of errors around the limit: they are recorded of some cell.
    pub has_limit: bool,
    /// The further metrics of the manifest that are recorded of some cell, each with a column.
    pub further: Vec<Quantity>,
    /// The target at which the manifest compares runs, and the quantity by which it does, if it is one; it has columns.
    pub at_target: Option<(ComparedAt, Quantity)>,
}

impl FinalsColumns {
    /// The columns of the table on the page of an experiment: those that tell its cells apart, and those with numbers.
    pub fn new(experiment: &Experiment<'_>) -> Self {
        let cells: Vec<&CellResult<'_>> = experiment.cells.iter().collect();
        let paths = Settings::all_paths(cells.iter().map(|c| &c.cell.settings));
        let paths: Vec<&str> = paths.collect();
        // The tables that have a key of each name: a problem has a batch of records, an algorithm one of oracle calls.
        let mut tables: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for path in &paths {
            tables.entry(short(path)).or_default().extend(table(path));
        }
        let varied = panels::varied(cells.iter().map(|c| c.cell));
        let mut settings = unique(varied.into_iter().map(|path| column_name(path, &tables)));
        let own = paths.iter().filter(|path| table(path) == Some("algorithm"));
        for name in unique(own.map(|path| column_name(path, &tables))) {
            let values = unique(cells.iter().map(|c| value(c.cell, &name)));
            // Cells that lack a setting do not differ in it by that alone, unless it is a key of several tables.
            let lacks = usize::from(values.contains(&None) && !name.contains('.'));
            if !settings.contains(&name) && values.len() - lacks > 1 {
                settings.push(name);
            }
        }
        let first = experiment.plan.manifest.record.default_quantity();
        let mut further: Vec<Quantity> =
            experiment.plan.manifest.record.metrics.iter().map(|m| m.quantity()).collect();
        further.retain(|quantity| {
            ![first, Quantity::SqErrorLimit].contains(quantity) && is_known(&cells, *quantity)
        });
        Self {
            settings,
            first,
            has_bias: cells.iter().any(|c| c.exact_bias.is_some()),
            has_limit: is_known(&cells, Quantity::SqErrorLimit),
            further,
            at_target: experiment
                .plan
                .manifest
                .ranked_at()
                .filter(|at| at.target().is_some())
                .map(|at| (at, experiment.plan.manifest.ranked_by())),
        }
    }

    /// How many runs of a cell come to the target at which the manifest compares runs, and the median over all runs of
    /// the quantity there; `None` if there is no target, or nothing is known of the cell there.
    pub fn at_target(&self, cell: &CellResult<'_>) -> Option<(usize, CensoredMedian)> {
        let (at, quantity) = self.at_target?;
        let values = cell.runs.values_at_target(quantity, at);
        let reached = values.iter().filter(|value| value.is_some()).count();
        (!values.is_empty()).then(|| (reached, CensoredMedian::new(values)))
    }

    /// A cell's value in each column of settings; `None` where the cell has no such setting.
    pub fn settings_of<'c>(&self, cell: &'c Cell) -> Vec<Option<&'c Setting>> {
        self.settings.iter().map(|name| value(cell, name)).collect()
    }

    /// A cell's value in each column of settings as text; empty where the cell has no such setting.
    pub fn values(&self, cell: &Cell) -> Vec<String> {
        let settings = self.settings_of(cell).into_iter();
        settings.map(|setting| setting.map(Setting::to_string).unwrap_or_default()).collect()
    }
}

/// The name of the column of the setting with this path: with its table if `tables` has several with a key of this
/// name.
fn column_name(path: &str, tables: &HashMap<&str, BTreeSet<&str>>) -> String {
    let name = short(path);
    match table(path) {
        Some(table) if tables.get(name).is_some_and(|all| all.len() > 1) => {
            format!("{table}.{name}")
        }
        _ => name.to_owned(),
    }
}

/// Whether some cell has final values of a quantity.
fn is_known(cells: &[&CellResult<'_>], quantity: Quantity) -> bool {
    cells.iter().any(|cell| cell.runs.finals(quantity).is_some())
}

/// The table of the manifest of which a path is a key: `problem` or `algorithm` for `problem.<kind>.<key>` or
/// `algorithm.<kind>.<key>`. `None` for other settings, for a whole table (`problem.<kind>`), and for a value within the
/// table of a key (`problem.<kind>.<key>.<inner>`).
fn table(path: &str) -> Option<&str> {
    let is_key = path.matches('.').count() == 2;
    let (table, _) = path.split_once('.').filter(|_| is_key)?;
    ["algorithm", "problem"].contains(&table).then_some(table)
}

/// A cell's value in the column of this name; `None` if it has no such setting.
fn value<'c>(cell: &'c Cell, column: &str) -> Option<&'c Setting> {
    let Some((of, name)) = column.split_once('.') else { return cell.settings.get(column) };
    cell.settings
        .iter()
        .find(|(path, _)| table(path) == Some(of) && short(path) == name)
        .map(|(_, value)| value)
}

/// At most `most` of these cells, those with the best means of a quantity at the last round, in the order of the cells.
/// Cells with runs that diverged, or without the quantity, have no mean and are left out first.
pub fn best<'c, 'a>(
    cells: &'c [CellResult<'a>],
    quantity: Quantity,
    most: usize,
) -> Vec<&'c CellResult<'a>> {
    let mut places: Vec<usize> = (0..cells.len()).collect();
    if places.len() > most {
        // A missing mean is infinite, and stays so as a loss, also of an accuracy.
        let errors: Vec<f64> =
            cells.iter().map(|cell| quantity.loss(cell.final_mean(quantity))).collect();
        places.sort_by(|a, b| errors[*a].total_cmp(&errors[*b]));
        places.truncate(most);
        places.sort_unstable();
    }
    places.into_iter().map(|place| &cells[place]).collect()
}
