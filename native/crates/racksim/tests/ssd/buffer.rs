//! The write buffer: what is complete in it, what waits for flash, and what a power cut leaves.

use racksim::{Kind, Service, SsdParameters};

use crate::bench::{parameters, Bench, MIB};

const PROGRAM_NS: u64 = 800_000;

fn unprotected() -> SsdParameters {
    SsdParameters {
        power_loss_protection: false,
        ..parameters()
    }
}

#[test]
fn a_write_is_complete_in_the_buffer() {
    let mut bench = Bench::new(parameters());
    assert_eq!(bench.time_ns(Kind::Write, 0, 4096), 2_000 + 8_000 + 4_096);
    let read_ns = bench.time_ns(Kind::Read, 0, 4096);
    assert!(read_ns < 50_000, "what is in the buffer is read from there");
}

#[test]
fn a_full_buffer_writes_at_the_rate_of_flash() {
    let mut bench = Bench::new(parameters());
    let within_ns = bench.time_ns(Kind::Write, 0, MIB / 2);
    assert!(within_ns < PROGRAM_NS);
    let beyond = bench.load(64, 8, |n| (Kind::Write, n * MIB, MIB));
    let rows = 64 * MIB / (32 << 10);
    let flash_ns = rows / 8 * PROGRAM_NS;
    assert!(beyond.elapsed_ns > flash_ns * 9 / 10);
    assert!(beyond.elapsed_ns < flash_ns * 5 / 4);
}

#[test]
fn a_write_to_stable_media_waits_for_flash_unless_capacitors_save_the_buffer() {
    let mut bench = Bench::new(parameters());
    let buffered_ns = bench.time_ns(Kind::Write, 0, 4096);
    assert_eq!(bench.time_fua_ns(Kind::Write, 0, 4096, true), buffered_ns);
    let mut bench = Bench::new(unprotected());
    assert_eq!(bench.time_ns(Kind::Write, 0, 4096), buffered_ns);
    assert!(bench.time_fua_ns(Kind::Write, 4096, 4096, true) > PROGRAM_NS);
    assert!(bench.time_fua_ns(Kind::Write, 0, 4 * MIB, true) > 16 * PROGRAM_NS);
}

#[test]
fn a_flush_waits_for_what_is_buffered_unless_capacitors_save_it() {
    let mut bench = Bench::new(parameters());
    bench.time_ns(Kind::Write, 0, 4096);
    assert_eq!(bench.time_ns(Kind::Flush, 0, 0), 2_000);
    let mut bench = Bench::new(unprotected());
    bench.time_ns(Kind::Write, 0, 4096);
    assert!(bench.time_ns(Kind::Flush, 0, 0) > PROGRAM_NS);
    assert_eq!(bench.time_ns(Kind::Flush, 0, 0), 2_000, "nothing is left");
}

#[test]
fn a_flush_pads_what_it_cannot_fill() {
    let mut bench = Bench::new(unprotected());
    bench.time_ns(Kind::Write, 0, 4096);
    bench.time_ns(Kind::Flush, 0, 0);
    let work = bench.ssd.flash_work();
    assert_eq!((work.host_bytes, work.programmed_bytes), (4096, 32 << 10));
}

#[test]
fn what_follows_a_flush_begins_a_row() {
    let mut bench = Bench::new(unprotected());
    bench.time_ns(Kind::Write, 0, 4096);
    bench.time_ns(Kind::Flush, 0, 0);
    bench.time_ns(Kind::Write, MIB, 32 << 10);
    bench.time_ns(Kind::Flush, 0, 0);
    assert_eq!(bench.ssd.flash_work().programmed_bytes, 2 * (32 << 10));
}

#[test]
fn a_power_cut_loses_the_buffer_unless_capacitors_save_it() {
    for parameters in [parameters(), unprotected()] {
        let is_protected = parameters.power_loss_protection;
        let mut bench = Bench::new(parameters);
        bench.time_ns(Kind::Write, 0, MIB / 4);
        bench.rest();
        bench.time_ns(Kind::Write, MIB, 4096);
        bench.ssd.cut_power(u64::MAX / 4);
        let mut bench = bench.resumed_at(u64::MAX / 4);
        assert!(
            bench.time_ns(Kind::Read, 0, 4096) > 50_000,
            "it was on flash"
        );
        let is_on_flash = bench.time_ns(Kind::Read, MIB, 4096) > 50_000;
        assert_eq!(is_on_flash, is_protected);
    }
}

#[test]
fn a_part_of_a_unit_is_read_before_it_is_written() {
    let mut bench = Bench::new(parameters());
    let fresh_ns = bench.time_ns(Kind::Write, 0, 512);
    assert!(fresh_ns < 50_000, "there is nothing to read yet");
    bench.fill();
    bench.rest();
    assert!(bench.time_ns(Kind::Write, MIB + 512, 512) > 50_000);
    assert!(bench.time_ns(Kind::Write, 2 * MIB, 4096) < 50_000);
    let one_edge_ns = bench.time_ns(Kind::Write, 3 * MIB, 8192 + 512);
    let both_edges_ns = bench.time_ns(Kind::Write, 4 * MIB + 512, 8192);
    assert!(one_edge_ns > 50_000 && both_edges_ns > one_edge_ns);
}
