//! A disk under test and a host that asks it.

use racksim::{
    Completion, Hdd, HddParameters, Io, Kind, OnReadError, Request, Service, SmrParameters,
};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

pub const GIB: u64 = 1 << 30;
pub const MIB: u64 = 1 << 20;
pub const KIB: u64 = 1 << 10;
pub const MS: u64 = 1_000_000;
pub const REVOLUTION_NS: u64 = 8_333_333;

/// A nearline drive of 7200 rpm.
pub fn parameters() -> HddParameters {
    HddParameters {
        rpm: 7200,
        heads: 10,
        zones: 16,
        outer_mb_s: 175.0,
        inner_mb_s: 83.0,
        track_to_track_ms: 1.0,
        average_seek_ms: 8.5,
        full_stroke_ms: 16.0,
        write_settle_ms: 1.0,
        head_switch_ms: 0.8,
        command_overhead_us: 50.0,
        interface_mb_s: 600.0,
        queue_depth: 32,
        longest_wait_ms: 1000.0,
        physical_sector_bytes: 512,
        read_segments: 16,
        segment_kib: 2048,
        read_ahead_kib: 1024,
        least_read_ahead_kib: 512,
        write_cache_kib: 65_536,
        write_cache_extents: 256,
        destage_after_ms: 20.0,
        read_error_probability: 0.0,
        retry_ms: [20.0, 40.0],
        smr: None,
    }
}

/// The same drive, shingled.
pub fn shingled() -> HddParameters {
    HddParameters {
        smr: Some(SmrParameters {
            band_kib: 30_720,
            media_cache_percent: 0.25,
            media_cache_extents_per_gib: 32,
            open_bands: 8,
            clean_after_ms: 500.0,
        }),
        ..parameters()
    }
}

/// A disk and the time it is there.
pub struct Disk {
    pub hdd: Hdd,
    pub now_ns: u64,
    next: u64,
    bytes: u64,
    rng: ChaCha8Rng,
}

/// The figures of a closed loop.
#[derive(Debug)]
pub struct Measured {
    pub iops: f64,
    pub mb_s: f64,
    pub longest_ns: u64,
}

impl Disk {
    pub fn new(parameters: HddParameters, bytes: u64) -> Self {
        Self {
            hdd: Hdd::new(parameters, bytes, 512, 7),
            now_ns: 0,
            next: 0,
            bytes,
            rng: ChaCha8Rng::seed_from_u64(11),
        }
    }

    pub fn request(&mut self, kind: Kind, offset: u64, length: u64) -> Request {
        self.next += 1;
        Request {
            ticket: self.next,
            io: Io {
                kind,
                offset,
                length,
            },
            fua: false,
            on_read_error: OnReadError::Retry,
        }
    }

    /// Submit one request and wait for its completion.
    pub fn ask(&mut self, request: &Request) -> Completion {
        self.hdd.submit(request, self.now_ns);
        self.wait(1).remove(0)
    }

    /// The latency of one request.
    pub fn latency_ns(&mut self, kind: Kind, offset: u64, length: u64) -> u64 {
        let from_ns = self.now_ns;
        let request = self.request(kind, offset, length);
        self.ask(&request).at_ns - from_ns
    }

    /// Wait for so many completions.
    pub fn wait(&mut self, count: usize) -> Vec<Completion> {
        let mut completions = Vec::new();
        while completions.len() < count {
            self.now_ns = self
                .now_ns
                .max(self.hdd.next_due_ns().expect("something is asked"));
            self.hdd.advance(self.now_ns, &mut completions);
        }
        completions
    }

    /// Leave it alone, though not before its last completion.
    pub fn rest(&mut self, ns: u64) {
        self.now_ns += ns;
        let mut completions = Vec::new();
        self.hdd.advance(self.now_ns, &mut completions);
        assert_eq!(completions, []);
    }

    /// A block of the drive.
    pub fn somewhere(&mut self, block: u64) -> u64 {
        Uniform::new(0, self.bytes / block)
            .unwrap()
            .sample(&mut self.rng)
            * block
    }

    /// Keep `depth` requests in flight until so many are done.
    pub fn random(&mut self, kind: Kind, block: u64, depth: usize, requests: u64) -> Measured {
        self.closed_loop(kind, block, depth, requests, |disk| disk.somewhere(block))
    }

    /// The same from `from` on, one block after the other.
    pub fn sequential(
        &mut self,
        kind: Kind,
        block: u64,
        depth: usize,
        from: u64,
        requests: u64,
    ) -> Measured {
        let mut next = from;
        self.closed_loop(kind, block, depth, requests, |_| {
            next += block;
            next - block
        })
    }

    fn closed_loop(
        &mut self,
        kind: Kind,
        block: u64,
        depth: usize,
        requests: u64,
        mut offset: impl FnMut(&mut Self) -> u64,
    ) -> Measured {
        let began_ns = self.now_ns;
        let mut submitted = std::collections::BTreeMap::new();
        let mut left = requests;
        let mut longest_ns = 0;
        while left > 0 || !submitted.is_empty() {
            while left > 0 && submitted.len() < depth {
                left -= 1;
                let at = offset(self);
                let request = self.request(kind, at, block);
                submitted.insert(request.ticket, self.now_ns);
                self.hdd.submit(&request, self.now_ns);
            }
            for completion in self.wait(1) {
                let from_ns = submitted
                    .remove(&completion.ticket)
                    .expect("a ticket completes once");
                longest_ns = longest_ns.max(completion.at_ns - from_ns);
            }
        }
        let seconds = (self.now_ns - began_ns) as f64 / 1e9;
        Measured {
            iops: requests as f64 / seconds,
            mb_s: (requests * block) as f64 / seconds / 1e6,
            longest_ns,
        }
    }
}
