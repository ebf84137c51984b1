//! Latencies of a tenant.

use hdrhistogram::Histogram;
use schedulers::{Completion, Operation};
use serde_json::{json, Value};

/// The requests that a quantile has beyond it at least: of fewer it is a matter of chance. So it is in rackloop_models.
const BEYOND: u64 = 10;

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

/// Nothing but the count where nothing was measured; null for a quantile with too few beyond it.
fn summary(of: &Histogram<u64>) -> Value {
    if of.is_empty() {
        return json!({"n": 0});
    }
    let at = |one_in: u64| match of.len() / one_in {
        ..BEYOND => Value::Null,
        _ => json!(of.value_at_quantile(1.0 - 1.0 / one_in as f64)),
    };
    json!({
        "n": of.len(),
        "mean": of.mean(),
        "p50": at(2),
        "p99": at(100),
        "p999": at(1000),
        "max": of.max(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantiles that are told of so many latencies.
    fn told(count: u64) -> Vec<&'static str> {
        let mut of = Histogram::new(2).unwrap();
        of.record_n(1000, count).unwrap();
        let found = summary(&of);
        let is_told = |name: &&str| !found[*name].is_null();
        ["mean", "p50", "p99", "p999", "max"]
            .into_iter()
            .filter(is_told)
            .collect()
    }

    #[test]
    fn a_quantile_has_ten_requests_beyond_it() {
        assert_eq!(told(0), [""; 0]);
        assert_eq!(told(19), ["mean", "max"]);
        assert_eq!(told(20), ["mean", "p50", "max"]);
        assert_eq!(told(999), ["mean", "p50", "max"]);
        assert_eq!(told(1000), ["mean", "p50", "p99", "max"]);
        assert_eq!(told(9_999), ["mean", "p50", "p99", "max"]);
        assert_eq!(told(10_000), ["mean", "p50", "p99", "p999", "max"]);
    }
}
