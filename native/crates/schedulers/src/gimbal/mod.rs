//! Gimbal: a storage switch in front of one drive.
//!
//! Min, Liu, Chugh, Zhao, Wei, Doh and Krishnamurthy, *Gimbal: Enabling Multi-tenant Storage Disaggregation on SmartNIC
//! JBOFs*, SIGCOMM 2021, and its published code.

mod buckets;
mod congestion;
mod parameters;
mod slots;
mod tagged;
mod write_cost;

use std::collections::VecDeque;

use crate::ledger::{Entry, Ledger};
use crate::policy::{Choice, Policy};
use crate::refusal::Refusal;
use crate::request::{Operation, Outcome, Request};
use crate::snapshot::{SchedulerState, TenantState, View};
use crate::tenant::Tenant;
use buckets::Buckets;
use congestion::RateControl;
use slots::Slots;
use tagged::{Quotas, Tagged};
use write_cost::WriteCost;

pub use congestion::Congestion;
pub use parameters::GimbalParameters;

/// The state of a tenant.
#[derive(Debug)]
pub struct Share {
    queue: Tagged,
    slots: Slots,
    deficit: u64,
    turn: Turn,
}

/// A tenant's part in the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Has no requests.
    Idle,
    /// Is in the list of active tenants.
    Listed,
    /// Has requests, and waits for a slot.
    Deferred,
}

/// Gimbal's switch: deficit round robin over tenants with a free virtual slot, at the target rate.
///
/// Invariants, beside those of its parts:
/// - a tenant uses at most max(1, virtual slots / active tenants) slots for new requests (section 3.5);
/// - a tenant without a free slot is deferred, its deficit is 0, and it goes to the end of the list when one is free;
/// - two tenants with requests queued and slots free all along get weighted bytes that differ by at most two of the
///   largest requests and a quantum (the bound of deficit round robin, Shreedhar and Varghese 1995);
/// - a dispatched request has taken tokens for all of its bytes; one that has to wait for them holds its turn;
/// - a tenant's credit is its slots times the requests of its last slot (section 3.6).
#[derive(Debug)]
pub struct Gimbal {
    virtual_slots: u32,
    slot_bytes: u64,
    quantum: u64,
    initial_requests: u32,
    quotas: Quotas,
    rate: RateControl,
    buckets: Buckets,
    write_cost: WriteCost,
    /// Active tenants that are not deferred; the first has its turn.
    list: VecDeque<u32>,
    /// Whether the first has had its quantum.
    has_quantum: bool,
    deferred: u32,
    /// Slots for each tenant.
    limit: u32,
    /// The active tenants that the slots are divided among.
    sharers: u32,
}

impl Gimbal {
    pub fn new(parameters: &GimbalParameters) -> Self {
        Self {
            virtual_slots: parameters.virtual_slots,
            slot_bytes: u64::from(parameters.slot_kib) << 10,
            quantum: u64::from(parameters.quantum_kib) << 10,
            initial_requests: parameters.initial_slot_requests,
            quotas: Quotas::new(parameters),
            rate: RateControl::new(parameters),
            buckets: Buckets::new(parameters.bucket_kib),
            write_cost: WriteCost::new(parameters),
            list: VecDeque::new(),
            has_quantum: false,
            deferred: 0,
            limit: parameters.virtual_slots,
            sharers: 0,
        }
    }

    fn weighted(&self, request: &Request) -> u64 {
        match request.operation {
            Operation::Read => u64::from(request.bytes),
            Operation::Write => self.write_cost.weighted(request.bytes),
        }
    }

    /// Divide the slots among the active tenants.
    #[inline]
    fn divide(&mut self, ledger: &mut Ledger<Share>) {
        if self.sharers != ledger.active {
            self.divide_anew(ledger);
        }
    }

    /// Divide the slots among other tenants than before. Where each gets more, deferred ones may go on.
    fn divide_anew(&mut self, ledger: &mut Ledger<Share>) {
        self.sharers = ledger.active;
        let before = self.limit;
        self.limit = (self.virtual_slots / ledger.active.max(1)).max(1);
        if self.limit <= before || self.deferred == 0 {
            return;
        }
        for tenant in 0..ledger.seats() {
            let Some(member) = ledger.try_member_mut(tenant) else {
                continue;
            };
            let share = &mut member.state;
            if share.turn == Turn::Deferred && share.slots.has_room(self.limit) {
                self.deferred -= 1;
                share.turn = Turn::Listed;
                self.list.push_back(tenant);
            }
        }
    }

    /// Take the first tenant out of the list.
    fn delist(&mut self, share: &mut Share, turn: Turn) {
        share.deficit = 0;
        share.turn = turn;
        self.deferred += u32::from(turn == Turn::Deferred);
        self.list.pop_front();
        self.has_quantum = false;
    }

    /// Give all listed tenants the quanta that they would get in rounds in which none can send.
    fn skip_rounds(&mut self, ledger: &mut Ledger<Share>, now_ns: u64) {
        let mut rounds = u64::MAX;
        for &tenant in &self.list {
            let share = &mut ledger.member_mut(tenant).state;
            let deficit = share.deficit;
            if let Some(head) = share.queue.head(&self.quotas, now_ns) {
                let weighted = self.weighted(&ledger.entry(head).request);
                let missing = weighted.saturating_sub(deficit).max(1);
                rounds = rounds.min(missing.div_ceil(self.quantum) - 1);
            }
        }
        for &tenant in &self.list {
            ledger.member_mut(tenant).state.deficit += rounds * self.quantum;
        }
    }

    fn credit(&self, slots: &Slots) -> u32 {
        self.limit * slots.last_requests()
    }
}

impl Policy for Gimbal {
    type Tenant = Share;

    const KIND: &'static str = "gimbal";

    fn admit(&self, _ledger: &Ledger<Share>, _tenant: &Tenant) -> Result<Share, Refusal> {
        Ok(Share {
            queue: Tagged::default(),
            slots: Slots::new(self.virtual_slots, self.initial_requests),
            deficit: 0,
            turn: Turn::Idle,
        })
    }

    #[inline]
    fn arrive(&mut self, ledger: &mut Ledger<Share>, index: u32, _now_ns: u64) {
        let tenant = ledger.entry(index).tenant;
        let (member, entries) = ledger.member_and_entries(tenant);
        let share = &mut member.state;
        share.queue.push(entries, index, &self.quotas);
        if share.turn == Turn::Idle {
            share.turn = Turn::Listed;
            self.list.push_back(tenant);
        }
        self.divide(ledger);
    }

    #[inline]
    fn next(&mut self, ledger: &mut Ledger<Share>, now_ns: u64) -> Choice {
        let write_latency_ns = self.rate.ewma_ns(Operation::Write);
        self.write_cost.pass(write_latency_ns, now_ns);
        let rate = self.rate.rate();
        let write_cost = self.write_cost.cost();
        self.buckets.refill(rate, write_cost, now_ns);
        let mut passed = 0;
        while let Some(&tenant) = self.list.front() {
            let (member, entries) = ledger.member_and_entries(tenant);
            let share = &mut member.state;
            let Some(head) = share.queue.head(&self.quotas, now_ns) else {
                self.delist(share, Turn::Idle);
                continue;
            };
            if !share.slots.has_room(self.limit) {
                self.delist(share, Turn::Deferred);
                continue;
            }
            let request = entries[head as usize].request;
            let weighted = self.weighted(&request);
            if share.deficit < weighted {
                if !self.has_quantum {
                    share.deficit += self.quantum;
                    self.has_quantum = true;
                    continue;
                }
                self.list.rotate_left(1);
                self.has_quantum = false;
                passed += 1;
                if passed >= self.list.len() {
                    self.skip_rounds(ledger, now_ns);
                    passed = 0;
                }
                continue;
            }
            let Request {
                operation, bytes, ..
            } = request;
            if !self.buckets.take(operation, bytes) {
                let wait_ns = self.buckets.wait_ns(operation, bytes, rate, write_cost);
                return Choice::WaitUntil(now_ns + wait_ns);
            }
            self.rate.begin(now_ns);
            share.queue.pop(entries, &self.quotas, now_ns);
            share.deficit -= weighted;
            let slot = share.slots.enter(weighted, self.slot_bytes);
            entries[head as usize].mark = u64::from(slot);
            if share.queue.is_empty() {
                self.delist(share, Turn::Idle);
            } else if !share.slots.has_room(self.limit) {
                self.delist(share, Turn::Deferred);
            }
            return Choice::Request(head);
        }
        Choice::Idle
    }

    #[inline]
    fn complete(
        &mut self,
        ledger: &mut Ledger<Share>,
        index: u32,
        outcome: Outcome,
        now_ns: u64,
    ) -> Option<u32> {
        let &Entry {
            tenant,
            request,
            dispatched_ns,
            mark,
            ..
        } = ledger.entry(index);
        if outcome == Outcome::Succeeded {
            let Request {
                operation, bytes, ..
            } = request;
            if operation == Operation::Write {
                self.write_cost.written();
            }
            let latency_ns = now_ns - dispatched_ns;
            let congestion = self.rate.completed(operation, bytes, latency_ns, now_ns);
            if congestion == Congestion::Overloaded {
                self.buckets.discard();
            }
        }
        if ledger.at_drive == 0 {
            self.rate.rest(now_ns);
        }
        let share = &mut ledger.member_mut(tenant).state;
        share.slots.complete(mark as u32);
        if share.turn == Turn::Deferred && share.slots.has_room(self.limit) {
            self.deferred -= 1;
            share.turn = Turn::Listed;
            self.list.push_back(tenant);
        }
        self.divide(ledger);
        Some(self.credit(&ledger.member(tenant).state.slots))
    }

    fn forget(&mut self, ledger: &mut Ledger<Share>, tenant: u32) {
        let share = &mut ledger.member_mut(tenant).state;
        share.queue = Tagged::default();
        share.deficit = 0;
        self.deferred -= u32::from(share.turn == Turn::Deferred);
        share.turn = Turn::Idle;
        if self.list.front() == Some(&tenant) {
            self.has_quantum = false;
        }
        self.list.retain(|&listed| listed != tenant);
    }

    fn reckon(&mut self, ledger: &mut Ledger<Share>) {
        self.divide(ledger);
    }

    fn state(&self) -> SchedulerState {
        SchedulerState::Gimbal {
            target_rate: self.rate.rate(),
            completion_rate: self.rate.completion_rate(),
            write_cost: self.write_cost.cost(),
            read_tokens: self.buckets.tokens(Operation::Read),
            write_tokens: self.buckets.tokens(Operation::Write),
            read: self.rate.congestion(Operation::Read),
            write: self.rate.congestion(Operation::Write),
            read_latency_ns: self.rate.ewma_ns(Operation::Read),
            write_latency_ns: self.rate.ewma_ns(Operation::Write),
            read_threshold_ns: self.rate.threshold_ns(Operation::Read),
            write_threshold_ns: self.rate.threshold_ns(Operation::Write),
            slots_per_tenant: self.limit,
        }
    }

    fn tenant_state(&self, ledger: &Ledger<Share>, tenant: u32) -> TenantState {
        let share = &ledger.member(tenant).state;
        TenantState::Gimbal {
            slots: share.slots.in_use(),
            last_slot_requests: share.slots.last_requests(),
            deficit: share.deficit,
            is_deferred: share.turn == Turn::Deferred,
            credit: self.credit(&share.slots),
        }
    }

    fn view(&self, ledger: &Ledger<Share>, tenant: u32) -> Option<View> {
        Some(View {
            credit: self.credit(&ledger.member(tenant).state.slots),
            target_rate: self.rate.rate() / f64::from(ledger.active.max(1)),
            read: self.rate.congestion(Operation::Read),
            write: self.rate.congestion(Operation::Write),
            write_cost: self.write_cost.cost(),
        })
    }
}
