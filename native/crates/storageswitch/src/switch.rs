//! The switch: drives that are shared, and the tenants of all of them.

use std::sync::Arc;

use daemon::control::Fields;
use schedulers::unknown;
use serde_json::Value;

use crate::config::{Config, NamedDrive};
use crate::drive::Drive;
use crate::permission::Permission;
use crate::pin::Cpu;
use crate::shard::{admit, Shard};

/// A running switch.
pub struct Switch {
    shards: Vec<Arc<Shard>>,
    /// Every tenant in the order of the configuration.
    tenants: Vec<Seat>,
}

/// A tenant's place.
#[derive(Clone)]
pub struct Seat {
    pub shard: Arc<Shard>,
    /// Its number among the tenants of the shard.
    pub tenant: usize,
}

impl Seat {
    pub fn name(&self) -> &str {
        self.shard.tenants[self.tenant].name()
    }
}

impl Switch {
    /// Open the drives and start their threads; the error says what of the configuration cannot be.
    pub fn start(config: &Config, permission: &Permission) -> Result<Arc<Self>, String> {
        permission.check(&config.serials())?;
        let count = config.drives.len();
        let cpus = if config.pin {
            Cpu::each(count)
        } else {
            vec![None; count]
        };
        let mut shards = Vec::with_capacity(count);
        let mut seats = Vec::new();
        for (NamedDrive { name, config: of }, cpu) in config.drives.iter().zip(cpus) {
            let in_drive = |what: String| match count {
                1 => what,
                _ => format!("drive {name:?}: {what}"),
            };
            let drive = Drive::open(of, permission).map_err(in_drive)?;
            let (numbers, tenants): (Vec<_>, Vec<_>) = config
                .tenants_of(name)
                .map(|(number, tenant)| (number, tenant.clone()))
                .unzip();
            let shard = Shard::start(name, drive, tenants, &config.scheduler, cpu);
            let shard = shard.map_err(in_drive)?;
            for (tenant, number) in numbers.into_iter().enumerate() {
                let shard = shard.clone();
                seats.push((number, Seat { shard, tenant }));
            }
            shards.push(shard);
        }
        seats.sort_by_key(|(number, _)| *number);
        let tenants = seats.into_iter().map(|(_, seat)| seat).collect();
        Ok(Arc::new(Self { shards, tenants }))
    }

    /// Check that the scheduler admits the tenants of each drive, without opening any.
    pub fn check(config: &Config) -> Result<(), String> {
        for NamedDrive { name, .. } in &config.drives {
            let tenants: Vec<_> = config
                .tenants_of(name)
                .map(|(_, tenant)| tenant.clone())
                .collect();
            admit(&config.scheduler, &tenants)?;
        }
        Ok(())
    }

    /// Every tenant in the order of the configuration.
    pub fn tenants(&self) -> &[Seat] {
        &self.tenants
    }

    /// A tenant by its name; the error names the one that was probably meant.
    pub fn tenant(&self, name: &str) -> Result<&Seat, String> {
        let found = self.tenants.iter().find(|seat| seat.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.tenants.iter().map(Seat::name).collect();
            unknown("tenant", name, names.iter().copied(), "this switch")
        })
    }

    /// The state for clients of the control socket.
    pub fn state(&self) -> Fields {
        let (mut drives, mut tenants): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        let states: Vec<_> = self.shards.iter().map(|shard| shard.state()).collect();
        for seat in &self.tenants {
            let is_of = |shard: &Arc<Shard>| Arc::ptr_eq(shard, &seat.shard);
            let shard = self.shards.iter().position(is_of);
            let shard = shard.expect("a tenant has its place in a shard of the switch");
            tenants.push(states[shard].1[seat.tenant].clone());
        }
        drives.extend(states.into_iter().map(|(drive, _)| drive));
        let mut state = Fields::new();
        state.insert("drives".into(), drives.into());
        state.insert("tenants".into(), tenants.into());
        state
    }
}
