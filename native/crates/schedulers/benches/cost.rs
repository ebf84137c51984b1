//! The cost of each scheduler for a request of 4 KiB: its arrival, its dispatch, its completion.
//!
//! 16 tenants keep 32 requests each outstanding, seven reads to three writes, in front of a drive that takes 80 us and
//! completes one every microsecond. `cost` prints a JSON object of nanoseconds by scheduler, the least of several rounds;
//! `cost KIND REQUESTS` runs one scheduler without looking at the clock, for callgrind.

use std::collections::VecDeque;
use std::time::Instant;

use schedulers::{
    Decision, Operation, Outcome, Parameters, Priority, Request, RequestId, Scheduler, Tenant,
    TenantId,
};
use serde_json::{json, Map};

const TENANTS: u32 = 16;
const DEPTH: u64 = 32;
const LATENCY_NS: u64 = 80_000;
const INTERVAL_NS: u64 = 1_000;
const WARM_UP: u64 = 100_000;
const REQUESTS: u64 = 1_000_000;
const ROUNDS: u32 = 7;

/// A scheduler at work.
struct Work {
    scheduler: Box<dyn Scheduler>,
    at_drive: VecDeque<(u64, RequestId)>,
    last_ns: u64,
    now_ns: u64,
    sent: u64,
}

impl Work {
    fn new(kind: &str) -> Self {
        // Enough tokens that ReFlex does not wait for them; a quarter of its tenants have an objective.
        let document = match kind {
            "reflex" => json!({"kind": kind, "curve":
                [{"p95_us": 500, "tokens_per_s": 1e7, "read_only_tokens_per_s": 1e7}]}),
            _ => json!({"kind": kind}),
        };
        let parameters: Parameters = serde_json::from_value(document).expect("a known kind");
        let mut work = Self {
            scheduler: parameters.start(),
            at_drive: VecDeque::new(),
            last_ns: 0,
            now_ns: 0,
            sent: 0,
        };
        for number in 0..TENANTS {
            let mut tenant = json!({"name": format!("t{number}")});
            if number % 4 == 0 {
                tenant["slo"] = json!({"iops": 60_000, "read_percent": 70, "p95_us": 500});
            }
            let tenant: Tenant = serde_json::from_value(tenant).expect("a tenant");
            let id = work.scheduler.join(&tenant, 0).expect("room");
            for _ in 0..DEPTH {
                work.arrive(id);
            }
        }
        work
    }

    fn arrive(&mut self, tenant: TenantId) {
        self.sent += 1;
        let operation = match self.sent % 10 {
            0 | 3 | 7 => Operation::Write,
            _ => Operation::Read,
        };
        let request = Request {
            ticket: self.sent,
            operation,
            bytes: 4096,
        };
        let priority = Priority::default();
        let entered = self
            .scheduler
            .arrive(tenant, priority, request, self.now_ns);
        entered.expect("a tenant");
    }

    fn run(&mut self, requests: u64) {
        let mut completed = 0;
        while completed < requests {
            let mut wait_ns = u64::MAX;
            loop {
                match self.scheduler.next(self.now_ns) {
                    Decision::Dispatch(dispatch) => {
                        self.last_ns = (self.last_ns + INTERVAL_NS).max(self.now_ns + LATENCY_NS);
                        self.at_drive.push_back((self.last_ns, dispatch.id));
                    }
                    Decision::WaitUntil(at_ns) => {
                        wait_ns = at_ns;
                        break;
                    }
                    Decision::Idle => break,
                }
            }
            match self.at_drive.front() {
                Some(&(at_ns, id)) if at_ns <= wait_ns => {
                    self.at_drive.pop_front();
                    self.now_ns = at_ns;
                    let done = self.scheduler.complete(id, Outcome::Succeeded, at_ns);
                    self.arrive(done.expect("it is at the drive").tenant);
                    completed += 1;
                }
                _ => self.now_ns = wait_ns,
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [kind, requests] = &arguments[..] {
        let requests = requests.parse().expect("a number of requests");
        Work::new(kind).run(requests);
        return;
    }
    let mut works = Parameters::KINDS.map(|kind| (kind, Work::new(kind), f64::MAX));
    for (_, work, _) in &mut works {
        work.run(WARM_UP);
    }
    for _ in 0..ROUNDS {
        for (_, work, least_ns) in &mut works {
            let began = Instant::now();
            work.run(REQUESTS);
            let took_ns = began.elapsed().as_nanos() as f64 / REQUESTS as f64;
            *least_ns = least_ns.min(took_ns);
        }
    }
    let figures = works.map(|(kind, _, least_ns)| (kind.to_owned(), json!(least_ns)));
    println!("{}", json!(Map::from_iter(figures)));
}
