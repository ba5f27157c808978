//! Whether the cells of a claim meet the conditions of the statements that it is about.

use crate::cells::CellResult;
use crate::predictions::Theory;
use exactfed_core::algorithm::{Average, Spec};
use exactfed_core::problem::Facts;
use exactfed_core::sources::{Condition, StatedAlgorithm, Statement};
use exactfed_core::theory::conditions::{Checked, ConditionAnswer, RunConditions};
use exactfed_core::words::{count, readable};
use exactfed_runner::manifest::Oracle;

/// How many cells of a claim meet the conditions of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementConditions {
    /// The statement.
    pub statement: &'static Statement,
    /// Cells that meet all conditions.
    pub inside: usize,
    /// Cells that fail one.
    pub outside: usize,
    /// Cells that fail none that could be checked, where some could not.
    pub unknown: usize,
    /// The conditions that fail, and what could not be checked, in how many cells.
    pub details: Vec<String>,
}

impl StatementConditions {
    /// In a few words: whether the cells are inside.
    pub fn summary(&self) -> &'static str {
        match (self.inside, self.outside, self.unknown) {
            (0, 0, 0) => "on theory alone",
            (_, 0, 0) => "inside",
            (0, _, 0) => "outside",
            (_, 0, _) => "not checkable",
            _ => "partly outside",
        }
    }

    /// In a sentence without its full stop.
    pub fn sentence(&self) -> String {
        let cells = self.inside + self.outside + self.unknown;
        if cells == 0 {
            return "it is tested on no run, so that conditions on runs are not checked".into();
        }
        let all = count(cells, "cell");
        let details = self.details.join("; ");
        match (self.inside, self.outside, self.unknown) {
            (_, 0, 0) if cells == 1 => "its cell meets the conditions".into(),
            (_, 0, 0) => format!("all {all} meet the conditions"),
            (0, _, 0) if cells == 1 => format!("its cell is outside the conditions: {details}"),
            (0, _, 0) => format!("all {all} are outside the conditions: {details}"),
            (_, 0, 0..) => format!("the conditions cannot be checked: {details}"),
            (inside, outside, _) => {
                format!("{inside} of {all} meet the conditions, {outside} do not: {details}")
            }
        }
    }
}

/// What is found of a condition over cells: in how many it fails or is unknown, and how far a left
/// side exceeds what it may be.
#[derive(Default)]
struct Found {
    failing: usize,
    most: Option<(f64, f64)>,
    unknown: usize,
    why: &'static str,
}

/// The conditions of a statement, over cells.
pub fn of_cells(
    theory: &Theory<'_>,
    statement: &'static Statement,
    cells: &[&CellResult<'_>],
) -> StatementConditions {
    let (mut inside, mut outside, mut unknown) = (0, 0, 0);
    let conditions = statement.all_conditions();
    let mut found: Vec<Found> = conditions.iter().map(|_| Found::default()).collect();
    let algorithm = |cell: &&CellResult<'_>| cell.cell.identity.algorithm.stated();
    let compared: Vec<StatedAlgorithm> = cells.iter().map(algorithm).collect();
    for cell in cells {
        let answers = answers(theory, cell, &conditions, &compared);
        let failing = answers
            .iter()
            .any(|a| matches!(a, ConditionAnswer::Unmet | ConditionAnswer::Exceeded { .. }));
        let open = answers.iter().any(|a| matches!(a, ConditionAnswer::Unknown(_)));
        *(match (failing, open) {
            (true, _) => &mut outside,
            (false, true) => &mut unknown,
            (false, false) => &mut inside,
        }) += 1;
        found.iter_mut().zip(answers).for_each(|(found, answer)| found.add(answer));
    }
    let details = found.iter().zip(&conditions).filter_map(|(found, of)| found.text(of));
    StatementConditions { statement, inside, outside, unknown, details: details.collect() }
}

fn answers(
    theory: &Theory<'_>,
    cell: &CellResult<'_>,
    of: &[Condition],
    compared: &[StatedAlgorithm],
) -> Vec<ConditionAnswer> {
    let identity = &cell.cell.identity;
    let run = of_run(&identity.algorithm, identity.oracle == Oracle::Exact, compared);
    let prepared = theory.prepared(&cell.cell.id).ok_or("its instance is not known");
    let known = prepared.and_then(|prepared| match &prepared.scenarios[..] {
        [scenario] => Ok((&*scenario.instance as &dyn Facts, theory.constants(prepared))),
        _ => Err("each run has an instance of its own"),
    });
    let constants = known.as_ref().ok().and_then(|(_, constants)| constants.as_deref());
    let facts = known.as_ref().map(|(facts, _)| *facts).map_err(|why| *why);
    let checked = Checked { facts, constants, run };
    of.iter().map(|condition| checked.answer(condition)).collect()
}

fn of_run<'a>(spec: &Spec, exact: bool, compared: &'a [StatedAlgorithm]) -> RunConditions<'a> {
    let terms = &spec.components()[0].terms;
    let local_steps = terms.most_steps() as f64;
    let path = if terms.normalised { local_steps } else { 1.0 };
    let same_steps = terms.local_steps.iter().all(|&steps| steps == terms.local_steps[0]);
    RunConditions {
        algorithm: spec.stated(),
        compared,
        constant: terms.decay.is_none(),
        averaged: spec.average() != Average::None,
        step_size: terms.step_size / path,
        local_steps,
        exact,
        normalised: terms.normalised,
        cohort: terms.cohort,
        equal: terms.server_step == 1.0 && (terms.normalised || same_steps),
    }
}

impl Found {
    fn add(&mut self, answer: ConditionAnswer) {
        match answer {
            ConditionAnswer::Met => {}
            ConditionAnswer::Unmet => self.failing += 1,
            ConditionAnswer::Exceeded { have, need } => {
                self.failing += 1;
                if self.most.is_none_or(|(most, least)| have / need > most / least) {
                    self.most = Some((have, need));
                }
            }
            ConditionAnswer::Unknown(why) => {
                self.unknown += 1;
                self.why = why;
            }
        }
    }

    fn text(&self, condition: &Condition) -> Option<String> {
        let (cells, what, more) = match (self.failing, self.unknown, self.most) {
            (0, 0, _) => return None,
            (0, cells, _) if self.why.is_empty() => (cells, "is not checked", String::new()),
            (0, cells, _) => (cells, "is not checked", format!(", since {}", self.why)),
            (cells, _, Some((have, need))) => {
                let times = readable(have / need, 2);
                (cells, "fails", format!(", by a factor of up to {times}"))
            }
            (cells, _, None) => (cells, "fails", String::new()),
        };
        Some(format!("“{}” {what} in {}{more}", condition.words(), count(cells, "cell")))
    }
}
