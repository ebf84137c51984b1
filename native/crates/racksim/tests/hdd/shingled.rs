//! Shingled recording.

use racksim::{Kind, Service};

use crate::disk::{shingled, Disk, GIB, KIB, MIB, MS};

#[test]
fn random_writes_fall_off_a_cliff_once_the_media_cache_is_full() {
    let mut disk = Disk::new(shingled(), 8 * GIB);
    let before = disk.random(Kind::Write, 64 * KIB, 4, 400);
    disk.random(Kind::Write, 64 * KIB, 4, 400);
    let after = disk.random(Kind::Write, 64 * KIB, 4, 400);
    assert!(before.iops > 100.0, "{before:?}");
    assert!(after.iops < 15.0, "{after:?}");
    assert!(after.longest_ns > 300 * MS, "{after:?}");
}

#[test]
fn sequential_writes_go_to_their_bands_fresh_or_not() {
    let mut disk = Disk::new(shingled(), 2 * GIB);
    for pass in 0..3 {
        let measured = disk.sequential(Kind::Write, 128 * KIB, 4, 0, 2 * GIB / (128 * KIB));
        assert!(measured.mb_s > 110.0, "pass {pass}: {measured:?}");
    }
}

#[test]
fn an_idle_drive_empties_its_media_cache() {
    let mut disk = Disk::new(shingled(), 8 * GIB);
    disk.random(Kind::Write, 64 * KIB, 4, 900);
    let mut due_ns = 0;
    while let Some(next_ns) = disk.hdd.next_due_ns() {
        due_ns = next_ns;
        disk.hdd.advance(due_ns, &mut Vec::new());
    }
    disk.now_ns = due_ns;
    let again = disk.random(Kind::Write, 64 * KIB, 4, 400);
    assert!(again.iops > 100.0, "{again:?}");
}

#[test]
fn cached_data_is_read_where_it_is() {
    let mut disk = Disk::new(shingled(), 8 * GIB);
    disk.sequential(Kind::Write, MIB, 1, 4 * GIB, 240);
    disk.latency_ns(Kind::Flush, 0, 0);
    let whole = disk.sequential(Kind::Read, MIB, 1, 4 * GIB, 200);
    for block in 0..100 {
        disk.latency_ns(Kind::Write, 4 * GIB + (2 * block + 1) * MIB, 4 * KIB);
    }
    disk.latency_ns(Kind::Flush, 0, 0);
    let fragmented = disk.sequential(Kind::Read, MIB, 1, 4 * GIB, 200);
    assert!(
        fragmented.mb_s < 0.5 * whole.mb_s,
        "{fragmented:?} {whole:?}"
    );
}

#[test]
fn sanitizing_forgets_what_was_written() {
    let mut disk = Disk::new(shingled(), 8 * GIB);
    disk.random(Kind::Write, 64 * KIB, 4, 900);
    disk.hdd.sanitize(disk.now_ns);
    assert_eq!(disk.hdd.next_due_ns(), None);
    let again = disk.random(Kind::Write, 64 * KIB, 4, 400);
    assert!(again.iops > 100.0, "{again:?}");
}

#[test]
fn what_is_on_the_media_stays_there_without_power() {
    let mut disk = Disk::new(shingled(), 8 * GIB);
    disk.random(Kind::Write, 64 * KIB, 4, 900);
    disk.hdd.cut_power(disk.now_ns);
    // The write cache has lost its data, and takes some; the media cache is as full as it was.
    disk.random(Kind::Write, 64 * KIB, 4, 280);
    let again = disk.random(Kind::Write, 64 * KIB, 4, 100);
    assert!(again.iops < 25.0, "{again:?}");
}
