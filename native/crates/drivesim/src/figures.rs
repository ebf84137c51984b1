//! Results of requests: counts, rates and latencies, in total and by intervals.

use hdrhistogram::Histogram;
use racksim::Kind;
use serde::Serialize;

use crate::failure::Failure;

/// Precision of reported latencies: three digits.
const DIGITS: u8 = 3;
/// Latencies that are gathered before the histogram gets them.
const RECENT: usize = 256;
const MOST_INTERVALS: usize = 1_000_000;

/// Figures of a load's requests, or of its reads or writes alone.
#[derive(Debug, Serialize)]
pub struct Figures {
    requests: u64,
    bytes: u64,
    /// `None` if the drive took no time.
    iops: Option<f64>,
    bytes_per_s: Option<f64>,
    latency_ns: Option<Latency>,
}

/// Latencies, from a request's submission to its completion.
#[derive(Debug, Serialize)]
pub struct Latency {
    mean: f64,
    min: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    p99_9: u64,
    max: u64,
}

/// Results of an interval.
#[derive(Debug, Serialize)]
struct Interval {
    requests: u64,
    bytes: u64,
    mean_latency_ns: u64,
    max_latency_ns: u64,
}

/// Requests counted as they complete within an interval.
#[derive(Debug, Clone, Default)]
struct IntervalCount {
    requests: u64,
    bytes: u64,
    latency_sum_ns: u64,
    max_latency_ns: u64,
}

/// A load's result.
#[derive(Debug, Serialize)]
pub struct LoadResult<'a> {
    name: &'a str,
    kind: &'static str,
    /// Start of the measured time.
    start_s: f64,
    seconds: f64,
    #[serde(flatten)]
    measured: Measured,
}

/// The figures of the requests that were counted.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// Failed reads, which no other figure includes.
    errors: u64,
    total: Figures,
    reads: Figures,
    writes: Figures,
    interval_s: Option<f64>,
    intervals: Option<Vec<Interval>>,
    #[serde(skip)]
    count: Count,
    #[serde(skip)]
    seconds: f64,
}

/// A distribution of latencies.
#[derive(Debug)]
pub struct Latencies {
    sum_ns: u128,
    histogram: Histogram<u64>,
    /// Those that the histogram does not have yet. Its counts are spread over more memory than a processor caches:
    /// many at once wait for it together.
    recent: Vec<u64>,
}

/// Requests counted as they complete.
#[derive(Debug, Default)]
struct Count {
    bytes: u64,
    latencies: Latencies,
}

/// The counter of a load's requests.
pub struct Meter {
    start_ns: u64,
    errors: u64,
    reads: Count,
    writes: Count,
    interval_ns: Option<u64>,
    intervals: Vec<IntervalCount>,
}

impl From<IntervalCount> for Interval {
    fn from(count: IntervalCount) -> Self {
        Self {
            requests: count.requests,
            bytes: count.bytes,
            mean_latency_ns: count.latency_sum_ns / count.requests.max(1),
            max_latency_ns: count.max_latency_ns,
        }
    }
}

impl Figures {
    /// All that was measured over the same time together.
    pub fn of_all<'a>(all: impl Iterator<Item = &'a Measured>) -> Self {
        let (mut total, mut seconds) = (Count::default(), 0.0);
        for one in all {
            total.add(&one.count);
            seconds = one.seconds;
        }
        total.figures(seconds)
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            sum_ns: 0,
            histogram: Histogram::new(DIGITS).expect("a histogram of so many digits"),
            recent: Vec::with_capacity(RECENT),
        }
    }
}

impl Latencies {
    /// Count a latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.recent.push(latency_ns);
        if self.recent.len() == RECENT {
            self.settle();
        }
    }

    fn settle(&mut self) {
        for latency_ns in self.recent.drain(..) {
            self.sum_ns += u128::from(latency_ns);
            self.histogram.record(latency_ns).expect("it grows");
        }
    }

    /// The distribution, unless it is empty.
    pub fn summary(&mut self) -> Option<Latency> {
        self.settle();
        let at = |share: f64| self.histogram.value_at_quantile(share);
        (!self.histogram.is_empty()).then(|| Latency {
            mean: self.sum_ns as f64 / self.histogram.len() as f64,
            min: self.histogram.min(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: self.histogram.max(),
        })
    }

    fn add(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.histogram.add(&other.histogram).expect("it grows");
        for latency_ns in &other.recent {
            self.record(*latency_ns);
        }
    }
}

impl Count {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
    }

    fn figures(&mut self, seconds: f64) -> Figures {
        let latency_ns = self.latencies.summary();
        let requests = self.latencies.histogram.len();
        let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
        Figures {
            requests,
            bytes: self.bytes,
            iops: rate(requests),
            bytes_per_s: rate(self.bytes),
            latency_ns,
        }
    }
}

impl Meter {
    /// Count from `start_ns` on.
    pub fn new(start_ns: u64, interval_s: Option<f64>) -> Self {
        Self {
            start_ns,
            errors: 0,
            reads: Count::default(),
            writes: Count::default(),
            interval_ns: interval_s.map(|seconds| (seconds * 1e9).round() as u64),
            intervals: Vec::new(),
        }
    }

    /// Count a completed request. Fails if the time exceeds the maximum number of intervals.
    #[inline]
    pub fn count(
        &mut self,
        kind: Kind,
        bytes: u64,
        latency_ns: u64,
        at_ns: u64,
    ) -> Result<(), Failure> {
        let count = match kind {
            Kind::Read => &mut self.reads,
            _ => &mut self.writes,
        };
        count.bytes += bytes;
        count.latencies.record(latency_ns);
        if let Some(interval_ns) = self.interval_ns {
            let place = ((at_ns - self.start_ns) / interval_ns) as usize;
            if place >= MOST_INTERVALS {
                return Err(Failure::BadInput(format!(
                    "interval_s {} makes more than {MOST_INTERVALS} intervals",
                    interval_ns as f64 / 1e9
                )));
            }
            if place >= self.intervals.len() {
                self.intervals.resize(place + 1, IntervalCount::default());
            }
            let interval = &mut self.intervals[place];
            interval.latency_sum_ns += latency_ns;
            interval.max_latency_ns = interval.max_latency_ns.max(latency_ns);
            interval.requests += 1;
            interval.bytes += bytes;
        }
        Ok(())
    }

    /// The buckets of all latencies so far that have any: the upper bound of each, and their number.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let mut all = Latencies::default();
        all.add(&self.reads.latencies);
        all.add(&self.writes.latencies);
        all.settle();
        let buckets = all.histogram.iter_recorded();
        buckets
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect()
    }

    /// Count a read that failed.
    pub fn count_error(&mut self) {
        self.errors += 1;
    }

    /// The figures of the requests counted until `end_ns`.
    pub fn measured(mut self, end_ns: u64) -> Measured {
        let seconds = (end_ns - self.start_ns) as f64 / 1e9;
        let mut total = Count::default();
        total.add(&self.reads);
        total.add(&self.writes);
        Measured {
            errors: self.errors,
            total: total.figures(seconds),
            count: total,
            seconds,
            reads: self.reads.figures(seconds),
            writes: self.writes.figures(seconds),
            interval_s: self.interval_ns.map(|interval_ns| interval_ns as f64 / 1e9),
            intervals: self
                .interval_ns
                .map(|_| self.intervals.into_iter().map(Interval::from).collect()),
        }
    }

    /// The result of a load whose requests were counted until `end_ns`.
    pub fn result(self, name: &str, end_ns: u64) -> LoadResult<'_> {
        LoadResult {
            name,
            kind: "load",
            start_s: self.start_ns as f64 / 1e9,
            seconds: (end_ns - self.start_ns) as f64 / 1e9,
            measured: self.measured(end_ns),
        }
    }
}
