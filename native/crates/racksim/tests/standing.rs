//! The faults that stand on a drive: their names, and those that change with what happens to it.

use racksim::{
    Access, DriveState, Due, Fault, FaultName, Io, Kind, OnReadError, Persistence, StandingFault,
    Timing, Verdict,
};

const SECTORS: u64 = 1000;
const READ: Io = io(Kind::Read, 10, 1);

/// An ideal drive whose requests carry a number.
fn drive() -> DriveState<u32> {
    let service = Timing::Ideal {}.start(SECTORS * 512, 512, 1);
    DriveState::new(SECTORS * 512, 512, service)
}

const fn io(kind: Kind, lba: u64, sectors: u64) -> Io {
    Io {
        kind,
        offset: lba * 512,
        length: sectors * 512,
    }
}

fn latent(lba: u64, sectors: u64) -> Fault {
    Fault::MediaError {
        lba,
        sectors,
        mode: Persistence::UntilRewritten,
        times: None,
        on: Access::Read,
    }
}

fn ids(faults: &[StandingFault]) -> Vec<u64> {
    faults.iter().map(|fault| fault.fault_id).collect()
}

#[test]
fn a_key_that_stands_keeps_its_fault() {
    let mut drive = drive();
    assert_eq!(drive.add_fault(1, Some("run/1"), &Fault::Hang {}), Ok(1));
    assert_eq!(drive.add_fault(2, Some("run/1"), &Fault::Dead {}), Ok(1));
    assert_eq!(drive.add_fault(3, Some("run/2"), &Fault::Dead {}), Ok(3));
    assert_eq!(drive.add_fault(4, None, &Fault::Dead {}), Ok(4));
    assert_eq!(ids(&drive.faults()), [1, 3, 4]);
    assert_eq!(drive.faults()[0].fault, Fault::Hang {});
    assert_eq!(drive.faults()[0].key.as_deref(), Some("run/1"));
}

#[test]
fn a_fault_is_cleared_by_its_key_once_and_the_key_is_free_again() {
    let mut drive = drive();
    for (id, key) in [(1, Some("a")), (2, Some("b")), (3, None)] {
        drive.add_fault(id, key, &Fault::Hang {}).unwrap();
    }
    assert_eq!(ids(&drive.clear_faults(FaultName::Key("b"))), [2]);
    assert_eq!(ids(&drive.clear_faults(FaultName::Key("b"))), []);
    assert_eq!(drive.add_fault(4, Some("b"), &Fault::Dead {}), Ok(4));
    assert_eq!(ids(&drive.clear_faults(FaultName::All)), [1, 3, 4]);
}

#[test]
fn a_fault_that_used_itself_up_no_longer_stands() {
    let mut drive = drive();
    drive.add_fault(1, Some("a"), &latent(10, 2)).unwrap();
    drive.begin(&io(Kind::Write, 10, 1));
    assert_eq!(drive.faults()[0].fault, latent(10, 2));
    drive.begin(&io(Kind::Write, 11, 1));
    assert_eq!(drive.faults(), []);
    assert_eq!(drive.add_fault(2, Some("a"), &latent(10, 2)), Ok(2));
}

#[test]
fn sectors_that_could_not_be_read_are_reallocated_when_they_are_written() {
    let mut drive = drive();
    drive.add_fault(1, None, &latent(10, 4)).unwrap();
    assert_eq!(drive.begin(&READ), Verdict::Failed { lba: 10 });
    drive.begin(&io(Kind::Write, 5, 6));
    drive.begin(&io(Kind::WriteZeroes, 13, 9));
    drive.begin(&io(Kind::Write, 10, 1));
    let counters = drive.counters();
    assert_eq!(
        (counters.media_errors, counters.reallocated_sectors),
        (1, 2)
    );
    drive.begin_sanitize(0).unwrap();
    drive.finish_sanitize(0);
    assert_eq!(drive.counters().reallocated_sectors, 4);
}

#[test]
fn a_sector_that_is_written_in_part_stays_unreadable() {
    let mut drive = drive();
    drive.add_fault(1, None, &latent(10, 3)).unwrap();
    for (offset, length) in [(5120, 511), (5121, 511), (5130, 4), (5632, 0), (5119, 1)] {
        let part = Io {
            kind: Kind::Write,
            offset,
            length,
        };
        assert_eq!(drive.begin(&part), Verdict::Done);
        assert_eq!(drive.begin(&READ), Verdict::Failed { lba: 10 });
    }
    let parts_of_two = Io {
        kind: Kind::WriteZeroes,
        offset: 5130,
        length: 1400,
    };
    assert_eq!(drive.begin(&parts_of_two), Verdict::Done);
    assert_eq!(drive.begin(&io(Kind::Read, 11, 1)), Verdict::Done);
    assert_eq!(drive.begin(&READ), Verdict::Failed { lba: 10 });
    assert_eq!(
        drive.begin(&io(Kind::Read, 12, 1)),
        Verdict::Failed { lba: 12 }
    );
    assert_eq!(drive.counters().reallocated_sectors, 1);
}

#[test]
fn a_sector_of_several_faults_is_reallocated_once() {
    let mut drive = drive();
    for (id, lba, sectors) in [(1, 10, 4), (2, 12, 4), (3, 12, 1)] {
        drive.add_fault(id, None, &latent(lba, sectors)).unwrap();
    }
    assert_eq!(drive.begin(&io(Kind::Write, 12, 1)), Verdict::Done);
    assert_eq!(drive.counters().reallocated_sectors, 1);
    assert_eq!(drive.begin(&io(Kind::Write, 8, 10)), Verdict::Done);
    assert_eq!(drive.counters().reallocated_sectors, 6);
    assert!(drive.faults().is_empty());
}

#[test]
fn a_write_that_fails_reallocates_nothing() {
    let mut drive = drive();
    let on_writes = Fault::MediaError {
        lba: 11,
        sectors: 1,
        mode: Persistence::Once,
        times: None,
        on: Access::Write,
    };
    drive.add_fault(1, None, &latent(10, 1)).unwrap();
    drive.add_fault(2, None, &on_writes).unwrap();
    let write = io(Kind::Write, 10, 2);
    assert_eq!(drive.begin(&write), Verdict::Failed { lba: 11 });
    assert_eq!(drive.counters().reallocated_sectors, 0);
    assert_eq!(drive.begin(&READ), Verdict::Failed { lba: 10 });
    assert_eq!(drive.begin(&write), Verdict::Done);
    assert_eq!(drive.counters().reallocated_sectors, 1);
}

#[test]
fn firmware_that_crashes_on_a_remap_hangs_until_it_loses_power_and_crashes_again() {
    let mut drive = drive();
    drive.add_fault(7, None, &Fault::CrashOnRemap {}).unwrap();
    for _ in 0..2 {
        assert_eq!(drive.begin(&READ), Verdict::Done);
        assert!(!drive.faults()[0].crashed);
        assert_eq!(drive.lose_link(), [7]);
        assert!(drive.lose_link().is_empty(), "it has crashed already");
        assert_eq!(drive.begin(&READ), Verdict::Hangs);
        assert!(drive.faults()[0].crashed);
        assert_eq!(drive.begin_sanitize(0), None);
        drive.cut_power(0);
    }
    drive.lose_link();
    drive.clear_faults(FaultName::Id(7));
    assert_eq!(drive.begin(&READ), Verdict::Done);
}

#[test]
fn a_request_in_the_drive_when_its_firmware_crashes_is_not_answered() {
    let mut drive = drive();
    let slow = Fault::Slow {
        extra_us: Some(1.0),
        factor: None,
    };
    drive.add_fault(1, None, &slow).unwrap();
    drive.add_fault(2, None, &Fault::CrashOnRemap {}).unwrap();
    drive.submit(&READ, false, OnReadError::Retry, 1, 0);
    drive.lose_link();
    let mut due: Vec<Due<u32>> = Vec::new();
    drive.advance(1000, &mut due);
    assert_eq!(drive.conclude(&READ, due[0].failed_at), Verdict::Hangs);
}

#[test]
fn a_drive_without_such_a_fault_bears_the_loss_of_its_link() {
    let mut drive = drive();
    drive.add_fault(1, None, &latent(10, 1)).unwrap();
    assert!(drive.lose_link().is_empty());
    assert_eq!(drive.begin(&io(Kind::Read, 0, 1)), Verdict::Done);
}
