//! Refusals of the client.

/// An input that the client refuses. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A value outside of its range.
    #[error("{0}")]
    Invalid(String),
    /// A blob for which not enough drives have space.
    #[error("no space for a blob of {blob_bytes} bytes: {with_space} of {drives} drives have some, its replicas need {replicas}")]
    Full {
        /// The size of a blob.
        blob_bytes: u64,
        /// Drives with space for one.
        with_space: usize,
        /// All drives in use.
        drives: usize,
        /// Replicas of a blob, each on a drive of its own.
        replicas: usize,
    },
    /// An extent that the allocator has not handed out, or that is free already.
    #[error("the {bytes} bytes at {offset} of drive {drive} are not allocated")]
    NotAllocated {
        /// The drive.
        drive: u32,
        /// First byte.
        offset: u64,
        /// Byte count.
        bytes: u64,
    },
}
