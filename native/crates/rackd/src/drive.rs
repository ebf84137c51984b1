//! A drive that serves I/O: its state machine, its storage, and the execution of requests.

use std::io;
use std::sync::Arc;

use backing::Backing;
use nbd::proto::errno;
pub use nbdserver::Bytes;
use nbdserver::Gathering;
use parking_lot::Mutex;
use racksim::{
    Counters, DriveState, Due, Fault, FaultError, FaultName, Io, Kind, OnReadError, StandingFault,
    Verdict, What,
};

use crate::io_path::{Queued, Shared, TimerEntry};
use crate::recording::Recording;
use crate::truth::TruthLog;
use realtime::now_ns;

/// A drive's identity.
pub struct Identity {
    /// Its index in the rack.
    pub number: usize,
    pub id: Arc<str>,
    pub model: String,
    pub serial: String,
    pub firmware: String,
    pub protocol: String,
    pub wwn: Option<String>,
    pub eui64: Option<String>,
    pub bytes: u64,
    pub sector_bytes: u32,
    pub rotational: bool,
}

/// Options of a request beyond [`Io`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// On stable media before it completes.
    pub fua: bool,
    /// Write zeroes without making a hole.
    pub no_hole: bool,
    /// The policy for a sector that cannot be read.
    pub on_read_error: OnReadError,
    /// The index of the only drive that may execute it; any other fails it with EIO. `None` for any drive.
    pub only: Option<usize>,
}

/// A request as the rack sees it.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub io: Io,
    pub manner: Manner,
}

/// A request that waits for its completion time or for a drive.
pub type Pending = nbdserver::Pending<Job>;

/// A drive's state and its next timer alarm.
struct Work {
    state: DriveState<Queued>,
    alarm_ns: Option<u64>,
}

pub struct Drive {
    pub identity: Identity,
    pub recording: Recording,
    work: Mutex<Work>,
    backing: Backing,
    truth: TruthLog,
}

impl Drive {
    pub fn new(
        identity: Identity,
        state: DriveState<Queued>,
        backing: Backing,
        truth: TruthLog,
    ) -> Self {
        let alarm_ns = None;
        Self {
            identity,
            recording: Recording::default(),
            work: Mutex::new(Work { state, alarm_ns }),
            backing,
            truth,
        }
    }

    pub fn counters(&self) -> Counters {
        self.work.lock().state.counters()
    }

    /// The timing model's own counters, by the names of SMART.
    pub fn health(&self) -> Vec<(&'static str, u64)> {
        self.work.lock().state.health()
    }

    /// Add a fault; returns its identity: that of the fault with this key where there is one. It is recorded before
    /// anything can come to it.
    pub fn add_fault(
        &self,
        new_id: u64,
        key: Option<&str>,
        fault: &Fault,
    ) -> Result<u64, FaultError> {
        let mut work = self.work.lock();
        let fault_id = work.state.add_fault(new_id, key, fault)?;
        if fault_id == new_id {
            self.truth.write_now(What::Fault {
                drive: self.identity.id.clone(),
                fault_id,
                key: key.map(str::to_owned),
                fault: fault.clone(),
            });
        }
        Ok(fault_id)
    }

    /// Remove faults; returns the identities of those that were active. That is recorded behind all that came to them.
    pub fn clear_faults(&self, name: FaultName<'_>) -> Vec<u64> {
        let mut work = self.work.lock();
        let gone = work.state.clear_faults(name).into_iter();
        gone.map(|StandingFault { fault_id, key, .. }| {
            self.truth.write_now(What::FaultCleared {
                drive: self.identity.id.clone(),
                fault_id,
                key,
            });
            fault_id
        })
        .collect()
    }

    pub fn faults(&self) -> Vec<StandingFault> {
        self.work.lock().state.faults()
    }

    /// Report a link lost to a map change or a PHY drop; returns the identities of the faults that crash the drive.
    pub fn lose_link(&self) -> Vec<u64> {
        self.work.lock().state.lose_link()
    }

    /// The drive's verdict on a request, or the error number if it is for another drive or out of range.
    pub fn begin(&self, io: &Io, manner: Manner) -> Result<Verdict, u32> {
        // The drive has not failed, so that nothing is logged.
        if manner
            .only
            .is_some_and(|number| number != self.identity.number)
        {
            return Err(errno::EIO);
        }
        if io
            .offset
            .checked_add(io.length)
            .is_none_or(|end| end > self.identity.bytes)
        {
            let beyond = match io.kind {
                Kind::Read => errno::EIO,
                _ => errno::ENOSPC,
            };
            let lba = io.offset / u64::from(self.identity.sector_bytes);
            return Err(self.fail(io.kind, lba, beyond, None));
        }
        let mut work = self.work.lock();
        let verdict = work.state.begin(io);
        self.record_failure(io.kind, verdict, None);
        Ok(verdict)
    }

    /// Submit a request that takes time.
    pub fn submit(self: &Arc<Self>, queued: Queued, shared: &Shared) {
        let (io, manner) = (queued.pending.job.io, queued.pending.job.manner);
        let mut work = self.work.lock();
        work.state
            .submit(&io, manner.fua, manner.on_read_error, queued, now_ns());
        self.set_alarm(&mut work, shared);
    }

    /// Handle an alarm: conclude the requests that are due, unless a newer alarm replaced this one.
    pub fn see_to_due(self: &Arc<Self>, alarm_ns: u64, shared: &Shared) {
        let mut due: Vec<Due<Queued>> = Vec::new();
        {
            let mut work = self.work.lock();
            if work.alarm_ns != Some(alarm_ns) {
                return;
            }
            work.alarm_ns = None;
            work.state.advance(now_ns(), &mut due);
            self.set_alarm(&mut work, shared);
        }
        let mut gathering = Gathering::default();
        let mut leaving = Vec::with_capacity(due.len());
        let count = due.len();
        for (number, due) in due.into_iter().enumerate() {
            leaving.push(due.at_ns);
            if count > 1 {
                gathering.include(&due.payload.pending);
            }
            due.payload.conclude(due.at_ns, due.failed_at);
            if number + 1 == count || gathering.is_enough() {
                gathering.send();
                shared.timer.record_lateness(leaving.drain(..));
            }
        }
    }

    fn set_alarm(self: &Arc<Self>, work: &mut Work, shared: &Shared) {
        let Some(at_ns) = work.state.next_due_ns() else {
            return;
        };
        if work.alarm_ns.is_none_or(|alarm_ns| at_ns < alarm_ns) {
            work.alarm_ns = Some(at_ns);
            shared
                .timer
                .add(at_ns, TimerEntry::Drive(self.clone(), at_ns));
        }
    }

    /// The verdict on a request that was due at `due_ns`.
    pub fn conclude(&self, io: &Io, failed_at: Option<u64>, due_ns: u64) -> Verdict {
        let mut work = self.work.lock();
        let verdict = work.state.conclude(io, failed_at);
        self.record_failure(io.kind, verdict, Some(due_ns));
        verdict
    }

    /// Withdraw requests that were not executed: they have no effect, but still take the drive's time.
    pub fn withdraw(&self, is_meant: impl Fn(&Queued) -> bool) -> Vec<Queued> {
        self.work.lock().state.withdraw(is_meant)
    }

    /// Abort requests whose initiator is gone: the drive drops them, and works on them no more than it must.
    pub fn abort(self: &Arc<Self>, is_meant: impl Fn(&Queued) -> bool, shared: &Shared) {
        let mut work = self.work.lock();
        work.state.abort(is_meant, now_ns());
        self.set_alarm(&mut work, shared);
    }

    /// Whether it currently answers nothing.
    pub fn hangs(&self) -> bool {
        self.work.lock().state.hangs()
    }

    /// Cut the drive's power; returns the requests it was working on.
    pub fn cut_power(&self) -> Vec<Queued> {
        self.work.lock().state.cut_power(now_ns())
    }

    /// Begin to sanitize the drive: it answers nothing until [`Drive::erase`] is done. Returns the requests it was
    /// working on; `None` if it cannot be sanitized now.
    pub fn begin_sanitize(&self) -> Option<Vec<Queued>> {
        self.work.lock().state.begin_sanitize(now_ns())
    }

    /// Erase the drive, which must not be accessed meanwhile. Returns the error number if the storage below fails.
    pub fn erase(&self) -> Result<(), u32> {
        let zeroed = self.backing.zero(0, self.identity.bytes, true);
        self.work.lock().state.finish_sanitize(now_ns());
        zeroed
            .and_then(|()| self.backing.flush())
            .map_err(|_| self.fail(Kind::WriteZeroes, 0, errno::EIO, None))
    }

    /// Whether a flush has to reach the storage below, which takes time.
    pub fn is_on_file(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// Execute a request with the verdict done or failed, due at `due_ns` if the model takes time. Returns the
    /// error number if it fails. Data that must be on stable media needs [`Drive::flush`] as well.
    pub fn finish(
        &self,
        io: &Io,
        manner: Manner,
        verdict: Verdict,
        bytes: Bytes<'_>,
        came_ns: u64,
        due_ns: Option<u64>,
    ) -> Result<(), u32> {
        let result = self.outcome(io, manner, verdict, bytes, due_ns);
        self.recording.note(io, came_ns);
        result
    }

    fn outcome(
        &self,
        io: &Io,
        manner: Manner,
        verdict: Verdict,
        bytes: Bytes<'_>,
        due_ns: Option<u64>,
    ) -> Result<(), u32> {
        if let Verdict::Failed { .. } = verdict {
            return Err(errno::EIO);
        }
        self.move_part(io, manner, bytes, due_ns)
    }

    /// Move the data of a request that is done, or of a part of it. Returns the error number if that fails.
    pub fn move_part(
        &self,
        io: &Io,
        manner: Manner,
        bytes: Bytes<'_>,
        due_ns: Option<u64>,
    ) -> Result<(), u32> {
        self.perform(io, manner, bytes).map_err(|error| {
            let code = match error.raw_os_error() {
                Some(code) if code as u32 == errno::ENOSPC => errno::ENOSPC,
                _ => errno::EIO,
            };
            let lba = io.offset / u64::from(self.identity.sector_bytes);
            self.fail(io.kind, lba, code, due_ns)
        })
    }

    fn perform(&self, io: &Io, manner: Manner, bytes: Bytes<'_>) -> io::Result<()> {
        match (io.kind, bytes) {
            (Kind::Read, Bytes::Fill(data)) => {
                self.backing.read(io.offset, data)?;
                self.work.lock().state.corrupt(io.offset, data);
            }
            (Kind::Write, Bytes::Store(data)) => self.backing.write(io.offset, data)?,
            (Kind::Trim, _) => self.backing.zero(io.offset, io.length, true)?,
            (Kind::WriteZeroes, _) => self.backing.zero(io.offset, io.length, !manner.no_hole)?,
            (Kind::Flush, _) => {}
            (Kind::Read | Kind::Write, _) => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(())
    }

    /// Flush written data to stable media: the last step of a flush, or of a request with FUA.
    pub fn flush(&self) -> Result<(), u32> {
        let flushed = self.backing.flush();
        flushed.map_err(|_| self.fail(Kind::Flush, 0, errno::EIO, None))
    }

    /// Record a verdict that a request failed. The caller holds the lock of the drive's work, so that the record is
    /// between those of the fault that it comes from.
    fn record_failure(&self, kind: Kind, verdict: Verdict, due_ns: Option<u64>) {
        if let Verdict::Failed { lba } = verdict {
            self.fail(kind, lba, errno::EIO, due_ns);
        }
    }

    fn fail(&self, kind: Kind, lba: u64, errno: u32, due_ns: Option<u64>) -> u32 {
        self.truth.write_now(What::IoError {
            drive: self.identity.id.clone(),
            kind,
            lba,
            errno,
            due_ns,
        });
        errno
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Seek};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use backing::Memory;
    use racksim::Timing;
    use rustix::fs::{memfd_create, MemfdFlags};

    use super::*;

    const BYTES: u64 = 1 << 20;
    const ROUNDS: u64 = 5000;

    /// A drive of this content that takes no time.
    pub(crate) fn ideal_drive(bytes: u64, content: Memory, truth: TruthLog) -> Drive {
        let identity = Identity {
            number: 0,
            id: "d01".into(),
            model: String::new(),
            serial: String::new(),
            firmware: String::new(),
            protocol: String::new(),
            wwn: None,
            eui64: None,
            bytes,
            sector_bytes: 512,
            rotational: false,
        };
        let service = Timing::Ideal {}.start(bytes, 512, 1);
        let state = DriveState::new(bytes, 512, service);
        Drive::new(identity, state, Backing::Memory(content), truth)
    }

    /// Read as fast as can be, until it is over.
    fn read_on(drive: &Drive, is_over: &AtomicBool) {
        let read = Io {
            kind: Kind::Read,
            offset: 0,
            length: 512,
        };
        let manner = Manner::default();
        while !is_over.load(Ordering::Relaxed) {
            let verdict = drive.begin(&read, manner).unwrap();
            let bytes = Bytes::Fill(&mut [0; 512]);
            let _ = drive.finish(&read, manner, verdict, bytes, 0, None);
        }
    }

    #[test]
    fn errors_are_recorded_between_the_fault_that_they_come_from_and_its_end() {
        let mut file = std::fs::File::from(memfd_create("truth", MemfdFlags::empty()).unwrap());
        let truth = TruthLog::start(file.try_clone().unwrap());
        let memory = Memory::new(BYTES, false).unwrap();
        let drive = ideal_drive(BYTES, memory, truth.clone());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| read_on(&drive, &is_over)))
                .collect();
            for id in 1..=ROUNDS {
                drive.add_fault(id, None, &Fault::Dead {}).unwrap();
                assert_eq!(drive.clear_faults(FaultName::All), [id]);
            }
            is_over.store(true, Ordering::Relaxed);
            readers
                .into_iter()
                .for_each(|reader| reader.join().unwrap());
        });
        truth.settle();
        let mut records = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut records).unwrap();
        let mut is_dead = false;
        for record in records.lines() {
            if record.contains("io_error") {
                assert!(is_dead, "{record}");
            } else {
                is_dead = record.contains(r#""event":"fault""#);
            }
        }
        assert!(records.contains("fault_cleared"));
    }
}
