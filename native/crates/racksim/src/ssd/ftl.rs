//! The flash translation layer: the mapping of logical units to flash, and the free blocks.

use std::collections::VecDeque;

use super::geometry::Geometry;

/// No block is open.
const NONE: u32 = u32::MAX;

/// Free blocks reserved for copies: without one, garbage could not be collected.
const KEPT_FOR_COPIES: usize = 1;

/// The source of data. Each stream of a die fills a block of its own, so that long-lived data (it has been copied)
/// and new data do not mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Host,
    Copy,
}

/// The place of the newest version of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Never written, or trimmed since.
    Nowhere,
    /// In the controller's memory, its row not yet programmed.
    Memory,
    /// On the flash of a die; pages count through the whole drive.
    Flash { die: u32, page: u32 },
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Units whose newest version is here.
    live: u32,
    /// Units appended, or padded.
    filled: u32,
    /// Programmed rows.
    programmed: u32,
}

#[derive(Debug, Clone)]
struct DieBlocks {
    /// Least recently erased first, for wear levelling.
    free: VecDeque<u32>,
    /// The open block of each stream.
    open: [u32; 2],
}

/// A page-mapped translation layer with units of 4 KiB. Its tables are zero until used, so the memory of what was
/// never written is never touched.
#[derive(Debug, Clone)]
pub(super) struct Ftl {
    geometry: Geometry,
    /// By unit: its address plus one, or 0.
    map: Vec<u32>,
    /// By address: the unit that was put there. Valid only if `live` is set.
    owner: Vec<u32>,
    /// By address: whether it holds its unit's newest version.
    live: Vec<u64>,
    blocks: Vec<Block>,
    dies: Vec<DieBlocks>,
}

impl Ftl {
    pub fn new(geometry: Geometry) -> Self {
        let addresses = geometry.addresses() as usize;
        let dies = (0..geometry.dies)
            .map(|die| DieBlocks {
                free: (die * geometry.blocks..(die + 1) * geometry.blocks).collect(),
                open: [NONE; 2],
            })
            .collect();
        Self {
            geometry,
            map: vec![0; geometry.units as usize],
            owner: vec![0; addresses],
            live: vec![0; addresses.div_ceil(64)],
            blocks: vec![Block::default(); (geometry.dies * geometry.blocks) as usize],
            dies,
        }
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    pub fn place(&self, unit: u32) -> Place {
        let Some(address) = self.map[unit as usize].checked_sub(1) else {
            return Place::Nowhere;
        };
        let block = self.block_of(address);
        let within = address - block * self.geometry.block_units();
        if within >= self.blocks[block as usize].programmed * self.geometry.row_units {
            return Place::Memory;
        }
        Place::Flash {
            die: block / self.geometry.blocks,
            page: address / self.geometry.page_units,
        }
    }

    /// Have the processor fetch the entry of a unit, which will be asked for soon: the table is larger than its caches.
    pub fn foresee(&self, unit: u32) {
        #[cfg(target_arch = "x86_64")]
        if let Some(entry) = self.map.get(unit as usize) {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: a prefetch reads nothing as far as the program can tell, and the entry is there.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = unit;
    }

    /// Blocks of a die that are erased and not open.
    pub fn free_blocks(&self, die: u32) -> usize {
        self.dies[die as usize].free.len()
    }

    /// Whether a stream can take another unit on this die.
    pub fn has_room(&self, die: u32, stream: Stream) -> bool {
        let blocks = &self.dies[die as usize];
        let kept = match stream {
            Stream::Host => KEPT_FOR_COPIES,
            Stream::Copy => 0,
        };
        blocks.open[stream as usize] != NONE || blocks.free.len() > kept
    }

    /// Map a unit to the next address of a stream on a die; returns the block, and whether that fills a row.
    /// There must be room.
    pub fn append(&mut self, die: u32, stream: Stream, unit: u32) -> (u32, bool) {
        self.unmap(unit);
        let block = self.open(die, stream);
        let address = block * self.geometry.block_units() + self.blocks[block as usize].filled;
        self.map[unit as usize] = address + 1;
        self.owner[address as usize] = unit;
        self.live[address as usize / 64] |= 1 << (address % 64);
        self.blocks[block as usize].live += 1;
        (block, self.fill(die, stream, block, 1))
    }

    /// Pad the row that a stream has begun on a die.
    pub fn pad(&mut self, die: u32, stream: Stream) {
        let block = self.dies[die as usize].open[stream as usize];
        if block == NONE {
            return;
        }
        let begun = self.blocks[block as usize].filled % self.geometry.row_units;
        if begun > 0 {
            self.fill(die, stream, block, self.geometry.row_units - begun);
        }
    }

    /// Unmap a unit.
    pub fn unmap(&mut self, unit: u32) {
        let mapped = std::mem::take(&mut self.map[unit as usize]);
        if let Some(address) = mapped.checked_sub(1) {
            self.live[address as usize / 64] &= !(1 << (address % 64));
            let block = self.block_of(address);
            self.blocks[block as usize].live -= 1;
        }
    }

    /// The next row of a block has been programmed.
    pub fn programmed(&mut self, block: u32) {
        self.blocks[block as usize].programmed += 1;
    }

    /// The block of a die with the fewest live units, and their number; `None` if no block would
    /// free space.
    pub fn cheapest(&self, die: u32) -> Option<(u32, u32)> {
        let first = die * self.geometry.blocks;
        let blocks = &self.blocks[first as usize..(first + self.geometry.blocks) as usize];
        (first..)
            .zip(blocks)
            .filter(|(_, block)| block.programmed == self.geometry.rows)
            .map(|(number, block)| (number, block.live))
            .min_by_key(|&(_, live)| live)
            .filter(|&(_, live)| live < self.geometry.block_units())
    }

    /// Number of live units in a block's row.
    pub fn live_in_row(&self, block: u32, row: u32) -> u32 {
        self.row(block, row)
            .filter(|&address| self.is_live(address))
            .count() as u32
    }

    /// Append a row's live units to the copies of its die, and report the block of each row that this fills.
    pub fn copy_row(&mut self, block: u32, row: u32, mut row_filled: impl FnMut(u32)) {
        let die = block / self.geometry.blocks;
        for address in self.row(block, row) {
            if self.is_live(address) {
                let (to, is_full) = self.append(die, Stream::Copy, self.owner[address as usize]);
                if is_full {
                    row_filled(to);
                }
            }
        }
    }

    /// A block without live units can be used again.
    pub fn erased(&mut self, block: u32) {
        debug_assert_eq!(self.blocks[block as usize].live, 0);
        self.blocks[block as usize] = Block::default();
        self.dies[(block / self.geometry.blocks) as usize]
            .free
            .push_back(block);
    }

    /// Unmap the units of a block whose rows have not been programmed.
    pub fn forget_memory(&mut self, block: u32) {
        let Block {
            filled, programmed, ..
        } = self.blocks[block as usize];
        let first = block * self.geometry.block_units();
        for address in first + programmed * self.geometry.row_units..first + filled {
            if self.is_live(address) {
                self.unmap(self.owner[address as usize]);
            }
        }
    }

    /// Mark all appended units as programmed.
    pub fn settle(&mut self) {
        for die in 0..self.geometry.dies {
            self.pad(die, Stream::Host);
            self.pad(die, Stream::Copy);
        }
        for block in &mut self.blocks {
            block.programmed = block.filled / self.geometry.row_units;
        }
    }

    fn open(&mut self, die: u32, stream: Stream) -> u32 {
        let blocks = &mut self.dies[die as usize];
        let open = &mut blocks.open[stream as usize];
        if *open == NONE {
            *open = blocks.free.pop_front().expect("a stream has room");
        }
        *open
    }

    /// Mark units of a stream's open block as filled; returns whether a row is full now.
    fn fill(&mut self, die: u32, stream: Stream, block: u32, units: u32) -> bool {
        let filled = &mut self.blocks[block as usize].filled;
        *filled += units;
        let is_row_full = *filled % self.geometry.row_units == 0;
        if *filled == self.geometry.block_units() {
            self.dies[die as usize].open[stream as usize] = NONE;
        }
        is_row_full
    }

    fn row(&self, block: u32, row: u32) -> std::ops::Range<u32> {
        let first = block * self.geometry.block_units() + row * self.geometry.row_units;
        first..first + self.geometry.row_units
    }

    fn is_live(&self, address: u32) -> bool {
        self.live[address as usize / 64] >> (address % 64) & 1 == 1
    }

    fn block_of(&self, address: u32) -> u32 {
        address / self.geometry.block_units()
    }
}

#[cfg(test)]
mod tests;
