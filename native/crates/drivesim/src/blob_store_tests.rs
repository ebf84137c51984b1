//! Blobstore experiments on small drives with known times.

use racksim::Request;
use serde_json::{json, Value};

use super::*;
use crate::testing::InOrder;

const BYTES: u64 = 64 << 20;

/// Drives that take as long as given for each request, one after the other.
fn drives(costs_us: &[u64]) -> Vec<Drive> {
    let drive = |&cost_us: &u64| {
        let cost_ns = move |_: &Request, _| cost_us * 1000;
        Drive::new(Box::new(InOrder::new(cost_ns)), BYTES)
    };
    costs_us.iter().map(drive).collect()
}

fn document(keys: Value) -> Value {
    let mut document = json!({
        "name": "x", "scheduler": {"kind": "gimbal"}, "seconds": 0.05, "warm_up_s": 0.02,
        "hardware": {
            "cores": {"count": 2, "submission_us": 0.5, "completion_us": 0.5}, "link": {"mb_s": 12500},
        },
        "layout": {"unit_bytes": 1 << 20, "blob_bytes": 128 << 10},
        "tree": {"memtable_bytes": 256 << 10, "table_bytes": 256 << 10, "level_base_bytes": 1 << 20, "cache_bytes": 0},
        "clients": [
            {"tenant": {"name": "a"}, "mix": {"read": 0.95, "update": 0.05, "distribution": "uniform"}, "records": 4000, "depth": 8},
            {"tenant": {"name": "b"}, "mix": {"read": 0.95, "update": 0.05, "distribution": "uniform"}, "records": 4000, "depth": 8},
        ],
    });
    let keys = keys.as_object().unwrap().clone();
    document.as_object_mut().unwrap().extend(keys);
    document
}

fn checked(keys: Value, drives: usize) -> Result<BlobStore, String> {
    let document = serde_json::from_value(document(keys));
    let experiment: BlobStore = document.map_err(|error| error.to_string())?;
    experiment.check(BYTES, 512, drives).map(|()| experiment)
}

fn run_on(costs_us: &[u64], keys: Value) -> Value {
    let mut drives = drives(costs_us);
    let experiment = checked(keys, drives.len()).unwrap();
    let result = run(&experiment, &mut drives, 7).unwrap();
    serde_json::to_value(result).unwrap()
}

fn sum(result: &Value, path: &str) -> f64 {
    let clients = result["clients"].as_array().unwrap();
    clients
        .iter()
        .map(|one| one.pointer(path).unwrap().as_f64().unwrap())
        .sum()
}

#[test]
fn two_clients_share_four_drives_alike_and_again_from_the_same_seed() {
    let result = run_on(&[20; 4], json!({"boxes": 2}));
    let rate = |number: usize| {
        result["clients"][number]["operations_per_s"]
            .as_f64()
            .unwrap()
    };
    assert!(
        (rate(0) / rate(1) - 1.0).abs() < 0.1,
        "{} {}",
        rate(0),
        rate(1)
    );
    let gets = result["clients"][0]["gets"]["count"].as_f64().unwrap();
    let share = gets / result["clients"][0]["operations"].as_f64().unwrap();
    assert!((share - 0.95).abs() < 0.02, "{share}");
    // A get reads one block, of each of the few tables above it a wrong one now and then.
    let amplification = result["clients"][0]["read_amplification"].as_f64().unwrap();
    assert!((0.8..1.2).contains(&amplification), "{amplification}");
    let p50 = result["clients"][0]["gets"]["latency_ns"]["p50"]
        .as_u64()
        .unwrap();
    assert!(p50 > 20_000, "the drive and the box: {p50}");
    assert_eq!(sum(&result, "/errors"), 0.0);
    assert_eq!(result["drives"].as_array().unwrap().len(), 4);
    assert_eq!(result, run_on(&[20; 4], json!({"boxes": 2})));
}

#[test]
fn reads_leave_a_slow_drive_where_credit_steers_them() {
    let share_of_slow = |steering: &str| {
        let keys = json!({"options": {"steering": steering}, "clients": [
            {"tenant": {"name": "a"}, "mix": {"read": 1, "distribution": "uniform"}, "records": 4000, "depth": 32},
        ]});
        let result = run_on(&[20, 20, 20, 400], keys);
        let reads = result["clients"][0]["reads_by_drive"].as_array().unwrap();
        let reads: Vec<f64> = reads.iter().map(|one| one.as_f64().unwrap()).collect();
        reads[3] / reads.iter().sum::<f64>()
    };
    let (steered, fixed) = (share_of_slow("credit"), share_of_slow("first"));
    assert!((fixed - 0.25).abs() < 0.05, "{fixed}");
    assert!(steered < fixed / 2.0, "{steered} of {fixed}");
}

#[test]
fn reads_use_every_drive_though_writes_left_its_credit_low() {
    let client = |number: usize| json!({"tenant": {"name": number.to_string()}, "mix": "c", "records": 1000, "depth": 8});
    let clients: Vec<Value> = (0..8).map(client).collect();
    let result = run_on(&[5; 4], json!({ "clients": clients }));
    for client in result["clients"].as_array().unwrap() {
        let reads = client["reads_by_drive"].as_array().unwrap();
        let reads: Vec<f64> = reads.iter().map(|one| one.as_f64().unwrap()).collect();
        let all: f64 = reads.iter().sum();
        assert!(reads.iter().all(|&one| one / all > 0.1), "{reads:?}");
    }
}

#[test]
fn puts_are_written_to_every_replica() {
    for replicas in [1, 2] {
        let keys = json!({
            "warm_up_s": 0,
            "layout": {"unit_bytes": 1 << 20, "blob_bytes": 128 << 10, "replicas": replicas},
            "clients": [{"tenant": {"name": "a"}, "mix": {"update": 1}, "records": 1000, "depth": 4}],
        });
        let result = run_on(&[20; 4], keys);
        let drives = result["drives"].as_array().unwrap();
        let written = |drive: &Value| {
            drive["snapshot"]["tenants"][0]["written_bytes"]
                .as_f64()
                .unwrap()
        };
        let written: f64 = drives.iter().map(written).sum();
        let counters = &result["clients"][0]["counters"];
        let counted = ["log_bytes", "flushed_bytes", "compaction_written_bytes"];
        let counted: f64 = counted
            .iter()
            .map(|key| counters[key].as_f64().unwrap())
            .sum();
        assert!(counters["compactions"].as_u64().unwrap() > 0, "{counters}");
        let ratio = written / (1000.0 * 1024.0 + counted);
        let expected = replicas as f64;
        assert!((ratio / expected - 1.0).abs() < 0.05, "{ratio}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (keys, part) in [
        (json!({"boxes": 3}), "boxes 3 do not share 4 drives"),
        (json!({"seconds": 0}), "seconds 0"),
        (json!({"clients": []}), "clients is empty"),
        (json!({"layout": {"replicas": 5}}), "layout: 5 replicas"),
        (
            json!({"tree": {"record_bytes": 1000}}),
            "tree: record_bytes is 1000",
        ),
        (json!({"tree": {"colour": 1}}), "colour"),
        (json!({"options": {"steering": "sideways"}}), "sideways"),
        (
            json!({"clients": [{"tenant": {"name": "a"}, "mix": "z", "records": 1, "depth": 1}]}),
            "mix: there is no YCSB workload \"z\"",
        ),
        (
            json!({"clients": [{"tenant": {"name": "a"}, "mix": {"read": 0.4}, "records": 1, "depth": 1}]}),
            "add up to 0.4",
        ),
        (
            json!({"clients": [{"tenant": {"name": "a"}, "mix": "a", "records": 0, "depth": 1}]}),
            "records 0",
        ),
        (
            json!({"clients": [{"tenant": {"name": "a"}, "mix": "a", "records": 1_000_000, "depth": 1}]}),
            "2048000000 bytes, and the drives have 268435456",
        ),
        (
            json!({"clients": [{"tenant": {"name": "a", "read_only": true}, "mix": "c", "records": 1, "depth": 1}]}),
            "its database is written first",
        ),
    ] {
        let said = checked(keys, 4).unwrap_err();
        assert!(said.contains(part), "{said}");
    }
}
