//! A drive that serves I/O: its state machine, its bytes, and what becomes of a request.

use std::io;
use std::sync::Arc;

use device::{DriveState, Io, Kind, Record, Verdict, What};
use nbd::proto::errno;
use parking_lot::Mutex;

use crate::backing::Backing;
use crate::clock::now_ns;
use crate::recording::Recording;
use crate::truth::TruthLog;

/// Who a drive says it is.
pub struct Identity {
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

/// The bytes of a request: what a read fills, what a write stores.
pub enum Bytes<'a> {
    None,
    Fill(&'a mut [u8]),
    Store(&'a [u8]),
}

/// How a request may be carried out, beside what [`Io`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// On stable media before it completes.
    pub fua: bool,
    /// Write zeroes without making a hole.
    pub no_hole: bool,
}

pub struct Drive {
    pub identity: Identity,
    pub state: Mutex<DriveState>,
    pub recording: Recording,
    backing: Backing,
    truth: TruthLog,
}

impl Drive {
    pub fn new(identity: Identity, state: DriveState, backing: Backing, truth: TruthLog) -> Self {
        Self {
            identity,
            state: Mutex::new(state),
            recording: Recording::default(),
            backing,
            truth,
        }
    }

    /// What the drive does with a request, or the error number of one that is not on it.
    pub fn begin(&self, io: &Io, now_ns: u64) -> Result<Verdict, u32> {
        if io
            .offset
            .checked_add(io.length)
            .is_none_or(|end| end > self.identity.bytes)
        {
            let beyond = match io.kind {
                Kind::Read => errno::EIO,
                _ => errno::ENOSPC,
            };
            return Err(self.fail(io.offset / u64::from(self.identity.sector_bytes), beyond));
        }
        Ok(self.state.lock().begin(io, now_ns))
    }

    /// Move the bytes of a request whose verdict is due. The error number where it fails. What must be on stable
    /// media needs [`Drive::flush`] as well.
    pub fn finish(
        &self,
        io: &Io,
        manner: Manner,
        verdict: Verdict,
        bytes: Bytes<'_>,
        came_ns: u64,
    ) -> Result<(), u32> {
        let result = self.outcome(io, manner, verdict, bytes);
        self.recording.note(io, came_ns);
        result
    }

    fn outcome(
        &self,
        io: &Io,
        manner: Manner,
        verdict: Verdict,
        bytes: Bytes<'_>,
    ) -> Result<(), u32> {
        if let Verdict::Failed { lba, .. } = verdict {
            return Err(self.fail(lba, errno::EIO));
        }
        self.perform(io, manner, bytes).map_err(|error| {
            let code = match error.raw_os_error() {
                Some(code) if code as u32 == errno::ENOSPC => errno::ENOSPC,
                _ => errno::EIO,
            };
            self.fail(io.offset / u64::from(self.identity.sector_bytes), code)
        })
    }

    fn perform(&self, io: &Io, manner: Manner, bytes: Bytes<'_>) -> io::Result<()> {
        match (io.kind, bytes) {
            (Kind::Read, Bytes::Fill(data)) => {
                self.backing.read(io.offset, data)?;
                self.state.lock().corrupt(io.offset, data);
            }
            (Kind::Write, Bytes::Store(data)) => self.backing.write(io.offset, data)?,
            (Kind::Trim, _) => self.backing.zero(io.offset, io.length, true)?,
            (Kind::WriteZeroes, _) => self.backing.zero(io.offset, io.length, !manner.no_hole)?,
            (Kind::Flush, _) => {}
            (Kind::Read | Kind::Write, _) => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(())
    }

    /// Put what was written on stable media: the rest of a flush, or of a request with FUA.
    pub fn flush(&self) -> Result<(), u32> {
        self.backing.flush().map_err(|_| self.fail(0, errno::EIO))
    }

    fn fail(&self, lba: u64, errno: u32) -> u32 {
        self.truth.write(Record {
            t_ns: now_ns(),
            what: What::IoError {
                drive: self.identity.id.clone(),
                lba,
                errno,
            },
        });
        errno
    }
}
