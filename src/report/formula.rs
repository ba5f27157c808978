//! The algorithms and the quantities of a page as formulas: written once in TeX, shown as MathML
//! by HTML and as TeX by Markdown.

use crate::evidence::{CellResult, Centre, Experiment, centres, unique, vectors_sent};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Cell;
use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};
use serde::Serialize;

/// A name with its formulas.
#[derive(Serialize)]
pub struct Formula {
    pub name: String,
    pub words: String,
    pub tex: Vec<String>,
    pub mathml: Vec<String>,
}

impl Formula {
    fn new(name: &str, words: &str, tex: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            words: words.to_owned(),
            tex: tex.iter().map(|t| (*t).to_owned()).collect(),
            mathml: tex.iter().map(|t| mathml(t)).collect(),
        }
    }
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

const LOCAL: &str = r"\theta_c \leftarrow \theta_c - \gamma F_c(\theta_c; Z)";
const CORRECTED: &str =
    r"\theta_c \leftarrow \theta_c - \gamma \left( F_c(\theta_c; Z) + \xi_c \right)";
const MEAN: &str = r"\theta_{t+1} = \frac{1}{N} \sum_{c=1}^{N} \theta_c";
const LEARN: &str = r"\xi_c \leftarrow \xi_c + \frac{\theta_c - \theta_{t+1}}{\gamma H}";
const COIN: &str = r"\xi_c \leftarrow \xi_c + \frac{p}{\gamma} \left( \theta_c - \bar\theta \right), \quad \bar\theta = \frac{1}{N} \sum_{c=1}^{N} \theta_c";

/// The steps of an algorithm, by its kind in manifests.
fn steps(kind: &str, coin: bool) -> Option<(&'static str, Vec<&'static str>)> {
    const EVERY: &str = "H local steps of every client from θ_t, then their mean; two vectors per client and round, θ down and up";
    Some(match kind {
        "fedavg" | "fedlsa" => (EVERY, vec![LOCAL, MEAN]),
        "scaffold" | "scafflsa" | "scaffnew" if coin || kind == "scaffnew" => (
            "a local step of every client; after each, with probability p, the mean; two vectors per client and communication",
            vec![CORRECTED, COIN],
        ),
        "scaffold" | "scafflsa" => (
            "as FedAvg, with control variates that are updated at the end of a round",
            vec![CORRECTED, MEAN, LEARN],
        ),
        "fedlin" => (
            "as Scaffold, with variates measured again at the start of each round, which makes two communications a round",
            vec![
                CORRECTED,
                r"\xi_c = \frac{1}{N} \sum_{k=1}^{N} F_k(\theta_t; Z) - F_c(\theta_t; Z)",
                MEAN,
            ],
        ),
        "fedprox" => (
            "as FedAvg, with a pull towards the start of the round",
            vec![
                r"\theta_c \leftarrow \theta_c - \gamma \left( F_c(\theta_c; Z) + \mu \left( \theta_c - \theta_t \right) \right)",
                MEAN,
            ],
        ),
        "minibatch-sgd" | "centralised-lsa" => (
            "one step a round with the mean over a batch of every client",
            vec![
                r"\theta_{t+1} = \theta_t - \frac{\gamma}{N} \sum_{c=1}^{N} \frac{1}{B} \sum_{b=1}^{B} F_c(\theta_t; Z_{c,b})",
            ],
        ),
        "richardson-romberg" => (
            "several runs, combined so that the leading orders of the bias cancel; it costs what all of them cost, communications included",
            vec![
                r"2\,\theta^{(\gamma)} - \theta^{(2\gamma)}",
                r"\text{or, over three step sizes,} \quad 3\,\theta^{(\gamma)} - 3\,\theta^{(2\gamma)} + \theta^{(3\gamma)}",
                r"\text{or, over local steps,} \quad \frac{(2H - 1)\,\theta^{(\gamma, H)} - (H - 1)\,\theta^{(\gamma, 2H)}}{H}",
                r"\text{or, over both, the first of these within the third}",
            ],
        ),
        _ => return None,
    })
}

/// The algorithms of an experiment.
pub fn algorithms(experiment: &Experiment<'_>) -> Vec<Formula> {
    let cells = &experiment.plan.cells;
    fn kind_of(cell: &Cell) -> (&str, bool) {
        let coin = cell.settings.get("communication-probability").is_some();
        (cell.identity.algorithm.kind(), coin)
    }
    let formula = |(kind, coin)| {
        let own = cells.iter().filter(|cell| kind_of(cell) == (kind, coin));
        let labels = unique(own.map(|cell| cell.label.as_str()));
        let (words, tex) = steps(kind, coin)?;
        let own = cells.iter().filter(|cell| kind_of(cell) == (kind, coin));
        let vectors = if coin { "" } else { vectors_sent(own) };
        Some(Formula::new(&labels.join("; "), &format!("{words}{vectors}"), &tex))
    };
    unique(cells.iter().map(kind_of)).into_iter().filter_map(formula).collect()
}

/// The quantities that an experiment's figures show or that it records.
pub fn quantities(experiment: &Experiment<'_>) -> Vec<Formula> {
    let shown = experiment.figures.iter().filter_map(|f| f.exploration.as_ref()).map(|e| e.y);
    let recorded = experiment.plan.manifest.record.metrics.iter().map(|m| m.quantity());
    let all = std::iter::once(Quantity::SqError).chain(shown).chain(recorded);
    unique(all).into_iter().flat_map(|q| formulas(q, &experiment.cells)).collect()
}

/// A quantity of these cells: twice where only some have it around the mean.
fn formulas(quantity: Quantity, cells: &[CellResult<'_>]) -> Vec<Formula> {
    let around = quantity.average().map_or(Vec::new(), |average| centres(average, cells.iter()));
    let optimum = quantity.formula_around_optimum();
    let is_moment = optimum != quantity.formula() && around.contains(&Centre::Optimum);
    let around_mean =
        quantity.info().meaning.filter(|_| !is_moment || around.contains(&Centre::Mean));
    let own = around_mean.map(|(words, tex)| Formula::new(quantity.formula(), words, &[tex]));
    let (words, tex) = AROUND_OPTIMUM;
    let moment = is_moment.then(|| Formula::new(optimum, words, &[tex]));
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

    #[test]
    fn every_algorithm_and_every_metric_has_formulas_that_render() {
        for kind in Spec::KINDS {
            for coin in [false, true] {
                let (_, tex) = steps(kind, coin).unwrap_or_else(|| panic!("{kind} has no formula"));
                let rendered = tex.iter().map(|t| mathml(t)).collect::<String>();
                assert!(rendered.starts_with("<math") && !rendered.contains("<code>"), "{kind}");
            }
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
