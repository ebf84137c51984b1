//! Parda: windows that follow latency.

use proptest::prelude::*;
use schedulers::{Decision, Outcome, Parameters, Scheduler, Tenant, TenantId, TenantState};
use serde_json::json;

use crate::bench::{arrive, cases, dispatched, read, start, tenant, Bench, KIB, MS, US};

fn window(scheduler: &dyn Scheduler, number: usize) -> f64 {
    match scheduler.snapshot().tenants[number].state {
        TenantState::Parda { window, .. } => window,
        _ => panic!("a window"),
    }
}

/// Let a request complete after a latency, at the end of a period.
fn complete_one(scheduler: &mut dyn Scheduler, id: TenantId, latency_ns: u64, end_ns: u64) {
    arrive(scheduler, id, read(4096), end_ns - latency_ns);
    let Decision::Dispatch(dispatch) = scheduler.next(end_ns - latency_ns) else {
        panic!("the window is open")
    };
    let done = scheduler
        .complete(dispatch.id, Outcome::Succeeded, end_ns)
        .unwrap();
    assert_eq!(done.credit, Some(window(scheduler, 0) as u32));
}

#[test]
fn a_window_follows_the_control_equation() {
    let mut parda = start(
        json!({"kind": "parda", "alpha": 0, "gamma": 0.5, "beta": 4, "window_max": 64,
                                 "latency_threshold_us": 500, "period_ms": 10}),
    );
    let id = parda.join(&Tenant::named("a"), 0).unwrap();
    complete_one(&mut *parda, id, 1000 * US, MS);
    assert_eq!(window(&*parda, 0), 64.0, "the first period is not over");
    complete_one(&mut *parda, id, 1000 * US, 11 * MS);
    // (1 - 0.5) 64 + 0.5 (500 / 1000 x 64 + 4)
    assert_eq!(window(&*parda, 0), 50.0);
    complete_one(&mut *parda, id, 2000 * US, 21 * MS);
    // 25 + 0.5 (500 / 2000 x 50 + 4)
    assert_eq!(window(&*parda, 0), 33.25);
}

#[test]
fn a_client_s_latency_has_the_wait_at_the_drive() {
    let mut parda = start(
        json!({"kind": "parda", "alpha": 0, "gamma": 0.5, "beta": 4, "window_max": 64,
                                 "latency_threshold_us": 500, "period_ms": 10}),
    );
    let id = parda.join(&Tenant::named("a"), 0).unwrap();
    for end_ns in [MS, 11 * MS] {
        arrive(&mut *parda, id, read(4096), end_ns - MS);
        let Decision::Dispatch(dispatch) = parda.next(end_ns - MS) else {
            panic!("the window is open")
        };
        // Nine tenths of it were spent before the drive took it.
        let done = parda.complete_measured(dispatch.id, Outcome::Succeeded, 100 * US, end_ns);
        assert_eq!(done.unwrap().latency_ns, 100 * US);
    }
    assert_eq!(window(&*parda, 0), 50.0, "as with 1000 us at the drive");
}

#[test]
fn it_settles_where_the_equation_does() {
    // w* = b / (1 - L* / L): at 625 us against 500 us that is 4 / (1 - 0.8) = 20.
    let mut parda = start(json!({"kind": "parda"}));
    let id = parda.join(&Tenant::named("a"), 0).unwrap();
    for period in 1..100 {
        complete_one(&mut *parda, id, 625 * US, period * 10 * MS);
    }
    assert!((window(&*parda, 0) - 20.0).abs() < 1e-3);
    // At the threshold and below it the window grows to its bound.
    for period in 100..200 {
        complete_one(&mut *parda, id, 500 * US, period * 10 * MS);
    }
    assert_eq!(window(&*parda, 0), 128.0);
}

#[test]
fn at_equal_latency_throughput_is_as_the_shares() {
    // One channel of 10 us a request; windows add up to the queue in front of it.
    let mut bench = Bench::new(json!({"kind": "parda", "beta": 2}), 1, |_| 10 * US);
    for (name, weight) in [("a", 1), ("b", 2), ("c", 4)] {
        bench.join(
            &tenant(json!({"name": name, "weight": weight})),
            256,
            &[read(4 * KIB)],
        );
    }
    bench.run_until(2_000 * MS);
    let before = [0, 1, 2].map(|at| bench.clients[at].completions.len());
    bench.run_until(4_000 * MS);
    let [a, b, c] = [0, 1, 2].map(|at| (bench.clients[at].completions.len() - before[at]) as f64);
    // Windows are whole requests, of some 13, 26 and 52.
    assert!((b / a - 2.0).abs() < 0.2, "{a} {b} {c}");
    assert!((c / b - 2.0).abs() < 0.2, "{a} {b} {c}");
}

#[test]
fn a_window_bounds_what_is_at_the_drive() {
    let mut parda = start(json!({"kind": "parda", "window_max": 3}));
    let [a, b] = ["a", "b"].map(|name| parda.join(&Tenant::named(name), 0).unwrap());
    for _ in 0..10 {
        arrive(&mut *parda, a, read(4096), 0);
        arrive(&mut *parda, b, read(4096), 0);
    }
    let gone = dispatched(&mut *parda, 0);
    let turns: Vec<TenantId> = gone.iter().map(|dispatch| dispatch.tenant).collect();
    assert_eq!(turns, [a, b, a, b, a, b]);
    parda.complete(gone[1].id, Outcome::Succeeded, 1).unwrap();
    let next = dispatched(&mut *parda, 1);
    assert_eq!(
        next.iter()
            .map(|dispatch| dispatch.tenant)
            .collect::<Vec<_>>(),
        [b]
    );
}

#[test]
fn a_window_that_shrinks_holds_for_requests_that_wait() {
    let mut parda =
        start(json!({"kind": "parda", "window_max": 8, "beta": 0.1, "period_ms": 0.001}));
    let id = parda.join(&Tenant::named("a"), 0).unwrap();
    for _ in 0..10 {
        arrive(&mut *parda, id, read(4096), 0);
    }
    let gone = [(); 3].map(|()| match parda.next(0) {
        Decision::Dispatch(dispatch) => dispatch.id,
        other => panic!("{other:?}"),
    });
    // The first begins the period, the second ends it.
    parda
        .complete(gone[0], Outcome::Succeeded, 50 * MS)
        .unwrap();
    parda
        .complete(gone[1], Outcome::Succeeded, 60 * MS)
        .unwrap();
    assert!(window(&*parda, 0) < 2.0);
    assert_eq!(parda.next(60 * MS), Decision::Idle);
    parda
        .complete(gone[2], Outcome::Succeeded, 70 * MS)
        .unwrap();
    assert_eq!(dispatched(&mut *parda, 70 * MS).len(), 1);
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn windows_stay_within_their_bounds_and_bound_the_drive(
        latencies_us in prop::collection::vec(1_u64..20_000, 1..100),
        gamma in 0.05_f64..1.0,
        alpha in 0.0_f64..0.95,
    ) {
        let document = json!({"kind": "parda", "gamma": gamma, "alpha": alpha, "period_ms": 1, "window_min": 2});
        let parameters: Parameters = serde_json::from_value(document).unwrap();
        let mut parda = parameters.start();
        let id = parda.join(&Tenant::named("a"), 0).unwrap();
        let mut now_ns = 0;
        for latency_us in latencies_us {
            let before = f64::from(parda.snapshot().at_drive);
            let room = window(&*parda, 0);
            for _ in 0..200 {
                arrive(&mut *parda, id, read(4096), now_ns);
            }
            let gone = dispatched(&mut *parda, now_ns);
            prop_assert_eq!(before + gone.len() as f64, room.floor().max(before));
            now_ns += latency_us * US;
            for dispatch in &gone {
                parda.complete(dispatch.id, Outcome::Succeeded, now_ns).unwrap();
            }
            prop_assert!((2.0..=128.0).contains(&window(&*parda, 0)));
        }
    }

    #[test]
    fn at_any_latency_above_the_threshold_it_converges(
        latency_us in 550_u64..5_000,
        weight in 0.5_f64..4.0,
    ) {
        let document = json!({"kind": "parda", "window_max": 4096, "window_min": 1});
        let parameters: Parameters = serde_json::from_value(document).unwrap();
        let mut parda = parameters.start();
        let id = parda.join(&tenant(json!({"name": "a", "weight": weight})), 0).unwrap();
        for period in 1..600 {
            complete_one(&mut *parda, id, latency_us * US, period * 10 * MS);
        }
        let settled = 4.0 * weight / (1.0 - 500.0 / latency_us as f64);
        let off = (window(&*parda, 0) / settled.max(1.0) - 1.0).abs();
        prop_assert!(off < 0.01, "{} of {}", window(&*parda, 0), settled);
    }
}
