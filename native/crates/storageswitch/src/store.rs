//! Storage that carries out one request after the other in each thread.

use std::io;

use backing::Backing;
use blockdev::{Buffer, Device, Medium};
use nbd::proto::errno;
use nbdserver::Bytes;

use crate::job::{Job, Kind, Work};

/// Storage that many threads carry out requests on.
pub trait Store: Send + Sync {
    /// Carry out a request without regard to [`Job::fua`].
    fn carry(&self, job: &Job, bytes: Bytes<'_>) -> io::Result<()>;

    /// Put completed writes on stable media.
    fn flush(&self) -> io::Result<()>;

    /// Whether the storage as a whole answers no more.
    fn is_gone(&self) -> bool {
        false
    }

    /// Carry out a request; the error number if it fails.
    fn perform(&self, job: &Job, bytes: Bytes<'_>) -> Result<(), u32> {
        let flushes = job.fua && !matches!(job.kind, Kind::Read | Kind::Flush);
        let done = match job.kind {
            Kind::Flush => self.flush(),
            _ => self.carry(job, bytes),
        };
        let done = done.and_then(|()| if flushes { self.flush() } else { Ok(()) });
        done.map_err(|error| self.code(&error))
    }

    /// The error number of a request that failed.
    fn code(&self, error: &io::Error) -> u32 {
        match error.raw_os_error() {
            Some(code) if code as u32 == errno::ENOSPC => errno::ENOSPC,
            _ if self.is_gone() => errno::ESHUTDOWN,
            _ => errno::EIO,
        }
    }
}

impl Store for Backing {
    fn carry(&self, job: &Job, bytes: Bytes<'_>) -> io::Result<()> {
        let (offset, length) = (job.offset, u64::from(job.length));
        match (job.kind, bytes) {
            (Kind::Read, Bytes::Fill(data)) => self.read(offset, data),
            (Kind::Write, Bytes::Store(data)) => self.write(offset, data),
            (Kind::Trim, _) => self.zero(offset, length, true),
            (Kind::Zero { may_punch }, _) => self.zero(offset, length, may_punch),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn flush(&self) -> io::Result<()> {
        Self::flush(self)
    }
}

impl Store for Device {
    fn carry(&self, job: &Job, bytes: Bytes<'_>) -> io::Result<()> {
        let (offset, length) = (job.offset, u64::from(job.length));
        match (job.kind, bytes) {
            // Data beside the page cache moves between whole pages.
            (Kind::Read, Bytes::Fill(data)) => {
                let mut pages = Buffer::new(data.len());
                self.read(offset, pages.as_mut())?;
                data.copy_from_slice(pages.as_ref());
                Ok(())
            }
            (Kind::Write, Bytes::Store(data)) => {
                let mut pages = Buffer::new(data.len());
                pages.as_mut().copy_from_slice(data);
                self.write(offset, pages.as_ref())
            }
            (Kind::Trim, _) => self.trim(offset, length),
            (Kind::Zero { may_punch }, _) => self.zero(offset, length, !may_punch),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn flush(&self) -> io::Result<()> {
        Medium::flush(self)
    }

    fn is_gone(&self) -> bool {
        Medium::is_gone(self)
    }
}

/// Carry out a request, unless its client has gone.
pub fn carry_out(
    work: &mut Work,
    perform: impl FnOnce(&Job, Bytes<'_>) -> Result<(), u32>,
) -> Result<(), u32> {
    let pending = &mut work.pending;
    if pending.is_orphaned() {
        return Err(errno::ESHUTDOWN);
    }
    let job = pending.job;
    perform(&job, pending.bytes())
}
