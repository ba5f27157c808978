//! The algorithms and the quantities of a page as formulas: written once in TeX, shown as MathML
//! by HTML and as TeX by Markdown.

use crate::evidence::{CellResult, Centre, Experiment, centres, unique, vectors_sent};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Cell;
use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};
use serde_json::{Value, json};

/// A name with its formulas.
fn formula(name: &str, words: &str, tex: &[&str]) -> Value {
    let mathml: Vec<String> = tex.iter().map(|tex| mathml(tex)).collect();
    json!({ "name": name, "words": words, "tex": tex, "mathml": mathml })
}

/// TeX as MathML; the TeX itself if it cannot be converted.
fn mathml(tex: &str) -> String {
    let storage = Storage::new();
    let config = RenderConfig { display_mode: DisplayMode::Block, ..RenderConfig::default() };
    let mut out = String::new();
    match push_mathml(&mut out, Parser::new(tex, &storage), config) {
        Ok(()) if !out.contains("merror") => out,
        _ => format!("<code>{tex}</code>"),
    }
}

/// The algorithms of an experiment.
pub fn algorithms(experiment: &Experiment<'_>) -> Vec<Value> {
    let cells = &experiment.plan.cells;
    fn kind_of(cell: &Cell) -> (&str, bool) {
        let coin = cell.settings.get("communication-probability").is_some();
        (cell.identity.algorithm.kind(), coin)
    }
    let of_kind = |(kind, coin)| {
        let own: Vec<&Cell> = cells.iter().filter(|cell| kind_of(cell) == (kind, coin)).collect();
        let labels = unique(own.iter().map(|cell| cell.label.as_str()));
        let round = own[0].identity.algorithm.round()?;
        let vectors = if coin { "" } else { vectors_sent(own.into_iter()) };
        Some(formula(&labels.join("; "), &format!("{}{vectors}", round.words), round.tex))
    };
    unique(cells.iter().map(kind_of)).into_iter().filter_map(of_kind).collect()
}

/// The quantities that an experiment's figures show or that it records.
pub fn quantities(experiment: &Experiment<'_>) -> Vec<Value> {
    let shown = experiment.figures.iter().filter_map(|f| f.exploration.as_ref()).map(|e| e.y);
    let record = &experiment.plan.manifest.record;
    let recorded = record.metrics.iter().map(|m| m.quantity());
    let all = std::iter::once(record.default_quantity()).chain(shown).chain(recorded);
    unique(all).into_iter().flat_map(|q| formulas(q, &experiment.cells)).collect()
}

/// A quantity of these cells: twice where only some have it around the mean.
fn formulas(quantity: Quantity, cells: &[CellResult<'_>]) -> Vec<Value> {
    let around = quantity.average().map_or(Vec::new(), |average| centres(average, cells.iter()));
    let optimum = quantity.formula_around_optimum();
    let is_moment = optimum != quantity.formula() && around.contains(&Centre::Optimum);
    let around_mean =
        quantity.info().meaning.filter(|_| !is_moment || around.contains(&Centre::Mean));
    let own = around_mean.map(|(words, tex)| formula(quantity.formula(), words, &[tex]));
    let (words, tex) = AROUND_OPTIMUM;
    let moment = is_moment.then(|| formula(optimum, words, &[tex]));
    own.into_iter().chain(moment).collect()
}

/// What takes the place of a variance where no limit is known and the bias is not recorded.
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
        for quantity in Quantity::ALL {
            match quantity.info().meaning {
                Some((_, tex)) => assert!(mathml(tex).starts_with("<math"), "{tex}"),
                None => assert!(Quantity::COSTS.contains(quantity), "{}", quantity.name()),
            }
        }
    }

    #[test]
    fn text_that_is_no_tex_is_shown_unchanged() {
        assert_eq!(mathml(r"\frac{1}"), r"<code>\frac{1}</code>");
    }
}
