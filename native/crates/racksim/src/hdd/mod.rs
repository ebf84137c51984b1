//! A hard disk: mechanics, a queue with reordering, a track buffer, a write cache and, for drive-managed SMR,
//! shingled bands.

mod arm;
mod buffer;
mod commands;
mod geometry;
mod host_port;
mod mechanics;
mod media;
mod parameters;
mod schedule;
mod seek;
mod shingles;
mod weak;
mod write_cache;

use std::collections::{BTreeSet, VecDeque};

use buffer::TrackBuffer;
use geometry::Place;
use host_port::HostPort;
use mechanics::{Mechanics, ReadAhead, Transfer};
use media::Media;
use shingles::Piece;
use write_cache::WriteCache;

use crate::{Completion, Request, Service, Ticket};

pub use parameters::{HddParameters, SmrParameters};
pub use seek::SeekCurve;

/// A hard disk drive as a timing model.
///
/// Of the queued commands that need the media it serves the one with the shortest positioning time, unless another
/// has waited too long. Written data goes to the media in the same way, once the drive is idle, its cache is full or
/// a flush asks for it. All times are exact to the nanosecond and come from the parameters and the seed alone.
#[derive(Debug, Clone)]
pub struct Hdd {
    parameters: HddParameters,
    port: HostPort,
    mechanics: Mechanics,
    media: Media,
    buffer: TrackBuffer,
    cache: WriteCache,
    /// Commands that need the media, as they came.
    queue: Vec<Entry>,
    /// Writes that wait for room in the cache, as they came.
    blocked: VecDeque<Entry>,
    /// A flush that waits for the media.
    flush: Option<Ticket>,
    work: Work,
    /// The time at which idle work last appeared, vanished or ended; `None` from a loss of power to a command.
    idle_since_ns: Option<u64>,
    /// The drive does idle work, until none is left or the host needs the arm.
    in_background: bool,
    /// Pieces of the current transfer; kept for its allocation.
    pieces: Vec<Piece>,
}

/// A command that cannot be answered at once.
#[derive(Debug, Clone, Copy)]
struct Entry {
    request: Request,
    arrived_ns: u64,
    place: Place,
    /// The time at which the drive has the data, for a write.
    data_ns: u64,
}

/// The arm's current work.
#[derive(Debug, Clone, Copy)]
enum Work {
    Nothing,
    Ahead(ReadAhead),
    Serves(Entry, Transfer),
    Destages(Transfer),
    Cleans(Transfer),
}

impl Work {
    /// Its end, if it cannot be interrupted.
    fn done_ns(&self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::Ahead(ahead) => ahead.held_ns,
            Self::Serves(_, transfer) | Self::Destages(transfer) | Self::Cleans(transfer) => {
                Some(transfer.done_ns)
            }
        }
    }
}

impl Hdd {
    /// A drive as delivered.
    ///
    /// # Panics
    ///
    /// If the parameters do not pass [`HddParameters::check`], or there is not even one sector.
    #[must_use]
    pub fn new(parameters: HddParameters, bytes: u64, sector_bytes: u32, seed: u64) -> Self {
        if let Err(problem) = parameters.check(bytes) {
            panic!("{problem}");
        }
        assert!(
            bytes > 0 && bytes >= u64::from(sector_bytes),
            "a drive of {bytes} bytes"
        );
        let kib = |kib: u32| u64::from(kib) << 10;
        let media = Media::new(&parameters, bytes);
        Self {
            port: HostPort::new(&parameters),
            mechanics: Mechanics::new(&parameters, media.media_bytes(), seed),
            media,
            buffer: TrackBuffer::new(
                parameters.read_segments as usize,
                kib(parameters.segment_kib),
            ),
            cache: WriteCache::new(
                kib(parameters.write_cache_kib),
                parameters.write_cache_extents as usize,
            ),
            queue: Vec::new(),
            blocked: VecDeque::new(),
            flush: None,
            work: Work::Nothing,
            idle_since_ns: None,
            in_background: false,
            pieces: Vec::new(),
            parameters,
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        [
            self.work.done_ns(),
            self.port.next_ns(),
            self.background_ns(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Process all events until `now_ns`; at equal times the arm goes before completions, these before
    /// new commands.
    fn run(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|&at_ns| at_ns <= now_ns) {
            if self.work.done_ns() == Some(at_ns) {
                self.arm_done(at_ns);
            } else if !self.port.hand_out(at_ns) {
                match self.port.decoded(at_ns) {
                    Some(request) => self.decoded(request, at_ns),
                    None => self.in_background = true,
                }
            }
            self.dispatch(at_ns);
        }
    }
}

impl Service for Hdd {
    fn submit(&mut self, request: &Request, now_ns: u64) {
        self.run(now_ns);
        self.port.submit(request, now_ns);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.port.completed_ns().or_else(|| self.next_event_ns())
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        self.run(now_ns);
        self.port.give(completions);
    }

    /// Also aborts the command that the arm executes, at once. Data in the write cache still goes to the media.
    fn abort(&mut self, tickets: &[Ticket], now_ns: u64) {
        self.run(now_ns);
        let gone: BTreeSet<Ticket> = tickets.iter().copied().collect();
        let is_gone = |entry: &Entry| gone.contains(&entry.request.ticket);
        let before = self.queue.len() + self.blocked.len();
        self.queue.retain(|entry| !is_gone(entry));
        self.blocked.retain(|entry| !is_gone(entry));
        let mut freed = before - self.queue.len() - self.blocked.len();
        if self.flush.is_some_and(|ticket| gone.contains(&ticket)) {
            self.flush = None;
            freed += 1;
        }
        if let Work::Serves(entry, transfer) = self.work {
            if is_gone(&entry) {
                self.mechanics.stop(&transfer, now_ns);
                self.work = Work::Nothing;
                self.idle_since_ns = Some(now_ns);
                freed += 1;
            }
        }
        self.port.abort(&gone, freed as u32, now_ns);
        self.fill_cache(now_ns);
        self.dispatch(now_ns);
    }

    fn cut_power(&mut self, now_ns: u64) {
        self.run(now_ns);
        self.port.clear();
        self.queue.clear();
        self.blocked.clear();
        self.flush = None;
        self.media.cut_power();
        self.cache.clear();
        self.buffer.clear();
        self.work = Work::Nothing;
        self.idle_since_ns = None;
        self.in_background = false;
    }

    fn copy(&self) -> Box<dyn Service> {
        Box::new(self.clone())
    }

    /// Requests in progress are completed all the same.
    fn sanitize(&mut self, now_ns: u64) {
        self.run(now_ns);
        self.buffer.clear();
        self.cache.clear();
        self.media.reset();
        if !matches!(self.work, Work::Serves(..)) {
            self.work = Work::Nothing;
        }
        self.fill_cache(now_ns);
        self.finish_flush(now_ns);
        self.dispatch(now_ns);
    }

    /// `read_errors` counts 4 KiB blocks that could not be read at the first attempt, `read_retries` those of them
    /// that were tried again, `bands_rewritten` (of a shingled drive) bands that were read and written as a whole.
    fn health(&self) -> Vec<(&'static str, u64)> {
        let mut health = self.mechanics.health().to_vec();
        health.extend(
            self.media
                .rewritten()
                .map(|bands| ("bands_rewritten", bands)),
        );
        health
    }
}
