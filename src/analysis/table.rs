//! The table of the cells' final metrics: which columns it has, and which cells it shows.

use super::panels::{distinct, unique};
use super::{CellResult, Experiment};
use exactfed_runner::manifest::{Metric, Quantity};
use exactfed_runner::plan::{Cell, short};

/// The columns of a table of the cells' final metrics.
pub struct FinalsColumns {
    /// Names of the settings that vary.
    pub settings: Vec<String>,
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
        let mut settings =
            unique(cells.iter().flat_map(|c| &*c.cell.varied).map(|path| short(path)));
        let own = cells.iter().flat_map(|c| c.cell.settings.iter().map(|(path, _)| path));
        let own =
            own.filter(|path| path.starts_with("algorithm.") && path.matches('.').count() == 2);
        for name in unique(own.map(short)) {
            if !settings.contains(&name) && distinct(&cells, name).len() > 1 {
                settings.push(name);
            }
        }
        let is_known = |q: Quantity| cells.iter().any(|cell| cell.runs.finals(q).is_some());
        let asked = experiment.plan.manifest.record.metrics.iter().map(|m: &Metric| m.quantity());
        Self {
            settings: settings.into_iter().map(str::to_owned).collect(),
            has_bias: cells.iter().any(|c| c.exact_bias.is_some()),
            has_limit: is_known(Quantity::SqErrorLimit),
            further: asked.filter(|q| *q != Quantity::SqErrorLimit && is_known(*q)).collect(),
        }
    }

    /// A cell's values of the settings that vary; empty where it has no such one.
    pub fn values(&self, cell: &Cell) -> Vec<String> {
        let value = |name: &String| cell.settings.get(name).map(ToString::to_string);
        self.settings.iter().map(|name| value(name).unwrap_or_default()).collect()
    }
}

/// At most `most` cells, those with the smallest mean error, in their order. Cells with runs that
/// diverged have no mean and rank last.
pub fn best<'c, 'a>(cells: &'c [CellResult<'a>], most: usize) -> Vec<&'c CellResult<'a>> {
    let mut places: Vec<usize> = (0..cells.len()).collect();
    if places.len() > most {
        let errors: Vec<f64> = cells.iter().map(|c| c.final_mean(Quantity::SqError)).collect();
        places.sort_by(|a, b| errors[*a].total_cmp(&errors[*b]));
        places.truncate(most);
        places.sort_unstable();
    }
    places.into_iter().map(|place| &cells[place]).collect()
}
