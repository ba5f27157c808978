//! Computed frontiers as columns of numbers, for the cache.

use crate::results::Columns;
use exactfed_core::round_program::RoundSettings;
use exactfed_core::theory::frontier::{RangeEnd, Reached};

/// The ends of ranges as numbers.
const EDGES: [(Option<RangeEnd>, f64); 4] = [
    (None, 0.0),
    (Some(RangeEnd::From), -1.0),
    (Some(RangeEnd::To), 1.0),
    (Some(RangeEnd::OfAnotherChoice), 2.0),
];

/// What each column holds of a point; whole numbers are exact below 2⁵³.
pub fn to_columns(reached: &[Reached]) -> Columns {
    let column = |name: &str, value: &dyn Fn(&Reached) -> f64| {
        (name.to_owned(), reached.iter().map(value).collect::<Vec<f64>>())
    };
    let edge = |r: &Reached| EDGES.iter().find(|known| known.0 == r.edge).map_or(0.0, |e| e.1);
    Columns::from([
        column("algorithm", &|r| r.run.algorithm as f64),
        column("clients", &|r| r.run.clients as f64),
        column("target", &|r| r.target),
        column("local-steps", &|r| r.run.local_steps as f64),
        column("step-size", &|r| r.run.step_size),
        column("choice", &|r| r.run.choice as f64),
        column("rounds", &|r| r.rounds as f64),
        column("held", &|r| f64::from(u8::from(r.held))),
        column("edge", &edge),
    ])
}

/// The points of columns; `None` if they are not those of a search with so many algorithms.
pub fn from_columns(columns: &Columns, algorithms: usize) -> Option<Vec<Reached>> {
    let column = |name: &str| columns.get(name);
    let (places, clients, targets) = (column("algorithm")?, column("clients")?, column("target")?);
    let (local_steps, step_sizes) = (column("local-steps")?, column("step-size")?);
    let (choices, held) = (column("choice")?, column("held")?);
    let (rounds, edges) = (column("rounds")?, column("edge")?);
    let row = |i: usize| {
        let run = RoundSettings {
            algorithm: Some(places[i] as usize).filter(|place| *place < algorithms)?,
            clients: clients[i] as u64,
            local_steps: local_steps[i] as u64,
            step_size: step_sizes[i],
            choice: choices[i] as usize,
        };
        Some(Reached {
            run,
            target: targets[i],
            rounds: rounds[i] as u64,
            held: held[i] > 0.0,
            edge: EDGES.iter().find(|known| known.1 == edges[i])?.0,
        })
    };
    (0..places.len()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_back_as_they_were() {
        let point = |algorithm, edge: Option<RangeEnd>| {
            let (step_size, choice) = (1.0 / 3.0, 4);
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
    }
}
