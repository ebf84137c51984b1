//! Where things are in the flash: counts of dies, blocks, rows and units.

use super::SsdParameters;

/// What the drive maps: logical bytes, and flash, go by units of this size.
pub(super) const UNIT_BYTES: u64 = 4096;

/// Blocks that a die has at least for what the host can store, unless the drive is too small: with few blocks, the
/// ones that are open or kept free would eat up the over-provisioning.
const LEAST_USER_BLOCKS: u64 = 128;

/// Blocks of a die beyond those for what the host can store, at least: open for host data, open for copies, kept free
/// for copies, and some for the garbage collector to gain.
const LEAST_SPARE_BLOCKS: u64 = 6;

/// The shape of a drive's flash. A row is a page on all planes of a die: what is programmed at once. Addresses count
/// units; block `b` of the drive lies on die `b / blocks` and holds the addresses from `b * block_units()` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    /// Units that the host can address.
    pub units: u32,
    pub channels: u32,
    pub dies: u32,
    /// Of a die.
    pub blocks: u32,
    /// Of a block.
    pub rows: u32,
    pub row_units: u32,
    pub page_units: u32,
}

impl Geometry {
    /// The flash of a drive of `bytes` bytes, or why there is none: an address counts up to some 14 TiB.
    pub fn of(parameters: &SsdParameters, bytes: u64) -> Result<Self, String> {
        let dies = parameters.channels * parameters.dies_per_channel;
        let page_units = parameters.page_kib / (UNIT_BYTES / 1024) as u32;
        let row_units = parameters.planes * page_units;
        let units = bytes.div_ceil(UNIT_BYTES);
        let user_rows = units.div_ceil(u64::from(dies * row_units)).max(1);
        let rows = (user_rows / LEAST_USER_BLOCKS).clamp(1, u64::from(parameters.pages_per_block));
        let flash_rows = user_rows as f64 * (1.0 + parameters.over_provisioning_percent / 100.0);
        let blocks =
            ((flash_rows / rows as f64) as u64).max(user_rows.div_ceil(rows) + LEAST_SPARE_BLOCKS);
        let addresses = u64::from(dies) * blocks * rows * u64::from(row_units);
        if addresses >= u64::from(u32::MAX) {
            return Err(format!(
                "an SSD of {bytes} bytes is too large to simulate; give it at most 8 TiB"
            ));
        }
        Ok(Self {
            units: units as u32,
            channels: parameters.channels,
            dies,
            blocks: blocks as u32,
            rows: rows as u32,
            row_units,
            page_units,
        })
    }

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
