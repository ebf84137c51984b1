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
}
