//! The part of a scheduler that differs from the others.

use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::request::{Operation, Outcome};
use crate::snapshot::{SchedulerState, TenantState, View};
use crate::tenant::Tenant;

/// The next request, by its index in the ledger, or the time to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This one, which is in no queue any more.
    Request(u32),
    /// None before this time, unless something arrives or completes.
    WaitUntil(u64),
    /// None until something arrives or completes.
    Idle,
}

/// Decisions of a scheduler over the requests and tenants of a ledger.
pub trait Policy: Send {
    /// The state of a tenant.
    type Tenant: Send;

    /// The name of the scheduler.
    const KIND: &'static str;

    /// The state of a tenant that wants to join, or a refusal.
    fn admit(
        &self,
        ledger: &Ledger<Self::Tenant>,
        tenant: &Tenant,
    ) -> Result<Self::Tenant, Refusal>;

    /// Take note that tenants have joined or are gone.
    fn reckon(&mut self, _ledger: &mut Ledger<Self::Tenant>) {}

    /// Refuse a request before it is entered.
    fn vet(&self, _tenant: &Tenant, _operation: Operation) -> Result<(), Refusal> {
        Ok(())
    }

    /// Queue a request that has been entered.
    fn arrive(&mut self, ledger: &mut Ledger<Self::Tenant>, index: u32, now_ns: u64);

    /// Choose the next request.
    fn next(&mut self, ledger: &mut Ledger<Self::Tenant>, now_ns: u64) -> Choice;

    /// Take note of a completion; returns the tenant's credit. The entry still holds the request, which is counted
    /// nowhere any more.
    fn complete(
        &mut self,
        ledger: &mut Ledger<Self::Tenant>,
        index: u32,
        outcome: Outcome,
        now_ns: u64,
    ) -> Option<u32>;

    /// Drop the queued requests of a tenant from every queue; the ledger still counts them.
    fn forget(&mut self, ledger: &mut Ledger<Self::Tenant>, tenant: u32);

    /// The state that may be observed.
    fn state(&self) -> SchedulerState;

    /// The same of a tenant.
    fn tenant_state(&self, ledger: &Ledger<Self::Tenant>, tenant: u32) -> TenantState;

    /// The virtual view of a tenant.
    fn view(&self, _ledger: &Ledger<Self::Tenant>, _tenant: u32) -> Option<View> {
        None
    }
}
