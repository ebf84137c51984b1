//! Identified sectors: 4 KiB sectors that name their drive, their address and the write that made them.
//!
//! Every sector carries its drive's serial, its own address, the generation and the seed of the write, a payload made
//! from these, a stamp in each 512-byte stripe and a CRC-32C over everything. A read therefore identifies its data
//! ([`Verdict`]). The layout is in `docs/reference/rackprobe.md` and in the module `layout`.

mod judge;
mod layout;
mod payload;

pub use judge::{judge, Expected, Finding, Verdict};
pub use layout::{Drive, Identity, SerialError, MAX_SERIAL_BYTES, SECTOR_BYTES};

/// Fill `buffer` with consecutive sectors of `drive`, the first at `lba` (counted in 4 KiB sectors).
///
/// # Panics
/// When the buffer is no whole number of sectors.
pub fn fill(buffer: &mut [u8], drive: &Drive, lba: u64, generation: u64, seed: u64) {
    assert_eq!(buffer.len() % SECTOR_BYTES, 0, "a buffer of whole sectors");
    for (sector, lba) in buffer.chunks_exact_mut(SECTOR_BYTES).zip(lba..) {
        let sector = sector.try_into().expect("a chunk is one sector");
        layout::write(sector, drive, lba, generation, seed);
    }
}
