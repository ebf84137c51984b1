//! The requests of one connection of a tenant.

use std::io;
use std::sync::Arc;

use nbd::proto::{cmd, errno, flag, Request};
use nbdserver::{refusal, Bytes, Connection, Offer, Room, Service};

use crate::front::{Front, Hands};
use crate::job::{Job, Kind, Pending};
use crate::switch::Seat;

/// Requests that are kept back for others to arrive with them.
const TOGETHER: usize = 64;

/// A connection of a tenant.
pub struct Session {
    seat: Seat,
    offer: Offer,
    arriving: Vec<Pending>,
    hands: Hands,
}

impl Session {
    /// Connect a tenant; an error where the scheduler refuses it. The calling thread is its thread from now on.
    pub fn start(seat: Seat) -> io::Result<Self> {
        seat.shard.pin();
        seat.shard.connect(seat.tenant).map_err(io::Error::other)?;
        Ok(Self {
            offer: seat.offer(),
            seat,
            arriving: Vec::new(),
            hands: Hands::default(),
        })
    }

    fn offers(&self, wanted: u16) -> bool {
        self.offer.flags & wanted != 0
    }

    /// Whether the drive takes a request of this place and length.
    fn fits(&self, request: &Request) -> bool {
        let block = self.offer.minimum_block;
        let is_whole = request.offset % u64::from(block) == 0 && request.length % block == 0;
        let carries_data = matches!(request.command, cmd::READ | cmd::WRITE);
        is_whole && (!carries_data || request.length <= self.offer.maximum_block)
    }
}

impl Service for Session {
    type Job = Job;

    fn room(&self) -> Arc<Room> {
        self.seat.shard.rooms[self.seat.tenant].clone()
    }

    fn job(&self, request: &Request) -> Result<Job, u32> {
        if let Some(code) = refusal(request, self.offer.bytes) {
            return Err(code);
        }
        let kind = match request.command {
            cmd::READ => Kind::Read,
            cmd::FLUSH => Kind::Flush,
            _ if self.offers(flag::READ_ONLY) => return Err(errno::EPERM),
            cmd::WRITE => Kind::Write,
            cmd::TRIM if self.offers(flag::SEND_TRIM) => Kind::Trim,
            cmd::WRITE_ZEROES if self.offers(flag::SEND_WRITE_ZEROES) => Kind::Zero {
                may_punch: request.flags & cmd::FLAG_NO_HOLE == 0,
            },
            _ => return Err(errno::EINVAL),
        };
        if kind != Kind::Flush && !self.fits(request) {
            return Err(errno::EINVAL);
        }
        let region = self.seat.shard.regions[self.seat.tenant];
        let (offset, length) = match kind {
            Kind::Flush => (0, 0),
            _ => (region.offset + request.offset, request.length),
        };
        let fua = request.flags & cmd::FLAG_FUA != 0;
        if fua && kind == Kind::Write && !self.offers(flag::SEND_FUA) {
            return Err(errno::EINVAL);
        }
        Ok(Job {
            tenant: self.seat.tenant,
            kind,
            offset,
            length,
            fua,
        })
    }

    fn may_attempt(&self, job: &Job) -> bool {
        is_empty(job) || job.operation().is_none()
    }

    fn attempt(&mut self, job: &Job, bytes: Bytes<'_>, _came_ns: u64) -> Option<Result<(), u32>> {
        if is_empty(job) {
            return Some(Ok(()));
        }
        self.seat.shard.drive.device.attempt(job, bytes)
    }

    fn submit(&mut self, pending: Pending) {
        if pending.job.operation().is_none() {
            return self.seat.shard.pass(pending);
        }
        self.arriving.push(pending);
        if self.arriving.len() >= TOGETHER {
            self.before_wait();
        }
    }

    fn before_wait(&mut self) {
        if !self.arriving.is_empty() {
            let shard = &self.seat.shard;
            shard.enter(&mut self.arriving, &mut self.hands);
        }
    }

    fn forget(&mut self, _connection: &Arc<Connection>) {
        self.seat.shard.disconnect(self.seat.tenant);
    }
}

/// Whether there is nothing to do for a job.
fn is_empty(job: &Job) -> bool {
    job.length == 0 && job.kind != Kind::Flush
}
