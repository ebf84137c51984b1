//! Sectors that cannot be read at the first attempt.

use racksim::{HddParameters, Kind, OnReadError, Service};

use crate::disk::{parameters, Disk, GIB, KIB, MIB, MS, REVOLUTION_NS};

fn weak(probability: f64) -> HddParameters {
    HddParameters {
        read_error_probability: probability,
        ..parameters()
    }
}

#[test]
fn fail_fast_reads_fail_with_the_probability_of_their_sectors() {
    let mut disk = Disk::new(weak(0.002), 8 * GIB);
    let (reads, mut failed) = (4000, 0);
    for _ in 0..reads {
        let at = disk.somewhere(64 * KIB);
        let mut request = disk.request(Kind::Read, at, 64 * KIB);
        request.on_read_error = OnReadError::FailFast;
        if let Some(failed_at) = disk.ask(&request).failed_at {
            assert!((at..at + 64 * KIB).contains(&failed_at) && failed_at % 4096 == 0);
            failed += 1;
        }
    }
    let expected = 1.0 - (1.0 - 0.002_f64).powi(16);
    let ratio = f64::from(failed) / f64::from(reads) / expected;
    assert!((0.75..1.25).contains(&ratio), "{failed} of {reads}");
}

#[test]
fn read_ahead_does_not_hide_failures() {
    let mut disk = Disk::new(weak(0.001), 8 * GIB);
    let (reads, mut failed) = (4000, 0);
    for block in 0..reads {
        let mut request = disk.request(Kind::Read, block * 64 * KIB, 64 * KIB);
        request.on_read_error = OnReadError::FailFast;
        failed += u32::from(disk.ask(&request).failed_at.is_some());
        // Now and then the drive gets ahead.
        disk.rest(if block % 3 == 0 { 2 * MS } else { 0 });
    }
    let ratio = f64::from(failed) / (reads as f64 * 16.0 * 0.001);
    assert!((0.6..1.4).contains(&ratio), "{failed} of {reads}");
}

#[test]
fn a_failure_is_told_when_the_sector_has_passed() {
    let mut disk = Disk::new(weak(1.0), 8 * GIB);
    let mut request = disk.request(Kind::Read, GIB + 512, 8 * MIB);
    request.on_read_error = OnReadError::FailFast;
    let completion = disk.ask(&request);
    assert_eq!(completion.failed_at, Some(GIB + 512));
    assert!(completion.at_ns < 30 * MS, "{completion:?}");
}

#[test]
fn each_retried_sector_costs_whole_revolutions_within_the_bounds() {
    let without = Disk::new(weak(0.0), 8 * GIB).latency_ns(Kind::Read, GIB, 128 * KIB);
    let with = Disk::new(weak(1.0), 8 * GIB).latency_ns(Kind::Read, GIB, 128 * KIB);
    let retries_ns = with - without;
    assert_eq!(retries_ns % REVOLUTION_NS, 0);
    assert!(
        (32 * 20 * MS..=32 * 40 * MS).contains(&retries_ns),
        "{retries_ns}"
    );
    let fixed = HddParameters {
        retry_ms: [25.0, 25.0],
        ..weak(1.0)
    };
    let with = Disk::new(fixed, 8 * GIB).latency_ns(Kind::Read, GIB, 128 * KIB);
    assert_eq!(
        with - without,
        32 * 3 * REVOLUTION_NS,
        "no whole revolutions between the bounds: rounded up"
    );
}

#[test]
fn writes_and_cached_data_do_not_fail() {
    let mut disk = Disk::new(weak(1.0), 8 * GIB);
    assert!(disk.latency_ns(Kind::Write, GIB, 4 * KIB) < MS);
    assert!(disk.latency_ns(Kind::Read, GIB, 4 * KIB) < MS);
    assert!(disk.latency_ns(Kind::Flush, 0, 0) < 40 * MS);
}

#[test]
fn errors_and_retries_are_counted() {
    let mut disk = Disk::new(weak(1.0), 8 * GIB);
    disk.latency_ns(Kind::Read, GIB, 8 * KIB);
    let mut request = disk.request(Kind::Read, 2 * GIB, 8 * KIB);
    request.on_read_error = OnReadError::FailFast;
    disk.ask(&request);
    assert_eq!(disk.hdd.health(), [("read_errors", 3), ("read_retries", 2)]);
}
