//! Servers with an occupancy: lanes, paths and the host interface.

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
