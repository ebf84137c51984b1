//! CLOCK_MONOTONIC, the clock of all time stamps.

use rustix::time::{clock_gettime, ClockId};

/// Nanoseconds of CLOCK_MONOTONIC.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
