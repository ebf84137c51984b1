//! Tenants experiments: many loads on one drive, through a scheduler.

use crate::drive::Drive;
use crate::failure::Failure;
use crate::load_document::ns;
use crate::play::Play;
use crate::shared_drive::SharedDrive;
use crate::tenants_document::Tenants;
use crate::tenants_result::{StateAt, TenantsResult};

/// Run the tenants; nothing of them is in flight afterwards.
pub fn run<'a>(
    tenants: &'a Tenants,
    drive: &mut Drive,
    seed: u64,
) -> Result<TenantsResult<'a>, Failure> {
    let start_ns = drive.now_ns() + ns(tenants.warm_up_s);
    let end_ns = start_ns + ns(tenants.seconds);
    let target = SharedDrive::new(&tenants.scheduler, drive);
    let mut play = Play::new(tenants, target, 1, seed);
    play.until(start_ns)?;
    play.measure();
    let states = play.intervals(end_ns, |target| target.snapshot().state)?;
    let snapshot = play.target.snapshot();
    let results = play.results(end_ns);
    play.drain()?;
    Ok(TenantsResult {
        name: &tenants.name,
        kind: "tenants",
        scheduler: tenants.scheduler.kind(),
        start_s: start_ns as f64 / 1e9,
        seconds: tenants.seconds,
        tenants: results,
        states: states.map(StateAt::of_all),
        snapshot,
    })
}

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
