//! Promises of every scheduler, whatever its clients and its drive do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use schedulers::{
    Decision, Operation, Outcome, Parameters, Priority, Refusal, Request, RequestId, Scheduler,
    Slo, Tenant, TenantId,
};
use serde_json::json;

use crate::bench::{cases, dispatched};

#[derive(Debug, Clone)]
enum Step {
    Join,
    Leave(prop::sample::Index),
    Disconnect(prop::sample::Index),
    Arrive(prop::sample::Index, bool, u32),
    Next,
    Complete(prop::sample::Index, bool),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<prop::sample::Index>;
    prop_oneof![
        1 => Just(Step::Join),
        1 => which().prop_map(Step::Leave),
        1 => which().prop_map(Step::Disconnect),
        12 => (which(), any::<bool>(), 1_u32..300_000)
            .prop_map(|(which, is_write, bytes)| Step::Arrive(which, is_write, bytes)),
        12 => Just(Step::Next),
        12 => (which(), any::<bool>()).prop_map(|(which, fails)| Step::Complete(which, fails)),
        6 => (0_u64..3_000_000).prop_map(Step::Pass),
    ]
}

/// A scheduler, and what is known of it from outside.
struct Watched {
    scheduler: Box<dyn Scheduler>,
    tenants: Vec<TenantId>,
    joined: u32,
    /// Tickets in order of arrival.
    queued: BTreeMap<u64, VecDeque<u64>>,
    at_drive: Vec<(RequestId, u64)>,
    tickets: u64,
    over: BTreeSet<u64>,
    now_ns: u64,
    decisions: Vec<Decision>,
}

/// A tenant's key, by the order of joining: an id tells nothing from outside.
fn key(tenants: &BTreeMap<String, u64>, tenant: TenantId) -> u64 {
    tenants[&format!("{tenant:?}")]
}

impl Watched {
    fn new(parameters: &Parameters) -> Self {
        Self {
            scheduler: parameters.start(),
            tenants: Vec::new(),
            joined: 0,
            queued: BTreeMap::new(),
            at_drive: Vec::new(),
            tickets: 0,
            over: BTreeSet::new(),
            now_ns: 0,
            decisions: Vec::new(),
        }
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), TestCaseError> {
        let mut keys = BTreeMap::new();
        for step in steps {
            self.take(step, &mut keys)?;
            let snapshot = self.scheduler.snapshot();
            let queued: usize = self.queued.values().map(VecDeque::len).sum();
            prop_assert_eq!(snapshot.queued as usize, queued);
            prop_assert_eq!(snapshot.at_drive as usize, self.at_drive.len());
            let tenants = &snapshot.tenants;
            let sums = tenants
                .iter()
                .fold((0, 0, 0), |(queued, at_drive, active), one| {
                    let is_active = u32::from(one.queued + one.at_drive > 0);
                    (
                        queued + one.queued,
                        at_drive + one.at_drive,
                        active + is_active,
                    )
                });
            prop_assert_eq!(sums, (snapshot.queued, snapshot.at_drive, snapshot.active));
        }
        self.drain(&keys)
    }

    fn take(&mut self, step: &Step, keys: &mut BTreeMap<String, u64>) -> Result<(), TestCaseError> {
        let now_ns = self.now_ns;
        match step {
            Step::Join => {
                self.joined += 1;
                let mut tenant = Tenant::named(&format!("t{}", self.joined));
                tenant.weight = f64::from(self.joined % 3 + 1);
                // Less than half of what a drive gives: best effort may wait as long as objectives use all of it.
                let has_objective = self.joined % 2 == 0 && self.joined <= 8;
                tenant.slo = has_objective.then_some(Slo {
                    iops: 10_000.0,
                    read_percent: 50.0,
                    p95_us: 1000.0,
                });
                let id = self.scheduler.join(&tenant, now_ns).unwrap();
                keys.insert(format!("{id:?}"), u64::from(self.joined));
                self.tenants.push(id);
            }
            Step::Leave(which) if !self.tenants.is_empty() => {
                let id = self.tenants.swap_remove(which.index(self.tenants.len()));
                self.scheduler.leave(id, now_ns).unwrap();
                prop_assert_eq!(self.scheduler.leave(id, now_ns), Err(Refusal::NoSuchTenant));
            }
            Step::Disconnect(which) if !self.tenants.is_empty() => {
                let id = self.tenants.swap_remove(which.index(self.tenants.len()));
                let dropped = self.scheduler.disconnect(id, now_ns).unwrap();
                let mut expected = self.queued.remove(&key(keys, id)).unwrap_or_default();
                // A reused slab has them in another order where they came at the same time.
                let mut found = dropped.clone();
                found.sort_unstable();
                expected.make_contiguous().sort_unstable();
                prop_assert_eq!(&found, expected.make_contiguous());
                self.over.extend(dropped);
            }
            Step::Arrive(which, is_write, bytes) if !self.tenants.is_empty() => {
                let id = self.tenants[which.index(self.tenants.len())];
                self.tickets += 1;
                let operation = if *is_write {
                    Operation::Write
                } else {
                    Operation::Read
                };
                let request = Request {
                    ticket: self.tickets,
                    operation,
                    bytes: *bytes,
                };
                let entered = self
                    .scheduler
                    .arrive(id, Priority::default(), request, now_ns);
                entered.unwrap();
                let queue = self.queued.entry(key(keys, id)).or_default();
                queue.push_back(self.tickets);
            }
            Step::Next => {
                self.next(keys)?;
            }
            Step::Complete(which, fails) if !self.at_drive.is_empty() => {
                let (id, ticket) = self.at_drive.swap_remove(which.index(self.at_drive.len()));
                let outcome = if *fails {
                    Outcome::Failed
                } else {
                    Outcome::Succeeded
                };
                let done = self.scheduler.complete(id, outcome, now_ns).unwrap();
                prop_assert_eq!(done.request.ticket, ticket);
                prop_assert!(self.over.insert(ticket));
                let again = self.scheduler.complete(id, outcome, now_ns);
                prop_assert_eq!(again, Err(Refusal::NotAtDrive));
            }
            Step::Pass(ns) => self.now_ns += ns,
            _ => {}
        }
        Ok(())
    }

    fn next(&mut self, keys: &BTreeMap<String, u64>) -> Result<Decision, TestCaseError> {
        let decision = self.scheduler.next(self.now_ns);
        self.decisions.push(decision);
        match decision {
            Decision::Dispatch(dispatch) => {
                // A tenant's requests leave in order of arrival.
                let queue = self.queued.get_mut(&key(keys, dispatch.tenant)).unwrap();
                prop_assert_eq!(queue.pop_front(), Some(dispatch.request.ticket));
                self.at_drive.push((dispatch.id, dispatch.request.ticket));
            }
            Decision::WaitUntil(at_ns) => prop_assert!(at_ns > self.now_ns),
            Decision::Idle => {
                let is_queued = self.queued.values().any(|queue| !queue.is_empty());
                prop_assert!(
                    !is_queued || !self.at_drive.is_empty(),
                    "requests wait for nothing"
                );
            }
        }
        Ok(decision)
    }

    /// Complete everything: each request that was not dropped is dispatched and completes, in bounded time.
    fn drain(&mut self, keys: &BTreeMap<String, u64>) -> Result<(), TestCaseError> {
        for _ in 0..200_000 {
            match self.next(keys)? {
                Decision::Dispatch(_) => {}
                Decision::WaitUntil(at_ns) => self.now_ns = at_ns,
                Decision::Idle => {
                    let Some((id, ticket)) = self.at_drive.pop() else {
                        prop_assert_eq!(self.over.len() as u64, self.tickets);
                        return Ok(());
                    };
                    let done = self.scheduler.complete(id, Outcome::Succeeded, self.now_ns);
                    prop_assert_eq!(done.unwrap().request.ticket, ticket);
                    self.over.insert(ticket);
                }
            }
        }
        Err(TestCaseError::fail("requests are left over"))
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn every_request_goes_once_in_its_tenant_s_order_and_none_starves(
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let threaded = serde_json::from_value(json!({"kind": "reflex", "threads": 3})).unwrap();
        let defaults = Parameters::KINDS.iter().map(|kind| Parameters::of(kind).unwrap());
        for parameters in defaults.chain([threaded]) {
            let mut watched = Watched::new(&parameters);
            let of = |error| TestCaseError::fail(format!("{parameters:?}: {error}"));
            watched.run(&steps).map_err(of)?;
            // The same calls, the same decisions.
            let mut again = Watched::new(&parameters);
            again.run(&steps)?;
            prop_assert_eq!(watched.decisions, again.decisions);
        }
    }
}

#[test]
fn without_a_scheduler_requests_go_at_once_in_order_of_arrival() {
    let mut none = Parameters::None.start();
    let tenants = ["a", "b"].map(|name| none.join(&Tenant::named(name), 0).unwrap());
    for ticket in 0..100 {
        let request = Request {
            ticket,
            operation: Operation::Write,
            bytes: 1 << 20,
        };
        let tenant = tenants[(ticket / 3 % 2) as usize];
        none.arrive(tenant, Priority::Low, request, 0).unwrap();
    }
    let order: Vec<u64> = dispatched(&mut *none, 0)
        .iter()
        .map(|dispatch| dispatch.request.ticket)
        .collect();
    assert_eq!(order, Vec::from_iter(0..100));
}
