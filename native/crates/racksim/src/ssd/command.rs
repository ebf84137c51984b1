//! A command under execution.

use std::ops::Range;

use super::geometry::UNIT_BYTES;
use crate::{Io, Ticket};

/// A request in progress.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub ticket: Ticket,
    pub io: Io,
    /// Whether it completes only once its data is in flash.
    pub is_durable: bool,
    /// The first unit that is not in the write buffer yet.
    pub next_unit: u32,
    /// Number of page reads and rows that it waits for.
    pub awaits: u32,
    /// The time at which the last of its data has moved.
    pub moved_ns: u64,
    /// The stream that it continues, if it is a read.
    pub stream: Option<u64>,
}

impl Command {
    pub fn end(&self) -> u64 {
        self.io.offset + self.io.length
    }

    /// The units that it touches.
    pub fn units(&self) -> Range<u32> {
        units_of(&self.io)
    }

    /// Number of bytes of a unit that it touches.
    pub fn bytes_in(&self, unit: u32) -> u32 {
        let start = u64::from(unit) * UNIT_BYTES;
        (self.end().min(start + UNIT_BYTES) - self.io.offset.max(start)) as u32
    }
}

/// The units that a request touches.
pub(super) fn units_of(io: &Io) -> Range<u32> {
    let first = io.offset / UNIT_BYTES;
    let end = match io.length {
        0 => first,
        _ => (io.offset + io.length).div_ceil(UNIT_BYTES),
    };
    first as u32..end as u32
}
