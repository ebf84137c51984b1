//! The requests of one client to the drive that its export leads to.

use std::sync::Arc;

use nbd::proto::{cmd, errno, Request};
use nbdserver::{refusal, Bytes, Connection, Service};
use racksim::{Io, Kind};

use crate::drive::{Job, Manner, Pending};
use crate::exports::Chosen;
use crate::io_path::IoPath;

/// A client's way to a drive.
pub struct Session {
    pub path: Arc<IoPath>,
    pub chosen: Chosen,
}

impl Service for Session {
    type Job = Job;

    fn job(&self, request: &Request) -> Result<Job, u32> {
        if let Some(code) = refusal(request, self.path.bytes) {
            return Err(code);
        }
        let kind = match request.command {
            cmd::READ => Kind::Read,
            cmd::WRITE => Kind::Write,
            cmd::FLUSH => Kind::Flush,
            cmd::TRIM => Kind::Trim,
            cmd::WRITE_ZEROES => Kind::WriteZeroes,
            _ => return Err(errno::EINVAL),
        };
        let (offset, length) = match kind {
            Kind::Flush => (0, 0),
            _ => (request.offset, u64::from(request.length)),
        };
        Ok(Job {
            io: Io {
                kind,
                offset,
                length,
            },
            manner: Manner {
                fua: request.flags & cmd::FLAG_FUA != 0,
                no_hole: request.flags & cmd::FLAG_NO_HOLE != 0,
                on_read_error: self.chosen.on_read_error,
                only: self.chosen.only,
            },
        })
    }

    fn attempt(&mut self, job: &Job, bytes: Bytes<'_>, came_ns: u64) -> Option<Result<(), u32>> {
        self.path.attempt(&job.io, job.manner, bytes, came_ns)
    }

    fn submit(&mut self, pending: Pending) {
        self.path.submit(pending);
    }

    fn forget(&mut self, connection: &Arc<Connection>) {
        self.path.forget(connection);
    }
}
