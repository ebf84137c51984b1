//! Drives of a pool, and places on them.

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// A drive by its number in the pool, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DriveId(pub u32);

impl DriveId {
    /// Its place in a list of all drives.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A drive of the pool: the box it is in, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolDrive {
    /// The number of its box: replicas are spread over boxes where there are several.
    pub in_box: u32,
    /// Byte count.
    pub bytes: u64,
}

/// A replica of a blob: a place on a drive, of the size of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The drive.
    pub drive: DriveId,
    /// First byte.
    pub offset: u64,
}

/// The sizes of both levels of allocation, and the replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// A unit of the global allocator.
    pub unit_bytes: u64,
    /// A blob of a local allocator.
    pub blob_bytes: u64,
    /// Replicas of each blob, on different drives.
    pub replicas: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            unit_bytes: 64 << 20,
            blob_bytes: 1 << 20,
            replicas: 2,
        }
    }
}

impl Layout {
    /// Blobs in a unit.
    #[must_use]
    pub fn blobs_per_unit(&self) -> u64 {
        self.unit_bytes / self.blob_bytes
    }

    /// Check the sizes, and that such blobs fit on these drives; the error names the wrong key.
    ///
    /// # Errors
    /// [`Refusal::Invalid`].
    pub fn check(&self, drives: &[PoolDrive]) -> Result<(), Refusal> {
        let wrong = |what: String| Err(Refusal::Invalid(what));
        if self.blob_bytes < 4096 || self.blob_bytes % 4096 != 0 {
            return wrong(format!(
                "blob_bytes is {}; give a multiple of 4096",
                self.blob_bytes
            ));
        }
        if self.unit_bytes == 0 || self.unit_bytes % self.blob_bytes != 0 {
            return wrong(format!(
                "unit_bytes is {}; give a multiple of blob_bytes {}",
                self.unit_bytes, self.blob_bytes
            ));
        }
        if self.replicas == 0 {
            return wrong("replicas is 0; give at least 1".to_owned());
        }
        let large_enough = drives.iter().filter(|one| one.bytes >= self.unit_bytes);
        let count = large_enough.count();
        if count < self.replicas {
            return wrong(format!(
                "{} replicas need as many drives of unit_bytes {} or more, and {count} of {} are so large",
                self.replicas,
                self.unit_bytes,
                drives.len()
            ));
        }
        Ok(())
    }
}
