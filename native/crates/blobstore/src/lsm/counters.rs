//! Counts of the work of a database.

use serde::Serialize;

/// Counts since the database was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Bytes of records that were put.
    pub put_bytes: u64,
    /// Bytes appended to logs, in whole blocks.
    pub log_bytes: u64,
    /// Bytes of tables written by flushes.
    pub flushed_bytes: u64,
    /// Bytes read by compactions.
    pub compaction_read_bytes: u64,
    /// Bytes written by compactions.
    pub compaction_written_bytes: u64,
    /// Compactions that have ended.
    pub compactions: u64,
    /// Gets and scans.
    pub lookups: u64,
    /// Blocks that they read from drives.
    pub blocks_read: u64,
    /// Blocks that they found in the cache.
    pub cache_hits: u64,
    /// Puts that waited for a flush or a compaction.
    pub stalled_puts: u64,
}

impl Counters {
    /// Those since an earlier state.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            put_bytes: self.put_bytes - before.put_bytes,
            log_bytes: self.log_bytes - before.log_bytes,
            flushed_bytes: self.flushed_bytes - before.flushed_bytes,
            compaction_read_bytes: self.compaction_read_bytes - before.compaction_read_bytes,
            compaction_written_bytes: self.compaction_written_bytes
                - before.compaction_written_bytes,
            compactions: self.compactions - before.compactions,
            lookups: self.lookups - before.lookups,
            blocks_read: self.blocks_read - before.blocks_read,
            cache_hits: self.cache_hits - before.cache_hits,
            stalled_puts: self.stalled_puts - before.stalled_puts,
        }
    }

    /// Bytes written, before replication, for each byte put; `None` without puts.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.log_bytes + self.flushed_bytes + self.compaction_written_bytes;
        (self.put_bytes > 0).then(|| written as f64 / self.put_bytes as f64)
    }

    /// Blocks read from drives for each get or scan; `None` without them.
    #[must_use]
    pub fn read_amplification(&self) -> Option<f64> {
        (self.lookups > 0).then(|| self.blocks_read as f64 / self.lookups as f64)
    }
}
