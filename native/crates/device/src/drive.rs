//! One drive: what it answers to a request, its counters and its faults.

use std::ops::{AddAssign, Range};

use serde::Serialize;

use crate::fault::{overlap, subtract, Access, Active, Persistence};
use crate::{Fault, FaultError, Timing};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Answer bytes.
    Read,
    /// Store bytes.
    Write,
    /// Put everything that was completed on stable media.
    Flush,
    /// Forget bytes.
    Trim,
    /// Store zeroes.
    WriteZeroes,
}

/// A request to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What it asks for.
    pub kind: Kind,
    /// First byte.
    pub offset: u64,
    /// Byte count; 0 for a flush.
    pub length: u64,
}

/// What a drive does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The data moves, and the request completes, at `done_at_ns`.
    Done {
        /// When.
        done_at_ns: u64,
    },
    /// The request fails with EIO at `done_at_ns`.
    Failed {
        /// The sector to blame: the first bad one, or the first of the request.
        lba: u64,
        /// When.
        done_at_ns: u64,
    },
    /// The request is never answered while the fault lasts.
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
    }
}

/// The state of one drive, apart from its data and its cabling.
#[derive(Debug, Clone)]
pub struct DriveState {
    bytes: u64,
    sector_bytes: u64,
    timing: Timing,
    faults: Vec<(u64, Active)>,
    counters: Counters,
}

impl DriveState {
    /// A healthy drive. `bytes` is a multiple of `sector_bytes`, which is not 0.
    #[must_use]
    pub fn new(bytes: u64, sector_bytes: u32, timing: Timing) -> Self {
        Self {
            bytes,
            sector_bytes: u64::from(sector_bytes),
            timing,
            faults: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether the drive answers nothing for now.
    #[must_use]
    pub fn hangs(&self) -> bool {
        self.faults
            .iter()
            .any(|(_, fault)| matches!(fault, Active::Hang))
    }

    /// Put a fault on the drive under an identity of the caller's.
    pub fn add_fault(&mut self, id: u64, fault: &Fault) -> Result<(), FaultError> {
        fault.check(self.bytes / self.sector_bytes, &self.timing)?;
        self.faults.push((id, Active::from(fault)));
        Ok(())
    }

    /// Take away one fault, or all where `id` is `None`; the identities of those that were there.
    pub fn clear_faults(&mut self, id: Option<u64>) -> Vec<u64> {
        let goes = |fault_id: u64| id.is_none_or(|id| id == fault_id);
        let gone = self
            .faults
            .iter()
            .map(|(id, _)| *id)
            .filter(|&id| goes(id))
            .collect();
        self.faults.retain(|&(id, _)| !goes(id));
        gone
    }

    /// Begin a request that lies within the drive. Faults with a count are used up by it.
    pub fn begin(&mut self, io: &Io, now_ns: u64) -> Verdict {
        let mut done_at_ns = self.timing.done_at_ns(now_ns, io);
        if self.faults.is_empty() {
            self.count(io);
            return Verdict::Done { done_at_ns };
        }
        if self.hangs() {
            return Verdict::Hangs;
        }
        let sectors = self.sectors(io);
        if self
            .faults
            .iter()
            .any(|(_, fault)| matches!(fault, Active::Dead))
        {
            let lba = sectors.start;
            return Verdict::Failed {
                lba,
                done_at_ns: now_ns,
            };
        }
        for (_, fault) in &self.faults {
            if let Active::Slow { extra_ns, factor } = fault {
                let service_ns = (done_at_ns - now_ns) as f64 * factor;
                done_at_ns = now_ns
                    .saturating_add(service_ns as u64)
                    .saturating_add(*extra_ns);
            }
        }
        let bad_lba = self
            .faults
            .iter_mut()
            .find_map(|(_, fault)| fault.hit(io.kind, &sectors));
        self.faults.retain(|(_, fault)| !fault.is_spent());
        if let Some(lba) = bad_lba {
            self.counters.media_errors += 1;
            return Verdict::Failed { lba, done_at_ns };
        }
        self.count(io);
        Verdict::Done { done_at_ns }
    }

    /// Flip what a corrupt drive flips: the lowest bit of every byte in its corrupt sectors. `data` was read
    /// from `offset`.
    pub fn corrupt(&self, offset: u64, data: &mut [u8]) {
        let read = offset..offset + data.len() as u64;
        for (_, fault) in &self.faults {
            if let Active::Corrupt(sectors) = fault {
                let bad = sectors.start * self.sector_bytes..sectors.end * self.sector_bytes;
                let hit = overlap(&read, &bad);
                for byte in &mut data[(hit.start - offset) as usize..(hit.end - offset) as usize] {
                    *byte ^= 1;
                }
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

impl Active {
    /// The first bad sector this request fails on. A write that does not
    /// fail itself heals the sectors that stay bad until rewritten.
    fn hit(&mut self, kind: Kind, sectors: &Range<u64>) -> Option<u64> {
        let Self::Media {
            bad,
            left,
            mode,
            on,
        } = self
        else {
            return None;
        };
        let applies = match kind {
            Kind::Read => *on != Access::Write,
            Kind::Write | Kind::WriteZeroes => *on != Access::Read,
            Kind::Flush | Kind::Trim => false,
        };
        let is_write = matches!(kind, Kind::Write | Kind::WriteZeroes);
        let lba = bad
            .iter()
            .map(|range| overlap(range, sectors))
            .find(|hit| !hit.is_empty())?
            .start;
        if !applies {
            if is_write && *mode == Persistence::UntilRewritten {
                subtract(bad, sectors);
            }
            return None;
        }
        if let Some(left) = left {
            *left -= 1;
        }
        Some(lba)
    }

    fn is_spent(&self) -> bool {
        matches!(self, Self::Media { left: Some(0), .. })
            || matches!(self, Self::Media { bad, .. } if bad.is_empty())
    }
}
