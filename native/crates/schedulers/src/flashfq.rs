//! FlashFQ: start-time fair queueing at the depth of a flash drive, with throttled dispatch and anticipation.
//!
//! Shen and Park, *FlashFQ: A Fair Queueing I/O Scheduler for Flash-Based SSDs*, USENIX ATC 2013; the tags are those of
//! SFQ(D): Jin, Chase and Kaur, *Interposed Proportional Sharing for a Storage Service Utility*, SIGMETRICS 2004.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::document::within;
use crate::ledger::{Ledger, Queue};
use crate::policy::{Choice, Policy};
use crate::refusal::Refusal;
use crate::request::{Operation, Outcome, Request};
use crate::snapshot::{SchedulerState, TenantState};
use crate::tenant::Tenant;

/// Parameters of FlashFQ. The paper calibrates them for each drive; the defaults are assumptions for an NVMe drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlashFqParameters {
    /// Requests at the drive at once, the paper's D.
    pub depth: u32,
    /// The lead over the slowest tenant that a request may have, the paper's T, in virtual time.
    pub throttle_us: f64,
    /// Time for which a tenant that has just become idle still holds back the others, the paper's T_ant.
    pub anticipation_us: f64,
    /// Cost of a read.
    pub read_cost: LinearCost,
    /// Cost of a write.
    pub write_cost: LinearCost,
}

/// A cost that grows linearly with size, in microseconds of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearCost {
    /// Cost of a request of any size.
    pub base_us: f64,
    /// Cost of each KiB.
    pub per_kib_us: f64,
}

impl Default for FlashFqParameters {
    fn default() -> Self {
        Self {
            depth: 64,
            throttle_us: 1000.0,
            anticipation_us: 500.0,
            read_cost: LinearCost {
                base_us: 1.25,
                per_kib_us: 0.3125,
            },
            write_cost: LinearCost {
                base_us: 1.25,
                per_kib_us: 0.9375,
            },
        }
    }
}

impl FlashFqParameters {
    /// Check the parameters; the error names the wrong one and its range.
    pub fn check(&self) -> Result<(), String> {
        within("depth", self.depth, 1, 65_536)?;
        within("throttle_us", self.throttle_us, 0.0, 1e9)?;
        within("anticipation_us", self.anticipation_us, 0.0, 1e7)?;
        for (name, cost) in [
            ("read_cost", self.read_cost),
            ("write_cost", self.write_cost),
        ] {
            within(&format!("{name}.base_us"), cost.base_us, 0.0, 1e6)?;
            within(&format!("{name}.per_kib_us"), cost.per_kib_us, 0.0, 1e4)?;
            if cost.base_us + cost.per_kib_us <= 0.0 {
                return Err(format!("{name} is 0; give it a base_us or a per_kib_us"));
            }
        }
        Ok(())
    }
}

impl LinearCost {
    fn ns(self, bytes: u32) -> f64 {
        self.base_us * 1e3 + self.per_kib_us * f64::from(bytes) * (1e3 / 1024.0)
    }
}

/// A request at the drive, in order of dispatch within its tenant.
#[derive(Debug)]
struct Started {
    start_ns: u64,
    has_completed: bool,
}

/// The state of a tenant.
#[derive(Debug)]
pub struct Flow {
    queue: Queue,
    weight: f64,
    finish_ns: u64,
    started: VecDeque<Started>,
    /// The number of the first of `started`, counted from the tenant's first request.
    first: u64,
    is_listed: bool,
    idle_since_ns: u64,
}

/// Start-time fair queueing.
///
/// Invariants:
/// - start tag S = max(v, finish tag of the tenant's previous request), finish tag F = S + cost / weight (SFQ);
/// - requests are dispatched in order of start tags; virtual time v is the start tag of the last one, or the largest
///   finish tag when the scheduler has become idle, and never goes back (SFQ);
/// - two tenants with requests queued all along get cost per weight that differs by at most one request of each (SFQ's
///   bound, for what is dispatched);
/// - at most D requests are at the drive (SFQ(D));
/// - the start tag of a dispatched request leads the progress of the slowest active tenant by at most T, progress being
///   the start tag of its oldest request that has not completed (FlashFQ, throttled dispatch);
/// - a tenant that became idle less than T_ant ago is active still (FlashFQ, anticipation).
#[derive(Debug)]
pub struct FlashFq {
    parameters: FlashFqParameters,
    throttle_ns: u64,
    anticipation_ns: u64,
    virtual_ns: u64,
    /// The largest finish tag.
    last_finish_ns: u64,
    /// Tenants with requests, and those that became idle a short while ago.
    active: Vec<u32>,
}

impl FlashFq {
    pub fn new(parameters: &FlashFqParameters) -> Self {
        Self {
            parameters: parameters.clone(),
            throttle_ns: (parameters.throttle_us * 1e3).round() as u64,
            anticipation_ns: (parameters.anticipation_us * 1e3).round() as u64,
            virtual_ns: 0,
            last_finish_ns: 0,
            active: Vec::new(),
        }
    }

    fn cost_ns(&self, request: &Request) -> f64 {
        match request.operation {
            Operation::Read => self.parameters.read_cost.ns(request.bytes),
            Operation::Write => self.parameters.write_cost.ns(request.bytes),
        }
    }
}

/// The start tag of the tenant's oldest request that has not completed.
fn progress_ns(ledger: &Ledger<Flow>, flow: &Flow) -> Option<u64> {
    let at_drive = flow.started.front().map(|first| first.start_ns);
    at_drive.or_else(|| flow.queue.head().map(|head| ledger.entry(head).mark))
}

impl Policy for FlashFq {
    type Tenant = Flow;

    const KIND: &'static str = "flashfq";

    fn admit(&self, _ledger: &Ledger<Flow>, tenant: &Tenant) -> Result<Flow, Refusal> {
        Ok(Flow {
            queue: Queue::default(),
            weight: tenant.weight,
            finish_ns: 0,
            started: VecDeque::new(),
            first: 0,
            is_listed: false,
            idle_since_ns: 0,
        })
    }

    fn arrive(&mut self, ledger: &mut Ledger<Flow>, index: u32, _now_ns: u64) {
        let entry = ledger.entry(index);
        let (tenant, cost_ns) = (entry.tenant, self.cost_ns(&entry.request));
        if ledger.queued == 1 && ledger.at_drive == 0 {
            self.virtual_ns = self.virtual_ns.max(self.last_finish_ns);
        }
        let (member, entries) = ledger.member_and_entries(tenant);
        let flow = &mut member.state;
        let start_ns = self.virtual_ns.max(flow.finish_ns);
        flow.finish_ns = start_ns.saturating_add(((cost_ns / flow.weight).round() as u64).max(1));
        self.last_finish_ns = self.last_finish_ns.max(flow.finish_ns);
        if !std::mem::replace(&mut flow.is_listed, true) {
            self.active.push(tenant);
        }
        entries[index as usize].mark = start_ns;
        flow.queue.push(entries, index);
    }

    fn next(&mut self, ledger: &mut Ledger<Flow>, now_ns: u64) -> Choice {
        if ledger.queued == 0 || ledger.at_drive >= self.parameters.depth {
            return Choice::Idle;
        }
        let mut slowest_ns = u64::MAX;
        let mut best: Option<(u64, u64, u32)> = None;
        let mut anticipated_ns = u64::MAX;
        let mut at = 0;
        while let Some(&tenant) = self.active.get(at) {
            let flow = &ledger.member(tenant).state;
            if let Some(progress_ns) = progress_ns(ledger, flow) {
                slowest_ns = slowest_ns.min(progress_ns);
            } else {
                let until_ns = flow.idle_since_ns + self.anticipation_ns;
                if now_ns >= until_ns {
                    ledger.member_mut(tenant).state.is_listed = false;
                    self.active.swap_remove(at);
                    continue;
                }
                slowest_ns = slowest_ns.min(flow.finish_ns);
                anticipated_ns = anticipated_ns.min(until_ns);
            }
            if let Some(head) = flow.queue.head() {
                let entry = ledger.entry(head);
                let turn = (entry.mark, entry.arrived_ns, tenant);
                best = Some(best.map_or(turn, |other| other.min(turn)));
            }
            at += 1;
        }
        let Some((start_ns, _, tenant)) = best else {
            return Choice::Idle;
        };
        if start_ns > slowest_ns.saturating_add(self.throttle_ns) {
            // A completion moves the slowest tenant on, or the end of its anticipation does.
            return match anticipated_ns {
                u64::MAX => Choice::Idle,
                until_ns => Choice::WaitUntil(until_ns),
            };
        }
        self.virtual_ns = start_ns;
        let (member, entries) = ledger.member_and_entries(tenant);
        let flow = &mut member.state;
        let index = flow.queue.pop(entries).expect("it has a head");
        let number = flow.first + flow.started.len() as u64;
        flow.started.push_back(Started {
            start_ns,
            has_completed: false,
        });
        entries[index as usize].mark = number;
        Choice::Request(index)
    }

    fn complete(
        &mut self,
        ledger: &mut Ledger<Flow>,
        index: u32,
        _outcome: Outcome,
        now_ns: u64,
    ) -> Option<u32> {
        let entry = ledger.entry(index);
        let (tenant, number) = (entry.tenant, entry.mark);
        let flow = &mut ledger.member_mut(tenant).state;
        flow.started[(number - flow.first) as usize].has_completed = true;
        while flow
            .started
            .front()
            .is_some_and(|first| first.has_completed)
        {
            flow.started.pop_front();
            flow.first += 1;
        }
        if flow.started.is_empty() && flow.queue.is_empty() {
            flow.idle_since_ns = now_ns;
        }
        None
    }

    fn forget(&mut self, ledger: &mut Ledger<Flow>, tenant: u32) {
        let flow = &mut ledger.member_mut(tenant).state;
        flow.queue = Queue::default();
        if flow.started.is_empty() {
            flow.is_listed = false;
            self.active.retain(|&listed| listed != tenant);
        }
    }

    fn state(&self) -> SchedulerState {
        SchedulerState::FlashFq {
            virtual_ns: self.virtual_ns,
        }
    }

    fn tenant_state(&self, ledger: &Ledger<Flow>, tenant: u32) -> TenantState {
        let flow = &ledger.member(tenant).state;
        TenantState::FlashFq {
            progress_ns: progress_ns(ledger, flow).unwrap_or(flow.finish_ns),
            finish_ns: flow.finish_ns,
        }
    }
}
