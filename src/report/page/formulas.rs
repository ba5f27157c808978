//! The algorithms and the quantities of a page as formulas: written once in TeX, shown as MathML
//! by HTML and as TeX by Markdown.

use crate::evidence::{CellResult, Centre, Experiment, centres, unique, vectors_sent};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Cell;
use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};
use serde::Serialize;

/// The definitions of the algorithms and of the quantities of a page.
#[derive(Serialize)]
pub struct FormulasSection {
    pub algorithms: Vec<NamedFormula>,
    pub quantities: Vec<NamedFormula>,
}

impl FormulasSection {
    /// The definitions for an experiment.
    pub fn new(experiment: &Experiment<'_>) -> Self {
        Self { algorithms: algorithms(experiment), quantities: quantities(experiment) }
    }
}

/// A name with its formulas.
#[derive(Serialize)]
pub struct NamedFormula {
    pub name: String,
    /// What it is in words.
    pub words: String,
    /// The formulas in TeX.
    pub tex: Vec<String>,
    /// The formulas in MathML.
    pub mathml: Vec<String>,
}

impl NamedFormula {
    /// A name with its words and its formulas in TeX.
    fn new(name: &str, words: &str, tex: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            words: words.to_owned(),
            tex: tex.iter().map(|tex| (*tex).to_owned()).collect(),
            mathml: tex.iter().map(|tex| mathml(tex)).collect(),
        }
    }
}

/// A formula in TeX as MathML; the TeX itself as code if it cannot be converted.
fn mathml(tex: &str) -> String {
    let storage = Storage::new();
    let config = RenderConfig { display_mode: DisplayMode::Block, ..RenderConfig::default() };
    let mut out = String::new();
    match push_mathml(&mut out, Parser::new(tex, &storage), config) {
        Ok(()) if !out.contains("merror") => out,
        _ => format!("<code>{tex}</code>"),
    }
}

/// A round of each kind of algorithm in an experiment, under the labels of all its algorithms of the kind. Algorithms
/// without a formula, such as custom ones, are left out.
fn algorithms(experiment: &Experiment<'_>) -> Vec<NamedFormula> {
    let cells = &experiment.plan.cells;
    let mut formulas = Vec::new();
    for kind in unique(cells.iter().map(RoundKind::new)) {
        let own: Vec<&Cell> = cells.iter().filter(|cell| RoundKind::new(cell) == kind).collect();
        let labels = unique(own.iter().map(|cell| cell.label.as_str()));
        let Some(round) = own[0].identity.algorithm.round() else { continue };
        // Under a coin a round need not have a communication, so that no number of vectors is said.
        let vectors = if kind.has_coin { "" } else { vectors_sent(own.into_iter()) };
        let words = format!("{}{vectors}", round.words);
        formulas.push(NamedFormula::new(&labels.join("; "), &words, round.tex));
    }
    formulas
}

/// What determines the formula of a round.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RoundKind<'a> {
    algorithm: &'a str,
    /// Whether a coin decides when clients communicate.
    has_coin: bool,
}

impl<'a> RoundKind<'a> {
    /// The kind of a cell's rounds.
    fn new(cell: &'a Cell) -> Self {
        let has_coin = cell.settings.get("communication-probability").is_some();
        Self { algorithm: cell.identity.algorithm.kind(), has_coin }
    }
}

/// The definitions of the quantities on an experiment's page, each once: the one by which runs are compared, those on
/// the y axes of figures of cells, and the metrics that it records.
fn quantities(experiment: &Experiment<'_>) -> Vec<NamedFormula> {
    let explorations = experiment.figures.iter().filter_map(|f| f.exploration.as_ref());
    let shown = explorations.flat_map(|exploration| exploration.y.iter().copied());
    let record = &experiment.plan.manifest.record;
    let recorded = record.metrics.iter().map(|m| m.quantity());
    let all = std::iter::once(record.default_quantity()).chain(shown).chain(recorded);
    let several_optima = experiment.problems.several_optima.is_some();
    let defined = unique(all).into_iter();
    defined.flat_map(|quantity| formulas(quantity, &experiment.cells, several_optima)).collect()
}

/// The definitions of a quantity in these cells: two for a variance that is around the mean in some cells and around
/// the optimum in others, none for a quantity without a meaning of its own, such as a count. If there are
/// `several_optima`, errors are distances to their set.
fn formulas(
    quantity: Quantity,
    cells: &[CellResult<'_>],
    several_optima: bool,
) -> Vec<NamedFormula> {
    let around = quantity.average().map_or(Vec::new(), |average| centres(average, cells.iter()));
    let optimum = quantity.formula_around_optimum();
    let is_moment = optimum != quantity.formula() && around.contains(&Centre::Optimum);
    let around_mean =
        quantity.info().meaning.filter(|_| !is_moment || around.contains(&Centre::Mean));
    let is_distance_to_set = several_optima && quantity.needs_optimum() && quantity.info().is_error;
    let own = around_mean.map(|(words, tex)| {
        let of_set = format!("{words}, where θ* is the nearest point of the set of minimisers");
        let words = if is_distance_to_set { &of_set } else { words };
        NamedFormula::new(quantity.formula(), words, &[tex])
    });
    let (words, tex) = AROUND_OPTIMUM;
    let moment = is_moment.then(|| NamedFormula::new(optimum, words, &[tex]));
    own.into_iter().chain(moment).collect()
}

/// The words and the formula of the quantity that takes the place of a variance where no limit is known and the bias is
/// not recorded.
const AROUND_OPTIMUM: (&str, &str) = (
    "mean squared distance from the optimum over the rounds after the burn-in: the variance and the squared bias together, since no limit is known and the bias is not recorded",
    r"\mathbb{E}\, \lVert \theta - \theta^* \rVert^2",
);

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::algorithm::Spec;
    use exactfed_runner::manifest::Source;
    use std::collections::BTreeSet;

    #[test]
    fn every_algorithm_and_every_metric_has_formulas_that_render() {
        let name = "experiments/smoke/all-quadratic.toml";
        let text = std::fs::read_to_string(name).unwrap();
        let source = Source { name: name.into(), text, ..Source::default() };
        let plan = crate::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let algorithms = plan.cells.iter().map(|cell| &cell.identity.algorithm);
        let kinds: BTreeSet<&str> = algorithms.clone().map(|a| a.kind()).collect();
        assert!(kinds.into_iter().eq(Spec::KINDS.iter().copied().collect::<BTreeSet<_>>()));
        for algorithm in algorithms {
            let tex = algorithm.round().unwrap().tex;
            let rendered = tex.iter().map(|t| mathml(t)).collect::<String>();
            assert!(rendered.starts_with("<math") && !rendered.contains("<code>"), "{tex:?}");
        }
        for quantity in Quantity::known() {
            match quantity.info().meaning {
                Some((_, tex)) => assert!(mathml(tex).starts_with("<math"), "{tex}"),
                None => assert!(Quantity::COSTS.contains(&quantity), "{}", quantity.name()),
            }
        }
    }

    #[test]
    fn text_that_is_no_tex_is_shown_unchanged() {
        assert_eq!(mathml(r"\frac{1}"), r"<code>\frac{1}</code>");
    }
}
