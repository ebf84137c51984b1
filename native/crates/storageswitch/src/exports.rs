//! The exports of the switch: the region of each tenant, by its name.

use nbd::proto::flag;
use nbdserver::{Exports, Offer};

use crate::switch::{Seat, Switch};

const PREFERRED_BLOCK: u32 = 4096;

impl Exports for Switch {
    type Export = Seat;

    fn names(&self) -> Vec<String> {
        let tenants = self.tenants().iter();
        tenants.map(|seat| seat.name().to_owned()).collect()
    }

    fn find(&self, name: &str) -> Option<Seat> {
        self.tenant(name).ok().cloned()
    }

    fn offer(&self, seat: &Seat) -> Offer {
        seat.offer()
    }
}

impl Seat {
    /// The description of the tenant's export.
    pub fn offer(&self) -> Offer {
        let (shard, tenant) = (&self.shard, self.tenant);
        let only_reads = shard.tenants[tenant].tenant.only_reads();
        let drive = &shard.drive;
        let mut flags = drive.flags;
        if only_reads {
            flags |= flag::READ_ONLY;
        }
        if shard.shares {
            // They would fill the drive as writes do, at no charge: clients write the zeroes instead.
            flags &= !flag::SEND_WRITE_ZEROES;
        }
        Offer {
            bytes: shard.regions[tenant].bytes,
            flags,
            minimum_block: drive.minimum_block,
            preferred_block: PREFERRED_BLOCK.max(drive.minimum_block),
            maximum_block: drive.maximum_block,
        }
    }
}
