//! The requests of one connection of a tenant.

use std::io;
use std::sync::Arc;

use nbd::proto::{cmd, errno, flag, Request};
use nbdserver::{refusal, Bytes, Connection, Exports, Service};

use crate::job::{Job, Kind, Pending};
use crate::lane::perform;
use crate::switch::{Hands, Switch};

/// Requests that are kept back for others to arrive with them.
const TOGETHER: usize = 64;

/// A connection of a tenant.
pub struct Session {
    switch: Arc<Switch>,
    tenant: usize,
    arriving: Vec<Pending>,
    hands: Hands,
}

impl Session {
    /// Connect a tenant; an error where the scheduler refuses it.
    pub fn start(switch: &Arc<Switch>, tenant: usize) -> io::Result<Self> {
        switch.connect(tenant).map_err(io::Error::other)?;
        Ok(Self {
            switch: switch.clone(),
            tenant,
            arriving: Vec::new(),
            hands: Hands::default(),
        })
    }
}

impl Service for Session {
    type Job = Job;

    fn job(&self, request: &Request) -> Result<Job, u32> {
        let region = self.switch.regions[self.tenant];
        if let Some(code) = refusal(request, region.bytes) {
            return Err(code);
        }
        let flags = self.switch.offer(&self.tenant).flags;
        let offers = |wanted: u16| flags & wanted != 0;
        let kind = match request.command {
            cmd::READ => Kind::Read,
            cmd::FLUSH => Kind::Flush,
            _ if offers(flag::READ_ONLY) => return Err(errno::EPERM),
            cmd::WRITE => Kind::Write,
            cmd::TRIM if offers(flag::SEND_TRIM) => Kind::Trim,
            cmd::WRITE_ZEROES if offers(flag::SEND_WRITE_ZEROES) => Kind::Zero {
                may_punch: request.flags & cmd::FLAG_NO_HOLE == 0,
            },
            _ => return Err(errno::EINVAL),
        };
        let (offset, length) = match kind {
            Kind::Flush => (0, 0),
            _ => (region.offset + request.offset, request.length),
        };
        Ok(Job {
            tenant: self.tenant,
            kind,
            offset,
            length,
            fua: request.flags & cmd::FLAG_FUA != 0,
        })
    }

    fn attempt(&mut self, job: &Job, bytes: Bytes<'_>, _came_ns: u64) -> Option<Result<(), u32>> {
        if job.length == 0 && job.kind != Kind::Flush {
            return Some(Ok(()));
        }
        if job.operation().is_some() {
            return None;
        }
        let backing = self.switch.at_once()?;
        Some(perform(backing, job, bytes))
    }

    fn submit(&mut self, pending: Pending) {
        if pending.job.operation().is_none() {
            return self.switch.pass(pending);
        }
        self.arriving.push(pending);
        if self.arriving.len() >= TOGETHER {
            self.before_wait();
        }
    }

    fn before_wait(&mut self) {
        if !self.arriving.is_empty() {
            self.switch.enter(&mut self.arriving, &mut self.hands);
        }
    }

    fn forget(&mut self, _connection: &Arc<Connection>) {
        self.switch.disconnect(self.tenant);
    }
}
