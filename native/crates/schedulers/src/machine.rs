//! A policy with its requests and tenants: a scheduler.

use crate::ledger::{Ledger, Member};
use crate::policy::{Choice, Policy};
use crate::refusal::Refusal;
use crate::request::{
    Completion, Decision, Dispatch, Operation, Outcome, Priority, Request, RequestId, LARGEST_BYTES,
};
use crate::scheduler::Scheduler;
use crate::snapshot::{Snapshot, TenantSnapshot, View};
use crate::tenant::{Tenant, TenantId};

/// The scheduler of a policy.
#[derive(Debug)]
pub struct Machine<P: Policy> {
    policy: P,
    ledger: Ledger<P::Tenant>,
    now_ns: u64,
}

impl<P: Policy> Machine<P> {
    pub fn new(policy: P) -> Self {
        Self {
            policy,
            ledger: Ledger::new(),
            now_ns: 0,
        }
    }

    fn at(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.now_ns
    }

    /// Drop a tenant that leaves and has no requests any more.
    fn drop_gone(&mut self, index: u32) {
        let member = self.ledger.member(index);
        if member.is_leaving && !member.is_active() {
            self.policy.forget(&mut self.ledger, index);
            self.ledger.unseat(index);
            self.policy.reckon(&mut self.ledger);
        }
    }
}

impl<P: Policy> Scheduler for Machine<P> {
    fn join(&mut self, tenant: &Tenant, now_ns: u64) -> Result<TenantId, Refusal> {
        self.at(now_ns);
        tenant.check()?;
        let is_same = |(_, member): (u32, &Member<P::Tenant>)| {
            !member.is_leaving && member.tenant.name == tenant.name
        };
        if self.ledger.members().any(is_same) {
            return Err(Refusal::NameTaken(tenant.name.clone()));
        }
        let state = self.policy.admit(&self.ledger, tenant)?;
        let id = self.ledger.seat(tenant, state);
        self.policy.reckon(&mut self.ledger);
        Ok(id)
    }

    fn leave(&mut self, tenant: TenantId, now_ns: u64) -> Result<(), Refusal> {
        self.at(now_ns);
        let index = self.ledger.present(tenant)?;
        self.ledger.member_mut(index).is_leaving = true;
        self.drop_gone(index);
        Ok(())
    }

    fn disconnect(&mut self, tenant: TenantId, now_ns: u64) -> Result<Vec<u64>, Refusal> {
        self.at(now_ns);
        let index = self.ledger.present(tenant)?;
        self.ledger.member_mut(index).is_leaving = true;
        self.policy.forget(&mut self.ledger, index);
        let dropped = self.ledger.withdraw(index);
        self.policy.reckon(&mut self.ledger);
        self.drop_gone(index);
        Ok(dropped)
    }

    fn arrive(
        &mut self,
        tenant: TenantId,
        priority: Priority,
        request: Request,
        now_ns: u64,
    ) -> Result<RequestId, Refusal> {
        let now_ns = self.at(now_ns);
        let tenant = self.ledger.present(tenant)?;
        if !(1..=LARGEST_BYTES).contains(&request.bytes) {
            return Err(Refusal::Invalid(format!(
                "a request of {} bytes; give 1 to {LARGEST_BYTES}",
                request.bytes
            )));
        }
        let member = self.ledger.member(tenant);
        self.policy.vet(&member.tenant, request.operation)?;
        let index = self.ledger.enter(tenant, priority, request, now_ns);
        self.policy.arrive(&mut self.ledger, index, now_ns);
        Ok(self.ledger.id(index))
    }

    fn next(&mut self, now_ns: u64) -> Decision {
        let now_ns = self.at(now_ns);
        match self.policy.next(&mut self.ledger, now_ns) {
            Choice::Request(index) => {
                let id = self.ledger.dispatch(index, now_ns);
                let entry = self.ledger.entry(index);
                Decision::Dispatch(Dispatch {
                    id,
                    tenant: self.ledger.tenant_id(entry.tenant),
                    request: entry.request,
                })
            }
            Choice::WaitUntil(at_ns) => Decision::WaitUntil(at_ns.max(now_ns + 1)),
            Choice::Idle => Decision::Idle,
        }
    }

    fn complete(
        &mut self,
        id: RequestId,
        outcome: Outcome,
        now_ns: u64,
    ) -> Result<Completion, Refusal> {
        let now_ns = self.at(now_ns);
        let index = self.ledger.at_drive(id)?;
        let entry = self.ledger.entry(index);
        let (tenant, request) = (entry.tenant, entry.request);
        let mut completion = Completion {
            tenant: self.ledger.tenant_id(tenant),
            request,
            latency_ns: now_ns - entry.dispatched_ns,
            waited_ns: entry.dispatched_ns - entry.arrived_ns,
            credit: None,
        };
        self.ledger.leave_drive(index);
        let counters = &mut self.ledger.member_mut(tenant).counters;
        match outcome {
            Outcome::Succeeded => {
                counters.completed += 1;
                match request.operation {
                    Operation::Read => counters.read_bytes += u64::from(request.bytes),
                    Operation::Write => counters.written_bytes += u64::from(request.bytes),
                }
            }
            Outcome::Failed => counters.failed += 1,
        }
        completion.credit = self
            .policy
            .complete(&mut self.ledger, index, outcome, now_ns);
        self.drop_gone(tenant);
        Ok(completion)
    }

    fn complete_measured(
        &mut self,
        id: RequestId,
        outcome: Outcome,
        latency_ns: u64,
        now_ns: u64,
    ) -> Result<Completion, Refusal> {
        let now_ns = self.at(now_ns);
        let index = self.ledger.at_drive(id)?;
        self.ledger
            .submitted(index, now_ns.saturating_sub(latency_ns));
        self.complete(id, outcome, now_ns)
    }

    fn view(&self, tenant: TenantId) -> Result<Option<View>, Refusal> {
        let index = self.ledger.present(tenant)?;
        Ok(self.policy.view(&self.ledger, index))
    }

    fn snapshot(&self) -> Snapshot {
        let tenants = self.ledger.members().map(|(index, member)| TenantSnapshot {
            name: member.tenant.name.clone(),
            is_leaving: member.is_leaving,
            queued: member.queued,
            at_drive: member.at_drive,
            arrived: member.counters.arrived,
            completed: member.counters.completed,
            failed: member.counters.failed,
            read_bytes: member.counters.read_bytes,
            written_bytes: member.counters.written_bytes,
            state: self.policy.tenant_state(&self.ledger, index),
        });
        Snapshot {
            scheduler: P::KIND,
            at_ns: self.now_ns,
            queued: self.ledger.queued,
            at_drive: self.ledger.at_drive,
            active: self.ledger.active,
            state: self.policy.state(),
            tenants: tenants.collect(),
        }
    }
}
