//! The running rack: the state machine, the I/O paths, and the drives.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, MutexGuard, RwLockWriteGuard};
use racksim::{
    ms_to_ns, Attach, Command, Export, Fault, FaultError, FaultName, PowerTarget, Rack, Record,
    Refusal, SanitizeMethod, What,
};
use realtime::now_ns;

use crate::config::Config;
use crate::config_error::ConfigError;
use crate::drive::Drive;
use crate::drive_config::DriveConfig;
use crate::flusher::Flusher;
use crate::io_path::{HeldCounts, IoPath, Mover, Opening, Queued, Route, Shared, TimerEntry};
use crate::saved;
use crate::truth::{self, TruthLog};
use daemon::Timer;

/// The state machine and its next timer alarm.
struct Machine {
    rack: Rack,
    alarm_ns: Option<u64>,
}

/// A command that was executed.
pub struct Executed {
    /// The time of execution.
    pub t_ns: u64,
    /// The generation of the map after it.
    pub generation: u64,
}

/// The reason why the live map was not saved.
pub enum SaveError {
    /// The rack refused.
    Refused(Refusal),
    /// The file could not be written; a restart will load its previous content.
    Disk(std::io::Error),
}

/// The reason why a drive cannot be sanitized.
pub enum SanitizeError {
    /// It has no power.
    NoPower,
    /// It hangs, is dead, or is being sanitized already.
    NoAnswer,
    /// The storage below failed; some of the data may still exist.
    Storage,
}

/// The running rack: its state machine, its exports and its drives.
pub struct RunningRack {
    machine: Mutex<Machine>,
    /// By index of the export.
    paths: Vec<Arc<IoPath>>,
    exports: HashMap<Arc<str>, usize>,
    /// By index in the rack.
    drives: Vec<Arc<Drive>>,
    drive_by_id: HashMap<Arc<str>, usize>,
    shared: Arc<Shared>,
    /// Locked while the file is written, so that the last save wins.
    saved_map: Mutex<PathBuf>,
    last_fault_id: AtomicU64,
}

impl RunningRack {
    /// Power everything on.
    pub fn start(config: &Config) -> Result<Arc<Self>, ConfigError> {
        let truth_path = config.truth_path();
        let saved = saved::load(config)?;
        let file = truth::open(&truth_path)
            .map_err(|error| ConfigError(format!("truth_log {}: {error}", truth_path.display())))?;
        let truth = TruthLog::start(file);
        let drives = start_drives(config, &truth)?;
        let shared = Arc::new(Shared {
            link_timeout_ns: ms_to_ns(config.link_timeout_ms),
            timer: Timer::new(),
            truth,
            held: HeldCounts::default(),
            flusher: Flusher::start()
                .map_err(|error| ConfigError(format!("no flusher thread: {error}")))?,
            mover: Mover::start()
                .map_err(|error| ConfigError(format!("no mover thread: {error}")))?,
        });
        let (rack, records) = Rack::new(config.layout(saved), now_ns());
        let path = |(export, place): (usize, &Export)| {
            let (bytes, rotational) = match *place {
                Export::Hba { .. } => (config.port_bytes(), false),
                Export::Drive(drive) => (
                    drives[drive].identity.bytes,
                    drives[drive].identity.rotational,
                ),
            };
            Arc::new(IoPath::new(
                rack.export_name(export).into(),
                bytes,
                rotational,
                shared.clone(),
            ))
        };
        let paths: Vec<Arc<IoPath>> = rack.exports().iter().enumerate().map(path).collect();
        let running = Arc::new(Self {
            exports: paths
                .iter()
                .enumerate()
                .map(|(export, path)| (path.name.clone(), export))
                .collect(),
            drive_by_id: drives
                .iter()
                .enumerate()
                .map(|(index, drive)| (drive.identity.id.clone(), index))
                .collect(),
            machine: Mutex::new(Machine {
                rack,
                alarm_ns: None,
            }),
            paths,
            drives,
            shared,
            saved_map: Mutex::new(config.saved_map_path()),
            last_fault_id: AtomicU64::new(0),
        });
        let all = (0..running.paths.len()).collect();
        let stopped = running.stop(all);
        running.resume(running.machine.lock(), stopped, records);
        let timed = running.clone();
        thread::Builder::new()
            .name("timer".into())
            .spawn(move || {
                // Without it the kernel may wake the thread 50 us late, a third of the spin time.
                let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
                // Of this thread alone: clients that keep the others busy would leave the harness no core.
                let _ = realtime::ask_for_precedence();
                timed.shared.timer.run(|due| timed.act(due))
            })
            .map_err(|error| ConfigError(format!("no timer thread: {error}")))?;
        Ok(running)
    }

    /// Execute a command. I/O that has not started does not reach a drive that
    /// the command unmapped, and executing I/O has finished. The record of a map change is due at `asked_ns`.
    pub fn execute(&self, command: &Command, asked_ns: Option<u64>) -> Result<Executed, Refusal> {
        let mut machine = self.machine.lock();
        let stopped = self.stop(machine.rack.touched(command)?);
        let t_ns = now_ns();
        let mut records = machine.rack.execute(command, t_ns)?;
        for record in &mut records {
            if let What::Executed { due_ns, .. } = &mut record.what {
                *due_ns = asked_ns;
            }
        }
        if command.loses_links() {
            self.crash_drives(&mut records);
        }
        let generation = machine.rack.generation();
        if let Command::Power {
            target: PowerTarget::Drive(id),
            on: false,
        } = command
        {
            let lost = self.drives[self.drive(id)?].cut_power();
            lost.into_iter().for_each(Queued::hold);
        }
        self.resume(machine, stopped, records);
        Ok(Executed { t_ns, generation })
    }

    /// Save the live map as the power-on map; it is on disk when this returns.
    pub fn save_map(&self) -> Result<Executed, SaveError> {
        let saved_map = self.saved_map.lock();
        let executed = self
            .execute(&Command::Save, None)
            .map_err(SaveError::Refused)?;
        // The rack must not be blocked by the disk.
        let map = self.rack(|rack| rack.saved().clone());
        saved::store(&saved_map, &map).map_err(SaveError::Disk)?;
        Ok(executed)
    }

    /// Return once the truth log holds everything that has happened.
    pub fn settle(&self) {
        self.shared.truth.settle();
    }

    fn stop(&self, exports: Vec<usize>) -> Vec<(usize, RwLockWriteGuard<'_, Route>)> {
        exports
            .into_iter()
            .map(|export| (export, self.paths[export].stop()))
            .collect()
    }

    /// Route the stopped paths as the rack is mapped now, resume I/O, and set the timer to the next event.
    fn resume(
        &self,
        mut machine: MutexGuard<'_, Machine>,
        stopped: Vec<(usize, RwLockWriteGuard<'_, Route>)>,
        records: Vec<Record>,
    ) {
        let mut opened = Vec::new();
        for (export, mut route) in stopped {
            let drive = machine
                .rack
                .drive_at(export)
                .map(|drive| &self.drives[drive]);
            let is_same = match (&route.drive, drive) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                let path = &self.paths[export];
                if let Some(old) = std::mem::replace(&mut route.drive, drive.cloned()) {
                    let came_here = |queued: &Queued| Arc::ptr_eq(&queued.path, path);
                    old.withdraw(came_here).into_iter().for_each(Queued::hold);
                }
                route.epoch += 1;
                let is_port = matches!(machine.rack.exports()[export], Export::Hba { .. });
                let came = drive.filter(|_| is_port);
                path.open(came.and_then(|drive| Opening::of(&drive.identity.id, &records)));
                if drive.is_some() {
                    opened.push(export);
                }
            }
        }
        // Queued in the order of execution; written after the waiting I/O has been released.
        let _writer = self.shared.truth.put(records);
        if let Some(at_ns) = machine.rack.next_due_ns() {
            if machine.alarm_ns.is_none_or(|alarm_ns| at_ns < alarm_ns) {
                machine.alarm_ns = Some(at_ns);
                self.shared.timer.add(at_ns, TimerEntry::Rack(at_ns));
            }
        }
        drop(machine);
        for export in opened {
            self.paths[export].release();
        }
    }

    fn act(&self, entry: TimerEntry) {
        match entry {
            TimerEntry::Rack(at_ns) => self.advance(at_ns),
            TimerEntry::Drive(drive, at_ns) => drive.see_to_due(at_ns, &self.shared),
            TimerEntry::GiveUp(path) => path.give_up(),
        }
    }

    /// Advance the rack to `at_ns`, unless a newer alarm replaced this one.
    fn advance(&self, at_ns: u64) {
        let mut machine = self.machine.lock();
        if machine.alarm_ns != Some(at_ns) {
            return;
        }
        machine.alarm_ns = None;
        let until_ns = now_ns();
        let stopped = self.stop(machine.rack.touched_until(until_ns));
        let mut records = machine.rack.advance(until_ns, now_ns());
        // Without a command only a PHY drop can lose a link.
        self.crash_drives(&mut records);
        self.resume(machine, stopped, records);
        // Waiting I/O has been released by now, so that the time this took counts as lateness.
        self.shared.timer.record_lateness([at_ns]);
    }

    /// Crash the drives whose faults do so on the loss of a link in `records`.
    fn crash_drives(&self, records: &mut Vec<Record>) {
        let mut crashes = Vec::new();
        for Record { t_ns, what } in records.iter() {
            let What::PhyDown(Attach {
                drive: Some(id),
                due_ns,
                ..
            }) = what
            else {
                continue;
            };
            let Ok(drive) = self.drive(id) else { continue };
            let faults = self.drives[drive].lose_link();
            crashes.extend(faults.into_iter().map(|fault_id| Record {
                t_ns: *t_ns,
                what: What::Crashed {
                    drive: id.clone(),
                    fault_id,
                    due_ns: *due_ns,
                },
            }));
        }
        records.append(&mut crashes);
    }

    /// Read from the rack.
    pub fn rack<T>(&self, look: impl FnOnce(&Rack) -> T) -> T {
        look(&self.machine.lock().rack)
    }

    /// The exports' I/O paths, in the order of the rack.
    pub fn paths(&self) -> &[Arc<IoPath>] {
        &self.paths
    }

    /// The index of an export.
    pub fn export(&self, export: &str) -> Option<usize> {
        self.exports.get(export).copied()
    }

    /// Every drive, by its index in the rack.
    pub fn drives(&self) -> &[Arc<Drive>] {
        &self.drives
    }

    /// The index of a drive.
    pub fn drive(&self, id: &str) -> Result<usize, Refusal> {
        let found = self.drive_by_id.get(id).copied();
        found.ok_or_else(|| Refusal::UnknownDrive(id.to_owned()))
    }

    /// The state shared by all paths.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Add a fault to a drive; returns its identity. If the drive has a fault with this key, nothing changes.
    pub fn add_fault(
        &self,
        drive: usize,
        key: Option<&str>,
        fault: &Fault,
    ) -> Result<u64, FaultError> {
        let new_id = self.last_fault_id.fetch_add(1, Ordering::Relaxed) + 1;
        self.drives[drive].add_fault(new_id, key, fault)
    }

    /// Remove the faults of a name from a drive; returns the identities of those that were active.
    pub fn clear_faults(&self, drive: usize, name: FaultName<'_>) -> Vec<u64> {
        let drive = &self.drives[drive];
        let ids = drive.clear_faults(name);
        if !ids.is_empty() {
            self.release(drive);
        }
        ids
    }

    /// Sanitize a drive; returns the time it was done. I/O waits until then. The error says why it cannot.
    pub fn sanitize(&self, drive: usize, method: SanitizeMethod) -> Result<u64, SanitizeError> {
        let drive = &self.drives[drive];
        let id = drive.identity.id.clone();
        let target = PowerTarget::Drive(id.to_string());
        if !self.rack(|rack| rack.is_on(&target)).unwrap_or(false) {
            return Err(SanitizeError::NoPower);
        }
        let waiting = drive.begin_sanitize().ok_or(SanitizeError::NoAnswer)?;
        waiting.into_iter().for_each(Queued::submit);
        for path in self.paths_to(drive) {
            // Executing requests have finished once the path can be stopped.
            drop(path.stop());
        }
        let erased = drive.erase();
        let t_ns = now_ns();
        self.release(drive);
        erased.map_err(|_| SanitizeError::Storage)?;
        self.shared.truth.write(Record {
            t_ns,
            what: What::Sanitized { drive: id, method },
        });
        Ok(t_ns)
    }

    fn paths_to<'a>(&'a self, drive: &'a Arc<Drive>) -> impl Iterator<Item = &'a Arc<IoPath>> {
        self.paths.iter().filter(|path| path.leads_to(drive))
    }

    /// Release the requests held for a drive that answers again.
    fn release(&self, drive: &Arc<Drive>) {
        for path in self.paths_to(drive) {
            // Every thread that saw the drive hang has held its request once the path can be stopped.
            drop(path.stop());
            path.release();
        }
    }
}

fn start_drives(config: &Config, truth: &TruthLog) -> Result<Vec<Arc<Drive>>, ConfigError> {
    let start = |(index, drive): (usize, &DriveConfig)| {
        let seed = config.drive_seed(index);
        drive
            .start(index, &config.state_dir, seed, truth)
            .map(Arc::new)
    };
    config.drives.iter().enumerate().map(start).collect()
}
