//! Latencies of a tenant.

use hdrhistogram::Histogram;
use schedulers::{Completion, Operation};
use serde_json::{json, Value};

/// Latencies of requests that succeeded, in nanoseconds.
pub struct Statistics {
    read: Latencies,
    write: Latencies,
}

struct Latencies {
    /// From dispatch to completion at the drive.
    drive: Histogram<u64>,
    /// From arrival to completion at the drive.
    total: Histogram<u64>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            read: Latencies::new(),
            write: Latencies::new(),
        }
    }
}

impl Latencies {
    fn new() -> Self {
        let new = || Histogram::new(2).expect("2 significant figures are allowed");
        Self {
            drive: new(),
            total: new(),
        }
    }

    fn as_json(&self) -> Value {
        json!({"drive_ns": summary(&self.drive), "total_ns": summary(&self.total)})
    }
}

impl Statistics {
    pub fn note(&mut self, completion: &Completion) {
        let of = match completion.request.operation {
            Operation::Read => &mut self.read,
            Operation::Write => &mut self.write,
        };
        // Auto-resizing histograms take every value.
        let _ = of.drive.record(completion.latency_ns);
        let _ = of
            .total
            .record(completion.latency_ns + completion.waited_ns);
    }

    pub fn as_json(&self) -> Value {
        json!({"read": self.read.as_json(), "write": self.write.as_json()})
    }
}

/// Nothing but the count where nothing was measured.
fn summary(of: &Histogram<u64>) -> Value {
    if of.is_empty() {
        return json!({"n": 0});
    }
    json!({
        "n": of.len(),
        "mean": of.mean(),
        "p50": of.value_at_quantile(0.5),
        "p99": of.value_at_quantile(0.99),
        "p999": of.value_at_quantile(0.999),
        "max": of.max(),
    })
}
