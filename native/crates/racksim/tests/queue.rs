//! A drive with a queue of its own: the times at which requests are due, and the effects of faults and power cuts.

use racksim::{
    Access, Completion, DriveState, Due, Fault, FaultName, Io, Kind, OnReadError, Persistence,
    Request, Service, Verdict,
};

const SERVICE_NS: u64 = 1000;
const READ: Io = Io {
    kind: Kind::Read,
    offset: 0,
    length: 512,
};

/// Serves one request after the other, each for a microsecond, and cannot read sector 7.
#[derive(Clone, Default)]
struct Fifo {
    queue: Vec<Completion>,
    sanitized: u64,
}

impl Service for Fifo {
    fn submit(&mut self, request: &Request, now_ns: u64) {
        let begins_ns = self.queue.last().map_or(0, |last| last.at_ns).max(now_ns);
        let is_bad = request.io.kind == Kind::Read
            && request.io.offset == 7 * 512
            && request.on_read_error == OnReadError::FailFast;
        self.queue.push(Completion {
            ticket: request.ticket,
            at_ns: begins_ns + SERVICE_NS,
            failed_at: is_bad.then_some(request.io.offset),
        });
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.queue.first().map(|first| first.at_ns)
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        let count = self.queue.partition_point(|one| one.at_ns <= now_ns);
        completions.extend(self.queue.drain(..count));
    }

    fn abort(&mut self, tickets: &[u64], now_ns: u64) {
        self.queue.retain(|one| !tickets.contains(&one.ticket));
        for (turn, one) in (1..).zip(&mut self.queue) {
            one.at_ns = now_ns + turn * SERVICE_NS;
        }
    }

    fn cut_power(&mut self, _now_ns: u64) {
        self.queue.clear();
    }

    fn copy(&self) -> Box<dyn Service> {
        Box::new(self.clone())
    }

    fn sanitize(&mut self, _now_ns: u64) {
        assert!(
            self.queue.is_empty(),
            "sanitized with requests in the queue"
        );
        self.sanitized += 1;
    }

    fn health(&self) -> Vec<(&'static str, u64)> {
        vec![("sanitized", self.sanitized)]
    }
}

fn drive() -> DriveState<u32> {
    DriveState::new(1 << 20, 512, Box::<Fifo>::default())
}

fn submit(drive: &mut DriveState<u32>, payload: u32, now_ns: u64) {
    assert_eq!(drive.begin(&READ), Verdict::Waits);
    drive.submit(&READ, false, OnReadError::Retry, payload, now_ns);
}

fn advance(drive: &mut DriveState<u32>, now_ns: u64) -> Vec<Due<u32>> {
    let mut due = Vec::new();
    drive.advance(now_ns, &mut due);
    due
}

fn stamps(due: &[Due<u32>]) -> Vec<(u32, u64)> {
    due.iter().map(|one| (one.payload, one.at_ns)).collect()
}

#[test]
fn requests_are_due_when_the_model_says_however_late_it_is_asked() {
    let mut drive = drive();
    for payload in 0..3 {
        submit(&mut drive, payload, 100);
    }
    assert_eq!(drive.next_due_ns(), Some(1100));
    assert_eq!(stamps(&advance(&mut drive, 1099)), []);
    let due = advance(&mut drive, 9999);
    assert_eq!(stamps(&due), [(0, 1100), (1, 2100), (2, 3100)]);
    assert_eq!(drive.next_due_ns(), None);
    assert_eq!(drive.counters().reads, 0);
    for one in due {
        assert_eq!(drive.conclude(&READ, one.failed_at), Verdict::Done);
    }
    assert_eq!(drive.counters().reads, 3);
}

#[test]
fn time_that_goes_back_is_taken_for_the_latest() {
    let mut drive = drive();
    advance(&mut drive, 5000);
    submit(&mut drive, 1, 4000);
    assert_eq!(stamps(&advance(&mut drive, 9999)), [(1, 6000)]);
}

#[test]
fn what_is_withdrawn_never_comes_back_and_costs_the_drive_its_time() {
    let mut drive = drive();
    for payload in 1..=4 {
        submit(&mut drive, payload, 0);
    }
    assert_eq!(drive.withdraw(|payload| payload % 2 == 1), [1, 3]);
    assert_eq!(stamps(&advance(&mut drive, 9999)), [(2, 2000), (4, 4000)]);
    assert_eq!(drive.withdraw(|_| true), [] as [u32; 0]);
}

#[test]
fn what_nobody_waits_for_any_more_costs_the_drive_no_time() {
    let mut drive = drive();
    for payload in 1..=4 {
        submit(&mut drive, payload, 0);
    }
    drive.abort(|payload| payload % 2 == 1, 0);
    assert_eq!(stamps(&advance(&mut drive, 9999)), [(2, 1000), (4, 2000)]);
}

#[test]
fn a_power_cut_loses_the_queue_and_what_comes_later_is_served() {
    let mut drive = drive();
    submit(&mut drive, 1, 0);
    drive
        .add_fault(1, None, &slow(None, Some(9.0)))
        .expect("a drive that takes time can be slow");
    submit(&mut drive, 2, 0);
    assert_eq!(stamps(&advance(&mut drive, 2500)), []);
    assert_eq!(drive.cut_power(2500), [1, 2]);
    assert_eq!(drive.next_due_ns(), None);
    drive.clear_faults(FaultName::All);
    submit(&mut drive, 3, 3000);
    assert_eq!(stamps(&advance(&mut drive, 9999)), [(3, 4000)]);
}

fn slow(extra_us: Option<f64>, factor: Option<f64>) -> Fault {
    Fault::Slow { extra_us, factor }
}

#[test]
fn a_slow_drive_multiplies_the_time_a_request_spent_there_or_adds_to_it() {
    let mut drive = drive();
    drive.add_fault(1, None, &slow(None, Some(3.0))).unwrap();
    submit(&mut drive, 1, 100);
    submit(&mut drive, 2, 100);
    assert_eq!(stamps(&advance(&mut drive, 3100)), [(1, 3100)]);
    assert_eq!(drive.next_due_ns(), Some(6100));
    drive.add_fault(2, None, &slow(Some(5.0), None)).unwrap();
    submit(&mut drive, 3, 7000);
    assert_eq!(
        stamps(&advance(&mut drive, 99_999)),
        [(2, 6100), (3, 15_000)]
    );
}

#[test]
fn a_sector_that_cannot_be_read_fails_the_request_at_once_where_the_host_wants_that() {
    let mut drive = drive();
    let bad = Io {
        offset: 7 * 512,
        ..READ
    };
    drive.submit(&bad, false, OnReadError::Retry, 1, 0);
    drive.submit(&bad, false, OnReadError::FailFast, 2, 0);
    let verdicts: Vec<Verdict> = advance(&mut drive, 9999)
        .iter()
        .map(|one| drive.conclude(&bad, one.failed_at))
        .collect();
    assert_eq!(verdicts, [Verdict::Done, Verdict::Failed { lba: 7 }]);
    let counters = drive.counters();
    assert_eq!((counters.reads, counters.media_errors), (1, 1));
}

#[test]
fn faults_that_come_while_a_request_is_worked_on_decide_what_becomes_of_it() {
    let mut drive = drive();
    let media = Fault::MediaError {
        lba: 0,
        sectors: 1,
        mode: Persistence::Once,
        times: None,
        on: Access::Read,
    };
    submit(&mut drive, 1, 0);
    drive.add_fault(1, None, &media).unwrap();
    drive.add_fault(2, None, &Fault::Hang {}).unwrap();
    assert_eq!(drive.conclude(&READ, None), Verdict::Hangs);
    drive.clear_faults(FaultName::Id(2));
    assert_eq!(drive.conclude(&READ, None), Verdict::Failed { lba: 0 });
    drive.add_fault(3, None, &Fault::Dead {}).unwrap();
    assert_eq!(drive.conclude(&READ, None), Verdict::Failed { lba: 0 });
    drive.clear_faults(FaultName::All);
    assert_eq!(drive.conclude(&READ, None), Verdict::Done);
}

#[test]
fn a_drive_that_erases_itself_drops_its_queue_and_answers_nothing_until_it_is_done() {
    let mut drive = drive();
    let until_rewritten = Fault::MediaError {
        lba: 0,
        sectors: 9,
        mode: Persistence::UntilRewritten,
        times: None,
        on: Access::Read,
    };
    drive.add_fault(1, None, &until_rewritten).unwrap();
    submit(&mut drive, 1, 0);
    assert_eq!(drive.begin_sanitize(10), Some(vec![1]));
    assert_eq!(drive.begin(&READ), Verdict::Hangs);
    assert_eq!(drive.begin_sanitize(11), None);
    drive.finish_sanitize(20);
    assert_eq!(drive.health(), [("sanitized", 1)]);
    assert_eq!(drive.counters().sanitizes, 1);
    assert_eq!(drive.clear_faults(FaultName::All), []);
    submit(&mut drive, 2, 30);
    assert_eq!(stamps(&advance(&mut drive, 9999)), [(2, 1030)]);
    drive.add_fault(2, None, &Fault::Dead {}).unwrap();
    assert_eq!(drive.begin_sanitize(9999), None);
}
