//! The drive that takes no time keeps the contract of those that do.

mod service;

use racksim::Timing;

#[test]
fn the_ideal_drive_keeps_the_contract() {
    service::holds(|seed| Timing::Ideal {}.start(service::BYTES, service::SECTOR_BYTES, seed));
}
