//! What numbers in units of the problem's constants come to, in words.

use super::Prepared;
use crate::plan::{Cell, rounded_to_six};
use exactfed_core::problem::Constant;
use std::collections::BTreeSet;

/// The most numbers that are listed.
const MOST_LISTED: usize = 12;

/// Sentences without a full stop about the numbers of cells that are written in units of the problem's constants: first
/// the constants, and then what each number comes to, on the first instance of each cell. Empty if no number is written
/// so. `prepared` are cells on all problems of `cells`, each of which is needed once.
pub fn words_on_multiples<'a>(
    cells: impl Iterator<Item = &'a Cell>,
    prepared: &[&Prepared<'_>],
) -> Vec<String> {
    let mut constants: Vec<Constant> = Vec::new();
    let mut numbers = BTreeSet::new();
    let mut has_several_instances = false;
    for cell in cells {
        for (key, multiple, found) in cell.identity.algorithm.multiples() {
            constants.extend(multiple.constants());
            has_several_instances |= cell.identity.built_instances() > 1;
            let (unit, number) = multiple.written();
            let found = found.map_or(f64::NAN, rounded_to_six);
            let label = &cell.label;
            numbers.insert(format!("`{key} = {{ {unit} = {number} }}` of {label} is {found}"));
        }
    }
    let mut sentences = Vec::new();
    for cell in prepared {
        let of_problem =
            words_on_penalty(cell).into_iter().chain(words_on_constants(cell, &constants));
        for words in of_problem {
            if !sentences.contains(&words) {
                sentences.push(words);
            }
        }
    }
    let count = numbers.len();
    sentences.extend(numbers.into_iter().take(MOST_LISTED));
    if count > MOST_LISTED {
        let further = count - MOST_LISTED;
        sentences.push(format!("{further} further numbers are in units of these constants"));
    }
    if has_several_instances {
        sentences.push("These are numbers of the first instance; each instance has its own".into());
    }
    sentences
}

/// The constants among `constants` that are known of the first instance of a cell, with their values, in words; `None`
/// if none is known.
fn words_on_constants(cell: &Prepared<'_>, constants: &[Constant]) -> Option<String> {
    let scenario = cell.scenarios.first()?;
    let mut each = Vec::new();
    for constant in Constant::ALL.into_iter().filter(|constant| constants.contains(constant)) {
        if let Some(value) = scenario.constants.get(&*scenario.instance, constant) {
            let word = constant.word();
            let meaning = constant.meaning();
            each.push(format!("{word} = {}, {meaning}", rounded_to_six(value)));
        }
    }
    (!each.is_empty()).then(|| format!("At every θ: {}", each.join("; ")))
}

/// λ of a cell whose penalty is written as a multiple of the smoothness of its losses; `None` for any other cell.
fn words_on_penalty(cell: &Prepared<'_>) -> Option<String> {
    let mut problem = cell.cell.identity.problem.as_ref().clone();
    let multiple = problem.penalty_mut()?.multiple()?;
    let (unit, number) = multiple.written();
    let lambda = cell.scenarios.first()?.instance.penalty();
    let smoothness = rounded_to_six(lambda / number);
    let lambda = rounded_to_six(lambda);
    let meaning = multiple.constant().meaning();
    Some(format!(
        "`l2 = {{ {unit} = {number} }}` is {lambda}: {meaning} is {smoothness} at every θ"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::runner::prepare;
    use exactfed_core::problem::arrays::NoFiles;

    /// Each of several instances has its own constants, and the sentences are about the first.
    #[test]
    fn instances_have_their_own_numbers() {
        let text = r#"title = "t"
seed = 1
replicates = 2
instances = 3
problem.logistic = { dimension = 3, records = 20, clients = 2, data = { noisy = { spread = 1.0 } }, l2 = { times-L = 0.1 } }
start.zero = true
budget.rounds = 2
[[algorithm.fedavg]]
step-size = { over-L = 1.0 }
local-steps = 2
"#;
        let plan = Plan::of_text(text, &[]);
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let prepared = prepare(&NoFiles, &cells).unwrap();
        let mut steps = Vec::new();
        for scenario in &prepared[0].scenarios {
            let facts = &*scenario.instance;
            let of_data = (0..2).filter_map(|client| facts.data_smoothness(Some(client)));
            let largest = of_data.fold(0.0, f64::max);
            assert!((facts.penalty() / (0.1 * largest) - 1.0).abs() < 1e-12);
            let found = scenario.algorithm.components()[0].terms.step_size;
            assert!((found * 1.1 * largest - 1.0).abs() < 1e-12, "{found}");
            steps.push(found);
        }
        assert!(steps[0] != steps[1] && steps[1] != steps[2], "{steps:?}");
        let words = words_on_multiples(plan.cells.iter(), &[&prepared[0]]);
        let first = format!("is {}", rounded_to_six(steps[0]));
        assert!(words.iter().any(|words| words.ends_with(&first)), "{words:?}");
        assert!(words.last().is_some_and(|last| last.contains("first instance")), "{words:?}");
    }
}
