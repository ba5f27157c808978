//! Whether the cells of a claim meet the conditions of the statements that it is about.

use crate::cells::CellResult;
use crate::predictions::Theory;
use crate::predictions::problems::UnknownAtOptimum;
use exactfed_core::algorithm::{Average, Spec};
use exactfed_core::problem::Facts;
use exactfed_core::sources::{Condition, StatedAlgorithm, Statement};
use exactfed_core::theory::conditions::{Checked, ConditionAnswer, RunConditions};
use exactfed_core::words::{count, readable};
use exactfed_runner::manifest::Oracle;

/// How many cells of a claim meet the conditions of a statement that the claim names, so that a page can say whether
/// the runs are within what the source states.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementConditions {
    /// The statement whose conditions are checked.
    pub statement: &'static Statement,
    /// The number of cells that meet all conditions.
    pub inside: usize,
    /// The number of cells that fail a condition.
    pub outside: usize,
    /// The number of cells that fail no condition, with some conditions that could not be checked.
    pub unknown: usize,
    /// A part of a sentence for each condition that fails or could not be checked somewhere, with the number of cells.
    pub details: Vec<String>,
}

impl StatementConditions {
    /// Whether the cells meet the conditions, in a few words for a page. A claim that is about no runs, as one on a
    /// frontier, is "on theory alone". It is "not checkable" if no cell fails a condition and some conditions of a cell
    /// could not be checked, whatever the other cells do, and "partly outside" if some cells fail a condition and
    /// others fail none.
    pub fn summary(&self) -> &'static str {
        match (self.inside, self.outside, self.unknown) {
            (0, 0, 0) => "on theory alone",
            (_, 0, 0) => "inside",
            (0, _, 0) => "outside",
            (_, 0, _) => "not checkable",
            _ => "partly outside",
        }
    }

    /// How many cells meet the conditions, and which conditions the others fail, as a sentence without its full stop.
    /// Of a claim none of whose cells has results it says that the claim is tested on no run.
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

/// Checks the conditions of a statement on each of these cells, which are all cells of a claim that have results.
pub fn of_cells(
    theory: &Theory<'_>,
    statement: &'static Statement,
    cells: &[&CellResult<'_>],
) -> StatementConditions {
    let conditions = statement.all_conditions();
    let compared: Vec<StatedAlgorithm> =
        cells.iter().map(|cell| cell.cell.identity.algorithm.stated()).collect();
    let answers: Vec<Vec<ConditionAnswer>> =
        cells.iter().map(|cell| answers(theory, cell, &conditions, &compared)).collect();
    let mut inside = 0;
    let mut outside = 0;
    let mut unknown = 0;
    for answers in &answers {
        if answers.iter().any(is_failing) {
            outside += 1;
        } else if answers.iter().any(|a| matches!(a, ConditionAnswer::Unknown(_))) {
            unknown += 1;
        } else {
            inside += 1;
        }
    }
    let mut details = Vec::new();
    for (i, condition) in conditions.iter().enumerate() {
        let of_condition: Vec<ConditionAnswer> = answers.iter().map(|all| all[i]).collect();
        details.extend(detail(condition, &of_condition));
    }
    StatementConditions { statement, inside, outside, unknown, details }
}

/// Whether the answer is that a cell does not meet the condition.
fn is_failing(answer: &ConditionAnswer) -> bool {
    matches!(answer, ConditionAnswer::Unmet | ConditionAnswer::Exceeded { .. })
}

/// Whether a cell meets each of the conditions, in their order. `compared` are the algorithms of all cells of the
/// claim, because some conditions are about what an algorithm is compared with. Conditions on the problem are not
/// checkable for a cell with several instances, or without θ*.
fn answers(
    theory: &Theory<'_>,
    cell: &CellResult<'_>,
    conditions: &[Condition],
    compared: &[StatedAlgorithm],
) -> Vec<ConditionAnswer> {
    let identity = &cell.cell.identity;
    let run = run_conditions(&identity.algorithm, identity.oracle == Oracle::Exact, compared);
    let prepared = theory.prepared(&cell.cell.id).ok_or("its instance is not known");
    let known = prepared.and_then(|prepared| match &prepared.scenarios[..] {
        [scenario] if !scenario.instance.knows_facts_at_optimum() => {
            Err(UnknownAtOptimum::new(cell.cell, &*scenario.instance).reason())
        }
        [scenario] => Ok((&*scenario.instance as &dyn Facts, theory.constants(prepared))),
        _ => Err("each run has an instance of its own"),
    });
    let constants = known.as_ref().ok().and_then(|(_, constants)| constants.as_deref());
    let facts = known.as_ref().map(|(facts, _)| *facts).map_err(|why| *why);
    let checked = Checked { facts, constants, run };
    conditions.iter().map(|condition| checked.answer(condition)).collect()
}

/// What the settings of a run say on which conditions depend, of the first run where an estimate is made of several.
/// `exact` says that the oracle has no noise; `compared` are the algorithms of all cells of the claim.
fn run_conditions<'a>(
    spec: &Spec,
    exact: bool,
    compared: &'a [StatedAlgorithm],
) -> RunConditions<'a> {
    let terms = &spec.components()[0].terms;
    let local_steps = terms.most_steps() as f64;
    // Conditions are on the step size of one local step, by whose number a normalised one is divided.
    let divisor = if terms.normalised { local_steps } else { 1.0 };
    let same_steps = terms.local_steps.iter().all(|&steps| steps == terms.local_steps[0]);
    RunConditions {
        algorithm: spec.stated(),
        compared,
        constant: terms.decay.is_none(),
        averaged: spec.average() != Average::None,
        step_size: terms.step_size / divisor,
        local_steps,
        exact,
        normalised: terms.normalised,
        cohort: terms.cohort,
        participation: terms.participation.clone(),
        // Whether the server goes to the plain mean of clients that make equal or normalised numbers of steps.
        equal: terms.goes_to_mean()
            && terms.stragglers.is_none()
            && (terms.normalised || same_steps),
    }
}

/// In how many cells a condition fails, and by which factor at most, as a part of a sentence; if it fails in none, in
/// how many it is not checked, and why in the last of them. `None` if all cells meet it.
fn detail(condition: &Condition, answers: &[ConditionAnswer]) -> Option<String> {
    let failing = answers.iter().filter(|answer| is_failing(answer)).count();
    let excess = answers.iter().filter_map(|answer| match answer {
        ConditionAnswer::Exceeded { have, need } => Some(have / need),
        _ => None,
    });
    let reasons: Vec<&str> = answers
        .iter()
        .filter_map(|answer| match answer {
            ConditionAnswer::Unknown(why) => Some(*why),
            _ => None,
        })
        .collect();
    let most = excess.reduce(|most, times| if times > most { times } else { most });
    let (cells, verb, more) = match (failing, reasons.last(), most) {
        (0, None, _) => return None,
        (0, Some(&""), _) => (reasons.len(), "is not checked", String::new()),
        (0, Some(why), _) => (reasons.len(), "is not checked", format!(", since {why}")),
        (cells, _, Some(times)) => {
            (cells, "fails", format!(", by a factor of up to {}", readable(times, 2)))
        }
        (cells, _, None) => (cells, "fails", String::new()),
    };
    Some(format!("“{}” {verb} in {}{more}", condition.words(), count(cells, "cell")))
}
