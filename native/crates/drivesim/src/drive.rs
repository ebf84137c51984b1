//! A drive model in virtual time.

use racksim::{Completion, Io, Kind, OnReadError, Request, Service, Ticket};

use crate::failure::Failure;

/// A drive model in virtual time, which advances from event to event of the model.
pub struct Drive {
    service: Box<dyn Service>,
    bytes: u64,
    now_ns: u64,
}

impl Drive {
    /// A model of a drive of `bytes`, at time 0.
    pub fn new(service: Box<dyn Service>, bytes: u64) -> Self {
        Self {
            service,
            bytes,
            now_ns: 0,
        }
    }

    /// A drive in the same state at the same time, which goes on by itself.
    pub fn copy(&self) -> Self {
        Self {
            service: self.service.copy(),
            ..*self
        }
    }

    /// Size of the drive.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The virtual time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The time of the model's next event; `None` while it is idle.
    pub fn due_ns(&self) -> Option<u64> {
        self.service.next_due_ns()
    }

    /// Submit a request now.
    pub fn submit(&mut self, request: &Request) {
        self.service.submit(request, self.now_ns);
    }

    /// Submit a request at `now_ns`, before which nothing of the drive is due; the drive is at that time then.
    pub fn submit_at(&mut self, request: &Request, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.submit(request);
    }

    /// Advance to `now_ns`, from event to event; completions are appended.
    pub fn catch_up(
        &mut self,
        now_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Failure> {
        let before = completions.len();
        loop {
            self.pass(Some(now_ns), completions)?;
            if self.now_ns < now_ns {
                continue;
            }
            let is_stuck = self.due_ns().is_some_and(|due_ns| due_ns <= now_ns);
            if is_stuck && completions.len() == before {
                return Err(self.broken("does not get on with what is due"));
            }
            return Ok(());
        }
    }

    /// Advance to the drive's next event or further, but not beyond its next completion nor `limit_ns`; completions
    /// are appended. Without a limit it fails if the drive is idle although the caller waits for a request.
    pub fn pass(
        &mut self,
        limit_ns: Option<u64>,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Failure> {
        if limit_ns.is_none() && self.service.next_due_ns().is_none() {
            return Err(self.broken("idles and has not completed every request"));
        }
        let before = completions.len();
        let until_ns = limit_ns.unwrap_or(u64::MAX);
        self.now_ns = self.service.proceed(self.now_ns, until_ns, completions);
        if completions[before..]
            .iter()
            .any(|done| done.at_ns > self.now_ns)
        {
            return Err(self.broken("completed a request that is not over"));
        }
        let is_waiting = limit_ns.is_none_or(|limit_ns| limit_ns > self.now_ns);
        let is_stuck = |due_ns: u64| due_ns <= self.now_ns;
        if is_waiting
            && completions.len() == before
            && self.service.next_due_ns().is_some_and(is_stuck)
        {
            return Err(self.broken("does not get on with what is due"));
        }
        Ok(())
    }

    /// Leave the drive idle until `until_ns`; nothing may be in flight.
    pub fn rest_until(&mut self, until_ns: u64) -> Result<(), Failure> {
        let mut completions = Vec::new();
        while self.now_ns < until_ns {
            self.pass(Some(until_ns), &mut completions)?;
        }
        Ok(())
    }

    /// Execute a single request; returns its latency.
    pub fn serve(&mut self, io: Io, fua: bool) -> Result<u64, Failure> {
        const ALONE: Ticket = 0;
        let submitted_ns = self.now_ns;
        self.submit(&Request {
            ticket: ALONE,
            io,
            fua,
            on_read_error: OnReadError::Retry,
        });
        let mut completions = Vec::new();
        while completions.is_empty() {
            self.pass(None, &mut completions)?;
        }
        Ok(completions[0].at_ns - submitted_ns)
    }

    /// Flush all written data to stable media.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let everything = Io {
            kind: Kind::Flush,
            offset: 0,
            length: 0,
        };
        self.serve(everything, false).map(|_| ())
    }

    /// Drop caches and operations in progress.
    pub fn forget_caches(&mut self) {
        self.service.cut_power(self.now_ns);
    }

    /// Reset the drive to its state as delivered.
    pub fn sanitize(&mut self) {
        self.service.sanitize(self.now_ns);
    }

    /// The model itself, to go on with at the present virtual time.
    pub fn into_service(self) -> (Box<dyn Service>, u64) {
        (self.service, self.now_ns)
    }

    fn broken(&self, what: &str) -> Failure {
        Failure::Model(format!("the drive model {what}, at {} ns", self.now_ns))
    }
}
