//! A box: several drives behind schedulers, cores and a link, as a target of NVMe over fabrics.
//!
//! The phases of a request are those of NVMe over RDMA (Min et al., Gimbal, SIGCOMM 2021, section 2.1): the client sends
//! a command capsule; a core takes it up and, for a write, fetches the data; the scheduler of the drive lets it go; the
//! drive serves it; a core takes up the completion, returns the data of a read and sends the response.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use racksim::{Completion, Kind, OnReadError, Request};
use schedulers::{
    Decision, Outcome, Parameters, Refusal, RequestId, Scheduler, Snapshot, Tenant, TenantId,
};

use crate::drive::Drive;
use crate::failure::Failure;
use crate::flight::{work_ns, Costs, Event, Flight};
use crate::hardware::{Hardware, Serve};
use crate::phases::{Phase, PhaseTally, Phases};
use crate::server::{Path, Server};
use crate::target::{request_of, Arrival, Done, Ending, Target};

/// A tenant of the box.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    drive: usize,
    core: usize,
    id: Option<TenantId>,
    reads: PhaseTally,
    writes: PhaseTally,
}

/// A scheduler in front of its drive.
struct Gate {
    scheduler: Box<dyn Scheduler>,
    /// The time at which it wants to be asked again.
    wait_ns: Option<u64>,
    /// Whether it has something to decide since it was asked.
    is_stirred: bool,
}

/// A box of drives, which are all at the same time.
pub struct StorageBox<'d> {
    costs: Costs,
    drives: &'d mut [Drive],
    gates: Vec<Gate>,
    pub(crate) cores: Vec<Server>,
    pub(crate) to_box: Path,
    pub(crate) from_box: Path,
    pub(crate) memory: Option<Path>,
    members: Vec<Member>,
    /// By ticket.
    flights: Vec<Flight>,
    /// In order of time, then of insertion; with the ticket.
    events: BinaryHeap<Reverse<(u64, u64, Event, usize)>>,
    added: u64,
    completions: Vec<Completion>,
    done: VecDeque<Done>,
    now_ns: u64,
    is_measured: bool,
}

impl<'d> StorageBox<'d> {
    /// A box around drives on which nothing is in flight, all at the same time. The hardware has been checked.
    pub fn new(hardware: &Hardware, scheduler: &Parameters, drives: &'d mut [Drive]) -> Self {
        let now_ns = drives.iter().map(Drive::now_ns).max().unwrap_or(0);
        let gates = drives.iter().map(|_| Gate {
            scheduler: scheduler.start(),
            wait_ns: None,
            is_stirred: false,
        });
        Self {
            costs: Costs::new(hardware),
            gates: gates.collect(),
            cores: vec![Server::default(); hardware.cores.count],
            to_box: Path::new(hardware.link.mb_s),
            from_box: Path::new(hardware.link.mb_s),
            memory: hardware.memory_mb_s.map(Path::new),
            members: Vec::new(),
            flights: Vec::new(),
            events: BinaryHeap::new(),
            added: 0,
            completions: Vec::new(),
            done: VecDeque::new(),
            now_ns,
            is_measured: false,
            drives,
        }
    }

    /// Count the phases of requests that end from now on.
    pub fn measure(&mut self) {
        self.is_measured = true;
    }

    /// The phases of a tenant's reads and of its writes that were counted.
    pub fn phases(&self, number: usize) -> [PhaseTally; 2] {
        let member = self.members.get(number).copied().unwrap_or_default();
        [member.reads, member.writes]
    }

    /// The state of the scheduler of each drive, and of its tenants.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> + '_ {
        self.gates.iter().map(|gate| gate.scheduler.snapshot())
    }

    fn add(&mut self, at_ns: u64, event: Event, ticket: usize) {
        self.events
            .push(Reverse((at_ns, self.added, event, ticket)));
        self.added += 1;
    }

    fn mark(&mut self, ticket: usize, phase: Phase) {
        self.flights[ticket].phases.end(phase, self.now_ns);
    }

    fn happen(&mut self, event: Event, ticket: usize) {
        let now_ns = self.now_ns;
        let Flight { tenant, io, .. } = self.flights[ticket];
        let is_read = io.kind == Kind::Read;
        let core = self.members[tenant].core;
        match event {
            Event::Received => {
                self.mark(ticket, Phase::Command);
                self.add(now_ns + self.costs.notice_ns, Event::Noticed, ticket);
            }
            Event::Noticed => {
                let work_ns = work_ns(self.costs.submission, io.length);
                let end_ns = self.cores[core].take(now_ns, work_ns);
                self.add(end_ns, Event::Submitted, ticket);
            }
            Event::Submitted => {
                self.mark(ticket, Phase::Submission);
                if is_read || io.length <= self.costs.inline_bytes {
                    self.queue(ticket);
                } else {
                    self.add(now_ns + self.costs.propagation_ns, Event::Asked, ticket);
                }
            }
            Event::Asked => {
                let sent_ns = self.to_box.carry(now_ns, io.length);
                self.add(sent_ns + self.costs.propagation_ns, Event::Fetched, ticket);
            }
            Event::Fetched => self.queue(ticket),
            Event::Loaded => self.submit(ticket),
            Event::Landed => self.landed(ticket),
            Event::Caught => {
                let work_ns = work_ns(self.costs.completion, io.length);
                let end_ns = self.cores[core].take(now_ns, work_ns);
                self.add(end_ns, Event::Finished, ticket);
            }
            Event::Finished => self.answer(ticket, is_read),
            Event::Answered => self.answered(ticket, is_read),
        }
    }

    /// Give a request to the scheduler of its drive; that of a tenant which has gone is dropped.
    fn queue(&mut self, ticket: usize) {
        let now_ns = self.now_ns;
        self.mark(ticket, Phase::Fetch);
        let Flight {
            tenant,
            io,
            priority,
            ..
        } = self.flights[ticket];
        let Member { drive, id, .. } = self.members[tenant];
        let Some(id) = id else {
            self.done.push_back(Done {
                ticket: ticket as u64,
                at_ns: now_ns,
                ending: Ending::Dropped,
                device_ns: 0,
                credit: None,
            });
            return;
        };
        let gate = &mut self.gates[drive];
        let request = request_of(ticket as u64, io);
        let entered = gate.scheduler.arrive(id, priority, request, now_ns);
        entered.expect("the document's check: a size and an operation that the tenant may have");
        gate.is_stirred = true;
    }

    /// A request has been dispatched: the data of a write goes to the drive first.
    fn dispatched(&mut self, ticket: usize, id: RequestId) {
        self.mark(ticket, Phase::Scheduler);
        let flight = &mut self.flights[ticket];
        flight.id = Some(id);
        let io = flight.io;
        match &mut self.memory {
            Some(memory) if io.kind == Kind::Write => {
                let at_ns = memory.carry(self.now_ns, io.length);
                self.add(at_ns, Event::Loaded, ticket);
            }
            _ => self.submit(ticket),
        }
    }

    fn submit(&mut self, ticket: usize) {
        let Flight { tenant, io, .. } = self.flights[ticket];
        self.drives[self.members[tenant].drive].submit_at(
            &Request {
                ticket: ticket as u64,
                io,
                fua: false,
                on_read_error: OnReadError::Retry,
            },
            self.now_ns,
        );
    }

    /// A drive has completed a request: the data of a read goes to memory.
    fn completed(&mut self, completion: Completion) {
        let ticket = completion.ticket as usize;
        let flight = &mut self.flights[ticket];
        flight.has_failed = completion.failed_at.is_some();
        let io = flight.io;
        let at_ns = match &mut self.memory {
            Some(memory) if io.kind == Kind::Read => memory.carry(completion.at_ns, io.length),
            _ => completion.at_ns,
        };
        self.add(at_ns, Event::Landed, ticket);
    }

    fn landed(&mut self, ticket: usize) {
        let now_ns = self.now_ns;
        self.mark(ticket, Phase::Drive);
        let Flight {
            tenant,
            id,
            has_failed,
            ..
        } = self.flights[ticket];
        let outcome = match has_failed {
            false => Outcome::Succeeded,
            true => Outcome::Failed,
        };
        let gate = &mut self.gates[self.members[tenant].drive];
        let id = id.expect("it was dispatched");
        let told = gate.scheduler.complete(id, outcome, now_ns);
        let told = told.expect("it was at the drive");
        gate.is_stirred = true;
        let flight = &mut self.flights[ticket];
        flight.device_ns = told.latency_ns;
        flight.credit = told.credit;
        self.add(now_ns + self.costs.notice_ns, Event::Caught, ticket);
    }

    /// Send the data of a read, and behind it the response.
    fn answer(&mut self, ticket: usize, is_read: bool) {
        let now_ns = self.now_ns;
        self.mark(ticket, Phase::Completion);
        let flight = &mut self.flights[ticket];
        if is_read && !flight.has_failed {
            let sent_ns = self.from_box.carry(now_ns, flight.io.length);
            let come_ns = sent_ns + self.costs.propagation_ns;
            flight.phases.end(Phase::DataReturn, come_ns);
        } else {
            flight.phases.end(Phase::DataReturn, now_ns);
        }
        let sent_ns = self.from_box.carry(now_ns, self.costs.completion_bytes);
        self.add(sent_ns + self.costs.propagation_ns, Event::Answered, ticket);
    }

    fn answered(&mut self, ticket: usize, is_read: bool) {
        self.mark(ticket, Phase::Response);
        let flight = self.flights[ticket];
        if self.is_measured && !flight.has_failed {
            let member = &mut self.members[flight.tenant];
            let tally = match is_read {
                true => &mut member.reads,
                false => &mut member.writes,
            };
            tally.count(&flight.phases);
        }
        self.done.push_back(Done {
            ticket: ticket as u64,
            at_ns: self.now_ns,
            ending: match flight.has_failed {
                false => Ending::Succeeded,
                true => Ending::Failed,
            },
            device_ns: flight.device_ns,
            credit: flight.credit,
        });
    }
}

impl Target for StorageBox<'_> {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn bytes(&self, drive: usize) -> u64 {
        self.drives[drive].bytes()
    }

    fn join(&mut self, tenant: &Tenant, number: usize, drive: usize) -> Result<(), Refusal> {
        let id = self.gates[drive].scheduler.join(tenant, self.now_ns)?;
        if self.members.len() <= number {
            self.members.resize(number + 1, Member::default());
        }
        let core = match self.costs.serve {
            Serve::Drives => drive,
            Serve::Connections => number,
        };
        self.members[number] = Member {
            drive,
            core: core % self.cores.len(),
            id: Some(id),
            ..Member::default()
        };
        Ok(())
    }

    fn disconnect(&mut self, number: usize) -> Vec<u64> {
        let member = &mut self.members[number];
        let id = member.id.take().expect("it has joined");
        let gate = &mut self.gates[member.drive];
        gate.is_stirred = true;
        let dropped = gate.scheduler.disconnect(id, self.now_ns);
        dropped.expect("it is there")
    }

    fn credit(&self, number: usize) -> Option<u32> {
        let member = self.members[number];
        let id = member.id.expect("it has joined");
        let view = self.gates[member.drive].scheduler.view(id);
        view.expect("it is there").map(|view| view.credit)
    }

    fn arrive(&mut self, number: usize, arrival: Arrival) {
        let Arrival {
            ticket,
            io,
            priority,
        } = arrival;
        let one = Flight {
            tenant: number,
            io,
            priority,
            id: None,
            has_failed: false,
            device_ns: 0,
            credit: None,
            phases: Phases::begin(self.now_ns),
        };
        let place = ticket as usize;
        if place < self.flights.len() {
            self.flights[place] = one;
        } else {
            self.flights.resize(place + 1, one);
        }
        let is_inline = io.kind == Kind::Write && io.length <= self.costs.inline_bytes;
        let data_bytes = if is_inline { io.length } else { 0 };
        let bytes = self.costs.command_bytes + data_bytes;
        let sent_ns = self.to_box.carry(self.now_ns, bytes);
        self.add(sent_ns + self.costs.propagation_ns, Event::Received, place);
    }

    fn dispatch(&mut self) {
        let now_ns = self.now_ns;
        for drive in 0..self.gates.len() {
            let gate = &mut self.gates[drive];
            let is_due = gate.wait_ns.is_some_and(|at_ns| at_ns <= now_ns);
            if !std::mem::take(&mut gate.is_stirred) && !is_due {
                continue;
            }
            let wait_ns = loop {
                match self.gates[drive].scheduler.next(now_ns) {
                    Decision::Dispatch(dispatch) => {
                        self.dispatched(dispatch.request.ticket as usize, dispatch.id);
                    }
                    Decision::WaitUntil(at_ns) => break Some(at_ns),
                    Decision::Idle => break None,
                }
            };
            self.gates[drive].wait_ns = wait_ns;
        }
    }

    fn due_ns(&self) -> Option<u64> {
        let event_ns = self.events.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let waits = self.gates.iter().filter_map(|gate| gate.wait_ns);
        let drives = self.drives.iter().filter_map(Drive::due_ns);
        waits.chain(drives).chain(event_ns).min()
    }

    fn advance(&mut self, limit_ns: Option<u64>) -> Result<(), Failure> {
        let due_ns = self.due_ns().into_iter().chain(limit_ns).min();
        let idle = "the drive model idles and has not completed every request";
        let at_ns = due_ns.ok_or_else(|| Failure::Model(format!("{idle}, at {} ns", self.now_ns)));
        self.now_ns = self.now_ns.max(at_ns?);
        let mut completions = std::mem::take(&mut self.completions);
        for drive in self.drives.iter_mut() {
            if drive.due_ns().is_some_and(|due_ns| due_ns <= self.now_ns) {
                drive.catch_up(self.now_ns, &mut completions)?;
            }
        }
        for completion in completions.drain(..) {
            self.completed(completion);
        }
        self.completions = completions;
        while let Some(&Reverse((at_ns, _, event, ticket))) = self.events.peek() {
            if at_ns > self.now_ns {
                break;
            }
            self.events.pop();
            self.happen(event, ticket);
        }
        Ok(())
    }

    fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }
}
