//! The line from an export to whatever drive answers there: where I/O and map changes meet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use device::{Io, Kind, Record, Verdict, What};
use nbd::proto::errno;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::clock::now_ns;
use crate::connection::{Connection, Pending};
use crate::drive::{Bytes, Drive, Manner};
use crate::timer::Timer;
use crate::truth::TruthLog;

/// What the timer does when it is time.
pub enum Due {
    /// Let the rack do what is due by this alarm of its.
    Rack(u64),
    /// Complete a request of this line.
    Complete(Arc<Line>, Pending, Admitted, u64),
    /// Give up requests this line has held too long.
    GiveUp(Arc<Line>),
}

/// Where a line leads. Changed only under the line's write lock, so that no request straddles a change.
#[derive(Default)]
pub struct Route {
    pub drive: Option<Arc<Drive>>,
    /// Counts changes of `drive`.
    pub epoch: u64,
}

/// A verdict, and the route it was given on.
#[derive(Debug, Clone, Copy)]
pub struct Admitted {
    epoch: u64,
    verdict: Verdict,
}

/// What became of a request.
pub enum Step {
    /// It completed, with this error number where it failed.
    Finished(Result<(), u32>),
    /// The drive completes it at this time.
    Later(u64, Admitted),
    /// No drive answers.
    Held,
}

/// Requests that wait for a drive.
#[derive(Default)]
struct Held {
    pending: Vec<Pending>,
    /// When the timer looks at them next.
    alarm_ns: Option<u64>,
}

/// How much is, and was, held on all lines.
#[derive(Default)]
pub struct HeldCounts {
    pub now: AtomicU64,
    pub total: AtomicU64,
    pub timeouts: AtomicU64,
}

pub struct Line {
    pub name: Arc<str>,
    /// The size of the export.
    pub bytes: u64,
    pub rotational: bool,
    route: RwLock<Route>,
    held: Mutex<Held>,
    shared: Arc<Shared>,
}

/// What all lines share.
pub struct Shared {
    pub link_timeout_ns: u64,
    pub timer: Timer<Due>,
    pub truth: TruthLog,
    pub held: HeldCounts,
}

impl Line {
    pub fn new(name: Arc<str>, bytes: u64, rotational: bool, shared: Arc<Shared>) -> Self {
        Self {
            name,
            bytes,
            rotational,
            route: RwLock::default(),
            held: Mutex::default(),
            shared,
        }
    }

    /// Stop I/O on this line until the guard is dropped; what is executing finishes first.
    pub fn stop(&self) -> RwLockWriteGuard<'_, Route> {
        self.route.write()
    }

    /// Whether this line leads to `drive`.
    pub fn leads_to(&self, drive: &Arc<Drive>) -> bool {
        let route = self.route.read();
        route
            .drive
            .as_ref()
            .is_some_and(|of_line| Arc::ptr_eq(of_line, drive))
    }

    /// Carry out a request without waiting for anything.
    pub fn attempt(&self, io: &Io, manner: Manner, bytes: Bytes<'_>, came_ns: u64) -> Step {
        let route = self.route.read();
        match step(&route, io, manner, bytes, came_ns, came_ns) {
            Step::Finished(result) => Step::Finished(persist(route, io, manner, result)),
            waits => waits,
        }
    }

    /// Carry out a request that may have to wait, and answer it when that is over.
    pub fn submit(self: &Arc<Self>, mut pending: Pending) {
        if pending.is_orphaned() {
            return;
        }
        let route = self.route.read();
        let (io, manner) = (pending.io, pending.manner);
        let came_ns = pending.came_ns;
        match step(&route, &io, manner, pending.bytes(), came_ns, now_ns()) {
            Step::Finished(result) => pending.answer(persist(route, &io, manner, result)),
            Step::Later(at_ns, admitted) => self.complete_later(pending, at_ns, admitted),
            Step::Held => self.hold(pending),
        }
    }

    /// Complete a request that its drive finishes at `at_ns`.
    pub fn complete_later(self: &Arc<Self>, pending: Pending, at_ns: u64, admitted: Admitted) {
        let due = Due::Complete(self.clone(), pending, admitted, at_ns);
        self.shared.timer.add(at_ns, due);
    }

    /// It is time: complete the request on the drive that took it on, or, where the link to that one was lost,
    /// on the drive that is there by now.
    pub fn complete(self: &Arc<Self>, mut pending: Pending, admitted: Admitted) {
        if pending.is_orphaned() {
            return;
        }
        let route = self.route.read();
        match &route.drive {
            Some(drive) if route.epoch == admitted.epoch => {
                let (io, manner) = (pending.io, pending.manner);
                let came_ns = pending.came_ns;
                let result = drive.finish(&io, manner, admitted.verdict, pending.bytes(), came_ns);
                pending.answer(persist(route, &io, manner, result));
            }
            _ => {
                drop(route);
                self.submit(pending);
            }
        }
    }

    /// The caller holds the route's lock: whoever opens the line next finds the request.
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
            self.shared.timer.add(at_ns, Due::GiveUp(self.clone()));
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
                },
            });
            pending.answer(Err(errno::EIO));
        }
    }

    /// The client is gone: forget what it had waiting here.
    pub fn forget(&self, connection: &Arc<Connection>) {
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

/// Do what a flush or FUA asks for once the bytes have moved. A map change need not wait for the storage below.
fn persist(
    route: RwLockReadGuard<'_, Route>,
    io: &Io,
    manner: Manner,
    result: Result<(), u32>,
) -> Result<(), u32> {
    if io.kind != Kind::Flush && !manner.fua {
        return result;
    }
    let drive = route.drive.clone();
    drop(route);
    match drive {
        Some(drive) => result.and_then(|()| drive.flush()),
        None => result,
    }
}

fn step(
    route: &Route,
    io: &Io,
    manner: Manner,
    bytes: Bytes<'_>,
    came_ns: u64,
    now_ns: u64,
) -> Step {
    let Some(drive) = &route.drive else {
        return Step::Held;
    };
    let verdict = match drive.begin(io, now_ns) {
        Ok(verdict) => verdict,
        Err(errno) => return Step::Finished(Err(errno)),
    };
    match verdict {
        Verdict::Hangs => Step::Held,
        Verdict::Done { done_at_ns } | Verdict::Failed { done_at_ns, .. }
            if done_at_ns > now_ns =>
        {
            let epoch = route.epoch;
            Step::Later(done_at_ns, Admitted { epoch, verdict })
        }
        _ => Step::Finished(drive.finish(io, manner, verdict, bytes, came_ns)),
    }
}
