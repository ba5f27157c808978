//! The columns of the table of all points of frontiers, which `frontier.csv` and the Python package have.

use super::{ComputedFrontier, FrontierCost, FrontierFlag, FrontierPoint};
use exactfed_runner::manifest::frontier::FrontierQuantity;

/// A value of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum FrontierValue {
    /// A text, which is written as it is.
    Text(String),
    /// A number; NaN where there is none.
    Number(f64),
    /// A whole number; `None` where a point has none.
    Count(Option<u64>),
}

use FrontierValue::{Count, Number, Text};

/// How a column reads its value of a point of a frontier.
pub type ReadPoint = fn(&ComputedFrontier<'_>, &FrontierPoint<'_>) -> FrontierValue;

/// The columns, with their names.
pub const COLUMNS: [(&str, ReadPoint); 19] = [
    ("frontier", |frontier, _| Text(frontier.frontier.id.clone())),
    ("minimises", |_, point| Text(point.minimises.quantity().name().to_owned())),
    ("price", |_, point| Number(point.minimises.price().unwrap_or(f64::NAN))),
    ("budget", |_, point| Number(point.minimises.budget().unwrap_or(f64::NAN))),
    ("algorithm", |_, point| Text(point.algorithm.name.clone())),
    ("clients", |_, point| Count(Some(point.clients))),
    ("target", |_, point| Number(point.target)),
    ("step_size", |_, point| number_at(point, |cost| cost.run.step_size)),
    ("local_steps", |_, point| Count(point.cost.map(|cost| cost.run.local_steps))),
    ("server_step", |_, point| number_at(point, |cost| cost.server_step())),
    ("settings", |_, point| Text(point.cost.map_or_else(String::new, |cost| cost.settings()))),
    ("rounds", |_, point| Count(point.cost.map(|cost| cost.rounds))),
    ("communications", |_, point| number_at(point, |cost| cost.communications)),
    ("gradients", |_, point| number_at(point, |cost| cost.gradients)),
    ("samples", |_, point| number_at(point, |cost| cost.samples)),
    ("bytes", |_, point| number_at(point, |cost| cost.bytes)),
    ("seconds", |frontier, point| {
        Number(frontier.quantity(FrontierQuantity::Seconds, point).unwrap_or(f64::NAN))
    }),
    ("passing", |_, point| Number(point.passing.unwrap_or(f64::NAN))),
    ("flag", |_, point| {
        let names: Vec<&str> = point.flags.iter().copied().map(FrontierFlag::name).collect();
        Text(names.join(" "))
    }),
];

/// A number of the least cost of a point; NaN if the target is not reached.
fn number_at(point: &FrontierPoint<'_>, of: fn(&FrontierCost<'_>) -> f64) -> FrontierValue {
    Number(point.cost.as_ref().map_or(f64::NAN, of))
}

impl std::fmt::Display for FrontierValue {
    /// Writes the value as a CSV field, a number with the digits that give the same bits when they are read. A number
    /// that is NaN and a count that is `None` are empty.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Text(text) => f.write_str(text),
            Number(number) if number.is_nan() => Ok(()),
            Number(number) => write!(f, "{number:?}"),
            Count(count) => count.map_or(Ok(()), |count| write!(f, "{count}")),
        }
    }
}
