//! Requests, and a scheduler's answers to them.

use serde::{Deserialize, Serialize};

use crate::tenant::TenantId;

/// The largest request, as of drivesim's loads.
pub(crate) const LARGEST_BYTES: u32 = 64 << 20;

/// A request as far as a scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The caller's own number, returned with the dispatch and the completion.
    pub ticket: u64,
    /// Read or write.
    pub operation: Operation,
    /// Byte count.
    pub bytes: u32,
}

/// The operation of a request. Flushes and trims pass a scheduler by: they carry no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Return bytes.
    Read,
    /// Store bytes.
    Write,
}

/// The priority that a client tags a request with, in the classes of NVMe's weighted round robin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The first class.
    Urgent,
    /// The second class.
    High,
    /// The third class.
    #[default]
    Medium,
    /// The last class.
    Low,
}

/// A request in a scheduler. An id is never used again.
///
/// Its index in the ledger and above it its generation: one word, since it is copied as such right after it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(u64);

impl RequestId {
    pub(crate) fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A scheduler's decision on the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Give this request to the drive now.
    Dispatch(Dispatch),
    /// Ask again at this time, or after an arrival or a completion before it.
    WaitUntil(u64),
    /// Ask again after an arrival or a completion.
    Idle,
}

/// A request on its way to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// The id for [`Scheduler::complete`](crate::Scheduler::complete).
    pub id: RequestId,
    /// The tenant of the request.
    pub tenant: TenantId,
    /// The request as it arrived.
    pub request: Request,
}

/// The outcome of a request at the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The drive did it.
    Succeeded,
    /// The drive reported an error; its latency says nothing about load.
    Failed,
}

/// The completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The tenant of the request.
    pub tenant: TenantId,
    /// The request as it arrived.
    pub request: Request,
    /// Time from dispatch to completion.
    pub latency_ns: u64,
    /// Time from arrival to dispatch.
    pub waited_ns: u64,
    /// Requests that the tenant should have outstanding at most, where the scheduler says so.
    pub credit: Option<u32>,
}
