//! The switch: requests of tenants go through a scheduler to the drive, and their answers back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use backing::Backing;
use daemon::control::Fields;
use nbd::proto::errno;
use nbdserver::Gathering;
use parking_lot::{Condvar, Mutex};
use realtime::now_ns;
use schedulers::Refusal;
use serde_json::{json, Value};

use crate::config::{Config, TenantConfig};
use crate::core::Core;
use crate::drive::{Access, Drive};
use crate::job::{Done, Pending, Work};
use crate::lane::{perform, Lane};
use crate::region::{regions, Region};

/// A running switch.
pub struct Switch {
    core: Mutex<Core>,
    pub tenants: Vec<TenantConfig>,
    pub regions: Vec<Region>,
    /// Transmission flags of the drive.
    pub flags: u16,
    /// A drive whose requests the dispatching thread carries out itself.
    at_once: Option<Backing>,
    /// Requests for the threads of the other drives.
    queue: Mutex<VecDeque<Work>>,
    queued: Condvar,
    /// The time to ask the scheduler again.
    alarm_ns: Mutex<Option<u64>>,
    alarm_set: Condvar,
}

/// Lists that are used again.
#[derive(Default)]
pub struct Hands {
    work: Vec<Work>,
    done: Vec<Done>,
    refused: Vec<(Pending, u32)>,
    gathering: Gathering,
}

impl Switch {
    /// Open the drive and start the threads; the error says what of the configuration cannot be.
    pub fn start(config: &Config) -> Result<Arc<Self>, String> {
        let drive = Drive::open(&config.drive)?;
        let named: Vec<_> = config
            .tenants
            .iter()
            .map(|of| (of.tenant.name.as_str(), of.region))
            .collect();
        let regions = regions(&named, drive.bytes)?;
        let mut trial = config.scheduler.start();
        for of in &config.tenants {
            // All at once must be admitted, in whatever order they connect.
            trial
                .join(&of.tenant, 0)
                .map_err(|refusal| format!("tenant {:?}: {refusal}", of.tenant.name))?;
        }
        let (at_once, lanes) = match drive.access {
            Access::AtOnce(backing) => (Some(backing), Vec::new()),
            Access::Lanes(lanes) => (None, lanes),
        };
        let switch = Arc::new(Self {
            core: Mutex::new(Core::new(config.scheduler.start(), config.tenants.len())),
            tenants: config.tenants.clone(),
            regions,
            flags: drive.flags,
            at_once,
            queue: Mutex::default(),
            queued: Condvar::new(),
            alarm_ns: Mutex::default(),
            alarm_set: Condvar::new(),
        });
        for lane in lanes {
            let of_lane = switch.clone();
            thread::spawn(move || of_lane.work(lane));
        }
        let of_alarm = switch.clone();
        thread::spawn(move || of_alarm.watch());
        Ok(switch)
    }

    /// The storage of a drive whose requests the dispatching thread carries out.
    pub fn at_once(&self) -> Option<&Backing> {
        self.at_once.as_ref()
    }

    /// Count a connection of a tenant.
    pub fn connect(&self, tenant: usize) -> Result<(), Refusal> {
        let config = &self.tenants[tenant];
        let connected = self.core.lock().connect(tenant, &config.tenant, now_ns());
        connected
    }

    /// Forget a connection of a tenant, with what it had waiting.
    pub fn disconnect(&self, tenant: usize) {
        let dropped = self.core.lock().disconnect(tenant, now_ns());
        drop(dropped);
        // What remains may have waited for it.
        self.enter(&mut Vec::new(), &mut Hands::default());
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
            drop(core);
            if let Some(at_ns) = again_ns {
                self.set_alarm(at_ns);
            }
            hands.answer();
            let Some(backing) = &self.at_once else {
                return self.hand_over(&mut hands.work);
            };
            if hands.work.is_empty() {
                return;
            }
            for mut work in hands.work.drain(..) {
                let result = carry_out(&mut work, |work| {
                    let job = work.job;
                    perform(backing, &job, work.bytes())
                });
                let at_ns = now_ns();
                hands.done.push(Done {
                    work,
                    result,
                    at_ns,
                });
            }
        }
    }

    /// Give the threads of the drive a request that passes the scheduler by.
    pub fn pass(&self, pending: Pending) {
        let work = Work { id: None, pending };
        self.hand_over(&mut vec![work]);
    }

    fn hand_over(&self, work: &mut Vec<Work>) {
        let count = work.len();
        if count == 0 {
            return;
        }
        self.queue.lock().extend(work.drain(..));
        match count {
            1 => drop(self.queued.notify_one()),
            _ => drop(self.queued.notify_all()),
        }
    }

    /// Carry out requests by one lane, for ever.
    fn work(&self, mut lane: Box<dyn Lane>) {
        let mut hands = Hands::default();
        loop {
            let mut queue = self.queue.lock();
            let mut work = loop {
                match queue.pop_front() {
                    Some(work) => break work,
                    None => self.queued.wait(&mut queue),
                }
            };
            drop(queue);
            let result = carry_out(&mut work, |work| {
                let job = work.job;
                lane.perform(&job, work.bytes())
            });
            let at_ns = now_ns();
            hands.done.push(Done {
                work,
                result,
                at_ns,
            });
            self.enter(&mut Vec::new(), &mut hands);
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
    fn watch(&self) {
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
            self.enter(&mut Vec::new(), &mut hands);
        }
    }

    /// The state for clients of the control socket.
    pub fn state(&self) -> Fields {
        let core = self.core.lock();
        let tenants = self.tenants.iter().zip(&self.regions).zip(&core.members);
        let tenants = tenants.map(|((of, region), member)| {
            let view = member.id.and_then(|id| core.scheduler.view(id).ok()?);
            json!({
                "name": of.tenant.name,
                "region": region,
                "connections": member.connections,
                "latency": member.statistics.as_json(),
                "view": view,
            })
        });
        let tenants: Vec<Value> = tenants.collect();
        let mut state = Fields::new();
        state.insert("scheduler".into(), json!(core.scheduler.snapshot()));
        state.insert("tenants".into(), tenants.into());
        state
    }
}

/// Carry out a request, unless its client has gone.
fn carry_out(
    work: &mut Work,
    perform: impl FnOnce(&mut Pending) -> Result<(), u32>,
) -> Result<(), u32> {
    if work.pending.is_orphaned() {
        return Err(errno::ESHUTDOWN);
    }
    perform(&mut work.pending)
}

impl Hands {
    /// Answer what is done and what was refused, with one send to each client.
    fn answer(&mut self) {
        let done = self.done.drain(..);
        let done = done.map(|done| (done.work.pending, done.result));
        let refused = self.refused.drain(..);
        let all = done.chain(refused.map(|(pending, code)| (pending, Err(code))));
        for (pending, result) in all {
            self.gathering.include(&pending);
            pending.answer(result);
            if self.gathering.is_enough() {
                self.gathering.send();
            }
        }
        self.gathering.send();
    }
}
