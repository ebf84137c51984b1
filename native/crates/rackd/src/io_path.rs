//! I/O paths: from an export to the drive mapped there, synchronized with map changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use nbd::proto::errno;
use nbdserver::Connection;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use racksim::{Attach, Io, Kind, Record, Verdict, What};
use realtime::now_ns;

use crate::drive::{Bytes, Drive, Manner, Pending};
use crate::flusher::Flusher;
use crate::truth::TruthLog;
use daemon::Timer;

mod mover;

pub use mover::Mover;
use mover::{Moving, SLICE_BYTES};

/// A timer entry.
pub enum TimerEntry {
    /// Advance the rack to this alarm.
    Rack(u64),
    /// Advance a drive to this alarm.
    Drive(Arc<Drive>, u64),
    /// Fail requests that this path has held for too long.
    GiveUp(Arc<IoPath>),
}

/// The drive that a path leads to. Changed only under the path's write lock, so that no request spans a change.
#[derive(Default)]
pub struct Route {
    pub drive: Option<Arc<Drive>>,
    /// Counts changes of `drive`.
    pub epoch: u64,
}

/// A drive that came online on a path and has answered no request yet.
pub struct Opening {
    /// The time at which the drive came online.
    t_ns: u64,
    /// The circuit it came by.
    attach: Attach,
}

impl Opening {
    /// The opening of `drive`, if `records` say that it came online.
    pub fn of(drive: &Arc<str>, records: &[Record]) -> Option<Self> {
        records.iter().find_map(|record| match &record.what {
            What::Online(attach) if attach.drive.as_ref() == Some(drive) => Some(Self {
                t_ns: record.t_ns,
                attach: attach.clone(),
            }),
            _ => None,
        })
    }
}

/// A request submitted to a drive, and the route it took there.
pub struct Queued {
    pub path: Arc<IoPath>,
    pub pending: Pending,
    epoch: u64,
    /// The time of its submission to the drive.
    since_ns: u64,
}

impl Queued {
    /// Complete it, which was due at `due_ns`. If the link to its drive was lost meanwhile, it is resubmitted to the
    /// drive mapped there now.
    pub fn conclude(self, due_ns: u64, failed_at: Option<u64>) {
        let Self {
            path,
            pending,
            epoch,
            since_ns,
        } = self;
        if pending.is_orphaned() {
            return;
        }
        let route = path.route.read();
        match &route.drive {
            Some(drive) if route.epoch == epoch => {
                match drive.conclude(&pending.job.io, failed_at, due_ns) {
                    Verdict::Hangs | Verdict::Waits => {
                        path.open(None);
                        path.hold(pending);
                    }
                    verdict => {
                        let took = Took {
                            service_ns: due_ns.saturating_sub(since_ns),
                            due_ns: Some(due_ns),
                        };
                        path.carry_out(drive, epoch, pending, verdict, took);
                    }
                }
            }
            _ => {
                drop(route);
                path.submit(pending);
            }
        }
    }

    /// Hold it, unexecuted, until a drive comes online on its path, which the caller has stopped.
    pub fn hold(self) {
        self.path.hold(self.pending);
    }

    /// Resubmit it, unexecuted.
    pub fn submit(self) {
        self.path.submit(self.pending);
    }
}

/// The time a drive took for a request.
#[derive(Clone, Copy, Default)]
struct Took {
    service_ns: u64,
    /// The time it was ready, if the model takes time.
    due_ns: Option<u64>,
}

/// Requests that wait for a drive.
#[derive(Default)]
struct Held {
    pending: Vec<Pending>,
    /// The next timer alarm.
    alarm_ns: Option<u64>,
}

/// Counts of requests held on all paths, now and in total.
#[derive(Default)]
pub struct HeldCounts {
    pub now: AtomicU64,
    pub total: AtomicU64,
    pub timeouts: AtomicU64,
}

pub struct IoPath {
    pub name: Arc<str>,
    /// The size of the export.
    pub bytes: u64,
    pub rotational: bool,
    route: RwLock<Route>,
    held: Mutex<Held>,
    /// A drive has come online and has answered no request yet.
    is_fresh: AtomicBool,
    opening: Mutex<Option<Opening>>,
    shared: Arc<Shared>,
}

/// The state shared by all paths.
pub struct Shared {
    pub link_timeout_ns: u64,
    pub timer: Timer<TimerEntry>,
    pub truth: TruthLog,
    pub held: HeldCounts,
    pub flusher: Flusher,
    pub mover: Mover,
}

impl IoPath {
    pub fn new(name: Arc<str>, bytes: u64, rotational: bool, shared: Arc<Shared>) -> Self {
        Self {
            name,
            bytes,
            rotational,
            route: RwLock::default(),
            held: Mutex::default(),
            is_fresh: AtomicBool::new(false),
            opening: Mutex::default(),
            shared,
        }
    }

    /// Stop I/O on this path until the guard is dropped; executing requests finish first.
    pub fn stop(&self) -> RwLockWriteGuard<'_, Route> {
        self.route.write()
    }

    /// Record the first answer from now on for this opening; with `None` it is not recorded.
    pub fn open(&self, opening: Option<Opening>) {
        let mut waits = self.opening.lock();
        self.is_fresh.store(opening.is_some(), Ordering::Release);
        *waits = opening;
    }

    /// The opening whose first answer this is, if it is one. The caller holds the route.
    fn first_answer(&self) -> Option<Opening> {
        if !self.is_fresh.load(Ordering::Acquire) {
            return None;
        }
        let opening = self.opening.lock().take();
        self.is_fresh.store(false, Ordering::Release);
        opening
    }

    /// Log an answered request that took `service_ns` in the drive, if it is the first.
    fn note_answer(&self, io: &Io, is_good: bool, service_ns: u64) {
        if let Some(opening) = self.first_answer().filter(|_| is_good) {
            self.tell_answer(opening, io, service_ns);
        }
    }

    fn tell_answer(&self, opening: Opening, io: &Io, service_ns: u64) {
        let Opening {
            t_ns: online_ns,
            attach,
        } = opening;
        self.shared.truth.write_now(What::Answered {
            attach: Attach {
                due_ns: Some(online_ns + service_ns),
                ..attach
            },
            kind: io.kind,
            offset: io.offset,
            length: io.length,
        });
    }

    /// The drive that the path leads to now.
    pub fn drive(&self) -> Option<Arc<Drive>> {
        self.route.read().drive.clone()
    }

    /// Whether this path leads to `drive`.
    pub fn leads_to(&self, drive: &Arc<Drive>) -> bool {
        let route = self.route.read();
        route
            .drive
            .as_ref()
            .is_some_and(|of_line| Arc::ptr_eq(of_line, drive))
    }

    /// Execute a request that arrived at `came_ns`, if that can be done at once.
    pub fn attempt(
        &self,
        io: &Io,
        manner: Manner,
        bytes: Bytes<'_>,
        came_ns: u64,
    ) -> Option<Result<(), u32>> {
        if moves_in_pieces(io) {
            return None;
        }
        let route = self.route.read();
        let drive = route.drive.as_ref()?;
        let result = match drive.begin(io, manner) {
            Ok(Verdict::Waits | Verdict::Hangs) => return None,
            Ok(verdict) => drive.finish(io, manner, verdict, bytes, came_ns, None),
            // The drive has answered nothing.
            Err(errno) => return Some(Err(errno)),
        };
        self.note_answer(io, result.is_ok(), 0);
        if result.is_err() || !needs_flush(io, manner) {
            return result.into();
        }
        // A map change does not wait for the storage below.
        let drive = drive.clone();
        drop(route);
        Some(drive.flush())
    }

    /// Execute a request that may have to wait, and answer it afterwards.
    pub fn submit(self: &Arc<Self>, pending: Pending) {
        if pending.is_orphaned() {
            return;
        }
        let route = self.route.read();
        let Some(drive) = &route.drive else {
            return self.hold(pending);
        };
        match drive.begin(&pending.job.io, pending.job.manner) {
            Ok(Verdict::Hangs) => {
                self.open(None);
                self.hold(pending);
            }
            Ok(Verdict::Waits) => {
                let queued = Queued {
                    path: self.clone(),
                    pending,
                    epoch: route.epoch,
                    since_ns: now_ns(),
                };
                drive.submit(queued, &self.shared);
            }
            Ok(verdict) => self.carry_out(drive, route.epoch, pending, verdict, Took::default()),
            Err(errno) => pending.answer(Err(errno)),
        }
    }

    /// Execute a request with this verdict, and answer it. The caller holds the route of that epoch.
    fn carry_out(
        self: &Arc<Self>,
        drive: &Arc<Drive>,
        epoch: u64,
        mut pending: Pending,
        verdict: Verdict,
        took: Took,
    ) {
        let (io, manner, came_ns) = (pending.job.io, pending.job.manner, pending.came_ns);
        if verdict == Verdict::Done && io.length > SLICE_BYTES {
            let moving = Moving::new(self.clone(), drive.clone(), epoch, pending, took);
            self.shared.mover.take(moving);
            return;
        }
        let bytes = pending.bytes();
        let result = drive.finish(&io, manner, verdict, bytes, came_ns, took.due_ns);
        self.conclude(drive, pending, result, took);
    }

    /// Answer a request whose data has moved, or could not be moved.
    fn moved(
        self: &Arc<Self>,
        drive: &Arc<Drive>,
        pending: Pending,
        result: Result<(), u32>,
        took: Took,
    ) {
        drive.recording.note(&pending.job.io, pending.came_ns);
        self.conclude(drive, pending, result, took);
    }

    fn conclude(
        self: &Arc<Self>,
        drive: &Arc<Drive>,
        pending: Pending,
        result: Result<(), u32>,
        took: Took,
    ) {
        let (io, manner) = (pending.job.io, pending.job.manner);
        if result.is_ok() && needs_flush(&io, manner) && drive.is_on_file() {
            let (path, opening) = (self.clone(), self.first_answer());
            let told = move |is_good| {
                if let Some(opening) = opening.filter(|_| is_good) {
                    path.tell_answer(opening, &io, took.service_ns);
                }
            };
            self.shared.flusher.flush(drive.clone(), pending, told);
        } else {
            pending.answer(result);
            self.note_answer(&io, result.is_ok(), took.service_ns);
        }
    }

    /// The caller holds the route's lock, so that the next release of the path finds the request.
    fn hold(self: &Arc<Self>, pending: Pending) {
        let give_up_ns = pending.came_ns + self.shared.link_timeout_ns;
        let mut held = self.held.lock();
        held.pending.push(pending);
        self.shared.held.now.fetch_add(1, Ordering::Relaxed);
        self.shared.held.total.fetch_add(1, Ordering::Relaxed);
        self.alarm(&mut held, give_up_ns);
    }

    fn alarm(self: &Arc<Self>, held: &mut Held, at_ns: u64) {
        if held.alarm_ns.is_none_or(|alarm_ns| at_ns < alarm_ns) {
            held.alarm_ns = Some(at_ns);
            self.shared
                .timer
                .add(at_ns, TimerEntry::GiveUp(self.clone()));
        }
    }

    /// Execute all held requests. To be called after the route was changed.
    pub fn release(self: &Arc<Self>) {
        let pending = std::mem::take(&mut self.held.lock().pending);
        self.no_longer_held(pending.len());
        for pending in pending {
            self.submit(pending);
        }
    }

    /// Fail the requests held for the whole link time-out.
    pub fn give_up(self: &Arc<Self>) {
        let limit_ns = now_ns().saturating_sub(self.shared.link_timeout_ns);
        let mut held = self.held.lock();
        held.alarm_ns = None;
        let (over, stays): (Vec<_>, Vec<_>) = std::mem::take(&mut held.pending)
            .into_iter()
            .partition(|pending| pending.came_ns <= limit_ns);
        held.pending = stays;
        if let Some(oldest_ns) = held.pending.iter().map(|pending| pending.came_ns).min() {
            self.alarm(&mut held, oldest_ns + self.shared.link_timeout_ns);
        }
        drop(held);
        self.no_longer_held(over.len());
        self.shared
            .held
            .timeouts
            .fetch_add(over.len() as u64, Ordering::Relaxed);
        for pending in over {
            self.shared.truth.write_now(What::HeldTimeout {
                export: self.name.clone(),
                kind: pending.job.io.kind,
                offset: pending.job.io.offset,
                length: pending.job.io.length,
                due_ns: pending.came_ns + self.shared.link_timeout_ns,
            });
            pending.answer(Err(errno::EIO));
        }
    }

    /// Drop a disconnected client's requests, held here and in the drive.
    pub fn forget(&self, connection: &Arc<Connection>) {
        if let Some(drive) = &self.route.read().drive {
            drive.abort(|queued| queued.pending.is_of(connection), &self.shared);
        }
        let mut held = self.held.lock();
        let before = held.pending.len();
        held.pending.retain(|pending| !pending.is_of(connection));
        self.no_longer_held(before - held.pending.len());
    }

    fn no_longer_held(&self, count: usize) {
        self.shared
            .held
            .now
            .fetch_sub(count as u64, Ordering::Relaxed);
    }
}

/// A request for more than a moment of the drive's memory, though it carries no data.
fn moves_in_pieces(io: &Io) -> bool {
    matches!(io.kind, Kind::Trim | Kind::WriteZeroes) && io.length > SLICE_BYTES
}

fn needs_flush(io: &Io, manner: Manner) -> bool {
    io.kind == Kind::Flush || manner.fua
}
