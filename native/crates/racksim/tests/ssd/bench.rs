//! An SSD on a bench: one request after another, or many at once, in virtual time.

use std::collections::HashMap;

use racksim::{Completion, Io, Kind, OnReadError, Request, Service, Ssd, SsdParameters};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

pub const MIB: u64 = 1 << 20;
pub const BYTES: u64 = 64 * MIB;

/// A drive of eight dies, whose times are the same each time.
pub fn parameters() -> SsdParameters {
    serde_json::from_str(
        r#"{
            "channels": 4, "dies_per_channel": 2, "planes": 2, "page_kib": 16, "pages_per_block": 768,
            "read_us": 50, "program_us": 800, "erase_us": 4000, "variation_percent": 0,
            "channel_mb_s": 400, "interface_mb_s": 1000, "full_duplex": true,
            "command_us": 2, "read_overhead_us": 6, "write_overhead_us": 8, "queue_depth": 64,
            "write_buffer_kib": 1024, "power_loss_protection": true, "over_provisioning_percent": 14,
            "reads_ahead": 8
        }"#,
    )
    .unwrap()
}

/// The figures of a load.
pub struct Measured {
    pub elapsed_ns: u64,
    /// Latencies of the reads, ascending.
    pub read_ns: Vec<u64>,
}

impl Measured {
    pub fn p99_read_ns(&self) -> u64 {
        self.read_ns[self.read_ns.len() * 99 / 100]
    }
}

pub struct Bench {
    pub ssd: Ssd,
    now_ns: u64,
    tickets: u64,
}

impl Bench {
    pub fn new(parameters: SsdParameters) -> Self {
        parameters.check(BYTES).unwrap();
        Self {
            ssd: Ssd::new(parameters, BYTES, 512, 1),
            now_ns: 0,
            tickets: 0,
        }
    }

    /// The same bench at a later time.
    pub fn resumed_at(self, now_ns: u64) -> Self {
        Self { now_ns, ..self }
    }

    /// Submit a request now.
    pub fn submit(&mut self, kind: Kind, offset: u64, length: u64, fua: bool) {
        self.tickets += 1;
        let io = Io {
            kind,
            offset,
            length,
        };
        let request = Request {
            ticket: self.tickets,
            io,
            fua,
            on_read_error: OnReadError::Retry,
        };
        self.ssd.submit(&request, self.now_ns);
    }

    /// Bring the drive to its next completions.
    pub fn next(&mut self) -> Vec<Completion> {
        let mut completions = Vec::new();
        while completions.is_empty() {
            self.now_ns = self.ssd.next_due_ns().expect("something is under way");
            self.ssd.advance(self.now_ns, &mut completions);
        }
        completions
    }

    /// The latency of a request by itself.
    pub fn time_ns(&mut self, kind: Kind, offset: u64, length: u64) -> u64 {
        self.time_fua_ns(kind, offset, length, false)
    }

    pub fn time_fua_ns(&mut self, kind: Kind, offset: u64, length: u64, fua: bool) -> u64 {
        let start_ns = self.now_ns;
        self.submit(kind, offset, length, fua);
        let completions = self.next();
        assert_eq!(completions.len(), 1);
        completions[0].at_ns - start_ns
    }

    /// Let the drive finish all that it does by itself.
    pub fn rest(&mut self) {
        let mut completions = Vec::new();
        self.now_ns += 3_600_000_000_000;
        self.ssd.advance(self.now_ns, &mut completions);
        assert!(completions.is_empty());
        assert_eq!(self.ssd.next_due_ns(), None);
    }

    /// Write the whole drive from its beginning to its end.
    pub fn fill(&mut self) -> Measured {
        self.load(BYTES / (MIB / 8), 32, |n| {
            (Kind::Write, n * MIB / 8, MIB / 8)
        })
    }

    /// Requests in a closed loop: `what` says the n-th.
    pub fn load(
        &mut self,
        requests: u64,
        depth: u64,
        mut what: impl FnMut(u64) -> (Kind, u64, u64),
    ) -> Measured {
        let start_ns = self.now_ns;
        let mut open = HashMap::new();
        let mut read_ns = Vec::new();
        let mut submitted = 0;
        let mut done = 0;
        while done < requests {
            while submitted < requests && open.len() < depth as usize {
                let (kind, offset, length) = what(submitted);
                submitted += 1;
                self.submit(kind, offset, length, false);
                open.insert(self.tickets, (kind, self.now_ns));
            }
            for completion in self.next() {
                let (kind, from_ns) = open.remove(&completion.ticket).unwrap();
                if kind == Kind::Read {
                    read_ns.push(completion.at_ns - from_ns);
                }
                done += 1;
            }
        }
        read_ns.sort_unstable();
        Measured {
            elapsed_ns: self.now_ns - start_ns,
            read_ns,
        }
    }

    /// A closed loop of 4 KiB at random places, `write_percent` of them writes.
    pub fn random(&mut self, requests: u64, depth: u64, write_percent: u64) -> Measured {
        let mut rng = ChaCha8Rng::seed_from_u64(self.tickets);
        let mut below = move |n: u64| Uniform::new(0, n).unwrap().sample(&mut rng);
        self.load(requests, depth, |_| {
            let kind = if below(100) < write_percent {
                Kind::Write
            } else {
                Kind::Read
            };
            (kind, below(BYTES / 4096) * 4096, 4096)
        })
    }

    /// Overwrite at random until the drive is in its steady state.
    pub fn fragment(&mut self) {
        self.random(3 * BYTES / 4096, 32, 100);
    }
}
