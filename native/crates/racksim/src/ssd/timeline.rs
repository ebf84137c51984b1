//! The event queue, and servers with an occupancy: lanes, paths and the host interface.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A future event inside the drive. Dies by number, commands by their place in the table of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller has decoded a command.
    Understood(usize),
    /// A die has a page in its register.
    Sensed(u32),
    /// A die has finished its work.
    Finished(u32),
    /// The last bytes of a row have arrived from the host.
    Filled(u32),
    /// The host may have been idle for a while.
    Quiet,
    /// A command is complete.
    Complete(usize),
}

/// Events in order of time, then of insertion.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    added: u64,
}

impl Timeline {
    pub fn add(&mut self, at_ns: u64, event: Event) {
        self.events.push(Reverse((at_ns, self.added, event)));
        self.added += 1;
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    /// The next event, if it happens by `now_ns`.
    pub fn pop(&mut self, now_ns: u64) -> Option<(u64, Event)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.events
            .pop()
            .map(|Reverse((at_ns, _, event))| (at_ns, event))
    }
}

/// A server with a queue in order of arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lane {
    free_at_ns: u64,
}

impl Lane {
    /// The end of `busy_ns` of service requested at `now_ns`.
    pub fn take(&mut self, now_ns: u64, busy_ns: u64) -> u64 {
        self.free_at_ns = self.free_at_ns.max(now_ns) + busy_ns;
        self.free_at_ns
    }
}

/// A data path: a lane for bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    lane: Lane,
    fs_per_byte: u64,
}

impl Path {
    pub fn new(mb_s: f64) -> Self {
        Self {
            lane: Lane::default(),
            fs_per_byte: (1e9 / mb_s).round() as u64,
        }
    }

    /// The end of the transfer of `bytes` bytes that are ready at `now_ns`.
    pub fn carry(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.lane.take(now_ns, bytes * self.fs_per_byte / 1_000_000)
    }

    /// Abort transfers in progress.
    pub fn clear(&mut self) {
        self.lane = Lane::default();
    }
}

/// The link between host and drive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface {
    to_host: Path,
    /// `None` if one path serves both directions.
    to_drive: Option<Path>,
}

impl Interface {
    pub fn new(mb_s: f64, full_duplex: bool) -> Self {
        let path = Path::new(mb_s);
        Self {
            to_host: path,
            to_drive: full_duplex.then_some(path),
        }
    }

    /// Abort transfers in progress.
    pub fn clear(&mut self) {
        self.to_host.clear();
        if let Some(path) = &mut self.to_drive {
            path.clear();
        }
    }

    /// The arrival time of bytes for the host that are ready at `now_ns`.
    pub fn send(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.to_host.carry(now_ns, bytes)
    }

    /// The arrival time of bytes from the host that are requested at `now_ns`.
    pub fn receive(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.to_drive
            .as_mut()
            .unwrap_or(&mut self.to_host)
            .carry(now_ns, bytes)
    }
}
