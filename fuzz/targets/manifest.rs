//! A manifest's text: read, planned, its texts looked at, its grid
//! compared with another reading; what is tiny is run.

#![no_main]

use exactfed_runner::manifest::Source;
use exactfed_runner::plan::Plan;
use exactfed_fuzz::run;
use libfuzzer_sys::fuzz_target;

fn planned(text: &str) -> Option<Plan> {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/m.toml").to_owned();
    let source = Source { name, text: text.to_owned(), ..Source::default() };
    match exactfed::evidence::plan("fuzz/m".into(), source) {
        Ok(plan) => Some(plan),
        Err(rejected) => {
            let said = rejected.to_string();
            assert!(said.contains("error: "), "{said}");
            None
        }
    }
}

fuzz_target!(|text: &str| {
    let Some(plan) = planned(text) else { return };
    // A byte order mark is allowed at the beginning alone.
    let rest = text.trim_start_matches('\u{feff}');
    let again = planned(&format!("# a comment\n{rest}\n")).expect("a comment changes nothing");
    let ids = |plan: &Plan| plan.cells.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&plan), ids(&again));
    #[cfg(feature = "polars")]
    let _ = exactfed::report::check_texts(&plan);
    run(&plan, &plan.folder());
});
