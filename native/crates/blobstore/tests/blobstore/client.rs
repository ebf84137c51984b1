//! Replicated I/O: credits, steering, failures.

use std::collections::BTreeMap;

use blobstore::{Client, ClientOptions, DriveId, Extent, Io, IoFailure, Steering, PASSED_OVER};
use proptest::prelude::*;
use schedulers::{Operation, Outcome, Priority};

use crate::bench::cases;

const DRIVES: u32 = 4;

#[derive(Debug, Clone)]
enum Step {
    Read(u32, u32),
    Write(u32, u32),
    Complete(prop::sample::Index, bool, u32),
    Credit(u32, u32),
    Down(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pair = || (0..DRIVES, 1..DRIVES);
    let step = prop_oneof![
        8 => pair().prop_map(|(a, step)| Step::Read(a, (a + step) % DRIVES)),
        4 => pair().prop_map(|(a, step)| Step::Write(a, (a + step) % DRIVES)),
        12 => (any::<prop::sample::Index>(), prop::bool::weighted(0.1), 0_u32..9)
            .prop_map(|(which, fails, credit)| Step::Complete(which, fails, credit)),
        2 => (0..DRIVES, 0_u32..9).prop_map(|(drive, credit)| Step::Credit(drive, credit)),
        1 => (0..DRIVES).prop_map(Step::Down),
    ];
    prop::collection::vec(step, 1..200)
}

fn blob(a: u32, b: u32) -> [Extent; 2] {
    [a, b].map(|drive| Extent {
        drive: DriveId(drive),
        offset: 1 << 20,
    })
}

/// A client, and what is known of it from outside.
struct Watched {
    client: Client,
    at_drives: Vec<Io>,
    credits: BTreeMap<u32, u32>,
    /// Drives that each write has gone to and that have completed it, and those that each read was tried at.
    sent: BTreeMap<u64, Vec<u32>>,
    asked: BTreeMap<u64, (Operation, [u32; 2])>,
    failed: BTreeMap<u64, Vec<u32>>,
    down: Vec<u32>,
}

impl Watched {
    fn new() -> Self {
        Self {
            client: Client::new(ClientOptions::default(), DRIVES as usize),
            at_drives: Vec::new(),
            credits: BTreeMap::new(),
            sent: BTreeMap::new(),
            asked: BTreeMap::new(),
            failed: BTreeMap::new(),
            down: Vec::new(),
        }
    }

    fn take(&mut self, tag: u64, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Read(a, b) => {
                let loads = [a, b].map(|drive| self.client.load(DriveId(drive)));
                let before = self.client.reads_by_drive();
                self.asked.insert(tag, (Operation::Read, [a, b]));
                self.client
                    .read(tag, &blob(a, b), 4096, 4096, Priority::High);
                let after = self.client.reads_by_drive();
                let chosen = (0..DRIVES).find(|&one| after[one as usize] > before[one as usize]);
                let unused = loads.map(|(credit, outstanding, waiting)| {
                    credit.map(|credit| i64::from(credit) - i64::from(outstanding) - waiting as i64)
                });
                match (self.down.contains(&a), self.down.contains(&b), unused) {
                    (true, true, _) => prop_assert_eq!(chosen, None),
                    (true, false, _) => prop_assert_eq!(chosen, Some(b)),
                    (false, true, _) => prop_assert_eq!(chosen, Some(a)),
                    (false, false, [Some(first), Some(second)]) => {
                        let most = if second > first { b } else { a };
                        prop_assert_eq!(chosen, Some(most), "{:?}", loads);
                    }
                    _ => prop_assert_eq!(chosen, Some(a), "a drive that shows no credit"),
                }
            }
            Step::Write(a, b) => {
                self.asked.insert(tag, (Operation::Write, [a, b]));
                self.client.write(tag, &blob(a, b), 0, 8192, Priority::Low);
            }
            Step::Complete(ref which, fails, credit) if !self.at_drives.is_empty() => {
                let io = self
                    .at_drives
                    .swap_remove(which.index(self.at_drives.len()));
                self.credits.insert(io.drive.0, credit.max(1));
                if fails {
                    self.failed.entry(io.tag).or_default().push(io.drive.0);
                }
                let outcome = if fails {
                    Outcome::Failed
                } else {
                    Outcome::Succeeded
                };
                self.client.complete(io.id, outcome, Some(credit));
            }
            Step::Credit(drive, credit) => {
                self.credits.insert(drive, credit.max(1));
                self.client.set_credit(DriveId(drive), credit);
            }
            Step::Down(drive) if self.down.len() < 2 => {
                self.down.push(drive);
                self.client.fail_drive(DriveId(drive));
            }
            Step::Complete(..) | Step::Down(_) => {}
        }
        self.send()
    }

    fn send(&mut self) -> Result<(), TestCaseError> {
        while let Some(io) = self.client.next_io() {
            prop_assert!(!self.down.contains(&io.drive.0));
            self.sent.entry(io.tag).or_default().push(io.drive.0);
            self.at_drives.push(io);
            let there = self.at_drives.iter().filter(|one| one.drive == io.drive);
            if let Some(&credit) = self.credits.get(&io.drive.0) {
                prop_assert!(there.count() <= credit as usize, "more than the credit");
            }
        }
        Ok(())
    }

    /// Complete everything; every request ends once, and has done what it promises.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        while let Some(io) = self.at_drives.pop() {
            self.client.complete(io.id, Outcome::Succeeded, None);
            self.send()?;
        }
        let mut ended = Vec::new();
        self.client.take_ended(&mut ended);
        prop_assert_eq!(ended.len(), self.asked.len());
        for one in ended {
            let (operation, drives) = self.asked.remove(&one.tag).expect("it ends once");
            let sent = self.sent.remove(&one.tag).unwrap_or_default();
            let failed = self.failed.remove(&one.tag).unwrap_or_default();
            match (operation, one.result) {
                (Operation::Write, Ok(())) => {
                    let mut sent = sent;
                    let mut all = drives;
                    sent.sort_unstable();
                    all.sort_unstable();
                    prop_assert_eq!(sent, all.to_vec(), "every replica is written");
                    prop_assert!(failed.is_empty());
                }
                (Operation::Read, Ok(())) => {
                    let last = sent.last().expect("it was sent");
                    prop_assert!(drives.contains(last) && !failed.contains(last));
                }
                (Operation::Write, Err(IoFailure::Write(which))) => {
                    let is_bad = |drive| failed.contains(drive) || self.down.contains(drive);
                    prop_assert!(!which.is_empty() && which.iter().all(is_bad));
                }
                (Operation::Read, Err(IoFailure::Read(which))) => {
                    let is_bad = |drive| failed.contains(drive) || self.down.contains(drive);
                    prop_assert_eq!(which.len(), 2);
                    prop_assert!(which.iter().all(is_bad));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn credit_is_kept_reads_are_steered_and_writes_reach_all(steps in steps()) {
        let mut watched = Watched::new();
        for (step, tag) in steps.iter().zip(0..) {
            watched.take(tag, step)?;
        }
        watched.drain()?;
    }
}

fn sent(client: &mut Client) -> Vec<Io> {
    std::iter::from_fn(|| client.next_io()).collect()
}

#[test]
fn without_a_limiter_everything_goes_at_once_and_without_steering_to_the_first() {
    for (limiter, expected) in [(true, 2), (false, 5)] {
        let options = ClientOptions {
            limiter,
            steering: Steering::First,
        };
        let mut client = Client::new(options, 2);
        client.set_credit(DriveId(0), 2);
        client.set_credit(DriveId(1), 100);
        for tag in 0..5 {
            client.read(tag, &blob(0, 1), 0, 4096, Priority::default());
        }
        let sent = sent(&mut client);
        assert_eq!(sent.len(), expected);
        assert!(sent.iter().all(|io| io.drive == DriveId(0)));
        assert_eq!(client.reads_by_replica(), [5]);
    }
}

#[test]
fn a_drive_that_is_idle_is_tried_again_so_that_it_can_tell_of_more_credit() {
    let mut client = Client::new(ClientOptions::default(), 2);
    client.set_credit(DriveId(0), 100);
    client.set_credit(DriveId(1), 1);
    let chosen = |client: &mut Client, credit| {
        client.read(0, &blob(0, 1), 0, 4096, Priority::default());
        let [io] = sent(client)[..] else {
            panic!("one read, one request");
        };
        client.complete(io.id, Outcome::Succeeded, Some(credit));
        io.drive
    };
    for _ in 0..2 {
        for _ in 0..PASSED_OVER {
            assert_eq!(chosen(&mut client, 100), DriveId(0));
        }
        assert_eq!(chosen(&mut client, 1), DriveId(1));
    }
    client.write(1, &blob(1, 1)[..1], 0, 4096, Priority::default());
    let busy = sent(&mut client);
    for _ in 0..=PASSED_OVER {
        assert_eq!(
            chosen(&mut client, 100),
            DriveId(0),
            "the other is not idle"
        );
    }
    client.complete(busy[0].id, Outcome::Succeeded, None);
    assert_eq!(chosen(&mut client, 200), DriveId(1));
    assert_eq!(
        chosen(&mut client, 200),
        DriveId(1),
        "it has told of more credit"
    );
}

#[test]
fn a_read_goes_on_at_the_other_replica_and_a_write_fails_when_a_drive_is_lost() {
    let mut client = Client::new(ClientOptions::default(), 2);
    client.read(1, &blob(0, 1), 0, 4096, Priority::default());
    client.write(2, &blob(0, 1), 0, 4096, Priority::default());
    let first = sent(&mut client);
    assert_eq!(first.len(), 3);
    client.fail_drive(DriveId(0));
    for io in first {
        let lost = io.drive == DriveId(0);
        let outcome = if lost {
            Outcome::Failed
        } else {
            Outcome::Succeeded
        };
        client.complete(io.id, outcome, None);
    }
    let again = sent(&mut client);
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].drive, again[0].tag), (DriveId(1), 1));
    client.complete(again[0].id, Outcome::Succeeded, None);
    let mut ended = Vec::new();
    client.take_ended(&mut ended);
    let result = |tag| {
        ended
            .iter()
            .find(|one| one.tag == tag)
            .unwrap()
            .result
            .clone()
    };
    assert_eq!(result(1), Ok(()));
    assert_eq!(result(2), Err(IoFailure::Write(vec![0])));
    client.write(3, &blob(0, 1), 0, 4096, Priority::default());
    assert_eq!(
        sent(&mut client).len(),
        1,
        "the other replica is written all the same"
    );
}
