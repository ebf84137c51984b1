//! Tenants at work: requests of many clients to a target, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use racksim::Io;
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use schedulers::Priority;

use crate::failure::Failure;
use crate::figures::{Latencies, Meter};
use crate::load_document::{ns, Arrivals};
use crate::target::{Arrival, Ending, Target};
use crate::tenant_blocks::TenantBlocks;
use crate::tenant_load::{Pace, TenantLoad};
use crate::tenants_document::Tenants;
use crate::tenants_result::TenantResult;

/// Maximum number of requests at one instant: with a drive that takes no time, a limit in time is never reached.
const TIMELESS: u64 = 1_000_000;

/// A change of a tenant at a time, in the order in which those of one instant happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Disconnects,
    Joins,
    BurstBegins,
    BurstEnds,
    Arrives,
}

/// The times of the requests of an open loop.
enum Gaps {
    Poisson(Exp<f64>),
    /// As a trace has them, from this time on, so many times as fast.
    Recorded {
        begin_ns: f64,
        speed: f64,
    },
}

/// A tenant at work.
struct Source<'a> {
    load: &'a TenantLoad,
    drive: usize,
    has_joined: bool,
    blocks: TenantBlocks<'a>,
    gaps: Option<Gaps>,
    rng: ChaCha8Rng,
    arrival_ns: f64,
    is_on: bool,
    /// Requests that a closed loop keeps outstanding; 0 for an open one.
    depth: usize,
    outstanding: usize,
    /// Requests it may have outstanding, if it follows its credit.
    credit: usize,
    /// Requests of an open loop that wait for credit, with the times of their arrival.
    backlog: VecDeque<(Io, Priority, u64)>,
    meter: Option<Meter>,
    device: Latencies,
    dropped: u64,
}

/// A request on its way.
#[derive(Clone, Copy)]
struct InFlight {
    source: usize,
    io: Io,
    arrived_ns: u64,
}

/// The clients of a target.
pub struct Play<'a, T> {
    tenants: &'a Tenants,
    /// The server of their requests.
    pub target: T,
    sources: Vec<Source<'a>>,
    /// Those of one instant in the order of their kinds: who leaves makes room for who joins, as the document's check has
    /// it.
    changes: BinaryHeap<Reverse<(u64, Change, usize)>>,
    /// By ticket; unused ones are in `free`.
    in_flight: Vec<InFlight>,
    free: Vec<usize>,
    completed: u64,
}

impl<'a, T: Target> Play<'a, T> {
    /// The tenants of an experiment, before their first request, on a target with so many drives.
    pub fn new(tenants: &'a Tenants, target: T, drives: usize, seed: u64) -> Self {
        let begin_ns = target.now_ns();
        let mut changes = BinaryHeap::new();
        let mut sources = Vec::new();
        for (load, number) in tenants.tenants.iter().zip(0..) {
            // Each tenant has its own chance: one more or less does not change the others.
            let mut rng = ChaCha8Rng::seed_from_u64(!seed);
            rng.set_stream(number as u64 + 1);
            let (depth, gaps) = match load.pace() {
                Pace::Loop(Arrivals::Depth(depth)) => (depth, None),
                Pace::Loop(Arrivals::PerSecond(rate)) => {
                    let gaps = Exp::new(rate / 1e9).expect("the document's check: above 0");
                    (0, Some(Gaps::Poisson(gaps)))
                }
                Pace::Recorded(speed) => {
                    let begin_ns = begin_ns as f64 + load.joins_s * 1e9;
                    (0, Some(Gaps::Recorded { begin_ns, speed }))
                }
            };
            let joins_ns = begin_ns + ns(load.joins_s);
            changes.push(Reverse((joins_ns, Change::Joins, number)));
            if let Some(disconnects_s) = load.disconnects_s {
                let at_ns = begin_ns + ns(disconnects_s);
                changes.push(Reverse((at_ns, Change::Disconnects, number)));
            }
            let drive = tenants.drive_of(number, drives);
            let seed = seed ^ (number as u64) << 32;
            sources.push(Source {
                load,
                drive,
                has_joined: false,
                blocks: TenantBlocks::new(load, target.bytes(drive), seed),
                gaps,
                rng,
                arrival_ns: 0.0,
                is_on: false,
                depth,
                outstanding: 0,
                credit: usize::MAX,
                backlog: VecDeque::new(),
                meter: None,
                device: Latencies::default(),
                dropped: 0,
            });
        }
        Self {
            tenants,
            target,
            sources,
            changes,
            in_flight: Vec::new(),
            free: Vec::new(),
            completed: 0,
        }
    }

    /// Count requests that complete from now on.
    pub fn measure(&mut self) {
        let start_ns = self.target.now_ns();
        for source in &mut self.sources {
            source.meter = Some(Meter::new(start_ns, self.tenants.interval_s));
        }
    }

    /// Run the measured time; returns what `observe` finds at the ends of its intervals, if it has intervals, each with
    /// the seconds since its start.
    pub fn intervals<S>(
        &mut self,
        end_ns: u64,
        observe: impl Fn(&T) -> S,
    ) -> Result<Option<Vec<(f64, S)>>, Failure> {
        let start_ns = self.target.now_ns();
        let Some(interval_s) = self.tenants.interval_s else {
            self.until(end_ns)?;
            return Ok(None);
        };
        let (mut found, mut at_ns) = (Vec::new(), start_ns);
        while at_ns < end_ns {
            at_ns = end_ns.min(at_ns + ns(interval_s));
            self.until(at_ns)?;
            found.push(((at_ns - start_ns) as f64 / 1e9, observe(&self.target)));
        }
        Ok(Some(found))
    }

    /// The figures of every tenant from the beginning of the measured time until `end_ns`.
    pub fn results(&mut self, end_ns: u64) -> Vec<TenantResult<'a>> {
        let with_buckets = self.tenants.histograms;
        let results = self.sources.iter_mut().map(|source| {
            let meter = source.meter.take().expect("it is measured");
            TenantResult {
                name: &source.load.tenant.name,
                latency_buckets: with_buckets.then(|| meter.buckets()),
                measured: meter.measured(end_ns),
                device_latency_ns: source.device.summary(),
                dropped: source.dropped,
            }
        });
        results.collect()
    }

    /// Run until `end_ns`.
    pub fn until(&mut self, end_ns: u64) -> Result<(), Failure> {
        let (mut at_ns, mut before) = (self.target.now_ns(), self.completed);
        loop {
            let now_ns = self.target.now_ns();
            while let Some(&Reverse((due_ns, change, number))) = self.changes.peek() {
                if due_ns > now_ns {
                    break;
                }
                self.changes.pop();
                self.change(number, change)?;
            }
            self.target.dispatch();
            if now_ns >= end_ns {
                return Ok(());
            }
            let change_ns = self.changes.peek().map(|Reverse((due_ns, ..))| *due_ns);
            let limit_ns = change_ns.into_iter().fold(end_ns, u64::min);
            self.target.advance(Some(limit_ns))?;
            self.settle()?;
            if self.target.now_ns() > at_ns {
                (at_ns, before) = (self.target.now_ns(), self.completed);
            } else if self.completed - before > TIMELESS {
                return Err(Failure::BadInput(format!(
                    "experiment {:?}: this drive takes no time, so that closed loops never end; give rates, or another \
                     drive",
                    self.tenants.name
                )));
            }
        }
    }

    /// Let all tenants go, and the target finish.
    pub fn drain(&mut self) -> Result<(), Failure> {
        self.changes.clear();
        for number in 0..self.sources.len() {
            self.sources[number].is_on = false;
            self.disconnect(number);
        }
        while self.free.len() < self.in_flight.len() {
            self.target.dispatch();
            self.target.advance(None)?;
            self.settle()?;
        }
        Ok(())
    }

    fn change(&mut self, number: usize, change: Change) -> Result<(), Failure> {
        let now_ns = self.target.now_ns();
        let source = &mut self.sources[number];
        match change {
            Change::Joins => {
                let joined = self
                    .target
                    .join(&source.load.tenant, number, source.drive)
                    .map_err(|refusal| {
                        Failure::BadInput(format!("experiment {:?}: {refusal}", self.tenants.name))
                    });
                joined?;
                source.has_joined = true;
                self.follow(number, self.target.credit(number));
                self.begin(number);
            }
            Change::BurstBegins => self.begin(number),
            Change::BurstEnds => {
                source.is_on = false;
                if let Some(bursts) = source.load.bursts {
                    let at_ns = now_ns + ns(bursts.off_s);
                    self.changes
                        .push(Reverse((at_ns, Change::BurstBegins, number)));
                }
            }
            Change::Disconnects => {
                source.is_on = false;
                self.disconnect(number);
            }
            Change::Arrives if source.is_on && source.arrival_ns <= now_ns as f64 => {
                if let Some((io, priority)) = source.blocks.next() {
                    if source.outstanding < source.credit {
                        self.send(number, io, priority, now_ns);
                    } else {
                        source.backlog.push_back((io, priority, now_ns));
                    }
                }
                self.plan_arrival(number);
            }
            Change::Arrives => {}
        }
        Ok(())
    }

    fn disconnect(&mut self, number: usize) {
        let source = &mut self.sources[number];
        source.dropped += source.backlog.len() as u64;
        source.backlog.clear();
        if !std::mem::take(&mut source.has_joined) {
            return;
        }
        let dropped = self.target.disconnect(number);
        source.outstanding -= dropped.len();
        source.dropped += dropped.len() as u64;
        let places = dropped.iter().map(|&ticket| ticket as usize);
        self.free.extend(places);
    }

    /// Keep within a credit, if the tenant does so. One request is always allowed: only its completion tells of more.
    fn follow(&mut self, number: usize, credit: Option<u32>) {
        let source = &mut self.sources[number];
        if let Some(credit) = credit.filter(|_| source.load.follows_credit) {
            source.credit = (credit as usize).max(1);
        }
    }

    /// Let a tenant ask, until the end of its burst.
    fn begin(&mut self, number: usize) {
        let now_ns = self.target.now_ns();
        let source = &mut self.sources[number];
        if !source.has_joined {
            return;
        }
        source.is_on = true;
        if let Some(bursts) = source.load.bursts {
            let end_ns = now_ns + ns(bursts.on_s);
            self.changes
                .push(Reverse((end_ns, Change::BurstEnds, number)));
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
        match source.gaps.as_ref().expect("an open loop") {
            Gaps::Poisson(gaps) => source.arrival_ns += gaps.sample(&mut source.rng),
            Gaps::Recorded { begin_ns, speed } => match source.blocks.next_at_ns() {
                Some(since_ns) => source.arrival_ns = begin_ns + since_ns / speed,
                None => return,
            },
        }
        let at_ns = source.arrival_ns.ceil() as u64;
        self.changes.push(Reverse((at_ns, Change::Arrives, number)));
    }

    /// Bring a closed loop to its depth, or an open one to its credit.
    fn fill(&mut self, number: usize) {
        let now_ns = self.target.now_ns();
        loop {
            let source = &mut self.sources[number];
            if source.outstanding >= source.credit {
                return;
            }
            if let Some((io, priority, arrived_ns)) = source.backlog.pop_front() {
                self.send(number, io, priority, arrived_ns);
                continue;
            }
            if !source.is_on || source.outstanding >= source.depth {
                return;
            }
            let Some((io, priority)) = source.blocks.next() else {
                return;
            };
            self.send(number, io, priority, now_ns);
        }
    }

    // Inlined, so that a request is made where it goes: read right after it was written in parts, it would be waited for.
    #[inline(always)]
    fn send(&mut self, number: usize, io: Io, priority: Priority, arrived_ns: u64) {
        let one = InFlight {
            source: number,
            io,
            arrived_ns,
        };
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(one);
            self.in_flight.len() - 1
        });
        self.in_flight[ticket] = one;
        self.sources[number].outstanding += 1;
        let ticket = ticket as u64;
        let arrival = Arrival {
            ticket,
            io,
            priority,
        };
        self.target.arrive(number, arrival);
    }

    fn settle(&mut self) -> Result<(), Failure> {
        while let Some(done) = self.target.next_done() {
            let ticket = done.ticket as usize;
            let InFlight {
                source: number,
                io,
                arrived_ns,
            } = self.in_flight[ticket];
            self.free.push(ticket);
            self.completed += 1;
            let source = &mut self.sources[number];
            source.outstanding -= 1;
            if done.ending == Ending::Dropped {
                source.dropped += 1;
            } else if let Some(meter) = &mut source.meter {
                if done.ending == Ending::Failed {
                    meter.count_error();
                } else {
                    meter.count(io.kind, io.length, done.at_ns - arrived_ns, done.at_ns)?;
                    source.device.record(done.device_ns);
                }
            }
            self.follow(number, done.credit);
            self.fill(number);
        }
        Ok(())
    }
}
