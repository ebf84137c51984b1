//! The interface of schedulers.

use crate::refusal::Refusal;
use crate::request::{Completion, Decision, Outcome, Priority, Request, RequestId};
use crate::snapshot::{Snapshot, View};
use crate::tenant::{Tenant, TenantId};

/// A scheduler in front of one drive: a state machine that is told the time.
///
/// A time before that of an earlier call counts as that one. A refused call changes nothing.
pub trait Scheduler: Send {
    /// Let a tenant join, at any time.
    fn join(&mut self, tenant: &Tenant, now_ns: u64) -> Result<TenantId, Refusal>;

    /// Let a tenant leave: its queued requests are still served, new ones are refused.
    fn leave(&mut self, tenant: TenantId, now_ns: u64) -> Result<(), Refusal>;

    /// Disconnect a tenant: its queued requests are dropped, and their tickets returned in order of arrival. Those at the
    /// drive still complete.
    fn disconnect(&mut self, tenant: TenantId, now_ns: u64) -> Result<Vec<u64>, Refusal>;

    /// Take a request.
    fn arrive(
        &mut self,
        tenant: TenantId,
        priority: Priority,
        request: Request,
        now_ns: u64,
    ) -> Result<RequestId, Refusal>;

    /// Decide. To be called until it answers something else than [`Decision::Dispatch`].
    fn next(&mut self, now_ns: u64) -> Decision;

    /// Take note that the drive has completed a request.
    fn complete(
        &mut self,
        id: RequestId,
        outcome: Outcome,
        now_ns: u64,
    ) -> Result<Completion, Refusal>;

    /// The same, where the caller measured the time at the drive by itself: what lay between the dispatch and the submission
    /// to the drive counts as waiting.
    fn complete_measured(
        &mut self,
        id: RequestId,
        outcome: Outcome,
        latency_ns: u64,
        now_ns: u64,
    ) -> Result<Completion, Refusal>;

    /// The tenant's view of the drive, where the scheduler gives one.
    fn view(&self, tenant: TenantId) -> Result<Option<View>, Refusal>;

    /// The state of the scheduler and of its tenants.
    fn snapshot(&self) -> Snapshot;
}
