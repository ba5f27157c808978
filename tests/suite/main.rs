//! The tests that drive the program as a user does, and those of the sources themselves: one
//! program, so that it is linked once. `cargo test --test suite links::` runs those of a file, and
//! `faults::signals::` those of a file in a folder.

mod amendments;
mod at_cost;
mod at_target;
mod bands;
mod benches;
mod caches;
mod ci;
mod claims;
mod cli;
mod data;
mod deadlines;
mod defaults;
mod describe;
mod determinism;
mod diff;
mod documents;
mod drawn_text;
mod empty;
mod equations;
mod escaping;
mod exact;
mod export;
mod faults;
mod figure_files;
mod figure_quantities;
mod figures;
mod flat_clients;
#[path = "../support/forge.rs"]
mod forge;
mod fresh;
mod frontier;
mod history;
mod index;
mod latex;
mod layering;
mod limits;
mod links;
mod live;
#[path = "../support/live_run.rs"]
mod live_run;
mod local_work;
mod looks;
mod matrix;
mod merge;
mod messages;
mod moments;
mod mutations;
mod named_files;
#[path = "../../src/test_support/npz.rs"]
mod npz;
mod pages;
mod participation;
mod phase;
mod properties;
mod published;
mod quantities;
mod race;
mod ratios;
mod readers;
mod reference;
mod reference_point;
mod relative;
mod run_live;
#[path = "../support/runner.rs"]
mod runner;
mod scale;
mod shape;
mod site;
mod sizes;
mod sources;
mod starters;
mod statements;
mod submit;
#[path = "../support/mod.rs"]
mod support;
mod trust;
mod tune;
mod tutorial;
mod until;
mod without_optimum;
mod words;
#[allow(dead_code)] // mutations that the tests of claims use
#[path = "../../crates/evidence/src/wrong.rs"]
mod wrong;
