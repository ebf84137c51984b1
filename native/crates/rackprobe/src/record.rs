//! Statistics of a period of I/O: latencies in an HDR histogram, the longest with its time, errors, verdicts.

use hdrhistogram::Histogram;
use serde_json::{json, Value};

use crate::io::Done;
use crate::tally::Tally;

/// Latencies are recorded from 1 ns to this with three digits: ten minutes, twenty times a link time-out.
const LONGEST_NS: u64 = 600_000_000_000;

/// The longest I/O of a period.
#[derive(Debug, Clone, Copy, Default)]
struct Longest {
    ns: u64,
    submit_ns: u64,
    complete_ns: u64,
}

/// The statistics of a period.
pub struct Record {
    histogram: Histogram<u64>,
    longest: Longest,
    errors: u64,
    last_error: Option<String>,
    bytes: u64,
    /// The judged sectors.
    pub tally: Tally,
}

impl Record {
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        Self {
            histogram: histogram.expect("the bounds are constants that fit"),
            longest: Longest::default(),
            errors: 0,
            last_error: None,
            bytes: 0,
            tally: Tally::default(),
        }
    }

    /// Count a completed I/O of `bytes`.
    pub fn add(&mut self, done: &Done, bytes: u64) {
        let ns = done.complete_ns - done.submit_ns;
        self.histogram.saturating_record(ns);
        if ns > self.longest.ns {
            self.longest = Longest {
                ns,
                submit_ns: done.submit_ns,
                complete_ns: done.complete_ns,
            };
        }
        match &done.result {
            Ok(()) => self.bytes += bytes,
            Err(error) => {
                self.errors += 1;
                self.last_error = Some(error.clone());
            }
        }
    }

    /// Number of completed I/Os.
    pub fn completed(&self) -> u64 {
        self.histogram.len()
    }

    /// Every latency in ns with its count, ascending, to three digits.
    pub fn bins_ns(&self) -> Vec<(u64, u64)> {
        let bins = self.histogram.iter_recorded();
        bins.map(|bin| (bin.value_iterated_to(), bin.count_at_value()))
            .collect()
    }

    /// The period as fields of an event.
    pub fn fields(&self) -> Value {
        json!({
            "completed": self.histogram.len(),
            "errors": self.errors,
            "last_error": self.last_error,
            "bytes": self.bytes,
            "max_us": self.longest.ns as f64 / 1000.0,
            "max_submit_ns": self.longest.submit_ns,
            "max_complete_ns": self.longest.complete_ns,
            "verdicts": self.tally.verdicts(),
            "offenders": self.tally.offenders(),
        })
    }
}
