//! The table of the cells' final metrics: which columns it has, and which cells it shows.

use crate::cells::CellResult;
use crate::cells::panels::{self, unique};
use crate::study::Experiment;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::{Cell, Setting, Settings, short};
use std::collections::{BTreeSet, HashMap};

/// The columns of a table of the cells' final metrics.
pub struct FinalsColumns {
    /// Names of the settings that vary. A name that is a key of both the problem and an algorithm
    /// stands after that of its table, as in `algorithm.batch`.
    pub settings: Vec<String>,
    /// The quantity by which the manifest compares runs, whose column comes first.
    pub first: Quantity,
    /// Whether theory knows an exact bias.
    pub has_bias: bool,
    /// Whether errors around the limit are recorded.
    pub has_limit: bool,
    /// Further quantities that are recorded of some cell.
    pub further: Vec<Quantity>,
}

impl FinalsColumns {
    /// The columns for an experiment.
    pub fn new(experiment: &Experiment<'_>) -> Self {
        let cells: Vec<&CellResult<'_>> = experiment.cells.iter().collect();
        let paths = Settings::all_paths(cells.iter().map(|c| &c.cell.settings));
        let paths: Vec<&str> = paths.collect();
        // Keys of the problem and of an algorithm: a batch of records and a batch of oracle calls.
        let mut tables: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for path in &paths {
            tables.entry(short(path)).or_default().extend(table(path));
        }
        let varied = panels::varied(cells.iter().map(|c| c.cell));
        let mut settings = unique(varied.into_iter().map(|path| column_name(path, &tables)));
        let own = paths.iter().filter(|path| table(path) == Some("algorithm"));
        for name in unique(own.map(|path| column_name(path, &tables))) {
            let values = unique(cells.iter().map(|c| value(c.cell, &name)));
            // Where another table has the key, a cell without it is as much of a difference.
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
        }
    }

    /// A cell's values of the settings that vary; `None` where it has no such one.
    pub fn settings_of<'c>(&self, cell: &'c Cell) -> Vec<Option<&'c Setting>> {
        self.settings.iter().map(|name| value(cell, name)).collect()
    }

    /// The same values as texts; empty where the cell has no such setting.
    pub fn values(&self, cell: &Cell) -> Vec<String> {
        let settings = self.settings_of(cell).into_iter();
        settings.map(|setting| setting.map(Setting::to_string).unwrap_or_default()).collect()
    }
}

/// The name of a setting's column: with its table where a key of this name is in several tables.
fn column_name(path: &str, tables: &HashMap<&str, BTreeSet<&str>>) -> String {
    let name = short(path);
    match table(path) {
        Some(table) if tables.get(name).is_some_and(|all| all.len() > 1) => {
            format!("{table}.{name}")
        }
        _ => name.to_owned(),
    }
}

fn is_known(cells: &[&CellResult<'_>], quantity: Quantity) -> bool {
    cells.iter().any(|cell| cell.runs.finals(quantity).is_some())
}

/// The table whose key this is: `problem` or `algorithm`, if it is a key of one.
fn table(path: &str) -> Option<&str> {
    let is_key = path.matches('.').count() == 2;
    let (table, _) = path.split_once('.').filter(|_| is_key)?;
    ["algorithm", "problem"].contains(&table).then_some(table)
}

/// A cell's value of the setting of a column.
fn value<'c>(cell: &'c Cell, column: &str) -> Option<&'c Setting> {
    let Some((of, name)) = column.split_once('.') else { return cell.settings.get(column) };
    cell.settings
        .iter()
        .find(|(path, _)| table(path) == Some(of) && short(path) == name)
        .map(|(_, value)| value)
}

/// At most `most` cells, those with the best means of a quantity, in their order. Cells with runs that
/// diverged have no mean and rank last.
pub fn best<'c, 'a>(
    cells: &'c [CellResult<'a>],
    quantity: Quantity,
    most: usize,
) -> Vec<&'c CellResult<'a>> {
    let mut places: Vec<usize> = (0..cells.len()).collect();
    if places.len() > most {
        let errors: Vec<f64> =
            cells.iter().map(|cell| quantity.loss(cell.final_mean(quantity))).collect();
        places.sort_by(|a, b| errors[*a].total_cmp(&errors[*b]));
        places.truncate(most);
        places.sort_unstable();
    }
    places.into_iter().map(|place| &cells[place]).collect()
}
