//! The interface between clients and the server of their requests: a drive behind a scheduler, or a box.

use racksim::Io;
use schedulers::{Priority, Refusal, Tenant};

use crate::failure::Failure;

/// A request that a client sends.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The client's number of it: small, dense, free again after its [`Done`].
    pub ticket: u64,
    /// The read or write, within the tenant's drive.
    pub io: Io,
    /// The tag that the scheduler is told.
    pub priority: Priority,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The drive did it.
    Succeeded,
    /// The drive reported an error.
    Failed,
    /// Its tenant had disconnected before it came to the scheduler.
    Dropped,
}

/// A request that has ended, as its client sees it.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// The number that it was sent with.
    pub ticket: u64,
    /// The time at which the client has its answer.
    pub at_ns: u64,
    /// Its end.
    pub ending: Ending,
    /// Time from dispatch to the drive's completion.
    pub device_ns: u64,
    /// Requests that the tenant should have outstanding at most, where the scheduler says so.
    pub credit: Option<u32>,
}

/// A server of requests of many tenants, in virtual time.
///
/// Tenants have numbers of the caller's own, dense from 0. After each [`Target::advance`] the caller takes what has
/// ended, sends what follows from it, and then lets the schedulers decide.
pub trait Target {
    /// The virtual time.
    fn now_ns(&self) -> u64;

    /// The size of a drive.
    fn bytes(&self, drive: usize) -> u64;

    /// Let a tenant join the scheduler of a drive.
    fn join(&mut self, tenant: &Tenant, number: usize, drive: usize) -> Result<(), Refusal>;

    /// Disconnect a tenant that has joined; returns the tickets of its queued requests, which are dropped. Others end
    /// by themselves.
    fn disconnect(&mut self, number: usize) -> Vec<u64>;

    /// The credit of a tenant that has joined, as it is told when it connects.
    fn credit(&self, number: usize) -> Option<u32>;

    /// Send a request now, for a tenant that has joined.
    fn arrive(&mut self, number: usize, arrival: Arrival);

    /// Let the schedulers give the drives what may go now.
    fn dispatch(&mut self);

    /// The time of the next event; `None` while nothing is under way.
    fn due_ns(&self) -> Option<u64>;

    /// Advance to the next event, or to `limit_ns` if that is earlier. Fails where a drive does not serve, or where
    /// nothing is under way and there is no limit.
    fn advance(&mut self, limit_ns: Option<u64>) -> Result<(), Failure>;

    /// Take the next request that has ended.
    fn next_done(&mut self) -> Option<Done>;
}

/// The request as schedulers see it.
pub fn request_of(ticket: u64, io: Io) -> schedulers::Request {
    schedulers::Request {
        ticket,
        operation: match io.kind {
            racksim::Kind::Read => schedulers::Operation::Read,
            _ => schedulers::Operation::Write,
        },
        bytes: io.length as u32,
    }
}
