//! The interface of timing models.

use crate::Io;

/// A request's number, unique among those in progress in a model.
pub type Ticket = u64;

/// A drive's action on a sector that it cannot read at the first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnReadError {
    /// Retry without a time limit.
    #[default]
    Retry,
    /// Fail the request at once.
    FailFast,
}

/// A request to a timing model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The ticket of its completion.
    pub ticket: Ticket,
    /// The operation, within the drive's range.
    pub io: Io,
    /// Whether a write is complete only on stable media.
    pub fua: bool,
    /// The host's policy for a sector that cannot be read.
    pub on_read_error: OnReadError,
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The ticket of its request.
    pub ticket: Ticket,
    /// Completion time; not after the time passed to [`Service::advance`].
    pub at_ns: u64,
    /// The byte offset of the first unreadable sector, if a read failed.
    pub failed_at: Option<u64>,
}

/// A timing model: requests go in, completions come out, in the order and at the times that the drive's mechanics,
/// flash and queue give.
///
/// Times never go back from one call to the next. What happens inside happens at its own exact time, however late the
/// caller asks: two callers that submit the same requests at the same times see the same completions, whenever they
/// advance. Randomness comes from the seed the model was made with.
pub trait Service: Send {
    /// Submit a request. What was due by `now_ns` happens before; its completions are returned by the next
    /// [`Service::advance`].
    fn submit(&mut self, request: &Request, now_ns: u64);

    /// The time of the next event, `None` while idle. May be in the past, never later than the next
    /// completion.
    fn next_due_ns(&self) -> Option<u64>;

    /// Advance the drive to `now_ns` and append its completions until then, in order of time.
    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>);

    /// Advance from `now_ns` by an event or more, but not beyond the next completion nor `limit_ns`, and append what is
    /// complete then; returns the time, at which all that is due has happened.
    fn proceed(&mut self, now_ns: u64, limit_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        let due_ns = self
            .next_due_ns()
            .map_or(limit_ns, |due_ns| due_ns.min(limit_ns));
        let at_ns = now_ns.max(due_ns);
        self.advance(at_ns, completions);
        at_ns
    }

    /// Abort requests whose initiator is gone, to spare the drive's time where possible. A model may finish those that
    /// it has begun, and return their completions.
    fn abort(&mut self, tickets: &[Ticket], now_ns: u64) {
        let _ = (tickets, now_ns);
    }

    /// Lose every request, cached write and queue, as when power is cut; what flash or platters hold stays.
    fn cut_power(&mut self, now_ns: u64);

    /// A model in the same state, down to its chance, that goes on by itself from here.
    fn copy(&self) -> Box<dyn Service>;

    /// Reset the drive to its state as delivered: all data is discarded. It has no requests
    /// then.
    fn sanitize(&mut self, now_ns: u64);

    /// Wear and error counters by stable names, in the manner of SMART.
    fn health(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether every request completes the moment it is submitted.
    fn is_instant(&self) -> bool {
        false
    }
}
