//! No scheduling: every request goes to the drive at once, in order of arrival.

use crate::ledger::{Ledger, Queue};
use crate::policy::{Choice, Policy};
use crate::refusal::Refusal;
use crate::request::Outcome;
use crate::snapshot::{SchedulerState, TenantState};
use crate::tenant::Tenant;

/// The baseline: one queue for all tenants.
///
/// Invariants: requests leave in the order they arrived; nothing ever waits.
#[derive(Debug, Default)]
pub struct Fifo {
    queue: Queue,
}

impl Policy for Fifo {
    type Tenant = ();

    const KIND: &'static str = "none";

    fn admit(&self, _ledger: &Ledger<()>, _tenant: &Tenant) -> Result<(), Refusal> {
        Ok(())
    }

    fn arrive(&mut self, ledger: &mut Ledger<()>, index: u32, _now_ns: u64) {
        self.queue.push(ledger.entries(), index);
    }

    fn next(&mut self, ledger: &mut Ledger<()>, _now_ns: u64) -> Choice {
        let head = self.queue.pop(ledger.entries());
        head.map_or(Choice::Idle, Choice::Request)
    }

    fn complete(
        &mut self,
        _ledger: &mut Ledger<()>,
        _index: u32,
        _outcome: Outcome,
        _now_ns: u64,
    ) -> Option<u32> {
        None
    }

    fn forget(&mut self, ledger: &mut Ledger<()>, tenant: u32) {
        self.queue.forget(ledger.entries(), tenant);
    }

    fn state(&self) -> SchedulerState {
        SchedulerState::None {}
    }

    fn tenant_state(&self, _ledger: &Ledger<()>, _tenant: u32) -> TenantState {
        TenantState::None {}
    }
}
