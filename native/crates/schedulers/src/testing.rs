//! Property tests that are the same in each run.

use proptest::test_runner::{Config, RngSeed};

pub fn cases(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..Config::default()
    }
}
