//! Flash geometry: counts of dies, blocks, rows and units.

/// The mapping unit of logical bytes and flash.
pub(super) const UNIT_BYTES: u64 = 4096;

/// The geometry of a drive's flash. A row is a page on all planes of a die, programmed at once. Addresses count
/// units; block `b` of the drive lies on die `b / blocks` and holds the addresses from `b * block_units()` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    /// Units that the host can address.
    pub units: u32,
    pub channels: u32,
    pub dies: u32,
    /// Blocks per die.
    pub blocks: u32,
    /// Rows per block.
    pub rows: u32,
    pub row_units: u32,
    pub page_units: u32,
}

impl Geometry {
    pub fn block_units(&self) -> u32 {
        self.rows * self.row_units
    }

    pub fn addresses(&self) -> u32 {
        self.dies * self.blocks * self.block_units()
    }

    /// Channels come first, so that neighbouring dies share none.
    pub fn channel(&self, die: u32) -> usize {
        (die % self.channels) as usize
    }
}
