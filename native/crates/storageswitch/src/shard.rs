//! A drive with its scheduler, its tenants and its threads, apart from all other drives of the switch.

use std::sync::Arc;
use std::time::Duration;

use nbdserver::Room;
use parking_lot::{Condvar, Mutex};
use realtime::now_ns;
use schedulers::{Parameters, Refusal};
use serde_json::{json, Value};

use crate::config::TenantConfig;
use crate::core::Core;
use crate::drive::Drive;
use crate::front::{spawn, Front, Hands};
use crate::job::{Pending, Work};
use crate::pin::Cpu;
use crate::region::{on_blocks, regions, Region};
use crate::share::{Share, Watch};

/// A drive and all that belongs to it.
pub struct Shard {
    pub name: String,
    /// Its tenants; requests carry their numbers here.
    pub tenants: Vec<TenantConfig>,
    pub regions: Vec<Region>,
    /// For what waits of all connections of each tenant.
    pub rooms: Vec<Arc<Room>>,
    pub drive: Drive,
    /// Whether its scheduler shares the drive among the tenants.
    pub shares: bool,
    core: Mutex<Core>,
    /// The time to ask the scheduler again.
    alarm_ns: Mutex<Option<u64>>,
    alarm_set: Condvar,
    /// The processor of its threads, where it has one of its own.
    cpu: Option<Cpu>,
}

/// Check that a scheduler admits all tenants at once, in whatever order they connect.
pub fn admit(scheduler: &Parameters, tenants: &[TenantConfig]) -> Result<(), String> {
    let mut trial = scheduler.start();
    for of in tenants {
        trial
            .join(&of.tenant, 0)
            .map_err(|refusal| format!("tenant {:?}: {refusal}", of.name()))?;
    }
    Ok(())
}

impl Shard {
    /// Divide a drive among tenants and start its threads; the error says what of the configuration cannot be.
    pub fn start(
        name: &str,
        drive: Drive,
        tenants: Vec<TenantConfig>,
        scheduler: &Parameters,
        cpu: Option<Cpu>,
    ) -> Result<Arc<Self>, String> {
        let named: Vec<_> = tenants.iter().map(|of| (of.name(), of.region)).collect();
        let regions = regions(&named, drive.bytes)?;
        on_blocks(&named, &regions, drive.minimum_block)?;
        admit(scheduler, &tenants)?;
        let shard = Arc::new(Self {
            name: name.to_owned(),
            core: Mutex::new(Core::new(scheduler.start(), tenants.len())),
            rooms: tenants.iter().map(|_| Arc::default()).collect(),
            tenants,
            regions,
            drive,
            shares: !matches!(scheduler, Parameters::None),
            alarm_ns: Mutex::default(),
            alarm_set: Condvar::new(),
            cpu,
        });
        let front: Arc<dyn Front> = shard.clone();
        shard.drive.device.clone().start(&front);
        let of_alarm = shard.clone();
        spawn(&front, move |_| of_alarm.watch_alarm());
        Ok(shard)
    }

    /// Count a connection of a tenant.
    pub fn connect(&self, tenant: usize) -> Result<(), Refusal> {
        let config = &self.tenants[tenant];
        let mut core = self.core.lock();
        let now_ns = now_ns();
        core.connect(tenant, &config.tenant, now_ns)?;
        core.tell(now_ns);
        Ok(())
    }

    /// Forget a connection of a tenant, with what it had waiting.
    pub fn disconnect(&self, tenant: usize) {
        let dropped = self.core.lock().disconnect(tenant, now_ns());
        drop(dropped);
        // What remains may have waited for it.
        self.finish(&mut Hands::default());
    }

    /// Let requests of one tenant arrive, and do everything that can be done now.
    pub fn enter(&self, arriving: &mut Vec<Pending>, hands: &mut Hands) {
        loop {
            let mut core = self.core.lock();
            let came_ns = now_ns();
            for pending in arriving.drain(..) {
                let priority = self.tenants[pending.job.tenant].priority;
                if let Err(refused) = core.arrive(pending, priority, came_ns) {
                    hands.refused.push(refused);
                }
            }
            for done in &hands.done {
                core.complete(done);
            }
            let again_ns = core.dispatch(came_ns, &mut hands.work);
            core.tell(came_ns);
            drop(core);
            if let Some(at_ns) = again_ns {
                self.set_alarm(at_ns);
            }
            hands.answer();
            if hands.work.is_empty() {
                return;
            }
            self.drive.device.submit(&mut hands.work, &mut hands.done);
            if hands.done.is_empty() {
                return;
            }
        }
    }

    /// Give the drive a request that passes the scheduler by.
    pub fn pass(&self, pending: Pending) {
        let work = Work { id: None, pending };
        let mut hands = Hands::default();
        self.drive.device.submit(&mut vec![work], &mut hands.done);
        if !hands.done.is_empty() {
            self.finish(&mut hands);
        }
    }

    fn set_alarm(&self, at_ns: u64) {
        let mut alarm_ns = self.alarm_ns.lock();
        if alarm_ns.is_none_or(|set_ns| at_ns < set_ns) {
            *alarm_ns = Some(at_ns);
            self.alarm_set.notify_one();
        }
    }

    /// Ask the scheduler again whenever it is time, for ever.
    fn watch_alarm(&self) {
        let mut hands = Hands::default();
        loop {
            let mut alarm_ns = self.alarm_ns.lock();
            loop {
                let left_ns = alarm_ns.map(|at_ns| at_ns.saturating_sub(now_ns()));
                match left_ns {
                    None => self.alarm_set.wait(&mut alarm_ns),
                    Some(0) => break,
                    Some(left_ns) => {
                        let left = Duration::from_nanos(left_ns);
                        self.alarm_set.wait_for(&mut alarm_ns, left);
                    }
                }
            }
            *alarm_ns = None;
            drop(alarm_ns);
            self.finish(&mut hands);
        }
    }

    /// The present share of a tenant.
    pub fn share(&self, tenant: usize) -> Share {
        self.core.lock().share(tenant)
    }

    /// Tell a watch of every change of a tenant's share from now on; returns the present one.
    pub fn watch(&self, tenant: usize, watch: &Arc<Watch>) -> Share {
        self.core.lock().watch(tenant, watch)
    }

    /// Tell a watch no more.
    pub fn unwatch(&self, tenant: usize, watch: &Arc<Watch>) {
        self.core.lock().unwatch(tenant, watch);
    }

    /// The state of the drive, and of each of its tenants.
    pub fn state(&self) -> (Value, Vec<Value>) {
        let core = self.core.lock();
        let tenants = self.tenants.iter().zip(&self.regions).zip(&core.members);
        let tenants = tenants
            .enumerate()
            .map(|(index, ((of, region), member))| {
                let share = core.share(index);
                json!({
                    "name": of.name(),
                    "drive": self.name,
                    "region": region,
                    "connections": member.connections,
                    "latency": member.statistics.as_json(),
                    "credit": share.credit,
                    "view": share.view,
                })
            })
            .collect();
        let drive = json!({
            "name": self.name,
            "access": self.drive.device.access(),
            "fallback": self.drive.fallback,
            "bytes": self.drive.bytes,
            "writable": self.drive.is_writable(),
            "core": self.cpu.as_ref().map(Cpu::number),
            "waiting": self.drive.device.waiting(),
            "lateness_ns": self.drive.device.lateness(),
            "scheduler": core.scheduler.snapshot(),
        });
        (drive, tenants)
    }
}

impl Front for Shard {
    fn finish(&self, hands: &mut Hands) {
        self.enter(&mut Vec::new(), hands);
    }

    fn pin(&self) {
        if let Some(cpu) = &self.cpu {
            cpu.pin();
        }
    }
}
