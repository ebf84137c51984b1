//! Tenants that join, leave and disconnect.

use schedulers::{Decision, Outcome, Parameters, Priority, Refusal, Tenant};

use crate::bench::{arrive, dispatched, read};

#[test]
fn a_tenant_that_leaves_is_served_to_its_end() {
    for kind in Parameters::KINDS {
        let mut scheduler = Parameters::of(kind).unwrap().start();
        let tenant = scheduler.join(&Tenant::named("a"), 0).unwrap();
        arrive(&mut *scheduler, tenant, read(4096), 0);
        scheduler.leave(tenant, 0).unwrap();
        let refused = scheduler.arrive(tenant, Priority::default(), read(4096), 0);
        assert_eq!(refused, Err(Refusal::NoSuchTenant), "{kind}");
        let mut now_ns = 0;
        let dispatch = loop {
            match scheduler.next(now_ns) {
                Decision::Dispatch(dispatch) => break dispatch,
                Decision::WaitUntil(at_ns) => now_ns = at_ns,
                Decision::Idle => panic!("{kind}: its request is left"),
            }
        };
        assert!(scheduler.snapshot().tenants[0].is_leaving);
        scheduler
            .complete(dispatch.id, Outcome::Succeeded, now_ns)
            .unwrap();
        assert!(scheduler.snapshot().tenants.is_empty(), "{kind}");
    }
}

#[test]
fn a_tenant_that_disconnects_takes_its_queue_along_and_may_come_back() {
    for kind in Parameters::KINDS {
        let mut scheduler = Parameters::of(kind).unwrap().start();
        let [a, b] = ["a", "b"].map(|name| scheduler.join(&Tenant::named(name), 0).unwrap());
        let mut now_ns = 0;
        for ticket in 0..10 {
            let request = schedulers::Request {
                ticket,
                ..read(4096)
            };
            arrive(&mut *scheduler, a, request, now_ns);
        }
        let mut taken = Vec::new();
        while taken.is_empty() {
            match scheduler.next(now_ns) {
                Decision::Dispatch(dispatch) => taken.push(dispatch),
                Decision::WaitUntil(at_ns) => now_ns = at_ns,
                Decision::Idle => panic!("{kind}: nothing goes"),
            }
        }
        arrive(&mut *scheduler, b, read(4096), now_ns);
        let dropped = scheduler.disconnect(a, now_ns).unwrap();
        assert_eq!(dropped, Vec::from_iter(1..10), "{kind}");
        // The name is free at once, though a request of the one before is at the drive.
        let back = scheduler.join(&Tenant::named("a"), now_ns).unwrap();
        assert_ne!(back, a);
        let done = scheduler
            .complete(taken[0].id, Outcome::Succeeded, now_ns)
            .unwrap();
        assert_eq!(done.tenant, a, "{kind}");
        arrive(&mut *scheduler, back, read(4096), now_ns);
        let mut left = 2;
        while left > 0 {
            match scheduler.next(now_ns) {
                Decision::Dispatch(_) => left -= 1,
                Decision::WaitUntil(at_ns) => now_ns = at_ns,
                Decision::Idle => panic!("{kind}: {left} are left"),
            }
        }
        assert_eq!(scheduler.snapshot().tenants.len(), 2, "{kind}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for kind in Parameters::KINDS {
        let mut scheduler = Parameters::of(kind).unwrap().start();
        let id = scheduler.join(&Tenant::named("a"), 0).unwrap();
        let taken = scheduler.join(&Tenant::named("a"), 0).unwrap_err();
        assert!(
            taken.to_string().contains("\"a\" has joined already"),
            "{taken}"
        );
        for weight in [0.0, 0.000_000_9] {
            let weightless = Tenant {
                weight,
                ..Tenant::named("b")
            };
            let refused = scheduler.join(&weightless, 0).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("tenant \"b\": weight is {weight}; give 0.000001 to 1000000")
            );
        }
        let empty = scheduler
            .arrive(id, Priority::default(), read(0), 0)
            .unwrap_err();
        assert_eq!(
            empty.to_string(),
            "a request of 0 bytes; give 1 to 67108864"
        );
        assert_eq!(dispatched(&mut *scheduler, 0), []);
    }
}

#[test]
fn a_time_in_the_past_counts_as_the_last_one() {
    for kind in Parameters::KINDS {
        let mut scheduler = Parameters::of(kind).unwrap().start();
        let tenant = scheduler.join(&Tenant::named("a"), 1_000_000).unwrap();
        arrive(&mut *scheduler, tenant, read(4096), 5);
        scheduler.next(900_000);
        assert_eq!(scheduler.snapshot().at_ns, 1_000_000, "{kind}");
    }
}
