//! The headline of a page and the line below it, made from the ranking of the algorithms. A page has them where its
//! manifest states no finding, or states one whose claims do not hold.
//!
//! A file imports from files of earlier lines, and none imports from this one:
//!
//! 1. `words`: parts of sentences;
//! 2. `one_setting`, `without_lead`: the ranking at one setting, and at several settings without a lead;
//! 3. `several_settings`: the ranking at several settings.

mod one_setting;
mod several_settings;
mod without_lead;
pub mod words;

use super::tuning::at_the_edge;
use crate::evidence::{CellResult, Experiment, Standings};
use exactfed_core::words::count;
use exactfed_runner::quantity::Shortfall;
use std::collections::BTreeSet;

/// A headline with the line below it, both as plain text.
pub struct Headline {
    /// What the results say: a clause without a full stop.
    pub text: String,
    /// Sentences on the headline: the ratio of the errors with its interval, and the setting in which it was found.
    /// Empty if there is nothing to add.
    pub line: String,
}

/// The headline that says what the ranking of an experiment shows; the title of the manifest where nothing is compared,
/// or at the only grid point nothing is ranked. If all runs of all cells diverged, it says so instead.
pub fn of_ranking(experiment: &Experiment<'_>) -> Headline {
    if all_runs_diverged(&experiment.cells) {
        let cells = count(experiment.cells.len(), "cell");
        return Headline {
            text: "All runs diverged".into(),
            line: format!("{cells}; smaller step sizes may converge."),
        };
    }
    let standings = &experiment.standings;
    let found = match standings.rows.as_slice() {
        [row] if row.is_zero => one_setting::with_zero_error(row, standings),
        [row] if !row.leaders.is_empty() => one_setting::with_ratios(row, standings),
        [] | [_] => {
            let title = experiment.plan.manifest.title.clone();
            return Headline { text: title, line: String::new() };
        }
        rows => several_settings::headline(rows, standings),
    };
    let meaning = meaning_of_loss(standings, &experiment.cells);
    let Some(tuning) = &experiment.tuning else {
        return Headline {
            text: with_capital(&found.text, standings),
            line: found.line + &meaning,
        };
    };
    let settings = experiment.tuned_in_words();
    let tuned = if settings.is_empty() { settings } else { format!("Tuned: {settings}. ") };
    let edge = at_the_edge(tuning).map_or(String::new(), |edge| format!(" {edge}."));
    Headline {
        text: format!("Tuned, {}", found.text),
        line: tuned + &found.line + &meaning + &edge,
    }
}

/// Whether there are cells, and every run of each diverged.
fn all_runs_diverged(cells: &[CellResult<'_>]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| cell.runs.diverged == cell.runs.count)
}

/// The sentence that defines the loss by which algorithms are ranked, for a metric of which more is better: "The error
/// rate is 1 − accuracy." Of a cost it says until which target it is counted. Empty for other metrics, which are ranked
/// by their own values.
fn meaning_of_loss(standings: &Standings, cells: &[CellResult<'_>]) -> String {
    let by = standings.by;
    // Where algorithms are compared at a target, the headline says so.
    let ends_at_target = by.is_cost() && standings.at.is_none();
    let targets =
        cells.iter().filter(|_| ends_at_target).filter_map(|cell| cell.cell.identity.until);
    let texts: BTreeSet<String> = targets.map(|until| until.words()).collect();
    if let [text] = Vec::from_iter(texts).as_slice() {
        return format!(" Costs are counted until the first recorded round at which {text}.");
    }
    by.info().shortfall.map_or(String::new(), |Shortfall { name, largest, .. }| {
        format!(" The {name} is {largest} − {}.", by.formula())
    })
}

/// A headline with a capital at its beginning, unless it begins with the name of an algorithm, which stays as the
/// manifest writes it.
fn with_capital(headline: &str, standings: &Standings) -> String {
    let mut algorithms = standings.rows.iter().flat_map(|row| &row.algorithms);
    let mut letters = headline.chars();
    match letters.next() {
        Some(first) if !algorithms.any(|one| headline.starts_with(&*one.name)) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => headline.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{RankedAlgorithm, Rival, Separation, Standing};
    use crate::stats::Ratio;
    use exactfed_runner::manifest::Quantity;
    use exactfed_runner::plan::CellId;

    /// A setting in which the mean of B is `estimate` times that of A, with an interval from `low` to `high`.
    fn setting([low, estimate, high]: [f64; 3], separation: Separation) -> Standing {
        let is_alone = separation == Separation::Larger;
        let leaders = if is_alone { vec!["A".into()] } else { vec!["A".into(), "B".into()] };
        let ratio = Ratio { estimate, low, high, p: 0.5 };
        let algorithm = |name: &str, rival| RankedAlgorithm {
            name: name.into(),
            cell: CellId::default(),
            rank: Some(1),
            rival,
        };
        let rival = Rival { cell: 1, ratio, separation };
        Standing {
            values: Vec::new(),
            settings: Vec::new().into(),
            leaders,
            family: Some(0),
            algorithms: vec![algorithm("A", None), algorithm("B", Some(rival))],
            error: 0.5,
            n: 3,
            unit: "run",
            is_zero: false,
            is_geometric: false,
            diverged: Vec::new(),
            ended: Vec::new(),
            unreached: Vec::new(),
            without_values: Vec::new(),
        }
    }

    /// A setting in which no algorithm is ranked: all end above the start, or diverge.
    fn unranked(error: f64) -> Standing {
        let mut row = setting([0.5, 2.0, 4.0], Separation::Unclear);
        row.leaders.clear();
        row.algorithms.iter_mut().for_each(|one| (one.rank, one.rival) = (None, None));
        Standing { error, ..row }
    }

    /// The headline of these settings, whose margin is 5 %.
    fn headline(rows: Vec<Standing>) -> String {
        let standings = Standings {
            axes: Vec::new(),
            rows,
            by: Quantity::SqError,
            at: None,
            margin: 0.05,
            costs: String::new(),
            compared: 1,
        };
        let found = several_settings::headline(&standings.rows, &standings);
        with_capital(&found.text, &standings)
    }

    /// Settings that the runs do not decide, those without a practical difference, and those without a ranking.
    #[test]
    fn settings_without_a_lead_are_counted_by_how_they_ended() {
        let open = || setting([0.08, 4.19, 7.93], Separation::Unclear);
        let alike = || setting([0.98, 1.01, 1.04], Separation::Unclear);
        let little = || setting([1.01, 1.03, 1.2], Separation::Larger);
        let tiny = || setting([1.01, 1.02, 1.03], Separation::Larger);
        let above = || unranked(3.0);
        let diverged = || unranked(f64::NAN);
        for (rows, expected) in [
            (
                vec![open(), above()],
                "A and B are not separated in 1 of 2 settings; in the other all end above the start",
            ),
            (vec![open(), open()], "A and B are not separated in any of 2 settings"),
            (vec![alike(), alike()], "A and B show no practical difference in any of 2 settings"),
            (
                vec![open(), alike(), alike()],
                "A and B are not separated in 1 of 3 settings; in the other 2 they show no practical difference",
            ),
            (vec![alike(), tiny()], "A and B show no practical difference in any of 2 settings"),
            (
                vec![alike(), open(), diverged()],
                "A and B are not separated in 1 of 3 settings; in 1 A and B show no practical difference; in 1 all diverged",
            ),
            (
                vec![little(), alike(), alike()],
                "A is lowest in 1 of 3 settings, and it is open whether by 5.0 % or more; in the other 2 A and B show no practical difference",
            ),
            (
                vec![diverged(), diverged()],
                "No algorithm is ranked in any of 2 settings: all diverged",
            ),
            (
                vec![diverged(), above()],
                "All diverged in 1 of 2 settings; in the other all end above the start",
            ),
        ] {
            assert_eq!(headline(rows), expected);
        }
    }

    /// Errors that are zero to rounding are neither different nor alike, also next to settings that are.
    #[test]
    fn errors_of_zero_are_said_to_be_zero_at_each_setting() {
        let zero = || {
            let nan = f64::NAN;
            Standing { is_zero: true, ..setting([nan, nan, nan], Separation::BothZero) }
        };
        let alike = setting([0.98, 1.01, 1.04], Separation::Unclear);
        let all = "The error of both A and B is zero to rounding in all 2 settings";
        assert_eq!(headline(vec![zero(), zero()]), all);
        let some = "The error of both A and B is zero to rounding in 1 of 2 settings; in the other A and B show no practical difference";
        assert_eq!(headline(vec![alike, zero()]), some);
    }

    /// That no algorithm leads is said only where it is decided in each setting.
    #[test]
    fn no_lead_is_a_decision() {
        // The setting with a third algorithm, whose ratio has this upper limit.
        let third = |row: Standing, high: f64| {
            let ratio = Ratio { estimate: 2.0, low: 1.5, high, p: 0.01 };
            let rival = Some(Rival { cell: 2, ratio, separation: Separation::Larger });
            let name = "C".into();
            let third = RankedAlgorithm { name, cell: CellId::default(), rank: Some(3), rival };
            let mut algorithms = row.algorithms;
            algorithms.push(third);
            Standing { algorithms, ..row }
        };
        let alike = || setting([0.98, 1.01, 1.04], Separation::Unclear);
        let open = || setting([0.5, 2.0, 7.0], Separation::Unclear);
        let none = "In none of 2 settings is one algorithm lowest by 5.0 % or more";
        let tiny = || setting([1.01, 1.02, 1.03], Separation::Larger);
        assert_eq!(headline(vec![third(tiny(), 3.0), alike()]), none);
        assert_eq!(headline(vec![third(tiny(), 3.0), third(tiny(), 3.0)]), none);
        for rows in [
            vec![third(tiny(), 3.0), open()],
            vec![third(alike(), 3.0), open()],
            vec![third(open(), 3.0), open()],
            vec![third(tiny(), 3.0), unranked(3.0)],
        ] {
            let said = headline(rows);
            assert!(!said.contains("In none of"), "{said}");
        }
        let lowest = "A and B are lowest in all 2 settings, not separated";
        assert_eq!(headline(vec![third(alike(), 3.0), third(open(), 3.0)]), lowest);
    }
}
