//! Garbage collection: what it costs, whom it disturbs, and what makes a drive as new.

use racksim::{Kind, Service, SsdParameters};

use crate::bench::{parameters, Bench, BYTES, MIB};

/// Bytes programmed for each byte of the host's during `load`.
fn write_amplification(bench: &mut Bench, load: impl FnOnce(&mut Bench)) -> f64 {
    let before = bench.ssd.flash_work();
    load(bench);
    let after = bench.ssd.flash_work();
    (after.programmed_bytes - before.programmed_bytes) as f64
        / (after.host_bytes - before.host_bytes) as f64
}

#[test]
fn sequential_writes_are_not_amplified() {
    let mut bench = Bench::new(parameters());
    for _ in 0..3 {
        let amplification = write_amplification(&mut bench, |bench| {
            bench.fill();
        });
        assert!(amplification < 1.05, "{amplification}");
    }
}

#[test]
fn random_writes_are_amplified_as_theory_says() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.fragment();
    let amplification = write_amplification(&mut bench, |bench| {
        bench.random(BYTES / 4096, 32, 100);
    });
    // Five of the 145 blocks that a die has for 128 of data are open or free. With a = 140/128, taking the oldest block
    // first amplifies uniform random writes by a / (a + W(-a exp(-a))) = 6.0 (Desnoyers, SYSTOR 2012). The emptiest is
    // better, the more so as the blocks of so small a drive are small; but 3.0 would take a = 1.22.
    assert!((3.0..6.0).contains(&amplification), "{amplification}");
}

#[test]
fn more_over_provisioning_amplifies_less() {
    let steady = |over_provisioning_percent| {
        let mut bench = Bench::new(SsdParameters {
            over_provisioning_percent,
            ..parameters()
        });
        bench.fill();
        bench.fragment();
        write_amplification(&mut bench, |bench| {
            bench.random(BYTES / 4096, 32, 100);
        })
    };
    let (little, much) = (steady(8.0), steady(60.0));
    assert!(much < 2.0 && little > 2.0 * much, "{little} and {much}");
}

#[test]
fn fragmentation_slows_writes_and_sanitizing_restores_them() {
    let mut bench = Bench::new(parameters());
    let requests = BYTES / 4096 / 20;
    bench.fill();
    let clean_ns = bench.random(requests, 32, 100).elapsed_ns;
    bench.fragment();
    let fragmented_ns = bench.random(requests, 32, 100).elapsed_ns;
    assert!(fragmented_ns > 3 * clean_ns);
    bench.rest();
    let now_ns = u64::MAX / 4;
    bench.ssd.sanitize(now_ns);
    let mut bench = bench.resumed_at(now_ns);
    assert!(
        bench.time_ns(Kind::Read, 0, 4096) < 50_000,
        "nothing is written"
    );
    bench.fill();
    let restored_ns = bench.random(requests, 32, 100).elapsed_ns;
    assert!(restored_ns < clean_ns * 11 / 10);
}

#[test]
fn requests_in_progress_end_with_a_sanitizing() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.rest();
    for n in 0..100 {
        bench.submit(Kind::Read, n * MIB / 2, 4096, false);
    }
    let now_ns = u64::MAX / 4;
    bench.ssd.cut_power(now_ns);
    let mut bench = bench.resumed_at(now_ns);
    for n in 0..100 {
        bench.submit(Kind::Read, n * MIB / 2, 4096, false);
    }
    bench.ssd.sanitize(now_ns);
    let completions = bench.next();
    assert_eq!(completions.len(), 100);
    assert!(completions
        .iter()
        .all(|completion| completion.at_ns == now_ns));
}

#[test]
fn a_trimmed_drive_is_as_new() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.fragment();
    bench.time_ns(Kind::Trim, 0, BYTES);
    bench.rest();
    let amplification = write_amplification(&mut bench, |bench| {
        bench.random(BYTES / 4096 / 2, 32, 100);
    });
    assert!(amplification < 1.05, "{amplification}");
}

#[test]
fn a_full_drive_with_hardly_a_spare_block_serves_on() {
    let mut bench = Bench::new(SsdParameters {
        over_provisioning_percent: 1.0,
        ..parameters()
    });
    bench.fill();
    let places = BYTES / 4096;
    // Strides that meet every place once, and leave the dies unevenly full on their way.
    bench.load(places, 32, |n| match n % 50 {
        0 => (Kind::Trim, n * 7919 % places * 4096, 4096),
        _ => (Kind::Write, n * 7919 % places * 4096, 4096),
    });
    bench.rest();
}

#[test]
fn an_idle_drive_collects_until_each_die_has_blocks_enough() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.fragment();
    let busy = bench.ssd.flash_work();
    bench.rest();
    let rested = bench.ssd.flash_work();
    assert!(rested.erases > busy.erases);
    bench.rest();
    assert_eq!(bench.ssd.flash_work(), rested);
}

#[test]
fn writes_slow_reads_down_most_where_garbage_is_collected() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.rest();
    let alone = bench.random(4000, 16, 0);
    let clean = bench.random(4000, 16, 10);
    bench.fragment();
    let fragmented = bench.random(4000, 16, 10);
    assert!(clean.p99_read_ns() > alone.p99_read_ns());
    assert!(fragmented.p99_read_ns() > clean.p99_read_ns());
    assert!(fragmented.elapsed_ns > clean.elapsed_ns);
    assert!(clean.elapsed_ns > alone.elapsed_ns);
}

#[test]
fn reads_go_ahead_of_programs_as_far_as_they_may() {
    let p99_read_ns = |reads_ahead| {
        let mut bench = Bench::new(SsdParameters {
            reads_ahead,
            ..parameters()
        });
        bench.fill();
        bench.rest();
        bench.random(8000, 64, 30).p99_read_ns()
    };
    assert!(p99_read_ns(0) > p99_read_ns(16));
}
