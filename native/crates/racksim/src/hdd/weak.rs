//! Sectors that fail to read at the first attempt.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Geometric, Uniform};

use super::HddParameters;
use crate::ms_to_ns;

/// The unit of read errors.
pub(super) const UNIT: u64 = 4096;

/// Three revolutions at 7200 rpm are 25 ms, though not in whole nanoseconds.
const ROUNDING_NS: u64 = 1000;

/// The sequence of units that fail to read. Each fails independently with the same probability; only the distances
/// between failures are drawn.
#[derive(Debug, Clone)]
pub(super) struct WeakSectors {
    distance: Option<Geometric>,
    revolutions: Uniform<u64>,
    revolution_ns: u64,
    rng: ChaCha8Rng,
    /// Units that will be read without error before the next failure.
    good: u64,
    /// Failed units so far.
    pub(super) errors: u64,
    /// Failed units that were retried.
    pub(super) retries: u64,
}

impl WeakSectors {
    pub(super) fn new(parameters: &HddParameters, revolution_ns: u64, rng: ChaCha8Rng) -> Self {
        let [low, high] = parameters.retry_ms.map(ms_to_ns);
        let fewest = low.saturating_sub(ROUNDING_NS).div_ceil(revolution_ns);
        let most = (high / revolution_ns).max(fewest);
        let probability = parameters.read_error_probability;
        let mut weak = Self {
            distance: (probability > 0.0)
                .then(|| Geometric::new(probability).expect("a checked probability is one")),
            revolutions: Uniform::new_inclusive(fewest, most).expect("checked bounds are ordered"),
            revolution_ns,
            rng,
            good: 0,
            errors: 0,
            retries: 0,
        };
        weak.good = weak.draw();
        weak
    }

    fn draw(&mut self) -> u64 {
        self.distance
            .map_or(u64::MAX, |distance| distance.sample(&mut self.rng))
    }

    /// Number of units that will be read without error before the next failure.
    pub(super) fn good(&self) -> u64 {
        self.good
    }

    /// Read `units` units; returns the index of the first that failed, at which reading stopped.
    pub(super) fn read(&mut self, units: u64) -> Option<u64> {
        if units <= self.good {
            // Without errors the distance to the next failure is unlimited.
            self.good -= if self.distance.is_some() { units } else { 0 };
            return None;
        }
        self.errors += 1;
        let failed = self.good;
        self.good = self.draw();
        Some(failed)
    }

    /// The retry time of a failed unit, in whole revolutions.
    pub(super) fn retry_ns(&mut self) -> u64 {
        self.retries += 1;
        self.revolutions.sample(&mut self.rng) * self.revolution_ns
    }
}
