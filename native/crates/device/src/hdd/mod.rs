//! A hard disk: platters that turn, one arm, a queue it may reorder, memory for what was read and written, and, if it
//! is a shingled one, bands.

mod buffer;
mod geometry;
mod mechanics;
mod parameters;
mod seek;
mod shingles;
mod weak;
mod write_cache;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use buffer::TrackBuffer;
use geometry::Place;
use mechanics::{Mechanics, ReadAhead, Transfer};
use shingles::{Piece, Shingles};
use write_cache::WriteCache;

use crate::{ms_to_ns, Completion, Kind, OnReadError, Request, Service, Ticket};

pub use parameters::{HddParameters, SmrParameters};
pub use seek::SeekCurve;

/// A hard disk drive as a timing model.
///
/// Commands are decoded one after the other; up to the queue depth of them are known to the drive. Of those that need
/// the media it serves the one with the shortest positioning time, unless another has waited too long. A flush is a
/// barrier, as ATA's non-queued FLUSH CACHE is: what came before it completes first, what comes after it waits.
#[derive(Debug)]
pub struct Hdd {
    parameters: HddParameters,
    bytes: u64,
    mechanics: Mechanics,
    buffer: TrackBuffer,
    cache: WriteCache,
    shingles: Option<Shingles>,
    /// Beyond the queue depth, or after a flush.
    waiting: VecDeque<Request>,
    /// Within the queue depth and not completed.
    known: u32,
    /// Nothing more is taken on before the flush is done.
    flush: Option<Flush>,
    decoding: VecDeque<(u64, Request)>,
    decoder_free_ns: u64,
    link_free_ns: u64,
    /// Needs the media.
    queue: Vec<Entry>,
    /// Writes that wait for room in the cache.
    blocked: VecDeque<Entry>,
    work: Work,
    /// The steps left of merging a band.
    cleaning: VecDeque<Piece>,
    background: Background,
    completing: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    completed: Vec<Completion>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    request: Request,
    arrived_ns: u64,
    place: Place,
    /// When its data is in the drive, for a write.
    data_ns: u64,
}

/// A completion to be, in the order they are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    sequence: u64,
    ticket: Ticket,
    failed_at: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Flush {
    /// Taken on, not decoded.
    Coming,
    /// The cache goes to the media.
    Running(Ticket),
    /// About to be answered.
    Done,
}

/// What the arm does.
#[derive(Debug, Clone, Copy)]
enum Work {
    Nothing,
    Ahead(ReadAhead),
    Serves(Entry, Transfer, Option<Piece>),
    Destages(Transfer),
    Cleans(Transfer),
}

/// Work of the drive's own.
#[derive(Debug, Clone, Copy)]
struct Background {
    /// The host has been served, or has written into an empty cache, since then; `None` after a loss of power.
    idle_since_ns: Option<u64>,
    /// It goes on until it is done or the host needs the arm.
    is_on: bool,
}

/// What the arm could do next.
#[derive(Debug, Clone, Copy)]
enum Next {
    Serve(usize),
    Destage(u64, u64),
    Clean,
}

impl Hdd {
    /// A drive as delivered.
    ///
    /// # Panics
    ///
    /// If the parameters do not pass [`HddParameters::check`], or the drive has not even one sector.
    #[must_use]
    pub fn new(parameters: HddParameters, bytes: u64, sector_bytes: u32, seed: u64) -> Self {
        if let Err(problem) = parameters.check() {
            panic!("{problem}");
        }
        assert!(
            bytes >= u64::from(sector_bytes.max(1)),
            "a drive of {bytes} bytes"
        );
        let shingles = parameters.smr.as_ref().map(|smr| Shingles::new(smr, bytes));
        let media_bytes = shingles.as_ref().map_or(bytes, Shingles::media_bytes);
        Self {
            mechanics: Mechanics::new(&parameters, media_bytes, seed),
            buffer: TrackBuffer::new(
                parameters.read_segments as usize,
                kib(parameters.segment_kib),
            ),
            cache: WriteCache::new(
                kib(parameters.write_cache_kib),
                parameters.write_cache_extents as usize,
            ),
            shingles,
            bytes,
            waiting: VecDeque::new(),
            known: 0,
            flush: None,
            decoding: VecDeque::new(),
            decoder_free_ns: 0,
            link_free_ns: 0,
            queue: Vec::new(),
            blocked: VecDeque::new(),
            work: Work::Nothing,
            cleaning: VecDeque::new(),
            background: Background {
                idle_since_ns: None,
                is_on: false,
            },
            completing: BinaryHeap::new(),
            sequence: 0,
            completed: Vec::new(),
            pieces: Vec::new(),
            parameters,
        }
    }

    /// When something happens next, and the arm before all else at the same time.
    fn next_event_ns(&self) -> Option<u64> {
        let completing = self.completing.peek().map(|Reverse(due)| due.at_ns);
        let decoding = self.decoding.front().map(|&(at_ns, _)| at_ns);
        [
            self.arm_done_ns(),
            completing,
            decoding,
            self.background_ns(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn arm_done_ns(&self) -> Option<u64> {
        match &self.work {
            Work::Nothing | Work::Ahead(_) => None,
            Work::Serves(_, transfer, _) | Work::Destages(transfer) | Work::Cleans(transfer) => {
                Some(transfer.done_ns)
            }
        }
    }

    /// When the drive begins to use a pause.
    fn background_ns(&self) -> Option<u64> {
        let idle_since_ns = self.background.idle_since_ns?;
        if self.background.is_on || self.arm_done_ns().is_some() {
            return None;
        }
        let after_ms = if !self.cache.is_clean() {
            self.parameters.destage_after_ms
        } else if self.has_cleaning() {
            self.parameters.smr.as_ref()?.clean_after_ms
        } else {
            return None;
        };
        Some(idle_since_ns + ms_to_ns(after_ms))
    }

    fn has_cleaning(&self) -> bool {
        !self.cleaning.is_empty()
            || self
                .shingles
                .as_ref()
                .is_some_and(|shingles| !shingles.is_clean())
    }

    fn run(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|&at_ns| at_ns <= now_ns) {
            if self.arm_done_ns() == Some(at_ns) {
                self.arm_done(at_ns);
            } else if self
                .completing
                .peek()
                .is_some_and(|Reverse(due)| due.at_ns == at_ns)
            {
                self.hand_out(at_ns);
            } else if self
                .decoding
                .front()
                .is_some_and(|&(decoded_ns, _)| decoded_ns == at_ns)
            {
                if let Some((_, request)) = self.decoding.pop_front() {
                    self.decoded(request, at_ns);
                }
            } else {
                self.background.is_on = true;
            }
            self.dispatch(at_ns);
        }
    }

    /// Take on what waits, as far as the queue depth and a flush allow.
    fn admit(&mut self, now_ns: u64) {
        while self.known < self.parameters.queue_depth && self.flush.is_none() {
            let is_flush = self
                .waiting
                .front()
                .is_some_and(|request| request.io.kind == Kind::Flush);
            if is_flush && self.known > 0 {
                return;
            }
            let Some(request) = self.waiting.pop_front() else {
                return;
            };
            if is_flush {
                self.flush = Some(Flush::Coming);
            }
            self.known += 1;
            let overhead_ns = (self.parameters.command_overhead_us * 1e3).round() as u64;
            self.decoder_free_ns = self.decoder_free_ns.max(now_ns) + overhead_ns;
            self.decoding.push_back((self.decoder_free_ns, request));
        }
    }

    fn hand_out(&mut self, now_ns: u64) {
        let Some(Reverse(due)) = self.completing.pop() else {
            return;
        };
        self.completed.push(Completion {
            ticket: due.ticket,
            at_ns: due.at_ns,
            failed_at: due.failed_at,
        });
        self.known -= 1;
        if matches!(self.flush, Some(Flush::Done)) {
            self.flush = None;
        }
        self.admit(now_ns);
    }

    fn complete(&mut self, ticket: Ticket, at_ns: u64, failed_at: Option<u64>) {
        self.sequence += 1;
        self.completing.push(Reverse(Due {
            at_ns,
            sequence: self.sequence,
            ticket,
            failed_at,
        }));
    }

    /// Move bytes over the link, from this time on; when they are there.
    fn link_ns(&mut self, from_ns: u64, bytes: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(from_ns) + self.link_time_ns(bytes);
        self.link_free_ns
    }

    fn link_time_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * 1e3 / self.parameters.interface_mb_s).round() as u64
    }

    fn decoded(&mut self, request: Request, now_ns: u64) {
        self.background.idle_since_ns.get_or_insert(now_ns);
        if request.io.kind == Kind::Flush {
            self.flush = Some(Flush::Running(request.ticket));
            self.finish_flush(now_ns);
            return;
        }
        let (start, end) = (request.io.offset, request.io.offset + request.io.length);
        if start == end {
            self.complete(request.ticket, now_ns, None);
            return;
        }
        match request.io.kind {
            Kind::Read => self.decoded_read(request, start, end, now_ns),
            Kind::Trim => {
                self.overwrite(start, end, now_ns);
                self.cache.remove(start, end);
                if let Some(shingles) = &mut self.shingles {
                    shingles.trim(start, end);
                }
                self.complete(request.ticket, now_ns, None);
            }
            Kind::Write | Kind::WriteZeroes | Kind::Flush => {
                self.decoded_write(request, start, end, now_ns)
            }
        }
    }

    fn decoded_read(&mut self, request: Request, start: u64, end: u64, now_ns: u64) {
        self.follow(now_ns);
        if self.cache.holds(start, end) || self.buffer.holds(start, end) {
            let until = self.limit(end);
            match &mut self.work {
                Work::Ahead(ahead) if self.buffer.reaches(start, ahead.from) => {
                    self.mechanics.extend(ahead, until)
                }
                _ => {}
            }
            let done_ns = self.link_ns(now_ns, end - start);
            self.complete(request.ticket, done_ns, None);
            return;
        }
        let entry = self.entry(request, start, now_ns);
        match self.work {
            Work::Ahead(ahead)
                if self.buffer.reaches(start, ahead.from) && self.lies_home(ahead.from, end) =>
            {
                let (transfer, piece) = self.mechanics.ride(&ahead, end, request.on_read_error);
                self.work = Work::Serves(entry, transfer, Some(piece));
            }
            _ => self.queue.push(entry),
        }
    }

    fn decoded_write(&mut self, request: Request, start: u64, end: u64, now_ns: u64) {
        self.overwrite(start, end, now_ns);
        let mut entry = self.entry(request, start, now_ns);
        if request.fua || !self.cache.takes(end - start) {
            self.cache.remove(start, end);
            entry.data_ns = self.take_data(&request, now_ns);
            self.queue.push(entry);
        } else {
            self.blocked.push_back(entry);
            self.fill_cache(now_ns);
        }
    }

    /// What a write's data takes over the link.
    fn take_data(&mut self, request: &Request, now_ns: u64) -> u64 {
        let bytes = if request.io.kind == Kind::Write {
            request.io.length
        } else {
            0
        };
        self.link_ns(now_ns, bytes)
    }

    fn entry(&self, request: Request, start: u64, now_ns: u64) -> Entry {
        let media = self
            .shingles
            .as_ref()
            .map_or(start, |shingles| shingles.home(start));
        Entry {
            request,
            arrived_ns: now_ns,
            place: self.mechanics.place(media),
            data_ns: now_ns,
        }
    }

    /// What the buffer holds of these bytes is old now.
    fn overwrite(&mut self, start: u64, end: u64, now_ns: u64) {
        self.follow(now_ns);
        self.buffer.forget(start, end);
        if let Work::Ahead(ahead) = &mut self.work {
            if start < ahead.until && ahead.from < end {
                ahead.until = ahead.from.max(start);
            }
        }
    }

    /// Let writes into the cache, in order, while there is room.
    fn fill_cache(&mut self, now_ns: u64) {
        while let Some(entry) = self.blocked.front().copied() {
            let (start, end) = (
                entry.request.io.offset,
                entry.request.io.offset + entry.request.io.length,
            );
            if !self.cache.fits(start, end) {
                return;
            }
            self.blocked.pop_front();
            if self.cache.is_empty() {
                self.background.idle_since_ns = self.background.idle_since_ns.max(Some(now_ns));
            }
            self.cache.insert(start, end);
            let done_ns = self.take_data(&entry.request, now_ns);
            self.complete(entry.request.ticket, done_ns, None);
        }
    }

    fn finish_flush(&mut self, now_ns: u64) {
        if let Some(Flush::Running(ticket)) = self.flush {
            if self.cache.is_empty() {
                self.flush = Some(Flush::Done);
                self.complete(ticket, now_ns, None);
            }
        }
    }

    /// How far the drive reads ahead of a byte.
    fn limit(&self, from: u64) -> u64 {
        let limit = self.bytes.min(from + kib(self.parameters.read_ahead_kib));
        self.next_cached(from)
            .map_or(limit, |cached| limit.min(cached))
    }

    fn lies_home(&self, start: u64, end: u64) -> bool {
        self.next_cached(start).is_none_or(|cached| end <= cached)
    }

    fn next_cached(&self, from: u64) -> Option<u64> {
        self.shingles
            .as_ref()
            .and_then(|shingles| shingles.next_cached(from))
    }

    /// Remember what has been read ahead.
    fn follow(&mut self, now_ns: u64) {
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

    fn arm_done(&mut self, now_ns: u64) {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing | Work::Ahead(_) => {}
            Work::Serves(entry, transfer, last) => self.served(&entry, &transfer, last, now_ns),
            Work::Destages(_) => {
                self.cache.left();
                self.fill_cache(now_ns);
                self.finish_flush(now_ns);
                self.background.is_on &= !self.cache.is_clean();
            }
            Work::Cleans(_) => self.background.is_on &= self.has_cleaning(),
        }
        self.background.idle_since_ns = Some(now_ns);
    }

    fn served(&mut self, entry: &Entry, transfer: &Transfer, last: Option<Piece>, now_ns: u64) {
        let Request { ticket, io, .. } = entry.request;
        let done_ns = match (io.kind, transfer.failed_at) {
            (_, Some(_)) => now_ns,
            (Kind::Read, None) => {
                // The data followed the head over the link.
                self.link_ns(
                    now_ns.saturating_sub(self.link_time_ns(io.length)),
                    io.length,
                )
            }
            _ => entry.data_ns.max(now_ns),
        };
        self.complete(ticket, done_ns, transfer.failed_at);
        if let Some(piece) = last.filter(|_| io.kind == Kind::Read && transfer.failed_at.is_none())
        {
            let end = io.offset + io.length;
            self.buffer.record(io.offset, end);
            self.work = Work::Ahead(self.mechanics.read_ahead(transfer, &piece, self.limit(end)));
        }
    }

    /// Give the arm something to do, if there is anything that may interrupt what it does for itself.
    fn dispatch(&mut self, now_ns: u64) {
        if self.arm_done_ns().is_some() {
            return;
        }
        let must_destage =
            !self.blocked.is_empty() || matches!(self.flush, Some(Flush::Running(_)));
        if self.queue.is_empty() && !must_destage && !self.background.is_on {
            return;
        }
        self.follow(now_ns);
        match self.choose(now_ns, must_destage) {
            None => self.background.is_on = false,
            Some(Next::Serve(at)) => {
                let request = self.queue[at].request;
                let (start, end) = (request.io.offset, request.io.offset + request.io.length);
                if request.io.kind != Kind::Read && self.must_clean(start, end) {
                    self.clean(now_ns);
                    return;
                }
                let entry = self.queue.remove(at);
                self.background.is_on = false;
                self.pieces.clear();
                if request.io.kind == Kind::Read {
                    self.read_pieces(start, end);
                } else {
                    self.write_pieces(start, end);
                }
                let transfer = self
                    .mechanics
                    .transfer(&self.pieces, now_ns, request.on_read_error);
                let last = self
                    .pieces
                    .last()
                    .copied()
                    .filter(|piece| self.is_home(piece));
                self.work = Work::Serves(entry, transfer, last);
            }
            Some(Next::Destage(start, end)) => {
                if self.must_clean(start, end) {
                    self.clean(now_ns);
                    return;
                }
                self.cache.leave(start, end);
                self.pieces.clear();
                self.write_pieces(start, end);
                self.work = Work::Destages(self.mechanics.transfer(
                    &self.pieces,
                    now_ns,
                    OnReadError::Retry,
                ));
            }
            Some(Next::Clean) => self.clean(now_ns),
        }
    }

    /// The nearest of what there is to do; what has waited too long before that.
    fn choose(&self, now_ns: u64, must_destage: bool) -> Option<Next> {
        let longest_ns = ms_to_ns(self.parameters.longest_wait_ms);
        let is_late = |entry: &Entry| now_ns - entry.arrived_ns > longest_ns;
        if self.queue.first().is_some_and(is_late) {
            return Some(Next::Serve(0));
        }
        let mut nearest_ns = u64::MAX;
        let mut next = None;
        if !self.blocked.front().is_some_and(is_late) {
            for (at, entry) in self.queue.iter().enumerate() {
                let writes = entry.request.io.kind != Kind::Read;
                let cost_ns = self.mechanics.positioning_ns(now_ns, entry.place, writes);
                if cost_ns < nearest_ns {
                    (nearest_ns, next) = (cost_ns, Some(Next::Serve(at)));
                }
            }
        }
        if must_destage || (next.is_none() && self.background.is_on) {
            let home = |byte| {
                self.shingles
                    .as_ref()
                    .map_or(byte, |shingles| shingles.home(byte))
            };
            let from = self.mechanics.nearest().saturating_sub(home(0));
            for (start, end) in self.cache.candidates(from) {
                let place = self.mechanics.place(home(start));
                let cost_ns = self.mechanics.positioning_ns(now_ns, place, true);
                if cost_ns < nearest_ns {
                    (nearest_ns, next) = (cost_ns, Some(Next::Destage(start, end)));
                }
            }
        }
        if next.is_none() && self.background.is_on && self.has_cleaning() {
            return Some(Next::Clean);
        }
        next
    }

    /// Whether a write has to wait until a band is merged.
    fn must_clean(&self, start: u64, end: u64) -> bool {
        !self.cleaning.is_empty()
            || self
                .shingles
                .as_ref()
                .is_some_and(|shingles| !shingles.has_room(start, end))
    }

    fn clean(&mut self, now_ns: u64) {
        if let Some(shingles) = self.shingles.as_mut().filter(|_| self.cleaning.is_empty()) {
            shingles.clean(&mut self.cleaning);
        }
        if let Some(step) = self.cleaning.pop_front() {
            self.work = Work::Cleans(self.mechanics.transfer(&[step], now_ns, OnReadError::Retry));
        }
    }

    fn read_pieces(&mut self, start: u64, end: u64) {
        match &self.shingles {
            Some(shingles) => shingles.read(start, end, &mut self.pieces),
            None => self.pieces.push(whole(start, end, false)),
        }
    }

    fn write_pieces(&mut self, start: u64, end: u64) {
        match &mut self.shingles {
            Some(shingles) => shingles.write(start, end, &mut self.pieces),
            None => self.pieces.push(whole(start, end, true)),
        }
    }

    fn is_home(&self, piece: &Piece) -> bool {
        self.shingles
            .as_ref()
            .is_none_or(|shingles| piece.media == shingles.home(piece.logical))
    }
}

impl Service for Hdd {
    fn submit(&mut self, request: &Request, now_ns: u64) {
        self.run(now_ns);
        self.waiting.push_back(*request);
        self.admit(now_ns);
    }

    fn next_due_ns(&self) -> Option<u64> {
        let completed = self.completed.first().map(|completion| completion.at_ns);
        completed.or_else(|| self.next_event_ns())
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        self.run(now_ns);
        completions.append(&mut self.completed);
    }

    fn cut_power(&mut self, now_ns: u64) {
        self.run(now_ns);
        self.follow(now_ns);
        self.completed.clear();
        self.completing.clear();
        self.waiting.clear();
        self.decoding.clear();
        self.queue.clear();
        self.blocked.clear();
        self.cleaning.clear();
        self.known = 0;
        self.flush = None;
        self.work = Work::Nothing;
        self.cache.clear();
        self.buffer.clear();
        self.background = Background {
            idle_since_ns: None,
            is_on: false,
        };
    }

    fn sanitize(&mut self, now_ns: u64) {
        self.run(now_ns);
        self.follow(now_ns);
        self.buffer.clear();
        self.cache.clear();
        self.cleaning.clear();
        if let Work::Ahead(_) | Work::Destages(_) | Work::Cleans(_) = self.work {
            self.work = Work::Nothing;
        }
        if let Some(shingles) = &mut self.shingles {
            shingles.reset();
        }
        self.fill_cache(now_ns);
        self.finish_flush(now_ns);
        self.dispatch(now_ns);
    }
}

fn kib(kib: u32) -> u64 {
    u64::from(kib) << 10
}

fn whole(start: u64, end: u64, writes: bool) -> Piece {
    Piece {
        logical: start,
        media: start,
        length: end - start,
        writes,
    }
}
