//! What will happen when, and what is taken until when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that will happen inside the drive. Dies by number, commands by their place in the table of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller has understood a command.
    Understood(usize),
    /// A die has a page in its register.
    Sensed(u32),
    /// A die has finished what it was doing.
    Finished(u32),
    /// The last bytes of a row have come from the host.
    Filled(u32),
    /// The host may have been idle for a while.
    Quiet,
    /// A command is complete.
    Complete(usize),
}

/// Events in order of time, and of coming to be where times are equal.
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

/// Something that serves one after another, in the order they ask.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lane {
    free_at_ns: u64,
}

impl Lane {
    /// When `busy_ns` of it are over that are asked for at `now_ns`.
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

    /// When `bytes` bytes that are ready at `now_ns` are through.
    pub fn carry(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.lane.take(now_ns, bytes * self.fs_per_byte / 1_000_000)
    }

    /// Drop what is under way.
    pub fn clear(&mut self) {
        self.lane = Lane::default();
    }
}

/// The way between host and drive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface {
    to_host: Path,
    /// `None` where the one path serves both directions.
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

    /// Drop what is under way.
    pub fn clear(&mut self) {
        self.to_host.clear();
        if let Some(path) = &mut self.to_drive {
            path.clear();
        }
    }

    /// When bytes for the host are there that are ready at `now_ns`.
    pub fn send(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.to_host.carry(now_ns, bytes)
    }

    /// When bytes from the host are here that are wanted at `now_ns`.
    pub fn receive(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.to_drive
            .as_mut()
            .unwrap_or(&mut self.to_host)
            .carry(now_ns, bytes)
    }
}
