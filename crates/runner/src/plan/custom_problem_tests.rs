//! Plans of problems that are defined outside of the program: what they say of θ*, losses and records.

use super::{Plan, UNREAD};
use crate::manifest::Source;
use crate::runner::prepare;
use exactfed_core::definition::{Definition, KeyValues};
use exactfed_core::problem::Fault;
use exactfed_core::problem::arrays::{Files, NoFiles};
use exactfed_core::problem::function::{
    DrawSpace, FieldRows, FunctionError, FunctionProblem, FunctionSizes, ProblemFunctions,
};
use exactfed_core::registry::{ProblemKind, Registry};
use std::sync::Arc;

/// The field tanh(θ − c − z) of client c and record z in one dimension, with the mean of its integrals as the loss.
struct Curves;

const RECORDS: usize = 3;

impl ProblemFunctions for Curves {
    fn fields(&self, rows: FieldRows<'_>, fields: &mut [f64]) -> Result<(), FunctionError> {
        for (row, field) in fields.iter_mut().enumerate() {
            let at = rows.thetas[row] - rows.clients[row] as f64 - rows.draws[row] as f64;
            *field = libm::tanh(at);
        }
        Ok(())
    }
    fn prefers_many_rows(&self) -> bool {
        true
    }
    fn losses(&self, thetas: &[f64], clients: &[usize]) -> Option<Result<Vec<f64>, FunctionError>> {
        let rows = thetas.iter().zip(clients);
        let loss = |(theta, client): (&f64, &usize)| {
            let at = theta - *client as f64;
            let all = (0..RECORDS).map(|record| libm::log(libm::cosh(at - record as f64)));
            all.sum::<f64>() / RECORDS as f64
        };
        Some(Ok(rows.map(loss).collect()))
    }
}

/// `[problem.curves]`, whose θ* is known if `has_optimum` says so.
struct CurvesKind {
    has_optimum: bool,
}

impl ProblemKind for CurvesKind {
    type Instance = FunctionProblem;

    fn linear(&self, _: &KeyValues) -> bool {
        false
    }
    fn size(&self, _: &KeyValues) -> (usize, usize) {
        (2, 1)
    }
    fn has_optimum(&self, _: &KeyValues) -> bool {
        self.has_optimum
    }
    fn has_loss(&self, _: &KeyValues) -> bool {
        true
    }
    fn has_records(&self, _: &KeyValues) -> bool {
        true
    }
    fn build(&self, _: &KeyValues, _: u64, _: &dyn Files) -> Result<FunctionProblem, Fault> {
        let draws = DrawSpace::Records(vec![RECORDS; 2]);
        let sizes = FunctionSizes { clients: 2, dimension: 1, draws, shares: None };
        FunctionProblem::new(Arc::new(Curves), sizes)
            .map_err(|fault| Fault::new("", fault.to_string()))
    }
}

const TEXT: &str = r#"title = "t"
seed = 1
replicates = 2
start.zero = true
budget.rounds = 5
record.metrics = ["train-loss"]
problem.curves = {}
[[algorithm.fedavg]]
step-size = 0.1
local-epochs = 2
"#;

/// The source of a manifest in a program in which the problem is registered.
fn source(text: &str, has_optimum: bool, version: &str) -> Source {
    let mut registry = Registry::default();
    let definition = Definition::new("curves", "Curves", version);
    registry.add_problem(definition, CurvesKind { has_optimum }).unwrap();
    Source { name: "t.toml".into(), text: text.into(), registry, ..Source::default() }
}

/// The message with which a manifest is refused.
fn refused(source: Source) -> String {
    Plan::new("t".into(), source, &UNREAD).err().unwrap().to_string()
}

#[test]
fn an_optimum_that_is_not_known_is_left_out() {
    let plan = Plan::of_source(source(TEXT, false, "1"));
    assert!(!plan.cells[0].identity.record.optimum);
    let left_out = TEXT.replace("record.metrics", "record.optimum = false\nrecord.metrics");
    let same = Plan::of_source(source(&left_out, false, "1"));
    assert_eq!(plan.cells[0].id, same.cells[0].id);
    let known = Plan::of_source(source(TEXT, true, "1"));
    assert!(known.cells[0].identity.record.optimum);
    let cells = [&plan.cells[0]];
    let prepared = prepare(&NoFiles, &cells).unwrap();
    let trace = prepared[0].simulate(0);
    assert!(trace.sq_error.is_empty() && trace.further[0].1.iter().all(|loss| loss.is_finite()));
    // Two epochs are two passes over three records.
    assert_eq!(trace.cost.last().unwrap().local_steps, 5 * 2 * RECORDS as u64);
}

#[test]
fn what_is_not_known_is_named() {
    let said = |old: &str, new: &str| refused(source(&TEXT.replace(old, new), false, "1"));
    let offset = said("start.zero = true", "start.offset = 1.0");
    assert!(offset.contains("`offset` needs θ*, which is not known of `curves`"), "{offset}");
    let metric = said("train-loss", "suboptimality");
    assert!(
        metric.contains("`suboptimality` needs θ*, which is not known of `curves`"),
        "{metric}"
    );
    let none = said("record.metrics = [\"train-loss\"]\n", "");
    let expected = "θ* of `curves` is not known, and nothing is recorded by which runs can be drawn or ranked: write metrics = [\"train-loss\"] in [record]";
    assert!(none.contains(expected), "{none}");
    let accuracy = said("train-loss", "accuracy");
    assert!(accuracy.contains("has `accuracy`, which `curves` does not state"), "{accuracy}");
}

/// Results name the problem with its version, and are not read with another one.
#[test]
fn results_are_read_with_their_problem_alone() {
    let stored = Plan::of_source(source(TEXT, false, "1")).source;
    assert_eq!(stored.problem.as_ref().unwrap().version, "1");
    let of = |registry| Source { registry, ..stored.clone() };
    let same = Plan::of_source(of(source(TEXT, false, "1").registry));
    assert_eq!(same.cells.len(), 1);
    for registry in [Registry::default(), source(TEXT, false, "2").registry] {
        let said = refused(of(registry));
        let expected = "`curves`: the code of this problem is not at hand, or has changed since the experiment was stored: read the results with the program that defines it";
        assert!(said.contains(expected), "{said}");
    }
}
