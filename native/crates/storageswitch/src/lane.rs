//! The ways to the drive that carry out one request at a time each.

use std::io;
use std::sync::Arc;

use backing::Backing;
use nbd::proto::errno;
use nbdserver::Bytes;

use crate::job::{Job, Kind};

/// A way to the drive.
pub trait Lane: Send {
    /// Carry out a request; the error number if it fails.
    fn perform(&mut self, job: &Job, bytes: Bytes<'_>) -> Result<(), u32>;
}

impl Lane for Arc<Backing> {
    fn perform(&mut self, job: &Job, bytes: Bytes<'_>) -> Result<(), u32> {
        perform(self, job, bytes)
    }
}

/// Carry out a request on memory or a file; the error number if it fails.
pub fn perform(backing: &Backing, job: &Job, bytes: Bytes<'_>) -> Result<(), u32> {
    let (offset, length) = (job.offset, u64::from(job.length));
    let done = match (job.kind, bytes) {
        (Kind::Read, Bytes::Fill(data)) => backing.read(offset, data),
        (Kind::Write, Bytes::Store(data)) => backing.write(offset, data),
        (Kind::Trim, _) => backing.zero(offset, length, true),
        (Kind::Zero { may_punch }, _) => backing.zero(offset, length, may_punch),
        (Kind::Flush, _) => backing.flush(),
        (Kind::Read | Kind::Write, _) => Err(io::ErrorKind::InvalidInput.into()),
    };
    let flushes = job.fua && !matches!(job.kind, Kind::Read | Kind::Flush);
    let done = done.and_then(|()| if flushes { backing.flush() } else { Ok(()) });
    done.map_err(|error| match error.raw_os_error() {
        Some(code) if code as u32 == errno::ENOSPC => errno::ENOSPC,
        _ => errno::EIO,
    })
}
