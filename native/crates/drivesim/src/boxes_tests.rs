//! Boxes of drives with known times.

use racksim::{Kind, Request};
use serde_json::{json, Value};

use super::*;
use crate::document::Document;
use crate::experiment::Experiment;
use crate::testing::InOrder;

const BYTES: u64 = 4 << 20;

fn document(keys: &Value) -> Result<Document, String> {
    let mut experiment = json!({"kind": "box", "name": "x", "scheduler": {"kind": "none"}, "seconds": 0.1,
                                "hardware": hardware(&json!({}), &json!({}))});
    let keys = keys.as_object().unwrap().clone();
    experiment.as_object_mut().unwrap().extend(keys);
    let text = json!({"schema": 1, "timing": {"kind": "ideal"}, "bytes": BYTES, "sector_bytes": 512, "drives": 4,
                      "experiments": [experiment]});
    Document::parse(&text.to_string()).map_err(|failure| failure.to_string())
}

/// Cores and a link that take nothing, but for the given keys.
fn hardware(cores: &Value, link: &Value) -> Value {
    let mut of_cores = json!({"count": 1, "submission_us": 0, "completion_us": 0});
    let mut of_link = json!({"mb_s": 1_000_000, "command_bytes": 0, "completion_bytes": 0});
    of_cores
        .as_object_mut()
        .unwrap()
        .extend(cores.as_object().unwrap().clone());
    of_link
        .as_object_mut()
        .unwrap()
        .extend(link.as_object().unwrap().clone());
    json!({"cores": of_cores, "link": of_link})
}

fn tenant(name: &str, keys: &Value) -> Value {
    let mut load = json!({"tenant": {"name": name}, "pattern": "random", "block_bytes": 4096,
                          "arrivals": {"depth": 32}});
    let keys = keys.as_object().unwrap().clone();
    load.as_object_mut().unwrap().extend(keys);
    load
}

/// Drives that take 10 us for a read and 30 us for anything else, one after the other.
fn drives(count: usize) -> Vec<Drive> {
    let cost_ns = |request: &Request, _| match request.io.kind {
        Kind::Read => 10_000,
        _ => 30_000,
    };
    let drives = (0..count).map(|_| Drive::new(Box::new(InOrder::new(cost_ns)), BYTES));
    drives.collect()
}

fn run_on(drives: &mut [Drive], keys: &Value) -> Result<Value, Failure> {
    let document = document(keys).map_err(Failure::BadInput)?;
    let [Experiment::Box(experiment)] = &document.experiments[..] else {
        panic!("a box")
    };
    run(experiment, drives, 7).map(|result| serde_json::to_value(result).unwrap())
}

/// Many tenants on four drives that take no time.
fn many_on_ideal(hardware: &Value, keys: &Value) -> Value {
    let tenants: Vec<_> = (0..8)
        .map(|number| tenant(&format!("t{number}"), keys))
        .collect();
    let keys =
        json!({"hardware": hardware, "tenants": tenants, "warm_up_s": 0.01, "seconds": 0.05});
    let document = document(&keys).unwrap();
    let [Experiment::Box(experiment)] = &document.experiments[..] else {
        panic!("a box")
    };
    let result = run(experiment, &mut document.start(), 7).unwrap();
    serde_json::to_value(result).unwrap()
}

#[test]
fn the_phases_of_an_unloaded_request_are_those_of_its_parts() {
    let parts = hardware(
        &json!({"submission_us": 2, "submission_us_per_kib": 0.25, "completion_us": 3, "completion_us_per_kib": 0.5,
                "notice_us": 1}),
        // 4096 bytes take 4.096 us.
        &json!({"mb_s": 1000, "propagation_us": 5, "command_bytes": 1000, "completion_bytes": 500}),
    );
    let run = |read_percent: u32, more: &Value| {
        let load = json!({"arrivals": {"depth": 1}, "read_percent": read_percent});
        let mut parts = parts.clone();
        let more = more.as_object().unwrap().clone();
        parts["link"].as_object_mut().unwrap().extend(more);
        let mut whole = json!({"hardware": parts, "tenants": [tenant("a", &load)]});
        whole["hardware"]["memory_mb_s"] = json!(4096);
        let result = run_on(&mut drives(1), &whole).unwrap();
        result["tenants"][0].clone()
    };
    let reads = run(100, &json!({}));
    assert_eq!(
        reads["read_phases_ns"],
        json!({"command": 6000.0, "submission": 4000.0, "fetch": 0.0, "scheduler": 0.0, "drive": 11_000.0,
               "completion": 6000.0, "data_return": 9096.0, "response": 500.0})
    );
    assert_eq!(reads["total"]["latency_ns"]["mean"], 36_596.0);
    assert_eq!(reads["device_latency_ns"]["mean"], 11_000.0);
    assert_eq!(reads["write_phases_ns"], Value::Null);
    let writes = run(0, &json!({}));
    assert_eq!(
        writes["write_phases_ns"],
        json!({"command": 6000.0, "submission": 4000.0, "fetch": 14_096.0, "scheduler": 0.0, "drive": 31_000.0,
               "completion": 6000.0, "data_return": 0.0, "response": 5500.0})
    );
    assert_eq!(writes["total"]["latency_ns"]["mean"], 66_596.0);
    // In the capsule the data waits for no request of the box.
    let inline = run(0, &json!({"inline_kib": 4}));
    assert_eq!(inline["write_phases_ns"]["command"], 10_096.0);
    assert_eq!(inline["write_phases_ns"]["fetch"], 0.0);
    assert_eq!(inline["total"]["latency_ns"]["mean"], 56_596.0);
}

#[test]
fn cores_bound_the_requests_of_drives_that_take_no_time() {
    for (count, serve) in [(1, "drives"), (2, "drives"), (4, "connections")] {
        let cores =
            json!({"count": count, "serve": serve, "submission_us": 1.5, "completion_us": 0.5});
        let result = many_on_ideal(&hardware(&cores, &json!({})), &json!({}));
        let iops = result["total"]["iops"].as_f64().unwrap();
        let bound = f64::from(count) / 2e-6;
        assert!((iops / bound - 1.0).abs() < 0.01, "{count}: {iops}");
        for core in result["cores"].as_array().unwrap() {
            assert!(core["utilisation"].as_f64().unwrap() > 0.999, "{core}");
        }
        let [sum, mean] = ["read_phases_ns", "total"].map(|key| &result["tenants"][0][key]);
        let sum: f64 = sum
            .as_object()
            .unwrap()
            .values()
            .map(|one| one.as_f64().unwrap())
            .sum();
        let mean = mean["latency_ns"]["mean"].as_f64().unwrap();
        assert!((sum / mean - 1.0).abs() < 1e-9, "{sum} {mean}");
    }
}

#[test]
fn cores_by_drives_are_as_uneven_as_drives_are() {
    let cores = json!({"count": 3, "serve": "drives", "submission_us": 1, "completion_us": 1});
    let result = many_on_ideal(&hardware(&cores, &json!({})), &json!({}));
    let by_drive = |drive: u64| -> f64 {
        let tenants = result["tenants"].as_array().unwrap().iter();
        let on_it = tenants.filter(|one| one["drive"] == drive);
        on_it
            .map(|one| one["total"]["iops"].as_f64().unwrap())
            .sum()
    };
    // Drives 0 and 3 share a core.
    for (drive, iops) in [(0, 250e3), (1, 500e3), (2, 500e3), (3, 250e3)] {
        assert!(
            (by_drive(drive) / iops - 1.0).abs() < 0.02,
            "{drive}: {}",
            by_drive(drive)
        );
    }
}

#[test]
fn the_link_bounds_bytes_in_each_direction() {
    let link = json!({"mb_s": 1000, "completion_bytes": 4096, "command_bytes": 2048});
    for (read_percent, direction, bytes) in [(100, "from_box", 8192.0), (0, "to_box", 6144.0)] {
        let keys = json!({"read_percent": read_percent});
        let result = many_on_ideal(&hardware(&json!({}), &link), &keys);
        let iops = result["total"]["iops"].as_f64().unwrap();
        assert!((iops * bytes / 1e9 - 1.0).abs() < 0.01, "{iops}");
        let path = &result["link"][direction];
        assert!(path["utilisation"].as_f64().unwrap() > 0.999, "{path}");
        let carried = path["bytes_per_s"].as_f64().unwrap();
        assert!((carried / 1e9 - 1.0).abs() < 0.01, "{carried}");
    }
}

#[test]
fn drives_bound_what_cores_and_link_could_do() {
    let keys: Vec<_> = (0..8)
        .map(|number| tenant(&format!("t{number}"), &json!({})))
        .collect();
    let cores = json!({"count": 1, "submission_us": 0.5, "completion_us": 0.5});
    let keys =
        json!({"hardware": hardware(&cores, &json!({})), "tenants": keys, "warm_up_s": 0.01});
    let result = run_on(&mut drives(4), &keys).unwrap();
    let iops = result["total"]["iops"].as_f64().unwrap();
    assert!((iops / 400e3 - 1.0).abs() < 0.001, "{iops}");
    let utilisation = result["cores"][0]["utilisation"].as_f64().unwrap();
    assert!((utilisation - 0.4).abs() < 0.001, "{utilisation}");
    assert_eq!(result["drives"].as_array().unwrap().len(), 4);
}

#[test]
fn a_seed_gives_a_run_and_leaves_all_drives_at_one_time() {
    for kind in schedulers::Parameters::KINDS {
        let burst = json!({"bursts": {"on_s": 0.01, "off_s": 0.01}, "read_percent": 50, "disconnects_s": 0.08});
        let keys = json!({"scheduler": {"kind": kind}, "interval_s": 0.02,
                          "tenants": [tenant("a", &json!({"arrivals": {"per_second": 9000}})), tenant("b", &burst)]});
        let mut first = drives(2);
        let result = run_on(&mut first, &keys).unwrap();
        assert_eq!(result, run_on(&mut drives(2), &keys).unwrap(), "{kind}");
        assert_eq!(first[0].now_ns(), first[1].now_ns());
        assert_eq!(result["drives"][1]["states"].as_array().unwrap().len(), 5);
        assert!(result["tenants"][1]["total"]["requests"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_tenant_that_disconnects_loses_what_is_under_way_to_the_scheduler() {
    let slow = hardware(&json!({}), &json!({"propagation_us": 1000}));
    let leaves = tenant(
        "a",
        &json!({"disconnects_s": 0.0015, "arrivals": {"depth": 8}}),
    );
    let keys =
        json!({"hardware": slow, "seconds": 0.05, "tenants": [leaves, tenant("b", &json!({}))]});
    let result = run_on(&mut drives(1), &keys).unwrap();
    let a = &result["tenants"][0];
    // The first 8 have begun by then; the next ones come when it has gone, if it sent any.
    assert_eq!(a["total"]["requests"], 8);
    assert_eq!(a["dropped"], 0);
    let early = tenant(
        "a",
        &json!({"disconnects_s": 0.0005, "arrivals": {"depth": 8}}),
    );
    let keys =
        json!({"hardware": slow, "seconds": 0.05, "tenants": [early, tenant("b", &json!({}))]});
    let result = run_on(&mut drives(1), &keys).unwrap();
    assert_eq!(result["tenants"][0]["dropped"], 8);
    assert_eq!(result["tenants"][0]["total"]["requests"], 0);
}

#[test]
fn credit_bounds_the_outstanding_requests_of_those_who_follow_it() {
    let scheduler = json!({"kind": "gimbal"});
    let greedy = |follows: bool| {
        let keys =
            json!({"arrivals": {"depth": 4096}, "follows_credit": follows, "block_bytes": 131_072});
        let tenants = [
            tenant("a", &keys),
            tenant("b", &json!({"read_percent": 50})),
        ];
        let hardware = hardware(&json!({}), &json!({"propagation_us": 20}));
        let keys = json!({"scheduler": scheduler, "tenants": tenants, "warm_up_s": 0.1, "hardware": hardware});
        run_on(&mut drives(1), &keys).unwrap()
    };
    let (follows, does_not) = (greedy(true), greedy(false));
    let queued = |result: &Value| {
        result["drives"][0]["snapshot"]["tenants"][0]["queued"]
            .as_u64()
            .unwrap()
    };
    assert!(
        queued(&follows) < 8 && queued(&does_not) > 4000,
        "{} {}",
        queued(&follows),
        queued(&does_not)
    );
    let iops = |result: &Value| result["tenants"][0]["total"]["iops"].as_f64().unwrap();
    // It loses little of its share by that.
    assert!(
        iops(&follows) > 0.9 * iops(&does_not),
        "{} {}",
        iops(&follows),
        iops(&does_not)
    );
}

#[test]
fn what_is_wrong_is_named() {
    let one = json!([tenant("a", &json!({}))]);
    for (keys, part) in [
        (
            json!({"tenants": one, "hardware": null}),
            "a box needs its hardware: cores and link",
        ),
        (
            json!({"tenants": one, "hardware": hardware(&json!({"count": 0}), &json!({}))}),
            "experiment \"x\": hardware.cores.count 0 is not from 1",
        ),
        (
            json!({"tenants": one, "hardware": hardware(&json!({"serve": "drive"}), &json!({}))}),
            "expected `drives` or `connections`",
        ),
        (
            json!({"tenants": one, "hardware": hardware(&json!({"submision_us": 1}), &json!({}))}),
            "unknown field `submision_us`, expected one of",
        ),
        (
            json!({"tenants": one, "hardware": hardware(&json!({}), &json!({"mb_s": 0}))}),
            "hardware.link.mb_s 0 is not from 1",
        ),
        (
            json!({"tenants": [tenant("a", &json!({"drive": 4}))]}),
            "tenant \"a\": drive 4 is not one of the 4, from 0 on",
        ),
        (
            json!({"kind": "tenants", "tenants": one}),
            "hardware is of a box",
        ),
        (
            json!({"kind": "tenants", "tenants": [tenant("a", &json!({"drive": 0}))], "hardware": null}),
            "tenant \"a\": drive is of a box",
        ),
        (
            json!({"tenants": [tenant("a", &json!({})), tenant("a", &json!({"drive": 0}))]}),
            "tenant \"a\" has joined already",
        ),
    ] {
        let message = document(&keys).unwrap_err();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_document_has_a_drive_or_up_to_64() {
    for drives in [0, 65] {
        let text = format!(
            r#"{{"schema":1,"timing":{{"kind":"ideal"}},"bytes":4096,"sector_bytes":512,"drives":{drives},"experiments":[]}}"#
        );
        let message = Document::parse(&text).err().unwrap().to_string();
        assert!(
            message.contains(&format!("drives {drives} is not from 1 to 64")),
            "{message}"
        );
    }
}
