//! A thread that moves the data of long requests in pieces, so that neither the timer nor a map change waits for them.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;

use racksim::{Io, Kind};

use super::{IoPath, Took};
use crate::drive::{Drive, Pending};

/// Longer requests are moved by this thread; those without data in pieces of this size.
pub const SLICE_BYTES: u64 = 1 << 20;

/// A request whose drive time is over and whose data is being moved.
pub struct Moving {
    path: Arc<IoPath>,
    drive: Arc<Drive>,
    /// Epoch of the route that led to the drive.
    epoch: u64,
    pending: Pending,
    took: Took,
    moved: u64,
}

impl Moving {
    pub(super) fn new(
        path: Arc<IoPath>,
        drive: Arc<Drive>,
        epoch: u64,
        pending: Pending,
        took: Took,
    ) -> Self {
        Self {
            path,
            drive,
            epoch,
            pending,
            took,
            moved: 0,
        }
    }

    /// Move one piece; returns what is left. Nothing is done for a disconnected client. If the drive was remapped
    /// meanwhile, or hangs, the request is held and starts over at the next drive.
    fn step(mut self) -> Option<Self> {
        if self.pending.is_orphaned() {
            return None;
        }
        let route = self.path.route.read();
        if route.epoch != self.epoch {
            drop(route);
            self.path.submit(self.pending);
            return None;
        }
        if self.drive.hangs() {
            self.path.open(None);
            self.path.hold(self.pending);
            return None;
        }
        let part = self.next_part();
        let manner = self.pending.job.manner;
        let bytes = self.pending.bytes();
        let done = self.drive.move_part(&part, manner, bytes, self.took.due_ns);
        drop(route);
        self.moved += part.length;
        if done.is_ok() && self.moved < self.pending.job.io.length {
            return Some(self);
        }
        self.path.moved(&self.drive, self.pending, done, self.took);
        None
    }

    /// A request with data moves as a whole, so that it executes on one drive. The pieces of one without end at
    /// multiples of their size, so that none ends within a sector.
    fn next_part(&self) -> Io {
        let Io {
            kind,
            offset,
            length,
        } = self.pending.job.io;
        let offset = offset + self.moved;
        let left = length - self.moved;
        let length = match kind {
            Kind::Read | Kind::Write => left,
            _ => left.min(SLICE_BYTES - offset % SLICE_BYTES),
        };
        Io {
            kind,
            offset,
            length,
        }
    }
}

/// A handle to the mover thread.
pub struct Mover(Sender<Moving>);

impl Mover {
    /// Start the thread.
    pub fn start() -> io::Result<Self> {
        let (sender, receiver) = channel();
        thread::Builder::new()
            .name("mover".into())
            .spawn(move || run(&receiver))?;
        Ok(Self(sender))
    }

    /// Move the data of a request, then answer it.
    pub fn take(&self, moving: Moving) {
        // The thread lives as long as the process.
        let _ = self.0.send(moving);
    }
}

/// A piece of each in turn.
fn run(coming: &Receiver<Moving>) {
    let mut turns = VecDeque::new();
    loop {
        if turns.is_empty() {
            let Ok(first) = coming.recv() else { return };
            turns.push_back(first);
        }
        turns.extend(coming.try_iter());
        let next = turns.pop_front().and_then(Moving::step);
        turns.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use backing::Memory;
    use nbd::proto::{cmd, Request};
    use nbdserver::{Connection, Style};
    use racksim::{Fault, FaultName};

    use super::*;
    use crate::drive::tests::ideal_drive;
    use crate::drive::{Job, Manner};
    use crate::flusher::Flusher;
    use crate::io_path::{HeldCounts, Shared};
    use crate::truth::TruthLog;
    use daemon::Timer;

    const BYTES: u64 = 4 * SLICE_BYTES;

    /// A drive full of ones, and the path that leads to it.
    fn bench() -> (Arc<IoPath>, Arc<Drive>) {
        let null = File::options().write(true).open("/dev/null").unwrap();
        let truth = TruthLog::start(null);
        let shared = Shared {
            link_timeout_ns: 30_000_000_000,
            timer: Timer::new(),
            truth: truth.clone(),
            held: HeldCounts::default(),
            flusher: Flusher::start().unwrap(),
            mover: Mover::start().unwrap(),
        };
        let memory = Memory::new(BYTES, false).unwrap();
        memory.write(0, &vec![1; BYTES as usize]);
        let drive = Arc::new(ideal_drive(BYTES, memory, truth));
        let path = IoPath::new("drive.d01".into(), BYTES, false, Arc::new(shared));
        path.stop().drive = Some(drive.clone());
        (Arc::new(path), drive)
    }

    fn pair() -> (Arc<Connection>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let connection = Connection::new(ours.into(), Style::Simple, Arc::default());
        (Arc::new(connection), theirs)
    }

    fn zeroes(connection: &Arc<Connection>) -> Pending {
        let io = Io {
            kind: Kind::WriteZeroes,
            offset: 512,
            length: BYTES - 1024,
        };
        let manner = Manner::default();
        let request = Request {
            flags: 0,
            command: cmd::WRITE_ZEROES,
            cookie: 7,
            offset: io.offset,
            length: io.length as u32,
        };
        connection
            .enter(&request)
            .defer(Job { io, manner }, vec![], 0)
    }

    fn moving(path: &Arc<IoPath>, drive: &Arc<Drive>, connection: &Arc<Connection>) -> Moving {
        Moving::new(
            path.clone(),
            drive.clone(),
            0,
            zeroes(connection),
            Took::default(),
        )
    }

    /// Number of bytes of the drive that are still ones.
    fn ones(drive: &Drive) -> usize {
        let mut data = vec![0; BYTES as usize];
        let io = Io {
            kind: Kind::Read,
            offset: 0,
            length: BYTES,
        };
        let bytes = crate::drive::Bytes::Fill(&mut data);
        let read = drive.move_part(&io, Manner::default(), bytes, None);
        assert_eq!(read, Ok(()));
        data.iter().filter(|&&byte| byte == 1).count()
    }

    #[test]
    fn a_long_request_moves_piece_by_piece_and_is_answered_at_its_end() {
        let (path, drive) = bench();
        let (connection, mut client) = pair();
        let mut next = Some(moving(&path, &drive, &connection));
        let mut left = Vec::new();
        while let Some(moving) = next {
            next = moving.step();
            left.push(ones(&drive));
        }
        let slice = SLICE_BYTES as usize;
        assert_eq!(left, [3 * slice + 512, 2 * slice + 512, slice + 512, 1024]);
        let mut reply = [0; 16];
        client.read_exact(&mut reply).unwrap();
        assert_eq!((reply[7], reply[15]), (0, 7));
    }

    #[test]
    fn nothing_more_is_done_for_a_client_that_has_gone() {
        let (path, drive) = bench();
        let (connection, _client) = pair();
        let rest = moving(&path, &drive, &connection).step().unwrap();
        let before = ones(&drive);
        connection.close();
        assert!(rest.step().is_none());
        assert_eq!(ones(&drive), before);
    }

    #[test]
    fn a_map_change_comes_between_two_pieces_and_the_request_begins_anew() {
        let (path, drive) = bench();
        let (connection, _client) = pair();
        let rest = moving(&path, &drive, &connection).step().unwrap();
        let before = ones(&drive);
        {
            let mut route = path.stop();
            route.drive = None;
            route.epoch += 1;
        }
        assert!(rest.step().is_none());
        assert_eq!(ones(&drive), before);
        assert_eq!(path.held.lock().pending.len(), 1);
    }

    #[test]
    fn a_drive_that_hangs_moves_nothing_more() {
        let (path, drive) = bench();
        let (connection, _client) = pair();
        let rest = moving(&path, &drive, &connection).step().unwrap();
        drive.add_fault(1, None, &Fault::Hang {}).unwrap();
        let before = ones(&drive);
        assert!(rest.step().is_none());
        assert_eq!(ones(&drive), before);
        assert_eq!(path.held.lock().pending.len(), 1);
        drive.clear_faults(FaultName::All);
    }

    #[test]
    fn a_long_request_waits_for_nothing_and_still_leaves_the_line_between_its_pieces() {
        let (path, drive) = bench();
        let (connection, mut client) = pair();
        let mut io = zeroes(&connection).job.io;
        assert_eq!(
            path.attempt(&io, Manner::default(), crate::drive::Bytes::None, 0),
            None
        );
        io.length = SLICE_BYTES;
        let at_once = path.attempt(&io, Manner::default(), crate::drive::Bytes::None, 0);
        assert_eq!(at_once, Some(Ok(())));
        path.submit(zeroes(&connection));
        client.read_exact(&mut [0; 16]).unwrap();
        assert_eq!(ones(&drive), 1024);
    }
}
