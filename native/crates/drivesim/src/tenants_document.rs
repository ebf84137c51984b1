//! The document of a tenants experiment.

use schedulers::{Parameters, Refusal, Tenant};
use serde::Deserialize;

use crate::load_document::{Amount, Arrivals, Load, Pattern, Region};

/// Tenants that share the drive through a scheduler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// Returned with the result.
    pub name: String,
    /// The scheduler in front of the drive, and its parameters.
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
}

/// A tenant and its requests, all of one size.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantLoad {
    /// Its name, weight and objective, as the scheduler is told.
    pub tenant: Tenant,
    pattern: Pattern,
    block_bytes: u64,
    /// The arrivals of requests.
    pub arrivals: Arrivals,
    #[serde(default = "only_reads")]
    read_percent: f64,
    #[serde(default)]
    region: Option<Region>,
    /// Bursts; without them it always asks.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// The time at which it joins, from the beginning of the warm-up.
    #[serde(default)]
    pub joins_s: f64,
    /// The time at which it disconnects, from the same beginning; without it, it stays.
    #[serde(default)]
    pub disconnects_s: Option<f64>,
}

/// Times with and without requests, in turns, from the time a tenant joins.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Time in which it asks.
    pub on_s: f64,
    /// Time in which it does not.
    pub off_s: f64,
}

fn only_reads() -> f64 {
    100.0
}

impl Tenants {
    /// Check the experiment for a drive of this size; the error names the tenant and the wrong key.
    pub fn check(&self, bytes: u64, sector_bytes: u32) -> Result<(), String> {
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
            load.check(bytes, sector_bytes, self.warm_up_s + self.seconds)
                .map_err(|what| format!("tenant {:?}: {what}", load.tenant.name))?;
        }
        self.admit().map_err(|refusal| refusal.to_string())
    }

    /// Let all tenants join and disconnect in their order, so that a refusal is known before anything runs.
    fn admit(&self) -> Result<(), Refusal> {
        let mut changes = Vec::new();
        for (load, number) in self.tenants.iter().zip(0_usize..) {
            changes.push((load.joins_s, true, number));
            changes.extend(load.disconnects_s.map(|at_s| (at_s, false, number)));
        }
        changes.sort_by(|one, other| one.partial_cmp(other).expect("checked numbers"));
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

impl TenantLoad {
    /// The requests, as a load of their own.
    pub fn load(&self) -> Load {
        Load {
            name: self.tenant.name.clone(),
            pattern: self.pattern,
            block_bytes: self.block_bytes,
            arrivals: self.arrivals,
            until: Amount::Requests(1),
            warm_up: None,
            read_percent: self.read_percent,
            region: self.region,
            interval_s: None,
            fua: false,
            fail_fast: false,
        }
    }

    fn check(&self, bytes: u64, sector_bytes: u32, whole_s: f64) -> Result<(), String> {
        self.load().check(bytes, u64::from(sector_bytes))?;
        if let Some(Bursts { on_s, off_s }) = self.bursts {
            check_seconds("bursts.on_s", on_s)?;
            check_seconds("bursts.off_s", off_s)?;
        }
        let end_s = self.disconnects_s.unwrap_or(whole_s);
        if !(0.0..whole_s).contains(&self.joins_s) || self.joins_s >= end_s {
            return Err(format!(
                "joins_s {} is not from 0 to before its end at {end_s}",
                self.joins_s
            ));
        }
        if end_s > whole_s {
            return Err(format!(
                "disconnects_s {end_s} is beyond the experiment's {whole_s}"
            ));
        }
        if self.tenant.only_reads() && self.read_percent < 100.0 {
            return Err(format!(
                "read_percent {} has writes, and the tenant declares that it only reads",
                self.read_percent
            ));
        }
        Ok(())
    }
}

fn check_seconds(key: &str, seconds: f64) -> Result<(), String> {
    if (1e-6..=1e6).contains(&seconds) {
        return Ok(());
    }
    Err(format!("{key} {seconds} is not from 1e-6 to 1e6"))
}
