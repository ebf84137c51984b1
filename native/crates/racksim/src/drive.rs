//! One drive: what it answers to a request, its counters and its faults.

use std::ops::{AddAssign, Range};

use serde::Serialize;

use crate::fault::overlap;
use crate::queue::Queue;
use crate::standing::StandingFaults;
use crate::{Due, Fault, FaultError, FaultName, Io, Kind, OnReadError, Service, StandingFault};

/// What becomes of a request that reached a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The data moves, and the request completes, now.
    Done,
    /// The request fails now, with EIO.
    Failed {
        /// The sector to blame: the first bad one, or the first of the request.
        lba: u64,
    },
    /// The drive takes time for it: it is to be [submitted](DriveState::submit).
    Waits,
    /// The request is not answered while the drive hangs.
    Hangs,
}

/// What a drive has done since the rack started.
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
    /// Sectors that could not be read, and were written since: the drive put them elsewhere.
    pub reallocated_sectors: u64,
    /// How often the drive erased itself.
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

/// The state of one drive, apart from its data and its cabling. Each request that it works on carries a `P` of the
/// caller's.
pub struct DriveState<P> {
    bytes: u64,
    sector_bytes: u64,
    queue: Queue<P>,
    faults: StandingFaults,
    counters: Counters,
    is_sanitizing: bool,
}

impl<P> DriveState<P> {
    /// A healthy drive that takes the time `service` says. `bytes` is a multiple of `sector_bytes`, which is not 0.
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

    /// What the timing model counts of its own: see [`Service::health`].
    #[must_use]
    pub fn health(&self) -> Vec<(&'static str, u64)> {
        self.queue.service().health()
    }

    /// Put a fault on the drive under an identity, and perhaps a key, of the caller's; the identity it has. A fault
    /// whose key stands on the drive already is that fault: nothing changes.
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

    /// Take away the faults of a name; those that were there.
    pub fn clear_faults(&mut self, name: FaultName<'_>) -> Vec<StandingFault> {
        self.faults.clear(name)
    }

    /// The faults that are on the drive, in the order they came; those that used themselves up are not.
    #[must_use]
    pub fn faults(&self) -> Vec<StandingFault> {
        self.faults.list()
    }

    /// The drive's link is lost by a map change or a PHY drop: the identities of the faults that crash it now.
    pub fn lose_link(&mut self) -> Vec<u64> {
        self.faults.lose_link()
    }

    /// What becomes of a request that lies within the drive, before the drive spent time on it.
    pub fn begin(&mut self, io: &Io) -> Verdict {
        if let Some(verdict) = self.refuses(io) {
            return verdict;
        }
        if !self.queue.service().is_instant() || self.faults.slow().next().is_some() {
            return Verdict::Waits;
        }
        self.execute(io)
    }

    /// Have the drive work on a request whose verdict is [`Verdict::Waits`].
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

    /// When [`DriveState::advance`] will have something to do next; `None` while the drive is idle.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.queue.next_due_ns()
    }

    /// Bring the drive up to `now_ns` and append the requests that were due by then, in order of time. Each is then
    /// to be [concluded](DriveState::conclude).
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

    /// What becomes of a request that is due: done, failed, or not answered by a drive that hangs meanwhile.
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

    /// Forget the requests whose payload `is_meant` and give the payloads back in the order they came. The drive
    /// goes on working on them, and nothing comes of it.
    pub fn withdraw(&mut self, is_meant: impl Fn(&P) -> bool) -> Vec<P> {
        self.queue.withdraw(is_meant)
    }

    /// Whoever waited for the requests whose payload `is_meant` is gone: forget them, and have the drive give up
    /// those that it can.
    pub fn abort(&mut self, is_meant: impl Fn(&P) -> bool, now_ns: u64) {
        self.queue.abort(is_meant, now_ns);
    }

    /// Lose what the drive has in its queue and its cache; the payloads of the requests it worked on. A drive that
    /// crashed is well again.
    pub fn cut_power(&mut self, now_ns: u64) -> Vec<P> {
        self.faults.recover();
        self.queue.cut_power(now_ns)
    }

    /// Begin to erase the drive: until [`DriveState::finish_sanitize`] it answers nothing. The payloads of the
    /// requests it worked on; `None` where it is being erased already, hangs or is dead.
    pub fn begin_sanitize(&mut self, now_ns: u64) -> Option<Vec<P>> {
        if self.hangs() || self.faults.is_dead() {
            return None;
        }
        self.is_sanitizing = true;
        Some(self.queue.cut_power(now_ns))
    }

    /// The drive is as it left the factory, but for its wear; sectors that were bad until rewritten were rewritten.
    pub fn finish_sanitize(&mut self, now_ns: u64) {
        self.queue.sanitize(now_ns);
        self.is_sanitizing = false;
        self.counters.sanitizes += 1;
        let everything = 0..self.bytes / self.sector_bytes;
        self.counters.reallocated_sectors += self.faults.rewrite(&everything);
    }

    /// Whether the drive answers nothing for now.
    #[must_use]
    pub fn hangs(&self) -> bool {
        self.is_sanitizing || self.faults.hangs()
    }

    /// What a drive that answers nothing, or only errors, does with every request.
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
            self.counters.reallocated_sectors += self.faults.rewrite(&sectors);
        }
        self.count(io);
        Verdict::Done
    }

    /// Flip what a corrupt drive flips: the lowest bit of every byte in its corrupt sectors. `data` was read
    /// from `offset`.
    pub fn corrupt(&self, offset: u64, data: &mut [u8]) {
        let read = offset..offset + data.len() as u64;
        for sectors in self.faults.corrupt() {
            let bad = sectors.start * self.sector_bytes..sectors.end * self.sector_bytes;
            let hit = overlap(&read, &bad);
            if hit.is_empty() {
                // An empty overlap may lie behind the data.
                continue;
            }
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
