//! Frontiers as a table: `frontier.csv`.
//!
//! *Invariant*: numbers have the digits that give the same bits when they are read.

use crate::analysis::frontier::{Best, Cost, Flag, Frontier};
use std::fmt::Write;

/// Every point of all frontiers, one line each.
pub fn csv(frontiers: &[Frontier<'_>]) -> String {
    let mut out = String::from(
        "algorithm,clients,target,step_size,local_steps,rounds,communications,gradients,bytes,flag,seconds,minimises,frontier\n",
    );
    for frontier in frontiers {
        for best in &frontier.best {
            let Best { minimises, algorithm, clients, target, cost, flags } = best;
            let flags: Vec<&str> = flags.iter().copied().map(Flag::name).collect();
            let flags = flags.join(" ");
            let number = |value: &dyn Fn(&Cost) -> String| cost.as_ref().map(value).unwrap_or_default();
            let numbers = [
                number(&|c| format!("{:?}", c.step_size)),
                number(&|c| c.local_steps.to_string()),
                number(&|c| c.rounds.to_string()),
                number(&|c| c.communications.to_string()),
                number(&|c| c.gradients.to_string()),
                number(&|c| c.bytes.to_string()),
                flags,
                number(&|c| frontier.prices.map_or(String::new(), |p| format!("{:?}", c.seconds(&p)))),
            ];
            let _ = writeln!(
                out,
                "{},{clients},{target:?},{},{},{}",
                algorithm.method().name(),
                numbers.join(","),
                minimises.name(),
                frontier.id
            );
        }
    }
    out
}
