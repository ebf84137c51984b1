//! Tenants experiments: many loads on one drive, through a scheduler.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use racksim::{Completion, Io, Kind, OnReadError, Request};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use schedulers::{Decision, Operation, Outcome, Priority, RequestId, Scheduler, TenantId};

use crate::blocks::Blocks;
use crate::drive::Drive;
use crate::failure::Failure;
use crate::figures::{Latencies, Meter};
use crate::load_document::Arrivals;
use crate::tenants_document::{TenantLoad, Tenants};
use crate::tenants_result::{StateAt, TenantResult, TenantsResult};

/// Maximum number of requests at one instant: with a drive that takes no time, a limit in time is never reached.
const TIMELESS: u64 = 1_000_000;

/// Run the tenants; nothing of them is in flight afterwards.
pub fn run<'a>(
    tenants: &'a Tenants,
    drive: &mut Drive,
    seed: u64,
) -> Result<TenantsResult<'a>, Failure> {
    Run::new(tenants, drive, seed).run()
}

/// A change of a tenant at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Disconnects,
    Joins,
    BurstBegins,
    BurstEnds,
    Arrives,
}

/// A tenant at work.
struct Source<'a> {
    load: &'a TenantLoad,
    id: Option<TenantId>,
    blocks: Blocks,
    gaps: Option<Exp<f64>>,
    rng: ChaCha8Rng,
    arrival_ns: f64,
    is_on: bool,
    /// Requests that a closed loop keeps outstanding; 0 for an open one.
    depth: usize,
    outstanding: usize,
    meter: Option<Meter>,
    device: Latencies,
    dropped: u64,
}

/// A request in the scheduler or in the drive.
#[derive(Clone, Copy)]
struct InFlight {
    source: usize,
    io: Io,
    arrived_ns: u64,
    id: Option<RequestId>,
}

struct Run<'a, 'd> {
    tenants: &'a Tenants,
    drive: &'d mut Drive,
    scheduler: Box<dyn Scheduler>,
    sources: Vec<Source<'a>>,
    changes: BinaryHeap<Reverse<(u64, usize, Change)>>,
    /// By ticket; unused ones are in `free`.
    in_flight: Vec<InFlight>,
    free: Vec<usize>,
    completions: Vec<Completion>,
    completed: u64,
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl<'a, 'd> Run<'a, 'd> {
    fn new(tenants: &'a Tenants, drive: &'d mut Drive, seed: u64) -> Self {
        let begin_ns = drive.now_ns();
        let mut changes = BinaryHeap::new();
        let mut sources = Vec::new();
        for (load, number) in tenants.tenants.iter().zip(0..) {
            // Each tenant has its own chance: one more or less does not change the others.
            let mut rng = ChaCha8Rng::seed_from_u64(!seed);
            rng.set_stream(number as u64 + 1);
            let (depth, gaps) = match load.arrivals {
                Arrivals::Depth(depth) => (depth, None),
                Arrivals::PerSecond(rate) => {
                    let gaps = Exp::new(rate / 1e9).expect("the document's check: above 0");
                    (0, Some(gaps))
                }
            };
            changes.push(Reverse((
                begin_ns + ns(load.joins_s),
                number,
                Change::Joins,
            )));
            if let Some(disconnects_s) = load.disconnects_s {
                let at_ns = begin_ns + ns(disconnects_s);
                changes.push(Reverse((at_ns, number, Change::Disconnects)));
            }
            sources.push(Source {
                load,
                id: None,
                blocks: Blocks::new(&load.load(), drive.bytes(), seed ^ (number as u64) << 32),
                gaps,
                rng,
                arrival_ns: 0.0,
                is_on: false,
                depth,
                outstanding: 0,
                meter: None,
                device: Latencies::default(),
                dropped: 0,
            });
        }
        Self {
            scheduler: tenants.scheduler.start(),
            tenants,
            drive,
            sources,
            changes,
            in_flight: Vec::new(),
            free: Vec::new(),
            completions: Vec::new(),
            completed: 0,
        }
    }

    fn run(mut self) -> Result<TenantsResult<'a>, Failure> {
        let start_ns = self.drive.now_ns() + ns(self.tenants.warm_up_s);
        let end_ns = start_ns + ns(self.tenants.seconds);
        self.until(start_ns)?;
        for source in &mut self.sources {
            source.meter = Some(Meter::new(start_ns, self.tenants.interval_s));
        }
        let states = self.measure(start_ns, end_ns)?;
        let snapshot = self.scheduler.snapshot();
        let tenants = self.sources.iter_mut().map(|source| {
            let meter = source.meter.take().expect("it was made at the start");
            TenantResult {
                name: &source.load.tenant.name,
                measured: meter.measured(end_ns),
                device_latency_ns: source.device.summary(),
                dropped: source.dropped,
            }
        });
        let tenants = tenants.collect();
        self.drain()?;
        Ok(TenantsResult {
            name: &self.tenants.name,
            kind: "tenants",
            scheduler: self.tenants.scheduler.kind(),
            start_s: start_ns as f64 / 1e9,
            seconds: self.tenants.seconds,
            tenants,
            states,
            snapshot,
        })
    }

    /// Run the measured time; returns the states at the ends of its intervals, if it has intervals.
    fn measure(&mut self, start_ns: u64, end_ns: u64) -> Result<Option<Vec<StateAt>>, Failure> {
        let Some(interval_s) = self.tenants.interval_s else {
            self.until(end_ns)?;
            return Ok(None);
        };
        let (mut states, mut at_ns) = (Vec::new(), start_ns);
        while at_ns < end_ns {
            at_ns = end_ns.min(at_ns + ns(interval_s));
            self.until(at_ns)?;
            states.push(StateAt {
                at_s: (at_ns - start_ns) as f64 / 1e9,
                state: self.scheduler.snapshot().state,
            });
        }
        Ok(Some(states))
    }

    /// Run until `end_ns`.
    fn until(&mut self, end_ns: u64) -> Result<(), Failure> {
        let (mut at_ns, mut before) = (self.drive.now_ns(), self.completed);
        loop {
            let now_ns = self.drive.now_ns();
            while let Some(&Reverse((due_ns, number, change))) = self.changes.peek() {
                if due_ns > now_ns {
                    break;
                }
                self.changes.pop();
                self.change(number, change)?;
            }
            let wait_ns = self.dispatch();
            if now_ns >= end_ns {
                return Ok(());
            }
            let change_ns = self.changes.peek().map(|Reverse((due_ns, ..))| *due_ns);
            let limit_ns = wait_ns.into_iter().chain(change_ns).fold(end_ns, u64::min);
            self.drive.pass(Some(limit_ns), &mut self.completions)?;
            self.settle()?;
            if self.drive.now_ns() > at_ns {
                (at_ns, before) = (self.drive.now_ns(), self.completed);
            } else if self.completed - before > TIMELESS {
                return Err(Failure::BadInput(format!(
                    "experiment {:?}: this drive takes no time, so that closed loops never end; give rates, or another \
                     drive",
                    self.tenants.name
                )));
            }
        }
    }

    /// Let all tenants go, and the drive finish.
    fn drain(&mut self) -> Result<(), Failure> {
        self.changes.clear();
        for source in &mut self.sources {
            source.is_on = false;
            if let Some(id) = source.id.take() {
                let now_ns = self.drive.now_ns();
                let dropped = self.scheduler.disconnect(id, now_ns).expect("it is there");
                self.free
                    .extend(dropped.iter().map(|&ticket| ticket as usize));
            }
        }
        while self.free.len() < self.in_flight.len() {
            self.drive.pass(None, &mut self.completions)?;
            self.settle()?;
        }
        Ok(())
    }

    fn change(&mut self, number: usize, change: Change) -> Result<(), Failure> {
        let now_ns = self.drive.now_ns();
        let source = &mut self.sources[number];
        let plan = |change, in_s: f64| Reverse((now_ns + ns(in_s), number, change));
        match change {
            Change::Joins => {
                let joined = self.scheduler.join(&source.load.tenant, now_ns);
                source.id = Some(joined.map_err(|refusal| {
                    Failure::BadInput(format!("experiment {:?}: {refusal}", self.tenants.name))
                })?);
                self.begin(number);
            }
            Change::BurstBegins => self.begin(number),
            Change::BurstEnds => {
                source.is_on = false;
                if let Some(bursts) = source.load.bursts {
                    self.changes.push(plan(Change::BurstBegins, bursts.off_s));
                }
            }
            Change::Disconnects => {
                source.is_on = false;
                let id = source.id.take().expect("it has joined");
                let dropped = self.scheduler.disconnect(id, now_ns).expect("it is there");
                source.outstanding -= dropped.len();
                source.dropped += dropped.len() as u64;
                self.free
                    .extend(dropped.iter().map(|&ticket| ticket as usize));
            }
            Change::Arrives if source.is_on && source.arrival_ns <= now_ns as f64 => {
                self.arrive(number);
                self.plan_arrival(number);
            }
            Change::Arrives => {}
        }
        Ok(())
    }

    /// Let a tenant ask, until the end of its burst.
    fn begin(&mut self, number: usize) {
        let now_ns = self.drive.now_ns();
        let source = &mut self.sources[number];
        if source.id.is_none() {
            return;
        }
        source.is_on = true;
        if let Some(bursts) = source.load.bursts {
            let end_ns = now_ns + ns(bursts.on_s);
            self.changes
                .push(Reverse((end_ns, number, Change::BurstEnds)));
        }
        if source.gaps.is_some() {
            source.arrival_ns = now_ns as f64;
            self.plan_arrival(number);
        } else {
            self.fill(number);
        }
    }

    fn plan_arrival(&mut self, number: usize) {
        let source = &mut self.sources[number];
        let gaps = source.gaps.as_ref().expect("an open loop");
        source.arrival_ns += gaps.sample(&mut source.rng);
        let at_ns = source.arrival_ns.ceil() as u64;
        self.changes.push(Reverse((at_ns, number, Change::Arrives)));
    }

    /// Bring a closed loop to its depth.
    fn fill(&mut self, number: usize) {
        while self.sources[number].is_on
            && self.sources[number].outstanding < self.sources[number].depth
        {
            self.arrive(number);
        }
    }

    fn arrive(&mut self, number: usize) {
        let now_ns = self.drive.now_ns();
        let source = &mut self.sources[number];
        let io = source.blocks.next();
        let one = InFlight {
            source: number,
            io,
            arrived_ns: now_ns,
            id: None,
        };
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(one);
            self.in_flight.len() - 1
        });
        self.in_flight[ticket] = one;
        source.outstanding += 1;
        let request = schedulers::Request {
            ticket: ticket as u64,
            operation: match io.kind {
                Kind::Read => Operation::Read,
                _ => Operation::Write,
            },
            bytes: io.length as u32,
        };
        let tenant = source.id.expect("it has joined");
        let entered = self
            .scheduler
            .arrive(tenant, Priority::default(), request, now_ns);
        entered.expect("the document's check: a size and an operation that the tenant may have");
    }

    /// Give the drive what may go; returns the time to ask again.
    fn dispatch(&mut self) -> Option<u64> {
        let now_ns = self.drive.now_ns();
        loop {
            match self.scheduler.next(now_ns) {
                Decision::Dispatch(dispatch) => {
                    let ticket = dispatch.request.ticket;
                    let one = &mut self.in_flight[ticket as usize];
                    one.id = Some(dispatch.id);
                    self.drive.submit(&Request {
                        ticket,
                        io: one.io,
                        fua: false,
                        on_read_error: OnReadError::Retry,
                    });
                }
                Decision::WaitUntil(at_ns) => return Some(at_ns),
                Decision::Idle => return None,
            }
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        let mut completions = std::mem::take(&mut self.completions);
        for done in completions.drain(..) {
            let ticket = done.ticket as usize;
            let InFlight {
                source: number,
                io,
                arrived_ns,
                id,
            } = self.in_flight[ticket];
            self.free.push(ticket);
            self.completed += 1;
            let outcome = match done.failed_at {
                None => Outcome::Succeeded,
                Some(_) => Outcome::Failed,
            };
            let id = id.expect("it was dispatched");
            let told = self.scheduler.complete(id, outcome, done.at_ns);
            let latency_ns = told.expect("it was at the drive").latency_ns;
            let source = &mut self.sources[number];
            source.outstanding -= 1;
            if let Some(meter) = &mut source.meter {
                if outcome == Outcome::Failed {
                    meter.count_error();
                } else {
                    meter.count(io.kind, io.length, done.at_ns - arrived_ns, done.at_ns)?;
                    source.device.record(latency_ns);
                }
            }
            self.fill(number);
        }
        self.completions = completions;
        Ok(())
    }
}

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
