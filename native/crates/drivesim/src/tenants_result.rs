//! The result of a tenants experiment.

use schedulers::{SchedulerState, Snapshot};
use serde::Serialize;

use crate::figures::{Latency, Measured};

/// The result of a tenants experiment.
#[derive(Debug, Serialize)]
pub struct TenantsResult<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) scheduler: &'static str,
    /// Start of the measured time.
    pub(crate) start_s: f64,
    pub(crate) seconds: f64,
    pub(crate) tenants: Vec<TenantResult<'a>>,
    /// The scheduler's state at the end of each interval, and at the end of the measured time.
    pub(crate) states: Option<Vec<StateAt>>,
    /// The scheduler's state, and that of its tenants, at the end of the measured time.
    pub(crate) snapshot: Snapshot,
}

/// The scheduler's own state at a time since the start of the measured time.
#[derive(Debug, Serialize)]
pub struct StateAt {
    pub(crate) at_s: f64,
    pub(crate) state: SchedulerState,
}

impl StateAt {
    /// The states found at times.
    pub(crate) fn of_all(found: Vec<(f64, SchedulerState)>) -> Vec<Self> {
        let states = found.into_iter().map(|(at_s, state)| Self { at_s, state });
        states.collect()
    }
}

/// The result of a tenant; latencies are those that it sees, from arrival to completion.
#[derive(Debug, Serialize)]
pub struct TenantResult<'a> {
    pub(crate) name: &'a str,
    #[serde(flatten)]
    pub(crate) measured: Measured,
    /// Latencies of the drive, from dispatch to completion.
    pub(crate) device_latency_ns: Option<Latency>,
    /// Requests that were queued when it disconnected.
    pub(crate) dropped: u64,
    /// The distribution of its latencies, if it was asked for: upper bounds in nanoseconds, each with the number of
    /// latencies up to it and beyond the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_buckets: Option<Vec<(u64, u64)>>,
}
