//! Seeks, rotation, rates and the order of service.

use racksim::{Io, Kind, OnReadError, Request, Service};

use crate::disk::{parameters, Disk, GIB, KIB, MIB, MS, REVOLUTION_NS};

/// The media, neither memory nor link.
fn bare() -> racksim::HddParameters {
    racksim::HddParameters {
        read_ahead_kib: 0,
        least_read_ahead_kib: 0,
        write_cache_kib: 0,
        command_overhead_us: 0.0,
        ..parameters()
    }
}

#[test]
fn rotation_costs_half_a_revolution_on_average_and_less_than_one() {
    let mut disk = Disk::new(bare(), 8 * GIB);
    disk.latency_ns(Kind::Read, 0, 512);
    let mut sum_ns = 0;
    for step in 0..1000 {
        // The same track again and again, at any time.
        disk.rest(step * 17_321);
        let latency_ns = disk.latency_ns(Kind::Read, 1024 * (step % 100), 512);
        assert!(latency_ns < REVOLUTION_NS + 100_000, "{latency_ns}");
        sum_ns += latency_ns;
    }
    let mean_ms = sum_ns as f64 / 1e9;
    assert!((4.0..4.35).contains(&mean_ms), "{mean_ms}");
}

#[test]
fn a_small_drive_has_the_seeks_of_the_large_one() {
    for bytes in [GIB, 8 * GIB, 4_000_787_030_016] {
        let mut disk = Disk::new(bare(), bytes);
        let shortest_ms = (1..=400)
            .map(|sector| {
                disk.latency_ns(Kind::Read, sector * 512, 512);
                disk.rest(sector * 20_843);
                disk.latency_ns(Kind::Read, bytes - sector * 512, 512)
            })
            .min()
            .unwrap() as f64
            / 1e6;
        assert!(
            (16.0..16.2).contains(&shortest_ms),
            "full stroke of {bytes}: {shortest_ms}"
        );
        let measured = Disk::new(bare(), bytes).random(Kind::Read, 4 * KIB, 1, 4000);
        // 8.5 ms and 4.17 ms; random bytes lie further out than random cylinders, and seek a little less.
        assert!(
            (77.0..82.0).contains(&measured.iops),
            "{bytes}: {measured:?}"
        );
    }
}

#[test]
fn writes_settle_longer() {
    let read = Disk::new(bare(), 8 * GIB)
        .random(Kind::Read, 4 * KIB, 1, 4000)
        .iops;
    let write = Disk::new(bare(), 8 * GIB)
        .random(Kind::Write, 4 * KIB, 1, 4000)
        .iops;
    let longer_ms = 1e3 / write - 1e3 / read;
    assert!((0.8..1.2).contains(&longer_ms), "{longer_ms}");
}

#[test]
fn sequential_rates_are_those_of_the_zones() {
    let bytes = 8 * GIB;
    for (kind, depth) in [(Kind::Read, 1), (Kind::Read, 32), (Kind::Write, 4)] {
        for (from, expected) in [(0, 175.0), (bytes / 2, 137.0), (bytes - 400 * MIB, 84.0)] {
            let mut disk = Disk::new(parameters(), bytes);
            // Fills the cache, so that the media's rate shows.
            disk.sequential(kind, 128 * KIB, depth, from, 800);
            let measured = disk.sequential(kind, 128 * KIB, depth, from + 100 * MIB, 2000);
            let ratio = measured.mb_s / expected;
            assert!(
                (0.95..1.05).contains(&ratio),
                "{kind:?} at depth {depth} from {from}: {measured:?}"
            );
        }
    }
}

#[test]
fn a_sequential_stream_stays_one_wherever_the_arm_comes_from() {
    let bytes = 8 * GIB;
    for (kind, parameters) in [(Kind::Read, parameters()), (Kind::Write, bare())] {
        let mut disk = Disk::new(parameters, bytes);
        for place in 0..32 {
            let from = place * (bytes / 32);
            // The arm is busy far away while the stream's first requests come together.
            let away = disk.request(Kind::Read, bytes - MIB - from, 4 * KIB);
            disk.hdd.submit(&away, disk.now_ns);
            for block in 0..8 {
                let request = disk.request(kind, from + block * MIB, MIB);
                disk.hdd.submit(&request, disk.now_ns);
            }
            let mut order = disk.wait(9);
            order.retain(|completion| completion.ticket != away.ticket);
            assert!(
                order.is_sorted_by_key(|completion| completion.ticket),
                "{kind:?} at {place}: {order:?}"
            );
            let measured = disk.sequential(kind, MIB, 4, from + 8 * MIB, 64);
            assert!(measured.mb_s > 75.0, "{kind:?} at {place}: {measured:?}");
        }
    }
}

#[test]
fn knowing_more_requests_the_drive_is_quicker_and_nothing_starves() {
    let iops = |depth| {
        Disk::new(parameters(), 8 * GIB)
            .random(Kind::Read, 4 * KIB, depth, 4000)
            .iops
    };
    let by_depth: Vec<_> = [1, 2, 4, 8, 16, 32].map(iops).to_vec();
    assert!(by_depth.is_sorted(), "{by_depth:?}");
    assert!(by_depth[5] > 2.0 * by_depth[0], "{by_depth:?}");
    let in_turn = racksim::HddParameters {
        longest_wait_ms: 1.0,
        ..parameters()
    };
    let fifo = Disk::new(in_turn, 8 * GIB).random(Kind::Read, 4 * KIB, 32, 4000);
    assert!(by_depth[5] > 2.0 * fifo.iops, "{by_depth:?} {fifo:?}");
    let crowded = racksim::HddParameters {
        queue_depth: 256,
        ..parameters()
    };
    let measured = Disk::new(crowded, 8 * GIB).random(Kind::Read, 4 * KIB, 256, 20_000);
    assert!(
        measured.iops > by_depth[5],
        "more waits than can be served in time: {measured:?}"
    );
    // Requests that were queued or arrive within the longest wait may go before a request.
    assert!(
        measured.longest_ns < 1000 * MS + 256 * 25 * MS,
        "{measured:?}"
    );
}

#[test]
fn requests_beyond_the_queue_depth_wait_in_order() {
    let shallow = racksim::HddParameters {
        queue_depth: 1,
        ..bare()
    };
    let mut disk = Disk::new(shallow, 8 * GIB);
    for at in [7, 1, 5, 3, 0, 6] {
        let request = disk.request(Kind::Read, at * GIB, 4096);
        disk.hdd.submit(&request, 0);
    }
    let order: Vec<_> = disk
        .wait(6)
        .iter()
        .map(|completion| completion.ticket)
        .collect();
    assert_eq!(order, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_unaligned_write_reads_first() {
    let emulated = racksim::HddParameters {
        physical_sector_bytes: 4096,
        ..bare()
    };
    let mut disk = Disk::new(emulated, 8 * GIB);
    disk.latency_ns(Kind::Write, 0, 4096);
    let from_ns = disk.now_ns;
    disk.latency_ns(Kind::Write, 0, 4096);
    let aligned_ns = disk.now_ns - from_ns;
    let from_ns = disk.now_ns;
    disk.latency_ns(Kind::Write, 0, 512);
    let unaligned_ns = disk.now_ns - from_ns;
    assert_eq!(aligned_ns, REVOLUTION_NS);
    assert!(unaligned_ns > 2 * REVOLUTION_NS - 50_000, "{unaligned_ns}");
}

#[test]
fn any_size_is_served_up_to_the_very_end() {
    let bytes = 8 * GIB;
    for kind in [Kind::Read, Kind::Write, Kind::WriteZeroes, Kind::Trim] {
        for length in [0, 512, 4096, 64 * MIB] {
            let mut disk = Disk::new(parameters(), bytes);
            let latency_ns = disk.latency_ns(kind, bytes - length, length);
            assert!(latency_ns >= 50_000, "{kind:?} of {length}: {latency_ns}");
            let is_quick = length == 0 || kind == Kind::Trim;
            assert!(
                !is_quick || latency_ns == 50_000,
                "{kind:?} of {length}: {latency_ns}"
            );
        }
    }
}

#[test]
fn a_drive_of_one_sector_works() {
    let mut disk = Disk::new(parameters(), 512);
    for kind in [Kind::Read, Kind::Write, Kind::Flush, Kind::Read] {
        let length = if kind == Kind::Flush { 0 } else { 512 };
        let latency_ns = disk.latency_ns(kind, 0, length);
        assert!(latency_ns < 40 * MS, "{latency_ns}");
    }
}

#[test]
fn a_large_read_takes_what_the_media_take() {
    let mut disk = Disk::new(bare(), 8 * GIB);
    let request = Request {
        ticket: 1,
        io: Io {
            kind: Kind::Read,
            offset: 0,
            length: 64 * MIB,
        },
        fua: false,
        on_read_error: OnReadError::Retry,
    };
    let seconds = disk.ask(&request).at_ns as f64 / 1e9;
    let mb_s = (64 * MIB) as f64 / 1e6 / seconds;
    assert!((165.0..178.0).contains(&mb_s), "{mb_s}");
}

#[test]
fn a_disk_is_free_at_once_where_nobody_waits_for_its_work() {
    let mut disk = Disk::new(parameters(), 64 * GIB);
    let zeroes: Vec<Request> = (0..5)
        .map(|_| disk.request(Kind::WriteZeroes, 0, 4 * GIB))
        .collect();
    for request in &zeroes {
        disk.hdd.submit(request, disk.now_ns);
    }
    disk.rest(100 * MS);
    let tickets: Vec<u64> = zeroes.iter().map(|request| request.ticket).collect();
    disk.hdd.abort(&tickets, disk.now_ns);
    assert_eq!(disk.hdd.next_due_ns(), None);
    // The arm is where it had come to in a tenth of a second, not at the end of 4 GiB.
    let latency_ns = disk.latency_ns(Kind::Read, 16 * MIB, 4 * KIB);
    assert!(latency_ns < 14 * MS, "{latency_ns}");
    let latency_ns = disk.latency_ns(Kind::Read, 60 * GIB, 4 * KIB);
    assert!(latency_ns < 30 * MS, "{latency_ns}");
}
