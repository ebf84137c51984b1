//! The document of a tenants experiment, and of one with a box.

use schedulers::{Parameters, Refusal};
use serde::Deserialize;

use crate::hardware::Hardware;
use crate::load_document::ns;
use crate::tenant_load::{check_seconds, TenantLoad};

/// Tenants that share drives through a scheduler: one drive by itself, or those of a box.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// Returned with the result.
    pub name: String,
    /// The box around the drives; a `tenants` experiment has none.
    #[serde(default)]
    pub hardware: Option<Hardware>,
    /// The scheduler in front of each drive, and its parameters.
    pub scheduler: Parameters,
    /// The tenants with their loads.
    pub tenants: Vec<TenantLoad>,
    /// The measured time.
    pub seconds: f64,
    /// The unmeasured time before it.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Also report the results by intervals of this length.
    #[serde(default)]
    pub interval_s: Option<f64>,
    /// Also report the distribution of each tenant's latencies.
    #[serde(default)]
    pub histograms: bool,
}

impl Tenants {
    /// Check the experiment on one drive of this size; the error names the tenant and the wrong key.
    pub fn check(&self, bytes: u64, sector_bytes: u32) -> Result<(), String> {
        if self.hardware.is_some() {
            return Err("hardware is of a box; give kind \"box\"".to_owned());
        }
        if let Some(load) = self.tenants.iter().find(|load| load.drive.is_some()) {
            return Err(format!(
                "tenant {:?}: drive is of a box; give kind \"box\", or leave it out",
                load.tenant.name
            ));
        }
        self.check_tenants(bytes, sector_bytes, 1)
    }

    /// Check the experiment with a box of so many drives of this size; the error names the tenant and the wrong key.
    pub fn check_box(&self, bytes: u64, sector_bytes: u32, drives: usize) -> Result<(), String> {
        let hardware = self.hardware.as_ref();
        hardware
            .ok_or("a box needs its hardware: cores and link")?
            .check()
            .map_err(|what| format!("hardware.{what}"))?;
        self.check_tenants(bytes, sector_bytes, drives)
    }

    /// The drive of a tenant, by its place in the list.
    pub fn drive_of(&self, number: usize, drives: usize) -> usize {
        self.tenants[number].drive.unwrap_or(number % drives)
    }

    fn check_tenants(&self, bytes: u64, sector_bytes: u32, drives: usize) -> Result<(), String> {
        check_seconds("seconds", self.seconds)?;
        if self.warm_up_s != 0.0 {
            check_seconds("warm_up_s", self.warm_up_s)?;
        }
        if let Some(interval_s) = self.interval_s {
            check_seconds("interval_s", interval_s)?;
        }
        if self.tenants.is_empty() {
            return Err("tenants is empty; give at least one".to_owned());
        }
        for load in &self.tenants {
            let in_tenant = |what: String| format!("tenant {:?}: {what}", load.tenant.name);
            if let Some(drive) = load.drive.filter(|&drive| drive >= drives) {
                return Err(in_tenant(format!(
                    "drive {drive} is not one of the {drives}, from 0 on"
                )));
            }
            load.check(
                bytes,
                u64::from(sector_bytes),
                self.warm_up_s + self.seconds,
            )
            .map_err(in_tenant)?;
        }
        (0..drives)
            .try_for_each(|drive| self.admit(drive, drives))
            .map_err(|refusal| refusal.to_string())
    }

    /// Let all tenants of a drive join and disconnect in their order, so that a refusal is known before anything runs.
    fn admit(&self, drive: usize, drives: usize) -> Result<(), Refusal> {
        let mut changes = Vec::new();
        for (load, number) in self.tenants.iter().zip(0_usize..) {
            if self.drive_of(number, drives) == drive {
                changes.push((ns(load.joins_s), true, number));
                changes.extend(load.disconnects_s.map(|at_s| (ns(at_s), false, number)));
            }
        }
        // As they are played: by the nanosecond, and who leaves before who joins.
        changes.sort_unstable();
        let mut scheduler = self.scheduler.start();
        let mut ids = vec![None; self.tenants.len()];
        for (_, joins, number) in changes {
            if joins {
                ids[number] = Some(scheduler.join(&self.tenants[number].tenant, 0)?);
            } else if let Some(id) = ids[number] {
                scheduler.disconnect(id, 0)?;
            }
        }
        Ok(())
    }
}
