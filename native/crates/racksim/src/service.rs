//! How a drive works on requests: what every timing model answers.

use crate::Io;

/// A request's number while a drive works on it; unique among those a model has.
pub type Ticket = u64;

/// What a drive does about a sector that it cannot read at the first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnReadError {
    /// Try again, for as long as that takes.
    #[default]
    Retry,
    /// Fail the request at once.
    FailFast,
}

/// A request as a model takes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Whose completion this will be.
    pub ticket: Ticket,
    /// What is asked, within the drive.
    pub io: Io,
    /// Whether a write is complete only on stable media.
    pub fua: bool,
    /// What the host wants done about a sector that cannot be read.
    pub on_read_error: OnReadError,
}

/// A request that a drive is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Whose.
    pub ticket: Ticket,
    /// When, to the nanosecond; not after the time that was given to [`Service::advance`].
    pub at_ns: u64,
    /// The byte offset of the first unreadable sector, where a read failed.
    pub failed_at: Option<u64>,
}

/// A drive at work: requests go in, completions come out, in the order and at the times that the drive's mechanics,
/// flash and queue give.
///
/// Times never go back from one call to the next. What happens inside happens at its own exact time, however late the
/// caller asks: two callers that submit the same requests at the same times see the same completions, whenever they
/// advance. Chance comes from the seed the model was made with.
pub trait Service: Send {
    /// Take on a request. What was due by `now_ns` happens before; its completions are handed out by the next
    /// [`Service::advance`].
    fn submit(&mut self, request: &Request, now_ns: u64);

    /// When there will be something to do next, `None` while idle. May be in the past, never later than the next
    /// completion.
    fn next_due_ns(&self) -> Option<u64>;

    /// Bring the drive up to `now_ns` and append what it completed by then, in order of time.
    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>);

    /// Whoever asked for these is gone: they take no more of the drive's time where that can be spared. A model may
    /// work on those that it has begun, and hand out completions of theirs.
    fn abort(&mut self, tickets: &[Ticket], now_ns: u64) {
        let _ = (tickets, now_ns);
    }

    /// Lose every request, cached write and queue, as when power is cut; what flash or platters hold stays.
    fn cut_power(&mut self, now_ns: u64);

    /// Bring the drive into the state it left the factory in: what has been written is forgotten. It has no requests
    /// then.
    fn sanitize(&mut self, now_ns: u64);

    /// What the drive knows of its own wear and troubles, as SMART names it: whole numbers by names that stay.
    fn health(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether every request completes the moment it is submitted, so that nobody need wait for it.
    fn is_instant(&self) -> bool {
        false
    }
}
