//! Loads of tenants of every kind.

use std::collections::BTreeMap;
use std::io::Write;

use racksim::Kind;
use schedulers::Priority;
use serde_json::{json, Value};

use super::*;
use crate::tenant_blocks::TenantBlocks;

const BYTES: u64 = 16 << 20;

fn load(keys: &Value) -> Result<TenantLoad, String> {
    let mut load = json!({"tenant": {"name": "a"}, "arrivals": {"depth": 1}});
    let keys = keys.as_object().unwrap().clone();
    load.as_object_mut().unwrap().extend(keys);
    let load: TenantLoad = serde_json::from_value(load).map_err(|error| error.to_string())?;
    load.check(BYTES, 512, 1.0).map(|()| load)
}

/// A trace in a file of its own, which is gone when it is dropped.
struct Written(std::path::PathBuf);

impl Written {
    fn new(name: &str, lines: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("{name}.{}.jsonl", std::process::id()));
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(lines.join("\n").as_bytes()).unwrap();
        Self(path)
    }

    fn keys(&self, more: &Value) -> Value {
        let mut trace = json!({"path": self.0});
        let more = more.as_object().unwrap().clone();
        trace.as_object_mut().unwrap().extend(more);
        json!({"trace": trace})
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn sizes_have_their_shares_and_stay_in_the_region() {
    let load = load(&json!({
        "sizes": [{"block_bytes": 4096, "weight": 3}, {"block_bytes": 131_072, "weight": 1}],
        "pattern": "random", "read_percent": 75, "region": {"offset": 4096, "length": 1 << 20},
    }))
    .unwrap();
    let mut blocks = TenantBlocks::new(&load, BYTES, 7);
    let mut counts: BTreeMap<(u64, bool), f64> = BTreeMap::new();
    for _ in 0..20_000 {
        let (io, priority) = blocks.next().unwrap();
        assert!(
            io.offset >= 4096 && io.offset + io.length <= 4096 + (1 << 20),
            "{io:?}"
        );
        assert_eq!(
            ((io.offset - 4096) % io.length, priority),
            (0, Priority::Medium)
        );
        *counts
            .entry((io.length, io.kind == Kind::Read))
            .or_default() += 1.0 / 20_000.0;
    }
    for (key, share) in [
        ((4096, true), 0.5625),
        ((4096, false), 0.1875),
        ((131_072, true), 0.1875),
        ((131_072, false), 0.0625),
    ] {
        assert!(
            (counts[&key] - share).abs() < 0.015,
            "{key:?}: {}",
            counts[&key]
        );
    }
}

#[test]
fn sequential_requests_of_a_stream_continue_one_another() {
    let load = load(&json!({
        "operations": [
            {"operation": "read", "block_bytes": 4096, "pattern": "random", "weight": 2, "priority": "urgent"},
            {"operation": "write", "block_bytes": 8192, "pattern": "sequential", "weight": 1},
            {"operation": "write", "block_bytes": 1 << 20, "pattern": "sequential", "weight": 1},
        ],
        "priority": "low",
    }))
    .unwrap();
    let mut blocks = TenantBlocks::new(&load, BYTES, 7);
    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
    for _ in 0..2000 {
        let (io, priority) = blocks.next().unwrap();
        if io.kind == Kind::Read {
            assert_eq!((io.length, priority), (4096, Priority::Urgent));
            continue;
        }
        assert_eq!(priority, Priority::Low);
        let expected = next.entry(io.length).or_insert(io.offset);
        let wrapped = if *expected + io.length > BYTES {
            0
        } else {
            *expected
        };
        assert_eq!(io.offset, wrapped, "{io:?}");
        *expected = io.offset + io.length;
    }
    assert_eq!(next.len(), 2);
}

#[test]
fn a_trace_is_replayed_in_its_region() {
    let trace = Written::new(
        "replayed",
        &[
            r#"{"t_ns":100,"op":0,"offset_bytes":0,"size_bytes":4096,"volume":"0","response_ns":null}"#,
            r#"{"t_ns":300,"op":1,"offset_bytes":4194304,"size_bytes":8192}"#,
            r#"{"t_ns":500,"op":0,"offset_bytes":1044480,"size_bytes":8192}"#,
        ],
    );
    let region = json!({"region": {"offset": 8192, "length": 1 << 20}, "arrivals": null});
    let mut keys = trace.keys(&json!({}));
    keys.as_object_mut()
        .unwrap()
        .extend(region.as_object().unwrap().clone());
    let once = load(&keys).unwrap();
    assert!(matches!(once.pace(), Pace::Recorded(speed) if speed == 1.0));
    let mut blocks = TenantBlocks::new(&once, BYTES, 7);
    let mut found = Vec::new();
    while let Some(at_ns) = blocks.next_at_ns() {
        let (io, _) = blocks.next().unwrap();
        found.push((at_ns, io.kind, io.offset - 8192, io.length));
    }
    assert_eq!(
        found,
        [
            (0.0, Kind::Read, 0, 4096),
            (200.0, Kind::Write, 0, 8192),
            // It would have gone beyond the end.
            (400.0, Kind::Read, (1 << 20) - 8192, 8192)
        ]
    );
    assert!(blocks.next().is_none());
    let again = load(&trace.keys(&json!({"repeat": true}))).unwrap();
    let mut blocks = TenantBlocks::new(&again, BYTES, 7);
    let times: Vec<_> = (0..4)
        .map(|_| (blocks.next_at_ns().unwrap(), blocks.next().unwrap().0.kind))
        .collect();
    // The mean gap goes before the repetition.
    assert_eq!(times[3], (600.0, Kind::Read));
}

#[test]
fn what_is_wrong_is_named() {
    let size = |weight: f64| json!([{"block_bytes": 4096, "weight": weight}]);
    let read_only = json!({"name": "a", "read_only": true});
    let writes =
        json!([{"operation": "write", "block_bytes": 4096, "pattern": "random", "weight": 1}]);
    for (keys, part) in [
        (
            json!({}),
            "it has no requests; give one of block_bytes, sizes, operations and trace",
        ),
        (
            json!({"block_bytes": 4096, "sizes": size(1.0), "pattern": "random"}),
            "it has block_bytes and sizes; give one of",
        ),
        (json!({"block_bytes": 4096}), "block_bytes needs a pattern"),
        (json!({"sizes": [], "pattern": "random"}), "sizes is empty"),
        (
            json!({"sizes": size(0.0), "pattern": "random"}),
            "weight 0 is not above 0",
        ),
        (
            json!({"operations": writes, "read_percent": 5}),
            "do not go with operations",
        ),
        (
            json!({"operations": writes, "tenant": read_only}),
            "its requests include writes, and the tenant declares that it only reads",
        ),
        (
            json!({"sizes": [{"block_bytes": 100, "weight": 1}], "pattern": "random"}),
            "block_bytes 100 is not a number of sectors",
        ),
        (
            json!({"block_bytes": 4096, "pattern": "random", "arrivals": null}),
            "it has no arrivals; give {\"depth\": N}",
        ),
        (
            json!({"block_bytes": 4096, "pattern": "random", "priority": "urgnt"}),
            "expected one of `urgent`, `high`, `medium`, `low`",
        ),
        (
            json!({"trace": {"path": "/nowhere/it.jsonl"}}),
            "trace /nowhere/it.jsonl: No such file",
        ),
    ] {
        let message = load(&keys).unwrap_err();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_trace_that_cannot_be_replayed_is_told_by_its_line() {
    let good = r#"{"t_ns":5,"op":0,"offset_bytes":0,"size_bytes":4096}"#;
    for (name, line, part) in [
        ("word", "hello", "line 2: expected value"),
        (
            "early",
            r#"{"t_ns":4,"op":0,"offset_bytes":0,"size_bytes":4096}"#,
            "line 2: t_ns 4 is before",
        ),
        (
            "trim",
            r#"{"t_ns":6,"op":2,"offset_bytes":0,"size_bytes":4096}"#,
            "line 2: op 2 is neither",
        ),
        (
            "empty",
            r#"{"t_ns":6,"op":1,"offset_bytes":0,"size_bytes":0}"#,
            "line 2: size_bytes 0",
        ),
        (
            "odd",
            r#"{"t_ns":6,"op":1,"offset_bytes":7,"size_bytes":4096}"#,
            "line 2: 4096 bytes at 7: it is not in whole",
        ),
        (
            "large",
            r#"{"t_ns":6,"op":1,"offset_bytes":0,"size_bytes":33554432}"#,
            "line 2: 33554432 bytes at 0: it does not fit",
        ),
    ] {
        let trace = Written::new(name, &[good, line]);
        let message = load(&trace.keys(&json!({}))).unwrap_err();
        assert!(message.contains(part), "{message}");
    }
    let trace = Written::new("nothing", &[]);
    assert!(load(&trace.keys(&json!({})))
        .unwrap_err()
        .contains("it has no requests"));
    let trace = Written::new("slow", &[good]);
    let message = load(&trace.keys(&json!({"speed": 0}))).unwrap_err();
    assert!(message.contains("trace.speed 0 is not from"), "{message}");
    let mut keys = trace.keys(&json!({}));
    keys["bursts"] = json!({"on_s": 1, "off_s": 1});
    keys["arrivals"] = Value::Null;
    assert!(load(&keys).unwrap_err().contains("bursts do not go with"));
}

#[test]
fn a_trace_without_time_is_not_repeated_at_its_own_pace() {
    let good = r#"{"t_ns": 5, "op": 0, "offset_bytes": 0, "size_bytes": 512}"#;
    let later = r#"{"t_ns": 7, "op": 0, "offset_bytes": 0, "size_bytes": 512}"#;
    for (name, lines, speed, lap) in [
        (
            "at-once",
            &[good, good, good][..],
            1.0,
            Some("3 requests take 0 ns"),
        ),
        ("one", &[good][..], 1.0, Some("1 requests take 0 ns")),
        (
            "fast",
            &[good, later][..],
            10.0,
            Some("2 requests take 0.4 ns"),
        ),
        ("in-time", &[good, later][..], 1.0, None),
    ] {
        let trace = Written::new(name, lines);
        let mut keys = trace.keys(&json!({"repeat": true, "speed": speed}));
        assert!(load(&keys).is_ok(), "{name}: a closed loop paces itself");
        keys["arrivals"] = Value::Null;
        let refused = load(&keys).err();
        assert_eq!(refused.is_some(), lap.is_some(), "{name}: {refused:?}");
        if let Some(lap) = lap {
            assert!(refused.unwrap().contains(lap), "{name}");
        }
    }
}
