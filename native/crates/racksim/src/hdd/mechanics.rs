//! Disk mechanics: positioning and transfer times of platters, arm and heads.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

use super::arm::Arm;
use super::geometry::{Geometry, Place};
use super::shingles::Piece;
use super::weak::{WeakSectors, UNIT};
use super::HddParameters;
use crate::OnReadError;

/// The moving parts. The platters' angle is a function of time alone.
#[derive(Debug, Clone)]
pub(super) struct Mechanics {
    geometry: Geometry,
    arm: Arm,
    weak: WeakSectors,
    physical_sector: u64,
    /// The platters' angle at time 0.
    phase_ns: u64,
    /// Cylinder and head.
    track: (u64, u64),
}

/// The planned course of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub(super) done_ns: u64,
    /// The last piece.
    pub(super) last: Piece,
    /// The time of a byte of that piece, less its sweep.
    anchor_ns: i64,
    /// The logical byte at which it failed.
    pub(super) failed_at: Option<u64>,
}

/// Read-ahead after the host's request, until the arm is needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAhead {
    anchor_ns: i64,
    /// The media offset of logical byte 0.
    home: u64,
    /// End of the bytes read so far.
    pub(super) from: u64,
    /// The logical byte at which it ends.
    pub(super) until: u64,
    /// Not interruptible before this.
    pub(super) held_ns: Option<u64>,
}

impl Mechanics {
    /// At rest over the first track. The parameters are checked ones.
    pub(super) fn new(parameters: &HddParameters, media_bytes: u64, seed: u64) -> Self {
        let geometry = Geometry::new(parameters, media_bytes);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let angles = Uniform::new(0, geometry.revolution_ns).expect("a revolution takes time");
        Self {
            arm: Arm::new(parameters, geometry.cylinders),
            phase_ns: angles.sample(&mut rng),
            weak: WeakSectors::new(parameters, geometry.revolution_ns, rng),
            physical_sector: u64::from(parameters.physical_sector_bytes),
            track: (0, 0),
            geometry,
        }
    }

    /// The place of a byte of the media.
    pub(super) fn place(&self, media: u64) -> Place {
        self.geometry.start(media)
    }

    /// The first byte of the track that the head is on.
    pub(super) fn track_start(&self) -> u64 {
        self.geometry.first_byte(self.track)
    }

    /// The longest that positioning can take.
    pub(super) fn slowest_ns(&self) -> u64 {
        self.arm.slowest_ns() + self.geometry.revolution_ns
    }

    /// Read errors, as [`Hdd`](super::Hdd) reports them.
    pub(super) fn health(&self) -> [(&'static str, u64); 2] {
        [
            ("read_errors", self.weak.errors),
            ("read_retries", self.weak.retries),
        ]
    }

    /// Time from `now_ns` until the head is at a place: the move, then the rotation.
    pub(super) fn positioning_ns(&self, now_ns: u64, place: Place, writes: bool) -> u64 {
        let revolution_ns = self.geometry.revolution_ns;
        let move_ns = self.arm.move_ns(self.track, place.track, writes);
        let there = (self.phase_ns + now_ns + move_ns) % revolution_ns;
        let wanted = place.sweep_ns % revolution_ns;
        let rotation_ns = if wanted >= there {
            wanted - there
        } else {
            wanted + revolution_ns - there
        };
        move_ns + rotation_ns
    }

    /// Position to each piece in turn and transfer it.
    pub(super) fn transfer(
        &mut self,
        pieces: &[Piece],
        now_ns: u64,
        policy: OnReadError,
    ) -> Transfer {
        let mut free_ns = now_ns;
        let mut done = None;
        for piece in pieces {
            let place = self.place(piece.media);
            let begin_ns = free_ns + self.positioning_ns(free_ns, place, piece.writes);
            let anchor_ns = begin_ns as i64 - place.sweep_ns as i64;
            let transfer = if piece.writes {
                self.write(piece, anchor_ns)
            } else {
                self.read(piece, anchor_ns, piece.logical / UNIT, policy)
            };
            free_ns = transfer.done_ns;
            done = Some(transfer);
            if transfer.failed_at.is_some() {
                break;
            }
        }
        done.expect("there is something to transfer")
    }

    fn write(&mut self, piece: &Piece, mut anchor_ns: i64) -> Transfer {
        let end = self.geometry.end(piece.media + piece.length);
        let is_aligned = |byte: u64| byte % self.physical_sector == 0;
        if !is_aligned(piece.logical) || !is_aligned(piece.logical + piece.length) {
            anchor_ns += self.geometry.revolution_ns as i64;
        }
        self.track = end.track;
        Transfer {
            done_ns: (anchor_ns + end.sweep_ns as i64) as u64,
            last: *piece,
            anchor_ns,
            failed_at: None,
        }
    }

    /// Read a piece from `unit` on, including first-attempt failures and retries.
    fn read(
        &mut self,
        piece: &Piece,
        mut anchor_ns: i64,
        mut unit: u64,
        policy: OnReadError,
    ) -> Transfer {
        let logical_end = piece.logical + piece.length;
        let last_unit = logical_end.div_ceil(UNIT);
        let media = |logical: u64| piece.media + (logical - piece.logical);
        let mut stop = logical_end;
        let mut failed_at = None;
        while let Some(good) = self.weak.read(last_unit.saturating_sub(unit)) {
            unit += good + 1;
            match policy {
                OnReadError::Retry => anchor_ns += self.weak.retry_ns() as i64,
                OnReadError::FailFast => {
                    stop = logical_end.min(unit * UNIT);
                    failed_at = Some(piece.logical.max((unit - 1) * UNIT));
                    break;
                }
            }
        }
        let end = self.geometry.end(media(stop));
        self.track = end.track;
        Transfer {
            done_ns: (anchor_ns + end.sweep_ns as i64) as u64,
            last: *piece,
            anchor_ns,
            failed_at,
        }
    }

    /// Interrupt a transfer: the head is at the place it has reached in the last piece.
    pub(super) fn stop(&mut self, transfer: &Transfer, now_ns: u64) {
        let sweep_ns = now_ns as i64 - transfer.anchor_ns;
        let last = transfer.last;
        let reached = match u64::try_from(sweep_ns) {
            Ok(sweep_ns) => self.geometry.byte_at(sweep_ns),
            Err(_) => last.media,
        };
        let reached = reached.clamp(last.media + 1, last.media + last.length);
        self.track = self.geometry.end(reached).track;
    }

    /// Read ahead after a transfer, up to `until` at most.
    pub(super) fn read_ahead(&self, transfer: &Transfer, until: u64) -> ReadAhead {
        let last = transfer.last;
        let from = last.logical + last.length;
        let mut ahead = ReadAhead {
            anchor_ns: transfer.anchor_ns,
            home: last.media - last.logical,
            from,
            until: from,
            held_ns: None,
        };
        self.extend(&mut ahead, until);
        ahead
    }

    /// Make the read-ahead uninterruptible up to `until`, or to its end.
    pub(super) fn hold(&self, ahead: &mut ReadAhead, until: u64) {
        let end = self.geometry.end(ahead.home + until.min(ahead.until));
        ahead.held_ns = Some((ahead.anchor_ns + end.sweep_ns as i64) as u64);
    }

    /// Extend the read-ahead to `until`, but not to a sector that needs a retry.
    pub(super) fn extend(&self, ahead: &mut ReadAhead, until: u64) {
        let good = ahead
            .from
            .div_ceil(UNIT)
            .saturating_add(self.weak.good())
            .saturating_mul(UNIT);
        ahead.until = ahead.until.max(until).min(good).max(ahead.from);
    }

    /// Advance the read-ahead to its position at `now_ns`.
    pub(super) fn follow(&mut self, ahead: &mut ReadAhead, now_ns: u64) {
        let sweep_ns = now_ns as i64 - ahead.anchor_ns;
        let passed = self
            .geometry
            .byte_at(sweep_ns as u64)
            .saturating_sub(ahead.home);
        let reached = passed.clamp(ahead.from, ahead.until);
        if reached > ahead.from {
            self.weak
                .read(reached.div_ceil(UNIT) - ahead.from.div_ceil(UNIT));
            self.track = self.geometry.end(ahead.home + reached).track;
            ahead.from = reached;
        }
    }

    /// Read on to the end of a request that the head is about to reach.
    pub(super) fn ride(&mut self, ahead: &ReadAhead, end: u64, policy: OnReadError) -> Transfer {
        let piece = Piece {
            logical: ahead.from,
            media: ahead.home + ahead.from,
            length: end - ahead.from,
            writes: false,
        };
        self.read(&piece, ahead.anchor_ns, ahead.from.div_ceil(UNIT), policy)
    }
}
