//! Consecutive sectors of a file, read with the drive's retries or through a local erasure code.
//!
//! With a code the file is groups of `k` user sectors and `m` redundancy sectors, one behind the other ("Facilitating
//! Magnetic Recording Technology Scaling for Data Center Hard Disk Drives through Filesystem-level Transparent Local
//! Erasure Coding", FAST 2017). The stream, including the redundancy in between, is read with fail-fast. Missing
//! sectors are decoded while the stream continues. Only sectors missing beyond `m` are read again, behind the stream.

use std::collections::VecDeque;
use std::ops::Range;

use racksim::{Completion, Io, Kind, OnReadError, Request};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};
use serde::Serialize;

use crate::drive::Drive;
use crate::failure::Failure;
use crate::layout::{Layout, SECTOR_BYTES};
use crate::sequential_read_document::{LocalCode, SequentialRead, LEAD_SECTORS};

/// The result of a sequential-read experiment: the latency of each trial, and sectors counted over all of them.
#[derive(Debug, Serialize)]
pub struct SequentialReadResult<'a> {
    name: &'a str,
    kind: &'static str,
    latencies_ns: Vec<u64>,
    #[serde(flatten)]
    counts: Counts,
}

/// Sectors, and groups, of all trials.
#[derive(Debug, Default, Serialize)]
struct Counts {
    /// Failed a fail-fast read.
    failed: u64,
    /// Followed a failed sector in the same request.
    passed_over: u64,
    /// Groups that were decoded.
    decoded: u64,
    /// Read only to decode a group that the stream did not cover.
    fetched: u64,
    /// Read again without the drive's retries, for groups that lack more than they can decode.
    read_again: u64,
    /// Read again with the drive's retries.
    retried: u64,
    /// Could not be read although the drive retried.
    lost: u64,
}

/// Run every trial, each at another random place and with cold caches.
pub fn run<'a>(
    read: &'a SequentialRead,
    drive: &mut Drive,
    seed: u64,
) -> Result<SequentialReadResult<'a>, Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let layout = read.layout();
    let room = drive.bytes() / SECTOR_BYTES - layout.sectors();
    let bases = Uniform::new_inclusive(LEAD_SECTORS, room).expect("the document's check");
    let firsts = Uniform::new_inclusive(0, read.file_sectors() - read.sectors)
        .expect("the document's check");
    let mut counts = Counts::default();
    let mut latencies_ns = Vec::with_capacity(read.trials as usize);
    for _ in 0..read.trials {
        drive.forget_caches();
        let (base, first) = (bases.sample(&mut rng), firsts.sample(&mut rng));
        let mut trial = Trial::new(read, &layout, drive, base, &mut counts);
        latencies_ns.push(trial.read(first)?);
    }
    Ok(SequentialReadResult {
        name: &read.name,
        kind: "stretch",
        latencies_ns,
        counts,
    })
}

/// File sectors read in one request.
#[derive(Debug, Clone)]
struct Ask {
    sectors: Range<u64>,
    group: usize,
    policy: OnReadError,
}

/// The progress of a group's recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Streamed,
    Fetched,
    ReadAgain,
    Retried,
}

/// A group of which some sectors are wanted.
#[derive(Debug)]
struct Group {
    whole: Range<u64>,
    wanted: Range<u64>,
    /// Its sectors that the stream reads.
    covered: Range<u64>,
    pending: usize,
    stage: Stage,
    /// Sectors that failed at the first attempt.
    failed: Vec<u64>,
    /// Sectors not read because an earlier one of the request failed.
    passed_over: Vec<u64>,
}

impl Group {
    fn lacks(&self) -> usize {
        self.failed.len() + self.passed_over.len()
    }

    fn is_wanted(&self) -> bool {
        let missing = self.failed.iter().chain(&self.passed_over);
        missing
            .into_iter()
            .any(|sector| self.wanted.contains(sector))
    }
}

struct Trial<'s, 'd> {
    read: &'s SequentialRead,
    layout: &'s Layout,
    drive: &'d mut Drive,
    base: u64,
    counts: &'d mut Counts,
    todo: VecDeque<Ask>,
    /// By ticket.
    in_flight: Vec<Option<Ask>>,
    groups: Vec<Group>,
    decoder_free_ns: u64,
}

impl<'s, 'd> Trial<'s, 'd> {
    fn new(
        read: &'s SequentialRead,
        layout: &'s Layout,
        drive: &'d mut Drive,
        base: u64,
        counts: &'d mut Counts,
    ) -> Self {
        Self {
            read,
            layout,
            drive,
            base,
            counts,
            todo: VecDeque::new(),
            in_flight: vec![None; read.depth],
            groups: Vec::new(),
            decoder_free_ns: 0,
        }
    }

    /// Read from user sector `first` on; returns the latency.
    fn read(&mut self, first: u64) -> Result<u64, Failure> {
        self.plan(first);
        let begin = self.groups[0].covered.start;
        if !self.read.seeks {
            self.lead_in(begin)?;
        }
        let began_ns = self.drive.now_ns();
        let mut completions = Vec::new();
        let mut ended_ns = began_ns;
        while self.submit() {
            self.drive.pass(None, &mut completions)?;
            for done in completions.drain(..) {
                ended_ns = ended_ns.max(done.at_ns);
                self.settle(&done);
            }
        }
        Ok(ended_ns.max(self.decoder_free_ns) - began_ns)
    }

    /// The groups of the read, and the requests of the stream.
    fn plan(&mut self, first: u64) {
        let end = first + self.read.sectors;
        let (first_group, last_group) =
            (self.layout.group_of(first), self.layout.group_of(end - 1));
        for group in first_group..=last_group {
            let wanted = self.layout.on_drive(group, first, end);
            let whole = self.layout.group(group);
            // The stream goes over the redundancy of all groups but the last to get to the next.
            let until = if group == last_group {
                wanted.end
            } else {
                whole.end
            };
            let covered = wanted.start..until;
            self.groups.push(Group {
                whole,
                wanted,
                covered: covered.clone(),
                pending: 0,
                stage: Stage::Streamed,
                failed: Vec::new(),
                passed_over: Vec::new(),
            });
            let policy = match self.read.code {
                Some(_) => OnReadError::FailFast,
                None => OnReadError::Retry,
            };
            self.ask((group - first_group) as usize, covered, policy);
        }
    }

    fn ask(&mut self, group: usize, sectors: Range<u64>, policy: OnReadError) {
        let mut start = sectors.start;
        while start < sectors.end {
            let end = sectors.end.min(start + self.read.request_sectors);
            self.todo.push_back(Ask {
                sectors: start..end,
                group,
                policy,
            });
            self.groups[group].pending += 1;
            start = end;
        }
    }

    /// Bring the head to where the read begins.
    fn lead_in(&mut self, begin: u64) -> Result<(), Failure> {
        let before = Io {
            kind: Kind::Read,
            offset: (self.base + begin - LEAD_SECTORS) * SECTOR_BYTES,
            length: LEAD_SECTORS * SECTOR_BYTES,
        };
        self.drive.serve(before, false).map(|_| ())
    }

    /// Submit requests up to the depth; returns whether any is in flight.
    fn submit(&mut self) -> bool {
        for ticket in 0..self.in_flight.len() {
            if self.in_flight[ticket].is_some() {
                continue;
            }
            let Some(ask) = self.todo.pop_front() else {
                break;
            };
            self.drive.submit(&Request {
                ticket: ticket as u64,
                io: Io {
                    kind: Kind::Read,
                    offset: (self.base + ask.sectors.start) * SECTOR_BYTES,
                    length: (ask.sectors.end - ask.sectors.start) * SECTOR_BYTES,
                },
                fua: false,
                on_read_error: ask.policy,
            });
            self.in_flight[ticket] = Some(ask);
        }
        self.in_flight.iter().any(Option::is_some)
    }

    fn settle(&mut self, done: &Completion) {
        let ask = self.in_flight[done.ticket as usize]
            .take()
            .expect("the drive completes what it was given");
        let group = &mut self.groups[ask.group];
        group.pending -= 1;
        if let Some(byte) = done.failed_at {
            let failed = byte / SECTOR_BYTES - self.base;
            match ask.policy {
                OnReadError::FailFast => {
                    self.counts.failed += 1;
                    self.counts.passed_over += ask.sectors.end - failed - 1;
                    group.failed.push(failed);
                    group.passed_over.extend(failed + 1..ask.sectors.end);
                }
                OnReadError::Retry => self.counts.lost += 1,
            }
        }
        if group.pending == 0 {
            if let Some(code) = &self.read.code {
                self.recover(ask.group, code, done.at_ns);
            }
        }
    }

    /// Take the next step towards the wanted sectors of a group; `now_ns` is when its last request was over.
    fn recover(&mut self, at: usize, code: &LocalCode, now_ns: u64) {
        let group = &mut self.groups[at];
        if !group.is_wanted() {
            return;
        }
        if group.stage == Stage::Streamed {
            group.stage = Stage::Fetched;
            let (before, behind) = (
                group.whole.start..group.covered.start,
                group.covered.end..group.whole.end,
            );
            self.counts.fetched += before.end - before.start + behind.end - behind.start;
            self.ask(at, before, OnReadError::FailFast);
            self.ask(at, behind, OnReadError::FailFast);
            if self.groups[at].pending > 0 {
                return;
            }
        }
        let (most, group) = (code.m as usize, &mut self.groups[at]);
        if group.stage == Stage::Fetched && group.lacks() > most && !group.passed_over.is_empty() {
            group.stage = Stage::ReadAgain;
            let again = std::mem::take(&mut group.passed_over);
            self.counts.read_again += again.len() as u64;
            for sectors in runs(&again) {
                self.ask(at, sectors, OnReadError::FailFast);
            }
            return;
        }
        if group.stage != Stage::Retried && group.lacks() > most {
            group.stage = Stage::Retried;
            let mut missing = std::mem::take(&mut group.failed);
            missing.append(&mut group.passed_over);
            group.failed = missing.split_off(missing.len() - most);
            self.counts.retried += missing.len() as u64;
            for sector in missing {
                self.ask(at, sector..sector + 1, OnReadError::Retry);
            }
            return;
        }
        // Even if retries recovered all wanted sectors, the rest is decoded.
        let lacks = group.lacks();
        self.counts.decoded += 1;
        self.decoder_free_ns = self.decoder_free_ns.max(now_ns) + code.decode_ns(lacks);
    }
}

/// Sectors in rising order as ranges of consecutive ones.
fn runs(sectors: &[u64]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for &sector in sectors {
        match runs.last_mut() {
            Some(run) if run.end == sector => run.end += 1,
            _ => runs.push(sector..sector + 1),
        }
    }
    runs
}

#[cfg(test)]
#[path = "sequential_read_tests.rs"]
mod tests;
