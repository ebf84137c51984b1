//! A server with a queue in order of arrival, and the share of the time it is busy.

/// Serves one thing after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Server {
    free_ns: u64,
    busy_ns: u64,
}

impl Server {
    /// The end of `work_ns` of work that comes at `now_ns`. Times never go back from one call to the next.
    pub fn take(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns) + work_ns;
        self.busy_ns += work_ns;
        self.free_ns
    }

    /// The time it has been busy until `now_ns`, the time of the last call or later.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        self.busy_ns - self.free_ns.saturating_sub(now_ns)
    }
}

/// A serial path for bytes.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    server: Server,
    ns_per_byte: f64,
    bytes: u64,
}

impl Path {
    /// A path of that data rate, 10^6 B/s.
    pub fn new(mb_s: f64) -> Self {
        Self {
            server: Server::default(),
            ns_per_byte: 1e3 / mb_s,
            bytes: 0,
        }
    }

    /// The end of the transfer of `bytes` that are ready at `now_ns`.
    pub fn carry(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.bytes += bytes;
        let work_ns = (bytes as f64 * self.ns_per_byte).round() as u64;
        self.server.take(now_ns, work_ns)
    }

    /// The time it has been busy until `now_ns`.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        self.server.busy_ns(now_ns)
    }

    /// The bytes that it was given.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_what_came_before_and_counts_as_it_is_done() {
        let mut server = Server::default();
        assert_eq!(server.take(100, 50), 150);
        assert_eq!(server.take(120, 50), 200);
        assert_eq!(server.busy_ns(140), 40);
        assert_eq!(server.busy_ns(200), 100);
        assert_eq!(server.busy_ns(900), 100);
        assert_eq!(server.take(900, 1), 901);
    }

    #[test]
    fn bytes_take_their_time() {
        let mut path = Path::new(12_500.0);
        assert_eq!(path.carry(0, 12_500), 1000);
        assert_eq!(path.carry(0, 12_500), 2000);
        assert_eq!((path.bytes(), path.busy_ns(1500)), (25_000, 1500));
    }
}
