//! The answers of a drive.

use racksim::{
    Access, DriveState, Fault, FaultError, FaultName, Io, Kind, OnReadError, Persistence, Timing,
    Verdict,
};

const SECTORS: u64 = 1000;

/// An ideal drive whose requests carry a number.
fn drive() -> DriveState<u32> {
    let service = Timing::Ideal {}.start(SECTORS * 512, 512, 1);
    DriveState::new(SECTORS * 512, 512, service)
}

fn io(kind: Kind, lba: u64, sectors: u64) -> Io {
    Io {
        kind,
        offset: lba * 512,
        length: sectors * 512,
    }
}

fn bad(lba: u64, sectors: u64, mode: Persistence, times: Option<u64>, on: Access) -> Fault {
    Fault::MediaError {
        lba,
        sectors,
        mode,
        times,
        on,
    }
}

const DONE: Verdict = Verdict::Done;

fn failed(lba: u64) -> Verdict {
    Verdict::Failed { lba }
}

#[test]
fn an_ideal_drive_is_done_at_once_and_counts() {
    let mut drive = drive();
    for kind in [
        Kind::Read,
        Kind::Write,
        Kind::WriteZeroes,
        Kind::Trim,
        Kind::Flush,
    ] {
        assert_eq!(drive.begin(&io(kind, 1, 2)), DONE);
    }
    let counters = drive.counters();
    assert_eq!((counters.reads, counters.bytes_read), (1, 1024));
    assert_eq!((counters.writes, counters.bytes_written), (2, 2048));
    assert_eq!(
        (counters.trims, counters.flushes, counters.media_errors),
        (1, 1, 0)
    );
}

#[test]
fn the_first_bad_sector_of_a_request_is_blamed() {
    let mut drive = drive();
    drive
        .add_fault(
            1,
            None,
            &bad(10, 5, Persistence::Times, Some(2), Access::Both),
        )
        .unwrap();
    assert_eq!(drive.begin(&io(Kind::Read, 5, 5)), DONE);
    assert_eq!(drive.begin(&io(Kind::Read, 15, 1)), DONE);
    assert_eq!(drive.begin(&io(Kind::Read, 5, 6)), failed(10));
    let one_byte = Io {
        kind: Kind::Write,
        offset: 15 * 512 - 1,
        length: 1,
    };
    assert_eq!(drive.begin(&one_byte), failed(14));
    assert_eq!(drive.begin(&io(Kind::Read, 10, 5)), DONE);
}

#[test]
fn a_write_heals_what_it_covers_in_the_middle_of_a_bad_range() {
    let mut drive = drive();
    drive
        .add_fault(
            1,
            None,
            &bad(10, 9, Persistence::UntilRewritten, None, Access::Read),
        )
        .unwrap();
    assert_eq!(drive.begin(&io(Kind::Write, 13, 3)), DONE);
    let failing: Vec<u64> = (9..20)
        .filter(|&lba| drive.begin(&io(Kind::Read, lba, 1)) != DONE)
        .collect();
    assert_eq!(failing, [10, 11, 12, 16, 17, 18]);
    assert_eq!(drive.begin(&io(Kind::Write, 0, 100)), DONE);
    assert_eq!(drive.begin(&io(Kind::Read, 0, 100)), DONE);
    assert!(
        drive.clear_faults(FaultName::All).is_empty(),
        "a healed fault is gone"
    );
}

#[test]
fn a_write_that_fails_heals_nothing() {
    let mut drive = drive();
    let fault = bad(10, 1, Persistence::UntilRewritten, None, Access::Both);
    drive.add_fault(1, None, &fault).unwrap();
    for kind in [Kind::Write, Kind::WriteZeroes, Kind::Read] {
        assert_eq!(drive.begin(&io(kind, 10, 1)), failed(10));
    }
    assert_eq!(drive.begin(&io(Kind::Trim, 10, 1)), DONE);
    assert_eq!(drive.clear_faults(FaultName::All).len(), 1);
}

#[test]
fn drive_wide_faults_rank_hang_dead_slow() {
    let mut drive = drive();
    let read = io(Kind::Read, 0, 1);
    drive.add_fault(1, None, &slow_by_us(2.5)).unwrap();
    assert_eq!(drive.begin(&read), Verdict::Waits);
    drive.add_fault(2, None, &Fault::Dead {}).unwrap();
    assert_eq!(drive.begin(&read), failed(0));
    drive.add_fault(3, None, &Fault::Hang {}).unwrap();
    assert_eq!(drive.begin(&read), Verdict::Hangs);
    assert_eq!(drive.clear_faults(FaultName::Id(3)).len(), 1);
    assert_eq!(drive.clear_faults(FaultName::All).len(), 2);
    assert_eq!(drive.begin(&read), DONE);
}

fn slow_by_us(extra_us: f64) -> Fault {
    Fault::Slow {
        extra_us: Some(extra_us),
        factor: None,
    }
}

#[test]
fn a_slow_drive_answers_later() {
    let mut drive = drive();
    let read = io(Kind::Read, 0, 1);
    let mut due = Vec::new();
    drive.add_fault(1, None, &slow_by_us(2.5)).unwrap();
    drive.add_fault(2, None, &slow_by_us(0.5)).unwrap();
    drive.submit(&read, false, OnReadError::Retry, 1, 7);
    drive.advance(7, &mut due);
    assert_eq!((due.len(), drive.next_due_ns()), (0, Some(3007)));
    drive.advance(3006, &mut due);
    assert_eq!(due.len(), 0);
    drive.advance(9000, &mut due);
    assert_eq!((due[0].payload, due[0].at_ns), (1, 3007));
    assert_eq!(drive.conclude(&read, due[0].failed_at), DONE);
    assert_eq!((drive.counters().reads, drive.next_due_ns()), (1, None));
}

#[test]
fn corruption_flips_only_its_own_sectors() {
    let mut drive = drive();
    drive
        .add_fault(1, None, &Fault::Corrupt { lba: 2, sectors: 1 })
        .unwrap();
    let mut data = vec![0; 1024];
    drive.corrupt(1000, &mut data);
    let flipped: Vec<usize> = (0..1024).filter(|&at| data[at] == 1).collect();
    assert_eq!(flipped, (24..536).collect::<Vec<_>>());
    for offset in [0, 512, 3 * 512, 9 * 512] {
        let mut elsewhere = vec![0; 512];
        drive.corrupt(offset, &mut elsewhere);
        assert_eq!(elsewhere, vec![0; 512], "read at {offset}");
    }
}

#[test]
fn corruption_by_several_faults_is_that_by_one() {
    let mut drive = drive();
    for (id, lba, sectors) in [(1, 4, 2), (2, 1, 8), (3, 5, 1), (4, 8, 2), (5, 1, 8)] {
        let fault = Fault::Corrupt { lba, sectors };
        drive.add_fault(id, None, &fault).unwrap();
    }
    let mut data = vec![0; 12 * 512];
    drive.corrupt(0, &mut data);
    let flipped: Vec<usize> = (0..12).filter(|&lba| data[lba * 512] == 1).collect();
    assert_eq!(flipped, (1..10).collect::<Vec<_>>());
    assert!(data.chunks(512).all(|sector| sector == [sector[0]; 512]));
}

#[test]
fn faults_that_make_no_sense_are_refused() {
    let malformed = [
        bad(0, 1, Persistence::Times, None, Access::Read),
        bad(0, 1, Persistence::Times, Some(0), Access::Read),
        bad(0, 1, Persistence::Once, Some(1), Access::Read),
        Fault::Slow {
            extra_us: None,
            factor: None,
        },
        Fault::Slow {
            extra_us: Some(-1.0),
            factor: None,
        },
        Fault::Slow {
            extra_us: None,
            factor: Some(4.0),
        },
    ];
    for fault in malformed {
        assert!(
            matches!(
                drive().add_fault(1, None, &fault),
                Err(FaultError::Malformed(_))
            ),
            "{fault:?}"
        );
    }
    let outside = [
        bad(SECTORS, 1, Persistence::Once, None, Access::Read),
        bad(u64::MAX, 2, Persistence::Once, None, Access::Read),
        Fault::Corrupt { lba: 0, sectors: 0 },
        Fault::Corrupt {
            lba: 999,
            sectors: 2,
        },
    ];
    for fault in outside {
        assert!(
            matches!(
                drive().add_fault(1, None, &fault),
                Err(FaultError::OutOfRange(_))
            ),
            "{fault:?}"
        );
    }
}

#[test]
fn faults_are_written_as_they_are_read() {
    for text in [
        r#"{"kind":"media_error","lba":0,"sectors":8,"mode":"times","times":3,"on":"both"}"#,
        r#"{"kind":"media_error","lba":0,"sectors":8,"mode":"until_rewritten","on":"read"}"#,
        r#"{"kind":"slow","extra_us":500.0}"#,
        r#"{"kind":"hang"}"#,
        r#"{"kind":"dead"}"#,
        r#"{"kind":"corrupt","lba":1,"sectors":2}"#,
        r#"{"kind":"crash_on_remap"}"#,
    ] {
        let fault: Fault = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&fault).unwrap(), text);
    }
    assert!(serde_json::from_str::<Fault>(r#"{"kind":"hang","lba":1}"#).is_err());
}
