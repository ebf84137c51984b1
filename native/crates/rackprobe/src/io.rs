//! Requests to a target and their completions.

use blockdev::Buffer;

/// The access to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write {
        /// Open a block device O_EXCL, so that a mounted one is refused. The kernel knows no second claim: where the
        /// caller has one, this is false.
        claims: bool,
    },
}

/// A request to a target.
#[derive(Debug)]
pub enum Request {
    /// Fill the buffer from a byte offset.
    Read(u64, Buffer),
    /// Write the buffer at a byte offset.
    Write(u64, Buffer),
    /// Make completed writes durable.
    Flush,
}

/// A completed request. Stamps are CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Done {
    /// The request's identity, as returned by [`Target::submit`](crate::target::Target::submit).
    pub id: u64,
    /// The buffer of a read or a write.
    pub buffer: Option<Buffer>,
    /// The system's error message, if it failed.
    pub result: Result<(), String>,
    /// Just before it was sent.
    pub submit_ns: u64,
    /// Just after its last byte came.
    pub complete_ns: u64,
}

/// The error of a target that must be reopened.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl From<nbd::Error> for Broken {
    fn from(error: nbd::Error) -> Self {
        Self(error.to_string())
    }
}
