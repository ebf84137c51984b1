//! Replicated I/O: reads steered by credit, writes to all replicas, everything within the credit of each drive.

use schedulers::{Operation, Outcome, Priority};
use serde::{Deserialize, Serialize};
use slab::Slab;

use crate::drives::{DriveId, Extent};
use crate::limiter::Limiter;

/// Reads that go to other replicas in turn before a drive without a request is tried.
pub const PASSED_OVER: u32 = 64;

/// The choice of the replica that a read goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steering {
    /// The replica whose drive has most unused credit: credit less what is outstanding and what waits there. The first
    /// of those that have as much, and the first of all where a drive shows no credit. A drive that is idle and has been
    /// passed over [`PASSED_OVER`] times has the next one all the same: only a completion there can tell of more credit.
    #[default]
    Credit,
    /// The first replica whose drive works.
    First,
}

/// The settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientOptions {
    /// Whether requests outstanding at a drive stay within its credit.
    pub limiter: bool,
    /// The replica that a read goes to.
    pub steering: Steering,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            limiter: true,
            steering: Steering::Credit,
        }
    }
}

/// A request to a drive, to be carried out and completed by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Small numbers, used again after the completion.
    pub id: usize,
    /// The number of the caller's request that it is part of.
    pub tag: u64,
    /// The drive.
    pub drive: DriveId,
    /// Read or write.
    pub operation: Operation,
    /// First byte on the drive.
    pub offset: u64,
    /// Byte count.
    pub bytes: u32,
    /// The tag of NVMe's priority classes.
    pub priority: Priority,
    /// The place of the drive in the blob's list of replicas.
    pub replica: usize,
}

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The caller's number of it.
    pub tag: u64,
    /// The failure, if it has failed.
    pub result: Result<(), IoFailure>,
}

/// The reason why a request has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IoFailure {
    /// No replica could be read.
    #[error("a read failed on every replica, on drives {0:?}")]
    Read(Vec<u32>),
    /// A replica could not be written: the others may have been.
    #[error(
        "a write failed on drives {0:?} of its replicas; a blob that is written needs all of them"
    )]
    Write(Vec<u32>),
}

/// A read or a write of a part of a blob.
#[derive(Debug)]
struct Request {
    tag: u64,
    operation: Operation,
    replicas: Vec<Extent>,
    offset: u64,
    bytes: u32,
    priority: Priority,
    /// Requests at drives, or waiting for them.
    pending: usize,
    /// Drives that have failed it.
    failed: Vec<DriveId>,
}

/// A request of one drive.
#[derive(Debug, Clone, Copy)]
struct Part {
    request: usize,
    drive: DriveId,
    replica: usize,
}

#[derive(Debug)]
struct Drive {
    limiter: Limiter<usize>,
    is_down: bool,
    reads: u64,
    /// Reads since the last one here that might have come here and went to another replica.
    passed_over: u32,
}

/// A client of a pool of drives.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    drives: Vec<Drive>,
    requests: Slab<Request>,
    parts: Slab<Part>,
    ended: Vec<Ended>,
    /// The drive that is asked first for a request that may go, so that none is passed over.
    turn: usize,
    reads_by_replica: Vec<u64>,
}

impl Client {
    /// A client of so many drives.
    #[must_use]
    pub fn new(options: ClientOptions, drives: usize) -> Self {
        let drive = |_| Drive {
            limiter: Limiter::new(options.limiter),
            is_down: false,
            reads: 0,
            passed_over: 0,
        };
        Self {
            options,
            drives: (0..drives).map(drive).collect(),
            requests: Slab::new(),
            parts: Slab::new(),
            ended: Vec::new(),
            turn: 0,
            reads_by_replica: Vec::new(),
        }
    }

    /// Take note of a drive's credit.
    pub fn set_credit(&mut self, drive: DriveId, credit: u32) {
        self.drives[drive.index()].limiter.set_credit(credit);
    }

    /// A drive's credit, requests outstanding at it, and requests that wait for it.
    #[must_use]
    pub fn load(&self, drive: DriveId) -> (Option<u32>, u32, usize) {
        let limiter = &self.drives[drive.index()].limiter;
        (limiter.credit(), limiter.outstanding(), limiter.waiting())
    }

    /// Reads sent to each replica, by its place in the list of replicas.
    #[must_use]
    pub fn reads_by_replica(&self) -> &[u64] {
        &self.reads_by_replica
    }

    /// Reads sent to each drive.
    #[must_use]
    pub fn reads_by_drive(&self) -> Vec<u64> {
        self.drives.iter().map(|drive| drive.reads).collect()
    }

    /// Read a part of a blob: `offset` is within each of its extents.
    pub fn read(
        &mut self,
        tag: u64,
        replicas: &[Extent],
        offset: u64,
        bytes: u32,
        priority: Priority,
    ) {
        let request = self.enter(tag, Operation::Read, replicas, offset, bytes, priority);
        self.read_somewhere(request);
    }

    /// Write a part of a blob to all of its replicas.
    pub fn write(
        &mut self,
        tag: u64,
        replicas: &[Extent],
        offset: u64,
        bytes: u32,
        priority: Priority,
    ) {
        let request = self.enter(tag, Operation::Write, replicas, offset, bytes, priority);
        for (replica, Extent { drive, .. }) in replicas.iter().copied().enumerate() {
            if self.drives[drive.index()].is_down {
                self.requests[request].failed.push(drive);
            } else {
                self.send(request, drive, replica);
            }
        }
        self.end_if_over(request);
    }

    /// The next request to a drive that may go now.
    pub fn next_io(&mut self) -> Option<Io> {
        let count = self.drives.len();
        for step in 0..count {
            let drive = (self.turn + step) % count;
            if let Some(id) = self.drives[drive].limiter.pop() {
                self.turn = (drive + 1) % count;
                return Some(self.io(id));
            }
        }
        None
    }

    /// Take note that a request to a drive has completed, with the credit that came with it.
    pub fn complete(&mut self, id: usize, outcome: Outcome, credit: Option<u32>) {
        let part = self.parts.remove(id);
        let limiter = &mut self.drives[part.drive.index()].limiter;
        limiter.complete();
        if let Some(credit) = credit {
            limiter.set_credit(credit);
        }
        self.settle(part, outcome);
    }

    /// Take note that a drive does not answer any more: nothing is sent to it, what waits for it goes to other replicas or
    /// fails. Those outstanding at it are still to be completed.
    pub fn fail_drive(&mut self, drive: DriveId) {
        self.drives[drive.index()].is_down = true;
        for id in self.drives[drive.index()].limiter.withdraw() {
            let part = self.parts.remove(id);
            self.settle(part, Outcome::Failed);
        }
    }

    /// Whether a drive answers, as far as is known.
    #[must_use]
    pub fn is_up(&self, drive: DriveId) -> bool {
        !self.drives[drive.index()].is_down
    }

    /// Requests that have ended since the last call, appended in their order.
    pub fn take_ended(&mut self, ended: &mut Vec<Ended>) {
        ended.append(&mut self.ended);
    }

    /// Whether requests have ended that were not taken yet.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    fn enter(
        &mut self,
        tag: u64,
        operation: Operation,
        replicas: &[Extent],
        offset: u64,
        bytes: u32,
        priority: Priority,
    ) -> usize {
        self.requests.insert(Request {
            tag,
            operation,
            replicas: replicas.to_vec(),
            offset,
            bytes,
            priority,
            pending: 0,
            failed: Vec::new(),
        })
    }

    fn send(&mut self, request: usize, drive: DriveId, replica: usize) {
        self.requests[request].pending += 1;
        let id = self.parts.insert(Part {
            request,
            drive,
            replica,
        });
        self.drives[drive.index()].limiter.enter(id);
    }

    /// Send a read to a replica that has not failed it, or end it where there is none.
    fn read_somewhere(&mut self, request: usize) {
        let Some(replica) = self.best_replica(request) else {
            let one = &mut self.requests[request];
            one.failed = one.replicas.iter().map(|extent| extent.drive).collect();
            return self.end_if_over(request);
        };
        let drive = self.requests[request].replicas[replica].drive;
        for other in self.requests[request].replicas.iter().map(|one| one.drive) {
            self.drives[other.index()].passed_over += 1;
        }
        self.drives[drive.index()].reads += 1;
        self.drives[drive.index()].passed_over = 0;
        if self.reads_by_replica.len() <= replica {
            self.reads_by_replica.resize(replica + 1, 0);
        }
        self.reads_by_replica[replica] += 1;
        self.send(request, drive, replica);
    }

    fn best_replica(&self, request: usize) -> Option<usize> {
        let request = &self.requests[request];
        let may_serve = |&replica: &usize| {
            let drive = request.replicas[replica].drive;
            !self.drives[drive.index()].is_down && !request.failed.contains(&drive)
        };
        let mut candidates = (0..request.replicas.len()).filter(may_serve);
        if self.options.steering == Steering::First {
            return candidates.next();
        }
        let drive = |replica: usize| &self.drives[request.replicas[replica].drive.index()];
        let unused = |replica: usize| drive(replica).limiter.unused();
        let is_overdue = |&replica: &usize| {
            let Drive {
                limiter,
                passed_over,
                ..
            } = drive(replica);
            *passed_over >= PASSED_OVER && limiter.is_idle() && limiter.credit().is_some()
        };
        if let Some(overdue) = candidates.clone().find(is_overdue) {
            return Some(overdue);
        }
        let mut best = candidates.next()?;
        for replica in candidates {
            if let (Some(more), Some(most)) = (unused(replica), unused(best)) {
                if more > most {
                    best = replica;
                }
            }
        }
        Some(best)
    }

    fn settle(&mut self, part: Part, outcome: Outcome) {
        let request = &mut self.requests[part.request];
        request.pending -= 1;
        if outcome == Outcome::Failed {
            request.failed.push(part.drive);
            if request.operation == Operation::Read {
                return self.read_somewhere(part.request);
            }
        }
        self.end_if_over(part.request);
    }

    fn end_if_over(&mut self, request: usize) {
        if self.requests[request].pending > 0 {
            return;
        }
        let request = self.requests.remove(request);
        let drives = || request.failed.iter().map(|drive| drive.0).collect();
        let result = match request.operation {
            Operation::Read if request.failed.len() == request.replicas.len() => {
                Err(IoFailure::Read(drives()))
            }
            Operation::Write if !request.failed.is_empty() => Err(IoFailure::Write(drives())),
            _ => Ok(()),
        };
        self.ended.push(Ended {
            tag: request.tag,
            result,
        });
    }

    fn io(&self, id: usize) -> Io {
        let part = self.parts[id];
        let request = &self.requests[part.request];
        Io {
            id,
            tag: request.tag,
            drive: part.drive,
            operation: request.operation,
            offset: request.replicas[part.replica].offset + request.offset,
            bytes: request.bytes,
            priority: request.priority,
            replica: part.replica,
        }
    }
}
