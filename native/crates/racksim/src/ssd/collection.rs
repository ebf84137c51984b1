//! Garbage collection: freeing a block by copying its live data.
//!
//! A die collects the block with the least live data while free blocks are few: at the rate of host writes, or as fast
//! as it can if the host waits for space or has been idle for a while.

use super::ftl::Ftl;

/// A die collects while it has fewer free blocks than this.
pub(super) const FREE_BLOCKS_WANTED: usize = 3;

/// Idle time of the host after which collection runs in the background.
pub(super) const IDLE_NS: u64 = 10_000_000;

/// The next step of a collection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Read the live units of a row of the block.
    Gather { row: u32, units: u32 },
    /// Program a row of copies into this block.
    Program { block: u32 },
    /// Erase the block.
    Erase,
}

/// The collection of one block.
#[derive(Debug, Clone)]
pub(super) struct Collection {
    pub die: u32,
    pub block: u32,
    /// The first row not gathered yet.
    next_row: u32,
    /// Live units at the start: those to copy.
    live: u32,
    /// Units that the collection frees.
    gain: u32,
    copied: u32,
    /// Units of host data programmed since the start.
    programmed: u32,
    /// Blocks of the rows of copies to be programmed, the last first.
    full_rows: Vec<u32>,
}

impl Collection {
    /// Start with the cheapest block of a die; `None` if no block would free space.
    pub fn begin(die: u32, ftl: &Ftl) -> Option<Self> {
        let (block, live) = ftl.cheapest(die)?;
        Some(Self {
            die,
            block,
            next_row: 0,
            live,
            gain: ftl.geometry().block_units() - live,
            copied: 0,
            programmed: 0,
            full_rows: Vec::new(),
        })
    }

    /// Whether copying lags behind the host's programs: the work for a block is spread over the host
    /// data that will take its space.
    pub fn is_due(&self) -> bool {
        u64::from(self.copied) * u64::from(self.gain)
            <= u64::from(self.programmed) * u64::from(self.live)
    }

    pub fn step(&self, ftl: &Ftl) -> Step {
        if let Some(&block) = self.full_rows.last() {
            return Step::Program { block };
        }
        (self.next_row..ftl.geometry().rows)
            .map(|row| (row, ftl.live_in_row(self.block, row)))
            .find(|&(_, units)| units > 0)
            .map_or(Step::Erase, |(row, units)| Step::Gather { row, units })
    }

    /// A row has been read: append its live units to the copies.
    pub fn gathered(&mut self, row: u32, units: u32, ftl: &mut Ftl) {
        self.next_row = row + 1;
        self.copied += units;
        ftl.copy_row(self.block, row, |block| self.full_rows.insert(0, block));
    }

    /// A row of copies has been programmed.
    pub fn copies_programmed(&mut self) {
        self.full_rows.pop();
    }

    /// Count units of host data programmed on the same die.
    pub fn host_programmed(&mut self, units: u32) {
        self.programmed += units;
    }
}
