//! Parameters of an SSD.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::geometry::{Geometry, UNIT_BYTES};

/// Blocks that a die has at least for what the host can store, unless the drive is too small: with few blocks, the
/// ones that are open or kept free would eat up the over-provisioning.
const LEAST_USER_BLOCKS: u64 = 128;

/// Blocks of a die beyond those for what the host can store, at least: open for host data, open for copies, kept free
/// for copies, and some for the garbage collector to gain.
const LEAST_SPARE_BLOCKS: u64 = 6;

/// The parameters of an SSD, as a drive profile gives them. Times are of one operation by itself; `mb_s` counts
/// 10^6 bytes a second.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParameters {
    /// Channels between controller and flash.
    pub channels: u32,
    /// Dies on a channel. Each does one thing at a time.
    pub dies_per_channel: u32,
    /// Planes of a die, which are programmed and erased together; hosts read one of them at a time.
    pub planes: u32,
    /// Data bytes of a flash page, in KiB: a multiple of the 4 KiB that the drive maps.
    pub page_kib: u32,
    /// Pages of an erase block in one plane. A drive simulated smaller than its product has as many dies with smaller
    /// blocks, erased in proportionally less time.
    pub pages_per_block: u32,
    /// Time to read a page into the die's register.
    pub read_us: f64,
    /// Time to program a page on all planes.
    pub program_us: f64,
    /// Time to erase a block on all planes.
    pub erase_us: f64,
    /// Variation of read and program times in percent of the time, uniformly distributed.
    pub variation_percent: f64,
    /// Data rate of a channel.
    pub channel_mb_s: f64,
    /// Data rate between host and drive.
    pub interface_mb_s: f64,
    /// Whether data moves to and from the host at the same time.
    pub full_duplex: bool,
    /// Time the controller spends on each command, one after another: the bound on commands a second.
    pub command_us: f64,
    /// Time of a read besides command, flash and transfers.
    pub read_overhead_us: f64,
    /// Time of a write besides command and transfer.
    pub write_overhead_us: f64,
    /// Commands the drive accepts at once; others wait outside, in order.
    pub queue_depth: u32,
    /// Written data that the drive holds in memory until it is programmed.
    pub write_buffer_kib: u32,
    /// Whether capacitors save the write buffer when power is cut, so that a write in it is on stable media.
    pub power_loss_protection: bool,
    /// Flash beyond the capacity that the host sees, in percent of that capacity.
    pub over_provisioning_percent: f64,
    /// Data that the drive reads ahead of a sequential stream of reads; 0 where it does not.
    #[serde(default)]
    pub read_ahead_kib: u32,
    /// Maximum number of reads that go ahead of a program or erase that waits for the same die.
    pub reads_ahead: u32,
}

impl SsdParameters {
    /// Check the parameters for a drive of `bytes`; the error names the wrong one and its range.
    pub fn check(&self, bytes: u64) -> Result<(), String> {
        within("channels", self.channels, 1..=64)?;
        within("dies_per_channel", self.dies_per_channel, 1..=64)?;
        within("planes", self.planes, 1..=8)?;
        within("page_kib", self.page_kib, 4..=64)?;
        if u64::from(self.page_kib) * 1024 % UNIT_BYTES != 0 {
            return Err(format!(
                "page_kib is {}; give a multiple of 4",
                self.page_kib
            ));
        }
        within("pages_per_block", self.pages_per_block, 1..=16_384)?;
        within("read_us", self.read_us, 0.1..=10_000.0)?;
        within("program_us", self.program_us, 0.1..=100_000.0)?;
        within("erase_us", self.erase_us, 0.1..=1_000_000.0)?;
        within("variation_percent", self.variation_percent, 0.0..=90.0)?;
        within("channel_mb_s", self.channel_mb_s, 1.0..=100_000.0)?;
        within("interface_mb_s", self.interface_mb_s, 1.0..=1_000_000.0)?;
        within("command_us", self.command_us, 0.0..=1_000.0)?;
        within("read_ahead_kib", self.read_ahead_kib, 0..=16 << 10)?;
        within("read_overhead_us", self.read_overhead_us, 0.0..=10_000.0)?;
        within("write_overhead_us", self.write_overhead_us, 0.0..=10_000.0)?;
        within("queue_depth", self.queue_depth, 1..=65_536)?;
        within(
            "write_buffer_kib",
            self.write_buffer_kib,
            self.smallest_buffer_kib()..=16 << 20,
        )?;
        within(
            "over_provisioning_percent",
            self.over_provisioning_percent,
            1.0..=400.0,
        )?;
        within("reads_ahead", self.reads_ahead, 0..=1_000_000)?;
        self.geometry(bytes).map(drop)
    }

    /// The flash of a drive of `bytes` bytes. Fails above some 14 TiB of flash, the range of an address.
    pub(super) fn geometry(&self, bytes: u64) -> Result<Geometry, String> {
        let dies = self.channels * self.dies_per_channel;
        let page_units = self.page_kib / (UNIT_BYTES / 1024) as u32;
        let row_units = self.planes * page_units;
        let units = bytes.div_ceil(UNIT_BYTES);
        let user_rows = units.div_ceil(u64::from(dies * row_units)).max(1);
        let rows = (user_rows / LEAST_USER_BLOCKS).clamp(1, u64::from(self.pages_per_block));
        let flash_rows = user_rows as f64 * (1.0 + self.over_provisioning_percent / 100.0);
        let blocks =
            ((flash_rows / rows as f64) as u64).max(user_rows.div_ceil(rows) + LEAST_SPARE_BLOCKS);
        let addresses = u64::from(dies) * blocks * rows * u64::from(row_units);
        if addresses >= u64::from(u32::MAX) {
            return Err(format!(
                "an SSD of {bytes} bytes is too large to simulate; give it at most 8 TiB"
            ));
        }
        Ok(Geometry {
            units: units as u32,
            channels: self.channels,
            dies,
            blocks: blocks as u32,
            rows: rows as u32,
            row_units,
            page_units,
        })
    }

    /// Two pages on all planes of all dies: one that fills while the other is programmed. With less, a buffer full of
    /// pages that wait for their last bytes would never empty.
    fn smallest_buffer_kib(&self) -> u32 {
        2 * self.channels * self.dies_per_channel * self.planes * self.page_kib
    }
}

fn within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!(
        "{name} is {value}; give {} to {}",
        range.start(),
        range.end()
    ))
}
