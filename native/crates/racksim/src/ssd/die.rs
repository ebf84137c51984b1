//! A die: its queues, its current work, and the choice of the next.

use std::collections::VecDeque;

use super::collection::{Collection, Step};
use super::ftl::{Ftl, Stream};

/// A page read of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRead {
    /// The command, by its place in the table of commands.
    pub command: u32,
    /// The page, counted through the drive.
    pub page: u32,
    /// Units that come from the flash.
    pub units: u32,
    /// Bytes of them that go to the host.
    pub host_bytes: u32,
}

/// A row of host data on its way into flash.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub block: u32,
    /// Units of host data; the rest is padding.
    pub units: u32,
    pub is_full: bool,
    /// Commands that are complete only when the row is programmed.
    pub awaited_by: Vec<usize>,
}

impl Row {
    pub fn new(block: u32) -> Self {
        Self {
            block,
            units: 0,
            is_full: false,
            awaited_by: Vec::new(),
        }
    }
}

/// The work of a die.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Read(PageRead),
    /// Program the first of the rows.
    Program,
    /// A step of its garbage collection.
    Collect(Step),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Die {
    pub work: Option<Work>,
    pub reads: VecDeque<PageRead>,
    /// Oldest first. The first `filled` have all their bytes; the last may have room.
    pub rows: VecDeque<Row>,
    pub filled: usize,
    pub collection: Option<Collection>,
    /// The page in its register, read last. Another read of it needs no time of the flash.
    pub held: Option<u32>,
    /// Reads served before an older program or erase.
    passed: u32,
}

impl Die {
    /// The next work of an idle die: reads first, but no more than `reads_ahead` before a waiting program or erase.
    /// With `in_background` it collects even if free blocks suffice.
    #[inline]
    pub fn next(&mut self, ftl: &Ftl, reads_ahead: u32, in_background: bool) -> Option<Work> {
        let waiting = self.next_change(ftl, in_background);
        if waiting.is_none() {
            self.passed = 0;
        } else if self.passed >= reads_ahead || self.reads.is_empty() {
            self.passed = 0;
            return waiting;
        } else {
            self.passed += 1;
        }
        self.reads.pop_front().map(Work::Read)
    }

    /// The next program or erase, or the next read in preparation of one.
    fn next_change(&self, ftl: &Ftl, in_background: bool) -> Option<Work> {
        let has_row = self.filled > 0;
        match &self.collection {
            Some(collection)
                if collection.is_due()
                    || !has_row
                        && (in_background || !ftl.has_room(collection.die, Stream::Host)) =>
            {
                Some(Work::Collect(collection.step(ftl)))
            }
            _ => has_row.then_some(Work::Program),
        }
    }
}
