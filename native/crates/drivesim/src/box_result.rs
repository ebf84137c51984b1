//! The result of a box experiment.

use schedulers::Snapshot;
use serde::Serialize;

use crate::figures::Figures;
use crate::phases::PhaseTimes;
use crate::tenants_result::{StateAt, TenantResult};

/// The result of a box experiment.
#[derive(Debug, Serialize)]
pub struct BoxResult<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) scheduler: &'static str,
    /// Start of the measured time.
    pub(crate) start_s: f64,
    pub(crate) seconds: f64,
    /// All tenants together.
    pub(crate) total: Figures,
    pub(crate) tenants: Vec<BoxTenant<'a>>,
    pub(crate) drives: Vec<DriveResult>,
    pub(crate) cores: Vec<CoreResult>,
    pub(crate) link: LinkResult,
    /// The path between drives and memory, if it takes time.
    pub(crate) memory: Option<PathResult>,
}

/// The result of a tenant of a box.
#[derive(Debug, Serialize)]
pub struct BoxTenant<'a> {
    pub(crate) drive: usize,
    #[serde(flatten)]
    pub(crate) tenant: TenantResult<'a>,
    /// Mean times of the phases of its reads.
    pub(crate) read_phases_ns: Option<PhaseTimes>,
    /// The same of its writes.
    pub(crate) write_phases_ns: Option<PhaseTimes>,
}

/// The scheduler of a drive: its state at the end of each interval, and at the end of the measured time.
#[derive(Debug, Serialize)]
pub struct DriveResult {
    pub(crate) states: Option<Vec<StateAt>>,
    pub(crate) snapshot: Snapshot,
}

/// A core.
#[derive(Debug, Serialize)]
pub struct CoreResult {
    /// Share of the measured time in which it worked.
    pub(crate) utilisation: f64,
}

/// The two directions of the link.
#[derive(Debug, Serialize)]
pub struct LinkResult {
    pub(crate) to_box: PathResult,
    pub(crate) from_box: PathResult,
}

/// A path for bytes.
#[derive(Debug, Serialize)]
pub struct PathResult {
    /// Share of the measured time in which it was busy.
    pub(crate) utilisation: f64,
    /// Bytes that were given to it, by the second.
    pub(crate) bytes_per_s: f64,
}
