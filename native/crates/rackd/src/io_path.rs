//! The path from an export to whatever drive answers there: where I/O and map changes meet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use nbd::proto::errno;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use racksim::{Attach, Io, Kind, Record, Verdict, What};

use crate::clock::now_ns;
use crate::connection::{Connection, Pending};
use crate::drive::{Bytes, Drive, Manner};
use crate::flusher::Flusher;
use crate::timer::Timer;
use crate::truth::TruthLog;

mod mover;

pub use mover::Mover;
use mover::{Moving, SLICE_BYTES};

/// What the timer does when it is time.
pub enum TimerEntry {
    /// Let the rack do what is due by this alarm of its.
    Rack(u64),
    /// Let a drive do what is due by this alarm of its.
    Drive(Arc<Drive>, u64),
    /// Give up requests this path has held too long.
    GiveUp(Arc<IoPath>),
}

/// Where a path leads. Changed only under the path's write lock, so that no request straddles a change.
#[derive(Default)]
pub struct Route {
    pub drive: Option<Arc<Drive>>,
    /// Counts changes of `drive`.
    pub epoch: u64,
}

/// A drive that came online on a path, of which nothing was answered yet.
pub struct Opening {
    /// When the drive came online.
    t_ns: u64,
    /// The circuit it came by.
    attach: Attach,
}

impl Opening {
    /// How `drive` came online, where `records` say that it did.
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

/// A request that a drive works on, and the route it took there.
pub struct Queued {
    pub path: Arc<IoPath>,
    pub pending: Pending,
    epoch: u64,
    /// When the drive took it on.
    since_ns: u64,
}

impl Queued {
    /// It was due at `due_ns`. Where the link to the drive that took it on was lost meanwhile, it goes to the drive that
    /// is there by now.
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
            Some(drive) if route.epoch == epoch => match drive.conclude(&pending.io, failed_at) {
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
            },
            _ => {
                drop(route);
                path.submit(pending);
            }
        }
    }

    /// It was not executed: it waits for whatever drive comes online on its path, which the caller has stopped.
    pub fn hold(self) {
        self.path.hold(self.pending);
    }

    /// It was not executed: it begins anew.
    pub fn submit(self) {
        self.path.submit(self.pending);
    }
}

/// What a drive took for a request.
#[derive(Clone, Copy, Default)]
struct Took {
    service_ns: u64,
    /// When it was ready, where the drive takes its time.
    due_ns: Option<u64>,
}

/// Requests that wait for a drive.
#[derive(Default)]
struct Held {
    pending: Vec<Pending>,
    /// When the timer looks at them next.
    alarm_ns: Option<u64>,
}

/// How much is, and was, held on all paths.
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
    /// A drive has come online, and nothing was answered since.
    is_fresh: AtomicBool,
    opening: Mutex<Option<Opening>>,
    shared: Arc<Shared>,
}

/// What all paths share.
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

    /// Stop I/O on this path until the guard is dropped; what is executing finishes first.
    pub fn stop(&self) -> RwLockWriteGuard<'_, Route> {
        self.route.write()
    }

    /// The first answer from now on is one to a drive that came online; with `None` there is nothing to say of it.
    pub fn open(&self, opening: Option<Opening>) {
        let mut waits = self.opening.lock();
        self.is_fresh.store(opening.is_some(), Ordering::Release);
        *waits = opening;
    }

    /// A request was answered, having spent `service_ns` in the drive: note it where it is the first.
    fn note_answer(&self, io: &Io, is_good: bool, service_ns: u64) {
        if !self.is_fresh.load(Ordering::Acquire) {
            return;
        }
        let t_ns = now_ns();
        let opening = self.opening.lock().take();
        self.is_fresh.store(false, Ordering::Release);
        let Some(Opening {
            t_ns: online_ns,
            attach,
        }) = opening.filter(|_| is_good)
        else {
            return;
        };
        self.shared.truth.write(Record {
            t_ns,
            what: What::Answered {
                attach: Attach {
                    due_ns: Some(online_ns + service_ns),
                    ..attach
                },
                kind: io.kind,
                offset: io.offset,
                length: io.length,
            },
        });
    }

    /// The drive that answers here now.
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

    /// Carry out a request that came at `came_ns`, if that can be done at once.
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
            Err(errno) => Err(errno),
        };
        self.note_answer(io, result.is_ok(), 0);
        if result.is_err() || !needs_flush(io, manner) {
            return result.into();
        }
        // A map change need not wait for the storage below.
        let drive = drive.clone();
        drop(route);
        Some(drive.flush())
    }

    /// Carry out a request that may have to wait, and answer it when that is over.
    pub fn submit(self: &Arc<Self>, pending: Pending) {
        if pending.is_orphaned() {
            return;
        }
        let route = self.route.read();
        let Some(drive) = &route.drive else {
            return self.hold(pending);
        };
        match drive.begin(&pending.io, pending.manner) {
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

    /// Carry out a request with this verdict of the drive's, and answer it. The caller holds the route of that epoch.
    fn carry_out(
        self: &Arc<Self>,
        drive: &Arc<Drive>,
        epoch: u64,
        mut pending: Pending,
        verdict: Verdict,
        took: Took,
    ) {
        let (io, manner, came_ns) = (pending.io, pending.manner, pending.came_ns);
        if verdict == Verdict::Done && io.length > SLICE_BYTES {
            let moving = Moving::new(self.clone(), drive.clone(), epoch, pending, took);
            self.shared.mover.take(moving);
            return;
        }
        let bytes = pending.bytes();
        let result = drive.finish(&io, manner, verdict, bytes, came_ns, took.due_ns);
        self.conclude(drive, pending, result, took);
    }

    /// The data of a request has moved, or could not be.
    fn moved(&self, drive: &Arc<Drive>, pending: Pending, result: Result<(), u32>, took: Took) {
        drive.recording.note(&pending.io, pending.came_ns);
        self.conclude(drive, pending, result, took);
    }

    fn conclude(&self, drive: &Arc<Drive>, pending: Pending, result: Result<(), u32>, took: Took) {
        let (io, manner) = (pending.io, pending.manner);
        if result.is_ok() && needs_flush(&io, manner) && drive.is_on_file() {
            self.shared.flusher.flush(drive.clone(), pending);
        } else {
            pending.answer(result);
            self.note_answer(&io, result.is_ok(), took.service_ns);
        }
    }

    /// The caller holds the route's lock: whoever opens the path next finds the request.
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

    /// A drive answers again: carry out everything that was held. To be called after the route was changed.
    pub fn release(self: &Arc<Self>) {
        let pending = std::mem::take(&mut self.held.lock().pending);
        self.no_longer_held(pending.len());
        for pending in pending {
            self.submit(pending);
        }
    }

    /// Fail what was held for the whole link time-out.
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
            self.shared.truth.write(Record {
                t_ns: now_ns(),
                what: What::HeldTimeout {
                    export: self.name.clone(),
                    kind: pending.io.kind,
                    offset: pending.io.offset,
                    length: pending.io.length,
                    due_ns: pending.came_ns + self.shared.link_timeout_ns,
                },
            });
            pending.answer(Err(errno::EIO));
        }
    }

    /// The client is gone: forget what it had waiting here, and in the drive.
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
