//! Properties that are tested on many values. More of them than usual: PROPTEST_CASES=1000.

use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Seeds are fixed: a run is as good as another.
pub fn runner(seed: u64, cases: u32) -> TestRunner {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    TestRunner::new(Config {
        cases: asked.unwrap_or(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    })
}
