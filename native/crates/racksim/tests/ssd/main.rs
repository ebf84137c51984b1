//! The SSD as a timing model: contract, parameters, buffer, interference, garbage collection.

mod bench;
mod buffer;
mod collection;
#[path = "../service/mod.rs"]
mod service;

use racksim::{Kind, Service, Ssd, SsdParameters, Timing};

use bench::{parameters, Bench, BYTES, MIB};

#[test]
fn an_ssd_keeps_the_contract_of_services() {
    for power_loss_protection in [true, false] {
        let parameters = SsdParameters {
            power_loss_protection,
            variation_percent: 20.0,
            ..parameters()
        };
        service::holds(|seed| {
            Box::new(Ssd::new(
                parameters.clone(),
                service::BYTES,
                service::SECTOR_BYTES,
                seed,
            ))
        });
    }
}

#[test]
fn drives_of_any_size_serve() {
    for bytes in [512, 4096, 5 * MIB, 100 * MIB + 512] {
        let mut ssd = Ssd::new(parameters(), bytes, 512, 1);
        let mut completions = Vec::new();
        for ticket in 0..2000 {
            let io = racksim::Io {
                kind: Kind::Write,
                offset: bytes - 512,
                length: 512,
            };
            let request = racksim::Request {
                ticket,
                io,
                fua: false,
                on_read_error: racksim::OnReadError::Retry,
            };
            ssd.submit(&request, 0);
        }
        ssd.advance(u64::MAX / 2, &mut completions);
        assert_eq!(completions.len(), 2000, "{bytes} bytes");
    }
}

#[test]
fn a_parameter_out_of_range_is_named() {
    let refused = SsdParameters {
        planes: 0,
        ..parameters()
    };
    assert_eq!(
        refused.check(BYTES).unwrap_err(),
        "planes is 0; give 1 to 8"
    );
    let refused = SsdParameters {
        page_kib: 6,
        ..parameters()
    };
    assert_eq!(
        refused.check(BYTES).unwrap_err(),
        "page_kib is 6; give a multiple of 4"
    );
    let refused = SsdParameters {
        write_buffer_kib: 511,
        ..parameters()
    };
    assert!(refused
        .check(BYTES)
        .unwrap_err()
        .starts_with("write_buffer_kib is 511; give 512 to "));
    let refused = SsdParameters {
        read_us: f64::NAN,
        ..parameters()
    };
    assert!(refused
        .check(BYTES)
        .unwrap_err()
        .starts_with("read_us is NaN"));
}

#[test]
fn a_drive_too_large_for_the_tables_is_refused() {
    assert_eq!(parameters().check(8 << 40), Ok(()));
    let said = parameters().check(16 << 40).unwrap_err();
    assert!(
        said.ends_with("too large to simulate; give it at most 8 TiB"),
        "{said}"
    );
}

#[test]
fn an_unknown_parameter_is_refused() {
    let error = serde_json::from_str::<Timing>(r#"{"kind": "ssd", "chanels": 8}"#).unwrap_err();
    assert!(
        error.to_string().contains("unknown field `chanels`"),
        "{error}"
    );
}

#[test]
fn an_unloaded_read_takes_what_its_parts_take() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.rest();
    let (command, overhead, sense, channel, interface) = (2_000, 6_000, 50_000, 10_240, 4_096);
    assert_eq!(
        bench.time_ns(Kind::Read, 0, 4096),
        command + overhead + sense + channel + interface
    );
}

#[test]
fn what_was_never_written_or_is_trimmed_touches_no_flash() {
    let mut bench = Bench::new(parameters());
    let untouched_ns = bench.time_ns(Kind::Read, 0, 4096);
    assert!(untouched_ns < 50_000);
    bench.fill();
    bench.rest();
    assert!(bench.time_ns(Kind::Read, 0, 4096) > 50_000);
    bench.time_ns(Kind::Trim, 0, MIB);
    assert_eq!(bench.time_ns(Kind::Read, 0, 4096), untouched_ns);
    assert!(bench.time_ns(Kind::Read, MIB, 4096) > 50_000);
    bench.time_ns(Kind::WriteZeroes, MIB, MIB);
    assert_eq!(bench.time_ns(Kind::Read, MIB, 4096), untouched_ns);
}

#[test]
fn a_trim_leaves_what_it_covers_in_part() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.rest();
    bench.time_ns(Kind::Trim, 512, 8192 - 512);
    assert!(bench.time_ns(Kind::Read, 0, 4096) > 50_000);
    assert!(bench.time_ns(Kind::Read, 4096, 4096) < 50_000);
}

#[test]
fn requests_of_nothing_of_64_mib_and_at_the_end_complete() {
    let mut bench = Bench::new(parameters());
    for (offset, length) in [
        (0, 0),
        (BYTES, 0),
        (512, 0),
        (0, 64 * MIB),
        (BYTES - 512, 512),
    ] {
        for kind in [Kind::Write, Kind::Read, Kind::Trim, Kind::WriteZeroes] {
            let ns = bench.time_ns(kind, offset, length);
            let data_ns = match kind {
                Kind::Read | Kind::Write => length,
                _ => 0,
            };
            assert!(
                ns >= 2_000 + data_ns,
                "{kind:?} of {length} bytes at {offset}"
            );
        }
    }
}

#[test]
fn dies_serve_at_the_same_time() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.rest();
    let alone = bench.random(2000, 1, 0);
    let together = bench.random(2000, 32, 0);
    assert!(together.elapsed_ns * 4 < alone.elapsed_ns);
    assert!(together.p99_read_ns() > alone.p99_read_ns());
}

#[test]
fn commands_beyond_the_queue_wait_outside() {
    let mut bench = Bench::new(SsdParameters {
        queue_depth: 1,
        ..parameters()
    });
    bench.fill();
    bench.rest();
    // A place that none of the others lies near: a page that was just read is read again without flash.
    let one_ns = bench.time_ns(Kind::Read, BYTES / 2, 4096);
    let all = bench.load(8, 8, |n| (Kind::Read, n * MIB / 8, 4096));
    assert_eq!(all.elapsed_ns, 8 * one_ns);
}

#[test]
fn one_path_is_shared_where_the_link_is_half_duplex() {
    let elapsed_ns = |full_duplex| {
        let mut bench = Bench::new(SsdParameters {
            full_duplex,
            write_buffer_kib: 64 * 1024,
            ..parameters()
        });
        let places = BYTES / MIB / 2;
        let what = |n| match n % 2 {
            0 => (Kind::Write, n % places * MIB, MIB),
            _ => (Kind::Read, BYTES / 2 + n % places * MIB, MIB),
        };
        bench.load(40, 8, what).elapsed_ns
    };
    assert!(elapsed_ns(false) > elapsed_ns(true) * 3 / 2);
}

#[test]
fn a_seed_decides_the_variation() {
    let latencies = |seed| {
        let varied = SsdParameters {
            variation_percent: 20.0,
            ..parameters()
        };
        let mut bench = Bench::new(varied.clone());
        bench.ssd = Ssd::new(varied, BYTES, 512, seed);
        bench.fill();
        bench.rest();
        // Of a die each, one after another: a page that was just read is read again without flash.
        bench
            .load(200, 1, |n| {
                (Kind::Read, n * 7919 % (BYTES / 32_768) * 32_768, 4096)
            })
            .read_ns
    };
    let first = latencies(1);
    assert_eq!(first, latencies(1));
    assert_ne!(first, latencies(2));
    let (least, most) = (first[0], first[first.len() - 1]);
    assert!(most - least > 10_000 && most - least <= 20_000);
}

#[test]
fn health_counts_what_flash_went_through() {
    let mut bench = Bench::new(parameters());
    assert_eq!(
        bench.ssd.health(),
        [("nand_bytes_written", 0), ("erase_count_mean", 0)]
    );
    bench.fill();
    bench.rest();
    bench.ssd.sanitize(u64::MAX / 2);
    assert_eq!(
        bench.ssd.health(),
        [("nand_bytes_written", BYTES), ("erase_count_mean", 1)]
    );
}

#[test]
fn the_page_in_a_dies_register_is_read_again_without_flash() {
    let mut bench = Bench::new(parameters());
    bench.fill();
    bench.rest();
    let mut time_us = |block: u64| bench.time_ns(Kind::Read, block * 4096, 4096) as f64 / 1e3;
    let first_us = time_us(0);
    // A page has four blocks, all of which wait only for their transfer.
    for block in [1, 2, 3, 0] {
        assert!(
            (first_us - time_us(block) - 50.0).abs() < 0.1,
            "block {block}"
        );
    }
    // The die's next page takes the register.
    let other_us = time_us(4);
    assert!((first_us - other_us).abs() < 0.1, "{other_us}");
    assert!((first_us - time_us(0)).abs() < 0.1);
    // So does a program.
    bench.time_ns(Kind::Write, 0, BYTES / 16);
    bench.rest();
    let again_us = bench.time_ns(Kind::Read, BYTES / 2, 4096) as f64 / 1e3;
    assert!((first_us - again_us).abs() < 0.1, "{again_us}");
}

/// A drive of 32 dies that reads so much ahead.
fn with_read_ahead(read_ahead_kib: u32) -> Bench {
    let mut bench = Bench::new(SsdParameters {
        read_ahead_kib,
        channels: 8,
        dies_per_channel: 4,
        interface_mb_s: 3200.0,
        write_buffer_kib: 4096,
        ..parameters()
    });
    bench.fill();
    bench.rest();
    bench
}

#[test]
fn small_sequential_reads_are_served_from_what_was_read_ahead() {
    let sequential_us = |read_ahead_kib: u32, depth: u64| {
        let mut bench = with_read_ahead(read_ahead_kib);
        let measured = bench.load(8000, depth, |n| (Kind::Read, n * 4096, 4096));
        measured.elapsed_ns as f64 / 8000e3
    };
    let random_ns = |read_ahead_kib: u32| {
        with_read_ahead(read_ahead_kib)
            .random(8000, 32, 0)
            .elapsed_ns
    };
    let random_us = random_ns(256) as f64 / 8000e3;
    let [without_us, ahead_us] = [0, 256].map(|kib| sequential_us(kib, 32));
    assert!(
        ahead_us < random_us && random_us < without_us,
        "{ahead_us} {random_us} {without_us}"
    );
    // Commands take 2 us each.
    assert!((2.0..2.3).contains(&ahead_us), "{ahead_us}");
    // Of random reads on so small a drive one in a thousand continues another by chance.
    let random_ratio = random_ns(256) as f64 / random_ns(0) as f64;
    assert!((0.99..1.02).contains(&random_ratio), "{random_ratio}");
    // One at a time they take command, overhead and interface, and rarely wait.
    let alone_us = sequential_us(256, 1);
    assert!((9.2..11.0).contains(&alone_us), "{alone_us}");
}

#[test]
fn more_streams_than_are_told_apart_are_served_while_they_change() {
    let mut bench = with_read_ahead(256);
    // Twenty streams; one in eight of the requests writes into what was read ahead.
    let part = BYTES / 20 / 4096 * 4096;
    let measured = bench.load(14_000, 16, |n| {
        let offset = (n % 20) * part + n / 20 * 4096;
        match n % 8 {
            0 => (Kind::Write, offset + 65_536, 4096),
            _ => (Kind::Read, offset, 4096),
        }
    });
    assert_eq!(measured.read_ns.len(), 12_250);
    bench.rest();
    bench.ssd.cut_power(u64::MAX / 2);
    assert_eq!(bench.ssd.next_due_ns(), None);
}
