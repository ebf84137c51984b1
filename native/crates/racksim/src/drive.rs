//! The state machine of one drive: verdicts on requests, counters and faults.

use std::ops::{AddAssign, Range};

use serde::Serialize;

use crate::fault::{disjoint, overlap};
use crate::queue::Queue;
use crate::standing::StandingFaults;
use crate::{Due, Fault, FaultError, FaultName, Io, Kind, OnReadError, Service, StandingFault};

/// The outcome of a request that reached a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The data moves, and the request completes, now.
    Done,
    /// The request fails now, with EIO.
    Failed {
        /// The failed sector: the first bad one, or the first of the request.
        lba: u64,
    },
    /// The drive needs time: the caller must [submit](DriveState::submit) the request.
    Waits,
    /// The request is not answered while the drive hangs.
    Hangs,
}

/// A drive's counters since the rack started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Read requests that succeeded.
    pub reads: u64,
    /// Write and write-zeroes requests that succeeded.
    pub writes: u64,
    /// Bytes of these reads.
    pub bytes_read: u64,
    /// Bytes of these writes.
    pub bytes_written: u64,
    /// Flushes that succeeded.
    pub flushes: u64,
    /// Trims that succeeded.
    pub trims: u64,
    /// Requests that failed on bad sectors.
    pub media_errors: u64,
    /// Sectors that were unreadable and have been written since: the drive has reallocated them.
    pub reallocated_sectors: u64,
    /// Completed sanitize operations.
    pub sanitizes: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.flushes += other.flushes;
        self.trims += other.trims;
        self.media_errors += other.media_errors;
        self.reallocated_sectors += other.reallocated_sectors;
        self.sanitizes += other.sanitizes;
    }
}

/// The state of one drive, apart from its data and its cabling. Each request in progress carries a payload `P` of
/// the caller.
pub struct DriveState<P> {
    bytes: u64,
    sector_bytes: u64,
    queue: Queue<P>,
    faults: StandingFaults,
    counters: Counters,
    is_sanitizing: bool,
}

impl<P> DriveState<P> {
    /// A healthy drive with the timing model `service`. `bytes` is a multiple of `sector_bytes`, which is not 0.
    #[must_use]
    pub fn new(bytes: u64, sector_bytes: u32, service: Box<dyn Service>) -> Self {
        Self {
            bytes,
            sector_bytes: u64::from(sector_bytes),
            queue: Queue::new(service),
            faults: StandingFaults::default(),
            counters: Counters::default(),
            is_sanitizing: false,
        }
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The timing model's own counters: see [`Service::health`].
    #[must_use]
    pub fn health(&self) -> Vec<(&'static str, u64)> {
        self.queue.service().health()
    }

    /// Add a fault under the caller's identity and optional key; returns its identity. If the drive already has a
    /// fault with this key, nothing changes.
    pub fn add_fault(
        &mut self,
        id: u64,
        key: Option<&str>,
        fault: &Fault,
    ) -> Result<u64, FaultError> {
        let sectors = self.bytes / self.sector_bytes;
        fault.check(sectors, self.queue.service().is_instant())?;
        Ok(self.faults.add(id, key, fault))
    }

    /// Remove the faults of a name; returns those that were active.
    pub fn clear_faults(&mut self, name: FaultName<'_>) -> Vec<StandingFault> {
        self.faults.clear(name)
    }

    /// The active faults in the order they were added, without those whose count is used up.
    #[must_use]
    pub fn faults(&self) -> Vec<StandingFault> {
        self.faults.list()
    }

    /// Report a link lost to a map change or a PHY drop; returns the identities of the faults that crash the drive.
    pub fn lose_link(&mut self) -> Vec<u64> {
        self.faults.lose_link()
    }

    /// The verdict on a request that lies within the drive, before the drive spends time on it.
    pub fn begin(&mut self, io: &Io) -> Verdict {
        if let Some(verdict) = self.refuses(io) {
            return verdict;
        }
        if !self.queue.service().is_instant() || self.faults.slow().next().is_some() {
            return Verdict::Waits;
        }
        self.execute(io)
    }

    /// Submit a request whose verdict is [`Verdict::Waits`].
    pub fn submit(
        &mut self,
        io: &Io,
        fua: bool,
        on_read_error: OnReadError,
        payload: P,
        now_ns: u64,
    ) {
        self.queue.submit(io, fua, on_read_error, payload, now_ns);
    }

    /// The time at which [`DriveState::advance`] next has work; `None` while the drive is idle.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.queue.next_due_ns()
    }

    /// Advance the drive to `now_ns` and append the requests that were due by then, in order of time. Each must then
    /// be [concluded](DriveState::conclude).
    pub fn advance(&mut self, now_ns: u64, due: &mut Vec<Due<P>>) {
        let slow: Vec<(u64, f64)> = self.faults.slow().collect();
        let slowed = |since_ns: u64, done_ns: u64| {
            slow.iter().fold(done_ns, |done_ns, (extra_ns, factor)| {
                let took_ns = (done_ns - since_ns) as f64 * factor;
                since_ns
                    .saturating_add(took_ns as u64)
                    .saturating_add(*extra_ns)
            })
        };
        self.queue.advance(now_ns, slowed, due);
    }

    /// The verdict on a request that is due: done, failed, or unanswered because the drive hangs by now.
    pub fn conclude(&mut self, io: &Io, failed_at: Option<u64>) -> Verdict {
        if let Some(verdict) = self.refuses(io) {
            return verdict;
        }
        if let Some(offset) = failed_at {
            self.counters.media_errors += 1;
            return Verdict::Failed {
                lba: self.lba(offset),
            };
        }
        self.execute(io)
    }

    /// Withdraw the requests whose payload `is_meant`; returns the payloads in order of arrival. The drive still
    /// spends time on them, without effect.
    pub fn withdraw(&mut self, is_meant: impl Fn(&P) -> bool) -> Vec<P> {
        self.queue.withdraw(is_meant)
    }

    /// Abort the requests whose payload `is_meant`, whose initiator is gone: the drive stops working on those that
    /// it can give up.
    pub fn abort(&mut self, is_meant: impl Fn(&P) -> bool, now_ns: u64) {
        self.queue.abort(is_meant, now_ns);
    }

    /// Cut the drive's power: queue and cache are lost. Returns the payloads of the requests in progress. A drive
    /// that crashed works again.
    pub fn cut_power(&mut self, now_ns: u64) -> Vec<P> {
        self.faults.recover();
        self.queue.cut_power(now_ns)
    }

    /// Begin to sanitize the drive: until [`DriveState::finish_sanitize`] it answers nothing. Returns the payloads of
    /// the requests in progress; `None` if it is being sanitized already, hangs or is dead.
    pub fn begin_sanitize(&mut self, now_ns: u64) -> Option<Vec<P>> {
        if self.hangs() || self.faults.is_dead() {
            return None;
        }
        self.is_sanitizing = true;
        Some(self.queue.cut_power(now_ns))
    }

    /// End a sanitize: the drive is as delivered, except for its wear. Sectors bad until rewritten are rewritten.
    pub fn finish_sanitize(&mut self, now_ns: u64) {
        self.queue.sanitize(now_ns);
        self.is_sanitizing = false;
        self.counters.sanitizes += 1;
        let everything = 0..self.bytes / self.sector_bytes;
        self.counters.reallocated_sectors += self.faults.rewrite(&everything);
    }

    /// Whether the drive currently answers nothing.
    #[must_use]
    pub fn hangs(&self) -> bool {
        self.is_sanitizing || self.faults.hangs()
    }

    /// The verdict on every request to a drive that hangs or is dead.
    fn refuses(&self, io: &Io) -> Option<Verdict> {
        if self.hangs() {
            return Some(Verdict::Hangs);
        }
        self.faults.is_dead().then(|| Verdict::Failed {
            lba: self.lba(io.offset),
        })
    }

    fn execute(&mut self, io: &Io) -> Verdict {
        let sectors = self.sectors(io);
        if let Some(lba) = self.faults.hit(io.kind, &sectors) {
            self.counters.media_errors += 1;
            return Verdict::Failed { lba };
        }
        if matches!(io.kind, Kind::Write | Kind::WriteZeroes) {
            let whole = self.whole_sectors(io);
            self.counters.reallocated_sectors += self.faults.rewrite(&whole);
        }
        self.count(io);
        Verdict::Done
    }

    /// Corrupt data that was read from `offset`: flip the lowest bit of every byte in the drive's corrupt sectors, once
    /// for all faults that it lies in.
    pub fn corrupt(&self, offset: u64, data: &mut [u8]) {
        let read = offset..offset + data.len() as u64;
        let hit = |sectors: &Range<u64>| {
            let bad = sectors.start * self.sector_bytes..sectors.end * self.sector_bytes;
            overlap(&read, &bad)
        };
        for hit in disjoint(self.faults.corrupt().map(hit)) {
            for byte in &mut data[(hit.start - offset) as usize..(hit.end - offset) as usize] {
                *byte ^= 1;
            }
        }
    }

    /// The sector a byte offset lies in.
    #[must_use]
    pub fn lba(&self, offset: u64) -> u64 {
        offset / self.sector_bytes
    }

    fn sectors(&self, io: &Io) -> Range<u64> {
        let end = io.offset + io.length;
        self.lba(io.offset)..end.div_ceil(self.sector_bytes)
    }

    /// The sectors all of whose bytes are a request's: the rest of one that could not be read is not there to be kept.
    fn whole_sectors(&self, io: &Io) -> Range<u64> {
        let start = io.offset.div_ceil(self.sector_bytes);
        start..self.lba(io.offset + io.length).max(start)
    }

    fn count(&mut self, io: &Io) {
        match io.kind {
            Kind::Read => {
                self.counters.reads += 1;
                self.counters.bytes_read += io.length;
            }
            Kind::Write | Kind::WriteZeroes => {
                self.counters.writes += 1;
                self.counters.bytes_written += io.length;
            }
            Kind::Flush => self.counters.flushes += 1,
            Kind::Trim => self.counters.trims += 1,
        }
    }
}
