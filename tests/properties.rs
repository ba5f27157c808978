//! Properties of any manifest, not of some: what is accepted runs to its end, ids
//! follow what determines numbers and nothing else, a grid is the product of its
//! axes. More cases than usual: PROPTEST_CASES=1000.

mod documents;

use documents::{Document, document};
use driftbench::manifest::Source;
use driftbench::plan::{Cell, Plan};
use driftbench::runner::{self, Silent, prepare};
use driftbench::trace::Outcome;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Seeds are fixed: a run is as good as another.
fn runner(seed: u64) -> TestRunner {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    TestRunner::new(Config {
        cases: asked.unwrap_or(48),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    })
}

fn plan(text: &str) -> Result<Plan, String> {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/smoke/any.toml");
    let source = Source { name: base.into(), text: text.into(), ..Source::default() };
    Plan::new("any".into(), source).map_err(|e| e.to_string())
}

fn ids(plan: &Plan) -> BTreeSet<&str> {
    plan.cells.iter().map(|c| c.id.as_str()).collect()
}

/// Most manifests of the strategy are right, or the properties would say little.
fn enough(seen: &Mutex<(u32, u32)>, most_refused: f64) {
    let (accepted, refused) = *seen.lock().unwrap();
    let all = f64::from(accepted + refused);
    assert!(f64::from(refused) <= most_refused * all, "{accepted} accepted, {refused} refused");
}

#[test]
fn what_is_accepted_runs_to_its_end() {
    let seen = Mutex::new((0, 0));
    let ran = |document: Document| {
        let text = document.text();
        let Ok(plan) = plan(&text) else {
            seen.lock().unwrap().1 += 1;
            return Ok(());
        };
        prop_assert_eq!(ids(&plan).len(), plan.cells.len());
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let prepared = match prepare(&plan.folder(), &cells) {
            Ok(prepared) => prepared,
            Err(bad) => {
                // No unique solution, or a start or a limit that is not there.
                prop_assert!(bad.iter().all(|b| !b.message.is_empty() && !b.path.is_empty()));
                seen.lock().unwrap().1 += 1;
                return Ok(());
            }
        };
        let done = Mutex::new(BTreeSet::new());
        let failed = runner::run(&prepared, 2, &Silent, |cell| -> Result<(), String> {
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
            done.lock().unwrap().insert(cell.cell.id.clone());
            Ok(())
        });
        let failed = failed.map_err(TestCaseError::fail)?;
        prop_assert!(failed.is_empty(), "{failed:?}\n{text}");
        prop_assert_eq!(done.into_inner().unwrap().len(), plan.cells.len());
        seen.lock().unwrap().0 += 1;
        Ok(())
    };
    runner(1).run(&document(), ran).unwrap();
    enough(&seen, 0.3);
}

#[test]
fn ids_follow_the_settings_and_nothing_else() {
    let seen = Mutex::new((0, 0));
    let looks = (document(), any::<u64>(), any::<prop::sample::Index>());
    let held = |(document, shuffle, which): (Document, u64, prop::sample::Index)| {
        let text = document.text();
        let Ok(plain) = plan(&text) else {
            seen.lock().unwrap().1 += 1;
            return Ok(());
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
        seen.lock().unwrap().0 += 1;
        Ok(())
    };
    runner(2).run(&looks, held).unwrap();
    enough(&seen, 0.3);
}

#[test]
fn a_grid_is_the_product_of_its_axes() {
    let seen = Mutex::new((0, 0));
    let held = |document: Document| {
        let Ok(plan) = plan(&document.text()) else {
            seen.lock().unwrap().1 += 1;
            return Ok(());
        };
        prop_assert_eq!(plan.cells.len(), document.cells(), "{}", document.text());
        seen.lock().unwrap().0 += 1;
        Ok(())
    };
    runner(3).run(&document(), held).unwrap();
    enough(&seen, 0.3);
}
