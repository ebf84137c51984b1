//! The result of a blobstore experiment.

use blobstore::Counters;
use schedulers::Snapshot;
use serde::Serialize;

use crate::figures::Latency;

/// The result of a blobstore experiment.
#[derive(Debug, Serialize)]
pub struct BlobStoreResult<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) scheduler: &'static str,
    /// Virtual time that loading took.
    pub(crate) load_s: f64,
    /// Start of the measured time.
    pub(crate) start_s: f64,
    pub(crate) seconds: f64,
    pub(crate) clients: Vec<ClientResult<'a>>,
    pub(crate) drives: Vec<DriveResult>,
}

/// The result of a client over the measured time. Latencies are those of its operations, from start to answer.
#[derive(Debug, Serialize)]
pub struct ClientResult<'a> {
    pub(crate) name: &'a str,
    pub(crate) operations: u64,
    pub(crate) operations_per_s: f64,
    /// Operations that failed, which no other figure includes.
    pub(crate) errors: u64,
    pub(crate) gets: Operations,
    pub(crate) puts: Operations,
    pub(crate) scans: Operations,
    pub(crate) read_modify_writes: Operations,
    /// Reads of blocks and tables by the place of the replica that served them.
    pub(crate) reads_by_replica: Vec<u64>,
    pub(crate) reads_by_drive: Vec<u64>,
    pub(crate) counters: Counters,
    /// Bytes written for each byte put, before replication.
    pub(crate) write_amplification: Option<f64>,
    /// Blocks read for each get or scan.
    pub(crate) read_amplification: Option<f64>,
    /// Bytes of each level at the end.
    pub(crate) level_bytes: Vec<u64>,
    /// The reason why its database took no puts any more.
    pub(crate) failure: Option<String>,
}

/// Operations of a kind.
#[derive(Debug, Serialize)]
pub struct Operations {
    pub(crate) count: u64,
    pub(crate) latency_ns: Option<Latency>,
}

/// A drive at the end of the measured time.
#[derive(Debug, Serialize)]
pub struct DriveResult {
    pub(crate) in_box: usize,
    /// The state of its scheduler, and of its tenants there.
    pub(crate) snapshot: Snapshot,
}
