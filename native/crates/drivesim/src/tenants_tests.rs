//! Tenants on drives with known times.

use racksim::{Kind, Request};
use serde_json::{json, Value};

use super::*;
use crate::document::Document;
use crate::experiment::Experiment;
use crate::testing::{Dead, InOrder, BAD};

const BYTES: u64 = 4 << 20;

fn document(keys: &Value) -> Result<Document, String> {
    let mut experiment =
        json!({"kind": "tenants", "name": "x", "scheduler": {"kind": "none"}, "seconds": 0.1});
    let keys = keys.as_object().unwrap().clone();
    experiment.as_object_mut().unwrap().extend(keys);
    let text = json!({"schema": 1, "timing": {"kind": "ideal"}, "bytes": BYTES, "sector_bytes": 512,
                      "experiments": [experiment]});
    Document::parse(&text.to_string()).map_err(|failure| failure.to_string())
}

fn run_on(drive: &mut Drive, keys: &Value) -> Result<Value, Failure> {
    let document = document(keys).map_err(Failure::BadInput)?;
    let [Experiment::Tenants(tenants)] = &document.experiments[..] else {
        panic!("tenants")
    };
    run(tenants, drive, 7).map(|result| serde_json::to_value(result).unwrap())
}

fn tenant(name: &str, keys: &Value) -> Value {
    let mut load = json!({"tenant": {"name": name}, "pattern": "random", "block_bytes": 4096,
                          "arrivals": {"depth": 8}, "region": {"offset": 0, "length": BAD}});
    let keys = keys.as_object().unwrap().clone();
    load.as_object_mut().unwrap().extend(keys);
    load
}

fn two(scheduler: &Value, a: &Value, b: &Value) -> Value {
    json!({"scheduler": scheduler, "tenants": [tenant("a", a), tenant("b", b)]})
}

/// A drive that takes 10 us for a read and 30 us for anything else, one after the other.
fn drive() -> Drive {
    let cost_ns = |request: &Request, _| match request.io.kind {
        Kind::Read => 10_000,
        _ => 30_000,
    };
    Drive::new(Box::new(InOrder::new(cost_ns)), BYTES)
}

fn iops(result: &Value, number: usize) -> f64 {
    result["tenants"][number]["total"]["iops"].as_f64().unwrap()
}

#[test]
fn one_tenant_without_a_scheduler_is_a_load() {
    let result = run_on(&mut drive(), &json!({"tenants": [tenant("a", &json!({}))]})).unwrap();
    let a = &result["tenants"][0];
    assert_eq!(
        (a["name"].as_str(), iops(&result, 0)),
        (Some("a"), 100_000.0)
    );
    // Eight wait for each other in the drive, and nothing in the scheduler.
    assert_eq!(a["total"]["latency_ns"], a["device_latency_ns"]);
    assert_eq!(a["device_latency_ns"]["p50"], 80_063, "to three digits");
    assert_eq!(result["snapshot"]["scheduler"], "none");
}

#[test]
fn the_scheduler_decides_on_the_shares() {
    let [shallow, deep] = [16, 96].map(|depth| json!({"arrivals": {"depth": depth}}));
    let none = run_on(
        &mut drive(),
        &two(&json!({"kind": "none"}), &shallow, &deep),
    )
    .unwrap();
    assert!((iops(&none, 1) / iops(&none, 0) - 6.0).abs() < 0.2);
    for (scheduler, within) in [
        (json!({"kind": "flashfq", "depth": 4}), 0.01),
        (
            json!({"kind": "gimbal", "slot_kib": 16, "quantum_kib": 4}),
            0.05,
        ),
    ] {
        let mut keys = two(&scheduler, &shallow, &deep);
        keys["warm_up_s"] = json!(0.5);
        let fair = run_on(&mut drive(), &keys).unwrap();
        let ratio = iops(&fair, 1) / iops(&fair, 0);
        assert!((ratio - 1.0).abs() < within, "{scheduler}: {ratio}");
        assert_eq!(fair["start_s"], 0.5);
    }
}

#[test]
fn an_open_loop_keeps_its_rate_beside_a_closed_one() {
    let open = json!({"arrivals": {"per_second": 20_000}, "read_percent": 50});
    let mut keys = two(&json!({"kind": "flashfq", "depth": 1}), &open, &json!({}));
    keys["seconds"] = json!(1);
    let result = run_on(&mut drive(), &keys).unwrap();
    let (rate, other) = (iops(&result, 0), iops(&result, 1));
    assert!((rate / 20_000.0 - 1.0).abs() < 0.05, "{rate}");
    // 20 us of each 50 us are left to the other.
    assert!((other / 60_000.0 - 1.0).abs() < 0.05, "{other}");
}

#[test]
fn bursts_have_their_time() {
    let bursts = json!({"bursts": {"on_s": 0.01, "off_s": 0.03}});
    let rate = json!({"bursts": {"on_s": 0.01, "off_s": 0.03}, "arrivals": {"per_second": 10_000}});
    let mut keys = two(&json!({"kind": "none"}), &bursts, &rate);
    keys["seconds"] = json!(0.4);
    keys["interval_s"] = json!(0.01);
    let result = run_on(&mut drive(), &keys).unwrap();
    for number in 0..2 {
        let intervals = result["tenants"][number]["intervals"].as_array().unwrap();
        let requests = |at: usize| intervals[at]["requests"].as_u64().unwrap();
        assert!(requests(0) > 50 && requests(4) > 50, "{intervals:?}");
        assert!(requests(2) == 0 && requests(3) == 0, "{intervals:?}");
    }
}

#[test]
fn the_schedulers_state_is_told_by_intervals() {
    let keys = json!({"scheduler": {"kind": "gimbal"}, "tenants": [tenant("a", &json!({}))], "seconds": 0.1,
                      "interval_s": 0.03});
    let result = run_on(&mut drive(), &keys).unwrap();
    let states = result["states"].as_array().unwrap();
    let times: Vec<_> = states.iter().map(|one| one["at_s"].as_f64()).collect();
    assert_eq!(times, [0.03, 0.06, 0.09, 0.1].map(Some));
    // The average of eight in a row of 10 us each.
    let latency_ns = states[0]["state"]["read_latency_ns"].as_f64().unwrap();
    assert!((79_000.0..81_000.0).contains(&latency_ns), "{latency_ns}");
    assert_eq!(states[3]["state"], result["snapshot"]["state"]);
    let mut without = keys;
    without.as_object_mut().unwrap().remove("interval_s");
    assert!(run_on(&mut drive(), &without).unwrap()["states"].is_null());
}

#[test]
fn a_tenant_that_disconnects_leaves_its_share_to_the_others() {
    for kind in schedulers::Parameters::KINDS {
        let leaves = json!({"disconnects_s": 0.2, "arrivals": {"depth": 64}, "joins_s": 0.1});
        let scheduler = match kind {
            "parda" => json!({"kind": kind, "window_max": 16}),
            "flashfq" => json!({"kind": kind, "depth": 8}),
            _ => json!({"kind": kind}),
        };
        let mut keys = two(&scheduler, &leaves, &json!({}));
        keys["seconds"] = json!(0.4);
        keys["interval_s"] = json!(0.05);
        let result = run_on(&mut drive(), &keys).unwrap();
        let [a, b] = [0, 1].map(|number| {
            let intervals = result["tenants"][number]["intervals"].as_array().unwrap();
            let requests = intervals
                .iter()
                .map(|one| one["requests"].as_u64().unwrap());
            requests.collect::<Vec<_>>()
        });
        assert!(a[1] == 0 && a[2] > 0 && a[3] > 0, "{kind}: {a:?}");
        assert!(
            a.iter().skip(5).all(|&requests| requests == 0),
            "{kind}: {a:?}"
        );
        assert!(b[3] < b[6], "{kind}: {b:?}");
        let dropped = result["tenants"][0]["dropped"].as_u64().unwrap();
        match kind {
            // At most the one that has just arrived.
            "none" => assert!(dropped <= 1, "{dropped}"),
            "parda" | "flashfq" => assert!(dropped >= 48, "{kind}: {dropped}"),
            _ => {}
        }
        assert_eq!(result["snapshot"]["tenants"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn at_one_instant_who_leaves_makes_room_for_who_joins() {
    // The curve has 850,000 tokens a second for readers: there is room for one of them.
    let reserves = |name: &str| {
        json!({"name": name, "read_only": true,
                                       "slo": {"iops": 500_000, "read_percent": 100, "p95_us": 500}})
    };
    let joins = json!({"tenant": reserves("new"), "joins_s": 0.05});
    let leaves = json!({"tenant": reserves("old"), "disconnects_s": 0.05});
    let reflex = json!({"kind": "reflex"});
    let result = run_on(&mut drive(), &two(&reflex, &joins, &leaves)).unwrap();
    assert!(iops(&result, 0) > 0.0 && iops(&result, 1) > 0.0, "{result}");
    let later = json!({"tenant": reserves("old"), "disconnects_s": 0.06});
    let refused = document(&two(&reflex, &joins, &later)).unwrap_err();
    assert!(refused.contains("CANTMEETSLO: tenant \"new\""), "{refused}");
}

#[test]
fn a_seed_gives_a_run_and_leaves_nothing_in_flight() {
    for kind in schedulers::Parameters::KINDS {
        let a = json!({"read_percent": 50, "arrivals": {"per_second": 30_000}});
        let keys = two(
            &json!({"kind": kind}),
            &a,
            &json!({"bursts": {"on_s": 0.01, "off_s": 0.01}}),
        );
        let mut once = drive();
        let mut first = run_on(&mut once, &keys).unwrap();
        assert_eq!(first, run_on(&mut drive(), &keys).unwrap(), "{kind}");
        once.rest_until(10_000_000_000).unwrap();
        let mut again = run_on(&mut once, &keys).unwrap();
        // Times of virtual clocks differ; what was counted does not.
        for result in [&mut first, &mut again] {
            result["start_s"] = json!(null);
            result["snapshot"] = json!(null);
        }
        if matches!(kind, "none" | "parda" | "flashfq") {
            assert_eq!(first, again, "{kind}");
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let slo = |iops: u32| json!({"tenant": {"name": "c", "slo": {"iops": iops, "read_percent": 100, "p95_us": 500}}});
    for (keys, part) in [
        (json!({"tenants": []}), "tenants is empty; give at least one"),
        (
            json!({"scheduler": {"kind": "gimball"}, "tenants": []}),
            "did you mean \"gimbal\"?",
        ),
        (
            json!({"scheduler": {"kind": "gimbal", "slots": 4}, "tenants": []}),
            "unknown parameter \"slots\" of scheduler gimbal",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"tenant": {"name": "a", "weight": 0}}))]}),
            "tenant \"a\": weight is 0; give 0.000001 to 1000000",
        ),
        (
            json!({"tenants": [tenant("a", &json!({})), tenant("a", &json!({}))]}),
            "tenant \"a\" has joined already",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"region": {"offset": 0, "length": (1 << 20) + 1}}))]}),
            "tenant \"a\": region.length 1048577 is not a number of sectors of 512 bytes",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"region": {"offset": 0, "length": 8 << 20}}))]}),
            "tenant \"a\": region.offset 0 and region.length 8388608 go beyond the drive's 4194304",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"arrivals": {"per_second": 0}}))]}),
            "tenant \"a\": arrivals.per_second 0",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"disconnects_s": 0.2}))]}),
            "disconnects_s 0.2 is beyond the experiment's 0.1",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"joins_s": 0.1}))]}),
            "joins_s 0.1 is not from 0 to before its end at 0.1",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"bursts": {"on_s": 0, "off_s": 1}}))]}),
            "bursts.on_s 0",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"read_percent": 99, "tenant": {"name": "a", "read_only": true}}))]}),
            "read_percent 99 has writes",
        ),
        (
            json!({"scheduler": {"kind": "reflex"}, "tenants": [tenant("c", &slo(900_000))]}),
            "CANTMEETSLO: tenant \"c\" asks for 900000 IOPS x (1 x 1 + 0 x 10) = 900000 tokens/s; with 0 reserved",
        ),
    ] {
        let message = document(&keys).unwrap_err();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_drive_that_takes_no_time_or_does_not_serve_is_told() {
    let keys = json!({"tenants": [tenant("a", &json!({}))]});
    let mut timeless = Drive::new(Box::new(InOrder::new(|_: &Request, _| 0)), BYTES);
    let endless = run_on(&mut timeless, &keys).unwrap_err();
    assert!(endless.to_string().contains("takes no time"), "{endless}");
    assert_eq!(endless.exit_status(), 2);
    let dead = run_on(&mut Drive::new(Box::new(Dead), BYTES), &keys).unwrap_err();
    assert_eq!(dead.exit_status(), 3);
}
