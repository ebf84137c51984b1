//! The contract of every [`Service`], checked over random request streams.

use std::collections::{BTreeMap, BTreeSet};

use racksim::{Completion, Io, Kind, OnReadError, Request, Service};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

/// The size of the drives that [`holds`] asks for.
pub const BYTES: u64 = 256 << 20;

/// Their sector.
pub const SECTOR_BYTES: u32 = 512;

const STREAMS: u64 = 12;
const REQUESTS: u64 = 400;
const LARGEST: u64 = 64 << 20;
/// Longer than any request of a stream, and any work a drive does by itself after one, may take.
const LONG_NS: u64 = 3_600_000_000_000;

/// Fail unless the drives that `make` gives for a seed, each of [`BYTES`], keep the contract of [`Service`].
pub fn holds(make: impl Fn(u64) -> Box<dyn Service>) {
    for seed in 0..STREAMS {
        let stream = Stream::random(seed);
        let expected = at_the_end(make(seed), &stream);
        check(&stream, &expected);
        assert_eq!(expected, at_the_end(make(seed), &stream), "a seed, a story");
        assert_eq!(expected, as_asked(make(seed), &stream));
        assert_eq!(expected, too_often(make(seed), &stream));
        assert_eq!(
            copied(make(seed), &stream),
            [expected.clone(), expected.clone()]
        );
        power_cut(make(seed), &stream);
        sanitized(make(seed), &stream);
        aborted(make(seed), &stream);
    }
}

struct Stream {
    requests: Vec<(u64, Request)>,
}

impl Stream {
    /// Bursts of everything a host can ask for, with pauses between them.
    fn random(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut below = move |n: u64| Uniform::new(0, n).unwrap().sample(&mut rng);
        let sectors = BYTES / u64::from(SECTOR_BYTES);
        let mut now_ns = 0;
        let mut next = 0;
        let requests = (1..=REQUESTS)
            .map(|ticket| {
                now_ns += match below(20) {
                    0 => below(500_000_000),
                    1..=9 => below(2_000_000),
                    _ => 0,
                };
                let kind = match below(40) {
                    0 => Kind::Flush,
                    1 => Kind::Trim,
                    2 => Kind::WriteZeroes,
                    3..=20 => Kind::Write,
                    _ => Kind::Read,
                };
                let wanted = match below(80) {
                    0 => 0,
                    1 => LARGEST,
                    2..=40 => 4096,
                    _ => (1 + below(512)) * u64::from(SECTOR_BYTES),
                };
                let offset = match below(8) {
                    0 => BYTES - wanted,
                    1..=3 => next,
                    _ => below(sectors) * u64::from(SECTOR_BYTES),
                };
                let length = wanted.min(BYTES - offset);
                next = (offset + length) % BYTES;
                let io = match kind {
                    Kind::Flush => Io {
                        kind,
                        offset: 0,
                        length: 0,
                    },
                    _ => Io {
                        kind,
                        offset,
                        length,
                    },
                };
                let on_read_error = match below(2) {
                    0 => OnReadError::Retry,
                    _ => OnReadError::FailFast,
                };
                let fua = kind == Kind::Write && below(8) == 0;
                (
                    now_ns,
                    Request {
                        ticket,
                        io,
                        fua,
                        on_read_error,
                    },
                )
            })
            .collect();
        Self { requests }
    }

    fn last_ns(&self) -> u64 {
        self.requests.last().unwrap().0
    }
}

/// Each ticket once, in order of time, never before it was asked for; only reads fail, at a sector of theirs.
fn check(stream: &Stream, completions: &[Completion]) {
    let mut open: BTreeMap<_, _> = stream
        .requests
        .iter()
        .map(|(at_ns, request)| (request.ticket, (*at_ns, request)))
        .collect();
    for completion in completions {
        let (submitted_ns, request) = open
            .remove(&completion.ticket)
            .expect("a ticket completes once");
        assert!(
            completion.at_ns >= submitted_ns,
            "{request:?} completes before it was asked for"
        );
        if let Some(failed_at) = completion.failed_at {
            let Io {
                kind,
                offset,
                length,
            } = request.io;
            assert_eq!(
                (kind, request.on_read_error),
                (Kind::Read, OnReadError::FailFast)
            );
            assert!(
                (offset..offset + length).contains(&failed_at),
                "{request:?} fails at {failed_at}"
            );
            assert_eq!(failed_at % u64::from(SECTOR_BYTES), 0);
        }
    }
    assert!(open.is_empty(), "never completed: {:?}", open.keys());
    assert!(completions.is_sorted_by_key(|completion| completion.at_ns));
}

/// Ask once, when all is over.
fn at_the_end(mut drive: Box<dyn Service>, stream: &Stream) -> Vec<Completion> {
    let mut completions = Vec::new();
    for (at_ns, request) in &stream.requests {
        drive.submit(request, *at_ns);
    }
    drive.advance(stream.last_ns() + LONG_NS, &mut completions);
    assert_eq!(drive.next_due_ns(), None, "still busy after an hour");
    completions
}

/// Ask exactly when the drive says that there is something to do.
fn as_asked(mut drive: Box<dyn Service>, stream: &Stream) -> Vec<Completion> {
    let mut completions = Vec::new();
    for (at_ns, request) in &stream.requests {
        serve_until(drive.as_mut(), *at_ns, &mut completions);
        drive.submit(request, *at_ns);
    }
    serve_until(drive.as_mut(), stream.last_ns() + LONG_NS, &mut completions);
    assert_eq!(drive.next_due_ns(), None, "still busy after an hour");
    completions
}

fn serve_until(drive: &mut dyn Service, end_ns: u64, completions: &mut Vec<Completion>) {
    let mut before_ns = 0;
    let mut stuck = 0;
    while let Some(due_ns) = drive.next_due_ns().filter(|&due_ns| due_ns <= end_ns) {
        stuck = if due_ns > before_ns { 0 } else { stuck + 1 };
        assert!(stuck < 100, "due at {due_ns} again and again");
        before_ns = before_ns.max(due_ns);
        let known = completions.len();
        drive.advance(before_ns, completions);
        for completion in &completions[known..] {
            assert!(
                (due_ns..=before_ns).contains(&completion.at_ns),
                "{completion:?} out of an advance to {before_ns}, due at {due_ns}"
            );
        }
    }
}

/// Ask at every request and at moments that mean nothing to the drive, twice.
fn too_often(mut drive: Box<dyn Service>, stream: &Stream) -> Vec<Completion> {
    let mut completions = Vec::new();
    let mut now_ns = 0;
    for (at_ns, request) in &stream.requests {
        while now_ns < *at_ns {
            now_ns = (now_ns + 777_777).min(*at_ns);
            drive.advance(now_ns, &mut completions);
        }
        drive.submit(request, *at_ns);
        drive.advance(now_ns, &mut completions);
        let known = completions.len();
        drive.advance(now_ns, &mut completions);
        assert_eq!(known, completions.len(), "asked twice, answered twice");
        assert!(completions
            .last()
            .is_none_or(|completion| completion.at_ns <= now_ns));
    }
    drive.advance(now_ns + LONG_NS, &mut completions);
    completions
}

/// A drive and its copy from the middle of a stream, which go on without each other.
fn copied(mut drive: Box<dyn Service>, stream: &Stream) -> [Vec<Completion>; 2] {
    let (before, after) = stream.requests.split_at(stream.requests.len() / 2);
    for (at_ns, request) in before {
        drive.submit(request, *at_ns);
    }
    let after = Stream {
        requests: after.to_vec(),
    };
    let copy = drive.copy();
    [drive, copy].map(|one| at_the_end(one, &after))
}

/// Nothing submitted before the cut completes after it, and what comes later does.
fn power_cut(mut drive: Box<dyn Service>, stream: &Stream) {
    let mut completions = Vec::new();
    let (before, after) = stream.requests.split_at(stream.requests.len() / 2);
    for (at_ns, request) in before {
        drive.submit(request, *at_ns);
    }
    let cut_ns = before.last().unwrap().0;
    drive.advance(cut_ns, &mut completions);
    drive.cut_power(cut_ns);
    assert_eq!(drive.next_due_ns(), None, "busy without power");
    completions.clear();
    let later: Vec<_> = after
        .iter()
        .map(|(at_ns, request)| (at_ns + LONG_NS, *request))
        .collect();
    for (at_ns, request) in &later {
        drive.submit(request, *at_ns);
    }
    let later = Stream { requests: later };
    drive.advance(later.last_ns() + LONG_NS, &mut completions);
    check(&later, &completions);
}

/// Requests that are not aborted complete once all the same, aborted ones once at most; the drive comes to rest.
fn aborted(mut drive: Box<dyn Service>, stream: &Stream) {
    let mut completions = Vec::new();
    let is_aborted = |request: &Request| request.ticket % 3 != 0;
    for (number, (at_ns, request)) in stream.requests.iter().enumerate() {
        drive.submit(request, *at_ns);
        if number % 50 == 49 {
            let known = &stream.requests[..=number];
            let tickets: Vec<u64> = known
                .iter()
                .map(|(_, request)| request)
                .filter(|request| is_aborted(request))
                .map(|request| request.ticket)
                .collect();
            drive.abort(&tickets, *at_ns);
        }
    }
    drive.advance(stream.last_ns() + LONG_NS, &mut completions);
    assert_eq!(drive.next_due_ns(), None, "still busy after an hour");
    let completed: BTreeSet<u64> = completions.iter().map(|one| one.ticket).collect();
    assert_eq!(
        completed.len(),
        completions.len(),
        "a ticket completes once"
    );
    let left = Stream {
        requests: stream
            .requests
            .iter()
            .filter(|(_, request)| completed.contains(&request.ticket) || !is_aborted(request))
            .copied()
            .collect(),
    };
    check(&left, &completions);
}

/// A sanitized drive serves as before.
fn sanitized(mut drive: Box<dyn Service>, stream: &Stream) {
    let mut completions = Vec::new();
    for (at_ns, request) in &stream.requests {
        drive.submit(request, *at_ns);
    }
    let idle_ns = stream.last_ns() + LONG_NS;
    drive.advance(idle_ns, &mut completions);
    drive.sanitize(idle_ns);
    completions.clear();
    let again: Vec<_> = stream
        .requests
        .iter()
        .map(|(at_ns, request)| (at_ns + idle_ns, *request))
        .collect();
    for (at_ns, request) in &again {
        drive.submit(request, *at_ns);
    }
    let again = Stream { requests: again };
    drive.advance(again.last_ns() + LONG_NS, &mut completions);
    check(&again, &completions);
}
