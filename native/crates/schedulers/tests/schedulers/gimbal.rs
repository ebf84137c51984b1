//! Gimbal: rounds, slots, credits, priorities, the target rate.

use proptest::prelude::*;
use schedulers::{
    Congestion, Decision, Outcome, Parameters, Priority, Request, Scheduler, SchedulerState,
    Tenant, TenantId, TenantState,
};
use serde_json::{json, Value};

use crate::bench::{arrive, cases, dispatched, read, start, write, Bench, KIB, MS, US};

/// Buckets so large that tokens are never missing.
fn without_rate() -> Value {
    json!({"kind": "gimbal", "bucket_kib": 1 << 20, "rate_mib_s": 1_000_000, "rate_min_mib_s": 1_000_000,
           "rate_max_mib_s": 1_000_000})
}

fn join(scheduler: &mut dyn Scheduler, count: usize) -> Vec<TenantId> {
    let name = |number: usize| Tenant::named(&format!("t{number}"));
    (0..count)
        .map(|number| scheduler.join(&name(number), 0).unwrap())
        .collect()
}

fn slots(scheduler: &dyn Scheduler, number: usize) -> (u32, u32) {
    match scheduler.snapshot().tenants[number].state {
        TenantState::Gimbal { slots, credit, .. } => (slots, credit),
        _ => panic!("slots"),
    }
}

#[test]
fn slots_are_divided_among_the_active_tenants() {
    // max(1, 8 / active), each of 128 KiB.
    for (active, each) in [(1, 8), (2, 4), (3, 2), (4, 2), (8, 1), (9, 1), (16, 1)] {
        let mut gimbal = start(without_rate());
        let ids = join(&mut *gimbal, 16);
        for &id in &ids[..active] {
            for _ in 0..10 {
                arrive(&mut *gimbal, id, read(128 * KIB), 0);
            }
        }
        let gone = dispatched(&mut *gimbal, 0);
        for (number, &id) in ids[..active].iter().enumerate() {
            let of_this = gone.iter().filter(|one| one.tenant == id).count();
            assert_eq!(
                (of_this, slots(&*gimbal, number).0),
                (each, each as u32),
                "{active}"
            );
        }
        assert_eq!(gimbal.next(0), Decision::Idle);
    }
}

#[test]
fn a_deferred_tenant_goes_on_when_a_slot_is_free_or_a_tenant_is_gone() {
    let mut gimbal = start(without_rate());
    let ids = join(&mut *gimbal, 2);
    for _ in 0..10 {
        arrive(&mut *gimbal, ids[0], read(128 * KIB), 0);
    }
    arrive(&mut *gimbal, ids[1], read(128 * KIB), 0);
    let gone = dispatched(&mut *gimbal, 0);
    assert_eq!(gone.len(), 5);
    let first = gone.iter().find(|one| one.tenant == ids[0]).unwrap();
    gimbal.complete(first.id, Outcome::Succeeded, MS).unwrap();
    assert_eq!(dispatched(&mut *gimbal, MS).len(), 1);
    // The other one is idle: all eight slots are for the first, of which four are in use.
    let other = gone.iter().find(|one| one.tenant == ids[1]).unwrap();
    gimbal.complete(other.id, Outcome::Succeeded, MS).unwrap();
    assert_eq!(dispatched(&mut *gimbal, MS).len(), 4);
}

#[test]
fn a_credit_is_the_slots_times_the_requests_of_the_last() {
    let mut gimbal = start(without_rate());
    let ids = join(&mut *gimbal, 2);
    for _ in 0..40 {
        arrive(&mut *gimbal, ids[0], read(4 * KIB), 0);
    }
    // A slot of 32 at first, of eight slots.
    assert_eq!(slots(&*gimbal, 0), (0, 8 * 32));
    arrive(&mut *gimbal, ids[1], read(64 * KIB), 0);
    assert_eq!(gimbal.view(ids[1]).unwrap().unwrap().credit, 4 * 32);
    arrive(&mut *gimbal, ids[1], read(64 * KIB), 0);
    let gone = dispatched(&mut *gimbal, 0);
    let mut credits = gone.iter().filter(|one| one.tenant == ids[1]).map(|one| {
        let done = gimbal.complete(one.id, Outcome::Succeeded, MS).unwrap();
        done.credit.unwrap()
    });
    // The slot of two requests completes with the second, after which the tenant is idle.
    assert_eq!(credits.next(), Some(4 * 32));
    assert_eq!(credits.next(), Some(8 * 2));
}

#[test]
fn a_written_byte_costs_nine_at_first() {
    let mut gimbal = start(without_rate());
    let ids = join(&mut *gimbal, 2);
    for _ in 0..64 {
        arrive(&mut *gimbal, ids[0], read(4 * KIB), 0);
        arrive(&mut *gimbal, ids[1], write(4 * KIB), 0);
    }
    // A slot holds 32 reads of 4 KiB, and four writes: 3 x 36 KiB, and the one that crosses 128 KiB.
    let gone = dispatched(&mut *gimbal, 0);
    let writes = gone.iter().filter(|one| one.tenant == ids[1]).count();
    assert_eq!((gone.len() - writes, writes), (64, 16));
}

#[test]
fn priorities_get_their_quotas_where_they_are_in_use() {
    let mut document = without_rate();
    document["virtual_slots"] = json!(1024);
    let order = |document: &Value| {
        let mut gimbal = start(document.clone());
        let id = join(&mut *gimbal, 1)[0];
        let classes = [
            Priority::Low,
            Priority::Medium,
            Priority::High,
            Priority::Urgent,
        ];
        for ticket in 0..400_u64 {
            let request = Request {
                ticket: ticket % 4,
                ..read(4 * KIB)
            };
            let class = classes[(ticket % 4) as usize];
            gimbal.arrive(id, class, request, 0).unwrap();
        }
        let gone = dispatched(&mut *gimbal, 0);
        gone.iter()
            .map(|one| one.request.ticket)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(&document)[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
    document["priority_quotas"] = json!([16, 4, 2, 1]);
    let cycle = [vec![3; 16], vec![2; 4], vec![1; 2], vec![0; 1]].concat();
    let tagged = order(&document);
    assert_eq!(tagged[..46], [cycle.clone(), cycle].concat());
    assert_eq!(tagged.len(), 400, "none starves");
}

#[test]
fn no_priority_starves_where_an_epoch_is_shorter_than_a_cycle() {
    let mut document = without_rate();
    document["virtual_slots"] = json!(1024);
    document["priority_quotas"] = json!([16, 4, 2, 1]);
    document["priority_epoch_ms"] = json!(0.001);
    let mut gimbal = start(document);
    let id = join(&mut *gimbal, 1)[0];
    for (ticket, class) in (0..).zip([
        Priority::Urgent,
        Priority::High,
        Priority::Medium,
        Priority::Low,
    ]) {
        for _ in 0..40 {
            let request = Request {
                ticket,
                ..read(4 * KIB)
            };
            gimbal.arrive(id, class, request, 0).unwrap();
        }
    }
    let next = |step: u64| match gimbal.next(step * MS) {
        Decision::Dispatch(dispatch) => dispatch.request.ticket,
        other => panic!("{other:?}"),
    };
    let gone: Vec<u64> = (1..47).map(next).collect();
    let cycle = [vec![0; 16], vec![1; 4], vec![2; 2], vec![3; 1]].concat();
    assert_eq!(gone, [cycle.clone(), cycle].concat());
}

#[test]
fn a_request_waits_for_its_tokens_at_the_target_rate() {
    let mut gimbal = start(json!({"kind": "gimbal", "rate_mib_s": 100, "write_cost_worst": 1}));
    let id = join(&mut *gimbal, 1)[0];
    for _ in 0..8 {
        arrive(&mut *gimbal, id, read(128 * KIB), 0);
    }
    // A full bucket of 256 KiB; half of the rate then, until the writes' bucket, which is full, spills the other half.
    assert_eq!(dispatched(&mut *gimbal, 0).len(), 2);
    let wait_ns = 128 * 1_000_000_000 / (100 * 1024);
    assert_eq!(gimbal.next(0), Decision::WaitUntil(wait_ns));
    assert_eq!(gimbal.next(wait_ns - 1), Decision::WaitUntil(wait_ns));
    assert_eq!(dispatched(&mut *gimbal, wait_ns).len(), 1);
}

#[test]
fn the_rate_finds_what_the_drive_can_do() {
    // 4 channels of 40 us for 4 KiB: 100,000 requests a second, 390.6 MiB/s.
    let mut bench = Bench::new(json!({"kind": "gimbal"}), 4, |_| 40 * US);
    for name in ["a", "b", "c", "d"] {
        bench.join(&Tenant::named(name), 64, &[read(4 * KIB)]);
    }
    bench.run_until(300 * MS);
    let before: Vec<usize> = bench
        .clients
        .iter()
        .map(|one| one.completions.len())
        .collect();
    bench.run_until(600 * MS);
    for (client, before) in bench.clients.iter().zip(before) {
        let each = client.completions.len() - before;
        assert!((7400..=7600).contains(&each), "{each} of 7,500");
    }
    let SchedulerState::Gimbal {
        read,
        completion_rate,
        ..
    } = bench.scheduler.snapshot().state
    else {
        panic!("gimbal")
    };
    assert_ne!(read, Congestion::Overloaded);
    let share = completion_rate.unwrap() / (100_000.0 * 4096.0);
    assert!((0.98..1.02).contains(&share), "{share}");
}

#[test]
fn bursts_do_not_make_a_drive_slower_than_it_is() {
    let mut gimbal = start(json!({"kind": "gimbal", "rate_mib_s": 4096}));
    let id = join(&mut *gimbal, 1)[0];
    // 128 KiB in 0.8 ms, one after the other, and nothing for half a second after the hundredth, which fails.
    for request in 0..129_u64 {
        let begin_ns = request * 800 * US + request / 100 * 500 * MS;
        arrive(&mut *gimbal, id, read(128 * KIB), begin_ns);
        let gone = dispatched(&mut *gimbal, begin_ns);
        let outcome = match request {
            99 => Outcome::Failed,
            _ => Outcome::Succeeded,
        };
        let end_ns = begin_ns + 800 * US;
        gimbal.complete(gone[0].id, outcome, end_ns).unwrap();
    }
    let SchedulerState::Gimbal {
        completion_rate, ..
    } = gimbal.snapshot().state
    else {
        panic!("gimbal")
    };
    let expected = f64::from(128 * 128 * KIB) / (129.0 * 800e-6);
    assert!((completion_rate.unwrap() / expected - 1.0).abs() < 1e-9);
}

#[test]
fn an_overloaded_drive_empties_the_buckets() {
    let mut gimbal = start(json!({"kind": "gimbal"}));
    let id = join(&mut *gimbal, 1)[0];
    arrive(&mut *gimbal, id, read(4 * KIB), 0);
    let gone = dispatched(&mut *gimbal, 0);
    // Ten milliseconds, five on average.
    gimbal
        .complete(gone[0].id, Outcome::Succeeded, 10 * MS)
        .unwrap();
    let SchedulerState::Gimbal {
        read_tokens,
        write_tokens,
        read: congestion,
        ..
    } = gimbal.snapshot().state
    else {
        panic!("gimbal")
    };
    assert_eq!((read_tokens, write_tokens), (0.0, 0.0));
    assert_eq!(congestion, Congestion::Overloaded);
}

#[test]
fn the_write_cost_follows_the_latency_of_writes() {
    let cost = |service_us: u64| {
        let mut bench = Bench::new(json!({"kind": "gimbal"}), 4, move |_| service_us * US);
        bench.join(&Tenant::named("a"), 4, &[write(4 * KIB)]);
        bench.run_until(1_050 * MS);
        bench
            .scheduler
            .view(bench.clients[0].id)
            .unwrap()
            .unwrap()
            .write_cost
    };
    // Ten periods: down by 0.5 each, or at the worst case all along.
    assert_eq!((cost(40), cost(400)), (4.0, 9.0));
}

#[test]
fn failed_requests_say_nothing_of_congestion() {
    let mut gimbal = start(json!({"kind": "gimbal"}));
    let id = join(&mut *gimbal, 1)[0];
    arrive(&mut *gimbal, id, read(4 * KIB), 0);
    let gone = dispatched(&mut *gimbal, 0);
    gimbal
        .complete(gone[0].id, Outcome::Failed, 10_000 * MS)
        .unwrap();
    let view = gimbal.view(id).unwrap().unwrap();
    assert_eq!(
        (view.read, view.target_rate),
        (Congestion::UnderUtilised, 1000.0 * 1_048_576.0)
    );
    assert_eq!(gimbal.snapshot().tenants[0].failed, 1);
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn rounds_are_fair_within_the_bound_of_deficit_round_robin(
        patterns in prop::collection::vec(
            prop::collection::vec((any::<bool>(), 1_u32..=64), 1..10),
            2..6,
        ),
    ) {
        let mut document = without_rate();
        // With few slots a tenant often loses its deficit.
        document["virtual_slots"] = json!(1024);
        let parameters: Parameters = serde_json::from_value(document).unwrap();
        let mut gimbal = parameters.start();
        let ids = join(&mut *gimbal, patterns.len());
        for (id, pattern) in ids.iter().zip(&patterns) {
            for &(is_write, units) in pattern.iter().cycle().take(300) {
                let bytes = units * 4 * KIB;
                arrive(&mut *gimbal, *id, if is_write { write(bytes) } else { read(bytes) }, 0);
            }
        }
        let weighted = |request: &Request| match request.operation {
            schedulers::Operation::Read => u64::from(request.bytes),
            schedulers::Operation::Write => 9 * u64::from(request.bytes),
        };
        let mut sent = vec![0_i64; ids.len()];
        let mut largest = 0;
        // Each completes at once, so that slots are free all along.
        for _ in 0..250 {
            let Decision::Dispatch(dispatch) = gimbal.next(0) else {
                return Err(TestCaseError::fail("slots are free"));
            };
            gimbal.complete(dispatch.id, Outcome::Failed, 0).unwrap();
            let number = ids.iter().position(|id| *id == dispatch.tenant).unwrap();
            sent[number] += weighted(&dispatch.request) as i64;
            largest = largest.max(weighted(&dispatch.request) as i64);
            let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
            // Those that have not been sent yet may be as large.
            let most = largest.max(64 * 4096 * 9);
            prop_assert!(spread <= 2 * most + 128 * 1024, "{:?}", sent);
        }
    }

    #[test]
    fn no_tenant_has_more_slots_than_it_may_use(
        depths in prop::collection::vec(1_u32..80, 1..12),
        units in 1_u32..40,
        service_us in 1_u64..2000,
    ) {
        let mut bench = Bench::new(json!({"kind": "gimbal"}), 8, move |_| service_us * US);
        for (number, depth) in depths.iter().enumerate() {
            let requests = if number % 3 == 0 { [write(units * 4096)] } else { [read(units * 4096)] };
            bench.join(&Tenant::named(&format!("t{number}")), *depth, &requests);
        }
        for step in 1..60 {
            bench.run_until(step * 300 * US);
            let snapshot = bench.scheduler.snapshot();
            let SchedulerState::Gimbal { slots_per_tenant, target_rate, .. } = snapshot.state else {
                return Err(TestCaseError::fail("gimbal"));
            };
            prop_assert_eq!(slots_per_tenant, (8 / snapshot.active.max(1)).max(1));
            prop_assert!((50.0..=4096.0).contains(&(target_rate / 1_048_576.0)));
            for tenant in &snapshot.tenants {
                let TenantState::Gimbal { slots, is_deferred, deficit, credit, .. } = tenant.state else {
                    return Err(TestCaseError::fail("gimbal"));
                };
                // All were active from the beginning, so that none had more before.
                prop_assert!(slots <= slots_per_tenant);
                prop_assert!(!is_deferred || deficit == 0);
                prop_assert!(credit >= slots_per_tenant);
            }
        }
    }
}
