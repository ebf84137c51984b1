//! The track buffer and the write cache.

use racksim::{HddParameters, Kind, Service};

use crate::disk::{parameters, Disk, GIB, KIB, MIB, MS};

#[test]
fn the_drive_reads_ahead() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    disk.latency_ns(Kind::Read, GIB, 64 * KIB);
    disk.rest(100 * MS);
    // 50 us for the command, 110 us for the link.
    assert_eq!(
        disk.latency_ns(Kind::Read, GIB + 64 * KIB, 64 * KIB),
        159_227
    );
    assert_eq!(disk.latency_ns(Kind::Read, GIB, 64 * KIB), 159_227);
    assert!(disk.latency_ns(Kind::Read, GIB + 100 * MIB, 64 * KIB) > MS);
    let blind = HddParameters {
        read_ahead_kib: 0,
        least_read_ahead_kib: 0,
        ..parameters()
    };
    let mut disk = Disk::new(blind, 8 * GIB);
    disk.latency_ns(Kind::Read, GIB, 64 * KIB);
    disk.rest(100 * MS);
    assert!(disk.latency_ns(Kind::Read, GIB + 64 * KIB, 64 * KIB) > MS / 2);
}

#[test]
fn each_stream_has_its_segment() {
    let read_back = |segments| {
        let mut disk = Disk::new(
            HddParameters {
                read_segments: segments,
                ..parameters()
            },
            8 * GIB,
        );
        for stream in 0..4 {
            disk.latency_ns(Kind::Read, stream * GIB, 64 * KIB);
            disk.rest(100 * MS);
        }
        (0..4)
            .filter(|stream| disk.latency_ns(Kind::Read, stream * GIB + 512 * KIB, 64 * KIB) < MS)
            .count()
    };
    assert_eq!((read_back(4), read_back(1)), (4, 0));
}

#[test]
fn the_arm_stays_with_a_stream_for_a_while() {
    let together = |least_read_ahead_kib| {
        let parameters = HddParameters {
            least_read_ahead_kib,
            ..parameters()
        };
        let mut disk = Disk::new(parameters, 8 * GIB);
        let mut next = [0, 4 * GIB];
        for first in next {
            let request = disk.request(Kind::Read, first, 64 * KIB);
            disk.hdd.submit(&request, 0);
        }
        // Each stream asks for its next block when it has the last. Tickets count from 1.
        let mut stream_of = vec![0, 0, 1];
        while stream_of.len() < 400 {
            for completion in disk.wait(1) {
                let stream: usize = stream_of[completion.ticket as usize];
                next[stream] += 64 * KIB;
                let request = disk.request(Kind::Read, next[stream], 64 * KIB);
                stream_of.push(stream);
                disk.hdd.submit(&request, disk.now_ns);
            }
        }
        (next[0] + next[1] - 4 * GIB) as f64 * 1e3 / disk.now_ns as f64
    };
    let (without, with) = (together(0), together(512));
    assert!(with > 4.0 * without, "{without} and {with} MB/s");
}

#[test]
fn what_is_written_over_is_not_read_from_the_buffer() {
    let uncached = HddParameters {
        write_cache_kib: 0,
        ..parameters()
    };
    let mut disk = Disk::new(uncached, 8 * GIB);
    disk.latency_ns(Kind::Read, GIB, 64 * KIB);
    disk.rest(100 * MS);
    disk.latency_ns(Kind::Write, GIB + 64 * KIB, 4 * KIB);
    assert!(disk.latency_ns(Kind::Read, GIB + 64 * KIB, 4 * KIB) > MS / 2);
}

#[test]
fn a_cached_write_takes_the_link_alone_and_is_read_from_the_cache() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    assert_eq!(disk.latency_ns(Kind::Write, GIB, 4 * KIB), 56_827);
    assert_eq!(disk.latency_ns(Kind::Read, GIB, 4 * KIB), 56_827);
    assert_eq!(disk.latency_ns(Kind::Read, GIB + 512, 512), 50_853);
}

#[test]
fn a_flush_waits_for_the_media_and_then_there_is_nothing_left() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    for _ in 0..20 {
        let at = disk.somewhere(4 * KIB);
        disk.latency_ns(Kind::Write, at, 4 * KIB);
    }
    assert!(disk.latency_ns(Kind::Flush, 0, 0) > 20 * MS);
    assert_eq!(disk.latency_ns(Kind::Flush, 0, 0), 50_000);
    assert_eq!(disk.hdd.next_due_ns(), None);
}

#[test]
fn a_flush_waits_for_what_came_before_and_holds_back_what_comes_after() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    for kind in [Kind::Read, Kind::Write, Kind::Flush, Kind::Write] {
        let at = if kind == Kind::Flush { 0 } else { 3 * GIB };
        let length = if kind == Kind::Flush { 0 } else { 4 * KIB };
        let request = disk.request(kind, at + disk.now_ns, length);
        disk.hdd.submit(&request, 0);
    }
    let mut order: Vec<_> = disk
        .wait(4)
        .iter()
        .map(|completion| completion.ticket)
        .collect();
    order[..2].sort_unstable();
    assert_eq!(order, [1, 2, 3, 4]);
}

#[test]
fn fua_waits_for_the_media() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    let mut request = disk.request(Kind::Write, GIB, 4 * KIB);
    request.fua = true;
    assert!(disk.ask(&request).at_ns > MS);
    assert_eq!(disk.hdd.next_due_ns(), None, "nothing to destage");
}

#[test]
fn a_full_cache_takes_writes_at_the_rate_of_the_media() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    let burst = disk.random(Kind::Write, 4 * KIB, 8, 200);
    let sustained = disk.random(Kind::Write, 4 * KIB, 8, 4000);
    assert!(burst.iops > 10_000.0, "{burst:?}");
    assert!((150.0..450.0).contains(&sustained.iops), "{sustained:?}");
    let uncached = HddParameters {
        write_cache_kib: 0,
        ..parameters()
    };
    let uncached = Disk::new(uncached, 8 * GIB).random(Kind::Write, 4 * KIB, 8, 2000);
    assert!(
        sustained.iops > 1.5 * uncached.iops,
        "{sustained:?} {uncached:?}"
    );
}

#[test]
fn an_idle_drive_empties_its_cache() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    for _ in 0..50 {
        let at = disk.somewhere(4 * KIB);
        disk.latency_ns(Kind::Write, at, 4 * KIB);
    }
    assert!(disk.hdd.next_due_ns().is_some());
    disk.rest(2000 * MS);
    assert_eq!(disk.hdd.next_due_ns(), None);
    assert_eq!(disk.latency_ns(Kind::Flush, 0, 0), 50_000);
}

#[test]
fn reads_go_before_what_the_drive_does_for_itself() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    for _ in 0..200 {
        let at = disk.somewhere(4 * KIB);
        disk.latency_ns(Kind::Write, at, 4 * KIB);
    }
    let quiet = Disk::new(parameters(), 8 * GIB)
        .random(Kind::Read, 4 * KIB, 1, 200)
        .iops;
    let busy = disk.random(Kind::Read, 4 * KIB, 1, 200).iops;
    assert!(busy > 0.95 * quiet, "{busy} {quiet}");
}

#[test]
fn a_power_cut_loses_the_cache_and_the_queue() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    for _ in 0..20 {
        let at = disk.somewhere(4 * KIB);
        disk.latency_ns(Kind::Write, at, 4 * KIB);
    }
    let request = disk.request(Kind::Read, GIB, 4 * KIB);
    disk.hdd.submit(&request, disk.now_ns);
    disk.hdd.cut_power(disk.now_ns);
    assert_eq!(disk.hdd.next_due_ns(), None);
    disk.rest(1000 * MS);
    assert_eq!(disk.latency_ns(Kind::Flush, 0, 0), 50_000);
}

#[test]
fn trimmed_and_sanitized_data_needs_no_media() {
    let mut disk = Disk::new(parameters(), 8 * GIB);
    disk.latency_ns(Kind::Write, GIB, 64 * KIB);
    assert_eq!(disk.latency_ns(Kind::Trim, GIB, 64 * KIB), 50_000);
    assert_eq!(disk.latency_ns(Kind::Flush, 0, 0), 50_000);
    disk.latency_ns(Kind::Write, GIB, 64 * KIB);
    disk.hdd.sanitize(disk.now_ns);
    assert_eq!(disk.latency_ns(Kind::Flush, 0, 0), 50_000);
}

#[test]
fn a_write_that_waits_for_room_has_it_once_what_filled_the_cache_is_not_needed_any_more() {
    for (kind, fua) in [(Kind::Trim, false), (Kind::Write, true)] {
        let small = HddParameters {
            write_cache_kib: 64,
            ..parameters()
        };
        let mut disk = Disk::new(small, 8 * GIB);
        disk.latency_ns(Kind::Write, 0, 64 * KIB);
        // The arm is busy with the read while the write waits and the cache is emptied.
        let read = disk.request(Kind::Read, 4 * GIB, 64 * KIB);
        let write = disk.request(Kind::Write, GIB, 4 * KIB);
        let mut last = disk.request(kind, 0, 64 * KIB);
        last.fua = fua;
        for request in [read, write, last] {
            disk.hdd.submit(&request, disk.now_ns);
        }
        assert_eq!(disk.wait(3).len(), 3);
    }
}
