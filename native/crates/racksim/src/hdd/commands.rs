//! Execution of decoded commands.

use super::mechanics::Transfer;
use super::{Entry, Hdd, Work};
use crate::{Kind, Request};

impl Hdd {
    /// A command has been decoded.
    pub(super) fn decoded(&mut self, request: Request, now_ns: u64) {
        self.idle_since_ns.get_or_insert(now_ns);
        let (start, end) = (request.io.offset, request.io.offset + request.io.length);
        match request.io.kind {
            Kind::Flush => {
                self.flush = Some(request.ticket);
                self.finish_flush(now_ns);
            }
            _ if start == end => self.port.complete(request.ticket, now_ns, None),
            Kind::Read => self.read(request, start, end, now_ns),
            Kind::Write | Kind::WriteZeroes => self.write(request, start, end, now_ns),
            Kind::Trim => {
                self.overwrite(start, end, now_ns);
                self.cache.remove(start, end);
                self.fill_cache(now_ns);
                self.media.trim(start, end);
                self.idle_since_ns = self.idle_since_ns.max(Some(now_ns));
                self.port.complete(request.ticket, now_ns, None);
            }
        }
    }

    fn read(&mut self, request: Request, start: u64, end: u64, now_ns: u64) {
        self.follow(now_ns);
        if self.cache.holds(start, end) || self.buffer.holds(start, end) {
            let limit = self.limit(end);
            match &mut self.work {
                Work::Ahead(ahead) if self.buffer.reaches(start, ahead.from) => {
                    self.mechanics.extend(ahead, limit)
                }
                _ => {}
            }
            let done_ns = self.port.carry(now_ns, end - start);
            self.port.complete(request.ticket, done_ns, None);
            return;
        }
        let entry = self.entry(request, now_ns);
        match self.work {
            Work::Ahead(ahead)
                if self.buffer.reaches(start, ahead.from)
                    && self.media.is_home(ahead.from, end) =>
            {
                let transfer = self.mechanics.ride(&ahead, end, request.on_read_error);
                self.work = Work::Serves(entry, transfer);
            }
            _ => self.queue.push(entry),
        }
    }

    fn write(&mut self, request: Request, start: u64, end: u64, now_ns: u64) {
        self.overwrite(start, end, now_ns);
        let mut entry = self.entry(request, now_ns);
        if request.fua || !self.cache.takes(end - start) {
            self.cache.remove(start, end);
            entry.data_ns = self.take_data(&request, now_ns);
            self.queue.push(entry);
        } else {
            self.blocked.push_back(entry);
        }
        self.fill_cache(now_ns);
    }

    fn entry(&self, request: Request, now_ns: u64) -> Entry {
        Entry {
            request,
            arrived_ns: now_ns,
            place: self.mechanics.place(self.media.home(request.io.offset)),
            data_ns: now_ns,
        }
    }

    /// Transfer a write's data; returns the time at which the drive has it. Zeroes need not be sent.
    fn take_data(&mut self, request: &Request, now_ns: u64) -> u64 {
        let is_sent = request.io.kind == Kind::Write;
        self.port
            .carry(now_ns, if is_sent { request.io.length } else { 0 })
    }

    /// Invalidate these bytes in the track buffer and the read-ahead.
    fn overwrite(&mut self, start: u64, end: u64, now_ns: u64) {
        self.follow(now_ns);
        self.buffer.forget(start, end);
        if let Work::Ahead(ahead) = &mut self.work {
            if start < ahead.until && ahead.from < end {
                ahead.until = ahead.from.max(start);
            }
        }
    }

    /// Admit writes to the cache, in order, while there is room.
    pub(super) fn fill_cache(&mut self, now_ns: u64) {
        while let Some(entry) = self.blocked.front().copied() {
            let io = entry.request.io;
            if !self.cache.fits(io.offset, io.offset + io.length) {
                return;
            }
            self.blocked.pop_front();
            if self.cache.is_empty() {
                self.idle_since_ns = self.idle_since_ns.max(Some(now_ns));
            }
            self.cache.insert(io.offset, io.offset + io.length);
            let done_ns = self.take_data(&entry.request, now_ns);
            self.port.complete(entry.request.ticket, done_ns, None);
        }
    }

    /// Answer a flush once everything written is on the media.
    pub(super) fn finish_flush(&mut self, now_ns: u64) {
        if self.cache.is_empty() {
            if let Some(ticket) = self.flush.take() {
                self.port.complete(ticket, now_ns, None);
            }
        }
    }

    /// Read ahead from the end of a request. The arm stays with a stream for a while, unless a request for more of it
    /// is queued.
    fn read_ahead(&mut self, transfer: &Transfer, end: u64, is_stream: bool) {
        let mut ahead = self.mechanics.read_ahead(transfer, self.limit(end));
        let least = u64::from(self.parameters.least_read_ahead_kib) << 10;
        let is_next = |entry: &Entry| entry.request.io.offset == end;
        if is_stream && least > 0 && !self.queue.iter().any(is_next) {
            self.mechanics.hold(&mut ahead, end + least);
        }
        self.work = Work::Ahead(ahead);
    }

    /// The media access of a command has ended.
    pub(super) fn served(&mut self, entry: &Entry, transfer: &Transfer, now_ns: u64) {
        let Request { ticket, io, .. } = entry.request;
        if transfer.failed_at.is_some() {
            self.port.complete(ticket, now_ns, transfer.failed_at);
        } else if io.kind == Kind::Read {
            let end = io.offset + io.length;
            let done_ns = self.port.trail(now_ns, io.length);
            self.port.complete(ticket, done_ns, None);
            let is_stream = self.buffer.continues(io.offset);
            self.buffer.record(io.offset, end);
            if transfer.last.media == self.media.home(transfer.last.logical) {
                self.read_ahead(transfer, end, is_stream);
            }
        } else {
            self.port.complete(ticket, entry.data_ns.max(now_ns), None);
        }
    }
}
