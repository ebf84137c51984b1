//! ReFlex on several threads.

use proptest::prelude::*;
use schedulers::{Decision, Outcome, Scheduler, Tenant, TenantState};
use serde_json::{json, Value};

use crate::bench::{arrive, cases, dispatched, read, start, tenant, MS, US};

/// 100,000 tokens a second, in rounds of a millisecond.
fn on_threads(threads: u32) -> Value {
    json!({"kind": "reflex", "round_us": 1000, "threads": threads,
           "curve": [{"p95_us": 500, "tokens_per_s": 100_000, "read_only_tokens_per_s": 100_000}]})
}

fn critical(name: &str, iops: u32) -> Tenant {
    tenant(json!({"name": name, "slo": {"iops": iops, "read_percent": 100, "p95_us": 500}}))
}

/// The threads of all tenants.
fn threads(scheduler: &dyn Scheduler) -> Vec<u32> {
    let tenants = scheduler.snapshot().tenants;
    let states = tenants.into_iter().map(|tenant| tenant.state);
    states
        .map(|state| match state {
            TenantState::Reflex { thread, .. } => thread,
            _ => panic!("tokens"),
        })
        .collect()
}

#[test]
fn tenants_are_shared_out_to_the_threads() {
    let mut scheduler = start(on_threads(3));
    let ids: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|name| scheduler.join(&Tenant::named(name), 0).unwrap())
        .into();
    assert_eq!(threads(&*scheduler), [0, 1, 2, 0, 1]);
    scheduler.disconnect(ids[2], 0).unwrap();
    scheduler.join(&Tenant::named("f"), 0).unwrap();
    assert_eq!(threads(&*scheduler), [0, 1, 2, 0, 1]);
}

#[test]
fn a_thread_serves_its_own_tenants_in_its_own_round() {
    let mut scheduler = start(on_threads(2));
    let [a, b] = ["a", "b"].map(|name| scheduler.join(&Tenant::named(name), 0).unwrap());
    for _ in 0..1000 {
        arrive(&mut *scheduler, a, read(4096), 0);
        arrive(&mut *scheduler, b, read(4096), 0);
    }
    // 50 tokens each; the second thread runs half of a round later.
    let first = dispatched(&mut *scheduler, MS);
    assert_eq!(first.len(), 50);
    assert!(first.iter().all(|one| one.tenant == a));
    assert_eq!(
        scheduler.next(MS),
        Decision::WaitUntil(MS + MS / 2),
        "the other thread"
    );
    let second = dispatched(&mut *scheduler, MS + MS / 2);
    assert_eq!(second.len(), 50);
    assert!(second.iter().all(|one| one.tenant == b));
}

#[test]
fn donations_cross_threads_until_all_have_run() {
    let mut scheduler = start(on_threads(2));
    scheduler.join(&critical("idle", 80_000), 0).unwrap();
    let busy = scheduler.join(&Tenant::named("busy"), 0).unwrap();
    for _ in 0..10_000 {
        arrive(&mut *scheduler, busy, read(4096), 0);
    }
    let sent: Vec<usize> = (2..=100)
        .map(|half| dispatched(&mut *scheduler, half * MS / 2).len())
        .collect();
    // Its own 20 a round on the second thread; then 90 % of what the idle one on the first has above 240, as one thread
    // would give.
    let of_second = |round: usize| sent[2 * round + 1];
    assert_eq!([0, 1, 2].map(of_second), [20, 20, 20]);
    assert_eq!(of_second(3), 20 + 72);
    let late: usize = sent[40..].iter().sum();
    assert_eq!(late, 29 * 100);
    assert!(sent.iter().step_by(2).all(|&of_first| of_first == 0));
}

#[test]
fn what_came_too_late_for_every_thread_is_gone() {
    // The idle one is on the last thread to run: the others have run when it donates, and it empties the bucket itself.
    let mut scheduler = start(on_threads(2));
    let busy = scheduler.join(&Tenant::named("busy"), 0).unwrap();
    scheduler.join(&critical("idle", 80_000), 0).unwrap();
    for _ in 0..10_000 {
        arrive(&mut *scheduler, busy, read(4096), 0);
    }
    for half in 2..=40 {
        let gone = dispatched(&mut *scheduler, half * MS / 2).len();
        assert_eq!(gone, if half % 2 == 0 { 20 } else { 0 });
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn threads_together_spend_no_more_than_the_curve(
        count in 1_u32..9,
        critical_iops in prop::collection::vec(1000_u32..20_000, 1..4),
        steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 1_u32..40, 0_u64..3000), 1..300),
    ) {
        let mut scheduler = start(on_threads(count));
        let mut ids = Vec::new();
        for (iops, number) in critical_iops.iter().zip(0..) {
            ids.push(scheduler.join(&critical(&format!("c{number}"), *iops), 0).unwrap());
        }
        let critical = ids.len();
        for name in ["x", "y", "z"] {
            ids.push(scheduler.join(&tenant(json!({"name": name, "read_only": true})), 0).unwrap());
        }
        let mut now_ns = 0;
        let mut spent = 0.0;
        for (which, is_burst, units, passed_us) in steps {
            now_ns += passed_us * US;
            for _ in 0..if is_burst { 40 } else { 1 } {
                arrive(&mut *scheduler, ids[which.index(ids.len())], read(units * 4096), now_ns);
            }
            while let Decision::Dispatch(dispatch) = scheduler.next(now_ns) {
                spent += f64::from(dispatch.request.bytes / 4096);
                scheduler.complete(dispatch.id, Outcome::Succeeded, now_ns).unwrap();
            }
            for (tenant, number) in scheduler.snapshot().tenants.iter().zip(0..) {
                let TenantState::Reflex { tokens, .. } = tenant.state else { panic!("tokens") };
                // The deficit limit, and the request that crossed it; best effort is never in debt.
                let least = if number < critical { -50.0 - 40.0 } else { 0.0 };
                prop_assert!(tokens >= least);
            }
            let given = 100_000.0 * now_ns as f64 / 1e9;
            prop_assert!(spent <= given + 90.0 * critical as f64 + 1e-6);
        }
    }
}
