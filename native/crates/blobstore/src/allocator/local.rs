//! The local allocator of a client: blobs, out of units of the global one.

use std::collections::{BTreeMap, BTreeSet};

use crate::allocator::global::{GlobalAllocator, Unit};
use crate::drives::{DriveId, Extent};
use crate::refusal::Refusal;

/// Blobs of one client. A unit whose blobs are all free goes back to the global allocator.
#[derive(Debug, Clone, Default)]
pub struct LocalAllocator {
    /// Free blobs by unit; a unit without any is listed all the same.
    units: BTreeMap<Unit, BTreeSet<u64>>,
    /// Blobs allocated so far: the turn of drives.
    turn: u64,
}

impl LocalAllocator {
    /// A client's allocator, which has no unit yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Units that the client holds.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Allocate a blob: an extent for each replica, on different drives, in different boxes as far as there are enough.
    /// Drives take turns, in every pairing of a first replica with the others.
    ///
    /// # Errors
    /// [`Refusal::Full`] where fewer drives than replicas have space.
    pub fn allocate(&mut self, global: &mut GlobalAllocator) -> Result<Vec<Extent>, Refusal> {
        let layout = global.layout();
        let drives = self.drives_in_turn(global);
        if drives.len() < layout.replicas {
            return Err(Refusal::Full {
                blob_bytes: layout.blob_bytes,
                with_space: drives.len(),
                drives: global.drives().len(),
                replicas: layout.replicas,
            });
        }
        let mut chosen: Vec<DriveId> = Vec::with_capacity(layout.replicas);
        let box_of = |drive: DriveId| global.drives()[drive.index()].in_box;
        for _ in 0..layout.replicas {
            let left = || drives.iter().filter(|drive| !chosen.contains(drive));
            let is_elsewhere =
                |drive: &&DriveId| chosen.iter().all(|other| box_of(*other) != box_of(**drive));
            let next = left().find(is_elsewhere).or_else(|| left().next());
            chosen.push(*next.expect("there are as many drives as replicas"));
        }
        self.turn += 1;
        Ok(chosen
            .into_iter()
            .map(|drive| self.allocate_on(drive, global))
            .collect())
    }

    /// Take the extents of a blob back.
    ///
    /// # Errors
    /// [`Refusal::NotAllocated`] for one that is not allocated; the others before it are free then.
    pub fn free(
        &mut self,
        extents: &[Extent],
        global: &mut GlobalAllocator,
    ) -> Result<(), Refusal> {
        let layout = global.layout();
        for extent in extents {
            let unit = Unit {
                drive: extent.drive,
                offset: extent.offset - extent.offset % layout.unit_bytes,
            };
            let is_blob = extent.offset % layout.blob_bytes == 0;
            let free = self.units.get_mut(&unit).filter(|_| is_blob);
            if !free.is_some_and(|free| free.insert(extent.offset)) {
                return Err(Refusal::NotAllocated {
                    drive: extent.drive.0,
                    offset: extent.offset,
                    bytes: layout.blob_bytes,
                });
            }
            if self.units[&unit].len() as u64 == layout.blobs_per_unit() {
                self.units.remove(&unit);
                global.give_back(unit)?;
            }
        }
        Ok(())
    }

    /// Drives with space for a blob, beginning with the one whose turn it is.
    fn drives_in_turn(&self, global: &GlobalAllocator) -> Vec<DriveId> {
        let count = global.drives().len() as u64;
        let first = self.turn % count;
        // A round later the others follow in another order, so that every pair of drives shares some blobs.
        let shift = self.turn / count % (count - 1).max(1);
        let others = (0..count - 1).map(|step| 1 + (step + shift) % (count - 1).max(1));
        std::iter::once(0)
            .chain(others)
            .map(|step| DriveId(((first + step) % count) as u32))
            .filter(|&drive| self.has_space(drive, global))
            .collect()
    }

    fn has_space(&self, drive: DriveId, global: &GlobalAllocator) -> bool {
        global.free_units(drive) > 0 || self.units_of(drive).any(|(_, free)| !free.is_empty())
    }

    fn units_of(&self, drive: DriveId) -> impl Iterator<Item = (&Unit, &BTreeSet<u64>)> {
        let at = |offset| Unit { drive, offset };
        self.units.range(at(0)..=at(u64::MAX))
    }

    fn allocate_on(&mut self, drive: DriveId, global: &mut GlobalAllocator) -> Extent {
        let layout = global.layout();
        let with_space = self.units_of(drive).find(|(_, free)| !free.is_empty());
        let unit = match with_space {
            Some((&unit, _)) => unit,
            None => {
                let unit = global
                    .take(drive)
                    .expect("the drive was found to have space");
                let blobs = (0..layout.blobs_per_unit())
                    .map(|number| unit.offset + number * layout.blob_bytes);
                self.units.insert(unit, blobs.collect());
                unit
            }
        };
        let free = self.units.get_mut(&unit).expect("it is listed");
        let offset = free.pop_first().expect("it has a free blob");
        Extent { drive, offset }
    }
}
