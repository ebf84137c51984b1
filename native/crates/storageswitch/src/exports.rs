//! The exports of the switch: the region of each tenant, by its name.

use nbd::proto::{flag, MAX_REQUEST_BYTES};
use nbdserver::{Exports, Offer};

use crate::switch::Switch;

const PREFERRED_BLOCK: u32 = 4096;

impl Exports for Switch {
    type Export = usize;

    fn names(&self) -> Vec<String> {
        let tenants = self.tenants.iter();
        tenants.map(|of| of.tenant.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.tenants.iter().position(|of| of.tenant.name == name)
    }

    fn offer(&self, tenant: &usize) -> Offer {
        let only_reads = self.tenants[*tenant].tenant.only_reads();
        Offer {
            bytes: self.regions[*tenant].bytes,
            flags: self.flags | if only_reads { flag::READ_ONLY } else { 0 },
            minimum_block: 1,
            preferred_block: PREFERRED_BLOCK,
            maximum_block: MAX_REQUEST_BYTES,
        }
    }
}
