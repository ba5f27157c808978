//! Computed frontiers as columns of numbers, for the cache.

use crate::results::Columns;
use exactfed_core::round_program::RoundSettings;
use exactfed_core::theory::frontier::{RangeEnd, Reached};

/// The numbers that stand in the cache for the end of the range of step sizes at which the best one lies.
const EDGES: [(Option<RangeEnd>, f64); 4] = [
    (None, 0.0),
    (Some(RangeEnd::From), -1.0),
    (Some(RangeEnd::To), 1.0),
    (Some(RangeEnd::OfAnotherChoice), 2.0),
];

/// What a search found as columns of numbers for the cache, an entry per point in each. Whole numbers are exact below
/// 2⁵³. [`from_columns`] is the inverse.
pub fn to_columns(reached: &[Reached]) -> Columns {
    Columns::from([
        column("algorithm", reached, |r| r.run.algorithm as f64),
        column("clients", reached, |r| r.run.clients as f64),
        column("target", reached, |r| r.target),
        column("local-steps", reached, |r| r.run.local_steps as f64),
        column("step-size", reached, |r| r.run.step_size),
        column("choice", reached, |r| r.run.choice as f64),
        column("rounds", reached, |r| r.rounds as f64),
        column("held", reached, |r| f64::from(u8::from(r.held))),
        column("edge", reached, |r| {
            EDGES.iter().find(|known| known.0 == r.edge).map_or(0.0, |known| known.1)
        }),
    ])
}

/// A column of this name, with a number of each point.
fn column(name: &str, reached: &[Reached], value: impl Fn(&Reached) -> f64) -> (String, Vec<f64>) {
    (name.to_owned(), reached.iter().map(value).collect())
}

/// What a search found, read from columns of the cache. `None` if a column is missing, if columns differ in length, or if
/// they cannot be of a search with this number of algorithms: then it is computed anew.
pub fn from_columns(columns: &Columns, algorithms: usize) -> Option<Vec<Reached>> {
    let places = columns.get("algorithm")?;
    let of_points = |name: &str| columns.get(name).filter(|column| column.len() == places.len());
    let clients = of_points("clients")?;
    let targets = of_points("target")?;
    let local_steps = of_points("local-steps")?;
    let step_sizes = of_points("step-size")?;
    let choices = of_points("choice")?;
    let held = of_points("held")?;
    let rounds = of_points("rounds")?;
    let edges = of_points("edge")?;
    let mut reached = Vec::with_capacity(places.len());
    for i in 0..places.len() {
        let algorithm = places[i] as usize;
        if algorithm >= algorithms {
            return None;
        }
        reached.push(Reached {
            run: RoundSettings {
                algorithm,
                clients: clients[i] as u64,
                local_steps: local_steps[i] as u64,
                step_size: step_sizes[i],
                choice: choices[i] as usize,
            },
            target: targets[i],
            rounds: rounds[i] as u64,
            held: held[i] > 0.0,
            edge: EDGES.iter().find(|known| known.1 == edges[i])?.0,
        });
    }
    Some(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_back_as_they_were() {
        let point = |algorithm, edge: Option<RangeEnd>| {
            let step_size = 1.0 / 3.0;
            let choice = 4;
            let run = RoundSettings {
                algorithm,
                clients: 10_000,
                local_steps: 1 << 20,
                step_size,
                choice,
            };
            Reached { run, target: 0.1 + 0.2, rounds: 244_137, held: edge.is_none(), edge }
        };
        let all: Vec<Reached> =
            (0..9).flat_map(|algorithm| EDGES.map(|(edge, _)| point(algorithm, edge))).collect();
        assert_eq!(from_columns(&to_columns(&all), 9), Some(all.clone()));
        assert_eq!(from_columns(&to_columns(&all), 8), None);
        assert_eq!(from_columns(&to_columns(&[]), 9), Some(Vec::new()));
        expect_refused(&to_columns(&all), |column| column.truncate(7));
        expect_refused(&to_columns(&all), |column| column.push(0.0));
    }

    /// Expects that these columns are not read if any one of them is damaged.
    #[track_caller]
    fn expect_refused(kept: &Columns, damage: fn(&mut Vec<f64>)) {
        for name in kept.keys() {
            let mut damaged = kept.clone();
            damage(damaged.get_mut(name).unwrap());
            assert_eq!(from_columns(&damaged, 9), None, "{name}");
        }
    }
}
