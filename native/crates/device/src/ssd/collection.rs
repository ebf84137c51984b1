//! Garbage collection: making a block free by copying what is live in it.

use super::ftl::Ftl;

/// A die collects while it has fewer free blocks than this.
pub(super) const FREE_BLOCKS_WANTED: usize = 3;

/// What a collection does to its die next.
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
    pub block: u32,
    /// The first row not gathered yet.
    next_row: u32,
    /// Units that were live in the beginning: what there is to copy.
    live: u32,
    /// Units that become free.
    gain: u32,
    copied: u32,
    /// Units of host data programmed since the beginning.
    programmed: u32,
    /// Blocks of the rows of copies to be programmed, the last first.
    full_rows: Vec<u32>,
}

impl Collection {
    pub fn new(block: u32, live: u32, ftl: &Ftl) -> Self {
        Self {
            block,
            next_row: 0,
            live,
            gain: ftl.geometry().block_units() - live,
            copied: 0,
            programmed: 0,
            full_rows: Vec::new(),
        }
    }

    /// Whether it is the collection's turn rather than the host's. They alternate so that a block's worth of copying
    /// is spread over the host data that its space will take.
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

    /// A row has been read: its live units move.
    pub fn gathered(&mut self, row: u32, units: u32, ftl: &mut Ftl) {
        self.next_row = row + 1;
        self.copied += units;
        ftl.copy_row(self.block, row, |block| self.full_rows.insert(0, block));
    }

    /// A row of copies has been programmed.
    pub fn copies_programmed(&mut self) {
        self.full_rows.pop();
    }

    /// The host got units of data programmed on the same die.
    pub fn host_programmed(&mut self, units: u32) {
        self.programmed += units;
    }
}
