//! A scheduler between closed loops of clients and a simple drive, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::test_runner::{Config, RngSeed};
use schedulers::{
    Completion, Decision, Dispatch, Operation, Outcome, Parameters, Priority, Request, RequestId,
    Scheduler, Tenant, TenantId,
};
use serde_json::Value;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const KIB: u32 = 1024;

/// Property tests of so many cases, the same in each run.
pub fn cases(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..Config::default()
    }
}

/// A scheduler of a document.
pub fn start(document: Value) -> Box<dyn Scheduler> {
    let parameters: Parameters = serde_json::from_value(document).unwrap();
    parameters.start()
}

/// A tenant of a document.
pub fn tenant(document: Value) -> Tenant {
    serde_json::from_value(document).unwrap()
}

pub fn read(bytes: u32) -> Request {
    Request {
        ticket: 0,
        operation: Operation::Read,
        bytes,
    }
}

pub fn write(bytes: u32) -> Request {
    Request {
        operation: Operation::Write,
        ..read(bytes)
    }
}

/// Enter a request of middle priority.
pub fn arrive(scheduler: &mut dyn Scheduler, tenant: TenantId, request: Request, now_ns: u64) {
    let entered = scheduler.arrive(tenant, Priority::default(), request, now_ns);
    entered.unwrap();
}

/// All requests that may go now.
pub fn dispatched(scheduler: &mut dyn Scheduler, now_ns: u64) -> Vec<Dispatch> {
    let mut all = Vec::new();
    while let Decision::Dispatch(dispatch) = scheduler.next(now_ns) {
        all.push(dispatch);
    }
    all
}

/// A client that keeps `depth` requests outstanding, which repeat its pattern.
pub struct Client {
    pub id: TenantId,
    pub depth: u32,
    pub pattern: Vec<Request>,
    outstanding: u32,
    sent: usize,
    pub completions: Vec<Completion>,
}

/// The bench. Its drive serves `channels` requests at a time, each for the time that `cost_ns` says.
pub struct Bench<F> {
    pub scheduler: Box<dyn Scheduler>,
    pub clients: Vec<Client>,
    pub now_ns: u64,
    cost_ns: F,
    channels: Vec<u64>,
    at_drive: BinaryHeap<Reverse<(u64, u64)>>,
    ids: Vec<RequestId>,
}

impl<F: Fn(&Request) -> u64> Bench<F> {
    pub fn new(document: Value, channels: usize, cost_ns: F) -> Self {
        Self {
            scheduler: start(document),
            clients: Vec::new(),
            now_ns: 0,
            cost_ns,
            channels: vec![0; channels],
            at_drive: BinaryHeap::new(),
            ids: Vec::new(),
        }
    }

    pub fn join(&mut self, tenant: &Tenant, depth: u32, pattern: &[Request]) -> usize {
        self.clients.push(Client {
            id: self.scheduler.join(tenant, self.now_ns).unwrap(),
            depth,
            pattern: pattern.to_vec(),
            outstanding: 0,
            sent: 0,
            completions: Vec::new(),
        });
        self.clients.len() - 1
    }

    pub fn run_until(&mut self, end_ns: u64) {
        loop {
            self.send();
            let wait_ns = self.give();
            let due_ns = self.at_drive.peek().map(|Reverse((at_ns, _))| *at_ns);
            let Some(at_ns) = due_ns.into_iter().chain(wait_ns).min() else {
                break;
            };
            if at_ns > end_ns {
                break;
            }
            self.now_ns = at_ns;
            self.take();
        }
        self.now_ns = end_ns;
    }

    fn send(&mut self) {
        for client in &mut self.clients {
            while client.outstanding < client.depth {
                let request = client.pattern[client.sent % client.pattern.len()];
                client.sent += 1;
                client.outstanding += 1;
                arrive(&mut *self.scheduler, client.id, request, self.now_ns);
            }
        }
    }

    fn give(&mut self) -> Option<u64> {
        loop {
            match self.scheduler.next(self.now_ns) {
                Decision::Dispatch(dispatch) => {
                    let free = self.channels.iter_mut().min().unwrap();
                    *free = (*free).max(self.now_ns) + (self.cost_ns)(&dispatch.request);
                    let number = self.ids.len() as u64;
                    self.at_drive.push(Reverse((*free, number)));
                    self.ids.push(dispatch.id);
                }
                Decision::WaitUntil(at_ns) => {
                    assert!(at_ns > self.now_ns);
                    return Some(at_ns);
                }
                Decision::Idle => return None,
            }
        }
    }

    fn take(&mut self) {
        while let Some(&Reverse((at_ns, number))) = self.at_drive.peek() {
            if at_ns > self.now_ns {
                break;
            }
            self.at_drive.pop();
            let id = self.ids[number as usize];
            let done = self.scheduler.complete(id, Outcome::Succeeded, at_ns);
            let done = done.unwrap();
            let client = self.clients.iter_mut().find(|one| one.id == done.tenant);
            if let Some(client) = client {
                client.outstanding -= 1;
                client.completions.push(done);
            }
        }
    }
}
