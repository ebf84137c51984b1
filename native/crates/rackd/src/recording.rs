//! Recordings of a drive's requests and their times, for judging the timing of an initiator.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use racksim::{Io, Kind};
use realtime::now_ns;
use serde_json::{json, Value};

/// Maximum number of records: 64 MB.
const MAX_RECORDS: usize = 2_000_000;
/// Maximum number of records in one answer, which keeps it under 1 MiB.
const PAGE_RECORDS: usize = 10_000;

/// A request that a drive answered.
#[derive(Clone, Copy)]
struct Answered {
    arrived_ns: u64,
    answered_ns: u64,
    offset: u64,
    length: u32,
    kind: Kind,
}

#[derive(Default)]
struct Kept {
    answered: Vec<Answered>,
    /// Requests that arrived after the limit was reached.
    lost: u64,
}

/// The recording of one drive's requests.
#[derive(Default)]
pub struct Recording {
    is_on: AtomicBool,
    kept: Mutex<Kept>,
}

impl Recording {
    /// Start a new recording, or stop; records stay until the next start.
    pub fn switch(&self, on: bool) {
        let mut kept = self.kept.lock();
        if on {
            *kept = Kept {
                // Growing it later would block the drive for the time of a copy.
                answered: Vec::with_capacity(MAX_RECORDS),
                lost: 0,
            };
        }
        self.is_on.store(on, Ordering::Relaxed);
    }

    /// Record a request that arrived at `arrived_ns` and is answered now.
    pub fn note(&self, io: &Io, arrived_ns: u64) {
        if !self.is_on.load(Ordering::Relaxed) {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.answered.len() == MAX_RECORDS {
            kept.lost += 1;
            return;
        }
        kept.answered.push(Answered {
            arrived_ns,
            answered_ns: now_ns(),
            offset: io.offset,
            length: io.length as u32,
            kind: io.kind,
        });
    }

    /// A page of the records, in the order of the answers, from number `from` on.
    pub fn page(&self, from: usize) -> Value {
        let kept = self.kept.lock();
        let (recorded, lost) = (kept.answered.len(), kept.lost);
        let page = kept.answered.iter().skip(from).take(PAGE_RECORDS);
        let rows: Vec<_> = page
            .map(|one| {
                (
                    one.arrived_ns,
                    one.kind,
                    one.offset,
                    one.length,
                    one.answered_ns,
                )
            })
            .collect();
        drop(kept);
        json!({"requests": rows, "recorded": recorded, "lost": lost})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: u64) -> Io {
        Io {
            kind: Kind::Read,
            offset,
            length: 512,
        }
    }

    #[test]
    fn nothing_is_kept_until_it_is_on_and_everything_until_it_begins_anew() {
        let recording = Recording::default();
        recording.note(&read(1), 0);
        recording.switch(true);
        recording.note(&read(2), 5);
        recording.switch(false);
        recording.note(&read(3), 0);
        let page = recording.page(0);
        assert_eq!(page["recorded"], 1);
        assert_eq!(page["requests"][0][0], 5);
        assert_eq!(page["requests"][0][1], "read");
        assert_eq!(page["requests"][0][2], 2);
        recording.switch(true);
        assert_eq!(recording.page(0)["recorded"], 0);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let recording = Recording::default();
        recording.switch(true);
        for offset in 0..MAX_RECORDS as u64 + 3 {
            recording.note(&read(offset), 0);
        }
        let last = recording.page(MAX_RECORDS - 1);
        assert_eq!(
            (&last["recorded"], &last["lost"]),
            (&json!(MAX_RECORDS), &json!(3))
        );
        assert_eq!(last["requests"].as_array().unwrap().len(), 1);
        assert_eq!(last["requests"][0][2], MAX_RECORDS - 1);
    }

    #[test]
    fn a_full_page_fits_into_a_line() {
        let recording = Recording::default();
        recording.switch(true);
        let io = Io {
            kind: Kind::WriteZeroes,
            offset: 1 << 59,
            length: 1 << 31,
        };
        for _ in 0..PAGE_RECORDS {
            recording.note(&io, u64::MAX >> 4);
        }
        assert!(recording.page(0).to_string().len() < 1 << 20);
    }
}
