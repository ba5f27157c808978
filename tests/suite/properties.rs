//! Properties of any manifest, not of some: what is accepted runs to its end, ids
//! follow what determines numbers and nothing else, a grid is the product of its
//! axes.

use crate::documents::{Document, document};
use exactfed::manifest::Source;
use exactfed::plan::{Cell, Plan};
use exactfed::runner::{Silent, prepare, run};
use exactfed::trace::Outcome;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::BTreeSet;
use std::sync::Mutex;

fn plan(text: &str) -> Result<Plan, String> {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/smoke/any.toml");
    let source = Source { name: base.into(), text: text.into(), ..Source::default() };
    exactfed::evidence::plan("any".into(), source).map_err(|e| e.to_string())
}

fn ids(plan: &Plan) -> BTreeSet<&str> {
    plan.cells.iter().map(|c| c.id.as_str()).collect()
}

/// Whether a manifest is accepted; an error if the property does not hold of it.
type Held = Result<bool, TestCaseError>;

/// Tests a property of manifests. Most of them are accepted, or it would say little.
fn check<S: Strategy>(seed: u64, strategy: &S, holds: impl Fn(S::Value) -> Held) {
    let counts = [const { std::cell::Cell::new(0) }; 2];
    let counted = |value| {
        let count = &counts[usize::from(holds(value)?)];
        count.set(count.get() + 1);
        Ok(())
    };
    crate::runner::runner(seed, 48).run(strategy, counted).unwrap();
    let [refused, accepted] = counts.map(|count| f64::from(count.get()));
    assert!(refused <= 0.3 * (refused + accepted), "{accepted} accepted, {refused} refused");
}

#[test]
fn what_is_accepted_runs_to_its_end() {
    let held = |document: Document| {
        let text = document.text();
        let Ok(plan) = plan(&text) else {
            return Ok(false);
        };
        prop_assert_eq!(ids(&plan).len(), plan.cells.len());
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let prepared = match prepare(&plan.folder(), &cells) {
            Ok(prepared) => prepared,
            Err(bad) => {
                // No unique solution, or a start or a limit that is not there.
                prop_assert!(bad.iter().all(|b| !b.message.is_empty() && !b.key.is_empty()));
                return Ok(false);
            }
        };
        let done = Mutex::new(BTreeSet::new());
        let failed = run(&prepared, 2, &Silent, |cell| -> Result<(), String> {
            let identity = &cell.cell.identity;
            let recorded = identity.recorded();
            assert_eq!(cell.traces.len() as u64, identity.replicates);
            for trace in &cell.traces {
                assert!(trace.sq_error.iter().all(|e| e.is_finite() && *e >= 0.0));
                match trace.outcome {
                    Outcome::Finished => assert_eq!(trace.round, recorded),
                    _ => assert!(recorded.starts_with(&trace.round)),
                }
            }
            done.lock().unwrap().insert(cell.cell.id.to_string());
            Ok(())
        });
        let failed = failed.map_err(TestCaseError::fail)?;
        prop_assert!(failed.is_empty(), "{failed:?}\n{text}");
        prop_assert_eq!(done.into_inner().unwrap().len(), plan.cells.len());
        Ok(true)
    };
    check(1, &document(), held);
}

#[test]
fn ids_follow_the_settings_and_nothing_else() {
    let looks = (document(), any::<u64>(), any::<prop::sample::Index>());
    let held = |(document, shuffle, which): (Document, u64, prop::sample::Index)| {
        let text = document.text();
        let Ok(plain) = plan(&text) else {
            return Ok(false);
        };
        let other = document.dressed(shuffle);
        let dressed = plan(&other).map_err(|e| TestCaseError::fail(format!("{e}\n{other}")))?;
        prop_assert_eq!(ids(&plain), ids(&dressed), "{}\n---\n{}", text, other);
        // One setting is another: no cell of its part of the grid stays.
        let (changed, what, all) = document.changed(&which);
        if let Ok(changed) = plan(&changed) {
            let both = ids(&plain).intersection(&ids(&changed)).count();
            prop_assert!(both < plain.cells.len(), "{what} changed no id\n{text}");
            prop_assert!(!all || both == 0, "{what} left {both} ids\n{text}");
        }
        Ok(true)
    };
    check(2, &looks, held);
}

#[test]
fn a_grid_is_the_product_of_its_axes() {
    let held = |document: Document| {
        let Ok(plan) = plan(&document.text()) else {
            return Ok(false);
        };
        prop_assert_eq!(plan.cells.len(), document.cells(), "{}", document.text());
        Ok(true)
    };
    check(3, &document(), held);
}

/// Writes so many accepted manifests into a folder.
#[test]
#[ignore = "writes the manifests of scripts/soak.py"]
fn random_manifests_for_the_soak() {
    let [folder, seed, count] =
        ["SOAK_FOLDER", "SOAK_SEED", "SOAK_COUNT"].map(|name| std::env::var(name).unwrap());
    let mut runner = crate::runner::runner(seed.parse().unwrap(), 1);
    let draw = || document().new_tree(&mut runner).unwrap().current().text();
    let is_prepared = |plan: Plan| prepare(&plan.folder(), &Vec::from_iter(&plan.cells)).is_ok();
    let accepted = std::iter::repeat_with(draw).filter(|text| plan(text).is_ok_and(is_prepared));
    for (k, text) in accepted.take(count.parse().unwrap()).enumerate() {
        std::fs::write(format!("{folder}/{k}.toml"), text).unwrap();
    }
}
