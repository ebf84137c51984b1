//! The settings of the tree.

use serde::{Deserialize, Serialize};

use crate::drives::Layout;
use crate::refusal::Refusal;

/// Levels below the first.
pub const LOWEST_LEVEL: usize = 6;

/// The settings of the tree, in the proportions of RocksDB's defaults: sizes are a sixteenth of them, as simulated drives
/// are so much smaller than real ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeOptions {
    /// A key with its value.
    pub record_bytes: u32,
    /// The unit of reads and of the cache.
    pub block_bytes: u32,
    /// The memtable's size at which it is written out (`write_buffer_size`).
    pub memtable_bytes: u64,
    /// Memtables, full ones included, at which writes wait (`max_write_buffer_number`).
    pub memtables: usize,
    /// The size of a table below the first level (`target_file_size_base`).
    pub table_bytes: u64,
    /// Tables of the first level that begin a compaction (`level0_file_num_compaction_trigger`).
    pub level0_tables: usize,
    /// Tables of the first level at which writes wait (`level0_stop_writes_trigger`).
    pub level0_stop: usize,
    /// The size of the second level (`max_bytes_for_level_base`).
    pub level_base_bytes: u64,
    /// The size of a level relative to the one above (`max_bytes_for_level_multiplier`).
    pub level_ratio: u64,
    /// Share of tables that a filter does not exclude although they lack the key: 10 bits a key.
    pub false_positives: f64,
    /// Blocks kept in memory.
    pub cache_bytes: u64,
    /// The size of a request of flushes and compactions.
    pub background_bytes: u32,
    /// Requests of each flush or compaction in flight.
    pub background_depth: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            record_bytes: 1024,
            block_bytes: 4096,
            memtable_bytes: 4 << 20,
            memtables: 2,
            table_bytes: 4 << 20,
            level0_tables: 4,
            level0_stop: 36,
            level_base_bytes: 16 << 20,
            level_ratio: 10,
            false_positives: 0.01,
            cache_bytes: 2 << 20,
            background_bytes: 128 << 10,
            background_depth: 8,
        }
    }
}

impl TreeOptions {
    /// Check the settings for blobs of this size; the error names the wrong key.
    ///
    /// # Errors
    /// [`Refusal::Invalid`].
    pub fn check(&self, layout: &Layout) -> Result<(), Refusal> {
        let wrong = |what: String| Err(Refusal::Invalid(what));
        let (record, block) = (u64::from(self.record_bytes), u64::from(self.block_bytes));
        if record < 16 || block % record != 0 {
            return wrong(format!(
                "record_bytes is {record}; give 16 or more, of which block_bytes {block} is a multiple"
            ));
        }
        let background = u64::from(self.background_bytes);
        for (name, value, unit) in [
            ("block_bytes", block, 512),
            ("background_bytes", background, block),
            ("memtable_bytes", self.memtable_bytes, block),
            ("table_bytes", self.table_bytes, block),
            ("level_base_bytes", self.level_base_bytes, block),
        ] {
            if value == 0 || value % unit != 0 {
                return wrong(format!("{name} is {value}; give a multiple of {unit}"));
            }
        }
        if layout.blob_bytes % background != 0 {
            return wrong(format!(
                "background_bytes is {background}, of which blob_bytes {} is no multiple",
                layout.blob_bytes
            ));
        }
        for (name, value, least) in [
            ("memtables", self.memtables, 2),
            ("level0_tables", self.level0_tables, 1),
            ("level0_stop", self.level0_stop, self.level0_tables + 1),
            ("level_ratio", self.level_ratio as usize, 2),
            ("background_depth", self.background_depth, 1),
        ] {
            if value < least {
                return wrong(format!("{name} is {value}; give at least {least}"));
            }
        }
        if !(0.0..=1.0).contains(&self.false_positives) {
            return wrong(format!(
                "false_positives is {}; give 0 to 1",
                self.false_positives
            ));
        }
        Ok(())
    }

    /// The size from which on a level is compacted into the next one.
    #[must_use]
    pub fn level_bytes(&self, level: usize) -> u64 {
        let factor = self.level_ratio.saturating_pow(level as u32 - 1);
        self.level_base_bytes.saturating_mul(factor)
    }

    /// The level that records of so many bytes come to lie in after a full compaction.
    #[must_use]
    pub fn level_for(&self, bytes: u64) -> usize {
        let fits = |&level: &usize| self.level_bytes(level) >= bytes;
        (1..LOWEST_LEVEL).find(fits).unwrap_or(LOWEST_LEVEL)
    }
}
