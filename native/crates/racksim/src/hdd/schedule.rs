//! Arm scheduling.

use super::{Entry, Hdd, Place, Work};
use crate::{ms_to_ns, Kind, OnReadError, Request};

/// Fractional bits of the credit for waiting.
const FRACTION: u32 = 16;

/// Bound on the waiting time, so that the credit fits its integer.
const MOST_WAIT_NS: u64 = 60_000_000_000;

/// A candidate for the arm.
#[derive(Debug, Clone, Copy)]
enum Next {
    Serve(usize),
    Destage(u64, u64),
    Clean,
}

impl Hdd {
    /// Start the arm on the next request, if any may interrupt its idle work.
    pub(super) fn dispatch(&mut self, now_ns: u64) {
        if self.work.done_ns().is_some() {
            return;
        }
        let must_destage = !self.blocked.is_empty() || self.flush.is_some();
        if self.queue.is_empty() && !must_destage && !self.in_background {
            return;
        }
        self.follow(now_ns);
        match self.choose(now_ns, must_destage) {
            None => self.in_background = false,
            Some(Next::Serve(at)) => self.serve(at, now_ns),
            Some(Next::Destage(start, end)) if self.media.must_clean(start, end) => {
                self.clean(now_ns)
            }
            Some(Next::Destage(start, end)) => {
                self.cache.leave(start, end);
                self.pieces.clear();
                self.media.write(start, end, &mut self.pieces);
                self.work = Work::Destages(self.mechanics.transfer(
                    &self.pieces,
                    now_ns,
                    OnReadError::Retry,
                ));
            }
            Some(Next::Clean) => self.clean(now_ns),
        }
    }

    /// The candidate with the shortest access time, less a credit for waiting: shortest access time first with
    /// aging (Jacobson and Wilkes, "Disk Scheduling Algorithms Based on Rotational Position", HPL-CSP-91-7, 1991).
    /// A candidate that has waited for the longest wait goes before any new one.
    fn choose(&self, now_ns: u64, must_destage: bool) -> Option<Next> {
        let longest_ns = ms_to_ns(self.parameters.longest_wait_ms);
        let credit = (self.mechanics.slowest_ns() << FRACTION) / longest_ns;
        let cost = |place: Place, writes: bool, arrived_ns: u64| {
            let waited_ns = (now_ns - arrived_ns).min(MOST_WAIT_NS);
            let positioning_ns = self.mechanics.positioning_ns(now_ns, place, writes);
            positioning_ns as i64 - ((waited_ns * credit) >> FRACTION) as i64
        };
        let mut least = i64::MAX;
        let mut next = None;
        for (at, entry) in self.queue.iter().enumerate() {
            let writes = entry.request.io.kind != Kind::Read;
            let this = cost(entry.place, writes, entry.arrived_ns);
            if this < least {
                (least, next) = (this, Some(Next::Serve(at)));
            }
        }
        if must_destage || (next.is_none() && self.in_background) {
            let arrived_ns = self
                .blocked
                .front()
                .map_or(now_ns, |entry| entry.arrived_ns);
            let from = self
                .mechanics
                .track_start()
                .saturating_sub(self.media.home(0));
            for (start, end) in self.cache.candidates(from) {
                let this = cost(
                    self.mechanics.place(self.media.home(start)),
                    true,
                    arrived_ns,
                );
                if this < least {
                    (least, next) = (this, Some(Next::Destage(start, end)));
                }
            }
        }
        if let Some(Next::Serve(at)) = next {
            return Some(Next::Serve(self.head_of_run(at)));
        }
        let may_clean = next.is_none() && self.in_background && !self.media.is_clean();
        next.or(may_clean.then_some(Next::Clean))
    }

    /// The first of a chain of requests that each continue another: served from there, the others cost no
    /// positioning.
    fn head_of_run(&self, mut at: usize) -> usize {
        loop {
            let io = self.queue[at].request.io;
            let leads = |entry: &Entry| {
                let before = entry.request.io;
                before.kind == io.kind && before.offset + before.length == io.offset
            };
            match self.queue.iter().position(leads) {
                Some(before) => at = before,
                None => return at,
            }
        }
    }

    fn serve(&mut self, at: usize, now_ns: u64) {
        let Request {
            io, on_read_error, ..
        } = self.queue[at].request;
        let (start, end) = (io.offset, io.offset + io.length);
        if io.kind != Kind::Read && self.media.must_clean(start, end) {
            self.clean(now_ns);
            return;
        }
        let entry = self.queue.remove(at);
        self.in_background = false;
        self.pieces.clear();
        if io.kind == Kind::Read {
            self.media.read(start, end, &mut self.pieces);
        } else {
            self.media.write(start, end, &mut self.pieces);
        }
        let transfer = self.mechanics.transfer(&self.pieces, now_ns, on_read_error);
        self.work = Work::Serves(entry, transfer);
    }

    fn clean(&mut self, now_ns: u64) {
        if let Some(step) = self.media.clean() {
            self.work = Work::Cleans(self.mechanics.transfer(&[step], now_ns, OnReadError::Retry));
        }
    }

    /// The time at which the drive starts idle work.
    pub(super) fn background_ns(&self) -> Option<u64> {
        let idle_since_ns = self.idle_since_ns?;
        if self.in_background || self.work.done_ns().is_some() {
            return None;
        }
        let after_ms = if !self.cache.is_clean() {
            self.parameters.destage_after_ms
        } else if !self.media.is_clean() {
            self.parameters.smr.as_ref()?.clean_after_ms
        } else {
            return None;
        };
        Some(idle_since_ns + ms_to_ns(after_ms))
    }

    /// The arm's work has ended.
    pub(super) fn arm_done(&mut self, now_ns: u64) {
        self.idle_since_ns = Some(now_ns);
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => {}
            Work::Ahead(mut ahead) => {
                ahead.held_ns = None;
                self.work = Work::Ahead(ahead);
                self.follow(now_ns);
            }
            Work::Serves(entry, transfer) => self.served(&entry, &transfer, now_ns),
            Work::Destages(_) => {
                self.cache.left();
                self.fill_cache(now_ns);
                self.finish_flush(now_ns);
                self.in_background &= !self.cache.is_clean();
            }
            Work::Cleans(_) => self.in_background &= !self.media.is_clean(),
        }
    }

    /// The end of a read-ahead from a byte.
    pub(super) fn limit(&self, from: u64) -> u64 {
        let ahead = u64::from(self.parameters.read_ahead_kib) << 10;
        (from + ahead).min(self.media.end_of_home(from))
    }

    /// Add the bytes read ahead so far to the buffer.
    pub(super) fn follow(&mut self, now_ns: u64) {
        if let Work::Ahead(ahead) = &mut self.work {
            let from = ahead.from;
            self.mechanics.follow(ahead, now_ns);
            if ahead.from > from {
                self.buffer.record(from, ahead.from);
            }
            if ahead.from >= ahead.until {
                self.work = Work::Nothing;
            }
        }
    }
}
