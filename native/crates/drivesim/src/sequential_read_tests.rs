use super::*;
use crate::testing::{InOrder, BAD};
use serde_json::{json, Value};
use std::sync::mpsc::{channel, Receiver};

const SECTOR_NS: u64 = 33_333;

fn read(keys: Value) -> SequentialRead {
    let mut document =
        json!({"name": "x", "sectors": 10, "trials": 1, "request_sectors": 4, "depth": 2});
    let keys = keys.as_object().unwrap().clone();
    document.as_object_mut().unwrap().extend(keys);
    serde_json::from_value(document).unwrap()
}

/// A drive that takes 33.333 us a sector, on which every request that begins at [`BAD`] fails, and its requests.
/// With `bytes` that leave the file one place only, the place is known.
fn drive(bytes: u64) -> (Drive, Receiver<Request>) {
    let (sender, receiver) = channel();
    let cost_ns = move |request: &Request, _| {
        sender.send(*request).unwrap();
        request.io.length / SECTOR_BYTES * SECTOR_NS
    };
    (Drive::new(Box::new(InOrder::new(cost_ns)), bytes), receiver)
}

fn run_on(bytes: u64, keys: Value) -> (Value, Vec<Request>) {
    let read = read(keys);
    read.check(bytes).unwrap();
    let (mut drive, asked) = drive(bytes);
    let result = serde_json::to_value(run(&read, &mut drive, 7).unwrap()).unwrap();
    drop(drive);
    (result, asked.iter().collect())
}

/// The smallest drive that a file of this many sectors fits on, which begins at its end.
fn just_room_for(sectors: u64) -> u64 {
    (sectors + LEAD_SECTORS) * SECTOR_BYTES
}

#[test]
fn without_a_code_the_drive_retries_and_the_clock_begins_at_the_first_sector() {
    let (result, asked) = run_on(1 << 24, json!({"trials": 3}));
    let latencies = result["latencies_ns"].as_array().unwrap();
    assert_eq!(latencies, &vec![json!(10 * SECTOR_NS); 3]);
    assert_eq!(asked.len(), 3 * 4, "a lead-in and three requests");
    for trial in asked.chunks(4) {
        assert_eq!(
            trial
                .iter()
                .map(|one| one.io.length / SECTOR_BYTES)
                .collect::<Vec<_>>(),
            [LEAD_SECTORS, 4, 4, 2]
        );
        for (before, after) in trial.iter().zip(&trial[1..]) {
            assert_eq!(before.io.offset + before.io.length, after.io.offset);
            assert_eq!(after.on_read_error, OnReadError::Retry);
        }
    }
    let (sought, asked) = run_on(1 << 24, json!({"seeks": true}));
    assert_eq!(sought["latencies_ns"], json!([10 * SECTOR_NS]));
    assert_eq!(asked.len(), 3);
}

#[test]
fn the_stream_takes_the_redundancy_of_every_group_but_the_last_with_it() {
    let code = json!({"k": 4, "m": 2, "decode_us": [10, 20]});
    let (result, asked) = run_on(1 << 24, json!({"code": code}));
    assert_eq!(result["latencies_ns"], json!([14 * SECTOR_NS]));
    assert_eq!(result["failed"], 0);
    assert_eq!(result["decoded"], 0);
    assert!(asked[1..]
        .iter()
        .all(|one| one.on_read_error == OnReadError::FailFast));
    assert_eq!(
        asked.iter().map(|one| one.io.length).sum::<u64>(),
        (LEAD_SECTORS + 14) * SECTOR_BYTES
    );
}

/// Groups of 4 + 2 on a drive with room for one file, in which sector 256 of the drive fails: number `bad` of the file.
fn around(bad: u64, keys: Value) -> (Value, Vec<Request>) {
    let bad_at = BAD / SECTOR_BYTES;
    // The file begins where its sector `bad` is at BAD; nothing before it is part of the experiment.
    let base = bad_at - bad;
    let read = read(keys);
    let layout = read.layout();
    let (mut drive, asked) = drive(just_room_for(layout.sectors()).max(BAD * 2));
    let mut counts = Counts::default();
    let mut trial = Trial::new(&read, &layout, &mut drive, base, &mut counts);
    let latency_ns = trial.read(0).unwrap();
    let mut result = serde_json::to_value(&counts).unwrap();
    result["latency_ns"] = json!(latency_ns);
    drop(drive);
    (result, asked.iter().collect())
}

#[test]
fn a_group_is_decoded_while_the_stream_goes_on() {
    let code = json!({"k": 4, "m": 2, "decode_us": [10, 20]});
    let (result, _) = around(2, json!({"code": code, "request_sectors": 1}));
    assert_eq!(result["failed"], 1);
    assert_eq!(result["decoded"], 1);
    assert_eq!(result["fetched"], 0);
    assert_eq!(
        result["latency_ns"],
        14 * SECTOR_NS,
        "decoding costs nothing"
    );
    let slow = json!({"k": 4, "m": 2, "decode_us": [10_000, 20_000]});
    let (result, _) = around(2, json!({"code": slow, "request_sectors": 1}));
    assert_eq!(
        result["latency_ns"],
        6 * SECTOR_NS + 10_000_000,
        "the decoder began when the group was there"
    );
}

#[test]
fn the_last_group_fetches_its_redundancy_to_decode() {
    let code = json!({"k": 4, "m": 2, "decode_us": [10, 20]});
    let (result, asked) = around(12, json!({"code": code, "request_sectors": 1}));
    assert_eq!(result["fetched"], 2);
    assert_eq!(result["decoded"], 1);
    assert_eq!(result["latency_ns"], 16 * SECTOR_NS + 10_000);
    assert_eq!(asked.last().unwrap().io.offset, BAD + 3 * SECTOR_BYTES);
}

#[test]
fn redundancy_that_fails_matters_to_nobody() {
    let code = json!({"k": 4, "m": 2, "decode_us": [10, 20]});
    let (result, _) = around(5, json!({"code": code, "request_sectors": 1}));
    assert_eq!(result["failed"], 1);
    assert_eq!(result["decoded"], 0);
    assert_eq!(result["latency_ns"], 14 * SECTOR_NS);
}

#[test]
fn what_lies_behind_a_failed_sector_in_its_request_is_missing_too() {
    let code = json!({"k": 4, "m": 3, "decode_us": [10, 20, 30]});
    let (result, _) = around(0, json!({"code": code, "request_sectors": 3}));
    assert_eq!(result["failed"], 1);
    assert_eq!(result["passed_over"], 2);
    assert_eq!(result["read_again"], 0, "three missing can be decoded");
    assert_eq!(result["decoded"], 1);
}

#[test]
fn what_a_group_lacks_beyond_its_redundancy_is_read_again_behind_the_stream() {
    let code = json!({"k": 4, "m": 1, "decode_us": [10]});
    let (result, asked) = around(0, json!({"code": code, "request_sectors": 4}));
    assert_eq!(result["passed_over"], 3);
    assert_eq!(result["read_again"], 3, "the drive never tried these");
    assert_eq!(result["retried"], 0);
    assert_eq!(result["decoded"], 1);
    let again = asked.last().unwrap();
    assert_eq!(
        (again.io.offset, again.io.length),
        (BAD + SECTOR_BYTES, 3 * SECTOR_BYTES)
    );
    assert_eq!(again.on_read_error, OnReadError::FailFast);
}

#[test]
fn the_drive_retries_only_what_cannot_be_decoded() {
    // A drive on which reads that are to fail fast fail in their first sector, wherever that is.
    let read = read(json!({
        "sectors": 4, "request_sectors": 1, "code": {"k": 4, "m": 1, "decode_us": [10]},
    }));
    let layout = read.layout();
    let (mut drive, _asked) = drive(BAD * 2);
    let mut counts = Counts::default();
    let mut trial = Trial::new(&read, &layout, &mut drive, LEAD_SECTORS, &mut counts);
    trial.plan(0);
    trial.todo.clear();
    trial.groups[0].failed = vec![0, 1, 2];
    trial.groups[0].stage = Stage::Fetched;
    let code = read.code.as_ref().unwrap();
    trial.recover(0, code, 0);
    let policies: Vec<_> = trial
        .todo
        .iter()
        .map(|ask| (ask.sectors.clone(), ask.policy))
        .collect();
    assert_eq!(
        policies,
        [(0..1, OnReadError::Retry), (1..2, OnReadError::Retry)]
    );
    assert_eq!(counts.retried, 2);
    assert_eq!(counts.decoded, 0);
}

#[test]
fn part_of_a_larger_file_fetches_the_rest_of_its_group() {
    let code = json!({"k": 8, "m": 2, "decode_us": [10, 20]});
    let read = read(json!({"sectors": 2, "file_sectors": 8, "request_sectors": 1, "code": code}));
    let layout = read.layout();
    let (mut drive, asked) = drive(BAD * 2);
    let mut counts = Counts::default();
    let base = BAD / SECTOR_BYTES - 3;
    let mut trial = Trial::new(&read, &layout, &mut drive, base, &mut counts);
    assert_eq!(trial.read(3).unwrap(), 10 * SECTOR_NS + 10_000);
    assert_eq!(counts.fetched, 8);
    drop(drive);
    assert_eq!(asked.iter().count(), 1 + 10);
}

#[test]
fn what_is_wrong_is_named() {
    let code = |decode_us: Value| json!({"k": 4, "m": 2, "decode_us": decode_us});
    for (keys, part) in [
        (json!({"sectors": 0}), "sectors 0"),
        (json!({"trials": 0}), "trials 0"),
        (json!({"file_sectors": 9}), "file_sectors 9"),
        (json!({"request_sectors": 0}), "request_sectors 0"),
        (json!({"depth": 0}), "depth 0"),
        (json!({"code": code(json!([1]))}), "decode_us has 1 values"),
        (json!({"code": code(json!([1, -1]))}), "code.decode_us -1"),
        (json!({"sectors": 1 << 20}), "needs a drive of"),
    ] {
        let message = read(keys).check(1 << 24).unwrap_err();
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_seed_gives_the_trials() {
    let keys = json!({"trials": 5, "file_sectors": 100});
    let offsets = |bytes| -> Vec<u64> {
        let (_, asked) = run_on(bytes, keys.clone());
        asked.iter().map(|one| one.io.offset).collect()
    };
    assert_eq!(offsets(1 << 24), offsets(1 << 24));
    assert_ne!(offsets(1 << 24)[0], offsets(1 << 24)[4]);
}
