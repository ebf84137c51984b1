//! The global allocator: large units of the drives of a pool.

use std::collections::BTreeSet;

use crate::drives::{DriveId, Layout, PoolDrive};
use crate::refusal::Refusal;

/// A large part of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// The drive.
    pub drive: DriveId,
    /// First byte.
    pub offset: u64,
}

/// Units of all drives, shared by the clients of a pool.
#[derive(Debug, Clone)]
pub struct GlobalAllocator {
    layout: Layout,
    drives: Vec<PoolDrive>,
    /// Offsets of free units of each drive.
    free: Vec<BTreeSet<u64>>,
}

impl GlobalAllocator {
    /// All units of these drives, free. What is left of a drive beyond its last whole unit is not used.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for sizes that do not fit together or on the drives.
    pub fn new(layout: Layout, drives: &[PoolDrive]) -> Result<Self, Refusal> {
        layout.check(drives)?;
        let units = |drive: &PoolDrive| {
            (0..drive.bytes / layout.unit_bytes)
                .map(|number| number * layout.unit_bytes)
                .collect()
        };
        Ok(Self {
            layout,
            drives: drives.to_vec(),
            free: drives.iter().map(units).collect(),
        })
    }

    /// Sizes and replication.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The drives.
    #[must_use]
    pub fn drives(&self) -> &[PoolDrive] {
        &self.drives
    }

    /// Free units of a drive.
    #[must_use]
    pub fn free_units(&self, drive: DriveId) -> usize {
        self.free[drive.index()].len()
    }

    /// Hand out the first free unit of a drive, if it has one.
    pub fn take(&mut self, drive: DriveId) -> Option<Unit> {
        let offset = self.free[drive.index()].pop_first()?;
        Some(Unit { drive, offset })
    }

    /// Take a unit back.
    ///
    /// # Errors
    /// [`Refusal::NotAllocated`] for one that is free or that no drive has.
    pub fn give_back(&mut self, unit: Unit) -> Result<(), Refusal> {
        let bytes = self.layout.unit_bytes;
        let refusal = Refusal::NotAllocated {
            drive: unit.drive.0,
            offset: unit.offset,
            bytes,
        };
        let Some(drive) = self.drives.get(unit.drive.index()) else {
            return Err(refusal);
        };
        let is_unit = unit.offset % bytes == 0 && unit.offset + bytes <= drive.bytes;
        if is_unit && self.free[unit.drive.index()].insert(unit.offset) {
            return Ok(());
        }
        Err(refusal)
    }
}
