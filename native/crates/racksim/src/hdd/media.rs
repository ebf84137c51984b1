//! The mapping of logical bytes to the media.

use std::collections::VecDeque;

use super::shingles::{Piece, Shingles};
use super::HddParameters;

/// The mapping of logical bytes to the media: linear, or that of a shingled drive.
#[derive(Debug, Clone)]
pub(super) struct Media {
    /// Logical bytes.
    pub(super) bytes: u64,
    shingles: Option<Shingles>,
    /// The remaining steps of merging a band.
    cleaning: VecDeque<Piece>,
}

impl Media {
    pub(super) fn new(parameters: &HddParameters, bytes: u64) -> Self {
        Self {
            bytes,
            shingles: parameters.smr.as_ref().map(|smr| Shingles::new(smr, bytes)),
            cleaning: VecDeque::new(),
        }
    }

    /// The capacity that the platters need.
    pub(super) fn media_bytes(&self) -> u64 {
        self.home(self.bytes)
    }

    /// The home location of a logical byte, ignoring a shingled drive's cache.
    pub(super) fn home(&self, logical: u64) -> u64 {
        logical + self.shingles.as_ref().map_or(0, Shingles::cache_bytes)
    }

    /// Whether all of these logical bytes are at their home location.
    pub(super) fn is_home(&self, start: u64, end: u64) -> bool {
        self.end_of_home(start) >= end
    }

    /// The end of the run of logical bytes at their home location, from this one on.
    pub(super) fn end_of_home(&self, start: u64) -> u64 {
        let cached = self
            .shingles
            .as_ref()
            .and_then(|shingles| shingles.next_cached(start));
        cached.unwrap_or(self.bytes)
    }

    /// Append the pieces that a read takes.
    pub(super) fn read(&self, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        match &self.shingles {
            Some(shingles) => shingles.read(start, end, pieces),
            None => pieces.push(self.piece(start, end, false)),
        }
    }

    /// Write bytes; appends the pieces that this takes.
    pub(super) fn write(&mut self, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        match &mut self.shingles {
            Some(shingles) => shingles.write(start, end, pieces),
            None => pieces.push(self.piece(start, end, true)),
        }
    }

    fn piece(&self, start: u64, end: u64, writes: bool) -> Piece {
        Piece {
            logical: start,
            media: start,
            length: end - start,
            writes,
        }
    }

    /// Trim bytes.
    pub(super) fn trim(&mut self, start: u64, end: u64) {
        if let Some(shingles) = &mut self.shingles {
            shingles.trim(start, end);
        }
    }

    /// Whether a band must be merged before these bytes can be written.
    pub(super) fn must_clean(&self, start: u64, end: u64) -> bool {
        let has_room = |shingles: &Shingles| shingles.has_room(start, end);
        !self.cleaning.is_empty() || !self.shingles.as_ref().is_none_or(has_room)
    }

    /// Whether no cached write is left to merge into a band.
    pub(super) fn is_clean(&self) -> bool {
        self.cleaning.is_empty() && self.shingles.as_ref().is_none_or(Shingles::is_clean)
    }

    /// The next step of merging a band, if any.
    pub(super) fn clean(&mut self) -> Option<Piece> {
        if let Some(shingles) = self.shingles.as_mut().filter(|_| self.cleaning.is_empty()) {
            shingles.clean(&mut self.cleaning);
        }
        self.cleaning.pop_front()
    }

    /// Power is lost: a band that was being merged counts as merged, as the drive's journal has it.
    pub(super) fn cut_power(&mut self) {
        self.cleaning.clear();
    }

    /// Reset to the state as delivered.
    pub(super) fn reset(&mut self) {
        self.cleaning.clear();
        if let Some(shingles) = &mut self.shingles {
            shingles.reset();
        }
    }

    /// Bands that were read and written again.
    pub(super) fn rewritten(&self) -> Option<u64> {
        self.shingles.as_ref().map(Shingles::rewritten)
    }
}
