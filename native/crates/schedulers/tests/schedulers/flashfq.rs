//! FlashFQ: tags, depth, throttling, anticipation.

use proptest::prelude::*;
use schedulers::{
    Decision, Outcome, Parameters, Request, Scheduler, SchedulerState, Tenant, TenantState,
};
use serde_json::{json, Value};

use crate::bench::{arrive, cases, dispatched, read, start, tenant, write, KIB, US};

/// A KiB read costs 1 us, a KiB written 4 us.
fn document(depth: u32, throttle_us: u32, anticipation_us: u32) -> Value {
    json!({"kind": "flashfq", "depth": depth, "throttle_us": throttle_us, "anticipation_us": anticipation_us,
           "read_cost": {"base_us": 0, "per_kib_us": 1}, "write_cost": {"base_us": 0, "per_kib_us": 4}})
}

fn virtual_ns(scheduler: &dyn Scheduler) -> u64 {
    match scheduler.snapshot().state {
        SchedulerState::FlashFq { virtual_ns } => virtual_ns,
        _ => panic!("virtual time"),
    }
}

fn tags_ns(scheduler: &dyn Scheduler, number: usize) -> (u64, u64) {
    match scheduler.snapshot().tenants[number].state {
        TenantState::FlashFq {
            progress_ns,
            finish_ns,
        } => (progress_ns, finish_ns),
        _ => panic!("tags"),
    }
}

#[test]
fn tags_are_those_of_start_time_fair_queueing() {
    let mut flashfq = start(document(1, 1_000_000, 0));
    let a = flashfq.join(&Tenant::named("a"), 0).unwrap();
    let b = flashfq
        .join(&tenant(json!({"name": "b", "weight": 2})), 0)
        .unwrap();
    // S = max(v, F), F = S + cost / weight.
    arrive(&mut *flashfq, a, read(4 * KIB), 0);
    assert_eq!(tags_ns(&*flashfq, 0), (0, 4 * US));
    arrive(&mut *flashfq, a, write(4 * KIB), 0);
    assert_eq!(tags_ns(&*flashfq, 0), (0, 20 * US));
    arrive(&mut *flashfq, b, write(4 * KIB), 0);
    arrive(&mut *flashfq, b, read(4 * KIB), 0);
    assert_eq!(tags_ns(&*flashfq, 1), (0, 10 * US));
    let mut order = Vec::new();
    for now_ns in 0..4 {
        let gone = dispatched(&mut *flashfq, now_ns);
        assert_eq!(gone.len(), 1, "the depth is 1");
        order.push((gone[0].tenant, virtual_ns(&*flashfq)));
        flashfq
            .complete(gone[0].id, Outcome::Succeeded, now_ns)
            .unwrap();
    }
    assert_eq!(order, [(a, 0), (b, 0), (a, 4 * US), (b, 8 * US)]);
    // After idleness, time goes on from the largest finish tag.
    arrive(&mut *flashfq, b, read(4 * KIB), 100);
    assert_eq!(virtual_ns(&*flashfq), 20 * US);
    assert_eq!(tags_ns(&*flashfq, 1), (20 * US, 22 * US));
}

#[test]
fn tags_end_where_time_does() {
    let mut dear = document(1, 1_000_000, 0);
    dear["read_cost"]["per_kib_us"] = json!(10_000);
    let mut flashfq = start(dear);
    let light = flashfq
        .join(&tenant(json!({"name": "light", "weight": 1e-6})), 0)
        .unwrap();
    let other = flashfq.join(&Tenant::named("other"), 0).unwrap();
    for _ in 0..40 {
        arrive(&mut *flashfq, light, read(64 << 20), 0);
    }
    assert_eq!(tags_ns(&*flashfq, 0), (0, u64::MAX));
    arrive(&mut *flashfq, other, read(KIB), 0);
    let mut order = Vec::new();
    for now_ns in 0..41 {
        let gone = dispatched(&mut *flashfq, now_ns);
        assert_eq!(gone.len(), 1, "the depth is 1");
        order.push(gone[0].tenant);
        flashfq
            .complete(gone[0].id, Outcome::Succeeded, now_ns)
            .unwrap();
    }
    assert_eq!(order[..2], [light, other]);
    assert!(order[2..].iter().all(|&one| one == light));
}

#[test]
fn a_lead_over_the_slowest_is_bounded() {
    let mut flashfq = start(document(64, 8, 0));
    let [a, b] = ["a", "b"].map(|name| flashfq.join(&Tenant::named(name), 0).unwrap());
    arrive(&mut *flashfq, a, read(4 * KIB), 0);
    for _ in 0..10 {
        arrive(&mut *flashfq, b, read(4 * KIB), 0);
    }
    // The read of a, at tag 0, takes long: b may start at 0, 4 and 8 us, not at 12.
    let gone = dispatched(&mut *flashfq, 0);
    assert_eq!(gone.len(), 4);
    assert_eq!(flashfq.next(5), Decision::Idle);
    for dispatch in gone.iter().filter(|one| one.tenant == b) {
        flashfq
            .complete(dispatch.id, Outcome::Succeeded, 10)
            .unwrap();
    }
    assert_eq!(flashfq.next(10), Decision::Idle, "a is the slowest still");
    let first = gone.iter().find(|one| one.tenant == a).unwrap();
    flashfq.complete(first.id, Outcome::Succeeded, 20).unwrap();
    assert_eq!(dispatched(&mut *flashfq, 20).len(), 3);
}

#[test]
fn a_tenant_that_was_idle_for_a_moment_holds_back_the_others() {
    let mut flashfq = start(document(64, 8, 50));
    let [a, b] = ["a", "b"].map(|name| flashfq.join(&Tenant::named(name), 0).unwrap());
    arrive(&mut *flashfq, a, read(4 * KIB), 0);
    for _ in 0..10 {
        arrive(&mut *flashfq, b, read(4 * KIB), 0);
    }
    let gone = dispatched(&mut *flashfq, 0);
    assert_eq!(gone.len(), 4);
    for dispatch in &gone {
        flashfq
            .complete(dispatch.id, Outcome::Succeeded, US)
            .unwrap();
    }
    // a would start at 4 us: b may start at 12 us, not at 16, until the anticipation is over.
    let of_b = dispatched(&mut *flashfq, 2 * US);
    assert_eq!(of_b.len(), 1);
    flashfq
        .complete(of_b[0].id, Outcome::Succeeded, 2 * US)
        .unwrap();
    assert_eq!(flashfq.next(2 * US), Decision::WaitUntil(51 * US));
    assert_eq!(
        dispatched(&mut *flashfq, 51 * US).len(),
        3,
        "16, 20 and 24 us: b is the slowest"
    );
}

#[test]
fn a_tenant_that_comes_back_in_time_is_served_at_once() {
    let mut flashfq = start(document(64, 8, 50));
    let [a, b] = ["a", "b"].map(|name| flashfq.join(&Tenant::named(name), 0).unwrap());
    arrive(&mut *flashfq, a, read(4 * KIB), 0);
    for _ in 0..10 {
        arrive(&mut *flashfq, b, read(4 * KIB), 0);
    }
    for dispatch in dispatched(&mut *flashfq, 0) {
        flashfq
            .complete(dispatch.id, Outcome::Succeeded, US)
            .unwrap();
    }
    arrive(&mut *flashfq, a, read(4 * KIB), 3 * US);
    // a starts at 8 us, where virtual time is, before b's at 12 us.
    let gone = dispatched(&mut *flashfq, 3 * US);
    assert_eq!(gone[0].tenant, a);
    assert_eq!(gone.len(), 3, "12 and 16 us of b");
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (any::<bool>(), 1_u32..=256).prop_map(|(is_write, kib)| {
        if is_write {
            write(kib * KIB)
        } else {
            read(kib * KIB)
        }
    });
    prop::collection::vec(request, 1..20)
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn dispatch_is_fair_in_tag_order_within_depth_and_throttle(
        flows in prop::collection::vec((1_u32..5, requests()), 2..5),
        depth in 1_u32..40,
        throttle_us in 0_u32..5_000,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 300),
    ) {
        let parameters: Parameters =
            serde_json::from_value(document(depth, throttle_us, 100)).unwrap();
        let mut flashfq = parameters.start();
        let mut ids = Vec::new();
        let mut sent = Vec::new();
        for (number, (weight, requests)) in flows.iter().enumerate() {
            let joins = tenant(json!({"name": format!("t{number}"), "weight": weight}));
            ids.push(flashfq.join(&joins, 0).unwrap());
            // All of them have requests queued to the end.
            for turn in 0..400 {
                arrive(&mut *flashfq, ids[number], requests[turn % requests.len()], 0);
            }
            sent.push(0.0);
        }
        let cost_us = |request: &Request| {
            let kib = f64::from(request.bytes / KIB);
            if request.operation == schedulers::Operation::Write { 4.0 * kib } else { kib }
        };
        let dearest = |number: usize| {
            let (weight, requests) = &flows[number];
            requests.iter().map(cost_us).fold(0.0, f64::max) / f64::from(*weight)
        };
        let mut at_drive = Vec::new();
        let mut last_ns = 0;
        for (now_ns, pick) in picks.iter().enumerate() {
            let now_ns = now_ns as u64 * 10 * US;
            while let Decision::Dispatch(dispatch) = flashfq.next(now_ns) {
                let tag_ns = virtual_ns(&*flashfq);
                prop_assert!(tag_ns >= last_ns, "virtual time goes back");
                last_ns = tag_ns;
                for number in 0..flows.len() {
                    let (progress_ns, _) = tags_ns(&*flashfq, number);
                    prop_assert!(tag_ns <= progress_ns + u64::from(throttle_us) * US);
                }
                let number = ids.iter().position(|id| *id == dispatch.tenant).unwrap();
                sent[number] += cost_us(&dispatch.request) / f64::from(flows[number].0);
                at_drive.push(dispatch.id);
                prop_assert!(at_drive.len() as u32 <= depth);
                for one in 0..flows.len() {
                    for other in 0..flows.len() {
                        let bound = dearest(one) + dearest(other) + 1e-3 * sent[one].max(1.0);
                        prop_assert!(sent[one] - sent[other] <= bound);
                    }
                }
            }
            prop_assert!(!at_drive.is_empty());
            let id = at_drive.swap_remove(pick.index(at_drive.len()));
            flashfq.complete(id, Outcome::Succeeded, now_ns).unwrap();
        }
    }
}
